"""Expressions: arrays that will be computed, written with operators and NumPy's names.

NumPy's own functions work on them (numpy.exp(g), numpy.sum(g, axis=-1)): NumPy hands each call
to the tables in _numpy.py. Building one computes nothing and checks shapes, so that a mistake is an
exception on the Python line that made it.
"""

import itertools
import numbers

import numpy

from basin._library import BasinError, ffi, lib, owned, text
from basin._tensor import shape_of, shape_tuple

_names = itertools.count()


class Graph:
    """Where expressions live. Arrays that a formula mentions become its constants."""

    def __init__(self):
        self.pointer = owned(lib.basin_graph_new(), lib.basin_graph_free)
        if not self.pointer:
            raise MemoryError("a graph")
        self.constants = []  # (expression, array), written to every plan of this graph

    def input(self, name, shape):
        return self.wrap(lib.basin_input(self.pointer, name.encode(), shape_of(shape)))

    def index(self, name, shape):
        return self.wrap(lib.basin_index(self.pointer, name.encode(), shape_of(shape)))

    def constant(self, values):
        values = numpy.asarray(values)
        if values.ndim == 0:
            return self.wrap(lib.basin_const(self.pointer, float(values)))
        known = (e for e, array in self.constants if array is values)
        found = next(known, None)
        if found is None:
            found = self.input(f"constant.{next(_names)}", values.shape)
            self.constants.append((found, values))
        return found

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
        raise BasinError("an expression has no value yet: use it with NumPy's functions, not math's")

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
        if not isinstance(exponent, numbers.Real):
            return exp(log(self) * exponent)
        if exponent == 2:
            return apply(lib.basin_square, self)
        return apply(lib.basin_pow, self, float(exponent))

    def __rpow__(self, base):
        return exp(self * float(numpy.log(base)))

    def __matmul__(self, other):
        return self._with(lib.basin_matmul, other)

    def __rmatmul__(self, other):
        return self._with(lib.basin_matmul, other, swapped=True)

    def __gt__(self, other):
        return self._with(lib.basin_greater, other)

    def __lt__(self, other):
        return self._with(lib.basin_greater, other, swapped=True)

    # ---- methods that arrays have ----

    @property
    def T(self):
        return transpose(self)

    def sum(self, axis=None, keepdims=False):
        return _reduce(lib.basin_sum, self, axis, keepdims)

    def mean(self, axis=None, keepdims=False):
        return _reduce(lib.basin_mean, self, axis, keepdims)

    def max(self, axis=None, keepdims=False):
        return _reduce(lib.basin_maximum, self, axis, keepdims)

    def reshape(self, *shape):
        if len(shape) == 1 and not isinstance(shape[0], numbers.Integral):
            shape = tuple(shape[0])
        if -1 in shape:
            known = -int(numpy.prod(shape, dtype=int))
            rest = self.size // known if known else 0
            shape = tuple(rest if size == -1 else size for size in shape)
        return self._graph.wrap(lib.basin_reshape(self._pointer, shape_of(shape)))

    def transpose(self, *axes):
        return transpose(self, axes or None)

    def __getitem__(self, index):
        return _subscript(self, index if isinstance(index, tuple) else (index,))

    # ---- NumPy's protocols ----

    def __array__(self, *_, **__):
        raise BasinError("an expression has no value yet, and this function of NumPy needs one")

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        from basin._numpy import call_ufunc

        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        from basin._numpy import call_function

        return call_function(function, arguments, options)


def as_expression(value, graph):
    """The value as an expression of the graph; None where it is nothing numeric."""
    if isinstance(value, Expression):
        if value._graph is not graph:
            raise BasinError("expressions of two different traces do not mix")
        return value
    if isinstance(value, (numbers.Real, list, tuple, numpy.ndarray, numpy.generic)):
        return graph.constant(value)
    return None


def graph_of(values):
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


def exp(a):
    return apply(lib.basin_exp, a)


def log(a):
    return apply(lib.basin_log, a)


def transpose(a, axes=None):
    if axes is not None and len(axes) == 1 and isinstance(axes[0], (list, tuple)):
        axes = axes[0]
    axes = list(reversed(range(a.ndim))) if axes is None else [i % a.ndim for i in axes]
    if sorted(axes) != list(range(a.ndim)):
        raise BasinError(f"axes {axes} of {a!r}, wanted each of its {a.ndim} axes once")
    return apply(lib.basin_permute, a, ffi.new("int[]", axes)) if a.ndim > 1 else a


def _axes(a, axis):
    """The axes as sorted non-negative numbers."""
    axes = range(a.ndim) if axis is None else [axis] if isinstance(axis, numbers.Integral) else axis
    result = sorted(i + a.ndim if i < 0 else i for i in axes)
    if any(not 0 <= i < a.ndim for i in result) or len(set(result)) != len(result):
        raise BasinError(f"axis {axis} of {a!r}")
    return result


def _reduce(function, a, axis, keepdims):
    axes, result = _axes(a, axis), a
    for i in reversed(axes):
        result = result._graph.wrap(function(result._pointer, i, 1))
    if keepdims:
        result = result.reshape(*(1 if i in axes else n for i, n in enumerate(a.shape)))
    return result


def _subscript(a, index):
    """Numbers, slices of step 1, None and one Ellipsis."""
    taken = sum(i is not None and i is not Ellipsis for i in index)
    if taken > a.ndim:
        raise BasinError(f"{taken} subscripts of {a!r}")
    spread = (slice(None),) * (a.ndim - taken)
    place = next((n for n, i in enumerate(index) if i is Ellipsis), None)
    index = index + spread if place is None else index[:place] + spread + index[place + 1 :]
    shape, axis = [], 0
    for i in index:
        if i is None:
            shape.append(1)
            continue
        start, count = _range(a, axis, i)
        if (start, count) != (0, a.shape[axis]):
            a = apply(lib.basin_slice, a, axis, start, count)
        if isinstance(i, slice):
            shape.append(count)
        axis += 1
    return a.reshape(*shape) if tuple(shape) != a.shape else a


def _range(a, axis, i):
    size = a.shape[axis]
    if isinstance(i, slice):
        start, stop, step = i.indices(size)
        if step != 1:
            raise BasinError(f"a slice of step {step} of {a!r}, wanted steps of 1")
        return start, max(0, stop - start)
    if not isinstance(i, numbers.Integral):
        raise BasinError(f"subscript {i!r} of {a!r}, wanted numbers and slices")
    if not -size <= i < size:
        raise IndexError(f"subscript {i} of axis {axis} of {a!r}")
    return i % size, 1
