"""Models of text: what is learnt, what is written, the program's file."""

import pickle
import signal
import subprocess
import threading

import numpy
import pytest

import basin

TEXT = "the energy goes down, and the tokens go down with it. größer!\n" * 40
SETTINGS = {"epochs": 2, "epoch_steps": 30, "dim": 32, "heads": 2, "context": 24, "rate": 0.01}


@pytest.fixture(scope="module")
def fitted():
    return basin.TextModel(**SETTINGS).fit(TEXT)


def test_it_learns_and_writes(fitted):
    found = fitted.measure(TEXT)
    assert found["loss"] < 1.5 and found["bits"] == -fitted.score(TEXT)
    assert found["position_loss"].shape == (24,)
    written = fitted.generate("the ", tokens=30, seed=3)
    assert len(written) == 30 and written == fitted.generate("the ", tokens=30, seed=3)
    assert written != fitted.generate("the ", tokens=30, seed=4)
    assert set(written) <= set(TEXT)


def test_tokens_have_surprise_and_energy(fitted):
    told = fitted.explain("größer")
    assert [token.text for token in told] == list("größer")
    assert numpy.isnan(told[0].surprise) and all(token.surprise >= 0 for token in told[1:])
    steps = fitted.settings_["steps"]
    assert all(token.energy.shape == (steps + 1, 2) for token in told)
    gpt = basin.TextModel(**{**SETTINGS, "epochs": 1, "epoch_steps": 2}, arch="gpt").fit(TEXT)
    assert gpt.explain("the")[0].energy.shape == (0, 2)


def test_files_and_pickles_keep_the_model(fitted, tmp_path):
    wanted = fitted.generate("go", tokens=12)
    fitted.save(tmp_path / "model.safetensors")
    for other in (
        basin.TextModel.load(tmp_path / "model.safetensors"),
        pickle.loads(pickle.dumps(fitted)),
    ):
        assert other.generate("go", tokens=12) == wanted


def test_paths_are_read(fitted, tmp_path):
    (tmp_path / "a.txt").write_text(TEXT[: len(TEXT) // 2])
    (tmp_path / "b.txt").write_text(TEXT[len(TEXT) // 2 :])
    for paths in (tmp_path, [tmp_path / "a.txt", tmp_path / "b.txt"]):
        assert fitted.measure(paths)["loss"] == fitted.measure(TEXT)["loss"]


def test_token_ids(tmp_path):
    ids = numpy.array([3, 1, 4, 1, 5, 9, 2, 6] * 40)
    numpy.save(tmp_path / "ids.npy", ids.astype("uint16"))
    model = basin.TextModel(**SETTINGS).fit(ids)
    written = model.generate([3, 1, 4], tokens=5, temperature=0)
    assert written.dtype == numpy.int32 and written.shape == (5,) and written.max() < 10
    found = model.measure(tmp_path / "ids.npy")
    assert found["loss"] == model.measure(ids)["loss"] and numpy.isnan(found["bits"])
    assert [token.id for token in model.explain([3, 1, 4])] == [3, 1, 4]
    with pytest.raises(basin.BasinError, match="wanted 0 to"):
        model.generate([3, 10])
    with pytest.raises(basin.BasinError, match="integers in one dimension"):
        model.measure(ids / 2)


def test_the_programs_file(program, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
    theirs, ours = tmp_path / "theirs.safetensors", tmp_path / "ours.safetensors"
    subprocess.run(
        [program, "text", "train", "text.txt", "-o", theirs, "--threads=1", "--quiet", *options],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    basin.TextModel(**SETTINGS, threads=1).fit(TEXT).save(ours)
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (3, "wanted str"),
        (["a", "b"], "wanted str, bytes, paths"),
        ([], "wanted str"),
        ("", "text"),
        (b"\xff\xfe\xfa" * 99, "UTF-8"),
    ],
)
def test_mistakes_are_told(text, told):
    with pytest.raises((basin.BasinError, TypeError), match=told):
        basin.TextModel(**SETTINGS).fit(text)


def test_unknown_characters_of_a_prompt_are_told(fitted):
    with pytest.raises(basin.BasinError, match="☃|U\\+2603"):
        fitted.generate("☃")
    with pytest.raises(basin.BasinError):
        fitted.generate("the", temperature=-1)


def test_an_interrupt_ends_the_writing(fitted):
    """It came back with the tokens that were there by then, as if it had ended."""
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt, match="after [0-9]+ tokens"):
        fitted.generate("the", tokens=10**6)
    timer.join()


def test_what_is_no_text_or_an_empty_one(fitted):
    assert fitted.explain("") == []
    with pytest.raises(TypeError, match="bytes, wanted a text: str"):
        fitted.generate(b"the")
    with pytest.raises(basin.BasinError, match="validation_text is empty"):
        basin.TextModel(**SETTINGS).fit(TEXT, validation_text="")
