"""The golden case block_facts: a block whose pairs carry facts, on a graph with directions.

    python3 -m venv venv && venv/bin/pip install jax
    venv/bin/python tests/golden/facts.py tests/golden/block_facts.safetensors

The energy stands as docs/energies.md has it; forces are JAX's gradients of it in double, and gradients go through
the unrolled steps. Facts are listed pair by pair, by query and then by key, as `allowed` has them.
"""

import json
import struct
import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

N, D, H, Y, M, A = 11, 18, 3, 5, 23, 4
STEPS, ALPHA, EPS = 4, 0.1, 1e-5


def norm(p, x):
    centred = x - x.mean(-1, keepdims=True)
    return p["gamma"] * centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + EPS) + p["delta"]


def lagrangian(p, x):
    centred = x - x.mean(-1, keepdims=True)
    return (D * p["gamma"] * jnp.sqrt((centred**2).mean(-1) + EPS)).sum() + (p["delta"] * x).sum()


def attention(p, g, facts, query, key):
    """-sum over heads and queries C of 1 / beta log sum over keys B of exp(beta K_B . Q_C + e_CB . we)"""
    q, k = jnp.einsum("nd,hyd->nhy", g, p["wq"]), jnp.einsum("nd,hyd->nhy", g, p["wk"])
    score = p["beta"] * (q[query] * k[key]).sum(-1) + facts @ p["we"]  # [pairs, H]
    total = jnp.zeros((N, H)).at[query].add(jnp.exp(score))
    alone = total == 0
    return -(jnp.where(alone, 0, jnp.log(jnp.where(alone, 1, total))) / p["beta"]).sum()


def memories(p, g):
    return -0.5 * (jax.nn.relu(g @ p["xi"].T) ** 2).sum()


def main(path):
    rng = np.random.default_rng(15)
    draw = lambda *shape, by=1.0: by * rng.standard_normal(shape)
    p = dict(wk=draw(H, Y, D, by=0.3), wq=draw(H, Y, D, by=0.3), xi=draw(M, D, by=0.3), gamma=np.array(1.07),
             delta=draw(D, by=0.1), beta=Y**-0.5 * (1 + 0.2 * rng.random(H)), we=draw(A, H, by=0.7))
    x0, target = draw(N, D), draw(N, D)
    allowed = rng.random((N, N)) < 0.35
    np.fill_diagonal(allowed, False)
    allowed[4, :] = False  # one that looks at nobody
    query, key = np.nonzero(allowed)
    facts = draw(len(query), A)

    parts = lambda p, g, f: (attention(p, g, f, query, key), memories(p, g))

    def descend(p, x, f):
        trace = []
        for _ in range(STEPS):
            g = norm(p, x)
            trace.append(parts(p, g, f))
            x = x - ALPHA * jax.grad(lambda g: sum(parts(p, g, f)))(g)
        return x, jnp.array(trace + [parts(p, norm(p, x), f)])

    loss = lambda p, x, f: 0.5 * ((descend(p, x, f)[0] - target) ** 2).sum()
    end, energy = descend(p, x0, facts)
    g0 = norm(p, x0)
    by_p, by_x, by_f = jax.grad(loss, argnums=(0, 1, 2))(p, x0, facts)
    tensors = {f"in.{k}": v for k, v in p.items()}
    tensors |= {"in.x0": x0, "in.target": target, "in.facts": facts, "in.allowed": allowed.astype(np.int32)}
    tensors |= {"out.g0": g0, "out.lagrangian0": lagrangian(p, x0), "out.xT": end, "out.energy": energy,
                "out.loss": loss(p, x0, facts),
                "out.force_att0": -jax.grad(lambda g: parts(p, g, facts)[0])(g0),
                "out.force_hn0": -jax.grad(lambda g: parts(p, g, facts)[1])(g0)}
    tensors |= {f"grad.{k}": v for k, v in by_p.items()} | {"grad.x0": by_x, "grad.facts": by_f}
    save(path, tensors, dict(kind="relu", self_attention=False, attention=True, hopfield=True, steps=STEPS,
                             alpha=ALPHA, eps=EPS, case="block_facts", seed=15))


def save(path, tensors, meta):
    head, blobs, at = {"__metadata__": {k: json.dumps(v) for k, v in meta.items()}}, [], 0
    for name in sorted(tensors):
        a = np.asarray(tensors[name])
        a = a if a.dtype == np.int32 else a.astype(np.float64)
        head[name] = dict(dtype="I32" if a.dtype == np.int32 else "F64", shape=list(a.shape),
                          data_offsets=[at, at + a.nbytes])
        blobs.append(np.ascontiguousarray(a).tobytes())
        at += a.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


if __name__ == "__main__":
    main(sys.argv[1])
