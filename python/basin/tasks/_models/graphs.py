"""Classes and values of small graphs."""

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

import numpy

from basin._engine.plots import table_html
from basin.tasks._data.graphset import GraphSet
from basin.tasks._data.table import array_of_any
from basin.tasks._library import BasinError, check, ffi, lib, owned, sized
from basin.tasks._models.estimator import Estimator, column_of, narrowed, share_of, there_of
from basin.tasks._models.sklearn import ClassifierMixin, RegressorMixin

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from basin.tasks._keywords import GraphsKeywords

_OWN = {"validation": 0.1, "directed": False}


@dataclasses.dataclass(repr=False)
class GraphExplanation:
    """Which nodes and edges of a graph an output depends on: how it changes where the graph lacks
    one. What an atom of a molecule adds is the change where hydrogen takes its place.

    >>> rings = [[[i, (i + 1) % n] for i in range(n)] for n in range(5, 15)]
    >>> stars = [[[0, i] for i in range(1, n)] for n in range(5, 15)]
    >>> model = tasks.GraphClassifier(epochs=30, dim=16, memories=16, threads=1)
    >>> why = model.fit(rings + stars, ["ring"] * 10 + ["star"] * 10).explain(stars, 4)
    >>> why.nodes.shape, why.edge.shape
    ((9,), (16, 2))
    >>> str(why).splitlines()[0].partition(":")[0]
    'GraphExplanation(column 1'
    """

    column: int
    """The place of the class among classes_, or the number of the value."""
    output: float
    """The logarithm of the odds of that class, or the value."""
    blank: float
    """The mean of training molecules; NaN for other graphs."""
    nodes: numpy.ndarray
    """[nodes]: what each adds, of molecules to the difference of the two."""
    edges: numpy.ndarray
    """[edges]: the same of edges; one that goes both ways has half in each."""
    edge: numpy.ndarray
    """[edges, 2]: from, to; an edge that goes both ways is there twice."""
    predicted: float
    """The probability of that class, or the value, that predictions have."""

    def _title(self):
        counts = f"{len(self.nodes)} nodes, {len(self.edge)} edges"
        return f"column {self.column}: {self.predicted:.4g}; output {self.output:.4g}; {counts}"

    def _rows(self):
        """Nodes and edges that count most: what they add, and which they are."""
        first, second = (numpy.argsort(-abs(some))[:5] for some in (self.nodes, self.edges))
        for i in first:
            yield self.nodes[i], f"node {i}"
        for i in second:
            yield self.edges[i], "edge {} to {}".format(*self.edge[i])

    def __repr__(self) -> str:
        return f"GraphExplanation({self._title()})"

    def __str__(self) -> str:
        return "\n".join([repr(self), *(f"  {size:+.4f}  {what}" for size, what in self._rows())])

    def _repr_html_(self) -> str:
        return table_html(self._title(), [(f"{n:+.4f}", what) for n, what in self._rows()])


class _GraphEstimator(Estimator):
    """Both; what differs is what a graph is given."""

    _task = _prefix = "graphs"
    validation: float
    directed: bool

    if TYPE_CHECKING:

        def __init__(
            self, *, validation: float = 0.1, directed: bool = False,
            **settings: Unpack[GraphsKeywords],
        ) -> None: ...  # fmt: skip

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a list of graphs
        tags.target_tags.required = True
        return tags

    def _fit(self, graphs):
        hold_out = share_of(self.validation)
        data = sized("basin_graphs_train_data", set=graphs.pointer, hold_out=hold_out)
        return self._train(self._settings(), data)

    def _fit_set(self, graphs, y=None):
        if y is not None:
            raise BasinError("y beside a GraphSet, which has its own classes or values")
        self._fit(graphs)
        self._opened()
        return self

    def _set(self, graphs):
        return graphs if isinstance(graphs, GraphSet) else self._made(graphs, self.settings_)

    def _made(self, graphs, settings=None, **labels):
        settings = settings or dict(self._settings())
        how = {name: bool(settings[name]) for name in ("stereo", "as_is")}
        return GraphSet(graphs, self.directed, **how, **labels)

    def _check_target(self, expected, found):
        if lib.basin_graphs_get_info(self._fitted()).target != expected:
            raise BasinError(f"a model of {found}, which {type(self).__name__} does not use")

    def _bounds(self, graphs, coverage):
        """Intervals or sets, low and high as in basin_graphs_predict_result."""
        if not 0 < coverage < 1:
            raise BasinError(f"coverage {coverage}, needs a number between 0 and 1")
        if not lib.basin_graphs_get_info(self._fitted()).calibrated:
            raise BasinError("the model was trained without graphs for validation")
        found = self._predict(graphs, ("low", "high"), coverage=coverage)
        return found["low"], found["high"]

    def nearest(self, graphs: Any) -> tuple[numpy.ndarray, list[str]]:
        """For molecules, and for classes of graphs with labels of nodes: the similarity, 0 to 1, to
        the nearest that the model remembers, and what that is called: its id, or "line 7" of the
        table, of a list of SMILES "line 7" for the place 7 from 0 on, of other graphs the place."""
        info = lib.basin_graphs_get_info(self._fitted())
        if not info.remembered:
            raise BasinError("the model remembers no training graphs (near)")
        found = self._predict(graphs, ("nearest", "nearest_at"))
        name = info.remembered_name
        named = [ffi.string(name[i]).decode() if name else "" for i in found["nearest_at"]]
        return found["nearest"], named

    def _predict(self, graphs, more=(), **options):
        """Arrays by the names of basin_graphs_predict_result: output, and `more`."""
        graphs, model = self._set(graphs), self._fitted()
        data = sized("basin_graphs_data", set=graphs.pointer)
        shape = lib.basin_graphs_rows(model, data), lib.basin_graphs_get_info(model).columns
        rows = {"nearest": shape[:1], "nearest_at": shape[:1]}
        found = {
            name: numpy.zeros(rows.get(name, shape), "i8" if name == "nearest_at" else "f4")
            for name in ("output", *more)
        }
        kinds = {"f": "float[]", "i": "int64_t[]"}
        pointers = {k: ffi.from_buffer(kinds[a.dtype.kind], a) for k, a in found.items()}
        unknown = ffi.new("int64_t[2]")
        check(lib.basin_graphs_unknown_labels, unknown, model, data)
        if any(unknown):
            warnings.warn(
                f"{unknown[0]} nodes and {unknown[1]} edges have a label (of molecules: element, "
                "charge, hydrogens, kind of bond) that training did not have",
                stacklevel=3,
            )
        with self._backend().lock:
            check(
                lib.basin_graphs_predict, sized("basin_graphs_predict_result", **pointers), model,
                data, sized("basin_graphs_predict_options", **options),
            )  # fmt: skip
        return found

    def explain(self, graphs: Any, graph: int = 0, column: int = -1) -> GraphExplanation:
        """Which nodes and edges of one of the graphs its output depends on; `column` is a class by
        its place in classes_, or a value; -1: the likeliest class, or the first value."""
        model, given = self._fitted(), self._set(graphs)
        if not 0 <= graph < len(given):
            raise BasinError(f"graph {graph} of {len(given)}")
        result = ffi.new("basin_graphs_explanation *")
        with self._backend().lock:
            check(lib.basin_graphs_explain, result, model, given.pointer, graph, column)
        return _explanation(owned(result, lib.basin_graphs_explanation_free), given.pointer)


def _explanation(e, graphs):
    def numbers(pointer, count):
        return numpy.frombuffer(ffi.buffer(pointer, 8 * count), "f8").copy()

    start = 2 * graphs.edge_start[e.graph]
    edges = ffi.buffer(graphs.edge + start, 8 * e.edges) if e.edges else b""
    return GraphExplanation(
        column=e.column, output=e.output, blank=e.blank, nodes=numbers(e.node, e.nodes),
        edges=numbers(e.edge, e.edges), edge=numpy.frombuffer(edges, "i4").reshape(-1, 2).copy(),
        predicted=e.predicted,
    )  # fmt: skip


class GraphClassifier(ClassifierMixin, _GraphEstimator):
    """Predicts classes of graphs.

    Graphs are a list of what Graph.of takes (edges [E, 2], Graph, NetworkX, SciPy, PyTorch
    Geometric, SMILES, molecules of RDKit), or a GraphSet. `validation` is the part that
    chooses the epoch, 0 for none: then the last one is kept. With `directed` an edge goes one way.
    For molecules (SMILES, RDKit) it is the mean of 5 models (values: 3), unless `members` is given,
    and of what it remembers of training molecules (`near`). Several yes-or-no targets, learnt
    together, are y [graphs, targets] of 0 and 1, NaN where one is not known.

    >>> rings = [[[i, (i + 1) % n] for i in range(n)] for n in range(5, 15)]
    >>> stars = [[[0, i] for i in range(1, n)] for n in range(5, 15)]
    >>> model = tasks.GraphClassifier(epochs=30, dim=16, memories=16, threads=1)
    >>> model.fit(rings + stars, ["ring"] * 10 + ["star"] * 10).predict([rings[3], stars[4]])
    array(['ring', 'star'], dtype='<U4')
    """

    _own = _OWN

    def fit(self, graphs: Any, y: Any = None) -> "Self":
        """Trains on a list of graphs and their classes y, numbers or texts."""
        if isinstance(graphs, GraphSet):
            if graphs.pointer.task != lib.BASIN_GRAPHS_CLASSES and not graphs.pointer.binary:
                raise BasinError(
                    "a set of values, or of nodes; GraphClassifier needs classes of graphs"
                )
            return self._fit_set(graphs, y)
        y = _own_target(graphs, y, self)
        if getattr(y, "ndim", 1) == 2 or (len(y) and isinstance(y[0], (list, tuple))):
            return self._fit_set(self._made(graphs, targets=_targets(y, len(graphs)), binary=True))
        known = _classes(y, len(graphs))
        if known.dtype.kind == "f" and not numpy.array_equal(known, numpy.rint(known)):
            raise BasinError("Unknown label type: y is continuous, expected classes")
        if known.dtype.kind == "f":
            known = known.astype("i8")
        classes, number = numpy.unique(known, return_inverse=True)
        if len(classes) == 1:
            raise BasinError(f"y has 1 class, {classes.tolist()}; expected two or more")
        if known.dtype.kind in "iu":  # the file keeps their own numbers
            number = known
        number = numpy.ascontiguousarray(number, dtype="i8")
        self._fit(self._made(graphs, classes=number))
        self.classes_ = classes
        return self

    def _opened(self):
        if self._several():
            self.classes_ = numpy.arange(2)
            return
        self._check_target(lib.BASIN_GRAPHS_CLASSES, "values, or of nodes")
        info = lib.basin_graphs_get_info(self._fitted())
        values = ffi.buffer(info.class_value, 8 * info.columns)
        self.classes_ = numpy.frombuffer(values, "i8").copy()
        if info.column:  # words of a table of molecules
            words = (ffi.string(info.column[i]) for i in range(info.columns))
            self.classes_ = numpy.array([word.decode(errors="replace") for word in words])

    def _several(self):
        """Whether it has several yes-or-no targets."""
        return lib.basin_graphs_get_info(self._fitted()).binary

    def predict_proba(self, graphs: Any) -> numpy.ndarray:
        """[graphs, classes], in the order of classes_; with several yes-or-no targets
        [graphs, targets], the probability of yes."""
        return self._predict(graphs)["output"]

    def predict(self, graphs: Any) -> numpy.ndarray:
        """The likeliest class of each graph; with several targets [graphs, targets] of 1 or 0."""
        if self._several():
            return (self.predict_proba(graphs) >= 0.5).astype(int)
        likeliest = self.predict_proba(graphs).argmax(axis=1)
        return self.classes_[likeliest]

    def predict_set(self, graphs: Any, coverage: float = 0.9) -> numpy.ndarray:
        """Conformal sets, [graphs, classes] of booleans in the order of classes_: of the graphs of
        each class, `coverage` have theirs in the set, where graphs are of the kind that training
        validated on. The likeliest class is always in it. With several targets
        [graphs, targets, 2]: whether it has no, and yes."""
        low, high = self._bounds(graphs, coverage)
        return numpy.stack([low, high], 2) > 0 if self._several() else low > 0

    def decision_function(self, graphs: Any) -> numpy.ndarray:
        """Logarithms of the probabilities; for two classes the second's over the first's, with
        several targets those of yes over no."""
        if self._several():
            p = self.predict_proba(graphs).astype("f8").clip(1e-30, 1 - 1e-12)
            return numpy.log(p / (1 - p))
        logits = numpy.log(numpy.maximum(self.predict_proba(graphs), 1e-30))
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def score(self, graphs: Any, y: Any) -> float:
        """The part of the graphs whose class is right, or of known answers."""
        found = self.predict(graphs)
        if self._several():
            known = _targets(y, len(found))
            return float(numpy.mean((found == known)[~numpy.isnan(known)]))
        return float(numpy.mean(found == _classes(y, len(found))))


class GraphRegressor(RegressorMixin, _GraphEstimator):
    """Predicts values of graphs, one or several; NaN where one is not known. Graphs as in
    GraphClassifier.

    >>> paths = [[[i, i + 1] for i in range(n)] for n in range(3, 23)]
    >>> model = tasks.GraphRegressor(epochs=20, dim=16, memories=16, threads=1)
    >>> model.fit(paths, [len(path) / 10 for path in paths]).predict(paths).shape
    (20,)
    """

    _own = _OWN

    def fit(self, graphs: Any, y: Any = None) -> "Self":
        """Trains on a list of graphs and their values y, [graphs] or [graphs, values]."""
        if isinstance(graphs, GraphSet):
            if graphs.pointer.task != lib.BASIN_GRAPHS_VALUES:
                raise BasinError(
                    "a set without values; GraphRegressor needs them (GraphSet(.., targets=y), or "
                    "read(.., values=True))"
                )
            return self._fit_set(graphs, y)
        y = array_of_any(_own_target(graphs, y, self))
        targets = _targets(y, len(graphs))
        self._fit(self._made(graphs, targets=targets))
        self._flat = y.ndim == 1
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _opened(self):
        self._check_target(lib.BASIN_GRAPHS_VALUES, "classes")
        self._flat = lib.basin_graphs_get_info(self._fitted()).columns == 1

    def predict(self, graphs: Any) -> numpy.ndarray:
        """Values in the units of the training data, in y's shape."""
        values = self._predict(graphs)["output"].astype("f8")
        return values[:, 0] if self._flat else values

    def predict_interval(
        self, graphs: Any, coverage: float = 0.9
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The low and the high end of conformal intervals, which hold the truth of `coverage` of
        graphs of the kind that training validated on; infinite where these were too few."""
        low, high = (array.astype("f8") for array in self._bounds(graphs, coverage))
        return (low[:, 0], high[:, 0]) if self._flat else (low, high)

    def score(self, graphs: Any, y: Any) -> float:
        """R squared: 1 minus the squared error over the variance; the mean over values."""
        found = self._predict(graphs)["output"]
        y = _targets(y, len(found)).astype("f8")
        if y.shape != found.shape:
            raise BasinError(f"y of {y.shape[1]} values per graph, expected {found.shape[1]}")
        wrong = numpy.nansum((y - found) ** 2, axis=0)
        return float(numpy.mean(1 - wrong / numpy.nansum((y - numpy.nanmean(y, 0)) ** 2, axis=0)))


def _own_target(graphs, y, estimator):
    """y, or where it is None what graphs of PyTorch Geometric have, one `y` each."""
    if y is not None:
        return y
    own = [getattr(graph, "y", None) for graph in graphs]
    if not own or any(value is None for value in own):
        name = type(estimator).__name__
        raise BasinError(f"{name} requires y to be passed, but the target y is None")
    rows = numpy.stack([array_of_any(value).reshape(-1) for value in own])
    return rows[:, 0] if rows.shape[1] == 1 else rows


def _classes(y, count):
    """A class of each graph."""
    classes = column_of(y, count, unknown="")
    if classes.dtype.kind == "O":
        there = there_of(classes)
        if not there.all():
            place = int(there.argmin())
            raise BasinError(f"y of {place} is {classes[place]!r}, expected a class")
    return classes


def _targets(y, count):
    targets = array_of_any(y)
    if targets.dtype.kind == "O":  # None and NA are gaps
        try:
            there = there_of(targets.ravel()).reshape(targets.shape)
            targets = numpy.where(there, targets, numpy.nan).astype("f8")
        except (TypeError, ValueError):
            raise BasinError(
                f"Unknown label type: y of type {targets.dtype}, expected numbers"
            ) from None
    if targets.ndim not in (1, 2) or len(targets) != count or targets.dtype.kind not in "iufb":
        raise BasinError(
            f"y of shape {list(targets.shape)}, expected numbers [{count}] or more a graph"
        )
    return narrowed(targets.reshape(count, -1), "f4", "y")
