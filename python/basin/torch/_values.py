"""Softmax attention with values as a function of PyTorch tensors: what callers give, as the
operations take it."""

from __future__ import annotations

import math

import torch

from basin._engine import eager as _eager
from basin._engine.library import BasinError
from basin.torch._attention import Pairs, cast, rounds_products
from basin.torch._ops import PLAIN, watched
from basin.torch._ops import attention as _attention


def _check(query, key, value, enable_gqa):
    names = {"query": query, "key": key, "value": value}
    for name, x in names.items():
        if not isinstance(x, torch.Tensor):
            raise BasinError(f"{name} is a {type(x).__name__}, expected a tensor of PyTorch's")
        if x.ndim < 2:
            raise BasinError(f"{name} of shape {list(x.shape)}, expected [.., tokens, width]")
        if x.dtype != query.dtype or x.device != query.device:
            raise BasinError(
                f"query is {query.dtype} on {query.device}, {name} {x.dtype} on {x.device}"
            )
    if query.device.type not in ("cpu", "cuda", "meta"):
        raise BasinError(f"query on {query.device}, expected cpu or cuda")
    if not _attention.f.computes(query):
        raise BasinError(
            f"query of {query.dtype} on {query.device}; expected float32, bfloat16 or float16 on "
            "cpu or cuda, or float64 on cpu"
        )

    def shapes():
        return " and ".join(f"{name} {list(x.shape)}" for name, x in names.items())

    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise BasinError(
            f"{shapes()}: queries and keys must have one width, keys and values as many tokens"
        )
    heads = query.shape[-3] if query.ndim > 2 else 1
    shared = key.shape[-3] if key.ndim > 2 else 1
    valued = value.shape[-3] if value.ndim > 2 else 1
    if enable_gqa and (shared == 0 or heads % shared or valued != shared):
        raise BasinError(
            f"{shapes()}: keys and values need as many heads, which divide those of queries"
        )


def _check_mask(mask, query, pairs):
    if not isinstance(mask, torch.Tensor):
        raise BasinError(f"attn_mask is a {type(mask).__name__}, expected a tensor of PyTorch's")
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        raise BasinError(
            f"attn_mask of {mask.dtype}, expected bool (True takes part) or floating-point numbers "
            "that are added; .bool() makes a mask of ones and zeros"
        )
    if mask.dtype == torch.bool and pairs is not None:
        raise BasinError("attn_mask of a list is a bias, not bool; list the pairs that count")
    if mask.device != query.device:
        raise BasinError(f"attn_mask on {mask.device}, query on {query.device}")


def _batch_of(x, batch, grouped):
    """x [.., H, N, Y] as [B, H, N, Y]; heads that are shared stay so."""
    heads = x.shape[-3:-2] if grouped else batch[-1:]
    shape = (*batch[:-1], *heads, *x.shape[-2:])
    x = x if x.shape == shape else x.expand(shape)
    return x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:]) if x.ndim != 4 else x


def _bias_of(mask, shape, real):
    """A mask or bias that broadcasts to [.., H, N, M], as [B, H, N, M]."""
    if mask.dtype == torch.bool:
        added = torch.zeros((), dtype=real, device=mask.device).expand(mask.shape)
        mask = added.masked_fill(mask.logical_not(), -math.inf)  # vmap may have one mask for each
    mask = mask.to(real)
    lead = math.prod(shape[:-3])
    try:
        wide = torch.broadcast_shapes(mask.shape, shape) == shape
    except RuntimeError:
        wide = False
    if not wide:
        raise BasinError(
            f"attn_mask of shape {list(mask.shape)}, expected one that broadcasts to {list(shape)}"
        )
    mask = mask.reshape(*(1,) * (len(shape) - mask.ndim), *mask.shape)
    mask = mask.expand(*mask.shape[:-1], shape[-1])
    if math.prod(mask.shape[:-3]) != 1:
        mask = mask.expand(*shape[:-3], *mask.shape[-3:])
    return mask.reshape(-1 if mask.numel() else lead, *mask.shape[-3:])


def _values(q, k, v, bias, packed, count, flags, factor):
    """Of tokens [B, H, N, ..]."""
    first = q.is_contiguous()
    flags |= _eager.HEADS_FIRST if first else 0
    q, k, v = (x if first else x.transpose(1, 2) for x in (q, k, v))
    (out,) = _attention.values((flags, count, factor, 1), q, k, v, bias, packed)
    return out if first else out.transpose(1, 2)


def _list_of(pairs, mask, is_causal, query, key, real):
    """The packed list, its length and the bias [B, P, H]."""
    sizes = query.shape[2], key.shape[2]
    _eager.pattern_of(pairs, Pairs, "torch", is_causal, *sizes, 0)
    _attention.f.check_beside("pairs", pairs.packed, query)
    if mask is None:
        return pairs.packed, pairs.count, None
    expected = (pairs.count, query.shape[1])
    try:
        mask = mask.to(real).expand(expected)
    except RuntimeError:
        raise BasinError(
            f"attn_mask of shape {list(mask.shape)}, expected {list(expected)} for a list"
        ) from None
    return pairs.packed, pairs.count, mask[None]


_checked = {}


def _known(q, k, v, causal, scale):
    """Flags and factor of calls of tensors [B, H, N, Y], checked once per shape; None: others."""
    if type(q) not in PLAIN or type(k) not in PLAIN or type(v) not in PLAIN:
        return None
    if torch.is_autocast_enabled("cuda" if q.is_cuda else "cpu"):
        return None
    if scale is not None and type(scale) is not float:
        return None
    key = (
        q.shape, k.shape, v.shape, q.dtype, k.dtype, v.dtype, q.device, k.device, v.device, causal,
        scale, torch.get_float32_matmul_precision(),
    )  # fmt: skip
    known = _checked.get(key)
    if known is None:
        a, b, c = q.shape, k.shape, v.shape
        fits = len(a) == len(b) == len(c) == 4 and a[:2] == b[:2] == c[:2]
        fits = fits and _attention.f.computes(q)
        known = False
        if fits:
            _check(q, k, v, False)
            flags = _eager.CAUSAL if causal else 0
            if q.is_cuda and q.dtype == torch.float32 and rounds_products():
                flags |= _eager.TF32
            known = flags, 1 / math.sqrt(max(1, a[3])) if scale is None else scale
        if len(_checked) > 256:
            _checked.clear()
        _checked[key] = known
    return known


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | torch.Tensor | None = None, enable_gqa: bool = False, *,
    pairs: Pairs | None = None,
) -> torch.Tensor:  # fmt: skip
    """softmax(scale query key^T + attn_mask) value, in the place of
    torch.nn.functional.scaled_dot_product_attention, with derivatives to second order: backward of
    backward, forward mode, and either over the other. Memory grows with tokens, not their square.

    query [.., H, N, Y], key [.., H, M, Y], value [.., H, M, V]; with `enable_gqa` key and value may
    have fewer heads, which divide H. `attn_mask` broadcasts to [.., H, N, M]: bool (True takes
    part) or numbers that are added, which may be learnt. `scale` is a number or a tensor, which may
    be learnt ([] or [H]); None: 1 / sqrt(Y). `pairs` is a list of the pairs that count, and
    attn_mask then [P, H]. A query that sees no key has 0. Third derivatives, but along lists, are
    computed with memory for every pair.

    >>> from basin.torch import attention
    >>> q, k, v = torch.randn(3, 1, 2, 5, 8)
    >>> usual = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    >>> torch.allclose(attention(q, k, v), usual, atol=1e-5)
    True
    """
    if attn_mask is None and pairs is None and dropout_p == 0.0 and not watched():
        known = _known(query, key, value, bool(is_causal), scale)
        if known:
            return _values(query, key, value, None, None, 0, *known)
    if dropout_p != 0.0:
        raise BasinError(f"dropout_p is {dropout_p}, expected 0: this attention drops nothing")
    kind = "cuda" if isinstance(query, torch.Tensor) and query.is_cuda else "cpu"
    returned = getattr(query, "dtype", None)
    casts = torch.is_autocast_enabled(kind)
    if casts and returned != torch.float64:
        returned = torch.get_autocast_dtype(kind)
    if casts or returned == torch.float16:
        query, key, value = (cast(x, kind) for x in (query, key, value))
    _check(query, key, value, enable_gqa)
    if attn_mask is not None:
        _check_mask(attn_mask, query, pairs)
    if attn_mask is not None and is_causal:
        raise BasinError("attn_mask and is_causal were given, expected one of them")
    real = torch.float64 if query.dtype == torch.float64 else torch.float32
    if isinstance(scale, torch.Tensor):
        heads = query.shape[-3] if query.ndim > 2 else 1
        if scale.ndim > 1 or scale.numel() not in (1, heads):
            raise BasinError(f"scale of shape {list(scale.shape)}, expected a number or [H]")
        scale = scale.to(real).reshape(() if scale.numel() == 1 else (-1, 1, 1))
        query = (query.to(real) * scale).to(query.dtype)  # bfloat16 would round the scale's slope
        factor = 1.0
    else:
        factor = 1 / math.sqrt(max(1, query.shape[-1])) if scale is None else float(scale)
    grouped = enable_gqa and min(query.ndim, key.ndim, value.ndim) > 2
    grouped = grouped and key.shape[-3] != query.shape[-3]
    lead = [x.shape[:-3] if grouped else x.shape[:-2] for x in (query, key, value)]
    try:
        batch = torch.broadcast_shapes(*lead)
    except RuntimeError:
        raise BasinError(
            f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)}: "
            "batches and heads do not broadcast" + ("" if enable_gqa else "; enable_gqa=True?")
        ) from None
    batch = (*batch, query.shape[-3]) if grouped else tuple(batch)
    inner = (1,) * (1 - len(batch)) + batch
    q = _batch_of(query, inner, False)
    k, v = (_batch_of(x, inner, grouped) for x in (key, value))
    flags = _eager.CAUSAL if is_causal else 0
    half = returned == torch.float16  # which tf32 holds
    if q.is_cuda and q.dtype == torch.float32 and (half or rounds_products()):
        flags |= _eager.TF32
    packed, count, bias = None, 0, None
    if pairs is not None:
        packed, count, bias = _list_of(pairs, attn_mask, is_causal, q, k, real)
    elif attn_mask is not None:
        bias = _bias_of(attn_mask, (*inner, q.shape[2], k.shape[2]), real)
    out = _values(q, k, v, bias, packed, count, flags, factor)
    out = out.reshape(*batch, query.shape[-2], value.shape[-1])
    return out.to(returned)
