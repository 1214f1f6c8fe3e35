"""The C library in the process: it must outlive its own threads."""

import gc
import os
import subprocess
import sys

import pytest

from basin._library import ffi, owned


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


def test_what_is_needed_outlives_its_users_in_cycles_of_garbage():
    freed = []
    store = owned(ffi.new("int *"), lambda _: freed.append("store"))
    plan = owned(ffi.new("int *"), lambda _: freed.append("plan"), store)
    cycle = [store, plan]
    cycle.append(cycle)
    del cycle, store, plan
    gc.collect()
    assert freed == ["plan", "store"]
