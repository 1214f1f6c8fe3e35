"""The energy of model.h in PyTorch, and files of puzzles and weights: what train.py and search.py share.

E(g) = - sum over tokens i and m of (out_m . g_i) silu(eta_m . g_i + sum over kinds k of zeta_km . S_k + bias_m) - <u, g>
x <- x + alpha (-dE/dg - x), g = layernorm(x)
"""

import json
import math
import os
import struct

import torch
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIGHTS = "#.SG"
FILE_NAMES = {"gamma": "block.gamma", "delta": "block.delta"}


class Net(torch.nn.Module):
    """x [B, 9, 9, 9, D] of boards, [B, side, side, D] of mazes.

    Kinds of sums: of rows, columns, boxes, cells, and of three cells of a box in one row or column; of mazes the
    four neighbours.
    """

    def __init__(self, mazes, dim, memories, kinds, alpha=0.5):
        super().__init__()
        normal = lambda *shape, scale: torch.nn.Parameter(scale * torch.randn(*shape))
        self.mazes, self.dim, width = mazes, dim, dim**-0.5
        self.digit = normal(4 if mazes else 3, dim, scale=0.5)
        self.head_w = normal(dim, 1, scale=width)
        self.zeta = normal(kinds, memories, dim, scale=0.5 * width)
        self.eta = normal(memories, dim, scale=0.5 * width)
        self.out = normal(memories, dim, scale=0.5 * memories**-0.5)
        self.bias = torch.nn.Parameter(torch.zeros(memories))
        self.gamma = torch.nn.Parameter(torch.ones(()))
        self.delta = torch.nn.Parameter(torch.zeros(dim))
        self.alpha = torch.nn.Parameter(torch.tensor(alpha))
        scale = [1 / 2] if mazes else [1 / 3] * 4 + [3**-0.5] * 2
        self.scale = scale[:kinds]

    def first(self, index):
        """Rows of `digit`; products with ones and zeros have a faster gradient than looking up."""
        with torch.autocast(DEVICE, enabled=False):
            return (index[..., None] == torch.arange(len(self.digit), device=index.device)).float() @ self.digit

    def norm(self, x):
        return F.layer_norm(x, (self.dim,)) * self.gamma + self.delta

    def score(self, x):
        return (self.norm(x) @ self.head_w)[..., 0]

    def sums(self, a):
        """S of each kind, with an axis of 1 where it is the same for all members."""
        if self.mazes:
            p = F.pad(a, (0, 0, 1, 1, 1, 1))
            return [p[:, 2:, 1:-1] + p[:, :-2, 1:-1] + p[:, 1:-1, 2:] + p[:, 1:-1, :-2]]
        b = a.reshape(a.shape[0], 3, 3, 3, 3, 9, a.shape[-1])
        out = [a.sum(2, keepdim=True), a.sum(1, keepdim=True), b.sum((2, 4), keepdim=True), a.sum(3, keepdim=True)]
        if len(self.scale) > 4:
            out += [b.sum(4, keepdim=True), b.sum(2, keepdim=True)]
        return out

    def spread(self, s):
        if s.dim() == 7:
            return s.expand(-1, 3, 3, 3, 3, 9, -1).reshape(s.shape[0], 9, 9, 9, s.shape[-1])
        return s

    def seen(self, g):
        h = g @ self.eta.T + self.bias
        for k, s in enumerate(self.sums(g)):
            h = h + self.spread(s @ (self.zeta[k].T * self.scale[k]))
        return h

    def energy(self, x, u):
        """[B]"""
        g = self.norm(x)
        return -(F.silu(self.seen(g)) * (g @ self.out.T)).flatten(1).sum(1) - (u * g).flatten(1).sum(1)

    def force(self, g):
        """-dE/dg without u."""
        h = self.seen(g)
        p = torch.sigmoid(h)
        r = (g @ self.out.T) * p * (1 + h * (1 - p))
        f = (h * p) @ self.out + r @ self.eta
        for k, s in enumerate(self.sums(r)):
            f = f + self.spread(s @ (self.zeta[k] * self.scale[k]))
        return f

    def step(self, x, u):
        return x + self.alpha * (self.force(self.norm(x)) + u - x)


# ---- puzzles ----


def numbers(rows, alphabet):
    code = {c: i for i, c in enumerate(alphabet)}
    return torch.tensor([[code[c] for c in row] for row in rows], dtype=torch.uint8, device=DEVICE)


def solution(board):
    """The digits of a board, by trying those of the cell with the fewest; None if there are none."""
    used, cells = [[0] * 9 for _ in range(3)], [int(c) for c in board]
    units = lambda i: ((0, i // 9), (1, i % 9), (2, i // 27 * 3 + i % 9 // 3))

    def turn(i, bit):
        for kind, unit in units(i):
            used[kind][unit] ^= bit

    def left(i):
        return 1022 & ~(used[0][i // 9] | used[1][i % 9] | used[2][i // 27 * 3 + i % 9 // 3])

    for i, digit in enumerate(cells):
        if digit and not left(i) >> digit & 1:
            return None
        turn(i, 1 << digit if digit else 0)
    empty = [i for i in range(81) if not cells[i]]

    def fill():
        if not empty:
            return True
        i = min(empty, key=lambda k: left(k).bit_count())
        choices = left(i)
        empty.remove(i)
        for digit in range(1, 10):
            if choices >> digit & 1:
                cells[i] = digit
                turn(i, 1 << digit)
                if fill():
                    return True
                turn(i, 1 << digit)
        empty.append(i)
        return False

    return "".join(map(str, cells)) if fill() else None


def read(path, mazes, count=None):
    """What is given and the solution: [N, 81] digits; [N, side, side] of SIGHTS and of 0 or 1 for the path.

    Boards without a solution behind a comma are solved here, one by one.
    """
    if not os.path.isfile(path):
        raise SystemExit(f"{path}: no such file")
    with open(path) as file:
        rows = [line.split()[0].split(",") for line in file if line[0] in (SIGHTS if mazes else "0123456789.")][:count]
    if mazes and (not rows or any(len(r) < 2 or r[0][0].isdigit() for r in rows)):
        raise SystemExit(f"{path}: expected lines MAZE,PATH, as maze generate prints them")
    if not mazes:
        boards = [r[0].replace(".", "0") for r in rows]
        if not boards or any(len(b) != 81 or not b.isdigit() for b in boards):
            raise SystemExit(f"{path}: expected boards of 81 digits, 0 or . if empty")
        full = [r[1] if len(r) > 1 and len(r[1]) == 81 else solution(b) for r, b in zip(rows, boards)]
        if None in full:
            raise SystemExit(f"{path}: board {full.index(None) + 1} has no solution")
        return numbers(boards, "0123456789"), numbers(full, "0123456789")
    side = math.isqrt(len(rows[0][0]))
    grid = lambda a: a.reshape(-1, side, side)
    path = numbers([r[1] for r in rows], ".#oSG") > 1
    return grid(numbers([r[0] for r in rows], SIGHTS)), grid(path.to(torch.uint8))


DIGITS = torch.arange(1, 10, device=DEVICE)


def sights(given, mazes):
    """Rows of `digit` that tokens begin as."""
    if mazes:
        return given.long()
    cell = given.long()[:, :, None]
    return torch.where(cell == 0, 0, torch.where(cell == DIGITS, 1, 2)).reshape(-1, 9, 9, 9)


def solved(score, given, full, mazes):
    if mazes:
        return (((score > 0) == (full > 0)) | (given != 1)).flatten(1).all(1)
    return ((score.reshape(-1, 81, 9).argmax(2) + 1 == full) | (given > 0)).all(1)


# ---- weights ----


def write(path, weights, kind):
    """A safetensors file."""
    header, data = {"__metadata__": {"basin.model": kind}}, b""
    for name, value in weights.items():
        raw = value.float().cpu().contiguous().numpy().tobytes()
        shape, place = list(value.shape), [len(data), len(data) + len(raw)]
        header[FILE_NAMES.get(name, name)] = {"dtype": "F32", "shape": shape, "data_offsets": place}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def load(path):
    """The model of a file of weights with products."""
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    kind, data, weights = header.pop("__metadata__")["basin.model"], raw[8 + size :], {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        value = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(entry["shape"])
        weights[{v: k for k, v in FILE_NAMES.items()}.get(name, name)] = value
    kinds, memories, dim = weights["zeta"].shape
    net = Net(kind == "maze", dim, memories, kinds)
    net.load_state_dict(weights)
    return net.to(DEVICE)
