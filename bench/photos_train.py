#!/usr/bin/env python3
"""Trains the model of photographs further for holes, in PyTorch on one GPU.

    python3 bench/photos_train.py --from models/photos.safetensors --photos FOLDER --val FOLDER --out OUT --seconds 500

Half of each batch loses one rectangle of 2 to 7 patches a side, the other half 100 of 196 patches at random, as in the
paper. The hidden patches of a rectangle are not only MASK: with --guess their tokens are MASK + enc_w u, where u is the
membrane from the rim, so that the descent starts from the smoothest picture and changes what it knows better. With
--rough a second map reads from the tokens at the end how rough each hidden patch is: sqrt(mean |gx| / 10) and
sqrt(mean |gy| / 10), summed over colours, in levels of 255.

Prints the loss, and for --val the PSNR of 64 x 64 holes beside the membrane's. Weights are a running mean, as bfloat16.
"""
import argparse
import glob
import json
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file

SIZE, PATCH, ACROSS, STORED = 224, 16, 14, 256
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Model(torch.nn.Module):
    """The paper's block, its force written out; no token attends to itself."""

    def __init__(self, tensors, rough):
        super().__init__()
        for name in ("enc_w", "enc_b", "mask", "pos", "wk", "wq", "xi", "gamma", "delta", "dec_w", "dec_b"):
            self.register_parameter(name, torch.nn.Parameter(tensors[name].float()))
        self.rough_w = torch.nn.Parameter(tensors.get("rough_w", torch.zeros(768, 2)).float())
        self.rough_b = torch.nn.Parameter(tensors.get("rough_b", torch.ones(2)).float())
        self.rough = rough
        self.register_buffer("same", torch.eye(ACROSS * ACROSS, dtype=torch.bool))

    def norm(self, x):
        x = x.float()
        centred = x - x.mean(-1, keepdim=True)
        return self.gamma * centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) + self.delta

    def force(self, g):
        H, Y, D = self.wk.shape
        wk, wq = self.wk.reshape(H * Y, D), self.wq.reshape(H * Y, D)
        k, q = ((g @ w.T).unflatten(-1, (H, Y)).transpose(1, 2) for w in (wk, wq))
        scores = (Y**-0.5 * (q @ k.mT).float()).masked_fill(self.same, -torch.inf)
        p = scores.softmax(-1).to(k.dtype)
        as_query = (p @ k).transpose(1, 2).flatten(2) @ wq
        as_key = (p.mT @ q).transpose(1, 2).flatten(2) @ wk
        return as_query + as_key + (g @ self.xi.T).relu() @ self.xi

    def forward(self, patches, hidden, guess):
        """[B, N, P] [B, N, 1] [B, N, P]: of hidden patches the guess is seen, 0 where there is none."""
        shown = torch.where(hidden, guess, patches) @ self.enc_w
        x = torch.where(hidden, self.mask, self.enc_b) + shown + self.pos
        for _ in range(12):
            x = x + 0.1 * self.force(self.norm(x))
        g = self.norm(x)
        return g @ self.dec_w + self.dec_b, g @ self.rough_w + self.rough_b


def read(path):
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    z = decode_jpeg(read_file(path), mode=ImageReadMode.RGB)
    height, width = z.shape[1:]
    scale = STORED / min(height, width)
    size = max(STORED, round(height * scale)), max(STORED, round(width * scale))
    if size != (height, width):
        z = F.interpolate(z[None].float(), size, mode="bilinear", antialias=True, align_corners=False)[0]
        z = z.round().clamp(0, 255).to(torch.uint8)
    room = max(size) - STORED
    return [z[:, at:][:, :STORED, :STORED] if size[0] > size[1] else z[:, :STORED, at : at + STORED]
            for at in ((room // 2,) if room < 40 else (0, room))]


def load(folder, device, limit=None):
    paths = sorted(glob.glob(os.path.join(folder, "**", "*.jpg"), recursive=True))[:limit]
    with ThreadPoolExecutor(16) as pool:
        found = [z for zs in pool.map(read, paths) for z in zs]
    return torch.stack(found).to(device)


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


def relax(u, hole, known, sweeps):
    for _ in range(sweeps):
        u = sweep(u, hole, known)
    return u


def membrane(z, hole):
    """[B, 3, S, S] [B, 1, S, S]: Laplace's equation, from grids of an eighth of the size up."""
    u = None
    for by, sweeps in ((8, 80), (4, 60), (2, 40), (1, 30)):
        known, gap = z, hole
        if by > 1:
            there = F.avg_pool2d((~hole).float(), by)
            known = F.avg_pool2d(z * ~hole, by) / there.clamp(min=1e-3)
            gap = there < 0.5
        u = known if u is None else F.interpolate(u, scale_factor=2, mode="bilinear", align_corners=False)
        start = torch.where(gap, u if by < 8 else known.mean((2, 3), keepdim=True), known)
        u = relax(start, gap, known, sweeps)
    return u


def roughness(z):
    """[B, 3, 224, 224] levels of 255 -> [B, N, 2]"""
    gx = F.pad((z[..., 1:] - z[..., :-1]).abs().sum(1, keepdim=True), (0, 1))
    gy = F.pad((z[..., 1:, :] - z[..., :-1, :]).abs().sum(1, keepdim=True), (0, 0, 0, 1))
    return (F.avg_pool2d(torch.cat((gx, gy), 1), PATCH) / 10).sqrt().flatten(2).mT


def rectangles(count, device):
    sides = torch.tensor([2, 3, 4, 4, 4, 5, 5, 6, 7], device=device)
    sides = sides[torch.randint(len(sides), (count, 2), device=device)]
    at = (torch.rand(count, 2, device=device) * (ACROSS + 1 - sides)).long()
    line = torch.arange(ACROSS, device=device)
    inside = (line >= at[..., None]) & (line < (at + sides)[..., None])  # [B, 2, 14]
    return (inside[:, 0, :, None] & inside[:, 1, None, :]).flatten(1)


def scattered(count, device):
    order = torch.rand(count, ACROSS * ACROSS, device=device).argsort(1).argsort(1)
    return order < 100


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


def normalise(z):
    mean, deviation = (torch.tensor(x, device=z.device)[:, None, None] * 255 for x in (MEAN, DEVIATION))
    return (z - mean) / deviation


def denormalise(z):
    mean, deviation = (torch.tensor(x, device=z.device)[:, None, None] * 255 for x in (MEAN, DEVIATION))
    return z * deviation + mean


def spread(hidden):  # [B, N] -> [B, 1, 224, 224]
    return F.interpolate(hidden.reshape(-1, 1, ACROSS, ACROSS).float(), scale_factor=PATCH).bool()


def batch_of(z, hidden, guessed):
    """`guessed`: how many of the first pictures show the membrane."""
    x = normalise(z)
    guess = torch.zeros_like(x)
    if guessed:
        guess[:guessed] = membrane(x[:guessed], spread(hidden[:guessed]))
    return to_patches(x), hidden[..., None], to_patches(guess)


@torch.no_grad()
def validate(model, store, guess):
    """64 x 64 holes, aligned to patches, in windows of the stored squares; the paper's task."""
    draw = torch.Generator().manual_seed(7)
    device, tops = store.device, torch.randint(0, 33, (len(store), 2), generator=draw)
    z = torch.stack([s[:, t : t + SIZE, l : l + SIZE] for s, (t, l) in zip(store, tops.tolist())]).float()
    at = torch.randint(0, ACROSS - 3, (len(store), 2), generator=draw)
    hidden = torch.zeros(len(store), ACROSS, ACROSS, dtype=torch.bool)
    for h, (t, l) in zip(hidden, at.tolist()):
        h[t : t + 4, l : l + 4] = True
    hidden = hidden.flatten(1).to(device)
    out = {}
    x = normalise(z)
    flat = membrane(x, spread(hidden))
    patches, mask = to_patches(x), hidden[..., None]
    show = to_patches(flat) if guess else torch.zeros_like(patches)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        pixels, rough = model(patches, mask, show)
    full = torch.where(mask, pixels.float(), patches)

    def psnr(p):
        error = ((denormalise(p).clamp(0, 255) - z) ** 2 * spread(hidden)).sum((1, 2, 3)) / (64 * 64 * 3)
        return (10 * (255**2 / error.clamp(min=1e-3)).log10()).mean().item()

    mine = to_picture(full)
    out["membrane"], out["model"] = psnr(flat), psnr(mine)
    out["half"] = psnr((mine + flat) / 2)
    low = lambda p: F.avg_pool2d(denormalise(p), 15, 1, 7, count_include_pad=False)
    near = lambda p: (((low(p) - low(x)) ** 2 * spread(hidden)).sum() / spread(hidden).sum() / 3).sqrt().item()
    out["low membrane"], out["low model"] = near(flat), near(mine)
    true = roughness(z)
    rim = roughness(denormalise(x))
    around = membrane(rim.mT.reshape(-1, 2, ACROSS, ACROSS).repeat_interleave(16, 2).repeat_interleave(16, 3), spread(hidden))
    around = F.avg_pool2d(around, PATCH).flatten(2).mT
    err = lambda a: (((a.float() - true) ** 2 * mask).sum() / mask.sum() / 2).sqrt().item()
    out["rough rim"], out["rough model"], out["rough both"] = err(around), err(rough), err((around + rough.float()) / 2)
    hidden = (torch.rand(len(store), ACROSS * ACROSS, generator=draw).argsort(1).argsort(1) < 100).to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        pixels, _ = model(patches, hidden[..., None], torch.zeros_like(patches))
    out["masked"] = ((pixels.float() - patches) ** 2 * hidden[..., None]).sum().div(hidden.sum() * 768).item()
    return {k: round(v, 4) for k, v in out.items()}


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    o.add_argument("--from", dest="start", required=True)
    o.add_argument("--photos", required=True)
    o.add_argument("--val", required=True)
    o.add_argument("--out", required=True)
    o.add_argument("--seconds", type=float, default=500)
    o.add_argument("--batch", type=int, default=256)
    o.add_argument("--holes", type=float, default=0.5, help="share of pictures with a rectangle")
    o.add_argument("--rate", type=float, default=5e-4)
    o.add_argument("--average", type=float, default=0.998)
    o.add_argument("--guess", action="store_true")
    o.add_argument("--rough", type=float, default=0.2, help="weight of the loss of roughness")
    o.add_argument("--seed", type=int, default=53)
    o.add_argument("--every", type=float, default=60, help="seconds between validations")
    o = o.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(o.seed)
    with safe_open(o.start, "pt") as file:
        tensors = {k: file.get_tensor(k) for k in file.keys()}
    begin = time.time()
    store, val = load(o.photos, device), load(o.val, device)
    print(f"{len(store)} squares to train on, {len(val)} to validate, {time.time() - begin:.0f} s", flush=True)
    model = Model(tensors, o.rough).to(device)
    mean = Model(tensors, o.rough).to(device)
    run = torch.compile(model) if device.type == "cuda" else model
    globals()["sweep"] = torch.compile(sweep, dynamic=True) if device.type == "cuda" else sweep
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    adam = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0}],
                             o.rate, (0.9, 0.99), fused=device.type == "cuda")
    step, recent, begin, last, shown = 0, 0.0, time.time(), time.time(), 0
    print(json.dumps({"step": 0, **validate(mean, val, o.guess)}), flush=True)
    holes = int(o.batch * o.holes)

    def save():
        kept = {k: v.detach().bfloat16().contiguous() for k, v in mean.named_parameters()}
        save_file(kept, os.path.join(o.out, "weights.safetensors"))

    while True:
        spent = (time.time() - begin) / o.seconds
        if spent >= 1:
            break
        rate = o.rate * min(1, (step + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * spent))
        for group in adam.param_groups:
            group["lr"] = rate
        z = crops(store, o.batch)
        hidden = torch.cat((rectangles(holes, device), scattered(o.batch - holes, device)))
        patches, mask, guess = batch_of(z, hidden, holes if o.guess else 0)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            pixels, rough = run(patches, mask, guess)
        error = ((pixels.float() - patches) ** 2).mean(-1) * hidden
        parts = [error[:holes].sum() / hidden[:holes].sum(), error[holes:].sum() / hidden[holes:].sum()]
        apart = ((rough.float() - roughness(z)) ** 2 * mask)[:holes].sum() / hidden[:holes].sum()
        loss = o.holes * parts[0] + (1 - o.holes) * parts[1] + o.rough * apart
        adam.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        step += 1
        keep = min(o.average, step / (step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(list(mean.parameters()), list(model.parameters()), 1 - keep)
        if step == 1 or time.time() - last > o.every:
            last = time.time()
            print(json.dumps({"step": step, "views": step * o.batch, "seconds": round(time.time() - begin),
                              "hole": round(parts[0].item(), 4), "scattered": round(parts[1].item(), 4),
                              "rough": round(apart.item(), 4), **validate(mean, val, o.guess)}), flush=True)
            save()
    print(json.dumps({"step": step, "views": step * o.batch, **validate(mean, val, o.guess)}), flush=True)
    save()


if __name__ == "__main__":
    main()
