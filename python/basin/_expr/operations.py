"""Functions that NumPy has no name for, inside functions that Basin traces; of arrays they compute.
layers.py and derivatives.py have more."""

import contextlib
import contextvars
import functools
import inspect
import math
from typing import Any, Callable, Optional, TypeVar, cast

import numpy

from basin._engine.eager import parts_of_list
from basin._engine.library import BasinError, ffi, lib
from basin._engine.tensor import shape_of
from basin._expr.batched import NotBatchedError, each, pointer_of, size_of
from basin._expr.expression import (
    Expression,
    apply,
    axes_of,
    expressions,
    graph_of,
    required_expression,
)  # fmt: skip

__all__ = [
    "attention_lse", "entmax15", "erf", "gelu", "gradient", "layernorm", "lncosh",
    "log_softmax", "logsumexp", "normmax2", "relu", "shrink", "sigmoid", "silu", "softmax",
    "softplus", "sparsemax", "stop_gradient", "to_box", "to_sphere", "to_tangent",
]  # fmt: skip


_Callable = TypeVar("_Callable", bound=Callable[..., Any])


@functools.lru_cache(maxsize=256, typed=True)
def _of_arrays(python_function, rest, options):
    from basin.functions import Function

    return Function(lambda a: python_function(a, *rest, **dict(options)))


def computes(python_function: _Callable) -> _Callable:
    """Makes a function of expressions one of arrays as well, computed on the backend "cpu": the
    first argument is traced, the others are known."""
    first = next(iter(inspect.signature(python_function).parameters))

    @functools.wraps(python_function)
    def call(*args, **options):
        if graph_of((*args, *options.values())) is not None or not (args or first in options):
            return python_function(*args, **options)
        a, *rest = args or (options.pop(first),)
        known = python_function, tuple(rest), tuple(options.items())
        try:
            return _of_arrays(*known)(a)
        except TypeError:  # arrays among the others are not hashed
            return _of_arrays.__wrapped__(*known)(a)

    return cast(_Callable, call)


@computes
def relu(a: Any) -> Any:
    """max(a, 0).

    >>> basin.function(basin.relu)([-1.0, 2.0])
    array([0., 2.], dtype=float32)
    """
    return apply(lib.basin_relu, a)


@computes
def sigmoid(a: Any) -> Any:
    """1 / (1 + exp(-a)).

    >>> basin.function(basin.sigmoid)([0.0, 100.0])
    array([0.5, 1. ], dtype=float32)
    """
    return apply(lib.basin_sigmoid, a)


@computes
def softplus(a: Any) -> Any:
    """log(1 + exp(a)), without overflow.

    >>> basin.function(basin.softplus)([-1000.0, 1000.0])
    array([   0., 1000.], dtype=float32)
    """
    return apply(lib.basin_softplus, a)


@computes
def lncosh(a: Any) -> Any:
    """log(cosh(a)), without overflow.

    >>> basin.function(basin.lncosh)([0.0, 1000.0]).round(1)
    array([  0. , 999.3], dtype=float32)
    """
    return apply(lib.basin_lncosh, a)


@computes
def erf(a: Any) -> Any:
    """The error function.

    >>> basin.function(basin.erf)([0.0, 10.0])
    array([0., 1.], dtype=float32)
    """
    return apply(lib.basin_erf, a)


@computes
def gelu(a: Any, approximate: bool = False) -> Any:
    """a times the normal distribution up to a; `approximate`: with a tanh, JAX's default.

    >>> basin.function(basin.gelu)([-10.0, 0.0, 1.0]).round(3)
    array([-0.   ,  0.   ,  0.841], dtype=float32)
    """
    if approximate:
        return a * (1 + numpy.tanh((2 / numpy.pi) ** 0.5 * (a + 0.044715 * a**3))) / 2
    return a * (1 + erf(a / 2**0.5)) / 2


@computes
def silu(a: Any) -> Any:
    """a sigmoid(a).

    >>> basin.function(basin.silu)([-100.0, 0.0, 2.0]).round(3)
    array([-0.   ,  0.   ,  1.762], dtype=float32)
    """
    return a * sigmoid(a)


@computes
def logsumexp(a: Any, axis: Any = -1, keepdims: bool = False) -> Any:
    """log(sum(exp(a))) over an axis, several, or all where it is None; without overflow.

    >>> basin.function(basin.logsumexp)([[1000.0, 0.0], [0.0, -1000.0]])
    array([1000.,    0.], dtype=float32)
    """
    axes = axes_of(a, axis)
    joined, _ = _joined(a, axes)
    result = apply(lib.basin_logsumexp, joined, axes[0] if len(axes) == 1 else -1)
    return numpy.expand_dims(result, tuple(axes)) if keepdims else result


def _joined(a, axes):
    """Several axes as one, the last; and the order of axes that this took."""
    order = [i for i in range(a.ndim) if i not in axes] + axes
    if len(axes) == 1:
        return a, order
    kept = [a.shape[i] for i in order[: a.ndim - len(axes)]]
    return numpy.transpose(a, order).reshape(*kept, math.prod(a.shape[i] for i in axes)), order


@computes
def log_softmax(a: Any, axis: Any = -1) -> Any:
    """a - logsumexp(a) over an axis, several, or all.

    >>> basin.function(basin.log_softmax)([0.0, 1000.0])
    array([-1000.,     0.], dtype=float32)
    """
    return a - logsumexp(a, axis, keepdims=True)


@computes
def softmax(a: Any, axis: Any = -1) -> Any:
    """exp(a) / sum(exp(a)) over an axis, several, or all where it is None.

    >>> basin.function(lambda a: basin.softmax(a, axis=0))([[0.0, 1.0], [0.0, 1.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    axes = axes_of(a, axis)
    if len(axes) == 1:
        return apply(lib.basin_softmax, a, axes[0])
    joined, order = _joined(a, axes)
    shares = apply(lib.basin_softmax, joined, -1).reshape(*(a.shape[i] for i in order))
    return numpy.transpose(shares, numpy.argsort(order))


@computes
def sparsemax(a: Any) -> Any:
    """Probabilities over the last axis, some of them 0: the point of the simplex nearest to a.

    >>> basin.function(basin.sparsemax)([0.0, 0.5, 1.0])
    array([0.  , 0.25, 0.75], dtype=float32)
    """
    return apply(lib.basin_sparse_softmax, a, lib.BASIN_SPARSE_SPARSEMAX)


@computes
def entmax15(a: Any) -> Any:
    """Between softmax and sparsemax: Tsallis' entropy of order 1.5 over the last axis.

    >>> basin.function(basin.entmax15)([0.0, 0.0, 5.0])
    array([0., 0., 1.], dtype=float32)
    """
    return apply(lib.basin_sparse_softmax, a, lib.BASIN_SPARSE_ENTMAX15)


@computes
def normmax2(a: Any) -> Any:
    """The relative of softmax whose entropy is 1 - |p|, over the last axis.

    >>> basin.function(basin.normmax2)([0.0, 0.0, 2.0])
    array([0., 0., 1.], dtype=float32)
    """
    return apply(lib.basin_sparse_softmax, a, lib.BASIN_SPARSE_NORMMAX2)


@computes
def to_sphere(x: Any, group: Optional[int] = None) -> Any:
    """x with every `group` neighbours of the last axis at length 1; by default the whole axis.

    >>> basin.function(basin.to_sphere)([3.0, 4.0])
    array([0.6, 0.8], dtype=float32)
    """
    return apply(lib.basin_to_sphere, x, x.shape[-1] if group is None else group)


@computes
def to_tangent(force: Any, x: Any, group: Optional[int] = None) -> Any:
    """The part of a force that is tangent to the spheres of to_sphere at x.

    >>> basin.function(basin.to_tangent)([1.0, 1.0], [0.0, 1.0])
    array([1., 0.], dtype=float32)
    """
    force, x = expressions(force, x)
    group = x.shape[-1] if group is None else group
    f, rows = (a.reshape(*a.shape[:-1], -1, group) for a in (force, x))
    return (f - numpy.sum(f * rows, -1, keepdims=True) * rows).reshape(force.shape)


@computes
def to_box(x: Any, low: float, high: float) -> Any:
    """x cut to [low, high].

    >>> basin.function(lambda x: basin.to_box(x, -1, 1))([-3.0, 0.5])
    array([-1. ,  0.5], dtype=float32)
    """
    if not low <= high:
        raise BasinError(f"a box from {low} to {high}")
    return numpy.minimum(numpy.maximum(*expressions(x, low)), high)


@computes
def shrink(x: Any, by: Any) -> Any:
    """x drawn towards 0, and 0 where it is nearer: sign(x) relu(|x| - by).

    >>> basin.function(lambda x: basin.shrink(x, 1.0))([-3.0, 0.5])
    array([-2.,  0.], dtype=float32)
    """
    x, by = expressions(x, by)
    return relu(x - by) - relu(-(x + by))


@computes
def stop_gradient(a: Any) -> Any:
    """The same value, through which no gradient flows.

    >>> basin.function(lambda a: a * basin.stop_gradient(a)).grad([3.0])
    array([3.], dtype=float32)
    """
    return apply(lib.basin_stop_gradient, a)


@computes
def layernorm(x: Any, gamma=1.0, delta=None, epsilon: float = 1e-5) -> Any:
    """gamma (x - mean) / sqrt(var + epsilon) + delta over the last axis.

    >>> basin.function(basin.layernorm, backend="ref")([[1.0, 3.0]]).round(4)
    array([[-1.,  1.]])
    """
    x, gamma = expressions(x, gamma)
    delta = ffi.NULL if delta is None else required_expression(delta, x._graph)._pointer
    return apply(lib.basin_layernorm, x, gamma._pointer, delta, epsilon)


@computes
def attention_lse(
    q: Any, k: Any, beta=1.0, exclude_self: bool = False, causal: bool = False,
    *, scale: Any = None, bias: Any = None, mix: Any = None, pairs: Any = None,
) -> Any:  # fmt: skip
    """log(sum over keys of exp(beta q . k)) for each query and head: the heart of energy attention.

    q [.., N, H, Y], k [.., M, H, Y], beta a number or [H]; the result is [.., N, H]. With
    `causal` a query sees its own token and those before it. One fused kernel computes it; memory
    grows with tokens, never with their square.

    `scale` multiplies the scores, `bias` is added to them (one of the two): what repeats to
    [.., N, M, H]. `mix` [H, H] mixes the scores of heads. `pairs`, known numbers [P, 2],
    lists (query, key); `scale` and `bias` are then [P] or [P, H] in the order of the list.

    >>> q = k = numpy.zeros((4, 2, 8))  # 4 tokens, 2 heads: the logarithm of 4 keys, each exp(0)
    >>> basin.function(lambda q, k: basin.attention_lse(q, k, 0.5))(q, k).round(3)[0]
    array([1.386, 1.386], dtype=float32)
    """
    q, k, beta = expressions(q, k, beta)
    graph = q._graph
    if scale is not None and bias is not None:
        raise BasinError("attention_lse with a scale and a bias, expected one of them")
    if _plain.get():
        hidden = _hidden_pairs(q.shape[-3], k.shape[-3], exclude_self, causal, pairs)
        return _plain_lse(q, k, beta, hidden, scale, bias, mix, pairs)
    if beta.ndim == 0:
        beta = apply(lib.basin_broadcast_to, beta, shape_of(q.shape[-2:-1]))
    pattern = ffi.new("basin_pattern *", {"exclude_self": exclude_self, "causal": causal})
    order = None if pairs is None else _list_pairs(pattern, graph, q, k, pairs)
    options = ffi.new("basin_lse_options *")
    for name, scores in (("scale", scale), ("bias", bias)):
        if scores is not None:
            setattr(options, name, _score_rows(scores, q, k, order)._pointer)
    if mix is not None:
        options.mix = required_expression(mix, graph)._pointer
    size = size_of([q, k])
    if size is not None:
        q, k = each(size, [q, k])
        if pairs is not None or scale is not None or bias is not None:
            raise NotBatchedError("attention of listed pairs")
    operands = pointer_of(q), pointer_of(k), beta._pointer
    return q._again(lib.basin_attention_lse(*operands, pattern, options))


def _list_pairs(pattern, graph, q, k, pairs):
    """Writes the list into the pattern, by query and by key; returns its order of the pairs."""
    pairs, ends = numpy.asarray(pairs), (q.shape[-3], k.shape[-3])
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise BasinError(f"pairs of shape {list(pairs.shape)}, expected whole numbers [P, 2]")
    if pairs.size and (pairs.min() < 0 or (pairs.max(0) >= ends).any()):
        raise BasinError(f"a pair beyond {ends[0]} queries and {ends[1]} keys")
    pairs, order = numpy.unique(pairs, axis=0, return_index=True)
    for name, part in parts_of_list(pairs, *ends).items():
        setattr(pattern, name, graph.places(part))
    return order


def _score_rows(scores, q, k, order):
    """What multiplies scores or is added to them, [pairs, H]."""
    scores, heads = required_expression(scores, q._graph), q.shape[-2]
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
    scores = required_expression(scores, z._graph)
    if pairs is None:
        return numpy.moveaxis(numpy.broadcast_to(scores, (*z.shape[-2:], z.shape[-3])), -1, -3)
    number = numpy.zeros(z.shape[-2:], int)
    number[tuple(numpy.asarray(pairs).T)] = numpy.arange(len(pairs))
    rows = scores[:, None] if scores.ndim == 1 else scores
    return numpy.moveaxis(numpy.take(rows, number, 0), -1, -3)


def gradient(y: Expression, x: Any) -> Any:
    """The gradient of sum(y) with respect to x, an expression or a list of them.

    >>> basin.function(lambda x: basin.gradient(x**3, x))([1.0, 2.0])
    array([ 3., 12.], dtype=float32)
    """
    return pulled_back("gradient", y, x)


def pulled_back(what: str, y: Any, x: Any, cotangent: Any = None) -> Any:
    """The gradient of sum(cotangent y), or of sum(y)."""
    many, xs = variables(what, y, x)
    given = [y] if cotangent is None else [y, required_expression(cotangent, y._graph)]
    size = size_of([*given, *xs])
    if size is not None:
        if any(x._batch is None for x in xs):
            raise NotBatchedError(f"the {what} by what entries share")
        given = each(size, given)
    y, *along = given
    result = ffi.new("basin_expr[]", len(xs))
    along = pointer_of(along[0]) if along else ffi.NULL
    lib.basin_vjp(result, pointer_of(y), along, [pointer_of(x) for x in xs], len(xs))
    found = [y._again(pointer) for pointer in result]
    return found if many else found[0]


def variables(what: str, y: Any, x: Any) -> "tuple[bool, list[Expression]]":
    """Whether x is a list, and what a derivative of y is taken by."""
    many = isinstance(x, (list, tuple))
    xs = list(x) if many else [x]
    for value in [y, *xs]:
        if not isinstance(value, Expression):
            raise BasinError(
                f"{what} of {y!r} with respect to {x!r}, expected expressions: use it inside "
                "basin.function, on its arguments"
            )
    return many, xs
