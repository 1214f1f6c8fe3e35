"""Completing pictures in Python: kinds of pictures, holes, mistakes."""

import pickle

import numpy
import pytest

import basin
from basin import tasks
from basin.tasks._data.pictures import pixels_of

SMALL = {
    "epochs": 6, "dim": 16, "heads": 2, "head_dim": 8, "memories": 32, "batch": 8, "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted(stripes):
    return tasks.ImageCompleter(**SMALL).fit(stripes)


def test_settings_fit_the_pictures(fitted):
    assert fitted.settings_["size"] == 16 and fitted.settings_["channels"] == 1
    assert "16 pixels" in fitted.chosen_


def test_models_that_come_with_basin_are_opened_by_name(tmp_path, monkeypatch):
    assert tasks.ImageCompleter.load("fashion").settings_["size"] == 28
    with pytest.raises(OSError, match="phots"):
        tasks.ImageCompleter.load("phots")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fashion").write_text("a file of that name")
    with pytest.raises(basin.BasinError, match="safetensors"):
        tasks.ImageCompleter.load("fashion")


def test_what_is_shown_stays(fitted, stripes):
    mask = numpy.zeros((16, 16), bool)
    mask[4:8, 4:12] = True
    done = fitted.predict(stripes[:3], mask=mask)
    assert done.shape == (3, 16, 16) and done.dtype == numpy.uint8
    assert numpy.array_equal(done[:, ~mask], stripes[:3][:, ~mask])
    same = fitted.predict(stripes[:3], rectangle=(4, 4, 8, 4))
    assert numpy.array_equal(done, same)


def test_one_picture(fitted, stripes):
    told = fitted.complete(stripes[0], rectangle=(4, 4, 8, 8), seed=3, plain=True)
    assert told.hole.sum() == 64
    shown = ~told.hole
    assert numpy.array_equal(told.completed[shown, 0], stripes[0][shown])


def test_values_and_pictures_of_pil_are_the_same(fitted, stripes):
    image = pytest.importorskip("PIL.Image")
    expected = fitted.predict(stripes[:2], rectangle=(0, 0, 8, 8))
    values = fitted.predict(stripes[:2] / 255, rectangle=(0, 0, 8, 8))
    assert numpy.array_equal(values, expected)
    pictures = [image.fromarray(pixels) for pixels in stripes[:2]]
    completed = fitted.predict(pictures, rectangle=(0, 0, 8, 8))
    assert numpy.array_equal(numpy.stack(completed)[..., 0], expected)


def test_transparency_lies_on_white(fitted):
    image = pytest.importorskip("PIL.Image")
    clear = image.new("RGBA", (16, 16), (0, 0, 0, 0))
    assert fitted.complete(clear, rectangle=(0, 0, 4, 4)).completed[8:].min() == 255


def test_scores(fitted, stripes):
    found = fitted.measure(stripes)
    assert found["pictures"] == 24
    assert fitted.score(stripes) == pytest.approx(1 - found["mse"] / found["mean_mse"])


def test_files_and_pickles_keep_the_model(fitted, stripes, tmp_path):
    expected = fitted.predict(stripes[:1], rectangle=(0, 0, 8, 8))
    fitted.save(tmp_path / "model.safetensors")
    loaded = tasks.ImageCompleter.load(tmp_path / "model.safetensors")
    for other in (loaded, pickle.loads(pickle.dumps(fitted))):
        assert numpy.array_equal(other.predict(stripes[:1], rectangle=(0, 0, 8, 8)), expected)


@pytest.mark.parametrize(
    ("picture", "how", "told"),
    [
        (numpy.zeros((16, 16)), {}, "what is missing"),
        (numpy.zeros((16, 16)), {"rectangle": (0, 0, 99, 4)}, "99"),
        (numpy.zeros((16, 16)), {"mask": numpy.zeros((9, 9)), "rectangle": (0, 0, 4, 4)}, "either"),
        (numpy.full((16, 16), 7.0), {"rectangle": (0, 0, 4, 4)}, r"beyond 0 \.\. 1"),
        (numpy.zeros((16, 16, 2)), {"rectangle": (0, 0, 4, 4)}, "shape"),
        (numpy.full((16, 16), 700), {"rectangle": (0, 0, 4, 4)}, "bytes"),
    ],
)
def test_mistakes_are_told(fitted, picture, how, told):
    with pytest.raises(basin.BasinError, match=told):
        fitted.complete(picture, **how)


@pytest.mark.parametrize(("pictures", "told"), [(numpy.zeros((16, 16)), "one pic"), ([], "no pic")])
def test_what_is_not_several_pictures_is_refused(pictures, told):
    with pytest.raises(basin.BasinError, match=told):
        tasks.ImageCompleter(**SMALL).fit(pictures)


def test_what_has_learnt_nothing_says_so_first(stripes):
    with pytest.raises(ValueError, match="learnt nothing"):
        tasks.ImageCompleter().predict(stripes[:1])


def written(folder, image, **options):
    """A file of a picture of PIL's."""
    image.save(folder / "picture.png", **options)
    return folder / "picture.png"


def test_a_picture_may_be_a_file(fitted, stripes, tmp_path):
    """It was freed before it was read: 0 x 0 pixels."""
    Image = pytest.importorskip("PIL.Image")  # noqa: N806
    path = written(tmp_path, Image.fromarray(stripes[0]))
    expected = fitted.complete(stripes[0], rectangle=(4, 4, 4, 4))
    for given in (path, str(path), Image.open(path)):
        found = fitted.complete(given, rectangle=numpy.array([4, 4, 4, 4]))
        assert numpy.array_equal(found.completed, expected.completed)
    assert numpy.array_equal(fitted.predict([path], rectangle=(4, 4, 4, 4))[0], expected.completed)
    assert repr(found) == "Completion(16 x 16 pixels in 1 channel, 16 missing)"
    with pytest.raises(basin.BasinError, match="one picture.*several"):
        fitted.predict(path, rectangle=(4, 4, 4, 4))


def test_pictures_of_pil_are_those_of_their_files(tmp_path):
    """16 bits were cut off at 255, so that nearly all was white; grey with alpha had 3 channels."""
    Image = pytest.importorskip("PIL.Image")  # noqa: N806
    rng = numpy.random.default_rng(0)
    rows, bits = (
        rng.integers(256, size=(16, 16, 4)).astype("u1"),
        rng.integers(65536, size=(16, 16)),
    )
    grey = Image.fromarray(rows[:, :, 0])
    for image, options in (
        (Image.fromarray(bits.astype("u2")), {}),
        (grey, {}),
        (grey, {"transparency": 7}),
        (grey.convert("1"), {}),
        (Image.merge("LA", (grey, grey)), {}),
        (Image.fromarray(rows), {}),
        (Image.fromarray(rows[:, :, :3]).convert("P"), {"transparency": 3}),
    ):
        path = written(tmp_path, image, **options)
        with Image.open(path) as opened:
            assert numpy.array_equal(pixels_of(path), pixels_of(opened))


def test_deep_pictures_of_pil():
    Image = pytest.importorskip("PIL.Image")  # noqa: N806
    steps = numpy.arange(256).reshape(16, 16)
    for values in (steps.astype("i4"), (steps * 257).astype("i4"), steps.astype("f4")):
        assert numpy.array_equal(pixels_of(Image.fromarray(values))[:, :, 0], steps)
    assert numpy.array_equal(pixels_of(Image.fromarray((steps / 255).astype("f4")))[:, :, 0], steps)
    with pytest.raises(basin.BasinError, match="mode F with values 0 .. 510.*bytes"):
        pixels_of(Image.fromarray((2 * steps).astype("f4")))


@pytest.mark.parametrize(
    ("hole", "told"),
    [
        ({"rectangle": (0, 0, 0, 0)}, "the rectangle is 0,0,0,0"),  # hid what training hides
        ({"rectangle": (4, 4, 4)}, "the rectangle is 4,4,4.*left, top"),
    ],
)
def test_holes_that_are_none_are_refused(fitted, stripes, hole, told):
    with pytest.raises(basin.BasinError, match=told):
        fitted.complete(stripes[0], **hole)
