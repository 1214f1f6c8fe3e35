"""The operations of basin._engine.attention as PyTorch has them: torch.ops.basin.attention_lse,
_force, _reverse, _values, _values_reverse and _values_second.

Operands are dense in the kernels' own order, or are copied. What is static follows them in a call:
flags, the length of a list, the factor of scores, bits of the results that are requested.
"""

import functools
import math

import torch
from torch._functorch.utils import enable_single_level_autograd_function

from basin._engine import eager as _eager
from basin._engine.attention import OPERATIONS, Attention, requested_of, sizes_with_values
from basin._engine.library import BasinError

_library = torch.library.Library("basin", "DEF")
_STATIC = "int flags, int count, float factor, int requested"
_TAGS = (torch.Tag.needs_fixed_stride_order,)


# ---- running ----

_NAMES = {torch.float64: "float64", torch.float32: "float32", torch.bfloat16: "bfloat16"}
_backends = {}


def _backend(q):
    """What runs on the tensor's device in its type."""
    key = "cuda" if q.is_cuda else "ref" if q.dtype == torch.float64 else torch.get_num_threads()
    if key not in _backends:
        _backends[key] = _eager.opened(*((key,) if isinstance(key, str) else ("cpu", key)))
    return _backends[key]


def _stream(index):
    """The stream that PyTorch queues on."""
    return _raw_stream(index) if _raw_stream else torch.cuda.current_stream(index).cuda_stream


_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # without an object around it
_current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)


def _launch(q, job, at):
    """Runs a job with these addresses on the device of q."""
    eager = _backend(q)
    if not q.is_cuda:
        job.run(eager, at)
        return
    index = q.get_device()
    if index != _current_device():
        with torch.cuda.device(index):
            _launch(q, job, at)
        return
    if index not in job.bytes:
        job.bytes[index] = job.workspace(eager, at)
    size = job.bytes[index]
    room = q.new_empty(size, dtype=torch.uint8) if size else None
    at.update(workspace=room.data_ptr() if size else 0, workspace_bytes=size, stream=_stream(index))
    job.run(eager, at)


@functools.lru_cache(maxsize=512)
def _job(number, q, k, wide, dtype, static, biases, names):
    """The job of operands of these shapes; with values these are `wide`."""
    flags, count, factor = static
    if wide is None:
        tokens = -2 if flags & _eager.ONE_HEAD else -3
        heads = 1 if flags & _eager.ONE_HEAD else q[-2]
        sizes = math.prod(q[:tokens]), q[tokens], k[tokens], heads, q[-1], count
        return _eager.Job(number, sizes, _NAMES[dtype], flags, names)
    batch, heads, queries, keys = sizes_with_values(flags, q, k)
    first = bool(flags & _eager.HEADS_FIRST)
    values = {"key_heads": k[1 if first else 2], "value_dim": wide}
    values.update(factor=factor, heads_first=first)
    for name, shape in zip(("bias_repeats", "abias_repeats"), biases):
        axes = zip(shape or (), (batch, heads, queries) if "pairs" not in names else (batch,))
        values[name] = [n != m for n, m in axes]
    sizes = batch, queries, keys, heads, q[3], count
    return _eager.Job(number, sizes, _NAMES[dtype], flags, names, values)


def _dense(x):
    """As kernels read it: dense, from a multiple of 16 bytes on."""
    x = x.contiguous()
    return x.clone() if x.data_ptr() % 16 else x


# ---- who watches ----

_below_autograd = torch._C._AutoDispatchBelowAutograd
_functorch = torch._C._functorch
_modes, _interpreter = torch._C._len_torch_dispatch_stack, _functorch.peek_interpreter_stack
_forward = torch.autograd.forward_ad
PLAIN = {torch.Tensor, torch.nn.Parameter}


def watched():
    """Whether a compiler, mode or transform waits for what is called or made."""
    return torch.compiler.is_compiling() or _modes() > 0 or _interpreter() is not None


def _is_direct(operands):
    """Whether the dispatcher would only pass a call on: nobody watches, operands have memory and
    no subclass. Two passes through it take longer than a small attention."""
    q, k = operands[:2]
    return not watched() and type(q) in PLAIN and type(k) in PLAIN and not q.is_meta


def _in_batches(operands):
    """Whether one stands for a batch of gradients (is_grads_batched, vectorize=True)."""
    is_one = torch._C._functorch.is_legacy_batchedtensor
    return any(isinstance(x, torch.Tensor) and is_one(x) for x in operands)


def _graded(operands):
    """Whether derivatives of what is computed from them are recorded."""
    if torch.is_grad_enabled():
        for x in operands:
            if isinstance(x, torch.Tensor) and x.requires_grad:
                return True
    return False


def _recorded(operands):
    """Whether derivatives are, or tangents go along."""
    return _forward._current_level >= 0 or _graded(operands)


# ---- forward mode ----


def _level_of_jvp():
    """The level of torch.func.jvp where that is the only transform; else None."""
    stack = _functorch.get_interpreter_stack()
    if len(stack) != 1 or stack[0].key() != _functorch.TransformType.Jvp or _modes() > 0:
        return None
    return stack[0].level()


def _in_forward_mode(moved, operands, level):
    """What torch.func.jvp (level None: torch.autograd.forward_ad) makes of a function that computes
    a result and its tangent, without what it does for functions that it knows nothing of."""

    def lowered(x):
        return x if x is None or level is None else _functorch._unwrap_for_grad(x, level)

    pairs = [(None, None) if x is None else _forward.unpack_dual(x) for x in operands]
    operands, tangents = ([lowered(x) for x in some] for some in zip(*pairs))
    layer = None if level is None else _functorch.pop_dynamic_layer_stack()
    try:
        out, tangent = moved(operands, tangents)
    finally:
        if layer is not None:
            _functorch.push_dynamic_layer_stack(layer)
    out = out if level is None else _functorch._wrap_for_grad(out, level)
    return out if tangent is None else _forward.make_dual(out, tangent)


def _primal(x):
    """x without its tangent of the innermost level of forward mode, below levels of vmap."""
    top = _interpreter()
    if x is None or top is None or top.key() != _functorch.TransformType.Vmap:
        return x if x is None else _forward.unpack_dual(x, level=0).primal
    x, axis = _functorch._unwrap_batched(x, top.level())
    layer = _functorch.pop_dynamic_layer_stack()
    try:
        x = _primal(x)
    finally:
        _functorch.push_dynamic_layer_stack(layer)
    return x if axis is None else _functorch._add_batch_dim(x, axis, top.level())


# ---- operations ----


def _for_transforms(function, keep):
    """As torch.func requires: what is kept is kept apart. PyTorch then looks at the signature of
    `forward` at every call, which takes as long as two calls of ours, so others do without."""

    class Transformed(function):
        generate_vmap_rule = True

        @staticmethod
        def forward(compute, *flat):
            return compute(*flat)

        @staticmethod
        def setup_context(ctx, inputs, output):
            keep(ctx, *inputs[1:])

    return Transformed


def _for_one_level(function):
    """As one level of torch.func records it, where the levels below are the dispatcher's."""
    names = ("forward", "setup_context", "backward", "jvp")
    parts = {name: staticmethod(getattr(function, name)) for name in names}
    return type(function.__name__, (torch.autograd.function._SingleLevelFunction,), parts)


def _function(count, several, jvp, vjp):
    """An autograd.Function of what computes, operands, and what is static; and what it keeps."""

    def keep(ctx, *flat):
        ctx.save_for_backward(*flat[:count])
        if _forward._current_level >= 0:
            ctx.save_for_forward(*flat[:count])
        ctx.set_materialize_grads(False)
        ctx.static = flat[count:]

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, compute, *flat):
            keep(ctx, *flat)
            return compute(*flat)

        @staticmethod
        def jvp(ctx, _, *tangents):
            # PyTorch switches forward mode off here, which the levels below may be in.
            with _forward._set_fwd_grad_enabled(True):
                own = [_primal(x) for x in ctx.saved_tensors]
                found = jvp(ctx.static, own, tangents[:count])
            return tuple(found) if several else found[0]

        @staticmethod
        def backward(ctx, *cotangents):
            needs = ctx.needs_input_grad
            if all(c is None for c in cotangents):
                return (None,) * len(needs)
            # Saved tensors are read once: a checkpoint computes them anew for each reading.
            found = vjp(ctx.static, ctx.saved_tensors, cotangents, needs[1 : 1 + count])
            return None, *found, None, None, None, None

    return Recorded, keep


def _flat(x):
    """[A, B, ..] as [A B, ..]; along other axes what repeats is not copied."""
    one = x
    for axis in range(2, x.ndim):
        one = one.narrow(axis, 0, 1) if one.shape[axis] > 1 and one.stride(axis) == 0 else one
    return one.flatten(0, 1).expand(-1, *x.shape[2:])


def _batched(operation, listed):
    """For vmap: the new axis becomes part of the batch. `listed`: a list's place among operands."""

    def rule(info, in_dims, *operands):
        size = info.batch_size
        batch = [n for axis, n in enumerate(operands[0].shape) if axis != in_dims[0]][0]

        def merged(i, x):
            if not isinstance(x, torch.Tensor) or i == listed:
                if in_dims[i] is not None:
                    raise NotImplementedError("attention along a batch of lists of pairs")
                return x
            d = in_dims[i]
            x = x.expand(size, *x.shape) if d is None else x.movedim(d, 0)
            # A bias may repeat along the batch.
            return _flat(x.expand(-1, batch, *x.shape[2:]) if x.shape[1] == 1 else x)

        out = operation(*(merged(i, x) for i, x in enumerate(operands)))
        several = isinstance(out, (tuple, list))
        out = [x.unflatten(0, (size, x.shape[0] // size)) if x.ndim > 1 else x.new_empty(size, 0)
               for x in (out if several else [out])]  # fmt: skip
        return (tuple(out), (0,) * len(out)) if several else (out[0], 0)

    return rule


def _define(name, shapes, compute):
    """The operation without derivatives: the dispatcher's, in which a tensor without elements is
    the place of a result that is not requested; and what computes it, None being such a place."""
    _, operands, results = OPERATIONS[name]
    count, several, full = len(operands), len(results) > 1, f"attention_{name}"
    given = ", ".join(f"Tensor{'?' * (i > 2)} {x}" for i, x in enumerate(operands))
    made = f"({', '.join(['Tensor'] * len(results))})" if several else "Tensor"
    _library.define(f"{full}({given}, {_STATIC}) -> {made}", tags=_TAGS)

    def computed(*flat):
        found = compute(flat[count:], *flat[:count])
        return tuple(found) if several else found[0]

    def filled(q, found):
        found = [q.new_empty(0) if x is None else x for x in found]
        return tuple(found) if several else found[0]

    def kernel(*flat):
        return filled(flat[0], compute(flat[count:], *flat[:count]))

    def fake(q, *flat):
        flat = q, *flat
        found = shapes(flat[count:], *flat[:count])
        return filled(q, [x and q.new_empty(x[0], dtype=x[1]) for x in found])

    for device in ("CPU", "CUDA"):
        _library.impl(full, kernel, device)
    torch.library.register_fake(f"basin::{full}", fake, lib=_library)
    dispatched = getattr(torch.ops.basin, full).default
    if name.startswith("values"):
        rule = _batched(dispatched, operands.index("pairs"))
        torch.library.register_vmap(f"basin::{full}", rule, lib=_library)
    return dispatched, computed


def operation(name, compute, shapes, jvp, vjp, both=None):
    """An operation as basin._engine.attention calls it, and its derivatives, registered for calls
    through the dispatcher. `both`, where given, computes the one result and its tangent."""
    dispatched, computed = _define(name, shapes, compute)
    _, names, results = OPERATIONS[name]
    count, several = len(names), len(results) > 1
    function, keep = _function(count, several, jvp, vjp)
    # What Function.apply does for transforms is not needed without one.
    of_func = _for_transforms(function, keep)
    single = _for_one_level(of_func)
    record = super(torch.autograd.Function, function).apply

    def below(*flat):
        """The numbers of a recorded call, by way of the dispatcher."""
        with _below_autograd():
            return dispatched(*flat)

    @torch.enable_grad()
    def further(*flat):
        """The levels below, which record for themselves."""
        return below(*flat)

    def by_dispatcher(*flat):
        level = _interpreter()  # compilers trace torch.func through the dispatcher
        if level is not None and level.key() == _functorch.TransformType.Jvp:
            raise NotImplementedError("torch.func.jvp of attention is not compiled, but called")
        if not _recorded(flat):
            return below(*flat)
        if level is None:
            return function.apply(below, *flat)
        with enable_single_level_autograd_function():
            return single.apply(further, *flat)

    def lean(*flat):
        out = below(*flat)
        return tuple(requested_of(out, flat[-1])) if several else out

    def seen(static, operands):
        plain = torch.compiler.is_compiling() or _interpreter() is None
        level = None if plain or both is None else _level_of_jvp()
        if level is not None:
            return _in_forward_mode(functools.partial(moved, static), operands, level)
        if plain:
            return dispatched(*operands, *static)
        # torch.func asks functions for their derivatives, not operations.
        return of_func.apply(lean, *operands, *static)

    def moved(static, operands, tangents):
        still, graded = all(t is None for t in tangents), _graded((*operands, *tangents))
        if not still and not graded and not _in_batches((*operands, *tangents)):
            (out,), (tangent,) = both(static, operands, tangents)
            return out, tangent
        out = (record if graded else _plainly)(computed, *operands, *static)
        return out, None if still else jvp(static, operands, tangents)[0]

    def direct(static, operands):
        if not _recorded(operands):
            return computed(*operands, *static)
        if both is not None and _forward._current_level >= 0 and not _graded(operands):
            # It records nothing that has tangents.
            return _in_forward_mode(functools.partial(moved, static), operands, None)
        return record(computed, *operands, *static)

    def call(static, *operands):
        out = None
        if _is_direct(operands):
            try:
                out = direct(static, operands)
            except RuntimeError:  # tensors without memory: the dispatcher takes them apart
                if not _in_batches(operands):
                    raise
        out = seen(static, operands) if out is None else out
        return requested_of(out, static[3]) if several else [out]

    _library.impl(f"attention_{name}", by_dispatcher, "Autograd")
    return call


def _plainly(compute, *flat):
    return compute(*flat)


# ---- what basin._engine.attention asks for ----


class _Framework:
    xp, name, Pairs = torch, "torch", None
    EXPECTED = "float32 or bfloat16 on cpu or cuda, or float64 on cpu"
    operation = staticmethod(operation)

    def run(self, operation, static, results, operands):
        number, names, named = operation
        q, k = operands[:2]
        at = {"workspace": 0, "workspace_bytes": 0, "stream": 0}
        given, wide, biases = [], None, ()
        for name, x in zip(names, operands):
            if x is not None:
                x = x if x.is_contiguous() and not x.data_ptr() % 16 else _dense(x)
                at[name] = x.data_ptr()
                given.append(x)  # kept until the call is made
        made = [None if x is None else q.new_empty(x[0], dtype=x[1]) for x in results]
        for name, x in zip(named, made):
            if x is not None:
                at[name] = x.data_ptr()
        if names[2] == "v":
            wide, some = operands[2].shape[3], (operands[3], *operands[9:10])
            biases = tuple(None if x is None else x.shape for x in some)
        key = q.shape, k.shape, wide, q.dtype, static[:3], biases, tuple(at)
        _launch(q, _job(number, *key), at)
        if named[0] == "lse" and static[2] != 1.0:
            made[0].mul_(static[2])
        return made

    def jvp(self, function, operands, tangents):
        own = [t.to(x.dtype) for t, x in zip(tangents, operands)]
        return torch.func.jvp(function, tuple(operands), tuple(own))[1]

    def vjp(self, function, operands, cotangents):
        # By torch.func, which differentiates at a level of its own: inside vmap of a transform
        # nothing requires a gradient of torch.autograd's. grad stays at that level, vjp does not.
        def total(*operands):
            return sum((x * c).sum() for x, c in zip(function(*operands), cotangents))

        return torch.func.grad(total, tuple(range(len(operands))))(*operands)

    # ---- arrays ----

    def real(self, q):
        return torch.float64 if q.dtype == torch.float64 else torch.float32

    def cast(self, x, dtype):
        return x.to(dtype)

    def full(self, like, shape, value):
        return constant(value, shape, self.real(like), like.device)

    def zeros(self, like, shape, dtype):
        return like.new_zeros(shape, dtype=dtype)

    def arange(self, count, like):
        return torch.arange(count, device=like.device)

    def repeat(self, x, times):
        return x.repeat_interleave(times, 1)

    def top(self, scores):
        return scores.amax(-1, keepdim=True).detach().clamp_min(-1e30)

    def sums_at(self, rows, x, count):
        return x.new_zeros(count, *x.shape[1:]).index_add(0, rows, x)

    def each(self, function, *operands):
        parts = [function(*(x[i : i + 1] for x in operands)) for i in range(len(operands[0]))]
        return [torch.stack(part) for part in zip(*parts)]

    # ---- what callers give ----

    def place(self, x):
        return f"{x.dtype} on {x.device}"

    def computes(self, q):
        return q.dtype in _NAMES and not (q.is_cuda and q.dtype == torch.float64)

    def is_array(self, x):
        return isinstance(x, torch.Tensor)

    def is_dense(self, q):
        return q.is_contiguous()

    def is_learnt(self, beta):
        return isinstance(beta, torch.Tensor) and beta.requires_grad and torch.is_grad_enabled()

    def beta_of(self, beta, real, q):
        if isinstance(beta, torch.Tensor):
            return beta.to(q.device, real)
        return constant(float(beta), (1,), real, q.device)

    def check_beside(self, name, x, q):
        if x.device != q.device:
            raise BasinError(f"{name} on {x.device}, queries on {q.device}; use .to()")

    def expanded(self, name, x, dtype, like, shape):
        x = torch.as_tensor(x)
        try:
            return x.to(like.device, dtype).expand(shape)
        except RuntimeError:
            raise BasinError(
                f"{name} of shape {list(x.shape)}, expected {list(shape)} or one that broadcasts"
            ) from None


# ---- constants ----


@functools.lru_cache(maxsize=64)
def _kept(value, shape, dtype, device):
    with torch.inference_mode(False):  # training may use it later
        made = torch.full(shape, value, dtype=dtype, device=device)
    if made.is_cuda:  # others may read it on other streams
        torch.cuda.current_stream(device).synchronize()
    return made


def is_captured(device):
    """Whether a CUDA graph is captured, whose memory holds nothing until it is replayed."""
    return torch.device(device).type == "cuda" and torch.cuda.is_current_stream_capturing()


def constant(value, shape, dtype, device):
    """A constant; eager calls make it once."""
    if watched() or is_captured(device):
        return torch.full(shape, value, dtype=dtype, device=device)
    return _kept(value, shape, dtype, device)


attention = Attention(_Framework())
