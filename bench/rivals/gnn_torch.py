"""GIN and GCN of tests/golden/gnn.py trained on all graphs of a TUDataset at once by PyTorch, from
the weights of a Basin file: the loss of each epoch, to lay beside those of

    basin graph train SET --preset gin --from FILE --dropout 0 --validation 0 --batch 1000000 \\
        --rate R --rate-first R --rate-last R --log LOG -o OUT"""
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


def load(model, path):
    from safetensors.torch import load_file
    file = load_file(path)
    with torch.no_grad():
        for name, tensor, how in model.named():
            tensor.copy_(file[name].T if how == "T" else file[name])


def main():
    parser = common.options(__doc__, arch="gin", epochs=50, dim=64, rate=0.001)
    parser.add_argument("data")
    parser.add_argument("weights")
    parser.add_argument("--double", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)  # they are small
    graphs = read(args.data)
    F, P = graphs[0][0].shape[1], graphs[0][2].shape[1]
    model = GIN(F, P, args.dim, 2, 4, False, "sum") if args.arch == "gin" else GCN(F, args.dim, 2, 3, "mean")
    load(model, args.weights)
    optimiser = torch.optim.Adam(model.parameters(), args.rate)
    model = model.double() if args.double else model
    graphs = [(x.double(), e, k.double(), y) for x, e, k, y in graphs] if args.double else graphs
    batch, label = batch_of(graphs), torch.tensor([g[3] for g in graphs])
    for epoch in range(1, args.epochs + 1):
        loss = torch.nn.functional.cross_entropy(model(*batch), label)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        common.report(arch=args.arch, epoch=epoch, loss=loss.item())


if __name__ == "__main__":
    main()
