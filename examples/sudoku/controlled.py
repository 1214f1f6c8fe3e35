"""The controlled test: the energy step against a transformer pass of equal weights and equal FLOPs.

    python examples/sudoku/controlled.py          every task, model and seed, then the table
    python examples/sudoku/controlled.py --task mazes --seeds 0 --iterations 100 --size tiny
    python examples/sudoku/controlled.py --table rows.json       the table of rows of before

Boards, mazes and text; both models see the same tokens, the same pairs and the same first tokens, are
trained on the same samples by the same optimizer for the same number of FLOPs, and differ in the step
(all seeds of a model train at once, each with samples of its own):

    energy        x <- x + alpha (-dE/dg - x), g = layernorm(x), E of products: every weight is used twice
    squares       the same step with squares of memories and attention in E (text: this one alone)
    transformer   h = norm(x + u + attention(x + u)); x <- norm(h + mlp(h)): weights of its own for each way

The floor: singles and a plain constraint solver for boards, dead ends filled for mazes, the most frequent
character after the one before, and between both neighbours, for text. Needs PyTorch. Without --boards and
--test (lines GIVEN,SOLUTION), examples/sudoku (--program) generates boards; without --text, text is left out.
"""

import argparse
import collections
import copy
import json
import math
import operator
import os
import random
import statistics
import subprocess
import tempfile
import time

import torch
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Seeds:
    """Makes weights [seeds, ..], each seed's by a generator of its own, so that all seeds train at once."""

    def __init__(self, seeds):
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __deepcopy__(self, memo):
        return self

    def normal(self, *shape, scale=1.0):
        return torch.nn.Parameter(torch.stack([scale * torch.randn(*shape, generator=g) for g in self.generators]))

    def full(self, value, *shape):
        return torch.nn.Parameter(torch.full((len(self.generators), *shape), value))


def by_seed(a, w):
    """[seeds * B, .., W] -> [seeds, B * .., W]"""
    return a.reshape(len(w), -1, a.shape[-1])


def read(a, w):
    """What weights [seeds, M, D] see of tokens [seeds * B, .., D]."""
    return (by_seed(a, w) @ w.transpose(1, 2)).reshape(*a.shape[:-1], w.shape[1])


def back(a, w):
    """The transpose of `read`: [seeds * B, .., M] to [seeds * B, .., D]."""
    return (by_seed(a, w) @ w).reshape(*a.shape[:-1], w.shape[2])


def add(a, b):
    """Adds [seeds, W] to [seeds * B, .., W]."""
    return (by_seed(a, b) + b[:, None]).reshape(a.shape)


def scaled(a, c):
    """Multiplies by [seeds]."""
    return (by_seed(a, c) * c[:, None, None]).reshape(a.shape)


# ---- patterns: who sees whom ----


class Groups:
    """Candidates of a board [B, 9, 9, 9, D]: rows, columns, boxes and cells, groups of nine."""

    rows, kinds, members, scale = 3, 4, 9, 1 / 3

    def split(self, a, k):
        """[B, groups, 9, W]"""
        b, w = a.shape[0], a.shape[-1]
        if k == 0:
            return a.permute(0, 1, 3, 2, 4).reshape(b, 81, 9, w)
        if k == 1:
            return a.permute(0, 2, 3, 1, 4).reshape(b, 81, 9, w)
        if k == 2:
            a = a.reshape(b, 3, 3, 3, 3, 9, w)
            return a.permute(0, 1, 3, 5, 2, 4, 6).reshape(b, 81, 9, w)
        return a.reshape(b, 81, 9, w)

    def join(self, a, k):
        b, w = a.shape[0], a.shape[-1]
        if k == 0:
            return a.reshape(b, 9, 9, 9, w).permute(0, 1, 3, 2, 4)
        if k == 1:
            return a.reshape(b, 9, 9, 9, w).permute(0, 3, 1, 2, 4)
        if k == 2:
            a = a.reshape(b, 3, 3, 9, 3, 3, w).permute(0, 1, 4, 2, 5, 3, 6)
            return a.reshape(b, 9, 9, 9, w)
        return a.reshape(b, 9, 9, 9, w)

    def force(self, g, eta, zeta, sign):
        seen, out = read(g, eta), 0
        total = 0
        for k in range(4):
            s = self.split(seen, k)
            r = F.relu(s + read(self.split(g, k).sum(2, keepdim=True), zeta) / 3) * sign
            out = out + self.join((back(r.sum(2, keepdim=True), zeta) / 3).expand(*s.shape[:3], -1), k)
            total = total + self.join(r, k)
        return out + back(total, eta)

    def sums(self, a):
        """S of rows, columns, boxes and cells, each with an axis of 1 where it is the same."""
        box = a.unflatten(2, (3, 3)).unflatten(1, (3, 3)).sum((2, 4), keepdim=True)
        return a.sum(2, keepdim=True), a.sum(1, keepdim=True), box, a.sum(3, keepdim=True)

    def spread(self, s, like):
        if s.dim() == 7:
            s = s.expand(-1, -1, 3, -1, 3, -1, -1).flatten(3, 4).flatten(1, 2)
        return s.expand(*like.shape[:-1], -1)

    def pull(self, g, wk, wq):
        """-dE/dg of E = - sum over kinds and members i of log sum over members j of exp(q_i . k_j)."""
        fq, fk = [], []
        for kind, (k, q) in enumerate(zip(read(g, wk).chunk(4, -1), read(g, wq).chunk(4, -1))):
            k, q = self.split(k, kind), self.split(q, kind)
            p = torch.softmax(q @ k.transpose(-1, -2), -1)
            fq.append(self.join(p @ k, kind))
            fk.append(self.join(p.transpose(-1, -2) @ q, kind))
        return back(torch.cat(fq, -1), wq) + back(torch.cat(fk, -1), wk)

    def attend(self, q, k, v):
        """One head per kind of group."""
        out = []
        for kind, (a, b, c) in enumerate(zip(q.chunk(4, -1), k.chunk(4, -1), v.chunk(4, -1))):
            a, b, c = (self.split(t, kind) for t in (a, b, c))
            p = torch.softmax(a @ b.transpose(-1, -2) / math.sqrt(a.shape[-1]), -1)
            out.append(self.join(p @ c, kind))
        return torch.cat(out, -1)

    def flops(self, kind, d, m):
        """Per token and step, products with weights and among pairs."""
        if kind == "energy":
            return 8 * d * m + 4 * 4 * d * m / 9
        if kind == "squares":
            return 4 * d * m * (1 + 4 / 9) + 8 * d * d + 6 * 9 * d
        return 8 * d * d + 4 * 9 * d + 4 * d * m


class Grid:
    """Cells of a maze [B, H, W, D]: the four neighbours of a cell."""

    rows, kinds, members, scale = 4, 1, 4, 1 / 2

    def around(self, a):
        p = F.pad(a, (0, 0, 1, 1, 1, 1))
        return torch.stack([p[:, 2:, 1:-1], p[:, :-2, 1:-1], p[:, 1:-1, 2:], p[:, 1:-1, :-2]], 3)

    def force(self, g, eta, zeta, sign):
        r = F.relu(read(g, eta) + read(self.around(g).sum(3), zeta) / 2) * sign
        return back(r, eta) + self.around(back(r, zeta)).sum(3) / 2

    def give(self, a):
        """The transpose of `around`: what every cell gets from where it is a neighbour."""
        down, up, right, left = a.unbind(3)
        return (
            F.pad(down, (0, 0, 0, 0, 1, 0))[:, :-1]
            + F.pad(up, (0, 0, 0, 0, 0, 1))[:, 1:]
            + F.pad(right, (0, 0, 1, 0))[:, :, :-1]
            + F.pad(left, (0, 0, 0, 1))[:, :, 1:]
        )

    def pull(self, g, wk, wq):
        heads = lambda t: t.unflatten(-1, (4, -1))
        q, k = heads(read(g, wq)), heads(self.around(read(g, wk)))
        p = torch.softmax((q[:, :, :, None] * k).sum(-1), 3)[..., None]
        to_q, to_k = (p * k).sum(3), self.give((p * q[:, :, :, None]).flatten(-2))
        return back(to_q.flatten(-2), wq) + back(to_k, wk)

    def attend(self, q, k, v):
        heads = lambda t: t.unflatten(-1, (4, -1))
        k, v = (heads(torch.cat([t[:, :, :, None], self.around(t)], 3)) for t in (k, v))
        p = torch.softmax((heads(q)[:, :, :, None] * k).sum(-1) / math.sqrt(k.shape[-1]), 3)
        return (p[..., None] * v).sum(3).flatten(-2)

    def sums(self, a):
        return (self.around(a).sum(3),)

    def spread(self, s, like):
        return s

    def flops(self, kind, d, m):
        if kind == "energy":
            return 12 * d * m
        if kind == "squares":
            return 8 * d * m + 8 * d * d + 6 * 4 * d
        return 8 * d * d + 4 * 5 * d + 4 * d * m


class Sequence:
    """Characters [B, L, D], all pairs; the energy is the Energy Transformer's: attention and memories.

    Positions are a number per head and distance j - i, added to q_i . k_j. They begin at -|j - i| times
    the head's slope, less `side` right of i for two heads and left of i for two: attention that begins
    uniform over all characters stays so for thousands of steps.
    """

    heads = 4

    def __init__(self, length, letters, side):
        self.length, self.rows, self.side = length, letters, side

    def begin(self):
        """[heads, 2 L - 1]"""
        d = torch.arange(1 - self.length, self.length)
        return torch.stack([-s * d.abs() - self.side * (d * way > 0) for s in (1, 0.25) for way in (1, -1)])

    def shares(self, q, k, near):
        """The softmax of q . k by heads, [B, heads, L, L]."""
        a = (q @ k.transpose(-1, -2) / math.sqrt(k.shape[-1])).unflatten(0, (len(near), -1))
        by_pair = near.unfold(-1, self.length, 1).flip(-2)  # [seeds, heads, i, j] of j - i
        return torch.softmax(a + by_pair[:, None], -1).flatten(0, 1)

    def split(self, a):
        return a.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def join(self, a):
        return a.transpose(1, 2).flatten(-2)

    def pull(self, g, wk, wq, near):
        """-dE/dg of E = - c sum over heads and i of log sum over j of exp(q_i . k_j / c + near_(j - i));
        c is the root of a head's width."""
        k, q = self.split(read(g, wk)), self.split(read(g, wq))
        p = self.shares(q, k, near)
        return back(self.join(p @ k), wq) + back(self.join(p.transpose(-1, -2) @ q), wk)

    def attend(self, q, k, v, near):
        q, k, v = (self.split(t) for t in (q, k, v))
        return self.join(self.shares(q, k, near) @ v)

    def flops(self, kind, d, m):
        if kind == "energy":
            return 8 * d * d + 6 * self.length * d + 4 * d * m
        return 8 * d * d + 4 * self.length * d + 4 * d * m


# ---- the two steps ----


class Model(torch.nn.Module):
    """What all models have: first tokens, a layer norm and scores. Every weight has an axis of seeds."""

    def __init__(self, pattern, d, outputs, seeds):
        super().__init__()
        self.pattern, self.d, make = pattern, d, Seeds(seeds)
        self.shown, self.head = make.normal(pattern.rows, d, scale=0.5), make.normal(outputs, d, scale=d**-0.5)
        if isinstance(pattern, Sequence):
            self.near = torch.nn.Parameter(pattern.begin().repeat(len(seeds), 1, 1))
        self.gamma, self.delta = make.full(1.0), make.full(0.0, d)
        self.make = make

    def positions(self):
        return [self.near] if isinstance(self.pattern, Sequence) else []

    def norm(self, x):
        return add(scaled(F.layer_norm(x, (self.d,)), self.gamma), self.delta)

    def first(self, index):
        return back((index[..., None] == torch.arange(self.shown.shape[1], device=DEVICE)).float(), self.shown)


class Energy(Model):
    def __init__(self, pattern, d, m, outputs, seeds):
        super().__init__(pattern, d, outputs, seeds)
        normal, width = self.make.normal, d**-0.5
        if isinstance(pattern, Sequence):
            self.xi = normal(m, d, scale=0.5 * width)
        else:
            self.eta, self.zeta = normal(m, d, scale=0.1 * width), normal(m, d, scale=0.1 * width)
            self.register_buffer("sign", torch.where(torch.arange(m) < m // 2, 1.0, -1.0))
        self.wk, self.wq = normal(d, d, scale=0.5 * width), normal(d, d, scale=0.5 * width)

    def force(self, g):
        pull = self.pattern.pull(g, self.wk, self.wq, *self.positions())
        if isinstance(self.pattern, Sequence):
            return pull + back(F.relu(read(g, self.xi)), self.xi)
        return self.pattern.force(g, self.eta, self.zeta, self.sign) + pull

    def step(self, x, u):
        return x + 0.5 * (self.force(self.norm(x)) + u - x)

    def score(self, x):
        return read(self.norm(x), self.head)


class Products(Energy):
    """E = - sum over tokens and m of (out_m . g) silu(eta_m . g + sum over kinds of zeta . S + bias)."""

    def __init__(self, pattern, d, m, outputs, seeds):
        Model.__init__(self, pattern, d, outputs, seeds)
        normal, width = self.make.normal, d**-0.5
        self.eta, self.zeta = normal(m, d, scale=0.5 * width), normal(pattern.kinds, m, d, scale=0.5 * width)
        self.out, self.bias, self.alpha = normal(m, d, scale=0.5 * m**-0.5), self.make.full(0.0, m), self.make.full(0.5)

    def force(self, g):
        h, zeta = add(read(g, self.eta), self.bias), (self.zeta * self.pattern.scale).unbind(1)
        for s, w in zip(self.pattern.sums(g), zeta):
            h = h + self.pattern.spread(read(s, w), h)
        p = torch.sigmoid(h)
        r = read(g, self.out) * p * (1 + h * (1 - p))
        out = back(h * p, self.out) + back(r, self.eta)
        for s, w in zip(self.pattern.sums(r), zeta):
            out = out + self.pattern.spread(back(s, w), g)
        return out

    def step(self, x, u):
        return x + scaled(self.force(self.norm(x)) + u - x, self.alpha)


class Transformer(Model):
    def __init__(self, pattern, d, f, outputs, seeds):
        super().__init__(pattern, d, outputs, seeds)
        normal = self.make.normal
        self.qkv, self.out = normal(3 * d, d, scale=d**-0.5), normal(d, d, scale=0.5 * d**-0.5)
        self.up, self.down = normal(f, d, scale=d**-0.5), normal(f, d, scale=0.5 * f**-0.5)

    def step(self, x, u):
        h = x + u
        seen = self.pattern.attend(*read(h, self.qkv).chunk(3, -1), *self.positions())
        h = self.norm(h + read(seen, self.out))
        return self.norm(h + back(F.gelu(read(h, self.up)), self.down))

    def score(self, x):
        return read(x, self.head)


def weights(model):
    """Of one seed."""
    return sum(p[0].numel() for p in model.parameters())


def models_of(pattern, d, m, outputs, steps, seeds):
    """The models of equal weights, and the steps of each that cost as much as `steps` of the first energy."""
    total, shapes = weights(Energy(pattern, d, m, outputs, [0])), {"squares": (d, m)}
    if isinstance(pattern, Sequence):
        shapes = {"energy": (d, m)}
    else:
        one, two = (weights(Products(pattern, d, k, outputs, [0])) for k in (1, 2))
        shapes["energy"] = (d, round((total - one) / (two - one)) + 1)
    for width in range(8, 2 * d + 1, 4):
        base = weights(Transformer(pattern, width, 1, outputs, [0])) - 2 * width
        f = round((total - base) / (2 * width))
        if f >= width:  # the usual shape: an MLP at least as wide as the tokens
            shapes["transformer"] = (width, f)
    cost = pattern.flops("energy" if isinstance(pattern, Sequence) else "squares", d, m)
    kinds = {"squares": Energy, "transformer": Transformer}
    kinds["energy"] = Energy if isinstance(pattern, Sequence) else Products
    made = {}
    for kind, shape in shapes.items():
        passes = max(1, round(steps * cost / pattern.flops(kind, *shape)))
        made[kind] = (kinds[kind](pattern, *shape, outputs, seeds), passes, shape)
    return made


# ---- tasks ----


def mean_of(each, counted, seeds):
    """[seeds]"""
    return (each * counted).reshape(seeds, -1).sum(1) / counted.reshape(seeds, -1).sum(1).clamp(min=1)


def read_boards(path, limit=None):
    rows = [line.strip().split(",") for line in open(path) if line[0] in "0123456789."][:limit]
    if not rows or any(len(r) < 2 or len(r[0]) != 81 or len(r[1]) != 81 for r in rows):
        raise SystemExit(f"{path}: expected lines GIVEN,SOLUTION of 81 digits each")
    digits = lambda k: torch.tensor([[int(c) if c != "." else 0 for c in r[k]] for r in rows], dtype=torch.uint8)
    return digits(0).to(DEVICE), digits(1).to(DEVICE)


class Boards:
    outputs, unit, rates = 1, "whole boards, %", {}

    def __init__(self, options):
        self.pattern = Groups()
        self.d, self.m, self.steps = (32, 64, 16) if options.size != "tiny" else (16, 16, 6)
        self.train, self.test = read_boards(options.boards), read_boards(options.test, options.tested)

    def draw(self, n):
        i = torch.randint(len(self.train[0]), (n,), device=DEVICE)
        return self.train[0][i], self.train[1][i]

    def index(self, given):
        d = torch.arange(1, 10, device=DEVICE)
        b = given.long()[:, :, None]
        return torch.where(b == 0, 0, torch.where(b == d, 1, 2)).reshape(-1, 9, 9, 9)

    def loss(self, score, given, full, seeds, age):
        ce = F.cross_entropy(score.reshape(-1, 9), full.long().reshape(-1) - 1, reduction="none").reshape(-1, 81)
        return mean_of(ce, given == 0, seeds)

    def solved(self, score, given, full):
        answer = score.reshape(-1, 81, 9).argmax(2) + 1
        return ((answer == full) | (given > 0)).all(1).float()


def perfect_maze(n, rng):
    """Depth-first on the odd cells of n x n (n odd): one path between any two cells."""
    c = (n - 1) // 2
    grid = [[0] * n for _ in range(n)]
    r, q = rng.randrange(c), rng.randrange(c)
    stack, grid[2 * r + 1][2 * q + 1] = [(r, q)], 1
    while stack:
        r, q = stack[-1]
        near = [(r + a, q + b) for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1)) if 0 <= r + a < c and 0 <= q + b < c]
        near = [k for k in near if not grid[2 * k[0] + 1][2 * k[1] + 1]]
        if not near:
            stack.pop()
            continue
        a, b = rng.choice(near)
        grid[r + a + 1][q + b + 1] = grid[2 * a + 1][2 * b + 1] = 1
        stack.append((a, b))
    return grid


PATH = 10000


def fill(grids):
    """Dead ends are filled, sweep by sweep: the sweep that fills a cell, PATH on the path, 0 for walls."""
    alive, sweep = grids > 0, torch.zeros_like(grids, dtype=torch.int16)
    for k in range(1, grids.shape[1] * grids.shape[2] // 2):
        q = F.pad(alive.float(), (1, 1, 1, 1))
        near = q[:, 2:, 1:-1] + q[:, :-2, 1:-1] + q[:, 1:-1, 2:] + q[:, 1:-1, :-2]
        stay = alive & ((near >= 2) | (grids > 1))
        sweep, alive = torch.where(alive & ~stay, k, sweep), stay
    return torch.where(alive, PATH, sweep)


def make_mazes(count, n, seed, least):
    rng = random.Random(seed)
    made, sweeps = [], []
    while sum(map(len, made)) < count:
        grids = torch.tensor([perfect_maze(n, rng) for _ in range(256)], dtype=torch.uint8)
        for g in grids:
            cells = g.nonzero().tolist()
            for (y, x), v in zip(rng.sample(cells, 2), (2, 3)):
                g[y, x] = v
        grids = grids.to(DEVICE)
        sweep = fill(grids)
        good = (sweep == PATH).flatten(1).sum(1) >= least
        made.append(grids[good])
        sweeps.append(sweep[good])
    return torch.cat(made)[:count], torch.cat(sweeps)[:count]


FRONT = 8


class Mazes:
    outputs, unit, rates = 1, "whole mazes, %", {}

    def __init__(self, options):
        self.pattern = Grid()
        self.n = 13 if options.size != "tiny" else 9
        self.d, self.m, self.steps = (32, 64, 16) if options.size != "tiny" else (12, 16, 8)
        self.train = make_mazes(options.mazes, self.n, 1, self.n)
        self.test = make_mazes(options.tested, self.n, 2, self.n)

    draw = Boards.draw

    def index(self, given):
        return given.long()

    def loss(self, score, given, full, seeds, age):
        """A cell off the path counts once dead ends, filled by FRONT cells per iteration, reach it."""
        ce = F.binary_cross_entropy_with_logits(score[..., 0], (full == PATH).float(), reduction="none")
        reached = FRONT * age[:, None, None] >= full
        return mean_of(ce, (given == 1) & (reached | (full == PATH)), seeds)

    def solved(self, score, given, full):
        return (((score[..., 0] > 0) == (full == PATH)) | (given != 1)).flatten(1).all(1).float()


class Text:
    unit = "hidden characters, %"
    rates = {Energy: 3e-3, Transformer: 1e-2}  # the best of 1e-3, 3e-3 and 1e-2 by --validate, one seed

    def __init__(self, options):
        raw = open(options.text).read()
        if len(raw) < 1000:
            raise SystemExit(f"{options.text}: expected a text of 1,000 characters or more, found {len(raw)}")
        letters = sorted(set(raw))
        self.outputs, length = len(letters), 64
        self.pattern = Sequence(length, len(letters) + 1, options.side)
        self.d, self.m, self.steps = (64, 320, 4) if options.size != "tiny" else (24, 64, 2)
        code = {c: i for i, c in enumerate(letters)}
        data = torch.tensor([code[c] for c in raw], dtype=torch.int16).to(DEVICE)
        tenth, generator = len(data) // 10, torch.Generator().manual_seed(0)
        self.data = data[: 8 * tenth]
        cut = (8 if options.validate else 9) * tenth
        at = torch.randint(tenth - length, (options.tested,), generator=generator).to(DEVICE) + cut
        full = data[at[:, None] + torch.arange(length, device=DEVICE)].long()
        hide = (torch.rand(full.shape, generator=generator) < 0.15).to(DEVICE)
        self.test = torch.where(hide, self.outputs, full), full

    def draw(self, n):
        at = torch.randint(len(self.data) - self.pattern.length, (n,), device=DEVICE)
        full = self.data[at[:, None] + torch.arange(self.pattern.length, device=DEVICE)].long()
        return torch.where(torch.rand(full.shape, device=DEVICE) < 0.15, self.outputs, full), full

    def index(self, given):
        return given

    def loss(self, score, given, full, seeds, age):
        ce = F.cross_entropy(score.flatten(0, 1), full.flatten(), reduction="none").reshape(full.shape)
        return mean_of(ce, given == self.outputs, seeds)

    def solved(self, score, given, full):
        """Of each sample; their mean is the share of all hidden characters."""
        hidden = (given == self.outputs).float()
        return ((score.argmax(-1) == full) * hidden).sum(1) / hidden.sum(1).mean()


# ---- training: half of a batch goes on from states of before, so that answers hold ----


class Run:
    """A model in training, all seeds at once. On a GPU an iteration is one CUDA graph."""

    def __init__(self, task, model, steps, options):
        self.task, self.model, self.steps, self.options = task, model.to(DEVICE), steps, options
        torch.manual_seed(1000)
        self.seeds = len(options.seeds)
        self.carried, n = not isinstance(task, Text), self.seeds * options.batch
        self.most = options.rate or task.rates.get(type(model), 3e-3)
        self.rate = torch.tensor(self.most, device=DEVICE)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=self.rate, betas=(0.9, 0.99), weight_decay=0.01, capturable=DEVICE == "cuda"
        )
        self.given, self.full = task.draw(n)
        self.x = model.first(task.index(self.given)).detach()
        self.age = torch.zeros(n, device=DEVICE)  # iterations that a sample has been carried on
        self.mean = {k: v.detach().clone() for k, v in model.state_dict().items()}
        self.share_of_mean, self.last = torch.ones((), device=DEVICE), torch.zeros(self.seeds, device=DEVICE)
        self.step = torch.compile(model.step, dynamic=False) if options.compile else model.step
        self.begin = {k: v.detach().clone() for k, v in model.state_dict().items()}
        self.run = self.iteration
        if DEVICE == "cuda" and options.graph:
            self.capture()
        self.each = self.measure()

    def iteration(self):
        task, model, optimizer, n = self.task, self.model, self.optimizer, len(self.given)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=self.options.bfloat16 > 0, cache_enabled=False):
            u, loss = model.first(task.index(self.given)), 0
            y = self.x.detach().requires_grad_() if self.carried else u
            for t in range(self.steps):
                y = self.step(y, u)
                if self.carried or t == self.steps - 1:
                    age = self.age + (t + 1) / self.steps
                    one = task.loss(model.score(y).float(), self.given, self.full, self.seeds, age)
                    loss = loss + one / (self.steps if self.carried else 1)
        optimizer.zero_grad(set_to_none=True)
        loss.sum().backward()
        self.clip()
        optimizer.step()
        with torch.no_grad():
            if isinstance(model, Products):
                model.alpha.clamp_(0.05, 1)
            for k, v in model.state_dict().items():
                self.mean[k].add_((v - self.mean[k]) * self.share_of_mean)
            more, new = task.draw(n), torch.ones(n, dtype=torch.bool, device=DEVICE)
            if self.carried:
                ok = task.solved(model.score(y), self.given, self.full)
                new = torch.rand(n, device=DEVICE) < torch.where(ok > 0, 0.4, 0.2)
                new |= ~torch.isfinite(y.flatten(1).sum(1))
            pick = lambda a, b: torch.where(new.reshape(-1, *[1] * (a.dim() - 1)), a, b)
            if self.carried:
                self.x.copy_(pick(model.first(task.index(more[0])), y.detach().float()))
            self.given.copy_(pick(more[0], self.given))
            self.full.copy_(pick(more[1], self.full))
            self.age.copy_(torch.where(new, 0, self.age + 1))
            self.last.copy_(torch.lerp(self.last, loss.detach(), 0.05))

    def clip(self):
        """The gradient of each seed has a norm of 1 at most."""
        total = 0
        for p in self.model.parameters():
            p.grad.nan_to_num_(0, 0, 0)
            total = total + p.grad.reshape(self.seeds, -1).square().sum(1)
        scale = (1 / (total.sqrt() + 1e-6)).clamp(max=1)
        for p in self.model.parameters():
            p.grad.mul_(scale.reshape(-1, *[1] * (p.dim() - 1)))

    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.schedule(0, 0)
                self.iteration()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.iteration()
        self.run = self.graph.replay

    def measure(self):
        """Seconds per iteration; then the model begins anew."""
        wait = torch.cuda.synchronize if DEVICE == "cuda" else lambda: None
        self.schedule(0, 0)
        self.run()
        wait()
        began = time.time()
        for _ in range(2):
            self.run()
        wait()
        each = (time.time() - began) / 2
        self.model.load_state_dict(self.begin)
        with torch.no_grad():
            for state in self.optimizer.state.values():
                for value in state.values():
                    value.zero_()
            self.age.zero_()
            if self.carried:
                self.x.copy_(self.model.first(self.task.index(self.given)))
        return each

    def schedule(self, i, share):
        self.rate.fill_(self.most * min(1, 20 * share + 0.01) * (0.51 + 0.49 * math.cos(math.pi * share)))
        self.share_of_mean.fill_(1.0 if i < 50 else 0.01 if self.carried else 0.05)

    def train(self, iterations):
        """Seconds."""
        began = time.time()
        for i in range(iterations):
            self.schedule(i, i / iterations)
            self.run()
            if DEVICE == "cuda" and i % 4 == 3:
                torch.cuda.synchronize()
            if i % 100 == 99:
                print(f"  {i + 1} iterations, {time.time() - began:.1f} s, loss {self.last.tolist()}", flush=True)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        self.model.load_state_dict(self.mean)
        return time.time() - began


@torch.no_grad()
def score(task, model, steps, depths, seeds):
    """Percent right of each seed after `steps` times each of `depths`; seconds per sample and `steps` steps."""
    given, full = (t.repeat(seeds, *[1] * (t.dim() - 1)) for t in task.test)
    u = model.first(task.index(given))
    x, right, took = u, {}, 0.0
    for k in range(1, max(depths) + 1):
        started = time.time()
        for _ in range(steps):
            x = model.step(x, u)
        if k in depths:
            right[k] = (100 * task.solved(model.score(x), given, full)).reshape(seeds, -1).mean(1).tolist()
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        took += time.time() - started
    return right, took / max(depths) / len(given)


# ---- the floor ----

UNITS = [[9 * i + k for k in range(9)] for i in range(9)] + [[9 * k + i for k in range(9)] for i in range(9)]
UNITS += [[27 * (i // 3) + 3 * (i % 3) + 9 * (k // 3) + k % 3 for k in range(9)] for i in range(9)]
OF = [[u for u in UNITS if cell in u] for cell in range(81)]


def choices(board):
    """The next cell to fill and its digits: a cell or a digit of a unit with one choice, else the fewest."""
    left = [set(range(1, 10)) - {board[c] for u in OF[i] for c in u} if not board[i] else None for i in range(81)]
    best = min((i for i in range(81) if left[i] is not None), key=lambda i: len(left[i]), default=None)
    if best is None or len(left[best]) < 2:
        return best, left[best] if best is not None else None
    for unit in UNITS:
        for digit in range(1, 10):
            cells = [c for c in unit if left[c] and digit in left[c]]
            if len(cells) == 1:
                return cells[0], {digit}
    return best, left[best]


def solve(board, guess):
    """The solution, by singles, and by trying digits where they end if `guess`; or None."""
    cell, digits = choices(board)
    if cell is None:
        return board
    if len(digits) > 1 and not guess:
        return None
    for digit in digits:
        found = solve([*board[:cell], digit, *board[cell + 1 :]], guess)
        if found:
            return found
    return None


def counted(keys, found):
    counts = collections.defaultdict(collections.Counter)
    for key, one in zip(keys, found):
        counts[key][one] += 1
    return counts


def floor(name, task):
    """Rows of (method, right in %, seconds per sample)."""
    rows, (given, full) = [], task.test
    if name == "boards":
        for method, guess in (("singles", False), ("constraint solver", True)):
            began = time.time()
            right = [solve(g, guess) == f for g, f in zip(given.tolist(), full.tolist())]
            rows.append((method, 100 * sum(right) / len(right), (time.time() - began) / len(right)))
    elif name == "mazes":
        began = time.time()
        right = ((fill(given) == PATH) == (full == PATH)).flatten(1).all(1).float().mean().item()
        rows.append(("dead ends filled", 100 * right, (time.time() - began) / len(given)))
    else:
        letters, hidden = task.data.tolist(), given == task.outputs
        side = lambda by: F.pad(given, (by, -by), value=task.outputs)[hidden].tolist()
        before, after, wanted = side(1), side(-1), full[hidden].tolist()
        likely = lambda keys, found: {k: c.most_common(1)[0][0] for k, c in counted(keys, found).items()}
        common = collections.Counter(letters).most_common(1)[0][0]
        pairs, both = likely(letters, letters[1:]), likely(zip(letters, letters[2:]), letters[1:])
        one = [pairs.get(a, common) for a in before]
        two = [both.get(key, guess) for key, guess in zip(zip(before, after), one)]
        for method, found in (("pairs of characters", one), ("both neighbours", two)):
            rows.append((method, 100 * sum(map(operator.eq, found, wanted)) / len(wanted), 0.0))
    return rows


def table(rows, floors):
    """Means and deviations over seeds; `best`: the depth, in trained steps, with the best mean."""
    print(
        "| task | step | seeds | weights | steps | MFLOP per token | training steps x batch | loss |"
        " right, % | at most, after | training, s | per sample, ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for key in dict.fromkeys((r["task"], r["model"]) for r in rows):
        of = [r for r in rows if (r["task"], r["model"]) == key]
        spread = lambda v, k=1: f"{statistics.mean(v):.{k}f} ± {statistics.stdev(v) if len(v) > 1 else 0:.{k}f}"
        depths = {d: [r["right"][d] for r in of] for d in of[0]["right"]}
        best = max(depths, key=lambda d: statistics.mean(depths[d]))
        print(
            f"| {key[0]} | {key[1]} | {len(of)} | {of[0]['weights']:,} | {of[0]['steps']} | {of[0]['flops'] / 1e6:.3f} |"
            f" {of[0]['iterations']} x {of[0]['batch']} | {spread([r['loss'] for r in of], 2)} |"
            f" {spread(depths[min(depths, key=int)])} | {spread(depths[best])}, {int(best) * of[0]['steps']} steps |"
            f" {statistics.mean(r['seconds'] for r in of):.1f} | {1e3 * statistics.mean(r['each'] for r in of):.3f} |"
        )
    for task, method, right, seconds in floors:
        print(f"| {task} | {method} | | 0 | | | | | {right:.1f} | | | {1e3 * seconds:.3f} |")


def find_boards(options):
    """Boards of the generator where none are given."""
    if not options.boards or not options.test:
        if not os.path.exists(options.program):
            raise SystemExit(f"{options.program}: not found; build it (cmake --build build --target examples) or give --program")
        folder = tempfile.mkdtemp()
        for name, count, seed in (("boards", 9000, 1), ("test", options.tested, 2)):
            path = os.path.join(folder, name)
            with open(path, "w") as file:
                command = [options.program, "generate", "hard", str(count), "--seed", str(seed)]
                subprocess.run(command, stdout=file, check=True)
            setattr(options, name, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--task", nargs="+", default=["boards", "mazes", "text"], choices=["boards", "mazes", "text"])
    add("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    add("--models", nargs="+", default=["energy", "squares", "transformer"], choices=["energy", "squares", "transformer"])
    add("--size", default="small", choices=["tiny", "small"])
    add("--iterations", nargs="+", type=int, default=[300, 500, 600], help="of each task")
    add("--batch", type=int, default=32, help="samples of a seed")
    add("--seconds", type=float, default=1e9, help="of training, for all models of a task together")
    add("--rate", type=float, default=0, help="of training; 0: 3e-3, for text the one chosen for the model")
    add("--side", type=float, default=2, help="text: what positions of one side begin with less, see Sequence")
    add("--validate", action="store_true", help="text: score the ninth tenth, to choose by, not the last one")
    add("--mazes", type=int, default=4000)
    add("--tested", type=int, default=1000)
    add("--boards", default="")
    add("--test", default="")
    add("--text", default="")
    add("--program", default="build/examples/sudoku")
    add("--output", default="", help="a file to append rows of JSON to")
    add("--table", nargs="*", default=[], help="files of such rows: print their table and end")
    add("--graph", type=int, default=1, help="0: no CUDA graphs")
    add("--bfloat16", type=int, default=0, help="1: products of matrices in bfloat16, of all models")
    add("--compile", type=int, default=int(DEVICE == "cuda"), help="0: without torch.compile")
    add("--floor", type=int, default=1, help="0: without singles, the constraint solver and the like")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    for path in filter(None, [options.boards, options.test, options.text, *options.table]):
        if not os.path.isfile(path):
            parser.error(f"{path}: no such file")
    if options.table:
        rows = []
        for path in options.table:
            with open(path) as file:
                rows += [json.loads(line) for line in file]
        return table(rows, [])
    rows, floors = [], []
    if "text" in options.task and not options.text:
        print("no --text: text is left out")
        options.task.remove("text")
    if "boards" in options.task:
        find_boards(options)
    for name in options.task:
        task = {"boards": Boards, "mazes": Mazes, "text": Text}[name](options)
        seeds = options.seeds
        models = models_of(task.pattern, task.d, task.m, task.outputs, task.steps, seeds)
        models = {k: models[k] for k in options.models if k in models}
        iterations = options.iterations[["boards", "mazes", "text"].index(name) % len(options.iterations)]
        if options.seconds < 1e9:  # one model at a time: graphs of several need much memory
            each = sum(Run(task, copy.deepcopy(m), steps, options).each for m, steps, _ in models.values())
            print(f"{name}: {each:.3f} s per iteration of {len(seeds)} seeds and {len(models)} models", flush=True)
            if iterations > options.seconds / each:
                iterations = max(1, int(options.seconds / each))
                print(f"{name}: --seconds ends training after {iterations} iterations", flush=True)
        for kind, (model, steps, shape) in models.items():
            run = Run(task, model, steps, options)
            took = run.train(iterations)
            depths = (1,) if name == "text" else (1, 2, 4, 8, 16, 32)
            right, each = score(task, run.model, run.steps, depths, len(seeds))
            for k, seed in enumerate(seeds):
                rows.append(
                    {
                        "task": name,
                        "model": kind,
                        "seed": seed,
                        "weights": weights(run.model),
                        "shape": shape,
                        "steps": run.steps,
                        "flops": task.pattern.flops(kind, *shape) * run.steps,
                        "iterations": iterations,
                        "batch": options.batch,
                        "seconds": took / len(seeds),
                        "loss": run.last[k].item(),
                        "each": each,
                        "right": {str(depth): v[k] for depth, v in right.items()},
                        "unit": task.unit,
                    }
                )
                print(json.dumps(rows[-1]), flush=True)
                if options.output:
                    with open(options.output, "a") as file:
                        file.write(json.dumps(rows[-1]) + "\n")
            del run
        floors += [(name, *row) for row in floor(name, task)] if options.floor else []
    return table(rows, floors)


if __name__ == "__main__":
    main()
