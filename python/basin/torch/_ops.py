# type: ignore  where the framework is not installed, pyright takes this folder for it
"""The three operations as PyTorch sees them: torch.ops.basin.attention_lse, _force and _reverse,
each the derivative of the one before.

Logical shapes are q [B, H, Nq, Y], k [B, H, Nk, Y], beta [1] or [H], scale [B, H, Nq, Nk] (of a
list: [pairs, H]), w and lse [B, H, Nq]. Where heads lie in memory is read from the strides: [B, N,
H, Y] is the kernels' own order; [B, H, N, Y] is that of B H sequences with one head, if they share
one beta.
"""

import torch

from basin import _eager

DQ, DK, DBETA, DSCALE = 1, 2, 4, 8  # results of the force that are wanted
GQ, GK, GW, GBETA, GSCALE = 1, 2, 4, 8, 16  # of its reverse

_SHARED = "Tensor q, Tensor k, Tensor beta, Tensor? scale, Tensor? pairs, int count, int flags"
_library = torch.library.Library("basin", "DEF")
_tags = {"tags": (torch.Tag.needs_fixed_stride_order,)}
_library.define(f"attention_lse({_SHARED}) -> Tensor", **_tags)
_library.define(
    f"attention_force({_SHARED}, Tensor w, int want) -> (Tensor, Tensor, Tensor, Tensor)", **_tags
)
_library.define(
    f"attention_reverse({_SHARED}, Tensor w, Tensor? a, Tensor? b, int want) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    **_tags,
)


# ---- how operands lie ----


def _heads_first(q, beta, scale, pairs):
    """Whether the heads are entries of the batch to the kernels."""
    return pairs is None and beta.numel() == 1 and (scale is not None or q.is_contiguous())


def _laid(x, first):
    """x [B, H, N, ..] in the kernels' order, dense."""
    x = (x if first else x.transpose(1, 2)).contiguous()
    return x.clone() if x.data_ptr() % 16 else x


def _laid_scale(scale, first, pairs):
    scale = scale if first or pairs is not None else scale.permute(0, 2, 3, 1)
    return scale.contiguous()


def _new(like, shape, first, dtype=None):
    """A result [B, H, N, ..], in memory as the kernels write it."""
    if first:
        return like.new_empty(shape, dtype=dtype)
    batch, heads, tokens, *rest = shape
    return like.new_empty((batch, tokens, heads, *rest), dtype=dtype).transpose(1, 2)


def _new_scale(scale, first, pairs):
    if first or pairs is not None:
        return torch.empty_like(scale, memory_format=torch.contiguous_format)
    batch, heads, queries, keys = scale.shape
    return scale.new_empty((batch, queries, keys, heads)).permute(0, 3, 1, 2)


# ---- running ----

_NAMES = {torch.float64: "float64", torch.float32: "float32", torch.bfloat16: "bfloat16"}
_address = _eager.address
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
_workspaces = {}  # bytes that a job needs


class _Job:
    """One call. `kept` holds what was laid in order for it until it is made; `key` says which
    operands and sizes it has."""

    __slots__ = ("beta", "first", "job", "kept", "key", "q")

    def __init__(self, q, k, beta, scale, pairs, count, flags):
        self.first = first = _heads_first(q, beta, scale, pairs)
        batch, heads, queries, width = q.shape
        if first:
            batch, heads = batch * heads, 1
        elif beta.numel() != heads:
            beta = beta.expand(heads)
        sizes = (batch, queries, k.shape[2], heads, width, count)
        dtype = _NAMES[q.dtype]
        self.job = job = _eager.new_job(dtype, sizes, flags)
        self.q, self.beta, self.key = q, beta, (dtype, sizes, flags, pairs is None)
        q, k, beta = self.kept = [_laid(q, first), _laid(k, first), beta.contiguous()]
        job.q, job.k = _address(q.data_ptr()), _address(k.data_ptr())
        job.beta = _address(beta.data_ptr())
        if scale is not None:
            self.give(scale=_laid_scale(scale, first, pairs))
        if pairs is not None:
            _eager.set_list(job, pairs.data_ptr())

    def give(self, **operands):
        for name, x in operands.items():
            self.kept.append(x)
            setattr(self.job, name, _address(x.data_ptr()))
        self.key += tuple(operands)

    def run(self, operation):
        q = self.q
        if not q.is_cuda:
            _eager.run(_backend(q), operation, self.job)
        elif q.get_device() == torch.cuda.current_device():
            self.queue(operation)
        else:
            with torch.cuda.device(q.device):
                self.queue(operation)

    def queue(self, operation):
        q, job, eager = self.q, self.job, _backend(self.q)
        index = q.get_device()
        key = (index, operation, *self.key)
        size = _workspaces.get(key)
        if size is None:
            size = _workspaces[key] = _eager.workspace_bytes(eager, operation, job)
        self.give(workspace=q.new_empty(max(size, 1), dtype=torch.uint8))
        job.workspace_bytes = size
        job.stream = _address(_stream(index))
        _eager.run(eager, operation, job)


def _lse(q, k, beta, scale, pairs, count, flags):
    job = _Job(q, k, beta, scale, pairs, count, flags)
    out = _new(q, q.shape[:3], job.first, _real(q))
    job.job.lse = _address(out.data_ptr())
    job.run(_eager.LSE)
    return out


def _filled(function):
    """As the dispatcher wants it: tensors in place of None."""

    def filled(q, *operands):
        return tuple(q.new_empty(0) if x is None else x for x in function(q, *operands))

    return filled


def _results(q, k, beta, scale, pairs, want, first):
    """Tensors for what is wanted of the force, else None; beta is what the kernels read."""
    dense = torch.contiguous_format
    return (
        _new(q, q.shape, first) if want & DQ else None,
        _new(q, k.shape, first) if want & DK else None,
        torch.empty_like(beta, memory_format=dense) if want & DBETA else None,
        _new_scale(scale, first, pairs) if want & DSCALE else None,
    )


def _results_of_reverse(q, k, beta, scale, pairs, want, first):
    like_force = want & (GQ | GK) | (want & (GBETA | GSCALE)) >> 1
    gq, gk, gbeta, gscale = _results(q, k, beta, scale, pairs, like_force, first)
    gw = _new(q, q.shape[:3], first, _real(q)) if want & GW else None
    return gq, gk, gw, gbeta, gscale


def _summed(gradient, beta):
    """Gradients of each head's beta, as beta itself is."""
    if gradient is None or gradient.numel() <= beta.numel():
        return gradient
    return gradient.sum().reshape(1)


def _run(job, operation, names, results, want, **operands):
    job.give(**operands)
    job.give(**{name: x for i, (name, x) in enumerate(zip(names, results)) if want >> i & 1})
    job.run(operation)


def _force(q, k, beta, scale, pairs, count, flags, w, want):
    job = _Job(q, k, beta, scale, pairs, count, flags)
    results = _results(q, k, job.beta, scale, pairs, want, job.first)
    names = ("dq", "dk", "dbeta", "dscale")
    _run(job, _eager.FORCE, names, results, want, w=_laid(w, job.first))
    dq, dk, dbeta, dscale = results
    return dq, dk, _summed(dbeta, beta), dscale


def _reverse(q, k, beta, scale, pairs, count, flags, w, a, b, want):
    job = _Job(q, k, beta, scale, pairs, count, flags)
    results = _results_of_reverse(q, k, job.beta, scale, pairs, want, job.first)
    names = ("gq", "gk", "gw", "gbeta", "gscale")
    given = {"w": w, "a": a, "b": b}
    given = {name: _laid(x, job.first) for name, x in given.items() if x is not None}
    _run(job, _eager.REVERSE, names, results, want, **given)
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
def _fake_force(q, k, beta, scale, pairs, count, flags, w, want):
    return _results(q, k, beta, scale, pairs, want, _heads_first(q, beta, scale, pairs))


@torch.library.register_fake("basin::attention_reverse")
@_filled
def _fake_reverse(q, k, beta, scale, pairs, count, flags, w, a, b, want):
    return _results_of_reverse(q, k, beta, scale, pairs, want, _heads_first(q, beta, scale, pairs))


# ---- derivatives ----


_below_autograd = torch._C._AutoDispatchBelowAutograd
_modes, _interpreter = (
    torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack,
)  # fmt: skip
_PLAIN = {torch.Tensor, torch.nn.Parameter}


def watched():
    """Whether a compiler, mode or transform waits for what is called or made."""
    return torch.compiler.is_compiling() or _modes() > 0 or _interpreter() is not None


def _seen_by_us_alone(operands):
    """Whether the dispatcher would only pass a call on: nobody watches, no operand is of a class of
    its own. Two journeys through it take longer than small attentions do."""
    return not watched() and type(operands[0]) in _PLAIN and type(operands[1]) in _PLAIN


def _recorded(operands):
    if torch.is_grad_enabled():
        for x in operands:
            if isinstance(x, torch.Tensor) and x.requires_grad:
                return True
    return False


def _dispatched(name):
    """The numbers of a recorded call, by way of the dispatcher."""
    operation = getattr(torch.ops.basin, name).default

    def compute(*operands):
        with _below_autograd():
            return operation(*operands)

    return compute


def _scaled(x, factor):
    return x if factor is None else x * factor


def _wanted(results, bits):
    """Results that were asked for; None in the place of others."""
    return [x if bits >> i & 1 else None for i, x in enumerate(results)]


# Functions take what computes them as their first argument, and the operands after it.


class _Lse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compute, q, k, beta, scale, pairs, count, flags, factor=None):
        ctx.save_for_backward(q, k, beta, scale, pairs)
        ctx.rest = count, flags, factor
        out = compute(q, k, beta, scale, pairs, count, flags)
        return out if factor is None else out.mul_(factor)

    @staticmethod
    def backward(ctx, w):
        count, flags, factor = ctx.rest
        needs = ctx.needs_input_grad[1:]
        want = sum(bit for bit, need in zip((DQ, DK, DBETA, DSCALE), needs) if need)
        results = force(*ctx.saved_tensors, count, flags, _scaled(w, factor), want)
        return None, *_wanted(results, want), None, None, None, None


def _add(a, b):
    return b if a is None else a if b is None else a + b


def _through_dbeta(ctx, operands, a, c):
    """beta dbeta is q . dq, so a cotangent c of dbeta is the cotangent c q / beta of dq; returns
    that with what else depends on q and beta."""
    q, k, beta, scale, pairs, w = operands
    dq, _, dbeta, _ = force(q, k, beta, scale, pairs, ctx.count, ctx.flags, w, DQ | DBETA)
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
    def forward(ctx, compute, q, k, beta, scale, pairs, count, flags, w, want):
        ctx.save_for_backward(q, k, beta, scale, pairs, w)
        ctx.set_materialize_grads(False)
        ctx.count, ctx.flags = count, flags
        return compute(q, k, beta, scale, pairs, count, flags, w, want)

    @staticmethod
    def backward(ctx, a, b, c_beta, c_scale):
        q, k, beta, scale, pairs, w = operands = ctx.saved_tensors
        more_q = more_beta = None
        needs_q, needs_k, needs_beta, needs_scale = ctx.needs_input_grad[1:5]
        needs = (needs_q, needs_k, ctx.needs_input_grad[8], needs_beta, needs_scale)
        want = sum(bit for bit, need in zip((GQ, GK, GW, GBETA, GSCALE), needs) if need)
        if c_beta is not None:
            a, more_q, more_beta = _through_dbeta(ctx, operands, a, c_beta)
        out = [None] * 5
        if a is not None or b is not None:
            shared = (q, k, beta, scale, pairs, ctx.count, ctx.flags)
            out = _wanted(reverse(*shared, w, a, b, want), want)
        out[0], out[3] = _add(out[0], more_q), _add(out[3], more_beta)
        if c_scale is not None:
            more = _through_dscale(ctx, operands, c_scale)
            out = [_add(x, y) for x, y in zip(out, more)]
        gq, gk, gw, gbeta, gscale = (x if need else None for x, need in zip(out, needs))
        return None, gq, gk, gbeta, gscale, None, None, None, gw, None


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compute, *operands):
        return compute(*operands)

    @staticmethod
    def backward(ctx, *cotangents):
        raise NotImplementedError(
            "energy attention has derivatives of first and second order; a third one was asked for"
        )


def _offer(name, compute, function):
    """The operation as the functions of this package call it; and its derivatives, registered for
    calls that come through the dispatcher. A factor multiplies the result."""
    dispatched, below = getattr(torch.ops.basin, name).default, _dispatched(name)
    # What Function.apply does for transforms is not wanted where none waits.
    apply = super(torch.autograd.Function, function).apply

    def by_dispatcher(*operands):
        return function.apply(below, *operands) if _recorded(operands) else below(*operands)

    def call(*operands, factor=None):
        if not _seen_by_us_alone(operands):
            return _scaled(dispatched(*operands), factor)
        if not _recorded(operands):
            out = compute(*operands)
            return out if factor is None else out.mul_(factor)
        return apply(compute, *operands) if factor is None else apply(compute, *operands, factor)

    _library.impl(name, by_dispatcher, "Autograd")
    return call


lse = _offer("attention_lse", _lse, _Lse)
force = _offer("attention_force", _force, _Force)
reverse = _offer("attention_reverse", _reverse, _Reverse)
