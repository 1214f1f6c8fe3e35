"""NumPy arrays as the library's tensors, and back."""

import numpy

from basin._engine.library import BasinError, check, ffi, lib

_NUMPY_OF = {
    "F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4",
    "I16": "i2", "I8": "i1", "U8": "u1", "BOOL": "?",
}  # fmt: skip
KIND = {numpy.dtype(code): getattr(lib, "BASIN_" + name) for name, code in _NUMPY_OF.items()}
_WIDER = {numpy.dtype(a): b for a, b in {"u2": "i4", "u4": "i8", "u8": "f8", "g": "f8"}.items()}
_DTYPE_OF = {getattr(lib, "BASIN_" + name): numpy.dtype(code) for name, code in _NUMPY_OF.items()}


def shape_of(sizes):
    """A basin_shape."""
    sizes = [int(size) for size in sizes]
    if len(sizes) > lib.BASIN_MAX_RANK:
        raise BasinError(f"{len(sizes)} axes, expected at most {lib.BASIN_MAX_RANK}")
    return ffi.new("basin_shape *", {"rank": len(sizes), "dim": sizes})[0]


def shape_tuple(shape):
    return tuple(shape.dim[0 : shape.rank])


def ready(values):
    """Values as an array that the library can read: contiguous, of a type it has."""
    if type(values) is numpy.ndarray and values.dtype in KIND and values.flags.c_contiguous:
        return values
    if isinstance(values, numpy.ma.MaskedArray) and numpy.ma.is_masked(values):
        raise BasinError(
            "a masked array, whose mask would be lost: a.filled(0) and the mask as an array"
        )
    array = numpy.asarray(values)
    native = array.dtype.newbyteorder("=")
    shape, array = array.shape, numpy.ascontiguousarray(array, dtype=_WIDER.get(native, native))
    if array.dtype == object and shape == ():
        raise BasinError(f"a {type(array.item()).__name__}, expected an array of numbers")
    if array.dtype not in KIND:
        raise BasinError(f"an array of type {array.dtype}, expected floats, integers or bool")
    return array.reshape(shape)  # that of a number was made [1]


class Borrowed:
    """A tensor over an array's own memory; the array lives as long as this object or `pointer`."""

    def __init__(self, values):
        self.array = array = ready(values)
        data = ffi.cast("void *", array.ctypes.data)
        tensor = lib.basin_tensor_borrow(data, KIND[array.dtype], shape_of(array.shape))
        # What it points to lives as long as the pointer, which is often all that a caller keeps.
        self.pointer = ffi.gc(ffi.new("basin_tensor *", tensor), lambda _, kept=array: None)


class Slots:
    """Tensors of given shapes, to be put over one array after the other."""

    def __init__(self, shapes):
        self.pointer = ffi.new("basin_tensor[]", [{"shape": shape_of(shape)} for shape in shapes])
        self._slots = [self.pointer[i] for i in range(len(shapes))]

    def put(self, arrays):
        """Puts them over arrays, which ready() gave; they live as long as what this returns."""
        held = []
        for slot, array in zip(self._slots, arrays):
            buffer = ffi.from_buffer(array)
            slot.dtype, slot.data = KIND[array.dtype], buffer
            held.append(buffer)
        return held


def array_of(tensor, dtype=None):
    """A copy of a tensor of the library's as an array of its type, or another; bfloat16 becomes
    float32."""
    dtype = dtype or _DTYPE_OF.get(tensor.dtype, numpy.dtype("f4"))
    result = Borrowed(numpy.empty(shape_tuple(tensor.shape), dtype))
    check(lib.basin_tensor_convert, result.pointer, ffi.addressof(tensor))
    return result.array
