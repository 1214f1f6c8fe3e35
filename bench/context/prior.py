"""Synthetic tables for the in-context detector: a generator from a seed.

Prior(seed, device).tables(...) draws a batch of tables of one shape. A table is a sample of the nodes of a random
graph: columns are noisy observations of the units of a random structural model, their means over the neighbours and
over two hops, and the log degree. Labels depend on own units, on the neighbours, or were there first and moved the
units (shifts, campaigns of near copies, broken relations, outliers). Everything runs on the device; the same seed gives
the same tables on the same kind of device.
"""
import math
import numpy as np
import torch
import torch.nn.functional as F

KINDS = ('unit', 'sum', 'rules', 'prototypes', 'smooth', 'shift', 'campaigns', 'broken')   # where labels come from
WEIGHTS = (.08, .20, .14, .14, .12, .10, .12, .10)


def standard(x):
    return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-4)


def columns(x, index):
    """Columns index [B, F] of x [B, M, .]."""
    return x.gather(2, index[:, None, :].expand(-1, x.shape[1], -1))


def scores(X):
    """[B, R, C] values -> normal scores of average ranks, and the share of rows with an equal value (ties)."""
    Y = X.transpose(1, 2).contiguous()
    S = Y.sort(2).values
    lo, hi = torch.searchsorted(S, Y), torch.searchsorted(S, Y, right=True)
    R = X.shape[1]
    z = torch.special.ndtri(((lo + hi) / (2 * R)).clamp(1e-3, 1 - 1e-3))
    return z.clamp(-3.1, 3.1).transpose(1, 2), ((hi - lo).float() / R).transpose(1, 2)


class Prior:
    def __init__(self, seed, device='cpu', nodes=1500):
        self.dev, self.M = device, nodes
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
        """Columns, labelled rows and anomalies among them of the next batch."""
        C = int(round(math.exp(self.rng.uniform(math.log(6), math.log(90)))))
        n = int(round(math.exp(self.rng.uniform(math.log(100), math.log(700)))))
        if self.rng.random() < .05:
            n = 1000
        return C, n, int(min(self.rng.integers(5, 51), n // 4))

    @torch.no_grad()
    def tables(self, B, C, n, p, nq=200, pq=40, kind=None):
        """X [B, n + nq, C, 2] (normal score, share of ties) and y [B, n + nq]: first n rows labelled, p anomalies among
        them (a few labels may be wrong), then nq queries with pq anomalies. kind: one of KINDS for all tables."""
        M, dz, H = self.M, 12, 32
        u, N, coin = self.u, self.n, self.coin
        npt = p + pq
        rate = torch.exp(u(math.log(.01), math.log(.25), B)).clamp(min=(npt + 2) / M)
        count = (rate * M).long()

        def top(s):
            return (s.argsort(1, descending=True).argsort(1) < count[:, None]).float()

        # what kind of labels
        if kind is None:
            k = torch.multinomial(torch.tensor(WEIGHTS, device=self.dev).expand(B, -1), 1, generator=self.gen)[:, 0]
        else:
            k = torch.full((B,), KINDS.index(kind), device=self.dev)
        caused = (k < 5).float()                                # labels follow from the units
        chance = N(B, M)                                        # the other kinds: labels first
        y0 = top(chance)

        # latents: Gaussian or clusters, some dimensions off, some with heavy tails
        z = N(B, M, dz)
        group = torch.multinomial(torch.softmax(N(B, 10) * 1.5, 1), M, replacement=True, generator=self.gen)
        centre = N(B, 10, dz) * u(.5, 3, B, 1, 1)
        z = z + centre.gather(1, group[:, :, None].expand(-1, -1, dz)) * coin(.5, B, 1, 1)
        z = torch.where(coin(.1, B, 1, dz) > 0, torch.sign(z) * z.abs() ** 2.5, z) * coin(u(.3, 1, B, 1, 1), B, 1, dz)
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
        zg = standard(columns(units, self.pick(B, nu, 6))) * coin(.6, B, 1, 6)
        hom = u(-2.5, 2.5, B, 1, 1) * coin(.8, B, 1, 1) / (zg.var(1, keepdim=True).sum(2, keepdim=True) + 1e-3).sqrt()
        near = coin(.25, B, 1, 1)
        dist = u(.3, 2, B, 1, 1)
        wd = N(B, M, 1) * u(0, 1.5, B, 1, 1) + u(-1, 1, B, 1, 1) * own[:, :, None] * coin(.3, B, 1, 1)
        wd = wd - near * dist * zg.pow(2).sum(2, keepdim=True)
        hom = torch.where(near > 0, 2 * dist, hom)
        block = F.one_hot(group, 10).float()
        lab = ((y - rate[:, None]) / (1 - rate[:, None]))[:, :, None] * u(.3, 2, B, 1, 1)
        left = torch.cat([zg * hom, block * u(-2, 3, B, 1, 1) * coin(.25, B, 1, 1),
                          lab * torch.sign(u(-.5, 1, B, 1, 1)) * coin(.4, B, 1, 1), wd, torch.ones_like(wd)], 2)
        L = torch.bmm(left, torch.cat([zg, block, lab, torch.ones_like(wd), wd], 2).transpose(1, 2))
        L.clamp_(-12, 8).exp_()
        L.mul_(torch.exp(u(math.log(.7), math.log(60.), B, 1, 1)) / (M * L.mean((1, 2), keepdim=True)))
        A = (torch.rand(B, M, M, device=self.dev, generator=self.gen) < L).triu_(1)
        A = torch.logical_or(A, A.transpose(1, 2)).float()
        del L
        degree = A.sum(2, keepdim=True)
        scale = 1 / degree.clamp(min=1)

        # neighbours may act on the node's later units and on its label
        h0 = torch.cat([h2, z], 2)
        h3 = self.layer(h0, H, extra=torch.bmm(A, h0) * scale * u(0, 2, B, 1, 1) * coin(.4, B, 1, 1))
        units = torch.cat([units, h3], 2)
        nu += H
        vi = self.pick(B, nu, 3)
        t = columns(units, vi)
        pt = torch.bmm(A, t) * scale
        T = torch.stack([pt[:, :, 0], -(t[:, :, 1] - pt[:, :, 1]).abs(), (t[:, :, 1] - pt[:, :, 1]).abs(), t[:, :, 2] * pt[:, :, 2],
                         torch.log1p(degree)[:, :, 0]], 2)
        nb = standard((standard(T) * torch.softmax(N(B, 1, 5) * 2, 2) * torch.sign(N(B, 1, 5))).sum(2, keepdim=True))[:, :, 0]
        wn = u(0, 1.5, B, 1) * coin(.4, B, 1) * caused[:, None]
        y = top((own + wn * nb) / (1 + wn * wn).sqrt() + noise)

        # observed columns: units near the label preferred, repeated or irrelevant ones, noise, shifts, marginals
        lo = max(2, (C + 1) // 3)
        Fo = int(self.rng.integers(lo, max(lo + 1, min(C, 60) + 1))) if self.rng.random() < .4 else lo
        bonus = torch.zeros(B, nu, device=self.dev).scatter_(1, ui[:, :4], 1.).scatter_add_(1, ui[:, 4:], torch.full((B, 8), .4, device=self.dev))
        bonus = bonus.scatter_add_(1, vi, wn.expand(-1, 3) * .7)
        ci = (self.u(0, 1, B, nu) + bonus * u(0, 1.2, B, 1)).argsort(1, descending=True)[:, :Fo]
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
        q, th = 2 ** (self.ints(4, B, 1, Fo) - 1).float(), N(B, 1, Fo) * .7
        x = torch.where(f == 1, torch.exp(x.clamp(max=5)), x)
        x = torch.where((f == 2) | (f == 7), torch.floor(x * q) / q, x)
        x = torch.where(f == 7, torch.sin(37 * (x + th)), x)                         # categories in no order
        x = torch.where(f == 3, (x > th).float(), x)
        x = torch.where(f == 4, F.relu(x - th), x)
        x = torch.where((f == 5) & (coin(.3, B, M, Fo) > 0), torch.zeros_like(x), x)
        x = torch.where(f == 6, torch.sign(x) * x.abs() ** 2, x)
        m1 = torch.bmm(A, x) * scale
        m2 = torch.bmm(A, m1) * scale
        X = torch.cat([x, m1, m2, torch.log1p(degree)], 2)
        if self.rng.random() < .15:                                                  # rotated tables, as after a PCA
            X = standard(X)
            X = torch.bmm(X, N(B, X.shape[2], X.shape[2]) / X.shape[2] ** .5)

        # rows: labelled ones, then queries
        r = self.u(0, 1, B, M)
        pi = (y * 2 + r).argsort(1, descending=True)[:, :npt]
        ni = ((1 - y) * 2 + r).argsort(1, descending=True)[:, :n + nq - npt]
        rows = torch.cat([pi[:, :p], ni[:, :n - p], pi[:, p:], ni[:, n - p:]], 1)
        X = columns(X, self.pick(B, X.shape[2], C))
        X = X.gather(1, rows[:, :, None].expand(-1, -1, X.shape[2]))
        y = y.gather(1, rows)
        drift = X.std(1, keepdim=True) * N(B, 1, X.shape[2]) * u(0, .5, B, 1, 1)
        X[:, n:] += drift * coin(.15, B, 1, 1) * coin(.5, B, 1, X.shape[2])
        wrong = coin(u(0, .1, B, 1) * coin(.15, B, 1), B, n)                         # wrong labels in the context
        y[:, :n] = torch.where(wrong > 0, coin(p / n, B, n), y[:, :n])
        return torch.stack(scores(torch.nan_to_num(X)), 3), y
