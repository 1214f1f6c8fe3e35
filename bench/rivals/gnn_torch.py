"""GIN and GCN of tests/golden/gnn.py trained on a TUDataset by PyTorch: the loss of each epoch, to
lay beside `basin graph train SET --preset gin --dropout 0 --validation 0 --rate-last R --log`."""
import pathlib
import sys
import zipfile

import torch

import common

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "golden"))
from gnn import GCN, GIN


def one_hot(column):
    low = min(column)
    return torch.nn.functional.one_hot(torch.tensor([c - low for c in column])).float()


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
    parser = common.options(__doc__, arch="gin", epochs=50, batch=32, dim=64, rate=0.001, seeds=5)
    parser.add_argument("data")
    args = parser.parse_args()
    torch.set_num_threads(1)  # batches are small
    graphs = read(args.data)
    F, P = graphs[0][0].shape[1], graphs[0][2].shape[1]
    for seed in range(args.seeds):
        torch.manual_seed(seed)
        model = GIN(F, P, args.dim, 2, 4, False, "sum") if args.arch == "gin" else GCN(F, args.dim, 2, 3, "mean")
        optimiser = torch.optim.Adam(model.parameters(), args.rate)
        curve = []
        for _ in range(args.epochs):
            order, total = torch.randperm(len(graphs)).tolist(), 0.0
            for at in range(0, len(graphs), args.batch):
                chosen = [graphs[i] for i in order[at:at + args.batch]]
                loss = torch.nn.functional.cross_entropy(model(*batch_of(chosen)), torch.tensor([g[3] for g in chosen]))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += loss.item() * len(chosen)
            curve.append(total / len(graphs))
        common.report(arch=args.arch, seed=seed, loss=[round(v, 4) for v in curve])


if __name__ == "__main__":
    main()
