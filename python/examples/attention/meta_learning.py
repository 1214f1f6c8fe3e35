"""MAML: weights from which one gradient step fits a new sine wave. The outer gradient goes through
the inner one."""

import torch
from torch.func import functional_call

from basin.torch import attention

torch.manual_seed(0)


class Net(torch.nn.Module):
    """Predicts y at points x that are seen together."""

    def __init__(self, width=32):
        super().__init__()
        self.enter, self.qkv = torch.nn.Linear(1, width), torch.nn.Linear(width, 3 * width)
        self.leave = torch.nn.Linear(width, 1)

    def forward(self, x):  # [tasks, N, 1]
        h = torch.tanh(self.enter(x))
        q, k, v = self.qkv(h).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        return self.leave(torch.tanh(h + attention(q, k, v).transpose(1, 2).flatten(2)))


def tasks(count=16, points=10):
    size, phase = 0.5 + torch.rand(count, 1, 1), 3.14 * torch.rand(count, 1, 1)
    x = 6 * torch.rand(2, count, points, 1) - 3
    return x, size * torch.sin(x + phase)


def loss(net, weights, x, y):
    return (functional_call(net, weights, (x,)) - y).square().mean((1, 2)).sum()


net = Net()
weights = dict(net.named_parameters())
adam = torch.optim.Adam(net.parameters(), 3e-3)
history = []
for _ in range(300):
    (seen, new), (seen_y, new_y) = tasks()
    first = loss(net, weights, seen, seen_y)
    slopes = torch.autograd.grad(first, weights.values(), create_graph=True)
    fitted = {n: w - 0.02 * s for (n, w), s in zip(weights.items(), slopes)}
    outer = loss(net, fitted, new, new_y) / len(new)
    adam.zero_grad()
    outer.backward()
    adam.step()
    history.append(outer.item())
before, after = sum(history[:20]) / 20, sum(history[-20:]) / 20
print(f"error on new points after one step: {before:.3f} before, {after:.3f} after meta-training")
assert after < 0.6 * before
