"""Graph classification of a TUDataset in PyTorch: padded batches, dense attention with a mask.

    python bench/rivals/graphs_torch.py NCI1.zip --max-steps 8 --threads 2
    python bench/rivals/graphs_torch.py MUTAG.zip --epochs 60

Trains on nine tenths of the graphs and prints the accuracy on the other tenth after the last epoch,
and the speed of the training steps, without reading and padding. Sizes are those of `--preset published-tu`,
without its mixing of heads. Needs numpy beside PyTorch.
"""
import io
import pathlib
import time
import zipfile

import numpy as np
import torch
import torch.nn.functional as F

from common import options, report
from common_torch import device_option, layernorm, peak_gib, prepare, weight


def read_table(archive, ending):
    """The numbers of the file DS_ending.txt, a row a line; None where there is no such file."""
    for name in archive.namelist():
        if name.endswith("_" + ending + ".txt"):
            text = archive.read(name).decode().replace(",", " ")
            return np.loadtxt(io.StringIO(text), ndmin=2)
    return None


def node_features(archive, nodes):
    attributes, labels = (read_table(archive, e) for e in ("node_attributes", "node_labels"))
    columns = [] if attributes is None else [attributes]
    if labels is not None:
        columns.append(labels[:, :1] == np.unique(labels[:, 0]))
    return np.hstack(columns or [np.ones((nodes, 1))]).astype(np.float32)


def positions(adjacency, count):
    """Eigenvectors of the normalised Laplacian behind the first, CLS included: [n + 1, count]."""
    root = adjacency.sum(1) ** -0.5
    vectors = np.linalg.eigh(np.eye(len(root)) - root[:, None] * adjacency * root)[1]
    out = np.zeros((len(root), count), np.float32)
    kept = min(count, len(root) - 1)
    out[:, :kept] = vectors[:, 1:kept + 1]
    return out


def read_set(path, vectors):
    """A list of (features [n, F], adjacency [n + 1, n + 1] with CLS first, positions), classes."""
    with zipfile.ZipFile(path) as archive:
        edges = read_table(archive, "A").astype(int) - 1
        owner = read_table(archive, "graph_indicator").astype(int)[:, 0] - 1
        classes = read_table(archive, "graph_labels").astype(int)[:, 0]
        features = node_features(archive, len(owner))
    number, graphs = np.zeros(len(owner), int), []
    edges = edges[np.argsort(owner[edges[:, 0]], kind="stable")]
    bounds = np.searchsorted(owner[edges[:, 0]], np.arange(len(classes) + 1))
    for i in range(len(classes)):
        nodes = np.flatnonzero(owner == i)
        number[nodes] = np.arange(1, len(nodes) + 1)
        adjacency = np.zeros((len(nodes) + 1,) * 2, np.float32)
        ends = number[edges[bounds[i]:bounds[i + 1]]]
        adjacency[ends[:, 0], ends[:, 1]] = 1
        adjacency[0, 1:], adjacency[1:, 0] = 1, 1
        where = positions(adjacency, vectors)
        adjacency[0, 0] = 1  # CLS sees itself, as in Basin
        graphs.append((features[nodes], adjacency, where))
    return graphs, np.unique(classes, return_inverse=True)[1]


def pad(graphs, device, flip):
    """Tensors of a batch, padded to its largest graph; flip: random signs of the eigenvectors."""
    size = max(len(a) for _, a, _ in graphs)
    x = np.zeros((len(graphs), size - 1, graphs[0][0].shape[1]), np.float32)
    adjacency = np.zeros((len(graphs), size, size), np.float32)
    place = np.zeros((len(graphs), size, graphs[0][2].shape[1]), np.float32)
    for i, (features, a, p) in enumerate(graphs):
        x[i, :len(features)], adjacency[i, :len(a), :len(a)] = features, a
        place[i, :len(p)] = p * np.random.choice([-1, 1], p.shape[1]) if flip else p
    return [torch.from_numpy(t).to(device) for t in (x, adjacency, place)]


class Classifier(torch.nn.Module):
    def __init__(self, o, features, classes):
        super().__init__()
        self.o = o
        self.encoder, self.decoder = torch.nn.Linear(features, o.dim), torch.nn.Linear(o.dim, classes)
        self.place, self.cls = torch.nn.Linear(o.vectors, o.dim), weight(o.dim)
        self.conv = torch.nn.Conv2d(1, o.heads, 3, padding=1, bias=False)
        self.edge = torch.nn.Linear(1, o.heads)
        self.wk, self.wq = (weight(o.blocks, o.heads, o.head_dim, o.dim) for _ in "kq")
        self.xi = weight(o.blocks, o.memories, o.dim, deviation=o.dim**-0.5)
        self.beta = torch.nn.Parameter(torch.full((o.blocks, o.heads, 1), o.head_dim**-0.5))
        self.gamma = torch.nn.Parameter(torch.ones(o.blocks))
        self.delta = torch.nn.Parameter(torch.zeros(o.blocks, o.dim))

    def energy(self, g, scale, pairs, block):
        k, q = (torch.einsum("bnd,hyd->bhny", g, w[block]) for w in (self.wk, self.wq))
        score = self.beta[block][..., None] * (q @ k.mT) * scale
        lse = score.masked_fill(~pairs, -1e30).logsumexp(-1) * pairs.any(-1)
        memory = (g @ self.xi[block].T).relu().square()
        return -(lse / self.beta[block]).sum() - 0.5 * memory.sum()

    def descend(self, x, scale, pairs, block):
        g = layernorm(x, self.gamma[block], self.delta[block])
        e = self.energy(g, scale, pairs, block)
        x = x - self.o.alpha * torch.autograd.grad(e, g, create_graph=self.training)[0]
        if self.training:
            x = x + self.o.alpha**0.5 * self.o.noise * torch.randn_like(x)
        return x

    def forward(self, features, adjacency, place):  # logits [B, classes], read from CLS
        x = torch.cat([self.cls.expand(len(features), 1, -1), self.encoder(features)], 1)
        x = (x + self.place(place)) * adjacency[:, 0, :, None]  # no padding in the convolution
        edges = self.edge(adjacency[..., None]).permute(0, 3, 1, 2)
        scale = self.conv((x @ x.mT)[:, None]) * edges
        for block in range(self.o.blocks):
            for _ in range(self.o.steps):
                x = self.descend(x, scale, adjacency[:, None] > 0, block)
        return self.decoder(x[:, 0])


def rate(o, step, an_epoch):
    """Linear warm-up, then a cosine."""
    warm, last = o.warmup * an_epoch, o.epochs * an_epoch
    if step < warm:
        return o.rate * (step + 1) / warm
    return 0.5 * o.rate * (1 + np.cos(np.pi * (step - warm) / max(1, last - warm)))


def train(o, model, graphs, classes, finish):
    """Returns the steps taken, the graphs seen in those that are timed, and their seconds."""
    optimiser = torch.optim.AdamW(model.parameters(), o.rate, (0.9, 0.99), weight_decay=0.05)
    an_epoch, done, seen, spent = -(-len(graphs) // o.batch), 0, 0, 0.0
    for _ in range(o.epochs):
        order = np.random.permutation(len(graphs))
        for at in range(0, len(order), o.batch):
            ids = order[at:at + o.batch]
            batch = pad([graphs[i] for i in ids], o.device, True)
            target = torch.from_numpy(classes[ids]).to(o.device)
            start = time.perf_counter()
            optimiser.param_groups[0]["lr"] = rate(o, done, an_epoch)
            optimiser.zero_grad()
            F.cross_entropy(model(*batch), target, label_smoothing=0.05).backward()
            optimiser.step()
            finish()
            done += 1
            if done > 1:  # the first step warms up
                seen, spent = seen + len(ids), spent + time.perf_counter() - start
            if done == o.max_steps:
                return done, seen, spent
    return done, seen, spent


def accuracy(o, model, graphs, classes):
    model.eval()
    right = 0
    for at in range(0, len(graphs), o.batch):
        answer = model(*pad(graphs[at:at + o.batch], o.device, False)).argmax(-1).cpu().numpy()
        right += int((answer == classes[at:at + o.batch]).sum())
    return 100 * right / len(graphs)


def main():
    parser = options(__doc__.split("\n")[0], batch=64, epochs=100, max_steps=0, dim=128, heads=12,
                     head_dim=64, memories=512, blocks=4, steps=1, vectors=15, alpha=0.1,
                     noise=0.02, rate=1e-3, warmup=10)
    parser.add_argument("data", type=pathlib.Path, help="a zip of a TUDataset")
    device_option(parser)
    o = parser.parse_args()
    finish = prepare(o)
    np.random.seed(0)
    graphs, classes = read_set(o.data, o.vectors)
    order = np.random.permutation(len(graphs))
    test, rest = order[:len(order) // 10], order[len(order) // 10:]
    model = Classifier(o, graphs[0][0].shape[1], classes.max() + 1).to(o.device)
    done, seen, spent = train(o, model, [graphs[i] for i in rest], classes[rest], finish)
    score = accuracy(o, model, [graphs[i] for i in test], classes[test])
    report(rival="torch " + torch.__version__, what="graphs", data=o.data.stem, device=o.device,
           batch=o.batch, steps=done, graphs_per_s=seen / spent if spent else None,
           held_out_accuracy=score, gib=peak_gib(o.device))


if __name__ == "__main__":
    main()
