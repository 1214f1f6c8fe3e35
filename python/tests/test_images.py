"""Completing pictures in Python: kinds of pictures, holes, mistakes."""

import pickle

import numpy
import pytest

import basin

SMALL = {
    "epochs": 6, "dim": 16, "heads": 2, "head_dim": 8, "memories": 32, "batch": 8, "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted(stripes):
    return basin.ImageCompleter(**SMALL).fit(stripes)


def test_settings_fit_the_pictures(fitted):
    assert fitted.settings_["size"] == 16 and fitted.settings_["channels"] == 1
    assert "16 pixels" in fitted.chosen_


def test_what_is_shown_stays(fitted, stripes):
    mask = numpy.zeros((16, 16), bool)
    mask[4:8, 4:12] = True
    done = fitted.predict(stripes[:3], mask=mask)
    assert done.shape == (3, 16, 16) and done.dtype == numpy.uint8
    assert numpy.array_equal(done[:, ~mask], stripes[:3][:, ~mask])
    same = fitted.predict(stripes[:3], rectangle=(4, 4, 8, 4))
    assert numpy.array_equal(done, same)


def test_one_picture_with_its_descent(fitted, stripes):
    told = fitted.complete(stripes[0], ratio=0.5, seed=3, plain=True, frames=True)
    assert len(told.frames) == fitted.settings_["steps"] + 1
    assert told.hole.mean() == pytest.approx(0.5, abs=0.1)
    shown = ~told.hole
    assert numpy.array_equal(told.completed[shown, 0], stripes[0][shown])


def test_values_and_pictures_of_pil_are_the_same(fitted, stripes):
    image = pytest.importorskip("PIL.Image")
    wanted = fitted.predict(stripes[:2], rectangle=(0, 0, 8, 8))
    values = fitted.predict(stripes[:2] / 255, rectangle=(0, 0, 8, 8))
    assert numpy.array_equal(values, wanted)
    pictures = [image.fromarray(pixels) for pixels in stripes[:2]]
    completed = fitted.predict(pictures, rectangle=(0, 0, 8, 8))
    assert numpy.array_equal(numpy.stack(completed)[..., 0], wanted)


def test_transparency_lies_on_white(fitted):
    image = pytest.importorskip("PIL.Image")
    clear = image.new("RGBA", (16, 16), (0, 0, 0, 0))
    assert fitted.complete(clear, rectangle=(0, 0, 4, 4)).completed[8:].min() == 255


def test_scores(fitted, stripes):
    found = fitted.measure(stripes)
    assert found["pictures"] == 24
    assert fitted.score(stripes) == pytest.approx(1 - found["mse"] / found["mean_mse"])


def test_files_and_pickles_keep_the_model(fitted, stripes, tmp_path):
    wanted = fitted.predict(stripes[:1], rectangle=(0, 0, 8, 8))
    fitted.save(tmp_path / "model.safetensors")
    loaded = basin.ImageCompleter.load(tmp_path / "model.safetensors")
    for other in (loaded, pickle.loads(pickle.dumps(fitted))):
        assert numpy.array_equal(other.predict(stripes[:1], rectangle=(0, 0, 8, 8)), wanted)


@pytest.mark.parametrize(
    ("picture", "how", "told"),
    [
        (numpy.zeros((16, 16)), {}, "what is missing"),
        (numpy.zeros((16, 16)), {"rectangle": (0, 0, 99, 4)}, "99"),
        (numpy.zeros((16, 16)), {"ratio": 0.5, "rectangle": (0, 0, 4, 4)}, "one of"),
        (numpy.full((16, 16), 7.0), {"ratio": 0.5}, r"beyond 0 \.\. 1"),
        (numpy.zeros((16, 16, 2)), {"ratio": 0.5}, "shape"),
        (numpy.full((16, 16), 700), {"ratio": 0.5}, "bytes"),
    ],
)
def test_mistakes_are_told(fitted, picture, how, told):
    with pytest.raises(basin.BasinError, match=told):
        fitted.complete(picture, **how)


@pytest.mark.parametrize(("pictures", "told"), [(numpy.zeros((16, 16)), "one pic"), ([], "no pic")])
def test_what_is_not_several_pictures_is_refused(pictures, told):
    with pytest.raises(basin.BasinError, match=told):
        basin.ImageCompleter(**SMALL).fit(pictures)


def test_what_has_learnt_nothing_says_so_first(stripes):
    with pytest.raises(ValueError, match="learnt nothing"):
        basin.ImageCompleter().predict(stripes[:1])
