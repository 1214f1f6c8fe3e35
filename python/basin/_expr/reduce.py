"""Reductions, running sums and order along axes by NumPy's rules."""

import math
import numbers

import numpy

from basin._engine.library import BasinError, lib
from basin._expr.expression import _BOOL, apply, axes_of, expressions, one_axis
from basin._expr.pointwise import truth

_SORTED_MAX = 2048  # elements of an axis; comparing all of them takes the square


def _over(function, a, axis, keepdims):
    """A function (expression, axis) over some axes, one after the other."""
    axes, result = axes_of(a, axis), a
    for i in reversed(axes):
        result = function(result, i)
    if keepdims:
        result = result.reshape(*(1 if i in axes else n for i, n in enumerate(a.shape)))
    return result


def _by(function):
    return lambda a, i: apply(function, a, i, 1)


def sum_of(a, axis=None, *, keepdims=False, initial=0.0):
    total = _over(_by(lib.basin_sum), a, axis, keepdims)
    return total if _is_number(initial, 0) else total + initial


def _is_number(value, number):
    return isinstance(value, numbers.Real) and value == number


def mean(a, axis=None, *, keepdims=False):
    if any(a.shape[i] == 0 for i in axes_of(a, axis)):
        return sum_of(a, axis, keepdims=keepdims) + math.nan
    return _over(_by(lib.basin_mean), a, axis, keepdims)


def max_of(a, axis=None, *, keepdims=False, initial=None):
    empty = any(a.shape[i] == 0 for i in axes_of(a, axis))
    if empty and initial is None:
        raise BasinError(f"max of {a!r}, which has no elements")
    if empty:
        return sum_of(a, axis, keepdims=keepdims) + initial
    largest = _over(_by(lib.basin_max), a, axis, keepdims)
    return largest if initial is None else numpy.maximum(largest, initial)


def min_of(a, axis=None, *, keepdims=False, initial=None):
    initial = None if initial is None else -initial
    return -max_of(-a, axis, keepdims=keepdims, initial=initial)


def ptp(a, axis=None, *, keepdims=False):
    return max_of(a, axis, keepdims=keepdims) - min_of(a, axis, keepdims=keepdims)


def prod(a, axis=None, *, keepdims=False, initial=1.0):
    product = _over(_product, a, axis, keepdims)
    return product if _is_number(initial, 1) else product * initial


def _product(a, axis):
    """Halves multiplied, again and again: derivatives hold where factors are 0."""
    rest = a.shape[:axis] + a.shape[axis + 1 :]
    if a.shape[axis] == 0:
        return a._graph.fill(rest, 1)
    while a.shape[axis] > 1:
        half = a.shape[axis] // 2
        first, second, last = (_part(a, axis, k * half, half) for k in (0, 1, 2))
        odd = a.shape[axis] % 2
        a = first * second
        if odd:
            a = numpy.concatenate([a, last], axis)
    return a.reshape(*rest)


def _part(a, axis, start, count):
    count = min(count, a.shape[axis] - start)
    return apply(lib.basin_slice, a, axis, start, count) if count else None


def var(a, axis=None, *, ddof=0, correction=None, keepdims=False):
    centred = a - mean(a, axis, keepdims=True)
    count = math.prod(a.shape[i] for i in axes_of(a, axis))
    left = count - (ddof if correction is None else correction)
    if left <= 0:
        raise BasinError(
            f"variance of {count} elements of {a!r}, expected more than {count - left}"
        )
    return sum_of(centred * centred, axis, keepdims=keepdims) / left


def std(a, axis=None, *, ddof=0, correction=None, keepdims=False):
    return numpy.sqrt(var(a, axis, ddof=ddof, correction=correction, keepdims=keepdims))


def any_of(a, axis=None, *, keepdims=False):
    result = max_of(truth(a), axis, keepdims=keepdims)
    return a._graph.wrap(result._pointer, _BOOL)


def all_of(a, axis=None, *, keepdims=False):
    result = min_of(truth(a), axis, keepdims=keepdims)
    return a._graph.wrap(result._pointer, _BOOL)


def count_nonzero(a, axis=None, *, keepdims=False):
    return sum_of(truth(a), axis, keepdims=keepdims)


def norm(a, ord=None, axis=None, keepdims=False):  # noqa: A002, NumPy's name
    """Of matrices only Frobenius' norm."""
    axes = axes_of(a, axis)
    if ord not in (None, "fro") and len(axes) != 1:
        raise BasinError(f"norm of order {ord!r} of {a!r}, expected one axis, or 'fro'")
    order = 2 if ord in (None, "fro") else ord
    return vector_norm(a, axis=axis, keepdims=keepdims, ord=order)


def vector_norm(a, *, axis=None, keepdims=False, ord=2):  # noqa: A002
    if not isinstance(ord, numbers.Real):
        raise BasinError(f"norm of order {ord!r} of {a!r}, expected a number")
    if ord == math.inf:
        return max_of(abs(a), axis, keepdims=keepdims)
    if ord == -math.inf:
        return min_of(abs(a), axis, keepdims=keepdims)
    if ord == 0:
        return count_nonzero(a, axis, keepdims=keepdims)
    if ord == 1:
        return sum_of(abs(a), axis, keepdims=keepdims)
    if ord == 2:
        return numpy.sqrt(sum_of(a * a, axis, keepdims=keepdims))
    return sum_of(abs(a) ** ord, axis, keepdims=keepdims) ** (1 / ord)


# ---- places ----


def argmax(a, axis=None, *, keepdims=False):
    """The first place of the largest element, as a number; of all elements where axis is None."""
    flat, along = one_axis(a, axis)
    place = lib.basin_argmax(flat._pointer, along)
    place = a._graph.wrap(lib.basin_from_index(place, 0) if place else place)
    if keepdims:
        shape = (1 if axis is None or i == along else n for i, n in enumerate(a.shape))
        place = place.reshape(*shape)
    return place


def argmin(a, axis=None, *, keepdims=False):
    return argmax(-a, axis, keepdims=keepdims)


def _in_order(a, axis):
    """The axis last, and [.., i, k]: 1 where its element i has place k in ascending order."""
    a, axis = one_axis(a, axis)
    count = a.shape[axis]
    if count > _SORTED_MAX:
        raise BasinError(f"sort of axis {axis} of {a!r}, expected at most {_SORTED_MAX} elements")
    a = numpy.moveaxis(a, axis, -1)
    place = a._graph.iota(count)
    own, other = a[..., :, None], a[..., None, :]
    tie = (other == own) & (place < place[:, None])
    rank = numpy.sum((other < own) | tie, -1)
    return a, axis, rank[..., None] == place


def sort(a, axis=-1):
    """Gradients go back to where each element came from."""
    last, axis, hit = _in_order(a, axis)
    return numpy.moveaxis(numpy.sum(numpy.where(hit, last[..., :, None], 0.0), -2), -1, axis)


def argsort(a, axis=-1):
    last, axis, hit = _in_order(a, axis)
    place = a._graph.iota(last.shape[-1])[:, None]
    return numpy.moveaxis(numpy.sum(numpy.where(hit, place, 0.0), -2), -1, axis)


def quantile(a, q, axis=None, *, keepdims=False):
    """Linear between the elements around it; q is known."""
    numbers_ = numpy.asarray(q, dtype=float)
    flat, along = one_axis(a, axis)
    ordered = sort(flat, along)
    at = numbers_.reshape(-1) * (flat.shape[along] - 1)
    low, high = numpy.floor(at).astype(int), numpy.ceil(at).astype(int)
    share = (at - low).reshape((-1,) + (1,) * (flat.ndim - 1))
    low, high = (numpy.moveaxis(numpy.take(ordered, n, along), along, 0) for n in (low, high))
    result = low + (high - low) * share
    shape = flat.shape[:along] + flat.shape[along + 1 :]
    if keepdims:
        shape = tuple(1 if axis is None or i == along else n for i, n in enumerate(a.shape))
    return result.reshape(*numbers_.shape, *shape)


def percentile(a, q, axis=None, *, keepdims=False):
    return quantile(a, numpy.asarray(q, dtype=float) / 100, axis, keepdims=keepdims)


def median(a, axis=None, *, keepdims=False):
    return quantile(a, 0.5, axis, keepdims=keepdims)


# ---- running sums and differences ----


def cumsum(a, axis=None):
    a, axis = one_axis(a, axis)
    return apply(lib.basin_cumsum, a, axis)


def cumprod(a, axis=None):
    """Products of 1, 2, 4, .. elements in turn, as of cumsum."""
    a, axis = one_axis(a, axis)
    count, by = a.shape[axis], 1
    while by < count:
        shape = a.shape[:axis] + (by,) + a.shape[axis + 1 :]
        before = apply(lib.basin_slice, a, axis, 0, count - by)
        a = a * numpy.concatenate([a._graph.fill(shape, 1), before], axis)
        by *= 2
    return a


def diff(a, n=1, axis=-1):
    _, axis = one_axis(a, axis)
    for _ in range(n):
        count = max(a.shape[axis] - 1, 0)
        start = min(1, a.shape[axis])
        later = apply(lib.basin_slice, a, axis, start, count)
        a = later - apply(lib.basin_slice, a, axis, 0, count)
    return a


def convolve(a, v, mode="full"):
    a, v = expressions(a, v)
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    return correlate(a, v[::-1], mode)


def correlate(a, v, mode="valid"):
    a, v = expressions(a, v)
    n, m = a.shape[0], v.shape[0]
    if a.ndim != 1 or v.ndim != 1 or n < m or mode not in ("full", "same", "valid"):
        raise BasinError(
            f"correlate of {a!r} and {v!r}, mode {mode!r}, expected vectors, long first"
        )
    before, after = {"full": (m - 1, m - 1), "valid": (0, 0), "same": (m // 2, m - 1 - m // 2)}[
        mode
    ]
    padded = numpy.pad(a, (before, after))
    windows = numpy.arange(n + before + after - m + 1)[:, None] + numpy.arange(m)
    return padded[windows] @ v
