"""Any energy of Basin's as operations of PyTorch.

torch.ops.basin.program_I_O takes I tensors and the name of a program (basin._programs) and gives O
tensors. Its derivatives are such operations again.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import torch

from basin._engine import programs as _programs
from basin._engine.library import BasinError
from basin._engine.trees import LEAF, as_literal, parts_of, rebuilt, unflatten
from basin.functions import Function
from basin.torch._ops import _forward, _interpreter, _stream

_library = torch.library.Library("basin", "FRAGMENT")


# ---- running ----


def _shapes(tensors):
    return tuple(tuple(int(n) for n in x.shape) for x in tensors)


def _compute(key, tensors):
    """The program's results on the device of its operands."""
    program = _programs.find(key, _shapes(tensors))
    first = tensors[0]
    tensors = [x.contiguous() for x in tensors]
    results = [first.new_empty(shape) for shape in program.outputs]
    addresses = [x.data_ptr() for x in tensors], [x.data_ptr() for x in results]
    if first.is_cuda:
        device = first.get_device()
        with torch.cuda.device(device):  # plans run on the thread's device
            program.running("cuda", device).run(*addresses, stream=_stream(device))
    else:
        backend = "ref" if first.dtype == torch.float64 else "cpu"
        program.running(backend, 0, torch.get_num_threads()).run(*addresses)
    return results


# ---- operations, one for each number of operands and results ----


def _single(results):
    return results[0] if len(results) == 1 else tuple(results)


_operations = {}


def _define(ins, outs):
    """The operation for these numbers of operands and results, before compilers look for it."""
    if (ins, outs) in _operations:
        return
    name = f"program_{ins}_{outs}"
    given = "".join(f"Tensor a{i}, " for i in range(ins))
    made = "Tensor" if outs == 1 else f"({', '.join(['Tensor'] * outs)})"
    _library.define(f"{name}({given}str key) -> {made}")

    def compute(*operands):
        return _single(_compute(operands[-1], operands[:-1]))

    def fake(*operands):
        program = _programs.find(operands[-1], _shapes(operands[:-1]))
        return _single([operands[0].new_empty(shape) for shape in program.outputs])

    def keep(ctx, inputs, output):
        _keep(ctx, inputs[-1], inputs[:-1])

    def backward(ctx, *cotangents):
        return *_backward(ctx, ctx.needs_input_grad[:ins], cotangents), None

    def batched(info, in_dims, *operands):
        results = _looped(info.batch_size, operands[-1], operands[:-1], in_dims[:-1])
        return _single(results), _single([0] * len(results))

    for device in ("CPU", "CUDA"):
        _library.impl(name, compute, device)
    full = f"basin::{name}"
    torch.library.register_fake(full, fake, lib=_library)
    torch.library.register_autograd(full, backward, setup_context=keep, lib=_library)
    torch.library.register_vmap(full, batched, lib=_library)
    _operations[ins, outs] = getattr(torch.ops.basin, name).default


def _keep(ctx, key, tensors):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*tensors)
    ctx.key = key


def _backward(ctx, needs, cotangents):
    given, requested = _programs.mask([c is not None for c in cotangents]), _programs.mask(needs)
    if not given or not requested:
        return [None] * len(needs)
    operands = [*ctx.saved_tensors, *(c for c in cotangents if c is not None)]
    found = iter(
        call(
            f"{ctx.key}|v{given}.{requested}", operands, len(_programs.bits(requested, len(needs)))
        )
    )
    return [next(found) if need else None for need in needs]


def _looped(size, key, tensors, dims):
    """A batch as one program, or one call for each of its entries."""
    shapes = [[n for i, n in enumerate(x.shape) if i != d] for x, d in zip(tensors, dims)]
    shapes = tuple(tuple(map(int, shape)) for shape in shapes)
    outputs = _programs.find(key, shapes).outputs
    if size == 0:
        return [tensors[0].new_empty((0, *shape)) for shape in outputs]
    which = _programs.mask([d is not None for d in dims])
    together = _programs.batched(key, shapes, which, int(size))
    if together:
        front = [x if d is None else x.movedim(d, 0) for x, d in zip(tensors, dims)]
        return call(together, front, len(outputs))
    parts = []
    for i in range(size):
        entry = [x if d is None else x.select(d, i) for x, d in zip(tensors, dims)]
        parts.append(call(key, entry, len(outputs)))
    return [torch.stack(part) for part in zip(*parts)]


class _Transformed(torch.autograd.Function):
    """The same for torch.func and forward mode, which ask functions for derivatives."""

    @staticmethod
    def forward(key, outs, *tensors):
        return tuple(_dispatch(key, outs, tensors))

    @staticmethod
    def setup_context(ctx, inputs, output):
        key, _, *tensors = inputs
        _keep(ctx, key, tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx, *cotangents):
        return None, None, *_backward(ctx, ctx.needs_input_grad[2:], cotangents)

    @staticmethod
    def jvp(ctx, _, __, *tangents):
        moved = _programs.mask([t is not None for t in tangents])
        operands = [*ctx.saved_tensors, *(t for t in tangents if t is not None)]
        outs = len(_programs.find(ctx.key, _shapes(ctx.saved_tensors)).outputs)
        return tuple(call(f"{ctx.key}|j{moved}", operands, outs))

    @staticmethod
    def vmap(info, in_dims, key, outs, *tensors):
        results = _looped(info.batch_size, key, tensors, in_dims[2:])
        return tuple(results), (0,) * len(results)


def _dispatch(key, outs, tensors):
    _define(len(tensors), outs)
    made = _operations[len(tensors), outs](*tensors, key)
    return [made] if outs == 1 else list(made)


def call(key: str, tensors: list, outs: int = 1) -> list:
    """The results of a program on tensors of one type and device."""
    transformed = _interpreter() is not None or _forward._current_level >= 0
    if transformed and not torch.compiler.is_compiling():
        return list(_Transformed.apply(key, outs, *tensors))
    return _dispatch(key, outs, tensors)


# ---- what callers give, as programs take it ----


def _tensor(name, value, like):
    """An argument on the device of the others, in the type that computes."""
    if isinstance(value, numbers.Real):
        return torch.full((), float(value), dtype=like.dtype, device=like.device)
    if not isinstance(value, torch.Tensor):
        raise BasinError(f"{name} is a {type(value).__name__}, expected a tensor or a number")
    if value.device != like.device:
        raise BasinError(f"{name} on {value.device}, {like.device} has x; use .to()")
    if value.is_complex():
        raise BasinError(f"{name} of {value.dtype}, expected real numbers")
    return value.to(like.dtype)


def _check(name, x):
    if not isinstance(x, torch.Tensor):
        raise BasinError(f"{name} is a {type(x).__name__}, expected a tensor")
    if x.device.type not in ("cpu", "cuda", "meta"):
        raise BasinError(f"{name} on {x.device}, expected cpu or cuda")
    if x.is_complex() or (x.is_cuda and x.dtype == torch.float64):
        raise BasinError(
            f"{name} of {x.dtype} on {x.device}; expected float32 or narrower, or float64 on cpu"
        )


@torch.compiler.assume_constant_result
def _prepared(key, shapes):
    """The structure of a program's results and their number; the operation is defined then."""
    program = _programs.find(key, shapes)
    _define(len(shapes), len(program.outputs))
    return as_literal(program.structure), len(program.outputs)


class Quantity(_programs.Quantity):
    """Value, force or descent of an energy as a function of tensors; see basin.torch.value."""

    def __init__(self, energy: Any, output: str, **options: Any) -> None:
        super().__init__(energy, output, **options)
        self._alone = self._source.is_energy  # one result
        for count in range(1, len(self._source.names) + 1):
            _define(count, 1)

    def __call__(self, *args: Any, **parameters: Any) -> Any:
        if self._alone and args and parts_of(args[0]) is None:
            _check("x", args[0])
        key, names, leaves = self._source.flat(args, parameters, (torch.Tensor,))
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        x = leaves[0] if self._alone or not tensors else tensors[0]
        _check(names[0] if names else "the arguments", x)
        wide = not x.is_cuda and any([y.dtype == torch.float64 for y in tensors])
        own = x.to(torch.float64 if wide else torch.float32)
        operands = [_tensor(name, value, own) for name, value in zip(names, leaves)]
        structure, outs = LEAF, 1
        if not self._alone or "(" in key or len(operands) > len(self._source.names):
            structure, outs = _prepared(key, _shapes(operands))
        made = rebuilt(structure, iter(call(key, operands, outs)))
        if not self._alone or structure != LEAF:
            return made
        narrow = x.is_floating_point() and x.dtype.itemsize < 4
        return made.to(x.dtype) if narrow and self._source.output != "value" else made


def value(energy: Any) -> Quantity:
    """The value of an energy (basin.energy), or of a basin.function, as a function of tensors that
    can be differentiated any number of times: value(energy)(x, **parameters).

    float32 on cpu and cuda, on the tensors' own memory and stream; float64 on cpu, in plain loops,
    for gradcheck; narrower types are computed in float32.

    >>> from basin.torch import value
    >>> bowl = basin.energy(lambda g, k: k * numpy.sum(g**2) / 2)
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> value(bowl)(x, k=3.0).item()
    7.5
    >>> torch.autograd.grad(value(bowl)(x, k=3.0), x)
    (tensor([3., 6.]),)
    """
    return Quantity(energy, "value")


def force(energy: Any) -> Quantity:
    """The force of an energy, -dE/dg at the activations of x, likewise.

    >>> from basin.torch import force
    >>> force(basin.energy(lambda g: numpy.sum(g**4) / 4))(torch.tensor([1.0, 2.0]))
    tensor([-1., -8.])
    """
    return Quantity(energy, "force")


def unroll(energy: Any, steps: int = 12, alpha: Any = 0.1, **options: Any) -> Quantity:
    """Tokens x after `steps` steps x <- x - alpha dE/dg, likewise. The options are those of
    Energy.unroll: with `recompute` the backward pass computes steps again, and its memory grows
    by one tensor of tokens per step.

    >>> from basin.torch import unroll
    >>> bowl = basin.energy(lambda g: numpy.sum(g**2) / 2)
    >>> unroll(bowl, steps=2, alpha=0.5)(torch.tensor([1.0, 2.0]))
    tensor([0.2500, 0.5000])
    """
    return Quantity(energy, "descend", steps=steps, alpha=alpha, **options)


def fixed_point(energy: Any, **options: Any) -> Quantity:
    """Where dE/dg = 0, as the descent from tokens x finds it, with the gradients of that point; the
    options are those of Energy.fixed_point.

    >>> from basin.torch import fixed_point
    >>> root = fixed_point(basin.energy(lambda g, a: (g**4 / 4 - a * g).sum()), alpha=0.05)
    >>> root(torch.ones(1), a=torch.tensor([8.0])).round(decimals=3)
    tensor([2.])
    """
    return Quantity(energy, "fixed_point", **options)


class _Held(torch.nn.Module):
    """A container of tensors of a module's, whose names in a state_dict are those of the tree:
    net.w, net.layers.0. A dot in a key, which PyTorch does not take, becomes "_"."""

    def __init__(self, kind, keys, values):
        super().__init__()
        self._kind, self._keys, self._names, self._constants = kind, keys, [], {}
        for key, value in zip(keys, values):
            name = str(key).replace(".", "_")
            while hasattr(self, name) or name in self._names:
                name += "_"
            self._names.append(name)
            _hold(self, name, value, self._constants)

    def tree(self):
        """The container again."""
        values = [_held(self, name, self._constants) for name in self._names]
        children = tuple([LEAF] * len(values))
        return unflatten((self._kind, self._keys, children), iter(values))


def _hold(module, name, value, constants):
    """Registers a tensor, an array or a tree of them; numbers are kept apart."""
    parts = parts_of(value, (torch.Tensor,))
    if parts is not None:
        module.add_module(name, _Held(*parts))
    elif isinstance(value, numbers.Real):
        constants[name] = float(value)
    elif isinstance(value, torch.nn.Parameter):
        module.register_parameter(name, value)
    elif torch.is_tensor(value) and not value.is_floating_point():
        module.register_buffer(name, value)
    else:
        if not torch.is_tensor(value):  # NumPy's arrays are doubles, unless somebody cared
            value = torch.tensor(value, dtype=torch.get_default_dtype())
        value = value.detach().clone()
        module.register_parameter(name, torch.nn.Parameter(value))


def _held(module, name, constants):
    if name in constants:
        return constants[name]
    value = getattr(module, name)
    return value.tree() if isinstance(value, _Held) else value


class EnergyModule(torch.nn.Module):
    """An energy as a layer of PyTorch; see basin.torch.module."""

    def __init__(
        self, energy: Any, params: Mapping[str, Any] | None = None, output: str | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        output = output or ("value" if isinstance(energy, Function) else "descend")
        self.output = output
        self._call = Quantity(energy, output, **options)
        energy = self._call._source.what
        self._value = self._call if output == "value" else Quantity(energy, "value")
        self._force = None
        if not isinstance(energy, Function):
            self._force = self._call if output == "force" else Quantity(energy, "force")
        self._own, self.constants = [], {}
        for name, param in (params or {}).items():
            self._add(name, param)

    def _add(self, name, param):
        source = self._call._source
        if name not in source.names[source.is_energy :]:
            raise BasinError(f"{self._call!r} has no parameter {name!r}")
        if hasattr(self, name) and not isinstance(param, numbers.Real):
            raise BasinError(f"a parameter {name!r}, which is a name of torch.nn.Module's")
        self._own.append(name)
        _hold(self, name, param, self.constants)

    def extra_repr(self) -> str:
        return f"{self._call!r}"

    def _given(self, args, more):
        """All arguments by name: those of the call fill in what the module does not have."""
        source = self._call._source
        names = [name for name in source.names if name not in self._own or name in more]
        if source.is_energy and "x" in more:
            more = {source.names[0] if name == "x" else name: v for name, v in more.items()}
        free = [name for name in names if name not in more]
        if len(args) > len(free):
            raise BasinError(f"{len(args)} arguments of {self._call!r}, expected {', '.join(free)}")
        own = {n: _held(self, n, self.constants) for n in self._own if n not in more}
        return {**own, **more, **dict(zip(free, args))}

    def forward(self, *args: Any, **more: Any) -> Any:
        """The output for tokens x, or for the arguments of a function that the module does not
        have; parameters given here by name replace the module's own."""
        return self._call(**self._given(args, more))

    def value(self, *args: Any, **more: Any) -> Any:
        """The energy of tokens x."""
        return self._value(**self._given(args, more))

    def force(self, *args: Any, **more: Any) -> torch.Tensor:
        """-dE/dg at the activations of tokens x."""
        if self._force is None:
            raise BasinError(f"the force of {self._call!r}, expected an energy")
        return self._force(**self._given(args, more))


def module(
    energy: Any, params: Mapping[str, Any] | None = None, output: str | None = None, **options: Any
) -> EnergyModule:
    """An energy (basin.energy) or a basin.function as a torch.nn.Module.

    `params` are the energy's parameters by name: tensors and arrays become torch.nn.Parameters,
    which are trained, also those in dicts, lists and tuples; arrays get torch's default type,
    numbers stay what they are. Others can be given in the call, or keep their default. The module
    computes `output`: "descend" (of energies, where it is None: tokens after `steps` steps of size
    `alpha`; options are those of Energy.unroll, and noise is the same in every call), "value" or
    "force"; its methods value and force give these beside it. Of a function it computes the value.

    >>> @basin.energy(batched=True)
    ... def memory(g, xi):
    ...     return numpy.sum(g**2, axis=-1) / 2 - basin.logsumexp(g @ xi.T)
    >>> layer = basin.torch.module(memory, {"xi": torch.eye(3)}, steps=4, alpha=0.5)
    >>> layer(torch.zeros(2, 3)).shape, [name for name, _ in layer.named_parameters()]
    (torch.Size([2, 3]), ['xi'])
    """
    return EnergyModule(energy, params, output, **options)
