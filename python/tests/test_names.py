"""The page docs/python-names.md, row by row: every example against NumPy in double precision, its
first and second derivatives against JAX (against differences where that is not installed), and in
float on the backend cpu. Whatever the tables of the package know must be on the page."""

import functools
import pathlib
import re
import subprocess
import sys
import types

import numpy
import pytest

import basin
from basin._engine.library import ffi, lib
from basin._expr import derivatives, layers, operations
from basin._expr import tables as _numpy
from basin._expr.expression import Expression

try:
    import jax
except ImportError:  # differences do
    jax = None

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python-names.md"
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| (.*)\|$")


def rows():
    """(section, name, example, third column) of every table but the first."""
    section, found = None, []
    for line in PAGE.read_text().splitlines():
        section = line[3:] if line.startswith("## ") else section
        if not section or not line.startswith("| `"):
            continue
        match = ROW.match(line)
        assert match, f"a row without a name and an example: {line}"
        name, example, third = (text.replace("\\|", "|").strip() for text in match.groups())
        found.append((section, name, example, third))
    return found


ROWS = rows()
SUPPORTED = [row for row in ROWS if row[0] != "What is refused"]
REFUSED = [row for row in ROWS if row[0] == "What is refused"]

# ---- the arrays of the examples ----

rng = numpy.random.default_rng(11)
GIVEN = {
    "a": rng.normal(size=(3, 4)), "b": rng.normal(size=(3, 4)),
    "p": rng.uniform(0.3, 2, size=(3, 4)), "u": rng.uniform(-0.9, 0.9, size=(3, 4)),
    "v": rng.normal(size=4), "w": rng.normal(size=3),
    "m": rng.normal(size=(4, 4)), "t": rng.normal(size=(2, 3, 4)),
    "x": rng.normal(size=(1, 4, 4, 2)), "kernel": rng.normal(size=(2, 2, 2, 3)),
    "q": rng.normal(size=(4, 2, 3)), "k": rng.normal(size=(4, 2, 3)),
}  # fmt: skip
PLACES = {"n": numpy.array([2, 0, 3])}  # expressions without derivatives
PAIRS = numpy.array([[0, 1], [3, 2], [2, 2], [0, 0], [3, 1]])
KNOWN = {
    "places": numpy.array([2, 0, 1]), "mask": GIVEN["b"] > 0, "pairs": PAIRS,
    "KNOWN_a": GIVEN["a"],
}  # fmt: skip


def drawn(kind):
    if kind == "normal":
        out = numpy.empty(12)
        lib.basin_random_fill_normal_f64(ffi.cast("double *", out.ctypes.data), 7, 1, 0, 12)
    else:
        out = numpy.array([lib.basin_random_uniform_at(7, 1, i) for i in range(12)])
    return out.reshape(3, 4)


@functools.cache
def vocabulary(np):
    """What formulas of the page may use, by NumPy or by JAX's copy of it."""
    special = pytest.importorskip("scipy.special") if np is numpy else jax.scipy.special

    def threshold(z, power):
        """t with sum(relu(z - t) ** power) = 1 over the last axis, by sorting."""
        ordered, count = np.sort(z, -1)[..., ::-1], np.arange(1, z.shape[-1] + 1)
        mean = np.cumsum(ordered, -1) / count
        if power == 1:
            each = mean - 1 / count
        else:
            spread = np.cumsum(ordered**2, -1) / count - mean**2
            root = 1 / count - spread
            each = mean - np.sqrt(np.where(root > 0, root, 1.0))
            each = np.where(root > 0, each, mean)
        support = (each <= ordered).sum(-1, keepdims=True)
        return np.take_along_axis(each, support - 1, -1)

    def lse(z, seen=None):
        """Over the keys of [query, key, head]."""
        weight = np.exp(z) if seen is None else np.exp(z) * seen[..., None]
        total = weight.sum(1)
        return np.where(total == 0, 0.0, np.log(np.where(total == 0, 1.0, total)))

    def length(z, group):
        parts = z.reshape(*z.shape[:-1], -1, group)
        size = np.sqrt((parts**2).sum(-1, keepdims=True))
        return np.broadcast_to(size, parts.shape).reshape(z.shape)

    seen = numpy.zeros((4, 4), bool)
    seen[tuple(PAIRS.T)] = True
    return {
        "numpy": np, "threshold": threshold, "lse": lse, "length": length, "seen": seen,
        "scores": lambda q, k: np.einsum("nhy,mhy->nmh", q, k),
        "normalised": lambda z: z / z.sum(-1, keepdims=True),
        "scipy": types.SimpleNamespace(special=special),
        "DRAWN_NORMAL": drawn("normal"), "DRAWN_UNIFORM": drawn("uniform"),
    }  # fmt: skip


def flat(np, value):
    """All elements of a result, of several, or of plain numbers, as one vector."""
    if isinstance(value, (list, tuple)):
        return np.concatenate([flat(np, part) for part in value])
    return np.reshape(value, -1) * 1.0 if np.ndim(value) else np.stack([value * 1.0])


def names_in(example):
    words = set(re.findall(r"(?<![\w.\"])[a-z]\w*", example))
    return [name for name in [*GIVEN, *PLACES] if name in words]


def weights(count):
    return numpy.cos(numpy.arange(count) + 0.5)


def directions(names):
    return [numpy.sin(numpy.arange(GIVEN[n].size) + 1.0).reshape(GIVEN[n].shape) for n in names]


# ---- by Basin ----


def ours(example, backend, values):
    """The value, the gradient of a weighted sum of it, and that of the gradient along a direction,
    each as a vector."""
    names = names_in(example)
    varied = [name for name in names if name in GIVEN]
    spare = {"basin": basin, "numpy": numpy, **KNOWN}

    def compute(*arrays):
        given = dict(zip(names, arrays))
        length = {"length": lambda z, group: numpy.linalg.norm(z, axis=-1, keepdims=True)}
        value = flat(numpy, eval(example, {**spare, **length, **given}))
        y = value + 0.0 * arrays[0].ravel()[0] if not isinstance(value, Expression) else value
        variables = [given[name] for name in varied]
        first = basin.gradient(numpy.sum(y * weights(len(y))), variables)
        along = sum(numpy.sum(g * d) for g, d in zip(first, directions(varied)))
        second = basin.gradient(along, variables)
        return numpy.concatenate([y, *(g.ravel() for g in [*first, *second])])

    traced = eval(f"lambda {', '.join(names)}: compute({', '.join(names)})", {"compute": compute})
    result = basin.function(traced, backend=backend)(*(values[name] for name in names))
    size = sum(GIVEN[name].size for name in varied)
    return numpy.split(result, [len(result) - 2 * size, len(result) - size])


# ---- by others ----


def theirs(example, values):
    """The value by NumPy."""
    return flat(numpy, eval(example, {**vocabulary(numpy), **KNOWN, **values}))


def by_jax(example, formula):
    """Both derivatives of the formula by the example's arrays; None where JAX has no such function,
    or asks for another spelling."""
    varied = [name for name in names_in(example) if name in GIVEN]
    spare = {**vocabulary(jax.numpy), **KNOWN, **PLACES}

    def loss(arrays):
        y = flat(jax.numpy, eval(formula, {**spare, **dict(zip(varied, arrays))}))
        return (y * weights(len(y))).sum()

    def along(arrays):
        first = jax.grad(loss)(arrays)
        return sum((g * d).sum() for g, d in zip(first, directions(varied))), first

    arrays = [jax.numpy.asarray(GIVEN[name]) for name in varied]
    try:
        second, first = jax.jit(jax.grad(along, has_aux=True))(arrays)
    except (TypeError, AttributeError, IndexError, NotImplementedError, ValueError):
        return None
    return [numpy.concatenate([numpy.ravel(g) for g in order]) for order in (first, second)]


def by_differences(example, formula, step=1e-4):
    """Both derivatives along the direction, and so what ours must be along it."""
    varied = [name for name in names_in(example) if name in GIVEN]
    moved = []
    for sign in (-1, 1):
        shift = {n: GIVEN[n] + sign * step * d for n, d in zip(varied, directions(varied))}
        moved.append({**GIVEN, **PLACES, **shift})
    values = [theirs(formula, given) for given in moved]
    first = numpy.sum((values[1] - values[0]) * weights(len(values[0]))) / (2 * step)
    slopes = [ours(example, "ref", given)[1] for given in moved]
    return first, (slopes[1] - slopes[0]) / (2 * step)


@pytest.fixture(scope="module")
def double():
    if jax is None:
        yield False
        return
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield True
    jax.config.update("jax_enable_x64", before)


def exists(text):
    """Whether this version of NumPy has all that the example names."""
    for path in re.findall(r"numpy\.([a-z_\d.]+)", text):
        found = numpy
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is None:
            return False
    return True


def close(x, y, tolerance):
    numpy.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", SUPPORTED, ids=[f"{i} {row[1]}" for i, row in enumerate(SUPPORTED)])
def test_an_example_of_the_page(row, double):
    section, name, example, third = row
    if not exists(example):
        pytest.skip(f"NumPy {numpy.__version__} does not have {name}")
    formula = example
    if section == "Operations of Basin":
        formula = third.partition("` |")[0].lstrip("`")
    values = {**GIVEN, **PLACES}
    value, first, second = ours(example, "ref", values)
    close(value, theirs(formula, values), 1e-12)
    found = by_jax(example, formula) if double else None
    if found is None and name != "basin.stop_gradient":  # which differs from its differences
        slope, curve = by_differences(example, formula)
        varied = [n for n in names_in(example) if n in GIVEN]
        along = numpy.concatenate([d.ravel() for d in directions(varied)])
        close(numpy.sum(first * along), slope, 1e-5)
        close(second, curve, 1e-5)
    elif found is not None:
        close(first, found[0], 1e-10)
        close(second, found[1], 1e-9)
    on_cpu = ours(example, "cpu", values)
    for single, exact in zip(on_cpu, (value, first, second)):
        close(single, exact, 2e-4 * max(1.0, numpy.abs(exact).max(initial=0)))


@pytest.mark.parametrize("row", REFUSED, ids=[row[1] for row in REFUSED])
def test_what_is_refused_says_what_does_instead(row):
    _, _, example, says = row
    names = names_in(example)

    def compute(*arrays):
        return eval(example, {"numpy": numpy, **dict(zip(names, arrays))})

    with pytest.raises(basin.BasinError) as caught:
        basin.function(compute)(*(GIVEN[name] for name in names))
    assert says in str(caught.value)


# ---- nothing is missing ----


def listed():
    """Functions and names that the page has rows for."""
    functions, methods = set(), set()
    for _, name, _, _ in SUPPORTED:
        if name.startswith("numpy."):
            found = numpy
            for part in name.split(".")[1:]:
                found = getattr(found, part, None)
            functions.add(found)
            functions.add(name)
        else:
            methods.add(name)
    return functions, methods


def test_every_name_of_the_tables_is_on_the_page():
    functions, _ = listed()
    tables = {**_numpy.FUNCTIONS, **_numpy.UFUNCS}
    missing = [f.__name__ for f in tables if f not in functions]
    missing += [
        f"numpy.{ufunc.__name__}.{method}"
        for method, ufuncs in _numpy.METHODS.items()
        for ufunc in ufuncs
        if f"numpy.{ufunc.__name__}.{method}" not in functions
    ]
    assert missing == []


def test_every_method_and_operation_is_on_the_page():
    _, names = listed()
    methods = [f".{name}" for name in dir(Expression) if not name.startswith("_")]
    ours = [*operations.__all__, *layers.__all__, *derivatives.__all__]
    assert [name for name in methods if name not in names] == []
    assert [name for name in ours if f"basin.{name}" not in names] == []


def test_the_page_has_rows_enough():
    assert len(SUPPORTED) >= 150


# ---- what no row says ----


def test_arrays_of_other_libraries_are_constants():
    class Carrier:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    carried = Carrier(numpy.array([1.0, 2.0]))
    assert basin.function(lambda a: a * carried + carried * a)([3.0, 4.0]).tolist() == [6, 16]


@pytest.mark.skipif(jax is None, reason="JAX is not installed")
def test_arrays_of_jax_are_constants():
    theirs = jax.numpy.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert basin.function(lambda a: theirs @ a + a @ theirs)([1.0, 1.0]).tolist() == [7, 13]


def test_functions_of_other_libraries_are_named():
    torch = pytest.importorskip("torch")
    with pytest.raises(basin.BasinError, match="not jnp.sum"):
        basin.function(lambda a: torch.sum(a))([1.0, 2.0])
    if jax is not None:
        with pytest.raises(basin.BasinError, match="not jnp.sum"):
            basin.function(lambda a: jax.numpy.sum(a))([1.0, 2.0])


def test_arrays_of_pytorch_are_constants():
    torch = pytest.importorskip("torch")
    theirs = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert basin.function(lambda a: theirs @ a + a @ theirs)([1.0, 1.0]).tolist() == [7, 13]


def test_einops_takes_expressions():
    einops = pytest.importorskip("einops")
    t = GIVEN["t"]
    examples = [
        lambda t: einops.rearrange(t, "b (h w) c -> (b c) w h", h=1),
        lambda t: einops.reduce(t, "b n c -> b c", "mean") + einops.reduce(t, "b n c -> c", "max"),
        lambda t: einops.repeat(t, "b n c -> b (n r) c", r=2),
        lambda t: einops.rearrange([t[0], t[1]], "b n c -> n (b c)"),
        lambda t: einops.einsum(t, t, "b n c, b m c -> b n m"),
    ]
    for example in examples:
        close(basin.function(example, backend="ref")(t), example(t), 1e-12)


def test_einops_may_be_imported_by_the_function_that_is_traced():
    pytest.importorskip("einops")
    code = """import basin, numpy
def f(x):
    import einops
    return einops.rearrange(x, "(a b) -> a b", a=2)
assert basin.function(f)(numpy.ones(6)).shape == (2, 3)"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_energies_call_their_activations_g():
    energy = basin.energy(lambda g: numpy.sum(GIVEN["a"] @ g))
    for way in (energy, energy.force, energy.descend):
        with pytest.raises(basin.BasinError, match=r"constant \[3, 4\] and 'g' \[3\]"):
            way(numpy.ones(3))


def test_random_subscripts_mean_what_they_mean_in_numpy():
    rng, array = numpy.random.default_rng(5), rng_array()
    for _ in range(150):
        index = random_index(rng, array.shape)
        try:
            expected = array[index]
        except IndexError:
            with pytest.raises((IndexError, basin.BasinError)):
                basin.function(lambda a, index=index: a[index], backend="ref")(array)
            continue
        found = basin.function(lambda a, index=index: a[index], backend="ref")(array)
        assert found.shape == expected.shape
        assert numpy.array_equal(found, expected)


def rng_array():
    return numpy.random.default_rng(6).normal(size=(3, 4, 2, 5))


def random_index(rng, shape):
    """Numbers, slices, lists, masks, None and perhaps an Ellipsis for some axes."""

    def one(size):
        return [
            int(rng.integers(-size, size)),
            slice(None, None, int(rng.choice([1, 2, -1]))),
            rng.integers(-size, size, 2),
            rng.integers(-size, size, (3, 1)).tolist(),
            rng.random(size) > 0.4,
        ][rng.integers(5)]

    count = int(rng.integers(len(shape) + 1))
    index = [one(size) for size in shape[:count]]
    if rng.random() < 0.4:
        at = int(rng.integers(count + 1))
        index = index[:at] + [Ellipsis] + [one(size) for size in shape[len(shape) - count + at :]]
    if rng.random() < 0.4:
        index.insert(int(rng.integers(len(index) + 1)), None)
    return tuple(index)


@pytest.mark.parametrize("rank_a", range(5))
@pytest.mark.parametrize("rank_b", range(5))
def test_products_follow_numpy_for_all_ranks(rank_a, rank_b):
    a = numpy.random.default_rng(1).normal(size=(2, 1, 4, 3)[4 - rank_a :])
    b = numpy.random.default_rng(2).normal(size=(2, 5, 3, 4)[4 - rank_b :])
    if rank_b == 1:
        b = b[:3]
    for product in (numpy.matmul, numpy.dot, numpy.outer):
        try:
            expected = product(a, b)
        except ValueError:
            with pytest.raises(basin.BasinError):
                basin.function(product, backend="ref")(a, b)
            continue
        close(basin.function(lambda a, b, f=product: f(a, b), backend="ref")(a, b), expected, 1e-12)
