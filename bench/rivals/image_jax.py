"""The masked image model in JAX: a training step, or a forward pass, on random patches.

    JAX_PLATFORMS=cpu python bench/rivals/image_jax.py --batch 4
    python bench/rivals/image_jax.py --batch 256 --precision bf16

The energy is written and jax.grad gives the update. Defaults are the paper's sizes.
"""
import jax
import jax.numpy as jnp

from common import median_seconds, options, report


def layernorm(x, gamma, delta):
    centred = x - x.mean(-1, keepdims=True)
    variance = jnp.square(centred).mean(-1, keepdims=True)
    return gamma * centred * jax.lax.rsqrt(variance + 1e-5) + delta


def energy(g, w):  # g [B, N, D]; no token sees itself
    beta = w["wk"].shape[1] ** -0.5
    k, q = (jnp.einsum("bnd,hyd->bhny", g, w[name]) for name in ("wk", "wq"))
    scores = beta * jnp.einsum("bhqy,bhky->bhqk", q, k).astype(jnp.float32)
    scores = jnp.where(jnp.eye(g.shape[1], dtype=bool), -jnp.inf, scores)
    memory = jax.nn.relu((g @ w["xi"].T).astype(jnp.float32))
    return -jax.nn.logsumexp(scores, -1).sum() / beta - 0.5 * jnp.square(memory).sum()


def complete(w, patches, occluded, steps, alpha):  # [B, N, P], [B, N, 1]
    x = jnp.where(occluded, w["hidden"], patches @ w["enc"] + w["enc_b"]) + w["place"]
    for _ in range(steps):
        x = x - alpha * jax.grad(energy)(layernorm(x, w["gamma"], w["delta"]), w)
    return layernorm(x, w["gamma"], w["delta"]) @ w["dec"] + w["dec_b"]


def adamw(w, moments, gradient, t, rate=5e-4, beta1=0.9, beta2=0.99, decay=0.05):
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in jax.tree.leaves(gradient)))
    clip = 1 / jnp.maximum(norm, 1)

    def updated(w, m, v, g):
        m = beta1 * m + (1 - beta1) * clip * g
        v = beta2 * v + (1 - beta2) * jnp.square(clip * g)
        direction = m / (1 - beta1**t) / (jnp.sqrt(v / (1 - beta2**t)) + 1e-8)
        return w - rate * (direction + decay * w), m, v

    return {name: updated(w[name], *moments[name], gradient[name]) for name in w}


def first_weights(o):
    shapes = dict(wk=(o.heads, o.head_dim, o.dim), wq=(o.heads, o.head_dim, o.dim),
                  xi=(o.memories, o.dim), hidden=(o.dim,), place=(o.tokens, o.dim),
                  enc=(o.patch, o.dim), enc_b=(o.dim,), dec=(o.dim, o.patch), dec_b=(o.patch,))
    keys = jax.random.split(jax.random.key(0), len(shapes))
    w = {n: 0.02 * jax.random.normal(k, s) for k, (n, s) in zip(keys, shapes.items())}
    return w | dict(gamma=jnp.ones(()), delta=jnp.zeros(o.dim))


def main():
    parser = options(__doc__.split("\n")[0], batch=4, tokens=196, patch=768, dim=768, heads=12,
                     head_dim=64, memories=3072, steps=12, alpha=0.1, rounds=5)
    parser.add_argument("--mode", choices=["training", "forward"], default="training")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    o = parser.parse_args()
    jax.config.update("jax_default_matmul_precision",
                      "tensorfloat32" if o.precision == "tf32" else "highest")
    dtype = jnp.bfloat16 if o.precision == "bf16" else jnp.float32
    patches = jax.random.normal(jax.random.key(1), (o.batch, o.tokens, o.patch))
    occluded = jax.random.uniform(jax.random.key(2), (o.batch, o.tokens, 1)) < 0.5
    state = dict(w=first_weights(o), t=0)
    state["moments"] = {n: (jnp.zeros_like(a),) * 2 for n, a in state["w"].items()}

    @jax.jit
    def completed(w):
        w = jax.tree.map(lambda a: a.astype(dtype), w)
        return complete(w, patches.astype(dtype), occluded, o.steps, o.alpha).astype(jnp.float32)

    def error(w):
        return (jnp.square(completed(w) - patches) * occluded).sum() / (occluded.sum() * o.patch)

    @jax.jit
    def update(w, moments, t):
        return adamw(w, moments, jax.grad(error)(w), t)

    def train():
        state["t"] += 1
        new = update(state["w"], state["moments"], float(state["t"]))
        state["w"] = {n: a[0] for n, a in new.items()}
        state["moments"] = {n: a[1:] for n, a in new.items()}

    def infer():
        state["out"] = completed(state["w"])

    seconds = median_seconds(train if o.mode == "training" else infer,
                             lambda: jax.block_until_ready(state), o.rounds)
    report(rival="jax " + jax.__version__, what="image", mode=o.mode, precision=o.precision,
           device=jax.devices()[0].device_kind, batch=o.batch, steps=o.steps, seconds=seconds,
           images_per_s=o.batch / seconds)


if __name__ == "__main__":
    main()
