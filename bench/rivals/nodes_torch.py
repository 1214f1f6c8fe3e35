#!/usr/bin/env python3
"""Graph networks that give every node a logit (BWGNN, GT, GCN, GAT, GraphSAGE), in plain torch with the whole adjacency as a matrix.

The models follow docs/baselines.md and the papers named there; a model is a function of a dictionary of weights. Run as a program, it trains one:

    nodes_torch.py --make small.npz
    nodes_torch.py small.npz --arch gt --epochs 50
    basin anomaly train small.npz --split 0 --epochs 50 -o et.safetensors      for comparison
"""
import argparse
import math

import torch
import torch.nn.functional as F


def adjacency(edges, nodes, loops=False):
    """[N, N] of zeros and ones, both ways; loops: every node its own neighbour, else none is."""
    a = torch.zeros(nodes, nodes, dtype=torch.float64)
    a[edges[:, 0], edges[:, 1]] = 1
    a[edges[:, 1], edges[:, 0]] = 1
    a.fill_diagonal_(1 if loops else 0)
    return a


def symmetric(a):
    root = a.sum(1).clamp(min=1).rsqrt()
    return root[:, None] * a * root[None, :]


def attend(score, a):
    """Softmax of score [H, N, N] over the neighbours of each row; 0 where there are none."""
    hidden = score.masked_fill(a[None] == 0, -math.inf)
    return torch.nan_to_num(torch.softmax(hidden, dim=2), nan=0.0)


def bwgnn(p, x, a, layers, heads):
    """Products of matrices (L / 2)^i (1 - L / 2)^(C - i), no polynomial written out."""
    h = torch.relu(torch.relu(x @ p["emb_w"] + p["emb_b"]) @ p["emb2_w"] + p["emb2_b"])
    one = torch.eye(len(a), dtype=a.dtype)
    low = (one - symmetric(a)) / 2
    parts = []
    for i in range(layers + 1):
        j = layers - i
        beta = math.gamma(i + 1) * math.gamma(j + 1) / math.gamma(layers + 2)
        wavelet = torch.linalg.matrix_power(low, i) @ torch.linalg.matrix_power(one - low, j)
        parts.append(wavelet @ h / beta)
    return torch.relu(torch.cat(parts, 1) @ p["mix_w"] + p["mix_b"])


def gt(p, x, a, layers, heads):
    h = x @ p["emb_w"] + p["emb_b"]
    n, d = h.shape
    split = lambda t: t.view(n, heads, d // heads).transpose(0, 1)
    for i in range(layers):
        q = lambda name: p[f"layer{i}.{name}"]
        score = split(h @ q("wq")) @ split(h @ q("wk")).transpose(1, 2) / math.sqrt(d // heads)
        mean = (attend(score, a) @ split(h @ q("wv"))).transpose(0, 1).reshape(n, d)
        h = F.layer_norm(h + mean @ q("wo") + q("bo"), (d,), q("norm1_g"), q("norm1_b"), 1e-5)
        inner = torch.relu(h @ q("mlp_w1") + q("mlp_b1")) @ q("mlp_w2") + q("mlp_b2")
        h = F.layer_norm(h + inner, (d,), q("norm2_g"), q("norm2_b"), 1e-5)
    return h


def gcn(p, x, a, layers, heads):
    for i in range(layers):
        x = torch.relu(symmetric(a) @ x @ p[f"layer{i}.w"] + p[f"layer{i}.b"])
    return x


def sage(p, x, a, layers, heads):
    mean = a / a.sum(1, keepdim=True).clamp(min=1)
    for i in range(layers):
        own = x @ p[f"layer{i}.w"] + p[f"layer{i}.b"]
        x = torch.relu(own + mean @ x @ p[f"layer{i}.neighbour_w"])
    return x


def gat(p, x, a, layers, heads):
    for i in range(layers):
        z = x @ p[f"layer{i}.w"]
        n, d = z.shape
        z = z.view(n, heads, d // heads).transpose(0, 1)
        target = (z * p[f"layer{i}.target"][:, None]).sum(2)
        source = (z * p[f"layer{i}.source"][:, None]).sum(2)
        score = F.leaky_relu(target[:, :, None] + source[:, None, :], 0.2)
        x = F.elu((attend(score, a) @ z).transpose(0, 1).reshape(n, d) + p[f"layer{i}.b"])
    return x


ARCHS = {"bwgnn": bwgnn, "gt": gt, "gcn": gcn, "gat": gat, "sage": sage}


def logits(arch, p, x, adjacencies, layers=2, heads=4, merge="max"):
    results = [ARCHS[arch](p, x, a, layers, heads) for a in adjacencies]
    h = torch.cat(results, 1) if merge == "concat" else torch.stack(results).amax(0)
    if "hidden_w" in p:
        h = torch.relu(h @ p["hidden_w"] + p["hidden_b"])
    return h @ p["head_w"] + p["head_b"]


def weights(arch, inputs, dim, layers, heads):
    """First weights: matrices N(0, 1 / rows), vectors 0, gains 1."""
    shape = {}
    if arch in ("bwgnn", "gt"):
        shape.update(emb_w=(inputs, dim), emb_b=(dim,))
    if arch == "bwgnn":
        shape.update(emb2_w=(dim, dim), emb2_b=(dim,), mix_w=((layers + 1) * dim, dim), mix_b=(dim,))
    for i in range(layers if arch != "bwgnn" else 0):
        rows = dim if i else inputs
        one = {"gcn": dict(w=(rows, dim), b=(dim,)),
               "sage": dict(w=(rows, dim), neighbour_w=(rows, dim), b=(dim,)),
               "gat": dict(w=(rows, dim), source=(heads, dim // heads), target=(heads, dim // heads), b=(dim,)),
               "gt": dict(wq=(dim, dim), wk=(dim, dim), wv=(dim, dim), wo=(dim, dim), bo=(dim,), norm1_g=(dim,), norm1_b=(dim,),
                          mlp_w1=(dim, 2 * dim), mlp_b1=(2 * dim,), mlp_w2=(2 * dim, dim), mlp_b2=(dim,),
                          norm2_g=(dim,), norm2_b=(dim,))}[arch]
        shape.update({f"layer{i}.{name}": s for name, s in one.items()})
    shape.update(head_w=(dim,), head_b=())
    def first(name, s):
        if name.endswith("_g"):
            return torch.ones(s, dtype=torch.float64)
        drawn = len(s) == 2 or name == "head_w"
        return torch.randn(s, dtype=torch.float64) / s[0] ** 0.5 if drawn else torch.zeros(s, dtype=torch.float64)
    return {name: first(name, s).requires_grad_() for name, s in shape.items()}


def weighted_loss(z, label, weight):
    ce = F.binary_cross_entropy_with_logits(z, label, reduction="none")
    return (weight * ce).sum() / weight.sum()


def make_graph(path, nodes=300, features=8, degree=6):
    """A random graph whose anomalies show in their neighbours' features, with one split."""
    import numpy
    draw = numpy.random.default_rng(0)
    y = (draw.random(nodes) < 0.2).astype(numpy.int32)
    x = draw.normal(size=(nodes, features)).astype(numpy.float32)
    x[:, :2] += y[:, None]
    edges = draw.integers(0, nodes, size=(nodes * degree // 2, 2)).astype(numpy.int32)
    part = draw.permutation(nodes)
    masks = [numpy.isin(numpy.arange(nodes), p)[None] for p in
             (part[:nodes // 2], part[nodes // 2:nodes * 3 // 4], part[nodes * 3 // 4:])]
    numpy.savez(path, x=x, y=y, edges=edges, train_masks=masks[0], val_masks=masks[1],
                test_masks=masks[2])


def main():
    import numpy
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="npz with x, y, edges, train_masks")
    parser.add_argument("--make", action="store_true", help="write a small random graph to data")
    parser.add_argument("--arch", choices=ARCHS, default="gt")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--every", type=int, default=1)
    o = parser.parse_args()
    if o.make:
        return make_graph(o.data)
    data = numpy.load(o.data)
    x = torch.tensor(data["x"], dtype=torch.float64)
    y = torch.tensor(data["y"], dtype=torch.float64)
    train = torch.tensor(data["train_masks"][0], dtype=torch.float64)
    omega = (train * (1 - y)).sum() / (train * y).sum()
    a = adjacency(torch.tensor(data["edges"], dtype=torch.int64), len(x), loops=True)
    p = weights(o.arch, x.shape[1], o.dim, 2, o.heads)
    adam = torch.optim.Adam(p.values(), lr=o.rate)
    for epoch in range(1, o.epochs + 1):
        adam.zero_grad()
        loss = weighted_loss(logits(o.arch, p, x, [a], heads=o.heads), y,
                             train * (1 + (omega - 1) * y))
        loss.backward()
        adam.step()
        if epoch % o.every == 0 or epoch == 1:
            print(f"{o.arch} {epoch} {loss.item():.6f}")


if __name__ == "__main__":
    main()
