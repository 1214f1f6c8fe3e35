"""Networks: one graph of many nodes, from arrays, SciPy, pandas, NetworkX or files."""

import copy
import warnings

import numpy

from basin._estimator import labels_of, sized
from basin._library import BasinError, check, ffi, lib, owned

__all__ = ["Network", "edges_of"]


def features_of(values):
    """Features as float32 [N, F], and the names of columns where they have some."""
    if hasattr(values, "columns") and hasattr(values, "dtypes"):
        for name, kind in values.dtypes.items():
            if getattr(kind, "kind", "O") not in "iufb":
                raise BasinError(f"column {name!r} of type {kind}, wanted numbers: encode it first")
        return _matrix(values.to_numpy("f4")), [str(name) for name in values.columns]
    if hasattr(values, "toarray"):
        values = values.toarray()
    values = numpy.asarray(values)
    if values.dtype.kind not in "iufb":
        raise BasinError(f"features of type {values.dtype}, wanted numbers")
    return _matrix(values), None


def _matrix(values):
    if values.ndim != 2:
        raise BasinError(f"features of shape {list(values.shape)}, wanted [nodes, features]")
    return numpy.ascontiguousarray(values, dtype="f4")


def edges_of(edges):
    """Edges as int64 [E, 2]: of an array, a SciPy matrix [N, N] or a graph of NetworkX."""
    if hasattr(edges, "tocoo"):
        return _edges_of_matrix(edges.tocoo())
    if hasattr(edges, "edges") and hasattr(edges, "nodes"):
        number = {node: i for i, node in enumerate(edges.nodes)}
        pairs = [(number[a], number[b]) for a, b in edges.edges()]
        return numpy.array(pairs, dtype="i8").reshape(-1, 2)
    edges = numpy.asarray(edges)
    if edges.size == 0:
        edges = edges.reshape(0, 2).astype("i8")
    if edges.ndim != 2 or edges.shape[1] != 2:
        hint = "; transpose it" if edges.ndim == 2 and edges.shape[0] == 2 else ""
        raise BasinError(f"edges of shape {list(edges.shape)}, wanted [edges, 2]{hint}")
    if edges.dtype.kind not in "iu":
        raise BasinError(f"edges of type {edges.dtype}, wanted whole numbers of nodes")
    return numpy.ascontiguousarray(edges, dtype="i8")


def _edges_of_matrix(matrix):
    if matrix.shape[0] != matrix.shape[1]:
        raise BasinError(f"a matrix of edges {list(matrix.shape)}, wanted as many rows as columns")
    there = matrix.data != 0
    if numpy.any(matrix.data[there] != 1):
        warnings.warn("weights of edges are not used", stacklevel=4)
    pairs = numpy.stack([matrix.row[there], matrix.col[there]], axis=1)
    return numpy.ascontiguousarray(pairs, dtype="i8")


class Network:
    """One graph of many nodes: what an AnomalyDetector learns from.

    `features` is [N, F], an array, a SciPy matrix or a pandas table, whose names of columns are
    kept; `edges` an array [E, 2], a SciPy matrix [N, N] or a graph of NetworkX, or a dict of these
    by the names of relations. Labels are 1 (anomalous), 0 (normal) and -1 (unknown). Masks [N]
    say who trains, validates and tests. `missing` says what becomes of NaN: "error", "zero" or
    "mean".

    >>> import basin
    >>> basin.Network([[0.5], [0.1], [0.9]], [[0, 1], [1, 2]], labels=[0, 0, 1])
    <basin network of 3 nodes, 1 features, 2 edges>
    """

    def __init__(
        self, features, edges, labels=None, *, train=None, validation=None, test=None,
        directed=False, missing="error",
    ):  # fmt: skip
        self._feature, self.columns = features_of(features)
        self.nodes, self.features = self._feature.shape
        relations = edges if isinstance(edges, dict) else {None: edges}
        self._edges = {name: edges_of(some) for name, some in relations.items()}
        self._label = None if labels is None else labels_of(labels, self.nodes).astype("i4")
        masks = {"train": train, "val": validation, "test": test}
        self._masks = {name: self._mask(m) for name, m in masks.items() if m is not None}
        self._options = {"directed": directed, "missing": _missing(missing)}
        self._paths = None

    @classmethod
    def open(cls, *paths, directed=False, missing="error") -> "Network":
        """A network from files, as `basin anomaly train` takes them: npz, .mat, DGL, CSV."""
        self = cls.__new__(cls)
        self._paths = [str(path) for path in paths]
        self._options = {"directed": directed, "missing": _missing(missing)}
        pointer = self.build()
        self.nodes, self.features, self.columns = pointer.nodes, pointer.features, None
        return self

    def labelled(self, labels) -> "Network":
        """The same network with these labels."""
        if self._paths:
            raise BasinError("labels beside a Network of files, which have their own")
        other = copy.copy(self)
        other._label = labels_of(labels, self.nodes).astype("i4")
        return other

    def __repr__(self):
        edges = "" if self._paths else f", {sum(map(len, self._edges.values()))} edges"
        return f"<basin network of {self.nodes} nodes, {self.features} features{edges}>"

    def _mask(self, mask):
        mask = numpy.asarray(mask)
        if mask.shape != (self.nodes,):
            raise BasinError(f"a mask of shape {list(mask.shape)}, wanted [{self.nodes}]")
        return numpy.ascontiguousarray(mask != 0, dtype="u1")

    def build(self, schema=ffi.NULL):
        """The library's network, with columns in the order of the schema."""
        options = ffi.new("basin_network_options *", {**self._options, "schema": schema})
        network = ffi.new("basin_network **")
        if self._paths:
            keep = [ffi.new("char[]", path.encode()) for path in self._paths]
            paths = ffi.new("const char *[]", keep)
            check(lib.basin_network_open, network, paths, len(keep), options)
        else:
            arrays, keep = self._arrays()
            check(lib.basin_network_from_arrays, network, arrays, options)
        return owned(network[0], lib.basin_network_free)

    def _arrays(self):
        """A basin_network_arrays, and what it points to."""
        keep = [ffi.new("basin_edges[]", [_edges(e) for e in self._edges.values()])]
        fields = {
            "nodes": self.nodes,
            "features": self.features,
            "feature": _data("float *", self._feature),
            "label": _data("int32_t *", self._label),
            "relations": len(self._edges),
            "edges": keep[0],
            **{name: _data("uint8_t *", mask) for name, mask in self._masks.items()},
        }
        if None not in self._edges:
            fields["name"] = _texts(self._edges, keep)
        if self.columns:
            fields["column"] = _texts(self.columns, keep)
        return sized("basin_network_arrays", **fields), keep


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
