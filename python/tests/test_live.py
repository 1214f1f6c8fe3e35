"""Single nodes: the scores of the whole network, with and without additions; explanations."""

import numpy
import pytest

import basin
from basin import tasks

ACCOUNTS = "id,age,city,label\n" + "".join(
    f"a{i},{20 + 7 * i % 50},{'Rome' if i % 3 else 'Oslo'},{int(i % 5 == 0)}\n" for i in range(120)
)
EDGES = "source,target,amount\n" + "".join(
    f"a{i % 120},a{(i * i + 7) % 120},{1 + i % 9}\n" for i in range(200)
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    (folder / "accounts.csv").write_text(ACCOUNTS)
    (folder / "edges.csv").write_text(EDGES)
    network = tasks.Network.open(folder / "accounts.csv", folder / "edges.csv")
    detector = tasks.AnomalyDetector(epochs=4, members=1, trees=0, threads=1).fit(network)
    detector.save(folder / "model.safetensors")
    return folder, detector, network


def test_whole_and_additions(files):
    folder, detector, network = files
    live = tasks.LiveDetector(folder / "model.safetensors", network)
    whole = detector._score(detector._build(network))
    assert [s.probability for s in live.score(["a3", "a4"])] == list(whole[3:5])
    live.add(
        nodes=[{"id": "new", "age": 33, "city": "Rome", "label": ""}],
        edges=[{"source": "new", "target": "a3", "amount": 7}],
    )
    new = live.score("new")
    assert new.node == "new" and 0 < new.probability < 1 and not new.capped
    assert live.score("a3").probability != whole[3]
    why = live.explain("new")
    assert why.node == 120 and why.rank == 0
    assert [n["node"] for n in why.neighbours] == [3]


def test_refused(files):
    folder, _, network = files
    live = tasks.LiveDetector(folder / "model.safetensors", network, states=False)
    with pytest.raises(basin.BasinError, match="nobody"):
        live.score("nobody")
    with pytest.raises(basin.BasinError, match="nobody"):
        live.explain("nobody")
    with pytest.raises(basin.BasinError, match="nobody"):
        live.add(edges=[{"source": "nobody", "target": "a1", "amount": 1}])
    assert numpy.isfinite(live.score("a1").probability)
