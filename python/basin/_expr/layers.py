"""Layers, choices, sums by index and draws, inside functions that Basin traces; of arrays they
compute."""

import numbers
from typing import Any, Optional

import numpy

from basin._engine.library import BasinError, ffi, lib
from basin._engine.tensor import shape_of
from basin._expr.expression import Expression, apply, expressions, graph_of
from basin._expr.operations import computes, logsumexp

__all__ = [
    "avg_pool", "conv2d", "cross_entropy", "dropout", "max_pool", "normal", "one_hot",
    "scatter", "top_k", "uniform",
]  # fmt: skip


# ---- pictures ----


@computes
def conv2d(x: Any, kernel: Any, stride: int = 1, padding: str = "same") -> Any:
    """Cross-correlation of pictures [B, height, width, C] with a kernel [h, w, C, O].

    "same" puts zeros around, so that a stride of 1 keeps the size; "valid" does not.

    >>> blur = numpy.full((3, 3, 1, 1), 1 / 9)
    >>> blurred = basin.function(lambda x: basin.conv2d(x, blur))
    >>> blurred(numpy.ones((1, 3, 3, 1)))[0, 1, :, 0].round(3)
    array([0.667, 1.   , 0.667], dtype=float32)
    """
    if padding not in ("same", "valid"):
        raise BasinError(f"padding {padding!r}, expected 'same' or 'valid'")
    x, kernel = expressions(x, kernel)
    return apply(lib.basin_conv2d, x, kernel._pointer, stride, padding == "same")


@computes
def max_pool(x: Any, window: int, stride: Optional[int] = None) -> Any:
    """The largest element of each window of pictures [B, height, width, C]. Windows lie beside each
    other unless there is a stride.

    >>> picture = numpy.arange(16.0).reshape(1, 4, 4, 1)
    >>> basin.function(lambda x: basin.max_pool(x, 2))(picture)[0, :, :, 0]
    array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    """
    return apply(
        lib.basin_pool2d, x, lib.BASIN_POOL_MAX, window, window if stride is None else stride
    )


@computes
def avg_pool(x: Any, window: int, stride: Optional[int] = None) -> Any:
    """The mean of each window of pictures [B, height, width, C].

    >>> picture = numpy.arange(16.0).reshape(1, 4, 4, 1)
    >>> basin.function(lambda x: basin.avg_pool(x, 2))(picture)[0, :, :, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]], dtype=float32)
    """
    return apply(
        lib.basin_pool2d, x, lib.BASIN_POOL_AVERAGE, window, window if stride is None else stride
    )


# ---- choices ----


def one_hot(index: Any, count: int) -> Any:
    """[..] -> [.., count]: 1 where the column is the index, else 0; zeros for an index of -1. One
    beyond the columns is an error where it is known, else it has zeros.

    >>> basin.function(lambda i: basin.one_hot(i, 3))([2, -1])
    array([[0., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    _check_labels(index, count)
    return _one_hot(index, count)


@computes
def _one_hot(index, count):
    return 1.0 * (index[..., None] == index._graph.iota(count))


@computes
def cross_entropy(scores: Any, labels: Any) -> Any:
    """log-sum-exp of the scores [.., classes] minus the labelled one; labels [..] are whole
    numbers, known or expressions. 0 for a label of -1; nan for one that is not a
    class, an error where that is known.

    >>> basin.function(lambda s: basin.cross_entropy(s, [0, -1]))([[0.0, 0.0], [5.0, 1.0]]).round(3)
    array([0.693, 0.   ], dtype=float32)
    """
    if isinstance(scores, Expression) and scores.ndim:
        _check_labels(labels, scores.shape[-1])
    scores, labels = expressions(scores, labels)
    if labels.shape != scores.shape[:-1]:
        raise BasinError(
            f"cross_entropy of {scores!r} and {labels!r}, expected [.., classes], [..]"
        )
    hit = labels[..., None] == scores._graph.iota(scores.shape[-1])
    own = numpy.sum(numpy.where(hit, scores, 0.0), axis=-1)
    loss = numpy.where(numpy.any(hit, axis=-1), logsumexp(scores) - own, numpy.nan)
    return numpy.where(labels == -1, 0.0, loss)


def _check_labels(labels, classes):
    """Refuses known numbers that are not classes."""
    if graph_of((labels,)) is not None:
        return
    values = numpy.asarray(labels)
    wrong = values[(values != numpy.round(values)) | (values < -1) | (values >= classes)]
    if wrong.size:
        raise BasinError(
            f"the label {wrong.flat[0]} of {classes} classes, expected -1 to {classes - 1}"
        )


@computes
def top_k(a: Any, k: int, axis: int = -1) -> "tuple[Any, Any]":
    """The k largest elements of an axis in descending order, at most 64, and their places.

    >>> basin.function(lambda a: basin.top_k(a, 2)[0])([3.0, 1.0, 2.0])
    array([3., 2.], dtype=float32)
    """
    where = ffi.new("basin_expr *")
    (a,) = expressions(a)
    values = a._graph.wrap(lib.basin_top_k(a._pointer, k, axis, where))
    return values, a._graph.wrap(lib.basin_from_index(where[0], 0))


@computes
def scatter(values: Any, index: Any, rows: int) -> Any:
    """[rows, ..]: row r is the sum of the values [n, ..] whose index [n] is r.

    >>> basin.function(lambda v: basin.scatter(v, [0, 2, 0], 3))([1.0, 10.0, 100.0])
    array([101.,   0.,  10.], dtype=float32)
    """
    graph = graph_of((values, index))
    values = values if isinstance(values, Expression) else graph.constant(values)
    shape = numpy.shape(index)
    if values.shape[: len(shape)] != shape:
        raise BasinError(
            f"scatter of {values!r} by an index {list(shape)}, expected its first axes"
        )
    if isinstance(index, Expression):
        index = numpy.where(index < 0, index + rows, index).reshape(-1)
        places = lib.basin_to_index(index._pointer, rows)
    else:
        places = graph.places(_checked(numpy.asarray(index).reshape(-1), rows))
    values = values.reshape(int(numpy.prod(shape)), *values.shape[len(shape) :])
    return apply(lib.basin_scatter, values, places, rows)


def _checked(index, rows):
    if index.size and not (-rows <= index.min() and index.max() < rows):
        raise IndexError(f"index {index.min()} to {index.max()} of {rows} rows")
    return index % max(rows, 1)


# ---- draws ----


@computes
def normal(seed: Any, shape: Any) -> Any:
    """Normal draws: of one seed the same on every backend, and at every run of a compiled function.
    Give the seed as an argument of the function, and another number at each run, for other draws.
    Several draws of one seed inside a function differ from each other.

    `shape` is a tuple, or an array or expression whose shape it is. The seed is a whole number up
    to 2^24.

    >>> draws = basin.function(lambda seed: basin.normal(seed, (2, 3)))
    >>> draws(7).shape, bool((draws(7) == draws(7)).all()), bool((draws(7) == draws(8)).any())
    ((2, 3), True, False)
    """
    return _draws(lib.basin_normal, seed, shape)


@computes
def uniform(seed: Any, shape: Any) -> Any:
    """The same, evenly from [0, 1).

    >>> draws = basin.function(lambda seed: basin.uniform(seed, (1000,)))(7)
    >>> bool(draws.min() >= 0), bool(draws.max() < 1), round(float(draws.mean()), 1)
    (True, True, 0.5)
    """
    return _draws(lib.basin_uniform, seed, shape)


def _draws(function, seed, shape):
    graph = graph_of((seed, shape if isinstance(shape, Expression) else ()))
    shape = shape.shape if isinstance(shape, (Expression, numpy.ndarray)) else shape
    shape = (shape,) if isinstance(shape, numbers.Integral) else shape
    return graph.wrap(function(seed_of(graph, seed), shape_of(shape)))


def seed_of(graph, seed):
    """An index tensor [2]: the low and the high word."""
    if not isinstance(seed, Expression):
        words = [int(seed) & 0xFFFFFFFF, int(seed) >> 32 & 0xFFFFFFFF]
        return graph.places(numpy.array(words, "u4").view("i4"))
    both = numpy.stack([seed, 0.0 * seed])
    return graph.wrap(lib.basin_to_index(both._pointer, 2**31 - 1))._pointer


@computes
def dropout(a: Any, rate: float, seed: Any) -> Any:
    """A share `rate` of the elements becomes 0 and the others larger, so that the mean stays.

    >>> kept = basin.function(lambda a, s: basin.dropout(a, 0.5, s))(numpy.ones(1000), 3)
    >>> sorted(set(kept.tolist())), abs(float(kept.mean()) - 1) < 0.1
    ([0.0, 2.0], True)
    """
    return apply(lib.basin_dropout, a, rate, seed_of(a._graph, seed))
