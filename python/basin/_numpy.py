"""What NumPy's names mean for expressions: one table of pointwise functions, one of the others."""

import inspect
import numbers

import numpy

from basin import _expr
from basin._expr import Expression, apply, graph_of, wanted_expression
from basin._library import BasinError, ffi, lib
from basin._tensor import shape_of

_UNARY = {
    numpy.negative: lib.basin_neg,
    numpy.absolute: lib.basin_abs,
    numpy.sign: lib.basin_sign,
    numpy.sqrt: lib.basin_sqrt,
    numpy.exp: lib.basin_exp,
    numpy.log: lib.basin_log,
    numpy.log1p: lib.basin_log1p,
    numpy.expm1: lib.basin_expm1,
    numpy.tanh: lib.basin_tanh,
    numpy.sin: lib.basin_sin,
    numpy.cos: lib.basin_cos,
    numpy.square: lib.basin_square,
    numpy.reciprocal: lib.basin_recip,
}
_BINARY = {
    numpy.add: lib.basin_add,
    numpy.subtract: lib.basin_sub,
    numpy.multiply: lib.basin_mul,
    numpy.divide: lib.basin_div,
    numpy.maximum: lib.basin_max,
    numpy.minimum: lib.basin_min,
    numpy.greater: lib.basin_greater,
    numpy.equal: lib.basin_equal,
    numpy.matmul: lib.basin_matmul,
}


_REDUCE = {"axis", "keepdims"}  # the options that reductions know


def call_ufunc(ufunc, method, inputs, options):
    if method == "reduce" and ufunc in (numpy.add, numpy.maximum) and options.keys() <= _REDUCE:
        name = "sum" if ufunc is numpy.add else "max"
        return getattr(inputs[0], name)(options.get("axis", 0), bool(options.get("keepdims")))
    if method != "__call__" or options:
        raise BasinError(f"numpy.{ufunc.__name__}.{method} with {sorted(options)} of an expression")
    if ufunc is numpy.power:
        return _power(*inputs)
    if ufunc is numpy.less:
        ufunc, inputs = numpy.greater, inputs[::-1]
    if ufunc is numpy.not_equal:
        return 1 - numpy.equal(*inputs)
    graph = graph_of(inputs)
    function = _UNARY.get(ufunc) or _BINARY.get(ufunc)
    if function is None:
        raise BasinError(f"numpy.{ufunc.__name__} has no form for expressions")
    operands = [wanted_expression(value, graph) for value in inputs]
    return graph.wrap(function(*(operand._pointer for operand in operands)))


def _power(base, exponent):
    if isinstance(base, Expression):
        return base**exponent
    return exponent.__rpow__(base)


def _concatenate(arrays, axis=0):
    return _joined(lib.basin_concat, arrays, axis)


def _joined(function, arrays, axis):
    graph = graph_of(arrays)
    parts = [wanted_expression(a, graph)._pointer for a in arrays]
    return graph.wrap(function(ffi.new("basin_expr[]", parts), len(parts), axis))


def _stack(arrays, axis=0):
    return _joined(lib.basin_stack, arrays, axis)


def _expand_dims(a, axis):
    if not isinstance(axis, numbers.Integral) or not -a.ndim - 1 <= axis <= a.ndim:
        raise BasinError(f"expand_dims at {axis} of {a!r}, wanted {-a.ndim - 1} to {a.ndim}")
    axis = axis + a.ndim + 1 if axis < 0 else axis
    return a.reshape(*a.shape[:axis], 1, *a.shape[axis:])


def _squeeze(a, axis=None):
    gone = [i for i, n in enumerate(a.shape) if n == 1] if axis is None else _expr._axes(a, axis)
    if any(a.shape[i] != 1 for i in gone):
        raise BasinError(f"axis {axis} of {a!r}, wanted axes of 1")
    return a.reshape(*(n for i, n in enumerate(a.shape) if i not in gone))


def _swapaxes(a, axis1, axis2):
    axes = list(range(a.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return _expr.transpose(a, axes)


def _where(condition, yes, no):
    graph = graph_of((condition, yes, no))
    operands = (wanted_expression(value, graph)._pointer for value in (condition, yes, no))
    return graph.wrap(lib.basin_select(*operands))


def _einsum(spec, *operands):
    graph = graph_of(operands)
    parts = [wanted_expression(value, graph)._pointer for value in operands]
    spec = spec.replace(" ", "").encode()
    return graph.wrap(lib.basin_einsum_many(spec, ffi.new("basin_expr[]", parts), len(parts)))


def _clip(a, low=None, high=None):
    if low is not None:
        a = numpy.maximum(a, low)
    return a if high is None else numpy.minimum(a, high)


def _roll(a, shift, axis=None):
    flat, along = _expr.one_axis(a, axis)
    if not isinstance(shift, numbers.Integral):
        raise BasinError(f"roll by {shift!r}, wanted a whole number")
    return apply(lib.basin_roll, flat, along, int(shift)).reshape(a.shape)


def _flip(a, axis=None):
    for i in _expr._axes(a, axis):
        a = apply(lib.basin_flip, a, i)
    return a


def _take(a, indices, axis=None):
    a, axis = _expr.one_axis(a, axis)
    return a[(slice(None),) * axis + (numpy.asarray(indices),)]


def _outer(a, b):
    graph = graph_of((a, b))
    a, b = wanted_expression(a, graph), wanted_expression(b, graph)
    return a.reshape(-1, 1) * b.reshape(1, -1)


def _dot(a, b):
    if numpy.ndim(a) > 1 and numpy.ndim(b) > 2:
        raise BasinError(f"dot with {b!r}, wanted at most 2 axes; matmul and einsum take more")
    return a @ b


def _diagonal(a, offset=0, axis1=0, axis2=1):
    if offset:
        raise BasinError(f"diagonal {offset} of {a!r}, wanted 0")
    return apply(lib.basin_diagonal, a, axis1, axis2)


def _zeros_like(a, dtype=None):
    return a._graph.wrap(lib.basin_fill(a._graph.pointer, shape_of(a.shape), 0))


# Arguments stand where NumPy has them; those behind one that is missing here go by name alone.
_FUNCTIONS = {
    numpy.sum: lambda a, axis=None, *, keepdims=False: a.sum(axis, keepdims),
    numpy.mean: lambda a, axis=None, *, keepdims=False: a.mean(axis, keepdims),
    numpy.max: lambda a, axis=None, *, keepdims=False: a.max(axis, keepdims),
    numpy.argmax: lambda a, axis=None: a.argmax(axis),
    numpy.cumsum: lambda a, axis=None: a.cumsum(axis),
    numpy.roll: _roll,
    numpy.flip: _flip,
    numpy.take: _take,
    numpy.diagonal: _diagonal,
    numpy.reshape: lambda a, shape: a.reshape(shape),
    numpy.transpose: _expr.transpose,
    numpy.swapaxes: _swapaxes,
    numpy.expand_dims: _expand_dims,
    numpy.squeeze: _squeeze,
    numpy.broadcast_to: lambda a, shape: apply(lib.basin_broadcast, a, shape_of(shape)),
    numpy.concatenate: _concatenate,
    numpy.stack: _stack,
    numpy.where: _where,
    numpy.einsum: _einsum,
    numpy.dot: _dot,
    numpy.clip: _clip,
    numpy.outer: _outer,
    numpy.zeros_like: _zeros_like,
    numpy.shape: lambda a: a.shape,
    numpy.ndim: lambda a: a.ndim,
    numpy.linalg.norm: lambda a, *, axis=None: numpy.sqrt(numpy.sum(a * a, axis)),
}


def call_function(function, arguments, options):
    ours = _FUNCTIONS.get(function)
    if ours is None:
        raise BasinError(f"numpy.{function.__name__} has no form for expressions")
    try:
        inspect.signature(ours).bind(*arguments, **options)
    except TypeError as failure:
        raise BasinError(f"numpy.{function.__name__} of an expression: {failure}") from None
    return ours(*arguments, **options)
