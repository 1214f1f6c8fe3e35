"""Writes basin/_declarations.py: what the C headers declare, for cffi.

The structs and functions of the package are those of the headers it was built from, so that none is
copied by hand. `cc -E` reads the headers with empty stand-ins for those of the system; what cffi
has no use for (constants with values, attributes) is taken out.

    python declare.py [INCLUDE_FOLDER [OUTPUT [CC]]]
"""

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


HERE = pathlib.Path(__file__).resolve().parent


def main(include=HERE.parent / "include", output=HERE / "basin" / "_declarations.py", cc="cc"):
    ffi = cffi.FFI()
    ffi.cdef(declarations(preprocess(include, cc)))
    ffi.set_source("basin._declarations", None)
    ffi.emit_python_code(str(output))


if __name__ == "__main__":
    main(*sys.argv[1:])
