"""The C library in the process: it must outlive its own threads."""

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(not hasattr(os, "RTLD_NODELETE"), reason="no such loader here")
def test_the_library_stays_mapped_until_the_end():
    """Threads of OpenMP's may still wait in libgomp when Python lets go of the library."""
    environment = {**os.environ, "LD_DEBUG": "files"}
    done = subprocess.run(
        [sys.executable, "-c", "import basin"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "libbasin_tasks" in done.stderr
    gone = [line for line in done.stderr.splitlines() if "destroying link map" in line]
    assert not [line for line in gone if "libbasin" in line or "libgomp" in line]
