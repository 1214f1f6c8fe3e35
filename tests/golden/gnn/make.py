#!/usr/bin/env python3
"""Makes the golden cases of this folder with torch: probabilities, loss and all gradients.

    python3 make.py            (torch, numpy and safetensors are needed here alone)

The models are those of bench/rivals/nodes_torch.py, in double; the gradients are autograd's. One
node has no neighbours unless nodes are their own, and attention is far from even.
"""
import json
import os
import sys

import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../bench/rivals"))
import nodes_torch  # noqa: E402

N, FEATURES, D, HEADS, LAYERS = 24, 5, 8, 2, 2


def shapes(arch, layers, hidden, width):
    found = {}
    if arch in ("bwgnn", "gt"):
        found.update(emb_w=(FEATURES, D), emb_b=(D,))
    if arch == "bwgnn":
        found.update(emb2_w=(D, D), emb2_b=(D,), mix_w=((layers + 1) * D, D), mix_b=(D,))
    for i in range(layers if arch != "bwgnn" else 0):
        rows = D if i else FEATURES
        one = {"gcn": dict(w=(rows, D), b=(D,)),
               "sage": dict(w=(rows, D), neighbour_w=(rows, D), b=(D,)),
               "gat": dict(w=(rows, D), source=(HEADS, D // HEADS), target=(HEADS, D // HEADS),
                           b=(D,)),
               "gt": dict(wq=(D, D), wk=(D, D), wv=(D, D), wo=(D, D), bo=(D,), norm1_g=(D,),
                          norm1_b=(D,), mlp_w1=(D, 2 * D), mlp_b1=(2 * D,), mlp_w2=(2 * D, D),
                          mlp_b2=(D,), norm2_g=(D,), norm2_b=(D,))}[arch]
        found.update({f"layer{i}.{name}": shape for name, shape in one.items()})
    if hidden:
        found.update(hidden_w=(width, hidden), hidden_b=(hidden,))
    found.update(head_w=(hidden or width,), head_b=())
    return found


def weights(arch, layers, hidden, width, draw):
    p = {}
    for name, shape in shapes(arch, layers, hidden, width).items():
        value = torch.randn(shape, generator=draw, dtype=torch.float64)
        value *= 1 / shape[0] ** 0.5 if len(shape) == 2 else 0.3
        if name.endswith("_g"):
            value += 1
        if name.endswith((".source", ".target")):
            value *= 3
        if name.endswith((".wq", ".wk")):
            value *= 2
        p[name] = value.requires_grad_()
    return p


def draw_edges(count, draw):
    """Pairs among all nodes but the last, which stays alone; a pair of a node with itself too."""
    edges = torch.randint(0, N - 1, (count, 2), generator=draw)
    edges[0] = 3
    return edges


def make(name, arch, seed, layers=LAYERS, hidden=0, loops=False, relations=1, merge="max"):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(N, FEATURES, generator=draw, dtype=torch.float64)
    label = torch.randint(0, 2, (N,), generator=draw)
    train = torch.randint(0, 2, (N,), generator=draw)
    edges = [draw_edges(40, draw) for _ in range(relations)]
    width = D * (relations if merge == "concat" else 1)
    p = weights(arch, layers, hidden, width, draw)
    z = nodes_torch.logits(arch, p, x, [nodes_torch.adjacency(e, N, loops) for e in edges],
                           layers, HEADS, merge)
    omega = 3.0
    loss = nodes_torch.weighted_loss(z, label.double(), train * (1 + (omega - 1) * label.double()))
    loss.backward()
    tensors = {"in.features": x, "in.label": label.int(), "in.train": train.int(),
               "out.probability": torch.sigmoid(z).detach(), "out.loss": loss.detach()}
    for r, e in enumerate(edges):
        tensors["in.edges" + (str(r) if r else "")] = e.int()
    for key, value in p.items():
        tensors["in." + key] = value.detach()
        tensors["grad." + key] = value.grad
    meta = dict(case="gnn_" + name, arch=arch, dim=D, heads=HEADS, layers=layers, hidden=hidden,
                loops=loops, relations=relations, merge=merge, omega=omega, seed=seed)
    save_file({k: t.contiguous() for k, t in tensors.items()},
              os.path.join(HERE, name + ".safetensors"),
              metadata={k: json.dumps(v) for k, v in meta.items()})


if __name__ == "__main__":
    make("bwgnn", "bwgnn", 1)
    make("bwgnn_hetero", "bwgnn", 2, layers=3, loops=True, relations=2)
    make("gt", "gt", 3)
    make("gcn", "gcn", 4, hidden=6)
    make("gat", "gat", 5)
    make("sage", "sage", 6, loops=True, relations=2, merge="concat")
