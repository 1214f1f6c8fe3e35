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


def _functions(module, names):
    """NumPy's functions by name, those that this version of NumPy has."""
    found = {}
    for path, ours in names.items():
        theirs = numpy
        for part in path.split("."):
            theirs = getattr(theirs, part, None)
        if theirs is not None:
            found[theirs] = getattr(module, ours) if isinstance(ours, str) else ours
    return found


_signature = functools.cache(inspect.signature)

# Arguments stand where NumPy has them; those after one that is missing here go only by name.
FUNCTIONS = {
    **_functions(_reduce, {
        "sum": "sum_of", "mean": "mean", "max": "max_of", "min": "min_of", "prod": "prod",
        "var": "var", "std": "std", "ptp": "ptp", "any": "any_of", "all": "all_of",
        "average": "average", "median": "median", "quantile": "quantile",
        "percentile": "percentile", "count_nonzero": "count_nonzero",
        "argmax": "argmax", "argmin": "argmin", "sort": "sort", "argsort": "argsort",
        "cumsum": "cumsum", "cumprod": "cumprod", "diff": "diff", "ediff1d": "ediff1d",
        "trapezoid": "trapezoid", "polyval": "polyval", "convolve": "convolve",
        "correlate": "correlate", "linalg.norm": "norm", "linalg.vector_norm": "vector_norm",
    }),
    **_functions(_shapes, {
        "transpose": "transpose", "swapaxes": "swapaxes", "moveaxis": "moveaxis",
        "rollaxis": "rollaxis", "expand_dims": "expand_dims", "squeeze": "squeeze",
        "broadcast_to": "broadcast_to", "broadcast_arrays": "broadcast_arrays",
        "concatenate": "concatenate", "stack": "stack", "hstack": "hstack", "vstack": "vstack",
        "dstack": "dstack", "column_stack": "column_stack", "append": "append",
        "split": "split", "array_split": "array_split", "unstack": "unstack", "tile": "tile",
        "repeat": "repeat", "resize": "resize", "pad": "pad", "roll": "roll", "flip": "flip",
        "rot90": "rot90", "take": "take", "take_along_axis": "take_along_axis",
        "delete": "delete", "compress": "compress", "diagonal": "diagonal", "trace": "trace",
        "diag": "diag", "diagflat": "diagflat", "tril": "tril", "triu": "triu",
        "full_like": "full_like",
        "atleast_1d": _shapes._at_least(1), "atleast_2d": _shapes._at_least(2),
        "atleast_3d": _shapes._at_least(3),
        "matrix_transpose": lambda a: a.mT, "flipud": lambda a: _shapes.flip(a, 0),
        "fliplr": lambda a: _shapes.flip(a, 1), "reshape": lambda a, shape: a.reshape(shape),
        "ravel": lambda a: a.reshape(-1), "hsplit": lambda a, n: _shapes.split(a, n, a.ndim > 1),
        "vsplit": lambda a, n: _shapes.split(a, n, 0),
        "dsplit": lambda a, n: _shapes.split(a, n, 2), "copy": lambda a: a,
        "zeros_like": lambda a, dtype=None: a._graph.fill(a.shape, 0),
        "ones_like": lambda a, dtype=None: a._graph.fill(a.shape, 1),
        "empty_like": lambda a, dtype=None: a._graph.fill(a.shape, 0),
        "shape": lambda a: a.shape, "ndim": lambda a: a.ndim,
        "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    }),
    **_functions(_products, {
        "dot": "dot", "inner": "inner", "vdot": "vdot", "tensordot": "tensordot",
        "outer": "outer", "kron": "kron", "cross": "cross", "einsum": "einsum",
        "linalg.multi_dot": "multi_dot", "linalg.matrix_power": "matrix_power",
        "linalg.matmul": "matmul", "linalg.outer": "outer", "linalg.cross": "cross",
        "linalg.tensordot": "tensordot", "linalg.vecdot": "vecdot",
        "linalg.trace": lambda a, *, offset=0: _shapes.trace(a, offset, -2, -1),
        "linalg.diagonal": lambda a, *, offset=0: _shapes.diagonal(a, offset, -2, -1),
        "linalg.matrix_transpose": lambda a: a.mT,
    }),
    **_functions(_pointwise, {
        "where": "where", "select": "select", "clip": "clip", "round": "rounded",
        "around": "rounded", "fix": "trunc", "sinc": "sinc", "isclose": "isclose",
        "nan_to_num": "nan_to_num", "astype": "astype", "real": "itself",
        "real_if_close": "itself", "iscomplexobj": lambda a: False, "isrealobj": lambda a: True,
        "allclose": lambda a, b, rtol=1e-5, atol=1e-8: numpy.all(
            _pointwise.isclose(a, b, rtol, atol)),
        "array_equal": lambda a, b: numpy.all(numpy.equal(a, b)),
    }),
}  # fmt: skip
UFUNCS = {
    **dict.fromkeys([*_pointwise.UNARY, *_pointwise.BINARY]),
    **_pointwise.COMPOSED,
    **_functions(_products, {
        "matmul": "matmul", "vecdot": "vecdot", "matvec": "matvec", "vecmat": "vecmat",
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
        raise BasinError(refusal(None, name) + _advice(method))
    if ufunc not in UFUNCS:
        raise BasinError(refusal(ufunc, ufunc.__name__))
    ours = UFUNCS[ufunc]
    if ours is not None:
        return _called(ours, ufunc.__name__, inputs, options) if options else ours(*inputs)
    if options:
        raise BasinError(f"numpy.{ufunc.__name__} with {sorted(options)} of an expression")
    function = _pointwise.UNARY.get(ufunc) or _pointwise.BINARY.get(ufunc)
    return pointwise(function, *expressions(*inputs))


def _advice(method):
    return ": basin.scatter(values, index, rows) sums by index" if method == "at" else ""


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
