"""Detectors of anomalous nodes."""

import dataclasses

import numpy

from basin._estimator import ClassifierMixin, Estimator, score_of, sized
from basin._library import BasinError, check, ffi, lib, owned
from basin._network import Network

__all__ = ["AnomalyDetector", "Explanation"]


@dataclasses.dataclass
class Explanation:
    """Why a node scores as it does."""

    node: int
    probability: float
    threshold: float
    rank: int
    """1: the highest of all nodes."""
    energy: float
    """At the end of the descent; NaN where the model has none."""
    neighbours: list
    """Dicts with node, share, returned, push and probability, by falling size of their push."""
    features: list
    """Dicts with column, hop, value, typical and share, by falling size of their share."""


class AnomalyDetector(ClassifierMixin, Estimator):
    """Finds anomalous nodes of a graph: learns from labelled nodes, gives each a probability.

    Every method takes features [N, F] and edges, or a Network in place of both. `validation` is
    the part of the labelled nodes that chooses epoch and threshold: None for the masks of the
    network, or else 0.2; 0 for none.

    >>> import numpy, basin
    >>> rng = numpy.random.default_rng(0)
    >>> x, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(600, 2))
    >>> y = (x[:, 0] > 1).astype(int)
    >>> detector = basin.AnomalyDetector(epochs=30, members=1, hops=0, threads=1)
    >>> detector.fit(x, y, edges=edges).predict_proba(x, edges=edges).shape
    (200, 2)
    """

    _task = _prefix = "anomaly"
    _own = {"validation": None}

    def fit(self, X, y=None, *, edges=None):  # noqa: N803
        """Trains on the nodes whose label y is 0 or 1; -1 is unknown."""
        given = _network(X, edges, y)
        validation = 0 if self.validation is None else self.validation or -1
        network = given.build()
        data = sized("basin_anomaly_data", network=network, validation=validation)
        self._train(self._settings(), data)
        self.n_features_in_ = given.features
        if given.columns:
            self.feature_names_in_ = numpy.array(given.columns, dtype=object)
        self.classes_ = numpy.array([0, 1])
        return self

    def _opened(self):
        self.classes_ = numpy.array([0, 1])

    @property
    def threshold_(self) -> float:
        """The probability above which a node counts as anomalous; validation chose it."""
        return lib.basin_anomaly_threshold(self._fitted())

    def predict_proba(self, X, *, edges=None) -> numpy.ndarray:  # noqa: N803
        """[N, 2]: the probability of each node to be normal, and anomalous."""
        anomalous = self._score(self._network(X, edges))
        return numpy.stack([1 - anomalous, anomalous], axis=1)

    def decision_function(self, X, *, edges=None) -> numpy.ndarray:  # noqa: N803
        """The probability minus the threshold: above 0 for nodes that count as anomalous."""
        return self.predict_proba(X, edges=edges)[:, 1] - self.threshold_

    def predict(self, X, *, edges=None) -> numpy.ndarray:  # noqa: N803
        """1 for nodes above the threshold, else 0."""
        return (self.decision_function(X, edges=edges) > 0).astype(int)

    def measure(self, X, y=None, *, edges=None) -> dict:  # noqa: N803
        """ "macro_f1", "auroc", "auprc" and "recall_at_k" over the nodes with a label."""
        network = self._network(X, edges, y)
        if not network.label:
            raise BasinError("no labels to measure with: give y")
        labels = numpy.frombuffer(ffi.buffer(network.label, 4 * network.nodes), "i4")
        part = numpy.where(labels >= 0, lib.BASIN_PART_TEST, lib.BASIN_PART_NONE).astype("u1")
        probability = self._score(network)
        result = ffi.new("basin_score *")
        check(
            lib.basin_anomaly_measure, result, ffi.from_buffer("double[]", probability), network,
            ffi.from_buffer("uint8_t[]", part), lib.BASIN_PART_TEST, self.threshold_,
        )  # fmt: skip
        return score_of(result)

    def score(self, X, y=None, *, edges=None) -> float:  # noqa: N803
        """The area under the precision-recall curve, the "auprc" of measure()."""
        return self.measure(X, y, edges=edges)["auprc"]

    def explain(self, X, node: int, *, edges=None) -> Explanation:  # noqa: N803
        """Why a node scores as it does: neighbours and features that count."""
        network, result = self._network(X, edges), ffi.new("basin_anomaly_explanation **")
        with self._backend().lock:
            check(lib.basin_anomaly_explain, result, self._fitted(), network, node, ffi.NULL)
        return _explanation(owned(result[0], lib.basin_anomaly_explanation_free))

    def _network(self, X, edges, y=None):  # noqa: N803
        """A network read as the one that was trained on."""
        return _network(X, edges, y).build(lib.basin_anomaly_get_schema(self._fitted()))

    def _score(self, network):
        probability = numpy.empty(network.nodes)
        with self._backend().lock:
            check(
                lib.basin_anomaly_score, ffi.from_buffer("double[]", probability), self._fitted(),
                network, ffi.NULL,
            )  # fmt: skip
        return probability


def _network(X, edges, y):  # noqa: N803
    if isinstance(X, Network):
        if edges is not None:
            raise BasinError("edges beside a Network, which has its own")
        return X if y is None else X.labelled(y)
    if edges is None:
        raise BasinError("no edges: give edges=, or a Network")
    return Network(X, edges, y)


_NEIGHBOUR = ("node", "share", "returned", "push", "probability")
_FEATURE = ("column", "hop", "value", "typical", "share")


def _explanation(e):
    def rows(entries, count, names):
        return [{name: getattr(entries[i], name) for name in names} for i in range(count)]

    return Explanation(
        node=e.node,
        probability=e.probability,
        threshold=e.threshold,
        rank=e.rank,
        energy=e.energy if e.has_energy else numpy.nan,
        neighbours=rows(e.neighbour, e.neighbours, _NEIGHBOUR),
        features=rows(e.feature, e.features, _FEATURE),
    )
