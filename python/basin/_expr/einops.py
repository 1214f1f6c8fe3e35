"""Expressions for einops: importing this module registers them, if einops is installed.

einops looks for a backend among the subclasses of its AbstractBackend whose framework is imported.
The first graph imports this module.
"""

import numpy
from einops._backends import AbstractBackend

from basin._expr.expression import Expression


class BasinBackend(AbstractBackend):
    framework_name = "basin"

    def is_appropriate_type(self, tensor):
        return isinstance(tensor, Expression)

    def reshape(self, x, shape):
        return numpy.reshape(x, shape)

    def transpose(self, x, axes):
        return numpy.transpose(x, axes)

    def reduce(self, x, operation, axes):
        return getattr(x, operation)(axis=tuple(axes))

    def stack_on_zeroth_dimension(self, tensors):
        return numpy.stack(tensors)

    def add_axis(self, x, new_position):
        return numpy.expand_dims(x, new_position)

    def tile(self, x, repeats):
        return numpy.tile(x, repeats)

    def concat(self, tensors, axis):
        return numpy.concatenate(tensors, axis=axis)

    def is_float_type(self, x):
        return True

    def einsum(self, pattern, *x):
        return numpy.einsum(pattern, *x)
