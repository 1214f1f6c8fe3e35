"""Energies as functions of JAX: any that is written in Python (function), and energy attention with
its own kernels.

>>> import jax
>>> from basin.jax import energy_attention
>>> q, k = jax.random.normal(jax.random.key(0), (2, 1, 4, 5, 8))
>>> def energy(q, k):
...     return energy_attention(q, k, 8**-0.5).sum()
>>> def loss(q, k):  # of the force: its gradient is of second order
...     return sum((slope**2).sum() for slope in jax.grad(energy, (0, 1))(q, k))
>>> jax.jit(jax.grad(loss))(q, k).shape
(1, 4, 5, 8)

Queries and keys are [.., H, N, Y], or [.., N, H, Y] with layout="nhy", which lists of pairs and a
beta per head take without a transposed copy. float32 and bfloat16 on cpu and cuda;
float64 on cpu. jit, vmap, grad of grad, jvp, hessian and jax.export work."""

try:
    import jax  # noqa: F401
    import jax.export  # noqa: F401
    import jax.ffi  # noqa: F401
except ImportError as missing:
    raise ImportError("basin.jax needs JAX 0.5 or later: pip install jax") from missing

from basin.jax._attention import Pairs, attention_force, attention_lse, energy_attention
from basin.jax._energy import export_checks, function
from basin.jax._values import attention

__all__ = [
    "Pairs", "attention", "attention_force", "attention_lse", "energy_attention", "export_checks",
    "function",
]  # fmt: skip
