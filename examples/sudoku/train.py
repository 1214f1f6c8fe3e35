"""Trains the weights of examples/sudoku and examples/maze on a GPU, with the energy of model.h in PyTorch.

    build/examples/sudoku generate royle-train.txt 46000 --reveal 0 > easy.csv       17 givens each
    build/examples/sudoku generate hard 4000 --guesses 30 --seed 1 > hard.csv
    python examples/sudoku/train.py boards easy.csv --hard hard.csv --seconds 330 -o sudoku.safetensors
    build/examples/maze generate 6000 30 > mazes.csv
    python examples/sudoku/train.py mazes mazes.csv --seconds 270 -o maze.safetensors

`sudoku train` and `maze train` do the same through Basin, smaller and slower. States are carried on from
batch to batch (a pool), from random starts and along noisy paths, with the loss after every step.
"""

import argparse
import json
import math
import struct
import time

import torch
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIGHTS = "#.SG"


class Net(torch.nn.Module):
    """x [B, 9, 9, 9, D] of boards, [B, side, side, D] of mazes; `keys` numbers of each of four heads."""

    def __init__(self, mazes, dim, memories, keys):
        super().__init__()
        normal = lambda *shape, scale: torch.nn.Parameter(scale * torch.randn(*shape))
        self.mazes, self.dim, width = mazes, dim, dim**-0.5
        self.digit = normal(4 if mazes else 3, dim, scale=0.5)
        self.head_w = normal(dim, 1, scale=width)
        self.zeta = normal(memories, dim, scale=0.1 * width)
        self.eta = normal(memories, dim, scale=0.1 * width)
        self.wk = normal(4 * keys, dim, scale=0.5 * width)
        self.wq = normal(4 * keys, dim, scale=0.5 * width)
        self.gamma = torch.nn.Parameter(torch.ones(()))
        self.delta = torch.nn.Parameter(torch.zeros(dim))
        sign = torch.where(torch.arange(memories) < memories // 2, 1.0, -1.0)
        self.register_buffer("sign", sign[:, None], persistent=False)

    def norm(self, x):
        return F.layer_norm(x, (self.dim,)) * self.gamma + self.delta

    def score(self, x):
        return (self.norm(x) @ self.head_w)[..., 0]

    def near(self, a):
        p = F.pad(a, (0, 0, 1, 1, 1, 1))
        return torch.stack([p[:, 2:, 1:-1], p[:, :-2, 1:-1], p[:, 1:-1, 2:], p[:, 1:-1, :-2]], 3)

    def back(self, a):
        """The transpose of `near`."""
        down, up, right, left = a.unbind(3)
        rows = F.pad(down, (0, 0, 0, 0, 1, 0))[:, :-1] + F.pad(up, (0, 0, 0, 0, 0, 1))[:, 1:]
        return rows + F.pad(right, (0, 0, 1, 0))[:, :, :-1] + F.pad(left, (0, 0, 0, 1))[:, :, 1:]

    def split(self, a, kind):
        """[B, groups, 9, W] of rows, columns, boxes or cells."""
        b, w = a.shape[0], a.shape[-1]
        if kind == 2:
            a = a.reshape(b, 3, 3, 3, 3, 9, w).permute(0, 1, 3, 5, 2, 4, 6)
        elif kind < 2:
            a = a.permute(0, 1, 3, 2, 4) if kind == 0 else a.permute(0, 2, 3, 1, 4)
        return a.reshape(b, 81, 9, w)

    def join(self, a, kind):
        b, w = a.shape[0], a.shape[-1]
        if kind == 2:
            return a.reshape(b, 3, 3, 9, 3, 3, w).permute(0, 1, 4, 2, 5, 3, 6).reshape(b, 9, 9, 9, w)
        a = a.reshape(b, 9, 9, 9, w)
        return a if kind == 3 else a.permute(0, 1, 3, 2, 4) if kind == 0 else a.permute(0, 3, 1, 2, 4)

    def sums(self, g):
        """The force of the memories."""
        eta, zeta, seen = self.sign * self.eta, self.sign * self.zeta, g @ self.eta.T
        if self.mazes:
            r = F.relu(seen + self.near(g).sum(3) @ self.zeta.T / 2)
            return r @ eta + self.near(r @ zeta).sum(3) / 2
        total, out = 0, 0
        for kind in range(4):
            r = F.relu(self.split(seen, kind) + self.split(g, kind).sum(2, keepdim=True) @ self.zeta.T / 3)
            out = out + self.join((r.sum(2, keepdim=True) @ zeta / 3).expand(-1, -1, 9, -1), kind)
            total = total + self.join(r, kind)
        return out + total @ eta

    def attention(self, g):
        """The force of - sum over heads and tokens i of log sum over j of exp(q_i . k_j)."""
        to_q, to_k = [], []
        for kind, (k, q) in enumerate(zip((g @ self.wk.T).chunk(4, -1), (g @ self.wq.T).chunk(4, -1))):
            if self.mazes:
                k, q = self.near(k), q[:, :, :, None]
                p = torch.softmax((q * k).sum(-1), -1)[..., None]
                to_q.append((p * k).sum(3))
                to_k.append(self.back(p * q))
            else:
                k, q = self.split(k, kind), self.split(q, kind)
                p = torch.softmax((q @ k.transpose(-1, -2)).float(), -1).to(q.dtype)
                to_q.append(self.join(p @ k, kind))
                to_k.append(self.join(p.transpose(-1, -2) @ q, kind))
        return torch.cat(to_q, -1) @ self.wq + torch.cat(to_k, -1) @ self.wk

    def step(self, x, u):
        g = self.norm(x)
        return x + 0.5 * (self.sums(g) + self.attention(g) + u - x)


# ---- puzzles ----


def numbers(rows, alphabet):
    code = {c: i for i, c in enumerate(alphabet)}
    return torch.tensor([[code[c] for c in row] for row in rows], dtype=torch.uint8, device=DEVICE)


def read(path, mazes):
    """What is given and the solution, [N, cells]."""
    with open(path) as file:
        rows = [line.strip().split(",") for line in file if line[0] in "0123456789.#SG"]
    if mazes:
        return numbers([r[0] for r in rows], SIGHTS), numbers([r[1] for r in rows], ".#oSG").clamp(min=1) > 1
    return numbers([r[0].replace(".", "0") for r in rows], "0123456789"), numbers([r[1] for r in rows], "0123456789")


class Puzzles:
    def __init__(self, options):
        self.options, self.mazes = options, options.task == "mazes"
        self.easy = read(options.puzzles, self.mazes)
        self.hard = read(options.hard, False) if options.hard else None
        self.side = math.isqrt(self.easy[0].shape[1])

    def draw(self, n, progress):
        i = torch.randint(len(self.easy[0]), (n,), device=DEVICE)
        given, full = (t[i] for t in self.easy)
        if self.mazes:
            return given.reshape(n, self.side, self.side), full.reshape(n, self.side, self.side)
        more = 18 * torch.rand(n, device=DEVICE)
        if self.hard:
            ramp = min(1.0, max(0.0, (progress - self.options.ramp) / 0.25))
            hard = torch.rand(n, device=DEVICE) < self.options.share * ramp
            j = torch.randint(len(self.hard[0]), (n,), device=DEVICE)
            given, full = (torch.where(hard[:, None], h[j], e) for h, e in zip(self.hard, (given, full)))
            more = torch.where(hard, more * 10 / 18, more)
        more = (more + 15 * max(0.0, 1 - progress / 0.15)).floor()  # more cells are shown at first
        order = torch.rand(n, 81, device=DEVICE).masked_fill(given > 0, 2).argsort(1).argsort(1)
        return torch.where(order < more[:, None], full, given), full

    def rows(self, given):
        """Rows of `digit` that tokens begin as."""
        if self.mazes:
            return given.long()
        cell = given.long()[:, :, None]
        digit = torch.arange(1, 10, device=DEVICE)
        return torch.where(cell == 0, 0, torch.where(cell == digit, 1, 2)).reshape(-1, 9, 9, 9)

    def loss(self, score, given, full):
        score = score.float()
        if self.mazes:
            each, open_ = F.binary_cross_entropy_with_logits(score, full.float(), reduction="none"), given == 1
        else:
            label = full.long().reshape(-1) - 1
            each = F.cross_entropy(score.reshape(-1, 9), label, reduction="none").reshape(-1, 81)
            open_ = given == 0
        return ((each * open_).flatten(1).sum(1) / open_.flatten(1).sum(1).clamp(min=1)).mean()

    def solved(self, score, given, full):
        if self.mazes:
            return (((score > 0) == full) | (given != 1)).flatten(1).all(1)
        return ((score.reshape(-1, 81, 9).argmax(2) + 1 == full) | (given > 0)).all(1)


# ---- training ----


def write(path, weights, kind):
    """A safetensors file."""
    names = {"gamma": "block.gamma", "delta": "block.delta"}
    header, data = {"__metadata__": {"basin.model": kind}}, b""
    for name, value in weights.items():
        raw = value.float().cpu().contiguous().numpy().tobytes()
        header[names.get(name, name)] = {
            "dtype": "F32",
            "shape": list(value.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def spread(a, like):
    return a.reshape(-1, *[1] * (like.dim() - 1))


def train(net, puzzles, options):
    n, step = options.batch, torch.compile(net.step, dynamic=False) if options.compile else net.step
    matrices = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.99))
    mean = {k: v.clone() for k, v in net.state_dict().items()}

    def fresh(progress):
        given, full = puzzles.draw(n, progress)
        grow, draw = min(1.0, progress / options.ramp + 0.1), lambda: torch.rand(n, device=DEVICE)
        start = torch.where(draw() < 0.3, 0.0, grow * options.start * draw())
        noise = torch.where(draw() < 0.5, 0.0, grow * options.noise * draw())
        u = net.digit[puzzles.rows(given)].detach()
        return given, full, u + spread(start, u) * torch.randn_like(u), noise

    given, full, x, noise = fresh(0)
    age, began, i = torch.zeros(n, device=DEVICE), time.time(), 0
    while (progress := (time.time() - began) / options.seconds) < 1:
        rate = options.rate * min(1, progress / 0.03 + 0.01) * 0.5 * (1 + math.cos(math.pi * progress))
        for group in optimizer.param_groups:
            group["lr"] = rate + 1e-2 * options.rate
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            u, loss = net.digit[puzzles.rows(given)], 0
            for _ in range(options.steps):
                x = step(x, u)
                x = x + spread(noise, x) * torch.randn_like(x)
                loss = loss + puzzles.loss(net.score(x), given, full) / options.steps
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            net.gamma.clamp_(min=1e-3)
            for k, v in net.state_dict().items():
                mean[k].lerp_(v, 1 - min(0.998, i / (i + 10)))
            # Solved samples stay with probability `keep`; others leave with one that falls.
            right = puzzles.solved(net.score(x), given, full)
            falls = min(1.0, max(0.0, 1 - (progress - 0.5 * options.ramp) / options.ramp))
            leave = options.leave + (0.35 - options.leave) * falls
            age += 1
            new = torch.rand(n, device=DEVICE) < torch.where(right, 1 - options.keep, leave)
            new |= (age > 96) | ~torch.isfinite(x.flatten(1).sum(1))
            more = fresh(progress)
            given, full, x, noise = (
                torch.where(spread(new, b), a, b) for a, b in zip(more, (given, full, x.detach(), noise))
            )
            age[new] = 0
        i += 1
        if i % 100 == 0:
            share = right.float().mean().item()
            print(f"{i} steps, {time.time() - began:.0f} s: loss {loss.item():.4f}, {share:.2f} right", flush=True)
            write(options.output, mean, "maze" if puzzles.mazes else "sudoku")
    write(options.output, mean, "maze" if puzzles.mazes else "sudoku")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("task", choices=["boards", "mazes"])
    add("puzzles", help="lines of sudoku generate or maze generate")
    add("-o", "--output", required=True)
    add("--hard", default="", help="boards that come in later")
    add("--share", type=float, default=0.5, help="of those at the end")
    add("--seconds", type=float, default=330)
    add("--dim", type=int)
    add("--memories", type=int)
    add("--keys", type=int)
    add("--steps", type=int, help="with gradients, before states are carried on")
    add("--batch", type=int)
    add("--rate", type=float)
    add("--start", type=float, help="deviation of the noise of first states, at most")
    add("--noise", type=float, help="deviation of the noise of a step, at most")
    add("--keep", type=float, help="how likely a solved sample stays")
    add("--leave", type=float, help="how likely another one leaves, at the end")
    add("--ramp", type=float, default=0.35, help="share of the time until noise and depth are whole")
    add("--compile", type=int, default=int(DEVICE == "cuda"))
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    usual = {"dim": (32, 24), "memories": (64, 48), "keys": (8, 6), "steps": (16, 24), "batch": (128, 96)}
    usual.update(
        {"rate": (3e-3, 2e-3), "start": (1, 0.3), "noise": (0.2, 0.05), "keep": (0.7, 0.5), "leave": (0.08, 0.04)}
    )
    for name, values in usual.items():
        if getattr(options, name) is None:
            setattr(options, name, values[options.task == "mazes"])
    torch.manual_seed(options.seed)
    puzzles = Puzzles(options)
    net = Net(puzzles.mazes, options.dim, options.memories, options.keys).to(DEVICE)
    print(sum(p.numel() for p in net.parameters()), "weights")
    train(net, puzzles, options)


if __name__ == "__main__":
    main()
