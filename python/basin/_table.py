"""Tables of features: arrays, SciPy matrices and pandas tables as numbers [N, F].

What the columns of a pandas table become is what they become in the program (docs/tables.md): text
and categories one feature a value, dates days since 1970. The schema, which a model keeps, has
their names and values, so that a later table is read by it.
"""

import json
import numbers
from typing import Any, Optional

import numpy

from basin._frames import schema_text
from basin._library import BasinError, check, ffi, lib, owned, warn

__all__ = ["Schema", "Table", "array_of_any"]

MOST_VALUES = 32  # of a text column, as in the program


def array_of_any(values: Any) -> numpy.ndarray:
    """The values as an array; tensors of PyTorch's may be on a device, and may want gradients."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return numpy.asarray(values)


class Schema:
    """What the columns of a model's training meant."""

    def __init__(self, pointer):
        told = schema_text(pointer)
        kinds = ("number", "category", "date")
        columns = [c for c in told["nodes"]["columns"] if c["type"] in kinds]
        self.names = [column["name"] for column in columns] if told["named"] else None
        self.values = {c["name"]: c["values"] for c in columns if c["type"] == "category"}
        self.count = len(columns)
        self.known = {column["name"] for column in told["nodes"]["columns"]}


class Table:
    """Features of nodes. `names` are those of its columns, or None; `count` is how many."""

    def __init__(self, values):
        self.names: Optional[list] = None
        self.index: Any = None
        self.columns: dict = {}
        if hasattr(values, "columns") and hasattr(values, "dtypes"):
            self._read(values)
        else:
            self.matrix = _matrix(values)
            self.rows, self.count = self.matrix.shape

    def _read(self, frame):
        """Keeps each column as numbers [N], or as texts [N] where None is a gap."""
        self.names, self.index = [str(name) for name in frame.columns], frame.index
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise BasinError(f"two columns {twice!r}, wanted names that differ")
        for place, name in enumerate(self.names):
            self.columns[name] = _column(frame.iloc[:, place], name)
        self.rows, self.count = len(frame), len(self.names)

    def encode(self, schema: Optional[Schema] = None):
        """Numbers [N, F], the names of features or None, and the JSON of a schema where columns
        are more than numbers. With a schema its values of categories are used, and what it lacks
        is said."""
        if self.names is None:
            return self.matrix, None, None
        known = schema.values if schema else {}
        if schema and schema.names is not None:
            self._say_unused(schema.known)
        features, names, columns = [], [], []
        for name, (kind, values) in self.columns.items():
            if kind == "text":
                choices = _choices(name, values, known.get(name))
                if choices is None:
                    columns.append({"name": name, "type": "dropped"})
                    continue
                features += [values == choice for choice in choices]
                names += [f"{name}={choice}" for choice in choices]
                columns.append({"name": name, "type": "category", "values": choices})
            else:
                features.append(values)
                names.append(name)
                columns.append({"name": name, "type": kind, "mean": _mean(values)})
        matrix = numpy.empty((self.rows, len(features)), "f4")
        for place, feature in enumerate(features):
            with numpy.errstate(over="ignore"):
                matrix[:, place] = feature
            _check_single(matrix[:, place], feature, f"column {names[place]!r}")
        plain = all(column["type"] == "number" for column in columns)
        return _some(matrix), names, None if plain or schema else columns

    def _say_unused(self, wanted):
        unused = [name for name in self.columns if name not in wanted]
        if unused:
            warn(f"columns not used: {', '.join(unused)}")


def schema_of(columns, directed, missing, relations):
    """A schema of the library's for these columns."""
    told = {
        "version": 1, "named": True, "directed": directed, "missing": missing, "unknown": "error",
        "nodes": {"columns": columns}, "edges": {"relations": relations, "columns": []},
    }  # fmt: skip
    pointer = ffi.new("basin_schema **")
    check(lib.basin_schema_parse, pointer, json.dumps(told).encode(), b"columns")
    return owned(pointer[0], lib.basin_schema_free)


# ---- arrays ----


def _matrix(values):
    if hasattr(values, "toarray"):
        values = values.toarray()
    values = array_of_any(values)
    if values.dtype.kind == "c":
        raise BasinError(f"features of type {values.dtype}. Complex data not supported")
    if values.dtype.kind == "O":
        values = values.astype("f8")
    if values.dtype.kind not in "iufb":
        raise BasinError(f"features of type {values.dtype}, wanted numbers")
    if values.ndim != 2:
        raise BasinError(
            f"features of shape {list(values.shape)}, wanted [nodes, features]. Reshape your data"
        )
    return _some(_single(values))


def _single(values):
    """As float32; numbers that it cannot hold are named, not turned into infinity."""
    with numpy.errstate(over="ignore"):
        result = numpy.ascontiguousarray(values, dtype="f4")
    for column in range(values.shape[1]):
        _check_single(result[:, column], values[:, column], f"feature {column}")
    return result


def _check_single(result, values, what):
    if values.dtype.kind != "f":
        return
    lost = numpy.isinf(result) & numpy.isfinite(values)
    if lost.any():
        node = int(lost.argmax())
        raise BasinError(f"{what} of node {node} is {values[node]:g}, too large for float32")


def _some(matrix):
    for what, axis in (("sample", 0), ("feature", 1)):
        if matrix.shape[axis] == 0:
            raise BasinError(
                f"0 {what}(s) (shape={matrix.shape}) while a minimum of 1 is required."
            )
    return matrix


# ---- columns of pandas ----


def _column(series, name):
    """ "number", "date" or "text", and the values."""
    kind = "O" if hasattr(series, "cat") else getattr(series.dtype, "kind", "O")
    if kind in "iufb":
        return "number", _numbers(series)
    if kind == "M":
        return "date", _days(series)
    if kind == "c":
        raise BasinError(f"column {name!r} of type {series.dtype}. Complex data not supported")
    there = series.notna().to_numpy()
    values = numpy.array(series.astype(object).to_numpy(), dtype=object)
    if not hasattr(series, "cat") and there.any():
        if all(isinstance(value, numbers.Real) for value in values[there]):
            values[~there] = numpy.nan
            return "number", values.astype("f8")
        other = next((value for value in values[there] if not isinstance(value, str)), None)
        if other is not None:
            both = any(isinstance(value, str) for value in values[there])
            raise BasinError(
                f"column {name!r} holds {other!r}{' beside texts' * both}, wanted numbers, dates, "
                "texts or categories"
            )
    values[there] = [str(value) for value in values[there]]
    values[~there] = None
    return "text", values


def _numbers(series):
    return series.to_numpy("f8", na_value=numpy.nan)


def _days(series):
    """Days since 1970 in UTC, NaN for gaps."""
    if getattr(series.dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    moments = series.to_numpy("datetime64[us]")
    days = moments.astype("i8") / 86_400e6
    return numpy.where(numpy.isnat(moments), numpy.nan, days)


def _choices(name, values, known):
    """The values of a category that become features; None where the column is left out."""
    there = sorted({value for value in values if value is not None}, key=str.encode)
    if known is not None:
        other = sum(value is not None and value not in known for value in values)
        if other:
            told = f"{other} rows with values that training did not know, taken as other"
            warn(f"column {name!r}: {told}")
        return known
    if not there or len(there) > MOST_VALUES:
        found = f"{len(there)} different texts" if there else "no value"
        warn(f"column {name!r} is left out: it has {found}, wanted 1 to {MOST_VALUES}")
        return None
    return there


def _mean(values):
    known = values[~numpy.isnan(values)]
    return float(known.mean()) if len(known) else 0.0
