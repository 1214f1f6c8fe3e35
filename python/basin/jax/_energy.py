"""Any energy of Basin's as operations of JAX: one operation runs a program (basin._programs), whose
derivatives along tangents ("j") and back from cotangents ("v") are programs."""

from __future__ import annotations

import functools
import json
import numbers
from typing import Any

import jax
import jax.numpy as jnp

from basin._engine import programs as _programs
from basin._engine.library import BasinError, ffi, lib
from basin._engine.plan import Backend, warn_not_converged
from basin._engine.trees import LEAF, parts_of, unflatten
from basin.energies import Energy
from basin.functions import Function
from basin.ham import ReadOnly
from basin.jax._ops import _capsule
from basin.jax._primitives import operation

_TARGET = "basin_plan"
jax.tree_util.register_pytree_node(
    ReadOnly, lambda tree: (tree.values(), tuple(tree)), lambda k, values: ReadOnly(zip(k, values))
)


def _shapes(key, *operands):
    program = _programs.find(key, tuple(x.shape for x in operands))
    return [jax.ShapeDtypeStruct(shape, operands[0].dtype) for shape in program.outputs]


def _lowered(platform, *operands, static, size, batched, there):
    key, dtype = static, operands[0].dtype
    if platform == "cuda" and dtype == jnp.float64:
        raise BasinError("float64 on cuda; expected float32 or a narrower type, or float64 on cpu")
    backend = "ref" if dtype == jnp.float64 else platform
    own = tuple(x.shape[1:] if b else x.shape for x, b in zip(operands, batched))
    front = () if size is None else (size,)
    results = [(*front, *shape) for shape in _programs.find(key, own).outputs]
    together = None
    if size:
        together = _programs.batched(key, own, _programs.mask(batched), size)
    if together:  # or one entry after the other, by the handler
        key, own = together, tuple(x.shape for x in operands)
    name = _name(backend, key, own)
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape in results]
    return jax.ffi.ffi_call(_TARGET, shapes)(*operands, plan=name)


def _jvp(key, operands, tangents):
    moved = _programs.mask([t is not None for t in tangents])
    return _call(f"{key}|j{moved}", *operands, *(t for t in tangents if t is not None))


def _vjp(key, operands, cotangents, needs):
    given = _programs.mask([c is not None for c in cotangents])
    back = f"{key}|v{given}.{_programs.mask(needs)}"
    found = iter(_call(back, *operands, *(c for c in cotangents if c is not None)))
    return [next(found) if need else None for need in needs]


_call = operation("basin_program", _shapes, None, _jvp, _vjp, lower=_lowered)


# ---- plans by name, for the handler ----

_sources = {}  # those that compiled functions name
_made = {}


def _name(backend, key, shapes):
    """A program, also for another process where its energy can be imported."""
    number, _, rest = key.partition(":")
    source = _sources[int(number)]
    address = _programs.address(source.what)
    where = [address, source.output, source.options] if address else int(number)
    try:
        return json.dumps([backend, where, rest, shapes])
    except TypeError:  # a mask among the options, for example
        return json.dumps([backend, int(number), rest, shapes])


def _find(name):
    backend, where, rest, shapes = json.loads(name)
    if isinstance(where, list):
        address, output, options = where
        what = _programs.imported(address)
        if not isinstance(what, (Energy, Function)):
            raise BasinError(f"{address} is not an energy here, but a compiled function needs it")
        source = _programs.source(what, output, **options)
        where = _keep(source).number
    elif where not in _sources:
        raise BasinError("a compiled function of an energy that cannot be imported here")
    program = _programs.find(f"{where}:{rest}", tuple(map(tuple, shapes)))
    return _programs.Running(program, _cuda() if backend == "cuda" else Backend(backend))


_cuda = functools.cache(functools.partial(Backend, "cuda"))  # only the handler runs it


@ffi.callback("basin_xla_find", error=ffi.NULL)
def _found(name):
    name = ffi.string(name).decode()
    if name not in _made:
        _made[name] = _find(name)
    plan = _made[name].plan
    if plan.graph.fixed_points:  # of which this is asked again after each run
        warn_not_converged(plan.store)
    return _made[name].pointer


def _register():
    handler = _capsule(lib.basin_xla_handler_named(b"plan"))
    for platform in ("cpu", "CUDA"):
        jax.ffi.register_ffi_target(_TARGET, handler, platform=platform)
    lib.basin_xla_set_find(_found)


_register()


def _keep(source):
    return _sources.setdefault(source.number, source)


# ---- what callers give, as programs take it ----


def _array(name, value, dtype):
    if not isinstance(value, (numbers.Real, list, tuple)) and not hasattr(value, "__array__"):
        raise BasinError(f"{name} is a {type(value).__name__}, expected an array or a number")
    if jnp.issubdtype(getattr(value, "dtype", dtype), jnp.complexfloating):
        raise BasinError(f"{name} of type {value.dtype}, expected real numbers")
    return jnp.asarray(value, dtype)


@functools.cache
def _node(treedef):
    """A type of containers that JAX knows: one for each treedef, made again by it."""

    def made(**values):
        return treedef.unflatten(values.values())

    return made


def _registered(tree):
    """Type, keys and values of a container that was registered with JAX; None of others."""
    if tree is None or isinstance(tree, (jax.Array, numbers.Number, dict, list, tuple, str)):
        return None
    values, treedef = jax.tree_util.tree_flatten(tree, is_leaf=lambda x: x is not tree)
    if jax.tree_util.treedef_is_leaf(treedef):
        return None
    return _node(treedef), tuple(f"_{i}" for i in range(len(values))), values


class Quantity(_programs.Quantity):
    """Value, force or descent of an energy as a function of arrays; see basin.jax.function."""

    def __init__(self, energy: Any, output: str, **options: Any) -> None:
        super().__init__(energy, output, **options)
        _keep(self._source).others = _registered

    def __call__(self, *args: Any, **parameters: Any) -> Any:
        source = self._source
        if source.is_energy and args and parts_of(args[0]) is None:
            _array("x", args[0], jnp.float32)
        key, names, leaves = source.flat(args, parameters, (jax.Array,), _registered)
        wide = any(getattr(value, "dtype", None) == jnp.float64 for value in leaves)
        dtype = jnp.float64 if wide and jax.config.jax_enable_x64 else jnp.float32
        operands = [_array(name, value, dtype) for name, value in zip(names, leaves)]
        for name, x in zip(names, operands):
            if not all(isinstance(n, int) for n in x.shape):
                raise BasinError(
                    f"{name} of shape {x.shape}, expected known lengths: export one each"
                )
        program = _programs.find(key, tuple(x.shape for x in operands))
        made = unflatten(program.structure, iter(_call(key, *operands)))
        if not source.is_energy or program.structure is not LEAF:
            return made
        own = getattr(leaves[0], "dtype", dtype)
        narrow = jnp.issubdtype(own, jnp.floating) and jnp.dtype(own).itemsize < 4
        return made.astype(own) if narrow and source.output != "value" else made


def function(energy: Any, output: str = "value", **options: Any) -> Quantity:
    """An energy (basin.energy), or a basin.function, as a function of JAX: f(x, **parameters).

    It computes `output`: "value", "force" (-dE/dg) or "descend" (tokens after `steps` steps x <- x
    - alpha dE/dg; options are those of Energy.unroll). jit, vmap, grad, jvp and whatever is made
    of them work, in any order. float32 on cpu and cuda; float64 on cpu, in plain loops; narrower
    types are computed in float32.

    >>> import basin.jax
    >>> bowl = basin.energy(lambda g, k: k * numpy.sum(g**2) / 2)
    >>> f = basin.jax.function(bowl)
    >>> print(f(jax.numpy.ones(2), k=3.0), jax.grad(f)(jax.numpy.ones(2), k=3.0))
    3.0 [3. 3.]
    >>> end = basin.jax.function(bowl, "descend", steps=2, alpha=0.5)
    >>> print(jax.jit(end)(jax.numpy.ones(2), 1.0))
    [0.25 0.25]
    """
    return Quantity(energy, output, **options)


def export_checks() -> list:
    """What jax.export needs to hear of the custom calls in this package: disabled_checks=...

    >>> import basin.jax
    >>> f = jax.jit(basin.jax.function(basin.energy(lambda g: numpy.sum(g**2))))
    >>> made = jax.export.export(f, disabled_checks=basin.jax.export_checks())(jax.numpy.ones(3))
    >>> print(made.call(jax.numpy.ones(3)))
    3.0
    """
    allow = jax.export.DisabledSafetyCheck.custom_call
    return [allow(name) for name in (_TARGET, "basin_attention")]
