"""Types and docstrings: pyright finds nothing in the package and mistakes in its use; every public
name has an example."""

import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import basin

WITHOUT = {"energies", "functions", "settings", "training", "Threshold", "Drift"}
MODULES = (basin, basin.tasks, basin.training)
NAMES = [(module, name) for module in MODULES for name in module.__all__ if name not in WITHOUT]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_has_a_docstring_with_an_example(module, name):
    assert ">>>" in inspect.getdoc(getattr(module, name))


@pytest.mark.parametrize("kind", [basin.energies.Energy, basin.functions.Function, basin.Trainer])
def test_public_methods_have_docstrings(kind):
    for name, member in vars(kind).items():
        assert name.startswith("_") or inspect.getdoc(member)


# What is optional may be absent, and NumPy's own types know nothing of expressions.
OFF = [
    "reportMissingImports", "reportArgumentType", "reportAttributeAccessIssue",
    "reportCallIssue", "reportGeneralTypeIssues", "reportIncompatibleVariableOverride",
    "reportIndexIssue", "reportOperatorIssue", "reportOptionalMemberAccess",
    "reportOptionalOperand", "reportOptionalSubscript", "reportReturnType",
]  # fmt: skip


def pyright(*arguments, cwd):
    program = shutil.which("pyright", path=str(pathlib.Path(sys.executable).parent))
    program = program or shutil.which("pyright")
    if program is None:
        pytest.skip("pyright is not installed")
    try:
        subprocess.run([program, "--version"], check=True, capture_output=True, timeout=120)
    except (subprocess.SubprocessError, OSError):
        pytest.skip("pyright does not run here: it needs Node")
    command = [program, "--pythonpath", sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_package_says_that_it_is_typed():
    assert (pathlib.Path(basin.__file__).parent / "py.typed").exists()


def test_pyright_finds_nothing_in_the_package(tmp_path):
    for module in ("sklearn", "matplotlib", "pandas"):
        pytest.importorskip(module)
    package = os.path.relpath(pathlib.Path(basin.__file__).parent, tmp_path)
    frameworks = [f"{package}/torch", f"{package}/jax"]  # which use what has no types
    options = {"include": [package], "ignore": frameworks, **dict.fromkeys(OFF, "none")}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(options))
    done = pyright("-p", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "No source files" not in done.stdout + done.stderr


def test_pyright_finds_wrong_keywords(tmp_path):
    (tmp_path / "use.py").write_text(
        "import numpy, basin; from basin import tasks\n"
        "tasks.AnomalyDetector(epochs=3, scaling='standard', validation=0.1)\n"
        "@basin.energy\n"
        "def wells(g): return numpy.sum(g)\n"
        "wells.descend([1.0], steps=3).x.round(2)\n"
        "tasks.AnomalyDetector(epoch=3)\n"
        "tasks.ImageCompleter(dim='many')\n"
        "tasks.GraphClassifier(arch='gut')\n"
        "basin.Trainer.load('x')\n"
        "tasks.NodeClassifier(epochs='many')\n"
    )
    found = pyright(tmp_path / "use.py", cwd=tmp_path).stdout
    lines = {int(line.split(":")[1]) for line in found.splitlines() if " - error" in line}
    assert lines == {6, 7, 8, 9, 10}, found
