"""Classes of nodes in Python: numbers and texts, files, mistakes; the program's file."""

import pickle
import subprocess

import numpy
import pytest

import basin
from basin import tasks

SMALL = {
    "epochs": 30, "hops": 0, "smoothing": 2, "scaling": "standard", "dim": 16, "members": 1,
    "dropout": 0.1, "input_dropout": 0, "decay": 0.02, "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def kinds(network):
    x, edges, _ = network
    return numpy.digitize(x[:, 0], [-0.5, 0.5])


@pytest.fixture(scope="module")
def fitted(network, kinds):
    x, edges, _ = network
    return tasks.NodeClassifier(**SMALL).fit(x, kinds, edges=edges)


def test_it_learns(fitted, network, kinds):
    x, edges, _ = network
    assert fitted.score(x, kinds, edges=edges) > 0.6
    assert set(fitted.measure(x, kinds, edges=edges)) == {"accuracy", "macro_f1", "auroc", "loss"}
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.settings_["smoothing"] == 2
    probability = fitted.predict_proba(x, edges=edges)
    assert probability.sum(axis=1) == pytest.approx(numpy.ones(120))
    assert numpy.array_equal(fitted.predict(x, edges=edges), probability.argmax(axis=1))


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([None, 0, 1, 1, 0], [0, 1]),  # were the texts "0" and "1"
        (numpy.array([-1, 0, 1, 1, 0], dtype=object), [0, 1]),  # -1 was a class of its own
        (["007", "010", "007", "010", None], ["007", "010"]),  # were 7 and 10 in a loaded model
        (["--1", "\u00b2", "--1", "\u00b2", None], ["--1", "\u00b2"]),  # were no text to int()
        ([[0], [1], [1], [0], [1]], [0, 1]),
    ],
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_classes_are_what_was_given(network, labels, classes, tmp_path):
    x, edges, _ = network
    y = numpy.asarray(labels * 24 if isinstance(labels, list) else numpy.tile(labels, 24))
    model = tasks.NodeClassifier(**{**SMALL, "epochs": 1}).fit(x, y, edges=edges)
    model.save(tmp_path / "model")
    for some in (model, tasks.NodeClassifier.load(tmp_path / "model")):
        assert some.classes_.tolist() == classes


def test_classes_may_be_texts(fitted, network, kinds, tmp_path):
    x, edges, _ = network
    names = numpy.array(["ash", "birch", "cedar"])[kinds].astype(object)
    names[5] = None
    kinds = kinds.copy()
    kinds[5] = -1
    named = tasks.NodeClassifier(**SMALL).fit(x, names, edges=edges)
    numbered = tasks.NodeClassifier(**SMALL).fit(x, kinds, edges=edges)
    assert named.classes_.tolist() == ["ash", "birch", "cedar"]
    want = numbered.predict_proba(x, edges=edges)
    assert numpy.array_equal(named.predict_proba(x, edges=edges), want)
    assert named.score(x, names, edges=edges) == numbered.score(x, kinds, edges=edges)
    named.save(tmp_path / "m")
    loaded = tasks.NodeClassifier.load(tmp_path / "m")
    assert loaded.classes_.tolist() == ["ash", "birch", "cedar"]
    assert loaded.score(x, names, edges=edges) == named.score(x, names, edges=edges)
    again = pickle.loads(pickle.dumps(named))
    assert numpy.array_equal(again.predict(x, edges=edges), named.predict(x, edges=edges))


def test_reasons(fitted, network):
    x, edges, _ = network
    why = fitted.explain(x, 7, edges=edges)
    assert why.probability == pytest.approx(fitted.predict_proba(x, edges=edges)[7].max(), 1e-4)
    told = {(f["column"], f["hop"]) for f in why.features}
    assert told == {(column, hop) for column in range(4) for hop in range(3)}
    assert fitted.explain(x, 7, edges=edges, of=2).of == 2
    with pytest.raises(basin.BasinError, match="of 9.*one of"):
        fitted.explain(x, 7, edges=edges, of=9)


def test_mistakes_are_told(network):
    x, edges, _ = network
    model = tasks.NodeClassifier(**SMALL)
    with pytest.raises(basin.BasinError, match="requires y"):
        model.fit(x, edges=edges)
    with pytest.raises(basin.BasinError, match="continuous"):
        model.fit(x, x[:, 0], edges=edges)
    with pytest.raises(basin.BasinError, match="1 class; needs 2"):
        model.fit(x, numpy.zeros(120, int), edges=edges)
    with pytest.raises(TypeError, match="smoothing"):
        tasks.NodeClassifier(smothing=3)


def test_the_programs_file(program, network, kinds, nameless, whole, tmp_path):
    x, edges, _ = network
    data, theirs, ours = (tmp_path / name for name in ("n.npz", "theirs", "ours"))
    numpy.savez(data, x=x, y=kinds, edges=edges)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    line = [program, "node", "train", data, "-o", theirs, "--quiet", *options]
    subprocess.run(line, check=True, capture_output=True)
    tasks.NodeClassifier(**SMALL).fit(tasks.Network.open(data)).save(ours)
    assert whole(ours) == whole(theirs)
    tasks.NodeClassifier(**SMALL).fit(x, kinds, edges=edges).save(ours)
    assert nameless(ours) == nameless(theirs)


@pytest.mark.parametrize("validation", [-0.1, float("nan")])
def test_no_part_of_the_nodes_is_below_nothing(network, kinds, validation):
    """It meant none, as 0 does."""
    model = tasks.NodeClassifier(**SMALL, validation=validation)
    with pytest.raises(basin.BasinError, match="validation is .*.*part"):
        model.fit(network[0], kinds, edges=network[1])


def test_what_has_learnt_nothing_says_so(network):
    with pytest.raises(ValueError, match="this NodeClassifier has learnt nothing"):
        tasks.NodeClassifier().predict(network[0], edges=network[1])
    with pytest.raises(TypeError, match=r"^NodeClassifier.__init__\(\)"):
        tasks.NodeClassifier(3)
