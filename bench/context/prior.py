"""Synthetic tables for the in-context detector: a generator from a seed.

Prior(seed, device).tables(...) draws a batch of tables of one shape. A table is a sample of the nodes of a random
graph: columns are noisy observations of the units of a random structural model, their means over the neighbours and
over two hops, and the log degree. Labels depend on own units, on the neighbours, or were there first and moved the
units (shifts, campaigns of near copies, broken relations, classes), were injected (dense groups, added edges, attributes of
far nodes), or are counted by the neighbours. Everything runs on the device; the same seed gives the same tables on the same kind of device.

A token has three columns: a node's own value with its means over neighbours and over two hops, or three unrelated
columns where a table has no graph (plain). An entry of a column is its normal score, its share of ties, and 0 for a gap or a
column that is not there, 1 for a column of a group, -1 for one of three unrelated columns. The last token of some tables
with a graph are the labels of other nodes that the context knows, never the node's own: their mean over the labelled
neighbours, their mean over the labelled ends of two steps (both with mark 1, and gaps where there is none), and the log count of
labelled neighbours (mark -1).
"""
import math
import numpy as np
import torch
import torch.nn.functional as F

KINDS = ('unit', 'sum', 'rules', 'prototypes', 'smooth', 'shift', 'campaigns', 'broken', 'injected', 'classes', 'counts')   # where labels come from
WEIGHTS = (.05, .15, .12, .10, .10, .08, .09, .07, .11, .08, .05)


def standard(x):
    return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-4)


def columns(x, index):
    """Columns index [B, F] of x [B, M, .]."""
    return x.gather(2, index[:, None, :].expand(-1, x.shape[1], -1))


def scores(X):
    """[B, R, C] values -> normal scores of average ranks, and the share of rows with an equal value (ties), both among
    the rows with a value (gaps are inf)."""
    Y = X.transpose(1, 2).contiguous()
    S = Y.sort(2).values
    lo, hi = torch.searchsorted(S, Y), torch.searchsorted(S, Y, right=True)
    R = torch.isfinite(Y).sum(2, keepdim=True).clamp(min=1)
    z = torch.special.ndtri(((lo + hi) / (2 * R)).clamp(1e-3, 1 - 1e-3))
    return z.clamp(-3.1, 3.1).transpose(1, 2), ((hi - lo).float() / R).transpose(1, 2)


def neighbours(A, degree, rows, y):
    """Labels y of the context's rows [B, n] as three columns of all nodes (inf for gaps). Sums are whole numbers below 2,048,
    exact in any precision, so that what is taken away leaves no trace of a node's own label."""
    told = torch.stack([y, torch.ones_like(y)], 2)
    told = torch.zeros(*A.shape[:2], 2, device=A.device).scatter(1, rows[:, :, None].expand(-1, -1, 2), told)
    one = torch.bmm(A, told)
    two = torch.bmm(A, one) - degree * told                        # without the way back to the node itself
    mean = [torch.where(c[:, :, 1] > 0, c[:, :, 0] / c[:, :, 1].clamp(min=1), torch.inf) for c in (one, two)]
    return torch.stack([*mean, torch.log1p(one[:, :, 1])], 2)


class Prior:
    def __init__(self, seed, device='cpu'):
        self.dev = device
        self.gen = torch.Generator(device).manual_seed(seed)
        self.rng = np.random.default_rng(seed)

    # random numbers
    def u(self, lo, hi, *s):
        return torch.rand(*s, device=self.dev, generator=self.gen) * (hi - lo) + lo

    def n(self, *s):
        return torch.randn(*s, device=self.dev, generator=self.gen)

    def coin(self, p, *s):
        return (torch.rand(*s, device=self.dev, generator=self.gen) < p).float()

    def ints(self, k, *s):
        return torch.randint(0, k, s, device=self.dev, generator=self.gen)

    def pick(self, B, n, k):
        return torch.rand(B, n, device=self.dev, generator=self.gen).argsort(1)[:, :k]

    def activation(self, x, t):
        r = x
        for i, f in enumerate((torch.tanh, F.relu, lambda v: torch.sin(2 * v), torch.abs, lambda v: (v > 0).float(),
                               lambda v: (v * v).clamp(max=9)), 1):
            r = torch.where(t == i, f(x), r)
        return r

    def layer(self, h, H, extra=None):
        """H units that are random sparse functions of h (and of extra, with the same weights), with noise."""
        B, M, k = h.shape
        W = self.n(B, k, H) * self.coin(self.u(.1, .8, B, 1, 1), B, k, H)
        W = W / (W.pow(2).sum(1, keepdim=True).sqrt() + 1e-3)
        pre = torch.bmm(h if extra is None else h + extra, W) * self.u(.5, 2.5, B, 1, 1) + self.n(B, 1, H) * .5
        return standard(self.activation(pre, self.ints(7, B, 1, H)) + self.n(B, M, H) * self.u(0, .5, B, 1, 1) * self.coin(.7, B, 1, 1))

    def shape(self):
        """Tokens, labelled rows and anomalies among them of the next batch."""
        T = int(round(math.exp(self.rng.uniform(math.log(3), math.log(44)))))
        n = int(round(math.exp(self.rng.uniform(math.log(100), math.log(800)))))
        if self.rng.random() < .12:
            n = 1000
        return T, n, int(min(self.rng.integers(5, 51), n // 4))

    @torch.no_grad()
    def tables(self, B, T, n, p, nq=200, pq=40, kind=None, plain=None, labels=None):
        """X [B, n + nq, T, 3, 3] (normal score, share of ties, sort of entry) and y [B, n + nq]: first n rows labelled, p
        anomalies among them (a few labels may be wrong), then nq queries with pq anomalies. kind: one of KINDS for all
        tables; plain: whether tokens are three unrelated columns; labels: whether the last token tells neighbours' labels."""
        M, dz, H = max(1000, n + nq + 300), 12, 32
        u, N, coin = self.u, self.n, self.coin
        npt = p + pq
        if plain is None:
            plain = self.rng.random() < .25
        if labels is None:
            labels = not plain and self.rng.random() < .6
        T -= labels
        rate = torch.exp(u(math.log(.01), math.log(.25), B)).clamp(min=(npt + 2) / M)
        count = (rate * M).long()

        def order(s):
            return s.argsort(1, descending=True).argsort(1)

        def top(s):
            return (order(s) < count[:, None]).float()

        # what kind of labels (drawn on the host, which must know which tables to treat on their own)
        drawn = self.rng.choice(len(KINDS), B, p=WEIGHTS) if kind is None else np.full(B, KINDS.index(kind))
        injected, counted = (torch.tensor(np.flatnonzero(drawn == KINDS.index(v))) for v in ('injected', 'counts'))
        k = torch.tensor(drawn).to(self.dev, non_blocking=True)
        J, C = len(injected), len(counted)
        injected, counted = (v.to(self.dev, non_blocking=True) for v in (injected, counted))
        classes, counts = ((k == KINDS.index(v)).float()[:, None, None] for v in ('classes', 'counts'))
        caused = (k < 5).float()                                # labels follow from the units
        chance = N(B, M)                                        # the other kinds: labels first
        y0 = top(chance)

        # latents: Gaussian or clusters, some dimensions off, some with heavy tails; classes: anomalies are one of ten clusters that
        # differ a little in all dimensions, so that sums over many columns tell them
        z = N(B, M, dz)
        group = torch.multinomial(torch.softmax(N(B, 10) * 1.5, 1), M, replacement=True, generator=self.gen)
        group = torch.where(classes[:, 0] > 0, torch.where(y0 > 0, 0, 1 + group % 9), group)
        centre = N(B, 10, dz) * torch.where(classes > 0, u(.15, .9, B, 1, 1), u(.5, 3, B, 1, 1))
        z = z + centre.gather(1, group[:, :, None].expand(-1, -1, dz)) * torch.maximum(coin(.5, B, 1, 1), classes)
        z = torch.where(coin(.1, B, 1, dz) > 0, torch.sign(z) * z.abs() ** 2.5, z) * torch.maximum(coin(u(.3, 1, B, 1, 1), B, 1, dz), classes)
        z = standard(z)
        # campaigns: anomalies are near copies of few examples in some dimensions; broken: dimensions of other nodes, or too wide
        some = coin(u(.3, 1, B, 1, 1), B, 1, dz) * y0[:, :, None]
        copies = z[:, :8].gather(1, (self.ints(8, B, M) % (1 + self.ints(8, B, 1)))[:, :, None].expand(-1, -1, dz)) * u(1, 1.5, B, 1, 1)
        copies = copies + N(B, M, dz) * u(.05, .8, B, 1, 1)
        z = torch.where(some * (k == 6).float()[:, None, None] > 0, copies, z)
        other = torch.where(coin(.5, B, 1, 1) > 0, z.roll(M // 3, 1), z * u(1.5, 3.5, B, 1, 1))
        z = torch.where(some * (k == 7).float()[:, None, None] > 0, other, z)

        h1 = self.layer(z, H)
        h2 = self.layer(h1, H)
        units = torch.cat([z, h1, h2], 2)
        nu = units.shape[2]

        # label score of the node itself
        ui = self.pick(B, nu, 12)
        v = columns(units, ui)
        w = N(B, 1, 12) * coin(u(.1, 1, B, 1, 1), B, 1, 12)
        s_sum = standard((v * w).sum(2, keepdim=True))
        s_sum = torch.where(coin(.5, B, 1, 1) > 0, s_sum, self.activation(s_sum, self.ints(7, B, 1, 1)))
        r = v.view(B, M, 4, 3)
        ind = torch.sigmoid(8 * torch.sign(N(B, 1, 4, 3)) * (r - N(B, 1, 4, 3) * .8))
        ind = torch.where(coin(.3, B, 1, 4, 3) > 0, torch.ones_like(ind), ind)
        s_rule = (ind.prod(3) * u(.2, 1, B, 1, 4) * coin(.6, B, 1, 4)).sum(2, keepdim=True)
        m = coin(u(.2, .9, B, 1, 1, 1), B, 1, 1, 12)
        s_near = -((v[:, :, None] - v[:, None, :4]).pow(2) * m).sum(3).min(2, keepdim=True).values.sqrt()
        wave = torch.bmm(v[:, :, :6], N(B, 6, 8) * u(.3, 1.2, B, 1, 1) * coin(.7, B, 6, 1)) + u(0, 6.3, B, 1, 8)
        s_smooth = (torch.cos(wave) * N(B, 1, 8)).sum(2, keepdim=True)
        S = standard(torch.cat([v[:, :, :1], s_sum, s_rule, s_near, s_smooth, chance[:, :, None]], 2))
        one = F.one_hot(k.clamp(max=5), 6).float()
        mix = torch.softmax(N(B, 6) * 1.5 + torch.tensor([0., 0, 0, 0, 0, -99], device=self.dev), 1)
        mix = torch.where((coin(.3, B, 1) * caused[:, None]) > 0, mix, one)
        own = standard((S * mix[:, None]).sum(2, keepdim=True))[:, :, 0]
        noise = N(B, M) * u(0, .5, B, 1) * coin(.7, B, 1) * caused[:, None]
        y = top(own + noise)

        # graph: A_ij ~ Bernoulli(c exp(f_i . f'_j)): similar latents (either sign, or by distance), blocks, labels, degrees
        gi = self.pick(B, nu, 6)
        zg = standard(columns(units, gi)) * coin(.6, B, 1, 6)
        hom = u(-2.5, 2.5, B, 1, 1) * coin(.8, B, 1, 1) / (zg.var(1, keepdim=True).sum(2, keepdim=True) + 1e-3).sqrt()
        hom = torch.where((k == 8)[:, None, None], hom.abs(), hom)                  # injected into graphs of similar neighbours
        near = coin(.25, B, 1, 1)
        dist = u(.3, 2, B, 1, 1)
        wd = N(B, M, 1) * u(0, 1.5, B, 1, 1) * (1 - .8 * counts) + u(-1, 1, B, 1, 1) * own[:, :, None] * coin(.3, B, 1, 1)
        wd = wd - near * dist * zg.pow(2).sum(2, keepdim=True)
        hom = torch.where(near > 0, 2 * dist, hom)
        block = F.one_hot(group, 10).float()
        lab = ((y - rate[:, None]) / (1 - rate[:, None]))[:, :, None] * u(.3, 2, B, 1, 1)
        left = torch.cat([zg * hom, block * torch.where(classes > 0, u(0, 4, B, 1, 1), u(-2, 3, B, 1, 1) * coin(.25, B, 1, 1)),
                          lab * torch.sign(u(-.5, 1, B, 1, 1)) * coin(.4, B, 1, 1), wd, torch.ones_like(wd)], 2)
        L = torch.bmm(left, torch.cat([zg, block, lab, torch.ones_like(wd), wd], 2).transpose(1, 2))
        L.clamp_(-12, 8).exp_()
        L.mul_(torch.exp(torch.where(counts > 0, u(math.log(3.), math.log(20.), B, 1, 1), u(math.log(.7), math.log(60.), B, 1, 1))) / (M * L.mean((1, 2), keepdim=True)))
        A = (torch.rand(B, M, M, device=self.dev, generator=self.gen) < L).triu_(1)
        A = torch.logical_or(A, A.transpose(1, 2))
        del L
        # injected: some anomalies form dense groups or get edges to anybody, the others get the columns of far nodes (below)
        if J:
            place = order(chance[injected])                                        # anomalies have the first places
            split = (torch.rand(J, 1, device=self.dev, generator=self.gen) * 2 - .5).clamp(0, 1) * count[injected, None]
            size = 4 + self.ints(18, J, 1)
            team = torch.where(place < split, place // size, -1 - torch.arange(M, device=self.dev))
            dense = torch.rand(J, M, M, device=self.dev, generator=self.gen) < u(.5, 1.5, J, 1, 1)
            groups = coin(.7, J, 1, 1)
            more = (team[:, :, None] == team[:, None, :]) & dense & (groups > 0)
            more |= dense & (torch.rand(J, M, M, device=self.dev, generator=self.gen) < size[:, :, None] / M) & (place < split)[:, :, None] & (groups == 0)
            more = more.triu(1) | more.tril(-1).transpose(1, 2)
            A[injected] |= more | more.transpose(1, 2)
            foreign = ((place >= split) & (place < count[injected, None]))[:, :, None]
        A = A.float()
        degree = A.sum(2, keepdim=True)
        scale = 1 / degree.clamp(min=1)

        # neighbours may act on the node's later units and on its label
        h0 = torch.cat([h2, z], 2)
        h3 = self.layer(h0, H, extra=torch.bmm(A, h0) * scale * u(0, 2, B, 1, 1) * coin(.4, B, 1, 1))
        units = torch.cat([units, h3], 2)
        nu += H
        vi = self.pick(B, nu, 6)
        t = columns(units, vi)
        pt = torch.bmm(A, t) * scale
        far = ((t - pt).pow(2) * coin(.7, B, 1, 6)).sum(2).sqrt()
        S = torch.stack([pt[:, :, 0], -(t[:, :, 1] - pt[:, :, 1]).abs(), (t[:, :, 1] - pt[:, :, 1]).abs(), t[:, :, 2] * pt[:, :, 2],
                         torch.log1p(degree)[:, :, 0], far], 2)
        nb = standard((standard(S) * torch.softmax(N(B, 1, 6) * 2, 2) * torch.sign(N(B, 1, 6))).sum(2, keepdim=True))[:, :, 0]
        wn = u(0, 1.5, B, 1) * coin(.5, B, 1) * caused[:, None]
        y = top((own + wn * nb) / (1 + wn * wn).sqrt() + noise)

        # observed columns: units near the label preferred, repeated or irrelevant ones, noise, shifts, marginals
        alone = plain and self.rng.random() < .5                                    # no column of neighbours
        rotated = self.rng.random() < .3                                            # as after a PCA
        use = min(100, 3 * T) if alone else T
        Fo = max(use, 40) if rotated else use
        bonus = torch.zeros(B, nu, device=self.dev).scatter_(1, ui[:, :4], 1.).scatter_add_(1, ui[:, 4:], torch.full((B, 8), .4, device=self.dev))
        bonus = bonus.scatter_add_(1, vi, wn.expand(-1, 6) * .5)
        bonus = bonus.scatter_add_(1, gi, (k == 8).float()[:, None].expand(-1, 6))
        ci = (self.u(0, 1, B, nu) + bonus * u(.2, 1.5, B, 1)).argsort(1, descending=True)[:, :Fo]
        again = ci.gather(1, self.ints(ci.shape[1], B, ci.shape[1]))
        ci = torch.where(coin(.25, B, 1) > 0, again, ci)
        x = columns(units, ci)
        Fo = x.shape[2]
        x = torch.where(coin(u(0, .5, B, 1, 1) * coin(.7, B, 1, 1), B, 1, Fo) > 0, x.roll(M // 2, 1), x)
        x = x + N(B, M, Fo) * u(0, 1.2, B, 1, 1) * coin(.5, B, 1, 1) * u(0, 1, B, 1, Fo)
        moved = y[:, :, None] * torch.maximum((k == 5).float()[:, None, None], coin(.1, B, 1, 1))
        way = self.ints(3, B, M) * self.ints(2, B, 1)
        shift = N(B, 3, Fo) * u(.3, 2.5, B, 1, 1) * coin(u(.1, .9, B, 1, 1), B, 3, Fo)
        x = x + moved * shift.gather(1, way[:, :, None].expand(-1, -1, Fo))
        x = x * (1 + moved * coin(.2, B, 1, Fo) * u(0, 3, B, 1, 1))
        f = self.ints(13, B, 1, Fo)
        f = torch.where(coin(.15, B, 1, 1) > 0, (f % 2) + 2 + 5 * (f == 12), f)      # all columns discrete: steps, two values, few categories
        q, th = 2 ** (self.ints(4, B, 1, Fo) - 1).float(), N(B, 1, Fo) * .7
        x = torch.where(f == 1, torch.exp(x.clamp(max=5)), x)
        x = torch.where((f == 2) | (f == 7), torch.floor(x * q) / q, x)
        x = torch.where(f == 7, torch.sin(37 * (x + th)), x)                         # categories in no order
        x = torch.where(f == 3, (x > th).float(), x)
        x = torch.where(f == 4, F.relu(x - th), x)
        x = torch.where((f == 5) & (coin(.3, B, M, Fo) > 0), torch.zeros_like(x), x)
        x = torch.where(f == 6, torch.sign(x) * x.abs() ** 2, x)
        if J:
            z = x[injected]
            best, other = torch.zeros(J, M, 1, device=self.dev), z
            for j in self.rng.integers(1, M, int(self.rng.integers(1, 13))):         # the farthest of a few
                r = z.roll(int(j), 1)
                dist = (r - z).pow(2).sum(2, keepdim=True)
                other = torch.where(dist > best, r, other)
                best = torch.maximum(best, dist)
            x[injected] = torch.where(foreign, other, z)
        if C:                                                                        # nodes tell how many neighbours are anomalies
            c = torch.bmm(A[counted], y[counted, :, None]) + N(C, M, 1) * u(0, 1, C, 1, 1) * coin(.5, C, 1, 1)
            level, form = self.ints(6, C, 1, Fo), self.ints(3, C, 1, 1)
            silent = coin(u(0, .6, C, 1, 1), C, M, 1)
            c = torch.where(form == 0, (c.round() == level).float(), torch.where(form == 1, (c > level).float(), c)) * (1 - silent)
            c[:, :, :1] = torch.where(coin(.5, C, 1, 1) > 0, silent, c[:, :, :1])
            x[counted] = torch.where(coin(u(.3, 1, C, 1, 1), C, 1, Fo) > 0, c, x[counted])
        if rotated:
            x = torch.bmm(standard(x), N(B, x.shape[2], use) / x.shape[2] ** .5)
        x = torch.nan_to_num(x)
        # tokens of three columns: [B, M, tokens, 3]
        if alone:
            X = x
        else:
            m1 = torch.bmm(A, x) * scale
            m2 = torch.bmm(A, m1) * scale
            dg = torch.log1p(degree)
            if plain:
                X = torch.cat([x, m1, m2, dg], 2)
                X = columns(X, self.pick(B, X.shape[2], 3 * T))
            else:
                X = torch.stack([x, m1, m2], 3)
                degrees = self.rng.random() < .9                                     # log degree, in a token of its own
                if degrees:
                    X[:, :, -1] = torch.cat([dg, torch.zeros_like(dg), torch.zeros_like(dg)], 2)
        X = X.flatten(2)
        there = torch.ones(3 * T, device=self.dev)
        if X.shape[2] < 3 * T:
            there[X.shape[2]:] = 0.
            X = F.pad(X, (0, 3 * T - X.shape[2]))
        if plain:
            there[3 * T - int(self.rng.integers(3)):] = 0
        else:
            there[-2:] = float(not degrees)
            there[2::3] *= float(self.rng.random() < .95)                            # sometimes without two hops

        # rows: labelled ones, then queries
        r = self.u(0, 1, B, M)
        pi = (y * 2 + r).argsort(1, descending=True)[:, :npt]
        ni = ((1 - y) * 2 + r).argsort(1, descending=True)[:, :n + nq - npt]
        rows = torch.cat([pi[:, :p], ni[:, :n - p], pi[:, p:], ni[:, n - p:]], 1)
        X = X.gather(1, rows[:, :, None].expand(-1, -1, X.shape[2]))
        y = y.gather(1, rows)
        drift = X.std(1, keepdim=True) * N(B, 1, X.shape[2]) * u(0, .5, B, 1, 1)
        X[:, n:] += drift * coin(.15, B, 1, 1) * coin(.5, B, 1, X.shape[2])
        wrong = coin(u(0, .1, B, 1) * coin(.15, B, 1), B, n)                         # wrong labels in the context
        y[:, :n] = torch.where(wrong > 0, coin(p / n, B, n), y[:, :n])
        X = torch.nan_to_num(X)
        if labels:
            L = neighbours(A, degree, rows[:, :n], y[:, :n])
            X = torch.cat([X, L.gather(1, rows[:, :, None].expand(-1, -1, 3))], 2)
        z, ties = scores(X)
        # gaps, at random or where values are large
        gap = torch.where(coin(.5, B, 1, 3 * T) > 0, (z[:, :, :3 * T] > u(.3, 2, B, 1, 3 * T)).float(), coin(u(0, .5, B, 1, 1), B, n + nq, 3 * T))
        known = 1 - gap * coin(.3, B, 1, 3 * T) * coin(.12, B, 1, 1)
        known = known * there
        mark = known * (-1 if plain else 1)
        if labels:
            known = torch.cat([known, torch.isfinite(X[:, :, -3:]).float()], 2)
            mark = torch.cat([mark, known[:, :, -3:] * torch.tensor([1., 1, -1], device=self.dev)], 2)
        ties = torch.where(known > 0, ties, (1 - known).mean(1, keepdim=True))
        X = torch.stack([torch.where(known > 0, z, 0.), ties, mark], 3).unflatten(2, (-1, 3))
        return X, y


def test():
    """Neighbours' labels: no node sees its own, the same columns as evaluate.py makes; every kind gives finite tables."""
    import evaluate
    import scipy.sparse as sp
    g = torch.Generator().manual_seed(3)
    A = (torch.rand(1, 60, 60, generator=g) < .08).float().triu(1)
    A = A + A.transpose(1, 2)
    rows, y = torch.randperm(60, generator=g)[None, :30], (torch.rand(1, 30, generator=g) < .3).float()
    L = neighbours(A, A.sum(2, keepdim=True), rows, y)
    for i in range(30):
        other = y.clone()
        other[0, i] = 1 - y[0, i]
        M = neighbours(A, A.sum(2, keepdim=True), rows, other)
        assert torch.equal(M[0, rows[0, i]], L[0, rows[0, i]]) and not torch.equal(M, L)
    label, known = np.zeros(60), np.zeros(60)
    label[rows[0]], known[rows[0]] = y[0], 1
    z, s = evaluate.neighbours(sp.csr_matrix(A[0].numpy()), label, known)
    z1, s1 = (v[0].numpy() for v in scores(L))
    assert np.array_equal(np.isnan(z), np.isinf(L[0].numpy())) and np.nanmax(abs(z - z1)) < 1e-5 and np.nanmax(abs(s - s1)[~np.isnan(z)]) < 1e-6
    for kind in KINDS:
        for plain, labels in ((True, False), (False, False), (False, True)):
            X, y = Prior(1).tables(3, 5, 100, 10, kind=kind, plain=plain, labels=labels)
            assert X.shape == (3, 300, 5, 3, 3) and torch.isfinite(X).all() and (y[:, 100:].sum(1) == 40).all()
            assert set(X[..., 2].unique().tolist()) <= {-1., 0., 1.} and (X[..., 0][X[..., 2] == 0] == 0).all()
            assert ((X[..., 2] < 0).any() and (X[..., 2] > 0).any()).item() == labels
    print('prior: own labels never seen, columns as in evaluate.py,', len(KINDS), 'kinds of labels')


if __name__ == '__main__':
    test()
