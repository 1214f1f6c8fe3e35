"""Detectors of anomalous nodes."""

import dataclasses
from typing import TYPE_CHECKING, Any, Optional

import numpy

from basin.tasks._library import BasinError, check, ffi, lib, sized, warn
from basin.tasks._models.estimator import column_of, gaps_of, known_labels
from basin.tasks._models.nodes import Explanation, NodeEstimator

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from basin.tasks._keywords import AnomalyKeywords


@dataclasses.dataclass
class Threshold:
    """A threshold, and what to expect above it of nodes that are not known yet: each the median,
    and the two bounds that hold 95 % of draws from the validation nodes; NaN of a model without."""

    threshold: float
    precision: tuple
    recall: tuple
    fpr: tuple
    """Normal nodes among the alerts, of all normal ones."""
    alerts: tuple
    """Alerts, of all nodes."""


class Detector(NodeEstimator):
    """What estimators of two classes share."""

    anomalous: Any

    @property
    def threshold_(self) -> float:
        """The probability above which a node counts as anomalous."""
        return 0.5

    def fit(self, X: Any, y: Any = None, *, edges: Any = None, **options: Any) -> "Self":
        """Learns from the nodes whose label y is 0 or 1, or one of two others; -1, NaN, and None
        among texts, is unknown."""
        given = self._network(X, edges, options, fitting=True)
        classes = numpy.array([0, 1])
        if y is not None:
            given.check_order(y)
            classes, known = _classes(y, len(given), self.anomalous)
            given = given.labelled(known)
        self.classes_ = classes
        return self._take(given)

    def _take(self, given):
        return self._fit(given.build())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def predict_proba(self, X: Any, *, edges: Any = None, **options: Any) -> numpy.ndarray:
        """[N, 2]: the probability of each node to be normal, and anomalous."""
        anomalous = self._probabilities(X, edges, options)
        return numpy.stack([1 - anomalous, anomalous], axis=1)

    def decision_function(self, X: Any, *, edges: Any = None, **options: Any) -> numpy.ndarray:
        """The probability minus the threshold: above 0 for nodes that count as anomalous."""
        return self.predict_proba(X, edges=edges, **options)[:, 1] - self.threshold_

    def predict(self, X: Any, *, edges: Any = None, **options: Any) -> numpy.ndarray:
        """The class of each node: 1, or the anomalous one of `classes_`, above the threshold."""
        above = self.decision_function(X, edges=edges, **options) > 0
        return self.classes_[above.astype(int)]

    def measure(
        self, X: Any, y: Any = None, *, edges: Any = None, **options: Any
    ) -> dict[str, float]:
        """ "macro_f1", "auroc", "auprc", "recall_at_k" and "ece" over the nodes with a label."""
        network = self._build(self._labelled(X, y, edges, options))
        return self._measure(network, self._score(network), self.threshold_)

    def score(self, X: Any, y: Any = None, *, edges: Any = None, **options: Any) -> float:
        """The area under the precision-recall curve, the "auprc" of measure()."""
        return self.measure(X, y, edges=edges, **options)["auprc"]

    def _labelled(self, X, y, edges, options):
        given = self._given(X, edges, options)
        given.check_order(y)
        return given if y is None else given.labelled(_codes(y, len(given), self.classes_))


class AnomalyDetector(Detector):
    """Finds anomalous nodes of a graph: learns from labelled nodes, gives each a probability.

    Every method takes features [N, F] and edges, or in place of both a Network or a `Data` of
    PyTorch Geometric. `validation` is the part of the labelled nodes that chooses epoch and
    threshold: None for the masks of the network, or else 0.2; 0 for none. `anomalous` is the label
    of anomalous nodes where it is not 1.

    >>> rng = numpy.random.default_rng(0)
    >>> x, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(600, 2))
    >>> y = (x[:, 0] > 1).astype(int)
    >>> detector = tasks.AnomalyDetector(epochs=30, members=1, hops=0, threads=1)
    >>> detector.fit(x, y, edges=edges).predict_proba(x, edges=edges).shape
    (200, 2)
    """

    _task, _kind = "anomaly", (b"anomaly",)
    _own = {"anomalous": None}

    if TYPE_CHECKING:

        def __init__(
            self, *, validation: Optional[float] = None, anomalous: Any = None,
            **settings: Unpack[AnomalyKeywords],
        ) -> None: ...  # fmt: skip

    def _opened(self):
        self.classes_ = numpy.array([0, 1])
        self._describe()

    @property
    def threshold_(self) -> float:
        """The probability above which a node counts as anomalous; validation chose it. Set it to
        choose another one, which save() also writes."""
        return self._info().threshold

    @threshold_.setter
    def threshold_(self, threshold: float) -> None:
        if not 0 <= threshold <= 1:
            raise BasinError(f"a threshold of {threshold}, expected 0 to 1")
        lib.basin_nodes_set_threshold(self._fitted(), threshold)

    def threshold_for(
        self, goal: str, X: Any = None, *, edges: Any = None, **options: Any
    ) -> Threshold:
        """The threshold for a goal: "precision=0.9", "recall=0.8", "fpr=0.01", "cost=1:20" (of an
        alert for nothing, and of an anomaly that is missed), by the validation nodes that the model
        keeps; or "alerts=100" of the nodes of X. `threshold_` takes it."""
        anomalous = numpy.empty(0) if X is None else self._probabilities(X, edges, options)
        if X is None and goal.startswith("alerts"):
            raise BasinError(f"{goal}: give X and edges, whose alerts are counted")
        result = sized("basin_nodes_threshold_result")
        check(
            lib.basin_nodes_threshold_for, result, self._fitted(), goal.encode(),
            ffi.from_buffer("double[]", anomalous), len(anomalous),
        )  # fmt: skip
        names = [field.name for field in dataclasses.fields(Threshold)][1:]
        return Threshold(result.threshold, *(tuple(getattr(result, name)) for name in names))

    def explain(self, X: Any, node: Any, *, edges: Any = None, **options: Any) -> Explanation:
        """Why a node scores as it does: neighbours and features that count. The node is a number,
        or the label of a row of a pandas table."""
        given = self._given(X, edges, options)
        return self._explain(self._build(given), given.number_of(node), self.threshold_)


# ---- labels ----


def _known(y, count):
    """Labels, and which of them are known."""
    values, known = known_labels(column_of(gaps_of(y), count), f"two classes of {count}")
    return (numpy.where(known, values, None) if values.dtype.kind == "O" else values), known


def _classes(y, count, anomalous):
    """The two classes, normal first, and the labels as 0, 1 and -1."""
    values, known = _known(y, count)
    classes = numpy.unique(values[known])
    found = f"y has the {len(classes)} classes {classes.tolist()[:9]}"
    if len(classes) > 2:
        raise BasinError(f"Only binary classification is supported. {found}")
    if len(classes) < 2:
        found = (
            f"y has 1 class, {classes.tolist()}" if len(classes) else "y has no class: all unknown"
        )
        raise BasinError(f"{found}; expected nodes that are normal and nodes that are anomalous")
    if anomalous is not None:
        if anomalous not in classes:
            raise BasinError(f"anomalous {anomalous!r}: {found}")
        classes = classes[numpy.argsort(classes == anomalous)]
    elif not numpy.array_equal(classes, [0, 1]):
        warn(f"{found}: {classes.tolist()[1]!r} counts as anomalous; anomalous= names another")
    return classes, _codes(values, count, classes)


def _codes(y, count, classes):
    """Labels as 0, 1 and -1, by these classes."""
    values, known = _known(y, count)
    strange = known & ~numpy.isin(values, classes)
    if strange.any():
        found = values[strange].tolist()[0]
        raise BasinError(f"y of {int(strange.argmax())} is {found!r}, expected {classes.tolist()}")
    return numpy.where(known, (values == classes[1]).astype("i8"), -1)
