"""The masked image model in PyTorch: a training step, or a forward pass, on random patches.

    python bench/rivals/image_torch.py --batch 4 --threads 2 --compile
    python bench/rivals/image_torch.py --batch 256 --precision bf16 --compile --mode forward

--force written: the update as tensor operations. --force autograd: the energy alone is written and
autograd gives the update, with create_graph in training. Defaults are the paper's sizes.
"""
import torch

from common import median_seconds, options, report
from common_torch import compile_option, compiled, device_option, layernorm, peak_gib, prepare, weight


class Model(torch.nn.Module):
    def __init__(self, o):
        super().__init__()
        width = o.heads * o.head_dim
        self.heads, self.beta, self.steps, self.alpha = o.heads, o.head_dim**-0.5, o.steps, o.alpha
        self.written = o.force == "written"
        self.encoder, self.decoder = torch.nn.Linear(o.patch, o.dim), torch.nn.Linear(o.dim, o.patch)
        self.hidden, self.place = weight(o.dim), weight(o.tokens, o.dim)
        self.wk, self.wq, self.xi = weight(width, o.dim), weight(width, o.dim), weight(o.memories, o.dim)
        self.gamma = torch.nn.Parameter(torch.ones(()))
        self.delta = torch.nn.Parameter(torch.zeros(o.dim))
        self.register_buffer("same", torch.eye(o.tokens, dtype=torch.bool))

    def split(self, x):  # [B, N, H Y] to [B, H, N, Y]
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def scores(self, k, q):  # [B, H, N, N], queries in rows; no token sees itself
        return (self.beta * (q @ k.mT).float()).masked_fill(self.same, -torch.inf)

    def energy(self, g):
        k, q = self.split(g @ self.wk.T), self.split(g @ self.wq.T)
        attention = -self.scores(k, q).logsumexp(-1).sum() / self.beta
        return attention - 0.5 * (g @ self.xi.T).float().relu().square().sum()

    def force(self, g):
        if not self.written:
            with torch.enable_grad():
                g = g if g.requires_grad else g.detach().requires_grad_()
                return -torch.autograd.grad(self.energy(g), g, create_graph=self.training)[0]
        k, q = self.split(g @ self.wk.T), self.split(g @ self.wq.T)
        p = self.scores(k, q).softmax(-1).to(k.dtype)
        as_query = (p @ k).transpose(1, 2).flatten(2) @ self.wq
        as_key = (p.mT @ q).transpose(1, 2).flatten(2) @ self.wk
        return as_query + as_key + (g @ self.xi.T).relu() @ self.xi

    def forward(self, patches, occluded):  # [B, N, P], [B, N, 1]
        x = torch.where(occluded, self.hidden, self.encoder(patches)) + self.place
        for _ in range(self.steps):
            x = x + self.alpha * self.force(layernorm(x, self.gamma, self.delta))
        return self.decoder(layernorm(x, self.gamma, self.delta))


def main():
    parser = options(__doc__.split("\n")[0], batch=4, tokens=196, patch=768, dim=768, heads=12,
                     head_dim=64, memories=3072, steps=12, alpha=0.1, rounds=5)
    parser.add_argument("--mode", choices=["training", "forward"], default="training")
    parser.add_argument("--force", choices=["written", "autograd"], default="written")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    compile_option(parser)
    device_option(parser)
    o = parser.parse_args()
    finish = prepare(o)
    torch.backends.cuda.matmul.allow_tf32 = o.precision == "tf32"
    model = Model(o).to(o.device).train(o.mode == "training")
    patches = torch.randn(o.batch, o.tokens, o.patch, device=o.device)
    occluded = torch.rand(o.batch, o.tokens, 1, device=o.device) < 0.5
    run = compiled(model, o)
    optimiser = torch.optim.AdamW(model.parameters(), 5e-4, (0.9, 0.99), weight_decay=0.05)

    def completed():
        with torch.autocast(o.device, torch.bfloat16, enabled=o.precision == "bf16"):
            return run(patches, occluded).float()

    def train():
        error = ((completed() - patches).square() * occluded).sum() / (occluded.sum() * o.patch)
        optimiser.zero_grad()
        error.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    def infer():
        with torch.no_grad():
            completed()

    seconds = median_seconds(train if o.mode == "training" else infer, finish, o.rounds)
    report(rival="torch " + torch.__version__, what="image", mode=o.mode, force=o.force,
           compiled=o.compile, precision=o.precision, device=o.device, batch=o.batch, steps=o.steps,
           seconds=seconds, images_per_s=o.batch / seconds, gib=peak_gib(o.device))


if __name__ == "__main__":
    main()
