"""A model trained in Python and one trained by the program are the same file, byte for byte."""

import json
import subprocess

import numpy
import pytest

import basin


def run(program, *arguments):
    subprocess.run([program, *map(str, arguments), "--quiet"], check=True, capture_output=True)


def weights_of(path):
    """A model file's settings and tensors by name, less its memory of where pictures came from."""
    file = path.read_bytes()
    end = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:end])
    settings = header.pop("__metadata__")["basin.config"]
    del header["trained_on"]
    spans = {name: entry["data_offsets"] for name, entry in header.items()}
    return settings, {name: file[end + a : end + b] for name, (a, b) in spans.items()}


def test_a_detector(program, network, tmp_path):
    x, edges, y = network
    data, theirs, ours = (tmp_path / name for name in ("n.npz", "theirs", "ours"))
    numpy.savez(data, x=x, y=y, edges=edges)
    options = ("--epochs", 5, "--members", 1, "--dim", 16, "--scaling", "standard")
    run(program, "anomaly", "train", data, "-o", theirs, *options)
    settings = {"epochs": 5, "members": 1, "dim": 16, "scaling": "standard"}
    basin.AnomalyDetector(**settings).fit(basin.Network.open(data)).save(ours)
    assert ours.read_bytes() == theirs.read_bytes()
    basin.AnomalyDetector(**settings).fit(x, y, edges=edges).save(ours)
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_completer(program, stripes, tmp_path):
    image = pytest.importorskip("PIL.Image")
    folder, theirs, ours = (tmp_path / name for name in ("pictures", "theirs", "ours"))
    folder.mkdir()
    for i, pixels in enumerate(stripes):
        image.fromarray(pixels).save(folder / f"{i:02}.png")
    options = ("--epochs", 2, "--dim", 16, "--memories", 32, "--batch", 8)
    run(program, "image", "train", folder, "-o", theirs, *options)
    settings = {"epochs": 2, "dim": 16, "memories": 32, "batch": 8}
    basin.ImageCompleter(**settings).fit(folder).save(ours)
    assert ours.read_bytes() == theirs.read_bytes()
    basin.ImageCompleter(**settings).fit(stripes).save(ours)
    assert weights_of(ours) == weights_of(theirs)
