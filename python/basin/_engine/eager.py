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

LSE, FORCE, REVERSE = lib.BASIN_EAGER_LSE, lib.BASIN_EAGER_FORCE, lib.BASIN_EAGER_REVERSE
VALUES, VALUES_REVERSE = lib.BASIN_EAGER_VALUES, lib.BASIN_EAGER_VALUES_REVERSE
VALUES_SECOND = lib.BASIN_EAGER_VALUES_SECOND
EXCLUDE_SELF, CAUSAL, TF32 = 1, 2, 4  # flags of an operation
ONE_HEAD = 8  # of a custom call of XLA's: operands have no axis of heads
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
    edges = numpy.ascontiguousarray(edges, dtype="i4")
    flags = (
        both_ways * lib.BASIN_PAIRS_BOTH_WAYS
        | drop_self * lib.BASIN_PAIRS_DROP_SELF
        | add_self * lib.BASIN_PAIRS_ADD_SELF
    )
    pairs = owned(ffi.new("basin_pairs *"), lib.basin_pairs_free)
    data = ffi.cast("int32_t *", edges.ctypes.data)
    check(lib.basin_pairs_new, pairs, queries, keys, data, len(edges), flags)
    return _packed(pairs), pairs.pairs


def _packed(pairs):
    offsets, length = list_offsets(pairs.queries, pairs.keys, pairs.pairs)
    packed = numpy.zeros(length, "i4")
    names = ("row", "key", "column", "query", "pair")
    lengths = (pairs.queries + 1, pairs.pairs, pairs.keys + 1, pairs.pairs, pairs.pairs)
    for name, at, count in zip(names, offsets, lengths):
        if count:
            part = ffi.buffer(getattr(pairs, name), 4 * count)
            packed[at : at + count] = numpy.frombuffer(part, "i4")
    return packed


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
        raise BasinError("a list of pairs that is to leave out self pairs; list those that count")
    pairs._check(queries, keys)
    return pairs, pairs.count, flags


# ---- jobs ----

DTYPES = {"float64": lib.BASIN_F64, "float32": lib.BASIN_F32, "bfloat16": lib.BASIN_BF16}
LIST = ("row", "key", "column", "query", "pair")  # the parts of a packed list
_JOB, _VALUES = ffi.typeof("basin_eager_attention"), ffi.typeof("basin_eager_values")
# Sizes and flags; all that follows is pointers and sizes of them.
_HEAD, _VALUES_HEAD = ffi.offsetof(_JOB, "row"), ffi.offsetof(_VALUES, "v")
# The job as bytes: written by one call, where a struct's fields are set one by one.
_run = ffi.cast(
    "basin_status (*)(const basin_eager *, basin_eager_operation, const char *, basin_error *)",
    lib.basin_eager_run,
)


@functools.lru_cache(maxsize=256)
def head(dtype, sizes, flags):
    """How a job begins; sizes are batch, queries, keys, heads, width, pairs."""
    batch, queries, keys, heads, width, pairs = sizes
    job = ffi.new(
        ffi.getctype(_JOB, "*"),
        {
            "dtype": DTYPES[dtype], "batch": batch, "queries": queries, "keys": keys,
            "heads": heads, "head_dim": width, "pairs": pairs,
            "exclude_self": bool(flags & EXCLUDE_SELF), "causal": bool(flags & CAUSAL),
            "tf32": bool(flags & TF32),
        },
    )  # fmt: skip
    return ffi.buffer(job)[:_HEAD]


@functools.lru_cache(maxsize=256)
def values_head(dtype, sizes, key_heads, value_width, flags, factor, heads_first, repeats):
    """How a job with values and its values begin; `repeats` are those of the bias and of its
    tangent."""
    values = ffi.new(ffi.getctype(_VALUES, "*"))
    values.key_heads, values.value_dim, values.factor = key_heads, value_width, factor
    values.heads_first, (values.bias_repeats, values.abias_repeats) = heads_first, repeats
    return head(dtype, sizes, flags), ffi.buffer(values)[:_VALUES_HEAD]


_OF_JOB = frozenset(name for name, _ in _JOB.fields)


def of_job(name):
    """Whether a field is one of basin_eager_attention, not of its values."""
    return name in _OF_JOB


@functools.cache
def _packer(names, kind=_JOB, at=_HEAD):
    """What writes addresses after the head, in the order of the names; others are NULL."""
    layout = "="
    for name in names:
        offset = ffi.offsetof(kind, name)
        layout += f"{offset - at}xQ"
        at = offset + 8
    return struct.Struct(f"{layout}{ffi.sizeof(kind) - at}x").pack


def values_of(head, names, addresses):
    """The bytes of a basin_eager_values, and where they lie."""
    values = head + _packer(names, _VALUES, _VALUES_HEAD)(*addresses)
    return values, int(ffi.cast("uintptr_t", ffi.from_buffer(values)))


def list_addresses(where, sizes):
    """Those of LIST, of a packed list that lies there."""
    _, queries, keys, _, _, pairs = sizes
    return [where + 4 * at for at in list_offsets(queries, keys, pairs)[0]]


def workspace_bytes(eager, operation, head, names, addresses):
    job = ffi.from_buffer("basin_eager_attention *", head + _packer(names)(*addresses))
    size = ffi.new("size_t *")
    check(lib.basin_eager_workspace, size, eager, operation, job)
    return size[0]


def run(eager, operation, head, names, addresses):
    """The names are fields of basin_eager_attention in its order, each with an address."""
    job = head + _packer(names)(*addresses)
    if _run(eager, operation, job, NULL):
        check(_run, eager, operation, job)  # once more, for the message
