"""Synapses: energies of the activations of one or more layers (see basin.ham).

The library's are functions here; `Synapse` makes one of a Python function. Parameters may be given
first values, arrays or basin.training.Normal and the like, by the names in each docstring.
"""

from typing import Any, Callable, Optional

import numpy

from basin._engine.library import BasinError, ffi, lib
from basin._engine.tensor import shape_of
from basin.functions import name_of
from basin.ham._lagrangians import fields_of, lagrangian_of
from basin.training import Constant, _Init

_FUNCTION = dict(ffi.typeof("basin_synapse").fields)["energy"].type


def is_learnt(value: Any) -> bool:
    """Whether a value stands for a parameter: an array, or a recipe of first values."""
    return isinstance(value, (numpy.ndarray, _Init))


def _own(value):
    """A copy of an array, which its owner may change later; recipes as they are."""
    return value if isinstance(value, _Init) else numpy.array(value, dtype=float)


class Synapse:
    """A synapse of your own: a Python function of activations, then of parameters by name.

    Arrays and basin.training.Normal, Constant, .. are parameters that are learnt; other values,
    such as numbers, are passed to the function. Activations have a batch axis first, and the energy
    keeps it: one number per sample, or more, which are summed.

    >>> def pull(g, w, strength):
    ...     return -strength * numpy.sum(g * w, axis=-1)
    >>> network = ham.HAM({"v": ham.Layer("tanh", 2)},
    ...                   {"pull": ham.Synapse(pull, w=numpy.ones(2), strength=3.0)},
    ...                   [(["v"], "pull")])
    >>> list(network.params["pull"])
    ['w']
    >>> network.connection_energies({"v": [0.5, 0.5]})
    {'pull(v)': array(-3., dtype=float32)}
    """

    def __init__(self, energy: Callable[..., Any], /, **parameters: Any):
        if not callable(energy):
            raise BasinError(f"{energy!r}, expected a function of activations")
        self.energy = energy
        self.parameters = {name: _own(v) for name, v in parameters.items() if is_learnt(v)}
        self.fixed = {name: v for name, v in parameters.items() if not is_learnt(v)}

    def __repr__(self) -> str:
        given = {**self.parameters, **self.fixed}
        return f"Synapse({', '.join([name_of(self.energy), *given])})"

    def fields(self, bound, name):
        """The fields of a basin_synapse of that name."""
        learnt = {part: bound.parameter(name, part, v) for part, v in self.parameters.items()}

        def build(_, __, g, count):
            activations = [bound.graph.wrap(g[i]) for i in range(count)]
            return self.energy(*activations, **learnt, **self.fixed)

        return {"energy": bound.callback(_FUNCTION, build)}


class _Library(Synapse):
    """One of the library's, with its settings."""

    def __init__(self, kind, first, hidden=None, pattern=None, **settings):
        self.kind, self.settings, self.hidden, self.pattern = kind, settings, hidden, pattern
        self.parameters = {part: _own(value) for part, value in first.items() if value is not None}

    def __repr__(self) -> str:
        given = {k: v for k, v in self.settings.items() if v}
        return f"{self.kind}({', '.join(f'{k}={v}' for k, v in given.items())})"

    def fields(self, bound, name):
        for part, value in self.parameters.items():
            bound.parameter(name, part, value)
        fields = {**self.settings, "kind": getattr(lib, f"BASIN_SYNAPSE_{self.kind.upper()}")}
        if self.hidden is not None:
            declare = bound.declare(name)
            fields["hidden"] = fields_of(lagrangian_of(self.hidden), bound, declare)
        if self.pattern is not None:
            fields["pattern"] = self.pattern
        return fields


def recipe_of(first: Any) -> tuple:
    """Shape and recipe of first values; those of an array are written later."""
    init = first if isinstance(first, _Init) else Constant(numpy.shape(first), 0.0)
    recipe = {"kind": getattr(lib, "BASIN_INIT_" + init.kind), "scale": init.scale}
    return shape_of(init.shape), ffi.new("basin_init *", recipe)[0]


def _rows(rows):
    names = {"flat": "FLAT", "each": "EACH", "summed": "SUMMED"}
    if rows not in names:
        raise BasinError(f"rows {rows!r}, expected one of {list(names)}")
    return getattr(lib, "BASIN_ROWS_" + names[rows])


def bias(*, rows: str = "flat", b: Any = None) -> Synapse:
    """-<b, g> of one layer; b starts at 0.

    >>> layers = {"v": ham.Layer("identity", 2)}
    >>> network = ham.HAM(layers, {"in": ham.bias(b=[1.0, 2.0])}, [(["v"], "in")])
    >>> network.descend(network.init_states(), steps=100, alpha=0.5).x["v"].round(3)
    array([1., 2.], dtype=float32)
    """
    return _Library("bias", {"b": b}, rows=_rows(rows))


def linear(
    *, bias: bool = False, rows: str = "flat", deviation: float = 0.02, w: Any = None, b: Any = None
) -> Synapse:
    """-g1 W g2; of n layers, -sum W[a, b, ..] g1[a] g2[b] ..; w [n1, n2, ..]. `bias` adds -<b, g>
    of the last. What is a vector: the whole sample ("flat"), `each` row, or their sum
    ("summed").

    >>> layers = {"v": ham.Layer("tanh", 3), "h": ham.Layer("softmax", 2)}
    >>> network = ham.HAM(layers, {"vh": ham.linear()}, [(("v", "h"), "vh")])
    >>> network.params["vh"]["w"].shape
    (3, 2)
    """
    return _Library(
        "linear", {"w": w, "b": b}, bias=bias or b is not None, rows=_rows(rows),
        deviation=deviation,
    )  # fmt: skip


def memory(
    units: Optional[int] = None, *, hidden: Any = "softmax", normalize: bool = False,
    distance: bool = False, rows: str = "flat", deviation: float = 0.02, xi: Any = None,
) -> Synapse:  # fmt: skip
    """Dense associative memory of one layer: -L(xi g) with `units` memories, xi [units, n].

    `hidden` is its Lagrangian: softmax, "repu3" for the cubic one, identity for the classical
    network. With `normalize` memories have length 1; with `distance` -|xi - g|^2 / 2 replaces
    xi.g.

    >>> xi = numpy.array([[1.0, 1.0, -1.0], [-1.0, 1.0, 1.0]])
    >>> network = ham.HAM({"v": ham.Layer("tanh", 3)},
    ...                   {"m": ham.memory(xi=4 * xi)}, [(["v"], "m")])
    >>> network.descend({"v": [0.3, 0.1, -0.2]}, steps=50, alpha=0.5).g["v"].round(2)
    array([ 1.,  1., -1.], dtype=float32)
    """
    units = _count(units, xi, 0, "memory")
    return _Library(
        "memory", {"xi": xi}, hidden, units=units, normalize=normalize, distance=distance,
        rows=_rows(rows), deviation=deviation,
    )  # fmt: skip


def hidden(
    units: Optional[int] = None, *, hidden: Any = "relu", bias: bool = False,
    normalize: bool = False, rows: str = "flat", deviation: float = 0.02, **first: Any,
) -> Synapse:  # fmt: skip
    """-L(g1 W1 + g2 W2 + .. (+ b)): `units` hidden neurons without a time constant, which `hidden`
    is the Lagrangian of; w1 [n1, units], w2, .., b.

    >>> layers = {"image": ham.Layer("identity", 4), "label": ham.Layer("softmax", 2)}
    >>> network = ham.HAM(layers, {"m": ham.hidden(8)}, [(("image", "label"), "m")])
    >>> {name: w.shape for name, w in network.params["m"].items()}
    {'w1': (4, 8), 'w2': (2, 8)}
    """
    units = _count(units, first.get("w1"), 1, "hidden")
    return _Library(
        "hidden", first, hidden, units=units, bias=bias or "b" in first, normalize=normalize,
        rows=_rows(rows), deviation=deviation,
    )  # fmt: skip


def tensor(
    units: int, *, heads: int = 1, hidden: Any = "relu", rows: str = "flat",
    deviation: float = 0.02, w: Any = None,
) -> Synapse:  # fmt: skip
    """-sum over heads of L(W g1 g2 ..), of products; w [heads, units, n1, n2, ..].

    >>> layers = {"a": ham.Layer("tanh", 3), "b": ham.Layer("tanh", 2)}
    >>> ham.HAM(layers, {"t": ham.tensor(5)}, [(("a", "b"), "t")]).params["t"]["w"].shape
    (1, 5, 3, 2)
    """
    return _Library(
        "tensor", {"w": w}, hidden, units=units, heads=heads, rows=_rows(rows), deviation=deviation
    )


def mixer(
    units: int, *, heads: int = 1, hidden: Any = "softmax", deviation: float = 0.02, w: Any = None
) -> Synapse:
    """-sum over heads of L(sum over rows i of g1[i] W g2[i]); w [heads, units, D1, D2].

    >>> layers = {"a": ham.Layer("tanh", (6, 3)), "b": ham.Layer("tanh", (6, 2))}
    >>> ham.HAM(layers, {"m": ham.mixer(5)}, [(("a", "b"), "m")]).params["m"]["w"].shape
    (1, 5, 3, 2)
    """
    return _Library("mixer", {"w": w}, hidden, units=units, heads=heads, deviation=deviation)


def conv2d(
    kernel: Optional[int] = None, *, stride: int = 1, valid: bool = False, bias: bool = False,
    pool: str = "none", pool_window: int = 0, pool_stride: int = 0, deviation: float = 0.02,
    w: Any = None, b: Any = None,
) -> Synapse:  # fmt: skip
    """-<g2, pool(conv(g1))> between [h, w, C] and [h', w', O]; w [kernel, kernel, C, O]. `valid`:
    no padding. `pool` is "none", "average" or "maximum". `bias` adds -<b, g2>, b [O].

    >>> layers = {"v": ham.Layer("identity", (8, 8, 3)), "h": ham.Layer("relu", (4, 4, 5))}
    >>> network = ham.HAM(layers, {"c": ham.conv2d(3, stride=2)}, [(("v", "h"), "c")])
    >>> network.params["c"]["w"].shape
    (3, 3, 3, 5)
    """
    pools = {"none": "NONE", "average": "AVERAGE", "maximum": "MAXIMUM"}
    if pool not in pools:
        raise BasinError(f"pool {pool!r}, expected one of {list(pools)}")
    return _Library(
        "conv2d", {"w": w, "b": b}, kernel=_count(kernel, w, 0, "conv2d"), stride=stride,
        valid=valid, bias=bias or b is not None, pool=getattr(lib, "BASIN_POOL_" + pools[pool]),
        pool_window=pool_window, pool_stride=pool_stride, deviation=deviation,
    )  # fmt: skip


def attention(
    heads: int, width: int, *, hidden: Any = None, normalize: bool = False,
    exclude_self: bool = False, causal: bool = False, deviation: float = 0.02, wq: Any = None,
    wk: Any = None,
) -> Synapse:  # fmt: skip
    """Energy attention: -sum over heads and queries of 1/beta ln sum over keys e^(beta Q.K);
    queries are of the first layer, tokens [.., D], keys of the second or the same. wq, wk [heads,
    width, D]. beta is that of `hidden`, [] or [heads], 1/sqrt(width) where it has none; another
    Lagrangian than softmax is taken over all scores. `normalize`: a layer norm over queries and
    keys.

    >>> network = ham.HAM({"x": ham.Layer("layernorm", (5, 6))},
    ...                   {"a": ham.attention(2, 4, exclude_self=True)}, [(["x"], "a")])
    >>> sorted(network.params["a"])
    ['wk', 'wq']
    """
    return _Library(
        "attention", {"wq": wq, "wk": wk}, hidden, heads=heads, head_dim=width, normalize=normalize,
        pattern={"exclude_self": exclude_self, "causal": causal}, deviation=deviation,
    )  # fmt: skip


def _count(count, first, axis, what):
    """A number of units, that of the first values where it is not given."""
    if count is None and first is None:
        raise TypeError(f"{what}() needs a number of units, or first values of its weights")
    shape = getattr(first, "shape", None) or numpy.shape(first)
    return int(count if count is not None else shape[axis])
