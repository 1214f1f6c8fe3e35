"""A physics-informed network with attention among the features of a point: the loss contains slopes
of u by its coordinates. It learns u_t + u_x = 0 from u(x, 0) = sin x alone."""

import torch

from basin.torch import attention

torch.manual_seed(0)


class Net(torch.nn.Module):
    """u at each point, of which 8 features see each other."""

    def __init__(self, tokens=8, width=16):
        super().__init__()
        self.tokens, self.enter = tokens, torch.nn.Linear(3, tokens * width)
        self.qkv, self.leave = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, 1)

    def forward(self, x, t):  # [N]
        h = torch.tanh(self.enter(torch.stack([x.sin(), x.cos(), t], -1)))
        h = h.unflatten(-1, (self.tokens, -1))
        q, k, v = self.qkv(h).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        h = h + attention(q, k, v).transpose(1, 2).flatten(2)
        return self.leave(torch.tanh(h)).sum((1, 2))


def points(count=256):
    x, t = 6.2832 * torch.rand(count), torch.rand(count)
    return x.requires_grad_(), t.requires_grad_()


net = Net()
adam = torch.optim.Adam(net.parameters(), 5e-3)
for step in range(401):
    x, t = points()
    u = net(x, t)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    physics = (u_t + u_x).square().mean()
    start = (net(x, 0 * t) - x.sin()).square().mean()
    adam.zero_grad()
    (physics + 5 * start).backward()
    adam.step()
    if step % 200 == 0:
        print(f"step {step:3d}  equation {physics.item():.4f}  start {start.item():.5f}")
x, t = points(1024)
error = (net(x, t) - (x - t).sin()).square().mean().sqrt().item()
print(f"error of u over all times {error:.3f}")
assert error < 0.15
