"""The largest curvature of a transformer's loss, by power iteration with Hessian-vector products:
forward mode over reverse mode, at the cost of a few gradients, without a Hessian."""

import torch
from torch.func import functional_call, grad, jvp

from basin.torch import attention

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self, tokens=50, width=32):
        super().__init__()
        self.embed, self.qkv = torch.nn.Embedding(tokens, width), torch.nn.Linear(width, 3 * width)
        self.leave = torch.nn.Linear(width, tokens)

    def forward(self, x):
        h = self.embed(x)
        q, k, v = self.qkv(h).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        h = h + attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return self.leave(h)


net, text = Net(), torch.randint(0, 50, (8, 65))
weights = {n: w.detach() for n, w in net.named_parameters()}


def loss(weights):
    out = functional_call(net, weights, (text[:, :-1],))
    return torch.nn.functional.cross_entropy(out.flatten(0, 1), text[:, 1:].flatten())


def hvp(along):
    return jvp(grad(loss), (weights,), (along,))[1]


def dot(a, b):
    return sum((a[n] * b[n]).sum() for n in a)


along = {n: torch.randn_like(w) for n, w in weights.items()}
for step in range(25):
    size = dot(along, along).sqrt()
    along = {n: x / size for n, x in along.items()}
    moved = hvp(along)
    top = dot(along, moved)
    if step % 8 == 0:
        print(f"step {step:2d}  curvature {top.item():.5f}")
    along = moved
left = {n: moved[n] - top * along[n] / dot(along, along).sqrt() for n in moved}
step = {n: 1e-3 * x / dot(along, along).sqrt() for n, x in along.items()}
near = [grad(loss)({n: w + s * step[n] for n, w in weights.items()}) for s in (1, -1)]
slope = dot(step, {n: near[0][n] - near[1][n] for n in step}) / (2 * dot(step, step))
print(f"by differences of gradients {slope.item():.5f}")
assert abs(slope - top) < 0.02 * abs(top)
