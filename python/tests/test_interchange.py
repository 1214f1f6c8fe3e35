"""Numbers and models on their way to other tools and back: DLPack, safetensors' own package."""

import pathlib
import subprocess
import sys

import numpy
import pytest

import basin
from basin import tasks
from basin._engine.tensor import Borrowed


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


def test_the_safetensors_package_reads_our_files(model, network, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    from safetensors import safe_open

    ours = safetensors.load_file(model)
    with safe_open(model, framework="numpy") as file:
        assert file.metadata()["basin.model"] == "anomaly"
        assert set(file.keys()) == set(ours)
    assert any(x.dtype == numpy.float32 and x.ndim == 3 for x in ours.values())
    # What it writes, we read: weights that were trained elsewhere, without digests of the first.
    with safe_open(model, framework="numpy") as file:
        metadata = {k: v for k, v in file.metadata().items() if k != "basin.digests"}
    safetensors.save_file(ours, tmp_path / "again.safetensors", metadata)
    x, edges, _ = network
    first, again = (
        tasks.AnomalyDetector.load(path).predict_proba(x, edges=edges)
        for path in (model, tmp_path / "again.safetensors")
    )
    assert numpy.array_equal(first, again)


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
