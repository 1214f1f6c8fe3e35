"""Functions of expressions that NumPy has no name for. Each takes expressions alone: inside
functions that Basin traces."""

import contextlib
import contextvars
from typing import Any

import numpy

from basin._expr import Expression, apply, wanted_expression
from basin._library import BasinError, ffi, lib
from basin._tensor import shape_of

__all__ = [
    "attention_lse", "erf", "gradient", "heaviside", "layernorm", "lncosh", "logsumexp", "relu",
    "sigmoid", "softmax", "softplus", "stop_gradient",
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


def logsumexp(a: Expression, axis: int = -1) -> Expression:
    """log(sum(exp(a))) over an axis, which vanishes; without overflow.

    >>> import basin
    >>> basin.function(basin.logsumexp)([[1000.0, 0.0], [0.0, -1000.0]])
    array([1000.,    0.], dtype=float32)
    """
    return apply(lib.basin_logsumexp, a, axis)


def softmax(a: Expression, axis: int = -1) -> Expression:
    """exp(a) / sum(exp(a)) over an axis.

    >>> import basin
    >>> basin.function(lambda a: basin.softmax(a, axis=0))([[0.0, 1.0], [0.0, 1.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    return apply(lib.basin_softmax, a, axis)


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
    q: Expression, k: Expression, beta=1.0, exclude_self: bool = False, causal: bool = False
) -> Expression:
    """log(sum over keys of exp(beta q . k)) for each query and head: the heart of energy attention.

    q [.., N, H, Y], k [.., M, H, Y], beta a number or [H]; the result is [.., N, H]. With
    `causal` a query sees its own token and those before it. One fused kernel computes it; memory
    grows with tokens, never with their square.

    >>> import basin, numpy
    >>> q = k = numpy.zeros((4, 2, 8))  # 4 tokens, 2 heads: the logarithm of 4 keys, each exp(0)
    >>> basin.function(lambda q, k: basin.attention_lse(q, k, 0.5))(q, k).round(3)[0]
    array([1.386, 1.386], dtype=float32)
    """
    graph = q._graph
    beta = wanted_expression(beta, graph)
    if _plain.get():
        return _plain_lse(q, k, beta, exclude_self, causal)
    if beta.ndim == 0:
        beta = apply(lib.basin_broadcast, beta, shape_of(q.shape[-2:-1]))
    pattern = ffi.new("basin_pattern *", {"exclude_self": exclude_self, "causal": causal})
    null = ffi.NULL
    return graph.wrap(
        lib.basin_attention_lse(q._pointer, k._pointer, beta._pointer, null, null, pattern)
    )


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


def _plain_lse(q, k, beta, exclude_self, causal):
    """Per query and head as attention_lse has it, a query without keys 0."""
    swap = [*range(q.ndim - 3), q.ndim - 2, q.ndim - 3, q.ndim - 1]
    q, k = q.transpose(swap), k.transpose(swap)  # [.., H, N, Y]
    beta = beta.reshape(-1, 1, 1) if beta.ndim else beta
    z = beta * (q @ k.transpose([*range(k.ndim - 2), k.ndim - 1, k.ndim - 2]))
    n, m = q.shape[-2], k.shape[-2]
    out = (numpy.eye(n, m) if exclude_self else 0) + (numpy.triu(numpy.ones((n, m)), 1) * causal)
    out = numpy.broadcast_to(out > 0, (n, m))
    lse = logsumexp(z - 1e30 * out if out.any() else z, axis=-1)
    lse = lse * ~out.all(1) if out.all(1).any() else lse
    return lse.transpose([*range(lse.ndim - 2), lse.ndim - 1, lse.ndim - 2])


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
