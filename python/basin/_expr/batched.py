"""Batches of a traced function, for vmap: the same operations with one more axis in front.

A Batched expression has the shape of one entry, and what it wraps that of the whole batch. An
operation without a rule here asks for its _pointer and gets NotBatchedError: the caller then
computes one entry after the other. So a batch is right, or it is not made.
"""

import numpy

from basin._engine.library import BasinError, ffi, lib
from basin._engine.tensor import shape_of, shape_tuple
from basin._expr.expression import _FLOAT, _MOVES, Expression


class NotBatchedError(BasinError):
    """An operation that has no rule for batches."""


class Batched(Expression):
    """Entries of a batch, each of them one expression."""

    __slots__ = ("_whole",)

    def __init__(self, graph, whole, dtype=_FLOAT):
        self._graph, self._whole, self._dtype = graph, graph.wrap(whole)._pointer, dtype
        self._shape = shape_tuple(lib.basin_expr_shape(whole))[1:]

    @property
    def _pointer(self):
        raise NotBatchedError("an operation without a rule for batches")

    @property
    def _batch(self):
        return lib.basin_expr_shape(self._whole).dim[0]

    def _again(self, pointer, dtype=_FLOAT):
        return Batched(self._graph, pointer, dtype)

    def _typed(self, dtype):
        return Batched(self._graph, self._whole, dtype)

    def _applied(self, function, arguments):
        dtype = self._dtype if function in _MOVES else _FLOAT
        if function in _ALONG:
            axis, *rest = arguments
            arguments = axis + (axis >= 0), *rest
        elif function is lib.basin_permute:
            arguments = [ffi.new("int[]", [0, *(i + 1 for i in arguments[0][0 : self.ndim])])]
        elif function in (lib.basin_reshape, lib.basin_broadcast_to):
            shape = shape_tuple(arguments[0])
            if function is lib.basin_broadcast_to:
                self = self._ranked(len(shape))
            arguments = [shape_of((self._batch, *shape))]
        elif function not in _EACH:
            raise NotBatchedError("an operation without a rule for batches")
        return Batched(self._graph, function(self._whole, *arguments), dtype)

    def _ranked(self, rank):
        """With axes of 1 in front of those of an entry."""
        return self.reshape(*(1,) * (rank - self.ndim), *self.shape) if rank > self.ndim else self

    def _pointwise(self, function, operands, dtype):
        rank = max(a.ndim for a in operands)
        return Batched(
            self._graph, function(*(pointer_of(_ranked(a, rank)) for a in operands)), dtype
        )


def _ranked(a, rank):
    return a._ranked(rank) if a._batch is not None else a


# One number or one last axis at a time, whatever stands in front.
_EACH = {
    lib.basin_neg, lib.basin_abs, lib.basin_sign, lib.basin_sqrt, lib.basin_exp, lib.basin_log,
    lib.basin_log1p, lib.basin_expm1, lib.basin_tanh, lib.basin_sigmoid, lib.basin_softplus,
    lib.basin_lncosh, lib.basin_relu, lib.basin_heaviside, lib.basin_sin, lib.basin_cos,
    lib.basin_erf, lib.basin_power_scalar, lib.basin_square, lib.basin_reciprocal, lib.basin_scale,
    lib.basin_offset, lib.basin_stop_gradient, lib.basin_variable,
    lib.basin_sparse_softmax, lib.basin_layernorm, lib.basin_to_sphere,
}  # fmt: skip
# Along an axis, which is the first argument.
_ALONG = {
    lib.basin_sum, lib.basin_mean, lib.basin_max, lib.basin_logsumexp, lib.basin_softmax,
    lib.basin_slice, lib.basin_pad, lib.basin_stride, lib.basin_roll, lib.basin_take,
    lib.basin_cumsum,
}  # fmt: skip


def size_of(expressions):
    """The length of the batch that is among them; None without one."""
    return next((a._batch for a in expressions if a._batch is not None), None)


def pointer_of(a):
    """The library's expression of all entries, or of what they share."""
    return a._pointer if a._batch is None else a._whole


def each(size, expressions):
    """All of them as batches: what entries share is repeated."""
    return [
        a
        if a._batch is not None
        else Batched(a._graph, numpy.broadcast_to(a, (size, *a.shape))._pointer, a._dtype)
        for a in expressions
    ]
