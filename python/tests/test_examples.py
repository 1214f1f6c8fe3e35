"""The examples run, and say what they should."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
WANTED = {
    "wells": "[-1. -1.  1.  1.]\n",
    "memory": "bits right before: 44\nbits right after:  64\n",
    "detector": "better than chance: True\ncolumns that count: [0, 1]\n",
}


def test_all_examples_are_known():
    known = {*WANTED, "ham", "jax_block"}  # which test_ham.py and test_jax.py run
    assert {path.stem for path in EXAMPLES.glob("*.py")} == known


@pytest.mark.parametrize("name", WANTED)
def test_an_example(name):
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (WANTED[name], 0), done.stderr


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("attention/*.py")), ids=lambda path: path.stem
)
def test_a_use_of_attention(path):
    """They assert what they should reach."""
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
