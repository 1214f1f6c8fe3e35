"""The C library in the process: it must outlive its own threads."""

import gc
import os
import subprocess
import sys

import pytest

import basin
from basin import _cuda, _plan
from basin._library import ffi, owned


@pytest.mark.skipif(not hasattr(os, "RTLD_NODELETE"), reason="no such loader here")
def test_the_library_stays_mapped_until_the_end():
    """Its threads may still sleep in its code when Python lets go of the library."""
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
    assert not [line for line in gone if "libbasin" in line]


def test_what_is_needed_outlives_its_users_in_cycles_of_garbage():
    freed = []
    store = owned(ffi.new("int *"), lambda _: freed.append("store"))
    plan = owned(ffi.new("int *"), lambda _: freed.append("plan"), store)
    cycle = [store, plan]
    cycle.append(cycle)
    del cycle, store, plan
    gc.collect()
    assert freed == ["plan", "store"]


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """NVIDIA's packages in a folder of their own, none of whose files is a library."""
    for name in ("cublas/lib/libcublasLt.so.12", "cu13/lib/libnvrtc.so.13"):
        (tmp_path / "nvidia" / name).parent.mkdir(parents=True)
        (tmp_path / "nvidia" / name).write_bytes(b"")
    for name in [name for name in sys.modules if name.split(".")[0] == "nvidia"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])


def test_libraries_of_nvidia_are_found_among_packages(packages):
    assert [path.name for path in _cuda.libraries()] == ["libcublasLt.so.12", "libnvrtc.so.13"]
    assert not _cuda.preload()


def test_cuda_is_opened_again_with_what_packages_bring(monkeypatch):
    tried = []

    def refuse(function, *arguments):
        tried.append(arguments[1])
        raise basin.BasinError("libcublasLt.so.13: cannot open shared object file")

    monkeypatch.setattr(_plan, "check", refuse)
    monkeypatch.setattr(_plan, "preload", lambda: True)
    with pytest.raises(basin.BasinError, match="cannot open"):
        basin.Backend("cuda")
    assert tried == [b"cuda", b"cuda"]
    monkeypatch.setattr(_plan, "preload", lambda: False)
    with pytest.raises(basin.BasinError, match="pip install nvidia-cublas"):
        basin.Backend("cuda")


def test_a_backend_that_is_not_there_says_so():
    with pytest.raises(basin.BasinError, match="gpu"):
        basin.Backend("gpu")
