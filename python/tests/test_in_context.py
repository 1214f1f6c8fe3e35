"""InContextDetector: labels are stored, nothing is trained."""

import pickle

import numpy
import pytest

import basin
from basin import tasks


@pytest.fixture(scope="module")
def table():
    rng = numpy.random.default_rng(0)
    x, edges = rng.normal(size=(300, 5)), rng.integers(300, size=(900, 2))
    truth = (x[:, 0] - x[:, 2] > 1.5).astype(int)
    return x, edges, truth, numpy.where(numpy.arange(300) < 100, truth, -1)


def test_a_table_without_edges(table):
    x, _, truth, y = table
    detector = tasks.InContextDetector(threads=1).fit(x, y)
    p = detector.predict_proba(x)
    assert detector.measure(x[100:], truth[100:])["auroc"] > 0.9
    assert numpy.array_equal(detector.predict_proba(x[150:160]), p[150:160])
    assert numpy.array_equal(detector.predict(x), (p[:, 1] > 0.5).astype(int))
    assert not hasattr(detector, "save")


def test_a_label_is_added(table):
    x, edges, truth, y = table
    detector = tasks.InContextDetector(threads=1).fit(x, y, edges=edges)
    before = detector.predict_proba(x, edges=edges)
    node = 100 + int(truth[100:].argmax())
    detector.label(node, 1)
    after, more = detector.predict_proba(x, edges=edges), y.copy()
    more[node] = 1
    again = tasks.InContextDetector(threads=1).fit(x, more, edges=edges)
    assert numpy.array_equal(after, again.predict_proba(x, edges=edges))
    assert not numpy.array_equal(after, before)
    copy = pickle.loads(pickle.dumps(detector))
    assert numpy.array_equal(after, copy.predict_proba(x, edges=edges))


def test_words_gaps_and_tables():
    pandas = pytest.importorskip("pandas")
    rng = numpy.random.default_rng(1)
    accounts = pandas.DataFrame({
        "amount": rng.normal(size=80), "country": rng.choice(["DE", "FR"], 80),
    }, index=[f"A{i}" for i in range(80)])  # fmt: skip
    accounts.loc["A3", "amount"] = numpy.nan
    y = numpy.where(accounts["amount"] > 0.5, "fraud", "honest").astype(object)
    y[40:] = None
    transfers = pandas.DataFrame({
        "source": rng.choice(accounts.index, 200), "target": rng.choice(accounts.index, 200),
        "sum": rng.random(200),
    })  # fmt: skip
    detector = tasks.InContextDetector(anomalous="fraud", threads=1)
    detector.fit(accounts, y, edges=transfers)
    assert set(detector.predict(accounts, edges=transfers)) <= {"fraud", "honest"}
    turned, sums = accounts[["country", "amount"]], transfers[["sum", "target", "source"]]
    again = tasks.InContextDetector(anomalous="fraud", threads=1).fit(turned, y, edges=sums)
    assert numpy.array_equal(
        again.predict_proba(turned, edges=sums), detector.predict_proba(accounts, edges=transfers)
    )
    why = detector.explain(accounts, "A50", edges=transfers)
    assert why.node == 50 and why.sources[0]["id"].startswith("A")
    assert abs(sum(s["share"] for s in why.sources) - 1) < 1e-4
    assert abs(sum(s["moves"] for s in why.sources)) < 1e-3
    assert (why.energy[:, 1] < why.energy[:, 0]).all()
    names = {a["column"] for s in why.sources for a in s["agrees"]}
    assert any("amount" in name for name in names), names
    assert "node 50" in str(why)


def test_what_cannot_be_stored(table):
    x, edges, _, y = table
    for settings, label, said in (
        ({}, None, "requires y"), ({}, 0 * y, "1 class"), ({"passes": 9}, y, "passes"),
        ({"labels": 1}, y, "labels"),
    ):  # fmt: skip
        with pytest.raises(basin.BasinError, match=said):
            tasks.InContextDetector(**settings).fit(x, label)
    detector = tasks.InContextDetector(threads=1).fit(x, y, edges=edges)
    with pytest.raises(basin.BasinError, match="no edges"):
        detector.predict(x)
    with pytest.raises(basin.BasinError, match="expected one of"):
        detector.label(3, 7)
    with pytest.raises(basin.BasinError, match="2 features"):
        detector.predict(x[:, :2], edges=edges)
