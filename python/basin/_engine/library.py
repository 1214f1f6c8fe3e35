"""The C library: found, opened once, and its errors turned into exceptions."""

import atexit
import itertools
import os
import pathlib
import sys
import warnings
from typing import Any, Optional

from basin._engine import declarations

ffi: Any = declarations.ffi


class BasinError(ValueError):
    """What the library refused: what was found, and what was expected.

    >>> try:
    ...     basin.energy("not a function")
    ... except basin.BasinError as error:
    ...     print(error)
    'not a function', expected a function of activations g
    """


BasinError.__module__ = "basin"

# A library stays mapped until the process ends: its threads sleep in its code, and objects are
# still to be freed, when Python releases it.
_FLAGS = os.RTLD_NOW | getattr(os, "RTLD_NODELETE", 0)
_PACKAGE = pathlib.Path(__file__).resolve().parent.parent


def _candidates(name, abi):
    """Where the library may be: BASIN_LIBRARY is a folder or the path of libbasin."""
    names = {"darwin": [f"lib{name}.dylib"], "win32": [f"{name}.dll"]}
    names = names.get(sys.platform, [f"lib{name}.so.{abi}", f"lib{name}.so"])
    given = os.environ.get("BASIN_LIBRARY")
    if given and not os.path.isdir(given):
        if name == "basin":
            return [pathlib.Path(given)]
        given = os.path.dirname(os.path.abspath(given))
    folders = [given] if given else [_PACKAGE / "lib", _PACKAGE.parent.parent / "build"]
    found = [pathlib.Path(folder, file).absolute() for folder in folders for file in names]
    return found if given else [*found, pathlib.Path(names[0])]  # the last by the system's loader


def open_library(declared: Any, name: str, abi: int, digest: str) -> "tuple[Any, str]":
    """A library and its path; `digest` names its function that returns a digest of the headers,
    which must be those of the declarations: structs of others would be read at wrong places."""
    failures = []
    for path in _candidates(name, abi):
        if path.is_absolute() and not path.exists():
            continue
        try:
            opened = declared.ffi.dlopen(str(path), _FLAGS)
            built_from = getattr(opened, digest)()
        except (OSError, AttributeError) as error:
            failures.append(f"\n  {error}")
            continue
        if declared.ffi.string(built_from).decode() != getattr(declared, "HEADERS", ""):
            raise ImportError(
                f"{path} was built from other headers than {declared.__file__}; build the "
                "library, then run python/declare.py"
            )
        return opened, str(path)
    where = "; set BASIN_LIBRARY to the folder of the libraries"
    raise ImportError(f"lib{name} was not found beside the package{where}{''.join(failures)}")


lib: Any
lib, library_path = open_library(declarations, "basin", 1, "basin_header_digest")


def text(pointer: Any) -> Optional[str]:
    """A C string as str; None stays None."""
    return ffi.string(pointer).decode() if pointer else None


def path_of(path: Any) -> bytes:
    """A path as the library takes it; raises where it is not one, as open() does."""
    path = os.fsencode(path)
    if b"\0" in path:
        raise ValueError("embedded null byte")
    return path


def warn(message: str, category: "type[Warning]" = UserWarning) -> None:
    """Warns of the line outside this package that called it, however deep inside it is found."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == "basin":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check(function: Any, *arguments: Any) -> None:
    """Calls a function whose last argument is an error, and raises what it reports."""
    error = ffi.new("basin_error *")
    status = function(*arguments, error)
    if status != lib.BASIN_OK:
        raise_error(status, error)


def raise_error(status: int, error: Any) -> None:
    """Raises what a function of the library reported."""
    message = text(error.text) or ""
    if status == lib.BASIN_NO_MEMORY:
        raise MemoryError(message)
    if status == lib.BASIN_IO:
        raise OSError(error.number, message) if error.number else OSError(message)
    raise BasinError(message)


_needs: dict = {}  # of objects that live; here, garbage collection does not see them as garbage
_numbers = itertools.count()
_ending: list = []
atexit.register(_ending.append, True)


def owned(pointer: Any, free: Any, *needs: Any) -> Any:
    """An object of the library's that is freed with its last reference, and before the objects
    that it needs: a plan before its store, also in cycles of garbage. When Python ends nothing is
    freed any more: modules are then gone in any order."""
    number = next(_numbers)
    _needs[number] = needs

    def release(dying, number=number, needs=_needs, ending=_ending):
        if not ending:
            free(dying)
            del needs[number]

    return ffi.gc(pointer, release)


def made(function: Any, free: Any, *arguments: Any, needs: tuple = ()) -> Any:
    """What a function of the library makes, whose first argument is where that is written."""
    pointer = ffi.new(ffi.typeof(function).args[0])
    check(function, pointer, *arguments)
    return owned(pointer[0], free, *needs)


def bundle_of(path: Any) -> Any:
    """The tensors of a safetensors file."""
    return made(lib.basin_bundle_read, lib.basin_bundle_free, path_of(path))
