"""Completing pictures of which a part is missing."""

import dataclasses
import os
from typing import TYPE_CHECKING, Any

import numpy

from basin.tasks._data.pictures import Pictures, array_of_picture
from basin.tasks._library import BasinError, check, ffi, lib, owned, path_of, sized, text
from basin.tasks._models.estimator import Estimator

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from basin.tasks._keywords import ImageKeywords


@dataclasses.dataclass(repr=False)
class Completion:
    """A completed picture; arrays of bytes [height, width, channels].

    >>> stripes = numpy.tile([0.0, 1.0], (40, 16, 8))
    >>> model = tasks.ImageCompleter(epochs=2, dim=16, heads=2, head_dim=8, memories=16, batch=8)
    >>> result = model.fit(stripes).complete(stripes[0], rectangle=(4, 4, 4, 4))
    >>> result.completed.shape, int(result.hole.sum())
    ((16, 16, 1), 16)
    >>> result
    Completion(16 x 16 pixels in 1 channel, 16 missing)
    """

    completed: numpy.ndarray
    masked: numpy.ndarray
    hole: numpy.ndarray
    """[height, width]: True where something was missing."""

    def __repr__(self) -> str:
        height, width, channels = self.completed.shape
        return (
            f"Completion({width} x {height} pixels in {channels} channel{'s' * (channels > 1)}, "
            f"{int(self.hole.sum())} missing)"
        )


class _Source:
    """A basin_image_source, and what it points to."""

    def __init__(self, pictures, split, **fields):
        if isinstance(pictures, (str, os.PathLike)):
            pictures = [pictures]
        if isinstance(pictures, numpy.ndarray) and pictures.ndim == 2:
            raise BasinError(f"one picture {list(pictures.shape)}, expected several: [N, ..]")
        pictures = list(pictures)
        if not pictures:
            raise BasinError("no pictures")
        self._keep = []
        if all(isinstance(picture, (str, os.PathLike)) for picture in pictures):
            self._keep = [ffi.new("char[]", path_of(p)) for p in pictures]
            self._keep.append(ffi.new("const char *[]", self._keep))
            fields.update(path=self._keep[-1], paths=len(pictures))
            fields["split"] = split
        else:
            self._keep.append(Pictures(pictures).collection())
            fields["pictures"] = self._keep[-1]
        self.pointer = sized("basin_image_source", **fields)


class ImageCompleter(Estimator):
    """Learns to complete pictures, and completes them.

    Pictures are an array [N, height, width] or [N, height, width, 3], bytes or values 0 .. 1; a
    list of such, of pictures of PIL's or of paths: files, folders, archives. Without a preset,
    settings that were not given fit the pictures. `hold_out` of them are scored, not trained on.

    >>> stripes = numpy.tile([0.0, 1.0], (40, 16, 8))
    >>> model = tasks.ImageCompleter(epochs=5, dim=16, heads=2, head_dim=8, memories=16, batch=8)
    >>> done = model.fit(stripes).predict(stripes[:2], rectangle=(4, 4, 4, 4))
    >>> done.shape, bool((done[:, :4] == 255 * stripes[:2, :4]).all())
    ((2, 16, 16), True)
    """

    _task = _prefix = "image"
    _own = {"hold_out": 0}
    _written_as = (lib.BASIN_F32,)
    _also_trained = (ffi.NULL,)
    hold_out: int

    if TYPE_CHECKING:

        def __init__(self, *, hold_out: int = 0, **settings: Unpack[ImageKeywords]) -> None: ...

    def _model_settings(self):
        return lib.basin_image_get_info(self._fitted()).settings

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def fit(self, pictures: Any, y: Any = None, *, test: Any = None) -> "Self":
        """Trains; `test` are pictures that are scored after epochs. y is not used."""
        source = _Source(pictures, lib.BASIN_PICTURES_TRAIN, hold_out=self.hold_out)
        settings = self._settings()
        if self.preset is None:
            chosen = ffi.new("char[]", 600)
            null = ffi.NULL
            check(lib.basin_image_fit, settings.pointer, chosen, 600, source.pointer, null)
            self.chosen_ = text(chosen)
        given = {"train": source.pointer}
        if test is not None:
            other = _Source(test, lib.BASIN_PICTURES_TEST)
            given["test"] = other.pointer
        return self._train(settings, sized("basin_image_data", **given))

    def complete(
        self, picture: Any, *, mask: Any = None, rectangle: Any = None, seed: int = 0,
        plain: bool = False, smooth: bool = False,
    ) -> Completion:  # fmt: skip
        """Completes one picture. What is missing is where `mask` is not 0, or a `rectangle` of
        left, top, width and height. `plain` uses only the model's output; `smooth` leaves out the
        memory of the picture's own patches."""
        how = {"seed": seed, "plain": plain, "smooth": smooth}
        masks = None if mask is None else [mask]
        return self._complete(Pictures([picture]), masks, rectangle, how)[0]

    def predict(
        self, pictures: Any, *, mask: Any = None, rectangle: Any = None, seed: int = 0
    ) -> Any:
        """Completes pictures, see complete(); `mask` is one for all, or a list of one each.
        Returns bytes: an array for an array, else a list."""
        if isinstance(pictures, (str, os.PathLike)) or hasattr(pictures, "convert"):
            raise BasinError("one picture, expected several; complete() takes one")
        given = Pictures(pictures)
        if mask is not None and numpy.ndim(mask) == 2:
            mask = [mask] * len(given)
        done = self._complete(given, mask, rectangle, {"seed": seed})
        completed = [entry.completed for entry in done]
        if isinstance(pictures, numpy.ndarray):
            return numpy.stack(completed).reshape(pictures.shape)
        return completed

    def measure(self, pictures: Any, masks: int = 1) -> dict[str, float]:
        """ "mse", "psnr" and "ssim" of pictures with patches hidden as in training, and
        "mean_mse", the error of the mean colour; means over that many draws of masks."""
        scores = self._scores(pictures, masks)
        names = ("mse", "psnr", "ssim", "mean_mse", "pictures", "unreadable")
        return {name: getattr(scores, name) for name in names}

    def score(self, pictures: Any, y: Any = None) -> float:
        """How much better than the mean colour: 1 - mse / mean_mse, so that more is better."""
        found = self.measure(pictures)
        return 1 - found["mse"] / found["mean_mse"]

    def _scores(self, pictures, masks):
        source = _Source(pictures, lib.BASIN_PICTURES_TEST)
        scoring = sized("basin_image_evaluate_options", source=source.pointer, masks=masks)
        scores = sized("basin_image_evaluate_result")
        with self._backend().lock:
            check(lib.basin_image_evaluate, scores, self._fitted(), scoring)
        return owned(scores, lib.basin_image_evaluate_result_free)

    def _complete(self, pictures, mask, rectangle, how):
        self._fitted()
        if (mask is None) == (rectangle is None):
            raise BasinError("what is missing? Give either mask or rectangle")
        how = dict(how, rectangle=_rectangle(rectangle))
        masks = None if mask is None else Pictures(mask)
        if masks is not None:
            if len(masks) != len(pictures):
                raise BasinError(f"{len(masks)} masks for {len(pictures)} pictures")
            how["mask"] = masks.pointer
        done = ffi.new("basin_image_complete_result[]", len(pictures))
        completing = sized("basin_image_complete_options", **how)
        with self._backend().lock:
            check(
                lib.basin_image_complete, done, self._fitted(), pictures.pointer, len(pictures),
                completing,
            )  # fmt: skip
        return [_taken(done + i) for i in range(len(pictures))]


def _rectangle(given):
    """Left, top, width and height; zeros where none is given."""
    if given is None:
        return [0] * 4
    sides = list(given)
    if len(sides) != 4 or not (sides[2] > 0 and sides[3] > 0):
        found = ",".join(map(str, sides))
        raise BasinError(f"the rectangle is {found}, expected left, top, and width, height from 1")
    return sides


def _taken(done):
    """A completion of the library's as arrays; frees it."""
    try:
        return Completion(
            completed=array_of_picture(done.completed), masked=array_of_picture(done.masked),
            hole=array_of_picture(done.hole)[:, :, 0] > 0,
        )  # fmt: skip
    finally:
        lib.basin_image_complete_result_free(done)
