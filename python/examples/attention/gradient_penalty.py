"""A critic of point sets whose slope is held near 1 (WGAN-GP): the loss contains a gradient."""

import torch
from torch import nn

from basin.torch import attention

torch.manual_seed(0)


class Critic(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.enter, self.qkv = nn.Linear(2, width), nn.Linear(width, 3 * width)
        self.leave = nn.Linear(width, 1)

    def forward(self, points):  # [B, N, 2]
        x = self.enter(points)
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + attention(q, k, v).transpose(1, 2).flatten(2)
        return self.leave(torch.tanh(x)).mean((1, 2))


def penalty(critic, real, fake):
    mixed = torch.lerp(real, fake, torch.rand(len(real), 1, 1)).requires_grad_()
    (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


def batch(size=32, points=24):
    angle = torch.rand(size, points) * 6.2832
    circle = torch.stack([angle.cos(), angle.sin()], -1)
    return circle, torch.randn(size, points, 2)


critic = Critic()
adam = torch.optim.Adam(critic.parameters(), 3e-3)
for step in range(121):
    real, fake = batch()
    gap, slope = critic(real).mean() - critic(fake).mean(), penalty(critic, real, fake)
    adam.zero_grad()
    (10 * slope - gap).backward()
    adam.step()
    if step % 60 == 0:
        print(f"step {step:3d}  gap {gap.item():6.3f}  penalty {slope.item():.4f}")
assert gap > 0.2 and slope < 0.5
