"""The C library: found, opened once, and its errors turned into exceptions."""

import atexit
import errno
import itertools
import os
import pathlib
import sys
import warnings
from typing import Any, Optional

from basin import _declarations

__all__ = [
    "BasinError",
    "check",
    "ffi",
    "lib",
    "library_path",
    "owned",
    "path_of",
    "raise_error",
    "text",
    "warn",
]


ffi: Any = _declarations.ffi


class BasinError(ValueError):
    """What the library refused, in its own words: what was found and what was wanted.

    >>> import basin
    >>> try:
    ...     basin.Settings("image", dim=0)
    ... except basin.BasinError as error:
    ...     print(error)
    dim: 0 is too small; at least 1
    """


# The library stays mapped until the process ends: its threads sleep in its code, and objects
# are still to be freed, when Python lets go of it.
_FLAGS = os.RTLD_NOW | getattr(os, "RTLD_NODELETE", 0)


def _candidates():
    given = os.environ.get("BASIN_LIBRARY")
    if given:
        yield pathlib.Path(given)
        return
    here = pathlib.Path(__file__).resolve().parent
    names = {"darwin": ["libbasin.dylib"], "win32": ["basin.dll"]}
    for name in names.get(sys.platform, ["libbasin.so.0.2", "libbasin.so"]):
        yield here / "lib" / name
        yield here.parent.parent / "build" / name
    for name in names.get(sys.platform, ["libbasin.so.0.2"]):
        yield pathlib.Path(name)  # where the system's loader looks


def _open():
    failures = []
    for path in _candidates():
        if path.is_absolute() and not path.exists():
            continue
        try:
            return ffi.dlopen(str(path), _FLAGS), str(path)
        except OSError as error:
            failures.append(str(error))
    raise ImportError(
        "libbasin was not found beside the package; set BASIN_LIBRARY to its path"
        + "".join(f"\n  {failure}" for failure in failures)
    )


lib: Any
lib, library_path = _open()


def text(pointer: Any) -> Optional[str]:
    """A C string as str; None stays None."""
    return ffi.string(pointer).decode() if pointer else None


def _check_headers():
    """Structs of other headers would be read and written at wrong places."""
    version = lib.basin_version()
    built_from = ffi.string(version + len(ffi.string(version)) + 1)
    if built_from != getattr(_declarations, "HEADERS", "").encode():
        raise ImportError(
            f"{library_path} was built from other headers than {_declarations.__file__}; build the "
            "library, then run python/declare.py (INCLUDE_FOLDER OUTPUT_FOLDER CC LIBRARY)"
        )


_check_headers()


def path_of(path: Any) -> bytes:
    """A path as the library takes it; raises where it is none, as open() does."""
    path = os.fsencode(path)
    if b"\0" in path:
        raise ValueError("embedded null byte")
    return path


def _is_ours(module):
    return isinstance(module, str) and module.partition(".")[0] == __name__.partition(".")[0]


def warn(message: str, category: "type[Warning]" = UserWarning) -> None:
    """Warns of the line outside this package that called it, however deep inside it is found."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# Messages about files end in the system's words.
_FAILURES = {
    os.strerror(errno.ENOENT): FileNotFoundError,
    os.strerror(errno.EACCES): PermissionError,
    os.strerror(errno.EISDIR): IsADirectoryError,
    os.strerror(errno.ENOTDIR): NotADirectoryError,
}


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
        raise _FAILURES.get(message.rpartition(": ")[2], OSError)(message)
    raise BasinError(message)


_needs: dict = {}  # of objects that live; here, garbage collection does not see them as garbage
_numbers = itertools.count()
_ending: list = []
atexit.register(_ending.append, True)


def owned(pointer: Any, free: Any, *needs: Any) -> Any:
    """An object of the library's that is freed with its last reference, and before the objects
    that it needs: a plan before its store, in cycles of garbage, too. When Python ends nothing is
    freed any more: modules are then gone in any order."""
    number = next(_numbers)
    _needs[number] = needs

    def release(dying, number=number, needs=_needs, ending=_ending):
        if not ending:
            free(dying)
            del needs[number]

    return ffi.gc(pointer, release)
