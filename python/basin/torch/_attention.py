"""Energy attention as functions of PyTorch tensors: what callers give, as the operations take
it."""

from __future__ import annotations

import functools
import numbers

import torch

from basin._engine import eager as _eager
from basin._engine.library import BasinError
from basin.torch._ops import DK, DQ, PLAIN, force, lse, watched


class Pairs(_eager.Pairs):
    """A list of pairs (query, key), the edges of a graph: attention runs only over these.

    >>> from basin.torch import Pairs
    >>> pairs = Pairs([(0, 1), (1, 2)], 3, both_ways=True)
    >>> pairs.edges().tolist()
    [[0, 1], [1, 0], [1, 2], [2, 1]]
    """

    def __init__(
        self, edges: object, queries: int, keys: int | None = None, *, both_ways: bool = False,
        drop_self: bool = False, add_self: bool = False, device: torch.device | str | None = None,
    ) -> None:  # fmt: skip
        """`edges` are integers [E, 2] (query, key) among `queries` and `keys` nodes; equal ones are
        merged. `both_ways` adds each edge the other way, `drop_self` leaves out pairs of a node
        with itself, `add_self` adds one for each node."""
        if isinstance(edges, torch.Tensor):
            device = edges.device if device is None else device
            edges = edges.detach().cpu().numpy()
        packed = self._pack(edges, queries, keys, both_ways, drop_self, add_self)
        self.packed = torch.from_numpy(packed).to(device or "cpu")

    def edges(self) -> torch.Tensor:
        """The pairs [P, 2] in the order that `scale` has: by query, then by key."""
        (row, key, *_), _ = _eager.list_offsets(self.queries, self.keys, self.count)
        degree = self.packed[row : row + self.queries + 1].diff().long()
        nodes = torch.arange(self.queries, device=self.packed.device)
        queries = torch.repeat_interleave(nodes, degree)
        return torch.stack([queries, self.packed[key : key + self.count].long()], 1)

    def to(self, device: torch.device | str) -> Pairs:
        """The same list on another device."""
        other = object.__new__(Pairs)
        other.queries, other.keys, other.count = self.queries, self.keys, self.count
        other.packed = self.packed.to(device)
        return other


# ---- what callers give, as the operations take it ----


_TYPES = {torch.float32, torch.bfloat16, torch.float64}


@functools.lru_cache(maxsize=64)
def _kept(value, shape, dtype, device):
    with torch.inference_mode(False):  # training may use it later
        made = torch.full(shape, value, dtype=dtype, device=device)
    if made.is_cuda:  # others may read it on other streams
        torch.cuda.current_stream(device).synchronize()
    return made


def _captured(device):
    """Whether a CUDA graph is captured, whose memory holds nothing until it is replayed."""
    return torch.device(device).type == "cuda" and torch.cuda.is_current_stream_capturing()


def _full(value, shape, dtype, device):
    """A constant; eager calls make it once."""
    if watched() or _captured(device):
        return torch.full(shape, value, dtype=dtype, device=device)
    return _kept(value, shape, dtype, device)


def _cast(x, kind):
    """As AMP has it on that kind of device; float16 is computed in float32."""
    if torch.is_autocast_enabled(kind) and x.dtype != torch.float64:
        expected = torch.get_autocast_dtype(kind)
        x = x.to(torch.float32 if expected == torch.float16 else expected)
    return x.float() if x.dtype == torch.float16 else x


def _check_kinds(q, k, beta):
    for name, x in {"queries": q, "keys": k}.items():
        if not isinstance(x, torch.Tensor):
            raise BasinError(f"{name} are a {type(x).__name__}, expected a tensor of PyTorch's")
    if not isinstance(beta, (torch.Tensor, numbers.Real)):
        raise BasinError(f"beta is {beta!r}, expected a number or a tensor [H]")
    if q.device.type not in ("cpu", "cuda", "meta"):
        raise BasinError(f"queries on {q.device}, expected cpu or cuda")


def _check_tokens(q, k):
    a, b = q.shape, k.shape
    if len(a) < 3 or (a != b and (len(a) != len(b) or a[:-2] != b[:-2] or a[-1] != b[-1])):
        raise BasinError(
            f"queries {list(q.shape)} and keys {list(k.shape)}, expected [.., H, N, Y] that differ "
            "only in N"
        )
    if q.dtype != k.dtype or q.device != k.device:
        raise BasinError(f"queries are {q.dtype} on {q.device}, keys {k.dtype} on {k.device}")
    if q.dtype not in _TYPES or (q.is_cuda and q.dtype == torch.float64):
        raise BasinError(
            f"queries of {q.dtype} on {q.device}; expected float32 or bfloat16 on cpu or cuda, or "
            "float64 on cpu"
        )


def _beta_of(beta, q):
    """[1] or [H], on the device of q."""
    real = torch.float64 if q.dtype == torch.float64 else torch.float32
    if not isinstance(beta, torch.Tensor):
        return _full(float(beta), (1,), real, q.device)
    if beta.ndim > 1 or beta.numel() not in (1, q.shape[1]):
        raise BasinError(
            f"beta of shape {list(beta.shape)}, expected a number or [H], here [{q.shape[1]}]"
        )
    return beta.reshape(-1).to(q.device, real)


def _rounds_products():
    return torch.get_float32_matmul_precision() != "highest"


_rounds_products._dynamo_marked_constant = True  # torch.compile calls it, which it cannot trace


def _pattern_of(pairs, exclude_self, q, k):
    """The packed list, its length, and flags."""
    flags = _eager.TF32 if q.is_cuda and _rounds_products() else 0
    sizes = q.shape[2], k.shape[2]
    found, *rest = _eager.pattern_of(pairs, Pairs, "torch", exclude_self, *sizes, flags)
    if found is not None and found.packed.device != q.device:
        raise BasinError(f"pairs on {found.packed.device}, queries on {q.device}; use pairs.to()")
    return None if found is None else found.packed, *rest


def _scale_of(scale, q, k, count, listed, layout, batch):
    if scale is None:
        return None
    real = torch.float64 if q.dtype == torch.float64 else torch.float32
    scale = torch.as_tensor(scale)
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    sizes = (heads, queries, keys) if layout == "hny" else (queries, keys, heads)
    expected = (count, heads) if listed else (*batch, *sizes)
    try:
        scale = scale.to(q.device, real).expand(expected)
    except RuntimeError:
        raise BasinError(
            f"scale of shape {list(scale.shape)}, expected {list(expected)} or one that broadcasts"
        ) from None
    if listed:
        return scale
    scale = scale if layout == "hny" else scale.movedim(-1, -3)
    return scale.reshape(-1, *scale.shape[-3:])


class _Problem:
    """The operands of one attention as the operations take them, and the way back."""

    def __init__(self, q, k, beta, pairs, scale, exclude_self, layout):
        if layout not in ("hny", "nhy"):
            raise BasinError(f"layout {layout!r}, expected 'hny' or 'nhy'")
        _check_kinds(q, k, beta)
        self.layout = layout
        if layout == "nhy":
            q, k = q.transpose(-2, -3), k.transpose(-2, -3)
        kind = "cuda" if q.is_cuda else "cpu"
        if torch.is_autocast_enabled(kind) or torch.float16 in (q.dtype, k.dtype):
            q, k = _cast(q, kind), _cast(k, kind)
        _check_tokens(q, k)
        self.batch = batch = q.shape[:-3]
        if len(batch) != 1:
            q, k = q.reshape(-1, *q.shape[-3:]), k.reshape(-1, *k.shape[-3:])
        packed, count, flags = _pattern_of(pairs, exclude_self, q, k)
        self.number = None if isinstance(beta, torch.Tensor) else float(beta)
        if self.number == 0:
            raise BasinError("beta is 0, expected another number: energies are divided by it")
        self.beta = beta = _beta_of(beta, q)
        scale = _scale_of(scale, q, k, count, packed is not None, layout, batch)
        self.operands = (q, k, beta, scale, packed, count, flags)
        # The kernels sum gradients of beta and scale over one entry of a batch with a list.
        shared = scale is not None or (beta.requires_grad and torch.is_grad_enabled())
        self.apart = packed is not None and len(q) > 1 and shared

    def lse(self, factor=None):
        """[B, H, N], times a factor."""
        if not self.apart:
            return lse(*self.operands, factor=factor)
        q, k, *rest = self.operands
        parts = [lse(q[i : i + 1], k[i : i + 1], *rest, factor=factor) for i in range(len(q))]
        return torch.cat(parts)

    def force(self):
        """dq, dk [B, H, N, Y]"""
        w = self.weights()
        if not self.apart:
            return force(*self.operands, w, DQ | DK)[:2]
        q, k, *rest = self.operands
        entries = [slice(i, i + 1) for i in range(len(q))]
        parts = [force(q[i], k[i], *rest, w[i], DQ | DK)[:2] for i in entries]
        return [torch.cat(part) for part in zip(*parts)]

    def energy(self):
        """-lse / beta [B, H, N]."""
        if self.number is not None:  # multiplying by a tensor is the quicker call
            return self.lse(_full(-1 / self.number, (), torch.float64, "cpu"))
        return -self.lse() / (self.beta if self.beta.numel() == 1 else self.beta[:, None])

    def weights(self):
        """The cotangent 1 / beta of each log-sum-exp."""
        batch, heads, queries, _ = self.operands[0].shape
        shape, real = (batch, heads, queries), self.beta.dtype
        if self.number is not None:
            return _full(1 / self.number, shape, real, self.beta.device)
        return (1 / self.beta).reshape(-1, 1).expand(shape)

    def back(self, x, tokens=True):
        """x [B, H, N, ..] in the caller's shape."""
        if len(self.batch) != 1:
            x = x.reshape(*self.batch, *x.shape[1:])
        if self.layout == "nhy":
            return x.transpose(-2, -3) if tokens else x.transpose(-1, -2)
        return x


class _Known:
    """What calls of one shape with a number as beta have beside q and k."""

    __slots__ = ("beta", "factor", "rest", "w")

    def __init__(self, problem):
        self.beta, self.rest = problem.number, problem.operands[2:]
        self.factor = _full(-1 / self.beta, (), torch.float64, "cpu")  # of energies
        self.w = None

    def weights(self, q):
        """As _Problem.weights; kept from the first time that a force is asked for."""
        if self.w is not None:
            return self.w
        w = _full(1 / self.beta, q.shape[:3], self.rest[0].dtype, q.device)
        self.w = None if _captured(q.device) else w
        return w


_checked = {}


def _known(q, k, beta, pairs, scale, exclude_self, layout):
    """What calls of tensors [B, H, N, Y] with a number as beta, without list and scale, have beside
    q and k, checked once a shape. None for other calls, and where somebody watches."""
    if type(beta) is not float or scale is not None or layout != "hny":
        return None
    if pairs is not None and type(pairs) is not str:
        return None
    if type(q) not in PLAIN or type(k) not in PLAIN or watched():
        return None
    if torch.is_autocast_enabled("cuda" if q.is_cuda else "cpu"):
        return None
    tf32 = torch.get_float32_matmul_precision()
    key = q.shape, k.shape, q.dtype, k.dtype, q.device, k.device, beta, pairs, exclude_self, tf32
    if key in _checked:
        return _checked[key]
    problem = _Problem(q, k, beta, pairs, scale, exclude_self, layout)
    if len(problem.batch) != 1 or q.dtype == torch.float16 or _captured(q.device):
        return None
    if len(_checked) > 64:
        _checked.clear()
    _checked[key] = _Known(problem)
    return _checked[key]


def attention_lse(
    q: torch.Tensor, k: torch.Tensor, beta: float | torch.Tensor, pairs: Pairs | str | None = None,
    scale: torch.Tensor | None = None, *, exclude_self: bool = False, layout: str = "hny",
) -> torch.Tensor:  # fmt: skip
    """log(sum over keys of exp(beta q . k scale)) for each query and head, [.., H, N].

    q [.., H, N, Y], k [.., H, M, Y]; beta a number or [H]. `pairs` is None (all of them), "causal"
    (a query sees its own token and those before it) or `Pairs`; `exclude_self` leaves out each
    token's pair with itself. `scale` multiplies scores: [.., H, N, M], or [P, H] for a list. It
    can be differentiated twice with respect to all of them. A query without keys has 0. With
    layout="nhy" heads come after tokens: q [.., N, H, Y], scale [.., N, M, H], result [.., N, H].

    >>> from basin.torch import attention_lse
    >>> x = torch.eye(3)[None]
    >>> attention_lse(x, x, 1.0, "causal").round(decimals=2)
    tensor([[1.0000, 1.3100, 1.5500]])
    """
    known = _known(q, k, beta, pairs, scale, exclude_self, layout)
    if known:
        return lse(q, k, *known.rest)
    problem = _Problem(q, k, beta, pairs, scale, exclude_self, layout)
    return problem.back(problem.lse(), tokens=False)


def energy_attention(
    q: torch.Tensor, k: torch.Tensor, beta: float | torch.Tensor, pairs: Pairs | str | None = None,
    scale: torch.Tensor | None = None, *, exclude_self: bool = False, layout: str = "hny",
) -> torch.Tensor:  # fmt: skip
    """The energy of attention, -lse / beta for each query and head, [.., H, N]; the paper's energy
    is the sum of these. Arguments are those of `attention_lse`.

    >>> from basin.torch import energy_attention
    >>> x = torch.eye(3)[None]
    >>> energy_attention(x, x, 1.0).sum().round(decimals=2)
    tensor(-4.6500)
    """
    known = _known(q, k, beta, pairs, scale, exclude_self, layout)
    if known:
        return lse(q, k, *known.rest, factor=known.factor)
    problem = _Problem(q, k, beta, pairs, scale, exclude_self, layout)
    return problem.back(problem.energy(), tokens=False)


def attention_force(
    q: torch.Tensor, k: torch.Tensor, beta: float | torch.Tensor, pairs: Pairs | str | None = None,
    scale: torch.Tensor | None = None, *, exclude_self: bool = False, layout: str = "hny",
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The force of `energy_attention`: minus the gradient of the summed energy with respect to q
    and k, like them. It is one operation, and cheaper than torch.autograd.grad of the energy; its
    own gradient is the reverse of the force.

    >>> from basin.torch import attention_force
    >>> x = torch.eye(3)[None]
    >>> attention_force(x, x, 1.0)[0][0, 0].round(decimals=2)
    tensor([0.5800, 0.2100, 0.2100])
    """
    known = _known(q, k, beta, pairs, scale, exclude_self, layout)
    if known:
        return force(q, k, *known.rest, known.weights(q), DQ | DK)[:2]
    problem = _Problem(q, k, beta, pairs, scale, exclude_self, layout)
    dq, dk = problem.force()
    return problem.back(dq), problem.back(dk)
