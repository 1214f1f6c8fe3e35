"""Pretraining in legs. Several models train in one process on the same tables, so that they are compared at equal tables
and the generator is paid for once.

  train.py --models transformer,alt --seconds 500 --schedule hold --out LEG1                 first leg
  train.py --models transformer,alt --seconds 400 --schedule decay --from LEG1 --out LEG2    goes on with its state

A model is a kind of model.py, with +muon (or +muon0.2, the size of its steps) behind it for the optimizer. LEG/log.json has losses, validation and times,
LEG/MODEL.pt the state (weights, moments), LEG/MODEL.safetensors the weights in float16, written at every tenth of the leg (_ for + in file names: a
lent machine returns no others, and of each file at most 16 MiB). Without the .pt a leg goes on from the weights alone (LEG/KIND.safetensors).
"""
import argparse
import json
import math
import os
import time
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from model import Model
from prior import Prior


def auroc_ap(s, y):
    """By table: areas under the ROC curve and of average precision, scores s [B, Q] without ties."""
    t = y.gather(1, s.argsort(1, descending=True))
    P, c = t.sum(1), t.cumsum(1)
    rank = torch.arange(1, t.shape[1] + 1, device=y.device)
    return (c * (1 - t)).sum(1) / (P * (t.shape[1] - P)), (c / rank * t).sum(1) / P


def logistic(X, y, n, lam=3.):
    """Ridge logistic regression by Newton's method, a batch of tables at once: scores of the queries."""
    A = torch.cat([X, torch.ones_like(X[:, :, :1])], 2).double()
    a, t = A[:, :n], y[:, :n].double()
    w = torch.zeros(A.shape[0], A.shape[2], dtype=torch.double, device=X.device)
    I = torch.eye(A.shape[2], device=X.device, dtype=torch.double) * lam
    for _ in range(12):
        p = torch.sigmoid((a @ w[:, :, None])[..., 0])
        g = (a * (p - t)[:, :, None]).sum(1) + w * lam
        w = w - torch.linalg.solve((a * (p * (1 - p) + 1e-4)[:, :, None]).transpose(1, 2) @ a + I, g)
    return (A[:, n:] @ w[:, :, None])[..., 0].float()


def file(name):
    return name.replace('+', '_')


def odds(p, n):
    return math.log(p / (n - p))


class Optimizer:
    """AdamW, or Muon for the matrices of the layers and AdamW for the rest; gradients clipped at 1, steps with a gradient
    that is not finite skipped without waiting for the device."""

    def __init__(self, model, muon, device):                     # muon: the size of its steps by AdamW's, or 0
        named = [(k, p) for k, p in model.named_parameters()]
        mat = [p for k, p in named if muon and p.ndim == 2 and k.startswith('ls.')]
        ids = {id(p) for p in mat}
        self.params = [p for _, p in named]
        self.adam = torch.optim.AdamW([p for p in self.params if id(p) not in ids], lr=1e-3, betas=(.9, .98), weight_decay=.01,
                                      fused=device != 'cpu')
        shapes = {}
        for p in mat:
            shapes.setdefault(tuple(p.shape), []).append(p)
        self.groups = [(ps, torch.zeros(len(ps), *s, device=device)) for s, ps in shapes.items()]
        self.device, self.size = device, muon

    def step(self, lr):
        grads = [p.grad for p in self.params]
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        bad = (~torch.isfinite(norm)).float()
        for g in self.adam.param_groups:
            g['lr'] = lr
        if self.device != 'cpu':
            self.adam.grad_scale, self.adam.found_inf = norm.clamp(min=1), bad
            self.adam.step()
        elif not bad:
            torch._foreach_div_(grads, norm.clamp(min=1))
            self.adam.step()
        for ps, m in self.groups:                                   # Keller Jordan's Muon, stacks of equal matrices at once
            g = torch.nan_to_num(torch.stack([p.grad for p in ps])) * (1 - bad)
            m.lerp_(g, .05)
            u = (g.lerp(m, .95)).bfloat16()
            flip = u.shape[1] > u.shape[2]
            u = u.transpose(1, 2) if flip else u
            u = u / (u.norm(dim=(1, 2), keepdim=True) + 1e-7)
            for _ in range(5):
                A = u @ u.transpose(1, 2)
                u = 3.4445 * u + (-4.7750 * A + 2.0315 * A @ A) @ u
            u = (u.transpose(1, 2) if flip else u).float()
            s = self.size * max(u.shape[1:]) ** .5 * lr
            for p, v in zip(ps, u):
                p.data.mul_(1 - .01 * lr).sub_(v, alpha=s)
        for p in self.params:
            p.grad = None
        return norm

    def state(self):
        return dict(adam=self.adam.state_dict(), muon=[m for _, m in self.groups])

    def load(self, s):
        self.adam.load_state_dict(s['adam'])
        for (_, m), v in zip(self.groups, s['muon']):
            m.copy_(v)


def validation(device, batches, seed=20261118, shapes=((5, 200), (11, 200), (22, 200), (11, 1000))):
    """Held-out tables of 20 anomalies among 200 or 1,000 labelled rows, 200 queries: 16 tables a batch of 5, 11 and 22 tokens."""
    prior, out = Prior(seed, device), []
    g = torch.Generator(device).manual_seed(seed)
    for T, n in shapes:
        for _ in range(batches):
            X, y = prior.tables(16, T, n, 20)
            out.append((X, y, n, torch.randn(16, 1, T, 16, device=device, generator=g)))
    return out


def trained(f):
    """f, compiled where gradients are wanted (not of a last block, which is small); as it is should compiling fail."""
    fast = [torch.compile(f, dynamic=True)]

    def run(x, n, more, last=False, *a):
        if last or not torch.is_grad_enabled() or not fast or x.shape[2] == 1:
            return f(x, n, more, last, *a)
        try:
            return fast[0](x, n, more, last)
        except Exception as e:
            print('not compiled:', type(e), flush=True)
            fast.clear()
            return f(x, n, more, last)
    return run


@torch.no_grad()
def validate(model, val):
    """By table: log loss, AUROC, AP."""
    r = []
    for X, y, n, codes in val:
        s = model(X, y, n, codes)
        t = y[:, n:]
        l = F.binary_cross_entropy_with_logits(s + odds(40, 200), t, reduction='none').mean(1)
        r.append(torch.stack([l, *auroc_ap(s, t)]))
    return torch.cat(r, 1)


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--models', default='transformer,alt')
    a.add_argument('--seconds', type=float, default=60)
    a.add_argument('--schedule', default='cosine', choices=('cosine', 'hold', 'decay', 'wsd'), help='wsd: hold, then decay in the last quarter')
    a.add_argument('--from', dest='start')
    a.add_argument('--out', required=True)
    a.add_argument('--cells', type=int, default=300000)
    a.add_argument('--lr', type=float, default=1.2e-3)
    a.add_argument('--warm', type=int, default=200)
    a.add_argument('--seed', type=int, default=1)
    a.add_argument('--val', type=int, default=4, help='validation batches of each shape')
    a.add_argument('--compile', action='store_true')
    a.add_argument('--steps', type=int, default=10 ** 9)
    o = a.parse_args()
    dev = 'cuda' if torch.cuda.is_available() else 'cpu'
    torch.backends.cuda.matmul.allow_tf32 = True
    if dev == 'cuda':
        torch.backends.cuda.enable_cudnn_sdp(False)               # plans anew for every shape
    os.makedirs(o.out, exist_ok=True)
    val = validation(dev, o.val)
    few = 48 * o.val                                               # tables with 200 labels come first
    log = dict(options=vars(o), val={}, loss={}, ms={}, shapes=[])
    X = [auroc_ap(logistic(X[..., 0].flatten(2), y, n), y[:, n:]) for X, y, n, _ in val]
    log['logistic'] = [torch.cat([r[i] for r in X]).tolist() for i in (0, 1)]
    print('logistic %.4f %.4f; 1,000 labels: %.4f %.4f' % tuple(sum(v) / len(v) for s in (slice(0, few), slice(few, None)) for v in (w[s] for w in log['logistic'])), flush=True)
    models, tables, steps0, anew = {}, 0, 0, not o.start
    for name in o.models.split(','):
        torch.manual_seed(1)
        kind, _, rule = name.partition('+')
        m = Model(kind).to(dev)
        opt = Optimizer(m, float(rule[4:] or .4) if rule else 0, dev)
        if o.start:
            if os.path.exists(f'{o.start}/{file(name)}.pt'):
                s = torch.load(f'{o.start}/{file(name)}.pt', map_location=dev, weights_only=False)
                opt.load(s['opt'])
            else:                                                  # weights alone: moments begin anew, so warm up for longer
                with safe_open(f'{o.start}/{kind}.safetensors', 'pt') as f:
                    s = dict(model={k: f.get_tensor(k).float() for k in f.keys()}, **{k: int(v) for k, v in f.metadata().items()})
                anew = True
            m.load_state_dict(s['model'])
            tables, steps0 = s['tables'], s['steps']
        if o.compile:
            import torch._dynamo as dyn
            dyn.config.cache_size_limit = dyn.config.accumulated_cache_size_limit = 256
            for l in m.ls:
                l.forward = trained(l.forward)
        models[name] = dict(m=m, opt=opt, loss=[], val=[], ms=[0., 0])
    prior = Prior(o.seed + 1000 * steps0, dev)
    torch.manual_seed(o.seed + steps0)
    mark = (lambda: None) if dev == 'cpu' else torch.cuda.synchronize
    t0, step, nextv, gen_ms, stock = time.time(), 0, .1, [0., 0], []

    def check(frac):
        for name, r in models.items():
            v = validate(r['m'], val)
            a, b = v[:, :few].mean(1).tolist(), v[:, few:].mean(1).tolist()
            r['val'].append(dict(frac=frac, tables=tables, mean=a, labels1000=b))
            r['last'] = v
            print(f'[{time.time() - t0:5.0f}] {name:20s} step {step} tables {tables} loss {torch.stack(r["loss"][-200:] or [torch.zeros(())]).mean().item():.4f} val log loss %.4f AUROC %.4f AP %.4f; 1,000 labels: %.4f %.4f %.4f' % (*a, *b), flush=True)

    def save():
        for name, r in models.items():
            torch.save(dict(model=r['m'].state_dict(), opt=r['opt'].state(), tables=tables, steps=steps0 + step), f'{o.out}/{file(name)}.pt')
            save_file({k: v.half().contiguous() for k, v in r['m'].state_dict().items()}, f'{o.out}/{file(name)}.safetensors',
                      metadata=dict(tables=str(tables), steps=str(steps0 + step)))

    if o.start:
        check(0.)
    while step < o.steps:
        frac = (time.time() - t0) / o.seconds
        if frac >= 1:
            break
        warm = min(1, (step + 1) / (o.warm if anew else 50))
        lr = o.lr * warm * {'cosine': .5 + .5 * math.cos(math.pi * frac), 'hold': 1., 'decay': 1 - frac, 'wsd': min(1., 4 * (1 - frac))}[o.schedule]
        timed = step % 25 >= 22
        if timed:
            mark(); t1 = time.time()
        while len(stock) < 10:                                     # tables of one shape for three steps at once: fewer launches
            T, n, p = prior.shape()
            B = int(max(2, min(128, o.cells / ((n + 200) * (T + 1)), 65000 / (n + 200))))
            stock += [(n, *t) for t in zip(*(t.split(B) for t in prior.tables(3 * B, T, n, p)))]
        n, X, y = stock.pop(int(prior.rng.integers(len(stock))))
        B, T = X.shape[0], X.shape[2]
        if timed:
            mark(); gen_ms[0] += 1e3 * (time.time() - t1); gen_ms[1] += 1
        codes = torch.randn(B, 1, T, 16, device=dev)
        for r in models.values():
            if timed:
                mark(); t1 = time.time()
            s = r['m'](X, y, n, codes)
            loss = F.binary_cross_entropy_with_logits(s + odds(40, 200), y[:, n:])
            loss.backward()
            r['opt'].step(lr)
            r['loss'].append(loss.detach())
            if timed:
                mark(); r['ms'][0] += 1e3 * (time.time() - t1); r['ms'][1] += 1
        step += 1
        tables += B
        log['shapes'].append((B, T, n))
        if frac > nextv or step in (20, 100):
            check(frac)
            save()
            while nextv < frac:
                nextv += .1
    mark()
    log.update(seconds=time.time() - t0, steps=step, tables=tables, steps_before=steps0)
    save()
    check(1.)
    log['ms']['prior'] = gen_ms[0] / max(1, gen_ms[1])
    first = next(iter(models.values()))
    for name, r in models.items():
        log['ms'][name] = r['ms'][0] / max(1, r['ms'][1])
        log['loss'][name] = [round(v, 4) for v in torch.stack(r['loss']).tolist()]
        log['val'][name] = r['val']
        v, d = r['last'], r['last'] - first['last']
        for labels, s in ((200, slice(0, few)), (1000, slice(few, None))):
            a, b, e = v[:, s].mean(1).tolist(), d[:, s].mean(1).tolist(), (d[:, s].std(1) / d[:, s].shape[1] ** .5).tolist()
            log.setdefault('final', {}).setdefault(name, {})[labels] = dict(mean=a, difference=b, error=e, tables=v[:, s].tolist())
            print(f'{name:20s} {labels:4d} labels {log["ms"][name]:6.1f} ms  log loss, AUROC, AP %.4f %.4f %.4f' % tuple(a), '  minus first %+.4f %+.4f %+.4f' % tuple(b),
                  ' errors %.4f %.4f %.4f' % tuple(e), flush=True)
        if name.split('+')[0] != 'transformer':                    # energies by step: share of rows whose energy falls
            with torch.no_grad():
                tr = []
                r['m'](*val[o.val], trace=tr)
            fall = [[(e[t + 1] < e[t]).float().mean().item() for t in range(len(e) - 1)] for e in tr]
            log['final'][name].update(fall=fall, energy=[e.double().mean((1, 2)).tolist() for e in tr], alpha=[l.alpha.exp().tolist() for l in r['m'].ls])
            print('   share of rows whose energy falls, by block', [[round(v, 3) for v in f] for f in fall], 'steps', [round(l.alpha.exp()[0].item(), 2) for l in r['m'].ls], flush=True)
    print(f'prior {log["ms"]["prior"]:.1f} ms; {step} steps, {tables} tables, {log["seconds"]:.0f} s', torch.cuda.max_memory_allocated() / 2 ** 30 if dev == 'cuda' else '')
    json.dump(log, open(f'{o.out}/log.json', 'w'))


if __name__ == '__main__':
    main()
