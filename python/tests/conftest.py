"""Small data that the tests of estimators share."""

import json
import os
import pathlib

import numpy
import pytest


@pytest.fixture(scope="session")
def network():
    """Features, edges and labels of 120 nodes; anomalies have a high first feature."""
    rng = numpy.random.default_rng(0)
    x = rng.normal(size=(120, 4)).astype("f4")
    edges = rng.integers(120, size=(300, 2))
    edges = numpy.unique(numpy.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    return x, edges, (x[:, 0] > 0.9).astype(int)


@pytest.fixture(scope="session")
def stripes():
    """24 pictures [16, 16] of stripes of random phase, bytes."""
    rng = numpy.random.default_rng(1)
    phase = rng.integers(4, size=(24, 1, 1))
    rows = (numpy.arange(16)[None, :, None] + phase) // 2 % 2
    return (numpy.broadcast_to(rows, (24, 16, 16)) * 255).astype("u1")


@pytest.fixture(scope="session")
def program():
    """The program `basin` of the same build."""
    beside = pathlib.Path(__file__).resolve().parents[2] / "build" / "basin"
    path = pathlib.Path(os.environ.get("BASIN_PROGRAM", beside))
    if not path.exists():
        pytest.skip(f"no program at {path}")
    return str(path)


def parts(path, *left_out):
    """What a model file holds, less some of its metadata and the digests of what is left."""
    file = path.read_bytes()
    end = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:end])
    for entry in header.values():
        entry.pop("data_offsets", None)
    for name in (*left_out, "trained.command", "basin.digests"):
        header["__metadata__"].pop(name, None)
    return header, file[end:]


@pytest.fixture
def nameless():
    """What a model file holds but for names and files of the data, which arrays do not have."""
    return lambda path: parts(path, "trained.data", "trained.files")


@pytest.fixture
def whole():
    """What a model file holds but for the command that the program records."""
    return parts
