"""Sliced score matching of a set of points: the loss contains a Jacobian-vector product, and its
gradient goes through it. Consistency and mean-flow models take the same product along time."""

import torch

from basin.torch import attention

torch.manual_seed(0)


class Score(torch.nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.enter, self.qkv = torch.nn.Linear(2, width), torch.nn.Linear(width, 3 * width)
        self.mix, self.leave = torch.nn.Linear(width, width), torch.nn.Linear(width, 2)

    def forward(self, points):  # [B, N, 2] to the slope of their log-density
        h = self.enter(points)
        q, k, v = self.qkv(h).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        h = h + attention(q, k, v).transpose(1, 2).flatten(2)
        return self.leave(torch.nn.functional.silu(self.mix(h)))


def sets(count=64, points=12):
    """Points about a center of their own: the score depends on all of them."""
    return torch.randn(count, 1, 2) + 0.5 * torch.randn(count, points, 2)


score = Score()
adam = torch.optim.Adam(score.parameters(), 4e-3)
for step in range(301):
    x = sets()
    along = torch.randn_like(x)
    slope, moved = torch.func.jvp(score, (x,), (along,))
    loss = ((along * moved).sum(-1) + 0.5 * slope.square().sum(-1)).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 100 == 0:
        print(f"step {step:3d}  loss {loss.item():8.3f}")
x = sets(512)
mean = x.mean(1, keepdim=True)
exact = -(x - mean) / 0.25 - mean / (0.25 + 12)  # of a Gaussian with a Gaussian center
with torch.no_grad():
    alike = torch.nn.functional.cosine_similarity(score(x).flatten(), exact.flatten(), 0)
print(f"cosine with the exact score {alike.item():.2f}")
assert alike > 0.8
