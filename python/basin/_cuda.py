"""cuBLASLt and NVRTC of NVIDIA's pip packages, for the CUDA module.

The module is linked with both and finds those of the machine's own CUDA. Where there is none, they
are opened from site-packages/nvidia/*/lib beforehand: the loader then takes those.
"""

import ctypes
import importlib.util
import pathlib

__all__ = ["PACKAGES", "libraries", "preload"]

PACKAGES = "pip install nvidia-cublas nvidia-cuda-nvrtc has them"


def libraries() -> list:
    """The files of NVIDIA's packages, later versions first."""
    found = importlib.util.find_spec("nvidia")
    folders = list(found.submodule_search_locations or ()) if found else []
    return [
        path
        for folder in folders
        for name in ("libcublasLt.so.*", "libnvrtc.so.*")
        for path in sorted(pathlib.Path(folder).glob(f"*/lib/{name}"), reverse=True)
    ]


def preload() -> bool:
    """Opens them; whether there were any. They stay open: CUDA does not like to be unloaded."""
    opened = False
    for path in libraries():
        try:
            ctypes.CDLL(str(path))
            opened = True
        except OSError:  # of another machine: the module says what it lacks
            continue
    return opened
