"""Numbers and models on their way to other tools and back: DLPack, safetensors' own package,
folders of Hugging Face's kind."""

import json
import pathlib
import subprocess
import sys

import numpy
import pytest

import basin
from basin import tasks
from basin._engine.tensor import Borrowed
from basin.tasks._models import interchange


@pytest.fixture(scope="module")
def model(network, tmp_path_factory):
    x, edges, y = network
    path = tmp_path_factory.mktemp("model") / "detector.safetensors"
    detector = tasks.AnomalyDetector(epochs=2, dim=8, heads=1, head_dim=4, memories=8)
    detector.fit(x, y, edges=edges).save(path)
    return path


@pytest.fixture(scope="module")
def network():
    rng = numpy.random.default_rng(0)
    x = rng.normal(size=(60, 4)).astype("f4")
    edges = rng.integers(60, size=(150, 2))
    edges = numpy.unique(numpy.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    return x, edges, (x[:, 0] > 0.9).astype(int)


def test_a_folder_and_back_is_the_same_model(model, network, tmp_path):
    x, edges, _ = network
    interchange.to_huggingface(model, tmp_path / "folder")
    config = json.loads((tmp_path / "folder" / "config.json").read_text())
    assert config["model_type"] == "basin-anomaly" and config["dim"] == 8
    interchange.from_huggingface(tmp_path / "folder", tmp_path / "again.safetensors")
    first, again = (
        tasks.AnomalyDetector.load(path).predict_proba(x, edges=edges)
        for path in (model, tmp_path / "again.safetensors")
    )
    assert numpy.array_equal(first, again)


def test_an_estimator_becomes_a_folder(model, tmp_path):
    detector = tasks.AnomalyDetector.load(model)
    interchange.to_huggingface(detector, tmp_path / "folder")
    assert sorted(p.name for p in (tmp_path / "folder").iterdir()) == [
        "config.json",
        "model.safetensors",
    ]


def test_folders_of_others_are_refused(model, tmp_path):
    with pytest.raises(basin.BasinError, match="there is no config.json"):
        interchange.from_huggingface(tmp_path, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(basin.BasinError, match="model_type 'bert'.*one that begins with"):
        interchange.from_huggingface(tmp_path, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(basin.BasinError, match="config.json: Expecting property name"):
        interchange.from_huggingface(tmp_path, tmp_path / "model.safetensors")


def test_the_safetensors_package_reads_our_files(model, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    from safetensors import safe_open

    ours = safetensors.load_file(model)
    with safe_open(model, framework="numpy") as file:
        assert file.metadata()["basin.model"] == "anomaly"
        assert set(file.keys()) == set(ours)
    assert any(x.dtype == numpy.float32 and x.ndim == 3 for x in ours.values())
    interchange.to_huggingface(model, tmp_path)
    theirs = safetensors.load_file(tmp_path / "model.safetensors")
    for name, values in ours.items():
        assert numpy.array_equal(values, theirs[name])
    # What it writes, we read: weights that were trained elsewhere.
    safetensors.save_file(theirs, tmp_path / "model.safetensors", {"format": "pt"})
    interchange.from_huggingface(tmp_path, tmp_path / "again.safetensors")
    tasks.AnomalyDetector.load(tmp_path / "again.safetensors")


@basin.function
def double(x):
    return 2 * x


def test_results_are_shared_by_dlpack():
    result = double(numpy.arange(6, dtype="f4"))
    again = numpy.from_dlpack(result)
    assert again.ctypes.data == result.ctypes.data


def test_tensors_of_pytorch_in_and_out():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    values = torch.arange(6.0).reshape(2, 3)
    assert Borrowed(values).array.ctypes.data == values.data_ptr()  # no copy on the way in
    result = double(values)
    shared = torch.from_dlpack(result)
    assert torch.equal(shared, 2 * values) and shared.data_ptr() == result.ctypes.data


def test_arrays_of_jax_in_and_out():
    jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed")
    values = jnp.arange(6.0).reshape(2, 3)
    assert jnp.array_equal(jnp.from_dlpack(double(values)), 2 * values)


@pytest.mark.parametrize(
    ("module", "expected"), [("torch", "PyTorch"), ("jax", "JAX 0.5 or later")]
)
def test_an_absent_framework_is_named(module, expected):
    program = f"import sys; sys.modules[{module!r}] = None; import basin.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"ImportError: basin.{module} needs {expected}: pip install {module}" in done.stderr


def test_published_weights_become_a_model(tmp_path):
    rng = numpy.random.default_rng(0)
    heads, wide, dim, memories, values, tokens = 2, 3, 6, 7, 12, 9
    shapes = {"Wk": (heads, wide, dim), "Wq": (heads, wide, dim), "Xi": (dim, memories)}
    shapes |= {"Wenc": (values, dim), "Benc": (dim,), "Wdec": (dim, values), "Bdec": (values,)}
    shapes |= {"POS_embed": (1, tokens + 1, dim), "CLS_token": (dim,), "MASK_token": (dim,)}
    shapes |= {"LNORM_gamma": (1,), "LNORM_bias": (dim,)}
    script = pathlib.Path(__file__).parents[2] / "share" / "basin" / "published.py"
    source, out = tmp_path / "weights.npz", tmp_path / "model.safetensors"
    numpy.savez(source, **{name: rng.normal(size=shape) for name, shape in shapes.items()})
    subprocess.run([sys.executable, script, source, out], check=True)
    pictures = rng.integers(255, size=(2, 6, 6, 3)).astype("u1")
    assert numpy.isfinite(tasks.ImageCompleter.load(out).score(pictures))
    numpy.savez(source, Wk=numpy.zeros((2, 3, 6)))
    wrong = subprocess.run([sys.executable, script, source, out], capture_output=True, text=True)
    assert wrong.returncode == 1 and "has no array Wq" in wrong.stderr
    kept = out.read_bytes()
    source.write_bytes(source.read_bytes()[:100])  # cut short
    wrong = subprocess.run([sys.executable, script, source, out], capture_output=True, text=True)
    assert wrong.returncode == 1 and wrong.stderr.count("\n") == 1 and out.read_bytes() == kept
