"""Functions of expressions that NumPy has no name for. Each takes expressions alone: inside
functions that Basin traces. layers.py and derivatives.py have more."""

import contextlib
import contextvars
from typing import Any, Optional

import numpy

from basin._expr import Expression, apply, expressions, wanted_expression
from basin._library import BasinError, ffi, lib
from basin._tensor import shape_of

__all__ = [
    "attention_lse", "entmax15", "erf", "gelu", "gradient", "heaviside", "layernorm", "lncosh",
    "log_softmax", "logsumexp", "normmax2", "relu", "shrink", "sigmoid", "silu", "softmax",
    "softplus", "sparsemax", "stop_gradient", "to_box", "to_sphere", "to_tangent",
]  # fmt: skip


def relu(a: Expression) -> Expression:
    """max(a, 0).

    >>> import basin
    >>> basin.function(basin.relu)([-1.0, 2.0])
    array([0., 2.], dtype=float32)
    """
    return apply(lib.basin_relu, a)


def heaviside(a: Expression) -> Expression:
    """1 where a > 0, else 0; its gradient is 0.

    >>> import basin
    >>> basin.function(basin.heaviside)([-1.0, 2.0])
    array([0., 1.], dtype=float32)
    """
    return apply(lib.basin_heaviside, a)


def sigmoid(a: Expression) -> Expression:
    """1 / (1 + exp(-a)).

    >>> import basin
    >>> basin.function(basin.sigmoid)([0.0, 100.0])
    array([0.5, 1. ], dtype=float32)
    """
    return apply(lib.basin_sigmoid, a)


def softplus(a: Expression) -> Expression:
    """log(1 + exp(a)), without overflow.

    >>> import basin
    >>> basin.function(basin.softplus)([-1000.0, 1000.0])
    array([   0., 1000.], dtype=float32)
    """
    return apply(lib.basin_softplus, a)


def lncosh(a: Expression) -> Expression:
    """log(cosh(a)), without overflow.

    >>> import basin
    >>> basin.function(basin.lncosh)([0.0, 1000.0]).round(1)
    array([  0. , 999.3], dtype=float32)
    """
    return apply(lib.basin_lncosh, a)


def erf(a: Expression) -> Expression:
    """The error function.

    >>> import basin
    >>> basin.function(basin.erf)([0.0, 10.0])
    array([0., 1.], dtype=float32)
    """
    return apply(lib.basin_erf, a)


def gelu(a: Expression, approximate: bool = False) -> Expression:
    """a times the normal distribution up to a; `approximate`: with a tanh, JAX's default.

    >>> import basin
    >>> basin.function(basin.gelu)([-10.0, 0.0, 1.0]).round(3)
    array([-0.   ,  0.   ,  0.841], dtype=float32)
    """
    if approximate:
        return a * (1 + numpy.tanh((2 / numpy.pi) ** 0.5 * (a + 0.044715 * a**3))) / 2
    return a * (1 + erf(a / 2**0.5)) / 2


def silu(a: Expression) -> Expression:
    """a sigmoid(a).

    >>> import basin
    >>> basin.function(basin.silu)([-100.0, 0.0, 2.0]).round(3)
    array([-0.   ,  0.   ,  1.762], dtype=float32)
    """
    return a * sigmoid(a)


def logsumexp(a: Expression, axis: Optional[int] = -1, keepdims: bool = False) -> Expression:
    """log(sum(exp(a))) over an axis, or over all where it is None; without overflow.

    >>> import basin
    >>> basin.function(basin.logsumexp)([[1000.0, 0.0], [0.0, -1000.0]])
    array([1000.,    0.], dtype=float32)
    """
    flat, along = (a.reshape(-1), 0) if axis is None else (a, axis)
    result = apply(lib.basin_logsumexp, flat, along)
    if not keepdims:
        return result
    return numpy.expand_dims(result, tuple(range(a.ndim)) if axis is None else axis)


def log_softmax(a: Expression, axis: int = -1) -> Expression:
    """a - logsumexp(a) over an axis.

    >>> import basin
    >>> basin.function(basin.log_softmax)([0.0, 1000.0])
    array([-1000.,     0.], dtype=float32)
    """
    return a - logsumexp(a, axis, keepdims=True)


def softmax(a: Expression, axis: int = -1) -> Expression:
    """exp(a) / sum(exp(a)) over an axis.

    >>> import basin
    >>> basin.function(lambda a: basin.softmax(a, axis=0))([[0.0, 1.0], [0.0, 1.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    return apply(lib.basin_softmax, a, axis)


def sparsemax(a: Expression) -> Expression:
    """Probabilities over the last axis, some of them 0: the point of the simplex nearest to a.

    >>> import basin
    >>> basin.function(basin.sparsemax)([0.0, 0.5, 1.0])
    array([0.  , 0.25, 0.75], dtype=float32)
    """
    return apply(lib.basin_sparsemax, a)


def entmax15(a: Expression) -> Expression:
    """Between softmax and sparsemax: Tsallis' entropy of order 1.5 over the last axis.

    >>> import basin
    >>> basin.function(basin.entmax15)([0.0, 0.0, 5.0])
    array([0., 0., 1.], dtype=float32)
    """
    return apply(lib.basin_entmax15, a)


def normmax2(a: Expression) -> Expression:
    """The relative of softmax whose entropy is 1 - |p|, over the last axis.

    >>> import basin
    >>> basin.function(basin.normmax2)([0.0, 0.0, 2.0])
    array([0., 0., 1.], dtype=float32)
    """
    return apply(lib.basin_normmax2, a)


def to_sphere(x: Expression, group: Optional[int] = None) -> Expression:
    """x with every `group` neighbours of the last axis at length 1; by default the whole axis.

    >>> import basin
    >>> basin.function(basin.to_sphere)([3.0, 4.0])
    array([0.6, 0.8], dtype=float32)
    """
    return apply(lib.basin_to_sphere, x, x.shape[-1] if group is None else group)


def to_tangent(force: Expression, x: Expression, group: Optional[int] = None) -> Expression:
    """The part of a force that is tangent to the spheres of to_sphere at x.

    >>> import basin
    >>> basin.function(basin.to_tangent)([1.0, 1.0], [0.0, 1.0])
    array([1., 0.], dtype=float32)
    """
    force, x = expressions(force, x)
    group = x.shape[-1] if group is None else group
    return apply(lib.basin_to_tangent, force, x._pointer, group)


def to_box(x: Expression, low: float, high: float) -> Expression:
    """x cut to [low, high].

    >>> import basin
    >>> basin.function(lambda x: basin.to_box(x, -1, 1))([-3.0, 0.5])
    array([-1. ,  0.5], dtype=float32)
    """
    return apply(lib.basin_to_box, x, low, high)


def shrink(x: Expression, by: Any) -> Expression:
    """x drawn towards 0, and 0 where it is nearer: sign(x) relu(|x| - by).

    >>> import basin
    >>> basin.function(lambda x: basin.shrink(x, 1.0))([-3.0, 0.5])
    array([-2.,  0.], dtype=float32)
    """
    x, by = expressions(x, by)
    return apply(lib.basin_shrink, x, by._pointer)


def stop_gradient(a: Expression) -> Expression:
    """The same value, through which no gradient flows.

    >>> import basin
    >>> basin.function(lambda a: a * basin.stop_gradient(a)).grad([3.0])
    array([3.], dtype=float32)
    """
    return apply(lib.basin_stop_gradient, a)


def layernorm(x: Expression, gamma=1.0, delta=None, epsilon: float = 1e-5) -> Expression:
    """gamma (x - mean) / sqrt(var + epsilon) + delta over the last axis.

    >>> import basin
    >>> basin.function(basin.layernorm, backend="ref")([[1.0, 3.0]]).round(4)
    array([[-1.,  1.]])
    """
    graph = x._graph
    gamma = wanted_expression(gamma, graph)
    if delta is None:
        delta = graph.wrap(lib.basin_fill(graph.pointer, _last_axis(x), 0))
    delta = wanted_expression(delta, graph)
    return apply(lib.basin_layernorm, x, gamma._pointer, delta._pointer, epsilon)


def _last_axis(x):
    if x.ndim == 0:
        raise BasinError(f"{x!r}, wanted at least one axis")
    return shape_of(x.shape[-1:])


def attention_lse(
    q: Expression, k: Expression, beta=1.0, exclude_self: bool = False, causal: bool = False,
    *, scale: Any = None, bias: Any = None, mix: Any = None, pairs: Any = None,
) -> Expression:  # fmt: skip
    """log(sum over keys of exp(beta q . k)) for each query and head: the heart of energy attention.

    q [.., N, H, Y], k [.., M, H, Y], beta a number or [H]; the result is [.., N, H]. With
    `causal` a query sees its own token and those before it. One fused kernel computes it; memory
    grows with tokens, never with their square.

    `scale` multiplies the scores, `bias` is added to them (one of the two): what repeats to
    [.., N, M, H]. `mix` [H, H] mixes the scores of heads. `pairs`, known numbers [P, 2] of (query,
    key), lists who sees whom; `scale` and `bias` are then [P] or [P, H] in the order of the list.

    >>> import basin, numpy
    >>> q = k = numpy.zeros((4, 2, 8))  # 4 tokens, 2 heads: the logarithm of 4 keys, each exp(0)
    >>> basin.function(lambda q, k: basin.attention_lse(q, k, 0.5))(q, k).round(3)[0]
    array([1.386, 1.386], dtype=float32)
    """
    graph = q._graph
    beta = wanted_expression(beta, graph)
    if scale is not None and bias is not None:
        raise BasinError("attention_lse with a scale and a bias, wanted one of them")
    if _plain.get():
        hidden = _hidden_pairs(q.shape[-3], k.shape[-3], exclude_self, causal, pairs)
        return _plain_lse(q, k, beta, hidden, scale, bias, mix, pairs)
    if beta.ndim == 0:
        beta = apply(lib.basin_broadcast, beta, shape_of(q.shape[-2:-1]))
    pattern = ffi.new("basin_pattern *", {"exclude_self": exclude_self, "causal": causal})
    order = None if pairs is None else _list_pairs(pattern, graph, q, k, pairs)
    scores = bias if scale is None else scale
    scores = ffi.NULL if scores is None else _score_rows(scores, q, k, order)._pointer
    mix = ffi.NULL if mix is None else wanted_expression(mix, graph)._pointer
    function = lib.basin_attention_lse if bias is None else lib.basin_attention_lse_biased
    return graph.wrap(function(q._pointer, k._pointer, beta._pointer, scores, mix, pattern))


def _list_pairs(pattern, graph, q, k, pairs):
    """Writes the list into the pattern, by query and by key; returns its order of the pairs."""
    pairs, ends = numpy.asarray(pairs), (q.shape[-3], k.shape[-3])
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise BasinError(f"pairs of shape {list(pairs.shape)}, wanted whole numbers [P, 2]")
    if pairs.size and (pairs.min() < 0 or (pairs.max(0) >= ends).any()):
        raise BasinError(f"a pair beyond {ends[0]} queries and {ends[1]} keys")
    pairs, order = numpy.unique(pairs, axis=0, return_index=True)
    query, key = pairs.T
    by_key = numpy.argsort(key, kind="stable")
    pattern.row = graph.places(numpy.searchsorted(query, numpy.arange(ends[0] + 1)))
    pattern.key = graph.places(key)
    pattern.column = graph.places(numpy.searchsorted(key[by_key], numpy.arange(ends[1] + 1)))
    pattern.query = graph.places(query[by_key])
    pattern.pair = graph.places(by_key)
    return order


def _score_rows(scores, q, k, order):
    """What multiplies scores or is added to them, [pairs, H]."""
    scores, heads = wanted_expression(scores, q._graph), q.shape[-2]
    if order is None:
        wide = (*q.shape[:-3], q.shape[-3], k.shape[-3], heads)
        return numpy.broadcast_to(scores, wide).reshape(-1, heads)
    if scores.ndim == 1:
        scores = scores[:, None]
    if len(order) > len(scores):
        raise BasinError(f"{scores!r} for {len(order)} pairs")
    return numpy.broadcast_to(numpy.take(scores, order, 0), (len(order), heads))


_plain = contextvars.ContextVar("plain", default=False)


@contextlib.contextmanager
def plain_attention():
    """Inside, attention_lse is made of plain operations: memory for every pair of tokens, and
    derivatives of every order, where the fused kernel has two."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def _hidden_pairs(n, m, exclude_self, causal, pairs):
    """[n, m]: whether a query does not see a key."""
    if pairs is not None:
        hidden = numpy.ones((n, m), bool)
        hidden[tuple(numpy.asarray(pairs).T)] = False
        return hidden
    return (numpy.eye(n, m) * exclude_self + numpy.triu(numpy.ones((n, m)), 1) * causal) > 0


def _plain_lse(q, k, beta, hidden, scale, bias, mix, pairs):
    """Per query and head as attention_lse has it, a query without keys 0."""
    beta = beta.reshape(-1, 1, 1) if beta.ndim else beta
    z = beta * numpy.einsum("...nhy,...mhy->...hnm", q, k)
    if mix is not None:
        z = numpy.einsum("...gnm,gh->...hnm", z, mix)
    z = z if scale is None else z * _by_head(scale, z, pairs)
    z = z if bias is None else z + _by_head(bias, z, pairs)
    lse = logsumexp(numpy.where(hidden, -1e30, z) if hidden.any() else z, axis=-1)
    lse = numpy.where(hidden.all(1), 0.0, lse) if hidden.all(1).any() else lse
    return numpy.swapaxes(lse, -1, -2)


def _by_head(scores, z, pairs):
    """Scores of pairs as z has them, [.., H, N, M]."""
    scores = wanted_expression(scores, z._graph)
    if pairs is None:
        return numpy.moveaxis(numpy.broadcast_to(scores, (*z.shape[-2:], z.shape[-3])), -1, -3)
    number = numpy.zeros(z.shape[-2:], int)
    number[tuple(numpy.asarray(pairs).T)] = numpy.arange(len(pairs))
    rows = scores[:, None] if scores.ndim == 1 else scores
    return numpy.moveaxis(numpy.take(rows, number, 0), -1, -3)


def gradient(y: Expression, x: Any) -> Any:
    """The gradient of sum(y) with respect to x, an expression or a list of them.

    >>> import basin
    >>> basin.function(lambda x: basin.gradient(x**3, x))([1.0, 2.0])
    array([ 3., 12.], dtype=float32)
    """
    many = isinstance(x, (list, tuple))
    xs = list(x) if many else [x]
    result = ffi.new("basin_expr[]", len(xs))
    lib.basin_vjp(result, y._pointer, ffi.NULL, [e._pointer for e in xs], len(xs))
    found = [y._graph.wrap(pointer) for pointer in result]
    return found if many else found[0]
