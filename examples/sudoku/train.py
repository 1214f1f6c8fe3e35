"""Trains the weights of examples/sudoku on a GPU.

    build/examples/sudoku generate royle-train.txt 46000 --reveal 0 > easy.csv       17 givens each
    build/examples/sudoku generate hard 4000 --guesses 30 --seed 1 > hard.csv
    python examples/sudoku/train.py easy.csv --hard hard.csv --seconds 330 -o sudoku.safetensors

`sudoku train` does the same through Basin, smaller and slower; examples/maze/train.py trains mazes. States are
carried on from batch to batch (a pool), from random starts and along noisy paths, with the loss after every
step. On a GPU a whole iteration is one CUDA graph.
"""

import argparse
import math
import time

import torch
import torch.nn.functional as F
from net import DEVICE, Net, load, read, sights, solved, write


class Puzzles:
    def __init__(self, options):
        self.options, self.easy = options, read(options.boards, False)
        self.hard = [read(path, False) for path in options.hard]

    def pick(self, table, n):
        i = torch.randint(len(table[0]), (n,), device=DEVICE)
        return table[0][i], table[1][i]

    def draw(self, n, share):
        """n boards, a share of them of the hard files, with up to 17 more cells shown."""
        given, full = self.pick(self.easy, n)
        more = 18 * torch.rand(n, device=DEVICE)
        for i, table in enumerate(self.hard):
            low, high = share * i / len(self.hard), share * (i + 1) / len(self.hard)
            if i == 0:
                at = torch.rand(n, device=DEVICE)
            this = (at >= low) & (at < high)
            g, f = self.pick(table, n)
            given, full = torch.where(this[:, None], g, given), torch.where(this[:, None], f, full)
            more = torch.where(this, (more - 6).clamp(min=0), more)
        order = torch.rand(n, 81, device=DEVICE).masked_fill(given > 0, 2).argsort(1).argsort(1)
        return torch.where(order < more.floor()[:, None], full, given), full

    def loss(self, score, given, full):
        label, open_ = full.long().reshape(-1) - 1, given == 0
        each = F.cross_entropy(score.float().reshape(-1, 9), label, reduction="none").reshape(-1, 81)
        return (each * open_).sum() / open_.sum()


def spread(a, like):
    return a.reshape(-1, *[1] * (like.dim() - 1))


class Training:
    """A pool of samples, and an iteration on it that can be a CUDA graph."""

    def __init__(self, net, puzzles, options, n):
        self.net, self.puzzles, self.options, self.n = net, puzzles, options, n
        zero = lambda: torch.zeros((), device=DEVICE)
        self.rate, self.share_of_mean, self.grow, self.hard, self.leave = zero(), zero(), zero(), zero(), zero()
        self.seen = torch.zeros(3, device=DEVICE)
        matrices = [p for p in net.parameters() if p.dim() > 1]
        others = [p for p in net.parameters() if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=self.rate, betas=(0.9, 0.99), capturable=DEVICE == "cuda")
        self.mean = {k: v.detach().clone() for k, v in net.state_dict().items()}
        self.step = torch.compile(net.step, dynamic=False) if options.compile else net.step

    def fresh(self):
        n, options, draw = self.n, self.options, lambda: torch.rand(self.n, device=DEVICE)
        given, full = self.puzzles.draw(n, self.hard)
        start = torch.where(draw() < 0.4, 0.0, self.grow * options.start * draw())
        noise = torch.where(draw() < 0.5, 0.0, self.grow * options.noise * draw())
        u = self.net.first(sights(given, False)).detach()
        return given, full, u + spread(start, u) * torch.randn_like(u), noise

    def begin(self):
        with torch.no_grad():
            self.pool = [*self.fresh(), torch.zeros(self.n, device=DEVICE)]

    def iteration(self):
        net, puzzles, options = self.net, self.puzzles, self.options
        given, full, x, noise, age = self.pool
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda", cache_enabled=False):
            u, loss = net.first(sights(given, False)), 0
            x = x.detach().requires_grad_()  # so that all steps are compiled as one
            for _ in range(options.steps):
                x = self.step(x, u)
                if options.noise > 0:
                    x = x + spread(noise, x) * torch.randn_like(x)
                loss = loss + puzzles.loss(net.score(x), given, full) / options.steps
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for p in net.parameters():
            p.grad.nan_to_num_(0, 0, 0)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        self.optimizer.step()
        with torch.no_grad():
            net.gamma.clamp_(min=1e-3)
            net.alpha.clamp_(0.05, 1)
            for k, v in net.state_dict().items():
                self.mean[k].add_((v - self.mean[k]) * self.share_of_mean)
            # Solved samples stay with probability `keep`; others leave with one that falls.
            right = solved(net.score(x), given, full, False)
            new = torch.rand(self.n, device=DEVICE) < torch.where(right, 1 - options.keep, self.leave)
            new |= (age > 96) | ~torch.isfinite(x.flatten(1).sum(1))
            for to, a, b in zip(self.pool, self.fresh(), (given, full, x.float(), noise)):
                to.copy_(torch.where(spread(new, a), a, b))
            age.copy_(torch.where(new, torch.zeros_like(age), age + 1))
            self.seen.copy_(torch.stack([loss.detach().float(), right.float().mean(), age.mean()]))

    def schedule(self, i, progress):
        options = self.options
        wave = options.last + (1 - options.last) * 0.5 * (1 + math.cos(math.pi * progress))
        self.rate.fill_(options.rate * min(1, i / 100 + 0.01) * wave)
        self.share_of_mean.fill_(1 - min(options.average, i / (i + 10)))
        grown = 1.0 if options.first else min(1.0, progress / options.ramp)
        self.grow.fill_(min(1.0, grown + 0.1))
        self.hard.fill_(options.share * grown)
        self.leave.fill_(options.leave + (0.35 - options.leave) * (1 - grown))

    def ready(self, i):
        """What runs an iteration: on a GPU a graph, after some iterations without one."""
        if DEVICE != "cuda" or not self.options.graph:
            return self.iteration
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for k in range(3):
                self.schedule(i + k, 0)
                self.iteration()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.iteration()
        torch.cuda.synchronize()
        return self.graph.replay


@torch.no_grad()
def evaluate(net, table, steps):
    """Percent right after 16, 32, .. steps, and how many were right before the end and are not there."""
    given, full = table
    u = net.first(sights(given, False))
    x, right, ever = u, {}, None
    for i in range(1, steps + 1):
        x = net.step(x, u)
        if i >= 16 and i & (i - 1) == 0:
            now = solved(net.score(x), given, full, False)
            ever = now if ever is None else ever | now
            right[i] = round(100 * now.float().mean().item(), 1)
    return right, int((ever & ~now).sum())


def train(net, puzzles, options):
    mean_net = Net(False, options.dim, options.memories, options.kinds).to(DEVICE)
    checks = [(path, read(path, False, options.checked)) for path in options.check]
    began = time.time()

    def check(training):
        write(options.output, training.mean, "sudoku")
        mean_net.load_state_dict(training.mean)
        for path, table in checks:
            found = evaluate(mean_net, table, options.depth)
            print(f"  {time.time() - began:.0f} s, {path}: % right, lost:", *found)
        print(f"  alpha {training.mean['alpha'].item():.3f}", flush=True)

    training = Training(net, puzzles, options, options.batch)
    training.schedule(0, 0)
    training.begin()
    run, i = training.ready(0), 3
    print(f"ready after {time.time() - began:.0f} s", flush=True)
    began = shown = time.time()
    if options.deadline:
        options.seconds = min(options.seconds, options.deadline - began)
    while time.time() - began < options.seconds:
        training.schedule(i, (time.time() - began) / options.seconds)
        run()
        i += 1
        if i % 8 == 0 and DEVICE == "cuda":
            torch.cuda.synchronize()
        if i % 500 == 0:
            loss, right, age = training.seen.tolist()
            took = time.time() - began
            print(f"{i} steps, {took:.0f} s: loss {loss:.4f}, {right:.2f} right, age {age:.1f}", flush=True)
        if time.time() - shown > options.every:
            check(training)
            shown = time.time()
    check(training)
    print(f"{i} steps of {options.batch}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("boards", help="lines of sudoku generate")
    add("-o", "--output", required=True)
    add("--from", dest="first", default="", help="weights to begin with")
    add("--hard", nargs="*", default=[], help="boards that come in later")
    add("--share", type=float, default=0.4, help="of those")
    add("--seconds", type=float, default=330)
    add("--deadline", type=float, default=0, help="of the clock, in seconds since 1970; 0: none")
    add("--dim", type=int, default=32)
    add("--memories", type=int, default=96)
    add("--kinds", type=int, default=6)
    add("--steps", type=int, default=16, help="with gradients, before states are carried on")
    add("--batch", type=int, default=256)
    add("--rate", type=float, default=3e-3)
    add("--last", type=float, default=0.01, help="share of the rate at the end")
    add("--average", type=float, default=0.998, help="of weights: what is kept per step")
    add("--start", type=float, default=1, help="deviation of the noise of first states, at most")
    add("--noise", type=float, default=0.1, help="deviation of the noise of a step, at most")
    add("--keep", type=float, default=0.7, help="how likely a solved sample stays")
    add("--leave", type=float, default=0.1, help="how likely another one leaves, at the end")
    add("--ramp", type=float, default=0.3, help="share of the time until noise, depth and hardness are whole")
    add("--check", nargs="*", default=[], help="files to validate on")
    add("--checked", type=int, default=200)
    add("--depth", type=int, default=256)
    add("--every", type=float, default=60, help="seconds between validations")
    add("--compile", type=int, default=int(DEVICE == "cuda"))
    add("--graph", type=int, default=1)
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    puzzles = Puzzles(options)
    net = Net(False, options.dim, options.memories, options.kinds).to(DEVICE)
    if options.first:
        net.load_state_dict(load(options.first).state_dict())
    print(sum(p.numel() for p in net.parameters()), "weights", vars(options))
    train(net, puzzles, options)


if __name__ == "__main__":
    main()
