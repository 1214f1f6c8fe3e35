"""The search of search.h on a GPU: many starts at once, digits assumed along the path.

    python examples/sudoku/search.py sudoku.safetensors boards.csv --steps 1024
    python examples/sudoku/search.py sudoku.safetensors hardest.csv --starts 64 --steps 512 --assume 16

Prints what is right by depth and breadth, for each choice of an answer: the lowest energy so far, which is held; the
smallest move at this depth; an answer that breaks no rule, which is held, else the lowest energy so far. The rules are
the game's: a choice by them needs no solution.
"""

import argparse
import time

import torch
from net import DEVICE, load, read, sights, solved

ASSUMED, SURE = 24, 0.95
UNITS = [[9 * i + k for k in range(9)] for i in range(9)] + [[9 * k + i for k in range(9)] for i in range(9)]
UNITS += [[27 * (i // 3) + 3 * (i % 3) + 9 * (k // 3) + k % 3 for k in range(9)] for i in range(9)]


def broken(answer):
    """Digits that are missing in rows, columns and boxes, [B]."""
    bits = (1 << answer.long())[:, torch.tensor(UNITS, device=DEVICE)]
    found = [(bits >> d & 1).any(2).sum(1) for d in range(1, 10)]
    return 9 * len(UNITS) - torch.stack(found).sum(0)


def broken_path(answer, given):
    """Cells of the path without two neighbours on it, ends without one, [B]."""
    p = torch.nn.functional.pad(answer, (1, 1, 1, 1))
    near = p[:, 2:, 1:-1] + p[:, :-2, 1:-1] + p[:, 1:-1, 2:] + p[:, 1:-1, :-2]
    return ((answer > 0) & (near != 2 - (given > 1).long())).flatten(1).sum(1)


class Search:
    """Starts of some puzzles, one per row; the first of every `starts` begins at u and assumes nothing."""

    def __init__(self, net, given, options):
        self.net, self.given, self.options = net, given, options
        self.shown, self.u0 = given.long(), net.first(sights(given, net.mazes))
        rows = torch.arange(len(given), device=DEVICE)
        self.plain = rows % options.starts == 0
        self.u, self.kept = self.u0, torch.zeros_like(self.plain)
        self.step = torch.compile(net.step, dynamic=False) if options.compile else net.step
        self.x = self.u0 + self.each(~self.plain) * options.start * torch.randn_like(self.u0)

    def renew(self):
        """In later rounds no start begins at u."""
        self.plain = torch.zeros_like(self.plain)
        self.x = self.u0 + self.options.start * torch.randn_like(self.u0)

    def each(self, rows):
        return rows.float().reshape(-1, *[1] * (self.u0.dim() - 1))

    def answer(self):
        score = self.net.score(self.x).float()
        if self.net.mazes:
            return torch.where(self.given == 1, score > 0, self.given > 1).long(), None
        likely = score.reshape(-1, 81, 9).softmax(-1)
        return torch.where(self.given > 0, self.given.long(), likely.argmax(-1) + 1), likely

    def assume(self, answer, likely):
        """One more digit in every row, by the model's beliefs; rows that are stuck begin anew."""
        wrong = (broken(torch.where(self.shown > 0, self.shown, answer)) > 0) & ~self.plain
        self.kept |= broken(answer) == 0
        most = likely.amax(-1)
        open_ = (self.shown == 0) & (most < SURE)
        count = (self.shown > 0).sum(1) - (self.given > 0).sum(1)
        stuck = wrong & (~open_.any(1) | (count >= ASSUMED))
        cell = (most + 0.1 * torch.randn_like(most)).masked_fill(~open_, -9).argmax(1, keepdim=True)
        of_cell = likely.gather(1, cell[:, :, None].expand(-1, -1, 9))[:, 0]
        digit = torch.multinomial(of_cell.clamp(min=1e-9), 1) + 1
        more = self.shown.scatter(1, cell, digit)
        self.shown = torch.where((wrong & ~stuck)[:, None], more, self.shown)
        self.shown = torch.where(stuck[:, None], self.given.long(), self.shown)
        self.u = self.net.first(sights(self.shown, False))
        again = self.u0 + self.options.start * torch.randn_like(self.u0)
        self.x = torch.where(self.each(stuck) > 0, again, self.x)

    def energy(self):
        """Of the puzzle as it is given, without what is assumed; by parts, which needs less memory."""
        parts = zip(self.x.split(512), self.u0.split(512))
        return torch.cat([self.net.energy(x, u) for x, u in parts])

    def run(self, full, depths):
        """Rows of (depth, right, energy, move, broken rules, kept) of every start at each of `depths`.

        kept: an answer that breaks no rule was seen, at one of `depths` or when a digit was to be assumed.
        """
        options, net, seen = self.options, self.net, []
        late = options.steps - options.calm
        for step in range(1, options.steps + 1):
            with torch.autocast(DEVICE, torch.bfloat16, enabled=options.bfloat16 > 0, cache_enabled=False):
                y = self.step(self.x, self.u).float()
            move = (y - self.x).flatten(1).norm(dim=1) / self.x.flatten(1).norm(dim=1) if step in depths else None
            self.x = y
            if options.noise > 0 and step <= late:
                self.x = self.x + self.each(~self.plain) * options.noise * torch.randn_like(y)
            if step in depths:
                answer, likely = self.answer()
                right = solved(net.score(self.x), self.given, full, net.mazes)
                rules = broken_path(answer, self.given) if net.mazes else broken(answer)
                self.kept |= rules == 0
                seen.append((step, right, self.energy(), move, rules, self.kept.clone()))
            if options.assume and step % options.assume == 0 and step < late:
                self.assume(*self.answer())
            if step == late:
                self.shown, self.u = self.given.long(), self.u0
        return seen


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("weights")
    add("puzzles")
    add("--starts", type=int, default=1)
    add("--steps", type=int, default=64)
    add("--start", type=float, default=1.0, help="deviation of the noise of all starts but the first")
    add("--noise", type=float, default=0.0, help="deviation of the noise of a step")
    add("--calm", type=int, default=32, help="last steps without noise and assumptions")
    add("--assume", type=int, default=0, help="steps between assumptions; 0: none")
    add("--rounds", type=int, default=1, help="of such starts, for puzzles without an answer that keeps all rules")
    add("--count", type=int, default=1000, help="the first so many puzzles of the file")
    add("--rows", type=int, default=4096, help="at once")
    add("--seconds", type=float, default=1e9)
    add("--seed", type=int, default=0)
    add("--compile", type=int, default=0, help="1: by torch.compile")
    add("--bfloat16", type=int, default=0, help="1: products of matrices in bfloat16")
    add("--output", default="", help="what every start found, for torch.load")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    net = load(options.weights)
    given, full = read(options.puzzles, net.mazes, options.count)
    depths = sorted({2**k for k in range(3, 20) if 2**k <= options.steps} | {options.steps})
    began, per = time.time(), max(1, options.rows // options.starts)
    found, solved_in = one_round(net, given, full, depths, per, options, began), []
    report(found, depths, options, time.time() - began)
    n = found.shape[2]
    open_, done = torch.arange(n)[~found[-1, 4].bool().any(1)], []
    solved_in.append(n - len(open_))
    for i in range(1, options.rounds):
        if time.time() - began > options.seconds or not len(open_):
            break
        k = open_.to(DEVICE)
        more = one_round(net, given[k], full[k], depths, per, options, began, later=True)
        done.append(more.shape[2])
        right = more[-1, 4].bool().any(1)
        open_ = torch.cat([open_[: len(right)][~right], open_[len(right) :]])
        solved_in.append(n - len(open_))
        print(
            f"round {i + 1}, {(i + 1) * options.starts} starts: {solved_in[-1]} of {n} keep all rules"
            f" ({100 * solved_in[-1] / n:.1f} %), {time.time() - began:.1f} s",
            flush=True,
        )
    if options.output:
        names = ("right", "energy", "move", "rules", "kept")
        kinds = (torch.bool, torch.float32, torch.float32, torch.int16, torch.bool)
        saved = {name: found[:, k].to(kind) for k, (name, kind) in enumerate(zip(names, kinds))}
        torch.save({"depths": depths, "rounds": solved_in, **saved}, options.output)


def one_round(net, given, full, depths, per, options, began, later=False):
    """[depths, 5, puzzles, starts] of right, energy, move, broken rules, kept; in time."""
    parts = []
    for i in range(0, len(given), per):
        if parts and time.time() - began > options.seconds:
            break
        rows = [t[i : i + per].repeat_interleave(options.starts, 0) for t in (given, full)]
        real = len(rows[0])
        if options.compile and real < per * options.starts:  # one shape
            rows = [
                t.repeat(-(-per * options.starts // real), *[1] * (t.dim() - 1))[: per * options.starts] for t in rows
            ]
        search = Search(net, rows[0], options)
        if later:
            search.renew()
        seen = search.run(rows[1], depths)
        parts.append(torch.stack([torch.stack([v.double()[:real] for v in s[1:]]) for s in seen]).cpu())
    return torch.cat([p.unflatten(2, (-1, options.starts)) for p in parts], 2)


def report(found, depths, options, seconds):
    """By depth: the first starts, all of them, and what each choice among some of them gets right."""
    right, energy, move, rules, kept = found.unbind(1)
    n = right.shape[1]
    print(f"{n} puzzles, {options.starts} starts each, {seconds:.1f} s", vars(options))
    percent = lambda v: {d: round(100 * v[k].mean().item(), 2) for k, d in enumerate(depths)}
    ever = right[:, :, 0].bool().any(0)
    print("first starts, %:", percent(right[:, :, 0]), end="; ")
    print(f"right before the end and not there: {int((ever & ~right[-1, :, 0].bool()).sum())}")
    print("all starts, %:", percent(right))
    breadth = 1
    while breadth <= options.starts:
        by = {"rest": right.gather(2, move[:, :, :breadth].argmin(2, keepdim=True))[:, :, 0]}
        by["energy"] = held(right[:, :, :breadth], energy[:, :, :breadth])
        by["rules"] = torch.maximum(by["energy"], kept[:, :, :breadth].any(2).double())
        for name, chosen in by.items():
            lost = (chosen.bool().any(0) & ~chosen[-1].bool()).sum()
            print(f"breadth {breadth} by {name}:", percent(chosen), f"lost {int(lost)}", flush=True)
        breadth *= 2


def held(right, energy):
    """[depths, puzzles]: whether the state of lowest energy so far, of all starts and depths, is right."""
    best, of = energy.min(2)
    now, out, low = right.gather(2, of[:, :, None])[:, :, 0], [], best[0]
    for k in range(len(best)):
        better = best[k] <= low
        low = torch.where(better, best[k], low)
        out.append(torch.where(better, now[k], out[-1]) if out else now[0])
    return torch.stack(out)


if __name__ == "__main__":
    main()
