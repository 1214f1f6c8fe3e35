"""Single nodes of a network that grows, scored in milliseconds."""

import csv
import dataclasses
import io
from collections.abc import Iterable
from typing import Any, Union

from basin.tasks._data.network import Network
from basin.tasks._library import BasinError, check, ffi, lib, made, warn
from basin.tasks._models.anomaly import AnomalyDetector
from basin.tasks._models.nodes import Explanation, explanation_of


@dataclasses.dataclass(frozen=True)
class LiveScore:
    """A LiveDetector's score of a node.

    >>> score = tasks.LiveScore("A7", 0.93, anomalous=True, capped=False, nodes=41)
    >>> score.node, score.anomalous
    ('A7', True)
    """

    node: str
    probability: float
    anomalous: bool
    """Above the detector's threshold."""
    capped: bool
    """The neighbourhood went on beyond the cap: other nodes count as they were in the network."""
    nodes: int
    """That were computed."""


class LiveDetector:
    """A detector and a network, ready to score single nodes, and to take nodes and edges that come
    later. Where no cap bit, a score is that of predict_proba on the network with all additions.

    `detector` is a fitted AnomalyDetector or the path of its file. `cap` is how many nodes of a
    neighbourhood are computed at most (0: 1024). With `states` the states of all nodes are kept,
    found by one pass over the network: nodes beyond the cap then count as they were.

    >>> rng = numpy.random.default_rng(0)
    >>> x, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(600, 2))
    >>> network = tasks.Network(x, edges, (x[:, 0] > 1).astype(int))
    >>> detector = tasks.AnomalyDetector(epochs=30, members=1, hops=0, threads=1).fit(network)
    >>> live = tasks.LiveDetector(detector, network)
    >>> bool(live.score(7).probability == detector.predict_proba(network)[7, 1])
    True
    >>> live.add(edges=[{"source": 7, "target": 11}])
    >>> live.score([7, 11])[0].capped
    False
    """

    def __init__(
        self, detector: Union[AnomalyDetector, Any], network: Network, *, cap: int = 0,
        states: bool = True,
    ):  # fmt: skip
        if not isinstance(detector, AnomalyDetector):
            detector = AnomalyDetector.load(detector)
        self.detector = detector
        self._network = detector._build(Network.of(network))
        kept = lib.BASIN_NODES_STATES_KEPT if states else lib.BASIN_NODES_STATES_ABSENT
        options = {"cap_nodes": cap, "cap_edges": 32 * cap, "states": kept}
        with detector._backend().lock:
            self._live = made(
                lib.basin_nodes_live_open, lib.basin_nodes_live_close, detector._fitted(),
                self._network, ffi.new("basin_nodes_live_options *", options),
            )  # fmt: skip

    def score(self, ids: Any) -> Any:
        """The LiveScore of a node by its id, or a list of them; ids of arrays are row numbers."""
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            return self.score([ids])[0]
        names = [str(one) for one in ids]
        keep = [ffi.new("char[]", name.encode()) for name in names]
        scores = ffi.new("basin_nodes_live_score[]", len(names))
        check(lib.basin_nodes_live_predict, scores, self._live, keep, len(names))
        unknown = [name for name, s in zip(names, scores) if s.node < 0]
        if unknown:
            raise BasinError(f"no node {unknown[0]!r}")
        if any(s.capped for s in scores):
            warn("the cap bit: nodes beyond it count as they were, or not at all without states")
        return [
            LiveScore(name, s.probability, bool(s.anomalous), bool(s.capped), s.nodes)
            for name, s in zip(names, scores)
        ]

    def add(self, nodes: Any = None, edges: Any = None) -> None:
        """Takes rows of nodes and of edges: dicts, a pandas table, or CSV text with a header, in
        the columns that the network's tables have (of arrays: id, source, target). All of it is
        taken, or after an error nothing."""
        check(lib.basin_nodes_live_add, self._live, _csv(nodes), _csv(edges))

    def explain(self, node: Any) -> Explanation:
        """Why a node scores as it does, from its neighbourhood; its rank is 0."""
        result = ffi.new("basin_nodes_explanation **")
        check(lib.basin_nodes_live_explain, result, self._live, str(node).encode())
        if not result[0]:
            raise BasinError(f"no node {str(node)!r}")
        return explanation_of(result[0], self._network, self.detector.threshold_)


def _csv(rows):
    """Rows as CSV with a header, numbers without quotes and texts in quotes; NULL for none."""
    if rows is None:
        return ffi.NULL
    quoting = csv.QUOTE_NONNUMERIC
    if hasattr(rows, "to_csv"):
        return ffi.new("char[]", rows.to_csv(index=False, quoting=quoting).encode())
    if isinstance(rows, str):  # whose decimal mark is that of the network's tables
        first = rows.partition("\n")[0]
        mark = "\t" if "\t" in first else max(",;", key=first.count)
        rows = list(csv.DictReader(io.StringIO(rows, newline=""), delimiter=mark))
    rows = list(rows)
    file = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(file, columns, restval="", quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return ffi.new("char[]", file.getvalue().encode()) if rows else ffi.NULL
