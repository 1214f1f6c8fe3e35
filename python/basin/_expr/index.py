"""Subscripts of expressions, a[..], by NumPy's rules."""

import numbers

import numpy

from basin._engine.library import BasinError, lib
from basin._expr.expression import Expression, apply, array_of_others

_KINDS = "expected numbers, slices, None, ..., lists of places or masks of known numbers"
_COUNTED = lib.BASIN_MAX_ARANGE  # places that a float counts


def subscript(a, index):
    index = [part for i in index for part in _parts(a, i)]
    taken = sum(i is not None and i is not Ellipsis for i in index)
    if taken > a.ndim or sum(i is Ellipsis for i in index) > 1:
        raise IndexError(f"{taken} subscripts of {a!r}")
    spread = [slice(None)] * (a.ndim - taken)
    at = next((n for n, i in enumerate(index) if i is Ellipsis), len(index))
    if any(isinstance(i, (numpy.ndarray, Expression)) for i in index):
        return _by_places(a, index, at, spread)
    return _plain(a, index[:at] + spread + index[at + 1 :])


def _parts(a, i):
    """A subscript as the ones it means: a mask becomes a list of places for each of its axes."""
    if i is None or i is Ellipsis or isinstance(i, slice):
        return [i]
    if isinstance(i, Expression):
        if i.dtype == bool:
            raise BasinError(
                f"a mask that is not known yet as subscript of {a!r}: how many it chooses is open; "
                "numpy.where(mask, a, 0) keeps the shape"
            )
        return [i]
    if isinstance(i, (bool, numpy.bool_)):
        raise BasinError(f"subscript {i} of {a!r}, {_KINDS}")
    if isinstance(i, numbers.Integral):
        return [int(i)]
    known = array_of_others(i) if not isinstance(i, (list, tuple)) else numpy.asarray(i)
    if known is None or known.dtype.kind not in "iub" and known.size:
        raise BasinError(f"subscript {i!r} of {a!r}, {_KINDS}")
    if known.dtype.kind == "b":
        return list(known.nonzero())
    return [int(known) if known.ndim == 0 else known.astype(int)]


def _plain(a, index):
    """Numbers, slices and None, one for each axis."""
    shape, axis = [], 0
    for i in index:
        if i is None:
            shape.append(1)
            continue
        if isinstance(i, slice):
            a = _slice(a, axis, *i.indices(a.shape[axis]))
            shape.append(a.shape[axis])
        else:
            a = apply(lib.basin_slice, a, axis, _place(a, axis, i), 1)
        axis += 1
    return a.reshape(*shape) if tuple(shape) != a.shape else a


def _place(a, axis, i):
    size = a.shape[axis]
    if not -size <= i < size:
        raise IndexError(f"subscript {i} of axis {axis} of {a!r}")
    return i % size


def _slice(a, axis, start, stop, step):
    count = len(range(start, stop, step))
    if (start, count, step) == (0, a.shape[axis], 1):
        return a
    return apply(lib.basin_stride, a, axis, start if count else 0, count, step)


def _by_places(a, index, at, spread):
    """Lists of places on some axes, and numbers, which are such lists: they repeat to one shape,
    which stands where they stood, or in front where something stands between them."""
    chosen = [
        n for n, i in enumerate(index) if not (i is None or i is Ellipsis or isinstance(i, slice))
    ]
    together = chosen[-1] - chosen[0] + 1 == len(chosen)
    index = [(i, n in chosen) for n, i in enumerate(index)]
    index = index[:at] + [(s, False) for s in spread] + index[at + 1 :]
    front = 0 if not together else next(n for n, (_, is_chosen) in enumerate(index) if is_chosen)
    kept = _plain(a, [slice(None) if is_chosen else i for i, is_chosen in index if i is not None])
    axes = [n for n, (_, is_chosen) in enumerate(p for p in index if p[0] is not None) if is_chosen]
    places = [i for i, is_chosen in index if is_chosen]
    result, shape = take_places(kept, axes, places)
    after = [n for n, (i, is_chosen) in enumerate(p for p in index if not p[1]) if i is None]
    others = list(result.shape[len(shape) :])
    for n in after:
        others.insert(n, 1)
    result = result.reshape(*shape, *others)
    order = list(range(len(shape), result.ndim))
    order[front:front] = range(len(shape))
    return numpy.transpose(result, order)


def take_places(a, axes, places):
    """The elements at these places on some axes, [shape of the places, .., other axes], and that
    shape. Places may be expressions: those beyond an axis are its nearest end."""
    sizes = [a.shape[axis] for axis in axes]
    others = [i for i in range(a.ndim) if i not in axes]
    rows = numpy.transpose(a, [*axes, *others])
    count = int(numpy.prod(sizes))
    rows = rows.reshape(count, *(a.shape[i] for i in others))
    try:
        shape = numpy.broadcast_shapes(*(numpy.shape(p) for p in places))
    except ValueError:
        shapes = ", ".join(str(list(numpy.shape(p))) for p in places)
        raise IndexError(f"subscripts {shapes} of {a!r} do not repeat to one shape") from None
    flat, traced = 0, any(isinstance(p, Expression) for p in places)
    if traced and count > _COUNTED:
        raise BasinError(f"expressions as subscripts of {a!r}, expected at most {_COUNTED} places")
    for p, axis, size in zip(places, axes, sizes):
        flat = flat * size + _wrapped(a, p, axis, size, traced)
    flat = numpy.broadcast_to(flat, shape).reshape(-1)
    number = flat if not traced else None
    pointer = a._graph.places(number) if not traced else lib.basin_to_index(flat._pointer, count)
    result = apply(lib.basin_take, rows, 0, pointer)
    return result.reshape(*shape, *(a.shape[i] for i in others)), shape


def _wrapped(a, places, axis, size, traced):
    """Places from the end made places from the start."""
    if isinstance(places, Expression):
        places = numpy.where(places < 0, places + size, places)
        return numpy.clip(places, 0, size - 1)
    places = numpy.asarray(places)
    if places.size and not (-size <= places.min() and places.max() < size):
        worst = places.min() if places.min() < -size else places.max()
        raise IndexError(f"subscript {worst} of axis {axis} of {a!r}")
    return places % max(size, 1) * (1.0 if traced else 1)
