"""Expressions: arrays that will be computed, written with operators and NumPy's names.

NumPy's own functions work on them (numpy.exp(g), numpy.sum(g, axis=-1)): NumPy hands each call
to the tables in _numpy.py. Building one computes nothing and checks shapes, so that a mistake is an
exception on the Python line that made it.
"""

import numbers
from typing import Any, Optional

import numpy

from basin._library import BasinError, ffi, lib, owned, text
from basin._tensor import Borrowed, shape_of, shape_tuple


class Graph:
    """Where expressions live. Arrays that a formula mentions are copied into it as constants."""

    def __init__(self):
        self.pointer = owned(lib.basin_graph_new(), lib.basin_graph_free)
        if not self.pointer:
            raise MemoryError("a graph")

    def input(self, name, shape):
        return self.wrap(lib.basin_input(self.pointer, name.encode(), shape_of(shape)))

    def index(self, name, shape):
        return self.wrap(lib.basin_index(self.pointer, name.encode(), shape_of(shape)))

    def constant(self, values):
        values = numpy.asarray(values)
        if values.ndim == 0:
            return self.wrap(lib.basin_const(self.pointer, float(values)))
        return self.wrap(lib.basin_constant(self.pointer, Borrowed(values).pointer))

    def places(self, numbers):
        """Places along an axis, as basin_take wants them: whole numbers known by now."""
        places = numpy.ascontiguousarray(numbers, dtype="i4")
        data = ffi.cast("int32_t *", places.ctypes.data)
        return lib.basin_index_constant(self.pointer, data, shape_of(places.shape))

    def wrap(self, pointer):
        """An expression of this graph; raises where the library refused to build it."""
        if not pointer:
            error = lib.basin_graph_error(self.pointer)
            raise BasinError(text(error.text) if error else "an expression that could not be built")
        return Expression(self, pointer)


class Expression:
    """An array that will be computed: see basin.energy and basin.function."""

    __slots__ = ("_graph", "_pointer")
    __array_priority__ = 1000

    def __init__(self, graph, pointer):
        self._graph, self._pointer = graph, pointer

    # ---- what it is ----

    @property
    def shape(self):
        return shape_tuple(lib.basin_expr_shape(self._pointer))

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return int(numpy.prod(self.shape, dtype=int))

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an expression without axes")
        return self.shape[0]

    def __repr__(self):
        name = text(lib.basin_expr_name(self._pointer))
        return f"<basin expression{' ' + name if name else ''} {list(self.shape)}>"

    def __bool__(self):
        raise BasinError("an expression has no value yet: use numpy.where instead of if")

    def __float__(self):
        raise BasinError(
            "an expression has no value yet: use it with NumPy's functions, not math's"
        )

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    # ---- operators ----

    def _with(self, function, other, swapped=False):
        other = as_expression(other, self._graph)
        if other is None:
            return NotImplemented
        a, b = (other, self) if swapped else (self, other)
        return self._graph.wrap(function(a._pointer, b._pointer))

    def __neg__(self):
        return apply(lib.basin_neg, self)

    def __pos__(self):
        return self

    def __abs__(self):
        return apply(lib.basin_abs, self)

    def __add__(self, other):
        return self._with(lib.basin_add, other)

    def __radd__(self, other):
        return self._with(lib.basin_add, other, swapped=True)

    def __sub__(self, other):
        return self._with(lib.basin_sub, other)

    def __rsub__(self, other):
        return self._with(lib.basin_sub, other, swapped=True)

    def __mul__(self, other):
        if isinstance(other, numbers.Real):
            return apply(lib.basin_scale, self, float(other))
        return self._with(lib.basin_mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, numbers.Real):
            return apply(lib.basin_scale, self, 1 / float(other))
        return self._with(lib.basin_div, other)

    def __rtruediv__(self, other):
        return self._with(lib.basin_div, other, swapped=True)

    def __pow__(self, exponent):
        if isinstance(exponent, numpy.ndarray) and exponent.ndim == 0:
            exponent = exponent.item()  # a number: its base may be negative
        if not isinstance(exponent, numbers.Real):
            return self._with(lib.basin_power, exponent)
        if exponent == 2:
            return apply(lib.basin_square, self)
        return apply(lib.basin_pow, self, float(exponent))

    def __rpow__(self, base):
        return self._with(lib.basin_power, base, swapped=True)

    def __matmul__(self, other):
        return self._with(lib.basin_matmul, other)

    def __rmatmul__(self, other):
        return self._with(lib.basin_matmul, other, swapped=True)

    def __gt__(self, other):
        return self._with(lib.basin_greater, other)

    def __lt__(self, other):
        return self._with(lib.basin_greater, other, swapped=True)

    def __eq__(self, other):
        return self._with(lib.basin_equal, other)

    def __ne__(self, other):
        equal = self._with(lib.basin_equal, other)
        return equal if equal is NotImplemented else 1 - equal

    __hash__ = object.__hash__

    # ---- methods that arrays have ----

    @property
    def T(self):  # noqa: N802
        return transpose(self)

    def sum(self, axis=None, keepdims=False):
        return _reduce(lib.basin_sum, self, axis, keepdims)

    def mean(self, axis=None, keepdims=False):
        return _reduce(lib.basin_mean, self, axis, keepdims)

    def max(self, axis=None, keepdims=False):
        return _reduce(lib.basin_maximum, self, axis, keepdims)

    def argmax(self, axis=None):
        """The first place of the largest element, as a number; of all elements where axis is
        None."""
        a, axis = one_axis(self, axis)
        place = lib.basin_argmax(a._pointer, axis)
        return self._graph.wrap(lib.basin_from_index(place, 0) if place else place)

    def cumsum(self, axis=None):
        a, axis = one_axis(self, axis)
        return apply(lib.basin_cumsum, a, axis)

    def reshape(self, *shape):
        if len(shape) == 1 and not isinstance(shape[0], numbers.Integral):
            shape = tuple(shape[0])
        return self._graph.wrap(lib.basin_reshape(self._pointer, shape_of(shape)))

    def transpose(self, *axes):
        return transpose(self, axes or None)

    def __getitem__(self, index):
        return _subscript(self, index if isinstance(index, tuple) else (index,))

    def __setitem__(self, index, value):
        raise BasinError(f"{self!r} does not change: make another, with numpy.where for example")

    # ---- NumPy's protocols ----

    def __array__(self, *_, **__):
        raise BasinError("an expression has no value yet, and this function of NumPy needs one")

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        from basin._numpy import call_ufunc

        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        from basin._numpy import call_function

        return call_function(function, arguments, options)


def as_expression(value, graph) -> "Optional[Expression]":
    """The value as an expression of the graph; None where it is nothing numeric."""
    if isinstance(value, Expression):
        if value._graph is not graph:
            raise BasinError("expressions of two different traces do not mix")
        return value
    if isinstance(value, (numbers.Real, list, tuple, numpy.ndarray, numpy.generic)):
        return graph.constant(value)
    return None


def wanted_expression(value, graph) -> "Expression":
    """The same; raises where it is nothing numeric."""
    result = as_expression(value, graph)
    if result is None:
        raise BasinError(f"{value!r}, wanted an expression or numbers")
    return result


def graph_of(values) -> Any:
    """The graph of the first expression among them, or inside lists of them; None without one."""
    for value in values:
        if isinstance(value, Expression):
            return value._graph
        if isinstance(value, (list, tuple)):
            found = graph_of(value)
            if found is not None:
                return found
    return None


def apply(function, a, *arguments):
    """A function of the library on one expression."""
    return a._graph.wrap(function(a._pointer, *arguments))


def transpose(a, axes=None):
    if axes is not None and len(axes) == 1 and isinstance(axes[0], (list, tuple)):
        axes = axes[0]
    axes = list(reversed(range(a.ndim))) if axes is None else [i + a.ndim * (i < 0) for i in axes]
    if sorted(axes) != list(range(a.ndim)):
        raise BasinError(f"axes {axes} of {a!r}, wanted each of its {a.ndim} axes once")
    return apply(lib.basin_permute, a, ffi.new("int[]", axes)) if a.ndim > 1 else a


def _axes(a, axis):
    """The axes as sorted non-negative numbers."""
    axes: Any = [axis] if isinstance(axis, numbers.Integral) else axis
    axes = range(a.ndim) if axis is None else axes
    result = sorted(i + a.ndim if i < 0 else i for i in axes)
    if any(not 0 <= i < a.ndim for i in result) or len(set(result)) != len(result):
        raise BasinError(f"axis {axis} of {a!r}")
    return result


def one_axis(a, axis):
    """The expression and the axis along which it is walked; flat, where that is None."""
    if axis is None:
        return a.reshape(-1), 0
    if not isinstance(axis, numbers.Integral):
        raise BasinError(f"axis {axis} of {a!r}, wanted one number")
    return a, _axes(a, axis)[0]


def _reduce(function, a, axis, keepdims):
    axes, result = _axes(a, axis), a
    for i in reversed(axes):
        result = result._graph.wrap(function(result._pointer, i, 1))
    if keepdims:
        result = result.reshape(*(1 if i in axes else n for i, n in enumerate(a.shape)))
    return result


def _subscript(a, index):
    """Numbers, slices, None, one Ellipsis, and one list of places."""
    taken = sum(i is not None and i is not Ellipsis for i in index)
    if taken > a.ndim:
        raise BasinError(f"{taken} subscripts of {a!r}")
    _check_lists(a, index)
    spread = (slice(None),) * (a.ndim - taken)
    place = next((n for n, i in enumerate(index) if i is Ellipsis), None)
    index = index + spread if place is None else index[:place] + spread + index[place + 1 :]
    shape, axis = [], 0
    for i in index:
        if i is None:
            shape.append(1)
            continue
        a = _along(a, axis, i)
        if not isinstance(i, numbers.Integral):
            shape.append(a.shape[axis])
        axis += 1
    return a.reshape(*shape) if tuple(shape) != a.shape else a


def _check_lists(a, index):
    """At most one list of places, and no number apart from it: of those NumPy moves the axes."""
    lists = [place for place, i in enumerate(index) if isinstance(i, (list, numpy.ndarray))]
    if len(lists) > 1:
        raise BasinError(f"two lists of places in {a!r}, wanted one")
    chosen = [place for place, i in enumerate(index) if isinstance(i, numbers.Integral)] + lists
    if lists and max(chosen) - min(chosen) >= len(chosen):
        raise BasinError(f"a list of places apart from a number in {a!r}: use two subscripts")


def _along(a, axis, i):
    """Some elements of an axis, which stays."""
    if isinstance(i, (bool, numpy.bool_)):
        raise BasinError(f"subscript {i} of {a!r}, wanted numbers, slices or a list of places")
    if isinstance(i, slice):
        return _slice(a, axis, *i.indices(a.shape[axis]))
    if isinstance(i, numbers.Integral):
        _check_place(a, axis, i)
        return apply(lib.basin_slice, a, axis, int(i) % a.shape[axis], 1)
    places = numpy.asarray(i) if isinstance(i, (list, numpy.ndarray)) else None
    if places is None or places.ndim != 1 or places.dtype.kind not in "iu":
        raise BasinError(f"subscript {i!r} of {a!r}, wanted numbers, slices or a list of places")
    for number in places:
        _check_place(a, axis, number)
    return apply(lib.basin_take, a, axis, a._graph.places(places % a.shape[axis]))


def _check_place(a, axis, i):
    size = a.shape[axis]
    if not -size <= i < size:
        raise IndexError(f"subscript {i} of axis {axis} of {a!r}")


def _slice(a, axis, start, stop, step):
    count = len(range(start, stop, step))
    if (start, count, step) == (0, a.shape[axis], 1):
        return a
    if step > 0:
        span = min((count - 1) * step + 1, stop - start) if count else 0
        a = apply(lib.basin_slice, a, axis, start, span)
        return a if step == 1 else apply(lib.basin_stride, a, axis, 0, step)
    return apply(lib.basin_take, a, axis, a._graph.places(range(start, stop, step)))
