"""Detectors in Python: kinds of data, scikit-learn's conventions, interrupts, mistakes."""

import os
import pickle
import signal

import numpy
import pytest

import basin
from basin import tasks

SMALL = {
    "epochs": 40, "members": 1, "scaling": "standard", "hops": 0, "dim": 16, "rate": 0.01,
    "warmup": 2, "trees": 0, "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted(network):
    x, edges, y = network
    return tasks.AnomalyDetector(**SMALL).fit(x, y, edges=edges)


def test_it_learns(fitted, network):
    x, edges, y = network
    assert fitted.score(x, y, edges=edges) > 0.8
    assert set(fitted.measure(x, y, edges=edges)) == {
        "macro_f1", "auroc", "auprc", "recall_at_k", "ece",
    }  # fmt: skip
    assert fitted.outcome_["epochs"] == 40
    assert fitted.settings_["dim"] == 16


def test_probabilities_decisions_and_classes_agree(fitted, network):
    x, edges, _ = network
    probability = fitted.predict_proba(x, edges=edges)
    assert probability.sum(axis=1) == pytest.approx(numpy.ones(120))
    above = probability[:, 1] > fitted.threshold_
    assert numpy.array_equal(fitted.predict(x, edges=edges), above)
    assert numpy.array_equal(fitted.decision_function(x, edges=edges) > 0, above)


def test_files_and_pickles_keep_the_model(fitted, network, tmp_path):
    x, edges, _ = network
    expected = fitted.predict_proba(x, edges=edges)
    fitted.save(tmp_path / "detector.safetensors")
    loaded = tasks.AnomalyDetector.load(tmp_path / "detector.safetensors")
    for other in (loaded, pickle.loads(pickle.dumps(fitted))):
        assert numpy.array_equal(other.predict_proba(x, edges=edges), expected)


@pytest.mark.parametrize("share", [0.001, 0.3, 0.6, 0.9])
def test_a_damaged_pickle_is_an_error(fitted, share):
    state = fitted.__getstate__()
    file = bytearray(state["_file"])
    file[int(share * len(file))] ^= 4
    with pytest.raises(basin.BasinError, match="model.safetensors"):
        type(fitted).__new__(type(fitted)).__setstate__({**state, "_file": bytes(file)})


def test_edges_may_come_in_many_forms(fitted, network):
    sparse, networkx = pytest.importorskip("scipy.sparse"), pytest.importorskip("networkx")
    x, edges, _ = network
    expected = fitted.predict_proba(x, edges=edges)
    matrix = sparse.coo_matrix((numpy.ones(len(edges)), edges.T), (120, 120))
    graph = networkx.Graph()
    graph.add_nodes_from(range(120))
    graph.add_edges_from(edges.tolist())
    for form in (matrix, matrix.tocsr() + matrix.T.tocsr(), graph, edges[:, ::-1].astype("i4")):
        assert numpy.array_equal(fitted.predict_proba(x, edges=form), expected)
    features = sparse.csr_matrix(x)
    assert numpy.array_equal(fitted.predict_proba(features, edges=edges), expected)


def test_weights_of_edges_are_said_to_be_unused(fitted, network):
    sparse = pytest.importorskip("scipy.sparse")
    x, edges, _ = network
    matrix = sparse.coo_matrix((numpy.full(len(edges), 2.0), edges.T), (120, 120))
    with pytest.warns(UserWarning, match="weights of edges are not used"):
        fitted.predict(x, edges=matrix)


def test_tables_go_by_the_names_of_their_columns(network):
    pandas = pytest.importorskip("pandas")
    x, edges, y = network
    table = pandas.DataFrame(x, columns=["age", "amount", "hour", "visits"])
    model = tasks.AnomalyDetector(**SMALL).fit(table, y, edges=edges)
    assert list(model.feature_names_in_) == list(table.columns)
    expected = model.predict_proba(table, edges=edges)
    shuffled = table[["visits", "age", "hour", "amount"]]
    assert numpy.array_equal(model.predict_proba(shuffled, edges=edges), expected)
    with pytest.raises(basin.BasinError, match="amount"):
        model.predict(table.drop(columns="amount"), edges=edges)
    with pytest.warns(UserWarning, match="columns not used.*city"):
        more = model.predict_proba(table.assign(city="Oslo"), edges=edges)
    assert numpy.array_equal(more, expected)


def test_masks_and_relations(network):
    x, edges, y = network
    train = numpy.arange(120) < 80
    given = tasks.Network(
        x, {"a": edges[:150], "b": edges[150:]}, y, train=train, validation=~train
    )
    model = tasks.AnomalyDetector(**SMALL).fit(given)
    assert model.predict(given).shape == (120,)


def test_an_explanation_names_neighbours_and_features(fitted, network):
    x, edges, _ = network
    told = fitted.explain(x, 5, edges=edges)
    near = {int(b if a == 5 else a) for a, b in edges if 5 in (a, b)}
    assert {neighbour["node"] for neighbour in told.neighbours} <= near | {5}
    assert told.probability == fitted.predict_proba(x, edges=edges)[5, 1]


def test_an_explanation_reads_well(fitted, network):
    x, edges, _ = network
    lines = str(fitted.explain(x, node=3, edges=edges)).splitlines()
    assert lines[0].startswith("node 3: probability ")
    assert any(", typical " in line for line in lines) and any("  node " in line for line in lines)


def test_a_truth_value_of_numpy_stops_the_run(network):
    x, edges, y = network

    def progress(news):
        return numpy.bool_(news["what"] == "training" and news["done"] == 2)

    stop = tasks.AnomalyDetector(**SMALL, progress=progress)
    with pytest.warns(UserWarning, match="stopped after 2 of"):
        stop.fit(x, y, edges=edges)


def test_progress_is_told_and_may_stop_the_run(network):
    x, edges, y = network
    seen = []

    def progress(news):
        seen.append(news)
        return news["what"] == "training" and news["done"] >= 3

    model = tasks.AnomalyDetector(**{**SMALL, "epochs": 500}, progress=progress)
    with pytest.warns(UserWarning, match="stopped after"):
        model.fit(x, y, edges=edges)
    assert seen[0]["what"] == seen[-1]["what"] == "training"
    assert model.outcome_["stopped"] and model.predict(x, edges=edges).shape == (120,)


def test_an_interrupt_keeps_what_was_learnt(network):
    x, edges, y = network
    before = signal.getsignal(signal.SIGINT)  # ignored, where the tests run in the background

    def interrupt(news):
        if news["done"] == 4:
            os.kill(os.getpid(), signal.SIGINT)

    model = tasks.AnomalyDetector(**{**SMALL, "epochs": 500}, progress=interrupt)
    with pytest.warns(UserWarning, match="stopped after"):
        model.fit(x, y, edges=edges)
    assert model.outcome_["steps"] < 50
    assert model.predict(x, edges=edges).shape == (120,)
    assert signal.getsignal(signal.SIGINT) is before


def test_what_a_callback_raises_is_raised(network):
    x, edges, y = network

    def fail(_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tasks.AnomalyDetector(**SMALL, progress=fail).fit(x, y, edges=edges)


def test_it_is_an_estimator_of_scikit_learn(network):
    base = pytest.importorskip("sklearn.base")
    model = base.clone(tasks.AnomalyDetector(**SMALL))
    assert model.get_params()["dim"] == 16 and base.is_classifier(model)
    with pytest.raises(ValueError, match="learnt nothing"):
        model.predict(network[0], edges=network[1])


def test_edges_that_are_left_out(network, tmp_path):
    x, edges, y = network
    with pytest.warns(UserWarning, match="no edges: each node is taken by itself"):
        alone = tasks.AnomalyDetector(**SMALL).fit(x, y)
    said = tasks.AnomalyDetector(**SMALL).fit(x, y, edges=[])
    expected = said.predict_proba(x, edges=[])
    assert numpy.array_equal(alone.predict_proba(x), expected)
    assert numpy.array_equal(pickle.loads(pickle.dumps(said)).predict_proba(x), expected)
    said.save(tmp_path / "model")
    others = tasks.AnomalyDetector.load(tmp_path / "model"), alone.fit(x, y, edges=edges)
    for model in others:
        with pytest.raises(basin.BasinError, match="no edges: give edges="):
            model.predict(x)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"edges": [[0, 1, 2]]}, r"edges of shape \[1, 3\]"),
        ({"edges": [[0.5, 1.5]]}, "whole numbers"),
        ({"edges": [[0, 500]]}, "500"),
        ({"y": ["a"] * 120}, r"1 class, \['a'\]"),
        ({"y": [0, 1, 2] * 40}, "Only binary"),
        ({"y": [0.5, 1] * 60}, "continuous"),
        ({"y": [numpy.inf, 1] * 60}, "y of 0 is inf"),
        ({"y": [numpy.nan, 1] * 60}, r"1 class, \[1.0\]"),
        ({"y": [-1] * 120}, "all unknown"),
        ({"y": None}, "requires y"),
        ({"y": [0, 1]}, r"y of shape \[2\]"),
        ({"y": [0] * 120}, "anomal"),
        ({"X": [1, 2]}, r"\[nodes, features\]"),
        ({"X": numpy.full((120, 2), "a")}, "numbers"),
        ({"X": numpy.full((120, 2), 1e300)}, "too large for float32"),
        ({"X": numpy.full((120, 2), numpy.inf)}, "inf"),
        ({"X": numpy.full((120, 2), numpy.nan)}, "nan|NaN"),
    ],
)
def test_mistakes_are_told(network, change, told):
    x, edges, y = network
    given = {"X": x, "y": y, "edges": edges, **change}
    with pytest.raises(basin.BasinError, match=told):
        tasks.AnomalyDetector(**SMALL).fit(given["X"], given["y"], edges=given["edges"])


def test_explanations_in_notebooks(network):
    x, edges, y = network
    graph = tasks.Network(x, {"a<b": edges}, y)
    why = tasks.AnomalyDetector(**SMALL).fit(graph).explain(graph, 7)
    assert "node 7" in why._repr_html_() and len(repr(why)) < 120
    assert str(why).startswith("node 7: probability")
