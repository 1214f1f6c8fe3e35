"""Moving numbers by NumPy's rules: shapes, axes, joining, cutting, padding, choosing."""

import numbers

import numpy

from basin._engine.library import BasinError, ffi, lib
from basin._engine.tensor import shape_of
from basin._expr.batched import each, pointer_of, size_of
from basin._expr.expression import (
    _BOOL,
    _FLOAT,
    Expression,
    apply,
    axes_of,
    expressions,
    graph_of,
    one_axis,
)  # fmt: skip
from basin._expr.index import take_places

# ---- axes ----


def transpose(a, axes=None):
    axes = list(reversed(range(a.ndim))) if axes is None else [i + a.ndim * (i < 0) for i in axes]
    if sorted(axes) != list(range(a.ndim)):
        raise BasinError(f"axes {axes} of {a!r}, expected each of its {a.ndim} axes once")
    return apply(lib.basin_permute, a, ffi.new("int[]", axes)) if a.ndim > 1 else a


def swapaxes(a, axis1, axis2):
    axes = list(range(a.ndim))
    first, second = axes_of(a, axis1)[0], axes_of(a, axis2)[0]
    axes[first], axes[second] = second, first
    return transpose(a, axes)


def moveaxis(a, source, destination):
    source = [source] if isinstance(source, numbers.Integral) else list(source)
    destination = [destination] if isinstance(destination, numbers.Integral) else list(destination)
    axes_of(a, source)
    axes_of(a, destination)
    if len(source) != len(destination):
        raise BasinError(f"moveaxis of {a!r}: {len(source)} axes to {len(destination)} places")
    order = [i for i in range(a.ndim) if i not in [k % a.ndim for k in source]]
    for to, axis in sorted((to % a.ndim, axis % a.ndim) for to, axis in zip(destination, source)):
        order.insert(to, axis)
    return transpose(a, order)


def expand_dims(a, axis):
    axes = [axis] if isinstance(axis, numbers.Integral) else list(axis)
    rank = a.ndim + len(axes)
    if any(not isinstance(i, numbers.Integral) or not -rank <= i < rank for i in axes):
        raise BasinError(f"expand_dims at {axis} of {a!r}, expected {-rank} to {rank - 1}")
    at = {i % rank for i in axes}
    if len(at) < len(axes):
        raise BasinError(f"expand_dims at {axis} of {a!r}, expected each place once")
    sizes = iter(a.shape)
    return a.reshape(*(1 if i in at else next(sizes) for i in range(rank)))


def squeeze(a, axis=None):
    gone = [i for i, n in enumerate(a.shape) if n == 1] if axis is None else axes_of(a, axis)
    if any(a.shape[i] != 1 for i in gone):
        raise BasinError(f"axis {axis} of {a!r}, expected axes of 1")
    return a.reshape(*(n for i, n in enumerate(a.shape) if i not in gone))


def broadcast_to(a, shape):
    shape = (shape,) if isinstance(shape, numbers.Integral) else shape
    return apply(lib.basin_broadcast_to, a, shape_of(shape))


def broadcast_arrays(*arrays):
    arrays = expressions(*arrays)
    shape = numpy.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


def at_least(rank):
    """atleast_1d and its relatives; the new axes of a matrix follow it for 3."""

    def grown(*arrays):
        results = [_grown(a, rank) for a in expressions(*arrays)]
        return results[0] if len(results) == 1 else tuple(results)

    return grown


def _grown(a, rank):
    missing = rank - a.ndim
    if missing <= 0:
        return a
    if rank == 3 and a.ndim:
        return a.reshape(*a.shape, 1) if a.ndim == 2 else a.reshape(1, -1, 1)
    return a.reshape(*(1,) * missing, *a.shape)


# ---- joining and cutting ----


def _joined(function, arrays, axis):
    parts = expressions(*arrays)
    size = size_of(parts)
    if size is not None:
        parts, axis = each(size, parts), axis + (axis >= 0)
    pointers = ffi.new("basin_expr[]", [pointer_of(a) for a in parts])
    masks = all(a.dtype == bool for a in parts)
    return parts[0]._again(function(pointers, len(parts), axis), _BOOL if masks else _FLOAT)


def concatenate(arrays, axis=0):
    if axis is None:
        arrays, axis = [a.reshape(-1) for a in expressions(*arrays)], 0
    return _joined(lib.basin_concat, arrays, axis)


def stack(arrays, axis=0):
    return _joined(lib.basin_stack, arrays, axis)


def grown_and_joined(arrays, rank, axis):
    return concatenate([_grown(a, rank) for a in expressions(*arrays)], axis)


def hstack(arrays):
    arrays = [_grown(a, 1) for a in expressions(*arrays)]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def array_split(a, sections, axis=0):
    axis = axes_of(a, axis)[0]
    size = a.shape[axis]
    if isinstance(sections, numbers.Integral):
        lengths = [size // sections + (i < size % sections) for i in range(sections)]
        cuts = list(numpy.cumsum(lengths)[:-1])
    else:
        cuts = list(sections)
    ends = [slice(start, end) for start, end in zip([None, *cuts], [*cuts, None])]
    return [a[(slice(None),) * axis + (part,)] for part in ends]


def split(a, sections, axis=0):
    if isinstance(sections, numbers.Integral) and a.shape[axes_of(a, axis)[0]] % sections:
        raise BasinError(f"split of axis {axis} of {a!r} in {sections}, expected equal parts")
    return array_split(a, sections, axis)


# ---- repeating and padding ----


def tile(a, reps):
    reps = [reps] if isinstance(reps, numbers.Integral) else list(reps)
    a = _grown(a, len(reps)) if len(reps) < 3 else a.reshape(*(1,) * (len(reps) - a.ndim), *a.shape)
    for axis, count in zip(range(a.ndim - len(reps), a.ndim), reps):
        a = _again(a, axis, count, outside=True)
    return a


def _again(a, axis, count, outside):
    """An axis several times over: as a whole, or each element."""
    if count == 1:
        return a
    shape = list(a.shape)
    at = axis if outside else axis + 1
    wide = broadcast_to(a.reshape(*shape[:at], 1, *shape[at:]), [*shape[:at], count, *shape[at:]])
    shape[axis] *= count
    return wide.reshape(*shape)


def repeat(a, repeats, axis=None):
    a, axis = one_axis(a, axis)
    if isinstance(repeats, numbers.Integral):
        return _again(a, axis, int(repeats), outside=False)
    return take(a, numpy.repeat(numpy.arange(a.shape[axis]), repeats), axis)


_PAD_MODES = ("constant", "edge", "wrap", "reflect", "symmetric")


def pad(a, pad_width, mode="constant", *, constant_values=0):
    if mode not in _PAD_MODES:
        raise BasinError(f"pad of mode {mode!r} of {a!r}, expected one of {', '.join(_PAD_MODES)}")
    widths = numpy.broadcast_to(numpy.asarray(pad_width, dtype=int), (a.ndim, 2))
    values = numpy.broadcast_to(numpy.asarray(constant_values, dtype=float), (a.ndim, 2))
    for axis, ((before, after), around) in enumerate(zip(widths.tolist(), values.tolist())):
        if mode != "constant":
            places = numpy.pad(numpy.arange(a.shape[axis]), (before, after), mode)
            a = take(a, places, axis) if before or after else a
        elif not any(around):
            a = apply(lib.basin_pad, a, axis, before, after)
        else:
            shape = a.shape[:axis], a.shape[axis + 1 :]
            parts = [
                a._graph.fill((*shape[0], count, *shape[1]), value)
                for count, value in zip((before, after), around)
            ]
            a = concatenate([parts[0], a, parts[1]], axis)
    return a


def roll(a, shift, axis=None):
    if axis is None:
        if not isinstance(shift, numbers.Integral):
            raise BasinError(f"roll by {shift!r}, expected a whole number")
        return apply(lib.basin_roll, a.reshape(-1), 0, int(shift)).reshape(a.shape)
    shifts, axes = numpy.broadcast_arrays(shift, axis)
    for by, i in zip(shifts.reshape(-1).tolist(), axes.reshape(-1).tolist()):
        if not isinstance(by, int):
            raise BasinError(f"roll by {shift!r}, expected whole numbers")
        a = apply(lib.basin_roll, a, axes_of(a, i)[0], by)
    return a


def flip(a, axis=None):
    for i in axes_of(a, axis):
        n = a.shape[i]
        a = apply(lib.basin_stride, a, i, max(n - 1, 0), n, -1)
    return a


# ---- choosing ----


def take(a, indices, axis=None):
    a, indices = expressions(a, indices)[0], indices
    a, axis = one_axis(a, axis)
    places = indices if isinstance(indices, Expression) else numpy.asarray(indices)
    return a[(slice(None),) * axis + (places,)]


def take_along_axis(a, indices, axis=-1):
    graph = graph_of((a, indices))
    (a,) = [a] if isinstance(a, Expression) else [graph.constant(a)]
    a, axis = one_axis(a, axis)
    shape = list(numpy.shape(indices))
    if len(shape) != a.ndim:
        raise BasinError(f"take_along_axis of {a!r} by {shape}, expected as many axes")
    places = [indices]
    others = [i for i in range(a.ndim) if i != axis]
    both = [max(a.shape[i], shape[i]) for i in others]
    wide = list(a.shape)
    for i, n in zip(others, both):
        wide[i] = shape[i] = n
    a = broadcast_to(a, wide)
    for i in others:
        places.append(numpy.arange(wide[i]).reshape([-1 if k == i else 1 for k in range(a.ndim)]))
    return take_places(a, [axis, *others], places)[0]


# ---- matrices ----


def diagonal(a, offset=0, axis1=0, axis2=1):
    first, second = axes_of(a, axis1)[0], axes_of(a, axis2)[0]
    rows, columns = max(-offset, 0), max(offset, 0)
    count = max(min(a.shape[first] - rows, a.shape[second] - columns), 0)
    a = apply(lib.basin_slice, a, first, min(rows, a.shape[first]), count)
    a = apply(lib.basin_slice, a, second, min(columns, a.shape[second]), count)
    letters = [chr(ord("a") + i) for i in range(a.ndim)]
    rest = "".join(letters[i] for i in range(a.ndim) if i not in (first, second))
    letters[second] = letters[first]
    return numpy.einsum(f"{''.join(letters)}->{rest}{letters[first]}", a)._typed(a.dtype)


def diag(a, k=0):
    if a.ndim == 2:
        return diagonal(a, k)
    if a.ndim != 1:
        raise BasinError(f"diag of {a!r}, expected a vector or a matrix; numpy.diagonal takes more")
    eye = a._graph.wrap(lib.basin_eye(a._graph.pointer, a.shape[0]))
    before, after = (max(k, 0), max(-k, 0)), (max(-k, 0), max(k, 0))
    return pad(numpy.where(eye, a, 0.0), ((after[0], before[0]), (before[0], after[0])))


def triangle(a, k):
    rows, columns = a.shape[-2:] if a.ndim > 1 else a.shape * 2
    return a._graph.wrap(lib.basin_tri(a._graph.pointer, rows, columns, k))


def full_like(a, value, dtype=None):
    if isinstance(value, Expression):
        return broadcast_to(value, a.shape)
    return broadcast_to(a._graph.constant(value), a.shape)
