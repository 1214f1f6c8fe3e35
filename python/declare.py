"""Writes basin/_declarations.py, what the C headers declare for cffi, and basin/_keywords.py, the
settings of the tasks for type checkers.

The structs and functions of the package are those of the headers it was built from, and the
keywords those of the library, so that none is copied by hand. `cc -E` reads the headers with empty
stand-ins for those of the system; what cffi has no use for (constants with values, attributes) is
taken out.

A digest of the headers goes along. The library has it as well, and the package compares the two
when it is imported: declarations of other headers would give wrong numbers.

    python declare.py [INCLUDE_FOLDER [OUTPUT_FOLDER [CC [LIBRARY]]]]
"""

import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

import cffi

STAND_INS = {
    "stdbool.h": "#define true 1\n#define false 0\n",
    "stddef.h": "#define NULL 0\n",
    "stdint.h": "",
    "signal.h": "typedef int sig_atomic_t;\n",
}


def preprocess(include, cc):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in STAND_INS.items():
            pathlib.Path(folder, name).write_text(text)
        source = "#include <basin/basin.h>\n#include <basin/tasks/tasks.h>\n"
        command = [cc, "-E", "-P", "-nostdinc", "-I", folder, "-I", str(include)]
        command += ["-D__attribute__(x)=", "-x", "c", "-"]
        return subprocess.run(
            command, input=source, capture_output=True, text=True, check=True
        ).stdout


def declarations(text):
    """What cffi can read of preprocessed headers."""
    return re.sub(r"static const [^;=]*=[^;]*;", "", text)


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
    rows, table = [], lib.basin_settings_table(task.encode())
    while table and table[len(rows)].name:
        rows.append(table[len(rows)])
    return rows


def type_of(ffi, row):
    kind = ffi.string(ffi.cast("basin_setting_kind", row.kind)).replace("BASIN_SETTING_", "")
    choices = []
    while row.choices and row.choices[len(choices)]:
        choices.append(ffi.string(row.choices[len(choices)]).decode())
    if choices:
        return f"Literal[{', '.join(repr(choice) for choice in choices)}]".replace("'", '"')
    return TYPES.get(kind, "str")


def keywords(ffi, library):
    lib, text = ffi.dlopen(str(library)), HEAD
    for task in ("image", "anomaly", "node", "graphs"):
        rows = rows_of(ffi, lib, task)
        if rows:
            text += f"\nclass {task.capitalize()}Keywords(Keywords, total=False):\n"
        for row in rows:
            text += f"    {ffi.string(row.name).decode()}: Optional[{type_of(ffi, row)}]\n"
            text += f'    """{ffi.string(row.help).decode()}"""\n'
    return text


HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parent / "build" / "libbasin.so"


def digest(include):
    """Of all headers but that of the version, as cmake/version.cmake makes it."""
    headers = sorted(str(path) for path in pathlib.Path(include).resolve().rglob("*.h"))
    contents = [pathlib.Path(path).read_bytes() for path in headers if path[-10:] != "/version.h"]
    digests = "".join(hashlib.sha256(content).hexdigest() for content in contents)
    return hashlib.sha256(digests.encode()).hexdigest()


def built_from(ffi, library):
    """The digest that the library has, behind its version."""
    version = ffi.dlopen(str(library)).basin_version()
    return ffi.string(version + len(ffi.string(version)) + 1).decode()


def main(include=HERE.parent / "include", output=HERE / "basin", cc="cc", library=BUILT):
    ffi = cffi.FFI()
    ffi.cdef(declarations(preprocess(include, cc)))
    headers = digest(include)
    if built_from(ffi, library) != headers:
        sys.exit(f"declare.py: {library} was built from other headers than {include}; build first")
    pathlib.Path(output, "_keywords.py").write_text(keywords(ffi, library))
    ffi.set_source("basin._declarations", None)
    written = pathlib.Path(output, "_declarations.py")
    ffi.emit_python_code(str(written))
    with written.open("a") as file:
        file.write(f'HEADERS = "{headers}"\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
