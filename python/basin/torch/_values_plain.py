# type: ignore  where the framework is not installed, pyright takes this folder for it
"""Attention over all pairs of dense tensors while no transform or compiler waits: the same calls as
those of _values_ops, with what the host does for each of them found once for a shape."""

import math

import torch

from basin._engine import eager as _eager
from basin._engine.library import check
from basin.torch import _ops, _values_ops

_plans = {}
_is_batched = torch._C._functorch.is_legacy_batchedtensor


class _Part:
    """One operation of a plan; names are those of its addresses."""

    __slots__ = ("eager", "head", "names", "operation", "pack", "size")

    def __init__(self, head, operation, names, q):
        self.head, self.operation, self.names, self.size = head, operation, names, None
        self.eager = _ops._backend(q) if q.is_cuda else None  # threads of others may change
        self.pack = _eager._packer(names + _ops._WORK if q.is_cuda else names)

    def run(self, q, addresses):
        eager = self.eager
        if eager is None:
            eager = _ops._backend(q)
        else:
            if self.size is None:
                self.size = _eager.workspace_bytes(
                    eager, self.operation, self.head, self.names, addresses
                )
            room = q.new_empty(self.size, dtype=torch.uint8) if self.size else None
            stream = _ops._stream(q.get_device())
            addresses = (*addresses, room.data_ptr() if self.size else 0, self.size, stream)
        job = self.head + self.pack(*addresses)
        if _eager._run(eager, self.operation, job, _eager.NULL):
            check(_eager._run, eager, self.operation, job)  # once more, for the message


_SECOND = ("q", "k", "a", "b", "v", "c", "av", "gq", "gk", "gv", "gc")  # in the order of a job


class _Plan:
    __slots__ = ("factor", "flags", "flash", "kind", "recorded", "seconds", "slopes", "values")

    def __init__(self, q, k, v, causal, scale):
        batch, heads, queries, width = q.shape
        self.kind = q.device.type
        self.factor = 1 / math.sqrt(max(1, width)) if scale is None else scale
        self.flags = _eager.CAUSAL if causal else 0
        shared = (q, k, v, None, None, 0, self.flags, self.factor)
        self.flash = _values_ops._takes_flash(*shared)
        self.recorded = not self.flash or _values_ops._is_short(q, k, _values_ops._SHORT)
        sizes = (batch, queries, k.shape[2], heads, width, 0)
        head = _eager.values_head(
            _ops._NAMES[q.dtype], sizes, heads, v.shape[3], self.flags, self.factor, True,
            _values_ops._ONCE,
        )  # fmt: skip
        self.values = _Part(head, _eager.VALUES, ("q", "k", "v", "o"), q)
        names = ("q", "k", "v", "c", "dq", "dk", "dv")
        self.slopes = _Part(head, _eager.VALUES_REVERSE, names, q)
        self.seconds = {}  # by the tangents that are given and the results that are requested

    def result(self, q, k, v):
        out = torch.empty_like(q) if v.shape[3] == q.shape[3] else _values_ops._new_output(q, v)
        self.values.run(q, (q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr()))
        return out

    def gradients(self, q, k, v, places):
        """`places` are the addresses of q, k, v and c."""
        found = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        self.slopes.run(q, [*places, *[x.data_ptr() for x in found]])
        return found

    def second(self, like, places, needs):
        """Gradients by `like`: q, k, v and c; `places`: of q, k, tangents of them, v, c and a
        tangent of v, None where there is no tangent."""
        there = tuple([at is not None for at in places])
        part = self.seconds.get((there, needs))
        if part is None:
            names = zip(_SECOND, (*there, *needs))
            names = tuple(name for name, is_there in names if is_there)
            part = _Part(self.slopes.head, _eager.VALUES_SECOND, names, like[0])
            self.seconds[there, needs] = part
        found = [torch.empty_like(x) if need else None for x, need in zip(like, needs)]
        places = [at for at in places if at is not None]
        part.run(like[0], places + [x.data_ptr() for x in found if x is not None])
        return found


def _is_dense(*tensors):
    """Whether they lie as the kernels take them."""
    return all([x.is_contiguous() and not x.data_ptr() % 16 for x in tensors])


def _alone():
    """Whether no transform waits, and no tangents go along."""
    return not _ops.watched() and _ops._forward._current_level < 0


def _places(dtype, tensors):
    """The addresses of saved tensors and gradients that came in, some of which may be None; None
    where a plan does not compute with them."""
    if not _alone():
        return None
    found = []
    for x in tensors:
        at = None
        if x is not None:
            if _is_batched(x) or x.dtype != dtype or not x.is_contiguous():
                return None
            at = x.data_ptr()
            if at % 16:
                return None
        found.append(at)
    return found


class _Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, plan, q, k, v):
        ctx.save_for_backward(q, k, v)
        ctx.set_materialize_grads(False)
        ctx.plan = plan
        return plan.result(q, k, v)

    @staticmethod
    def backward(ctx, c):
        if c is None:
            return (None,) * 4
        q, k, v = ctx.saved_tensors
        plan, needs = ctx.plan, ctx.needs_input_grad
        places = _places(q.dtype, (q, k, v, c)) if all(needs[1:]) else None
        if places is not None:
            if not torch.is_grad_enabled():
                return None, *plan.gradients(q, k, v, places)
            return None, *_record(plan, places, q, k, v, c)
        shared = (q, k, v, None, None, 0, plan.flags, plan.factor)
        return None, *_values_ops.reverse(*shared, c, _ops._bits(needs[1:]))[:3]


class _PlainReverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, plan, places, q, k, v, c):
        ctx.save_for_backward(q, k, v, c)
        ctx.set_materialize_grads(False)
        ctx.plan = plan
        return plan.gradients(q, k, v, places)

    @staticmethod
    def backward(ctx, a, b, av):
        q, k, v, c = ctx.saved_tensors
        plan, needs = ctx.plan, ctx.needs_input_grad[2:]
        if not torch.is_grad_enabled():
            places = _places(q.dtype, (q, k, a, b, v, c, av))
            if places is not None:
                return None, None, *plan.second((q, k, v, c), places, needs)
        shared = (q, k, v, None, None, 0, plan.flags, plan.factor)
        requested = _ops._bits((*needs[:3], False, needs[3]))
        gq, gk, gv, _, gc = _values_ops.second(*shared, c, a, b, av, None, None, requested)
        return None, None, gq, gk, gv, gc


# Without what Function.apply does for transforms.
_apply = super(torch.autograd.Function, _Plain).apply
_record = super(torch.autograd.Function, _PlainReverse).apply


def _fits(q, k, v):
    """Whether these are [B, H, N, Y] of one batch and as many heads, in a type of the kernels."""
    a, b, c = q.shape, k.shape, v.shape
    return (
        len(a) == 4 and a[:2] == b[:2] == c[:2] and b[2] == c[2] and a[3] == b[3]
        and q.dtype == k.dtype == v.dtype and q.device == k.device == v.device
        and (q.dtype == torch.bfloat16 or (q.dtype == torch.float32 and not q.is_cuda))
        and q.device.type in ("cpu", "cuda")
    )  # fmt: skip


def plain(q, k, v, causal, scale):
    """The result, or None where somebody else is to compute it."""
    types = _ops.PLAIN
    if not (type(q) in types and type(k) in types and type(v) in types):
        return None
    if scale is not None and type(scale) is not float:
        return None
    if not _alone() or _is_batched(q) or _is_batched(k) or _is_batched(v):
        return None
    key = (
        q.shape, k.shape, v.shape, q.dtype, k.dtype, v.dtype, q.device, k.device, v.device, causal,
        scale, _values_ops._flash_enabled(),
    )  # fmt: skip
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) > 256:
            _plans.clear()
        plan = _plans[key] = _Plan(q, k, v, causal, scale) if _fits(q, k, v) else False
    if not plan or torch.is_autocast_enabled(plan.kind) or not _is_dense(q, k, v):
        return None
    if plan.kind == "cuda" and q.get_device() != _ops._current_device():
        return None
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return _apply(plan, q, k, v) if plan.recorded else None
    if not plan.flash:
        return plan.result(q, k, v)
    return _values_ops._usual(q, k, v, is_causal=causal, scale=plan.factor).contiguous()
