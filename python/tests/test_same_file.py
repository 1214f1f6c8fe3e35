"""A model trained in Python and one of the program are the same file but for the command."""

import json
import subprocess

import numpy
import pytest

from basin import tasks


def run(program, *arguments):
    command = [program, *map(str, arguments), "--quiet", "--threads", "1"]
    subprocess.run(command, check=True, capture_output=True)


def weights_of(path):
    """A model file's settings and tensors by name, less its memory of where pictures came from."""
    file = path.read_bytes()
    end = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:end])
    settings = header.pop("__metadata__")["basin.config"]
    del header["trained_on"]
    spans = {name: entry["data_offsets"] for name, entry in header.items()}
    return settings, {name: file[end + a : end + b] for name, (a, b) in spans.items()}


def test_a_detector(program, network, nameless, whole, tmp_path):
    x, edges, y = network
    data, theirs, ours = (tmp_path / name for name in ("n.npz", "theirs", "ours"))
    numpy.savez(data, x=x, y=y, edges=edges)
    options = ("--epochs", 5, "--members", 1, "--dim", 16, "--scaling", "standard", "--trees", 2)
    run(program, "anomaly", "train", data, "-o", theirs, *options)
    settings = {"epochs": 5, "members": 1, "dim": 16, "scaling": "standard", "trees": 2}
    settings["threads"] = 1
    tasks.AnomalyDetector(**settings).fit(tasks.Network.open(data)).save(ours)
    assert whole(ours) == whole(theirs)
    tasks.AnomalyDetector(**settings).fit(x, y, edges=edges).save(ours)
    assert nameless(ours) == nameless(theirs)


def test_a_completer(program, stripes, whole, tmp_path):
    image = pytest.importorskip("PIL.Image")
    folder, theirs, ours = (tmp_path / name for name in ("pictures", "theirs", "ours"))
    folder.mkdir()
    for i, pixels in enumerate(stripes):
        image.fromarray(pixels).save(folder / f"{i:02}.png")
    options = ("--epochs", 2, "--dim", 16, "--memories", 32, "--batch", 8)
    run(program, "image", "train", folder, "-o", theirs, *options)
    settings = {"epochs": 2, "dim": 16, "memories": 32, "batch": 8, "threads": 1}
    tasks.ImageCompleter(**settings).fit(folder).save(ours)
    assert whole(ours) == whole(theirs)
    tasks.ImageCompleter(**settings).fit(stripes).save(ours)
    assert weights_of(ours) == weights_of(theirs)


RINGS = [[[i, (i + 1) % n] for i in range(n)] for n in range(5, 17)]
STARS = [[[0, i] for i in range(1, n)] for n in range(5, 17)]


def dataset(folder, lines):
    """Rings and stars as a TUDataset, with `lines` a graph in a file of that name."""
    folder.mkdir()
    edges, owner, first = [], [], 1
    for number, graph in enumerate(RINGS + STARS, 1):
        nodes = max(max(edge) for edge in graph) + 1
        for a, b in graph:
            edges += [f"{first + a}, {first + b}", f"{first + b}, {first + a}"]
        owner += [str(number)] * nodes
        first += nodes
    name, values = lines
    for end, text in (("A", edges), ("graph_indicator", owner), (name, values)):
        (folder / f"{folder.name}_{end}.txt").write_text("\n".join(text) + "\n")


def graphs_of(estimator, folder, y, program, whole, tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    settings = {"epochs": 4, "dim": 16, "memories": 16, "blocks": 1}
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    run(program, "graph", "train", folder, "-o", theirs, *options)
    settings["threads"] = 1
    estimator(**settings).fit(tasks.GraphSet.read(folder)).save(ours)
    assert whole(ours) == whole(theirs)
    estimator(**settings).fit(RINGS + STARS, y).save(ours)
    assert whole(ours) == whole(theirs)


def test_a_classifier_of_graphs(program, whole, tmp_path):
    folder, classes = tmp_path / "SHAPES", [1] * 12 + [2] * 12
    dataset(folder, ("graph_labels", [str(label) for label in classes]))
    graphs_of(tasks.GraphClassifier, folder, classes, program, whole, tmp_path)


def test_a_regressor_of_graphs(program, whole, tmp_path):
    folder, values = tmp_path / "SIZES", [len(graph) / 8 for graph in RINGS + STARS]
    dataset(folder, ("graph_attributes", [str(value) for value in values]))
    graphs_of(tasks.GraphRegressor, folder, values, program, whole, tmp_path)


def test_a_detector_of_tables(program, network, whole, tmp_path):
    pandas = pytest.importorskip("pandas")
    x, edges, y = network
    nodes, links, theirs, ours = (tmp_path / n for n in ("n.csv", "e.csv", "theirs", "ours"))
    table = pandas.DataFrame({"id": range(120), "a": x[:, 0], "b": x[:, 1], "label": y})
    table["kind"] = ["x", "y", "z"] * 40
    table.to_csv(nodes, index=False)
    pandas.DataFrame(edges, columns=["src", "dst"]).to_csv(links, index=False)
    options = ("--epochs", 5, "--members", 1, "--dim", 16, "--trees", 0)
    run(program, "anomaly", "train", nodes, links, "-o", theirs, *options)
    settings = {"epochs": 5, "members": 1, "dim": 16, "trees": 0, "threads": 1}
    tasks.AnomalyDetector(**settings).fit(tasks.Network.open(nodes, links)).save(ours)
    assert whole(ours) == whole(theirs)
    model = tasks.AnomalyDetector(**settings)
    model.fit(table[["a", "b", "kind"]], y, edges=edges)
    expected = tasks.AnomalyDetector.load(theirs).predict_proba(table, edges=edges)
    assert numpy.array_equal(model.predict_proba(table, edges=edges), expected)
