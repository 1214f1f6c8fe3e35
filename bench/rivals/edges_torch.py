"""Energy attention along the edges of a large graph in PyTorch: gather, segment softmax, scatter.

    python bench/rivals/edges_torch.py --device cpu --threads 2 --edges 879678
    python bench/rivals/edges_torch.py --force autograd --edges 100000

Times a full-graph training step of the anomaly detector on a random graph, so the attention's force
and the reverse of it. Defaults are Amazon's size; all its edges need 68 GiB. --force autograd writes
the energy alone and lets autograd derive the force, to be differentiated again (second order).
"""
import torch
import torch.nn.functional as F

from common import median_seconds, options, report
from common_torch import device_option, layernorm, peak_gib, prepare, weight


class Detector(torch.nn.Module):
    def __init__(self, o):
        super().__init__()
        self.steps, self.alpha, self.written = o.steps, o.alpha, o.force == "written"
        self.embed, self.head = torch.nn.Linear(o.features, o.dim), torch.nn.Linear(2 * o.dim, 1)
        self.wk, self.wq = (weight(o.heads, o.head_dim, o.dim) for _ in "kq")
        self.xi = weight(o.memories, o.dim)
        self.beta = torch.nn.Parameter(torch.full((o.heads,), o.head_dim**-0.5))
        self.gamma = torch.nn.Parameter(torch.ones(()))
        self.delta = torch.nn.Parameter(torch.zeros(o.dim))

    def heads_of(self, g):  # keys and queries [N, H, Y]
        return (torch.einsum("nd,hyd->nhy", g, w) for w in (self.wk, self.wq))

    def exponentials(self, k, q, key, query):
        """exp(score - peak of the query) [E, H], their sums and the peaks [N, H]."""
        score = self.beta * (k[key] * q[query]).sum(-1)
        low = score.new_full(q.shape[:2], -torch.inf)
        at = query[:, None].expand_as(score)
        peak = low.scatter_reduce(0, at, score.detach(), "amax")
        e = (score - peak[query]).exp()
        return e, torch.zeros_like(peak).index_add(0, query, e), peak

    def energy(self, g, key, query):
        k, q = self.heads_of(g)
        _, total, peak = self.exponentials(k, q, key, query)
        seen = total > 0  # a query without keys adds nothing
        lse = torch.where(seen, peak + torch.where(seen, total, 1).log(), 0)
        return -(lse / self.beta).sum() - 0.5 * (g @ self.xi.T).relu().square().sum()

    def force(self, g, key, query):
        if not self.written:
            return -torch.autograd.grad(self.energy(g, key, query), g, create_graph=True)[0]
        k, q = self.heads_of(g)
        e, total, _ = self.exponentials(k, q, key, query)
        p = (e / total[query])[..., None]
        to_keys = torch.zeros_like(q).index_add(0, query, p * k[key])
        to_queries = torch.zeros_like(k).index_add(0, key, p * q[query])
        attention = (torch.einsum("nhy,hyd->nd", to_keys, self.wq)
                     + torch.einsum("nhy,hyd->nd", to_queries, self.wk))
        return attention + (g @ self.xi.T).relu() @ self.xi

    def forward(self, features, key, query):  # a logit a node
        x = self.embed(features)
        first = g = layernorm(x, self.gamma, self.delta)
        for _ in range(self.steps):
            x = x + self.alpha * self.force(g, key, query)
            g = layernorm(x, self.gamma, self.delta)
        return self.head(torch.cat([first, g], -1))[:, 0]


def main():
    parser = options(__doc__.split("\n")[0], nodes=11944, edges=8796784, features=25, dim=128,
                     heads=2, head_dim=128, memories=640, steps=1, alpha=1.0, rounds=3)
    parser.add_argument("--force", choices=["written", "autograd"], default="written")
    device_option(parser)
    o = parser.parse_args()
    finish = prepare(o)
    model = Detector(o).to(o.device)
    key = torch.randint(o.nodes, (o.edges,), device=o.device)
    query = torch.randint(o.nodes, (o.edges,), device=o.device).sort().values
    features = torch.randn(o.nodes, o.features, device=o.device)
    label = (torch.rand(o.nodes, device=o.device) < 0.07).float()
    heavier = torch.tensor(13.0, device=o.device)  # anomalies weigh more
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3)

    def train():
        logit = model(features, key, query)
        loss = F.binary_cross_entropy_with_logits(logit, label, pos_weight=heavier)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    seconds = median_seconds(train, finish, o.rounds, warmup=1)
    report(rival="torch " + torch.__version__, what="edges", force=o.force, device=o.device,
           nodes=o.nodes, edges=o.edges, steps=o.steps, seconds=seconds,
           edges_per_s=o.edges / seconds, gib=peak_gib(o.device))


if __name__ == "__main__":
    main()
