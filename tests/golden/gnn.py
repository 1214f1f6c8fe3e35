"""Makes the golden cases gin, gin_edges and gcn (see README.md): GIN and GCN in plain PyTorch, in
double, from the formulas of Xu et al. 2019, Hu et al. 2020 and Kipf and Welling 2017. Where
torch_geometric is installed, its convolutions must give the same rows.

    python3 gnn.py FOLDER"""
import json
import sys

import torch
from torch import nn


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

    def named(self):
        """Every tensor under Basin's name; weights of affine maps are [inputs, outputs] there."""
        for i, (first, norm1, second, norm2) in enumerate(self.mlp):
            if i > 0 and self.epsilon.requires_grad:
                yield f"layer{i}.epsilon", self.epsilon, i - 1
            if i > 0 and self.edge is not None:
                yield from affine(f"layer{i}.edge", self.edge[i - 1])
            yield from affine(f"layer{i}.mlp1", first)
            yield from norm(f"layer{i}.norm1", norm1)
            yield from affine(f"layer{i}.mlp2", second)
            yield from norm(f"layer{i}.norm2", norm2)
            yield from affine(f"layer{i}.head", self.head[i])


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

    def named(self):
        for i, conv in enumerate(self.conv):
            yield from affine(f"layer{i + 1}.conv", conv)
        yield from affine(f"layer{len(self.conv)}.head", self.head)


def readout(x, owner, graphs, read):
    total = torch.zeros(graphs, x.shape[1], dtype=x.dtype).index_add(0, owner, x)
    return total / torch.bincount(owner, minlength=graphs)[:, None] if read == "mean" else total


def affine(name, layer):
    yield f"{name}_w", layer.weight, "T"
    yield f"{name}_b", layer.bias, None


def norm(name, layer):
    yield f"{name}_g", layer.weight, None
    yield f"{name}_b", layer.bias, None
    yield f"{name}_mean", layer.running_mean, None
    yield f"{name}_variance", layer.running_var, None


def as_basin(tensor, how):
    tensor = tensor.detach().clone()
    return tensor.T.contiguous() if how == "T" else tensor if how is None else tensor[how]


def graphs_of(generator, edge_features):
    """Three graphs, one of them with a one-way edge and nodes without neighbours. One over the
    number of nodes is the same in float and double."""
    nodes = [4, 8, 2]
    start = [0, 4, 12]
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0)], [(0, 1), (0, 2), (0, 3), (3, 4)], [(0, 1)]
    edge = [(s + a, s + b) for s, p in zip(start, pairs) for x, y in p for a, b in ((x, y), (y, x))]
    edge.append((start[1] + 1, start[1] + 4))
    edge = torch.tensor(sorted(edge))
    draw = lambda *shape: torch.randn(*shape, generator=generator).float().double()
    feature = draw(len(edge), edge_features) if edge_features else None
    owner = torch.repeat_interleave(torch.arange(3), torch.tensor(nodes))
    return nodes, edge, feature, owner, draw


def case(folder, name, model, meta, positions, edge_features):
    from safetensors.torch import save_file
    generator = torch.Generator().manual_seed(7)
    nodes, edge, feature, owner, draw = graphs_of(generator, edge_features)
    x, label = draw(sum(nodes), 5), torch.tensor([0, 2, 1])
    place = draw(sum(nodes), positions) if positions else None
    for _, tensor, _ in model.named():  # running variances stay positive
        with torch.no_grad():
            tensor.add_(0.3 * torch.rand(tensor.shape, generator=generator, dtype=torch.float64))
    rows = torch.cat([x, place], 1) if positions else x
    data = {"in.nodes_of": torch.tensor(nodes), "in.edges": edge, "in.label": label, "in.features": x}
    if positions:
        data["in.positions"] = place
    if edge_features:
        data["in.edge_features"] = feature
    for key, tensor, how in model.named():
        data["in." + key] = as_basin(tensor, how)
    model.eval()
    data["out.logits"] = model(rows, edge, feature, owner, 3).detach()
    model.train()
    logits = model(rows, edge, feature, owner, 3)
    loss = nn.functional.cross_entropy(logits, label)
    loss.backward()
    data["out.training_logits"], data["out.loss"] = logits.detach(), loss.detach()
    for key, tensor, how in model.named():
        if tensor.grad is not None and key.rsplit(".")[1] in ("mlp1_b", "mlp2_b"):
            assert tensor.grad.abs().max() < 1e-12  # the norm behind it takes the bias out
        elif tensor.grad is not None:
            data["grad." + key] = as_basin(tensor.grad, how)
        elif not tensor.requires_grad:
            data["out.next." + key] = as_basin(tensor, how)
    meta = {"case": name, "learn_epsilon": False, **meta}
    save_file({k: v.contiguous() for k, v in data.items()}, f"{folder}/{name}.safetensors",
              {k: json.dumps(v) for k, v in meta.items()})


def check_geometric():
    """Our layers against those of PyTorch Geometric, with the same weights."""
    try:
        from torch_geometric.nn import GCNConv, GINConv, GINEConv
    except ImportError:
        return print("torch_geometric is not installed: not compared with it")
    _, edge, feature, owner, draw = graphs_of(torch.Generator().manual_seed(1), 2)
    x, both = draw(14, 8), edge.T.flip(0)  # they name the sender first
    gin, plain = (GIN(8, f, 8, 3, 1, True, "sum").double() for f in (2, 0))
    own = nn.Identity()
    gine = GINEConv(nn.Linear(8, 8), edge_dim=2).double()
    gine.nn = own
    gine.lin.load_state_dict(gin.edge[0].state_dict())
    pairs = [(x + gin.messages(0, x, edge, feature), gine(x, both, feature)),
             (x + plain.messages(0, x, edge, None), GINConv(own)(x, both))]
    conv = GCNConv(8, 8).double()
    gcn = GCN(8, 8, 3, 1, "mean").double()
    gcn.conv[0].load_state_dict({"weight": conv.lin.weight, "bias": conv.bias})
    gcn.head = own
    pairs.append((gcn(x, edge, None, owner, 3), readout(torch.relu(conv(x, both)), owner, 3, "mean")))
    for ours, theirs in pairs:
        assert (ours - theirs).abs().max() < 1e-12, (ours - theirs).abs().max()
    print("as PyTorch Geometric: GINConv, GINEConv, GCNConv")


def main():
    folder = sys.argv[1]
    torch.manual_seed(3)
    check_geometric()
    case(folder, "gin", GIN(7, 0, 6, 3, 2, False, "sum").double(),
         {"arch": "gin", "layers": 2, "read": "sum"}, 2, 0)
    case(folder, "gin_edges", GIN(5, 2, 6, 3, 2, True, "mean").double(),
         {"arch": "gin", "layers": 2, "read": "mean", "learn_epsilon": True}, 0, 2)
    case(folder, "gcn", GCN(5, 6, 3, 3, "mean").double(),
         {"arch": "gcn", "layers": 3, "read": "mean"}, 0, 0)


if __name__ == "__main__":
    main()
