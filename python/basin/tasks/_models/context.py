"""Anomalies from a few labels, without training."""

import dataclasses
from typing import Any, Optional

import numpy

from basin.tasks._data.network import Network, network_labels, relation_of, view_of
from basin.tasks._library import BasinError, check, ffi, lib, made, path_of, sized, text
from basin.tasks._models.anomaly import Detector
from basin.tasks._models.nodes import id_of


@dataclasses.dataclass
class Retrieval:
    """Which labelled nodes a score was retrieved from.

    >>> x = numpy.random.default_rng(0).normal(size=(50, 3))
    >>> y = numpy.where(numpy.arange(50) < 30, x[:, 0] > 0, -1)
    >>> why = tasks.InContextDetector(threads=1).fit(x, y).explain(x, 40)
    >>> why.node, len(why.sources), why.energy.shape
    (40, 30, (12, 2))
    """

    node: int
    probability: float
    logit: float
    odds: float
    """The part of the logit that is the labels' log odds."""
    anomalous: float
    """The share of what was retrieved that is from anomalies."""
    sources: list
    """Dicts with node, id, label (0 or 1), share (of what was retrieved), moves (the logit, if the
    node counted more) and agrees (the columns in which both agree most: dicts with column, value,
    stored and agreement), by falling share."""
    energy: numpy.ndarray
    """[blocks, 2] at the beginning and the end of each block."""

    def __str__(self) -> str:
        head = f"node {self.node}: probability {self.probability:.4g}, retrieved from anomalies "
        lines = [f"{head}{self.anomalous:.3f}"]
        for s in self.sources[:10]:
            agrees = "; ".join(f"{a['column']} {a['stored']:.3g}" for a in s["agrees"])
            kind = "anomalous" if s["label"] else "normal"
            lines.append(f"  {s['share']:.4f}  node {s['id']}, {kind}: {agrees}")
        return "\n".join(lines)


class InContextDetector(Detector):
    """Finds anomalous nodes from a few labels without training: labelled nodes are stored patterns
    of an Energy Transformer that was trained beforehand, on synthetic tables, to compare rows.

    fit() stores; a table needs no edges. Every method takes features [N, F] and edges, or in place
    of both a Network or a `Data` of PyTorch Geometric. Columns are ranked among those of fit(), so
    that a score does not depend on the other nodes. Where the nodes and edges are those of
    fit(), the labels of neighbours are known; in another network no label is.

    passes: scores are means over that many (1 to 4), each with other codes of the columns. [1]
    labels: how many are stored at most; if there are more, all anomalies, the normal nodes nearest
        to them, and others at random. None: 2000, or fewer where columns are many. [None]
    weights: a file of weights in place of the one that comes with Basin. [None]
    anomalous: the label of anomalous nodes where it is not 1. [None]

    >>> rng = numpy.random.default_rng(0)
    >>> x = rng.normal(size=(200, 4))
    >>> y = numpy.where(numpy.arange(200) < 60, x[:, 0] > 1, -1)
    >>> detector = tasks.InContextDetector(threads=1).fit(x, y)
    >>> p = detector.predict_proba(x)[60:, 1]
    >>> bool(p[x[60:, 0] > 1].mean() > p[x[60:, 0] <= 1].mean())
    True
    """

    _task = ""
    _only = {
        "passes": 1, "labels": None, "weights": None, "anomalous": None, "backend": "cpu",
        "threads": 0,
    }  # fmt: skip
    passes: int
    labels: Optional[int]
    weights: Any
    _stored: Network
    _base: Any

    def _network(self, X, edges, options, fitting=False):
        alone = not (isinstance(X, Network) or hasattr(X, "edge_index"))
        if edges is None and fitting and alone:
            edges = []
        return super()._network(X, edges, {"missing": "keep", **options}, fitting)

    def _take(self, given):
        self._stored = given
        self._base = network = given.build()
        if network_labels(network) is None:
            raise BasinError("InContextDetector requires y to be passed, but the target y is None")
        backend = self._backend()
        weights = ffi.NULL if self.weights is None else path_of(self.weights)
        options = sized("basin_context_options", labels=self.labels or 0, passes=self.passes)
        with backend.lock:
            model = made(
                lib.basin_context_open, lib.basin_context_close, weights, backend.pointer,
                needs=(backend.pointer, network),
            )  # fmt: skip
            check(lib.basin_context_read, model, network, 0)
            check(lib.basin_context_store, model, options)
        self._model = model
        relations = range(view_of(network).relations)
        self._edges = sum(relation_of(network, r).edges for r in relations)
        self.__dict__.pop("n_features_in_", None)
        self._describe()
        return self

    def _info(self):
        return lib.basin_context_get_info(self._fitted())

    def _trained(self):
        self._fitted()
        return ffi.NULL

    def _look_for_drift(self, network):
        """Columns are ranked among those of fit()."""

    def _score(self, network, *shape):
        probability = numpy.empty((view_of(network).nodes, *shape))
        with self._backend().lock:
            check(
                lib.basin_context_predict_network, ffi.from_buffer("double[]", probability),
                self._fitted(), network,
            )  # fmt: skip
        return probability

    def label(self, node: Any, label: Any) -> "InContextDetector":
        """Adds or corrects the label of a node of fit()'s; the next score knows it."""
        number, code = self._stored.number_of(node), int(label == self.classes_[1])
        if label not in self.classes_:
            raise BasinError(f"the label {label!r}, expected one of {self.classes_.tolist()}")
        with self._backend().lock:
            check(lib.basin_context_label, self._fitted(), [number], [code], 1)
        labels = network_labels(self._base)
        labels[number] = code
        check(lib.basin_network_set_labels, self._base, ffi.cast("int32_t *", labels.ctypes.data))
        whole = Network.__getitem__(self._stored, slice(None))
        whole._rows = None
        self._stored = whole.labelled(labels)
        return self

    def explain(self, X: Any, node: Any, *, edges: Any = None, **options: Any) -> Retrieval:
        """The labelled nodes that a node's score was retrieved from. The node is a number, or the
        label of a row of a pandas table."""
        given = self._given(X, edges, options)
        network, free = self._build(given), lib.basin_context_explanation_free
        with self._backend().lock:
            asked = self._fitted(), network, given.number_of(node)
            e = made(lib.basin_context_explain, free, *asked)
        ends = numpy.array([e.energy[i] for i in range(2 * e.blocks)])
        return Retrieval(
            node=e.node, probability=e.probability, logit=e.logit, odds=e.odds,
            anomalous=e.anomalous, sources=[self._source(e.source[i]) for i in range(e.sources)],
            energy=ends.reshape(-1, 2),
        )  # fmt: skip

    def _source(self, source):
        room, agrees = ffi.new("char[]", lib.BASIN_MAX_COLUMN), []
        for i in range(lib.BASIN_CONTEXT_AGREEING):
            if source.column[i] >= 0:
                name = text(lib.basin_context_column(room, self._fitted(), source.column[i]))
                agrees.append({
                    "column": name, "value": source.asked[i], "stored": source.value[i],
                    "agreement": source.agreement[i],
                })  # fmt: skip
        return {
            "node": source.node, "id": id_of(self._base, source.node), "label": source.label,
            "share": source.share, "moves": source.move, "agrees": agrees,
        }  # fmt: skip

    # ---- what scikit-learn asks, and what only trained models have ----

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k not in ("_model", "_base")}

    def __setstate__(self, state):
        self.__dict__.update(state)
        if "_stored" in state:
            self._take(self._stored)

    def _no(self, *args: Any, **options: Any) -> Any:
        raise AttributeError("an InContextDetector stores and does not train: no model file")

    save = load = property(_no)  # type: ignore
    settings_ = drift_ = property(_no)  # type: ignore
