"""The notebooks run, and print what they were committed with."""

import pathlib

import pytest

nbformat = pytest.importorskip("nbformat")
client = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[1] / "notebooks"
NAMES = [
    "associative_memory",
    "ham",
    "own_energy",
    "paper_block",
    "pytorch",
    "sudoku",
    "wells",
    "zoo",
]


def read(name):
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def printed(notebook):
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    # Not the line on stderr that float64 is computed in float32, which names a temporary file.
    return [output["text"] for output in outputs if output.get("name") == "stdout"]


def pictures(notebook):
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return sum("image/png" in output.get("data", {}) for output in outputs)


def test_all_notebooks_are_known_and_small():
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    assert [path.stem for path in paths] == NAMES
    assert all(path.stat().st_size < 40_000 for path in paths)


@pytest.mark.parametrize(("name", "lines"), [("wells", 8), ("paper_block", 15)])
def test_an_energy_takes_few_lines(name, lines):
    first = next(cell for cell in read(name).cells if cell.cell_type == "code")
    assert len([line for line in first.source.splitlines() if line.strip()]) <= lines


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook(name, tmp_path, monkeypatch):
    if name == "pytorch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    known = read(name)
    again = read(name)
    resources = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(again, timeout=120, resources=resources).execute()
    assert printed(again) == printed(known)
    assert pictures(again) == pictures(known) == 1
