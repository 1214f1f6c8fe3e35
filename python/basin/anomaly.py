"""Detectors of anomalous nodes."""

import dataclasses
from typing import TYPE_CHECKING, Any, Optional

import numpy

from basin import _plots
from basin._estimator import (
    ClassifierMixin,
    Estimator,
    column_of,
    known_of,
    score_of,
    share_of_nodes,
    sized,
)
from basin._library import BasinError, check, ffi, lib, owned, text, warn
from basin._network import Network, network_labels, view_of
from basin._table import Schema, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Self, Unpack

    from basin._keywords import AnomalyKeywords

__all__ = ["AnomalyDetector", "Explanation"]


@dataclasses.dataclass
class Explanation:
    """Why a node scores as it does.

    >>> import numpy, basin
    >>> rng = numpy.random.default_rng(0)
    >>> x, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(600, 2))
    >>> detector = basin.AnomalyDetector(epochs=30, members=1, hops=0, trees=0, threads=1)
    >>> why = detector.fit(x, x[:, 2] > 1, edges=edges).explain(x, node=7, edges=edges)
    >>> why.node, len(why.features) > 0
    (7, True)
    """

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
    names: Optional[list] = None
    """The names of columns: "column 0" where they have none."""

    def __str__(self) -> str:
        lines = [
            f"node {self.node}: probability {self.probability:.4g}, threshold "
            f"{self.threshold:.4g}, rank {self.rank}"
        ]
        for f in self.features[:5]:
            name = _plots.feature_name(f, self.names)
            lines.append(
                f"  {f['share']:+.4f}  {name}: {f['value']:.4g}, typical {f['typical']:.4g}"
            )
        for n in self.neighbours[:5]:
            lines.append(
                f"  {n['push']:+.4f}  node {n['node']}, probability {n['probability']:.4g}"
            )
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> "Figure":
        """Neighbours and features that count most, as a matplotlib figure; `ax` are two axes."""
        return _plots.explanation(self, self.names, ax=ax)


class AnomalyDetector(ClassifierMixin, Estimator):
    """Finds anomalous nodes of a graph: learns from labelled nodes, gives each a probability.

    Every method takes features [N, F] and edges, or in place of both a Network or a `Data` of
    PyTorch Geometric. `validation` is the part of the labelled nodes that chooses epoch and
    threshold: None for the masks of the network, or else 0.2; 0 for none. `anomalous` is the label
    of anomalous nodes where it is not 1.

    >>> import numpy, basin
    >>> rng = numpy.random.default_rng(0)
    >>> x, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(600, 2))
    >>> y = (x[:, 0] > 1).astype(int)
    >>> detector = basin.AnomalyDetector(epochs=30, members=1, hops=0, threads=1)
    >>> detector.fit(x, y, edges=edges).predict_proba(x, edges=edges).shape
    (200, 2)
    """

    _task, _prefix, _kind = "anomaly", "nodes", (b"anomaly",)
    _own = {"validation": None, "anomalous": None}
    validation: Optional[float]
    anomalous: Any

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            validation: Optional[float] = None,
            anomalous: Any = None,
            **settings: Unpack[AnomalyKeywords],
        ) -> None: ...

    def fit(self, X: Any, y: Any = None, *, edges: Any = None) -> "Self":  # noqa: N803
        """Trains on the nodes whose label y is 0 or 1, or one of two others; -1, and None among
        texts, is unknown."""
        given = _network(X, edges)
        if y is not None:
            given.check_order(y)
            self.classes_, known = _classes(y, len(given), self.anomalous)
            given = given.labelled(known)
        else:
            self.classes_ = numpy.array([0, 1])
        network = given.build()
        if network_labels(network) is None:
            name = type(self).__name__
            raise BasinError(f"{name} requires y to be passed, but the target y is None")
        data = sized(
            "basin_nodes_data", network=network, validation=share_of_nodes(self.validation)
        )
        self._train(self._settings(), data)
        self._describe()
        return self

    def _model_settings(self):
        return lib.basin_nodes_get_info(self._fitted()).settings

    def _opened(self):
        self.classes_ = numpy.array([0, 1])
        self._describe()

    def _describe(self):
        """What scikit-learn wants to know of the columns."""
        schema = self._schema()
        if schema is not None:
            self.n_features_in_ = schema.count
            self.__dict__.pop("feature_names_in_", None)
            if schema.names is not None:
                self.feature_names_in_ = numpy.array(schema.names, dtype=object)

    def _schema(self):
        pointer = lib.basin_nodes_get_info(self._fitted()).schema
        return Schema(pointer) if pointer else None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = tags.input_tags.string = True
        tags.target_tags.required = True
        return tags

    @property
    def threshold_(self) -> float:
        """The probability above which a node counts as anomalous; validation chose it."""
        return lib.basin_nodes_get_info(self._fitted()).threshold

    def predict_proba(self, X: Any, *, edges: Any = None) -> numpy.ndarray:  # noqa: N803
        """[N, 2]: the probability of each node to be normal, and anomalous."""
        given = self._given(X, edges)
        anomalous = self._score(self._build(given))[given.rows]
        return numpy.stack([1 - anomalous, anomalous], axis=1)

    def decision_function(self, X: Any, *, edges: Any = None) -> numpy.ndarray:  # noqa: N803
        """The probability minus the threshold: above 0 for nodes that count as anomalous."""
        return self.predict_proba(X, edges=edges)[:, 1] - self.threshold_

    def predict(self, X: Any, *, edges: Any = None) -> numpy.ndarray:  # noqa: N803
        """The class of each node: 1, or the anomalous one of `classes_`, above the threshold."""
        above = self.decision_function(X, edges=edges) > 0
        return self.classes_[above.astype(int)]

    def measure(self, X: Any, y: Any = None, *, edges: Any = None) -> dict[str, float]:  # noqa: N803
        """ "macro_f1", "auroc", "auprc", "recall_at_k" and "ece" over the nodes with a label."""
        network = self._build(self._labelled(X, y, edges))
        if network_labels(network) is None:
            raise BasinError("no labels to measure with: give y")
        labels = network_labels(network)
        part = numpy.where(labels >= 0, lib.BASIN_PART_TEST, lib.BASIN_PART_NONE).astype("u1")
        probability = self._score(network)
        result = ffi.new("basin_score *")
        check(
            lib.basin_nodes_measure, result, ffi.from_buffer("double[]", probability),
            self._fitted(), network, ffi.from_buffer("uint8_t[]", part), lib.BASIN_PART_TEST,
            self.threshold_,
        )  # fmt: skip
        return score_of(result)

    def score(self, X: Any, y: Any = None, *, edges: Any = None) -> float:  # noqa: N803
        """The area under the precision-recall curve, the "auprc" of measure()."""
        return self.measure(X, y, edges=edges)["auprc"]

    def explain(self, X: Any, node: Any, *, edges: Any = None) -> Explanation:  # noqa: N803
        """Why a node scores as it does: neighbours and features that count. The node is a number,
        or the label of a row of a pandas table."""
        given = self._given(X, edges)
        node, network = given.number_of(node), self._build(given)
        result = ffi.new("basin_nodes_explanation **")
        with self._backend().lock:
            check(lib.basin_nodes_explain, result, self._fitted(), network, [node], 1, ffi.NULL)
        explanation = owned(result[0], lib.basin_nodes_explanation_free)
        return _explanation(explanation, _names(network))

    def plot_curves(self, X: Any, y: Any = None, *, edges: Any = None, ax: Any = None) -> "Figure":  # noqa: N803, E501
        """Precision by recall and the ROC curve over the nodes with a label, as a matplotlib
        figure; `ax` are two axes."""
        given = self._labelled(X, y, edges)
        labels = given.labels
        if labels is None or len(numpy.unique(labels[labels >= 0])) < 2:
            raise BasinError("curves want labels of both kinds: give y")
        probability = self.predict_proba(given)[:, 1]
        return _plots.curves(probability[labels >= 0], labels[labels >= 0], ax)

    def _given(self, X, edges):  # noqa: N803
        """A network whose features are as many as those of training."""
        self._fitted()
        given, schema = _network(X, edges), self._schema()
        named = schema is not None and schema.names is not None and given.columns
        wanted = getattr(self, "n_features_in_", given.features)
        if not named and given.columns is None and given.features != wanted:
            raise BasinError(
                f"X has {given.features} features, but {type(self).__name__} is expecting {wanted} "
                "features as input"
            )
        return given

    def _labelled(self, X, y, edges):  # noqa: N803
        given = self._given(X, edges)
        given.check_order(y)
        return given if y is None else given.labelled(_codes(y, len(given), self.classes_))

    def _build(self, given):
        """The library's network, read as the one that was trained on."""
        return given.build(lib.basin_nodes_get_info(self._fitted()).schema)

    def _score(self, network):
        probability = numpy.empty(view_of(network).nodes)
        with self._backend().lock:
            check(
                lib.basin_nodes_score, ffi.from_buffer("double[]", probability), self._fitted(),
                network, ffi.NULL,
            )  # fmt: skip
        return probability


def _network(X, edges):  # noqa: N803
    if isinstance(X, Network) or hasattr(X, "edge_index"):
        if edges is not None:
            raise BasinError(f"edges beside a {type(X).__name__}, which has its own")
        return Network.of(X)
    if edges is None:
        Table(X)  # says what is wrong with the features first
        raise BasinError("no edges: give edges=, or a Network")
    return Network(X, edges)


# ---- labels ----


def _known(y, count):
    """Labels, and which of them are known."""
    values = column_of(y, count)
    if values.dtype.kind == "f" and not numpy.array_equal(values, numpy.rint(values)):
        raise BasinError(f"Unknown label type: y is continuous, wanted two classes of {count}")
    if values.dtype.kind in "iuf":
        return values, values != -1
    if values.dtype.kind == "O":
        known = known_of(values)
        return numpy.where(known, values, None), known
    return values, numpy.ones(count, bool)


def _classes(y, count, anomalous):
    """The two classes, normal first, and the labels as 0, 1 and -1."""
    values, known = _known(y, count)
    classes = numpy.unique(values[known])
    told = f"y has the {len(classes)} classes {classes.tolist()[:9]}"
    if len(classes) > 2:
        raise BasinError(f"Only binary classification is supported. {told}")
    if len(classes) < 2:
        told = (
            f"y has 1 class, {classes.tolist()}" if len(classes) else "y has no class: all unknown"
        )
        raise BasinError(f"{told}; wanted nodes that are normal and nodes that are anomalous")
    if anomalous is not None:
        if anomalous not in classes:
            raise BasinError(f"anomalous {anomalous!r}: {told}")
        classes = classes[numpy.argsort(classes == anomalous)]
    elif not numpy.array_equal(classes, [0, 1]):
        warn(f"{told}: {classes.tolist()[1]!r} counts as anomalous; anomalous= says otherwise")
    return classes, _codes(values, count, classes)


def _codes(y, count, classes):
    """Labels as 0, 1 and -1, by these classes."""
    values, known = _known(y, count)
    strange = known & ~numpy.isin(values, classes)
    if strange.any():
        found = values[strange].tolist()[0]
        raise BasinError(f"y of {int(strange.argmax())} is {found!r}, wanted {classes.tolist()}")
    return numpy.where(known, (values == classes[1]).astype("i8"), -1)


_NEIGHBOUR = ("node", "share", "returned", "push", "probability")
_FEATURE = ("column", "hop", "value", "typical", "share")


def _names(network):
    """The names of features; those without one go by their place."""
    names = [lib.basin_network_column(network, i) for i in range(view_of(network).features)]
    return [text(name) if name else f"column {i}" for i, name in enumerate(names)]


def _explanation(e, names):
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
        names=names,
    )
