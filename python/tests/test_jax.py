"""Energy attention in JAX against its own formulas: values, derivatives of both orders, lists of
pairs, jit, vmap, errors; and the block against PyTorch's, where that is installed."""

import pathlib
import runpy
import types

import numpy
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import basin  # noqa: E402
import basin.jax as bj  # noqa: E402

EXAMPLE = pathlib.Path(__file__).parents[1] / "examples" / "jax_block.py"
example = types.SimpleNamespace(**runpy.run_path(str(EXAMPLE)))


@pytest.fixture
def double():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    with jax.default_device(jax.devices("cpu")[0]):  # a GPU has no double here
        yield
    jax.config.update("jax_enable_x64", before)


def tokens(*shape, dtype="f4", seed=0):
    return jnp.asarray(numpy.random.default_rng(seed).normal(size=(2, *shape)).astype(dtype))


def formula(q, k, beta, left_out=None, scale=None):
    """The log-sum-exp by JAX itself; left_out [N, M] is True where a pair does not count."""
    beta = jnp.asarray(beta)
    z = jnp.einsum("...ny,...my->...nm", q, k, precision="highest")
    z = z * (beta if beta.ndim == 0 else beta[:, None, None])
    z = z if scale is None else z * scale
    z = z if left_out is None else jnp.where(left_out, -jnp.inf, z)
    return jax.nn.logsumexp(z, -1)


def second_order(lse):
    """A gradient through the force."""

    def loss(q, k):
        slopes = jax.grad(lambda q, k: lse(q, k).sum(), (0, 1))(q, k)
        return sum((x * jnp.linspace(-1, 1, x.shape[-1]) * x).sum() for x in slopes)

    return jax.grad(loss, (0, 1))


def edges_of(n, seed=1):
    edges = numpy.random.default_rng(seed).integers(n, size=(3 * n, 2))
    return numpy.unique(edges[edges[:, 0] != n // 2], axis=0)  # one query has no key


def assert_close(x, y, tolerance=2e-5):
    numpy.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


PATTERNS = {
    "all": ({}, lambda n: None),
    "others": ({"exclude_self": True}, lambda n: jnp.eye(n, dtype=bool)),
    "causal": ({"pairs": "causal"}, lambda n: ~jnp.tri(n, dtype=bool)),
}


@pytest.mark.parametrize(
    ("shape", "beta"), [((2, 3, 7, 5), "heads"), ((3, 2, 33, 17), 0.5), ((1, 4, 130, 64), 0.125)]
)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_values_and_both_derivatives_are_those_of_the_formula(shape, pattern, beta):
    q, k = tokens(*shape)
    options, mask = PATTERNS[pattern]
    left_out = mask(shape[2])
    beta = jnp.linspace(0.3, 0.5, shape[1]) if beta == "heads" else beta

    def ours(q, k):
        return bj.attention_lse(q, k, beta, **options)

    assert_close(ours(q, k), formula(q, k, beta, left_out))
    theirs = jax.jit(second_order(lambda q, k: formula(q, k, beta, left_out)))(q, k)
    for x, y in zip(jax.jit(second_order(ours))(q, k), theirs):
        assert_close(x, y, 1e-4)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("layout", ["hny", "nhy"])
def test_a_list_of_pairs(batch, layout):
    q, k = tokens(batch, 2, 11, 6)
    pairs = bj.Pairs(edges_of(11), 11)
    left_out = numpy.ones((11, 11), bool)
    left_out[tuple(pairs.edges().T)] = False
    there = ~left_out.all(1)

    @jax.jit
    def ours(q, k, pairs):
        if layout == "hny":
            return bj.attention_lse(q, k, 0.5, pairs)
        q, k = jnp.swapaxes(q, -2, -3), jnp.swapaxes(k, -2, -3)
        return jnp.swapaxes(bj.attention_lse(q, k, 0.5, pairs, layout="nhy"), -1, -2)

    def theirs(q, k):
        return formula(q[..., there, :], k, 0.5, left_out[there])

    value = ours(q, k, pairs)
    assert_close(value[..., there], theirs(q, k))
    assert (value[..., ~there] == 0).all() and not there.all()
    for x, y in zip(second_order(lambda q, k: ours(q, k, pairs))(q, k), second_order(theirs)(q, k)):
        assert_close(x, y, 1e-4)


@pytest.mark.parametrize(
    ("pattern", "heads", "scaled"),
    [("all", False, False), ("causal", True, True), ("list", True, False), ("list", False, True)],
)
def test_gradients_of_both_orders_by_differences(double, pattern, heads, scaled):
    q, k = tokens(2 if pattern == "list" else 1, 2, 5, 3, dtype="f8")
    beta = jnp.array([0.4, 0.6] if heads else 0.5)
    pairs = {"all": None, "causal": "causal", "list": bj.Pairs(edges_of(5), 5)}[pattern]
    operands = [q, k, beta]
    if scaled:
        shape = (len(pairs), 2) if pattern == "list" else (1, 2, 5, 5)
        operands.append(0.5 + jax.random.uniform(jax.random.key(0), shape, jnp.float64))

    @jax.jit
    def energy(q, k, beta, scale=None):
        return bj.energy_attention(q, k, beta, pairs, scale)

    check_grads(energy, operands, order=2, modes=["rev"], atol=1e-5, rtol=1e-5)


def test_vmap_over_any_operand():
    q, k = tokens(4, 2, 6, 8)
    beta = jnp.linspace(0.2, 0.5, 4)

    def loss(q, k, beta):
        slopes = jax.grad(lambda *x: bj.energy_attention(*x).sum(), (0, 1, 2))(q, k, beta)
        return sum((x**2).sum() for x in slopes)

    step = jax.jit(jax.grad(loss, (0, 1, 2)))
    for axes in ((0, 0, 0), (0, None, None), (None, None, 0), (0, 0, None)):
        arguments = [x if axis == 0 else x[1] for x, axis in zip((q, k, beta), axes)]
        ours = jax.jit(jax.vmap(step, axes))(*arguments)
        rows = [[x[i] if axis == 0 else x for x, axis in zip(arguments, axes)] for i in range(4)]
        for x, *ys in zip(ours, *(step(*row) for row in rows)):
            largest = jnp.abs(x).max()
            assert_close(x / largest, jnp.stack(ys) / largest, 1e-6)
    nested = jax.vmap(jax.vmap(bj.attention_lse, (0, None, None)), (None, 0, None))(q, k, 0.3)
    for i in range(4):
        assert_close(nested[i], bj.attention_lse(q, jnp.broadcast_to(k[i], q.shape), 0.3))


def test_vmap_over_a_list():
    q, k = tokens(3, 2, 11, 6)
    pairs = bj.Pairs(edges_of(11), 11)
    ours = jax.vmap(lambda q, k: bj.attention_lse(q, k, 0.5, pairs))(q, k)
    assert_close(ours, bj.attention_lse(q, k, 0.5, pairs))


def test_operands_are_not_copied():
    """XLA copies what has an axis of length 1 inside."""
    q = jnp.ones((2, 3, 6, 8))

    def slopes(q, k):
        return jax.grad(lambda q, k: bj.energy_attention(q, k, 0.5).sum(), (0, 1))(q, k)

    program = jax.jit(slopes).lower(q, q).compile().as_text()
    assert "custom-call" in program and " copy(" not in program


def test_bfloat16():
    q, k = tokens(2, 2, 20, 16).astype(jnp.bfloat16)
    wide = [x.astype("f4") for x in (q, k)]
    ours = bj.attention_lse(q, k, 0.25)
    assert ours.dtype == jnp.float32
    assert_close(ours, formula(*wide, 0.25))
    theirs = second_order(lambda q, k: formula(q, k, 0.25))(*wide)
    for x, y in zip(second_order(lambda q, k: bj.attention_lse(q, k, 0.25))(q, k), theirs):
        assert x.dtype == jnp.bfloat16
        numpy.testing.assert_allclose(x.astype("f4"), y, rtol=0.05, atol=0.02)


def test_the_force_is_minus_the_gradient_of_the_energy():
    q, k = tokens(2, 3, 6, 8)
    for beta in (0.4, jnp.array([0.3, 0.4, 0.5])):
        slopes = jax.grad(
            lambda q, k, beta=beta: bj.energy_attention(q, k, beta, "causal").sum(), (0, 1)
        )(q, k)
        for f, s in zip(bj.attention_force(q, k, beta, "causal"), slopes):
            assert_close(f, -s)


@pytest.mark.parametrize("shape", [(2, 3, 0, 4), (0, 3, 5, 4)])
@pytest.mark.parametrize("beta", [0.4, jnp.array([0.3, 0.4, 0.5])])
def test_nothing_is_a_number_of_tokens_too(shape, beta):
    q, k = tokens(*shape)
    slopes = jax.grad(lambda q, k: bj.energy_attention(q, k, beta).sum(), (0, 1))(q, k)
    assert [x.shape for x in slopes] == [shape] * 2


FORWARD = {
    "a number": lambda q, k, beta, scale: (bj.attention_lse(q, k, 0.5), formula(q, k, 0.5)),
    "all": lambda q, k, beta, scale: (
        bj.attention_lse(q, k, beta, scale=scale), formula(q, k, beta, scale=scale)
    ),
    "list": lambda q, k, beta, scale: (
        bj.attention_lse(q, k, beta, EVERY, jnp.moveaxis(scale[0], 0, -1).reshape(9, 2)),
        formula(q, k, beta, scale=scale),
    ),
}  # fmt: skip
EVERY = bj.Pairs([(i, j) for i in range(3) for j in range(3)], 3)


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_hessians_and_export(double, name):
    q, k = tokens(1, 2, 3, 4, dtype="f8")
    arguments = q, k, jnp.asarray([0.4, 0.6]), jnp.abs(tokens(1, 2, 3, 3, dtype="f8")[0]) + 0.5
    tangents = tuple(jnp.cos(x) for x in arguments)
    every = (0, 1, 2, 3)

    def sides(f):
        for side in (0, 1):
            yield jax.jit(f(lambda *a, side=side: FORWARD[name](*a)[side]))(*arguments)

    def check(f):
        ours, theirs = sides(f)
        jax.tree.map(lambda a, b: assert_close(a, b, 1e-9), ours, theirs)

    check(lambda lse: lambda *a: jax.jvp(lse, a, tangents))
    check(lambda lse: jax.hessian(lambda *a: jnp.sin(lse(*a)).sum(), every))
    check(lambda lse: lambda q, *a: jax.vmap(jax.jacfwd(lse), (0, None, None, None))(
        jnp.stack([q, 2 * q]), *a))  # fmt: skip
    slope = jax.jit(jax.grad(lambda *a: FORWARD[name](*a)[0].sum(), every))
    made = jax.export.export(slope, platforms=["cpu"], disabled_checks=bj.export_checks())(
        *arguments
    )
    jax.tree.map(assert_close, made.call(*arguments), slope(*arguments))


def test_forward_mode_through_the_force(double):
    q, k = tokens(1, 2, 3, 4, dtype="f8")
    beta = jnp.asarray([0.4, 0.6])

    def theirs(q, k):
        return jax.grad(lambda q, k: (formula(q, k, beta) / beta[:, None]).sum(), (0, 1))(q, k)

    found = jax.jacfwd(lambda q, k: bj.attention_force(q, k, beta), (0, 1))(q, k)
    jax.tree.map(lambda a, b: assert_close(a, b, 1e-9), found, jax.jacfwd(theirs, (0, 1))(q, k))


def test_a_third_derivative_is_refused():
    q, k = tokens(1, 1, 3, 2)
    step = second_order(lambda q, k: bj.attention_lse(q, k, 1.0))
    with pytest.raises(NotImplementedError, match="first and second order"):
        jax.grad(lambda q: step(q, k)[0].sum())(q)


def zeros(*shape, dtype="f4"):
    return jnp.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": zeros(1, 3, 4, 8)}, r"queries \[1, 2, 4, 8\] and keys \[1, 3, 4, 8\]"),
        ({"k": zeros(1, 2, 4, 8, dtype="bfloat16")}, "queries are float32, keys bfloat16"),
        ({"beta": jnp.ones(3)}, r"beta of shape \[3\].*\[2\]"),
        ({"beta": 0}, "beta is 0"),
        ({"beta": None}, "beta is None.*number or an array"),
        ({"pairs": "casual"}, "None, 'causal' or"),
        ({"pairs": numpy.ones((4, 4), bool)}, "pairs are a ndarray.*None"),
        ({"pairs": "causal", "k": zeros(1, 2, 5, 8)}, "4 queries and 5 keys"),
        ({"pairs": bj.Pairs([(0, 1)], 5)}, "there are 4 queries and 4 keys"),
        ({"pairs": bj.Pairs([(0, 1)], 4), "exclude_self": True}, "list those that count"),
        ({"scale": jnp.ones((2, 2))}, r"scale of shape \[2, 2\].*\[1, 2, 4, 4\]"),
        ({"layout": "bnh"}, "layout 'bnh'.*'hny' or 'nhy'"),
    ],
)
def test_errors_say_what_was_found_and_what_was_wanted(change, message):
    arguments = {"q": zeros(1, 2, 4, 8), "k": zeros(1, 2, 4, 8), "beta": 1.0}
    with pytest.raises(basin.BasinError, match=message):
        bj.energy_attention(**{**arguments, **change})


# ---- the block ----


def block_params():
    params = example.block_init(jax.random.key(0), 16, heads=2, head_dim=4, memories=32)
    return {k: v * 100 if k in ("wq", "wk") else v * 10 if k == "xi" else v
            for k, v in params.items()}  # fmt: skip


def test_the_block_descends_and_recomputes():
    params, x = block_params(), tokens(3, 7, 16)[0]
    end = example.block(params, x, steps=8, alpha=0.05)
    assert (example.block_energy(params, end) < example.block_energy(params, x)).all()

    def loss(params, recompute):
        return (example.block(params, x, steps=3, recompute=recompute) ** 2).sum()

    plain, again = (jax.jit(jax.grad(loss), static_argnums=1)(params, r) for r in (False, True))
    for name in params:
        assert_close(plain[name], again[name], 1e-4)


def test_the_block_is_that_of_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import basin.torch as bt

    params, x = block_params(), tokens(3, 7, 16)[0]
    layer = bt.EnergyBlock(16, 2, 4, 32, steps=4)
    layer.load_state_dict({k: torch.from_numpy(numpy.array(v)) for k, v in params.items()})
    layer(torch.from_numpy(numpy.array(x))).square().sum().backward()
    with jax.default_matmul_precision("highest"):  # else TF32 on a GPU
        slopes = jax.jit(jax.grad(lambda p: (example.block(p, x, steps=4) ** 2).sum()))(params)
    for name, parameter in layer.named_parameters():
        scale = float(numpy.abs(slopes[name]).max())
        assert_close(parameter.grad.numpy() / scale, slopes[name] / scale, 1e-4)
