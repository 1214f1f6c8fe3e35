"""Energy attention at once on memory that others own: what basin.torch and basin.jax share.

Everything here is in the kernels' own order: q [batch, queries, H, Y]; a list of pairs is one array
of int32 that holds row, key, column, query and pair one after the other, each at a multiple of 16
elements.
"""

import functools
import struct
from typing import Any

import numpy

from basin._engine.cuda import check_open
from basin._engine.library import BasinError, check, ffi, lib, owned

EXCLUDE_SELF, CAUSAL, TF32 = 1, 2, 4  # flags of an operation
ONE_HEAD = 8  # operands have no axis of heads
HEADS_FIRST = 16  # with values: tokens are [batch, H, N, Y]
_ALIGN = 16
NULL = ffi.NULL


@functools.cache
def opened(backend, threads=0):
    """What runs single operations on a backend."""
    pointer = ffi.new("basin_eager **")
    check_open(lib.basin_eager_open, pointer, backend, threads)
    return owned(pointer[0], lib.basin_eager_close)


# ---- lists of pairs ----


def list_offsets(queries, keys, pairs):
    """Where row, key, column, query and pair begin, and how long all of it is."""
    at, offsets = 0, []
    for length in (queries + 1, pairs, keys + 1, pairs, pairs):
        offsets.append(at)
        at += -(-length // _ALIGN) * _ALIGN
    return offsets, at


def pack_list(edges, queries, keys, both_ways=False, drop_self=False, add_self=False):
    """The packed list of edges [E, 2] (query, key), and how many pairs it has."""
    edges = numpy.asarray(edges)
    if edges.shape == (0,):
        edges = numpy.zeros((0, 2), "i4")
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        hint = "; transpose it (.T)" if edges.ndim == 2 and edges.shape[0] == 2 else ""
        raise BasinError(
            f"edges of shape {list(edges.shape)} and type {edges.dtype}, expected integers [E, 2]"
            f"{hint}"
        )
    if edges.size and (edges.min() < 0 or edges.max() >= max(queries, keys)):
        raise BasinError(
            f"an edge names node {edges.min() if edges.min() < 0 else edges.max()}, "
            f"expected 0 to {max(queries, keys) - 1}"
        )
    flags = (
        both_ways * lib.BASIN_PAIRS_BOTH_WAYS
        | drop_self * lib.BASIN_PAIRS_DROP_SELF
        | add_self * lib.BASIN_PAIRS_ADD_SELF
    )
    parts = parts_of_list(edges, queries, keys, flags)
    count = len(parts["key"])
    offsets, length = list_offsets(queries, keys, count)
    packed = numpy.zeros(length, "i4")
    for part, at in zip(parts.values(), offsets):
        packed[at : at + len(part)] = part
    return packed, count


def parts_of_list(edges, queries, keys, flags=0):
    """The parts of a list of edges [E, 2] by name, as basin_pairs has them."""
    edges = numpy.ascontiguousarray(edges, dtype="i4")
    pairs = owned(ffi.new("basin_pairs *"), lib.basin_pairs_free)
    data = ffi.cast("int32_t *", edges.ctypes.data)
    check(lib.basin_pairs_new, pairs, queries, keys, data, len(edges), flags)
    lengths = (queries + 1, pairs.pairs, keys + 1, pairs.pairs, pairs.pairs)
    return {
        name: numpy.frombuffer(ffi.buffer(getattr(pairs, name), 4 * n) if n else b"", "i4").copy()
        for name, n in zip(_LIST, lengths)
    }


class Pairs:
    """What the lists of pairs of basin.torch and basin.jax share; `packed` is theirs."""

    queries: int
    keys: int
    count: int
    packed: Any

    def _pack(self, edges, queries, keys, both_ways, drop_self, add_self):
        self.queries, self.keys = queries, queries if keys is None else keys
        flags = both_ways, drop_self, add_self
        packed, self.count = pack_list(edges, queries, self.keys, *flags)
        return packed

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"Pairs({self.count} of {self.queries} queries and {self.keys} keys)"

    def _check(self, queries, keys):
        if (self.queries, self.keys) != (queries, keys):
            raise BasinError(f"{self!r}, but there are {queries} queries and {keys} keys")


def pattern_of(pairs, kind, framework, exclude_self, queries, keys, flags):
    """The list of pairs or None, its length, and flags of an attention over all pairs (None), the
    "causal" ones or a list, which is of the class `kind`."""
    flags |= EXCLUDE_SELF if exclude_self else 0
    if pairs is None or (isinstance(pairs, str) and pairs == "causal"):
        if (pairs or exclude_self) and queries != keys:
            raise BasinError(
                f"{queries} queries and {keys} keys, which must be the same tokens to leave out "
                f"{'later ones' if pairs else 'self pairs'}"
            )
        return None, 0, flags | (CAUSAL if pairs else 0)
    if not isinstance(pairs, kind):
        found = repr(pairs) if isinstance(pairs, str) else f"a {type(pairs).__name__}"
        raise BasinError(
            f"pairs are {found}, expected None, 'causal' or basin.{framework}.Pairs(edges, N)"
        )
    if exclude_self:
        raise BasinError("a list of pairs that is to leave some out; list those that count")
    pairs._check(queries, keys)
    return pairs, pairs.count, flags


# ---- jobs ----

DTYPES = {"float64": lib.BASIN_F64, "float32": lib.BASIN_F32, "bfloat16": lib.BASIN_BF16}
_JOB, _VALUES = ffi.typeof("basin_eager_attention"), ffi.typeof("basin_eager_values")
# The job as bytes: written by one call, where a struct's fields are set one by one.
_run = ffi.cast(
    "basin_status (*)(const basin_eager *, basin_eager_operation, const char *, basin_error *)",
    lib.basin_eager_run,
)


def _part(kind, first, fields, names):
    """How a struct begins, which of the addresses follow from its field `first` on, and what writes
    them after that; others are NULL."""
    at, layout = ffi.offsetof(kind, first), "="
    begin = ffi.buffer(ffi.new(ffi.getctype(kind, "*"), fields))[:at]
    own = [name for name, _ in kind.fields if name in names]
    for name in own:
        offset = ffi.offsetof(kind, name)
        layout += f"{offset - at}xQ"
        at = offset + 8
    return begin, own, struct.Struct(f"{layout}{ffi.sizeof(kind) - at}x").pack


class Job:
    """An operation on memory of one shape, type and pattern. `names` are operands and results that
    have an address, "pairs" that of a packed list, and "workspace", "workspace_bytes" and "stream";
    `values` are fields of a basin_eager_values."""

    def __init__(self, operation, sizes, dtype, flags, names, values=None):
        batch, queries, keys, heads, width, pairs = self._sizes = sizes
        fields = {
            "dtype": DTYPES[dtype], "batch": batch, "queries": queries, "keys": keys,
            "heads": heads, "head_dim": width, "pairs": pairs,
            "exclude_self": bool(flags & EXCLUDE_SELF), "causal": bool(flags & CAUSAL),
            "tf32": bool(flags & TF32),
        }  # fmt: skip
        self.operation, self.bytes = operation, {}  # of workspaces
        names = {*names, *(("values",) if values else ())}
        self._list = _LIST if "pairs" in names else ()
        self._values = _part(_VALUES, "v", values, names) if values else None
        self._job = _part(_JOB, "row", fields, names.difference(["pairs"]).union(self._list))

    def _written(self, at):
        """The job with addresses by their names, and what it points to."""
        if self._list:
            _, queries, keys, _, _, pairs = self._sizes
            offsets = list_offsets(queries, keys, pairs)[0]
            at.update(zip(self._list, (at["pairs"] + 4 * offset for offset in offsets)))
        kept = None
        if self._values:
            begin, names, pack = self._values
            kept = begin + pack(*map(at.__getitem__, names))
            at["values"] = int(ffi.cast("uintptr_t", ffi.from_buffer(kept)))
        begin, names, pack = self._job
        return begin + pack(*map(at.__getitem__, names)), kept

    def workspace(self, eager, at):
        """Bytes of scratch memory that it takes."""
        job, _kept = self._written(at)
        size = ffi.new("size_t *")
        job = ffi.from_buffer("basin_eager_attention *", job)
        check(lib.basin_eager_workspace, size, eager, self.operation, job)
        return size[0]

    def run(self, eager, at):
        job, _kept = self._written(at)
        if _run(eager, self.operation, job, NULL):
            check(_run, eager, self.operation, job)  # once more, for the message


_LIST = ("row", "key", "column", "query", "pair")  # the parts of a packed list
