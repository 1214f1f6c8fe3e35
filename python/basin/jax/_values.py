"""Softmax attention with values as a function of JAX arrays: operations of what callers give."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy

from basin._engine import eager as _eager
from basin._engine.library import BasinError
from basin.jax import _ops
from basin.jax._attention import Pairs


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
        x = x.astype(real)
        total = x if total is None else total + x
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
    real = _ops.attention.f.real(q)
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
    (out,) = _ops.attention.values((flags, count, factor, 1), q, k, v, bias, listed)
    return out.reshape(*batch, *out.shape[1:]).astype(returned)


def _list_of(pairs, bias, mask, is_causal, q, k, real):
    """The packed list, its length and the bias [1, P, H]."""
    leaves_out = is_causal or mask is not None
    _eager.pattern_of(pairs, Pairs, "jax", leaves_out, q.shape[1], k.shape[1], 0)
    if bias is not None:
        bias = jnp.asarray(bias, real)
        if bias.shape != (pairs.count, q.shape[2]):
            expected = [pairs.count, q.shape[2]]
            raise BasinError(f"bias of shape {list(bias.shape)}, expected {expected} for a list")
        bias = bias[None]
    return pairs.packed, pairs.count, bias
