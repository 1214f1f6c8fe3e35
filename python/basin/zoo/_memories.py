"""The memories of basin.zoo."""

from collections.abc import Sequence
from typing import Any

import numpy

from basin._engine.library import BasinError, check, ffi, lib, owned
from basin._expr.expression import apply
from basin.zoo._model import Model, choice


class Dense(Model):
    """Classical and dense associative memories: E = -sum over memories of F(xi . x), F(z) = z^2 / 2
    (power 2) or relu(z)^n / n, in the cube: a step ends cut to [-1, 1].

    >>> zoo.Dense([[1.0, 1.0, -1.0]], power=3).descend([[0.2, 0.1, 0.1]], steps=99).x
    array([[ 1.,  1., -1.]], dtype=float32)
    """

    paper = "Hopfield 1982; Krotov and Hopfield 2016"
    _struct = "basin_zoo_dense"

    def __init__(self, xi: Any, power: float = 2, *, alpha: float = 0.1):
        super().__init__({"xi": xi}, alpha, power=power)

    @staticmethod
    def _project(x):
        return apply(lib.basin_to_box, x, -1, 1)

    @staticmethod
    def _begin(x):
        return numpy.tanh(x)


class Hopfield(Model):
    """Modern Hopfield networks and their sparse Fenchel-Young relatives: E = -Omega*(beta xi x) /
    beta + |x|^2 / 2 + constants, with Omega* log-sum-exp ("softmax") or the conjugate of
    "entmax15", "sparsemax" or "normmax2". A step of size 1 is xi^T p.

    >>> sparse = zoo.Hopfield(numpy.eye(3), beta=4.0, entropy="sparsemax")
    >>> sparse.recall([[1.0, 0.1, 0.0]])
    array([[1., 0., 0.]], dtype=float32)
    """

    paper = "Ramsauer et al. 2020; Santos et al. 2024"
    _struct = "basin_zoo_hopfield"

    def __init__(self, xi: Any, beta: Any = 1.0, *, entropy: str = "softmax", alpha: float = 1.0):
        names = {
            "softmax": "BASIN_ZOO_SOFTMAX", "entmax15": "BASIN_ZOO_ENTMAX15",
            "sparsemax": "BASIN_ZOO_SPARSEMAX", "normmax2": "BASIN_ZOO_NORMMAX2",
        }  # fmt: skip
        entropy = choice("entropy", entropy, names)
        super().__init__({"xi": xi, "beta": beta}, alpha, entropy=entropy)

    def recall(self, x: Any, *, backend: Any = "cpu") -> Any:
        """p [.., N, M], how much of each memory a step takes."""
        return self._apply("call", x, backend, function=_recall)


class DrDAM(Model):
    """Memories summed into random features: E = -log max(phi(x) . T, floor) / beta, T = sum of
    phi(xi); phi is [cos, sin](sqrt(beta) s x) / sqrt(Y), or with phases sqrt(2 / Y) cos(sqrt(beta)
    s x + phase). `total` is T where memories are gone.

    >>> s = numpy.random.default_rng(0).normal(size=(2000, 2))
    >>> zoo.DrDAM(s, xi=[[0.5, 0.5]]).descend([[0.0, 0.0]], steps=200).x.round(1)
    array([[0.5, 0.5]], dtype=float32)
    """

    paper = "Hoover et al. 2024"
    _struct = "basin_zoo_features"

    def __init__(
        self, s: Any, xi: Any = None, beta: Any = 1.0, *, phase: Any = None, total: Any = None,
        floor: float = 1e-5, alpha: float = 0.1,
    ):  # fmt: skip
        if (xi is None) == (total is None):
            raise TypeError("DrDAM needs memories xi or their total, one of the two")
        arrays = {"s": s, "phase": phase, "beta": beta, "sum": total, "xi": xi}
        super().__init__(arrays, alpha, floor=floor)

    def _shape(self):
        return (6, self._arrays["s"].shape[-1])

    def _fields(self, bound):
        fields = super()._fields(bound)
        xi = fields.pop("xi")
        if xi:
            struct = ffi.new(f"{self._struct} *", fields)
            fields["sum"] = bound.graph.wrap(lib.basin_zoo_features_sum(struct, xi))._pointer
        return fields


class LSR(Model):
    """Log-sum-ReLU memories: E = -log(epsilon + sum relu(1 - beta/2 |x - xi|^2)) / beta + decay
    |x|^2.

    >>> model = zoo.LSR([[1.0, 0.0], [0.0, 1.0]], beta=3.0)
    >>> model.support([[1.0, 0.1]]), model.descend([[1.0, 0.1]], steps=99).x.round(2)
    (array([1.], dtype=float32), array([[1., 0.]], dtype=float32))
    """

    paper = "Hoover et al. 2025"
    _struct = "basin_zoo_lsr"

    def __init__(
        self, xi: Any, beta: Any = 1.0, *, epsilon: float = 1e-6, decay: float = 0.0,
        alpha: float = 0.1,
    ):  # fmt: skip
        super().__init__({"xi": xi, "beta": beta}, alpha, epsilon=epsilon, decay=decay)

    def support(self, x: Any, *, backend: Any = "cpu") -> Any:
        """How many memories a state feels, [N]."""
        return self._apply("call", x, backend, function=_support)


class GraphHopfield(Model):
    """A Hopfield network at every node of a graph: E = sum over nodes of [-log-sum-exp(beta xi x) /
    beta + |x|^2 / 2] + lam tr(x^T L x), L = I - A, A the normalised adjacency of `edges` [E, 2].
    Energies are of all nodes.

    >>> model = zoo.GraphHopfield(numpy.eye(2), [(0, 1), (1, 2)], nodes=3)
    >>> sorted(model.terms(numpy.zeros((3, 2))))
    ['edges', 'memories']
    """

    paper = "arXiv 2603.03464"
    _struct = "basin_zoo_graph"

    def __init__(
        self, xi: Any, edges: Any, nodes: int, beta: Any = 1.0, lam: Any = 0.3, *,
        alpha: float = 0.3,
    ):  # fmt: skip
        super().__init__({"xi": xi, "beta": beta, "lambda": lam}, alpha)
        edges = numpy.asarray(edges)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            raise BasinError(f"edges of shape {list(edges.shape)}, expected integers [E, 2]")
        if edges.size and not 0 <= edges.min() <= edges.max() < nodes:
            raise BasinError(f"edges name nodes outside 0 to {nodes - 1}")
        self._edges, self._nodes = numpy.ascontiguousarray(edges, "i4"), nodes

    def _shape(self):
        return (self._nodes, self._arrays["xi"].shape[-1])

    def _fields(self, bound):
        pairs = owned(ffi.new("basin_pairs *"), lib.basin_pairs_free)
        data = ffi.cast("int32_t *", self._edges.ctypes.data)
        count, both = len(self._edges), lib.BASIN_PAIRS_BOTH_WAYS
        check(lib.basin_pairs_new, pairs, self._nodes, self._nodes, data, count, both)
        lists = {name: _indices(pairs, name) for name in ("row", "key", "column", "query", "pair")}
        pattern = {name: bound.graph.places(values) for name, values in lists.items()}
        degree = numpy.diff(lists["row"])
        ends = numpy.repeat(numpy.arange(self._nodes), degree), lists["key"]
        weight = 1 / numpy.sqrt(degree[ends[0]] * degree[ends[1]].astype(float))
        return {
            **super()._fields(bound), "pattern": bound.keep(ffi.new("basin_pattern *", pattern)),
            "weight": bound.pointer_of(weight),
        }  # fmt: skip


def _indices(pairs, name):
    count = pairs.queries + 1 if name in ("row", "column") else pairs.pairs
    return numpy.frombuffer(ffi.buffer(getattr(pairs, name), 4 * count), "i4").copy()


class InputDrivenPlasticity(Model):
    """g = tanh(x), E = <x, g> - L(x) - g . W(u) g / 2 with W(u) = sum over memories of (xi . u / D)
    xi xi^T / D, of an input u [N, D]. A step is x + alpha (W(u) g - x).

    >>> xi = [[1.0, 1.0], [1.0, -1.0]]
    >>> model = zoo.InputDrivenPlasticity(xi, [[3.0, 3.0]])
    >>> model.descend([[0.1, 0.2]], steps=99).g.round(1)
    array([[1., 1.]], dtype=float32)
    """

    paper = "Betteti et al. 2025"
    _struct, _turns = "basin_zoo_plastic", 1

    def __init__(self, xi: Any, u: Any, *, alpha: float = 0.2):
        super().__init__({"xi": xi, "u": u}, alpha)

    def _shape(self):
        return self._arrays["u"].shape


class EquilibriumPropagation(Model):
    """A layered network with a clamped input x [N, D], trained by equilibrium propagation: E =
    |x|^2 / 2 + |s|^2 / 2 - sum over layers of r(u_next) . (w r(u) + b), r = sigmoid, of states s
    [N, all layers] side by side. With a nudge, a second term nudge |u_last - target|^2 / 2.

    >>> model = zoo.EquilibriumPropagation([[1.0, 0.0]], [numpy.ones((3, 2))], [numpy.zeros(3)])
    >>> model.descend(numpy.zeros((1, 3)), steps=99).x.round(2)
    array([[0.3, 0.3, 0.3]], dtype=float32)
    """

    paper = "Scellier and Bengio 2017"
    _struct = "basin_zoo_layers"

    def __init__(
        self, x: Any, w: Sequence[Any], b: Sequence[Any], *, target: Any = None,
        nudge: float = 0.0, alpha: float = 0.3,
    ):  # fmt: skip
        if len(w) != len(b) or not 1 <= len(w) <= lib.BASIN_MAX_ZOO_LAYERS:
            raise BasinError(f"{len(w)} weights and {len(b)} biases, expected 1 to 8 of both")
        if nudge and target is None:
            raise TypeError("a nudge needs a target")
        layers = {f"w{i}": v for i, v in enumerate(w)} | {f"b{i}": v for i, v in enumerate(b)}
        arrays = {"x": x, "target": target, **layers}
        super().__init__(arrays, alpha, layers=len(w), nudge=nudge)

    def _shape(self):
        units = sum(self._arrays[f"b{i}"].shape[0] for i in range(self._settings["layers"]))
        return (self._arrays["x"].shape[0], units)

    def _fields(self, bound):
        fields = super()._fields(bound)
        for part in "wb":
            fields[part] = [fields.pop(f"{part}{i}") for i in range(self._settings["layers"])]
        return fields


def _recall(bound, x):
    return bound.graph.wrap(lib.basin_zoo_hopfield_recall(bound.struct, x._pointer))


def _support(bound, x):
    return bound.graph.wrap(lib.basin_zoo_lsr_support(bound.struct, x._pointer))
