"""Writes what the C headers declare for cffi, basin/_engine/declarations.py of the engine and
basin/tasks/_declarations.py of the applications, and basin/tasks/_keywords.py, the settings of the
tasks for type checkers.

The structs and functions of the package are those of the headers it was built from, and the
keywords those of the library, so that none is copied by hand. `cc -E` reads the headers with empty
replacements for those of the system; constants with values and attributes, which cffi does not use,
are removed.

A digest of the headers goes along. Each library has one as well, and the package compares the two
when it opens the library: declarations of other headers would give wrong numbers.

    python declare.py [INCLUDE_FOLDER [OUTPUT_FOLDER [CC [LIBBASIN LIBBASIN_TASKS]]]]
"""

import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

import cffi

REPLACED = {
    "stdatomic.h": "",
    "stdbool.h": "#define true 1\n#define false 0\n",
    "stddef.h": "#define NULL 0\n",
    "stdint.h": "",
}
TASKS = "int the_applications_begin_here;"


def preprocess(include, cc):
    """The declarations of the engine, and those of the applications."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in REPLACED.items():
            pathlib.Path(folder, name).write_text(text)
        source = f"#include <basin/basin.h>\n{TASKS}\n#include <basin/tasks/tasks.h>\n"
        command = [cc, "-E", "-P", "-nostdinc", "-I", folder, "-I", str(include)]
        command += ["-D__attribute__(x)=", "-x", "c", "-"]
        text = subprocess.run(
            command, input=source, capture_output=True, text=True, check=True
        ).stdout
    engine, _, tasks = re.sub(r"static const [^;=]*=[^;]*;", "", text).partition(TASKS)
    return engine, tasks


# ---- keywords ----

HEAD = '''"""The settings of the tasks as keywords. Made by declare.py from the library's tables."""

from collections.abc import Sequence
from typing import Any, Callable, Literal, Optional, TypedDict, Union

class Keywords(TypedDict, total=False):
    preset: Optional[str]
    backend: Any
    threads: int
    progress: Union[None, bool, Callable[[dict[str, Any]], Any]]
'''
TYPES = {"INTEGER": "int", "REAL": "float", "SWITCH": "bool", "CHANNELS": "Sequence[float]"}


def rows_of(ffi, lib, task):
    rows = []
    while row := lib.basin_setting_at(task.encode(), len(rows)):
        rows.append(row)
    return rows


def type_of(ffi, row):
    kind = ffi.string(ffi.cast("basin_setting_kind", row.kind)).replace("BASIN_SETTING_", "")
    choices = []
    while row.choices and row.choices[len(choices)]:
        choices.append(ffi.string(row.choices[len(choices)]).decode())
    if choices:
        return f"Literal[{', '.join(repr(choice) for choice in choices)}]".replace("'", '"')
    return TYPES.get(kind, "str")


def keywords(ffi, lib):
    text = HEAD
    for task in ("image", "anomaly", "node", "graphs"):
        text += f"\nclass {task.capitalize()}Keywords(Keywords, total=False):\n"
        for row in rows_of(ffi, lib, task):
            text += f"    {ffi.string(row.name).decode()}: Optional[{type_of(ffi, row)}]\n"
            text += f'    """{ffi.string(row.help).decode()}"""\n'
    return text


# ---- both ----

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parent / "build"


def digest(folder):
    """Of a folder's headers except for those of the version, as cmake/version.cmake makes it."""
    headers = sorted(str(path) for path in pathlib.Path(folder).resolve().glob("*.h"))
    contents = [pathlib.Path(path).read_bytes() for path in headers if path[-10:] != "/version.h"]
    digests = "".join(hashlib.sha256(content).hexdigest() for content in contents)
    return hashlib.sha256(digests.encode()).hexdigest()


def write(ffi, module, output, headers, built_from, library):
    """The declarations of a library, after a check that it was built from these headers."""
    found = digest(headers)
    if ffi.string(built_from).decode() != found:
        sys.exit(f"declare.py: {library} was built from other headers than {headers}; build first")
    written = pathlib.Path(output, *module.split(".")[1:]).with_suffix(".py")
    written.parent.mkdir(parents=True, exist_ok=True)
    ffi.emit_python_code(str(written))
    with written.open("a") as file:
        file.write(f'HEADERS = "{found}"\n')


def main(
    include=HERE.parent / "include",
    output=HERE / "basin",
    cc="cc",
    library=BUILT / "libbasin.so",
    tasks_library=BUILT / "libbasin_tasks.so",
):
    engine, tasks = cffi.FFI(), cffi.FFI()
    names = "basin._engine.declarations", "basin.tasks._declarations"
    for ffi, text, name in zip((engine, tasks), preprocess(include, cc), names):
        if ffi is tasks:
            ffi.include(engine)
        ffi.cdef(text)
        ffi.set_source(name, None)
    headers = pathlib.Path(include, "basin")
    opened = engine.dlopen(str(library)), tasks.dlopen(str(tasks_library))
    write(engine, names[0], output, headers, opened[0].basin_header_digest(), library)
    built_from = opened[1].basin_tasks_header_digest()
    write(tasks, names[1], output, headers / "tasks", built_from, tasks_library)
    pathlib.Path(output, "tasks", "_keywords.py").write_text(keywords(tasks, opened[1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
