"""The methods of arrays that expressions have: NumPy's functions of the same names."""

from typing import Any

import numpy


class ArrayMethods:
    """Of what NumPy's functions accept."""

    __slots__ = ()

    reshape: Any

    @property
    def T(self):  # noqa: N802
        return numpy.transpose(self)

    @property
    def mT(self):  # noqa: N802
        return numpy.swapaxes(self, -1, -2)

    @property
    def real(self):
        return self

    def sum(self, axis=None, **options):
        return numpy.sum(self, axis, **options)

    def mean(self, axis=None, **options):
        return numpy.mean(self, axis, **options)

    def max(self, axis=None, **options):
        return numpy.max(self, axis, **options)

    def min(self, axis=None, **options):
        return numpy.min(self, axis, **options)

    def prod(self, axis=None, **options):
        return numpy.prod(self, axis, **options)

    def var(self, axis=None, **options):
        return numpy.var(self, axis, **options)

    def std(self, axis=None, **options):
        return numpy.std(self, axis, **options)

    def any(self, axis=None, **options):
        return numpy.any(self, axis, **options)

    def all(self, axis=None, **options):
        return numpy.all(self, axis, **options)

    def argmax(self, axis=None, **options):
        return numpy.argmax(self, axis, **options)

    def argmin(self, axis=None, **options):
        return numpy.argmin(self, axis, **options)

    def argsort(self, axis=-1):
        return numpy.argsort(self, axis)

    def cumsum(self, axis=None):
        return numpy.cumsum(self, axis)

    def cumprod(self, axis=None):
        return numpy.cumprod(self, axis)

    def trace(self, offset=0, axis1=0, axis2=1):
        return numpy.trace(self, offset, axis1, axis2)

    def diagonal(self, offset=0, axis1=0, axis2=1):
        return numpy.diagonal(self, offset, axis1, axis2)

    def dot(self, other):
        return numpy.dot(self, other)

    def clip(self, min=None, max=None):  # noqa: A002, NumPy's names
        return numpy.clip(self, min, max)

    def round(self, decimals=0):
        return numpy.round(self, decimals)

    def take(self, indices, axis=None):
        return numpy.take(self, indices, axis)

    def repeat(self, repeats, axis=None):
        return numpy.repeat(self, repeats, axis)

    def swapaxes(self, axis1, axis2):
        return numpy.swapaxes(self, axis1, axis2)

    def squeeze(self, axis=None):
        return numpy.squeeze(self, axis)

    def copy(self):
        return self

    def conj(self):
        return self

    conjugate = conj

    def astype(self, dtype):
        from basin._pointwise import astype

        return astype(self, dtype)

    def ravel(self):
        return self.reshape(-1)

    flatten = ravel

    def transpose(self, *axes):
        return numpy.transpose(self, axes[0] if len(axes) == 1 else axes or None)
