"""Sets of small graphs, from arrays, SciPy, NetworkX, PyTorch Geometric, SMILES or files."""

import dataclasses
import json
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy

from basin.tasks._data.network import data_of, edges_of
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
    def from_smiles(cls, smiles: str, stereo: bool = False, as_is: bool = False) -> "Graph":
        """A molecule. Nodes are its atoms but for hydrogen, edges its bonds. Labels of a node:
        atomic number, charge, hydrogens, and whether it is aromatic. Labels of an edge: 1, 2 or 3
        for a single, double or triple bond, 4 for an aromatic one, 0 for another. With `stereo` the
        last label of a node is 2 or 3 where its neighbours turn one way or the other, and that of a
        double bond 5 or 6 where they are on opposite sides or on one. The largest part of a salt
        is kept, protons make it neutral, isotopes are ignored, unless it is taken `as_is`.

        >>> tasks.Graph.from_smiles("CC=O").edge_labels.ravel()
        array([1, 2], dtype=int32)
        """
        return cls._of_molecules([smiles], stereo, as_is)[0]

    @classmethod
    def _of_molecules(cls, molecules, stereo=False, as_is=False, skip=False):
        """SMILES and molecules of RDKit, which pass through SMILES that RDKit writes; their nodes
        are in its order. With `skip` those that cannot be read are None."""
        texts, orders = zip(*(_smiles_of(molecule) for molecule in molecules))
        read, kept = _molecules(texts, stereo, as_is, skip)
        graphs: list = [None] * len(texts)
        for i, place in enumerate(kept):
            graphs[place] = cls._of_molecule(read, i)._ordered(orders[place])
        return graphs

    @classmethod
    def _of_molecule(cls, s, i):
        """Graph i of a set of molecules; each bond once."""
        n, m = (slice(a[i], a[i + 1]) for a in (s.node_start, s.edge_start))
        nodes = numpy.frombuffer(ffi.buffer(s.node_label, 16 * s.nodes), "i4").reshape(-1, 4)
        ends = numpy.frombuffer(ffi.buffer(s.edge, 8 * s.edges), "i4").reshape(-1, 2)[m]
        label = numpy.frombuffer(ffi.buffer(s.edge_label, 4 * s.edges), "i4")[m, None]
        once = ends[:, 0] < ends[:, 1]
        return cls(ends[once], node_labels=nodes[n].copy(), edge_labels=label[once])

    def _ordered(self, order):
        """With nodes in the order of these numbers, where each has one."""
        if order is not None and len(order) == self.nodes:
            now = numpy.argsort(order)
            self.node_labels = self.node_labels[now]
            self.edges = numpy.argsort(now)[self.edges]
        return self

    @classmethod
    def of(cls, graph, number=0) -> "Graph":
        """Anything that is a graph: this, NetworkX, PyTorch Geometric, SMILES, a molecule of RDKit,
        edges, a SciPy matrix."""
        if isinstance(graph, cls):
            return graph
        if graph is None or isinstance(graph, float):
            raise BasinError(f"graph {number} is {graph}, expected a graph or SMILES")
        if isinstance(graph, str) or hasattr(graph, "GetBonds"):
            return cls._of_molecules([graph])[0]
        if hasattr(graph, "edge_index"):
            return cls._of_geometric(graph)
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


def _smiles_of(molecule):
    """Text of a molecule; of RDKit also the numbers of its atoms but for hydrogen, as written."""
    if isinstance(molecule, str):
        return molecule, None
    from rdkit import Chem  # whose molecule it is

    molecule = Chem.RemoveHs(molecule, sanitize=False)
    text = Chem.MolToSmiles(molecule)
    order = json.loads(molecule.GetProp("_smilesAtomOutputOrder").replace(",]", "]"))
    return text, [i for i in order if molecule.GetAtomWithIdx(i).GetAtomicNum() != 1]


def _molecules(smiles, stereo=False, as_is=False, skip=False):
    """A set of these, and the places of those read; an error (`skip`: a warning) names others."""
    texts = [ffi.new("char[]", str(text).encode()) for text in smiles]
    given = ffi.new("char *[]", texts)
    options = sized(
        "basin_graphset_options", text=given, count=len(texts), stereo=stereo, as_is=as_is
    )
    pointer = ffi.new("basin_graphset *")
    check(lib.basin_graphset_read, pointer, ffi.NULL, options)
    pointer = owned(pointer, lib.basin_graphset_free)
    if pointer.graphs < len(texts) and not skip:
        note = ffi.string(pointer.note).decode(errors="replace").splitlines()
        bad = [line for line in note if line.startswith(("molecule ", "and "))]
        raise BasinError("\n".join(["not all are SMILES (GraphSet(.., skip=True)):", *bad]))
    _warn_of(pointer)
    return pointer, [pointer.line[i] for i in range(pointer.graphs)]


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


def _known_of(values, dtype, what, count):
    """Classes [graphs, 1] or targets [graphs, values] as the library reads them, or None."""
    if values is None:
        return None
    values = array_of_any(values)
    kinds, expected = ("iub", "whole numbers") if dtype == "i8" else ("iufb", "numbers")
    columns = (1, 2) if dtype == "f4" else (1,)
    if values.ndim not in columns or len(values) != count or values.dtype.kind not in kinds:
        raise BasinError(
            f"{what} of shape {list(values.shape)} and type {values.dtype}, expected {expected} "
            f"for {count} graphs"
        )
    return narrowed(values.reshape(count, -1), dtype, what)


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
    read() takes one from files. `classes` are whole numbers, [graphs], `targets` [graphs] or
    [graphs, values]. `stereo` and `as_is` of molecules as in Graph.from_smiles; with `skip` SMILES
    that cannot be read, None and NaN are left out, with a warning: `kept` has the places of the
    others, whose classes or targets stay. `binary` targets are yes, 1, or no, 0.

    >>> len(tasks.GraphSet([[[0, 1], [1, 2]], [[0, 1]]]))
    2
    """

    def __init__(
        self, graphs: Any, directed: bool = False, *, classes: Any = None, targets: Any = None,
        stereo: bool = False, as_is: bool = False, skip: bool = False, binary: bool = False,
    ) -> None:  # fmt: skip
        ones = ("edge_index", "nodes", "tocoo")  # of what is one graph
        if isinstance(graphs, str) or any(hasattr(graphs, name) for name in ones):
            raise BasinError(f"one graph, {graphs!r:.60}, expected a list of them")
        graphs = list(graphs)
        if not graphs:
            raise BasinError("no graphs")
        if skip:  # as RDKit gives what it cannot read, and pandas an empty cell
            graphs = ["" if g is None or isinstance(g, float) else g for g in graphs]
        classes = _known_of(classes, "i8", "classes", len(graphs))
        targets = _known_of(targets, "f4", "targets", len(graphs))
        molecules = all(isinstance(g, str) or hasattr(g, "GetBonds") for g in graphs)
        self.kept = numpy.arange(len(graphs))
        if molecules:  # at once, which is faster
            read = Graph._of_molecules(graphs, stereo, as_is, skip)
            self.kept = numpy.flatnonzero([graph is not None for graph in read])
            graphs = [read[i] for i in self.kept]
            classes = None if classes is None else classes[self.kept, 0]
            targets = None if targets is None else targets[self.kept]
        self.graphs = [Graph.of(graph, i) for i, graph in enumerate(graphs)]
        count = len(self.graphs)
        nodes = numpy.array([graph.nodes for graph in self.graphs], dtype="i8")
        start = numpy.cumsum(nodes) - nodes
        parts = [graph.edges + first for graph, first in zip(self.graphs, start)]
        edges = numpy.ascontiguousarray(numpy.concatenate(parts).T, dtype="i8")
        keep: dict = {}
        fields: dict = {
            "graphs": count, "nodes": data_of("int64_t *", nodes), "edges": edges.shape[1],
            "from": data_of("int64_t *", edges[0]), "to": data_of("int64_t *", edges[1]),
            "undirected": not directed, "molecules": molecules, "binary": binary,
            "graph_class": data_of("int64_t *", classes), "target": data_of("float *", targets),
        }  # fmt: skip
        for name in ("node_attribute", "node_label", "edge_attribute", "edge_label"):
            keep[name] = self._joined(name + "s")
            if keep[name] is not None:
                kind = "int32_t *" if name.endswith("label") else "float *"
                fields[name], fields[name + "s"] = data_of(kind, keep[name]), keep[name].shape[1]
        if targets is not None:
            fields["targets"] = targets.shape[1]
        self._take(lambda s: check(
            lib.basin_graphset_from_arrays, s, sized("basin_graphset_arrays", **fields)
        ))  # fmt: skip

    @classmethod
    def read(
        cls, path: Any, *, smiles: str | None = None, target: Any = None, ids: str | None = None,
        stereo: bool = False, values: bool = False, as_is: bool = False,
        replicates: str = "keep",
    ) -> "GraphSet":  # fmt: skip
        """A TUDataset folder or zip, or a packed set, with its classes or values; or a table of
        molecules (CSV, TSV, SDF), as the program reads it: columns `smiles` and `ids` have usual
        names where they are not given, `target` is a column, or a list of them, to learn (`values`:
        few whole numbers are values, not classes). `replicates` "mean" makes one molecule of all
        its copies. What was left out is a warning."""
        if replicates not in ("keep", "mean"):
            raise BasinError(f"replicates {replicates!r}, expected 'keep' or 'mean'")
        self = cls.__new__(cls)
        self.graphs = None
        targets = [target] if isinstance(target, str) else list(target or [])
        given = {"smiles": smiles, "id": ids, "target": "\n".join(targets)}
        texts = {key: ffi.new("char[]", str(text).encode()) for key, text in given.items() if text}
        merge = replicates == "mean"
        how = {"stereo": stereo, "values": values, "as_is": as_is, "merge": merge}
        options = sized("basin_graphset_options", **how, **texts)
        self._take(lambda s: check(lib.basin_graphset_read, s, path_of(path), options))
        if self.pointer.note:
            _warn_of(self.pointer)
        return self

    def __len__(self):
        return self.pointer.graphs

    @property
    def copies(self) -> numpy.ndarray:
        """[graphs] the first graph that is equal to each, such as groups for scikit-learn's
        GroupKFold: copies on both sides of a split make scores too good.

        >>> tasks.GraphSet(["CCO", "CN", "OCC"]).copies
        array([0, 1, 0])
        """
        first = numpy.zeros(len(self), "i8")
        check(lib.basin_graphset_copies, data_of("int64_t *", first), self.pointer)
        return first

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
