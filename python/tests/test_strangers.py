"""Ten programs of somebody who knows NumPy and JAX and not Basin, each beside the same in JAX: in
double they agree within 1e-10. Run as a program, it prints what each takes in single precision,

    python python/tests/test_strangers.py
"""

import contextlib
import functools
import os
import pickle
import sys
import time

import numpy
import pytest

import basin

jax = pytest.importorskip("jax")
jnp = jax.numpy
PROGRAMS = {}


def program(function):
    """program(draw, backend) gives two functions without arguments: with Basin, and with JAX."""
    PROGRAMS[function.__name__] = function
    return function


def descend(energy, x, steps, alpha, activation=lambda x: x):
    """The plain loop, energies before each step and at the end."""
    both, energies = jax.value_and_grad(energy), []
    for _ in range(steps):
        value, slope = both(jax.tree_util.tree_map(lambda f, a: f(a), activation, x)
                            if isinstance(x, dict) else activation(x))  # fmt: skip
        x = jax.tree_util.tree_map(lambda a, s: a - alpha * s, x, slope)
        energies.append(value)
    return x, energies


def norm(x, gamma=1.0, delta=0.0):
    centred = x - x.mean(-1, keepdims=True)
    return gamma * centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) + delta


# ---- the programs ----


@program
def hopfield(draw, backend):
    """A dense associative memory, its energies by step and where a batch ends."""
    x, xi = draw(16, 32), draw(64, 32) / 3

    @basin.energy(batched=True)
    def memory(g, xi):
        return numpy.sum(g**2, axis=-1) / 2 - basin.logsumexp(g @ xi.T)

    def ours():
        end = memory.descend(x, steps=20, alpha=0.2, xi=xi, backend=backend)
        return end.x, end.energy.sum(1)[:-1]

    def energy(g, xi):
        return (g**2).sum() / 2 - jax.nn.logsumexp(g @ xi.T, axis=-1).sum()

    return ours, lambda: descend(lambda g: energy(g, xi), x, 20, 0.2)


@program
def boltzmann(draw, backend):
    """The contrastive gradient of a restricted Boltzmann machine, negative samples by descent."""
    data, start, net = draw(16, 20), draw(16, 20), {"w": draw(20, 12) / 4, "c": draw(12)}

    @basin.energy
    def machine(g, net):
        return numpy.sum(g**2) / 2 - numpy.sum(basin.softplus(g @ net["w"] + net["c"]))

    @basin.function(backend=backend)
    def contrast(net, data, start):
        model = basin.stop_gradient(machine.unroll(start, steps=8, alpha=0.3, net=net))
        return machine(data, net) - machine(model, net)

    def free(g, net):
        return (g**2).sum() / 2 - jax.nn.softplus(g @ net["w"] + net["c"]).sum()

    def loss(net):
        model, _ = descend(lambda g: free(g, net), start, 8, 0.3)
        return free(data, net) - free(jax.lax.stop_gradient(model), net)

    return lambda: contrast.grad(net, data, start), lambda: jax.grad(loss)(net)


@program
def convolution(draw, backend):
    """Convolutional memories and attention between patches of one picture, learnt together."""
    x, w, wq, wk = draw(1, 8, 8, 3), draw(3, 3, 3, 4) / 3, draw(2, 5, 12) / 3, draw(2, 5, 12) / 3

    def patches(g):
        return g.reshape(4, 2, 4, 2, 3).transpose(0, 2, 1, 3, 4).reshape(16, 12)

    @basin.energy
    def picture(g, w, wq, wk):
        q, k = (numpy.einsum("nd,hyd->nhy", patches(g), a) for a in (wq, wk))
        memories = -numpy.sum(basin.relu(basin.conv2d(g, w)) ** 2) / 20
        return memories + numpy.sum(g**2) / 2 - numpy.sum(basin.attention_lse(q, k, 0.5))

    @basin.function(backend=backend)
    def loss(w, wq, wk, x):
        return numpy.sum(picture.unroll(x, steps=4, alpha=0.1, w=w, wq=wq, wk=wk) ** 2)

    def energy(g, w, wq, wk):
        layout = ("NHWC", "HWIO", "NHWC")
        h = jax.lax.conv_general_dilated(g, w, (1, 1), "SAME", dimension_numbers=layout)
        q, k = (jnp.einsum("nd,hyd->nhy", patches(g), a) for a in (wq, wk))
        scores = 0.5 * jnp.einsum("nhy,mhy->hnm", q, k)
        memories = -(jax.nn.relu(h) ** 2).sum() / 20
        return memories + (g**2).sum() / 2 - jax.nn.logsumexp(scores, axis=-1).sum()

    def theirs(w, wq, wk):
        return (descend(lambda g: energy(g, w, wq, wk), x, 4, 0.1)[0] ** 2).sum()

    ours = functools.partial(loss.grad, w, wq, wk, x, wrt=["w", "wq", "wk"])
    return lambda: list(ours().values()), lambda: jax.grad(theirs, (0, 1, 2))(w, wq, wk)


@program
def implicit(draw, backend):
    """The gradient of a fixed point, beside a solve with the Hessian."""
    a, b, target = draw(6, 6) / 4, draw(6), draw(6)

    @basin.energy
    def convex(g, a, b):
        return numpy.sum(g**2) / 2 + numpy.sum(basin.softplus(g @ a)) - b @ g

    exact = 1e-13 if backend == "ref" else 1e-5

    @basin.function(backend=backend)
    def loss(a, b):
        end = convex.fixed_point(
            numpy.zeros(6), a, b, alpha=0.3, until=exact, accuracy=exact, steps=2000
        )
        return numpy.sum((end - target) ** 2)

    def energy(g, a, b):
        return (g**2).sum() / 2 + jax.nn.softplus(g @ a).sum() - b @ g

    slope, hessian = jax.grad(energy), jax.hessian(energy)

    def theirs():
        g = jnp.zeros(6)
        for _ in range(8):
            g = g - jnp.linalg.solve(hessian(g, a, b), slope(g, a, b))
        adjoint = -jnp.linalg.solve(hessian(g, a, b), 2 * (g - target))
        return jax.vjp(lambda a, b: slope(g, a, b), a, b)[1](adjoint)

    return lambda: list(loss.grad(a, b, wrt=["a", "b"]).values()), theirs


@program
def learnt(draw, backend):
    """A network as an energy: the gradient of a loss through its descent, by a tree of weights."""
    net = [{"w": draw(8, 16) / 3, "b": draw(16)}, {"w": draw(16, 1) / 3, "b": draw(1)}]
    x, y = draw(12, 8), draw(12, 8)

    def energy(g, net, numpy=numpy):
        hidden = numpy.tanh(g @ net[0]["w"] + net[0]["b"])
        return numpy.sum(hidden @ net[1]["w"] + net[1]["b"]) + numpy.sum(g**2) / 2

    ours = basin.energy(lambda g, net: energy(g, net))

    @basin.function(backend=backend)
    def loss(net, x, y):
        return numpy.mean((ours.unroll(x, steps=6, alpha=0.2, net=net) - y) ** 2)

    def theirs(net):
        return ((descend(lambda g: energy(g, net, jnp), x, 6, 0.2)[0] - y) ** 2).mean()

    return lambda: loss.value_and_grad(net, x, y), lambda: jax.value_and_grad(theirs)(net)


@program
def second_order(draw, backend):
    """A loss of the force of the paper's block, whose gamma and delta are learnt as well."""
    names = {"wq": draw(2, 4, 8), "wk": draw(2, 4, 8), "xi": draw(16, 8), "delta": draw(8)}
    x, weights = draw(10, 8), {**names, "gamma": draw() + 2}

    @basin.energy(activation=basin.layernorm)
    def block(g, wq, wk, xi):
        q, k = (numpy.einsum("nd,hyd->nhy", g, w) for w in (wq, wk))
        attention = -numpy.sum(basin.attention_lse(q, k, 0.5, exclude_self=True)) / 0.5
        return {"attention": attention, "hopfield": -numpy.sum(basin.relu(g @ xi.T) ** 2) / 2}

    @basin.function(backend=backend)
    def loss(weights, x):
        return numpy.sum(block.force(x, **weights) ** 2)

    def energy(g, wq, wk, xi):
        q, k = (jnp.einsum("nd,hyd->nhy", g, w) for w in (wq, wk))
        scores = 0.5 * jnp.einsum("nhy,mhy->hnm", q, k)
        scores = jnp.where(jnp.eye(len(g), dtype=bool), -jnp.inf, scores)
        attention = -jax.nn.logsumexp(scores, axis=-1).sum() / 0.5
        return attention - (jax.nn.relu(g @ xi.T) ** 2).sum() / 2

    def theirs(weights):
        rest = [weights[name] for name in ("wq", "wk", "xi")]
        g = norm(x, weights["gamma"], weights["delta"])
        return (jax.grad(energy)(g, *rest) ** 2).sum()

    return lambda: loss.grad(weights, x), lambda: jax.grad(theirs)(weights)


@program
def language(draw, backend):
    """A causal energy of tokens that predicts the next one: the gradient of the cross entropy."""
    table, wq, wk = draw(11, 8), draw(2, 4, 8) / 2, draw(2, 4, 8) / 2
    text = numpy.random.default_rng(1).integers(11, size=13)

    @basin.energy(activation=basin.layernorm)
    def reader(g, wq, wk):
        q, k = (numpy.einsum("nd,hyd->nhy", g, w) for w in (wq, wk))
        return -numpy.sum(basin.attention_lse(q, k, 0.5, causal=True)) / 0.5

    @basin.function(backend=backend)
    def loss(table, wq, wk):
        end = reader.unroll(table[text[:-1]], steps=4, alpha=0.3, wq=wq, wk=wk)
        return numpy.mean(basin.cross_entropy(basin.layernorm(end) @ table.T, text[1:]))

    def energy(g, wq, wk):
        q, k = (jnp.einsum("nd,hyd->nhy", g, w) for w in (wq, wk))
        scores = 0.5 * jnp.einsum("nhy,mhy->hnm", q, k)
        scores = jnp.where(jnp.tri(len(g), dtype=bool), scores, -jnp.inf)
        return -jax.nn.logsumexp(scores, axis=-1).sum() / 0.5

    def theirs(table, wq, wk):
        end, _ = descend(lambda g: energy(g, wq, wk), table[text[:-1]], 4, 0.3, norm)
        logits = jax.nn.log_softmax(norm(end) @ table.T)
        return -logits[numpy.arange(12), text[1:]].mean()

    ours = functools.partial(loss.grad, table, wq, wk, wrt=["table", "wq", "wk"])
    return lambda: list(ours().values()), lambda: jax.grad(theirs, (0, 1, 2))(table, wq, wk)


@program
def masks(draw, backend):
    """Clamped neurons, in batches of changing sizes."""
    xi, batches = draw(20, 16), [draw(n, 16) for n in (3, 7, 4)]
    free = [numpy.arange(n * 16).reshape(n, 16) % 3 > 0 for n in (3, 7, 4)]

    @basin.energy(batched=True)
    def memory(g, xi):
        return numpy.sum(g**2, axis=-1) / 2 - basin.logsumexp(g @ xi.T)

    def ours():
        rows = zip(batches, free)
        return [
            memory.descend(x, xi, steps=9, alpha=0.2, mask=m, backend=backend).x for x, m in rows
        ]

    def energy(g):
        return (g**2).sum() / 2 - jax.nn.logsumexp(g @ xi.T, axis=-1).sum()

    def theirs():
        ends = []
        for x, m in zip(batches, free):
            for _ in range(9):
                x = x - 0.2 * m * jax.grad(energy)(x)
            ends.append(x)
        return ends

    return ours, theirs


@program
def several(draw, backend):
    """States of three kinds with an activation each, and the gradient through their descent."""
    x, net = {"v": draw(12), "h": draw(8), "t": draw(5)}, {"a": draw(12, 8), "b": draw(8, 5)}

    @basin.energy(activation={"v": None, "h": "softmax", "t": numpy.tanh})
    def layers(g, net):
        pairs = g["v"] @ net["a"] @ g["h"] + g["h"] @ net["b"] @ g["t"]
        return numpy.sum(g["v"] ** 2) / 2 - pairs

    @basin.function(backend=backend)
    def loss(net, x):
        end = layers.unroll(x, steps=7, alpha=0.2, net=net)
        return numpy.sum(end["v"] ** 2) + numpy.sum(end["t"])

    def ours():
        end = layers.descend(x, net, steps=7, alpha=0.2, backend=backend)
        return end.x, end.energy[:-1, 0], loss.grad(net, x)

    def energy(g, net):
        pairs = g["v"] @ net["a"] @ g["h"] + g["h"] @ net["b"] @ g["t"]
        return (g["v"] ** 2).sum() / 2 - pairs

    activation = {"v": lambda x: x, "h": jax.nn.softmax, "t": jnp.tanh}

    def run(net):
        return descend(lambda g: energy(g, net), x, 7, 0.2, activation)

    def theirs():
        def loss(net):
            end, _ = run(net)
            return (end["v"] ** 2).sum() + end["t"].sum()

        end, energies = run(net)
        return end, jnp.stack(energies), jax.grad(loss)(net)

    return ours, theirs


@program
def saving(draw, backend):
    """Ten steps of AdamW: five, saved and loaded, and five more."""
    x, y, first = draw(32, 6), draw(32, 2), draw(6, 2)
    options = {"rate": 0.05, "decay": 0.1, "beta2": 0.99, "backend": backend}
    path = f"/tmp/basin-stranger-{os.getpid()}.safetensors"

    def new():
        return basin.Trainer(error, {"w": first}, **options)

    def ours():
        trainer, losses = new(), []
        losses += trainer.fit([{"x": x, "y": y}] * 5)
        trainer.save(path)
        other = pickle.loads(pickle.dumps(new()))
        other.load(path)
        os.remove(path)
        return losses + other.fit([{"x": x, "y": y}] * 5), other.parameters()["w"]

    both = jax.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())

    def theirs():
        w, m, v, losses = first, 0.0, 0.0, []
        for t in range(1, 11):
            value, slope = both(w)
            m, v = 0.9 * m + 0.1 * slope, 0.99 * v + 0.01 * slope**2
            move = (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.99**t)) + 1e-8)
            w = w - 0.05 * (move + 0.1 * w)
            losses.append(value)
        return losses, w

    return ours, theirs


def error(w, x, y):
    return numpy.mean((x @ w - y) ** 2)


# ---- beside each other ----


@contextlib.contextmanager
def doubles():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def drawn(dtype):
    rng = numpy.random.default_rng(0)
    return lambda *shape: numpy.asarray(rng.normal(size=shape), dtype)


def compiled(theirs):
    """JAX's function under jit; its arrays are arguments, for XLA to compute nothing beforehand."""
    traced, structure = jax.make_jaxpr(theirs, return_shape=True)()
    run = jax.jit(lambda *arrays: jax.core.eval_jaxpr(traced.jaxpr, arrays))
    return lambda: jax.tree_util.tree_unflatten(
        jax.tree_util.tree_structure(structure), run(*traced.consts)
    )


def flat(tree):
    return [numpy.asarray(a, "f8").ravel() for a in jax.tree_util.tree_leaves(tree)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_is_that_of_jax(name):
    with doubles():
        ours, theirs = PROGRAMS[name](drawn("f8"), "ref")
        found, expected = (
            numpy.concatenate(flat(ours())),
            numpy.concatenate(flat(compiled(theirs)())),
        )
    assert len(found) == len(expected) and abs(expected).max() > 0.01
    numpy.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def main():
    """CPU milliseconds per call in single precision, after the first: the minimum of many."""
    for name, made in PROGRAMS.items():
        ours, theirs = made(drawn("f4"), "cpu")
        cells, jitted = [], compiled(theirs)
        for run in (ours, lambda: jax.block_until_ready(jitted())):  # noqa: B023
            run()
            times = []
            for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
                start = time.process_time()
                run()
                times.append(time.process_time() - start)
            cells.append(f"{1e3 * min(times):.3f}")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
