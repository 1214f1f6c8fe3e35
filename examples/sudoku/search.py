"""The search of search.h on a GPU: many starts at once, digits assumed along the path.

    python examples/sudoku/search.py sudoku.safetensors boards.csv --steps 1024
    python examples/sudoku/search.py sudoku.safetensors hardest.csv --starts 64 --steps 512 --assume 16

Prints what is right by depth and breadth, for each choice of one start: the lowest energy, the smallest last
move, the fewest broken rules.
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


class Search:
    """Starts of some puzzles, one per row; the first of every `starts` begins at u and assumes nothing."""

    def __init__(self, net, given, options):
        self.net, self.given, self.options = net, given, options
        self.shown, self.u0 = given.long(), net.first(sights(given, net.mazes))
        rows = torch.arange(len(given), device=DEVICE)
        self.plain = rows % options.starts == 0
        self.u = self.u0
        self.x = self.u0 + self.each(~self.plain) * options.start * torch.randn_like(self.u0)

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

    def run(self, full, depths):
        """Rows of (depth, right, energy, move, broken rules) of every start at each of `depths`."""
        options, net, seen = self.options, self.net, []
        late = options.steps - options.calm
        for step in range(1, options.steps + 1):
            y = net.step(self.x, self.u)
            move = (y - self.x).flatten(1).norm(dim=1) / self.x.flatten(1).norm(dim=1) if step in depths else None
            self.x = y
            if options.noise > 0 and step <= late:
                self.x = self.x + self.each(~self.plain) * options.noise * torch.randn_like(y)
            if step in depths:
                answer, likely = self.answer()
                right = solved(net.score(self.x), self.given, full, net.mazes)
                rules = torch.zeros_like(right) if net.mazes else broken(answer)
                seen.append((step, right, net.energy(self.x, self.u0), move, rules))
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
    add("--count", type=int, default=1000)
    add("--rows", type=int, default=4096, help="at once")
    add("--seconds", type=float, default=1e9)
    add("--seed", type=int, default=0)
    add("--output", default="", help="what every start found, for torch.load")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    net = load(options.weights)
    given, full = read(options.puzzles, net.mazes, options.count)
    depths = sorted({2**k for k in range(3, 20) if 2**k <= options.steps} | {options.steps})
    began, parts, per = time.time(), [], max(1, options.rows // options.starts)
    for i in range(0, len(given), per):
        if time.time() - began > options.seconds:
            break
        rows = [t[i : i + per].repeat_interleave(options.starts, 0) for t in (given, full)]
        seen = Search(net, rows[0], options).run(rows[1], depths)
        parts.append(torch.stack([torch.stack([v.double() for v in s[1:]]) for s in seen]).cpu())
    found = torch.cat([p.unflatten(2, (-1, options.starts)) for p in parts], 2)  # [depths, 4, puzzles, starts]
    right, energy, move, rules = found.unbind(1)
    n = right.shape[1]
    print(f"{n} puzzles, {options.starts} starts each, {time.time() - began:.1f} s", vars(options))
    ever = right[:, :, 0].bool().any(0)
    print("first starts, %:", {d: round(100 * right[k, :, 0].mean().item(), 2) for k, d in enumerate(depths)}, end="; ")
    print(f"right before the end and not there: {int((ever & ~right[-1, :, 0].bool()).sum())}")
    print("all starts, %:", {d: round(100 * right[k].mean().item(), 2) for k, d in enumerate(depths)})
    by = {"energy": energy, "rest": move, "rules": rules * 1e9 + energy}
    kept = ((rules == 0) & (right > 0)).int().cummax(0).values  # an answer that keeps all rules is kept
    breadth = 1
    while breadth <= options.starts and options.starts > 1:
        for name, key in by.items():
            best = key[:, :, :breadth].argmin(2, keepdim=True)
            chosen = right.gather(2, best)[:, :, 0]
            if name == "rules":
                chosen = torch.maximum(chosen, kept[:, :, :breadth].any(2).double())
            chosen = chosen.mean(1)
            print(f"breadth {breadth} by {name}:", {d: round(100 * chosen[k].item(), 1) for k, d in enumerate(depths)})
        breadth *= 2
    if options.output:
        torch.save(
            {
                "depths": depths,
                "right": right.bool(),
                "energy": energy.float(),
                "move": move.float(),
                "rules": rules.short(),
            },
            options.output,
        )


if __name__ == "__main__":
    main()
