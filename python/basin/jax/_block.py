"""The paper's block as functions of JAX: tokens descend the energy of attention and memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from basin._engine.library import BasinError
from basin.jax._attention import Pairs, attention_force, energy_attention


def energy_block_init(
    key: jax.Array, dim: int, heads: int = 12, head_dim: int = 64, memories: int | None = None,
    dtype: Any = jnp.float32,
) -> dict[str, jax.Array]:  # fmt: skip
    """First parameters of a block, a dict with Basin's own names and shapes: wq, wk [H, Y, D], xi
    [M, D], gamma [], delta [D]. `memories` is 4 dim where it is None."""
    q, k, m = jax.random.split(key, 3)
    shape = (heads, head_dim, dim)
    memories = 4 * dim if memories is None else memories
    return {
        "wq": 0.002 * jax.random.normal(q, shape, dtype),
        "wk": 0.002 * jax.random.normal(k, shape, dtype),
        "xi": 0.02 * jax.random.normal(m, (memories, dim), dtype),
        "gamma": jnp.ones((), dtype),
        "delta": jnp.zeros(dim, dtype),
    }


def _norm(params, x, epsilon):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    scaled = (x - mean) * jax.lax.rsqrt(variance + epsilon)
    return params["gamma"] * scaled + params["delta"]


def _heads(params, g):
    return (jnp.einsum("...nd,hyd->...nhy", g, params[name]) for name in ("wq", "wk"))


def _options(params, beta, pairs, exclude_self):
    beta = params.get("beta", params["wq"].shape[1] ** -0.5) if beta is None else beta
    exclude = exclude_self and (pairs is None or isinstance(pairs, str))
    return {"beta": beta, "pairs": pairs, "exclude_self": exclude, "layout": "nhy"}


def energy_block_value(
    params: Mapping[str, jax.Array], x: jax.Array, *, beta: float | jax.Array | None = None,
    pairs: Pairs | str | None = None, exclude_self: bool = True, epsilon: float = 1e-5,
) -> jax.Array:  # fmt: skip
    """The energy of tokens x [.., N, D], summed over all but the leading axes."""
    g = _norm(params, x, epsilon)
    q, k = _heads(params, g)
    attention = energy_attention(q, k, **_options(params, beta, pairs, exclude_self)).sum((-1, -2))
    hidden = jax.nn.relu(g @ params["xi"].T)
    return attention - (hidden**2).sum((-1, -2)) / 2


def _step(params, x, alpha, epsilon, options):
    g = _norm(params, x, epsilon)
    q, k = _heads(params, g)
    dq, dk = attention_force(q, k, **options)
    force = jnp.einsum("...nhy,hyd->...nd", dq, params["wq"])
    force += jnp.einsum("...nhy,hyd->...nd", dk, params["wk"])
    return x + alpha * (force + jax.nn.relu(g @ params["xi"].T) @ params["xi"])


def energy_block(
    params: Mapping[str, jax.Array], x: jax.Array, *, steps: int = 12, alpha: float = 0.1,
    beta: float | jax.Array | None = None, pairs: Pairs | str | None = None,
    exclude_self: bool = True, recompute: bool = False, epsilon: float = 1e-5,
) -> jax.Array:  # fmt: skip
    """Tokens x [.., N, D] after a descent of the block's energy: x <- x - alpha dE/dg, g = norm(x).

    `params` are those of `energy_block_init`, perhaps with "beta" [H], which is then learnt;
    `beta` is 1 / sqrt(head_dim) otherwise. With `recompute` a step's inner values are computed
    again in the backward pass: memory then grows by one array of tokens a step.

    >>> from basin.jax import energy_block, energy_block_init
    >>> params = energy_block_init(jax.random.key(0), dim=32, heads=4, head_dim=8)
    >>> energy_block(params, jax.random.normal(jax.random.key(1), (2, 5, 32)), steps=3).shape
    (2, 5, 32)
    """
    if x.ndim < 2 or x.shape[-1] != params["wq"].shape[-1]:
        raise BasinError(f"tokens {list(x.shape)}, expected [.., N, {params['wq'].shape[-1]}]")
    options = _options(params, beta, pairs, exclude_self)

    def step(params, x):
        return _step(params, x, alpha, epsilon, options)

    step = jax.checkpoint(step) if recompute else step
    for _ in range(steps):
        x = step(params, x)
    return x
