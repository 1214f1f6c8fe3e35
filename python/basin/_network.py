"""Networks: one graph of many nodes, from arrays, SciPy, pandas, NetworkX, PyTorch Geometric or
files."""

import copy
import logging
import numbers
from typing import Any, Optional

import numpy

from basin import _plots
from basin._estimator import labels_of, sized
from basin._library import BasinError, check, ffi, lib, owned, path_of, text, warn
from basin._table import Schema, Table, array_of_any, schema_of

__all__ = ["Network", "edges_of", "network_labels", "view_of"]

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
        hint = "; transpose it" if edges.ndim == 2 and edges.shape[0] == 2 else ""
        raise BasinError(f"edges of shape {list(edges.shape)}, wanted [edges, 2]{hint}")
    if edges.dtype.kind not in "iu":
        raise BasinError(f"edges of type {edges.dtype}, wanted whole numbers of nodes")
    return numpy.ascontiguousarray(edges, dtype="i8")


def _edges_of_matrix(matrix, nodes):
    if matrix.shape[0] != matrix.shape[1] or nodes not in (None, matrix.shape[0]):
        wanted = "as many rows as columns" if nodes is None else f"[{nodes}, {nodes}]"
        raise BasinError(f"a matrix of edges {list(matrix.shape)}, wanted {wanted}")
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
            f"a graph of {graph.number_of_nodes()} nodes beside {nodes} rows, and its nodes are "
            "not the numbers of rows"
        )
    if nodes is not None and any(w not in (None, 1) for _, _, w in graph.edges(data="weight")):
        warn("weights of edges are not used")
    pairs = [(number[a], number[b]) for a, b in graph.edges()]
    return numpy.array(pairs, dtype="i8").reshape(-1, 2)


def _check_unique(index):
    if not index.is_unique:
        raise BasinError("edges by labels of rows, which are not unique: reset the index")


def _is_number(node, nodes):
    return isinstance(node, numbers.Integral) and 0 <= int(node) < nodes


def _by_label(edges, index):
    """A pandas table of edges, whose ends are labels of the rows of features."""
    if edges.shape[1] != 2:
        raise BasinError(f"edges of columns {list(edges.columns)}, wanted two: from, to")
    _check_unique(index)
    ends = [index.get_indexer(edges.iloc[:, side]) for side in (0, 1)]
    for side, found in enumerate(ends):
        if (found < 0).any():
            row = int((found < 0).argmax())
            raise BasinError(f"edge {row} ends at {edges.iat[row, side]!r}, which no row is called")
    return numpy.ascontiguousarray(numpy.stack(ends, axis=1), dtype="i8")


class Network:
    """One graph of many nodes: what an AnomalyDetector learns from.

    `features` is [N, F], an array, a SciPy matrix or a pandas table: names of columns are kept,
    texts and categories become one feature a value, dates days since 1970. `edges` is an array
    [E, 2], a SciPy matrix [N, N] or a graph of NetworkX, or a dict of these by the names of
    relations. Labels are 1 (anomalous), 0 (normal) and -1 (unknown). Masks [N] say who trains,
    validates and tests. `missing` says what becomes of NaN: "error", "zero" or "mean".

    network[rows] is the same graph of which only these nodes are asked for: a detector trains on
    their labels, and predicts them. So cross-validation over nodes keeps the graph whole.

    >>> import basin
    >>> network = basin.Network([[0.5], [0.1], [0.9]], [[0, 1], [1, 2]], labels=[0, 0, 1])
    >>> network
    <basin network of 3 nodes, 1 features, 2 edges>
    >>> network[1:].labels
    array([0, 1], dtype=int32)
    """

    _paths: Optional[list] = None
    _rows: Optional[numpy.ndarray] = None
    _label: Optional[numpy.ndarray] = None

    def __init__(
        self, features: Any, edges: Any, labels: Any = None, *, train: Any = None,
        validation: Any = None, test: Any = None, directed: bool = False, missing: str = "error",
    ):  # fmt: skip
        self._table = Table(features)
        self.nodes, self.features = self._table.rows, self._table.count
        one = not isinstance(edges, dict)
        relations = {None: edges} if one else {str(name): some for name, some in edges.items()}
        index = self._table.index
        self._edges = {n: edges_of(some, self.nodes, index) for n, some in relations.items()}
        self._label = None if labels is None else labels_of(labels, self.nodes)
        masks = {"train": train, "val": validation, "test": test}
        self._masks = {name: self._mask(m) for name, m in masks.items() if m is not None}
        self._options = {"directed": directed, "missing": _missing(missing)}
        self._gaps = missing

    @classmethod
    def open(cls, *paths: Any, directed: bool = False, missing: str = "error") -> "Network":
        """A network from files, as `basin anomaly train` takes them: npz, .mat, DGL, CSV.

        >>> import os, tempfile, numpy, basin
        >>> path = os.path.join(tempfile.mkdtemp(), "network.npz")
        >>> numpy.savez(path, x=numpy.eye(3), edges=[[0, 1], [1, 2]], y=[0, 0, 1])
        >>> basin.Network.open(path).labels
        array([0, 0, 1], dtype=int32)
        """
        if not paths:
            raise BasinError("no files of a network")
        self = cls.__new__(cls)
        self._paths = [path_of(path) for path in paths]
        self._options = {"directed": directed, "missing": _missing(missing)}
        view = view_of(self.build())
        self.nodes, self.features = view.nodes, view.features
        return self

    @classmethod
    def of(cls, data: Any) -> "Network":
        """A network, or a `Data` of PyTorch Geometric: x, edge_index, y and its masks.

        >>> import numpy, basin
        >>> class Data:  # or torch_geometric.data.Data
        ...     x, edge_index = numpy.eye(3), numpy.array([[0, 1], [1, 2]])
        >>> basin.Network.of(Data())
        <basin network of 3 nodes, 3 features, 2 edges>
        """
        if isinstance(data, cls):
            return data
        if getattr(data, "edge_index", None) is None or getattr(data, "x", None) is None:
            raise BasinError(f"{type(data).__name__}, wanted a Network, or Data with x, edge_index")
        weights = getattr(data, "edge_weight", None), getattr(data, "edge_attr", None)
        if any(some is not None for some in weights):
            warn("weights and attributes of edges are not used")
        masks = [getattr(data, f"{name}_mask", None) for name in ("train", "val", "test")]
        edges, label = array_of_any(data.edge_index).T, getattr(data, "y", None)
        label = None if label is None else array_of_any(label).reshape(-1)
        train, validation, test = masks
        return cls(data.x, edges, label, train=train, validation=validation, test=test)

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
            raise BasinError(f"{len(rows)} subscripts of a network, wanted one: nodes")
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
        label = network_labels(self.build()) if self._paths else self._label
        return None if label is None else label[self.rows]

    def check_order(self, labels: Any) -> None:
        """Refuses labels of pandas whose rows are those of the features in another order."""
        index: Any = getattr(labels, "index", None)
        if self._paths or self._table.index is None or not hasattr(labels, "iloc"):
            return
        own = self._table.index[self.rows]
        if len(own) == len(index) and not own.equals(index) and set(own) == set(index):
            raise BasinError("y has the rows of X in another order: give y.reindex(X.index)")

    def number_of(self, node: Any) -> int:
        """The number of a node, which may be the label of a row of a pandas table."""
        index = None if self._paths else self._table.index
        if isinstance(node, numbers.Integral):
            return int(node)
        if index is None or node not in index:
            raise BasinError(f"node {node!r}, wanted a number or the label of a row")
        return int(index.get_loc(node))

    def labelled(self, labels: Any) -> "Network":
        """The same network with these labels of the nodes that are asked for."""
        other, known = copy.copy(self), labels_of(labels, len(self))
        other._label = numpy.full(self.nodes, -1, "i4")
        other._label[self.rows] = known
        return other

    def __repr__(self):
        some = "" if self._rows is None else f"{len(self)} of "
        edges = "" if self._paths else f", {sum(map(len, self._edges.values()))} edges"
        return f"<basin network of {some}{self.nodes} nodes, {self.features} features{edges}>"

    def _repr_html_(self) -> str:
        network = self.build()
        rows = [("nodes", f"{self.nodes:,}"), ("features", f"{self.features:,}")]
        for i in range(view_of(network).relations):
            relation = lib.basin_network_get_relation(network, i)
            rows.append((f"neighbours, {text(relation.name)}", f"{relation.edges:,}"))
        labels = network_labels(network)
        if labels is not None:
            values, counts = numpy.unique(labels, return_counts=True)
            told = [("unknown" if v < 0 else v, n) for v, n in zip(values, counts)]
            rows.append(("labels", ", ".join(f"{value}: {count:,}" for value, count in told)))
        return _plots.table_html(repr(self)[1:-1], rows)

    def _mask(self, mask):
        mask = array_of_any(mask)
        if mask.shape != (self.nodes,):
            raise BasinError(f"a mask of shape {list(mask.shape)}, wanted [{self.nodes}]")
        if not numpy.isin(mask, (0, 1)).all():
            raise BasinError("a mask of other numbers than 0 and 1: numbers of nodes are no mask")
        return numpy.ascontiguousarray(mask != 0, dtype="u1")

    # ---- the library's ----

    @property
    def columns(self) -> Optional[list]:
        """The names of the columns of a pandas table; None of others."""
        return None if self._paths else self._table.names

    def build(self, schema=ffi.NULL):
        """The library's network, with columns in the order of the schema. Only nodes that are asked
        for have labels."""
        network = ffi.new("basin_network **")
        if self._paths:
            keep = [ffi.new("char[]", path) for path in self._paths]
            paths = ffi.new("const char *[]", keep)
            options = self._given(schema)
            check(lib.basin_network_open, network, paths, len(keep), options)
        else:
            arrays, columns, keep = self._arrays(Schema(schema) if schema else None)
            if columns is not None:
                relations = [name or "homo" for name in self._edges]
                schema = schema_of(columns, self._options["directed"], self._gaps, relations)
            check(lib.basin_network_from_arrays, network, arrays, self._given(schema))
        result = owned(network[0], lib.basin_network_free)
        self._relabel(result)
        for line in (text(view_of(result).note) or "").splitlines():
            _log.info("%s", line)
        return result

    def _given(self, schema):
        return ffi.new("basin_network_options *", {**self._options, "schema": schema})

    def _relabel(self, network):
        """Labels that were given beside files; those of nodes that are not asked for are
        forgotten."""
        given = self._label if self._paths else None
        labels = network_labels(network)
        if given is None and (self._rows is None or labels is None):
            return
        if given is not None:
            labels = numpy.array(given, "i4")
        others = numpy.ones(len(labels), bool)
        others[self.rows] = False
        labels[others] = -1
        check(lib.basin_network_set_labels, network, _data("int32_t *", labels))

    def _arrays(self, schema):
        """A basin_network_arrays, the columns of a schema of its own, and what it points to."""
        feature, names, columns = self._table.encode(schema)
        keep = [ffi.new("basin_edges[]", [_edges(e) for e in self._edges.values()]), feature]
        fields = {
            "nodes": self.nodes,
            "features": feature.shape[1],
            "feature": _data("float *", feature),
            "label": _data("int32_t *", self._label),
            "relations": len(self._edges),
            "edges": keep[0],
            **{name: _data("uint8_t *", mask) for name, mask in self._masks.items()},
        }
        if None not in self._edges:
            fields["name"] = _texts(self._edges, keep)
        if names:
            fields["column"] = _texts(names, keep)
        return sized("basin_network_arrays", **fields), columns, keep


def view_of(network):
    """What the library's network holds: nodes, features, label, .. (basin_network_view)."""
    return lib.basin_network_get_view(network)


def network_labels(network):
    """A copy of the labels of the library's network, or None."""
    view = view_of(network)
    if not view.label:
        return None
    return numpy.frombuffer(ffi.buffer(view.label, 4 * view.nodes), "i4").copy()


def _data(kind, array):
    return ffi.NULL if array is None else ffi.cast(kind, array.ctypes.data)


def _texts(names, keep):
    keep.append([ffi.new("char[]", name.encode()) for name in names])
    keep.append(ffi.new("const char *[]", keep[-1]))
    return keep[-1]


def _edges(edges):
    start = edges.ctypes.data
    return {
        "from": ffi.cast("void *", start),
        "to": ffi.cast("void *", start + edges.itemsize),
        "dtype": lib.BASIN_I64,
        "stride": 2,
        "count": len(edges),
    }


def _missing(how):
    ways = {"error": lib.BASIN_MISSING_ERROR, "zero": lib.BASIN_MISSING_ZERO,
            "mean": lib.BASIN_MISSING_MEAN}  # fmt: skip
    if how not in ways:
        raise BasinError(f"missing {how!r}, wanted error, zero or mean")
    return ways[how]
