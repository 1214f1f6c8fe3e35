#!/usr/bin/env python3
"""Pairs as tokens: an energy over node tokens and dense pair tokens, trained on ZINC's subset, in PyTorch.

    python3 bench/pairs.py check
    python3 bench/pairs.py train zinc12k.npz --kind moving --seconds 120 --compile

Tokens x_i of nodes and y_ij of ordered pairs; g = LN(x), e = LN(y), each with one scale and a vector of shifts. A block's
energy, of a graph with n nodes, with i != j throughout:

    E = - 1/beta sum_hi log sum_j exp(beta q_hi . k_hj + w_h . e_ij)          attention, which pairs have a say in
        - 1/2 sum_i |relu(xi g_i)|^2                                          memories of nodes
        - 1/(2 n) sum_ij |relu(A [e_ij, g_i, g_j] + a)|^2                     memories of pairs

One step per block: x -= alpha dE/dg, y -= alpha' n dE/de, both of the energy before the step, step sizes learnt. The
first tokens: x_i of the atom and of (S^t)_ii, y_ij of the bond and of (S^t)_ij, S = D^-1 A, t = 1 .. 16. Kinds:

    moving  all of it
    fixed   y stays as it begins
    none    no memories of pairs, more of nodes (equal parameters), y stays as it begins
    kernels y stays; the memories of nodes see all others through kernels of the walks, one per channel,
            - 1/2 sum_i |relu(xi [g_i, n_i])|^2,   n_i = n^-1/2 sum_j K e_ij * V g_j
    free    the same without an energy: values, outputs and memories have weights of their own, and nothing flows back
            from n_i to g_j; fewer blocks, so that parameters are equal

Prints the mean absolute error of the validation molecules (of a running mean of weights) by epoch, and at the end in how
many of all (molecule, block) the energy rose. Forces are written out; `check` compares them with autograd.
"""
import time

BEGIN = time.time()

import argparse
import json
import math

import numpy
import torch
import torch._dynamo

WALKS, ATOMS, BUCKETS = 16, 28, (20, 23, 26, 38)
D, P, HEADS, UNITS, MEMORIES = 64, 32, 4, 64, 128
BLOCKS = {"moving": 16, "fixed": 16, "none": 16, "kernels": 14, "free": 9}


# ---- molecules, in buckets of like size ----


def load(path, split, device, limit=None):
    """[{atoms [G, n] (ATOMS: no node), features [G, n, n, WALKS + 3], target [G]}] by bucket"""
    packed = numpy.load(path)
    nodes, atom, edges, edge, bond, y = (packed[f"{split}_{k}"] for k in ("node_ptr", "atom", "edge_ptr", "edge", "bond", "y"))
    sizes = numpy.diff(nodes)[:limit]
    buckets, low = [], 0
    for n in BUCKETS:
        chosen = numpy.flatnonzero((sizes > low) & (sizes <= n))
        low = n
        atoms, bonds = numpy.full((len(chosen), n), ATOMS), numpy.zeros((len(chosen), n, n), numpy.int64)
        for row, g in enumerate(chosen):
            atoms[row, : sizes[g]] = atom[nodes[g] : nodes[g + 1]]
            i, j = edge[edges[g] : edges[g + 1]].T
            bonds[row, i, j] = bonds[row, j, i] = bond[edges[g] : edges[g + 1]]
        bonds = torch.tensor(bonds, device=device)
        walk = (bonds > 0).float()
        walk = step = walk / walk.sum(-1, keepdim=True).clamp(min=1)
        features = [(bonds == k).float() for k in (1, 2, 3)]
        for _ in range(WALKS):
            features.append(walk)
            walk = walk @ step
        buckets.append({"atoms": torch.tensor(atoms, device=device), "target": torch.tensor(y[chosen], device=device),
                        "features": torch.stack(features, -1).half()})
    return buckets


# ---- the energy of a block, and its forces ----


def norm(x, scale, shift):
    centred = x - x.mean(-1, keepdim=True)
    return scale * centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) + shift


def heads(g, w):  # [B, n, D] -> [B, H, n, D / H]
    return (g @ w.T).unflatten(-1, (HEADS, -1)).transpose(1, 2)


def scores(g, e, w, apart):
    """apart: [B, 1, n, n], 0 or -1e9"""
    q, k = heads(g, w["wq"]), heads(g, w["wk"])
    return q, k, (D // HEADS) ** -0.5 * (q @ k.mT).to(apart.dtype) + (e @ w["wb"].T).permute(0, 3, 1, 2) + apart


def memory_of_pairs(g, e, w, pairs):
    """relu(A [e_ij, g_i, g_j] + a), 0 where there is no pair; pairs: [B, n, n, 1]"""
    a_e, a_i, a_j = w["a"].split((P, D, D), 1)
    return (e @ a_e.T + (g @ a_i.T)[:, :, None] + (g @ a_j.T)[:, None] + w["a0"]).relu() * pairs


def kernels(e, w, pairs):
    """K e_ij n^-1/2 [B, n, n, D]"""
    return (e @ w["kernel"].T) * (pairs * pairs.sum((1, 2), keepdim=True).clamp(min=1) ** -0.25)


def remembered(g, e, w, pairs):
    """relu(xi [g_i, n_i]) [B, n, MEMORIES], and the kernels"""
    if "kernel" not in w:
        return (g @ w["xi"].T).relu(), None
    k = kernels(e, w, pairs)
    near = (k * (g @ w["value"].T)[:, None]).sum(2)
    return (g @ w["xi"][:, :D].T + near @ w["xi"][:, D:].T).relu(), k


def energy(g, e, w, there, apart, pairs):
    """[B], of the last kinds without the memories of pairs; there: [B, n, 1]"""
    n = there.sum((1, 2))
    s = scores(g, e, w, apart)[2].logsumexp(-1) * there.mT
    m = remembered(g, e, w, pairs)[0] * there
    total = -((D // HEADS) ** 0.5) * s.sum((1, 2)) - 0.5 * m.square().sum((1, 2))
    return total - 0.5 * memory_of_pairs(g, e, w, pairs).square().sum((1, 2, 3)) / n if "a" in w else total


def forces(g, e, w, there, apart, pairs, move):
    """- dE/dg [B, n, D], and - n dE/de [B, n, n, P] where pairs move"""
    n = there.sum((1, 2))[:, None, None]
    q, k, s = scores(g, e, w, apart)
    p = (s.softmax(-1) * there[:, None]).to(q.dtype)
    m, kernel = remembered(g, e, w, pairs)
    if "out" in w:  # no energy
        return (p @ heads(g, w["wv"])).transpose(1, 2).flatten(2) @ w["wo"] + m @ w["out"], None
    on_g = (p @ k).transpose(1, 2).flatten(2) @ w["wq"] + (p.mT @ q).transpose(1, 2).flatten(2) @ w["wk"]
    on_g = on_g + m @ w["xi"][:, :D]
    if kernel is not None:
        on_g = on_g + (kernel * (m * there @ w["xi"][:, D:])[:, :, None]).sum(1) @ w["value"]
    on_e = None
    if move:
        on_e = (D // HEADS) ** 0.5 * n[..., None] * (p.permute(0, 2, 3, 1) @ w["wb"])
    if "a" in w:
        a_e, a_i, a_j = w["a"].split((P, D, D), 1)
        h = memory_of_pairs(g, e, w, pairs)
        on_g = on_g + (h.sum(2) @ a_i + h.sum(1) @ a_j) / n
        if move:
            on_e = on_e + h @ a_e
    return on_g, on_e


def descend(x, y, w, there, apart, pairs, move):
    """One step on a block's energy."""
    g, e = norm(x, w["scale"], w["shift"]), norm(y, w["scale_e"], w["shift_e"])
    on_g, on_e = forces(g, e, w, there, apart, pairs, move)
    x = x + w["step"].exp() * on_g * there
    return (x, y + w["step_e"].exp() * on_e * pairs) if move else (x, y)


class Net(torch.nn.Module):
    def __init__(self, kind, blocks):
        super().__init__()
        self.move = kind == "moving"
        draw = lambda *shape: torch.nn.Parameter(torch.randn(*shape) * shape[-1] ** -0.5)
        flat = lambda *shape, value=0.0: torch.nn.Parameter(torch.full(shape, value))
        more = 0 if kind != "none" else -(-UNITS * (P + 2 * D + 1) // D)
        seen = 2 if kind in ("kernels", "free") else 1
        self.blocks = torch.nn.ModuleList()
        for _ in range(blocks):
            w = {"wq": draw(D, D), "wk": draw(D, D), "xi": draw(MEMORIES + more, seen * D), "wb": flat(HEADS, P),
                 "scale": flat(value=1.0), "shift": flat(D), "scale_e": flat(value=1.0), "shift_e": flat(P),
                 "step": flat(value=math.log(0.1)), "step_e": flat(value=math.log(0.1))}
            if kind in ("moving", "fixed"):
                w |= {"a": draw(UNITS, P + 2 * D), "a0": flat(UNITS)}
            if seen == 2:
                w |= {"kernel": draw(D, P), "value": draw(D, D)}
            if kind == "free":
                w |= {"wv": draw(D, D), "wo": draw(D, D), "out": draw(MEMORIES, D)}
            self.blocks.append(torch.nn.ParameterDict(w))
        self.sums = seen == 2  # first tokens of nodes also see the sums of their pairs' features
        self.atom, self.walk = torch.nn.Embedding(ATOMS + 1, D), torch.nn.Linear(WALKS + self.sums * (WALKS + 3), D)
        self.pair = torch.nn.Sequential(torch.nn.Linear(WALKS + 3, P), torch.nn.ReLU(), torch.nn.Linear(P, P))
        self.head = torch.nn.Sequential(torch.nn.Linear(2 * D, 2 * D), torch.nn.ReLU(), torch.nn.Linear(2 * D, 1))
        self.last = flat(D)

    def begin(self, atoms, features):
        there = (atoms < ATOMS).to(self.last.dtype)[..., None]
        pairs = (there * there.mT * (1 - torch.eye(atoms.shape[1], device=atoms.device)))[..., None]
        features = features.to(self.last.dtype)
        own = features.diagonal(dim1=1, dim2=2).mT[..., 3:]
        if self.sums:
            own = torch.cat((own, features.sum(1)), -1)
        x = (self.atom(atoms) + self.walk(own)) * there
        return x, self.pair(features) * pairs, there, (1e9 * (pairs - 1)).permute(0, 3, 1, 2), pairs

    def forward(self, atoms, features, descend=descend, watch=None):
        x, y, there, apart, pairs = self.begin(atoms, features)
        for w in self.blocks:
            w = dict(w.items())
            was = x, y
            x, y = descend(x, y, w, there, apart, pairs, self.move)
            if watch is not None:
                at = [energy(norm(a, w["scale"], w["shift"]), norm(b, w["scale_e"], w["shift_e"]), w, there, apart, pairs)
                      for a, b in (was, (x, y))]
                watch.append(at[1] - at[0])
        g = norm(x, 1.0, self.last) * there
        return self.head(torch.cat((g.sum(1) / 23, g.sum(1) / there.sum(1)), -1))[:, 0]


# ---- checks ----


def check():
    """Forces against autograd and differences, energies that fall, any order of nodes; on the CPU."""
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    for kind in ("moving", "fixed", "none", "kernels"):
        net = Net(kind, 3)
        atoms = torch.randint(0, ATOMS, (4, 9))
        atoms[1:3, 6:] = ATOMS
        features = torch.rand(4, 9, 9, WALKS + 3) * (atoms < ATOMS)[:, :, None, None] * (atoms < ATOMS)[:, None, :, None]
        x, y, *where = net.begin(atoms, features)
        w = dict(net.blocks[0].items())
        torch.nn.init.normal_(w["wb"])
        there, pairs = where[0], where[2]
        g, e = (norm(z, 1.0, 0.0).detach().requires_grad_() for z in (x, y))
        for move in {net.move, False}:
            on_g, on_e = forces(g, e, w, *where, move)
            d_g, d_e = torch.autograd.grad(energy(g, e, w, *where).sum(), (g, e))
            wrong = [((on_g + d_g) * there).abs().max().item()]
            if move:
                wrong.append(((on_e + d_e * there.sum((1, 2))[:, None, None, None]) * pairs).abs().max().item())
            assert max(wrong) < 1e-9, (kind, wrong)
        for w in net.blocks:
            w["step"].data.fill_(math.log(1e-3)), w["step_e"].data.fill_(math.log(1e-3))
        watch = []
        out = net(atoms, features, watch=watch)
        assert torch.stack(watch).max() < 0, kind
        order = torch.randperm(9)
        apart = (net(atoms[:, order], features[:, order][:, :, order]) - out).abs().max().item()
        assert apart < 1e-9, (kind, apart)
        print(f"{kind}: forces agree to {max(wrong):.0e}, energies fall, order makes {apart:.0e}")


# ---- training ----


class Training:
    def __init__(self, o, net, mean, data):
        self.o, self.net, self.mean, self.data = o, net, mean, data
        self.device = data[0]["target"].device
        self.cuda = self.device.type == "cuda"
        self.rate, self.blend, self.loss = (torch.zeros((), device=self.device) for _ in range(3))
        self.descend = torch.compile(descend, dynamic=False) if o.compile else descend
        self.adam = torch.optim.AdamW(net.parameters(), self.rate, weight_decay=o.decay, fused=self.cuda, capturable=self.cuda)

    def step(self, bucket, chosen):
        atoms, features, target = (bucket[k][chosen] for k in ("atoms", "features", "target"))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.cuda and not self.o.precise):
            out = self.net(atoms, features, self.descend)
        loss = (out.float() - target).abs().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.adam.step()
        self.adam.zero_grad(set_to_none=False)
        with torch.no_grad():
            apart = torch._foreach_sub(list(self.net.parameters()), list(self.mean.parameters()))
            torch._foreach_mul_(apart, self.blend)
            torch._foreach_add_(list(self.mean.parameters()), apart)
            self.loss.add_(loss.detach())

    def prepare(self):
        """Per bucket a function that makes one step with given molecules: a graph of the GPU's work, where it can be."""
        steps, pool = [], None
        for bucket in self.data:
            chosen = torch.arange(self.o.batch, device=self.device)
            step = lambda new, bucket=bucket: self.step(bucket, new)
            if self.cuda:
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    for _ in range(3):
                        self.step(bucket, chosen)  # at rate 0
                torch.cuda.current_stream().wait_stream(side)
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=pool):
                    self.step(bucket, chosen)
                pool = graph.pool()
                step = lambda new, graph=graph, chosen=chosen: (chosen.copy_(new), graph.replay())
            steps.append(step)
        return steps


@torch.no_grad()
def validate(net, buckets, watch=False):
    apart, rises = [], []
    for bucket in buckets:
        for part in torch.arange(len(bucket["target"]), device=bucket["target"].device).split(256):
            seen = [] if watch else None
            out = net(bucket["atoms"][part], bucket["features"][part], watch=seen)
            apart.append((out - bucket["target"][part]).abs())
            if watch:
                rises.append((torch.stack(seen) > 0).float().flatten())
    return torch.cat(apart).mean().item(), torch.cat(rises).mean().item() if watch else None


def train(o):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(o.seed)
    torch.set_float32_matmul_precision("high")
    o.blocks = o.blocks or BLOCKS[o.kind]
    torch._dynamo.config.cache_size_limit = 64
    data, val = load(o.data, "train", device, o.limit), load(o.data, "val", device, o.limit)
    net, mean = Net(o.kind, o.blocks).to(device), Net(o.kind, o.blocks).to(device)
    size = sum(p.numel() for p in net.parameters())
    while True:
        t = Training(o, net, mean, data)
        try:
            steps = t.prepare()
            break
        except Exception as e:
            if not o.compile:
                raise
            print("not compiled:", repr(e)[:500], flush=True)
            o.compile = False
            net.zero_grad()
    mean.load_state_dict(net.state_dict())
    t.loss.zero_()
    begin, count, epoch, best, keep = time.time(), 0, 0, (math.inf, 0), mean.state_dict()
    print(json.dumps({"kind": o.kind, "parameters": size, "ready": round(begin - BEGIN, 1)}), flush=True)
    spent = lambda: (time.time() - begin) / o.seconds
    while spent() < 1:
        rounds = [(k, part) for k, bucket in enumerate(data)
                  for part in torch.randperm(len(bucket["target"])).to(device).split(o.batch) if len(part) == o.batch]
        for at in torch.randperm(len(rounds)).tolist():
            k, part = rounds[at]
            t.rate.fill_(o.rate * min(1, (count + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * min(1, spent()))))
            t.blend.fill_(1 - min(0.998, (count + 1) / (count + 11)))
            steps[k](part)
            count += 1
            if count % 16 == 0 and t.cuda:
                torch.cuda.synchronize()
        epoch += 1
        if epoch % o.every == 0 or spent() >= 1:
            error = validate(mean, val)[0]
            if error < best[0]:
                best = error, epoch
                keep = {k: v.detach().clone() for k, v in mean.state_dict().items()}
            print(json.dumps({"epoch": epoch, "seconds": round(time.time() - begin, 1), "train": round(t.loss.item() / len(rounds) / o.every, 4),
                              "val": round(error, 4)}), flush=True)
            t.loss.zero_()
    mean.load_state_dict(keep)
    error, rises = validate(mean, val, watch=o.kind != "free")
    scored = {}
    if o.test:  # by the epoch that validation chose, once
        scored = {"test": round(validate(mean, load(o.data, "test", device, o.limit))[0], 4)}
    if o.output:
        numpy.savez(o.output, **{k: v.cpu().numpy() for k, v in keep.items()})
    widths = [round(w[k].exp().item(), 3) for k in ("step", "step_e") for w in mean.blocks]
    print(json.dumps({"kind": o.kind, "epochs": epoch, "steps made": count, "val": round(error, 4), "at": best[1], **scored,
                      "energy rose in": rises and round(rises, 5), "step sizes": widths}), flush=True)


def main():
    o = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = o.add_subparsers(dest="verb", required=True)
    verbs.add_parser("check")
    t = verbs.add_parser("train")
    t.add_argument("data")
    t.add_argument("--kind", choices=list(BLOCKS), default="moving")
    t.add_argument("--blocks", type=int, help="by default what gives about 450,000 parameters")
    t.add_argument("--batch", type=int, default=64)
    t.add_argument("--rate", type=float, default=1e-3)
    t.add_argument("--seconds", type=float, default=120, help="of training, after loading and compiling")
    t.add_argument("--every", type=int, default=5, help="epochs between validations")
    t.add_argument("--seed", type=int, default=51)
    t.add_argument("--limit", type=int, help="so many molecules, to try")
    t.add_argument("--compile", action="store_true")
    t.add_argument("--precise", action="store_true", help="numbers of 32 bits, products of 19")
    t.add_argument("--decay", type=float, default=1e-2)
    t.add_argument("--test", action="store_true", help="score the test molecules, once, by the epoch that validation chose")
    t.add_argument("-o", "--output", help="weights of that epoch, npz")
    o = o.parse_args()
    check() if o.verb == "check" else train(o)


if __name__ == "__main__":
    main()
