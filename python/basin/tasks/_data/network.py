"""Networks: one graph of many nodes, from arrays, SciPy, pandas, NetworkX, PyTorch Geometric or
files."""

import copy
import logging
import numbers
from typing import Any, Optional

import numpy

from basin.tasks._data.frames import (
    FOLDS,
    Column,
    Tables,
    columns_of,
    explained,
    has_ids,
    ids_of,
    is_numeric,
    is_pandas,
    is_table,
    schema_text,
)  # fmt: skip
from basin.tasks._data.table import Schema, Table, array_of_any
from basin.tasks._library import BasinError, check, ffi, lib, owned, path_of, sized, text, warn
from basin.tasks._models.estimator import labels_of
from basin.tasks.settings import nearest

_log = logging.getLogger("basin")


def edges_of(edges, nodes=None, index=None):
    """Edges as int64 [E, 2]: of an array, a SciPy matrix [N, N] or a graph of NetworkX.

    Where the features are a pandas table, `index` has the labels of its rows, by which edges in a
    pandas table, and nodes of NetworkX, are found. `nodes` is how many there are, if that is known.
    """
    if hasattr(edges, "tocoo"):
        return _edges_of_matrix(edges.tocoo(), nodes)
    if hasattr(edges, "edges") and hasattr(edges, "nodes"):
        return _edges_of_networkx(edges, nodes, index)
    if hasattr(edges, "iloc") and index is not None:
        return _by_label(edges, index)
    edges = array_of_any(edges)
    if edges.size == 0:
        edges = edges.reshape(0, 2).astype("i8")
    if edges.ndim != 2 or edges.shape[1] != 2:
        hint = ""
        if edges.ndim == 2 and edges.shape[0] == 2:
            hint = "; transpose it"
        elif edges.ndim == 2 and edges.shape[1] > 2:
            hint = '; what edges carry needs names: (array, ["src", "dst", "amount", ..])'
        raise BasinError(f"edges of shape {list(edges.shape)}, expected [edges, 2]{hint}")
    if edges.dtype.kind not in "iu":
        raise BasinError(f"edges of type {edges.dtype}, expected whole numbers of nodes")
    return numpy.ascontiguousarray(edges, dtype="i8")


def _edges_of_matrix(matrix, nodes):
    if matrix.shape[0] != matrix.shape[1] or nodes not in (None, matrix.shape[0]):
        expected = "as many rows as columns" if nodes is None else f"[{nodes}, {nodes}]"
        raise BasinError(f"a matrix of edges {list(matrix.shape)}, expected {expected}")
    there = matrix.data != 0
    if numpy.any(matrix.data[there] != 1):
        warn("weights of edges are not used")
    pairs = numpy.stack([matrix.row[there], matrix.col[there]], axis=1)
    return numpy.ascontiguousarray(pairs, dtype="i8")


def _edges_of_networkx(graph, nodes, index):
    """By labels of rows where these are known; by their numbers where nodes are whole numbers below
    `nodes`; else row i is the i-th node of the graph, which must have as many."""
    strange = [] if index is None else [node for node in graph.nodes if node not in index]
    if index is not None and not strange:
        _check_unique(index)
        number = {label: i for i, label in enumerate(index)}
    elif nodes is not None and all(_is_number(node, nodes) for node in graph.nodes):
        number = {node: int(node) for node in graph.nodes}
    elif 0 < len(strange) < graph.number_of_nodes():  # the others are labels of rows
        raise BasinError(f"the graph has a node {strange[0]!r}, which no row is called")
    elif nodes is None or graph.number_of_nodes() == nodes:
        number = {node: i for i, node in enumerate(graph.nodes)}
    else:
        raise BasinError(
            f"a graph of {graph.number_of_nodes()} nodes that are not the numbers of {nodes} rows"
        )
    pairs = [(number[a], number[b]) for a, b in graph.edges()]
    return numpy.array(pairs, dtype="i8").reshape(-1, 2)


def _check_unique(index):
    if not index.is_unique:
        raise BasinError("edges by labels of rows, which are not unique: reset the index")


def _is_number(node, nodes):
    return isinstance(node, numbers.Integral) and 0 <= int(node) < nodes


def _by_label(edges, index):
    """A pandas table of edges, whose ends are labels of the rows of features."""
    _check_unique(index)
    found = numpy.stack([index.get_indexer(edges.iloc[:, side]) for side in (0, 1)], axis=1)
    for row, side in numpy.argwhere(found < 0)[:1]:
        end = edges.iat[row, side]
        raise BasinError(f"edge {row} ends at '{end}', which no row is called{FOLDS}")
    return numpy.ascontiguousarray(found, dtype="i8")


class Network:
    """One graph of many nodes: what an AnomalyDetector learns from.

    `features` is [N, F], an array, a SciPy matrix or a pandas table: names of columns are kept,
    texts and categories become one feature per value, dates days since 1970. `edges` is an array
    [E, 2], a SciPy matrix [N, N] or a graph of NetworkX, or a dict of these by the names of
    relations. Labels are 1 (anomalous), 0 (normal) and -1 (unknown). Masks [N] choose the nodes
    that train, validate and test.

    Both may be tables: of pandas, anything that speaks Arrow's PyCapsule interface (Polars,
    pyarrow, DuckDB), a dict of columns, a structured array, or (array, names). Edges then carry
    their further columns, amounts, times and kinds; the ends are ids, which are the labels of rows
    of pandas, a column called id, node or the like, or the one that `id` names. Attributes of edges
    of NetworkX are such columns. The library reads tables as the program reads CSV.

    Options, as the program has them: `missing` ("error", "zero", "mean",
    "keep": gaps stay, for what knows them) and `unknown` ("error",
    "skip", "add": ends that no row has); `directed`; of tables `id`, `label`,
    `source`, `target`, `relation_column`, `time`, `until`, `drop` (names), `date_format`,
    `max_categories`.

    network[rows] is the same graph of which only these nodes are asked for: a detector trains on
    their labels, and predicts them. So cross-validation over nodes keeps the graph whole.

    >>> network = tasks.Network([[0.5], [0.1], [0.9]], [[0, 1], [1, 2]], labels=[0, 0, 1])
    >>> network
    <basin network of 3 nodes, 1 features, 2 edges>
    >>> network[1:].labels
    array([0, 1], dtype=int32)
    """

    _paths: Optional[list] = None
    _rows: Optional[numpy.ndarray] = None
    _label: Optional[numpy.ndarray] = None
    _tables: Optional[Tables] = None
    _index: Any = None
    columns: Optional[list] = None
    """The names of the columns of a table; None of others."""

    def __init__(
        self, features: Any, edges: Any, labels: Any = None, *, train: Any = None,
        validation: Any = None, test: Any = None, directed: bool = False,
        missing: Optional[str] = None, **options: Any,
    ):  # fmt: skip
        self._options = options_of(directed=directed, missing=missing, **options)
        columns = columns_of(features) if is_table(features) and not is_pandas(features) else None
        self._tables = _tables_of(features, columns, edges, options)
        if self._tables is None:
            self._table = Table(features)
            self.nodes, self.features = self._table.rows, self._table.count
            self._index, self.columns = self._table.index, self._table.names
            relations, index = _relations(edges), self._index
            self._edges = {n: edges_of(some, self.nodes, index) for n, some in relations.items()}
        else:
            self._index = features.index if is_pandas(features) else None
            self.nodes = len(next(iter(self._tables.nodes.values())))
            if not self.nodes:
                raise BasinError("0 sample(s) while a minimum of 1 is required.")
            own = [name for name in self._tables.nodes if name != self._tables.id_name]
            self.columns = own if is_table(features) else None
            self.features, self._edges = len(own), self._tables.edges
        self._label = None if labels is None else labels_of(labels, self.nodes)
        masks = {"train": train, "val": validation, "test": test}
        self._masks = {name: self._mask(m) for name, m in masks.items() if m is not None}

    @classmethod
    def read(cls, *paths: Any, **options: Any) -> "Network":
        """A network from files, as the program takes them: one of npz or .basin, which
        tables of CSV may follow that add to it, or tables of CSV. Options are those of Network.

        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "network.npz")
        >>> numpy.savez(path, x=numpy.eye(3), edges=[[0, 1], [1, 2]], y=[0, 0, 1])
        >>> tasks.Network.read(path).labels
        array([0, 0, 1], dtype=int32)
        """
        if not paths:
            raise BasinError("no files of a network")
        self = cls.__new__(cls)
        self._paths = [path_of(path) for path in paths]
        self._options = options_of(**options)
        view = view_of(self.build())
        self.nodes, self.features = view.nodes, view.features
        return self

    open = read

    def write(self, path: Any) -> None:
        """Writes the file that is mapped when it is opened, .basin, or npz where `path` ends so;
        the program also reads it."""
        check(lib.basin_network_write, path_of(path), self.build())

    @classmethod
    def of(cls, data: Any, **options: Any) -> "Network":
        """A network, or a `Data` of PyTorch Geometric: x, edge_index, y and its masks; edge_weight
        and edge_attr are what edges carry. Options are those of Network.

        >>> class Data:  # or torch_geometric.data.Data
        ...     x, edge_index = numpy.eye(3), numpy.array([[0, 1], [1, 2]])
        >>> tasks.Network.of(Data())
        <basin network of 3 nodes, 3 features, 2 edges>
        """
        if isinstance(data, cls):
            return data._with(options)
        if getattr(data, "edge_index", None) is None or getattr(data, "x", None) is None:
            raise BasinError(
                f"{type(data).__name__}, expected a Network, or Data with x, edge_index"
            )
        masks = [getattr(data, f"{name}_mask", None) for name in ("train", "val", "test")]
        edges, label = _edges_of_geometric(data), getattr(data, "y", None)
        label = None if label is None else array_of_any(label).reshape(-1)
        train, validation, test = masks
        return cls(data.x, edges, label, train=train, validation=validation, test=test, **options)

    def _with(self, options):
        """The same network, read with other options."""
        if not options:
            return self
        other = copy.copy(self)
        other._options = {**self._options, **options_of(**options)}
        if "directed" not in options:
            other._options["directed"] = self._options["directed"]
        return other

    @property
    def from_files(self) -> bool:
        """Whether files were read, whose columns only the library knows."""
        return self._paths is not None

    # ---- some of the nodes ----

    @property
    def shape(self) -> tuple[int, int]:
        """[nodes that are asked for, features]."""
        return len(self), self.features

    def __len__(self):
        return self.nodes if self._rows is None else len(self._rows)

    def __getitem__(self, rows: Any) -> "Network":
        """The same graph of which only these nodes are asked for: a slice, a mask or numbers."""
        rows = [part for part in rows if part is not ...] if isinstance(rows, tuple) else [rows]
        if len(rows) != 1:
            raise BasinError(f"{len(rows)} subscripts of a network, expected one: nodes")
        other = copy.copy(self)
        other._rows = numpy.atleast_1d(self.rows[rows[0]])
        return other

    @property
    def rows(self) -> numpy.ndarray:
        """The nodes that are asked for."""
        return numpy.arange(self.nodes) if self._rows is None else self._rows

    @property
    def labels(self) -> Optional[numpy.ndarray]:
        """The labels of the nodes that are asked for, [len(self)]; None where there are none."""
        label = self._label
        if label is None and (self._paths or self._tables):
            label = network_labels(self.build())
        return None if label is None else label[self.rows]

    def check_order(self, labels: Any) -> None:
        """Refuses labels of pandas whose rows are those of the features in another order."""
        index: Any = getattr(labels, "index", None)
        if self._index is None or not hasattr(labels, "iloc"):
            return
        own = self._index[self.rows]
        if len(own) == len(index) and not own.equals(index) and set(own) == set(index):
            raise BasinError("y has the rows of X in another order: give y.reindex(X.index)")

    def number_of(self, node: Any) -> int:
        """The number of a node, which may be the label of a row of a pandas table."""
        index = self._index
        if isinstance(node, numbers.Integral):
            return int(node)
        if isinstance(node, str) and (self._paths or self._tables):
            found = lib.basin_network_find(self.build(), node.encode())
            if found < 0:
                raise BasinError(f"node {node!r}, expected a number or an id of the network")
            return int(found)
        if index is None or node not in index:
            raise BasinError(f"node {node!r}, expected a number or the label of a row")
        return int(index.get_loc(node))

    def labelled(self, labels: Any) -> "Network":
        """The same network with these labels of the nodes that are asked for."""
        other, known = copy.copy(self), labels_of(labels, len(self))
        other._label = numpy.full(self.nodes, -1, "i4")
        other._label[self.rows] = known
        return other

    def __repr__(self):
        some = "" if self._rows is None else f"{len(self)} of "
        edges = "" if self._paths else f", {self._count_edges()} edges"
        return f"<basin network of {some}{self.nodes} nodes, {self.features} features{edges}>"

    def _count_edges(self):
        if self._tables is None:
            return sum(map(len, self._edges.values()))
        return sum(len(next(iter(columns.values()))) for columns in self._edges.values())

    def _mask(self, mask):
        mask = array_of_any(mask)
        if mask.shape != (self.nodes,):
            raise BasinError(f"a mask of shape {list(mask.shape)}, expected [{self.nodes}]")
        if not numpy.isin(mask, (0, 1)).all():
            raise BasinError("a mask of other numbers than 0 and 1, perhaps numbers of nodes")
        return numpy.ascontiguousarray(mask != 0, dtype="u1")

    # ---- the library's ----

    def build(self, schema=ffi.NULL):
        """The library's, columns in the schema's order; only nodes asked for have labels."""
        network = ffi.new("basin_network **")
        try:
            if self._paths:
                self._read(network, self._paths, None, schema)
            elif self._tables:
                known = schema_text(schema) if schema else None
                ends = "source" in self._options or "target" in self._options
                parts, named = self._tables.csv(known, self._masks, ends)
                names, tables = [name.encode() for name, _ in parts], [table for _, table in parts]
                self._read(network, names, tables, schema, named)
            else:
                self._table.check(Schema(schema) if schema else None)
                arrays, keep = self._arrays()
                options, kept = self._given(schema)
                check(lib.basin_network_from_arrays, network, arrays, options)
                del keep, kept
        except BasinError as error:
            raise error if self._paths else explained(error) from None
        result = owned(network[0], lib.basin_network_close)
        self._relabel(result)
        for line in (text(view_of(result).note) or "").splitlines():
            _note(line)
        return result

    def _read(self, network, paths, tables, schema, more=None):
        keep = [ffi.new("char[]", path) for path in paths]
        options, kept = self._given(schema, more)
        if tables:
            kept += [ffi.new("char[]", table) for table in tables]
            kept.append(ffi.new("const char *[]", kept[-len(tables) :]))
            options.table.text = kept[-1]
            options.table.exact = True
        given = ffi.new("const char *[]", keep)
        check(lib.basin_network_open, network, given, len(keep), options)

    def _given(self, schema, more=None):
        """The options of the library, and what they point to."""
        fields, kept = {**(more or {}), **self._options, "schema": schema}, []
        for name, value in fields.items():
            if isinstance(value, str):
                kept.append(ffi.new("char[]", value.encode()))
                fields[name] = kept[-1]
        own = {name: fields.pop(name) for name in _TABLE_FIELDS if name in fields}
        kept.append(sized("basin_table_options", **own))
        return sized("basin_network_options", table=kept[-1], **fields), kept

    def _relabel(self, network):
        """Labels that were given beside files; those of nodes not asked for are forgotten."""
        given = self._label if self._paths or self._tables else None
        labels = network_labels(network)
        if given is None and (self._rows is None or labels is None):
            return
        if given is not None:
            labels = numpy.full(view_of(network).nodes, -1, "i4")
            labels[: len(given)] = given
        others = numpy.ones(len(labels), bool)
        others[self.rows] = False
        labels[others] = -1
        check(lib.basin_network_set_labels, network, data_of("int32_t *", labels))

    def _arrays(self):
        """A basin_network_arrays, and what it points to."""
        feature, names = self._table.matrix, self._table.names
        keep = [ffi.new("basin_edges[]", [_edges(e) for e in self._edges.values()]), feature]
        fields = {
            "nodes": self.nodes, "label": data_of("int32_t *", self._label),
            "features": feature.shape[1], "feature": data_of("float *", feature),
            "relations": len(self._edges), "edges": keep[0],
            **{name: data_of("uint8_t *", mask) for name, mask in self._masks.items()},
        }  # fmt: skip
        if None not in self._edges:
            fields["name"] = _texts(self._edges, keep)
        if names:
            fields["column"] = _texts(names, keep)
        ids = _ids_of_rows(self._index)
        if ids:
            fields["id"] = _texts(ids, keep)
        return sized("basin_network_arrays", **fields), keep


def _ids_of_rows(index):
    """The labels of rows of pandas as ids; none where they are numbers of rows, or not unique."""
    if index is None or type(index).__name__ == "RangeIndex":
        return []
    ids = [str(label) for label in index]
    return ids if len(set(ids)) == len(ids) else []


def view_of(network):
    """What the library's network holds: nodes, features, label, .. (basin_network_view)."""
    view = sized("basin_network_view")
    lib.basin_network_get_view(view, network)
    return view


def relation_of(network, number):
    """A relation of the library's network: name, edges, row, col (basin_relation_view)."""
    view = sized("basin_relation_view")
    lib.basin_network_get_relation(view, network, number)
    return view


def network_labels(network):
    """A copy of the labels of the library's network, or None."""
    view = view_of(network)
    if not view.label:
        return None
    return numpy.frombuffer(ffi.buffer(view.label, 4 * view.nodes), "i4").copy()


def data_of(kind, array):
    """What the library reads of an array; NULL without one."""
    return ffi.NULL if array is None else ffi.cast(kind, array.ctypes.data)


def _texts(names, keep):
    keep.append([ffi.new("char[]", name.encode()) for name in names])
    keep.append(ffi.new("const char *[]", keep[-1]))
    return keep[-1]


def _edges(edges):
    start = edges.ctypes.data
    return {
        "from": ffi.cast("void *", start), "to": ffi.cast("void *", start + edges.itemsize),
        "dtype": lib.BASIN_I64, "stride": 2, "count": len(edges),
    }  # fmt: skip


_CHOICES = {
    "missing": {"error": "BASIN_MISSING_REFUSE", "zero": "BASIN_MISSING_ZERO",
                "mean": "BASIN_MISSING_MEAN", "keep": "BASIN_MISSING_KEEP"},
    "unknown": {"error": "BASIN_UNKNOWN_REFUSE", "skip": "BASIN_UNKNOWN_SKIP",
                "add": "BASIN_UNKNOWN_ADD"},
}  # fmt: skip
_OF_TABLES = {
    "id": "id", "label": "label", "source": "source", "target": "target", "time": "time",
    "relation_column": "edge_type", "until": "until", "drop": "drop",
    "date_format": "date_format", "edge_date_format": "edge_date_format",
    "max_categories": "max_categories",
}  # fmt: skip
_TABLE_FIELDS = (*_OF_TABLES.values(), "unknown", "classes")


def options_of(directed=False, missing=None, unknown=None, **others):
    """Options by name as fields of basin_network_options."""
    result: dict = {"directed": bool(directed), "unite": True}
    for name, value in (("missing", missing), ("unknown", unknown)):
        if value is not None and value not in _CHOICES[name]:
            expected = ", ".join(_CHOICES[name])
            raise BasinError(f"{name} {value!r}, expected one of {expected}")
        result[name] = 0 if value is None else getattr(lib, _CHOICES[name][value])
    for name, value in others.items():
        if name == "sample_weight":
            raise BasinError("sample_weight is not supported: nodes have equal weights")
        if name not in _OF_TABLES:
            raise TypeError(f"no option {name!r} of a network{nearest(name, _NAMES)}")
        if name == "drop" and not isinstance(value, str) and value is not None:
            value = ",".join(value)
        if value is not None:
            result[_OF_TABLES[name]] = value if name == "max_categories" else str(value)
    return result


_NAMES = ("directed", *_CHOICES, *_OF_TABLES)


# Notes that speak of what a user may not expect; others are logged.
_WARNED = ("did not know", "not used", "left out", "gaps filled", "nodes added", "count twice",
           "far after", "replace", "Latin-1", "is a relation", "look like dates",
           "either decimal mark")  # fmt: skip


def _note(line):
    if any(words in line for words in _WARNED):
        warn(line)
    else:
        _log.info("%s", line)


# ---- tables ----


def _is_table_of_columns(edges):
    """Whether a dict has columns, not relations by name."""
    if not isinstance(edges, dict) or hasattr(edges, "tocoo") or len(edges) < 2:
        return False
    shapes = {numpy.shape(v) if not hasattr(v, "shape") else tuple(v.shape) for v in edges.values()}
    return all(len(shape) == 1 and shape[0] > 0 for shape in shapes)


def _relations(edges):
    if not isinstance(edges, dict) or hasattr(edges, "tocoo") or _is_table_of_columns(edges):
        return {None: edges}
    return {str(name): some for name, some in edges.items()}


def _is_table(edges):
    return _is_table_of_columns(edges) or (is_table(edges) and not isinstance(edges, dict))


def _carries(edges):
    """Whether edges have more than two ends."""
    if hasattr(edges, "edges") and hasattr(edges, "nodes"):
        return any(attributes for _, _, attributes in edges.edges(data=True))
    if isinstance(edges, tuple) and len(edges) == 2 and isinstance(edges[1], dict):
        return True
    return edges.shape[1] != 2 if is_pandas(edges) else _is_table(edges)


def _tables_of(features, columns, edges, options):
    """Features and edges as tables that the library reads as CSV; None where arrays suffice."""
    relations = _relations(edges)
    given = [name for name, value in options.items() if value is not None]
    numeric = columns is None and not (is_pandas(features) and not is_numeric(features))
    ids = is_pandas(features) and has_ids(features)
    carry = any(_carries(some) for some in relations.values())
    if numeric and not (carry or given or ids):
        return None
    if is_pandas(features):
        columns = columns_of(features)
    if columns is None:
        matrix = Table(features).matrix
        columns = {f"feature {i}": Column(matrix[:, i]) for i in range(matrix.shape[1])}
    tables = [columns_of(some, "edges") for some in relations.values() if _is_table(some)]
    nodes, id_name = ids_of(features, columns, options.get("id"), tables)
    own, ids = id_name in columns, nodes[id_name]
    return Tables(
        nodes, {n: _edge_columns(e, ids, features, own) for n, e in relations.items()}, id_name
    )


def _edge_columns(edges, ids, features, own):
    """Columns of edges, whose ends are ids; `own`: those of a column of the features."""
    if _is_table(edges):
        return columns_of(edges, "edges")
    if isinstance(edges, tuple) and len(edges) == 2 and isinstance(edges[1], dict):
        (pairs, carried) = edges  # of PyTorch Geometric
    elif hasattr(edges, "edges") and hasattr(edges, "nodes"):
        carried = _attributes(edges)
        if own:
            pairs = numpy.empty((edges.number_of_edges(), 2), object)
            pairs[:] = [(a, b) for a, b in edges.edges()]
            ends = {"src": Column(pairs[:, 0], name="src"), "dst": Column(pairs[:, 1], name="dst")}
            return {**ends, **carried}
        pairs = edges_of(edges, len(ids), features.index if is_pandas(features) else None)
    else:
        pairs, carried = edges_of(edges, len(ids)), {}
    wrong = (pairs < 0) | (pairs >= len(ids))
    if wrong.any():
        row = int(wrong.any(axis=1).argmax())
        raise BasinError(f"edge {row} is {pairs[row].tolist()}, expected nodes 0 to {len(ids) - 1}")
    there = ids.there
    ends = {
        name: Column(ids.values[pairs[:, side]], None if there is None else there[pairs[:, side]])
        for side, name in enumerate(("src", "dst"))
    }
    return {**ends, **carried}


def _attributes(graph):
    """What edges of NetworkX carry, by name; None where an edge lacks it."""
    rows = [attributes for _, _, attributes in graph.edges(data=True)]
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    clash = {"src", "dst"} & {name.lower() for name in names}
    if clash:
        raise BasinError(f"edges carry {sorted(clash)[0]!r}, the name of an end: rename it")
    result = {}
    for name in names:
        values = numpy.empty(len(rows), object)
        values[:] = [row.get(name) for row in rows]
        result[name] = Column(values, name=name)
    return result


def _edges_of_geometric(data):
    """The pairs of a `Data`, or they and what its edges carry."""
    pairs, carried = numpy.ascontiguousarray(array_of_any(data.edge_index).T, "i8"), {}
    for name in ("edge_weight", "edge_attr"):
        values = getattr(data, name, None)
        if values is None:
            continue
        values = array_of_any(values)
        if len(values) != len(pairs):
            raise BasinError(f"{name} of {len(values)} edges, expected {len(pairs)}")
        values = values.reshape(len(pairs), -1)
        for i in range(values.shape[1]):
            own = name if values.shape[1] == 1 else f"{name} {i}"
            carried[own] = Column(values[:, i], name=own)
    return (pairs, carried) if carried else pairs
