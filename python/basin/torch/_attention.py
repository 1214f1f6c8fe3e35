"""Energy attention as functions of PyTorch tensors: operations of what callers give."""

from __future__ import annotations

import torch

from basin._engine import eager as _eager
from basin._engine.attention import Problem, nodes_of
from basin._engine.library import BasinError
from basin.torch import _ops


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
        f = _ops.attention.f
        ends = nodes_of(f, self.packed, self.queries, self.keys, self.count)
        return torch.stack([x.long() for x in ends], 1)

    def to(self, device: torch.device | str) -> Pairs:
        """The same list on another device."""
        other = object.__new__(Pairs)
        other.queries, other.keys, other.count = self.queries, self.keys, self.count
        other.packed = self.packed.to(device)
        return other


_ops.attention.f.Pairs = Pairs


# ---- what callers give, as the operations take it ----


def cast(x, kind):
    """As AMP has it on that kind of device; float16 is computed in float32."""
    if torch.is_autocast_enabled(kind) and x.dtype != torch.float64:
        expected = torch.get_autocast_dtype(kind)
        x = x.to(torch.float32 if expected == torch.float16 else expected)
    return x.float() if x.dtype == torch.float16 else x


def rounds_products():
    return torch.get_float32_matmul_precision() != "highest"


rounds_products._dynamo_marked_constant = True  # torch.compile calls it, which it cannot trace


def _checked(q, k, *options):
    """The problem, and tokens of a type that is computed in."""
    for name, x in {"queries": q, "keys": k}.items():
        if not isinstance(x, torch.Tensor):
            raise BasinError(f"{name} are a {type(x).__name__}, expected a tensor of PyTorch's")
    if q.device.type not in ("cpu", "cuda", "meta"):
        raise BasinError(f"queries on {q.device}, expected cpu or cuda")
    kind = "cuda" if q.is_cuda else "cpu"
    if torch.is_autocast_enabled(kind) or torch.float16 in (q.dtype, k.dtype):
        q, k = cast(q, kind), cast(k, kind)
    flags = _eager.TF32 if q.is_cuda and rounds_products() else 0
    return Problem(_ops.attention, q, k, *options, flags), q, k


_known = {}


def _problem(q, k, beta, pairs, scale, exclude_self, layout):
    """The same; with a number as beta, without list and scale, unwatched, checked once a shape."""
    options = beta, pairs, scale, exclude_self, layout
    usual = type(beta) is float and scale is None and (pairs is None or type(pairs) is str)
    plain = type(q) in _ops.PLAIN and type(k) in _ops.PLAIN
    if not usual or not plain or _ops.watched() or q.dtype == torch.float16:
        return _checked(q, k, *options)
    if torch.is_autocast_enabled("cuda" if q.is_cuda else "cpu"):
        return _checked(q, k, *options)
    exact = torch.get_float32_matmul_precision()
    key = q.shape, k.shape, q.dtype, k.dtype, q.device, k.device, q.is_contiguous(), exact, options
    if key not in _known:
        if _ops.is_captured(q.device):
            return _checked(q, k, *options)
        if len(_known) > 64:
            _known.clear()
        _known[key] = _checked(q, k, *options)[0]
    return _known[key], q, k


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
    problem, q, k = _problem(q, k, beta, pairs, scale, exclude_self, layout)
    return problem.lse(q, k)


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
    problem, q, k = _problem(q, k, beta, pairs, scale, exclude_self, layout)
    return problem.energy(q, k)


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
    problem, q, k = _problem(q, k, beta, pairs, scale, exclude_self, layout)
    return problem.force(q, k)
