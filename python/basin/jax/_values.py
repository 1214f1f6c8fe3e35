"""Softmax attention with values in JAX: three operations and the function of arrays over them
(src/engine/backend/values.h has the equations).

Shapes are q [B, N, H, Y], k [B, M, K, Y], v [B, M, K, V], bias and its tangent [B, H, N, M], of
which the first three may be 1 (of a list [B, pairs, H], B may be 1). A pattern is (flags, count,
factor). What is absent or zero is None."""

from __future__ import annotations

import math
import struct

import jax
import jax.numpy as jnp
import numpy

from basin._engine import eager as _eager
from basin._engine.library import BasinError
from basin.jax._attention import Pairs
from basin.jax._ops import _add, _like, _real, custom_call
from basin.jax._primitives import operation

_GC, _SLOPES = 16, 15  # results of the second order that are expected


def _call(what, pattern, results, q, k, v, *optional):
    """`optional` are bias, list, c, a, b, av, abias, ac, or None for each."""
    flags, count, factor = pattern
    bits = struct.unpack("=q", struct.pack("=d", factor))[0]
    return custom_call(what, flags, count, results, (q, k, v), optional, bits)


def _output(q, v):
    return jax.ShapeDtypeStruct((*q.shape[:3], v.shape[3]), q.dtype)


def _all_slopes(pattern, q, k, bias, pairs):
    """The gradient of a bias before it is summed over what it repeats along."""
    if bias is None:
        return None
    batch, queries, heads, _ = q.shape
    shape = (batch, heads, queries, k.shape[1]) if pairs is None else (batch, pattern[1], heads)
    return jax.ShapeDtypeStruct(shape, bias.dtype)


def _to_bias(slopes, bias):
    axes = [i for i, n in enumerate(bias.shape) if n == 1 and slopes.shape[i] != 1]
    return slopes.sum(axes, keepdims=True) if axes else slopes


# ---- the result ----


def _values_shapes(pattern, q, k, v, bias, pairs):
    return [_output(q, v)]


def _values(pattern, *operands):
    return _call(_eager.VALUES, pattern, _values_shapes(pattern, *operands), *operands, *[None] * 6)


def _values_jvp(pattern, operands, tangents):
    a, b, av, abias, _ = tangents
    return [second((pattern, _GC), *operands, None, a, b, av, abias, None)[4]]


def _values_vjp(pattern, operands, cotangents, needs):
    dq, dk, dv, dbias = reverse(pattern, *operands, cotangents[0])
    return [dq, dk, dv, dbias if dbias is None else _to_bias(dbias, operands[3]), None]


def _values_and_jvp(pattern, operands, tangents):
    """At hardly more than the tangent costs."""
    q, _, v, _, _ = operands
    a, b, av, abias, _ = tangents
    results = [None, None, None, None, _output(q, v), _output(q, v)]
    found = _call(_eager.VALUES_SECOND, pattern, results, *operands, None, a, b, av, abias, None)
    return found[5], found[4]


values = operation(
    "basin_values", _values_shapes, _values, _values_jvp, _values_vjp, _values_and_jvp
)


# ---- its reverse: dq, dk, dv and all of dbias ----


def _reverse_shapes(pattern, q, k, v, bias, pairs, c):
    return [_like(q), _like(k), _like(v), _all_slopes(pattern, q, k, bias, pairs)]


def _reverse(pattern, *operands):
    shapes = _reverse_shapes(pattern, *operands)
    return _call(_eager.VALUES_REVERSE, pattern, shapes, *operands, *[None] * 5)


def _reverse_jvp(pattern, operands, tangents):
    a, b, av, abias, _, ac = tangents
    return list(second((pattern, _SLOPES), *operands, a, b, av, abias, ac)[:4])


def _reverse_vjp(pattern, operands, cotangents, needs):
    """Second derivatives are symmetric: cotangents are tangents."""
    requested = sum(1 << i for i, n in enumerate([*needs[:4], needs[5]]) if n)
    gq, gk, gv, gbias, gc = second((pattern, requested), *operands, *cotangents, None)
    return gq, gk, gv, gbias if gbias is None else _to_bias(gbias, operands[3]), None, gc


reverse = operation("basin_values_reverse", _reverse_shapes, _reverse, _reverse_jvp, _reverse_vjp)


# ---- the second order: gq, gk, gv, all of gbias, gc ----


def _second_shapes(static, q, k, v, bias, pairs, c, a, b, av, abias, ac):
    pattern, requested = static
    results = [_like(q), _like(k), _like(v), _all_slopes(pattern, q, k, bias, pairs), _output(q, v)]
    return [x if requested >> i & 1 else None for i, x in enumerate(results)]


def _second(static, *operands):
    return _call(_eager.VALUES_SECOND, static[0], _second_shapes(static, *operands), *operands)


def _written(static, q, k, v, bias, pairs, c, a, b, av, abias, ac):
    """The second order written out, with memory for every pair: what third derivatives need."""
    (flags, _, factor), requested = static
    if pairs is not None:
        raise NotImplementedError(
            "attention along a list has derivatives to second order; a third one was asked for"
        )
    real, kind, each = _real(q), q.dtype, q.shape[2] // k.shape[2]
    wide = [None if x is None else x.astype(real) for x in (q, k, v, c, a, b, av, ac)]
    q, k, v, c, a, b, av, ac = wide
    k, v, b, av = (x if x is None else jnp.repeat(x, each, 2) for x in (k, v, b, av))
    zero = jnp.zeros((q.shape[0], q.shape[2], q.shape[1], k.shape[1]), real)

    def product(x, y):
        return zero if x is None or y is None else jnp.einsum("bnhy,bmhy->bhnm", x, y)

    def summed(x, y, z, w, form):
        pairs = [(s, t) for s, t in ((x, y), (z, w)) if t is not None]
        return sum(jnp.einsum(form, s, t) for s, t in pairs) if pairs else None

    s = factor * product(q, k) + (0 if bias is None else bias)
    if flags & _eager.CAUSAL:
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
    top = jnp.maximum(jax.lax.stop_gradient(s.max(-1, keepdims=True)), -1e30)
    p = jnp.exp(s - top)
    total = p.sum(-1, keepdims=True)
    p = p / jnp.where(total > 0, total, 1)
    ts = factor * (product(a, k) + product(q, b)) + (0 if abias is None else abias)
    g, tg = product(c, v), product(ac, v) + product(c, av)
    tp = p * (ts - (p * ts).sum(-1, keepdims=True))
    slope = g - (p * g).sum(-1, keepdims=True)
    ds, u = p * slope, tp * slope + p * tg
    tds = u - p * u.sum(-1, keepdims=True)
    by_query, by_key = "bhnm,bmhy->bnhy", "bhnm,bnhy->bmhy"

    def shared(x):
        return None if x is None else x.reshape(*x.shape[:2], -1, each, x.shape[3]).sum(3)

    found = [
        factor * summed(tds, k, ds, b, by_query), factor * shared(summed(tds, q, ds, a, by_key)),
        shared(summed(tp, c, p, ac, by_key)), tds, summed(tp, v, p, av, by_query),
    ]  # fmt: skip
    found = [x if i == 3 or x is None else x.astype(kind) for i, x in enumerate(found)]
    found[3] = None if bias is None else tds
    return [x if requested >> i & 1 else None for i, x in enumerate(found)]


def _some(static, operands, there):
    """The formula as a function of only those operands, and which results it has."""

    def function(*given):
        changed = dict(zip(there, given))
        found = _written(static, *(changed.get(i, x) for i, x in enumerate(operands)))
        return [x for x in found if x is not None]

    made = [s is not None for s in _second_shapes(static, *operands)]
    return function, made


def _second_jvp(static, operands, tangents):
    there = [i for i, t in enumerate(tangents) if t is not None and i != 4]
    function, made = _some(static, operands, there)
    moved = jax.jvp(function, [operands[i] for i in there], [tangents[i] for i in there])[1]
    moved = iter(moved)
    return [next(moved) if m else None for m in made]


def _second_vjp(static, operands, cotangents, needs):
    pattern, requested = static
    q, k, v, bias, pairs, c, a, b, av, abias, ac = operands
    if c is None and requested == _GC:  # the reverse of a forward derivative is of second order
        u = cotangents[4]
        gq, gk, gv, gbias, _ = second((pattern, _SLOPES), *operands[:5], u, a, b, av, abias, None)
        da, db, dav, dabias = reverse(pattern, *operands[:5], u)
        gbias = None if gbias is None else _to_bias(gbias, bias)
        dabias = None if abias is None else _to_bias(dabias, abias)
        return gq, gk, gv, gbias, None, None, da, db, dav, dabias, None
    there = [i for i, x in enumerate(operands) if x is not None and i != 4]
    function, made = _some(static, operands, there)
    back = jax.vjp(function, *(operands[i] for i in there))[1]
    shapes = _second_shapes(static, *operands)
    given = [jnp.zeros(s.shape, s.dtype) if x is None else x
             for x, s in zip(cotangents, shapes) if s is not None]  # fmt: skip
    found = dict(zip(there, back(given)))
    return [found.get(i) for i in range(len(operands))]


second = operation("basin_values_second", _second_shapes, _second, _second_jvp, _second_vjp)


# ---- the function ----


def _bias_of(bias, mask, shape, real):
    """Both, added, as [B, H, N, M] of which the first three may be 1."""
    total = None
    for name, x in (("bias", bias), ("mask", mask)):
        if x is None:
            continue
        x = jnp.asarray(x)
        if name == "bias" and not jnp.issubdtype(x.dtype, jnp.floating):
            raise BasinError(f"bias of {x.dtype}, expected numbers that are added; mask takes bool")
        x = x.reshape(*(1,) * (4 - x.ndim), *x.shape)
        fits = x.ndim == 4 and all(n in (1, m) for n, m in zip(x.shape, shape))
        if not fits:
            raise BasinError(
                f"{name} of shape {list(x.shape)}, expected one that broadcasts to {list(shape)}"
            )
        if name == "mask":
            if x.dtype != bool:
                raise BasinError(
                    f"mask of {x.dtype}, expected bool; numbers that are added are bias"
                )
            x = jnp.where(x, 0, -jnp.inf)
        total = _add(total, x.astype(real))
    if total is not None and total.shape[3] != shape[3]:
        total = jnp.broadcast_to(total, (*total.shape[:3], shape[3]))
    return total


def attention(
    query: jax.Array, key: jax.Array, value: jax.Array, bias: jax.Array | None = None,
    mask: jax.Array | None = None, *, scale: float | jax.Array | None = None,
    is_causal: bool = False, implementation: str | None = None, pairs: Pairs | None = None,
) -> jax.Array:  # fmt: skip
    """softmax(scale query key^T + bias) value, in the place of jax.nn.dot_product_attention, with
    derivatives to second order, of which memory grows with tokens, not their square.

    query [.., N, H, Y], key [.., M, K, Y], value [.., M, K, V], K divides H. `bias` and `mask`
    (True takes part) broadcast to [B, H, N, M]; `scale` is a number or an array ([] or [H]), None:
    1 / sqrt(Y). `pairs` is a list of the pairs that count, and bias then [P, H]. A query without
    keys has 0. `implementation` names kernels of JAX, which are not taken. Third derivatives, but
    along lists, are computed with memory for every pair.

    >>> from basin.jax import attention
    >>> q, k, v = jax.random.normal(jax.random.key(0), (3, 1, 5, 2, 8))
    >>> usual = jax.nn.dot_product_attention(q, k, v)
    >>> bool(abs(attention(q, k, v) - usual).max() < 1e-5)
    True
    """
    query, key, value = map(jnp.asarray, (query, key, value))
    if implementation not in (None, "xla", "cudnn"):
        raise BasinError(f"implementation is {implementation!r}, expected None, 'xla' or 'cudnn'")
    returned = query.dtype
    names = {"query": query, "key": key, "value": value}
    if len({x.dtype for x in names.values()}) > 1 or len({x.ndim for x in names.values()}) > 1:
        found = ", ".join(f"{name} {list(x.shape)} of {x.dtype}" for name, x in names.items())
        raise BasinError(f"{found}: expected one type and as many axes")
    if returned == jnp.float16:
        query, key, value = (x.astype(jnp.float32) for x in (query, key, value))
    if query.dtype not in (jnp.float32, jnp.bfloat16, jnp.float64):
        raise BasinError(f"query of {query.dtype}, expected float32, bfloat16, float16 or float64")
    if query.ndim < 3:
        raise BasinError(f"query of shape {list(query.shape)}, expected [.., tokens, heads, width]")
    batch = query.shape[:-3]
    q, k, v = (x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:]) for x in (query, key, value))
    fits = q.shape[0] == k.shape[0] and k.shape[:3] == v.shape[:3] and q.shape[3] == k.shape[3]
    if not fits or k.shape[2] == 0 or q.shape[2] % k.shape[2]:
        raise BasinError(
            f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)}: "
            "expected [.., N, H, Y], [.., M, K, Y] and [.., M, K, V] where K divides H"
        )
    real = _real(q)
    if isinstance(scale, (jax.Array, numpy.ndarray)):
        if scale.shape not in ((), (q.shape[2],)):
            raise BasinError(f"scale of shape {list(scale.shape)}, expected [] or [{q.shape[2]}]")
        scale = jnp.asarray(scale, real).reshape(-1, 1)  # bfloat16 would round the scale's slope
        q, factor = (q.astype(real) * scale).astype(q.dtype), 1.0
    else:
        factor = 1 / math.sqrt(max(1, q.shape[3])) if scale is None else float(scale)
    flags = _eager.CAUSAL if is_causal else 0
    half = returned == jnp.float16  # which tf32 holds
    if half or jax.config.jax_default_matmul_precision in ("tensorfloat32", "high"):
        flags |= _eager.TF32
    shape = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    listed, count = None, 0
    if pairs is not None:
        listed, count, bias = _list_of(pairs, bias, mask, is_causal, q, k, real)
    else:
        bias = _bias_of(bias, mask, shape, real)
    out = values((flags, count, factor), q, k, v, bias, listed)[0]
    return out.reshape(*batch, *out.shape[1:]).astype(returned)


def _list_of(pairs, bias, mask, is_causal, q, k, real):
    """The packed list, its length and the bias [1, P, H]."""
    if not isinstance(pairs, Pairs):
        raise BasinError(f"pairs are a {type(pairs).__name__}, expected basin.jax.Pairs(edges, N)")
    if is_causal or mask is not None:
        raise BasinError("a list of pairs that is to leave some out; list the pairs that count")
    pairs._check(q.shape[1], k.shape[1])
    if bias is not None:
        bias = jnp.asarray(bias, real)
        if bias.shape != (pairs.count, q.shape[2]):
            expected = [pairs.count, q.shape[2]]
            raise BasinError(f"bias of shape {list(bias.shape)}, expected {expected} for a list")
        bias = bias[None]
    return pairs.packed, pairs.count, bias
