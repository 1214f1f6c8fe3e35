"""Kinds of data that estimators take: each means what the same data as arrays mean."""

import pickle

import numpy
import pytest

import basin
from basin import tasks
from basin.tasks._data.network import view_of

SMALL = {
    "epochs": 10, "members": 1, "scaling": "standard", "hops": 0, "dim": 8, "rate": 0.01,
    "warmup": 2, "trees": 0, "threads": 1,
}  # fmt: skip
GRAPHS = {"epochs": 10, "dim": 8, "memories": 8, "blocks": 1, "rate": 0.01, "threads": 1}


@pytest.fixture(scope="module")
def fitted(network):
    x, edges, y = network
    return tasks.AnomalyDetector(**SMALL).fit(x, y, edges=edges)


@pytest.fixture(scope="module")
def expected(fitted, network):
    return fitted.predict_proba(network[0], edges=network[1])


# ---- arrays ----


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype("f8"),
        lambda x: numpy.asfortranarray(x),
        lambda x: numpy.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x.tolist(),
        lambda x: x.astype(object),
        lambda x: x.astype(">f4"),
    ],
    ids=["double", "fortran", "strided", "lists", "objects", "big-endian"],
)
def test_features_of_any_layout(fitted, expected, network, change):
    found = fitted.predict_proba(change(network[0]), edges=network[1])
    assert numpy.array_equal(found, expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.tolist(),
        lambda e: e.astype("u2"),
        lambda e: numpy.asfortranarray(e),
        lambda e: numpy.concatenate([e, e[:, ::-1]]),
    ],
    ids=["lists", "short", "fortran", "both ways"],
)
def test_edges_of_any_layout(fitted, expected, network, change):
    assert numpy.array_equal(fitted.predict_proba(network[0], edges=change(network[1])), expected)


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_array", "lil_matrix"])
def test_sparse_matrices_of_scipy(fitted, expected, network, kind):
    sparse = pytest.importorskip("scipy.sparse")
    x, edges, _ = network
    form = getattr(sparse, kind)
    adjacency = sparse.coo_matrix((numpy.ones(len(edges)), edges.T), (120, 120))
    found = fitted.predict_proba(form(x), edges=form(adjacency))
    assert numpy.array_equal(found, expected)
    with pytest.raises(basin.BasinError, match=r"\[120, 120\]"):
        fitted.predict(x, edges=form(adjacency.tocsr()[:100, :100]))


# ---- pandas ----


@pytest.fixture(scope="module")
def accounts(network):
    """A table with a category, texts, dates, truth values and gaps, by account."""
    pandas = pytest.importorskip("pandas")
    x, edges, y = network
    rng = numpy.random.default_rng(2)
    table = pandas.DataFrame(x[:, :2], columns=["balance", "age"])
    table["country"] = pandas.Categorical(rng.choice(["DE", "FR", "IT"], 120))
    table["channel"] = numpy.where(y == 1, "phone", "web")
    table["opened"] = pandas.Timestamp("2020-01-01") + pandas.to_timedelta(
        rng.integers(1000, size=120), unit="D"
    )
    table["vip"] = rng.random(120) > 0.5
    table.index = pandas.Index([f"A{i:03}" for i in range(120)], name="account")
    named = pandas.DataFrame({"payer": table.index[edges[:, 0]], "payee": table.index[edges[:, 1]]})
    return table, named, y


@pytest.fixture(scope="module")
def of_accounts(accounts):
    table, edges, y = accounts
    return tasks.AnomalyDetector(**SMALL).fit(table, y, edges=edges)


def test_categories_and_dates_are_kept_by_the_model(of_accounts, accounts, tmp_path):
    table, edges, _ = accounts
    assert list(of_accounts.feature_names_in_) == list(table.columns)
    assert of_accounts.n_features_in_ == 6
    of_accounts.save(tmp_path / "model")
    loaded = tasks.AnomalyDetector.load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == list(table.columns)
    shuffled = table[list(table.columns)[::-1]]
    expected = of_accounts.predict_proba(table, edges=edges)
    assert numpy.array_equal(loaded.predict_proba(shuffled, edges=edges), expected)


def test_a_category_that_training_did_not_know(of_accounts, accounts):
    table, edges, _ = accounts
    other = table.assign(country="ES")
    with pytest.warns(UserWarning, match="'country': 120 rows with values that training"):
        found = of_accounts.predict_proba(other, edges=edges)
    gaps = table.assign(country=None)
    assert numpy.array_equal(found, of_accounts.predict_proba(gaps, edges=edges))
    one = of_accounts.predict_proba(table.assign(country="DE"), edges=edges)
    assert not numpy.array_equal(found, one)


def test_the_program_reads_what_pandas_trained(of_accounts, accounts, program, tmp_path):
    """The same table as CSV files gets the same scores."""
    import subprocess

    table, edges, _ = accounts
    of_accounts.save(tmp_path / "model")
    table.assign(vip=table["vip"].astype(int)).to_csv(tmp_path / "accounts.csv")
    edges.rename(columns={"payer": "src", "payee": "dst"}).to_csv(tmp_path / "e.csv", index=False)
    command = [program, "anomaly", "score", "model", "accounts.csv", "e.csv", "--id", "account"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = [line.split(",") for line in done.stdout.splitlines()]
    column = rows[0].index("probability")
    found = {row[0]: float(row[column]) for row in rows[1:]}
    expected = of_accounts.predict_proba(table, edges=edges)[:, 1]
    assert [found[name] for name in table.index] == pytest.approx(expected, abs=1e-5)


def test_pandas_scores_with_what_the_program_trained(accounts, program, tmp_path):
    import subprocess

    table, edges, y = accounts
    numbers = table.assign(vip=table["vip"].astype(int))
    numbers.assign(label=y).to_csv(tmp_path / "accounts.csv")
    edges.rename(columns={"payer": "src", "payee": "dst"}).to_csv(tmp_path / "e.csv", index=False)
    options = [
        f"--{n}={value}" if value is not False else f"--no-{n}" for n, value in SMALL.items()
    ]
    files = ["accounts.csv", "e.csv", "--id", "account", "--output", "model"]
    command = [program, "anomaly", "train", *files, "--quiet", *options]
    subprocess.run(command, cwd=tmp_path, check=True)
    loaded = tasks.AnomalyDetector.load(tmp_path / "model")
    assert loaded.predict_proba(numbers, edges=edges).shape == (120, 2)


def test_edges_go_by_the_labels_of_rows(fitted, network):
    pandas = pytest.importorskip("pandas")
    x, edges, _ = network
    order = numpy.random.default_rng(3).permutation(120)
    table = pandas.DataFrame(x)
    expected = fitted.predict_proba(table, edges=pandas.DataFrame(edges))
    shuffled = fitted.predict_proba(table.iloc[order], edges=pandas.DataFrame(edges))
    assert shuffled == pytest.approx(expected[order], abs=1e-6)
    with pytest.raises(basin.BasinError, match="edge 0 ends at 'nobody'"):
        fitted.predict(table, edges=pandas.DataFrame([["nobody", 3]]))


def test_labels_in_another_order_are_refused(of_accounts, accounts):
    pandas = pytest.importorskip("pandas")
    table, edges, y = accounts
    labels = pandas.Series(y, index=table.index)
    of_accounts.measure(table, labels, edges=edges)
    with pytest.raises(basin.BasinError, match="another order"):
        of_accounts.measure(table, labels[::-1], edges=edges)
    with pytest.raises(basin.BasinError, match="another order"):
        tasks.AnomalyDetector(**SMALL).fit(table, labels[::-1], edges=edges)


def test_a_node_may_be_named_by_its_row(of_accounts, accounts):
    table, edges, _ = accounts
    assert of_accounts.explain(table, "A007", edges=edges).node == 7
    with pytest.raises(basin.BasinError, match="node 'B1'"):
        of_accounts.explain(table, "B1", edges=edges)


def test_gaps_of_a_table(accounts):
    table, edges, y = accounts
    gaps = table.copy()
    gaps.iloc[3, 0] = numpy.nan
    with pytest.raises(basin.BasinError, match="balance|missing|nan"):
        tasks.AnomalyDetector(**SMALL).fit(gaps, y, edges=edges)
    given = tasks.Network(gaps, edges, y, missing="mean")
    model = tasks.AnomalyDetector(**SMALL).fit(given)
    filled = table.copy()
    filled.iloc[3, 0] = gaps["balance"].mean()
    assert model.predict_proba(given) == pytest.approx(
        model.predict_proba(filled, edges=edges), abs=1e-5
    )


def test_columns_of_many_texts_are_left_out(accounts):
    table, edges, y = accounts
    named = table.assign(iban=[f"DE{i}" for i in range(120)])
    with pytest.warns(UserWarning, match="left out: iban"):
        model = tasks.AnomalyDetector(**SMALL).fit(named, y, edges=edges)
    assert "iban" not in model.feature_names_in_


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ([[1]] * 120, r"'odd' holds \[1\].*numbers"),
        ([1j] * 120, "'odd'.*Complex"),
        ([1.0, 1e39] * 60, r"'odd'.* 1 is 1e\+39"),
    ],
)
def test_columns_of_other_things_are_refused(accounts, column, told):
    table, edges, y = accounts
    with pytest.raises(basin.BasinError, match=told):
        tasks.AnomalyDetector(**SMALL).fit(table.assign(odd=column), y, edges=edges)


def test_labels_of_pandas_may_be_texts(accounts):
    pandas = pytest.importorskip("pandas")
    table, edges, y = accounts
    named = pandas.Series(numpy.where(y == 1, "fraud", "normal"))
    named[:10] = None
    model = tasks.AnomalyDetector(**SMALL, anomalous="fraud").fit(table, named, edges=edges)
    assert model.classes_.tolist() == ["normal", "fraud"]
    assert set(model.predict(table, edges=edges)) <= {"normal", "fraud"}
    codes = numpy.where(numpy.arange(120) < 10, -1, y)
    same = tasks.AnomalyDetector(**SMALL).fit(table, codes, edges=edges)
    assert numpy.array_equal(
        same.predict_proba(table, edges=edges), model.predict_proba(table, edges=edges)
    )
    assert model.score(table, named, edges=edges) == same.score(table, codes, edges=edges)
    with pytest.warns(UserWarning, match="'normal' counts as anomalous"):
        tasks.AnomalyDetector(**SMALL).fit(table, named, edges=edges)
    with pytest.raises(basin.BasinError, match="anomalous 'Fraud'"):
        tasks.AnomalyDetector(**SMALL, anomalous="Fraud").fit(table, named, edges=edges)


def test_labels_of_pandas_may_have_gaps(accounts):
    """pandas' NA is neither equal to itself nor unequal; -1 stays unknown among objects."""
    pandas = pytest.importorskip("pandas")
    table, edges, y = accounts
    codes = numpy.where(numpy.arange(120) < 10, -1, y)
    expected = tasks.AnomalyDetector(**SMALL).fit(table, codes, edges=edges)
    gaps = pandas.Series(y == 1, dtype="boolean")
    gaps[:10] = pandas.NA
    for labels in (gaps, codes.astype(object)):
        found = tasks.AnomalyDetector(**SMALL).fit(table, numpy.asarray(labels), edges=edges)
        assert numpy.array_equal(
            found.predict_proba(table, edges=edges), expected.predict_proba(table, edges=edges)
        )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"labels": [0, 1, 2**32]}, "y: 4294967296 is too large for int32"),  # it was 0
        ({"train": [0, 2, 1]}, "mask of other numbers than 0 and 1"),
    ],
)
def test_what_a_network_cannot_hold_is_refused(given, told):
    with pytest.raises(basin.BasinError, match=told):
        tasks.Network(numpy.eye(3), [[0, 1]], **given)


def test_names_of_relations_may_be_numbers(network):
    x, edges, _ = network
    built = tasks.Network(x, {1: edges, 2: edges[:3]}).build()
    assert view_of(built).relations == 3


# ---- NetworkX ----


def test_nodes_of_networkx_are_rows_by_number(fitted, expected, network):
    """A graph that was built from edges has its nodes in the order of the edges, and not all."""
    networkx = pytest.importorskip("networkx")
    x, edges, _ = network
    graph = networkx.Graph(edges[::-1].tolist())
    assert list(graph.nodes) != sorted(graph.nodes)
    assert numpy.array_equal(fitted.predict_proba(x, edges=graph), expected)


def test_nodes_of_networkx_are_rows_by_label(of_accounts, accounts):
    networkx = pytest.importorskip("networkx")
    table, edges, _ = accounts
    graph = networkx.Graph(edges.to_numpy().tolist())
    expected = of_accounts.predict_proba(table, edges=edges)
    assert numpy.array_equal(of_accounts.predict_proba(table, edges=graph), expected)


def test_a_graph_of_networkx_with_a_node_that_no_row_is_called(of_accounts, accounts):
    """As many nodes as rows, of which all but one are labels: their order says nothing."""
    networkx = pytest.importorskip("networkx")
    table, edges, _ = accounts
    graph = networkx.Graph(edges.replace("A007", "B007").to_numpy().tolist())
    graph.add_nodes_from(set(table.index) - {"A007"})
    assert graph.number_of_nodes() == len(table)
    with pytest.raises(basin.BasinError, match="a node 'B007', which no row is called"):
        of_accounts.predict(table, edges=graph)
    twice = table.set_axis(["A000", *table.index[:-1]])
    with pytest.raises(basin.BasinError, match="labels of rows, which are not unique"):
        of_accounts.predict(twice, edges=networkx.Graph([("A000", "A001")]))


def test_weights_of_networkx_that_a_model_lacks_are_told_not_to_count(fitted, network):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph(network[1].tolist())
    networkx.set_edge_attributes(graph, 2.5, "weight")
    with pytest.warns(UserWarning, match="edges: columns not used: weight") as told:
        fitted.predict(network[0], edges=graph)
    assert told[0].filename == __file__  # however deep inside the package it was noticed


def test_nodes_of_networkx_that_are_no_rows_are_refused(fitted, network):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([("a", "b"), ("b", "c")])
    with pytest.raises(basin.BasinError, match="3 nodes that are not the numbers of 120 rows"):
        fitted.predict(network[0], edges=graph)


# ---- PyTorch Geometric: its Data by the names of its parts ----


class Tensor:
    """What the package uses of a tensor that requires gradients and lies on a device."""

    def __init__(self, values):
        self._values = numpy.asarray(values)

    def detach(self):
        return self

    def cpu(self):
        return self._values

    def __array__(self, *_, **__):
        raise TypeError("can't convert a tensor that requires grad to numpy")


class Data:
    def __init__(self, **parts):
        self.__dict__.update(parts)


def test_a_network_of_pytorch_geometric(network):
    x, edges, y = network
    train = numpy.arange(120) < 80
    both = numpy.concatenate([edges, edges[:, ::-1]]).T
    data = Data(
        x=Tensor(x), edge_index=Tensor(both), y=Tensor(y), train_mask=Tensor(train),
        val_mask=Tensor(~train),
    )  # fmt: skip
    model = tasks.AnomalyDetector(**SMALL).fit(data)
    given = tasks.Network(x, edges, y, train=train, validation=~train)
    same = tasks.AnomalyDetector(**SMALL).fit(given)
    assert numpy.array_equal(model.predict_proba(data), same.predict_proba(given))
    assert model.score(data) == same.score(given)


def test_graphs_of_pytorch_geometric_bring_their_classes():
    rings = [[[i, (i + 1) % n] for i in range(n)] for n in range(5, 11)]
    stars = [[[0, i] for i in range(1, n)] for n in range(5, 11)]
    classes = [0] * 6 + [1] * 6
    data = [
        Data(
            edge_index=Tensor(numpy.array(edges).T),
            num_nodes=int(numpy.max(edges)) + 1,
            x=Tensor(numpy.ones((int(numpy.max(edges)) + 1, 1), "f4")),
            edge_attr=Tensor(numpy.zeros(len(edges), "i8")),
            y=Tensor([label]),
        )
        for edges, label in zip(rings + stars, classes)
    ]
    graph = tasks.Graph.of(data[0])
    assert graph.node_attributes.shape == (5, 1) and graph.edge_labels.shape == (5, 1)
    model = tasks.GraphClassifier(**GRAPHS, validation=0).fit(data)
    assert model.score(data, classes) > 0.9
    values = tasks.GraphRegressor(**GRAPHS).fit(data)
    assert values.predict(data).shape == (12,)


def test_a_real_data_of_pytorch_geometric(network):
    torch = pytest.importorskip("torch")
    geometric = pytest.importorskip("torch_geometric.data")
    x, edges, y = network
    data = geometric.Data(
        x=torch.tensor(x, requires_grad=True), edge_index=torch.tensor(edges.T), y=torch.tensor(y)
    )
    model = tasks.AnomalyDetector(**SMALL).fit(data)
    assert model.predict(data).shape == (120,)


# ---- molecules ----


def test_smiles():
    graph = tasks.Graph.from_smiles("c1ccccc1[O-]")
    assert graph.nodes == 7 and len(graph.edges) == 7
    assert graph.node_labels[6].tolist() == [8, 0, 1, 0]
    as_is = tasks.Graph.from_smiles("c1ccccc1[O-]", as_is=True)
    assert as_is.node_labels[6].tolist() == [8, -1, 0, 0]
    assert graph.edge_labels.ravel().tolist().count(4) == 6
    alcohols, alkanes = ["C" * n + "O" for n in range(1, 9)], ["C" * n for n in range(2, 10)]
    model = tasks.GraphClassifier(**{**GRAPHS, "epochs": 30}, validation=0)
    model.fit(alcohols + alkanes, ["alcohol"] * 8 + ["alkane"] * 8)
    assert model.predict(["CCCCO", "CCCCC"]).tolist() == ["alcohol", "alkane"]
    with pytest.raises(basin.BasinError, match="molecule 1: 'C1CC': ring 1"):
        tasks.GraphClassifier(**GRAPHS).fit(["CC", "C1CC"], [0, 1])


def test_molecules_as_rdkit_has_them():
    chem = pytest.importorskip("rdkit.Chem")
    for smiles in ["C1=CC=CC=C1C(=O)O", "CN(=O)=O", "c1ccc2[nH]ccc2c1", "[Na+].[Cl-]"]:
        ours, theirs = (tasks.Graph.from_smiles(smiles), tasks.Graph.of(chem.MolFromSmiles(smiles)))
        assert ours.node_labels.tolist() == theirs.node_labels.tolist()
        assert sorted(ours.edge_labels.ravel()) == sorted(theirs.edge_labels.ravel())


def test_rdkit_with_hydrogens_and_stereo():
    chem = pytest.importorskip("rdkit.Chem")
    for smiles in ["N[C@@H](C)C(=O)O", "F/C=C/Cl", "CC(C)c1cc[nH]c1", "[Na+].CC(=O)[O-]"]:
        plain = chem.MolFromSmiles(smiles)
        sets = [
            tasks.GraphSet([molecule], stereo=True)
            for molecule in (smiles, plain, chem.AddHs(plain))
        ]
        first, *others = (sorted(map(tuple, s.graphs[0].node_labels)) for s in sets)
        assert all(other == first for other in others)
        assert len(set(tasks.GraphSet([s.graphs[0] for s in sets]).copies)) == 1
    turned = chem.MolFromSmiles("N[C@H](C)C(=O)O"), chem.MolFromSmiles("N[C@@H](C)C(=O)O")
    assert list(tasks.GraphSet(turned, stereo=True).copies) == [0, 1]
    ordered = tasks.Graph.of(chem.MolFromSmiles("OCCN"))
    assert [labels[0] for labels in ordered.node_labels] == [8, 6, 6, 7]


def test_bad_smiles_are_skipped():
    with pytest.warns(UserWarning, match="1 of 3 molecules could not be read"):
        given = tasks.GraphSet(
            ["CC", "C1CC", "CO"], skip=True, targets=numpy.array([[1], [2], [3]], "f4")
        )
    assert given.kept.tolist() == [0, 2] and len(given) == 2
    assert [given.pointer.target[i] for i in range(2)] == [1, 3]


def test_several_yes_or_no():
    smiles = ["C" * n + end for n in range(2, 10) for end in ("O", "N", "C")]
    y = numpy.array([["O" in s, "N" in s] for s in smiles], "f8")
    y[3, 1] = numpy.nan
    model = tasks.GraphClassifier(**{**GRAPHS, "epochs": 30}, validation=0).fit(smiles, y)
    assert model.predict_proba(smiles).shape == (24, 2)
    assert model.score(smiles, y) > 0.9
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(smiles) == model.predict(smiles)).all()
    with pytest.raises(basin.BasinError, match="is 2; expected 0, 1 or NaN"):
        model.fit(smiles, y * 2)


def test_what_is_no_molecule():
    model = tasks.GraphClassifier(**GRAPHS, validation=0).fit(["CC", "CO"] * 4, [0, 1] * 4)
    with pytest.warns(UserWarning, match="1 nodes and 0 edges have a label"):
        model.predict(["[U]"])
    with pytest.raises(basin.BasinError, match="graph 1 is nan"):
        model.predict(["CC", float("nan")])


# ---- pictures ----


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "I;16"])
def test_modes_of_pil(mode):
    image = pytest.importorskip("PIL.Image")
    from basin.tasks._data.pictures import pixels_of

    grey = image.fromarray((numpy.arange(64, dtype="u1") // 32 * 255).reshape(8, 8))
    if mode == "I;16":
        picture = image.fromarray(numpy.asarray(grey).astype("u2") * 257)
    else:
        picture = grey.convert("RGB").convert(mode) if mode == "CMYK" else grey.convert(mode)
    pixels = pixels_of(picture)
    assert pixels.dtype == numpy.uint8
    assert pixels[..., 0] == pytest.approx(numpy.asarray(grey).astype(int), abs=1)
