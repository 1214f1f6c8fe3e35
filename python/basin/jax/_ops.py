"""The three operations as JAX sees them: custom calls, each the derivative of the one before.

Shapes are the kernels' own: q [B, Nq, H, Y], k [B, Nk, H, Y], beta [H], scale [B, Nq, Nk, H] (of a
list [pairs, H]), w and lse [B, Nq, H]; with the flag ONE_HEAD without the axis H. A pattern is
(flags, count, learns): flags of an operation, the length of the list, and whether gradients of beta
are requested. What is absent or zero is None."""

import ctypes

import jax
import jax.numpy as jnp
import numpy

from basin._engine import cuda as _cuda
from basin._engine import eager as _eager
from basin._engine.library import ffi, lib
from basin.jax._primitives import operation

_TARGET = "basin_attention"


def _capsule(function):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(int(ffi.cast("intptr_t", function)), None, None)


def _register():
    for platform, name in {"cpu": b"attention_host", "CUDA": b"attention_cuda"}.items():
        handler = _capsule(lib.basin_xla_handler_named(name))
        jax.ffi.register_ffi_target(_TARGET, handler, platform=platform)
    if _cuda.has_driver():  # the handler opens the module by itself, at the first call
        _cuda.prepare()


_register()


def _real(q):
    return jnp.float64 if q.dtype == jnp.float64 else jnp.float32


def _like(x):
    return None if x is None else jax.ShapeDtypeStruct(x.shape, x.dtype)


def custom_call(operation, flags, count, results, required, optional, *more):
    """Results of these shapes, None for what is not requested; `optional` operands may be None."""
    given = sum(1 << i for i, x in enumerate(optional) if x is not None)
    requested = sum(1 << i for i, x in enumerate(results) if x is not None)
    job = numpy.array([operation, flags, given, requested, 0, count, *more], "i8")
    shapes = tuple(x for x in results if x is not None)
    call = jax.ffi.ffi_call(_TARGET, shapes, vmap_method="expand_dims")
    made = iter(call(*required, *(x for x in optional if x is not None), job=job))
    return tuple(None if x is None else next(made) for x in results)


def _call(operation, pattern, results, q, k, beta, *optional):
    """`optional` are scale, list, w, a, b, or None for each."""
    return custom_call(operation, *pattern[:2], results, (q, k, beta), optional)


def _rows(q):
    return jax.ShapeDtypeStruct(q.shape[:-1], _real(q))


# ---- the log-sum-exp ----


def _lse_shapes(pattern, q, k, beta, scale, pairs):
    return [_rows(q)]


def _lse(pattern, *operands):
    return _call(_eager.LSE, pattern, _lse_shapes(pattern, *operands), *operands, None, None, None)


def _lse_jvp(pattern, operands, tangents):
    q, k, beta, scale, pairs = operands
    a, b, t_beta, t_scale, _ = tangents
    w, moved = jnp.ones(q.shape[:-1], _real(q)), None
    if t_beta is not None:  # beta multiplies q
        a = _add(a, (t_beta / beta)[:, None].astype(q.dtype) * q)
    if a is not None or b is not None:
        moved = reverse((pattern, _GW), *operands, w, a, b)[2]
    if t_scale is not None:
        slopes = force(pattern, *operands, w)[3] * t_scale
        moved = _add(
            moved, slopes.sum(2) if pairs is None else _by_query(pattern, q, k, pairs, slopes)
        )
    return [moved]


def _by_query(pattern, q, k, pairs, x):
    """Sums of x [pairs, H] for each query, [1, Nq, H]."""
    queries, _ = _nodes(pattern, q.shape[1], k.shape[1], pairs)
    return jnp.zeros((1, q.shape[1], x.shape[1]), x.dtype).at[0, queries].add(x)


def _lse_vjp(pattern, operands, cotangents, needs):
    return [*force(pattern, *operands, cotangents[0]), None]


_offered_lse = operation("basin_attention_lse", _lse_shapes, _lse, _lse_jvp, _lse_vjp)


def lse(pattern, *operands):
    return _offered_lse(pattern, *operands)[0]


# ---- the force: dq, dk, dbeta, dscale, the gradient of sum(w lse) ----


def _force_shapes(pattern, q, k, beta, scale, pairs, w):
    return [_like(q), _like(k), _like(beta) if pattern[2] else None, _like(scale)]


def _force(pattern, *operands):
    return _call(_eager.FORCE, pattern, _force_shapes(pattern, *operands), *operands, None, None)


def _force_jvp(pattern, operands, tangents):
    """Second derivatives of one number, sum(w lse), are symmetric."""
    *own, pairs, t_w = tangents
    found = [None] * 4 if t_w is None else force(pattern, *operands[:5], t_w)
    if any(t is not None for t in own):
        found = map(_add, found, _force_vjp(pattern, operands, own)[:4])
    return list(found)


def _add(a, b):
    return b if a is None else a if b is None else a + b


def _force_vjp(pattern, operands, cotangents, needs=None):
    a, b, c_beta, c_scale = cotangents
    more_q = more_beta = None
    if c_beta is not None:
        a, more_q, more_beta = _through_dbeta(pattern, operands, a, c_beta)
    gq = gk = gw = gbeta = gscale = None
    if a is not None or b is not None:
        gq, gk, gw, gbeta, gscale = reverse((pattern, _ALL), *operands, a, b)
    gq, gbeta = _add(gq, more_q), _add(gbeta, more_beta)
    if c_scale is not None:
        more = _through_dscale(pattern, operands, c_scale)
        gq, gk, gbeta, gscale, gw = map(_add, (gq, gk, gbeta, gscale, gw), more)
    return gq, gk, gbeta, gscale, None, gw


force = operation("basin_attention_force", _force_shapes, _force, _force_jvp, _force_vjp)


def _through_dbeta(pattern, operands, a, c):
    """beta dbeta is q . dq, so a cotangent c of dbeta is the cotangent c q / beta of dq; returns
    that with what else depends on q and beta."""
    q, beta = operands[0], operands[2]
    dq, _, dbeta, _ = force(pattern, *operands)
    ratio = c / beta
    by_head = ratio[:, None].astype(q.dtype)
    return _add(a, by_head * q), by_head * dq, -ratio * dbeta


def _through_dscale(pattern, operands, c):
    """Gradients of sum(c dscale) with respect to q, k, beta, scale and w."""
    q, k, beta, scale, pairs, w = operands

    def slopes(q, k, beta, scale, w):
        if pairs is not None:
            return _listed_slopes(pattern, q[0], k[0], beta, scale, pairs, w[0])
        return _dense_slopes(pattern, q, k, beta, scale, w)

    return jax.vjp(slopes, q, k, beta, scale, w)[1](c)


def _dense_slopes(pattern, q, k, beta, scale, w):
    """dscale, written out: memory for every pair and head."""
    real, one = w.dtype, pattern[0] & _eager.ONE_HEAD
    if one:
        q, k, scale, w = q[:, :, None], k[:, :, None], scale[..., None], w[..., None]
    y = beta * jnp.einsum("bnhy,bmhy->bnmh", q.astype(real), k.astype(real))
    n, m = jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])
    out = jnp.zeros((q.shape[1], k.shape[1]), bool)
    out = out | (n == m) if pattern[0] & _eager.EXCLUDE_SELF else out
    out = out | (n < m) if pattern[0] & _eager.CAUSAL else out
    z = jnp.where(out[..., None], -1e30, y * scale)
    weight = jnp.where(out[..., None], 0, jax.nn.softmax(z, axis=2))
    slopes = w[:, :, None] * weight * y
    return slopes[..., 0] if one else slopes


def _nodes(pattern, queries, keys, pairs):
    """Query and key of each pair of a list."""
    (_, key, _, query, pair), _ = _eager.list_offsets(queries, keys, pattern[1])
    count = pattern[1]
    order, by_key = pairs[pair : pair + count], pairs[query : query + count]
    return jnp.zeros(count, "i4").at[order].set(by_key), pairs[key : key + count]


def _listed_slopes(pattern, q, k, beta, scale, pairs, w):
    real = w.dtype
    queries, keys = _nodes(pattern, len(q), len(k), pairs)
    y = beta * (q[queries].astype(real) * k[keys].astype(real)).sum(-1)
    z = y * scale
    top = jax.lax.stop_gradient(jnp.full((len(q), z.shape[1]), -1e30, real).at[queries].max(z))
    weight = jnp.exp(z - top[queries])
    total = jnp.zeros_like(top).at[queries].add(weight)
    return w[queries] * weight / total[queries] * y


# ---- its reverse: gq, gk, gw, gbeta, gscale, the gradient of sum(a dq) + sum(b dk) ----

_GW, _ALL = 4, 31  # results that are requested


def _reverse_shapes(static, q, k, beta, scale, pairs, w, a, b):
    (_, _, learns), requested = static
    results = [_like(q), _like(k), _like(w), _like(beta) if learns else None, _like(scale)]
    return [x if requested >> i & 1 else None for i, x in enumerate(results)]


def _reverse(static, *operands):
    return _call(_eager.REVERSE, static[0], _reverse_shapes(static, *operands), *operands)


def _refuse(static, operands, derivatives, needs=None):
    raise NotImplementedError(
        "energy attention has derivatives of first and second order, the second over reverse mode, "
        "as jax.hessian takes it; another one was asked for"
    )


reverse = operation("basin_attention_reverse", _reverse_shapes, _reverse, _refuse, _refuse)
