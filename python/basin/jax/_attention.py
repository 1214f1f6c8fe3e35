"""Energy attention as functions of JAX arrays: what callers give, as the operations take it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy

from basin._engine import eager as _eager
from basin._engine.attention import Problem, nodes_of
from basin.jax._ops import attention


@jax.tree_util.register_pytree_node_class
class Pairs(_eager.Pairs):
    """A list of pairs (query, key), the edges of a graph: attention runs only over these. It can
    be an argument of a function under jit.

    >>> from basin.jax import Pairs
    >>> Pairs([(0, 1), (1, 2)], 3, both_ways=True)
    Pairs(4 of 3 queries and 3 keys)
    """

    def __init__(
        self, edges: object, queries: int, keys: int | None = None, *, both_ways: bool = False,
        drop_self: bool = False, add_self: bool = False,
    ) -> None:  # fmt: skip
        """Arguments are those of basin.torch.Pairs."""
        edges = numpy.asarray(edges)
        self.packed = jnp.asarray(self._pack(edges, queries, keys, both_ways, drop_self, add_self))

    def edges(self) -> numpy.ndarray:
        """The pairs [P, 2] in the order that `scale` has: by query, then by key."""
        ends = nodes_of(attention.f, self.packed, self.queries, self.keys, self.count)
        return numpy.stack(ends, 1)

    def tree_flatten(self):
        return (self.packed,), (self.queries, self.keys, self.count)

    @classmethod
    def tree_unflatten(cls, sizes, leaves):
        made = object.__new__(cls)
        (made.packed,), (made.queries, made.keys, made.count) = leaves, sizes
        return made


attention.f.Pairs = Pairs


def _problem(q, k, *options):
    """With tokens of a type that is computed in."""
    q, k = (jnp.float32(x) if x.dtype == jnp.float16 else x for x in map(jnp.asarray, (q, k)))
    wide = jax.config.jax_default_matmul_precision not in ("tensorfloat32", "high")
    return Problem(attention, q, k, *options, 0 if wide else _eager.TF32), q, k


def attention_lse(
    q: jax.Array, k: jax.Array, beta: float | jax.Array, pairs: Pairs | str | None = None,
    scale: jax.Array | None = None, *, exclude_self: bool = False, layout: str = "hny",
) -> jax.Array:  # fmt: skip
    """log(sum over keys of exp(beta q . k scale)) for each query and head, [.., H, N]: arguments
    and derivatives are those of basin.torch.attention_lse.

    >>> import jax.numpy as jnp
    >>> from basin.jax import attention_lse
    >>> x = jnp.eye(3)[None]
    >>> print(attention_lse(x, x, 1.0, "causal").round(2))
    [[1.   1.31 1.55]]
    """
    problem, q, k = _problem(q, k, beta, pairs, scale, exclude_self, layout)
    return problem.lse(q, k)


def energy_attention(
    q: jax.Array, k: jax.Array, beta: float | jax.Array, pairs: Pairs | str | None = None,
    scale: jax.Array | None = None, *, exclude_self: bool = False, layout: str = "hny",
) -> jax.Array:  # fmt: skip
    """The energy of attention, -lse / beta for each query and head, [.., H, N]; the paper's energy
    is the sum of these. Arguments are those of `attention_lse`.

    >>> import jax.numpy as jnp
    >>> from basin.jax import energy_attention
    >>> x = jnp.eye(3)[None]
    >>> print(energy_attention(x, x, 1.0).sum().round(2))
    -4.65
    """
    problem, q, k = _problem(q, k, beta, pairs, scale, exclude_self, layout)
    return problem.energy(q, k)


def attention_force(
    q: jax.Array, k: jax.Array, beta: float | jax.Array, pairs: Pairs | str | None = None,
    scale: jax.Array | None = None, *, exclude_self: bool = False, layout: str = "hny",
) -> tuple[jax.Array, jax.Array]:  # fmt: skip
    """The force of `energy_attention`: minus the gradient of the summed energy with respect to q
    and k, like them, in one call.

    >>> import jax.numpy as jnp
    >>> from basin.jax import attention_force
    >>> x = jnp.eye(3)[None]
    >>> print(attention_force(x, x, 1.0)[0][0, 0].round(2))
    [0.58 0.21 0.21]
    """
    problem, q, k = _problem(q, k, beta, pairs, scale, exclude_self, layout)
    return problem.force(q, k)
