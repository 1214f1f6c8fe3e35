"""NumPy's names on expressions against NumPy itself."""

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
]


@pytest.mark.parametrize("number", range(len(SAME_AS_NUMPY)))
def test_a_formula_means_what_it_means_in_numpy(number):
    formula = SAME_AS_NUMPY[number]
    ours = basin.function(formula, backend="ref")(A, B)
    assert ours.shape == formula(A, B).shape
    assert ours == pytest.approx(formula(A, B), rel=1e-12, abs=1e-13)


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
        wanted = numpy.log(numpy.exp(seen).sum()) if len(seen) else 0
        assert ours[i, 0] == pytest.approx(wanted, rel=1e-12)


def test_a_constant_is_what_it_was_when_it_was_traced():
    weights = numpy.ones(3)
    weighted = basin.function(lambda a: a * weights)
    assert weighted(numpy.ones(3)) == pytest.approx(numpy.ones(3))
    weights[:] = 7
    assert weighted(numpy.ones(3)) == pytest.approx(numpy.ones(3))


@pytest.mark.parametrize("index", [(3,), ([0, 5],), (slice(None), [[0]]), ([0], [1]), ("x",)])
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
