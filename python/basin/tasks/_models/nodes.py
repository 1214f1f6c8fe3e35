"""What estimators of nodes share: networks from what was given, explanations, scikit-learn's
facts."""

import copy
import dataclasses
import weakref
from typing import Any, Optional

import numpy

from basin._engine.plots import table_html
from basin.tasks._data.frames import is_table, names_of
from basin.tasks._data.network import Network, network_labels, relation_of, view_of
from basin.tasks._data.table import Schema, Table
from basin.tasks._library import BasinError, check, ffi, lib, made, owned, sized, text, warn
from basin.tasks._models.estimator import Estimator, score_of, split_of_nodes
from basin.tasks._models.sklearn import ClassifierMixin

# Of the last prediction. Not attributes: predicting leaves an estimator as it was.
_drifts: "weakref.WeakKeyDictionary[Any, Drift]" = weakref.WeakKeyDictionary()


@dataclasses.dataclass(repr=False)
class Explanation:
    """Why a node scores as it does.

    >>> rng = numpy.random.default_rng(0)
    >>> x, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(600, 2))
    >>> detector = tasks.AnomalyDetector(epochs=30, members=1, hops=0, trees=0, threads=1)
    >>> why = detector.fit(x, x[:, 2] > 1, edges=edges).explain(x, node=7, edges=edges)
    >>> why.node, len(why.features) > 0
    (7, True)
    """

    node: int
    probability: float
    threshold: Optional[float]
    """None of classes, which have none."""
    rank: int
    """1: the highest of all nodes."""
    energy: float
    """At the end of the descent; NaN where the model has none."""
    neighbours: list
    """Dicts with node, id, share, returned, push and probability, by falling size of their push."""
    features: list
    """Dicts with name, column, hop, value, typical and share, by falling size of their share."""
    of: Any = None
    """The class that is explained; None of detectors."""
    logit: float = numpy.nan
    """Of the score before calibration."""
    typical_logit: float = numpy.nan
    """Of a typical node in its place. The distance between both is the sum of the features' shares,
    `rest` and `missed`."""
    rest: float = 0.0
    """What comes from the graph further away than was looked at."""
    missed: float = 0.0
    """What the steps of the integral leave of the distance; small."""

    def __repr__(self) -> str:
        counts = f"{len(self.features)} features, {len(self.neighbours)} neighbours"
        return f"<Explanation of {self._title()}; {counts}>"

    def _title(self):
        of = "" if self.of is None else f" of class {self.of}"
        threshold = "" if self.threshold is None else f", threshold {self.threshold:.4g}"
        found = f"probability {self.probability:.4g}{threshold}"
        return f"node {self.node}{of}: {found}, rank {self.rank}"

    def _rows(self):
        """What counts most: its size, and what it is."""
        for f in self.features[:5]:
            yield f["share"], f"{f['name']}: {f['value']:.4g}, typical {f['typical']:.4g}"
        for n in self.neighbours[:5]:
            yield n["push"], f"node {n.get('id', n['node'])}, probability {n['probability']:.4g}"
        if abs(self.missed) > 0.02 * max(abs(self.logit - self.typical_logit), 0.5):
            yield self.missed, "missed by the integral"

    def __str__(self) -> str:
        lines = [f"  {size:+.4f}  {what}" for size, what in self._rows()]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        return table_html(self._title(), [(f"{n:+.4f}", what) for n, what in self._rows()])


@dataclasses.dataclass
class Drift:
    """How far columns have moved since training."""

    nodes: int
    few: bool
    """Too few nodes to measure it."""
    columns: list
    """Dicts with name, index (population stability index: below 0.1 little, above 0.25 much), level
    (0 little, 1 some, 2 much), then and now (medians; of a category the share of nodes with none of
    its values), by falling index."""


class NodeEstimator(ClassifierMixin, Estimator):
    """An estimator that learns from the labelled nodes of one graph."""

    _task, _prefix = "node", "nodes"
    _own = {"validation": None}
    validation: Optional[float]

    def _network(self, X, edges, options, fitting=False):
        """What was given, as a Network."""
        if isinstance(X, Network) or hasattr(X, "edge_index"):
            if edges is not None:
                raise BasinError(f"edges beside a {type(X).__name__}, which has its own")
            given = copy.copy(Network.of(X, **options))
        else:
            if not is_table(X):
                Table(X)  # reports errors of the features first
            if edges is None and fitting:
                warn("no edges: each node is taken by itself; edges=[] for none")
            elif edges is None and self.__dict__.get("_edges") != 0:
                raise BasinError("no edges: give edges= ([] where there are none), or a Network")
            given = Network(X, [] if edges is None else edges, **options)
        given._options = {**given._options, "classes": self._task == "node"}
        return given

    def _fit(self, network):
        """Trains on the labels of a library's network."""
        if network_labels(network) is None:
            name = type(self).__name__
            raise BasinError(f"{name} requires y to be passed, but the target y is None")
        split = split_of_nodes(self.validation)
        data = sized("basin_nodes_data", network=network, **split)
        self._train(self._settings(), data)
        relations = range(view_of(network).relations)
        self._edges = sum(relation_of(network, r).edges for r in relations)
        self._describe()
        return self

    # ---- the model ----

    def _info(self):
        return lib.basin_nodes_get_info(self._fitted())

    def _model_settings(self):
        return self._info().settings

    def _schema(self):
        pointer = self._info().schema
        return Schema(pointer) if pointer else None

    def _describe(self):
        """What scikit-learn needs to know of the columns."""
        schema = self._schema()
        if schema is not None:
            self.n_features_in_ = schema.count
            self.__dict__.pop("feature_names_in_", None)
            if schema.names is not None:
                self.feature_names_in_ = numpy.array(schema.names, dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = True
        tags.target_tags.required = True
        return tags

    def _given(self, X, edges, options):
        """A network whose features are as many as those of training."""
        self._fitted()
        schema = self._schema()
        if schema is not None and schema.id in names_of(X):
            options = {"id": schema.id, **options}
        given = self._network(X, edges, options)
        named = schema is not None and schema.names is not None and given.columns
        expected = getattr(self, "n_features_in_", given.features)
        if not (named or given.columns or given.from_files) and given.features != expected:
            raise BasinError(
                f"X has {given.features} features, but {type(self).__name__} is expecting "
                f"{expected} features as input"
            )
        return given

    def _build(self, given):
        """The library's network, read as the one that was trained on."""
        return given.build(self._info().schema)

    def _look_for_drift(self, network):
        """Keeps how far columns have moved since training, and warns of those that moved much."""
        _drifts.pop(self, None)
        new, free = lib.basin_nodes_drift_new, lib.basin_nodes_drift_free
        try:
            drift = made(new, free, self._fitted(), network, 0)
        except BasinError:  # a model that lacks what it takes
            return
        names = ("index", "level", "then", "now")
        columns = [drift.column[i] for i in range(drift.columns)]
        rows = [{"name": text(c.name), **{n: getattr(c, n) for n in names}} for c in columns]
        _drifts[self] = Drift(drift.nodes, drift.few, rows)
        moved = [row["name"] for row in rows if row["level"] > 1]
        if moved:
            warn(f"columns that moved much since training: {', '.join(moved)}; see drift_")

    @property
    def drift_(self) -> Drift:
        """How far columns have moved since training, of the last predict_proba()."""
        found = _drifts.get(self)
        if found is None:
            raise BasinError("no drift: predict_proba finds it, of models that keep what they need")
        return found

    def _probabilities(self, X, edges, options, *shape):
        """Those of the nodes that are asked for, [len(X), ..]; drift is looked for."""
        given = self._given(X, edges, options)
        network = self._build(given)
        self._look_for_drift(network)
        return self._score(network, *shape)[given.rows]

    def _score(self, network, *shape):
        """Probabilities [nodes, ..] of a library's network."""
        probability = numpy.empty((view_of(network).nodes, *shape))
        with self._backend().lock:
            check(
                lib.basin_nodes_predict, ffi.from_buffer("double[]", probability), self._fitted(),
                network, ffi.NULL,
            )  # fmt: skip
        return probability

    def _trained(self):
        """The model that evaluations are of."""
        return self._fitted()

    def _measure(self, network, probability, threshold=0.0):
        labels = network_labels(network)
        if labels is None:
            raise BasinError("no labels to measure with: give y")
        part = numpy.where(labels >= 0, lib.BASIN_SPLIT_TEST, lib.BASIN_SPLIT_NONE).astype("u1")
        result = ffi.new("basin_score *")
        check(
            lib.basin_nodes_evaluate, result, ffi.from_buffer("double[]", probability),
            self._trained(), network, ffi.from_buffer("uint8_t[]", part), lib.BASIN_SPLIT_TEST,
            threshold,
        )  # fmt: skip
        return score_of(result)

    def _explain(self, network, node, threshold, of=None, **options):
        result = ffi.new("basin_nodes_explanation **")
        how = sized("basin_nodes_explain_options", **options)
        with self._backend().lock:
            check(lib.basin_nodes_explain, result, self._fitted(), network, [node], 1, how)
        return explanation_of(result[0], network, threshold, of)


def explanation_of(result, network, threshold=None, of=None):
    """The Explanation that the library made, which is freed."""
    e = owned(result, lib.basin_nodes_explanation_free)
    same = ("node", "rank", "logit", "typical_logit", "rest", "missed")
    neighbours = _rows(e.neighbour, e.neighbours, _NEIGHBOUR)
    features = enumerate(_rows(e.feature, e.features, _FEATURE))
    return Explanation(
        **{name: getattr(e, name) for name in same}, threshold=threshold, of=of,
        probability=e.probability, energy=e.energy if e.has_energy else numpy.nan,
        neighbours=[{**row, "id": id_of(network, row["node"])} for row in neighbours],
        features=[{**row, "name": _reason(network, e.feature + i)} for i, row in features],
    )  # fmt: skip


_NEIGHBOUR = ("node", "share", "returned", "push", "probability")
_FEATURE = ("column", "hop", "value", "typical", "share")


def _rows(entries, count, names):
    return [{name: getattr(entries[i], name) for name in names} for i in range(count)]


def _reason(network, feature):
    room = ffi.new("char[]", lib.BASIN_MAX_REASON)
    return text(lib.basin_nodes_reason_name(room, network, feature))


def id_of(network, node):
    room = ffi.new("char[]", lib.BASIN_MAX_NODE)
    return text(lib.basin_network_id(network, node, room))
