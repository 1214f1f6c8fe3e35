"""basin.jax.attention against its formula in double: all derivatives to second order."""

import functools
import math

import numpy
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import basin.jax as bj  # noqa: E402
from basin import BasinError  # noqa: E402


@pytest.fixture(autouse=True)
def double():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    with jax.default_device(jax.devices("cpu")[0]):  # a GPU has no double here
        yield
    jax.config.update("jax_enable_x64", before)


def usual(q, k, v, bias=None, mask=None, scale=None, is_causal=False):
    each = q.shape[-2] // k.shape[-2]
    k, v = jnp.repeat(k, each, -2), jnp.repeat(v, each, -2)
    s = jnp.einsum("...nhy,...mhy->...hnm", q, k)
    scale = jnp.asarray(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    s = s * scale.reshape(-1, 1, 1) + (0 if bias is None else bias)
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf) if is_causal else s
    s = s if mask is None else jnp.where(mask, s, -jnp.inf)
    p = jnp.exp(s - jnp.maximum(jax.lax.stop_gradient(s.max(-1, keepdims=True)), -1e300))
    total = p.sum(-1, keepdims=True)
    p = p / jnp.where(total > 0, total, 1)
    return jnp.einsum("...hnm,...mhy->...nhy", p, v)


def random(*shape, seed=0, dtype="f8"):
    return jnp.asarray(numpy.random.default_rng(seed + sum(shape)).normal(size=shape).astype(dtype))


def derivatives(function, operands):
    along = tuple(jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape) for x in operands)
    every = tuple(range(len(operands)))

    def loss(*x):
        out = function(*x)
        return (out * out * jnp.linspace(-1, 1, out.size, dtype=out.dtype).reshape(out.shape)).sum()

    def again(*x):
        slopes = jax.grad(loss, every)(*x)
        return sum((jnp.sin(s) * t).sum() for s, t in zip(slopes, along))

    out, moved = jax.jvp(function, operands, along)
    mixed = jax.jvp(jax.grad(loss, every), operands, along)[1]
    turned = jax.grad(lambda *x: jnp.sin(jax.jvp(function, x, along)[1]).sum(), every)(*operands)
    return [out, moved, *jax.grad(loss, every)(*operands), *jax.grad(again, every)(*operands),
            *mixed, *turned]  # fmt: skip


def agree(function, other, operands, dtype="f8", bound=1e-12):
    expected = derivatives(other, tuple(operands))
    found = derivatives(function, tuple(x.astype(dtype) for x in operands))
    for x, y in zip(found, expected):
        assert x.dtype == jnp.dtype(dtype)
        norm = numpy.linalg.norm
        assert norm(numpy.asarray(x, "f8") - y) <= bound * max(1, norm(y))


CASES = {
    "plain": ((2, 7, 3, 4), (2, 5, 3, 4), (2, 5, 3, 6), {}),
    "causal": ((1, 9, 2, 5), (1, 9, 2, 5), (1, 9, 2, 5), {"is_causal": True}),
    "shared heads": ((2, 4, 6, 3), (2, 5, 2, 3), (2, 5, 2, 7), {"scale": 0.3}),
    "no batch": ((4, 2, 3), (6, 2, 3), (6, 2, 3), {}),
    "mask": ((2, 4, 2, 3), (2, 6, 2, 3), (2, 6, 2, 3),
             {"mask": numpy.random.default_rng(0).random((2, 1, 4, 6)) < 0.5}),
}  # fmt: skip


@pytest.mark.parametrize("dtype, bound", [("f8", 1e-12), ("f4", 1e-5), (jnp.bfloat16, 0.06)])
@pytest.mark.parametrize("case", CASES)
def test_all_derivatives(case, dtype, bound):
    *shapes, options = CASES[case]
    operands = [random(*s).astype(dtype).astype("f8") for s in shapes]
    agree(
        functools.partial(bj.attention, **options), functools.partial(usual, **options), operands,
        dtype, bound,
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 1, 5), (4, 5), (2, 1, 1, 5)])
def test_learnt_bias_and_scale(shape):
    operands = random(2, 4, 3, 2), random(2, 5, 3, 2), random(2, 5, 3, 2), random(*shape), random(3)

    def of(function):
        return lambda q, k, v, bias, scale: function(q, k, v, bias, scale=scale)

    agree(of(bj.attention), of(usual), operands)
    check_grads(of(bj.attention), operands, 2, atol=1e-4, rtol=1e-4)


def test_learnt_scale_of_bfloat16():
    """Neither it nor its gradient has the few digits of bfloat16."""
    q, k, v = (random(2, 64, 4, 48).astype(jnp.bfloat16) for _ in range(3))

    def of(dtype):
        def total(scale):
            out = bj.attention(q.astype(dtype), k.astype(dtype), v.astype(dtype), scale=scale)
            return (out * v).sum(dtype="f8"), out

        slope, out = jax.grad(total, has_aux=True)(jnp.full(4, 48**-0.5))
        return out.astype("f8"), slope

    for x, y, bound in zip(of(jnp.bfloat16), of("f8"), (0.003, 0.005)):
        assert jnp.linalg.norm(x - y) <= bound * jnp.linalg.norm(y)


def test_lists():
    pairs = bj.Pairs([(0, 1), (0, 4), (2, 2), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4)], 4, 5)
    queries, keys = pairs.edges().T
    operands = random(2, 4, 4, 3), random(2, 5, 2, 3), random(2, 5, 2, 2), random(len(pairs), 4)

    def dense(q, k, v, bias):
        all_ = jnp.full((4, 4, 5), -jnp.inf).at[:, queries, keys].set(bias.T)
        return usual(q, k, v, all_)

    agree(lambda q, k, v, b: bj.attention(q, k, v, b, pairs=pairs), dense, operands)


def test_as_dot_product_attention():
    q, k, v = (
        random(2, 6, 4, 8, dtype="f4"),
        random(2, 6, 2, 8, dtype="f4"),
        random(2, 6, 2, 8, dtype="f4"),
    )
    for options in (
        {}, {"is_causal": True}, {"bias": random(4, 6, 6, dtype="f4")},
        {"mask": (random(2, 1, 6, 6) > 0) | jnp.eye(6, dtype=bool)},
    ):  # fmt: skip
        found = bj.attention(q, k, v, **options)
        expected = jax.nn.dot_product_attention(q, k, v, **options)
        numpy.testing.assert_allclose(found, expected, atol=2e-6)


def test_transforms():
    q, k, v = random(1, 3, 1, 2), random(1, 4, 1, 2), random(1, 4, 1, 2)

    def of(function):
        return lambda q: (function(q, k, v) ** 2).sum()

    for hessian in (
        jax.hessian, lambda f: jax.jacrev(jax.jacrev(f)), lambda f: jax.jacrev(jax.jacfwd(f)),
        lambda f: jax.jacfwd(jax.jacfwd(f)), lambda f: jax.jacrev(jax.hessian(f)),
    ):  # fmt: skip
        numpy.testing.assert_allclose(
            hessian(of(bj.attention))(q), hessian(of(usual))(q), atol=1e-9
        )
    many = jnp.stack([q, 2 * q, 3 * q])
    for axes in ((0, None, None), (0, 0, 0)):
        operands = [jnp.stack([x] * 3) if a == 0 and i else (many, k, v)[i]
                    for i, (x, a) in enumerate(zip((q, k, v), axes))]  # fmt: skip
        found = jax.jit(jax.vmap(bj.attention, axes))(*operands)
        numpy.testing.assert_allclose(found[2], usual(3 * q, k, v), atol=1e-12)
    kept = jax.grad(lambda q: (jax.checkpoint(bj.attention)(q, k, v) ** 2).sum())(q)
    numpy.testing.assert_allclose(kept, jax.grad(of(usual))(q), atol=1e-12)


def _loop(function, q, kept):
    """Three steps in a loop, each of which a checkpoint may compute again."""
    step = jax.checkpoint(function) if kept else function
    return jax.lax.scan(lambda x, _: (jnp.sin(step(x)), None), q, None, length=3)[0]


@pytest.mark.parametrize("way", [
    lambda f, q: jax.jvp(f, (q,), (jnp.cos(q),)),
    lambda f, q: jax.jit(lambda q: jax.jvp(f, (q,), (jnp.cos(q),)))(q),
    lambda f, q: jax.grad(lambda q: sum((x**2).sum() for x in jax.jvp(f, (q,), (q,))))(q),
    lambda f, q: jax.vmap(lambda t: jax.jvp(f, (q,), (t,)))(jnp.stack([q, 2 * q])),
    lambda f, q: jax.jvp(lambda q: _loop(f, q, False), (q,), (jnp.cos(q),)),
    lambda f, q: jax.grad(lambda q: (_loop(f, q, False) ** 2).sum())(q),
    lambda f, q: jax.grad(lambda q: (_loop(f, q, True) ** 2).sum())(q),
    lambda f, q: jax.linearize(f, q)[1](jnp.cos(q)),
])  # fmt: skip
def test_results_beside_tangents(way):
    q, k, v = random(1, 3, 1, 2), random(1, 4, 1, 2), random(1, 4, 1, 2)
    found, expected = (way(lambda q, f=f: f(q, k, v), q) for f in (bj.attention, usual))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        numpy.testing.assert_allclose(x, y, atol=1e-11)


def test_export():
    q = random(1, 3, 1, 2, dtype="f4")
    slope = jax.jit(jax.grad(lambda q: (bj.attention(q, q, q) ** 2).sum()))
    made = jax.export.export(slope, platforms=["cpu"], disabled_checks=bj.export_checks())(q)
    again = jax.export.deserialize(made.serialize())
    numpy.testing.assert_array_equal(again.call(q), slope(q))


@pytest.mark.parametrize(
    "options, message",
    [({"bias": numpy.ones(9)}, "broadcasts to"), ({"mask": numpy.ones((5, 5))}, "bool"),
     ({"key": numpy.ones((1, 5, 3, 4), "f4")}, "K divides H"), ({"pairs": 3}, "basin.jax.Pairs"),
     ({"query": numpy.ones((1, 5, 2, 4), "i4")}, "one type"), ({"scale": numpy.ones(3)}, r"\[2\]"),
     ({"bias": numpy.ones((5, 5), bool)}, "mask takes bool"),
     ({"implementation": "fast"}, "'fast'")],
)  # fmt: skip
def test_refused(options, message):
    given = {name: numpy.ones((1, 5, 2, 4), "f4") for name in ("query", "key", "value")}
    with pytest.raises(BasinError, match=message):
        bj.attention(**{**given, **options})
