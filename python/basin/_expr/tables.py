"""What NumPy's names mean for expressions: the tables that NumPy's calls are looked up in.

Functions of elements are in pointwise.py, reductions in reduce.py, products in products.py, what
moves numbers in shapes.py. docs/python-names.md lists all of them, and is tested.
"""

import functools
import inspect

import numpy

from basin._engine.library import BasinError
from basin._expr import pointwise as _pointwise
from basin._expr import products as _products
from basin._expr import reduce as _reduce
from basin._expr import shapes as _shapes
from basin._expr.expression import expressions, pointwise
from basin._expr.unsupported import refusal


def _functions(module, same, others):
    """NumPy's functions by name, those that this version of NumPy has: of the module's functions of
    the same names, and others."""
    found = {}
    for path, ours in [*((n, getattr(module, n)) for n in same.split()), *others.items()]:
        theirs = functools.reduce(lambda a, part: getattr(a, part, None), path.split("."), numpy)
        if theirs is not None:
            found[theirs] = ours
    return found


_signature = functools.cache(inspect.signature)

# Arguments stand where NumPy has them; those after one that is missing here go only by name.
FUNCTIONS = {
    **_functions(_reduce, """mean prod var std ptp median quantile percentile count_nonzero argmax
        argmin sort argsort cumsum cumprod diff convolve correlate""", {
        "sum": _reduce.sum_of, "max": _reduce.max_of, "min": _reduce.min_of,
        "any": _reduce.any_of, "all": _reduce.all_of, "linalg.norm": _reduce.norm,
        "linalg.vector_norm": _reduce.vector_norm,
    }),
    **_functions(_shapes, """transpose swapaxes moveaxis expand_dims squeeze broadcast_to
        broadcast_arrays concatenate split array_split tile repeat pad roll flip take
        take_along_axis diagonal diag full_like""", {
        "stack": _shapes.stack, "hstack": _shapes.hstack,
        "vstack": lambda arrays: _shapes.grown_and_joined(arrays, 2, 0),
        "dstack": lambda arrays: _shapes.grown_and_joined(arrays, 3, 2),
        "column_stack": lambda arrays: _shapes.concatenate(
            [a if a.ndim > 1 else a.reshape(-1, 1) for a in expressions(*arrays)], 1),
        "append": lambda a, values, axis=None: _shapes.concatenate([a, values], axis),
        "unstack": lambda a, *, axis=0: tuple(_shapes.moveaxis(a, axis, 0)),
        "trace": lambda a, offset=0, axis1=0, axis2=1: numpy.sum(
            _shapes.diagonal(a, offset, axis1, axis2), -1),
        "diagflat": lambda a, k=0: _shapes.diag(a.reshape(-1), k),
        "tril": lambda a, k=0: numpy.where(_shapes.triangle(a, k), a, 0.0),
        "triu": lambda a, k=0: numpy.where(_shapes.triangle(a, k - 1), 0.0, a),
        "atleast_1d": _shapes.at_least(1), "atleast_2d": _shapes.at_least(2),
        "atleast_3d": _shapes.at_least(3),
        "matrix_transpose": lambda a: a.mT, "flipud": lambda a: _shapes.flip(a, 0),
        "fliplr": lambda a: _shapes.flip(a, 1), "reshape": lambda a, shape: a.reshape(shape),
        "ravel": lambda a: a.reshape(-1), "copy": _pointwise.itself,
        "zeros_like": lambda a, dtype=None: a._graph.fill(a.shape, 0),
        "ones_like": lambda a, dtype=None: a._graph.fill(a.shape, 1),
        "empty_like": lambda a, dtype=None: a._graph.fill(a.shape, 0),
        "shape": lambda a: a.shape, "ndim": lambda a: a.ndim,
        "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    }),
    **_functions(_products, "dot inner vdot tensordot outer cross einsum", {
        "linalg.multi_dot": lambda arrays: functools.reduce(_products.dot, arrays),
        "linalg.cholesky": _products.cholesky, "linalg.solve": _products.solve,
        "linalg.inv": _products.inv, "linalg.slogdet": _products.slogdet,
        "linalg.det": _products.det,
        "linalg.matmul": _products.matmul,
        "linalg.outer": _products.outer, "linalg.cross": _products.cross,
        "linalg.tensordot": _products.tensordot, "linalg.vecdot": _products.vecdot,
        "linalg.trace": lambda a, *, offset=0: numpy.trace(a, offset, -2, -1),
        "linalg.diagonal": lambda a, *, offset=0: _shapes.diagonal(a, offset, -2, -1),
        "linalg.matrix_transpose": lambda a: a.mT,
    }),
    **_functions(_pointwise, "where select clip isclose astype", {
        "round": _pointwise.rounded, "around": _pointwise.rounded, "fix": _pointwise.trunc,
        "real": _pointwise.itself, "real_if_close": _pointwise.itself,
        "iscomplexobj": lambda a: False, "isrealobj": lambda a: True,
        "allclose": lambda a, b, rtol=1e-5, atol=1e-8: numpy.all(
            _pointwise.isclose(a, b, rtol, atol)),
        "array_equal": lambda a, b: numpy.all(numpy.equal(a, b)),
    }),
}  # fmt: skip
UFUNCS = {
    **dict.fromkeys([*_pointwise.UNARY, *_pointwise.BINARY]),
    **_pointwise.COMPOSED,
    **_functions(_products, "matmul vecdot", {
        "matvec": lambda a, b: _products.matmul(a, expressions(a, b)[1][..., None])[..., 0],
        "vecmat": lambda a, b: _products.matmul(expressions(a, b)[0][..., None, :], b)[..., 0, :],
    }),
}  # fmt: skip
# numpy.add.reduce(a) is numpy.sum(a, axis=0), numpy.add.accumulate(a) numpy.cumsum(a, axis=0).
METHODS = {
    "reduce": {
        numpy.add: _reduce.sum_of, numpy.multiply: _reduce.prod, numpy.maximum: _reduce.max_of,
        numpy.minimum: _reduce.min_of, numpy.logical_and: _reduce.all_of,
        numpy.logical_or: _reduce.any_of,
    },
    "accumulate": {numpy.add: _reduce.cumsum, numpy.multiply: _reduce.cumprod},
}  # fmt: skip


def call_ufunc(ufunc, method, inputs, options):
    if method == "outer" and not options:
        a, b = expressions(*inputs)
        return ufunc(a.reshape(*a.shape, *(1,) * b.ndim), b)
    if method in METHODS and ufunc in METHODS[method]:
        options = {"axis": 0, **{k: v for k, v in options.items() if v is not numpy._NoValue}}
        return _called(METHODS[method][ufunc], f"{ufunc.__name__}.{method}", inputs, options)
    if method != "__call__":
        name = f"{ufunc.__name__}.{method}"
        advice = ": basin.scatter(values, index, rows) sums by index" if method == "at" else ""
        raise BasinError(refusal(None, name) + advice)
    if ufunc not in UFUNCS:
        raise BasinError(refusal(ufunc, ufunc.__name__))
    ours = UFUNCS[ufunc]
    if ours is not None:
        return _called(ours, ufunc.__name__, inputs, options) if options else ours(*inputs)
    if options:
        raise BasinError(f"numpy.{ufunc.__name__} with {sorted(options)} of an expression")
    function = _pointwise.UNARY.get(ufunc) or _pointwise.BINARY.get(ufunc)
    return pointwise(function, *expressions(*inputs))


def call_function(function, arguments, options):
    ours = FUNCTIONS.get(function)
    name = getattr(function, "__name__", repr(function))
    if ours is None:
        raise BasinError(refusal(function, name))
    return _called(ours, name, arguments, options)


def _called(ours, name, arguments, options):
    try:
        _signature(ours).bind(*arguments, **options)
    except TypeError as failure:
        raise BasinError(f"numpy.{name} of an expression: {failure}") from None
    return ours(*arguments, **options)
