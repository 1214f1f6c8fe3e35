"""The models of basin.zoo that attend."""

from typing import Any, Optional

import numpy

from basin._engine.library import ffi, lib
from basin._expr import operations
from basin._expr.expression import Expression, apply
from basin.zoo._model import TERM, Model, Verdict, choice


class EnergyTransformer(Model):
    """The block of the Energy Transformer, of tokens [N, D] or [B, N, D]: g = layernorm(x), E =
    -sum over heads and tokens of log-sum-exp(beta K Q) / beta - sum over tokens and memories of
    G(xi . g); wk, wq [H, Y, D], xi [M, D], delta [D], beta [H] or a number, 1 / sqrt(Y) by default.
    `memories`: "relu", "power" (of `power`) or "softmax".

    >>> rng = numpy.random.default_rng(0)
    >>> block = zoo.EnergyTransformer(*rng.normal(size=(2, 2, 4, 8)), rng.normal(size=(10, 8)))
    >>> energy = block.descend(rng.normal(size=(5, 8)), steps=20, alpha=0.01).energy
    >>> bool((numpy.diff(energy[:, 0]) < 0).all())
    True
    """

    paper = "Hoover et al. 2023"

    def __init__(
        self, wk: Any, wq: Any, xi: Any, gamma: Any = 1.0, delta: Any = None, beta: Any = None, *,
        memories: str = "relu", power: float = 0.0, exclude_self: bool = True,
        causal: bool = False, epsilon: float = 1e-5, alpha: float = 0.1,
    ):  # fmt: skip
        names = {
            "relu": "BASIN_HOPFIELD_RELU", "power": "BASIN_HOPFIELD_POWER",
            "softmax": "BASIN_HOPFIELD_SOFTMAX",
        }  # fmt: skip
        heads, width, dim = numpy.shape(wk)
        beta = 1 / numpy.sqrt(width) if beta is None else beta
        beta = beta if isinstance(beta, Expression) else numpy.broadcast_to(beta, (heads,))
        delta = numpy.zeros(dim) if delta is None else delta
        arrays = {"wk": wk, "wq": wq, "xi": xi, "gamma": gamma, "delta": delta, "beta": beta}
        super().__init__(arrays, alpha, exclude_self=exclude_self, causal=causal)
        self._config = {
            "dim": dim, "heads": heads, "head_dim": width, "memories": numpy.shape(xi)[0],
            "hopfield": choice("memories", memories, names), "power": power, "epsilon": epsilon,
        }  # fmt: skip

    def _build(self, bound):
        fields = {name: bound.pointer_of(value) for name, value in self._arrays.items()}
        block = bound.keep(ffi.new("basin_block *", {"config": self._config, **fields}))
        pattern = bound.keep(ffi.new("basin_pattern *", self._settings))
        tie = bound.keep(ffi.new("basin_block_bound *", {"block": block, "pattern": pattern}))
        bound.energy[0] = lib.basin_block_energy(tie)


class NRGPT(Model):
    """NRGPT, of tokens [.., N, D]: g = layernorm(x) + bias, energies [.., N]: -sum over heads of
    log sum over earlier B of exp(g_A . h g_B), with a force only on A, and a feed-forward one times
    `scale`: feed "1" -|gelu(w1 g + b1)|^2, "2" -|gelu(w2 gelu(w1 g + b1) + b2)|^2, "2w" -g . (w2
    gelu(w1 g + b1) + b2). A step is x + proj force. `strict`: a token does not see itself.

    >>> rng = numpy.random.default_rng(0)
    >>> model = zoo.NRGPT(h=rng.normal(size=(2, 4, 4)), bias=numpy.zeros(4), proj=numpy.eye(4),
    ...                   w1=rng.normal(size=(8, 4)), b1=numpy.zeros(8))
    >>> model.energy(rng.normal(size=(5, 4))).shape
    (5,)
    """

    paper = "Dehmamy et al. 2025"
    _struct, _turns = "basin_zoo_nrgpt", 1

    def __init__(
        self, h: Any, bias: Any, proj: Any, w1: Any, b1: Any, w2: Any = None, b2: Any = None, *,
        scale: Any = 1.0, feed: str = "1", strict: bool = True, beta: float = 1.0,
        alpha: float = 1.0,
    ):  # fmt: skip
        names = {"1": "BASIN_ZOO_FEED_1", "2": "BASIN_ZOO_FEED_2", "2w": "BASIN_ZOO_FEED_2W"}
        if (w2 is None or b2 is None) == (feed != "1"):
            raise TypeError(f"feed {feed!r} needs {'no ' * (feed == '1')}w2 and b2")
        arrays = {
            "h": h, "bias": bias, "proj": proj, "scale": scale, "w1": w1, "b1": b1, "w2": w2,
            "b2": b2,
        }  # fmt: skip
        feed = choice("feed", feed, names)
        super().__init__(arrays, alpha, feed=feed, strict=strict, beta=beta)

    def _shape(self):
        return (6, self._arrays["h"].shape[-1])


class HyperSET(Model):
    """Hyper-SET, of tokens [N, D] or [B, N, D]: on spheres w = gain rms(W x) tokens repel each
    other, then go to a feed-forward energy, in two turns; forces go `straight` through the norms.
    Energies are of all tokens. With t1_w .. t3_b the size of each step is learned, from its
    number and `start`, the tokens at the beginning.

    >>> rng = numpy.random.default_rng(0)
    >>> model = zoo.HyperSET(rng.normal(size=(8, 8)), rng.normal(size=(32, 8)), heads=2)
    >>> model.verdict(draws=4).answer
    'not at all'
    """

    paper = "Hu et al. 2026"
    _struct, _turns = "basin_zoo_hyperset", 2

    def __init__(
        self, w: Any, m: Any, gain_w: Any = 1.0, gain_m: Any = 1.0, *, heads: int,
        gelu: bool = False, straight: bool = True, epsilon: float = 2.0**-23,
        alpha: Optional[float] = None, t1_w: Any = None, t1_b: Any = None, t2_w: Any = None,
        t2_b: Any = None, t3_w: Any = None, t3_b: Any = None, start: Any = None,
    ):  # fmt: skip
        learned = {
            "t1_w": t1_w, "t1_b": t1_b, "t2_w": t2_w, "t2_b": t2_b, "t3_w": t3_w, "t3_b": t3_b,
            "start": start,
        }  # fmt: skip
        if len({value is None for value in learned.values()}) > 1:
            raise TypeError(f"sizes that are learned need all of {list(learned)}")
        arrays = {"w": w, "m": m, "gain_w": gain_w, "gain_m": gain_m, **learned}
        if alpha is None:
            alpha = 0.25 if start is None else 1.0
        settings = {"heads": heads, "gelu": gelu, "straight": straight, "epsilon": epsilon}
        super().__init__(arrays, alpha, **settings)

    def _shape(self):
        start = self._arrays["start"]
        return (6, self._arrays["w"].shape[-1]) if start is None else start.shape

    def _fields(self, bound):
        return {**super()._fields(bound), "alpha": 1.0}

    def _exact(self):
        return HyperSET(**{**self._arrays, **self._settings, "straight": False}, alpha=self.alpha)


class AKOrN(Model):
    """Oscillators: every `sphere` channels of a token are a unit vector. A step is normalise(x +
    gamma (omega x + tangent(force))). With `a` [N C, N C], E = -x . J x / 2 - c . x, J = (a + a^T)
    / 2; with attention (qkv_w, qkv_b, o_w, o_b) in its place the force is not a gradient, and the
    energy a score. c [N, C], omega [C / 2, 2]; energies are of all tokens.

    >>> rng = numpy.random.default_rng(0)
    >>> model = zoo.AKOrN(rng.normal(size=(3, 4)), numpy.zeros((2, 2)), 0.3,
    ...                   a=rng.normal(size=(12, 12)))
    >>> numpy.linalg.norm(model.update(rng.normal(size=(3, 4))), axis=1).round(3)
    array([1., 1., 1.], dtype=float32)
    """

    paper = "Miyato et al. 2025"
    _struct, _turns = "basin_zoo_akorn", 1

    def __init__(
        self, c: Any, omega: Any, gamma: Any = 1.0, *, a: Any = None, qkv_w: Any = None,
        qkv_b: Any = None, o_w: Any = None, o_b: Any = None, heads: int = 1, sphere: int = 4,
        alpha: float = 1.0,
    ):  # fmt: skip
        attention = {"qkv_w": qkv_w, "qkv_b": qkv_b, "o_w": o_w, "o_b": o_b}
        if {value is None for value in attention.values()} != {a is not None}:
            raise TypeError(f"AKOrN needs a, or all of {list(attention)}")
        arrays = {"c": c, "omega": omega, "gamma": gamma, "a": a, **attention}
        super().__init__(arrays, alpha, heads=heads, sphere=sphere)

    def _shape(self):
        return self._arrays["c"].shape

    def _begin(self, x):
        return apply(lib.basin_to_sphere, x, self._settings["sphere"])

    def _pace(self, alpha):
        return alpha * float(self._arrays["gamma"])


class EBT(Model):
    """Energy-based transformers, the loop around a small network: E(p) = w2 . gelu(w1 [context ; e
    p] + b1) of probabilities p [N, V]. A step is softmax(p - alpha dE/dp); context [N, D], e [D,
    V], w1 [M, 2 D].

    >>> rng = numpy.random.default_rng(0)
    >>> model = zoo.EBT(rng.normal(size=(3, 4)), rng.normal(size=(4, 5)),
    ...                 rng.normal(size=(8, 8)), numpy.zeros(8), rng.normal(size=8), alpha=0.5)
    >>> model.update(numpy.full((3, 5), 0.2)).sum(1).round(3)
    array([1., 1., 1.], dtype=float32)
    """

    paper = "Gladstone et al. 2025"
    _struct, _turns = "basin_zoo_ebt", 1

    def __init__(self, context: Any, e: Any, w1: Any, b1: Any, w2: Any, alpha: Any = 1.0):
        arrays = {"context": context, "e": e, "w1": w1, "b1": b1, "w2": w2, "alpha": alpha}
        super().__init__(arrays, 1.0)

    def _shape(self):
        return (self._arrays["context"].shape[0], self._arrays["e"].shape[-1])

    def _pace(self, alpha):
        return alpha * float(self._arrays["alpha"])

    def logits(self, p: Any, *, backend: Any = "cpu") -> Any:
        """p - alpha dE/dp, of which a step is the softmax."""
        return self._apply("call", p, backend, function=_logits)

    _project = _begin = staticmethod(operations.softmax)


class SparseCode(Model):
    """The proximal half of CRATE: E(a) = |y - d a|^2 / 2 + lam sum a of a >= 0. A step is relu(a +
    alpha (d^T (y - d a) - lam)).

    >>> zoo.SparseCode([[2.0, 0.05]], numpy.eye(2)).descend([[0.0, 0.0]], steps=200).x.round(2)
    array([[1.9, 0. ]], dtype=float32)
    """

    paper = "Yu et al. 2023"

    def __init__(self, y: Any, d: Any, lam: float = 0.1, *, alpha: float = 0.1):
        super().__init__({"y": y, "d": d}, alpha, lam=lam)

    def _shape(self):
        return (self._arrays["y"].shape[0], self._arrays["d"].shape[-1])

    _project = _begin = staticmethod(operations.relu)

    def _build(self, bound):
        y, d = self._arrays["y"], self._arrays["d"]

        def code(_, a):
            gap = y - bound.graph.wrap(a) @ d.T
            return numpy.sum(gap**2, axis=-1) / 2

        def sparsity(_, a):
            return self._settings["lam"] * numpy.sum(bound.graph.wrap(a), axis=-1)

        terms = [
            {"name": bound.text(f.__name__), "build": bound.callback(TERM, f)}
            for f in (code, sparsity)
        ]
        bound.energy.term = bound.keep(ffi.new("basin_term[]", terms))
        bound.energy.terms = len(terms)


class CRATE:
    """One block of CRATE: attention with q = k = v, which descends nothing that it states without a
    determinant, then one proximal step of SparseCode from a = y = LN(z). update(x) is the block;
    half(x) the energy of its second half at the block's own y.

    >>> rng, one, zero = numpy.random.default_rng(0), numpy.ones(4), numpy.zeros(4)
    >>> u, out, d = rng.normal(size=(3, 4, 4)) / 2
    >>> block = zoo.CRATE(one, zero, u, out, zero, one, zero, d, heads=2)
    >>> x = rng.normal(size=(5, 4))
    >>> block.update(x).shape, block.half(x).verdict().answer
    ((5, 4), 'always')
    """

    paper = "Yu et al. 2023"

    def __init__(
        self, ln1_w: Any, ln1_b: Any, u: Any, out_w: Any, out_b: Any, ln2_w: Any, ln2_b: Any,
        d: Any, *, heads: int, eta: float = 0.1, lam: float = 0.1, epsilon: float = 1e-5,
    ):  # fmt: skip
        arrays = {
            "ln1_w": ln1_w, "ln1_b": ln1_b, "u": u, "out_w": out_w, "out_b": out_b, "ln2_w": ln2_w,
            "ln2_b": ln2_b, "d": d,
        }  # fmt: skip
        self.eta, self.lam = eta, lam
        self._block = _Block(arrays, 1.0, heads=heads, eta=eta, epsilon=epsilon, **{"lambda": lam})

    def update(self, x: Any, *, backend: Any = "cpu") -> Any:
        """The block."""
        return self._block._apply("call", x, backend, function=_block)

    def objective(self, x: Any, *, backend: Any = "cpu") -> Any:
        """|y - d a|^2 / 2 + lam |a| of all tokens where the second half begins and ends, [2]."""
        return self._block._apply("call", x, backend, function=_objective)

    def half(self, x: Any, *, backend: Any = "ref") -> SparseCode:
        """The energy of the second half, at the block's y of x."""
        y = self._block._apply("call", x, backend, function=_between)
        return SparseCode(y, self._block._arrays["d"], self.lam, alpha=self.eta)

    def verdict(self, x: Any = None, **options: Any) -> Verdict:
        """That of the second half at the block's y of x, or of a draw of N(0, 1)."""
        block = self._block
        if x is None:
            x = numpy.random.default_rng(options.get("seed", 0)).normal(size=block._shape())
        return self.half(x).verdict(**options)


class _Block(Model):
    """What computes a block of CRATE."""

    _struct = "basin_zoo_crate"

    def _shape(self):
        return (6, self._arrays["u"].shape[-1])

    def _build(self, bound):
        bound.struct = bound.keep(ffi.new("basin_zoo_crate *", self._fields(bound)))


def _logits(bound, x):
    return x + bound.model._arrays["alpha"] * bound.force(x)


def _block(bound, x):
    return bound.graph.wrap(lib.basin_zoo_crate_block(bound.struct, x._pointer, ffi.NULL))


def _objective(bound, x):
    objective = ffi.new("basin_expr *")
    lib.basin_zoo_crate_block(bound.struct, x._pointer, objective)
    return bound.graph.wrap(objective[0])


def _between(bound, x):
    """y = LN(z), as relu(y) - relu(-y): blocks whose steps are of size 0, one with -LN."""
    sides = []
    for sign in (1.0, -1.0):
        norm = {n: bound.pointer_of(sign * bound.model._arrays[n]) for n in ("ln2_w", "ln2_b")}
        fields = {**bound.model._fields(bound), **norm, "eta": 0.0}
        struct = bound.keep(ffi.new("basin_zoo_crate *", fields))
        sides.append(lib.basin_zoo_crate_block(struct, x._pointer, ffi.NULL))
    return bound.graph.wrap(sides[0]) - bound.graph.wrap(sides[1])
