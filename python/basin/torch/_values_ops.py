"""Softmax attention with values as PyTorch sees it: torch.ops.basin.attention_values, its reverse,
and the second order, the derivative of both (src/engine/backend/values.h has the equations).

Logical shapes are q [B, H, N, Y], k [B, K, M, Y], v [B, K, M, V], c and o [B, H, N, V], bias and
its tangent [B, H, N, M] (of a list [B, pairs, H]), expanded where they repeat.
"""

import functools

import torch

from basin._engine import eager as _eager
from basin.torch import _ops

Q, K, V, BIAS, C = 1, 2, 4, 8, 16  # results that are requested
_SLOPES = Q | K | V | BIAS

_library = _ops._library
_SHARED = (
    "Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor? pairs, int count, int flags, float factor"
)
for _schema in (
    f"attention_values({_SHARED}) -> Tensor",
    f"attention_values_reverse({_SHARED}, Tensor c, int requested) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
    f"attention_values_second({_SHARED}, Tensor? c, Tensor? a, Tensor? b, Tensor? av, "
    "Tensor? abias, Tensor? ac, int requested) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
):
    _library.define(_schema, tags=(torch.Tag.needs_fixed_stride_order,))


# ---- running ----


def _compact(bias, listed):
    """Without what it repeats along, and whether it does: batch, heads, queries."""
    if bias is None:
        return None, (False,) * 3
    repeats = [False] * 3
    for axis in range(1 if listed else 3):
        if bias.shape[axis] > 1 and bias.stride(axis) == 0:
            bias, repeats[axis] = bias.narrow(axis, 0, 1), True
    return bias.contiguous(), tuple(repeats)


_OPERANDS = ("q", "k", "a", "b", "v", "bias", "c", "av", "abias", "ac")  # in the order of a job


class _Form:
    """An operation of one shape, type and pattern: how its jobs begin and what they name."""

    __slots__ = ("bytes", "head", "names", "of_job", "sizes", "values", "values_names")

    def __init__(self, q, k, wide, dtype, listed, pattern, first, repeats, there, results):
        (batch, heads, queries, width), (count, flags, factor) = q, pattern
        self.sizes = (batch, queries, k[2], heads, width, count)
        self.head, self.values = _eager.values_head(
            _ops._NAMES[dtype], self.sizes, k[1], wide, flags, factor, first, repeats
        )
        names = [name for name, x in zip(_OPERANDS, there) if x]
        names = [*(_eager.LIST if listed else ()), *names, *results]
        self.of_job = [_eager.of_job(name) for name in names]
        self.names = (*(name for name in names if _eager.of_job(name)), "values")
        self.values_names = tuple(name for name in names if not _eager.of_job(name))
        self.bytes = {}  # of workspaces


_form = functools.lru_cache(maxsize=256)(_Form)
_ONCE = ((False,) * 3,) * 2


def _run(operation, shared, tangents, results):
    """`tangents` are c, a, b, av, abias, ac; results by their names in a job, in its order."""
    q, k, v, bias, pairs = shared[:5]
    c, a, b, av, abias, ac = tangents
    first, repeats = q.is_contiguous(), _ONCE
    if bias is not None or abias is not None:
        bias, some = _compact(bias, pairs is not None)
        abias, more = _compact(abias, pairs is not None)
        repeats = some, more
    operands = [q, k, a, b, v, bias, c, av, abias, ac]  # kept until the call is made
    there = tuple([x is not None for x in operands])
    requested = tuple([name for name, x in results if x is not None])
    of = q.shape, k.shape, v.shape[3], q.dtype, pairs is not None, tuple(shared[5:])
    form = _form(*of, first, repeats, there, requested)
    addresses = [] if pairs is None else _eager.list_addresses(pairs.data_ptr(), form.sizes)
    for i, x in enumerate(operands):
        if x is None:
            continue
        at = x.data_ptr()
        if (not (first and x.is_contiguous()) or at % 16) and x is not bias and x is not abias:
            operands[i] = x = _ops._laid(x, first)
            at = x.data_ptr()
        addresses.append(at)
    addresses += [x.data_ptr() for _, x in results if x is not None]
    apart = [x for x, mine in zip(addresses, form.of_job) if not mine]
    values, at = _eager.values_of(form.values, form.values_names, apart)  # kept until the call
    addresses = [x for x, mine in zip(addresses, form.of_job) if mine]
    addresses.append(at)
    _ops.launch(q, operation, form.head, form.names, addresses, form.bytes)


def _new_output(q, v, shape=None):
    shape = (*q.shape[:3], v.shape[3]) if shape is None else shape
    return _ops._new(q, shape, q.is_contiguous())


def _new_slopes(q, k, v, bias, pairs, count, requested):
    """Results like q, k, v and all of the bias, or None."""
    first = q.is_contiguous()
    found = [
        _ops._new_like(x, first) if requested & bit else None for bit, x in ((Q, q), (K, k), (V, v))
    ]
    if not requested & BIAS:
        return *found, None
    batch, heads, queries, _ = q.shape
    slopes = (batch, heads, queries, k.shape[2]) if pairs is None else (batch, count, heads)
    return *found, q.new_empty(slopes, dtype=_ops._real(q))


# ---- PyTorch's own kernels, where they have what is requested ----

_usual = torch.nn.functional.scaled_dot_product_attention
_flash_enabled = torch.backends.cuda.flash_sdp_enabled
_flash = torch.ops.aten._scaled_dot_product_flash_attention.default
_flash_back = torch.ops.aten._scaled_dot_product_flash_attention_backward.default


def _is_aligned(x):
    """Whether rows are dense, else FlashAttention refuses them, and begin at 16 bytes, else what
    PyTorch takes in its place computes something else."""
    return x.stride(3) == 1 and not any(n % 8 for n in (x.storage_offset(), *x.stride()[:3]))


def _takes_flash(q, k, v, bias, pairs, count, flags, factor):
    """Whether FlashAttention, as PyTorch calls it, computes the result and its reverse."""
    if q.dtype != torch.bfloat16 or not q.is_cuda or bias is not None or pairs is not None:
        return False
    same = q.shape[:2] == k.shape[:2] and q.shape[3] == v.shape[3] and q.shape[3] % 8 == 0
    square = q.shape[2] == k.shape[2] or not flags & _eager.CAUSAL
    dense = _is_aligned(q) and _is_aligned(k) and _is_aligned(v)
    return (
        same and square and dense and min(q.numel(), k.numel()) > 0
        and _flash_enabled() and q.shape[3] <= _widest(q.get_device())
    )  # fmt: skip


@functools.cache
def _widest(index):
    """The widest heads whose reverse by FlashAttention fits a device's shared memory."""
    capability = torch.cuda.get_device_capability(index)
    small = capability in ((8, 6), (8, 7), (8, 9)) or capability[0] == 12
    return 0 if capability < (8, 0) else 192 if small else 256


_SHORT = 256  # tokens


def _is_short(q, k, tokens):
    """Whether sequences are so short that what is recorded is better computed by our kernels:
    FlashAttention's reverse takes copies and floats of the size of q, and more calls."""
    return max(q.shape[2], k.shape[2]) <= tokens and q.shape[3] <= 64 and _hopper(q.get_device())


@functools.cache
def _hopper(index):
    return torch.cuda.get_device_capability(index) == (9, 0)


def _by_flash(q, k, v, bias, pairs, count, flags, factor):
    """The result and what its reverse needs."""
    out, *rest = _flash(q, k, v, 0.0, bool(flags & _eager.CAUSAL), False, scale=factor)
    return out, rest[:7]


def _flash_reverse(c, q, k, v, flags, factor, out, kept):
    lse, by_query, by_key, queries, keys, seed, offset = kept
    return _flash_back(
        c, q, k, v, out, lse, by_query, by_key, queries, keys, 0.0, bool(flags & _eager.CAUSAL),
        seed, offset, scale=factor,
    )  # fmt: skip


def _as_promised(x, q):
    """In memory as the fake operation has it: like q."""
    if q.is_contiguous():
        return x.contiguous()
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def _values(*shared):
    if _takes_flash(*shared):
        q, k, v, _, _, _, flags, factor = shared
        causal = bool(flags & _eager.CAUSAL)
        return _as_promised(_usual(q, k, v, is_causal=causal, scale=factor), q)
    return _own_values(*shared)


def _own_values(*shared):
    out = _new_output(shared[0], shared[2])
    _run(_eager.VALUES, shared, (None,) * 6, [("o", out)])
    return out


def _reverse(*operands, made=None):
    """`made`: the result by FlashAttention, and what its reverse needs."""
    *shared, c, requested = operands
    q, k, v, _, _, _, flags, factor = shared
    if made or (_takes_flash(*shared) and not _is_short(q, k, _SHORT)):
        found = _flash_reverse(c, q, k, v, flags, factor, *(made or _by_flash(*shared)))
        given = zip(found, (Q, K, V))
        return *(_as_promised(x, q) if requested & bit else None for x, bit in given), None
    return _own_reverse(*operands)


def _own_reverse(*operands):
    *shared, c, requested = operands
    results = _new_slopes(*shared[:6], requested)
    named = list(zip(("dq", "dk", "dv", "dbias"), results))
    _run(_eager.VALUES_REVERSE, shared, (c, None, None, None, None, None), named)
    return results


def _results_of_second(shared, requested):
    out = _new_output(shared[0], shared[2]) if requested & C else None
    return *_new_slopes(*shared[:6], requested), out


def _second(*operands):
    *shared, c, a, b, av, abias, ac, requested = operands
    results = _results_of_second(shared, requested)
    named = list(zip(("gq", "gk", "gv", "gbias", "gc"), results))
    _run(_eager.VALUES_SECOND, shared, (c, a, b, av, abias, ac), named)
    return results


for _name, _function in {
    "attention_values": _values, "attention_values_reverse": _ops._filled(_reverse),
    "attention_values_second": _ops._filled(_second),
}.items():  # fmt: skip
    _library.impl(_name, _function, "CPU")
    _library.impl(_name, _function, "CUDA")


@torch.library.register_fake("basin::attention_values")
def _fake_values(*shared):
    return _new_output(shared[0], shared[2])


@torch.library.register_fake("basin::attention_values_reverse")
@_ops._filled
def _fake_reverse(*operands):
    return _new_slopes(*operands[:6], operands[-1])


@torch.library.register_fake("basin::attention_values_second")
@_ops._filled
def _fake_second(*operands):
    return _results_of_second(operands[:8], operands[-1])


# ---- vmap: the axis of a batch more becomes part of the batch ----


def _flat(x):
    """[A, B, ..] as [A B, ..]; along other axes what repeats is not copied."""
    one = x
    for axis in range(2, x.ndim):
        one = one.narrow(axis, 0, 1) if one.shape[axis] > 1 and one.stride(axis) == 0 else one
    return one.flatten(0, 1).expand(-1, *x.shape[2:])


def _batched(operation):
    def rule(info, in_dims, *operands):
        size = info.batch_size

        def merged(i, x):
            if not isinstance(x, torch.Tensor):
                return x
            if i == 4:
                if in_dims[i] is not None:
                    raise NotImplementedError("attention along a batch of lists of pairs")
                return x
            d = in_dims[i]
            return _flat(x.expand(size, *x.shape) if d is None else x.movedim(d, 0))

        out = operation(*(merged(i, x) for i, x in enumerate(operands)))
        several = isinstance(out, (tuple, list))
        out = [x.unflatten(0, (size, x.shape[0] // size)) if x.ndim > 1 else x.new_empty(size, 0)
               for x in (out if several else [out])]  # fmt: skip
        return (tuple(out), (0,) * len(out)) if several else (out[0], 0)

    return rule


for _name in ("attention_values", "attention_values_reverse", "attention_values_second"):
    torch.library.register_vmap(
        f"basin::{_name}", _batched(getattr(torch.ops.basin, _name)), lib=_library
    )


# ---- derivatives ----


def _keep(ctx, q, k, v, bias, pairs, count, flags, factor, *more):
    _ops._keep(ctx, q, k, v, bias, pairs, *more)
    ctx.set_materialize_grads(False)
    ctx.rest = count, flags, factor


class _Values(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compute, *operands):
        flash = _takes_flash(*operands)
        short = flash and _is_short(*operands[:2], _SHORT)
        if short or not flash:
            _keep(ctx, *operands)
            return _own_values(*operands) if short and compute is _values else compute(*operands)
        out, (lse, by_query, by_key, queries, keys, seed, offset) = _by_flash(*operands)
        ctx.sizes = queries, keys
        _keep(ctx, *operands, out, lse, by_query, by_key, seed, offset)
        return out

    keep = staticmethod(_keep)

    @staticmethod
    def jvp(ctx, _, a, b, av, abias, *others):
        return second(*ctx.saved_tensors[:5], *ctx.rest, None, a, b, av, abias, None, C)[4]

    @staticmethod
    def backward(ctx, c):
        if c is None:
            return (None,) * 9
        saved = ctx.saved_tensors  # once: a checkpoint computes them anew for each reading
        if len(saved) == 5:
            requested = _ops._bits(ctx.needs_input_grad[1:5])
            return None, *reverse(*saved, *ctx.rest, c, requested), *(None,) * 4
        q, k, v, *_, out, lse, by_query, by_key, seed, offset = saved
        kept = lse, by_query, by_key, *ctx.sizes, seed, offset
        if not torch.is_grad_enabled() and _ops._forward._current_level < 0:
            return None, *_flash_reverse(c, q, k, v, *ctx.rest[1:], out, kept), *(None,) * 5
        operands = (*saved[:5], *ctx.rest, c, _ops._bits(ctx.needs_input_grad[1:5]))
        if _ops.watched() or _ops._in_batches((c,)):
            return None, *reverse(*operands), *(None,) * 4
        own = _is_short(q, k, 1024)
        compute = _own_reverse if own else functools.partial(_reverse, made=(out, kept))
        return None, *_record_reverse(compute, *operands), *(None,) * 4


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compute, *operands):
        _Reverse.keep(ctx, *operands)
        return compute(*operands)

    @staticmethod
    def keep(ctx, *operands):
        _keep(ctx, *operands[:-1])
        ctx.requested = operands[-1]

    @staticmethod
    def jvp(ctx, _, a, b, av, abias, pairs, count, flags, factor, ac, requested):
        *shared, c = ctx.saved_tensors
        return tuple(second(*shared, *ctx.rest, c, a, b, av, abias, ac, ctx.requested)[:4])

    @staticmethod
    def backward(ctx, a, b, av, abias):
        *shared, c = ctx.saved_tensors
        requested = _ops._bits((*ctx.needs_input_grad[1:5], ctx.needs_input_grad[9]))
        gq, gk, gv, gbias, gc = second(*shared, *ctx.rest, c, a, b, av, abias, None, requested)
        return None, gq, gk, gv, gbias, None, None, None, None, gc, None


# Without what Function.apply does for transforms.
_record_values = super(torch.autograd.Function, _Values).apply
_record_reverse = super(torch.autograd.Function, _Reverse).apply


def _written(q, k, v, bias, pairs, flags, factor, c, a, b, av, abias, ac):
    """The second order written out, with memory for every pair: what third derivatives need."""
    if pairs is not None:
        raise NotImplementedError(
            "attention along a list has derivatives to second order; a third one was asked for"
        )
    each = q.shape[1] // k.shape[1]
    k, v, b, av = (x if x is None else x.repeat_interleave(each, 1) for x in (k, v, b, av))

    def product(x, y):
        return 0 if x is None or y is None else x @ y.transpose(-1, -2)

    s = factor * product(q, k) + (0 if bias is None else bias)
    if flags & _eager.CAUSAL:
        tokens = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device)
        s = s.masked_fill(~tokens.tril(), -torch.inf)
    top = s.amax(-1, keepdim=True).detach().clamp_min(-1e30)
    p = torch.exp(s - top)
    total = p.sum(-1, keepdim=True)
    p = p / torch.where(total > 0, total, 1)
    ts = factor * (product(a, k) + product(q, b)) + (0 if abias is None else abias)
    tp = p * (ts - (p * ts).sum(-1, keepdim=True)) if torch.is_tensor(ts) else 0 * p
    zero = torch.zeros_like(p)
    g, tg = product(c, v) + zero, product(ac, v) + product(c, av) + zero
    ds = p * (g - (p * g).sum(-1, keepdim=True))
    u = tp * (g - (p * g).sum(-1, keepdim=True)) + p * tg
    tds = u - p * u.sum(-1, keepdim=True)

    def summed(x, y, z, w, transposed=False):
        x, z = (x.transpose(-1, -2), z.transpose(-1, -2)) if transposed else (x, z)
        return (0 if y is None else x @ y) + (0 if w is None else z @ w)

    def shared(x):
        return x if each == 1 or not torch.is_tensor(x) else x.unflatten(1, (-1, each)).sum(2)

    return (
        factor * summed(tds, k, ds, b), factor * shared(summed(tds, q, ds, a, True)),
        shared(summed(tp, c, p, ac, True)), tds, summed(tp, v, p, av),
    )  # fmt: skip


class _Second(torch.autograd.Function):
    @staticmethod
    def forward(ctx, compute, *operands):
        _Second.keep(ctx, *operands)
        return compute(*operands)

    @staticmethod
    def keep(ctx, *operands):
        _keep(ctx, *operands[:-1])
        ctx.requested = operands[-1]

    @staticmethod
    def jvp(ctx, _, tq, tk, tv, tbias, pairs, count, flags, factor, *tangents):
        """Of third order, but for tangents of the tangents, in which it is linear."""
        saved, given = ctx.saved_tensors, (tq, tk, tv, tbias, *tangents[:-1])
        operands = _Second._real(saved)
        there = [i for i, t in enumerate(given) if t is not None]

        def function(*some):
            changed = dict(zip(there, some))
            every = [changed.get(i, x) for i, x in enumerate(operands)]
            found = _Second._formula(ctx, saved[4], every)
            return tuple(torch.as_tensor(x) for x in found)

        primals = tuple(operands[i] for i in there)
        own = tuple(given[i].to(operands[i].dtype) for i in there)
        moved = torch.func.jvp(function, primals, own)[1]
        like = saved[0].dtype
        return tuple(x.to(like) if ctx.requested >> i & 1 else None for i, x in enumerate(moved))

    @staticmethod
    def _real(saved):
        """q, k, v, bias, c and the tangents, in the type that is computed in."""
        q, k, v, bias, _, *more = saved
        wide = torch.float32 if q.dtype == torch.bfloat16 else q.dtype
        return [x if x is None else x.to(wide) for x in (q, k, v, bias, *more)]

    @staticmethod
    def _formula(ctx, pairs, operands):
        _, flags, factor = ctx.rest
        return _written(*operands[:4], pairs, flags, factor, *operands[4:])

    @staticmethod
    def _through_tangent(ctx, saved, u, needs):
        """The reverse of the forward derivative (gc without c) is also of second order."""
        q, k, v, bias, pairs, _, a, b, av, abias, _ = saved
        shared, grads = (q, k, v, bias, pairs, *ctx.rest), [None] * 10
        requested, more = _ops._bits(needs[:4]), _ops._bits(needs[5:9])
        if requested:
            grads[:4] = second(*shared, u, a, b, av, abias, None, requested)[:4]
        if more:
            grads[5:9] = reverse(*shared, u, more)
        return grads

    @staticmethod
    def backward(ctx, *cotangents):
        needs = (*ctx.needs_input_grad[1:5], *ctx.needs_input_grad[9:15])
        saved = ctx.saved_tensors  # once, as above
        if saved[5] is None and ctx.requested == C:
            grads = _Second._through_tangent(ctx, saved, cotangents[4], needs)
        else:
            grads = _Second._through_formula(ctx, saved, cotangents, needs)
        return None, *grads[:4], None, None, None, None, *grads[4:], None

    @staticmethod
    def _through_formula(ctx, saved, cotangents, needs):
        # By torch.func, which differentiates at a level of its own: inside vmap of a transform
        # nothing requires a gradient of torch.autograd's.
        operands, requested = _Second._real(saved), [i for i, need in enumerate(needs) if need]
        there = [i for i, c in enumerate(cotangents) if c is not None]

        def function(*some):
            changed = dict(zip(requested, some))
            every = [changed.get(i, x) for i, x in enumerate(operands)]
            found = _Second._formula(ctx, saved[4], every)
            made = ((found[i], cotangents[i]) for i in there)
            return [x if torch.is_tensor(x) else torch.zeros_like(c) for x, c in made]

        found, back = torch.func.vjp(function, *(operands[i] for i in requested))
        given = (cotangents[i] for i in there)
        grads, made = [None] * 10, back([c.to(x.dtype) for x, c in zip(found, given)])
        for i, x in zip(requested, made):
            grads[i] = x
        return grads


def _moved(*operands):
    """The result and its tangent; operands after the first eight are tangents of q, k, v, bias."""
    shared, (a, b, av, abias) = operands[:8], operands[8:]
    graded, still = _ops.graded(operands), a is None and b is None and av is None and abias is None
    if not still and not graded and not _ops._in_batches(operands):
        out, tangent = _new_output(shared[0], shared[2]), _new_output(shared[0], shared[2])
        moves = None, a, b, av, abias, None
        _run(_eager.VALUES_SECOND, shared, moves, [("o", out), ("gc", tangent)])
        return out, tangent
    out = _record_values(_values, *shared) if graded else _values(*shared)
    return out, None if still else second(*shared, None, a, b, av, abias, None, C)[4]


values = _ops.offer("attention_values", _values, _Values, several=False, moved=_moved)
reverse = _ops.offer("attention_values_reverse", _reverse, _Reverse)
second = _ops.offer("attention_values_second", _second, _Second)
