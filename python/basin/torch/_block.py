"""The paper's block as a layer of PyTorch: tokens descend the energy of attention and memories."""

from __future__ import annotations

import torch
import torch.utils.checkpoint

from basin._engine.library import BasinError
from basin.torch._attention import Pairs, attention_force, energy_attention


class EnergyBlock(torch.nn.Module):
    """Tokens [.., N, D] after a descent of the block's energy: x <- x - alpha dE/dg, g = norm(x).

    E = -sum(lse(beta K . Q)) / beta - sum(relu(Xi g)^2) / 2 over all pairs of different tokens, or
    over those that `pairs` lists. Parameters have the names and shapes of Basin's own: wq, wk [H,
    Y, D], xi [M, D], gamma [], delta [D].

    >>> from basin.torch import EnergyBlock
    >>> block = EnergyBlock(dim=32, heads=4, head_dim=8, memories=64, steps=3)
    >>> block(torch.randn(2, 5, 32)).shape
    torch.Size([2, 5, 32])
    """

    def __init__(
        self, dim: int, heads: int = 12, head_dim: int = 64, memories: int | None = None,
        steps: int = 12, alpha: float = 0.1, beta: float | None = None, learn_beta: bool = False,
        recompute: bool = False, exclude_self: bool = True, epsilon: float = 1e-5,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        """`memories` is 4 dim and `beta` 1 / sqrt(head_dim) where they are None. With `recompute` a
        step's inner values are computed again in the backward pass: memory then grows by one tensor
        of tokens a step."""
        super().__init__()
        if min(dim, heads, head_dim, steps) < 1:
            raise BasinError(
                f"a block with dim {dim}, heads {heads}, head_dim {head_dim}, steps {steps}; "
                "expected 1 or more of each"
            )
        memories = 4 * dim if memories is None else memories
        beta = head_dim**-0.5 if beta is None else beta
        new = {"device": device, "dtype": dtype}
        self.wq = torch.nn.Parameter(torch.empty(heads, head_dim, dim, **new).normal_(std=0.002))
        self.wk = torch.nn.Parameter(torch.empty(heads, head_dim, dim, **new).normal_(std=0.002))
        self.xi = torch.nn.Parameter(torch.empty(memories, dim, **new).normal_(std=0.02))
        self.gamma = torch.nn.Parameter(torch.ones((), **new))
        self.delta = torch.nn.Parameter(torch.zeros(dim, **new))
        if learn_beta:
            beta = torch.nn.Parameter(torch.full((heads,), float(beta), **new))
        self.beta, self.steps, self.alpha = beta, steps, alpha
        self.recompute, self.exclude_self, self.epsilon = recompute, exclude_self, epsilon

    def extra_repr(self):
        heads, width, dim = self.wq.shape
        return (
            f"dim={dim}, heads={heads}, head_dim={width}, memories={len(self.xi)}, "
            f"steps={self.steps}, alpha={self.alpha}"
        )

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """The activations of tokens."""
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return self.gamma * ((x - mean) * torch.rsqrt(variance + self.epsilon)) + self.delta

    def _heads(self, g):
        heads, width, dim = self.wq.shape
        shape = (*g.shape[:-1], heads, width)
        q = torch.nn.functional.linear(g, self.wq.reshape(-1, dim)).reshape(shape)
        return q, torch.nn.functional.linear(g, self.wk.reshape(-1, dim)).reshape(shape)

    def _options(self, pairs):
        exclude = self.exclude_self and (pairs is None or isinstance(pairs, str))
        return {"pairs": pairs, "exclude_self": exclude, "layout": "nhy"}

    def energy(self, x: torch.Tensor, pairs: Pairs | str | None = None) -> torch.Tensor:
        """The energy of tokens [.., N, D], summed over all but the leading axes."""
        g = self.norm(x)
        q, k = self._heads(g)
        attention = energy_attention(q, k, self.beta, **self._options(pairs)).sum((-1, -2))
        hidden = torch.nn.functional.linear(g, self.xi).relu()
        return attention - hidden.square().sum((-1, -2)) / 2

    def force(self, g: torch.Tensor, pairs: Pairs | str | None = None) -> torch.Tensor:
        """-dE/dg."""
        q, k = self._heads(g)
        dq, dk = attention_force(q, k, self.beta, **self._options(pairs))
        dim = g.shape[-1]
        hidden = torch.nn.functional.linear(g, self.xi).relu()
        dq, dk = dq.flatten(-2).to(hidden.dtype), dk.flatten(-2).to(hidden.dtype)
        return dq @ self.wq.reshape(-1, dim) + dk @ self.wk.reshape(-1, dim) + hidden @ self.xi

    def _step(self, x, pairs):
        return x + self.alpha * self.force(self.norm(x), pairs).to(x.dtype)

    def forward(self, x: torch.Tensor, pairs: Pairs | str | None = None) -> torch.Tensor:
        """Tokens at the end of the descent; `pairs` as in energy_attention."""
        if x.ndim < 2 or x.shape[-1] != self.wq.shape[-1]:
            raise BasinError(f"tokens {list(x.shape)}, expected [.., N, {self.wq.shape[-1]}]")
        for _ in range(self.steps):
            if self.recompute and torch.is_grad_enabled():
                x = torch.utils.checkpoint.checkpoint(self._step, x, pairs, use_reentrant=False)
            else:
                x = self._step(x, pairs)
        return x
