"""cuBLASLt and NVRTC for the CUDA module, which is linked with both.

The loader gives it what the process has loaded already (PyTorch and JAX bring theirs), then what
NVIDIA's pip packages have, which `prepare` opens beforehand, then those of the machine's own CUDA.
"""

import ctypes
import functools
import importlib.util
import mmap
import os
import pathlib
import re
from typing import Any, Optional

from basin._engine.library import BasinError, check, ffi, library_path

_MODULE = "libbasin_cuda.so"
_NOLOAD = getattr(os, "RTLD_NOLOAD", 0)  # only what is loaded already
_NAMES = re.compile(rb"lib(?:cublasLt|nvrtc)\.so\.[0-9]+(?=\0)")


def needed(module: "os.PathLike[str]") -> "list[str]":
    """The names under which the module asks for them."""
    with open(module, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return sorted({name.decode() for name in _NAMES.findall(data)})


def files(name: str) -> "list[pathlib.Path]":
    """The files of NVIDIA's packages with a name such as libnvrtc.so.13: nvidia/cuda_nvrtc/lib of
    CUDA 12's, nvidia/cu13/lib of CUDA 13's."""
    found = importlib.util.find_spec("nvidia")
    folders = list(found.submodule_search_locations or ()) if found else []
    return [
        path for folder in folders for path in sorted(pathlib.Path(folder).glob(f"*/lib/{name}"))
    ]


def _opens(name, mode=0):
    try:
        ctypes.CDLL(name, mode=mode | getattr(os, "RTLD_NOW", 0))
    except OSError:  # not there, or of another machine: the module reports what it lacks
        return False
    return True


def has_driver() -> bool:
    """Whether there may be a device."""
    return _opens("libcuda.so.1")


@functools.cache
def prepare() -> None:
    """Opens NVIDIA's packages that are not there yet, for good: CUDA must not be unloaded."""
    module = pathlib.Path(library_path).parent / _MODULE
    for name in needed(module) if module.exists() else ():
        if not _opens(name, _NOLOAD):
            any(_opens(str(path)) for path in files(name))


def explain(failure: str) -> Optional[str]:
    """What to do about a module that does not open; None where that is not the reason."""
    if "cannot open shared object" not in failure:
        return None
    others = sorted(
        {path.name for name in ("libcublasLt.so.*", "libnvrtc.so.*") for path in files(name)}
    )
    there = f" (NVIDIA's packages here have {', '.join(others)})" if others else ""
    return f"{failure}; pip install nvidia-cublas nvidia-cuda-nvrtc has it{there}"


def check_open(function: Any, pointer: Any, backend: str, threads: int) -> None:
    """Opens a backend by a function of the library."""
    if backend == "cuda":
        prepare()
    try:
        name = ffi.new("char[]", backend.encode())
        compute = ffi.new("basin_compute *", {"backend": name, "threads": threads})
        check(function, pointer, compute)
    except BasinError as failure:
        raise BasinError(explain(str(failure)) or str(failure)) from None
