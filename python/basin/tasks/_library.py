"""The library of the applications, libbasin_tasks, opened when basin.tasks is first imported."""

from typing import Any

from basin._engine.library import BasinError, check, made, open_library, owned, path_of, text, warn
from basin.tasks import _declarations

__all__ = [
    "BasinError", "check", "ffi", "lib", "made", "owned", "path_of", "sized", "text", "warn",
]  # fmt: skip

ffi: Any = _declarations.ffi
lib: Any
lib, _ = open_library(_declarations, "basin_tasks", 0, "basin_tasks_header_digest")


def sized(struct, /, **fields):
    """A struct with these fields, and with its own size where it has a field for that."""
    if "size" in dict(ffi.typeof(struct).fields):
        fields["size"] = ffi.sizeof(struct)
    return ffi.new(f"{struct} *", fields)
