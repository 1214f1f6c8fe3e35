"""Functions of expressions that NumPy has no name for. Each takes expressions alone: inside
functions that Basin traces."""

from basin._expr import Expression, apply, as_expression, graph_of
from basin._library import BasinError, ffi, lib
from basin._tensor import shape_of

__all__ = [
    "attention_lse", "erf", "gradient", "heaviside", "layernorm", "lncosh", "logsumexp", "relu",
    "sigmoid", "softmax", "softplus", "stop_gradient",
]  # fmt: skip


def relu(a: Expression) -> Expression:
    """max(a, 0)."""
    return apply(lib.basin_relu, a)


def heaviside(a: Expression) -> Expression:
    """1 where a > 0, else 0; its gradient is 0."""
    return apply(lib.basin_heaviside, a)


def sigmoid(a: Expression) -> Expression:
    """1 / (1 + exp(-a))."""
    return apply(lib.basin_sigmoid, a)


def softplus(a: Expression) -> Expression:
    """log(1 + exp(a)), without overflow."""
    return apply(lib.basin_softplus, a)


def lncosh(a: Expression) -> Expression:
    """log(cosh(a)), without overflow."""
    return apply(lib.basin_lncosh, a)


def erf(a: Expression) -> Expression:
    """The error function."""
    return apply(lib.basin_erf, a)


def logsumexp(a: Expression, axis: int = -1) -> Expression:
    """log(sum(exp(a))) over an axis, which vanishes; without overflow."""
    return apply(lib.basin_logsumexp_along, a, axis)


def softmax(a: Expression, axis: int = -1) -> Expression:
    """exp(a) / sum(exp(a)) over an axis.

    >>> import basin
    >>> basin.function(lambda a: basin.softmax(a, axis=0))([[0.0, 1.0], [0.0, 1.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    return apply(lib.basin_softmax_along, a, axis)


def stop_gradient(a: Expression) -> Expression:
    """The same value, through which no gradient flows."""
    return apply(lib.basin_stop_gradient, a)


def layernorm(x: Expression, gamma=1.0, delta=None, epsilon: float = 1e-5) -> Expression:
    """gamma (x - mean) / sqrt(var + epsilon) + delta over the last axis."""
    graph = x._graph
    gamma = as_expression(gamma, graph)
    if delta is None:
        delta = graph.wrap(lib.basin_fill(graph.pointer, _last_axis(x), 0))
    delta = as_expression(delta, graph)
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
    """
    graph = graph_of((q, k))
    beta = as_expression(beta, graph)
    if beta.ndim == 0:
        beta = apply(lib.basin_broadcast, beta, shape_of(q.shape[-2:-1]))
    pattern = ffi.new("basin_pattern *", {"exclude_self": exclude_self, "causal": causal})
    null = ffi.NULL
    return graph.wrap(
        lib.basin_attention_lse(q._pointer, k._pointer, beta._pointer, null, null, pattern)
    )


def gradient(y, x):
    """The gradient of sum(y) with respect to x, an expression or a list of them."""
    many = isinstance(x, (list, tuple))
    xs = list(x) if many else [x]
    result = ffi.new("basin_expr[]", len(xs))
    lib.basin_grad_many(result, y._pointer, [e._pointer for e in xs], len(xs))
    found = [y._graph.wrap(pointer) for pointer in result]
    return found if many else found[0]
