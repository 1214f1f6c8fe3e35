"""Energy attention as functions of JAX arrays: what callers give, as the operations take it."""

from __future__ import annotations

import math
import numbers

import jax
import jax.numpy as jnp
import numpy

from basin._engine import eager as _eager
from basin._engine.library import BasinError
from basin.jax._ops import force, lse


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
        (row, key, *_), _ = _eager.list_offsets(self.queries, self.keys, self.count)
        degree = numpy.diff(numpy.asarray(self.packed[row : row + self.queries + 1]))
        queries = numpy.repeat(numpy.arange(self.queries), degree)
        return numpy.stack([queries, self.packed[key : key + self.count]], 1)

    def tree_flatten(self):
        return (self.packed,), (self.queries, self.keys, self.count)

    @classmethod
    def tree_unflatten(cls, sizes, leaves):
        made = object.__new__(cls)
        (made.packed,), (made.queries, made.keys, made.count) = leaves, sizes
        return made


class _Problem:
    """The operands of one attention as the operations take them, and the way back."""

    def __init__(self, q, k, beta, pairs, scale, exclude_self, layout):
        if layout not in ("hny", "nhy"):
            raise BasinError(f"layout {layout!r}, expected 'hny' or 'nhy'")
        q, k = (jnp.float32(x) if x.dtype == jnp.float16 else x for x in map(jnp.asarray, (q, k)))
        tokens, heads = (-2, -3) if layout == "hny" else (-3, -2)
        _check_tokens(q, k, tokens)
        self.batch, self.heads = q.shape[:-3], q.shape[heads]
        self.queries, keys = q.shape[tokens], k.shape[tokens]
        self.real = jnp.float64 if q.dtype == jnp.float64 else jnp.float32
        _check_beta(beta)
        learns = isinstance(beta, jax.Array)
        self.beta = beta = jnp.asarray(beta, self.real)
        if beta.shape not in ((), (self.heads,)):
            raise BasinError(f"beta of shape {list(beta.shape)}, expected [] or [{self.heads}]")
        listed, count, flags = _pattern_of(pairs, exclude_self, self.queries, keys)
        # One beta and heads first: the heads are entries of the batch, [B H, N, Y]. Else [B, N, H,
        # Y].
        self.first = layout == "hny" and listed is None and beta.ndim == 0
        flags |= _eager.ONE_HEAD if self.first else 0
        self.swapped = layout == "hny" and not self.first
        self.layout = layout
        shape = (-1, count) if listed is not None else (-1, self.queries, keys)
        scale = self._scale(scale, shape, count, listed)
        beta = jnp.broadcast_to(beta, (1 if self.first else self.heads,))
        self.pattern = (flags, count, learns)
        self.operands = (self._laid(q), self._laid(k), beta, scale, listed)

    def lse(self):
        """[B, N, H], or of heads first [B H, N]"""
        q, k, *rest = self.operands
        if rest[2] is None:
            return lse(self.pattern, q, k, *rest)
        return self._each(lambda q, k: lse(self.pattern, q, k, *rest)[0], q, k)

    def force(self):
        """dq, dk [B, N, H, Y], or of heads first [B H, N, Y]"""
        q, k, *rest = self.operands
        w = jnp.broadcast_to(1 / self.operands[2], q.shape[:-1]).astype(self.real)
        if rest[2] is None:
            return force(self.pattern, q, k, *rest, w)[:2]
        return self._each(
            lambda q, k, w: tuple(x[0] for x in force(self.pattern, q, k, *rest, w)[:2]), q, k, w
        )

    def _each(self, function, *operands):
        """Over the batch of a list: kernels sum gradients of beta and scale over one entry."""
        return jax.vmap(function)(*(x[:, None] for x in operands))

    def _laid(self, x):
        if self.first:
            return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])
        x = jnp.swapaxes(x, -2, -3) if self.swapped else x
        return x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:])

    def _scale(self, scale, shape, count, listed):
        if scale is None:
            return None
        sizes = (self.heads, *shape[1:]) if self.layout == "hny" else (*shape[1:], self.heads)
        expected = (count, self.heads) if listed is not None else (*self.batch, *sizes)
        try:
            scale = jnp.broadcast_to(jnp.asarray(scale, self.real), expected)
        except ValueError:
            raise BasinError(
                f"scale of shape {list(jnp.shape(scale))}, expected {list(expected)} or one that "
                "broadcasts"
            ) from None
        if listed is not None:
            return scale
        if self.first:
            return scale.reshape(math.prod(scale.shape[:-2]), *shape[1:])
        scale = jnp.moveaxis(scale, -3, -1) if self.swapped else scale
        return scale.reshape(math.prod(scale.shape[:-3]), *scale.shape[-3:])

    def rows(self, x):
        """What lse() gave, in the caller's shape."""
        if self.first:
            return x.reshape(*self.batch, self.heads, self.queries)
        x = x.reshape(*self.batch, *x.shape[1:])
        return jnp.swapaxes(x, -1, -2) if self.swapped else x

    def tokens(self, x):
        """What force() gave, in the caller's shape."""
        if self.first:
            return x.reshape(*self.batch, self.heads, *x.shape[1:])
        x = x.reshape(*self.batch, *x.shape[1:])
        return jnp.swapaxes(x, -2, -3) if self.swapped else x

    def beta_of_rows(self):
        """beta as it divides rows of the caller's shape."""
        return self.beta[:, None] if self.beta.ndim and self.layout == "hny" else self.beta


def _check_beta(beta):
    """A number must not be 0; of arrays only shapes are known."""
    if isinstance(beta, (jax.Array, numpy.ndarray)):
        return
    if not isinstance(beta, numbers.Real):
        raise BasinError(f"beta is {beta!r}, expected a number or an array [H]")
    if beta == 0:
        raise BasinError("beta is 0, expected another number: energies are divided by it")


def _check_tokens(q, k, tokens):
    same = list(q.shape), list(k.shape)
    if q.ndim >= 3 and q.ndim == k.ndim:
        same[0][tokens] = same[1][tokens] = 0
    if q.ndim < 3 or same[0] != same[1]:
        raise BasinError(
            f"queries {list(q.shape)} and keys {list(k.shape)}, expected three axes or more that "
            "differ only in tokens"
        )
    if q.dtype != k.dtype:
        raise BasinError(f"queries are {q.dtype}, keys {k.dtype}")
    if q.dtype not in (jnp.float32, jnp.bfloat16, jnp.float64):
        raise BasinError(f"queries of {q.dtype}, expected float32, bfloat16 or float64")


def _pattern_of(pairs, exclude_self, queries, keys):
    """The packed list, its length, and flags."""
    wide = jax.config.jax_default_matmul_precision not in ("tensorfloat32", "high")
    flags = 0 if wide else _eager.TF32
    found = _eager.pattern_of(pairs, Pairs, "jax", exclude_self, queries, keys, flags)
    return None if found[0] is None else found[0].packed, *found[1:]


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
    problem = _Problem(q, k, beta, pairs, scale, exclude_self, layout)
    return problem.rows(problem.lse())


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
    problem = _Problem(q, k, beta, pairs, scale, exclude_self, layout)
    return -problem.rows(problem.lse()) / problem.beta_of_rows()


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
    problem = _Problem(q, k, beta, pairs, scale, exclude_self, layout)
    dq, dk = problem.force()
    return problem.tokens(dq), problem.tokens(dk)
