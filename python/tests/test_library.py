"""The C library in the process: it must outlive its own threads."""

import copy
import gc
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import pytest

import basin
from basin import tasks
from basin._engine import cuda as _cuda
from basin._engine import eager as _eager
from basin._engine.library import ffi, library_path, owned


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
    assert "libbasin" in done.stderr
    gone = [line for line in done.stderr.splitlines() if "destroying link map" in line]
    assert not [line for line in gone if "libbasin" in line]


@pytest.mark.parametrize(
    ("module", "declared"),
    [("basin", "_engine/declarations.py"), ("basin.tasks", "tasks/_declarations.py")],
)
def test_declarations_of_other_headers_are_refused(tmp_path, module, declared):
    """Numbers would be wrong without a word."""
    here, package = pathlib.Path(basin.__file__).parent, tmp_path / "basin"
    shutil.copytree(here, package)
    for libraries in here.parent.glob("basin_energy.libs"):  # of a wheel: OpenBLAS and others
        shutil.copytree(libraries, tmp_path / libraries.name)
    text = (package / declared).read_text().replace('HEADERS = "', 'HEADERS = "0')
    (package / declared).write_text(text)
    done = python(f"import {module}", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "was built from other headers than" in done.stderr.splitlines()[-1]


def python(program, **environment):
    command = [sys.executable, "-c", program]
    environment = {**os.environ, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_engine_does_not_open_the_applications():
    maps = "print(any('libbasin_tasks' in line for line in open('/proc/self/maps')))"
    done = python(f"import basin; {maps}; import basin.tasks; {maps}")
    assert done.stdout.split() == ["False", "True"]


def test_libraries_are_named_by_a_folder_or_by_the_path_of_one(tmp_path):
    folder = os.path.dirname(library_path)
    for given in (folder, library_path):
        assert python("import basin.tasks", BASIN_LIBRARY=given).returncode == 0
    done = python("import basin", BASIN_LIBRARY=str(tmp_path))
    assert "ImportError: libbasin was not found" in done.stderr


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
    assert [path.parts[-3:] for path in _cuda.files("libcublasLt.so.12")] == [
        ("cublas", "lib", "libcublasLt.so.12")
    ]
    assert [path.parts[-3] for path in _cuda.files("libnvrtc.so.13")] == ["cu13"]
    assert not _cuda.files("libcublasLt.so.13")


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A CUDA module that asks for two libraries, as far as its bytes say so."""
    path = tmp_path / "libbasin_cuda.so"
    path.write_bytes(b"\0libnvrtc.so.13\0libcublasLt.so.13\0libcublasLt.so.13.x\0")
    monkeypatch.setattr(_cuda, "library_path", tmp_path / "libbasin.so")
    monkeypatch.setattr(_cuda, "prepare", _cuda.prepare.__wrapped__)  # each time anew
    return path


def test_what_the_module_asks_for_is_read_from_it(module):
    assert _cuda.needed(module) == ["libcublasLt.so.13", "libnvrtc.so.13"]


def test_what_is_loaded_comes_before_packages_and_these_before_the_system(
    module, packages, monkeypatch
):
    tried = []

    def opens(name, mode=0):
        tried.append((os.path.basename(name), mode == _cuda._NOLOAD))
        return name == "libcublasLt.so.13"

    monkeypatch.setattr(_cuda, "_opens", opens)
    _cuda.prepare()
    assert tried == [
        ("libcublasLt.so.13", True),  # loaded: nothing else is tried
        ("libnvrtc.so.13", True),
        ("libnvrtc.so.13", False),  # of the package
    ]


@pytest.mark.parametrize("opener", [basin.Backend, _eager.opened])
def test_a_module_without_its_libraries_says_where_they_are(module, packages, monkeypatch, opener):
    def refuse(*arguments):
        raise basin.BasinError("libcublasLt.so.13: cannot open shared object file")

    monkeypatch.setattr(_cuda, "check", refuse)
    with pytest.raises(basin.BasinError, match="pip install nvidia-cublas .*libcublasLt.so.12"):
        opener("cuda")


def test_the_module_opens_or_says_why():
    """Where there is a device, too; a line, and not a crash."""
    try:
        basin.Backend("cuda")
    except basin.BasinError as failure:
        assert str(failure).startswith("backend cuda: ")
        assert "\n" not in str(failure)


def test_a_backend_that_is_not_there_says_so():
    with pytest.raises(basin.BasinError, match="gpu"):
        basin.Backend("gpu")


def test_a_backend_is_pickled_by_name_and_shared_by_copies():
    backend = basin.Backend("cpu", threads=1)
    assert copy.deepcopy([backend])[0] is backend
    assert repr(pickle.loads(pickle.dumps(backend))) == "Backend('cpu', threads=1)"
    with pytest.raises(TypeError, match="backend None.*name"):
        basin.Backend(None)


def test_what_is_no_path_is_refused(tmp_path, monkeypatch):
    """str() would make a file called "b'model'" of bytes, and one called "None"."""
    monkeypatch.chdir(tmp_path)
    trainer = basin.Trainer(lambda w: w * w, {"w": 1.0})
    trainer.save(b"model")
    assert os.listdir() == ["model"]
    for wrong in (None, 3, ["model"]):
        with pytest.raises(TypeError):
            trainer.save(wrong)
    with pytest.raises(ValueError, match="null byte"):
        trainer.save("model\0.txt")
    assert os.listdir() == ["model"]


def test_errors_of_files_are_those_of_python(tmp_path):
    nowhere = tmp_path / "nowhere" / "model"
    with pytest.raises(FileNotFoundError, match="nowhere/model: "):
        basin.Trainer(lambda w: w * w, {"w": 1.0}).save(nowhere)
    for opener in (tasks.Network.open, tasks.GraphSet.read, tasks.AnomalyDetector.load):
        with pytest.raises(FileNotFoundError, match="nowhere/model: "):
            opener(nowhere)
    with pytest.raises(basin.BasinError, match="no files"):
        tasks.Network.open()


def test_dir_shows_what_is_for_users_and_nothing_else():
    names = dir(basin)
    assert len(names) <= 50
    assert len({name.lower() for name in names}) == len(names)
    assert {"energy", "function", "ham", "tasks", "torch", "zoo"} <= set(names)
    assert not {"TYPE_CHECKING", "importlib", "lib", "text"} & set(names)
    assert all(hasattr(basin, name) for name in set(names) - {"jax", "torch"})
    everything = {}
    exec("from basin import *", everything)
    assert {"energy", "ham", "tasks", "zoo"} <= set(everything)
