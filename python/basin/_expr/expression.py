"""Expressions: arrays that will be computed, written with operators and NumPy's names.

NumPy's own functions work on them (numpy.exp(g), numpy.sum(g, axis=-1)): NumPy hands each call
to the tables in tables.py. Building one computes nothing and checks shapes, so that a mistake is an
exception on the Python line that made it.
"""

import contextlib
import importlib
import numbers
from typing import Any, Optional

import numpy

from basin._engine.library import BasinError, lib, owned, text
from basin._engine.tensor import Borrowed, ready, shape_of, shape_tuple
from basin._expr.methods import ArrayMethods

_BOOL, _FLOAT = numpy.dtype(bool), numpy.dtype(float)
# What moves elements and computes nothing: of 0 and 1 it makes 0 and 1.
_MOVES = {
    lib.basin_reshape, lib.basin_permute, lib.basin_broadcast_to, lib.basin_slice, lib.basin_stride,
    lib.basin_roll, lib.basin_take,
}  # fmt: skip


class Graph:
    """Where expressions live. Arrays that a formula mentions are copied into it as constants."""

    def __init__(self):
        self.pointer = owned(lib.basin_graph_new(), lib.basin_graph_free)
        if not self.pointer:
            raise MemoryError("a graph")
        self.fixed_points = False  # whether there are any
        with contextlib.suppress(ImportError):  # einops then takes expressions
            importlib.import_module("basin._expr.einops")

    def input(self, name, shape):
        return self.wrap(lib.basin_input(self.pointer, name.encode(), shape_of(shape)))

    def index(self, name, shape):
        return self.wrap(lib.basin_index(self.pointer, name.encode(), shape_of(shape)))

    def constant(self, values):
        values = ready(values)
        if values.ndim == 0:
            return self.wrap(lib.basin_scalar(self.pointer, float(values)))
        if values.dtype == numpy.int32:  # which would be indices
            values = values.astype(float)
        return self.wrap(lib.basin_constant(self.pointer, Borrowed(values).pointer))

    def fill(self, shape, value):
        return self.wrap(lib.basin_full(self.pointer, shape_of(shape), value))

    def iota(self, count):
        """0, 1, .., count - 1."""
        return self.wrap(lib.basin_arange(self.pointer, count))

    def places(self, numbers):
        """Places along an axis, as basin_take takes them: whole numbers known by now."""
        places = numpy.ascontiguousarray(numbers, dtype="i4")
        return lib.basin_constant(self.pointer, Borrowed(places).pointer)

    def wrap(self, pointer, dtype=_FLOAT):
        """An expression of this graph; raises where the library refused to build it."""
        if not pointer:
            error = lib.basin_graph_error(self.pointer)
            raise BasinError(text(error.text) if error else "an expression that could not be built")
        return Expression(self, pointer, dtype)


def _with(ufunc, a, other, swapped=False):
    other = as_expression(other, a._graph)
    if other is None:
        return NotImplemented
    return ufunc(other, a) if swapped else ufunc(a, other)


def _operator(ufunc) -> Any:
    return lambda self, other: _with(ufunc, self, other)


def _swapped(ufunc) -> Any:
    return lambda self, other: _with(ufunc, self, other, swapped=True)


class Expression(ArrayMethods):
    """An array that will be computed: see basin.energy and basin.function."""

    __slots__ = ("_dtype", "_graph", "_pointer", "_shape")
    __array_priority__ = 1000
    _batch: Optional[int] = None  # its length, of those that are a batch (batched.py)

    def __init__(self, graph, pointer, dtype=_FLOAT):
        self._graph, self._pointer, self._dtype = graph, pointer, dtype
        self._shape: Any = None  # until it is asked for

    # ---- what batches do otherwise ----

    def _again(self, pointer, dtype=_FLOAT):
        """Another expression of its kind."""
        return self._graph.wrap(pointer, dtype)

    def _typed(self, dtype):
        return self._graph.wrap(self._pointer, dtype)

    def _applied(self, function, arguments):
        dtype = self._dtype if function in _MOVES else _FLOAT
        return self._graph.wrap(function(self._pointer, *arguments), dtype)

    def _pointwise(self, function, operands, dtype):
        return self._graph.wrap(function(*(a._pointer for a in operands)), dtype)

    # ---- what it is ----

    @property
    def shape(self):
        if self._shape is None:
            self._shape = shape_tuple(lib.basin_expr_shape(self._pointer))
        return self._shape

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return int(numpy.prod(self.shape, dtype=int))

    @property
    def dtype(self):
        """float64, or bool for results of comparisons. The backend computes in its own type."""
        return self._dtype

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an expression without axes")
        return self.shape[0]

    def __repr__(self):
        name = text(lib.basin_expr_name(self._pointer))
        return f"<basin expression{' ' + name if name else ''} {list(self.shape)}>"

    def __format__(self, form):
        if form:
            raise BasinError(f"{self!r} has no value yet to be written as {form!r}")
        return repr(self)

    def __bool__(self):
        raise BasinError(
            "an expression has no value yet: use numpy.where instead of if, and numpy.maximum "
            "instead of max"
        )

    def __float__(self):
        raise BasinError(
            "an expression has no value yet: use it with NumPy's functions, not math's, and "
            "numpy.stack instead of filling an array"
        )

    __int__ = __complex__ = __float__

    def __index__(self):
        raise BasinError(
            "an expression has no value yet and counts nothing: lengths and axes are plain numbers"
        )

    def __contains__(self, value):
        raise BasinError("an expression has no value yet: numpy.any(a == value) is an expression")

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    # ---- operators ----

    def __pos__(self):
        return self

    def __abs__(self):
        return apply(lib.basin_abs, self)

    def __neg__(self):
        return apply(lib.basin_neg, self)

    def __invert__(self):
        return numpy.logical_not(self)

    def __round__(self, digits=0):
        return numpy.round(self, digits or 0)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __mul__(self, other):
        if isinstance(other, numbers.Real):
            return apply(lib.basin_scale, self, float(other))
        return _with(numpy.multiply, self, other)

    def __truediv__(self, other):
        if isinstance(other, numbers.Real) and other != 0:
            return apply(lib.basin_scale, self, 1 / float(other))
        return _with(numpy.divide, self, other)

    def __pow__(self, exponent):
        if as_expression(exponent, self._graph) is None:
            return NotImplemented
        return numpy.power(self, exponent)  # which reads exponents that are known

    __rmul__ = __mul__
    __rtruediv__, __rpow__ = _swapped(numpy.divide), _swapped(numpy.power)
    __add__, __radd__ = _operator(numpy.add), _swapped(numpy.add)
    __sub__, __rsub__ = _operator(numpy.subtract), _swapped(numpy.subtract)
    __floordiv__, __rfloordiv__ = _operator(numpy.floor_divide), _swapped(numpy.floor_divide)
    __mod__, __rmod__ = _operator(numpy.remainder), _swapped(numpy.remainder)
    __matmul__, __rmatmul__ = _operator(numpy.matmul), _swapped(numpy.matmul)
    __gt__, __ge__ = _operator(numpy.greater), _operator(numpy.greater_equal)
    __lt__, __le__ = _operator(numpy.less), _operator(numpy.less_equal)
    __eq__, __ne__ = _operator(numpy.equal), _operator(numpy.not_equal)
    __and__ = __rand__ = _operator(numpy.logical_and)
    __or__ = __ror__ = _operator(numpy.logical_or)
    __xor__ = __rxor__ = _operator(numpy.logical_xor)
    __hash__ = object.__hash__

    # ---- elements ----

    def reshape(self, *shape):
        if len(shape) == 1 and not isinstance(shape[0], numbers.Integral):
            shape = tuple(shape[0])
        return apply(lib.basin_reshape, self, shape_of(shape))

    def __getitem__(self, index):
        from basin._expr.index import subscript

        return subscript(self, index if isinstance(index, tuple) else (index,))

    def __setitem__(self, index, value):
        raise BasinError(f"{self!r} does not change: make another, with numpy.where for example")

    def __getattr__(self, name):
        """Refuses what only arrays have, and names what to use instead."""
        from basin._expr.unsupported import METHODS

        if name in METHODS:
            raise BasinError(f"{self!r} has no {name}: {METHODS[name]}")
        raise AttributeError(f"{self!r} has no attribute {name!r}")

    # ---- NumPy's protocols ----

    def __array_namespace__(self, **_):
        return numpy

    def __array__(self, *_, **__):
        raise BasinError(
            "an expression has no value yet, and this function of NumPy needs one "
            "(numpy.stack joins expressions where numpy.array would, basin.normal draws, "
            "basin.logsumexp, softmax, sigmoid, erf are SciPy's)"
        )

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        from basin._expr.tables import call_ufunc

        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        from basin._expr.tables import call_function

        return call_function(function, arguments, options)


def as_expression(value, graph) -> "Optional[Expression]":
    """The value as an expression of the graph, of arrays as constants; None where not numeric."""
    if isinstance(value, Expression):
        if value._graph is not graph:
            raise BasinError("expressions of two different traces do not mix")
        return value
    if isinstance(value, (list, tuple)) and graph_of(value) is not None:
        return numpy.stack([required_expression(v, graph) for v in value])
    if isinstance(value, (numbers.Real, list, tuple, numpy.ndarray, numpy.generic)):
        return graph.constant(value)
    array = array_of_others(value)
    return None if array is None else graph.constant(array)


def array_of_others(value):
    """An array of JAX, PyTorch or another library as NumPy's; None where it is not an array."""
    if isinstance(value, (str, bytes, type)) or not (
        hasattr(value, "__array__") or hasattr(value, "__dlpack__")
    ):
        return None
    value = value.detach() if hasattr(value, "detach") else value  # PyTorch's, with a gradient
    try:
        return numpy.asarray(value) if hasattr(value, "__array__") else numpy.from_dlpack(value)
    except (TypeError, RuntimeError, BufferError) as failure:
        kind = type(value)
        raise BasinError(f"{kind.__module__}.{kind.__name__} as a constant: {failure}") from None


def required_expression(value, graph) -> "Expression":
    """The same; raises where it is nothing numeric."""
    result = as_expression(value, graph)
    if result is None:
        raise BasinError(f"{value!r}, expected an expression or numbers")
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


def expressions(*values):
    """All of them as expressions of one graph."""
    graph = graph_of(values)
    if graph is None:
        raise BasinError(
            f"{values[0]!r}, expected an expression: inside functions that Basin traces"
        )
    return [required_expression(value, graph) for value in values]


def apply(function, a, *arguments):
    """A function of the library on one expression."""
    return a._applied(function, arguments)


def pointwise(function, *operands, dtype=_FLOAT):
    """A function of the library on expressions, which are repeated to one shape."""
    first = next((a for a in operands if a._batch is not None), operands[0])
    return first._pointwise(function, operands, dtype)


def axes_of(a, axis):
    """The axes as sorted non-negative numbers; all of them where axis is None."""
    if isinstance(axis, Expression):
        raise BasinError(f"axis {axis!r}, expected a known number: functools.partial(f, axis=0)")
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
        raise BasinError(f"axis {axis} of {a!r}, expected one number")
    return a, axes_of(a, axis)[0]
