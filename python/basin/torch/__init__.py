"""Energies as operations of PyTorch: any that is written in Python (module, value, force,
unroll), and energy attention with its own kernels.

>>> import torch
>>> from basin.torch import energy_attention
>>> q, k = torch.randn(2, 1, 4, 5, 8, requires_grad=True)
>>> energy = energy_attention(q, k, beta=8**-0.5)  # [1, 4, 5]: batch, heads, queries
>>> slope, = torch.autograd.grad(energy.sum(), q, create_graph=True)
>>> loss = slope.square().sum()  # of the force: its gradient is of second order
>>> torch.autograd.grad(loss, q)[0].shape
torch.Size([1, 4, 5, 8])

Queries and keys are [.., H, N, Y], as scaled_dot_product_attention has them, or [.., N, H, Y] with
layout="nhy". float32 and bfloat16 on cpu and cuda; float64 on cpu, in plain loops, for gradcheck.
Memory grows with tokens, never with their square.
"""

try:
    import torch  # noqa: F401
except ImportError as missing:
    raise ImportError("basin.torch needs PyTorch: pip install torch") from missing

from basin.torch._attention import Pairs, attention_force, attention_lse, energy_attention
from basin.torch._block import EnergyBlock
from basin.torch._energy import EnergyModule, fixed_point, force, module, unroll, value
from basin.torch._values import attention

__all__ = [
    "EnergyBlock", "EnergyModule", "Pairs", "attention", "attention_force", "attention_lse",
    "energy_attention", "fixed_point", "force", "module", "unroll", "value",
]  # fmt: skip
