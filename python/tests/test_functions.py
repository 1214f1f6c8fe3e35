"""NumPy's names on expressions against NumPy itself."""

import collections
import concurrent.futures
import copy
import dataclasses
import functools
import os
import pickle
import subprocess
import sys

import numpy
import pytest

import basin

rng = numpy.random.default_rng(3)
A = rng.normal(size=(3, 4, 5))
B = rng.normal(size=(3, 4, 5))
POSITIVE = numpy.abs(A) + 0.1

SAME_AS_NUMPY = [
    lambda a, b: a + b - 2 * a * b / 3 + 1 - (2 - b),
    lambda a, b: 1 / (b * b + 1) + 2.0**a,
    lambda a, b: numpy.exp(a) * numpy.tanh(b) - numpy.sin(a) + numpy.cos(b),
    lambda a, b: numpy.log(a * a + 1) + numpy.sqrt(abs(b)) + numpy.expm1(a) + numpy.log1p(b * b),
    lambda a, b: numpy.maximum(a, b) + numpy.minimum(a, 0.2) + numpy.sign(b),
    lambda a, b: numpy.where(a > b, a, b**3),
    lambda a, b: numpy.clip(a, -0.5, 0.5),
    lambda a, b: numpy.sum(a, axis=1),
    lambda a, b: a.sum(axis=(0, 2), keepdims=True) + b,
    lambda a, b: numpy.mean(a) + numpy.max(b, axis=-1),
    lambda a, b: a.reshape(6, -1) @ b.reshape(6, 10).T,
    lambda a, b: numpy.transpose(a, (2, 0, 1)) + numpy.swapaxes(b.transpose(), 1, 2),
    lambda a, b: numpy.concatenate([a, b], axis=1)[:, 2:6, ::1],
    lambda a, b: numpy.stack([a, b], axis=-1)[..., 0],
    lambda a, b: a[1, :, None, 2:] * b[-1, :, None, :3],
    lambda a, b: numpy.einsum("ijk, ilk -> ijl", a, b),
    lambda a, b: numpy.broadcast_to(a[0], (2, 4, 5)) + numpy.squeeze(b[:1], 0),
    lambda a, b: numpy.linalg.norm(a - b, axis=-1),
    lambda a, b: numpy.array([1.0, 2, 3, 4, 5]) * a + numpy.ones(5),
    lambda a, b: (a * a + 0.1) ** b + numpy.array([1.0, 2, 3, 4, 5]) ** a,
    lambda a, b: a[::2, 1:4:2, ::3] + b[::-2, 2:0:-1, 4::-3],
    lambda a, b: a[:, 5:2, :].sum() + a[1:, -1:, 1::2] * 2,
    lambda a, b: a[:, [2, 0, -1]] + numpy.take(b, [3, 3, 1], axis=1),
    lambda a, b: numpy.argmax(a, axis=1) + b.argmax(axis=-2) * 1.0,
    lambda a, b: numpy.argmax(a) + numpy.argmax(b, axis=2)[..., None] * a,
    lambda a, b: numpy.cumsum(a, axis=1) + numpy.cumsum(b).reshape(3, 4, 5),
    lambda a, b: numpy.stack([a, b, a * b], axis=1),
    lambda a, b: numpy.roll(a, 2, axis=1) + numpy.flip(b, axis=(0, 2)) + numpy.roll(a, -7),
    lambda a, b: numpy.diagonal(a[:, :3], axis1=0, axis2=1),
    lambda a, b: numpy.einsum("ijk,ilk,lm->ijm", a, b, b[0]),
    lambda a, b: numpy.einsum("iij->ij", a[:, :3]),
    lambda a, b: numpy.where(a == numpy.round(A, 1)[0, 0, 0], a, b) + (a != b) + (a == a),
    lambda a, b: numpy.where(numpy.sign(a) == 1, a, 0) + numpy.not_equal(numpy.sign(a), 1),
    lambda a, b: a ** numpy.array(2) + numpy.outer([1.0, 2.0], b[0, 0]).sum(),
    lambda a, b: numpy.dot(a, b[0].T) + a[1, [0, 2]].sum() + a[:, 1][:, [0, 2]].sum(),
    lambda a, b: numpy.add.reduce(a, axis=1) + numpy.maximum.reduce(b, axis=1),
    lambda a, b: numpy.add.reduce(a, initial=5) * a.sum(initial=2) + a.prod(initial=0.5),
    lambda a, b: a.max(1, initial=0.3) + numpy.min(a, 1, initial=-0.1),
    lambda a, b: a[:, :0].max(1, initial=0.3) + a[:, :0].sum(1, keepdims=True),
]


@pytest.mark.parametrize("number", range(len(SAME_AS_NUMPY)))
def test_a_formula_means_what_it_means_in_numpy(number):
    formula = SAME_AS_NUMPY[number]
    ours = basin.function(formula, backend="ref")(A, B)
    assert ours.shape == formula(A, B).shape
    assert ours == pytest.approx(formula(A, B), rel=1e-12, abs=1e-13)


NOT_AS_NUMPY = [
    lambda a: numpy.sum(a, 0, numpy.float64),  # the type, not keepdims
    lambda a: numpy.mean(a, 0, numpy.float64),
    lambda a: numpy.cumsum(a, axis=(0, 1)),
    lambda a: numpy.add.reduce(a, where=a.shape[0] > 2),
    lambda a: numpy.zeros_like(a, shape=(4,)),
    lambda a: numpy.expand_dims(a, 5),
    lambda a: numpy.transpose(a, (0, 1, 5)),
    lambda a: a[True],
    lambda a: a if a in [1.0, 2.0] else -a,
]


@pytest.mark.parametrize("number", range(len(NOT_AS_NUMPY)))
def test_what_would_mean_something_else_than_in_numpy_is_refused(number):
    with pytest.raises(basin.BasinError):
        basin.function(NOT_AS_NUMPY[number])(A)


def test_numbers_that_are_not_finite():
    """As NumPy has them; what the plans of a fast backend take for 0 is on the page of names."""
    with numpy.errstate(all="ignore"):
        for formula in (
            lambda x: x // 0, lambda x: x % 0, lambda x: x / 0, lambda x: x // (x - x + 2),
            lambda x: 0 * x, lambda x: x - x,
        ):  # fmt: skip
            x = numpy.array([3.0, -3.0, 0.0, numpy.inf, numpy.nan])
            numpy.testing.assert_array_equal(basin.function(formula, backend="ref")(x), formula(x))
    for axis in (None, 1):
        empty = basin.function(lambda x, axis=axis: numpy.mean(x, axis))(numpy.zeros((2, 0)))
        assert numpy.isnan(empty).all() and empty.shape == (() if axis is None else (2,))


def test_functions_of_basins_compute_of_arrays():
    assert basin.relu([-1.0, 2.0]).tolist() == [0, 2]
    assert basin.softmax(a=A, axis=0).sum(0) == pytest.approx(1)
    assert basin.shrink(numpy.array([-3.0, 1.0]), by=numpy.ones(2)).tolist() == [-2, 0]
    assert basin.top_k([3.0, 1.0, 2.0], 2)[0].tolist() == [3, 2]
    assert basin.one_hot([1, -1], 2).tolist() == [[0, 1], [0, 0]]
    assert basin.normal(3, (2, 3)).tolist() == basin.normal(3, numpy.zeros((2, 3))).tolist()
    assert basin.attention_lse(q=numpy.zeros((4, 2, 8)), k=numpy.zeros((3, 2, 8))).shape == (4, 2)
    every = basin.function(lambda a: (basin.softmax(a, (0, 2)), basin.logsumexp(a, (0, 2), True)))
    a = numpy.random.default_rng(0).normal(size=(2, 3, 4))
    shares, total = every(a)
    assert total == pytest.approx(numpy.log(numpy.exp(a).sum((0, 2), keepdims=True)), rel=1e-5)
    assert shares == pytest.approx(numpy.exp(a - total), rel=1e-5)
    loss = basin.function(basin.cross_entropy)(numpy.zeros((4, 3)), [0, -1, 3, 0.5])
    numpy.testing.assert_allclose(loss, [numpy.log(3), 0, numpy.nan, numpy.nan], rtol=1e-6)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (lambda x: basin.cross_entropy(x, [0, 4]), "the label 4 of 2 classes.*-1 to 1"),
        (lambda x: basin.one_hot([0.5], 3) * x, "the label 0.5"),
        (lambda x: basin.hessian(x**2, x), "one number: numpy.sum"),
        (lambda x: basin.gradient(x, numpy.ones(2)), "expressions"),
        (lambda x: basin.jvp(x, numpy.ones(2), x), "expressions"),
        (lambda x: f"{x:.2f}", "has no value yet to be written"),
        (lambda x: numpy.sum(x, axis=x[0, 0]), "known number"),
        (lambda x: x.max(where=x > 0, initial=0), "unexpected keyword argument 'where'"),
        (lambda x: x * numpy.ma.array(numpy.ones((2, 2)), mask=[[1, 0], [0, 0]]), "masked array"),
        (lambda x: numpy.linspace(x, x, 3), r"numpy.linspace has no form .* \* numpy.linspace"),
        (lambda x: numpy.linalg.svdvals(x), "numpy.linalg.svdvals has no form"),
        (lambda x: numpy.i0(x), "python-names.md lists"),
    ],
)
def test_what_is_refused_and_what_does_instead(formula, text):
    if "svdvals" in text and not hasattr(numpy.linalg, "svdvals"):
        pytest.skip("a NumPy before 2")
    with pytest.raises(basin.BasinError, match=text):
        basin.function(formula)(numpy.ones((2, 2)))


@pytest.mark.parametrize("dtype", ["f2", "f4", "g", ">f8", ">i4", "u2", "u4", "u8", "i1", "?"])
def test_arrays_of_every_type_of_number_are_taken(dtype):
    values = numpy.array([[0, 1], [1, 1]]).astype(dtype)
    doubled = basin.function(lambda a: a + values)
    assert doubled(values.T).tolist() == [[0, 2], [2, 2]]


def test_threads_share_a_function():
    double = basin.function(lambda a: numpy.sum(numpy.tanh(a @ a.T), axis=-1))
    given = [numpy.random.default_rng(i).normal(size=(64, 64)) for i in range(4)]
    expected = [double(a) for a in given]

    def work(i):
        return all(numpy.array_equal(double(given[i]), expected[i]) for _ in range(100))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_partial_functions_and_objects_have_a_name():
    scaled = functools.partial(lambda x, by: x * by, by=3.0)
    assert basin.function(scaled)([1.0, 2.0]).tolist() == [3, 6]
    assert repr(basin.function(scaled)) == "<basin function partial(x, *, by=3.0)>"
    bowl = basin.energy(functools.partial(lambda g, by: numpy.sum(g) * by, by=3.0))
    assert bowl([1.0, 2.0]) == 9
    with pytest.raises(basin.BasinError, match="wrt 'by', which has its default"):
        bowl.grad([1.0], "by")
    with pytest.raises(basin.BasinError, match="3.*function"):
        basin.function(3)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_logsumexp_along_an_axis(axis):
    weights = numpy.exp(A) / numpy.exp(A).sum(axis, keepdims=True)
    ours = basin.function(lambda a: basin.softmax(a, axis), backend="ref")(A)
    assert ours == pytest.approx(weights, rel=1e-12)
    sums = basin.function(lambda a: basin.logsumexp(a, axis), backend="ref")(A)
    assert sums == pytest.approx(numpy.log(numpy.exp(A).sum(axis)), rel=1e-12)


@pytest.mark.parametrize("exclude_self", [False, True])
def test_causal_attention_sees_what_came_before(exclude_self):
    q, k = A.reshape(12, 1, 5), B.reshape(12, 1, 5)
    ours = basin.function(
        lambda q, k: basin.attention_lse(q, k, 0.5, exclude_self, causal=True), backend="ref"
    )(q, k)
    scores = 0.5 * q[:, 0] @ k[:, 0].T
    for i in range(12):
        seen = scores[i, : i if exclude_self else i + 1]
        expected = numpy.log(numpy.exp(seen).sum()) if len(seen) else 0
        assert ours[i, 0] == pytest.approx(expected, rel=1e-12)


def test_a_constant_is_what_it_was_when_it_was_traced():
    weights = numpy.ones(3)
    weighted = basin.function(lambda a: a * weights)
    assert weighted(numpy.ones(3)) == pytest.approx(numpy.ones(3))
    weights[:] = 7
    assert weighted(numpy.ones(3)) == pytest.approx(numpy.ones(3))


@pytest.mark.parametrize(
    "index", [(3,), ([0, 5],), (slice(None), [[9]]), ([0, 1], [0, 1, 2]), ("x",), (True,)]
)
def test_wrong_subscripts_are_refused(index):
    with pytest.raises((basin.BasinError, IndexError)):
        basin.function(lambda a: a[index])(A)


def test_gradients_by_name():
    @basin.function(backend="ref")
    def product(a, b):
        return numpy.sum(a * b**2)

    both = product.grad(A, B, wrt=["a", "b"])
    assert both["a"] == pytest.approx(B**2)
    assert both["b"] == pytest.approx(2 * A * B)
    with pytest.raises(basin.BasinError, match="wrt 'c'"):
        product.grad(A, B, wrt="c")


def test_shapes_are_traced_once_each():
    calls = []

    @basin.function
    def doubled(a):
        calls.append(a.shape)
        return a * 2

    for size in (3, 4, 3, 4):
        assert doubled(numpy.ones(size)) == pytest.approx(2 * numpy.ones(size))
    assert calls == [(3,), (4,)]


def test_defaults_are_not_traced():
    @basin.function
    def total(a, axis=0, power=2):
        return numpy.sum(a**power, axis=axis)

    assert total(A) == pytest.approx((A**2).sum(axis=0), rel=1e-5)


# ---- trees of arrays ----

Pair = collections.namedtuple("Pair", ["w", "b"])


@dataclasses.dataclass
class Layer:
    w: object
    b: object


TREES = [
    {"w": A[0], "b": B[0]},
    (A[0], B[0]),
    [A[0], {"inner": (B[0], 2.0)}],
    Pair(A[0], B[0]),
    Layer(A[0], B[0]),
    {"w": A[0], "none": None, "numbers": [[1.0], [2.0], [3.0], [4.0]]},
]


def leaves_of(tree):
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves_of(value)]
    if isinstance(tree, tuple) or (isinstance(tree, list) and not isinstance(tree[0], list)):
        return [leaf for value in tree for leaf in leaves_of(value)]
    if isinstance(tree, Layer):
        return [tree.w, tree.b]
    return [] if tree is None else [tree]


@pytest.mark.parametrize("number", range(len(TREES)))
def test_trees_go_in_and_out_with_their_structure(number):
    tree = TREES[number]

    @basin.function(backend="ref")
    def squares(t, x):
        return sum(numpy.sum(leaf**2 * x) for leaf in leaves_of(t))

    expected = sum(float(numpy.sum(numpy.square(leaf) * 3)) for leaf in leaves_of(tree))
    value, slope = squares.value_and_grad(tree, 3.0)
    assert value == pytest.approx(expected) and squares(tree, 3.0) == value
    assert type(slope) is type(tree)
    for found, leaf in zip(leaves_of(slope), leaves_of(tree)):
        assert found == pytest.approx(6 * numpy.asarray(leaf))
    same = basin.function(lambda t: t, backend="ref")(tree)
    assert type(same) is type(tree)
    for found, leaf in zip(leaves_of(same), leaves_of(tree)):
        assert numpy.array_equal(found, leaf)


def test_stars_are_traced():
    @basin.function(backend="ref")
    def total(first, *more, scale=2.0, **named):
        return {"sum": scale * (first + sum(more)), "named": (named["k"], first)}

    result = total(A, B, B, k=3.0)
    assert result["sum"] == pytest.approx(2 * (A + 2 * B))
    assert result["named"][0] == 3 and numpy.array_equal(result["named"][1], A)
    product = basin.function(lambda *factors: factors[0] * factors[1])
    assert [g.tolist() for g in product.grad([2.0], [3.0])] == [[3.0], [2.0]]
    with pytest.raises(basin.BasinError, match="returns several arrays"):
        total.grad(A, B, k=3.0)


def test_arguments_by_name_are_those_by_place():
    minus = basin.function(lambda a, b=1.0: a - b)
    for found in (minus(3.0, 2.0), minus(3.0, b=2.0), minus(b=2.0, a=3.0), minus(2.0)):
        assert found == 1
    assert minus.grad(b=2.0, a=3.0) == 1
    for wrong in (lambda: minus(), lambda: minus(1, 2, 3), lambda: minus(1, a=2)):
        with pytest.raises(TypeError):
            wrong()


def test_what_an_argument_is_may_change():
    """A plan is kept by shapes, not by types; wrong results of one would be those of another."""
    double = basin.function(lambda a: a * 2)
    for value in ([1, 2], numpy.array([1.0, 2.0]), numpy.array([1, 2], ">i4"), (1.0, 2)):
        assert double(value).tolist() == [2, 4]
    assert double(3) == 6 and double(numpy.zeros((0, 2))).shape == (0, 2)
    assert double(numpy.arange(6.0).reshape(2, 3).T).tolist() == [[0, 6], [2, 8], [4, 10]]


@basin.function
def doubled_here(a):
    return a * 2


def tripled(a):
    return a * 3


tripled_here = basin.function(tripled, backend="ref")


def test_functions_of_a_module_are_pickled():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(doubled_here, protocol)) is doubled_here
    again = pickle.loads(pickle.dumps(tripled_here))
    assert again(1 / 3) == 1 and again(1 / 3).dtype == numpy.float64
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(basin.function(lambda a: a))


@dataclasses.dataclass
class Line:
    """Functions as methods, with what they need in the object."""

    slope: float

    @basin.function
    def at(self, x, offset=0.0):
        return self.slope * x + offset

    @staticmethod
    @basin.function(backend="ref")
    def half(x):
        return x / 2

    square = basin.function(numpy.square)


def test_functions_may_be_methods():
    steep, flat = Line(3.0), Line(1.0)
    assert steep.at([1.0, 2.0]).tolist() == [3, 6] and flat.at(2.0, offset=1.0) == 3
    assert steep.at.grad([1.0, 2.0]).tolist() == [3, 3]
    assert steep.at is steep.at and steep.at is not flat.at  # traced once for each object
    assert Line.half(3.0) == steep.half(3.0) == 1.5 and steep.square(3.0) == 9
    assert isinstance(Line.at, basin.functions.Function)
    copies = [pickle.loads(pickle.dumps(steep, protocol)) for protocol in (2, 4, 5)]
    for again in (*copies, copy.deepcopy(steep)):
        again.slope = 2.0
        assert again.at(1.0) == 2 and steep.at(1.0) == 3
    assert pickle.loads(pickle.dumps(steep.at))(1.0) == 3


def test_gradients_by_options():
    ours = basin.function(lambda **a: numpy.sum(a["u"] ** 2 * a["v"]))
    assert ours.grad(u=1.0, v=2.0, wrt="u") == 4
    assert ours.grad(u=1.0, v=2.0, wrt=["u", "v"]) == {"u": 4, "v": 1}
    assert ours.grad(u=1.0, v=2.0) == {"u": 4, "v": 1}
    with pytest.raises(basin.BasinError, match=r"wrt 'w'.*\['u', 'v', 'a'\]"):
        ours.grad(u=1.0, v=2.0, wrt="w")


def test_wrt_is_a_name_or_a_list_of_names():
    ours = basin.function(lambda x, y: numpy.sum(x * y))
    with pytest.raises(basin.BasinError, match=r"wrt 1.*name or a list of names of \['x"):
        ours.grad(1.0, 2.0, wrt=1)
    with pytest.raises(basin.BasinError, match="wrt 1.*one of"):
        ours.grad(1.0, 2.0, wrt=[1])
    with pytest.raises(basin.BasinError, match="given no argument"):
        basin.function(lambda x=1.0: numpy.sum(x)).grad()


def test_functions_of_a_session_are_pickled_by_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")
    factor = 3.0
    again = pickle.loads(cloudpickle.dumps(basin.function(lambda a: a * factor)))
    assert again(2.0) == 6


def test_functions_of_others_name_ours():
    special = pytest.importorskip("scipy.special")
    with pytest.raises(basin.BasinError, match=r"expit, which is not NumPy's, .* basin.sigmoid"):
        basin.function(lambda x: special.expit(x))([1.0])
    assert basin.function(lambda x: round(x[0]) + round(x[1], 0))([1.26, 2.7]) == 4


def test_several_arguments_are_a_tuple():
    ours = basin.function(lambda x, *more: x * more[0] + numpy.sum(more[1]))
    assert ours(2.0, 3.0, [1.0, 2.0]) == 9
    found = ours.grad(2.0, 3.0, [1.0, 2.0], wrt="more")
    assert found[0] == 2 and found[1].tolist() == [1, 1]
    assert isinstance(ours.grad(2.0, 3.0, 4.0, wrt="more"), tuple)


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20


GROWTH = """
import numpy, basin, test_functions
basin.functions.set_plan_cache(8 << 20)
bowl = basin.energy(lambda g: numpy.sum(g**2) / 2)
square = basin.function(lambda x: x * x)
layers = {"v": basin.ham.Layer("tanh", 64)}
network = basin.ham.HAM(layers, {"b": basin.ham.bias()}, [(["v"], "b")])
def use(sizes):
    for n in sizes:
        x = numpy.ones((n, 64), "f4")
        bowl.force(x), square(x), network.descend({"v": x}, steps=2), bowl.descend(x, steps=2)
use(range(1, 40))
before = test_functions.resident()
use(range(40, 240))
print(test_functions.resident() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")
def test_plans_of_many_shapes_take_bounded_memory():
    here = os.path.dirname(__file__)
    environment = {**os.environ, "PYTHONPATH": f"{here}:{os.environ.get('PYTHONPATH', '')}"}
    run = [sys.executable, "-c", GROWTH]
    grown = subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout
    assert int(grown) < 40


def test_the_plans_used_last_are_kept():
    traced = []
    square = basin.function(lambda x: traced.append(x.shape) or x * x)
    before = basin.functions.set_plan_cache(0)
    try:
        for n in (*range(1, 7), 1, 7, 1, 2):  # six stay, however large
            square(numpy.ones(n))
    finally:
        assert basin.functions.set_plan_cache(before) == 0
    assert [n for (n,) in traced] == [*range(1, 8), 2]
    with pytest.raises(basin.BasinError, match="-1 bytes"):
        basin.functions.set_plan_cache(-1)
