"""The controlled test: the energy step against a transformer pass of equal weights and equal FLOPs.

    python examples/sudoku/controlled.py          every task, model and seed, then the table
    python examples/sudoku/controlled.py --task mazes --seeds 0 --iterations 100 --size tiny
    python examples/sudoku/controlled.py --table rows.json       the table of rows of before

Boards, mazes and text; both models see the same tokens, the same pairs and the same first tokens, are
trained on the same samples by the same optimizer for the same number of FLOPs, and differ in the step:

    energy        x <- x + alpha (-dE/dg - x), g = layernorm(x), E of products: every weight is used twice
    squares       the same step with squares of memories and attention in E (text: this one alone)
    transformer   h = norm(x + u + attention(x + u)); x <- norm(h + mlp(h)): weights of its own for each way

The floor: singles and a plain constraint solver for boards, dead ends filled for mazes, pairs of
characters for text. Needs PyTorch. Without --boards and --test (lines GIVEN,SOLUTION), examples/sudoku
(--program) generates boards; without --text, text is left out.
"""

import argparse
import collections
import json
import math
import os
import random
import statistics
import subprocess
import tempfile
import time

import torch
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def normal(*shape, scale=1.0):
    return torch.nn.Parameter(scale * torch.randn(*shape))


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
        seen, out = g @ eta.T, 0
        total = 0
        for k in range(4):
            s = self.split(seen, k)
            r = F.relu(s + self.split(g, k).sum(2, keepdim=True) @ zeta.T / 3) * sign
            out = out + self.join((r.sum(2, keepdim=True) @ zeta / 3).expand(*s.shape[:3], -1), k)
            total = total + self.join(r, k)
        return out + total @ eta

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
        for kind, (k, q) in enumerate(zip((g @ wk.T).chunk(4, -1), (g @ wq.T).chunk(4, -1))):
            k, q = self.split(k, kind), self.split(q, kind)
            p = torch.softmax(q @ k.transpose(-1, -2), -1)
            fq.append(self.join(p @ k, kind))
            fk.append(self.join(p.transpose(-1, -2) @ q, kind))
        return torch.cat(fq, -1) @ wq + torch.cat(fk, -1) @ wk

    def attend(self, q, k, v):
        """One head per kind of group."""
        out = []
        for kind, (a, b, c) in enumerate(zip(q.chunk(4, -1), k.chunk(4, -1), v.chunk(4, -1))):
            a, b, c = (self.split(t, kind) for t in (a, b, c))
            out.append(self.join(F.scaled_dot_product_attention(a, b, c), kind))
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
        r = F.relu(g @ eta.T + self.around(g).sum(3) @ zeta.T / 2) * sign
        return r @ eta + self.around(r @ zeta).sum(3) / 2

    def back(self, a):
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
        q, k = heads(g @ wq.T), heads(self.around(g @ wk.T))
        p = torch.softmax((q[:, :, :, None] * k).sum(-1), 3)[..., None]
        to_q, to_k = (p * k).sum(3), self.back((p * q[:, :, :, None]).flatten(-2))
        return to_q.flatten(-2) @ wq + to_k @ wk

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
    """Characters [B, L, D], all pairs; the energy is the Energy Transformer's: attention and memories."""

    heads = 4

    def __init__(self, length, letters):
        self.length, self.rows = length, letters

    def attend(self, q, k, v):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)

    def flops(self, kind, d, m):
        if kind == "energy":
            return 8 * d * d + 6 * self.length * d + 4 * d * m
        return 8 * d * d + 4 * self.length * d + 4 * d * m


# ---- the two steps ----


class Energy(torch.nn.Module):
    def __init__(self, pattern, d, m, outputs):
        super().__init__()
        self.pattern, self.d = pattern, d
        self.shown, self.head = normal(pattern.rows, d, scale=0.5), normal(d, outputs, scale=d**-0.5)
        if isinstance(pattern, Sequence):
            self.position = normal(pattern.length, d, scale=0.1)
            self.wk, self.wq = normal(d, d, scale=0.5 * d**-0.5), normal(d, d, scale=0.5 * d**-0.5)
            self.xi = normal(m, d, scale=0.5 * d**-0.5)
            self.alpha = 0.5
        else:
            self.eta, self.zeta = normal(m, d, scale=0.1 * d**-0.5), normal(m, d, scale=0.1 * d**-0.5)
            self.register_buffer("sign", torch.where(torch.arange(m) < m // 2, 1.0, -1.0))
            self.wk, self.wq = normal(d, d, scale=0.5 * d**-0.5), normal(d, d, scale=0.5 * d**-0.5)
            self.alpha = 0.5
        self.gamma, self.delta = torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.zeros(d))

    def norm(self, x):
        return F.layer_norm(x, (self.d,)) * self.gamma + self.delta

    def first(self, index):
        u = F.one_hot(index, len(self.shown)).float() @ self.shown
        return u + self.position if hasattr(self, "position") else u

    def force(self, g):
        if not isinstance(self.pattern, Sequence):
            sums = self.pattern.force(g, self.eta, self.zeta, self.sign)
            return sums + self.pattern.pull(g, self.wk, self.wq)
        heads = lambda t: t.unflatten(-1, (self.pattern.heads, -1)).transpose(1, 2)
        k, q = heads(g @ self.wk.T), heads(g @ self.wq.T)
        p = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(k.shape[-1]), -1)
        back = lambda t, w: t.transpose(1, 2).flatten(-2) @ w
        return (back(p @ k, self.wq) + back(p.transpose(-1, -2) @ q, self.wk)) + F.relu(g @ self.xi.T) @ self.xi

    def step(self, x, u):
        return x + self.alpha * (self.force(self.norm(x)) + u - x)

    def score(self, x):
        return self.norm(x) @ self.head


class Products(Energy):
    """E = - sum over tokens and m of (out_m . g) silu(eta_m . g + sum over kinds of zeta . S + bias)."""

    def __init__(self, pattern, d, m, outputs):
        torch.nn.Module.__init__(self)
        self.pattern, self.d, self.alpha = pattern, d, torch.nn.Parameter(torch.tensor(0.5))
        self.shown, self.head = normal(pattern.rows, d, scale=0.5), normal(d, outputs, scale=d**-0.5)
        self.eta, self.zeta = normal(m, d, scale=0.5 * d**-0.5), normal(pattern.kinds, m, d, scale=0.5 * d**-0.5)
        self.out, self.bias = normal(m, d, scale=0.5 * m**-0.5), torch.nn.Parameter(torch.zeros(m))
        self.gamma, self.delta = torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.zeros(d))

    def force(self, g):
        h, zeta = g @ self.eta.T + self.bias, self.zeta * self.pattern.scale
        for s, w in zip(self.pattern.sums(g), zeta):
            h = h + self.pattern.spread(s @ w.T, h)
        p = torch.sigmoid(h)
        r = (g @ self.out.T) * p * (1 + h * (1 - p))
        out = (h * p) @ self.out + r @ self.eta
        for s, w in zip(self.pattern.sums(r), zeta):
            out = out + self.pattern.spread(s @ w, g)
        return out


class Transformer(torch.nn.Module):
    def __init__(self, pattern, d, f, outputs):
        super().__init__()
        self.pattern, self.d = pattern, d
        self.shown, self.head = normal(pattern.rows, d, scale=0.5), normal(d, outputs, scale=d**-0.5)
        if isinstance(pattern, Sequence):
            self.position = normal(pattern.length, d, scale=0.1)
        self.qkv, self.out = normal(3 * d, d, scale=d**-0.5), normal(d, d, scale=0.5 * d**-0.5)
        self.up, self.down = normal(f, d, scale=d**-0.5), normal(d, f, scale=0.5 * f**-0.5)
        self.gamma, self.delta = torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.zeros(d))

    def norm(self, x):
        return F.layer_norm(x, (self.d,)) * self.gamma + self.delta

    first = Energy.first

    def step(self, x, u):
        h = x + u
        h = self.norm(h + self.pattern.attend(*(h @ self.qkv.T).chunk(3, -1)) @ self.out.T)
        return self.norm(h + F.gelu(h @ self.up.T) @ self.down.T)

    def score(self, x):
        return x @ self.head


def weights(model):
    return sum(p.numel() for p in model.parameters())


def models_of(pattern, d, m, outputs, steps, seed):
    """The models of equal weights, and the steps of each that cost as much as `steps` of the first energy."""
    first = Energy(pattern, d, m, outputs)
    total, shapes = weights(first), {"squares": (d, m)}
    if isinstance(pattern, Sequence):
        shapes = {"energy": (d, m)}
    else:
        one = Products(pattern, d, 1, outputs)
        each = one.eta.numel() + one.zeta.numel() + one.out.numel() + 1
        shapes["energy"] = (d, round((total - weights(one)) / each) + 1)
    for width in range(8, 2 * d + 1, 4):
        base = weights(Transformer(pattern, width, 1, outputs)) - 2 * width
        f = round((total - base) / (2 * width))
        if f >= width:  # the usual shape: an MLP at least as wide as the tokens
            shapes["transformer"] = (width, f)
    cost = pattern.flops("energy" if isinstance(pattern, Sequence) else "squares", d, m)
    kinds = {"squares": Energy, "transformer": Transformer}
    kinds["energy"] = Energy if isinstance(pattern, Sequence) else Products
    made = {}
    for kind, shape in shapes.items():
        torch.manual_seed(seed)
        passes = max(1, round(steps * cost / pattern.flops(kind, *shape)))
        made[kind] = (kinds[kind](pattern, *shape, outputs), passes, shape)
    return made


# ---- tasks ----


def read_boards(path, limit=None):
    rows = [line.strip().split(",") for line in open(path) if line[0] in "0123456789."][:limit]
    digits = lambda k: torch.tensor([[int(c) if c != "." else 0 for c in r[k]] for r in rows], dtype=torch.uint8)
    return digits(0).to(DEVICE), digits(1).to(DEVICE)


class Boards:
    outputs, unit = 1, "whole boards, %"

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

    def loss(self, score, given, full):
        ce = F.cross_entropy(score.reshape(-1, 9), full.long().reshape(-1) - 1, reduction="none").reshape(-1, 81)
        empty = (given == 0).float()
        return (ce * empty).sum() / empty.sum()

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


def path_of(open_, ends):
    """Dead ends are filled until none is left."""
    p = open_
    for _ in range(p.shape[1] * p.shape[2] // 2):
        q = F.pad(p.float(), (1, 1, 1, 1))
        near = q[:, 2:, 1:-1] + q[:, :-2, 1:-1] + q[:, 1:-1, 2:] + q[:, 1:-1, :-2]
        p = p & ((near >= 2) | ends)
    return p


def make_mazes(count, n, seed, least):
    rng = random.Random(seed)
    made, path = [], []
    while sum(map(len, made)) < count:
        grids = torch.tensor([perfect_maze(n, rng) for _ in range(256)], dtype=torch.uint8)
        for g in grids:
            cells = g.nonzero().tolist()
            for (y, x), v in zip(rng.sample(cells, 2), (2, 3)):
                g[y, x] = v
        grids = grids.to(DEVICE)
        p = path_of(grids > 0, grids > 1)
        good = p.flatten(1).sum(1) >= least
        made.append(grids[good])
        path.append(p[good])
    return torch.cat(made)[:count], torch.cat(path)[:count].to(torch.uint8)


class Mazes:
    outputs, unit = 1, "whole mazes, %"

    def __init__(self, options):
        self.pattern = Grid()
        self.n = 13 if options.size != "tiny" else 9
        self.d, self.m, self.steps = (32, 64, 16) if options.size != "tiny" else (12, 16, 8)
        self.train = make_mazes(options.mazes, self.n, 1, self.n)
        self.test = make_mazes(options.tested, self.n, 2, self.n)

    draw = Boards.draw

    def index(self, given):
        return given.long()

    def loss(self, score, given, full):
        ce = F.binary_cross_entropy_with_logits(score[..., 0], full.float(), reduction="none")
        open_ = (given == 1).float()
        return (ce * open_).sum() / open_.sum()

    def solved(self, score, given, full):
        return (((score[..., 0] > 0) == full) | (given != 1)).flatten(1).all(1).float()


class Text:
    unit = "hidden characters, %"

    def __init__(self, options):
        raw = open(options.text).read()
        letters = sorted(set(raw))
        self.outputs, length = len(letters), 64
        self.pattern = Sequence(length, len(letters) + 1)
        self.d, self.m, self.steps = (64, 320, 4) if options.size != "tiny" else (24, 64, 2)
        code = {c: i for i, c in enumerate(letters)}
        data = torch.tensor([code[c] for c in raw], dtype=torch.int16).to(DEVICE)
        cut = len(data) * 9 // 10
        self.data, generator = data[:cut], torch.Generator().manual_seed(0)
        at = torch.randint(len(data) - cut - length, (options.tested,), generator=generator).to(DEVICE) + cut
        full = data[at[:, None] + torch.arange(length, device=DEVICE)].long()
        hide = (torch.rand(full.shape, generator=generator) < 0.15).to(DEVICE)
        self.test = torch.where(hide, self.outputs, full), full

    def draw(self, n):
        at = torch.randint(len(self.data) - self.pattern.length, (n,), device=DEVICE)
        full = self.data[at[:, None] + torch.arange(self.pattern.length, device=DEVICE)].long()
        return torch.where(torch.rand(full.shape, device=DEVICE) < 0.15, self.outputs, full), full

    def index(self, given):
        return given

    def loss(self, score, given, full):
        hidden = (given == self.outputs).float()
        return (F.cross_entropy(score.transpose(1, 2), full, reduction="none") * hidden).sum() / hidden.sum()

    def solved(self, score, given, full):
        hidden = given == self.outputs
        return (score.argmax(-1) == full)[hidden].float()


# ---- training: half of a batch goes on from states of before, so that answers hold ----


class Run:
    """One model in training. On a GPU an iteration is one CUDA graph on a stream of its own."""

    def __init__(self, task, model, steps, options, seed):
        self.task, self.model, self.steps, self.options = task, model.to(DEVICE), steps, options
        torch.manual_seed(1000 + seed)
        self.carried, n = not isinstance(task, Text), options.batch
        self.rate = torch.tensor(options.rate, device=DEVICE)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=self.rate, betas=(0.9, 0.99), weight_decay=0.01, capturable=DEVICE == "cuda"
        )
        self.given, self.full = task.draw(n)
        self.x = model.first(task.index(self.given)).detach()
        self.mean = {k: v.detach().clone() for k, v in model.state_dict().items()}
        self.share_of_mean, self.last = torch.ones((), device=DEVICE), torch.zeros((), device=DEVICE)
        self.run, self.each = self.iteration, 0.0
        if DEVICE == "cuda" and options.graph:
            self.capture()

    def iteration(self):
        task, model, optimizer, n = self.task, self.model, self.optimizer, self.options.batch
        u, loss = model.first(task.index(self.given)), 0
        y = self.x if self.carried else u
        for t in range(self.steps):
            y = model.step(y, u)
            if self.carried or t == self.steps - 1:
                one = task.loss(model.score(y), self.given, self.full)
                loss = loss + one / (self.steps if self.carried else 1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for p in model.parameters():
            p.grad.nan_to_num_(0, 0, 0)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
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
                self.x.copy_(pick(model.first(task.index(more[0])), y.detach()))
            self.given.copy_(pick(more[0], self.given))
            self.full.copy_(pick(more[1], self.full))
            self.last.copy_(loss.detach())

    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for i in range(2):
                self.schedule(i, 0)
                self.iteration()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.optimizer.zero_grad(set_to_none=True)
        self.graph, self.stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.graph(self.graph):
            self.iteration()
        torch.cuda.synchronize()
        began = time.time()
        for i in range(4):
            self.graph.replay()
        torch.cuda.synchronize()
        self.each, self.run = (time.time() - began) / 4, self.replay

    def replay(self):
        with torch.cuda.stream(self.stream):
            self.graph.replay()

    def schedule(self, i, share):
        rate = self.options.rate * min(1, 20 * share + 0.01) * (0.51 + 0.49 * math.cos(math.pi * share))
        if DEVICE == "cuda" and self.run != self.iteration:
            with torch.cuda.stream(self.stream):
                self.rate.fill_(rate)
                self.share_of_mean.fill_(1.0 if i < 50 else 0.01)
        else:
            self.rate.fill_(rate)
            self.share_of_mean.fill_(1.0 if i < 50 else 0.01)


def train(runs, options):
    """All runs side by side, so that they end at the same iteration; how many there were."""
    began, i = time.time(), 0
    while True:
        share = max(i / options.iterations, (time.time() - began) / options.seconds)
        if share >= 1:
            break
        for run in runs:
            one = time.time()
            run.schedule(i, share)
            run.run()
            if DEVICE != "cuda" or not options.graph:
                run.each += (time.time() - one - run.each) / (i + 1)
        if DEVICE == "cuda" and i % 4 == 3:
            torch.cuda.synchronize()
        i += 1
        if i % 50 == 0:
            print(f"  {i} iterations, {time.time() - began:.1f} s", flush=True)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    for run in runs:
        run.model.load_state_dict(run.mean)
    return i


@torch.no_grad()
def score(task, model, steps, depths):
    """What is right after `steps` times each of `depths`, and seconds per sample and `steps` steps."""
    given, full = task.test
    u = model.first(task.index(given))
    x, right, took = u, {}, 0.0
    for k in range(1, max(depths) + 1):
        started = time.time()
        for _ in range(steps):
            x = model.step(x, u)
        if k in depths:
            right[k] = 100 * task.solved(model.score(x), given, full).mean().item()
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
        right = (path_of(given > 0, given > 1) == full).flatten(1).all(1).float().mean().item()
        rows.append(("dead ends filled", 100 * right, (time.time() - began) / len(given)))
    else:
        pairs = collections.defaultdict(collections.Counter)
        letters = task.data.tolist()
        for a, b in zip(letters, letters[1:]):
            pairs[a][b] += 1
        hidden = given == task.outputs
        before = F.pad(given, (1, -1), value=task.outputs)[hidden].tolist()
        likely = {a: c.most_common(1)[0][0] for a, c in pairs.items()}
        common = collections.Counter(letters).most_common(1)[0][0]
        right = [likely.get(a, common) == b for a, b in zip(before, full[hidden].tolist())]
        rows.append(("pairs of characters", 100 * sum(right) / len(right), 0.0))
    return rows


def table(rows, floors):
    """Means and deviations over seeds; `best`: the depth, in trained steps, with the best mean."""
    print(
        "| task | model | weights | steps | MFLOP per token | right, % | at most, after | training, s | per sample, ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for key in dict.fromkeys((r["task"], r["model"]) for r in rows):
        of = [r for r in rows if (r["task"], r["model"]) == key]
        spread = lambda v: f"{statistics.mean(v):.1f} ± {statistics.stdev(v) if len(v) > 1 else 0:.1f}"
        depths = {d: [r["right"][d] for r in of] for d in of[0]["right"]}
        best = max(depths, key=lambda d: statistics.mean(depths[d]))
        print(
            f"| {key[0]} | {key[1]} | {of[0]['weights']:,} | {of[0]['steps']} | {of[0]['flops'] / 1e6:.3f} |"
            f" {spread(depths[min(depths, key=int)])} | {spread(depths[best])}, {int(best) * of[0]['steps']} steps |"
            f" {statistics.mean(r['seconds'] for r in of):.1f} | {1e3 * statistics.mean(r['each'] for r in of):.3f} |"
        )
    for task, method, right, seconds in floors:
        print(f"| {task} | {method} | 0 | | | {right:.1f} | | | {1e3 * seconds:.3f} |")


def find_boards(options):
    """Boards of the generator where none are given."""
    if not options.boards or not options.test:
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
    add("--task", nargs="*", default=["boards", "mazes", "text"])
    add("--seeds", nargs="*", type=int, default=[0, 1, 2, 3, 4])
    add("--models", nargs="*", default=["energy", "squares", "transformer"])
    add("--size", default="small", choices=["tiny", "small"])
    add("--iterations", type=int, default=1500)
    add("--batch", type=int, default=128)
    add("--seconds", type=float, default=1e9, help="of training, for all runs of a task together")
    add("--rate", type=float, default=3e-3)
    add("--mazes", type=int, default=4000)
    add("--tested", type=int, default=1000)
    add("--boards", default="")
    add("--test", default="")
    add("--text", default="")
    add("--program", default="build/examples/sudoku")
    add("--output", default="", help="a file to append rows of JSON to")
    add("--table", default="", help="a file of such rows: print its table and end")
    add("--graph", type=int, default=1, help="0: no CUDA graphs")
    add("--floor", type=int, default=1, help="0: without singles, the constraint solver and the like")
    options = parser.parse_args()
    if options.table:
        with open(options.table) as file:
            return table([json.loads(line) for line in file], [])
    rows, floors = [], []
    if "text" in options.task and not options.text:
        print("no --text: text is left out")
        options.task.remove("text")
    if "boards" in options.task:
        find_boards(options)
    for name in options.task:
        task = {"boards": Boards, "mazes": Mazes, "text": Text}[name](options)
        runs = []
        for seed in options.seeds:
            models = models_of(task.pattern, task.d, task.m, task.outputs, task.steps, seed)
            for kind in (k for k in options.models if k in models):
                model, steps, shape = models[kind]
                runs.append((kind, seed, shape, Run(task, model, steps, options, seed)))
        print(f"{len(runs)} runs on {name}", flush=True)
        iterations = train([run for *_, run in runs], options)
        for kind, seed, shape, run in runs:
            right, each = score(task, run.model, run.steps, (1,) if name == "text" else (1, 2, 4, 8, 16))
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
                    "seconds": run.each * iterations,
                    "loss": run.last.item(),
                    "each": each,
                    "right": {str(k): v for k, v in right.items()},
                    "unit": task.unit,
                }
            )
            print(json.dumps(rows[-1]), flush=True)
            if options.output:
                with open(options.output, "a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
        del runs
        floors += [(name, *row) for row in floor(name, task)] if options.floor else []
    return table(rows, floors)


if __name__ == "__main__":
    main()
