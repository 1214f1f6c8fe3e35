"""The library of the applications, libbasin_tasks, opened when basin.tasks is first imported."""

from typing import Any

from basin._engine.library import BasinError, check, open_library, owned, path_of, text, warn
from basin.tasks import _declarations

__all__ = ["BasinError", "check", "ffi", "lib", "owned", "path_of", "text", "warn"]

ffi: Any = _declarations.ffi
lib: Any
lib, _ = open_library(_declarations, "basin_tasks", 0, "basin_tasks_header_digest")
