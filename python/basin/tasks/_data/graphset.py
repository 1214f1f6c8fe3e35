"""Sets of small graphs, from arrays, SciPy, NetworkX, PyTorch Geometric, SMILES or files."""

import dataclasses
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy

from basin.tasks._data.network import edges_of
from basin.tasks._data.table import array_of_any
from basin.tasks._library import BasinError, check, ffi, lib, owned, path_of, sized
from basin.tasks._models.estimator import narrowed


@dataclasses.dataclass
class Graph:
    """One small graph: edges [E, 2] and what is known of nodes and edges.

    Attributes are numbers, labels are kinds: whole numbers, such as an atom's. Both have a row per
    node or edge, and any columns.

    >>> tasks.Graph([[0, 1], [1, 2]], node_labels=[6, 6, 8]).nodes
    3
    """

    edges: Any
    nodes: Any = None
    """Their number; by default that of the rows of nodes, or of the ends of edges."""
    node_attributes: Any = None
    node_labels: Any = None
    edge_attributes: Any = None
    edge_labels: Any = None

    def __post_init__(self):
        if self.nodes is None and hasattr(self.edges, "tocoo"):
            self.nodes = self.edges.shape[0]
        self.edges = edges_of(self.edges)
        self.node_attributes = _columns(self.node_attributes, "f4", "node_attributes")
        self.edge_attributes = _columns(self.edge_attributes, "f4", "edge_attributes")
        self.node_labels = _columns(self.node_labels, "i4", "node_labels")
        self.edge_labels = _columns(self.edge_labels, "i4", "edge_labels")
        rows = [len(a) for a in (self.node_attributes, self.node_labels) if a is not None]
        if self.nodes is None:
            self.nodes = rows[0] if rows else int(self.edges.max(initial=-1)) + 1
        self._check(rows)

    def _check(self, rows):
        if not isinstance(self.nodes, numbers.Integral):
            raise BasinError(f"a graph of {self.nodes!r} nodes, expected a whole number")
        if any(count != self.nodes for count in rows):
            raise BasinError(f"rows for {rows} nodes of a graph of {self.nodes}")
        edges = self.edges
        if len(edges) and not 0 <= edges.min() <= edges.max() < self.nodes:
            raise BasinError(f"an edge {edges.min()} .. {edges.max()} in {self.nodes} nodes")
        for some in (self.edge_attributes, self.edge_labels):
            if some is not None and len(some) != len(edges):
                raise BasinError(f"rows for {len(some)} edges of a graph of {len(edges)}")

    @classmethod
    def from_networkx(
        cls, graph: Any, node_attributes: Sequence[str] = (), node_labels: Sequence[str] = (),
        edge_attributes: Sequence[str] = (), edge_labels: Sequence[str] = (),
    ) -> "Graph":  # fmt: skip
        """A graph of NetworkX with the data of these names, one number per node or edge.

        >>> import networkx
        >>> ring = networkx.cycle_graph(4)
        >>> networkx.set_node_attributes(ring, 6, "atom")
        >>> tasks.Graph.from_networkx(ring, node_labels=["atom"]).node_labels.ravel()
        array([6, 6, 6, 6], dtype=int32)
        """

        nodes = list(graph.nodes(data=True))
        edges = [((a, b), data) for a, b, data in graph.edges(data=True)]
        return cls(
            graph, len(nodes), _data_of(nodes, "node", node_attributes),
            _data_of(nodes, "node", node_labels), _data_of(edges, "edge", edge_attributes),
            _data_of(edges, "edge", edge_labels),
        )  # fmt: skip

    @classmethod
    def from_smiles(cls, smiles: str, stereo: bool = False) -> "Graph":
        """A molecule. Nodes are its atoms but for hydrogen, edges its bonds. Labels of a node:
        atomic number, charge, hydrogens, and whether it is aromatic. Labels of an edge: 1, 2 or 3
        for a single, double or triple bond, 4 for an aromatic one, 0 for another. With `stereo` the
        last label of a node is 2 or 3 where its neighbours turn one way or the other, and that of a
        double bond 5 or 6 where they are on opposite sides or on one.

        >>> tasks.Graph.from_smiles("CC=O").edge_labels.ravel()
        array([1, 2], dtype=int32)
        """
        return cls._of_molecule(_molecules([smiles], stereo), 0)

    @classmethod
    def _of_molecule(cls, s, i):
        """Graph i of a set of molecules; each bond once."""
        n, m = (slice(a[i], a[i + 1]) for a in (s.node_start, s.edge_start))
        nodes = numpy.frombuffer(ffi.buffer(s.node_label, 16 * s.nodes), "i4").reshape(-1, 4)
        ends = numpy.frombuffer(ffi.buffer(s.edge, 8 * s.edges), "i4").reshape(-1, 2)[m]
        label = numpy.frombuffer(ffi.buffer(s.edge_label, 4 * s.edges), "i4")[m, None]
        once = ends[:, 0] < ends[:, 1]
        return cls(ends[once], node_labels=nodes[n].copy(), edge_labels=label[once])

    @classmethod
    def _of_rdkit(cls, molecule):
        """A molecule of RDKit, atoms in its order."""
        kinds = {"SINGLE": 1, "DOUBLE": 2, "TRIPLE": 3, "AROMATIC": 4}
        bonds = list(molecule.GetBonds())
        labels = [[kinds.get(bond.GetBondType().name, 0)] for bond in bonds]
        return cls(
            [[bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()] for bond in bonds],
            node_labels=[
                [a.GetAtomicNum(), a.GetFormalCharge(), a.GetTotalNumHs(), int(a.GetIsAromatic())]
                for a in molecule.GetAtoms()
            ],
            edge_labels=numpy.array(labels, dtype="i4").reshape(-1, 1),
        )

    @classmethod
    def of(cls, graph, number=0) -> "Graph":
        """Anything that is a graph: this, NetworkX, PyTorch Geometric, SMILES, a molecule of RDKit,
        edges, a SciPy matrix."""
        if isinstance(graph, cls):
            return graph
        if graph is None or isinstance(graph, float):
            raise BasinError(f"graph {number} is {graph}, expected a graph or SMILES")
        if isinstance(graph, str):
            return cls.from_smiles(graph)
        if hasattr(graph, "edge_index"):
            return cls._of_geometric(graph)
        if hasattr(graph, "GetBonds"):
            return cls._of_rdkit(graph)
        if hasattr(graph, "nodes") and hasattr(graph, "edges"):
            for what, data in (("node", graph.nodes(data=True)), ("edge", graph.edges(data=True))):
                names = sorted({str(name) for entry in data for name in entry[-1]})
                if names:
                    raise BasinError(
                        f"graph {number} has {what} data {names}: choose with "
                        "basin.tasks.Graph.from_networkx"
                    )
            return cls(graph, graph.number_of_nodes())
        return cls(graph)

    @classmethod
    def _of_geometric(cls, data):
        """A `Data` of PyTorch Geometric: x are attributes of nodes where they are real numbers,
        labels where they are whole numbers, as in ZINC; edge_attr likewise."""
        given = {}
        for what, name in (("node", "x"), ("edge", "edge_attr")):
            values = getattr(data, name, None)
            if values is not None:
                values = array_of_any(values)
                whole = values.dtype.kind in "iub"
                given[f"{what}_labels" if whole else f"{what}_attributes"] = values
        return cls(array_of_any(data.edge_index).T, int(data.num_nodes), **given)


def _molecules(smiles, stereo=False):
    """A set of all these; an error names those that cannot be read."""
    texts = [ffi.new("char[]", str(text).encode()) for text in smiles]
    given = ffi.new("char *[]", texts)
    options = sized("basin_graphset_options", text=given, count=len(texts), stereo=stereo)
    pointer = ffi.new("basin_graphset *")
    check(lib.basin_graphset_read, pointer, ffi.NULL, options)
    pointer = owned(pointer, lib.basin_graphset_free)
    if pointer.graphs < len(texts):
        note = ffi.string(pointer.note).decode(errors="replace").splitlines()
        bad = [line for line in note if line.startswith(("molecule ", "and "))]
        raise BasinError("\n".join(["not all are SMILES:", *bad]))
    return pointer


def _warn_of(molecules):
    """What was left out of molecules or is not used, as a warning."""
    note = ffi.string(molecules.note).decode(errors="replace").strip()
    if note:
        warnings.warn(note, stacklevel=3)


def _data_of(entries, what, names):
    """The data of these names, a row an entry; entries are (node or edge, data)."""
    if isinstance(names, str):
        raise BasinError(f"data {names!r} of {what}s, expected a list of names")
    for key, data in entries:
        for name in names:
            if name not in data:
                raise BasinError(f"{what} {key!r} has no {name!r}")
    return [[data[name] for name in names] for _, data in entries] if names else None


def _columns(values, dtype, what):
    if values is None:
        return None
    values = array_of_any(values)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.dtype.kind not in ("iub" if dtype == "i4" else "iufb"):
        expected = "whole numbers" if dtype == "i4" else "numbers"
        raise BasinError(
            f"{what} of shape {list(values.shape)} and type {values.dtype}, expected {expected} "
            "[rows, columns]"
        )
    if not numpy.isfinite(values).all():
        row = int(numpy.argmin(numpy.isfinite(values).all(axis=1)))
        raise BasinError(f"{what} of row {row} hold NaN or inf, expected numbers")
    return narrowed(values, dtype, what)


class GraphSet:
    """Many small graphs: what graph estimators learn from. They make one of any list of graphs;
    read() takes one from files.

    >>> len(tasks.GraphSet([[[0, 1], [1, 2]], [[0, 1]]]))
    2
    """

    def __init__(
        self, graphs: Any, directed: bool = False, *, classes: Any = None, targets: Any = None,
        stereo: bool = False,
    ) -> None:  # fmt: skip
        ones = ("edge_index", "nodes", "tocoo")  # of what is one graph
        if isinstance(graphs, str) or any(hasattr(graphs, name) for name in ones):
            raise BasinError(f"one graph, {graphs!r:.60}, expected a list of them")
        graphs = list(graphs)
        molecules = all(isinstance(g, str) or hasattr(g, "GetBonds") for g in graphs)
        if graphs and all(isinstance(graph, str) for graph in graphs):  # at once, which is faster
            read = _molecules(graphs, stereo)
            _warn_of(read)
            graphs = [Graph._of_molecule(read, i) for i in range(len(graphs))]
        self.graphs = [Graph.of(graph, i) for i, graph in enumerate(graphs)]
        count = len(self.graphs)
        if not count:
            raise BasinError("no graphs")
        nodes = numpy.array([graph.nodes for graph in self.graphs], dtype="i8")
        start = numpy.cumsum(nodes) - nodes
        parts = [graph.edges + first for graph, first in zip(self.graphs, start)]
        edges = numpy.ascontiguousarray(numpy.concatenate(parts).T, dtype="i8")
        keep: dict = {}
        fields: dict = {
            "graphs": count, "nodes": _data("int64_t *", nodes), "edges": edges.shape[1],
            "from": _data("int64_t *", edges[0]), "to": _data("int64_t *", edges[1]),
            "undirected": not directed, "molecules": molecules,
        }  # fmt: skip
        for name in ("node_attribute", "node_label", "edge_attribute", "edge_label"):
            keep[name] = self._joined(name + "s")
            if keep[name] is not None:
                kind = "int32_t *" if name.endswith("label") else "float *"
                fields[name], fields[name + "s"] = _data(kind, keep[name]), keep[name].shape[1]
        if classes is not None:
            fields["graph_class"] = _data("int64_t *", classes)
        if targets is not None:
            fields["target"], fields["targets"] = _data("float *", targets), targets.shape[1]
        self._take(lambda s: check(
            lib.basin_graphset_from_arrays, s, sized("basin_graphset_arrays", **fields)
        ))  # fmt: skip

    @classmethod
    def read(
        cls, path: Any, *, smiles: str | None = None, target: Any = None, ids: str | None = None,
        stereo: bool = False, values: bool = False,
    ) -> "GraphSet":  # fmt: skip
        """A TUDataset folder or zip, or a packed set, with its classes or values; or a table of
        molecules (CSV, TSV, SDF), as the program reads it: columns `smiles` and `ids` have usual
        names where they are not given, `target` is a column, or a list of them, to learn (`values`:
        few whole numbers are values, not classes). What was left out is a warning."""
        self = cls.__new__(cls)
        self.graphs = None
        targets = [target] if isinstance(target, str) else list(target or [])
        given = {"smiles": smiles, "id": ids, "target": "\n".join(targets)}
        texts = {key: ffi.new("char[]", str(text).encode()) for key, text in given.items() if text}
        options = sized("basin_graphset_options", stereo=stereo, values=values, **texts)
        self._take(lambda s: check(lib.basin_graphset_read, s, path_of(path), options))
        if self.pointer.note:
            _warn_of(self.pointer)
        return self

    def __len__(self):
        return self.pointer.graphs

    def __repr__(self):
        return f"<basin set of {len(self)} graphs>"

    def _take(self, fill):
        pointer = ffi.new("basin_graphset *")
        fill(pointer)
        self.pointer = owned(pointer, lib.basin_graphset_free)

    def _joined(self, name):
        parts = [getattr(graph, name) for graph in self.graphs]
        absent = [i for i, part in enumerate(parts) if part is None]
        if len(absent) == len(parts):
            return None
        widths = {part.shape[1] for part in parts if part is not None}
        if absent or len(widths) > 1:
            which = f"graph {absent[0]} has none" if absent else f"of {sorted(widths)} columns"
            raise BasinError(f"{name}: {which}, expected the same columns in all graphs")
        return numpy.ascontiguousarray(numpy.concatenate(parts))


def _data(kind, array):
    return ffi.cast(kind, array.ctypes.data)
