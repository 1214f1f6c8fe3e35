"""GIN (Xu et al. 2019; with edge features Hu et al. 2020) and GCN (Kipf and Welling 2017) in plain PyTorch, trained on all graphs of a
TUDataset at once: the loss and the accuracy of each epoch."""
import pathlib
import zipfile

import torch
from torch import nn

import common


class GIN(nn.Module):
    """A perceptron on the nodes, then layers of messages; each layer's readout has a head."""

    def __init__(self, inputs, edges, dim, outputs, layers, epsilon, read, drop=0.0):
        super().__init__()
        self.read, self.drop = read, drop
        block = lambda n: nn.ModuleList([nn.Linear(n, dim), nn.BatchNorm1d(dim), nn.Linear(dim, dim), nn.BatchNorm1d(dim)])
        self.mlp = nn.ModuleList([block(inputs if i == 0 else dim) for i in range(layers + 1)])
        self.head = nn.ModuleList([nn.Linear(dim, outputs) for _ in range(layers + 1)])
        self.edge = nn.ModuleList([nn.Linear(edges, dim) for _ in range(layers)]) if edges else None
        self.epsilon = nn.Parameter(torch.zeros(layers), requires_grad=epsilon)

    def messages(self, i, x, edge, feature):
        sent = x[edge[:, 1]]
        if self.edge is not None:
            sent = torch.relu(sent + self.edge[i](feature))
        return torch.zeros_like(x).index_add(0, edge[:, 0], sent)

    def forward(self, x, edge, feature, owner, graphs):
        total = 0
        for i, (first, norm1, second, norm2) in enumerate(self.mlp):
            if i > 0:
                x = (1 + self.epsilon[i - 1]) * x + self.messages(i - 1, x, edge, feature)
            x = torch.relu(norm2(second(torch.relu(norm1(first(x))))))
            part = self.head[i](readout(x, owner, graphs, self.read))
            total = total + nn.functional.dropout(part, self.drop, self.training)
        return total


class GCN(nn.Module):
    def __init__(self, inputs, dim, outputs, layers, read, drop=0.0):
        super().__init__()
        self.read, self.drop = read, drop
        sizes = [inputs] + [dim] * layers
        self.conv = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
        for conv in self.conv:
            nn.init.xavier_uniform_(conv.weight)
            nn.init.zeros_(conv.bias)
        self.head = nn.Linear(dim, outputs)

    def forward(self, x, edge, feature, owner, graphs):
        degree = torch.ones(len(x), dtype=x.dtype).index_add(0, edge[:, 0], torch.ones(len(edge), dtype=x.dtype))
        root = degree.rsqrt()[:, None]
        for conv in self.conv:
            x = root * (nn.functional.dropout(x, self.drop, self.training) @ conv.weight.T)
            x = root * (x + torch.zeros_like(x).index_add(0, edge[:, 0], x[edge[:, 1]]))
            x = torch.relu(x + conv.bias)
        x = readout(x, owner, graphs, self.read)
        return self.head(nn.functional.dropout(x, self.drop, self.training))


def readout(x, owner, graphs, read):
    total = torch.zeros(graphs, x.shape[1], dtype=x.dtype).index_add(0, owner, x)
    return total / torch.bincount(owner, minlength=graphs)[:, None] if read == "mean" else total


def one_hot(column):
    low = min(column)
    return nn.functional.one_hot(torch.tensor([c - low for c in column])).float()


def read(path):
    """The graphs as (features, edges, edge features, class)."""
    name = pathlib.Path(path).stem
    with zipfile.ZipFile(path) as z:
        rows = lambda what: [[int(v) for v in line.split(b",")] for line in z.read(f"{name}/{name}_{what}.txt").splitlines()]
        edge, owner, label = rows("A"), [r[0] for r in rows("graph_indicator")], [r[0] for r in rows("graph_labels")]
        x, kind = one_hot([r[0] for r in rows("node_labels")]), one_hot([r[0] for r in rows("edge_labels")])
    start = {}
    for i, g in enumerate(owner):
        start.setdefault(g, i)
    graphs = [{"x": [], "e": [], "k": [], "y": int(y > min(label))} for y in label]
    for i, g in enumerate(owner):
        graphs[g - 1]["x"].append(x[i])
    for i, (a, b) in enumerate(edge):
        g = owner[a - 1]
        graphs[g - 1]["e"].append((a - 1 - start[g], b - 1 - start[g]))
        graphs[g - 1]["k"].append(kind[i])
    return [(torch.stack(g["x"]), torch.tensor(g["e"]), torch.stack(g["k"]), g["y"]) for g in graphs]


def batch_of(graphs):
    start, xs, es, ks, owner = 0, [], [], [], []
    for i, (x, e, k, _) in enumerate(graphs):
        xs.append(x), es.append(e + start), ks.append(k), owner.extend([i] * len(x))
        start += len(x)
    return torch.cat(xs), torch.cat(es), torch.cat(ks), torch.tensor(owner), len(graphs)


def main():
    parser = common.options(__doc__, arch="gin", epochs=50, dim=64, rate=0.001)
    parser.add_argument("data")
    parser.add_argument("--double", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)  # they are small
    graphs = read(args.data)
    F, P = graphs[0][0].shape[1], graphs[0][2].shape[1]
    model = GIN(F, P, args.dim, 2, 4, False, "sum") if args.arch == "gin" else GCN(F, args.dim, 2, 3, "mean")
    optimiser = torch.optim.Adam(model.parameters(), args.rate)
    model = model.double() if args.double else model
    graphs = [(x.double(), e, k.double(), y) for x, e, k, y in graphs] if args.double else graphs
    batch, label = batch_of(graphs), torch.tensor([g[3] for g in graphs])
    for epoch in range(1, args.epochs + 1):
        logits = model(*batch)
        loss = nn.functional.cross_entropy(logits, label)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        common.report(arch=args.arch, epoch=epoch, loss=loss.item(), accuracy=(logits.argmax(1) == label).float().mean().item())


if __name__ == "__main__":
    main()
