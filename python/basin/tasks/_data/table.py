"""Features of nodes that are numbers, [N, F]: arrays, SciPy matrices and numeric tables of pandas.
Tables with other columns are read by the library (frames.py)."""

from typing import Any, Optional

import numpy

from basin.tasks._data.frames import schema_text
from basin.tasks._library import BasinError, warn


def array_of_any(values: Any) -> numpy.ndarray:
    """The values as an array; tensors of PyTorch may be on a device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return numpy.asarray(values)


class Schema:
    """What the columns of a model's training meant."""

    def __init__(self, pointer):
        schema = schema_text(pointer)
        kinds = ("number", "category", "date")
        columns = [c for c in schema["nodes"]["columns"] if c["type"] in kinds]
        self.names = [column["name"] for column in columns] if schema["named"] else None
        self.count = len(columns)
        self.known = {column["name"] for column in schema["nodes"]["columns"]}
        ids = [c["name"] for c in schema["nodes"]["columns"] if c["type"] == "id"]
        self.id = ids[0] if ids else None


class Table:
    """Features of nodes. `names` are those of its columns, or None; `index` the labels of rows."""

    def __init__(self, values):
        self.names: Optional[list] = None
        self.index: Any = None
        if hasattr(values, "columns") and hasattr(values, "dtypes"):
            self.names, self.index = [str(name) for name in values.columns], values.index
            if len(set(self.names)) < len(self.names):
                twice = next(name for name in self.names if self.names.count(name) > 1)
                raise BasinError(f"two columns {twice!r}, expected names that differ")
            values = values.to_numpy("f8", na_value=numpy.nan)
        self.matrix = _matrix(values, self.names)
        self.rows, self.count = self.matrix.shape

    def check(self, schema: Optional[Schema]) -> None:
        """Warns of columns that a model does not use."""
        if self.names is not None and schema is not None and schema.names is not None:
            unused = [name for name in self.names if name not in schema.known]
            if unused:
                warn(f"columns not used: {', '.join(unused)}")


def _matrix(values, names):
    if hasattr(values, "toarray"):
        values = values.toarray()
    values = array_of_any(values)
    if values.dtype.kind == "c":
        raise BasinError(f"features of type {values.dtype}. Complex data not supported")
    if values.dtype.kind == "O":
        values = values.astype("f8")
    if values.dtype.kind not in "iufb":
        raise BasinError(f"features of type {values.dtype}, expected numbers")
    if values.ndim != 2:
        raise BasinError(
            f"features of shape {list(values.shape)}, expected [nodes, features]. Reshape your data"
        )
    for what, axis in (("sample", 0), ("feature", 1)):
        if values.shape[axis] == 0:
            raise BasinError(
                f"0 {what}(s) (shape={values.shape}) while a minimum of 1 is required."
            )
    return _single(values, names)


def _single(values, names):
    """As float32; numbers that it cannot hold are named, not turned into infinity."""
    with numpy.errstate(over="ignore"):
        result = numpy.ascontiguousarray(values, dtype="f4")
    lost = numpy.isinf(result) & numpy.isfinite(values)
    if lost.any():
        node, column = (int(i[0]) for i in numpy.nonzero(lost))
        what = f"feature {column}" if names is None else f"column {names[column]!r}"
        value = values[node, column]
        raise BasinError(f"{what} of node {node} is {value:g}, too large for float32")
    return result
