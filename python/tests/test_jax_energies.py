"""Any energy in JAX: both modes of differentiation against differences, transforms in any order,
export, types, errors; on CUDA where there is a device."""

import collections
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
import some_energies

jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import basin  # noqa: E402
import basin.jax as bj  # noqa: E402
from basin import ham  # noqa: E402

CASES = some_energies.cases()
OPTIONS = {"value": {}, "force": {}, "descend": {"steps": 2, "alpha": 0.1}}
each = pytest.mark.parametrize("name", CASES)
every = pytest.mark.parametrize("output", OPTIONS)
cuda = pytest.mark.skipif(
    jax.default_backend() != "gpu", reason="JAX computes without a CUDA device"
)


@pytest.fixture
def double():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def given(name, output):
    """A function of all arguments, and these."""
    energy, x, parameters = CASES[name]
    f, names = bj.function(energy, output, **OPTIONS[output]), list(parameters)
    return lambda x, *rest: f(x, **dict(zip(names, rest))), (x, *parameters.values())


def close(a, b, tolerance=1e-9):
    numpy.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@each
@every
def test_both_modes_and_orders_by_differences(double, name, output):
    f, arguments = given(name, output)
    with jax.default_device(jax.devices("cpu")[0]):
        check_grads(f, arguments, order=2, modes=("fwd", "rev"))


@each
def test_values_are_those_of_basin(double, name):
    energy, x, parameters = CASES[name]
    options = {**parameters, "backend": "ref"}
    with jax.default_device(jax.devices("cpu")[0]):
        found = [f(*a) for f, a in (given(name, output) for output in OPTIONS)]
    close(found[0], energy(x, **options), 1e-13)
    close(found[1], energy.force(x, **options), 1e-13)
    close(found[2], energy.descend(x, steps=2, alpha=0.1, **options).x, 1e-13)


@every
def test_transforms_in_any_order(double, output):
    f, (x, *rest) = given("memory", output)
    many = jnp.stack([x, 2 * x, x - 1])
    with jax.default_device(jax.devices("cpu")[0]):

        def loss(x):
            return jnp.sum(jnp.sin(f(x, *rest)))

        hessian = jax.jit(jax.hessian(loss))(x)
        close(jax.jacrev(jax.jacrev(loss))(x), hessian)
        close(jax.jacfwd(jax.jacfwd(loss))(x), hessian)
        close(jax.vmap(jax.hessian(loss))(many)[0], hessian)
        close(jax.vmap(f, (0, None, None))(many, *rest), [f(one, *rest) for one in many])

        none = jax.vmap(jax.grad(loss))(many[:0])
        assert none.shape == (0, *x.shape)

        def apart(many, xi):
            return sum(jnp.sum(f(one, xi, rest[1]) ** 2) for one in many)

        def together(many, xi):
            return jnp.sum(jax.vmap(f, (0, None, None))(many, xi, rest[1]) ** 2)

        for a, b in zip(
            jax.grad(together, (0, 1))(many, rest[0]), jax.grad(apart, (0, 1))(many, rest[0])
        ):
            close(a, b)
        close(jax.hessian(together, 1)(many, rest[0]), jax.hessian(apart, 1)(many, rest[0]))
        betas = jnp.asarray([0.5, 1.0])  # a batch of batches
        grid = jax.vmap(lambda b: jax.vmap(lambda x: f(x, rest[0], b))(many))(betas)
        close(grid[1, 2], f(many[2], rest[0], 1.0))


def test_a_third_order(double):
    f, (x, *rest) = given("memory", "value")
    with jax.default_device(jax.devices("cpu")[0]):
        check_grads(jax.grad(lambda x: f(x, *rest).sum()), (x,), order=2)


def test_without_jit_and_with_unknown_lengths():
    f, (x, *rest) = given("memory", "value")
    expected = f(x, *rest)
    with jax.disable_jit():
        close(f(x, *rest), expected)
        one = bj.function(some_energies.one)
        close(jax.vmap(lambda x: one(x, *rest))(x), expected)
    lengths = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 3"), "float32")
    with pytest.raises(basin.BasinError, match="known lengths"):
        jax.export.export(jax.jit(lambda x: f(x, *rest)))(lengths)


def test_inside_shard_map():
    f, (x, *rest) = given("memory", "value")
    mesh = jax.sharding.Mesh(jax.devices("cpu")[:1], "i")
    rows = jax.sharding.PartitionSpec("i")
    with jax.default_device(jax.devices("cpu")[0]):
        some = jax.shard_map(
            lambda x: f(x, *rest), mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False
        )
        close(jax.jit(some)(x), f(x, *rest), 1e-6)
        slope = jax.jit(jax.grad(lambda x: some(x).sum()))(x)
        close(slope, jax.grad(lambda x: f(x, *rest).sum())(x), 1e-6)


LOADED = """
import sys, numpy, jax
jax.config.update("jax_enable_x64", True)
import basin.jax
from jax import export
made = export.deserialize(open(sys.argv[1], "rb").read())
print(repr(float(made.call(numpy.arange(6.0).reshape(2, 3)).sum())))
"""


def test_export_to_another_process(double, tmp_path):
    pytest.importorskip("flatbuffers", reason="jax.export needs flatbuffers to write files")
    f, (x, *rest) = given("memory", "force")
    with jax.default_device(jax.devices("cpu")[0]):
        slope = jax.jit(jax.grad(lambda x: f(x, *rest).sum()))
        made = jax.export.export(slope, disabled_checks=bj.export_checks(), platforms=["cpu"])(x)
        close(made.call(x), slope(x))
        (tmp_path / "slope").write_bytes(made.serialize())
        expected = float(slope(numpy.arange(6.0).reshape(2, 3)).sum())
    here = str(pathlib.Path(__file__).parent)
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", LOADED, str(tmp_path / "slope")]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert float(told.stdout) == expected


def test_export_of_an_energy_that_cannot_be_imported():
    f = jax.jit(bj.function(basin.energy(lambda g: numpy.sum(g**2))))
    made = jax.export.export(f, disabled_checks=bj.export_checks())(jnp.ones(3))
    assert made.call(jnp.ones(3)) == 3


def test_types_and_the_same_bits_again():
    f = bj.function(some_energies.memory, "force")
    x, xi = jnp.ones((2, 3), jnp.bfloat16), jnp.eye(3)
    assert f(x, xi).dtype == jnp.bfloat16
    assert bj.function(some_energies.memory)(x, xi).dtype == jnp.float32
    assert bj.function(some_energies.memory)(numpy.ones((2, 3), int), xi).dtype == jnp.float32
    x = jax.random.normal(jax.random.key(0), (2, 3))
    numpy.testing.assert_array_equal(f(x, xi), f(x, xi))
    numpy.testing.assert_array_equal(jax.jit(f)(x, xi), f(x, xi))


def test_doubles_beside_floats(double):
    with jax.default_device(jax.devices("cpu")[0]):
        made = bj.function(some_energies.one, "force")(jnp.ones(3, jnp.float32), numpy.eye(3))
    assert made.dtype == jnp.float64


def test_a_function_of_basin():
    f = bj.function(basin.function(lambda x, y: numpy.sum(x * y**2)))
    x, y = jnp.ones(3), jnp.arange(3.0)
    assert f(x, y) == 5
    assert jax.grad(f, 1)(x, y).tolist() == [0, 2, 4]


Pair = collections.namedtuple("Pair", "w b")


@jax.tree_util.register_pytree_node_class
class Named:
    """A container of a user's own."""

    def __init__(self, w, name):
        self.w, self.name = w, name

    def tree_flatten(self):
        return (self.w,), self.name

    @classmethod
    def tree_unflatten(cls, name, values):
        return cls(*values, name)


def layers(np, net, x, factor=1.0):
    """A network of two layers, its parameters and its results trees."""
    hidden = np.tanh(x @ net["first"].w + net["first"].b)
    out = hidden @ net["rest"][0] + net["rest"][1]["b"]
    return {"out": factor * out, "sums": (np.sum(out), np.sum(hidden**2))}


def test_trees_as_arguments_and_results(double):
    draw = numpy.random.default_rng(0).normal
    first = Pair(draw(size=(3, 4)), draw(size=4))
    net = {"first": first, "rest": [draw(size=(4, 2)), {"b": draw(size=2)}]}
    x = draw(size=(5, 3))
    ours = bj.function(basin.function(lambda net, x: layers(numpy, net, x, 2.0)))
    with jax.default_device(jax.devices("cpu")[0]):
        net, x = jax.tree_util.tree_map(jnp.asarray, (net, x))

        def all_of(f):
            def loss(net, x):
                made = f(net, x)
                return jnp.sum(made["out"] ** 3) + made["sums"][1]

            return [
                f(net, x), jax.jit(f)(net, x), jax.jit(jax.grad(loss))(net, x),
                jax.hessian(loss)(net, x), jax.jacfwd(loss)(net, x),
                jax.jvp(lambda net: f(net, x), (net,), (net,)),
                jax.vmap(f, in_axes=(None, 0))(net, x), jax.value_and_grad(loss)(net, x),
            ]  # fmt: skip

        expected = all_of(lambda net, x: layers(jnp, net, x, 2.0))
        jax.tree_util.tree_map(close, all_of(ours), expected)
        made = jax.export.export(
            jax.jit(ours), platforms=["cpu"], disabled_checks=bj.export_checks()
        )(net, x)
        jax.tree_util.tree_map(close, made.call(net, x), expected[0])


def test_containers_of_the_users_and_many_arguments():
    f = bj.function(basin.function(lambda p, x: Named(x @ p.w, p.name)))
    weights = Named(jnp.ones((3, 2)), "first")
    made = jax.jit(f)(weights, jnp.ones((4, 3)))
    assert isinstance(made, Named) and made.name == "first" and made.w.shape == (4, 2)
    assert jax.grad(lambda p: f(p, jnp.ones((4, 3))).w.sum())(weights).w.tolist() == [[4, 4]] * 3
    f = bj.function(basin.function(lambda *xs, **by: sum(numpy.sum(x) for x in xs) * by["b"]))
    assert f(jnp.ones(2), jnp.ones(3), b=2.0) == 10


def test_parameters_of_a_network_are_a_tree():
    net = ham.HAM({"v": ham.Layer("identity", 2)}, {"b": ham.bias()}, [(["v"], "b")])
    f = bj.function(basin.function(lambda p, v: net.at(p).energy(None, {"v": v})))
    slope = jax.grad(f)(net.params, jnp.array([1.0, 2.0]))
    moved = jax.tree_util.tree_map(lambda w, s: w - s, net.params, slope)
    assert moved["b"]["b"].tolist() == [1, 2]


def test_an_energy_of_a_tree():
    @basin.energy(batched=True)
    def memory(g, net):
        return numpy.sum(g**2, -1) / 2 - basin.logsumexp(g @ net["xi"].T + net["b"])

    net = {"xi": jnp.eye(3), "b": jnp.zeros(3)}
    for output in bj._energy._programs.OUTPUTS:
        f = bj.function(memory, output)
        slope = jax.jit(jax.grad(lambda net, f=f: jnp.sum(f(jnp.ones((2, 3)), net) ** 2)))(net)
        assert slope["xi"].shape == (3, 3) and slope["b"].shape == (3,)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: bj.function(basin.function(len))({"w": "a"}), "w is a str"),
        (lambda: bj.function(3), "energy or a function"),
        (lambda: bj.function(some_energies.memory, "heat"), "value, force"),
        (lambda: bj.function(some_energies.memory, "value", steps=3), "'descend'"),
        (lambda: bj.function(some_energies.memory)(jnp.ones(3), eta=1.0), "no parameter 'eta'"),
        (lambda: bj.function(some_energies.memory)(jnp.ones(3), 1, 2, 3), "4 arguments"),
        (lambda: bj.function(some_energies.memory)("x"), "x is a str"),
        (lambda: bj.function(some_energies.memory)(jnp.ones(3), "xi"), "xi is a str"),
        (lambda: bj.function(some_energies.memory)(jnp.ones(3) * 1j, 1.0), "complex"),
    ],
)
def test_errors(call, text):
    with pytest.raises(basin.BasinError, match=text):
        call()


@cuda
@each
@every
def test_cuda_computes_what_the_cpu_does(name, output):
    f, arguments = given(name, output)
    arguments = tuple(jnp.asarray(a, jnp.float32) for a in arguments)

    def loss(*arguments):
        return jnp.sum(jnp.sin(f(*arguments)))

    def second(*arguments):
        return sum(jnp.sum(g**2) for g in jax.grad(loss, range(len(arguments)))(*arguments))

    both = jax.jit(jax.grad(second, range(len(arguments))))
    found = both(*arguments)
    for device in {d for x in found for d in x.devices()}:
        assert device.platform == "gpu"
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu):
        expected = both(*(jax.device_put(a, cpu) for a in arguments))
    for a, b in zip(found, expected):
        close(a, b, 2e-3)
    batch = jnp.stack([arguments[0], arguments[0] + 1])
    made = jax.vmap(lambda x: f(x, *arguments[1:]))(batch)
    close(made[1], f(batch[1], *arguments[1:]), 1e-5)


@pytest.mark.parametrize("compiled", [jax.jit, lambda f: f])
def test_fixed_points_that_were_not_found_are_named(compiled):
    well = basin.energy(lambda g, a: numpy.sum(g**4 / 4 - a * g))
    root = compiled(bj.function(well, "fixed_point", alpha=0.02, steps=3))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="1 of 1 fixed points did not converge"):
            root(jnp.ones(1), jnp.full(1, 8.0)).block_until_ready()


def test_states_of_several_kinds():
    @basin.energy(activation={"v": None, "h": "softmax"})
    def pair(g, w):
        return numpy.sum(g["v"] ** 2) / 2 - g["v"] @ w @ g["h"]

    def by_hand(v, h, w):
        for _ in range(3):
            p = jax.nn.softmax(h)
            v, h = v - 0.1 * (v - w @ p), h + 0.1 * (v @ w)
        return {"v": v, "h": h}

    def ours(v, h, w):
        return bj.function(pair, "descend", steps=3, alpha=0.1)({"v": v, "h": h}, w)

    rng = numpy.random.default_rng(2)
    v, h, w = (rng.normal(size=s).astype("f4") for s in ((4,), (3,), (4, 3)))
    many = rng.normal(size=(5, 3)).astype("f4")
    for f, g in ((ours, by_hand), (jax.hessian(ours), jax.hessian(by_hand))):
        for name in "vh":
            numpy.testing.assert_allclose(f(v, h, w)[name], g(v, h, w)[name], rtol=0, atol=1e-5)
    found, expected = (jax.jit(jax.vmap(f, (None, 0, None)))(v, many, w) for f in (ours, by_hand))
    for name in "vh":
        numpy.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-5)
