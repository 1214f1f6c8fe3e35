"""Tables of Arrow's through the PyCapsule interface: Polars, pyarrow, DuckDB, and others.

The C data interface is read with ctypes, so that no package beside NumPy is needed. Columns of
numbers, dates and times without gaps in one batch are views of the owner's memory; texts become
objects of Python's, bits and several batches are copied.
"""

import ctypes
import decimal
from typing import Any

import numpy

from basin._library import BasinError

__all__ = ["columns_of_arrow", "is_arrow"]

_int, _void = ctypes.c_int64, ctypes.c_void_p


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", _void), ("flags", _int),
    ("n_children", _int), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)), ("release", _void), ("private", _void),
]  # fmt: skip
_Array._fields_ = [
    ("length", _int), ("null_count", _int), ("offset", _int), ("n_buffers", _int),
    ("n_children", _int), ("buffers", ctypes.POINTER(_void)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.POINTER(_Array)),
    ("release", _void), ("private", _void),
]  # fmt: skip
_Stream._fields_ = [
    ("get_schema",
     ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", _void), ("private", _void),
]  # fmt: skip


class _Owner:
    """A struct of Arrow's that is released with its last view."""

    def __init__(self, kind):
        self.struct = kind()

    def __del__(self):
        if self.struct.release:
            release = ctypes.CFUNCTYPE(None, ctypes.POINTER(type(self.struct)))
            release(self.struct.release)(ctypes.byref(self.struct))


def is_arrow(values: Any) -> bool:
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")


def columns_of_arrow(table: Any) -> dict:
    """Names, and (values, which are there or None, is a category) of each column."""
    schema, batches = _batches(table)
    if schema.struct.format != b"+s":
        raise BasinError(f"{type(table).__name__} is one column of Arrow's, wanted a table")
    result: dict = {}
    for i in range(schema.struct.n_children):
        kind = schema.struct.children[i].contents
        name = (kind.name or b"").decode()
        if name in result:
            raise BasinError(f"two columns {name!r}, wanted names that differ")
        parts = [
            _column(kind, b.struct.children[i].contents, name, b, b.struct.offset, b.struct.length)
            for b in batches
        ]
        result[name] = (*_joined(parts), bool(kind.dictionary))
    return result


def _pointer(capsule, name, kind):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = _void, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, name), ctypes.POINTER(kind))


def _taken(pointer, kind):
    """A struct moved out of its capsule, which then releases nothing."""
    owner = _Owner(kind)
    ctypes.memmove(ctypes.byref(owner.struct), pointer, ctypes.sizeof(kind))
    pointer.contents.release = None
    return owner


def _batches(table):
    if not hasattr(table, "__arrow_c_stream__"):
        schema, array = table.__arrow_c_array__()
        owner = _taken(_pointer(schema, b"arrow_schema", _Schema), _Schema)
        return owner, [_taken(_pointer(array, b"arrow_array", _Array), _Array)]
    capsule = table.__arrow_c_stream__()
    stream = _pointer(capsule, b"arrow_array_stream", _Stream)
    schema, batches = _Owner(_Schema), []
    _call(stream, stream.contents.get_schema(stream, ctypes.byref(schema.struct)))
    while True:
        batch = _Owner(_Array)
        _call(stream, stream.contents.get_next(stream, ctypes.byref(batch.struct)))
        if not batch.struct.release:
            return schema, batches
        if batch.struct.length:
            batches.append(batch)


def _call(stream, code):
    if code:
        told = stream.contents.get_last_error(stream)
        raise BasinError(f"a stream of Arrow's failed: {(told or b'').decode()} ({code})")


def _joined(parts):
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return numpy.empty(0, object), None
    there = None
    if any(valid is not None for _, valid in parts):
        there = numpy.concatenate([numpy.ones(len(v), bool) if t is None else t for v, t in parts])
    return numpy.concatenate([values for values, _ in parts]), there


class _View:
    """Memory that NumPy reads in place, and that keeps its owner."""

    def __init__(self, address, dtype, count, owner):
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, True), "shape": (count,), "typestr": numpy.dtype(dtype).str,
            "version": 3,
        }  # fmt: skip


def _view(array, buffer, dtype, start, count, owner):
    address = array.buffers[buffer]
    if not count or not address:
        return numpy.zeros(count, dtype)
    return numpy.asarray(_View(address + start * numpy.dtype(dtype).itemsize, dtype, count, owner))


def _bits(array, buffer, start, count, owner):
    some = _view(array, buffer, "u1", start // 8, (start % 8 + count + 7) // 8, owner)
    return numpy.unpackbits(some, bitorder="little")[start % 8 :][:count].astype(bool)


_NUMBERS = dict(zip("cCsSiIlLefg", ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")))  # fmt: skip  # noqa: E501
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


def _column(kind, array, name, owner, offset=0, count=None):
    """The values [count], and which of them are there; None for all."""
    start = array.offset + offset
    count = array.length if count is None else count
    form, there = kind.format.decode(), None
    if array.null_count and array.n_buffers and array.buffers[0]:
        there = _bits(array, 0, start, count, owner)
        there = None if there.all() else there
    if form in _NUMBERS:
        values = _view(array, 1, _NUMBERS[form], start, count, owner)
    elif form == "b":
        values = _bits(array, 1, start, count, owner)
    elif form == "tdD":
        values = _view(array, 1, "i4", start, count, owner).astype("M8[D]")
    elif form == "tdm":
        values = _view(array, 1, "i8", start, count, owner).view("M8[ms]")
    elif form[:2] == "ts":
        values = _view(array, 1, "i8", start, count, owner).view(f"M8[{_UNITS[form[2]]}]")
    elif form in ("u", "U"):
        values = _texts(array, "i4" if form == "u" else "i8", start, count, owner)
    elif form == "vu":
        values = _short_texts(array, start, count, owner, there)
    elif form[:2] == "d:":
        values = _decimals(array, form, start, count, owner)
    elif form == "n":
        values, there = numpy.full(count, None, object), numpy.zeros(count, bool)
    else:
        raise BasinError(
            f"column {name!r} is of Arrow's type {form!r}, wanted numbers, texts, dates or times"
        )
    if kind.dictionary:
        choices, known = _column(
            kind.dictionary.contents, array.dictionary.contents, name, owner
        )  # codes of gaps may be anything
        codes = values if there is None else numpy.where(there, values, 0)
        values = choices[codes] if len(choices) else numpy.full(count, None, object)
        if known is not None:
            there = known[codes] if there is None else there & known[codes]
    return values, there


def _objects(values):
    result = numpy.empty(len(values), object)
    result[:] = values
    return result


def _texts(array, dtype, start, count, owner):
    ends = _view(array, 1, dtype, start, count + 1, owner).tolist()
    if not count:
        return numpy.empty(0, object)
    raw = ctypes.string_at(array.buffers[2] + ends[0], ends[-1] - ends[0]) if ends[-1] else b""
    ends = [end - ends[0] for end in ends]
    if raw.isascii():
        text = raw.decode("ascii")
        return _objects([text[a:b] for a, b in zip(ends, ends[1:])])
    return _objects([raw[a:b].decode() for a, b in zip(ends, ends[1:])])


def _short_texts(array, start, count, owner, there):
    """Views: length, then the text itself up to 12 bytes, else its first four, buffer and place."""
    views = _view(array, 1, "V16", start, count, owner)
    raw = views.tobytes()
    lengths = views.view("i4")[::4]
    if count and there is None and lengths.max() <= 12 and raw.isascii():
        texts = numpy.frombuffer(raw, "u1").reshape(-1, 16)[:, 4:].copy().view("S12")[:, 0]
        if numpy.array_equal(numpy.char.str_len(texts), lengths):  # no zero byte at an end
            return texts.astype(str).astype(object)
    numbers = views.view("i4").reshape(-1, 4).tolist() if count else []
    result: list = []
    for i, (length, _, buffer, place) in enumerate(numbers):
        if there is not None and not there[i]:
            text = b""
        elif length <= 12:
            text = raw[16 * i + 4 : 16 * i + 4 + max(length, 0)]
        else:
            text = ctypes.string_at(array.buffers[2 + buffer] + place, length)
        result.append(text.decode())
    return _objects(result)


def _decimals(array, form, start, count, owner):
    digits, scale, *width = (int(part) for part in form[2:].split(","))
    size = (width[0] if width else 128) // 8
    raw = _view(array, 1, f"V{size}", start, count, owner).tobytes()
    wide = decimal.Context(prec=100)
    return _objects(
        [
            decimal.Decimal(int.from_bytes(raw[i : i + size], "little", signed=True)).scaleb(
                -scale, wide
            )
            for i in range(0, count * size, size)
        ]
    )
