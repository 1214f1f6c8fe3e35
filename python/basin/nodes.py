"""Classes of nodes."""

import copy
import numbers
import re
from typing import TYPE_CHECKING, Any, Optional

import numpy

from basin._estimator import (
    ClassifierMixin,
    Estimator,
    column_of,
    known_of,
    score_of,
    share_of_nodes,
    sized,
)
from basin._library import BasinError, check, ffi, lib, owned, text
from basin._network import Network, network_labels, view_of
from basin.anomaly import _FEATURE, _NEIGHBOUR

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from basin._keywords import NodeKeywords

__all__ = ["NodeClassifier"]


class NodeClassifier(ClassifierMixin, Estimator):
    """Tells the class of every node of a graph: learns from the nodes that have a label.

    Every method takes features [N, F] and edges, or a Network in place of both. `validation` is
    the part of the labelled nodes that chooses the epoch: None for the masks of the network, or
    else 0.2; 0 for none.

    >>> import numpy, basin
    >>> rng = numpy.random.default_rng(0)
    >>> x, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(600, 2))
    >>> y = numpy.array(["low", "high"])[(x[:, 0] > 0).astype(int)]
    >>> model = basin.NodeClassifier(epochs=30, hops=0, smoothing=0, threads=1)
    >>> model.fit(x, y, edges=edges).predict_proba(x, edges=edges).shape
    (200, 2)
    >>> model.classes_.tolist()
    ['high', 'low']
    """

    _task, _prefix, _kind = "node", "nodes", (b"node",)
    _own = {"validation": None}
    validation: Optional[float]

    if TYPE_CHECKING:

        def __init__(
            self, *, validation: Optional[float] = None, **settings: Unpack[NodeKeywords]
        ) -> None: ...

    def fit(self, X: Any, y: Any = None, *, edges: Any = None) -> "Self":  # noqa: N803
        """Trains on the nodes that have a label: numbers, of which -1 is unknown, or texts, of
        which None is."""
        network, values = _labelled(X, edges, y)
        if network_labels(network) is None:
            raise BasinError(f"{type(self).__name__} requires y to be passed: labels of nodes")
        data = sized(
            "basin_nodes_data", network=network, validation=share_of_nodes(self.validation)
        )
        self._train(self._settings(), data)
        self.n_features_in_ = view_of(network).features
        self._opened()
        if values is not None:
            known = {str(value): value for value in values.tolist()}
            self.classes_ = numpy.array([known[name] for name in self._names()])
        return self

    def _names(self):
        model = self._fitted()
        info = lib.basin_nodes_get_info(model)
        return [text(lib.basin_nodes_class(model, c)) for c in range(info.classes)]

    def _model_settings(self):
        return lib.basin_nodes_get_info(self._fitted()).settings

    def _opened(self):
        names = self._names()
        whole = all(_is_number(name) for name in names)
        self.classes_ = numpy.array([int(name) for name in names] if whole else names)

    def predict_proba(self, X: Any, *, edges: Any = None) -> numpy.ndarray:  # noqa: N803
        """[N, C]: the probability of each node to be of each of `classes_`."""
        given = _given(X, edges)
        network = given.build(lib.basin_nodes_get_info(self._fitted()).schema)
        return self._predict(network)[getattr(given, "rows", slice(None))]

    def predict(self, X: Any, *, edges: Any = None) -> numpy.ndarray:  # noqa: N803
        """The most probable class of each node."""
        likeliest = self.predict_proba(X, edges=edges).argmax(axis=1)
        return self.classes_[likeliest]

    def measure(self, X: Any, y: Any = None, *, edges: Any = None) -> dict[str, float]:  # noqa: N803
        """ "accuracy", "macro_f1", "auroc" and "loss" over the nodes with a label."""
        network, _ = _labelled(X, edges, y, lib.basin_nodes_get_info(self._fitted()).schema)
        if network_labels(network) is None:
            raise BasinError("no labels to measure with: give y")
        labels = network_labels(network)
        part = numpy.where(labels >= 0, lib.BASIN_PART_TEST, lib.BASIN_PART_NONE).astype("u1")
        probability, result = self._predict(network), ffi.new("basin_score *")
        check(
            lib.basin_nodes_measure, result, ffi.from_buffer("double[]", probability),
            self._fitted(), network, ffi.from_buffer("uint8_t[]", part), lib.BASIN_PART_TEST, 0.0,
        )  # fmt: skip
        return score_of(result)

    def score(self, X: Any, y: Any = None, *, edges: Any = None) -> float:  # noqa: N803
        """The "accuracy" of measure()."""
        return self.measure(X, y, edges=edges)["accuracy"]

    def explain(self, X: Any, node: int, *, edges: Any = None, of: Any = None) -> dict[str, Any]:  # noqa: N803, E501
        """Why a node is of class `of`, by default the one that is predicted: a dict with node,
        class, probability, neighbours and features."""
        network = _given(X, edges).build(lib.basin_nodes_get_info(self._fitted()).schema)
        if of is None:
            number = int(self._predict(network)[node].argmax())
        elif of in self.classes_:
            number = int(numpy.flatnonzero(self.classes_ == of)[0])
        else:
            raise BasinError(f"of {of!r}, wanted one of {self.classes_.tolist()}")
        result = ffi.new("basin_nodes_explanation **")
        with self._backend().lock:
            work = sized("basin_nodes_work", number=number)
            check(lib.basin_nodes_explain, result, self._fitted(), network, [node], 1, work)
        e = owned(result[0], lib.basin_nodes_explanation_free)
        return {
            "node": e.node,
            "class": self.classes_[number],
            "probability": e.probability,
            "neighbours": _rows(e.neighbour, e.neighbours, _NEIGHBOUR),
            "features": _rows(e.feature, e.features, _FEATURE),
        }

    def _predict(self, network):
        classes = lib.basin_nodes_get_info(self._fitted()).classes
        probability = numpy.empty((view_of(network).nodes, classes))
        with self._backend().lock:
            check(
                lib.basin_nodes_score, ffi.from_buffer("double[]", probability), self._fitted(),
                network, ffi.NULL,
            )  # fmt: skip
        return probability


def _rows(entries, count, names):
    return [{name: getattr(entries[i], name) for name in names} for i in range(count)]


def _given(X, edges):  # noqa: N803
    if isinstance(X, Network):
        if edges is not None:
            raise BasinError("edges beside a Network, which has its own")
        given = copy.copy(X)
        given._options = {**X._options, "classes": True}
        return given
    if edges is None:
        raise BasinError("no edges: give edges=, or a Network")
    return Network(X, edges)


def _labelled(X, edges, y, schema=ffi.NULL):  # noqa: N803
    """The library's network with these labels, by name, and the values that they stand for."""
    given = _given(X, edges)
    if y is None:
        return given.build(schema), None
    values, known = _known(y, len(given))
    classes = numpy.unique(values[known])
    codes = numpy.full(len(values), -1, "i8")
    codes[known] = numpy.searchsorted(classes, values[known])
    network = given.labelled(codes).build(schema)
    names = [ffi.new("char[]", str(value).encode()) for value in classes.tolist()]
    check(lib.basin_network_set_classes, network, ffi.new("const char *[]", names), len(names))
    return network, classes


def _is_number(name):
    """Whether a whole number is written so: "007" is a text."""
    return re.fullmatch("0|-?[1-9][0-9]*", name) is not None


def _known(y, count):
    """Labels, and which of them are known."""
    values = column_of(y, count)
    if values.dtype.kind == "f":
        if not numpy.array_equal(values, numpy.rint(values)):
            raise BasinError("y holds fractions, wanted classes: whole numbers or texts")
        values = values.astype("i8")
    if values.dtype.kind in "iu":
        return values, values != -1
    if values.dtype.kind == "O":
        known = known_of(values)
        if all(isinstance(value, numbers.Integral) for value in values[known]):
            return numpy.where(known, values, -1).astype("i8"), known
        return numpy.where(known, values, "").astype(str), known
    return values, numpy.ones(len(values), bool)
