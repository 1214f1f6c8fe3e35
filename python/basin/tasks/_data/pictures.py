"""Pictures: arrays, PIL pictures and files as the library's, and back."""

import os

import numpy

from basin.tasks._library import BasinError, check, ffi, lib, made, owned, path_of


def pixels_of(picture):
    """One picture as bytes [height, width, channels]: an array of bytes or of values 0 .. 1, a
    picture of PIL's, or a file."""
    if isinstance(picture, (str, os.PathLike)):
        return _read(picture)
    if hasattr(picture, "convert"):
        picture = _upright(picture)
    pixels = numpy.asarray(picture)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3):
        raise BasinError(
            f"a picture of shape {list(pixels.shape)}, expected [height, width] or [.., 1 or 3]"
        )
    return numpy.ascontiguousarray(_bytes(pixels))


def _bytes(pixels):
    if pixels.dtype == bool:
        return pixels.astype("u1") * 255
    if pixels.dtype.kind == "f":
        if not (pixels.min(initial=0) >= 0 and pixels.max(initial=0) <= 1):
            raise BasinError("a picture of real numbers beyond 0 .. 1")
        return numpy.rint(pixels * 255).astype("u1")
    if pixels.dtype.kind not in "iu" or pixels.min(initial=0) < 0 or pixels.max(initial=0) > 255:
        raise BasinError(f"a picture of type {pixels.dtype}, expected bytes or values 0 .. 1")
    return pixels.astype("u1")


def _upright(picture):
    """As the library reads files: oriented, transparency on white."""
    from PIL import Image, ImageOps

    picture = ImageOps.exif_transpose(picture)
    if picture.mode[:1] in "IF":  # I;16 and I hold 16 bits, or bytes; F bytes, or values 0 .. 1
        return _deep(numpy.asarray(picture), picture.mode)
    grey = picture.mode in ("1", "L", "LA")
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture)
    return picture.convert("L" if grey else "RGB")


def _deep(values, mode):
    """What PIL's convert("L") would cut off at 255."""
    low, high = values.min(initial=0), values.max(initial=0)
    if not (low >= 0 and high <= (255 if mode == "F" else 65535)):
        raise BasinError(
            f"a picture of mode {mode} with values {low:g} .. {high:g}, expected bytes"
        )
    if mode == "F":
        return values if high <= 1 else numpy.rint(values).astype("u1")
    return numpy.rint(values / 257 if mode != "I" or high > 255 else values).astype("u1")


def _read(path):
    picture = ffi.new("basin_picture *")
    check(lib.basin_picture_read, picture, path_of(path))
    kept = owned(picture, lib.basin_picture_free)  # an element does not keep its owner
    return array_of_picture(kept[0])


def array_of_picture(picture):
    """A copy of a picture of the library's, [height, width, channels] bytes."""
    shape = picture.height, picture.width, picture.channels
    pixels = ffi.buffer(picture.pixel, int(numpy.prod(shape)))
    return numpy.frombuffer(pixels, "u1").reshape(shape).copy()


class Pictures:
    """Some pictures as an array of basin_picture, which borrows from arrays."""

    def __init__(self, pictures):
        self.pixels = [pixels_of(picture) for picture in pictures]
        self.pointer = ffi.new("basin_picture[]", [_borrowed(pixels) for pixels in self.pixels])

    def __len__(self):
        return len(self.pixels)

    def collection(self):
        """A basin_pictures of copies."""
        new, close = lib.basin_pictures_from_memory, lib.basin_pictures_close
        return made(new, close, self.pointer, len(self))


def _borrowed(pixels):
    height, width, channels = pixels.shape
    data = ffi.cast("uint8_t *", pixels.ctypes.data)
    return {"height": height, "width": width, "channels": channels, "pixel": data}
