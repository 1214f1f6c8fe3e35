#!/usr/bin/env python3
"""Trains the model of photographs further for holes, in PyTorch on one GPU.

    python3 bench/photographs.py DATA PARTS
    python3 bench/photos_train.py pack PARTS/train photos.npz --size 192 --quality 38 --without bsds --at-most flowers=1200
    python3 bench/photos_train.py pack PARTS/val val.npz --size 256 --quality 90
    python3 bench/photos_train.py train --from models/photos.safetensors --photos photos.npz --val val.npz --out OUT --seconds 500

Half of each batch loses one or two rectangles of 32 to 112 pixels a side (loss of their pixels, and of means over 8 x 8),
the other half 100 of 196 patches at random, as in the paper. What differs from the shipped model's architecture:

    tokens of patches that a rectangle touches begin as MASK + enc_w u + pos, u the patch with the membrane (the
    harmonic surface from the rim) in the hole; other hidden ones as MASK + pos, as before
    of a rectangle the picture is u + g hole_w + hole_b, g the tokens at the end; other patches are g dec_w + dec_b
    g rough_w + rough_b is the texture of a patch: sqrt(mean |dx| / 10), sqrt(mean |dy| / 10), levels of 255 summed
    over colours, of the picture and of the picture at half the size; of all patches, hidden ones by 1, others by 0.1

hole_w and rough_w begin as zeros, so that step 0 is the membrane. Prints losses, and for --val the PSNR of 64 x 64 holes
beside the membrane's. Weights are a running mean, as bfloat16; --seconds counts from the start of the process.
"""
import time

BEGIN = time.time()

import argparse
import glob
import io
import json
import os
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy
import torch
import torch._dynamo
import torch.nn.functional as F

SIZE, PATCH, ACROSS = 224, 16, 14
TOKENS, PADDED = 196, 200  # rows of 200 scores begin at multiples of 16 bytes
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
NEW = ("hole_w", "hole_b", "rough_w", "rough_b")


# ---- files ----


def pack(folder, to, size, quality, without, at_most):
    """Photographs as WebP, `size` pixels on the short side, in one file."""
    from PIL import Image

    limit = dict(z.split("=") for z in at_most)
    kinds = sorted(k for k in os.listdir(folder) if k not in without)
    paths = [p for k in kinds for p in sorted(glob.glob(os.path.join(folder, k, "*.jpg")))[: int(limit.get(k, 10**9))]]

    def one(path):
        z = Image.open(path).convert("RGB")
        width, height = z.size
        side = min(width, height)
        across, down = min(width, side * 4 // 3), min(height, side * 4 // 3)
        box = (width - across) // 2, (height - down) // 2, (width + across) // 2, (height + down) // 2
        z = z.resize((round(across * size / side), round(down * size / side)), Image.LANCZOS, box)
        file = io.BytesIO()
        z.save(file, "WEBP", quality=quality, method=6)
        return numpy.frombuffer(file.getvalue(), numpy.uint8)

    with ThreadPoolExecutor(2) as pool:
        files = list(pool.map(one, paths))
    numpy.savez(to, bytes=numpy.concatenate(files), ends=numpy.cumsum([len(f) for f in files]))
    print(f"{len(files)} photographs, {sum(map(len, files)):,} bytes")


def load(path, device, limit=None):
    """Squares of the short side, two of what is wide: [count, 3, side, side]."""
    from PIL import Image

    packed = numpy.load(path)
    files = numpy.split(packed["bytes"], packed["ends"][:-1])[:limit]

    def read(file):
        z = torch.from_numpy(numpy.array(Image.open(io.BytesIO(file.tobytes())).convert("RGB"))).permute(2, 0, 1)
        side, room = min(z.shape[1:]), max(z.shape[1:]) - min(z.shape[1:])
        return [z[:, at : at + side, :side] if z.shape[1] > side else z[:, :side, at : at + side]
                for at in ((room // 2,) if room < 40 else (0, room))]

    with ThreadPoolExecutor(16) as pool:
        return torch.stack([z for zs in pool.map(read, files) for z in zs]).to(device)


def load_weights(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    kinds = {"BF16": torch.bfloat16, "F32": torch.float32, "I64": torch.int64}
    notes = header.pop("__metadata__", {})
    return {name: torch.frombuffer(data[slice(*t["data_offsets"])], dtype=kinds[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items()}, notes


def save_weights(path, named, header=()):
    header, data = dict(header), b""
    for name, p in named:
        kind = "I64" if p.dtype == torch.int64 else "BF16"
        z = p.detach().to(torch.int64 if kind == "I64" else torch.bfloat16).cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(p.shape), "data_offsets": [len(data), len(data) + len(z)]}
        data += z
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    os.replace(path + ".part", path)


def convert(weights, model, to, views, source):
    """The model's file with trained weights, for `basin image export` to give it its digests."""
    (tensors, notes), (new, _) = load_weights(model), load_weights(weights)
    card = json.loads(notes["basin.card"])
    card |= {"views": card["views"] + views, "from": card["from"] + "; then " + source}
    card = {k: v for k, v in card.items() if k not in ("test_mse", "epochs", "date")}
    notes = {"basin.model": notes["basin.model"], "basin.config": notes["basin.config"], "basin.card": json.dumps(card)}
    tensors |= {k: v for k, v in new.items() if not k.startswith("rough")}
    save_weights(to, tensors.items(), {"__metadata__": notes})


# ---- the model: the paper's block, its force written out ----


def norm(x, gamma, delta):
    centred = x - x.mean(-1, keepdim=True)
    return gamma * centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) + delta


def descend(x, w, gamma, delta, block, row):
    """One step. w: wk, wq and xi, [2 D + M, D]; block: -inf where a token may not look; row: 0 for tokens of padding."""
    D = x.shape[-1]
    h = norm(x, gamma, delta).to(w.dtype) @ w.T
    k, q = (z.unflatten(-1, (-1, 64)).transpose(1, 2) for z in (h[..., :D], h[..., D : 2 * D]))
    p = ((0.125 * (q @ k.mT).float() + block).softmax(-1) * row).to(w.dtype)
    as_key, as_query = (z.transpose(1, 2).flatten(2) for z in (p.mT @ q, p @ k))
    return x + 0.1 * (torch.cat((as_key, as_query, h[..., 2 * D :].relu()), -1) @ w).float()


class Model(torch.nn.Module):
    def __init__(self, tensors, kind):
        super().__init__()
        for name in ("enc_w", "enc_b", "mask", "pos", "wk", "wq", "xi", "gamma", "delta", "dec_w", "dec_b"):
            self.register_parameter(name, torch.nn.Parameter(tensors[name].float()))
        D, P = self.enc_w.shape[1], self.enc_w.shape[0]
        first = {"hole_w": torch.zeros(D, P), "hole_b": torch.zeros(P), "rough_w": torch.zeros(D, 4), "rough_b": torch.ones(4)}
        for name in NEW:
            self.register_parameter(name, torch.nn.Parameter(tensors.get(name, first[name]).float()))
        self.kind, self.steps = kind, 12
        block = torch.zeros(PADDED, PADDED).fill_diagonal_(-torch.inf)
        block[:, TOKENS:] = -torch.inf
        self.register_buffer("block", block)
        self.register_buffer("row", (torch.arange(PADDED) < TOKENS).float()[:, None])

    def forward(self, patches, hidden, descend=descend):
        """[B, N, P] with 0 or the guess in hidden patches, [B, N, 1] -> g [B, N, D]"""
        seen = (patches.to(self.kind) @ self.enc_w.to(self.kind)).float()
        x = seen + torch.where(hidden, self.mask, self.enc_b) + self.pos
        x = F.pad(x, (0, 0, 0, PADDED - TOKENS))
        w = torch.cat((self.wk.flatten(0, 1), self.wq.flatten(0, 1), self.xi)).to(self.kind)
        for _ in range(self.steps):
            x = descend(x, w, self.gamma, self.delta, self.block, self.row)
        return norm(x[:, :TOKENS], self.gamma, self.delta)

    def read(self, g, name):
        w, b = getattr(self, name + "_w"), getattr(self, name + "_b")
        return (g.to(self.kind) @ w.to(self.kind)).float() + b


# ---- pictures ----


def to_patches(z):  # [B, C, 224, 224] -> [B, N, P], one colour after the other
    B, C, H, W = z.shape
    return z.reshape(B, C, H // PATCH, PATCH, W // PATCH, PATCH).permute(0, 2, 4, 1, 3, 5).reshape(B, -1, PATCH * PATCH * C)


def to_picture(p):
    B = p.shape[0]
    z = p.reshape(B, ACROSS, ACROSS, 3, PATCH, PATCH).permute(0, 3, 1, 4, 2, 5)
    return z.reshape(B, 3, SIZE, SIZE)


def sweep(u, hole, known):
    z = F.pad(u, (1, 1, 1, 1), mode="replicate")
    mean = (z[:, :, :-2, 1:-1] + z[:, :, 2:, 1:-1] + z[:, :, 1:-1, :-2] + z[:, :, 1:-1, 2:]) / 4
    return torch.where(hole, mean, known)


def membrane(z, hole, sweep=sweep):
    """[B, 3, S, S] [B, 1, S, S]: Laplace's equation, from grids of an eighth of the size up."""
    u = None
    for by, sweeps in ((8, 80), (4, 60), (2, 40), (1, 20)):
        known, gap = z, hole
        if by > 1:
            there = F.avg_pool2d((~hole).float(), by)
            known = F.avg_pool2d(z * ~hole, by) / there.clamp(min=1e-3)
            gap = there < 0.5
        u = known if u is None else F.interpolate(u, scale_factor=2, mode="bilinear", align_corners=False)
        u = torch.where(gap, u if by < 8 else known.mean((2, 3), keepdim=True), known)
        for _ in range(sweeps):
            u = sweep(u, gap, known)
    return u


def roughness(z):
    """[B, 3, 224, 224] levels of 255 -> [B, N, 4]"""
    out = []
    for by in (1, 2):
        if by == 2:
            z = F.avg_pool2d(z, 2)
        gx = F.pad((z[..., 1:] - z[..., :-1]).abs().sum(1, keepdim=True), (0, 1))
        gy = F.pad((z[..., 1:, :] - z[..., :-1, :]).abs().sum(1, keepdim=True), (0, 0, 0, 1))
        out.append((F.avg_pool2d(torch.cat((gx, gy), 1), PATCH // by) / 10).sqrt().flatten(2).mT)
    return torch.cat(out, -1)


def boxes(count, room, device):
    """Rectangles that begin at patches, in the first `room` columns of patches; half of them end at patches."""
    steps = torch.rand(count, 2, device=device)
    sides = torch.where(torch.rand(count, 1, device=device) < 0.5, 16 * (2 + (6 * steps).floor()), 4 * (8 + (21 * steps).floor()))
    sides = sides.clamp(max=80) if room < ACROSS else sides
    rooms = ACROSS - (ACROSS - room) * torch.arange(2, device=device)
    at = 16 * (torch.rand(count, 2, device=device) * (rooms - (sides / 16).ceil() + 1)).floor()
    line = torch.arange(SIZE, device=device)
    inside = (line >= at[..., None]) & (line < (at + sides)[..., None])  # [B, 2, 224]
    return inside[:, 0, :, None] & inside[:, 1, None, :]


def holes(count, device):
    """[B, 1, 224, 224]: one rectangle, or two side by side or one above the other."""
    pair = boxes(count, ACROSS // 2, device) | boxes(count, ACROSS // 2, device).roll(SIZE // 2, 2)
    pair = torch.where(torch.rand(count, 1, 1, device=device) < 0.5, pair, pair.mT)
    one = boxes(count, ACROSS, device)
    return torch.where(torch.rand(count, 1, 1, device=device) < 0.5, one, pair)[:, None]


def crops(store, count):
    """Random squares of a half to all of the area, mirrored, colours varied."""
    device = store.device
    z = store[torch.randint(len(store), (count,), device=device)].float()
    side = torch.empty(count, device=device).uniform_(0.5, 1).sqrt()
    flip = torch.where(torch.rand(count, device=device) < 0.5, -1.0, 1.0)
    shift = (1 - side)[:, None] * torch.empty(count, 2, device=device).uniform_(-1, 1)
    zero = torch.zeros_like(side)
    theta = torch.stack((side * flip, zero, shift[:, 0], zero, side, shift[:, 1]), 1).reshape(-1, 2, 3)
    grid = F.affine_grid(theta, (count, 3, SIZE, SIZE), align_corners=False)
    z = F.grid_sample(z, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
    gain = torch.empty(count, 3, 1, 1, device=device).uniform_(0.85, 1.15)
    light = torch.empty(count, 1, 1, 1, device=device).uniform_(0.8, 1.2)
    middle = z.mean((1, 2, 3), keepdim=True)
    return ((z * gain - middle) * light + middle).clamp(0, 255)


class Colours:
    def __init__(self, device):
        self.mean, self.deviation = (torch.tensor(x, device=device)[:, None, None] * 255 for x in (MEAN, DEVIATION))

    def normalise(self, z):
        return (z - self.mean) / self.deviation

    def back(self, z):
        return z * self.deviation + self.mean


def touched(hole):  # [B, 1, 224, 224] -> [B, N, 1]
    return F.max_pool2d(hole.float(), PATCH).flatten(1)[..., None] > 0


@torch.no_grad()
def validate(model, store, colours):
    """64 x 64 holes, aligned to patches, in windows of the stored squares; the paper's task."""
    draw = torch.Generator().manual_seed(7)
    device, side = store.device, store.shape[-1]
    tops = torch.randint(0, side - SIZE + 1, (len(store), 2), generator=draw)
    z = torch.stack([s[:, t : t + SIZE, l : l + SIZE] for s, (t, l) in zip(store, tops.tolist())]).float()
    at = torch.randint(0, ACROSS - 3, (len(store), 2), generator=draw)
    hole = torch.zeros(len(store), 1, SIZE, SIZE, dtype=torch.bool)
    for h, (t, l) in zip(hole, (16 * at).tolist()):
        h[0, t : t + 64, l : l + 64] = True
    hole = hole.to(device)
    x, hidden = colours.normalise(z), touched(hole)
    flat = membrane(x, hole)
    g = model(to_patches(flat), hidden)
    mine = flat + to_picture(model.read(g, "hole")) * hole
    psnr = lambda p: (10 * (255**2 / ((colours.back(p).clamp(0, 255) - z) ** 2 * hole).sum((1, 2, 3)).div(64 * 64 * 3)
                            .clamp(min=1e-3)).log10()).mean().item()
    low = lambda p: F.avg_pool2d(colours.back(p), 15, 1, 7, count_include_pad=False)
    near = lambda p: (((low(p) - low(x)) ** 2 * hole).sum() / hole.sum() / 3).sqrt().item()
    true = roughness(z)
    err = lambda a: (((a - true) ** 2 * hidden).sum() / hidden.sum() / 4).sqrt().item()
    wide = lambda a: a.mT.reshape(-1, 1, ACROSS, ACROSS).repeat_interleave(16, 2).repeat_interleave(16, 3)
    around = membrane(wide(true), hole.repeat_interleave(4, 0))
    around = F.avg_pool2d(around, PATCH).reshape(len(store), 4, TOKENS).mT
    rough = model.read(g, "rough")
    out = {"psnr membrane": psnr(flat), "gain": psnr(mine) - psnr(flat), "gain of half": psnr((mine + flat) / 2) - psnr(flat),
           "low membrane": near(flat), "low model": near(mine),
           "rough rim": err(around), "rough model": err(rough), "rough both": err((around + rough) / 2)}
    hidden = (torch.rand(len(store), TOKENS, generator=draw).argsort(1).argsort(1) < 100).to(device)[..., None]
    patches = to_patches(x)
    pixels = model.read(model(patches * ~hidden, hidden), "dec")
    out["masked"] = ((pixels - patches) ** 2 * hidden).sum().div(hidden.sum() * 768).item()
    return {k: round(v, 4) for k, v in out.items()}


# ---- training ----


class Training:
    def __init__(self, o, store, model, mean, colours):
        self.o, self.store, self.model, self.mean, self.colours = o, store, model, mean, colours
        self.device = store.device
        self.descend, self.sweep = descend, sweep
        if o.compile:
            torch._dynamo.config.cache_size_limit = 64
            self.descend, self.sweep = torch.compile(descend, dynamic=False), torch.compile(sweep, dynamic=True)
        self.rate = torch.zeros((), device=self.device)
        self.fresh = torch.zeros((), device=self.device)
        self.blend = torch.zeros((), device=self.device)
        self.losses = torch.zeros(4, device=self.device)
        named = list(model.named_parameters())
        old = [p for n, p in named if n not in NEW]
        parts = ([p for p in old if p.ndim > 1], 0.05, self.rate), ([p for p in old if p.ndim <= 1], 0.0, self.rate), \
                ([p for n, p in named if n in NEW], 0.05, self.fresh)
        cuda = self.device.type == "cuda"
        self.adam = torch.optim.AdamW([{"params": p, "weight_decay": d, "lr": r} for p, d, r in parts], self.rate, (0.9, 0.99),
                                      fused=cuda, capturable=cuda)

    def step(self):
        o, device, model = self.o, self.device, self.model
        count = o.batch // 2
        z = crops(self.store, o.batch)
        x = self.colours.normalise(z)
        hole = holes(count, device)
        u = membrane(x[:count], hole, self.sweep)
        order = torch.rand(count, TOKENS, device=device).argsort(1).argsort(1) < 100
        hidden = torch.cat((touched(hole), order[..., None]))
        truth = to_patches(x)
        shown = torch.cat((to_patches(u), truth[count:] * ~order[..., None]))
        g = model(shown, hidden, self.descend)
        apart = (u - x[:count] + to_picture(model.read(g[:count], "hole"))) * hole
        pixels = hole.sum() * 3
        losses = [apart.square().sum() / pixels, F.avg_pool2d(apart, 8).square().sum() * 64 / pixels,
                  ((model.read(g[count:], "dec") - truth[count:]).square().mean(-1) * order).sum() / order.sum()]
        share = torch.where(hidden[:count], 1.0, 0.1)
        losses.append(((model.read(g[:count], "rough") - roughness(z[:count])).square() * share).sum() / share.sum() / 4)
        loss = 0.5 * losses[0] + 0.5 * losses[1] + 0.5 * losses[2] + o.rough * losses[3]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.adam.step()
        self.adam.zero_grad(set_to_none=False)
        with torch.no_grad():
            apart = torch._foreach_sub(list(model.parameters()), list(self.mean.parameters()))
            torch._foreach_mul_(apart, self.blend)
            torch._foreach_add_(list(self.mean.parameters()), apart)
            self.losses.copy_(torch.stack([z.detach() for z in losses]))

    def prepare(self):
        """A function that makes one step: a replayed graph of the GPU's work, or the step itself."""
        if self.device.type != "cuda":
            return self.step
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()  # at rate 0
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self.step()
        except Exception as e:  # the run goes on, slower
            print("no graph:", repr(e)[:500], flush=True)
            torch.cuda.synchronize()
            return self.step
        return graph.replay

    def set_rates(self, step, spent):
        """Constant, then linear to zero."""
        o = self.o
        rate = o.rate * min(1, (step + 1) / 200) * min(1, max(0, 1 - spent) / (1 - o.constant))
        self.rate.fill_(rate)
        self.fresh.fill_(3 * rate)
        self.blend.fill_(1 - min(o.average, (step + 1) / (step + 11)))


def train(o):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(o.seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    tensors, _ = load_weights(o.start)
    store, val = load(o.photos, device, o.limit), load(o.val, device, o.limit)
    clock = lambda: time.time() - BEGIN
    print(f"{len(store)} squares to train on, {len(val)} to validate, {clock():.0f} s", flush=True)
    colours, model, mean = Colours(device), Model(tensors, kind).to(device), Model(tensors, kind).to(device)
    print(json.dumps({"step": 0, **validate(mean, val, colours)}), flush=True)
    t = Training(o, store, model, mean, colours)
    try:
        step = t.prepare()
    except Exception as e:
        if not o.compile:
            raise
        print("not compiled:", repr(e)[:500], flush=True)
        o.compile = False
        model.zero_grad()
        t = Training(o, store, model, mean, colours)
        step = t.prepare()
    mean.load_state_dict(model.state_dict())
    begin = last = clock()
    print(f"ready after {begin:.0f} s", flush=True)
    count = 0
    end = o.seconds - 6  # the last validation
    while clock() < end:
        t.set_rates(count, (clock() - begin) / (end - begin))
        step()
        count += 1
        if count % 16 == 0 and device.type == "cuda":
            torch.cuda.synchronize()  # or the clock would not be the GPU's
        if count == 200 or clock() - last > o.every:
            parts = dict(zip(("hole", "hole by 8", "scattered", "rough"), (round(z, 4) for z in t.losses.tolist())))
            print(json.dumps({"step": count, "views": count * o.batch, "seconds": round(clock()), **parts,
                              **validate(mean, val, colours)}), flush=True)
            save_weights(os.path.join(o.out, "photos.safetensors"), mean.named_parameters())
            last = clock()
    save_weights(os.path.join(o.out, "photos.safetensors"), mean.named_parameters())
    print(json.dumps({"step": count, "views": count * o.batch, "seconds": round(clock()), **validate(mean, val, colours)}), flush=True)


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = o.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("pack")
    p.add_argument("folder")
    p.add_argument("to")
    p.add_argument("--size", type=int, default=192)
    p.add_argument("--quality", type=int, default=38)
    p.add_argument("--without", nargs="*", default=[])
    p.add_argument("--at-most", nargs="*", default=[], metavar="FOLDER=N")
    c = verbs.add_parser("convert")
    c.add_argument("weights")
    c.add_argument("model", help="what was begun with")
    c.add_argument("to")
    c.add_argument("--views", type=int, required=True)
    c.add_argument("--source", required=True, help="a line for the card")
    t = verbs.add_parser("train")
    t.add_argument("--from", dest="start", required=True)
    t.add_argument("--photos", required=True)
    t.add_argument("--val", required=True)
    t.add_argument("--out", required=True)
    t.add_argument("--seconds", type=float, default=500)
    t.add_argument("--batch", type=int, default=96)
    t.add_argument("--rate", type=float, default=5e-4)
    t.add_argument("--constant", type=float, default=0.45, help="share of the time at the full rate")
    t.add_argument("--average", type=float, default=0.998)
    t.add_argument("--rough", type=float, default=0.2, help="weight of the loss of roughness")
    t.add_argument("--seed", type=int, default=53)
    t.add_argument("--every", type=float, default=45, help="seconds between validations")
    t.add_argument("--limit", type=int, help="so many photographs, to try")
    t.add_argument("--compile", action="store_true")
    o = o.parse_args()
    if o.verb == "pack":
        pack(o.folder, o.to, o.size, o.quality, o.without, o.at_most)
    elif o.verb == "convert":
        convert(o.weights, o.model, o.to, o.views, o.source)
    else:
        train(o)


if __name__ == "__main__":
    main()
