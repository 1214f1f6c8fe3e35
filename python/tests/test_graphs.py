"""Graph estimators: kinds of data, classes, values, mistakes."""

import pickle

import numpy
import pytest

import basin
from basin import tasks

SMALL = {"epochs": 12, "dim": 16, "memories": 16, "blocks": 1, "threads": 1, "rate": 0.01}
RINGS = [[[i, (i + 1) % n] for i in range(n)] for n in range(5, 15)]
STARS = [[[0, i] for i in range(1, n)] for n in range(5, 15)]
CLASSES = numpy.repeat([3, 7], 10)


@pytest.fixture(scope="module")
def fitted():
    return tasks.GraphClassifier(**SMALL).fit(RINGS + STARS, CLASSES)


def test_it_learns(fitted):
    assert list(fitted.classes_) == [3, 7]
    assert fitted.score(RINGS + STARS, CLASSES) > 0.9
    probability = fitted.predict_proba(RINGS)
    assert probability.shape == (10, 2)
    assert numpy.array_equal(fitted.decision_function(RINGS) > 0, fitted.predict(RINGS) == 7)


def test_files_and_pickles_keep_the_model(fitted, tmp_path):
    fitted.save(tmp_path / "graphs.safetensors")
    loaded = tasks.GraphClassifier.load(tmp_path / "graphs.safetensors")
    for other in (loaded, pickle.loads(pickle.dumps(fitted))):
        assert numpy.array_equal(other.predict_proba(STARS), fitted.predict_proba(STARS))
        assert list(other.classes_) == [3, 7]
    with pytest.raises(basin.BasinError, match="a model of classes"):
        tasks.GraphRegressor.load(tmp_path / "graphs.safetensors")


def test_graphs_may_come_in_many_forms(fitted):
    sparse, networkx = pytest.importorskip("scipy.sparse"), pytest.importorskip("networkx")
    ring = networkx.cycle_graph(6)
    expected = fitted.predict_proba([RINGS[1]])
    matrix = sparse.coo_matrix((numpy.ones(6), numpy.array(RINGS[1]).T), (6, 6))
    for form in (ring, matrix, tasks.Graph(RINGS[1]), numpy.array(RINGS[1])):
        assert fitted.predict_proba([form]) == pytest.approx(expected, abs=1e-6)


def test_a_graph_of_pytorch_geometric(fitted):
    class Data:
        edge_index, num_nodes, x = numpy.array(RINGS[1]).T, 6, None

    assert numpy.array_equal(fitted.predict_proba([Data()]), fitted.predict_proba([RINGS[1]]))


def test_data_of_networkx_must_be_named(fitted):
    networkx = pytest.importorskip("networkx")
    ring = networkx.cycle_graph(6)
    networkx.set_node_attributes(ring, 6, "atom")
    with pytest.raises(basin.BasinError, match="graph 0 has node data \\['atom'\\]"):
        fitted.predict([ring])
    graph = tasks.Graph.from_networkx(ring, node_labels=["atom"])
    assert graph.node_labels.tolist() == [[6]] * 6


def test_labels_of_nodes_tell_classes():
    ring = [[i, (i + 1) % 6] for i in range(6)]
    graphs = [
        tasks.Graph(ring, node_labels=[6 + i % 2 * (j % 2) for i in range(6)]) for j in range(20)
    ]
    classes = ["pure", "mixed"] * 10
    model = tasks.GraphClassifier(**SMALL, validation=0).fit(graphs, classes)
    assert model.score(graphs, classes) == 1
    assert model.predict(graphs[:2]).tolist() == ["pure", "mixed"]


def test_values_of_graphs():
    sizes = numpy.array([len(ring) for ring in RINGS + STARS], dtype=float)
    model = tasks.GraphRegressor(**{**SMALL, "epochs": 60}, validation=0).fit(RINGS + STARS, sizes)
    assert model.predict(RINGS).shape == (10,)
    assert model.score(RINGS + STARS, sizes) > 0.8
    two = tasks.GraphRegressor(**SMALL).fit(RINGS + STARS, numpy.stack([sizes, -sizes], 1))
    assert two.predict(RINGS).shape == (10, 2)


def test_scikit_learn_searches_over_settings():
    selection = pytest.importorskip("sklearn.model_selection")
    graphs = numpy.empty(20, dtype=object)
    graphs[:] = RINGS + STARS
    search = selection.GridSearchCV(
        tasks.GraphClassifier(**{**SMALL, "epochs": 2}), {"dim": [8, 16]}, cv=2
    )
    search.fit(graphs, CLASSES)
    assert search.best_params_["dim"] in (8, 16)


@pytest.mark.parametrize(
    ("graphs", "y", "told"),
    [
        ([], [], "no graphs"),
        (RINGS, [1, 2], r"y of shape \[2\]"),
        (RINGS, [1] * 10, "class"),
        ([tasks.Graph([[0, 1]], node_labels=[1, 2]), [[0, 1]]], [0, 1], "graph 1 has none"),
    ],
)
def test_mistakes_are_told(graphs, y, told):
    with pytest.raises(basin.BasinError, match=told):
        tasks.GraphClassifier(**SMALL).fit(graphs, y)


@pytest.mark.parametrize("one", ["CCO", tasks.Graph([[0, 1]])])
def test_one_graph_is_no_list_of_graphs(fitted, one):
    with pytest.raises(basin.BasinError, match="one graph"):
        fitted.predict(one)


@pytest.mark.parametrize(
    "wrong", [{"nodes": 1}, {"node_labels": [0.5, 1.5]}, {"edge_labels": [1, 2]}]
)
def test_wrong_graphs_are_refused(wrong):
    with pytest.raises(basin.BasinError):
        tasks.Graph([[0, 1]], **wrong)


def test_a_graph_of_no_nodes_alone(fitted):
    """It crashed: walks along edges wrote into memory of no size."""
    assert fitted.predict_proba([[]]).shape == (1, 2)
    assert fitted.predict_proba([[], RINGS[0]])[0] == pytest.approx(fitted.predict_proba([[]])[0])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"node_labels": [2**32 + 1, 1, 1]}, "node_labels: 4294967297 is too large for int32"),
        ({"node_attributes": [1e39, 1, 1]}, r"node_attributes: 1e\+39 is too large for float32"),
        ({"nodes": 3.5}, "a graph of 3.5 nodes.*whole number"),
    ],
)
def test_what_a_graph_cannot_hold_is_refused(given, told):
    with pytest.raises(basin.BasinError, match=told):
        tasks.Graph([[0, 1], [1, 2]], **given)


def test_data_of_networkx_that_are_missing_are_named():
    networkx = pytest.importorskip("networkx")
    ring = networkx.cycle_graph(4)
    ring.nodes[0]["atom"] = 6
    with pytest.raises(basin.BasinError, match="node 1 has no 'atom'"):
        tasks.Graph.from_networkx(ring, node_labels=["atom"])
    with pytest.raises(basin.BasinError, match="edge .0, 1. has no 'bond'"):
        tasks.Graph.from_networkx(ring, edge_labels=["bond"])
    with pytest.raises(basin.BasinError, match="data 'atom' of nodes.*list of names"):
        tasks.Graph.from_networkx(ring, node_labels="atom")
    with pytest.raises(basin.BasinError, match="one graph, .*.*list of them"):
        tasks.GraphSet(ring)


def test_scores_want_a_target_for_each_graph(fitted):
    graphs = RINGS + STARS
    turned = numpy.random.default_rng(0).permutation(20)
    with pytest.warns(UserWarning, match="column-vector"):  # it was compared with every graph
        column = fitted.score([graphs[i] for i in turned], CLASSES[turned, None])
    assert column == fitted.score(graphs, CLASSES)
    for y, told in ((None, r"y of shape \[\]"), ([3, None] * 10, "y of 1 is None.*class")):
        with pytest.raises(basin.BasinError, match=told):
            fitted.score(graphs, y)
    values = tasks.GraphRegressor(**{**SMALL, "epochs": 1}).fit(graphs, numpy.eye(20)[:, :2])
    with pytest.raises(basin.BasinError, match="y of 1 values per graph.*2"):
        values.score(graphs, numpy.arange(20))


@pytest.mark.parametrize("validation", [-0.5, 2.0, float("nan")])
def test_no_such_part_of_the_graphs(validation):
    with pytest.raises(basin.BasinError, match="validation is .*.*part"):
        tasks.GraphClassifier(**SMALL, validation=validation).fit(RINGS + STARS, CLASSES)


def test_stereo_distinguishes_mirror_images():
    left, right = "N[C@@H](C)C(=O)O", "N[C@H](C)C(=O)O"
    smiles = [left, right, "CCO", "CC=O"] * 6
    model = tasks.GraphRegressor(stereo=True, epochs=1, members=1, dim=8, threads=1)
    model.fit(smiles, [float(i % 4) for i in range(24)])
    one, other, again = model.predict([left, right, "OC(=O)[C@@H](N)C"])
    assert one != other and abs(one - again) < 1e-4
    labels = tasks.Graph.from_smiles(left).node_labels[:, 3]
    assert not labels.any()  # without it as before


def test_intervals_sets_and_nearest_molecules():
    paths = [[[i, i + 1] for i in range(n)] for n in range(3, 43)]
    sized = [len(path) / 10 for path in paths]
    model = tasks.GraphRegressor(epochs=5, dim=16, memories=16, threads=1, validation=0.5)
    low, high = model.fit(paths, sized).predict_interval(paths, 0.8)
    assert low.shape == high.shape == (40,) and (low < high).all()
    assert numpy.allclose((low + high) / 2, model.predict(paths), atol=1e-5)
    assert (model.predict_interval(paths, 0.5)[1] < high).all()
    assert numpy.isinf(model.predict_interval(paths, 0.99)[0]).all()
    with pytest.raises(basin.BasinError, match="coverage 90"):
        model.predict_interval(paths, 90)
    smiles = ["C" * n + end for n in range(1, 11) for end in ("O", "Cl")]
    model = tasks.GraphClassifier(
        epochs=3, dim=16, memories=16, threads=1, members=2, validation=0.3
    ).fit(smiles, ["O", "Cl"] * 10)
    sets = model.predict_set(smiles, 0.5)
    assert sets.shape == (20, 2) and sets.dtype == bool
    assert sets[range(20), model.predict_proba(smiles).argmax(1)].all()
    similar, name = model.nearest([smiles[4], "c1ccccc1"])
    assert similar[0] == 1 and similar[1] < 0.5 and name[0] == "line 4"


def test_molecules_are_explained_by_substitution():
    smiles = ["C" * (3 + i // 2) + "O" * (i % 2) for i in range(60)]
    model = tasks.GraphClassifier(
        epochs=1, dim=16, memories=16, threads=1, validation=0.5, members=2
    ).fit(smiles, [i % 2 for i in range(60)])
    why = model.explain(smiles, 5)
    alcohol, alkane = model.predict_proba(["CCCCCO", "CCCCC"])[:, why.column]
    odds = numpy.log(alcohol / (1 - alcohol)) - numpy.log(alkane / (1 - alkane))
    assert abs(why.nodes[5] - odds) < 1e-3  # the oxygen
    assert abs(why.blank + why.nodes.sum() - why.output) < 1e-6
    assert abs(why.predicted - model.predict_proba(smiles[5:6])[0, why.column]) < 1e-6


def test_tables_of_molecules(tmp_path):
    path = tmp_path / "m.CSV"
    path.write_text("name;smiles;y;k\na;CCO;1,5;1\na;OCC;2;2\nb;[Na+].[Cl-];3;3\nc;C1C;4;3\n")
    with pytest.warns(UserWarning, match="ring 1 is not closed(.|\n)*1 id is there more") as told:
        read = tasks.GraphSet.read(path, target="y")
    assert told[0].filename == __file__
    assert len(read) == 3 and read.pointer.target[0] == 1.5
    with pytest.warns(UserWarning, match="3 different whole numbers"):
        assert tasks.GraphSet.read(path, target="k").pointer.classes == 3
    with pytest.warns(UserWarning, match="several parts"):
        both = tasks.GraphSet.read(path, target=["y", "k"], ids="name", values=True)
    assert both.pointer.targets == 2
    with pytest.raises(basin.BasinError, match="no column 'z' of targets"):
        tasks.GraphSet.read(path, target="z")
    with pytest.warns(UserWarning, match="several parts"):
        tasks.GraphSet(["CCO", "[Na+].[Cl-]"])
    with pytest.warns(UserWarning, match="ring 1 is not closed"):
        some = tasks.GraphSet(["C1C", "CC", "CCO"], targets=[9.0, 0.5, 2.0], skip=True)
    assert some.pointer.target[0] == 0.5 and some.kept.tolist() == [1, 2]
    with pytest.warns(UserWarning, match="the cell is empty"):
        assert tasks.GraphSet([None, "CC", float("nan")], skip=True).kept.tolist() == [1]
    several = tasks.GraphClassifier(epochs=1, members=1, dim=8, blocks=1)
    y = [[None, 1], [1, 0], [0, None], [1, 1]]
    assert several.fit(["C", "CC", "CO", "CN"], y).predict(["CCC"]).shape == (1, 2)
    few = tasks.GraphSet(["C", "CC"], classes=numpy.array([0, 3], "i2"))
    assert few.pointer.class_of[1] == 1  # the second class
    for wrong in ({"targets": [1.0]}, {"targets": ["a", "b"]}, {"classes": [0.5, 1.5]}):
        with pytest.raises(basin.BasinError, match="expected .* for 2 graphs"):
            tasks.GraphSet(["C", "CC"], **wrong)
    words = tmp_path / "w.csv"
    words.write_text("smiles,c\n" + "".join(f"{'C' * n},{'ab'[n % 2]}\n" for n in range(1, 13)))
    with pytest.warns(UserWarning, match="0 is 'a', 1 is 'b'"):
        read = tasks.GraphSet.read(words, target="c")
    model = tasks.GraphClassifier(epochs=1, members=1, dim=8, blocks=1).fit(read)
    model.save(tmp_path / "w.safetensors")
    again = tasks.GraphClassifier.load(tmp_path / "w.safetensors")
    assert again.classes_.tolist() == ["a", "b"] and again.predict(["CCO"])[0] in "ab"
    with pytest.raises(basin.BasinError, match="values=True"):
        tasks.GraphRegressor().fit(read)
