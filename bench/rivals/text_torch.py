"""Models of text in PyTorch: training steps on random tokens, or a whole run on a text.

    python bench/rivals/text_torch.py --arch gpt --dim 64 --hidden 320 --threads 2 --compile --beside build/examples/text
    python bench/rivals/text_torch.py --arch nrgpt --attention written --threads 2 --compile --beside build/examples/text
    python bench/rivals/text_torch.py --text shakespeare.txt --iterations 2000

gpt is nanoGPT's model (tied head, no biases), nrgpt the block of Dehmamy et al. (FF2W, inclusive mask) with its force as
tensor operations. --beside PROGRAM times Basin's example in turn, with the same sizes, dropout and optimiser.
"""
import math
import re
import statistics
import subprocess
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

from common import median_seconds, options, report
from common_torch import compile_option, compiled, device_option, peak_gib, prepare, weight


class Layer(nn.Module):
    def __init__(self, o, hidden):
        super().__init__()
        self.heads, self.drop = o.heads, o.dropout
        self.norm1, self.norm2 = nn.LayerNorm(o.dim, bias=False), nn.LayerNorm(o.dim, bias=False)
        self.qkv, self.out = nn.Linear(o.dim, 3 * o.dim, bias=False), nn.Linear(o.dim, o.dim, bias=False)
        self.up, self.down = nn.Linear(o.dim, hidden, bias=False), nn.Linear(hidden, o.dim, bias=False)
        for map, deviation in (self.qkv, 1), (self.up, 1), (self.out, 2 * o.steps), (self.down, 2 * o.steps):
            nn.init.normal_(map.weight, std=0.02 / math.sqrt(deviation))

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.drop if self.training else 0.0)
        x = x + F.dropout(self.out(mixed.transpose(1, 2).flatten(2)), self.drop, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.drop, self.training)


class Block(nn.Module):
    """One step of NRGPT: x - proj dE/dg at g = LN(x) + bias; keys are held in the force."""

    def __init__(self, o, hidden):
        super().__init__()
        self.drop, self.written = o.dropout, o.attention == "written"
        self.h, self.proj = weight(o.heads, o.dim, o.dim), weight(o.dim, o.dim)
        self.w1, self.w2 = weight(hidden, o.dim), weight(o.dim, hidden)
        self.b1, self.b2 = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.zeros(o.dim))
        self.bias, self.scale = nn.Parameter(torch.zeros(o.dim)), nn.Parameter(torch.ones(()))

    def feed(self, g):  # the gradient of g . (w2 gelu(w1 g + b1) + b2)
        z = g @ self.w1.T + self.b1
        below = 0.5 * (1 + torch.erf(z * math.sqrt(0.5)))
        slope = below + z * torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        return (z * below) @ self.w2.T + self.b2 + (slope * (g @ self.w2)) @ self.w1

    def forward(self, x):
        g = F.layer_norm(x, x.shape[-1:]) + self.bias
        heads, dim = self.h.shape[:2]
        k = (g @ self.h.flatten(0, 1).T).unflatten(-1, (heads, dim)).transpose(1, 2)
        if self.written:  # all heads have one query: one product for the scores, one for the pull
            k = k.flatten(1, 2)
            place = torch.arange(x.shape[1], device=x.device)
            later = place[:, None, None] < place
            scores = (g @ k.transpose(1, 2)).unflatten(-1, (heads, -1)).masked_fill(later, float("-inf"))
            pull = scores.softmax(-1).flatten(-2) @ k
        else:
            q = g.unsqueeze(1).expand_as(k)
            pull = F.scaled_dot_product_attention(q, k, k, is_causal=True, scale=1.0).sum(1)
        return x + (F.dropout(pull, self.drop, self.training) + self.scale * self.feed(g)) @ self.proj.T


class Model(nn.Module):
    def __init__(self, o):
        super().__init__()
        hidden = o.hidden or 4 * o.dim
        self.gpt, self.steps, self.drop = o.arch == "gpt", o.steps, o.dropout
        self.tok, self.pos = weight(o.vocabulary, o.dim), weight(o.context, o.dim)
        self.layer = nn.ModuleList([Layer(o, hidden) for _ in range(o.steps)] if self.gpt else [Block(o, hidden)])
        self.norm = nn.LayerNorm(o.dim, bias=not self.gpt)
        self.head = None if self.gpt else nn.Linear(o.dim, o.vocabulary)
        if self.head:
            nn.init.normal_(self.head.weight, std=0.02)
            nn.init.zeros_(self.head.bias)

    def forward(self, ids, label):
        x = self.tok[ids] + self.pos[: ids.shape[1]]
        x = F.dropout(x, self.drop, self.training) if self.gpt else x
        for i in range(self.steps):
            x = self.layer[i if self.gpt else 0](x)
        x = self.norm(x)
        logits = self.head(x) if self.head else x @ self.tok.T
        return F.cross_entropy(logits.flatten(0, 1).float(), label.flatten())


def optimiser_of(model, o):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                             o.rate, (0.9, 0.99), fused=o.device == "cuda", capturable=o.graph)


def windows(ids, o):
    first = torch.randint(len(ids) - o.context, (o.batch,))
    rows = first[:, None] + torch.arange(o.context)
    return ids[rows].to(o.device), ids[rows + 1].to(o.device)


def rate_at(step, o):
    if step < 100:
        return o.rate * step / 100
    return 0.1 * o.rate + 0.45 * o.rate * (1 + math.cos(math.pi * (step - 100) / max(o.iterations - 100, 1)))


@torch.no_grad()
def validate(run, ids, o):
    """Mean over all windows, side by side, as the example evaluates them, except the last, shorter one."""
    run.eval()
    count = (len(ids) - 1) // o.context
    cut = ids[: count * o.context].view(count, -1), ids[1 : count * o.context + 1].view(count, -1)
    parts = [run(x.to(o.device), y.to(o.device)).item() * len(x) for x, y in zip(*(c.split(o.batch) for c in cut))]
    run.train()
    return sum(parts) / count


def train(run, optimiser, o):
    text = open(o.text, encoding="utf-8").read()
    order = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([order[c] for c in text])
    cut = int(0.9 * len(ids))
    for step in range(o.iterations + 1):
        if step % o.every == 0:
            report(step=step, validation_loss=validate(run, ids[cut:], o))
        for group in optimiser.param_groups:
            group["lr"] = rate_at(step, o)
        learn(run, optimiser, *windows(ids[:cut], o), o)


def learn(run, optimiser, ids, label, o):
    with torch.autocast(o.device, torch.bfloat16, enabled=o.precision == "bf16"):
        loss = run(ids, label)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(run.parameters(), 1.0)
    optimiser.step()


def captured(run, optimiser, o):
    """A whole step, forward to update, as one CUDA graph: ids and labels are copied into it."""
    ids, label = (torch.zeros(o.batch, o.context, dtype=torch.long, device=o.device) for _ in range(2))
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(4):
            learn(run, optimiser, ids, label, o)
    torch.cuda.current_stream().wait_stream(side)
    optimiser.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        learn(run, optimiser, ids, label, o)

    def step(x, y):
        ids.copy_(x, non_blocking=True)
        label.copy_(y, non_blocking=True)
        graph.replay()

    return step


def beside(o, folder):
    """Seconds per step of Basin's example: the median of three reports, of as many steps as PyTorch's."""
    path = folder + "/text"
    with open(path, "w", encoding="utf-8") as file:  # as many characters as the vocabulary has, at random
        file.write("".join(chr(0x100 + i) for i in torch.randint(o.vocabulary, (20 * o.batch * o.context,)).tolist()))
    same = "arch", "batch", "context", "dim", "heads", "steps", "dropout", "rate", "threads"
    command = [o.beside, "train", path, "-o", folder + "/model", "--hidden", str(o.hidden or 4 * o.dim)]
    for name in same:
        command += ["--" + name, str(getattr(o, name))]
    command += ["--iterations", str(3 * o.rounds), "--every", str(o.rounds), "--warmup", "0"]
    command += ["--backend", o.device, "--dtype", "bf16" if o.precision == "bf16" else "f32"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return statistics.median(float(ms) for ms in re.findall(r"([0-9.]+) ms per step", done.stderr)) / 1e3


def main():
    parser = options(__doc__.split("\n")[0], batch=12, context=64, vocabulary=65, dim=128, heads=4, hidden=0, steps=4,
                     dropout=0.0, rate=1e-3, rounds=10, text="", iterations=2000, every=200)
    parser.add_argument("--beside", metavar="PROGRAM", help="time this example in turn: build/examples/text")
    parser.add_argument("--turns", type=int, default=3, help="of both, with --beside [3]")
    parser.add_argument("--arch", choices=["gpt", "nrgpt"], default="nrgpt")
    parser.add_argument("--attention", choices=["sdpa", "written"], default="sdpa", help="of nrgpt")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--graph", action="store_true", help="the whole step as one CUDA graph; with --compile")
    compile_option(parser)
    device_option(parser)
    o = parser.parse_args()
    finish = prepare(o)
    torch.backends.cuda.matmul.allow_tf32 = o.precision == "tf32"
    model = Model(o).to(o.device)
    run = compiled(model, o)
    optimiser = optimiser_of(model, o)
    if o.text:
        return train(run, optimiser, o)
    ids = torch.randint(o.vocabulary, (10 * o.batch * o.context,))
    step = captured(run, optimiser, o) if o.graph else lambda x, y: learn(run, optimiser, x, y, o)
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(o.turns if o.beside else 0):
            rival = median_seconds(lambda: step(*windows(ids, o)), finish, o.rounds)
            basin = beside(o, folder)
            report(turn=turn, model=o.arch, torch_seconds=rival, basin_seconds=basin, ratio=rival / basin)
    seconds = median_seconds(lambda: step(*windows(ids, o)), finish, o.rounds)
    report(model=o.arch, parameters=sum(p.numel() for p in model.parameters()), device=o.device, precision=o.precision,
           compiled=o.compile, seconds=seconds, tokens_per_second=o.batch * o.context / seconds, peak_gib=peak_gib(o.device))


main()
