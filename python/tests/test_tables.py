"""Tables of accounts and transfers: what the program makes of the same rows as CSV."""

import csv
import datetime
import decimal
import subprocess

import numpy
import pytest

import basin
from basin import tasks
from basin.tasks._data.frames import columns_of

SMALL = {
    "dim": 8,
    "epochs": 10,
    "hops": 1,
    "members": 1,
    "rate": 0.01,
    "warmup": 2,
    "threads": 1,
    "trees": 20,
}
pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def bank():
    """Accounts, transfers with amounts, times and kinds, and labels that amounts tell."""
    rng, nodes, edges = numpy.random.default_rng(0), 200, 1200
    y = (rng.random(nodes) < 0.2).astype(int)
    ids = numpy.array([f"A{i:03}" for i in range(nodes)], dtype=object)
    days = pandas.to_timedelta(rng.integers(1000, size=nodes), unit="D")
    accounts = pandas.DataFrame({"id": ids, "balance": rng.lognormal(5, 1, nodes).round(2)})
    accounts["country"] = rng.choice(["DE", "FR", "IT"], nodes)
    accounts["opened"] = pandas.Timestamp("2020-01-01") + days
    src, dst = rng.integers(nodes, size=edges), rng.integers(nodes, size=edges)
    seconds = pandas.to_timedelta(rng.integers(10**7, size=edges), unit="s")
    transfers = pandas.DataFrame({"payer": ids[src], "payee": ids[dst]})
    transfers["amount"] = rng.lognormal(3 + 3 * y[src], 1).round(2)
    transfers["time"] = pandas.Timestamp("2026-01-01") + seconds
    transfers["kind"] = rng.choice(["wire", "card", "cash"], edges)
    return accounts, transfers, y


@pytest.fixture(scope="module")
def trained(bank, program, tmp_path_factory):
    """The folder of the program's model and files, and its scores."""
    folder = tmp_path_factory.mktemp("bank")
    accounts, transfers, y = bank
    accounts.assign(label=y).to_csv(folder / "accounts.csv", index=False)
    transfers.to_csv(folder / "transfers.csv", index=False)
    files = ["accounts.csv", "transfers.csv"]
    options = [f"--{name}={value}" for name, value in SMALL.items()]
    _run(folder, program, "anomaly", "train", *files, "-o", "model", "--quiet", *options)
    _run(folder, program, "data", "convert", *files, "graph.basin")
    return folder, _scores(folder, program, files, accounts)


def _run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _scores(folder, program, files, accounts, *options):
    rows = _run(folder, program, "anomaly", "score", "model", *files, *options).splitlines()
    found = {row["node"]: float(row["probability"]) for row in csv.DictReader(rows)}
    return numpy.array([found[name] for name in accounts["id"]])


@pytest.fixture(scope="module")
def detector(trained):
    return tasks.AnomalyDetector.load(trained[0] / "model")


def _same(accounts, transfers):
    return accounts, transfers


def _polars(accounts, transfers):
    polars = pytest.importorskip("polars")
    return polars.from_pandas(accounts), polars.from_pandas(transfers)


def _polars_types(accounts, transfers):
    polars = pytest.importorskip("polars")
    exact = polars.col("balance").cast(polars.Decimal(12, 2))
    kind = polars.col("kind").cast(polars.Categorical)
    local = polars.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    a, t = _polars(accounts, transfers)
    return a.with_columns(exact), polars.concat([t[:500], t[500:]], rechunk=False).with_columns(
        kind, local
    )


def _arrow(accounts, transfers):
    pyarrow = pytest.importorskip("pyarrow")
    of = pyarrow.Table.from_pandas
    return of(accounts, preserve_index=False), of(transfers).to_batches()[0]


def _duckdb(accounts, transfers):
    duckdb = pytest.importorskip("duckdb")
    run = duckdb.connect()
    run.register("accounts", accounts)
    run.register("transfers", transfers)
    _duckdb.keeps = run
    return run.sql("SELECT * FROM accounts"), run.sql("SELECT * FROM transfers")


def _texts(accounts, transfers):
    return accounts.assign(opened=accounts.opened.dt.strftime("%Y-%m-%d")), transfers.assign(
        time=transfers.time.dt.strftime("%Y-%m-%dT%H:%M:%S"),
        amount=[f"{amount:,.2f} EUR" for amount in transfers.amount],
    )


def _mixed(accounts, transfers):
    exact = [decimal.Decimal(str(value)) for value in accounts.balance]
    local = transfers.time.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    kind = transfers.kind.astype("category")
    return accounts.assign(balance=exact), transfers.assign(time=local, kind=kind)


FORMS = {
    "pandas": _same,
    "index": lambda a, t: (a.set_index("id"), t),
    "order": lambda a, t: (a[a.columns[::-1]], t[t.columns[::-1]]),
    "polars": _polars,
    "polars' types": _polars_types,
    "arrow": _arrow,
    "duckdb": _duckdb,
    "dicts": lambda a, t: ({n: a[n].to_numpy() for n in a}, {n: t[n].tolist() for n in t}),
    "structured": lambda a, t: (a, t.to_records(index=False)),
    "texts": _texts,
    "mixed": _mixed,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_table_gets_the_programs_scores(detector, trained, bank, form):
    accounts, transfers = FORMS[form](*bank[:2])
    found = detector.predict_proba(accounts, edges=transfers)[:, 1]
    assert found == pytest.approx(trained[1], abs=1e-6)


def test_fitting_a_table_is_training_the_program(trained, bank):
    accounts, transfers, y = bank
    fitted = tasks.AnomalyDetector(**SMALL).fit(accounts, y, edges=transfers)
    found = fitted.predict_proba(accounts, edges=transfers)[:, 1]
    assert found == pytest.approx(trained[1], abs=1e-6)
    own = tasks.AnomalyDetector(**SMALL).fit(accounts.assign(label=y), edges=transfers)
    assert numpy.array_equal(own.predict_proba(accounts, edges=transfers)[:, 1], found)
    assert fitted.feature_names_in_.tolist() == ["balance", "country", "opened"]
    why = fitted.explain(accounts, "A007", edges=transfers)
    assert why.node == 7 and any("amount" in f["name"] for f in why.features)


def test_files_of_the_program_are_read_and_written(detector, trained, bank, tmp_path):
    folder, expected = trained
    csv_files = folder / "accounts.csv", folder / "transfers.csv"
    tasks.Network(*bank).write(tmp_path / "own.basin")
    for paths in (csv_files, [folder / "graph.basin"], [tmp_path / "own.basin"]):
        network = tasks.Network.read(*paths)
        assert detector.predict_proba(network)[:, 1] == pytest.approx(expected, abs=1e-6)
        assert numpy.array_equal(network.labels, bank[2])


def test_a_night_is_added_to_a_base(detector, trained, bank, program, tmp_path):
    folder, _ = trained
    night = bank[1][:50].assign(time=pandas.Timestamp("2026-06-01"))
    night.to_csv(folder / "night.csv", index=False)
    expected = _scores(folder, program, ["graph.basin", "night.csv"], bank[0])
    network = tasks.Network.read(folder / "graph.basin", folder / "night.csv")
    assert detector.predict_proba(network)[:, 1] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("option", ["missing=mean", "missing=zero", "unknown=skip", "unknown=add"])
def test_gaps_and_unknown_ends_are_treated_as_in_the_program(
    detector, trained, bank, program, option
):
    folder, _ = trained
    accounts, transfers = bank[0].copy(), bank[1].copy()
    name, value = option.split("=")
    if name == "missing":
        accounts.loc[3, "balance"], transfers.loc[5, "amount"] = numpy.nan, numpy.nan
    else:
        transfers.loc[7, "payee"] = "X99"
    with pytest.raises(basin.BasinError, match=rf"the option {name}"):
        detector.predict_proba(accounts, edges=transfers)
    accounts.to_csv(folder / "a.csv", index=False)
    transfers.to_csv(folder / "t.csv", index=False)
    expected = _scores(folder, program, ["a.csv", "t.csv"], accounts, f"--{name}", value)
    with pytest.warns(UserWarning, match="gaps filled|left out|nodes added"):
        found = detector.predict_proba(accounts, edges=transfers, **{name: value})
    assert found[:, 1] == pytest.approx(expected, abs=1e-6)


def _with(table, row, column, value):
    other = table.astype({column: object})
    other.loc[row, column] = value
    return other


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda a, t: (a.drop(columns="balance"), t), "no column 'balance' with which"),
        (lambda a, t: (a, t.drop(columns="amount")), "no column 'amount' of edges"),
        (lambda a, t: (a, t[["payer", "payee"]]), "no column 'amount' of edges"),
        (lambda a, t: (a, numpy.zeros((4, 2), int)), "no column 'amount' of edges"),
        (lambda a, t: (a, numpy.zeros((4, 3), int)), r"\[4, 3\].*\[edges, 2\]; what edges"),
        (lambda a, t: (pandas.concat([a, a[:1]], ignore_index=True), t), "row 200: node 'A000'"),
        (lambda a, t: (a, _with(t, 7, "payee", "X9")), "edges: row 7: node 'X9' is in no"),
        (lambda a, t: (a, _with(t, 7, "payee", None)), "edges: row 7: an end of the edge"),
        (lambda a, t: (a, _with(t, 7, "amount", "abc")), "row 7: column 'amount' holds 'abc'"),
        (lambda a, t: (a, _with(t, 7, "amount", [1])), r"column 'amount' holds \[1\]"),
        (lambda a, t: (a, t.assign(amount=1e300)), "'amount' of row 0 is 1e\\+300, too large"),
        (lambda a, t: (a, t.assign(amount=numpy.inf)), "'amount' holds 'inf'"),
        (lambda a, t: (a, t.assign(time=t.time - t.time[0])), "'time' of type timedelta64"),
        (lambda a, t: (a, {n: t[n].to_numpy()[i:] for i, n in enumerate(t)}), "different lengths"),
    ],
)
def test_mistakes_get_a_line(detector, bank, change, told):
    accounts, transfers = change(*bank[:2])
    with pytest.raises(basin.BasinError, match=told):
        detector.predict_proba(accounts, edges=transfers)


def test_values_that_training_did_not_know_are_told(detector, bank):
    with pytest.warns(UserWarning) as told:
        detector.predict_proba(bank[0].assign(country="ES"), edges=bank[1].assign(kind="sepa"))
    lines = [str(w.message) for w in told if "did not know" in str(w.message)]
    assert len(lines) == 2 and "'country'" in lines[0] and "edges: column 'kind'" in lines[1]


def test_ids_may_be_numbers_in_one_table_and_texts_in_another(bank):
    accounts, transfers, y = bank
    number = {name: i for i, name in enumerate(accounts["id"])}
    whole = transfers.assign(payer=transfers.payer.map(number), payee=transfers.payee.map(number))
    accounts = accounts.assign(id=range(len(accounts)))
    fitted = tasks.AnomalyDetector(**SMALL).fit(accounts, y, edges=whole)
    expected = fitted.predict_proba(accounts, edges=whole)
    other = whole.assign(payer=whole.payer.astype(str), payee=whole.payee.astype(float))
    assert numpy.array_equal(fitted.predict_proba(accounts, edges=other), expected)
    pairs = whole[["payer", "payee"]].to_numpy()  # numbers of rows, with what they carry
    carried = {"src": pairs[:, 0], "dst": pairs[:, 1]}
    carried.update({name: whole[name].to_numpy() for name in ("amount", "time", "kind")})
    assert numpy.array_equal(
        fitted.predict_proba(accounts.drop(columns="id"), edges=carried), expected
    )


def test_what_edges_of_graphs_carry_is_used(bank):
    networkx = pytest.importorskip("networkx")
    accounts, transfers, y = bank
    once = transfers.drop_duplicates(["payer", "payee"])
    once = once[~(once.payer.astype(str) + once.payee).isin(once.payee.astype(str) + once.payer)]
    graph = networkx.from_pandas_edgelist(
        once, "payer", "payee", edge_attr=["amount", "kind"], create_using=networkx.DiGraph
    )
    table = once[["payer", "payee", "amount", "kind"]]
    fitted = tasks.AnomalyDetector(**SMALL).fit(accounts, y, edges=table)
    expected = fitted.predict_proba(accounts, edges=table)
    assert fitted.predict_proba(accounts, edges=graph) == pytest.approx(expected, abs=1e-6)
    by_label = accounts.set_index("id")
    assert fitted.predict_proba(by_label, edges=graph) == pytest.approx(expected, abs=1e-6)

    class Data:
        x = accounts[["balance"]].to_numpy()
        edge_index = numpy.stack([accounts.index.to_numpy()[:-1], accounts.index.to_numpy()[1:]])
        edge_attr = numpy.stack([y[:-1], 1 - y[1:]], axis=1)

    data = Data()
    data.y = y
    model = tasks.AnomalyDetector(**SMALL).fit(data)
    found = model.predict_proba(data)
    data.edge_attr = 1 - data.edge_attr
    assert not numpy.array_equal(model.predict_proba(data), found)
    data.edge_attr = None
    with pytest.raises(basin.BasinError, match="edge_attr 0"):
        model.predict_proba(data)


def test_truth_values_and_relations_by_name(bank, tmp_path):
    accounts, transfers, y = bank
    fitted = tasks.AnomalyDetector(**SMALL).fit(
        accounts.assign(vip=y == 0), y, edges={"pays": transfers, "knows": transfers[:90]}
    )
    fitted.save(tmp_path / "model")
    loaded = tasks.AnomalyDetector.load(tmp_path / "model")
    given = accounts.assign(vip=(y == 0).astype(int))
    edges = {"knows": transfers[:90], "pays": transfers}
    expected = fitted.predict_proba(accounts.assign(vip=y == 0), edges=edges)
    assert numpy.array_equal(loaded.predict_proba(given, edges=edges), expected)


def test_columns_of_arrow_keep_their_types_and_gaps():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(
        {
            "x": numpy.arange(5.0),
            "n": pyarrow.array([1, None, 3, 4, 5]),
            "t": pyarrow.array([datetime.datetime(2026, 1, 1)] * 5, pyarrow.timestamp("s")),
            "s": pyarrow.array(["a", None, "\u00e9", "b", ""]).dictionary_encode(),
        }
    )
    found = columns_of(table)
    assert found["x"].cells(0, 5) == [0, 1, 2, 3, 4]
    assert found["n"].cells(0, 5) == [1, None, 3, 4, 5]
    assert found["t"].cells(0, 1) == ["2026-01-01T00:00:00"]
    assert found["s"].cells(0, 5) == ["a", None, "\u00e9", "b", ""] and found["s"].category
    with pytest.raises(basin.BasinError, match="'l' of Arrow's type list"):
        columns_of(pyarrow.table({"l": [[1]]}))
    with pytest.raises(basin.BasinError, match="ChunkedArray.* a table"):
        columns_of(pyarrow.chunked_array([[1]]))


def test_options_are_checked(bank):
    accounts, transfers, y = bank
    with pytest.raises(TypeError, match="no option 'mising'.*missing"):
        tasks.Network(accounts, transfers, mising="mean")
    with pytest.raises(basin.BasinError, match="unknown 'drop'.*error, skip, add"):
        tasks.Network(accounts, transfers, unknown="drop")
    with pytest.raises(basin.BasinError, match="sample_weight is not supported"):
        tasks.AnomalyDetector(**SMALL).fit(accounts, y, edges=transfers, sample_weight=y)
    until = tasks.Network(accounts, transfers, until="2026-01-10")
    with pytest.warns(UserWarning, match="left out: later than 2026-01-10"):
        until.build()


def test_thresholds_drift_and_differences(detector, bank):
    accounts, transfers, y = bank
    found = detector.threshold_for("precision=0.5")
    low, high = found.precision[1:]
    assert 0 <= found.threshold <= 1 and low <= found.precision[0] <= high
    scores = detector.predict_proba(accounts, edges=transfers)[:, 1]
    some = detector.threshold_for("alerts=20", accounts, edges=transfers)
    assert (scores > some.threshold).sum() <= 20
    with pytest.raises(basin.BasinError, match="give X and edges"):
        detector.threshold_for("alerts=20")
    with pytest.raises(basin.BasinError, match="precison"):
        detector.threshold_for("precison=0.9")
    assert all(column["level"] == 0 for column in detector.drift_.columns)
    with pytest.warns(UserWarning, match="moved much since training: balance"):
        detector.predict(accounts.assign(balance=accounts.balance * 100), edges=transfers)
    assert detector.drift_.columns[0]["name"] == "balance"
    with pytest.raises(basin.BasinError, match="no drift"):
        tasks.AnomalyDetector(**SMALL).drift_  # noqa: B018
    before = detector.threshold_
    detector.threshold_ = 0.25
    assert detector.threshold_ == 0.25
    detector.threshold_ = before


def test_labels_of_rows_are_the_ids_of_the_program(bank, program, tmp_path):
    accounts, transfers, y = bank
    table, pairs = accounts.set_index("id")[["balance"]], transfers[["payer", "payee"]]
    detector = tasks.AnomalyDetector(**SMALL).fit(table, y, edges=pairs)
    detector.save(tmp_path / "model")
    table.to_csv(tmp_path / "accounts.csv")
    pairs.to_csv(tmp_path / "transfers.csv", index=False)
    files = ["accounts.csv", "transfers.csv"]
    found = detector.predict_proba(table, edges=pairs)[:, 1]
    assert found == pytest.approx(_scores(tmp_path, program, files, accounts), abs=1e-6)
    live = tasks.LiveDetector(detector, tasks.Network(table, pairs))
    assert live.score("A007").probability == found[7]


def test_numbers_have_no_decimal_mark(tmp_path):
    """A float is that number for a model that was trained on decimal commas, as for others."""
    draw = numpy.random.default_rng(3)
    balance = draw.gamma(2.0, 400.0, 120).round(3)
    labels = (balance > 900).astype(int)
    accounts = pandas.DataFrame({"id": [f"a{i}" for i in range(120)], "balance": balance})
    ends = draw.integers(0, 120, (300, 2))
    pairs = pandas.DataFrame(ends, columns=["source", "target"]).map(lambda i: f"a{i}")
    texts = accounts.assign(balance=[f"{b:.3f}".replace(".", ",") for b in balance])
    first = tasks.AnomalyDetector(trees=0, epochs=3, members=1, seed=1).fit(
        texts, labels, edges=pairs
    )
    scores = first.predict_proba(texts, edges=pairs)
    numpy.testing.assert_array_equal(first.predict_proba(accounts, edges=pairs), scores)
    live = tasks.LiveDetector(first, tasks.Network(texts, pairs))
    before = live.score("a1")
    live.add([{"id": "a1", "balance": float(balance[1])}])
    assert live.score("a1") == before
    live.add([{"id": "new", "balance": 1.234}])
    value = {r["name"]: r["value"] for r in live.explain("new").features}["balance"]
    assert value == pytest.approx(1.234)
    live.add("id;balance\nnew;1.234\n")
    value = {r["name"]: r["value"] for r in live.explain("new").features}["balance"]
    assert value == 1234


def test_the_first_column_names_nodes_where_edges_name_its_values():
    """As the program has it; labels that are absent are unknown, and row numbers stay numbers."""
    random = numpy.random.default_rng(3)
    names = [f"A{i}" for i in range(120)]
    flow = {"src": random.choice(names, 400), "dst": random.choice(names, 400),
            "amount": random.exponential(100, 400)}  # fmt: skip
    y = (random.random(120) < 0.3).astype(float)
    y[::7] = numpy.nan
    pandas = pytest.importorskip("pandas")
    accounts = pandas.DataFrame({"account_no": names, "age": random.normal(40, 9, 120)})
    quick = tasks.AnomalyDetector(epochs=2, members=1, trees=0, threads=1)
    quick.fit(accounts, y, edges=flow)
    found = quick.predict_proba(accounts[["age", "account_no"]], edges=flow)
    again = quick.predict_proba(accounts, edges=flow)
    assert quick.feature_names_in_.tolist() == ["age"]
    assert (found == again).all()
    flow["dst"][3] = "elsewhere"
    some = tasks.Network(accounts, edges=flow, unknown="skip")
    assert some.shape[1] == 1 and len(quick.predict_proba(some)) == 120
    numbered = {"src": numpy.arange(119), "dst": numpy.arange(1, 120), "amount": numpy.ones(119)}
    plain = pandas.DataFrame({"age": random.normal(40, 9, 120), "limit": numpy.ones(120)})
    quick.fit(plain, numpy.where(numpy.isnan(y), -1, y), edges=numbered)
    assert quick.feature_names_in_.tolist() == ["age", "limit"]
