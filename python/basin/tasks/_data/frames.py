"""Tables of nodes and edges, of pandas, Arrow, dicts and structured arrays, as the CSV that the
library reads for the program, so that a column means the same in both (docs/tables.md)."""

import csv
import ctypes
import datetime
import decimal
import io
import json
import numbers
import re
from typing import Any, Optional

import numpy

from basin.tasks._library import BasinError, ffi, lib, made, sized, text, warn

_EXPECTED = "expected numbers, dates, texts or categories"
_IDS = ("id", "node", "node_id", "nodeid", "name", "txid")  # as the program knows them
_ROWS = 65536  # that are written at once


class Column:
    """Values [N] and which of them are there (None: all but NaN and NaT)."""

    def __init__(self, values, there=None, category=False, name=""):
        values = numpy.asarray(values)
        kind = values.dtype.kind
        self.there, self.category, self.name = there, category, name
        if kind == "f":
            _check_size(values, name)
            values, self.there = _whole(values, there)
        elif kind in "UST":
            values = values.astype(str).astype(object)
        elif kind == "c":
            raise BasinError(f"column {name!r} of type {values.dtype}. Complex data not supported")
        elif kind not in "iubMO":
            raise BasinError(f"column {name!r} of type {values.dtype}, {_EXPECTED}")
        self.values = values
        if category and len(values) and not isinstance(values[0], (str, type(None))):
            warn(f"column {name!r}: a category of numbers is read as numbers, as in CSV")

    def __len__(self):
        return len(self.values)

    def cells(self, start, stop, words=None):
        """Of some rows; None is a gap. `words` are those of truth values, where they are texts."""
        values = self.values[start:stop]
        kind = values.dtype.kind
        if kind == "M":
            gaps = numpy.isnat(values)
            cells = numpy.datetime_as_string(values).tolist()
        elif kind == "b":
            gaps, cells = None, [(words or (0, 1))[one] for one in values.tolist()]
        else:
            gaps = numpy.isnan(values) if kind == "f" else None
            cells = values.tolist()
        if kind == "O":
            cells = [self._text(value, words) for value in cells]
        if self.there is not None:
            gone = ~self.there[start:stop]
            gaps = gone if gaps is None else gaps | gone
        for i in [] if gaps is None else numpy.flatnonzero(gaps):
            cells[i] = None
        return cells

    def _text(self, value, words):
        if isinstance(value, str) or value is None:
            return value
        if isinstance(value, numpy.generic):
            value = value.item()
        if isinstance(value, bool):
            return (words or (0, 1))[value]
        if isinstance(value, decimal.Decimal):
            whole = value.is_finite() and value == value.to_integral_value()
            return int(value) if whole else value if value.is_finite() else None
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            value = float(value)
            return None if value != value else int(value) if value.is_integer() else value
        if isinstance(value, (datetime.date, datetime.datetime)):
            return value.isoformat() if value == value else None
        if type(value).__name__ in ("NAType", "NaTType"):
            return None
        raise BasinError(f"column {self.name!r} holds {value!r}, {_EXPECTED}")


def _check_size(values, name):
    large = numpy.isfinite(values) & (numpy.abs(values) > numpy.finfo("f4").max)
    if large.any():
        row = int(large.argmax())
        raise BasinError(f"column {name!r} of row {row} is {values[row]:g}, too large for float32")


def _whole(values, there):
    """Whole numbers among floats, such as ids beside gaps, are written without a point."""
    known = numpy.isfinite(values)
    if numpy.isinf(values).any():
        return values, there
    some = values[known] if there is None else values[known & there]
    if not len(some) or numpy.any(some != numpy.rint(some)) or numpy.abs(some).max() > 2**53:
        return values, there
    if not known.all():
        there = known if there is None else there & known
    return numpy.where(known, values, 0).astype("i8"), there


# ---- what tables there are ----


def is_pandas(values: Any) -> bool:
    return hasattr(values, "iloc") and hasattr(values, "columns")


def is_table(values: Any) -> bool:
    """Whether it is one of the tables that columns_of() reads; nothing of it is read."""
    return (
        is_pandas(values) or is_arrow(values) or hasattr(values, "collect_schema")
        or (isinstance(values, dict) and not hasattr(values, "tocoo"))
        or bool(getattr(getattr(values, "dtype", None), "names", None))
        or (isinstance(values, tuple) and len(values) == 2 and _are_names(values[1]))
    )  # fmt: skip


def names_of(table: Any) -> "list[str]":
    """The names of a table's columns, where they are at hand."""
    names = getattr(table, "column_names", getattr(table, "columns", None))
    if names is None:
        names = table if isinstance(table, dict) else []
    return [str(name) for name in names]


def is_arrow(values: Any) -> bool:
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")


def is_numeric(table: Any) -> bool:
    """Whether all columns of a table of pandas are numbers."""
    return all(getattr(kind, "kind", "O") in "iufb" for kind in table.dtypes)


def has_ids(table: Any) -> bool:
    """Whether a table of pandas has a column of ids, and its rows no names."""
    usual = any(str(name).lower() in _IDS for name in table.columns)
    return usual and type(table.index).__name__ == "RangeIndex"


def first_has_ends(columns: dict, tables: "list[dict]") -> bool:
    """Whether the first column of nodes has most values of two columns of every table of edges."""
    ids = [str(value) for value in next(iter(columns.values())).values.tolist()]
    known = set(ids)
    if not tables or len(known) < len(ids):
        return False
    for edges in tables:
        some = ([str(v) in known for v in c.values[:100].tolist()] for c in edges.values())
        if sum(bool(found) and 2 * sum(found) >= len(found) for found in some) < 2:
            return False
    return True


def ids_of(
    table: Any, columns: dict, name: Optional[str], edges: "list[dict]"
) -> "tuple[dict, str]":
    """The columns of nodes with one of ids, and its name: the one that is named, the labels of rows
    of pandas, a column with a usual name, the first one where tables of edges name its values, else
    the numbers of rows."""
    index = getattr(table, "index", None) if is_pandas(table) else None
    lower = {column.lower(): column for column in columns}
    if name is not None:
        if name not in columns and name == getattr(index, "name", None):
            return {name: _of_pandas(index.to_series(), name), **columns}, name
        if name.lower() not in lower:
            raise BasinError(f"no column {name!r} for the ids of nodes")
        return columns, lower[name.lower()]
    usual = next((lower[one] for one in _IDS if one in lower), None)
    plain = index is None or type(index).__name__ == "RangeIndex"
    if plain and usual is None and columns and first_has_ends(columns, edges):
        usual = next(iter(columns))
    if plain and usual is not None:
        return columns, usual
    rows = len(next(iter(columns.values()))) if columns else len(table)
    ids = Column(numpy.arange(rows)) if index is None else _of_pandas(index.to_series(), "index")
    name = str(getattr(index, "name", None) or "id")
    while name.lower() in lower:
        name += "_"
    return {name: ids, **columns}, name


def columns_of(table: Any, what: str = "features") -> Optional[dict]:
    """The columns of a table by name; None of what is not a table."""
    if is_pandas(table):
        names = [str(name) for name in table.columns]
        given = [_of_pandas(table.iloc[:, i], name) for i, name in enumerate(names)]
        pairs = list(zip(names, given))
    elif is_arrow(table):
        pairs = _of_arrow(table, what)
    elif hasattr(table, "collect") and hasattr(table, "collect_schema"):
        raise BasinError(f"{what}: a {type(table).__name__}, expected a table: call its collect()")
    elif isinstance(table, dict) and not hasattr(table, "tocoo"):  # SciPy's dok is one
        pairs = [(str(name), _of_values(values, str(name))) for name, values in table.items()]
    elif getattr(getattr(table, "dtype", None), "names", None):
        pairs = [(name, _of_values(table[name], name)) for name in table.dtype.names]
    elif isinstance(table, tuple) and len(table) == 2 and _are_names(table[1]):
        matrix = numpy.asarray(table[0])
        if matrix.ndim != 2 or matrix.shape[1] != len(table[1]):
            raise BasinError(f"{what} of shape {list(matrix.shape)} beside {len(table[1])} names")
        pairs = [(name, _of_values(matrix[:, i], name)) for i, name in enumerate(table[1])]
    else:
        return None
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = next(name for name in result if [n for n, _ in pairs].count(name) > 1)
        raise BasinError(f"{what}: two columns {twice!r}, expected names that differ")
    sizes = {name: len(column) for name, column in result.items()}
    if len(set(sizes.values())) > 1:
        raise BasinError(f"{what}: columns of different lengths: {sizes}")
    return result


def _are_names(names):
    return isinstance(names, (list, tuple)) and all(isinstance(n, str) for n in names) and names


def _of_values(values, name):
    if hasattr(values, "iloc"):
        return _of_pandas(values, name)
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    array = numpy.asarray(values)
    if array.dtype.kind in "US" and not hasattr(values, "dtype"):
        array = numpy.array(values, dtype=object)  # a list of numbers and texts is not all texts
    if array.ndim != 1:
        raise BasinError(f"column {name!r} of shape {list(array.shape)}, expected one dimension")
    return Column(array, name=name)


def _of_pandas(series, name):
    category = hasattr(series, "cat")
    kind = "O" if category else getattr(series.dtype, "kind", "O")
    if kind in "iub" and isinstance(series.dtype, numpy.dtype):
        return Column(series.to_numpy(), name=name)
    if kind in "iub":
        there = series.notna().to_numpy()
        values = series.to_numpy({"i": "i8", "u": "u8", "b": bool}[kind], na_value=0)
        return Column(values, None if there.all() else there, name=name)
    if kind == "f":
        return Column(series.to_numpy("f8", na_value=numpy.nan), name=name)
    if kind == "M":
        if getattr(series.dtype, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        elif not isinstance(series.dtype, numpy.dtype):
            series = series.astype("datetime64[us]")
        return Column(series.to_numpy(), name=name)
    if kind in "mc":
        why = "Complex data not supported" if kind == "c" else _EXPECTED
        raise BasinError(f"column {name!r} of type {series.dtype}. {why}")
    values = numpy.array(series.astype(object).to_numpy(), dtype=object)
    there = series.notna().to_numpy()
    return Column(values, None if there.all() else there, category, name)


def _of_arrow(table, what):
    """Names and columns of what has Arrow's PyCapsule interface: Polars, pyarrow, DuckDB, .."""
    try:
        import pyarrow
    except ImportError as failure:
        raise ImportError("tables of Arrow are read by pyarrow: pip install pyarrow") from failure
    try:
        table = pyarrow.table(table)
    except (TypeError, ValueError) as failure:
        raise BasinError(f"{what}: a {type(table).__name__}, expected a table: {failure}") from None
    pairs = zip(table.column_names, table.columns)
    return [(name, _of_arrow_column(name, column, pyarrow)) for name, column in pairs]


def _of_arrow_column(name, column, pyarrow):
    kinds = pyarrow.types
    category = kinds.is_dictionary(column.type)
    if category:  # by hand: Arrow casts no dictionary of string views
        kind = column.type.value_type
        kind = pyarrow.large_string() if str(kind) in _TEXTS else kind
        chunks = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks]
        column = pyarrow.chunked_array(chunks, kind)
    kind, there = column.type, None
    if column.null_count:
        there = ~numpy.asarray(column.is_null())
    if kinds.is_integer(kind) or kinds.is_boolean(kind):
        values = (column.fill_null(0) if column.null_count else column).to_numpy()
    elif kinds.is_floating(kind) or kinds.is_timestamp(kind) or kinds.is_date(kind):
        values = column.to_numpy()
    elif str(kind) in _TEXTS or kinds.is_decimal(kind) or kinds.is_null(kind):
        values = numpy.empty(len(column), object)
        values[:] = column.to_pylist()
    else:
        raise BasinError(f"column {name!r} of Arrow's type {kind}, {_EXPECTED}")
    return Column(values, there, category, name)


_TEXTS = ("string", "large_string", "string_view")


# ---- tables of a network ----


def schema_text(pointer: Any) -> dict:
    """A schema of the library as a dict."""
    printed = lib.basin_schema_print(pointer)
    if not printed:
        raise MemoryError("a schema")
    schema = json.loads(text(printed) or "{}")
    ctypes.CDLL(None).free(ctypes.c_void_p(int(ffi.cast("intptr_t", printed))))
    return schema


class Tables:
    """Columns of nodes, and of edges by the names of their relations (None: there is one)."""

    def __init__(self, nodes: dict, edges: "dict[Optional[str], dict]", id_name: str):
        self.nodes, self.edges, self.id_name = nodes, edges, id_name

    def csv(self, schema: Optional[dict], masks: dict, ends: bool = False):
        """Names of tables and their CSV, and options for the ends of edges."""
        nodes = {**self.nodes}
        for name, mask in masks.items():
            nodes[f"{name}_mask"] = Column(mask)
        known = schema["nodes"]["columns"] if schema and schema["named"] else []
        own = next((c["name"] for c in known if c["type"] == "id"), None)
        names = {self.id_name: own} if own and own not in nodes else {}
        parts: list = [("nodes", _csv(nodes, known, names))]
        named = {"id": names.get(self.id_name, self.id_name)}
        known = schema["edges"]["columns"] if schema else []
        for relation, columns in self.edges.items():
            what = "edges" if relation is None else f"edges {relation}"
            if relation is not None:
                if "relation" in columns:
                    raise BasinError(f"{what}: a column 'relation' beside relations by name")
                count = len(next(iter(columns.values())))
                columns = {**columns, "relation": Column(numpy.full(count, relation, object))}
                named["edge_type"] = "relation"
            if not ends:
                named.update(_ends(columns, known, what))
            parts.append((what, _csv(columns, known, {})))
        return parts, named


FOLDS = "; where X is one fold of rows, give a Network of all rows in place of X and edges"


def explained(error: BasinError) -> BasinError:
    """The error with rows of tables in place of lines of CSV."""
    message = str(error)
    found = re.match(r"(nodes|edges[^:]*): line (\d+)", message)
    if found:
        message = f"{found[1]}: row {int(found[2]) - 2}{message[found.end() :]}"
    return BasinError(message + FOLDS * bool(re.search("in no file of nodes|from 0 to", message)))


def _ends(columns, known, what):
    """Options that name both ends, where neither the model's schema nor a usual name does."""
    lower = {name.lower() for name in columns}
    expected = [c["name"].lower() for c in known if c["type"] in ("source", "target")]
    if len(expected) == 2 and set(expected) <= lower:
        return {}
    few = {name: Column(numpy.array([i, i + 1]), name=name) for i, name in enumerate(columns)}
    if _lists_edges(_csv(few, [], {})):
        return {}
    if len(columns) < 2:
        raise BasinError(f"{what} of columns {list(columns)}, expected two: from, to")
    source, target = list(columns)[:2]
    if len(columns) > 2:
        warn(
            f"{what}: columns {source!r} and {target!r}, the first two, are taken as the ends; "
            "source= and target= name others"
        )
    return {"source": source, "target": target}


def _lists_edges(table):
    """Whether the library takes a table for one of edges, by the names of its columns."""
    keep = ffi.new("char[]", table)
    texts, path = ffi.new("const char *[]", [keep]), ffi.new("char[]", b"edges")
    own = sized("basin_table_options", text=texts)
    options = sized("basin_network_options", table=own)
    given, view = ffi.new("const char *[]", [path]), sized("basin_network_view")
    try:
        network = made(lib.basin_network_open, lib.basin_network_close, given, 1, options)
    except BasinError:
        return False
    lib.basin_network_get_view(view, network)
    return view.relations > 0


_WORDS = (("False", "True"), ("false", "true"), ("FALSE", "TRUE"), ("no", "yes"))


def _words(known, name):
    """How a category of the schema writes truth values; None where they are numbers."""
    column = next((c for c in known if c["name"].lower() == name.lower()), None)
    if column is None or column["type"] != "category":
        return None
    return next((pair for pair in _WORDS if set(pair) & set(column["values"])), _WORDS[0])


def _csv(columns, known, names):
    """Columns as CSV, texts in quotes and numbers without; some of them under other names."""
    out = io.StringIO(newline="")
    header = [names.get(name, name) for name in columns]
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(header)
    rows = len(next(iter(columns.values())))
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    words = [_words(known, name) for name in header]
    for start in range(0, rows, _ROWS):
        cells = [c.cells(start, start + _ROWS, w) for c, w in zip(columns.values(), words)]
        if len(cells) == 1:  # an empty line is not a row
            writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows(zip(*cells))
    result = out.getvalue().encode(errors="surrogatepass")
    if b"\0" in result:
        raise BasinError("a text of a table holds a zero byte")
    return result
