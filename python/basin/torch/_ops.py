"""The three operations as PyTorch sees them: torch.ops.basin.attention_lse, _force and _reverse,
each the derivative of the one before.

Logical shapes are q [B, H, Nq, Y], k [B, H, Nk, Y], beta [1] or [H], scale [B, H, Nq, Nk] (of a
list: [pairs, H]), w and lse [B, H, Nq]. Where heads lie in memory is read from the strides: [B, N,
H, Y] is the kernels' own order; [B, H, N, Y] is that of B H sequences with one head, if they share
one beta.
"""

import functools

import torch
from torch._functorch.utils import enable_single_level_autograd_function

from basin._engine import eager as _eager

DQ, DK, DBETA, DSCALE = 1, 2, 4, 8  # results of the force that are requested
GQ, GK, GW, GBETA, GSCALE = 1, 2, 4, 8, 16  # of its reverse

_SHARED = "Tensor q, Tensor k, Tensor beta, Tensor? scale, Tensor? pairs, int count, int flags"
_library = torch.library.Library("basin", "DEF")
_tags = {"tags": (torch.Tag.needs_fixed_stride_order,)}
_library.define(f"attention_lse({_SHARED}) -> Tensor", **_tags)
_library.define(
    f"attention_force({_SHARED}, Tensor w, int requested) -> (Tensor, Tensor, Tensor, Tensor)",
    **_tags,
)
_library.define(
    f"attention_reverse({_SHARED}, Tensor w, Tensor? a, Tensor? b, int requested) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    **_tags,
)


# ---- how operands lie ----

_DENSE = torch.contiguous_format


def _heads_first(q, beta, scale, pairs):
    """Whether the heads are entries of the batch to the kernels."""
    return pairs is None and beta.numel() == 1 and (scale is not None or q.is_contiguous())


def _laid(x, first):
    """x [B, H, N, ..] in the kernels' order, dense."""
    x = (x if first else x.transpose(1, 2)).contiguous()
    return x.clone() if x.data_ptr() % 16 else x


def _new(like, shape, first, dtype=None):
    """A result [B, H, N, ..], in memory as the kernels write it."""
    if first:
        return like.new_empty(shape, dtype=dtype)
    batch, heads, tokens, *rest = shape
    return like.new_empty((batch, tokens, heads, *rest), dtype=dtype).transpose(1, 2)


def _new_like(x, first):
    return torch.empty_like(x, memory_format=_DENSE) if first else _new(x, x.shape, first)


def _new_scale(scale, first, pairs):
    if first or pairs is not None:
        return torch.empty_like(scale, memory_format=_DENSE)
    batch, heads, queries, keys = scale.shape
    return scale.new_empty((batch, queries, keys, heads)).permute(0, 3, 1, 2)


# ---- running ----

_NAMES = {torch.float64: "float64", torch.float32: "float32", torch.bfloat16: "bfloat16"}
_backends = {}


def _backend(q):
    """What runs on the tensor's device in its type."""
    key = "cuda" if q.is_cuda else "ref" if q.dtype == torch.float64 else torch.get_num_threads()
    if key not in _backends:
        _backends[key] = _eager.opened(*((key,) if isinstance(key, str) else ("cpu", key)))
    return _backends[key]


def _real(q):
    """The type of what is not q or k; None: theirs."""
    return torch.float32 if q.dtype == torch.bfloat16 else None


def _stream(index):
    """The stream that PyTorch queues on."""
    return _raw_stream(index) if _raw_stream else torch.cuda.current_stream(index).cuda_stream


_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # without an object around it
_current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)


def launch(q, operation, head, names, addresses, sizes):
    """Runs a job on the device of q; `sizes` keeps those of workspaces."""
    eager = _backend(q)
    if not q.is_cuda:
        _eager.run(eager, operation, head, names, addresses)
        return
    index = q.get_device()
    if index != _current_device():
        with torch.cuda.device(index):
            launch(q, operation, head, names, addresses, sizes)
        return
    key = (index, operation, names)
    size = sizes.get(key)
    if size is None:
        size = sizes[key] = _eager.workspace_bytes(eager, operation, head, names, addresses)
    room = q.new_empty(size, dtype=torch.uint8) if size else None
    addresses += (room.data_ptr() if size else 0, size, _stream(index))
    _eager.run(eager, operation, head, names + _WORK, addresses)


class _Form:
    """Attention of one shape, type and pattern, as jobs have it."""

    __slots__ = ("bytes", "first", "head", "sizes")

    def __init__(self, shape, keys, dtype, first, count, flags):
        batch, heads, queries, width = shape
        if first:
            batch, heads = batch * heads, 1
        self.first, self.sizes = first, (batch, queries, keys, heads, width, count)
        self.head = _eager.head(_NAMES[dtype], self.sizes, flags)
        self.bytes = {}  # of workspaces

    def beta_of(self, beta):
        """As the kernels read it, one number a head."""
        return beta if beta.numel() == self.sizes[3] else beta.expand(self.sizes[3]).contiguous()

    def run(self, operation, pairs, operands, results):
        """Operands and results by their names in a job, in its order; None: absent."""
        first, names, addresses, kept = self.first, [], [], []
        if pairs is not None:
            names += _eager.LIST
            addresses += _eager.list_addresses(pairs.data_ptr(), self.sizes)
        for name, x in operands.items():
            if x is None:
                continue
            at = x.data_ptr()
            if not (first and x.is_contiguous()) or at % 16:
                x = x if name in _AS_THEY_ARE else _laid(x, first)
                at = x.data_ptr()
                kept.append(x)  # until the call is made
            names.append(name)
            addresses.append(at)
        for name, x in results.items():
            if x is not None:
                names.append(name)
                addresses.append(x.data_ptr())
        launch(operands["q"], operation, self.head, tuple(names), addresses, self.bytes)


_AS_THEY_ARE = {"beta", "scale"}
_WORK = ("workspace", "workspace_bytes", "stream")
_formed = functools.lru_cache(maxsize=256)(_Form)


def _form(q, k, beta, scale, pairs, count, flags):
    first = _heads_first(q, beta, scale, pairs)
    return _formed(q.shape, k.shape[2], q.dtype, first, count, flags)


def _operands(form, q, k, beta, scale, pairs):
    if scale is not None:
        listed = form.first or pairs is not None
        scale = (scale if listed else scale.permute(0, 2, 3, 1)).contiguous()
    return {"q": q, "k": k, "beta": form.beta_of(beta), "scale": scale}


def _lse(q, k, beta, scale, pairs, count, flags):
    form = _form(q, k, beta, scale, pairs, count, flags)
    out = _new(q, q.shape[:3], form.first, _real(q))
    form.run(_eager.LSE, pairs, _operands(form, q, k, beta, scale, pairs), {"lse": out})
    return out


def _filled(function):
    """As the dispatcher requires: tensors in place of None."""

    def filled(q, *operands):
        return tuple(q.new_empty(0) if x is None else x for x in function(q, *operands))

    return filled


def _results(q, k, beta, scale, pairs, requested, first):
    """Tensors for what is requested of the force, else None; beta is what the kernels read."""
    return (
        _new_like(q, first) if requested & DQ else None,
        _new_like(k, first) if requested & DK else None,
        torch.empty_like(beta, memory_format=_DENSE) if requested & DBETA else None,
        _new_scale(scale, first, pairs) if requested & DSCALE else None,
    )


def _results_of_reverse(q, k, beta, scale, pairs, requested, first):
    like_force = requested & (GQ | GK) | (requested & (GBETA | GSCALE)) >> 1
    gq, gk, gbeta, gscale = _results(q, k, beta, scale, pairs, like_force, first)
    gw = _new(q, q.shape[:3], first, _real(q)) if requested & GW else None
    return gq, gk, gw, gbeta, gscale


def _summed(gradient, beta):
    """Gradients of each head's beta, as beta itself is."""
    if gradient is None or gradient.numel() <= beta.numel():
        return gradient
    return gradient.sum().reshape(1)


def _force(q, k, beta, scale, pairs, count, flags, w, requested):
    form = _form(q, k, beta, scale, pairs, count, flags)
    operands = _operands(form, q, k, beta, scale, pairs)
    operands["w"] = w
    results = _results(q, k, operands["beta"], scale, pairs, requested, form.first)
    form.run(_eager.FORCE, pairs, operands, dict(zip(("dq", "dk", "dbeta", "dscale"), results)))
    dq, dk, dbeta, dscale = results
    return dq, dk, _summed(dbeta, beta), dscale


def _reverse(q, k, beta, scale, pairs, count, flags, w, a, b, requested):
    form = _form(q, k, beta, scale, pairs, count, flags)
    operands = _operands(form, q, k, beta, scale, pairs)
    operands["w"], operands["a"], operands["b"] = w, a, b
    results = _results_of_reverse(q, k, operands["beta"], scale, pairs, requested, form.first)
    names = ("gq", "gk", "gw", "gbeta", "gscale")
    form.run(_eager.REVERSE, pairs, operands, dict(zip(names, results)))
    gq, gk, gw, gbeta, gscale = results
    return gq, gk, gw, _summed(gbeta, beta), gscale


for _name, _function in {
    "attention_lse": _lse, "attention_force": _filled(_force),
    "attention_reverse": _filled(_reverse),
}.items():  # fmt: skip
    _library.impl(_name, _function, "CPU")
    _library.impl(_name, _function, "CUDA")


# ---- what compilers ask: shapes and strides without numbers ----


@torch.library.register_fake("basin::attention_lse")
def _fake_lse(q, k, beta, scale, pairs, count, flags):
    return _new(q, q.shape[:3], _heads_first(q, beta, scale, pairs), _real(q))


@torch.library.register_fake("basin::attention_force")
@_filled
def _fake_force(q, k, beta, scale, pairs, count, flags, w, requested):
    return _results(q, k, beta, scale, pairs, requested, _heads_first(q, beta, scale, pairs))


@torch.library.register_fake("basin::attention_reverse")
@_filled
def _fake_reverse(q, k, beta, scale, pairs, count, flags, w, a, b, requested):
    return _results_of_reverse(
        q, k, beta, scale, pairs, requested, _heads_first(q, beta, scale, pairs)
    )


# ---- derivatives ----


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


def graded(operands):
    """Whether derivatives of what is computed from them are recorded."""
    if torch.is_grad_enabled():
        for x in operands:
            if isinstance(x, torch.Tensor) and x.requires_grad:
                return True
    return False


def _recorded(operands):
    """Whether derivatives are, or tangents go along."""
    return _forward._current_level >= 0 or graded(operands)


def _level_of_jvp():
    """The level of torch.func.jvp where that is the only transform; else None."""
    stack = _functorch.get_interpreter_stack()
    if len(stack) != 1 or stack[0].key() != _functorch.TransformType.Jvp or _modes() > 0:
        return None
    return stack[0].level()


def _in_forward_mode(moved, operands, level):
    """What torch.func.jvp (level None: torch.autograd.forward_ad) makes of a function that computes
    results and tangents, without what it does for functions that it knows nothing of."""

    def lowered(x):
        return x if x is None or level is None else _functorch._unwrap_for_grad(x, level)

    pairs = [
        _forward.unpack_dual(x) if isinstance(x, torch.Tensor) else (x, None) for x in operands
    ]
    operands = [lowered(x) if isinstance(x, torch.Tensor) else x for x, _ in pairs]
    tangents = [lowered(t) for _, t in pairs[:4]]
    layer = None if level is None else _functorch.pop_dynamic_layer_stack()
    try:
        out, tangent = moved(*operands, *tangents)
    finally:
        if layer is not None:
            _functorch.push_dynamic_layer_stack(layer)
    out = out if level is None else _functorch._wrap_for_grad(out, level)
    return out if tangent is None else _forward.make_dual(out, tangent)


def _dispatched(name):
    """The numbers of a recorded call, by way of the dispatcher."""
    operation = getattr(torch.ops.basin, name).default

    def compute(*operands):
        with _below_autograd():
            return operation(*operands)

    return compute


def _scaled(x, factor):
    return x if factor is None else x * factor


def _requested(results, bits):
    """Results that were asked for; None in the place of others."""
    return [x if bits >> i & 1 else None for i, x in enumerate(results)]


@functools.cache
def _bits(needs):
    """Of those gradients that are needed."""
    return sum(1 << i for i, need in enumerate(needs) if need)


def _keep(ctx, *operands):
    ctx.save_for_backward(*operands)
    if _forward._current_level >= 0:
        ctx.save_for_forward(*operands)


def _refuse_tangents(beta, scale):
    if beta is not None or scale is not None:
        raise NotImplementedError(
            "energy attention has forward derivatives with respect to queries and keys; those "
            f"with respect to {'beta' if beta is not None else 'scale'} were asked for"
        )


def _moved(operands, rest, w, tangent_q, tangent_k, requested):
    """Along the tangents of q and k: how the log-sum-exps change (GW), times w, and how their
    gradients do (GQ, GK): second derivatives are symmetric."""
    if tangent_q is None and tangent_k is None:
        return (None,) * 5
    return reverse(*operands, *rest, w, tangent_q, tangent_k, requested)


# Functions take what computes them as their first argument, and the operands after it.


def _for_transforms(function):
    """As torch.func requires: what is kept is kept apart. PyTorch then looks at the signature of
    `forward` at every call, which takes as long as two calls of ours, so others do without."""

    class Transformed(function):
        generate_vmap_rule = True

        @staticmethod
        def forward(compute, *operands):
            return compute(*operands)

        @staticmethod
        def setup_context(ctx, inputs, output):
            function.keep(ctx, *inputs[1:])

    return Transformed


def _for_one_level(function):
    """As one level of torch.func records it, where the levels below are the dispatcher's."""
    names = ("forward", "setup_context", "backward", "jvp")
    parts = {name: staticmethod(getattr(function, name)) for name in names}
    return type(function.__name__, (torch.autograd.function._SingleLevelFunction,), parts)


class _Lse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compute, q, k, beta, scale, pairs, count, flags, factor=None):
        _Lse.keep(ctx, q, k, beta, scale, pairs, count, flags, factor)
        out = compute(q, k, beta, scale, pairs, count, flags)
        return out if factor is None else out.mul_(factor)

    @staticmethod
    def keep(ctx, q, k, beta, scale, pairs, count, flags, factor=None):
        _keep(ctx, q, k, beta, scale, pairs)
        ctx.set_materialize_grads(False)
        ctx.rest = count, flags, factor

    @staticmethod
    def jvp(ctx, _, q, k, beta, scale, *others):
        _refuse_tangents(beta, scale)
        *rest, factor = ctx.rest
        own = ctx.saved_tensors[0]
        w = torch.ones(own.shape[:3], dtype=_real(own) or own.dtype, device=own.device)
        return _scaled(_moved(ctx.saved_tensors, rest, w, q, k, GW)[2], factor)

    @staticmethod
    def backward(ctx, w):
        if w is None:
            return (None,) * len(ctx.needs_input_grad)
        count, flags, factor = ctx.rest
        requested = _bits(ctx.needs_input_grad[1:5])
        results = force(*ctx.saved_tensors, count, flags, _scaled(w, factor), requested)
        return None, *results, *(None,) * (len(ctx.needs_input_grad) - 5)


def _add(a, b):
    return b if a is None else a if b is None else a + b


def _add_each(some, more):
    return [_add(a, b) for a, b in zip(some, more)]


def _through_dbeta(ctx, operands, a, c):
    """beta dbeta is q . dq, so a cotangent c of dbeta is the cotangent c q / beta of dq; returns
    that with what else depends on q and beta."""
    q, k, beta, scale, pairs, w = operands
    dq, _, dbeta, *_ = force(q, k, beta, scale, pairs, ctx.count, ctx.flags, w, DQ | DBETA)
    ratio = c / beta
    by_head = ratio.reshape(1, -1, 1, 1).to(q.dtype)
    return _add(a, by_head * q), by_head * dq, -ratio * dbeta


def _slopes_of_scale(operands, ctx):
    """dscale, written out: memory for every pair and head."""
    q, k, beta, scale, pairs, w = operands
    if pairs is not None:
        return _listed_slopes(q[0], k[0], beta, scale, w[0], pairs, ctx.count)
    y = beta.reshape(1, -1, 1, 1) * (q @ k.transpose(-1, -2))
    z = y * scale
    tokens = torch.arange(q.shape[2], device=q.device)
    if ctx.flags & _eager.EXCLUDE_SELF:
        z = z.masked_fill(tokens[:, None] == tokens, -torch.inf)
    if ctx.flags & _eager.CAUSAL:
        z = z.masked_fill(tokens[:, None] < tokens, -torch.inf)
    top = z.amax(-1, keepdim=True).clamp_min(-1e30).detach()
    weight = torch.exp(z - top)
    weight = weight / weight.sum(-1, keepdim=True).clamp_min(1e-30)
    return w[..., None] * weight * y


def _listed_slopes(q, k, beta, scale, w, pairs, count):
    """The same for a list: q [H, N, Y], scale [pairs, H]."""
    (_, key, column, query, pair), _ = _eager.list_offsets(q.shape[1], k.shape[1], count)
    by_key = pairs[query : query + count].long(), pairs[pair : pair + count].long()
    queries = torch.empty_like(by_key[0]).index_copy_(0, by_key[1], by_key[0])
    keys = pairs[key : key + count].long()
    y = (q[:, queries] * k[:, keys]).sum(-1).T * beta  # [pairs, H]
    z = y * scale
    top = z.new_full((q.shape[1], z.shape[1]), -torch.inf)
    top = top.scatter_reduce(0, queries[:, None].expand_as(z), z.detach(), "amax")
    weight = torch.exp(z - top[queries])
    total = torch.zeros_like(top).index_add(0, queries, weight)
    return w.T[queries] * weight / total[queries] * y


def _through_dscale(ctx, operands, c):
    """Gradients of sum(c dscale) with respect to q, k, beta, scale and w."""
    with torch.enable_grad():
        fresh = [x.detach().requires_grad_() if i != 4 and x is not None else x
                 for i, x in enumerate(operands)]  # fmt: skip
        total = (_slopes_of_scale(fresh, ctx) * c).sum()
        leaves = [fresh[i] for i in (0, 1, 5, 2, 3)]
        return torch.autograd.grad(total, leaves)


class _Force(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compute, *operands):
        _Force.keep(ctx, *operands)
        return compute(*operands)

    @staticmethod
    def keep(ctx, q, k, beta, scale, pairs, count, flags, w, requested):
        _keep(ctx, q, k, beta, scale, pairs, w)
        ctx.set_materialize_grads(False)
        ctx.count, ctx.flags, ctx.requested = count, flags, requested

    @staticmethod
    def jvp(ctx, _, q, k, beta, scale, pairs, count, flags, w, requested):
        _refuse_tangents(beta, scale)
        if ctx.requested & (DBETA | DSCALE):
            _refuse_tangents(ctx.requested & DBETA or None, ctx.requested)
        *operands, weight = ctx.saved_tensors
        rest = (ctx.count, ctx.flags)
        moved = _moved(operands, rest, weight, q, k, ctx.requested)[:2]
        along = (None, None) if w is None else force(*operands, *rest, w, ctx.requested)[:2]
        return *_add_each(moved, along), None, None

    @staticmethod
    def backward(ctx, a, b, c_beta, c_scale):
        q, k, beta, scale, pairs, w = operands = ctx.saved_tensors
        more_q = more_beta = None
        needs_q, needs_k, needs_beta, needs_scale = ctx.needs_input_grad[1:5]
        needs = (needs_q, needs_k, ctx.needs_input_grad[8], needs_beta, needs_scale)
        requested = _bits(needs)
        if c_beta is not None:
            a, more_q, more_beta = _through_dbeta(ctx, operands, a, c_beta)
        out = (None,) * 5
        if a is not None or b is not None:
            shared = (q, k, beta, scale, pairs, ctx.count, ctx.flags)
            out = reverse(*shared, w, a, b, requested)
        if c_beta is not None or c_scale is not None:
            out = _add_each(out, (more_q, None, None, more_beta, None))
            more = _through_dscale(ctx, operands, c_scale) if c_scale is not None else (None,) * 5
            out = _requested(_add_each(out, more), requested)
        gq, gk, gw, gbeta, gscale = out
        return None, gq, gk, gbeta, gscale, None, None, None, gw, None


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compute, *operands):
        return compute(*operands)

    @staticmethod
    def keep(ctx, *operands):
        """Nothing: there is no derivative."""

    @staticmethod
    def backward(ctx, *cotangents):
        raise NotImplementedError(
            "energy attention has derivatives of first and second order; a third one was asked for"
        )


def offer(name, compute, function, several=True, moved=None):
    """The operation as the functions of this package call it, None being what was not requested
    (its last operand) of several results; and its derivatives, registered for calls through the
    dispatcher. A factor multiplies the result. `moved`, where given, computes the one result
    and its tangent from the operands and the tangents of the first four."""
    dispatched, below = getattr(torch.ops.basin, name).default, _dispatched(name)
    # What Function.apply does for transforms is not needed without one.
    of_func = _for_transforms(function)
    single = _for_one_level(of_func)
    apply = super(torch.autograd.Function, function).apply

    @torch.enable_grad()
    def further(*operands):
        """The levels below, which record for themselves."""
        return below(*operands)

    def by_dispatcher(*operands):
        level = _interpreter()  # compilers trace torch.func through the dispatcher
        if level is not None and level.key() == _functorch.TransformType.Jvp:
            raise NotImplementedError("torch.func.jvp of attention is not compiled, but called")
        if not _recorded(operands):
            return below(*operands)
        if level is None:
            return function.apply(below, *operands)
        with enable_single_level_autograd_function():
            return single.apply(further, *operands)

    def lean(*operands):
        out = below(*operands)
        return tuple(_requested(out, operands[-1])) if several else out

    def transformed(*operands):
        """torch.func asks functions for their derivatives, not operations."""
        return of_func.apply(lean, *operands)

    def seen(operands, factor):
        plain = torch.compiler.is_compiling() or _interpreter() is None
        level = None if plain or moved is None else _level_of_jvp()
        if level is not None:
            return _in_forward_mode(moved, operands, level)
        out = dispatched(*operands) if plain else transformed(*operands)
        return _requested(out, operands[-1]) if several else _scaled(out, factor)

    def direct(operands, factor):
        if not _recorded(operands):
            out = compute(*operands)
            return out if factor is None else out.mul_(factor)
        if moved is not None and _forward._current_level >= 0 and not graded(operands):
            return _in_forward_mode(moved, operands, None)  # it records nothing that has tangents
        return apply(compute, *operands) if factor is None else apply(compute, *operands, factor)

    def call(*operands, factor=None):
        if not _is_direct(operands):
            return seen(operands, factor)
        try:
            return direct(operands, factor)
        except RuntimeError:  # tensors without memory: the dispatcher takes them apart
            if not _in_batches(operands):
                raise
        return seen(operands, factor)

    _library.impl(name, by_dispatcher, "Autograd")
    return call


lse = offer("attention_lse", _lse, _Lse, several=False)
force = offer("attention_force", _force, _Force)
reverse = offer("attention_reverse", _reverse, _Reverse)
