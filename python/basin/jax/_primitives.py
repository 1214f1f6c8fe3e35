"""Primitives of JAX with both modes of differentiation, made of plain functions.

A primitive has one axis of a batch at most: with `size`, results have it in front, and so have the
operands that `batched` names.
"""

import functools

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


def merged(operands, axes, size, batched):
    """Operands with one more axis of a batch, of which two become one; the new size, which of them
    have it, and how results become two axes again."""
    count = next(x.shape[d] for x, d in zip(operands, axes) if d is not None)
    operands = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, axes)]
    new = [d is not None for d in axes]
    if size is None:
        return operands, count, tuple(new), lambda x: x
    made = []
    for x, now, before in zip(operands, new, batched):
        if now and not before:
            x = jnp.broadcast_to(x[:, None], (count, size, *x.shape[1:]))
        if before and not now:
            x = jnp.broadcast_to(x[None], (count, *x.shape))
        made.append(x.reshape(count * size, *x.shape[2:]) if now or before else x)
    either = tuple(a or b for a, b in zip(new, batched))
    return made, count * size, either, lambda x: x.reshape(count, size, *x.shape[1:])


def summed(gradients, size, batched):
    """Cotangents of operands that entries of a batch share."""
    pairs = zip(gradients, batched)
    return [x.sum(0) if size is not None and x is not None and not b else x for x, b in pairs]


def is_zero(x):
    return type(x) is ad.Zero


def _primitive(name, function, shapes, lower=None):
    """A primitive that computes function(operands, **options) for each entry of a batch; shapes(
    operands, **options) are those of its results. lower(platform, *operands, **options), where it
    is given, computes all of a batch."""
    primitive = Primitive(name)
    primitive.multiple_results = True

    def whole(*operands, size, batched, **options):
        def one(*operands):
            return list(function(operands, **options))

        axes = tuple(0 if b else None for b in batched)
        return (one if size is None else jax.vmap(one, axes, axis_size=size))(*operands)

    @functools.lru_cache(maxsize=512)
    def jitted(options):
        return jax.jit(lambda *operands: primitive.bind(*operands, **dict(options)))

    def compute(*operands, **options):
        with jax.disable_jit(False):  # or it would come here again
            return jitted(tuple(options.items()))(*operands)

    def abstract(*operands, size, batched, **options):
        """Without tracing the function, which may be one that only its transpose is taken of."""
        lead, pairs = () if size is None else (size,), zip(operands, batched)
        one = [jax.ShapeDtypeStruct(x.shape[1:] if b else x.shape, x.dtype) for x, b in pairs]
        return [jax.core.ShapedArray((*lead, *x.shape), x.dtype) for x in shapes(one, **options)]

    primitive.def_impl(compute)
    primitive.def_abstract_eval(abstract)

    def batch(operands, axes, *, size, batched, **options):
        made, size, batched, back = merged(operands, axes, size, batched)
        results = [back(x) for x in primitive.bind(*made, size=size, batched=batched, **options)]
        return results, [0] * len(results)

    ways = {platform: functools.partial(lower, platform) for platform in ("cpu", "cuda") if lower}
    for platform, way in ways.items() or ((None, whole),):
        lowered = mlir.lower_fun(way, multiple_results=True)
        mlir.register_lowering(primitive, lowered, platform=platform)
    batching.primitive_batchers[primitive] = batch
    return primitive, whole


def _filled(there, values):
    """The values in the places that are there, None in others."""
    values = iter(values)
    return [next(values) if t else None for t in there]


def _some(values):
    return [x for x in values if x is not None]


def operation(name, shapes, compute, jvp, vjp, lower=None):
    """A function call(static, *operands) with derivatives: a list of results.

    Operands and results may be None, which is nothing. shapes(static, *operands) are those of the
    results. compute(static, *operands) is the results, jvp(static, operands, tangents) their
    tangents, vjp(static, operands, cotangents, needs) the cotangents of the operands, at least of
    those that are needed; None is zero there. lower(platform, *operands, size, batched, static,
    there) is in the place of compute. Further derivatives go through what jvp and vjp are made of.
    """

    def results(operands, static, there):
        return _some(compute(static, *_filled(there, operands)))

    def moved(operands, static, there, moves):
        count = len(moves)
        own, given = _filled(there, operands[:count]), _filled(moves, operands[count:])
        found = jvp(static, own, _filled(there, given))
        pairs = zip(found, shapes(static, *own))
        return [jnp.zeros(s.shape, s.dtype) if x is None else x for x, s in pairs if s is not None]

    def back(static, there, made, operands, cotangents, needs):
        own = _filled(there, operands)
        found = vjp(static, own, _filled(made, cotangents), _filled(there, needs))
        pairs = zip(own, found)
        return [jnp.zeros_like(x) if f is None else f for x, f in pairs if x is not None]

    def made(operands, static, there, moves=()):
        return _some(shapes(static, *_filled(there, operands[: sum(there)])))

    primitive, _ = _primitive(name, results, made, lower)
    linear, along = _primitive(f"{name}_jvp", moved, made)

    def derive(operands, tangents, *, size, batched, **options):
        moves = tuple(not is_zero(t) for t in tangents)
        every = (*batched, *(b for b, m in zip(batched, moves) if m))
        more = [t for t, m in zip(tangents, moves) if m]
        made = primitive.bind(*operands, size=size, batched=batched, **options)
        if not any(moves):
            return made, [ad.Zero.from_primal_value(x) for x in made]
        options.update(size=size, batched=every, moves=moves)
        return made, linear.bind(*operands, *more, **options)

    def derive_again(operands, tangents, **options):
        there = [i for i, t in enumerate(tangents) if not is_zero(t)]

        def some(*given):
            changed = dict(zip(there, given))
            return along(*(changed.get(i, x) for i, x in enumerate(operands)), **options)

        return jax.jvp(some, [operands[i] for i in there], [tangents[i] for i in there])

    def transpose(cotangents, *operands, size, batched, static, there, moves):
        count, inputs = len(moves), [i for i, m in enumerate(moves) if m]
        requested = [ad.is_undefined_primal(x) for x in operands[count:]]
        if all(map(is_zero, cotangents)):
            return [ad.Zero(x.aval) if ad.is_undefined_primal(x) else None for x in operands]
        given = [None if is_zero(c) else c for c in cotangents]
        needs = [i in inputs and requested[inputs.index(i)] for i in range(count)]

        def one(*values):
            own = _filled(there, values[:count])
            made = [s is not None for s in shapes(static, *own)]
            rest = _filled([c is not None for c in given], values[count:])
            found = back(static, there, made, values[:count], rest, needs)
            return [found[i] for i, b in zip(inputs, requested) if b]

        axes = [0 if b else None for b in batched[:count]] + [0] * len(_some(given))
        every = one if size is None else jax.vmap(one, axes, axis_size=size)
        found = iter(every(*operands[:count], *_some(given)))
        made = [None] * count + [next(found) if b else None for b in requested]
        return summed(made, size, batched)

    ad.primitive_jvps[primitive] = derive
    ad.primitive_jvps[linear] = derive_again
    ad.primitive_transposes[linear] = transpose

    def call(static, *operands):
        made = [x is not None for x in shapes(static, *operands)]
        there = tuple(x is not None for x in operands)
        given = _some(operands)
        options = {"size": None, "batched": (False,) * len(given), "static": static, "there": there}
        return _filled(made, primitive.bind(*given, **options))

    return call
