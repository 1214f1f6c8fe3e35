"""Pointwise functions by NumPy's names: those of the library, and those composed of them.

Derivatives at kinks are JAX's, but that |a| is flat at 0: operands that tie in a maximum share it
evenly, comparisons and roundings are flat everywhere.
"""

import math
import numbers

import numpy

from basin._engine.library import BasinError, ffi, lib
from basin._expr.expression import _BOOL, _FLOAT, apply, expressions, pointwise


def binary(function, a, b, dtype=_FLOAT):
    return pointwise(function, *expressions(a, b), dtype=dtype)


def astype(a, dtype, copy=True):
    """bool: whether it is not 0; whole numbers: towards 0; floats: as it is."""
    kind = numpy.dtype(dtype).kind
    if kind == "b":
        return truth(a)
    if kind in "iu":
        return trunc(a)
    if kind == "f":
        return a._typed(_FLOAT)
    raise BasinError(f"{a!r} as {numpy.dtype(dtype)}, expected floats, integers or bool")


# ---- masks: 1 and 0 ----


def truth(a):
    """1 where it is not 0."""
    return a if a.dtype == bool else not_equal(a, 0)


def _flipped(a):
    return (1 - a)._typed(_BOOL)


def greater(a, b):
    return binary(lib.basin_greater, a, b, _BOOL)


def greater_equal(a, b):
    a, b = expressions(a, b)
    return logical_or(greater(a, b), equal(a, b))  # 0 where one is not a number


def equal(a, b):
    return binary(lib.basin_equal, a, b, _BOOL)


def not_equal(a, b):
    return _flipped(equal(a, b))


def _of_masks(function):
    """A function of the library of two masks, as one of any expressions."""
    return lambda a, b: binary(function, *map(truth, expressions(a, b)), _BOOL)


logical_and, logical_or = _of_masks(lib.basin_mul), _of_masks(lib.basin_maximum)


def isnan(a):
    return not_equal(a, a)


def isclose(a, b, rtol=1e-5, atol=1e-8):
    a, b = expressions(a, b)
    return greater_equal(atol + rtol * abs(b), abs(a - b))


# ---- arithmetic ----


def add(a, b):
    a, b = expressions(a, b)
    if a.dtype == bool and b.dtype == bool:
        return logical_or(a, b)  # as of NumPy's masks
    return binary(lib.basin_add, a, b)


def power(a, b):
    """Exponents that are known are taken one by one: their bases may be negative. Other exponents
    require bases above 0."""
    if not isinstance(b, (numbers.Real, numpy.ndarray, numpy.generic, list, tuple)):
        return binary(lib.basin_power, a, b)
    try:
        exponents = numpy.asarray(b, dtype=float)
    except (TypeError, ValueError, BasinError):
        return binary(lib.basin_power, a, b)
    different = numpy.unique(exponents)
    if len(different) > 8:
        return binary(lib.basin_power, a, b)
    results = [_to(a, float(exponent)) for exponent in different]
    result = results[0]
    for exponent, other in zip(different[1:], results[1:]):
        result = numpy.where(exponents == exponent, other, result)
    return numpy.broadcast_to(result, numpy.broadcast_shapes(a.shape, exponents.shape))


def _to(a, exponent):
    return (
        apply(lib.basin_square, a) if exponent == 2 else apply(lib.basin_power_scalar, a, exponent)
    )


def _divided(a, b):
    """floor(a / b) and the remainder, which has the sign of b; exact."""
    a, b = expressions(a, b)
    rest = ffi.new("basin_expr *")
    whole = a._graph.wrap(lib.basin_divmod(a._pointer, b._pointer, rest))
    return whole, a._graph.wrap(rest[0])


def floor(a):
    return _divided(a, 1.0)[0]


def trunc(a):
    return numpy.where(a < 0, -floor(-a), floor(a))


def rint(a):
    """Halves go to the even neighbour."""
    below = floor(a)
    half = a - below
    odd = below - 2 * floor(below / 2)
    return below + logical_or(greater(half, 0.5), logical_and(equal(half, 0.5), odd))


def rounded(a, decimals=0):
    return rint(a * 10.0**decimals) / 10.0**decimals if decimals else rint(a)


def heaviside(a, at_zero):
    a, at_zero = expressions(a, at_zero)
    return numpy.where(equal(a, 0), at_zero, apply(lib.basin_heaviside, a))


def hypot(a, b):
    a, b = expressions(a, b)
    return numpy.sqrt(a * a + b * b)


# ---- exponentials, circular and hyperbolic functions ----


def logaddexp(a, b):
    both = numpy.stack(numpy.broadcast_arrays(*expressions(a, b)), -1)
    return apply(lib.basin_logsumexp, both, -1)


def cbrt(a):
    size, sign = _size_and_sign(a)
    return sign * size ** (1 / 3)


def _size_and_sign(a):
    """|a| and its sign, of slopes that are not 0 at 0: for functions that are odd."""
    above = greater(a, 0)
    return numpy.where(above, a, -a), numpy.where(above, 1.0, -1.0)


def arctan2(y, x):
    return binary(lib.basin_atan2, y, x)


def arcsinh(a):
    size, sign = _size_and_sign(a)
    square = size * size
    return sign * numpy.log1p(size + square / (1 + numpy.sqrt(1 + square)))


def arccosh(a):
    above = a - 1
    return numpy.log1p(above + numpy.sqrt(above * (a + 1)))


def itself(a):
    return a


# ---- choices ----


def where(condition, *values):
    if len(values) != 2:
        raise BasinError(
            "numpy.where of only a mask: its shape would depend on values; give both choices"
        )
    condition, yes, no = expressions(condition, *values)
    masks = yes.dtype == bool and no.dtype == bool
    return pointwise(lib.basin_where, condition, yes, no, dtype=_BOOL if masks else _FLOAT)


def select(conditions, choices, default=0):
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        result = where(condition, choice, result)
    return result


def clip(a, a_min=None, a_max=None, *, min=None, max=None):  # noqa: A002, NumPy's names
    low, high = a_min if min is None else min, a_max if max is None else max
    if low is not None:
        a = numpy.maximum(a, low)
    return a if high is None else numpy.minimum(a, high)


# Functions of the library under NumPy's names.
UNARY = {
    numpy.negative: lib.basin_neg, numpy.absolute: lib.basin_abs, numpy.fabs: lib.basin_abs,
    numpy.sign: lib.basin_sign, numpy.sqrt: lib.basin_sqrt, numpy.square: lib.basin_square,
    numpy.reciprocal: lib.basin_reciprocal, numpy.exp: lib.basin_exp, numpy.log: lib.basin_log,
    numpy.log1p: lib.basin_log1p, numpy.expm1: lib.basin_expm1, numpy.tanh: lib.basin_tanh,
    numpy.sin: lib.basin_sin, numpy.cos: lib.basin_cos,
}  # fmt: skip
BINARY = {
    numpy.subtract: lib.basin_sub, numpy.multiply: lib.basin_mul, numpy.divide: lib.basin_div,
    numpy.maximum: lib.basin_maximum, numpy.minimum: lib.basin_minimum,
}  # fmt: skip
# Those that are composed here.
COMPOSED = {
    numpy.add: add, numpy.power: power, numpy.float_power: power, numpy.divmod: _divided,
    numpy.remainder: lambda a, b: _divided(a, b)[1],
    numpy.floor_divide: lambda a, b: _divided(a, b)[0],
    numpy.positive: itself, numpy.conjugate: itself, numpy.floor: floor,
    numpy.ceil: lambda a: -floor(-a), numpy.trunc: trunc, numpy.rint: rint,
    numpy.heaviside: heaviside, numpy.hypot: hypot,
    numpy.greater: greater, numpy.greater_equal: greater_equal,
    numpy.less: lambda a, b: greater(b, a), numpy.less_equal: lambda a, b: greater_equal(b, a),
    numpy.equal: equal, numpy.not_equal: not_equal,
    numpy.logical_not: lambda a: _flipped(truth(a)), numpy.invert: lambda a: _flipped(truth(a)),
    numpy.logical_and: logical_and, numpy.bitwise_and: logical_and,
    numpy.logical_or: logical_or, numpy.bitwise_or: logical_or,
    numpy.logical_xor: lambda a, b: not_equal(*map(truth, expressions(a, b))),
    numpy.bitwise_xor: lambda a, b: not_equal(*map(truth, expressions(a, b))),
    numpy.isnan: isnan, numpy.isinf: lambda a: equal(abs(a), math.inf),
    numpy.isfinite: lambda a: greater(math.inf, abs(a)),
    numpy.exp2: lambda a: numpy.exp(a * math.log(2)),
    numpy.log2: lambda a: numpy.log(a) / math.log(2),
    numpy.log10: lambda a: numpy.log(a) / math.log(10), numpy.cbrt: cbrt,
    numpy.logaddexp: logaddexp,
    numpy.tan: lambda a: numpy.sin(a) / numpy.cos(a),
    numpy.arctan2: arctan2, numpy.arctan: lambda a: arctan2(a, 1.0),
    numpy.arcsin: lambda a: arctan2(a, numpy.sqrt((1 - a) * (1 + a))),
    numpy.arccos: lambda a: arctan2(numpy.sqrt((1 - a) * (1 + a)), a),
    numpy.sinh: lambda a: (numpy.expm1(a) - numpy.expm1(-a)) / 2,
    numpy.cosh: lambda a: (numpy.exp(a) + numpy.exp(-a)) / 2,
    numpy.arcsinh: arcsinh, numpy.arccosh: arccosh,
    numpy.arctanh: lambda a: (numpy.log1p(a) - numpy.log1p(-a)) / 2,
    numpy.degrees: lambda a: a * (180 / math.pi), numpy.rad2deg: lambda a: a * (180 / math.pi),
    numpy.radians: lambda a: a * (math.pi / 180), numpy.deg2rad: lambda a: a * (math.pi / 180),
}  # fmt: skip
