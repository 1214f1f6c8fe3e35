"""The methods of arrays that expressions have: NumPy's functions of the same names."""

from typing import Any

import numpy


def _method(function) -> Any:
    def method(self, *arguments, **options):
        return function(self, *arguments, **options)

    return method


class ArrayMethods:
    """Of what NumPy's functions accept."""

    __slots__ = ()

    reshape: Any
    T = property(lambda self: numpy.transpose(self))
    mT = property(lambda self: numpy.swapaxes(self, -1, -2))  # noqa: N815
    real = property(lambda self: self)

    sum, prod, mean = _method(numpy.sum), _method(numpy.prod), _method(numpy.mean)
    max, min, any, all = map(_method, (numpy.max, numpy.min, numpy.any, numpy.all))
    var, std, round = _method(numpy.var), _method(numpy.std), _method(numpy.round)
    argmax, argmin = _method(numpy.argmax), _method(numpy.argmin)
    argsort, take, repeat = _method(numpy.argsort), _method(numpy.take), _method(numpy.repeat)
    cumsum, cumprod = _method(numpy.cumsum), _method(numpy.cumprod)
    trace, diagonal, dot = _method(numpy.trace), _method(numpy.diagonal), _method(numpy.dot)
    swapaxes, squeeze = _method(numpy.swapaxes), _method(numpy.squeeze)

    def clip(self, min=None, max=None):  # noqa: A002, NumPy's names
        return numpy.clip(self, min, max)

    def copy(self):
        return self

    conj = conjugate = copy

    def astype(self, dtype):
        from basin._expr.pointwise import astype

        return astype(self, dtype)

    def ravel(self):
        return self.reshape(-1)

    flatten = ravel

    def transpose(self, *axes):
        return numpy.transpose(self, axes[0] if len(axes) == 1 else axes or None)
