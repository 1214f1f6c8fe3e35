"""The blocks of docs/coming-from.md that are Basin's run, in order, on made data."""

import pathlib
import re

import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/coming-from.md").read_text()
SECTIONS = {
    title: re.findall(r"^```python basin\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}
NEEDS = {"PyTorch": ["torch"], "JAX": ["torch", "jax"]}  # JAX's block has PyTorch's energy


def made():
    rng = numpy.random.default_rng(0)
    y = numpy.arange(120) % 8 == 0
    mask = numpy.zeros((80, 90), numpy.uint8)
    mask[30:40, 30:50] = 255
    return {
        "y": y.astype(int),
        "x": rng.normal(size=(120, 5)) + y[:, None],
        "train": numpy.arange(120) < 80,
        "transfers": rng.integers(0, 120, (300, 2)),
        "smiles": ["C" * n + "O" for n in range(1, 25)],
        "values": [float(n) for n in range(1, 25)],
        "picture": rng.integers(0, 255, (80, 90, 3)).astype(numpy.uint8),
        "mask": mask,
    }


def test_the_page_has_a_block_in_each_section():
    assert len(SECTIONS) == 6
    assert all(SECTIONS.values()), SECTIONS.keys()


@pytest.mark.filterwarnings("ignore::UserWarning")  # small sets, float64: said once
def test_the_blocks_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    names = made()
    for title, blocks in SECTIONS.items():
        if all(is_installed(module) for module in NEEDS.get(title, [])):
            for block in blocks:
                exec(compile(block, f"docs/coming-from.md, {title}", "exec"), names)
    assert names["end"].energy.shape == (41, 4)
    assert names["score"].shape == (120,)
    assert names["filled"].shape == (80, 90, 3)


def is_installed(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True
