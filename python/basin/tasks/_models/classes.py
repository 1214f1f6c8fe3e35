"""Classes of nodes."""

import numbers
import re
from typing import TYPE_CHECKING, Any, Optional

import numpy

from basin.tasks._library import BasinError, check, ffi, lib, text
from basin.tasks._models.estimator import column_of, known_labels
from basin.tasks._models.nodes import Explanation, NodeEstimator

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from basin.tasks._keywords import NodeKeywords


class NodeClassifier(NodeEstimator):
    """Predicts the class of every node of a graph: learns from the nodes that have a label.

    Every method takes features [N, F] and edges, or a Network in place of both. `validation` is
    the part of the labelled nodes that chooses the epoch: None for the masks of the network, or
    else 0.2; 0 for none.

    >>> rng = numpy.random.default_rng(0)
    >>> x, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(600, 2))
    >>> y = numpy.array(["low", "high"])[(x[:, 0] > 0).astype(int)]
    >>> model = tasks.NodeClassifier(epochs=30, hops=0, smoothing=0, threads=1)
    >>> model.fit(x, y, edges=edges).predict_proba(x, edges=edges).shape
    (200, 2)
    >>> model.classes_.tolist()
    ['high', 'low']
    """

    _kind = (b"node",)

    if TYPE_CHECKING:

        def __init__(
            self, *, validation: Optional[float] = None, **settings: Unpack[NodeKeywords]
        ) -> None: ...

    def fit(self, X: Any, y: Any = None, *, edges: Any = None, **options: Any) -> "Self":
        """Trains on nodes that have a label: numbers (-1: unknown) or texts (None: unknown)."""
        network, values = _labelled(self._network(X, edges, options, fitting=True), y)
        self._fit(network)
        self._opened()
        if values is not None:
            known = {str(value): value for value in values.tolist()}
            self.classes_ = numpy.array([known[name] for name in self._names()])
        return self

    def _names(self):
        model, classes = self._fitted(), self._info().classes
        return [text(lib.basin_nodes_class(model, c)) for c in range(classes)]

    def _opened(self):
        names = self._names()
        whole = all(_is_number(name) for name in names)
        self.classes_ = numpy.array([int(name) for name in names] if whole else names)
        self._describe()

    def predict_proba(self, X: Any, *, edges: Any = None, **options: Any) -> numpy.ndarray:
        """[N, C]: the probability of each node to be of each of `classes_`."""
        return self._probabilities(X, edges, options, self._info().classes)

    def predict(self, X: Any, *, edges: Any = None, **options: Any) -> numpy.ndarray:
        """The most probable class of each node."""
        likeliest = self.predict_proba(X, edges=edges, **options).argmax(axis=1)
        return self.classes_[likeliest]

    def measure(
        self, X: Any, y: Any = None, *, edges: Any = None, **options: Any
    ) -> dict[str, float]:
        """ "accuracy", "macro_f1", "auroc" and "loss" over the nodes with a label."""
        network, _ = _labelled(self._given(X, edges, options), y, self._info().schema)
        return self._measure(network, self._predict(network))

    def score(self, X: Any, y: Any = None, *, edges: Any = None, **options: Any) -> float:
        """The "accuracy" of measure()."""
        return self.measure(X, y, edges=edges, **options)["accuracy"]

    def explain(
        self, X: Any, node: Any, *, edges: Any = None, of: Any = None, **options: Any
    ) -> Explanation:
        """Why a node is of class `of`, by default the one that is predicted. The node is a number,
        or the label of a row of a pandas table."""
        given = self._given(X, edges, options)
        node, network = given.number_of(node), self._build(given)
        if of is None:
            number = int(self._predict(network)[node].argmax())
        elif of in self.classes_:
            number = int(numpy.flatnonzero(self.classes_ == of)[0])
        else:
            raise BasinError(f"of {of!r}, expected one of {self.classes_.tolist()}")
        return self._explain(network, node, None, self.classes_[number], number=number)

    def _predict(self, network):
        return self._score(network, self._info().classes)


def _labelled(given, y, schema=ffi.NULL):
    """The library's network with these labels, by name, and the values that they stand for."""
    given.check_order(y)
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
    values, known = known_labels(column_of(y, count), "classes: whole numbers or texts")
    if values.dtype.kind == "f":
        values = values.astype("i8")
    if values.dtype.kind == "O":
        whole = all(isinstance(value, numbers.Integral) for value in values[known])
        values = numpy.where(known, values, -1 if whole else "").astype("i8" if whole else str)
    return values, known
