"""A physics-informed network with attention over the collocation points: the loss contains slopes
of u by its coordinates. It learns u_t + u_x = 0 from u(x, 0) = sin x alone."""

import torch

from basin.torch import attention

torch.manual_seed(0)


class Net(torch.nn.Module):
    """u at each point; points of one x see each other along time."""

    def __init__(self, width=32):
        super().__init__()
        self.enter, self.qkv = torch.nn.Linear(3, width), torch.nn.Linear(width, 3 * width)
        self.mix, self.leave = torch.nn.Linear(width, width), torch.nn.Linear(width, 1)

    def forward(self, x, t):  # [B, N]
        h = torch.tanh(self.enter(torch.stack([x.sin(), x.cos(), t], -1)))
        q, k, v = self.qkv(h).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        h = h + attention(q, k, v).transpose(1, 2).flatten(2)
        return self.leave(torch.tanh(self.mix(h)))[..., 0]


def points(count=64, times=6):
    x = 6.2832 * torch.rand(count, 1).expand(count, times)
    t = torch.linspace(0, 1, times).expand(count, times)
    return x.clone().requires_grad_(), t.clone().requires_grad_()


net = Net()
adam = torch.optim.Adam(net.parameters(), 5e-3)
for step in range(401):
    x, t = points()
    u = net(x, t)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    physics = (u_t + u_x).square().mean()
    start = (u[:, 0] - x[:, 0].sin()).square().mean()
    adam.zero_grad()
    (physics + 5 * start).backward()
    adam.step()
    if step % 200 == 0:
        print(f"step {step:3d}  equation {physics.item():.4f}  start {start.item():.5f}")
x, t = points(256)
error = (net(x, t) - (x - t).sin()).square().mean().sqrt().item()
print(f"error of u over all times {error:.3f}")
assert error < 0.15
