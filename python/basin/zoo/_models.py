"""The models of basin.zoo: rows of the library's table, and what they have beyond it."""

from collections.abc import Sequence
from typing import Any

import numpy

from basin._engine.library import BasinError
from basin._expr.expression import Expression
from basin.functions import Function
from basin.zoo._model import Model, Verdict


class Dense(Model, row="classical"):
    """
    >>> zoo.Dense([[1.0, 1.0, -1.0]], power=3).descend([[0.2, 0.1, 0.1]], steps=99).x
    array([[ 1.,  1., -1.]], dtype=float32)
    """


class Hopfield(Model, row="hopfield"):
    """
    >>> sparse = zoo.Hopfield(numpy.eye(3), beta=4.0, entropy="sparsemax")
    >>> sparse.recall([[1.0, 0.1, 0.0]])
    array([[1., 0., 0.]], dtype=float32)
    """

    def recall(self, x: Any, *, backend: Any = None) -> Any:
        """p [.., N, M], how much of each memory a step takes."""
        return self.output("recall", x, backend=backend)


class DrDAM(Model, row="drdam"):
    """
    >>> s = numpy.random.default_rng(0).normal(size=(2000, 2))
    >>> zoo.DrDAM(s, xi=[[0.5, 0.5]]).descend([[0.0, 0.0]], steps=200).x.round(1)
    array([[0.5, 0.5]], dtype=float32)
    """


class LSR(Model, row="lsr"):
    """
    >>> model = zoo.LSR([[1.0, 0.0], [0.0, 1.0]], beta=3.0)
    >>> model.support([[1.0, 0.1]]), model.descend([[1.0, 0.1]], steps=99).x.round(2)
    (array([1.], dtype=float32), array([[1., 0.]], dtype=float32))
    """

    def support(self, x: Any, *, backend: Any = None) -> Any:
        """How many memories act on a state, [N]."""
        return self.output("support", x, backend=backend)


class GraphHopfield(Model, row="graph_hopfield"):
    """
    >>> model = zoo.GraphHopfield(numpy.eye(2), [(0, 1), (1, 2)], nodes=3)
    >>> sorted(model.terms(numpy.zeros((3, 2))))
    ['edges', 'memories']
    """

    def __init__(
        self, xi: Any, edges: Any, nodes: int, beta: Any = 1.0, lam: Any = 0.3, *,
        alpha: float = 0.3,
    ):  # fmt: skip
        if numpy.asarray(edges).dtype.kind not in "iu":
            raise BasinError("edges that are not integers")
        arrays = {"xi": xi, "edges": edges, "beta": beta, "lam": lam}
        self._fill({**arrays, "alpha": alpha}, N=nodes)


class InputDrivenPlasticity(Model, row="idp"):
    """
    >>> xi = [[1.0, 1.0], [1.0, -1.0]]
    >>> model = zoo.InputDrivenPlasticity(xi, [[3.0, 3.0]])
    >>> model.descend([[0.1, 0.2]], steps=99).g.round(1)
    array([[1., 1.]], dtype=float32)
    """


class GatedMemories(Model, row="gated"):
    """
    >>> gates = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    >>> model = zoo.GatedMemories(2 * numpy.eye(4), gates, 9 * numpy.eye(2), u=[[0.0, 1.0]])
    >>> model.descend([[0.9, 0.0, 0.9, 0.0, 0.0, 0.0]], steps=99).x[:, :4].round(1)
    array([[0. , 0. , 1.9, 0. ]], dtype=float32)
    """

    def __init__(
        self, xi: Any, a: Any, w: Any, u: Any, beta: Any = 1.0, gamma: Any = 1.0, *,
        alpha: float = 0.2,
    ):  # fmt: skip
        given = {"xi": xi, "a": a, "w": w, "u": u, "beta": beta, "gamma": gamma, "alpha": alpha}
        self._fill(given, Z=numpy.shape(xi)[1] + numpy.shape(a)[1])


class GaussianMemories(Model, row="gaussians"):
    """
    >>> s = [[[1.0, 0.5], [0.5, 2.0]], [[3.0, 0.0], [0.0, 0.1]]]
    >>> model = zoo.GaussianMemories([[0.0, 0.0], [5.0, 5.0]], s=s, beta=4.0)
    >>> factor = model.descend([[1.0, 0.0, 1.0, 0.0, 0.0, 1.0]], steps=9).x[0, 2:].reshape(2, 2)
    >>> (factor @ factor.T).round(2).tolist()
    [[1.0, 0.5], [0.5, 2.0]]
    """

    def __init__(
        self, mu: Any, c: Any = None, s: Any = None, beta: Any = 1.0, *, alpha: float = 1.0
    ):
        width = numpy.shape(mu)[1]
        self._fill({"mu": mu, "c": c, "s": s, "beta": beta, "alpha": alpha}, Z=width * (1 + width))

    def recall(self, x: Any, *, backend: Any = None) -> Any:
        """p [N, M], how much of each memory a step takes."""
        return self.output("recall", x, backend=backend)


class EquilibriumPropagation(Model, row="eqprop"):
    """
    >>> model = zoo.EquilibriumPropagation([[1.0, 0.0]], [numpy.ones((3, 2))], [numpy.zeros(3)])
    >>> model.descend(numpy.zeros((1, 3)), steps=99).x.round(2)
    array([[0.3, 0.3, 0.3]], dtype=float32)
    """

    def __init__(
        self, x: Any, w: Sequence[Any], b: Sequence[Any], *, target: Any = None,
        nudge: float = 0.0, alpha: float = 0.3,
    ):  # fmt: skip
        layers = {f"w{i}": v for i, v in enumerate(w)} | {f"b{i}": v for i, v in enumerate(b)}
        given = {"x": x, "target": target, "nudge": nudge, "alpha": alpha, **layers}
        self._fill(given, S=sum(numpy.shape(v)[0] for v in b))


class EnergyTransformer(Model, row="et"):
    """
    >>> rng = numpy.random.default_rng(0)
    >>> block = zoo.EnergyTransformer(*rng.normal(size=(2, 2, 4, 8)), rng.normal(size=(10, 8)))
    >>> energy = block.descend(rng.normal(size=(5, 8)), steps=20, alpha=0.01).energy
    >>> bool((numpy.diff(energy[:, 0]) < 0).all())
    True
    """


class EnergyTransformerStack(Model, row="et_stack"):
    """
    >>> rng = numpy.random.default_rng(0)
    >>> stack = zoo.EnergyTransformerStack(*rng.normal(size=(2, 2, 2, 4, 8)) / 2,
    ...                                    rng.normal(size=(2, 10, 8)) / 2)
    >>> verdict = stack.verdict(rng.normal(size=(5, 8)))
    >>> verdict.gradient, verdict.step_skew > 0.01
    (True, True)
    """


class ConvergentEnergyTransformer(Model, row="cet"):
    """
    >>> rng = numpy.random.default_rng(0)
    >>> model = zoo.ConvergentEnergyTransformer(
    ...     rng.normal(size=(5, 4)), rng.normal(size=(8, 4)), rng.normal(size=(5, 8)),
    ...     *rng.normal(size=(2, 2, 4, 8)) / 2, rng.normal(size=(10, 8)), rng.normal(size=(4, 8)))
    >>> x = model.output("begin", rng.normal(size=(5, 8)))
    >>> bool(numpy.diff(model.descend(x, steps=300).energy.sum(1))[-1] > -1e-3)
    True
    """


class PairTokens(Model, row="pairs"):
    """
    >>> w = numpy.random.default_rng(0).normal(size=(7, 1, 4, 4)) / 2
    >>> model = zoo.PairTokens(w[0], w[1], w[2, :, 0], *w[3:, 0], numpy.zeros(4))
    >>> model.verdict(draws=4).answer
    'always'
    """


class NRGPT(Model, row="nrgpt"):
    """
    >>> rng = numpy.random.default_rng(0)
    >>> model = zoo.NRGPT(h=rng.normal(size=(2, 4, 4)), bias=numpy.zeros(4), proj=numpy.eye(4),
    ...                   w1=rng.normal(size=(8, 4)), b1=numpy.zeros(8))
    >>> model.energy(rng.normal(size=(5, 4))).shape
    (5,)
    """


class HyperSET(Model, row="hyperset"):
    """
    >>> rng = numpy.random.default_rng(0)
    >>> model = zoo.HyperSET(rng.normal(size=(8, 8)), rng.normal(size=(32, 8)), heads=2)
    >>> model.verdict(draws=4).answer
    'not at all'
    """


class AKOrN(Model, row="akorn"):
    """
    >>> rng = numpy.random.default_rng(0)
    >>> model = zoo.AKOrN(rng.normal(size=(3, 4)), numpy.zeros((2, 2)), 0.3,
    ...                   a=rng.normal(size=(12, 12)))
    >>> numpy.linalg.norm(model.update(rng.normal(size=(3, 4))), axis=1).round(3)
    array([1., 1., 1.], dtype=float32)
    """

    _pace = "gamma"


class EBT(Model, row="ebt_loop"):
    """
    >>> rng = numpy.random.default_rng(0)
    >>> model = zoo.EBT(rng.normal(size=(3, 4)), rng.normal(size=(4, 5)),
    ...                 rng.normal(size=(8, 8)), numpy.zeros(8), rng.normal(size=8), alpha=0.5)
    >>> model.update(numpy.full((3, 5), 0.2)).sum(1).round(3)
    array([1., 1., 1.], dtype=float32)
    """

    _pace = "alpha"

    def logits(self, p: Any, *, backend: Any = None) -> Any:
        """p - alpha dE/dp, of which a step is the softmax."""
        return p + self._arrays["alpha"] * self.force(p, backend=backend)


class SparseCode(Model, row="crate", takes="y d"):
    """
    >>> zoo.SparseCode([[2.0, 0.05]], numpy.eye(2)).descend([[0.0, 0.0]], steps=200).x.round(2)
    array([[1.9, 0. ]], dtype=float32)
    """


class CRATE(Model, row="crate", takes="ln1_w ln1_b u out_w out_b ln2_w ln2_b d"):
    """update(x) is a block; half(x) the energy of its second half at the block's y; `alpha` is the
    size of the proximal step.

    >>> rng, one, zero = numpy.random.default_rng(0), numpy.ones(4), numpy.zeros(4)
    >>> u, out, d = rng.normal(size=(3, 4, 4)) / 2
    >>> block = zoo.CRATE(one, zero, u, out, zero, one, zero, d, heads=2)
    >>> x = rng.normal(size=(5, 4))
    >>> block.update(x).shape, block.half(x).verdict().answer
    ((5, 4), 'always')
    """

    def _check_values(self) -> None:
        """A block is built at its tokens."""

    def _at(self, x, backend, compute):
        """compute(model, y) of the block at tokens x."""

        def build(x):
            block = self._copy(_arrays={**self._arrays, "x": x})
            return compute(block, block.output("y", x))

        return build(x) if isinstance(x, Expression) else Function(build, backend=backend)(x)

    def update(self, x: Any, *, alpha: Any = None, backend: Any = None) -> Any:
        """The block."""
        return self._at(x, backend, lambda block, y: block.unroll(y, 1, alpha))

    def objective(self, x: Any, *, backend: Any = None) -> Any:
        """|y - d a|^2 / 2 + lam |a| of all tokens where the second half begins and ends, [2]."""

        def both(block, y):
            ends = y, block.unroll(y, 1)
            return numpy.stack([numpy.sum(block.energy(a)) for a in ends])

        return self._at(x, backend, both)

    def half(self, x: Any, *, backend: Any = "ref") -> SparseCode:
        """The energy of the second half, at the block's y of x."""
        y = self._at(x, backend, lambda block, y: y)
        return SparseCode(y, self._arrays["d"], lam=self._settings["lam"], alpha=self.alpha)

    def verdict(self, x: Any = None, **options: Any) -> Verdict:
        """That of the second half at the block's y of x, or of a draw of N(0, 1)."""
        drawn = numpy.random.default_rng(options.get("seed", 0)).normal(size=self._shape())
        return self.half(drawn if x is None else x).verdict(**options)
