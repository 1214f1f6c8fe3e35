"""The operations of basin._engine.attention as JAX has them: custom calls."""

import ctypes
import math
import struct

import jax
import jax.numpy as jnp
import numpy

from basin._engine import cuda as _cuda
from basin._engine.attention import Attention
from basin._engine.eager import ONE_HEAD
from basin._engine.library import BasinError, ffi, lib
from basin.jax._primitives import operation

_TARGET = "basin_attention"


def _capsule(function):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(int(ffi.cast("intptr_t", function)), None, None)


def _register():
    for platform, name in {"cpu": b"attention_host", "CUDA": b"attention_cuda"}.items():
        handler = _capsule(lib.basin_xla_handler_named(name))
        jax.ffi.register_ffi_target(_TARGET, handler, platform=platform)
    if _cuda.has_driver():  # the handler opens the module by itself, at the first call
        _cuda.prepare()


_register()


class _Framework:
    """What basin._engine.attention asks for."""

    xp, name, Pairs = jnp, "jax", None
    EXPECTED = "float32, bfloat16 or float64"

    # ---- operations ----

    def operation(self, name, compute, shapes, jvp, vjp, _both):
        def structs(static, *operands):
            found = shapes(static, *operands)
            return [x if x is None else jax.ShapeDtypeStruct(*x) for x in found]

        return operation(f"basin_attention_{name}", structs, compute, jvp, vjp)

    def run(self, operation, static, results, operands):
        """The handler takes one axis of a batch, and those that vmap adds."""
        flags, count, factor, _ = static
        values, q = "v" in operation.operands, operands[0]
        axes = 1 if values else q.ndim - (2 if flags & ONE_HEAD else 3)
        batch = math.prod(q.shape[:axes])
        alone = {"beta", "pairs", "dbeta", "gbeta"}
        alone |= {"scale", "dscale", "gscale"} if operands[4] is not None else set()

        def flat(name, shape):
            return shape if values or name in alone else (batch, *shape[axes:])

        given = [x if x is None else x.reshape(flat(name, x.shape))
                 for name, x in zip(operation.operands, operands)]  # fmt: skip
        made = [(flat(name, x[0]), x[1]) for name, x in zip(operation.results, results) if x]
        there = [sum(1 << i for i, x in enumerate(some) if x is not None)
                 for some in (operands[3:], results)]  # fmt: skip
        job = [operation.number, flags, *there, 0, count]
        job += struct.unpack("=q", struct.pack("=d", factor)) if values else ()
        shapes = tuple(jax.ShapeDtypeStruct(*x) for x in made)
        call = jax.ffi.ffi_call(_TARGET, shapes, vmap_method="expand_dims")
        found = iter(call(*(x for x in given if x is not None), job=numpy.array(job, "i8")))
        found = [x if x is None else next(found).reshape(x[0]) for x in results]
        return [found[0] * factor] if operation.results == ["lse"] and factor != 1.0 else found

    def jvp(self, function, operands, tangents):
        return jax.jvp(function, operands, tangents)[1]

    def vjp(self, function, operands, cotangents):
        return jax.vjp(function, *operands)[1](cotangents)

    # ---- arrays ----

    def real(self, q):
        return jnp.dtype("f8" if q.dtype == jnp.float64 else "f4")

    def cast(self, x, dtype):
        return x.astype(dtype)

    def full(self, like, shape, value):
        return jnp.full(shape, value, self.real(like))

    def zeros(self, like, shape, dtype):
        return jnp.zeros(shape, dtype)

    def arange(self, count, like):
        return jnp.arange(count)

    def repeat(self, x, times):
        return jnp.repeat(x, times, 1)

    def top(self, scores):
        top = scores.max(-1, keepdims=True)
        return jnp.maximum(jax.lax.stop_gradient(top), -1e30)

    def sums_at(self, rows, x, count):
        return jnp.zeros((count, *x.shape[1:]), x.dtype).at[rows].add(x)

    def each(self, function, *operands):
        return jax.vmap(lambda *x: list(function(*(y[None] for y in x))))(*operands)

    # ---- what callers give ----

    def place(self, x):
        return str(x.dtype)

    def computes(self, q):
        return q.dtype in (jnp.float32, jnp.bfloat16, jnp.float64)

    def is_array(self, x):
        return isinstance(x, (jax.Array, numpy.ndarray))

    def is_dense(self, q):
        return True

    def is_learnt(self, beta):
        return isinstance(beta, jax.Array)

    def beta_of(self, beta, real, q):
        return jnp.asarray(beta, real)

    def check_beside(self, name, x, q):
        """There is one device."""

    def expanded(self, name, x, dtype, like, shape):
        try:
            return jnp.broadcast_to(jnp.asarray(x, dtype), shape)
        except ValueError:
            raise BasinError(
                f"{name} of shape {list(jnp.shape(x))}, expected {list(shape)} or one that "
                "broadcasts"
            ) from None


attention = Attention(_Framework())
