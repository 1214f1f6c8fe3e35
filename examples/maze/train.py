"""Trains the weights of examples/maze: several seeds at once, on small mazes.

    build/examples/maze generate 6000 9 --least 6 --most 24 --seed 11 > mazes9.csv
    build/examples/maze generate 64 30 --seed 21 > check.csv
    python examples/maze/train.py mazes9.csv --check check.csv -o maze.safetensors

A rule of neighbours does not depend on the side of the maze, so mazes of 9 x 9 are enough. What is hard is
when a cell may be judged: deep in a long dead end nothing tells a cell from one of the path until the end has
been filled up to it. A loss on all cells after every step asks for a guess there; weights trained so fill parts
of the path, too (docs/lab/sudoku.md).
Here a cell off the path counts only from the step on at which filling dead ends by --front cells per step
could have reached it. Cells of the path count always. So cells stay alive until a neighbour dies.

States are carried on from batch to batch, from random starts and along noisy paths, as in
examples/sudoku/train.py. In a share of the mazes dead ends are partly filled. Needs PyTorch; a CPU will do.
"""

import argparse
import math
import os
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../sudoku"))
from net import DEVICE, read, write

PATH = 10000


def new_weights(seeds, dim, memories):
    """Each [seeds, ..], by a generator for each seed."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def normal(*shape, scale):
        return torch.stack([scale * torch.randn(*shape, generator=g) for g in generators])

    n, width = len(seeds), 0.5 * dim**-0.5
    made = {
        "digit": normal(4, dim, scale=0.5),
        "head_w": normal(dim, 1, scale=2 * width),
        "zeta": normal(memories, dim, scale=width),
        "eta": normal(memories, dim, scale=width),
        "out": normal(memories, dim, scale=0.5 * memories**-0.5),
        "bias": torch.zeros(n, memories),
        "gamma": torch.ones(n),
        "delta": torch.zeros(n, dim),
        "alpha": torch.full((n,), 0.5),
    }
    return {name: value.to(DEVICE).requires_grad_() for name, value in made.items()}


# ---- the energy of net.py, tokens [seeds, B, side, side, D] ----


def first(w, given):
    hot = (given[..., None] == torch.arange(4, device=DEVICE)).float()
    return (hot.flatten(1, -2) @ w["digit"]).reshape(*given.shape, -1)


def norm(w, x):
    scaled = F.layer_norm(x, x.shape[-1:]) * w["gamma"].reshape(-1, 1, 1, 1, 1)
    return scaled + w["delta"][:, None, None, None]


def score(w, x):
    return (norm(w, x).flatten(1, -2) @ w["head_w"]).reshape(x.shape[:-1])


def near(a):
    """Half the sum of the four neighbours."""
    p = F.pad(a, (0, 0, 1, 1, 1, 1))
    return (p[:, :, 2:, 1:-1] + p[:, :, :-2, 1:-1] + p[:, :, 1:-1, 2:] + p[:, :, 1:-1, :-2]) / 2


def step(w, x, u):
    g, both, out = norm(w, x), torch.cat([w["eta"], w["zeta"]], 2), w["out"]
    seen = torch.cat([g, near(g)], -1).flatten(1, -2)
    h = seen @ both.transpose(1, 2) + w["bias"][:, None]
    p = torch.sigmoid(h)
    r = (g.flatten(1, -2) @ out.transpose(1, 2)) * p * (1 + h * (1 - p))
    own, others = (r @ both).reshape(*x.shape[:-1], -1).chunk(2, -1)
    force = ((h * p) @ out).reshape(x.shape) + own + near(others)
    return x + w["alpha"].reshape(-1, 1, 1, 1, 1) * (force + u - x)


# ---- mazes ----


def fill(given):
    """The sweep of filling dead ends that fills a cell, PATH on the path, 0 for walls."""
    alive, sweep = given > 0, torch.zeros_like(given, dtype=torch.int16)
    for k in range(1, given[0].numel() // 2):
        q = F.pad(alive.float(), (1, 1, 1, 1))
        count = q[:, 2:, 1:-1] + q[:, :-2, 1:-1] + q[:, 1:-1, 2:] + q[:, 1:-1, :-2]
        stay = alive & ((count >= 2) | (given > 1))
        if (stay == alive).all():
            break
        sweep, alive = torch.where(alive & ~stay, k, sweep), stay
    return torch.where(alive, PATH, sweep)


def open_mazes(path):
    given, solution = read(path, True)
    sweep = fill(given)
    if ((sweep == PATH) != (solution > 0)).any():
        sys.exit(f"{path}: needs mazes with one way between any two cells, as maze generate prints")
    return given, sweep


def right(w, x, given, sweep):
    return (((score(w, x) > 0) == (sweep == PATH)) | (given != 1)).flatten(2).all(2)


@torch.no_grad()
def evaluate(w, given, sweep, depth):
    """By depth: what is right, [seeds, mazes]."""
    given, sweep = (t[None].expand(len(w["alpha"]), *t.shape) for t in (given, sweep))
    u, found = first(w, given), {}
    x = u
    for i in range(1, depth + 1):
        x = step(w, x, u)
        if i >= 16 and i & (i - 1) == 0:
            found[i] = right(w, x, given, sweep)
    return found


# ---- training ----


class Training:
    """A pool of samples for each seed, and an iteration on it that can be a CUDA graph."""

    def __init__(self, options, given, sweep):
        self.options, self.given, self.sweep = options, given, sweep
        self.shape = (len(options.seeds), options.batch)
        self.w = new_weights(options.seeds, options.dim, options.memories)
        self.first = {k: torch.zeros_like(v) for k, v in self.w.items()}
        self.second = {k: torch.zeros_like(v) for k, v in self.w.items()}
        self.mean = {k: v.detach().clone() for k, v in self.w.items()}
        self.count, self.rate, self.grow, self.leave, self.new = (torch.zeros((), device=DEVICE) for _ in range(5))
        self.seen = torch.zeros(3, self.shape[0], device=DEVICE)
        with torch.no_grad():
            self.pool = [*self.fresh(), torch.zeros(self.shape, device=DEVICE)]

    def draw(self):
        return torch.rand(self.shape, device=DEVICE)

    def fresh(self):
        options = self.options
        at = torch.randint(len(self.given), self.shape, device=DEVICE)
        given, sweep = self.given[at], self.sweep[at]
        cut = torch.where(self.draw() < options.cut, (24 * self.draw()).floor(), 0.0).to(torch.int16)
        cut = cut[..., None, None]
        filled, off = (sweep > 0) & (sweep <= cut), (sweep > 0) & (sweep < PATH)
        given = torch.where(filled, 0, given)
        sweep = torch.where(filled, 0, torch.where(off, sweep - cut, sweep))
        start = torch.where(self.draw() < 0.4, 0.0, options.start * self.grow * self.draw())
        noise = torch.where(self.draw() < 0.5, 0.0, options.noise * self.grow * self.draw())
        u = first(self.w, given).detach()
        return given, sweep, u + start[..., None, None, None] * torch.randn_like(u), noise

    def iteration(self):
        options, w = self.options, self.w
        given, sweep, x, noise, age = self.pool
        u, on, loss = first(w, given), sweep == PATH, 0
        for i in range(options.steps):
            x = step(w, x, u) + noise[..., None, None, None] * torch.randn_like(x)
            each = F.binary_cross_entropy_with_logits(score(w, x), on.float(), reduction="none")
            steps = (age * options.steps + i + 1)[..., None, None]
            reached = options.front * steps >= sweep if options.front > 0 else ~on
            counted = ((given == 1) & (reached | on)).float()
            loss = loss + (each * counted).flatten(1).sum(1) / (counted.flatten(1).sum(1) + 1) / options.steps
        for value in w.values():
            value.grad = None
        loss.sum().backward()
        with torch.no_grad():
            self.update()
            ok = right(w, x, given, sweep)
            new = self.draw() < torch.where(ok, 1 - options.keep, self.leave)
            new |= (age > 64) | ~torch.isfinite(x.flatten(2).sum(2))
            for to, a, b in zip(self.pool, self.fresh(), (given, sweep, x, noise)):
                to.copy_(torch.where(new.reshape(*self.shape, *[1] * (to.dim() - 2)), a, b))
            age.copy_(torch.where(new, 0, age + 1))
            self.seen.copy_(torch.stack([loss, ok.float().mean(1), age.mean(1)]))

    def update(self):
        """AdamW; the gradient of each seed has a norm of 1 at most."""
        total = 0
        for value in self.w.values():
            value.grad.nan_to_num_(0, 0, 0)
            total = total + value.grad.reshape(self.shape[0], -1).square().sum(1)
        scale = (1 / (total.sqrt() + 1e-6)).clamp(max=1)
        self.count += 1
        for name, value in self.w.items():
            grad = value.grad * scale.reshape(-1, *[1] * (value.dim() - 1))
            self.first[name].lerp_(grad, 0.1)
            self.second[name].lerp_(grad * grad, 0.01)
            root = (self.second[name] / (1 - 0.99**self.count)).sqrt() + 1e-8
            by = self.first[name] / (1 - 0.9**self.count) / root
            value.sub_(self.rate * (by + 0.01 * value if value[0].dim() > 1 else by))
        self.w["gamma"].clamp_(min=1e-3)
        self.w["alpha"].clamp_(0.05, 1)
        for name, value in self.w.items():
            self.mean[name].add_((value - self.mean[name]) * self.new)

    def schedule(self, i):
        options, progress = self.options, i / self.options.iterations
        wave = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress))
        self.rate.fill_(options.rate * min(1, i / 100 + 0.01) * wave)
        self.new.fill_(1 - min(0.99, i / (i + 10)))
        self.grow.fill_(min(1, 0.1 + 2 * progress))
        self.leave.fill_(0.3 - 0.15 * progress)

    def ready(self):
        if DEVICE != "cuda":
            return self.iteration
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.iteration()
        torch.cuda.current_stream().wait_stream(stream)
        for value in self.w.values():
            value.grad = None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.iteration()
        return graph.replay


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("mazes", help="lines of maze generate, small ones")
    add("-o", "--output", required=True, help="the seed that is best on --check")
    add("--check", required=True, help="mazes to choose by")
    add("--depth", type=int, default=512, help="steps after which --check is looked at")
    add("--seeds", nargs="*", type=int, default=[0, 1, 2, 3, 4])
    add("--iterations", type=int, default=1500)
    add("--batch", type=int, default=48)
    add("--steps", type=int, default=16, help="with gradients, before states are carried on")
    add("--front", type=float, default=0.5, help="cells per step; 0: all cells count from the first step on")
    add("--cut", type=float, default=0.5, help="share of mazes with dead ends that are partly filled")
    add("--dim", type=int, default=16)
    add("--memories", type=int, default=32)
    add("--rate", type=float, default=5e-3)
    add("--start", type=float, default=0.3, help="deviation of the noise of first states, at most")
    add("--noise", type=float, default=0.05, help="deviation of the noise of a step, at most")
    add("--keep", type=float, default=0.5, help="how likely a solved sample stays")
    options = parser.parse_args()
    torch.manual_seed(options.seeds[0])
    check, training = open_mazes(options.check), Training(options, *open_mazes(options.mazes))
    training.schedule(0)
    run, began = training.ready(), time.time()
    for i in range(options.iterations):
        training.schedule(i)
        run()
        if (i + 1) % 100 == 0:
            loss, ok, age = ([round(v, 3) for v in row] for row in training.seen.tolist())
            print(f"{i + 1} iterations, {time.time() - began:.0f} s: loss {loss}, right {ok}, age {age}", flush=True)
    found = evaluate(training.mean, *check, options.depth)
    for depth, ok in found.items():
        print(f"{depth} steps, % of {len(check[0])} mazes:", [round(100 * v, 1) for v in ok.float().mean(1).tolist()])
    end = found[max(found)]
    lost = (torch.stack(list(found.values())).any(0) & ~end).sum(1)
    best = int(end.float().mean(1).argmax())
    print(f"right before the end and not there: {lost.tolist()}; seed {options.seeds[best]} is written")
    weights = {k: v[best] for k, v in training.mean.items()}
    weights["zeta"] = weights["zeta"][None]  # one kind of groups
    write(options.output, weights, "maze")


if __name__ == "__main__":
    main()
