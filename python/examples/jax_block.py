"""The paper's block in JAX: tokens descend the energy of attention and memories. Parameters have
the names and shapes of basin.torch.EnergyBlock."""

import jax
import jax.numpy as jnp

from basin.jax import attention_force, energy_attention


def block_init(key, dim, heads=12, head_dim=64, memories=None):
    """wq, wk [H, Y, D], xi [M, D], gamma [], delta [D]."""
    q, k, m = jax.random.split(key, 3)
    shape = (heads, head_dim, dim)
    return {
        "wq": 0.002 * jax.random.normal(q, shape),
        "wk": 0.002 * jax.random.normal(k, shape),
        "xi": 0.02 * jax.random.normal(m, (memories or 4 * dim, dim)),
        "gamma": jnp.ones(()),
        "delta": jnp.zeros(dim),
    }


def norm(params, x, epsilon=1e-5):
    scaled = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + epsilon)
    return params["gamma"] * scaled + params["delta"]


def attended(function, params, g):
    q, k = (jnp.einsum("...nd,hyd->...nhy", g, params[name]) for name in ("wq", "wk"))
    return function(q, k, params["wq"].shape[1] ** -0.5, exclude_self=True, layout="nhy")


def block_energy(params, x):
    """The energy of tokens x [.., N, D], summed over all but the leading axes."""
    g = norm(params, x)
    hidden = jax.nn.relu(g @ params["xi"].T)
    return attended(energy_attention, params, g).sum((-1, -2)) - (hidden**2).sum((-1, -2)) / 2


def block(params, x, steps=12, alpha=0.1, recompute=False):
    """x <- x - alpha dE/dg, g = norm(x). With `recompute` a step's inner values are computed again
    in the backward pass."""

    def step(params, x):
        g = norm(params, x)
        dq, dk = attended(attention_force, params, g)
        force = jnp.einsum("...nhy,hyd->...nd", dq, params["wq"])
        force += jnp.einsum("...nhy,hyd->...nd", dk, params["wk"])
        return x + alpha * (force + jax.nn.relu(g @ params["xi"].T) @ params["xi"])

    step = jax.checkpoint(step) if recompute else step
    for _ in range(steps):
        x = step(params, x)
    return x


if __name__ == "__main__":
    params = block_init(jax.random.key(0), dim=32, heads=4, head_dim=8)
    x = jax.random.normal(jax.random.key(1), (2, 5, 32))
    print(bool((block_energy(params, block(params, x)) < block_energy(params, x)).all()))
