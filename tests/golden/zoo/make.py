"""The golden cases cet, et_stack, gated, gaussians and pairs: plain JAX in double.

    python3 -m venv venv && venv/bin/pip install jax
    venv/bin/python tests/golden/zoo/make.py tests/golden/zoo

Each energy stands as docs/zoo.md has it; forces are JAX's gradients of it, parameter gradients go through the unrolled
steps, nothing is differentiated by hand. Matrix roots are taken by singular values and eigenvalues, attention with
all scores in memory: nothing here is how the engine computes it. A loss is half the squared distance to in.target.
"""

import json
import pathlib
import struct
import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

lse = jax.scipy.special.logsumexp


def save(path, tensors, settings):
    header, data = {"__metadata__": {k: json.dumps(v) for k, v in settings.items()}}, b""
    for name, value in tensors.items():
        value = np.asarray(value, dtype="<f8")
        offsets = [len(data), len(data) + value.nbytes]
        header[name] = {"dtype": "F64", "shape": list(value.shape), "data_offsets": offsets}
        data += value.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def case(path, run, p, inputs, x0, target, **settings):
    """run(p, x) gives the end and the energies by step; p has gradients, inputs have none."""

    def loss(p, x):
        end, trace = run(p, x)
        return 0.5 * ((end - target) ** 2).sum(), (end, trace)

    (value, (end, trace)), (by_p, by_x) = jax.value_and_grad(loss, (0, 1), has_aux=True)(p, x0)
    tensors = {f"in.{k}": v for k, v in (p | inputs).items()} | {"in.x0": x0, "in.target": target}
    tensors |= {"out.xT": end, "out.energy": trace, "out.loss": value}
    tensors |= {f"grad.{k}": v for k, v in by_p.items()} | {"grad.x0": by_x}
    assert all(np.isfinite(v).all() for v in tensors.values())
    save(path, tensors, {"case": path.stem, **settings})
    print(f"{path}: loss {value:.6f}, energies {np.round(np.asarray(trace), 4)}")


def descend(energy, step, x, steps):
    trace = [energy(x)]
    for _ in range(steps):
        x = step(x)
        trace.append(energy(x))
    return x, jnp.stack(trace)


def norm(x, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)


def attention(g, wk, wq):
    """-sum over heads and queries C of 1 / beta log sum over keys B other than C of exp(beta K_B . Q_C)"""
    beta = wk.shape[1] ** -0.5
    score = beta * jnp.einsum("nhy,mhy->hnm", jnp.einsum("nd,hyd->nhy", g, wq), jnp.einsum("nd,hyd->nhy", g, wk))
    return -lse(jnp.where(jnp.eye(len(g), dtype=bool), -jnp.inf, score), -1).sum() / beta


def cet(path, draw, N=6, D=8, H=2, Y=4, M=10, P=5, steps=8, alpha=0.05):
    p = dict(e=draw(D, P, by=0.5), pos=draw(N, D, by=0.5), wk=draw(H, Y, D, by=0.5), wq=draw(H, Y, D, by=0.5),
             xi=draw(M, D, by=0.5), d=draw(P, D, by=0.3))
    v = draw(N, P)

    def energy(p, z):
        block = attention(z, p["wk"], p["wq"]) - lse(z @ p["xi"].T, -1).sum()
        return -(z * (v @ p["e"].T + p["pos"])).sum() + block - 0.5 * ((z @ p["d"].T) ** 2).sum()

    def run(p, x):
        step = lambda z: norm(z - alpha * jax.grad(energy, 1)(p, z), 0.0)
        return descend(lambda z: energy(p, z), step, norm(x, 0.0), steps)

    case(path, run, p, {"v": v}, draw(N, D), draw(N, D), steps=steps, alpha=alpha)


def et_stack(path, draw, N=7, D=9, H=2, Y=5, M=11, steps=5, alpha=0.1, eps=1e-5):
    p = dict(wk=draw(2, H, Y, D, by=0.4), wq=draw(2, H, Y, D, by=0.4), xi=draw(2, M, D, by=0.4),
             gamma=np.array([1.1, 0.8]), delta=draw(2, D, by=0.2))

    def block(p, i, g):
        return attention(g, p["wk"][i], p["wq"][i]) - 0.5 * (jax.nn.relu(g @ p["xi"][i].T) ** 2).sum()

    own = lambda p, i, x: p["gamma"][i] * norm(x, eps) + p["delta"][i]
    energy = lambda p, x: sum(block(p, i, own(p, i, x)) / p["gamma"][i] for i in (0, 1))

    def step(p, x):
        for i in (0, 1):
            x = x - alpha * jax.grad(block, 2)(p, i, own(p, i, x))
        return x

    run = lambda p, x: descend(lambda x: energy(p, x), lambda x: step(p, x), x, steps)
    case(path, run, p, {}, draw(N, D), draw(N, D), steps=steps, alpha=alpha, eps=eps)


def gated(path, draw, N=5, D=7, M=9, G=3, C=4, steps=6, alpha=0.2):
    p = dict(xi=draw(M, D), a=draw(M, G), w=draw(G, C), beta=np.array(1.3), gamma=np.array(1.7))
    u = draw(N, C)

    def of_gates(p, x, h):
        """By states: x . x - |x|^2 / 2 and s . h - L(h) are the neurons'."""
        s = jax.nn.softmax(p["gamma"] * h, -1)
        neurons = 0.5 * (x**2).sum() + (s * h).sum() - (lse(p["gamma"] * h, -1) / p["gamma"]).sum()
        return neurons + synapses(p, x, s)

    def synapses(p, x, s):
        z = p["beta"] * (x @ p["xi"].T + s @ p["a"].T)
        return -(s * (u @ p["w"].T)).sum() - lse(z, -1).sum() / p["beta"]

    def step(p, both):
        x, h = both[:, :D], both[:, D:]
        by_x, by_s = jax.grad(synapses, (1, 2))(p, x, jax.nn.softmax(p["gamma"] * h, -1))
        return both - alpha * (both + jnp.concatenate([by_x, by_s], -1))

    def run(p, x):
        return descend(lambda b: of_gates(p, b[:, :D], b[:, D:]), lambda b: step(p, b), x, steps)

    case(path, run, p, {"u": u}, draw(N, D + G), draw(N, D + G), steps=steps, alpha=alpha)


def root(s):
    values, vectors = jnp.linalg.eigh(s)
    return (vectors * jnp.sqrt(values)) @ vectors.T


def gaussians(path, draw, N=4, D=3, M=5, steps=3, alpha=1.0):
    factor = draw(M, D, D)
    p = dict(mu=draw(M, D), s=factor @ factor.transpose(0, 2, 1) + 0.3 * np.eye(D), beta=np.array(0.8))

    def distance(x, mu, s):
        """|m - mu|^2 + tr S + tr s - 2 tr (s^1/2 S s^1/2)^1/2"""
        own = x[D:].reshape(D, D)
        cross = jnp.linalg.eigvalsh(root(s) @ own @ own.T @ root(s))
        return ((x[:D] - mu) ** 2).sum() + (own**2).sum() + jnp.trace(s) - 2 * jnp.sqrt(cross).sum()

    def energy(p, x):
        even = (p["s"] + p["s"].transpose(0, 2, 1)) / 2
        w = jax.vmap(lambda x: jax.vmap(lambda mu, s: distance(x, mu, s))(p["mu"], even))(x)
        return -(lse(-0.5 * p["beta"] * w, -1) / p["beta"]).sum()

    step = lambda p, x: x - alpha * jax.grad(energy, 1)(p, x)
    run = lambda p, x: descend(lambda x: energy(p, x), lambda x: step(p, x), x, steps)
    case(path, run, p, {}, draw(N, D + D * D), draw(N, D + D * D), steps=steps, alpha=alpha)


def pairs(path, draw, n=4, D=5, H=2, Y=3, M=7, U=6, steps=6, alpha=0.1, eps=1e-5):
    p = dict(wk=draw(H, Y, D, by=0.5), wq=draw(H, Y, D, by=0.5), w=draw(H, D, by=0.5), xi=draw(M, D, by=0.5),
             a=draw(U, D, by=0.5), a_i=draw(U, D, by=0.5), a_j=draw(U, D, by=0.5), bias=draw(U, by=0.1))

    first, second = np.array([(i, j) for i in range(n) for j in range(n) if i != j]).T

    def energy(p, g, e):
        """Over the list of pairs of different nodes; g [n, D], e [n, n, D]."""
        q, k = jnp.einsum("id,hyd->ihy", g, p["wq"])[first], jnp.einsum("id,hyd->ihy", g, p["wk"])[second]
        e = e[first, second]
        score = ((q * k).sum(-1) * Y**-0.5 + e @ p["w"].T).reshape(n, n - 1, H)
        units = jax.nn.relu(e @ p["a"].T + g[first] @ p["a_i"].T + g[second] @ p["a_j"].T + p["bias"])
        return -lse(score, 1).sum() * Y**0.5 - 0.5 * ((jax.nn.relu(g @ p["xi"].T) ** 2).sum() + (units**2).sum())

    part = lambda x: (norm(x[:n], eps), norm(x[n:], eps).reshape(n, n, D))

    def step(p, x):
        by_g, by_e = jax.grad(energy, (1, 2))(p, *part(x))
        return jnp.concatenate([x[:n] - alpha * by_g, x[n:] - alpha * by_e.reshape(n * n, D)])

    run = lambda p, x: descend(lambda x: energy(p, *part(x)), lambda x: step(p, x), x, steps)
    case(path, run, p, {}, draw(n * (n + 1), D), draw(n * (n + 1), D), steps=steps, alpha=alpha, eps=eps)


def main(folder):
    for i, make in enumerate((cet, et_stack, gated, gaussians, pairs)):
        rng = np.random.default_rng([48, i])
        make(pathlib.Path(folder) / f"{make.__name__}.safetensors",
             lambda *shape, by=1.0, rng=rng: by * rng.standard_normal(shape))


if __name__ == "__main__":
    main(sys.argv[1])
