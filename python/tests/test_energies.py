"""Energies in Python against NumPy's own arithmetic and finite differences."""

import pickle

import numpy
import pytest

import basin

rng = numpy.random.default_rng(7)
N, D, H, Y, M = 7, 12, 2, 5, 9
TOKENS = rng.normal(size=(N, D))
WEIGHTS = {
    "wk": rng.normal(size=(H, Y, D)) / 3,
    "wq": rng.normal(size=(H, Y, D)) / 3,
    "xi": rng.normal(size=(M, D)) / 3,
}


@basin.energy(activation=basin.layernorm)
def block(g, wk, wq, xi):
    """The paper's block from its equations."""
    beta = Y**-0.5
    k = numpy.einsum("nd,hyd->nhy", g, wk)
    q = numpy.einsum("nd,hyd->nhy", g, wq)
    attention = -numpy.sum(basin.attention_lse(q, k, beta, exclude_self=True)) / beta
    return {"attention": attention, "hopfield": -numpy.sum(basin.relu(g @ xi.T) ** 2) / 2}


def block_in_numpy(x, wk, wq, xi):
    beta = Y**-0.5
    g = (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5)
    scores = beta * numpy.einsum("nd,hyd,hye,me->hnm", g, wq, wk, g)
    scores[:, range(len(x)), range(len(x))] = -numpy.inf
    top = scores.max(-1, keepdims=True)
    lse = numpy.log(numpy.exp(scores - top).sum(-1)) + top[..., 0]
    return -lse.sum() / beta - (numpy.maximum(g @ xi.T, 0) ** 2).sum() / 2


def test_block_agrees_with_numpy():
    ours = block(TOKENS, backend="ref", **WEIGHTS)
    assert ours == pytest.approx(block_in_numpy(TOKENS, **WEIGHTS), rel=1e-12)


def test_gradient_of_a_parameter_agrees_with_differences():
    slope = block.grad(TOKENS, "xi", backend="ref", **WEIGHTS)
    for i, j in [(0, 0), (3, 7), (8, 11)]:
        values = []
        for step in (1e-5, -1e-5):
            xi = WEIGHTS["xi"].copy()
            xi[i, j] += step
            values.append(block_in_numpy(TOKENS, WEIGHTS["wk"], WEIGHTS["wq"], xi))
        assert slope[i, j] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5, abs=1e-7)


def test_second_derivative_is_symmetric_and_right():
    @basin.energy
    def quartic(g):
        return numpy.sum(g**4) + numpy.sum(g) ** 2

    x, v = rng.normal(size=5), rng.normal(size=5)
    expected = 12 * x**2 * v + 2 * v.sum()
    assert quartic.hessian_vector(x, v, backend="ref") == pytest.approx(expected, rel=1e-12)


def test_descent_goes_down():
    descent = block.descend(TOKENS, steps=30, alpha=0.02, **WEIGHTS)
    assert descent.energy.shape == (31, 1)
    assert numpy.all(numpy.diff(descent.energy[:, 0]) < 0)
    assert set(descent.terms) == {"attention", "hopfield"}


def test_descent_agrees_with_an_unrolled_one():
    @basin.function(backend="ref")
    def unrolled(x, wk, wq, xi):
        return block.descended(x, steps=5, alpha=0.1, wk=wk, wq=wq, xi=xi)

    stepped = block.descend(TOKENS, steps=5, alpha=0.1, backend="ref", **WEIGHTS)
    assert unrolled(TOKENS, **WEIGHTS) == pytest.approx(stepped.x, rel=1e-12)


def test_errors_name_the_line_and_the_shapes():
    @basin.energy
    def wrong(g, w):
        return numpy.sum(g @ w)  # the line

    with pytest.raises(basin.BasinError, match=r"'w' \[3, 4\]") as caught:
        wrong.descend(TOKENS, w=numpy.zeros((3, 4)))
    assert any("the line" in str(entry.statement) for entry in caught.traceback)


def line_of(function, text):
    """The last line of this file in the traceback of what a call of the function raises."""
    with pytest.raises((basin.BasinError, IndexError)) as caught:
        function()
    assert text in str(caught.value)
    here = [entry for entry in caught.traceback if entry.path.name == "test_energies.py"]
    return str(here[-1].statement)


def conditional(g):
    if g[0] > 0:
        return numpy.sum(g)
    return -numpy.sum(g)


def assigned(g):
    g[0] = 3
    return numpy.sum(g)


MISTAKES = [
    (conditional, "if g[0] > 0", "numpy.where instead of if"),
    (assigned, "g[0] = 3", "does not change"),
    (lambda g: numpy.sum(numpy.spacing(g)), "numpy.spacing", "spacing has no form"),
    (lambda g: numpy.sum(numpy.unique(g)), "numpy.unique", "unique has no form"),
    (lambda g: numpy.sum(g, dtype=float), "dtype=float", "numpy.sum of an expression"),
    (lambda g: g[5], "g[5]", "subscript 5"),
    (lambda g: numpy.sum(g @ numpy.ones(7)), "g @ numpy.ones(7)", "do not multiply"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
@pytest.mark.parametrize("way", ["__call__", "descend", "force"])
def test_errors_name_the_line_of_the_function(number, way):
    function, line, told = MISTAKES[number]
    ours = basin.energy(function)
    assert line in line_of(lambda: getattr(ours, way)([1.0, 2.0]), told)


@pytest.mark.parametrize("value", [None, "text", {"a": None}])
def test_what_is_no_energy_names_the_function(value):
    def forgetful(g):
        return value

    first = forgetful.__code__.co_firstlineno
    for way in ("__call__", "descend", "force"):
        with pytest.raises(basin.BasinError, match=rf"test_energies.py, line {first}\)"):
            getattr(basin.energy(forgetful), way)([1.0])


def test_terms_of_other_shapes_name_the_function():
    ours = basin.energy(lambda g: {"a": numpy.sum(g), "b": g})
    with pytest.raises(basin.BasinError, match=r"test_energies.py, line \d+\): .*'b' has shape"):
        ours.descend([1.0, 2.0])


@pytest.mark.parametrize(
    ("x", "told"),
    [
        ([["a"]], "type <U1"),
        (numpy.zeros((2, 2), complex), "type complex128"),
        (numpy.array([[None]]), "type object"),
    ],
)
def test_tokens_that_are_no_numbers_are_refused(x, told):
    with pytest.raises(basin.BasinError, match=told):
        basin.energy(lambda g: numpy.sum(g))(x)


def test_layouts_and_types_of_tokens_do_not_matter():
    ours = basin.energy(lambda g: numpy.sum(g * numpy.array([1.0, 10.0])))
    wanted = ours([[1.0, 2.0], [3.0, 4.0]])
    for x in (
        [[1, 2], [3, 4]],
        numpy.array([[1, 3], [2, 4]]).T,
        numpy.array([[1, 9, 2], [3, 9, 4]], "f2")[:, ::2],
    ):
        assert ours(x) == wanted


def test_a_descent_that_leaves_the_numbers_says_so():
    quartic = basin.energy(lambda g: numpy.sum(g**4))
    with pytest.warns(RuntimeWarning, match="not finite from step . on"):
        quartic.descend([10.0], steps=9, alpha=1.0)
    with pytest.warns(RuntimeWarning, match="the energy of the tokens is not finite"):
        quartic.descend([numpy.nan])


def test_an_energy_is_a_function():
    with pytest.raises(basin.BasinError, match="3, wanted a function"):
        basin.energy(3)


def test_an_unknown_parameter_is_refused():
    with pytest.raises(basin.BasinError, match="no parameter 'wv'"):
        block(TOKENS, wv=numpy.zeros(3), **WEIGHTS)


@pytest.mark.parametrize("misuse", [bool, float, numpy.linalg.inv, numpy.asarray])
def test_values_are_not_there_yet(misuse):
    @basin.energy
    def impatient(g):
        return misuse(g)

    with pytest.raises(basin.BasinError):
        impatient(TOKENS)


# ---- plans are kept ----


def test_an_energy_is_traced_once_for_each_set_of_shapes():
    traces = []

    @basin.energy
    def bowl(g, k, power=2):
        traces.append(g.shape)
        return k * numpy.sum(g**power)

    x = numpy.array([1.0, 2.0])
    for scale in (1.0, 2.0, 3.0):
        assert bowl(x, k=scale) == scale * 5
        assert bowl.force(x * scale, k=1.0).tolist() == (-2 * scale * x).tolist()
        assert bowl.grad(x * scale, "k", k=1.0) == scale**2 * 5
        assert bowl.hessian_vector(x, scale * x, k=1.0).tolist() == (2 * scale * x).tolist()
    assert len(traces) == 4
    assert bowl(x, k=[1.0, 2.0]).tolist() == [5.0, 10.0] and len(traces) == 5
    assert bowl(x, k=1 / 3, backend="ref").dtype == numpy.float64 and len(traces) == 6


def test_parameters_may_be_trees():
    @basin.energy
    def pulled(g, net):
        return numpy.sum((g - net["to"]) ** 2) * net["by"][0] / 2

    net = {"to": numpy.array([1.0, 2.0]), "by": (numpy.array(3.0), None)}
    assert pulled([0.0, 0.0], net=net) == 7.5
    slope = pulled.grad([0.0, 0.0], "net", net=net)
    assert slope["to"].tolist() == [3, 6] and slope["by"][0] == 2.5 and slope["by"][1] is None
    end = pulled.descend([0.0, 0.0], steps=100, alpha=0.1, net=net).x
    assert end == pytest.approx([1, 2], abs=1e-3)


def test_energies_of_expressions_are_expressions():
    bowl = basin.energy(lambda g, k: k * numpy.sum(g**4), activation=lambda x: 2 * x)
    x, k = numpy.array([1.0, 2.0]), 3.0

    @basin.function(backend="ref")
    def inside(x, k):
        return bowl(x * 2, k=k), bowl.force(x, k=2.0), bowl.grad(x, "k", k=k)

    energy, force, slope = inside(x, k)
    assert energy == pytest.approx(3 * numpy.sum((4 * x) ** 4))
    assert force == pytest.approx(-8 * (2 * x) ** 3)
    assert slope == pytest.approx(numpy.sum((2 * x) ** 4))
    loss = basin.function(lambda x: numpy.sum(bowl.force(x, k=1.0)), backend="ref")
    assert loss.grad(x) == pytest.approx(-12 * (2 * x) ** 2 * 2)


@basin.energy
def wells(g):
    return numpy.sum((g**2 - 1) ** 2) / 4


def test_energies_are_pickled():
    assert pickle.loads(pickle.dumps(wells)) is wells
    again = pickle.loads(pickle.dumps(block))
    assert again(TOKENS, **WEIGHTS) == block(TOKENS, **WEIGHTS)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(basin.energy(lambda g: numpy.sum(g)))
    cloudpickle = pytest.importorskip("cloudpickle")
    again = pickle.loads(cloudpickle.dumps(basin.energy(lambda g: numpy.sum(g))))
    assert again([1.0, 2.0]) == 3
