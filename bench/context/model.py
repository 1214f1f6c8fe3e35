"""Two in-context detectors over a grid of cells: a transformer, and an Energy Transformer of the same size.

Input X [B, R, T, 3, 3] (prior.py) and y [B, R]; the first n rows are the context. Cells x [B, R, T + 1, d]: one per token
of three columns and one for the label. Attention goes over the cells of a row, and over the labelled rows within a token; a
query never sees a query.

The Energy Transformer is a list of blocks. A block stores the context (keys k and values w of the labelled rows, from
the state with which the block begins) and descends an energy of g = layernorm(x) in steps, x <- x - alpha dE/dg. Terms:

  - sum over cells i, heads h of 1/eps_h [ lse_B(q_i.k_B + eps_h v_i.w_B) - lse_B(q_i.k_B) ]       attention
  - sum over cells i, memories m of (out_m . g_i) silu(eta_m . g_i + b_m)                           memories

q, v are linear maps of g_i, so that attention is minus the log likelihood of v_i in a mixture of the stored w_B whose
weights are a softmax of q_i.k_B. Its force V^T (mean of w under the posterior weights) + Q^T (difference of the mean keys
under posterior and prior weights) / eps writes along directions V that are not those which are read. Over columns the
cells of a row are stored as well (clamped), or k and w follow g and the row's cells descend one energy together (joint).
Over rows, q.k is multiplied by 1 + c_h log(n / 200) in both models: sharper weights for more labels.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def working(x):
    return torch.bfloat16 if x.is_cuda else x.dtype


def norm(x):
    return F.layer_norm(x, x.shape[-1:]).to(working(x))


def short(q, k, v):
    """Attention over a row's few cells, by head, on views [N, L, h, .] without copies: fused kernels pad such sequences to their
    tiles and take several times as long. Returns [N, L, h .]."""
    return torch.cat([torch.softmax(a @ b.transpose(-1, -2), -1) @ c for a, b, c in zip(q.unbind(2), k.unbind(2), v.unbind(2))], -1)


class Encoder(nn.Module):
    """Cells from the entries of three columns, labels and random codes of tokens; a label cell per row."""

    def __init__(self, d):
        super().__init__()
        self.a, self.b = nn.Linear(49, 128), nn.Linear(128, d)
        self.label, self.last = nn.Embedding(3, d), nn.Embedding(3, d)
        self.code = nn.Linear(16, d)

    def features(self, X):
        """[B, R, T, 3, 3] -> [B, R, T, 49]: of each column the score, its size, waves of five lengths (zero for gaps), ties
        and sort of the entry; differences between the columns."""
        v, s, k = X.unbind(-1)
        w = torch.cat([v * 2 ** i for i in range(5)], -1)
        k2 = k * k
        d = v - v.roll(-1, -1)
        return torch.cat([v, v.abs(), s, k, k2, torch.sin(w), torch.cos(w) * k2.repeat(1, 1, 1, 5), d, d.abs()[..., :1]], -1)

    def forward(self, X, y, n, codes=None):
        B, R, T = X.shape[:3]
        seen = torch.full((B, R), 2, dtype=torch.long, device=X.device)
        seen[:, :n] = y[:, :n].long()
        if codes is None:
            codes = torch.randn(B, 1, T, 16, device=X.device, dtype=X.dtype)
        dt = working(X)
        h = F.linear(self.features(X).to(dt), self.a.weight.to(dt), self.a.bias.to(dt))
        cell = F.linear(F.gelu(h), self.b.weight.to(dt), self.b.bias.to(dt)).to(X.dtype)
        cell = cell + self.label(seen)[:, :, None] + .3 * self.code(codes)
        return torch.cat([cell, self.last(seen)[:, :, None]], 2)


class Layer(nn.Module):
    """A transformer's layer: over columns, over labelled rows, multilayer perceptron."""

    def __init__(self, d, h, ff):
        super().__init__()
        self.h = h
        self.n = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
        self.qc, self.oc, self.qr, self.orow = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.f1, self.f2 = nn.Linear(d, ff), nn.Linear(ff, d)
        self.sharp = nn.Parameter(torch.zeros(h))

    def forward(self, x, n, more, last=False):
        B, R, C, d = x.shape
        h, dt = self.h, working(x)
        sharp = (1 + self.sharp * more).to(dt)[:, None, None]

        def lin(l, v, of=slice(None)):
            return F.linear(v, l.weight[of].to(dt), l.bias[of].to(dt))
        q, k, v = lin(self.qc, self.n[0](x).to(dt)).view(B * R, C, 3, h, d // h).unbind(2)
        x = x + lin(self.oc, short(q * (d // h) ** -.5, k, v).view(B, R, C, d))
        if not last:
            q, k, v = lin(self.qr, self.n[1](x).to(dt).transpose(1, 2).contiguous()).view(B * C, R, 3, h, d // h).permute(2, 0, 3, 1, 4)
            o = F.scaled_dot_product_attention(q * sharp, k[:, :, :n], v[:, :, :n]).transpose(1, 2).reshape(B, C, R, d)
        else:                                                          # only the queries' label cells are read after it
            x = x[:, :, -1:]
            g = self.n[1](x).to(dt)[:, :, 0]
            k, v = lin(self.qr, g[:, :n], slice(d, None)).view(B, n, 2, h, d // h).permute(2, 0, 3, 1, 4)
            q = lin(self.qr, g[:, n:], slice(0, d)).view(B, R - n, h, d // h).transpose(1, 2)
            x, o = x[:, n:], F.scaled_dot_product_attention(q * sharp, k, v).transpose(1, 2).reshape(B, 1, R - n, d)
        x = x + lin(self.orow, o).transpose(1, 2)
        return x + lin(self.f2, F.gelu(lin(self.f1, self.n[2](x).to(dt))))


class Attention(nn.Module):
    """Energy attention. mode 'given': the log likelihood of values given keys (above); 'both': of keys and values
    together, -lse(q.k + v.w), the usual energy attention with heads of 2 dh."""

    def __init__(self, d, h, dh, mode):
        super().__init__()
        self.h, self.dh, self.mode = h, dh, mode
        self.qv = nn.Parameter(torch.randn(h * 2 * dh, d) / d ** .5)            # of a head: dh rows of Q, dh rows of V
        self.kw = nn.Parameter(torch.randn(h * 2 * dh, d) / d ** .5)            # dh rows of K, dh rows of W
        self.eps = nn.Parameter(torch.full((h,), math.log(.2) if mode == 'given' else -.5 * math.log(dh)))
        self.sharp = nn.Parameter(torch.zeros(h))

    def maps(self, dt, more):
        """Weights of queries and values with logits' scales in them (of queries alone, too), and of keys."""
        eps = self.eps.exp()
        s = torch.stack([(1 + self.sharp * more) * self.dh ** -.5, eps], 1)[:, :, None].expand(-1, -1, self.dh).reshape(-1, 1)
        Q = self.qv * s
        i = (1 / eps)[:, None].expand(-1, 2 * self.dh).reshape(-1, 1)
        own = self.part(Q), self.part(self.kw), self.part(Q * i), self.part(self.kw * i)
        return [w.to(dt) for w in (Q, self.kw, Q * i, self.kw * i, *own)]

    def part(self, W):
        """Rows of queries or keys alone."""
        return W.unflatten(0, (self.h, 2 * self.dh))[:, :self.dh].flatten(0, 1)

    def split(self, g, W):
        """[N, L, d] -> [N, h, L, dh or 2 dh]"""
        return F.linear(g, W).unflatten(-1, (self.h, -1)).transpose(1, 2)

    def store(self, g):
        """Keys and values, and keys alone, of the patterns g [N, n, d]."""
        _, K, _, _, _, k, _, _ = self.maps(g.dtype, 0.)
        return self.split(g, K), self.split(g, k) if self.mode == 'given' else None

    def force(self, g, stored, more, few=False):
        """-dE/dg for g [N, L, d] and stored patterns (few: of short rows)."""
        Q, _, Qi, _, q, _, qi, _ = self.maps(g.dtype, more)

        def mean(q, k):
            if few:
                return short(q.transpose(1, 2), k.transpose(1, 2), k.transpose(1, 2))
            return F.scaled_dot_product_attention(q, k, k, scale=1.).transpose(1, 2).flatten(-2)
        f = F.linear(mean(self.split(g, Q), stored[0]), Qi.t())
        if self.mode == 'given':
            f = f - F.linear(mean(self.split(g, q), stored[1]), qi.t())
        return f

    def joint(self, g):
        """-dE/dg where the tokens' own keys and values follow g: g [N, L, d]."""
        Q, K, Qi, Ki, q, k, qi, ki = self.maps(g.dtype, 0.)

        def both(Wq, Wk, Vq, Vk):
            fq, fk = [], []
            for a, b in zip(*(F.linear(g, W).unflatten(-1, (self.h, -1)).unbind(-2) for W in (Wq, Wk))):   # by head, without copies
                p = torch.softmax(a @ b.transpose(-1, -2), -1)
                fq.append(p @ b)
                fk.append(p.transpose(-1, -2) @ a)
            return F.linear(torch.cat(fq, -1), Vq.t()) + F.linear(torch.cat(fk, -1), Vk.t())
        f = both(Q, K, Qi, Ki)
        return f - both(q, k, qi, ki) if self.mode == 'given' else f

    def energy(self, g, stored, more):
        """By token: [N, L]."""
        kw = stored[0]
        qv = self.split(g, self.maps(g.dtype, more)[0])
        e = torch.logsumexp(qv @ kw.transpose(-1, -2), -1)
        if self.mode == 'given':
            e = e - torch.logsumexp(qv[..., :self.dh] @ kw[..., :self.dh].transpose(-1, -2), -1)
        return -(e / self.eps.exp()[:, None]).sum(1)


class Memories(nn.Module):
    """-sum_m (out_m . g) silu(eta_m . g + b_m), or -1/2 sum_m relu(eta_m . g)^2 (squares)."""

    def __init__(self, d, K, squares=False):
        super().__init__()
        self.K, self.squares = K, squares
        if squares:
            K = 2 * K
        self.eta = nn.Parameter(torch.randn(K, d) / d ** .5)
        self.bias = nn.Parameter(torch.zeros(K))
        self.out = None if squares else nn.Parameter(torch.randn(K, d) / d ** .5)

    def force(self, g):
        eta = self.eta.to(g.dtype)
        h = F.linear(g, eta, self.bias.to(g.dtype))
        if self.squares:
            return F.linear(F.relu(h), eta.t())
        out = self.out.to(g.dtype)
        s, d = products(h, F.linear(g, out))
        return F.linear(s, out.t()) + F.linear(d, eta.t())

    def energy(self, g):
        h = F.linear(g, self.eta.to(g.dtype), self.bias.to(g.dtype))
        if self.squares:
            return -.5 * F.relu(h).pow(2).sum(-1)
        return -(F.linear(g, self.out.to(g.dtype)) * F.silu(h)).sum(-1)


def products(h, a):
    """silu(h) and a silu'(h)."""
    s = torch.sigmoid(h)
    return h * s, a * s * (1 + h * (1 - s))


class Block(nn.Module):
    """An energy and its descent. axis: 'columns', 'rows', 'both' (the sum of both attentions) or 'cells' (memories alone).
    h, dh: heads of attention; K: memories or 0; T: steps."""

    def __init__(self, d, h, dh, K, T, axis, mode='given', joint=True, squares=False, alpha=.5):
        super().__init__()
        self.axis, self.T, self.joint = axis, T, joint
        self.col = Attention(d, h, dh, mode) if axis in ('columns', 'both') else None
        self.row = Attention(d, h, dh, mode) if axis in ('rows', 'both') else None
        self.mem = Memories(d, K, squares) if K else None
        self.alpha = nn.Parameter(torch.full((T,), math.log(alpha)))

    def store(self, g, n):
        """The memory that a block descends with: keys and values of the context, and of the rows' cells (clamped)."""
        col = row = None
        if self.col is not None and not self.joint:
            col = self.col.store(g.flatten(0, 1))
        if self.row is not None:
            row = self.row.store(g[:, :n].transpose(1, 2).flatten(0, 1))
        return col, row

    def force(self, g, memory, more):
        B, R = g.shape[:2]
        rows = self.axis == 'rows'
        g = g.transpose(1, 2).contiguous() if rows else g              # rows: all terms column by column, one transposition
        f = self.mem.force(g) if self.mem is not None else 0
        if self.col is not None:
            gc = g.flatten(0, 1)
            f = f + (self.col.joint(gc) if self.joint else self.col.force(gc, memory[0], 0., True)).unflatten(0, (B, R))
        if self.row is not None:
            a = self.row.force((g if rows else g.transpose(1, 2)).flatten(0, 1), memory[1], more).unflatten(0, (B, -1))
            f = f + (a if rows else a.transpose(1, 2))
        return f.transpose(1, 2) if rows else f

    def energy(self, g, memory, more):
        """By row: [B, R]."""
        B, R = g.shape[:2]
        e = self.mem.energy(g).sum(-1) if self.mem is not None else 0
        if self.col is not None:
            gc = g.flatten(0, 1)
            e = e + self.col.energy(gc, self.col.store(gc) if self.joint else memory[0], 0.).sum(-1).unflatten(0, (B, R))
        if self.row is not None:
            e = e + self.row.energy(g.transpose(1, 2).flatten(0, 1), memory[1], more).unflatten(0, (B, -1)).sum(1)
        return e

    def forward(self, x, n, more, last=False, trace=None):
        if last and self.axis == 'rows':                               # only the queries' label cells are read after it
            x = x[:, :, -1:]
        g = norm(x)
        memory = self.store(g, n)
        if last and self.axis == 'rows':
            x, g = x[:, n:], g[:, n:]
        a = self.alpha.exp()
        e = [self.energy(g, memory, more)] if trace is not None else None
        for t in range(self.T):
            if t:
                g = norm(x)
            x = x + a[t] * self.force(g, memory, more)
            if e is not None:
                e.append(self.energy(norm(x), memory, more))
        if e is not None:
            trace.append(torch.stack(e))
        return x


ATTENTION = dict(given=({}, {}), clamped=(dict(joint=False), {}), lse=(dict(mode='both'), dict(mode='both')),
                 mixed=(dict(mode='both'), {}), heads=({}, dict(h=8, dh=16)))     # over columns, over rows


def blocks(name, d):
    """The block lists that were compared, all of about 0.83 M parameters: alt, alt2 (two energies per layer of which each
    has its memories, one or two steps), three (columns, rows, memories in turn), sum (one energy of all terms, four blocks
    of two steps). Behind it -clamped: over columns keys and values are stored, too; -lse: the usual energy attention; -mixed:
    that over columns; -heads: eight heads over rows."""
    form, _, attention = name.partition('-')
    opts, (col, row) = dict(d=d, T=2 if form in ('alt2', 'sum') else 1), ATTENTION[attention or 'given']
    K = dict(alt=(128, 128), alt2=(128, 128), three=(0, 0, 256), sum=(256,))[form]
    axes = ('both',) if form == 'sum' else ('columns', 'rows', 'cells')
    return [Block(K=k, axis=axis, **opts, **{**dict(h=4, dh=32), **(row if axis == 'rows' else col)}) for _ in range(4) for axis, k in zip(axes, K)]


class Model(nn.Module):
    """kind: 'transformer' or a name of blocks()."""

    def __init__(self, kind, d=128):
        super().__init__()
        self.kind = kind
        self.enc = Encoder(d)
        self.ls = nn.ModuleList([Layer(d, 4, 2 * d) for _ in range(4)] if kind == 'transformer' else blocks(kind, d))
        self.ln, self.o1, self.o2 = nn.LayerNorm(d), nn.Linear(d, d), nn.Linear(d, 1)
        self.end = max(i for i, l in enumerate(self.ls) if kind == 'transformer' or l.row is not None)

    def forward(self, X, y, n, codes=None, trace=None):
        """Log likelihood ratios of the queries [B, R - n]: with the log odds of the context's anomalies added, logits."""
        x = self.enc(X, y, n, codes)
        more = torch.full((), math.log(n / 200), device=x.device, dtype=x.dtype)
        for i, l in enumerate(self.ls):                               # after the last rows only the queries' label cells are read
            x = l(x, n, more, i == self.end) if trace is None else l(x, n, more, i == self.end, trace)
        return self.o2(F.gelu(self.o1(self.ln(x[:, n - X.shape[1]:, -1]))))[..., 0].float()


def test():
    """Forces are gradients of the scalar energy (float64), energies fall, queries do not see queries, sizes are equal."""
    torch.manual_seed(0)
    X, y, n = torch.randn(2, 11, 5, 3, 3, dtype=torch.double), (torch.rand(2, 11) < .3).double(), 7
    codes, more = torch.randn(2, 1, 5, 16, dtype=torch.double), torch.full((), math.log(7 / 200), dtype=torch.double)
    size = sum(p.numel() for p in Model('transformer').parameters())
    for kind in ('transformer', 'sum', 'alt', 'alt2', 'three', 'three-clamped', 'three-lse', 'three-mixed', 'three-heads'):
        m = Model(kind).double()
        for k, p in m.named_parameters():
            if k.endswith('sharp'):
                p.data.normal_(0, .05)
        x = m.enc(X, y, n, codes)
        worst = 0
        for l in m.ls if kind != 'transformer' else ():
            g = norm(x).detach()
            with torch.no_grad():
                memory = l.store(g, n)
            g = (g + .3 * torch.randn_like(g)).requires_grad_()
            d = torch.autograd.grad(l.energy(g, memory, more).sum(), g)[0]
            f = l.force(g, memory, more)
            worst = max(worst, ((d + f).norm() / d.norm()).item())
            with torch.no_grad():
                x = l(x, n, more)
                for t in range(20):                                   # small steps: E falls at every one
                    if t == 0:
                        z = x
                        memory = l.store(norm(z), n)
                    e0 = l.energy(norm(z), memory, more).sum()
                    z = z + .01 * l.force(norm(z), memory, more)
                    assert l.energy(norm(z), memory, more).sum() < e0, kind
        assert worst < 1e-12, (kind, worst)
        a = m(X, y, n, codes)
        X2 = X.clone()
        X2[:, -1] += 1
        assert (m(X2, y, n, codes)[:, :-1] - a[:, :-1]).abs().max() < 1e-6
        x = m.enc(X, y, n, codes)                                     # what is not read after the last rows may be left out
        for l in m.ls:
            x = l(x, n, more)
        assert (m.o2(F.gelu(m.o1(m.ln(x[:, n:, -1]))))[..., 0] - a).abs().max() < 1e-6
        print(f'{kind}: {size:,} parameters, queries do not see queries') if kind == 'transformer' else print(f'{kind}: force equals -dE/dg to {worst:.1e}; energies fall; {sum(p.numel() for p in m.parameters()):,} parameters (transformer {size:,})')


if __name__ == '__main__':
    test()
