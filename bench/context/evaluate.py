"""Real sets: what is prepared for the device, trees and logistic regression beside, and the table.

  evaluate.py prepare DATA SETS.npz             features, labels and draws of the public sets (DATA: the folder with anomaly/ and nodes/)
  evaluate.py trees SETS.npz TREES.json [labels|none] [PROCESSES]  (and TREES.npz, the bag's scores) XGBoost, forest, extra trees, their mixture, logistic regression, nearest neighbours
  evaluate.py score SETS.npz OUT.npz LEG MODELS [dev|table|all] [labels|none]    scores of the models (file names, by comma) of LEG/MODEL.safetensors
  evaluate.py kinds OUT.json LEG MODELS [TABLES]                   synthetic tables by kind of label: models, trees, logistic regression
  evaluate.py table SETS.npz TREES.json OUT.npz [TREES.npz] [MORE.json]    means, standard errors, differences; 'best' is the best of TREES and MORE

labels (the default): with columns of neighbours' labels, for trees and networks alike; none: without.
DEVELOPMENT sets were named before anything was scored; choices are made on these and on synthetic tables only.
"""
import json
import os
import sys
import time
import numpy as np

DEVELOPMENT = ('amazon_spammers', 'german_credit', 'inj_cora', 'cora')
TABLE = ('amazon_upu', 'tolokers', 'fdcompcn', 'minesweeper', 'inj_amazon', 'pubmed', 'citeseer', 'actor')
INJECTED = ('inj_cora', 'inj_amazon')                               # made by a recipe that the prior follows, too
KNOWN = INJECTED + ('cora', 'minesweeper', 'citeseer')              # sets whose earlier results led to changes of the prior
DRAWS, QUERIES, PASSES = 10, 4000, 4
MODELS = ('XGBoost', 'forest', 'extra trees', 'bag', 'logistic', 'neighbours')


def ranks(X):
    """Normal scores of average ranks over the rows with a value (gaps are inf), and shares of ties, as prior.scores."""
    from scipy.special import ndtri
    z, s = np.empty(X.shape, np.float32), np.empty(X.shape, np.float32)
    for j in range(X.shape[1]):
        S, R = np.sort(X[:, j]), max(1, np.isfinite(X[:, j]).sum())
        lo, hi = np.searchsorted(S, X[:, j]), np.searchsorted(S, X[:, j], side='right')
        z[:, j] = ndtri(np.clip((lo + hi) / (2 * R), 1e-3, 1 - 1e-3))
        s[:, j] = (hi - lo) / R
    return z.clip(-3.1, 3.1), s


def reduce(X, k):
    """k principal components of standardised columns."""
    X = X - X.mean(0)
    X = X / (X.std(0) + 1e-6)
    _, V = np.linalg.eigh(X.T.astype(np.float64) @ X)
    return (X @ V[:, ::-1][:, :k]).astype(np.float32)


def neighbours(A, y, known):
    """Labels of other nodes, known in the context: mean over labelled neighbours and over labelled ends of two steps
    (gaps where there is none), log count of labelled neighbours -> normal scores with nan for gaps, shares of ties."""
    L = np.stack([y * known, known], 1).astype(np.float64)
    one = A @ L
    two = A @ one - np.asarray(A.sum(1)) * L                        # without the way back: a node's own label is never seen
    mean = [np.where(c[:, 1] > 0, c[:, 0] / np.maximum(c[:, 1], 1), np.inf) for c in (one, two)]
    X = np.stack([*mean, np.log1p(one[:, 1])], 1)
    z, s = ranks(X)
    gap = np.isinf(X)
    return np.where(gap, np.nan, z), np.where(gap, gap.mean(0), s)


def prepare(data, out):
    import scipy.sparse as sp
    pack = {}
    for name in DEVELOPMENT + TABLE:
        for folder in ('anomaly', 'nodes'):
            if os.path.exists(f'{data}/{folder}/{name}.npz'):
                d = np.load(f'{data}/{folder}/{name}.npz')
        x, y, e = d['x'].astype(np.float32), d['y'].astype(np.int64), d['edges']
        keep = d['labelled'].astype(bool) if 'labelled' in d.files else y >= 0
        if len(np.unique(y[y >= 0])) > 2:                           # classes: the rarest against the others
            v, c = np.unique(y[y >= 0], return_counts=True)
            y = np.where(y >= 0, (y == v[c.argmin()]).astype(np.int64), -1)
        N = len(y)
        A = sp.coo_matrix((np.ones(len(e)), (e[:, 0], e[:, 1])), (N, N)).tocsr()
        A = ((A + A.T) > 0).astype(np.float32)
        A.setdiag(0)
        A.eliminate_zeros()
        deg = np.asarray(A.sum(1)).ravel()
        P = sp.diags(1 / np.maximum(deg, 1)) @ A
        if x.shape[1] > 100:                                        # words: principal components first
            x = reduce(x, 21)
        m1 = P @ x
        m2 = P @ m1
        X = np.concatenate([x, m1, m2, np.log1p(deg)[:, None]], 1).astype(np.float32)
        z, s = ranks(X)
        z, s, y, nodes = z[keep], s[keep], y[keep], np.flatnonzero(keep)
        pack[f'{name}.z'], pack[f'{name}.s'], pack[f'{name}.y'] = z.astype(np.float16), s.astype(np.float16), y.astype(np.uint8)
        r = np.random.default_rng(sum(map(ord, name)))
        for n in (200, 1000):
            if (y == 0).sum() < n - 20 + 200 or (y == 1).sum() < 40:
                continue
            tr, te = [], []
            for _ in range(DRAWS):
                p = r.permutation(np.flatnonzero(y == 1))
                q = r.permutation(np.flatnonzero(y == 0))
                rest = r.permutation(np.r_[p[20:], q[n - 20:]])[:QUERIES]
                tr.append(np.r_[p[:20], q[:n - 20]])
                te.append(rest)
            k = min(map(len, te))
            te = [t[:k] for t in te]
            pack[f'{name}.tr{n}'], pack[f'{name}.te{n}'], pack[f'{name}.labels{n}'] = np.array(tr, np.uint16), np.array(te, np.uint16), []
            for a, b in zip(tr, te):                                # columns of neighbours' labels: of a draw its own
                label, known = np.zeros(N), np.zeros(N)
                label[nodes[a]], known[nodes[a]] = y[a], 1
                q = [v[nodes] for v in neighbours(A, label, known)]
                pack[f'{name}.labels{n}'].append(np.stack(q, 2)[np.r_[a, b]].astype(np.float16))
        print(name, X.shape, f'{100 * y.mean():.1f} % of {len(y)}', [k for k in pack if k.startswith(name + '.')])
    np.savez_compressed(out, **pack)


def tokens(z, s):
    """[N, 3 F + 1] own values, means over neighbours and two hops, log degree -> [N, F + 1, 3, 3] as prior.py."""
    N, F = z.shape[0], (z.shape[1] - 1) // 3
    X = np.zeros((N, F + 1, 3, 3), np.float32)
    for c, v in enumerate((z, s, np.ones_like(z))):
        X[:, :F, :, c] = v[:, :3 * F].reshape(N, 3, F).transpose(0, 2, 1)
        X[:, F, 0, c] = v[:, 3 * F]
    X[:, F, 1:, 1] = 1                                              # share of ties of a column that is not there
    return X


def cell(labels):
    """[N, 3, 2] scores and ties of the columns of neighbours' labels -> their token [N, 1, 3, 3]; the count is marked -1."""
    z, s = labels.astype(np.float32)[:, None].transpose(3, 0, 1, 2)
    return np.stack([np.nan_to_num(z), s, ~np.isnan(z) * np.array([1, 1, -1], np.float32)], 3)


def jobs(pack, which='all'):
    for n in (200, 1000):
        for name in {'dev': DEVELOPMENT, 'table': TABLE, 'all': DEVELOPMENT + TABLE}[which]:
            if f'{name}.tr{n}' in pack:
                yield name, n


def quality(s, y):
    """AUROC and average precision in per cent; equal scores count as one threshold."""
    v, inv = np.unique(-s.astype(np.float64), return_inverse=True)
    p = np.bincount(inv, y, len(v))
    c = np.bincount(inv, minlength=len(v))
    tp, seen = p.cumsum(), c.cumsum()
    P, N = p.sum(), len(y) - p.sum()
    return [100 * float(((tp - p / 2) * (c - p)).sum() / (P * N)), 100 * float((tp / seen * p).sum() / P)]


def calibration(p, y, bins=10):
    """Expected calibration error, bins of equal width."""
    b = np.minimum((p * bins).astype(int), bins - 1)
    return float(sum(abs(p[b == i].sum() - y[b == i].sum()) for i in range(bins)) / len(y))


def fit(job):
    """Trees and others on one set: qualities by model, scores of the bag."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    import xgboost as xgb
    sets, name, n, labels = job
    pack = np.load(sets)
    X, y = pack[f'{name}.z'].astype(np.float32), pack[f'{name}.y']
    bag, rows = [], {m: [] for m in MODELS}
    for i, (tr, te) in enumerate(zip(pack[f'{name}.tr{n}'], pack[f'{name}.te{n}'])):
        a, b, c = X[tr], y[tr], X[te]
        if labels:
            more = pack[f'{name}.labels{n}'][i, :, :, 0].astype(np.float32)
            a, c = np.c_[a, more[:n]], np.c_[c, more[n:]]
        a0, c0 = np.nan_to_num(a), np.nan_to_num(c)                 # for models that know no gaps; the count tells them
        x = np.mean([xgb.XGBClassifier(n_estimators=k, max_depth=d, learning_rate=l, subsample=.8, colsample_bytree=.6, random_state=i, n_jobs=1).fit(a, b).predict_proba(c)[:, 1]
                     for k, d, l in ((150, 3, .08), (100, 5, .1), (300, 2, .05))], 0)
        f = RandomForestClassifier(300, min_samples_leaf=2, random_state=i, n_jobs=1).fit(a, b).predict_proba(c)[:, 1]
        e = ExtraTreesClassifier(300, min_samples_leaf=2, random_state=i, n_jobs=1).fit(a, b).predict_proba(c)[:, 1]
        l = np.mean([LogisticRegression(C=v, max_iter=500).fit(a0, b).predict_proba(c0)[:, 1] for v in (.03, .3)], 0)
        k = KNeighborsClassifier(10, weights='distance').fit(a0, b).predict_proba(c0)[:, 1]
        bag.append((x + f + e) / 3)
        for m, s in zip(MODELS, (x, f, e, (x + f + e) / 3, l, k)):
            rows[m].append(quality(s, y[te]) + [calibration(s, y[te])])
    return name, n, rows, np.array(bag)


def trees(sets, out, labels='labels', processes='1'):
    import multiprocessing
    res, bag, t0 = {}, {}, time.time()
    work = [(sets, name, n, labels == 'labels') for name, n in jobs(np.load(sets))]
    with multiprocessing.Pool(int(processes)) as pool:
        for name, n, rows, scores in pool.imap(fit, work):
            res[f'{name}|{n}'], bag[f'bag|{name}|{n}'] = rows, scores
            print(name, n, {m: np.round(np.mean(v, 0), 2).tolist() for m, v in rows.items()}, f'{time.time() - t0:.0f} s', flush=True)
            json.dump(res, open(out, 'w'))
            np.savez_compressed(out.replace('.json', '.npz'), **bag)


def score(sets, out, leg, kinds, which='all', labels='labels'):
    import torch
    from safetensors.torch import load_file
    from model import Model
    dev = 'cuda' if torch.cuda.is_available() else 'cpu'
    if dev == 'cuda':
        torch.backends.cuda.enable_cudnn_sdp(False)
    pack, res = np.load(sets), {}
    for kind in kinds.split(','):
        m = Model(kind.split('_')[0])
        m.load_state_dict({k: v.float() for k, v in load_file(f'{leg}/{kind}.safetensors').items()})
        m = m.to(dev).eval()
        t0 = time.time()
        for name, n in jobs(pack, which):
            X = torch.tensor(tokens(*(pack[f'{name}.{k}'].astype(np.float32) for k in 'zs'))).to(dev)
            y, q = torch.tensor(pack[f'{name}.y'].astype(np.float32), device=dev), []
            g = torch.Generator(dev).manual_seed(5)
            for i, (tr, te) in enumerate(zip(pack[f'{name}.tr{n}'].astype(np.int64), pack[f'{name}.te{n}'].astype(np.int64))):
                more = torch.tensor(cell(pack[f'{name}.labels{n}'][i])).to(dev) if labels == 'labels' else X[:n + len(te), :0]
                codes = torch.randn(PASSES, 1, X.shape[1] + more.shape[1], 16, device=dev, generator=g)   # of a pass its own
                s = []
                for j in range(0, len(te), 2000):
                    x = X[torch.tensor(np.r_[tr, te[j:j + 2000]], device=dev)]
                    x = torch.cat([x, torch.cat([more[:n], more[n + j:n + j + 2000]])], 1)
                    with torch.no_grad():
                        s.append(m(x[None].expand(PASSES, -1, -1, -1, -1), y[torch.tensor(tr, device=dev)][None].expand(PASSES, -1), n, codes))
                q.append(torch.cat(s, 1).mean(0).cpu().numpy())
            res[f'{kind}|{name}|{n}'] = np.array(q, np.float32)
            r = [quality(s, pack[f'{name}.y'][te]) for s, te in zip(q, pack[f'{name}.te{n}'])]
            print(f'{kind:14s} {name:16s} {n:5d} %.1f %.1f   {time.time() - t0:.0f} s' % tuple(np.mean(r, 0)), flush=True)
            np.savez_compressed(out, **res)


def kinds(out, leg, models, tables='12'):
    """Fresh synthetic tables (11 tokens, 20 + 180 labels, 200 queries) of each kind of label: AUROC and AP by table."""
    import torch
    from safetensors.torch import load_file
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    import xgboost as xgb
    from model import Model
    from prior import KINDS, Prior
    from train import auroc_ap, logistic
    nets, res = {}, {}
    for k in models.split(','):
        nets[k] = Model(k.split('_')[0])
        nets[k].load_state_dict({n: v.float() for n, v in load_file(f'{leg}/{k}.safetensors').items()})
    for i, kind in enumerate(KINDS):
        X, y = Prior(777 + i).tables(int(tables), 11, 200, 20, kind=kind)
        t, r = y[:, 200:], {'logistic': torch.stack(auroc_ap(logistic(X[..., 0].flatten(2), y, 200), y[:, 200:]), 1).tolist()}
        for k, m in nets.items():
            torch.manual_seed(0)
            with torch.no_grad():
                r[k] = torch.stack(auroc_ap(sum(m(X, y, 200) for _ in range(2)), t), 1).tolist()
        columns = torch.where(X[..., 2] == 0, torch.nan, X[..., 0]).flatten(2)      # gaps as trees know them
        for x, v in zip(columns.numpy(), y.numpy()):
            x = x[:, ~np.isnan(x).all(0)]
            p = [f.fit(x[:200], v[:200]).predict_proba(x[200:])[:, 1] for f in (xgb.XGBClassifier(n_estimators=150, max_depth=3, learning_rate=.08, subsample=.8, colsample_bytree=.6, n_jobs=1),
                 RandomForestClassifier(300, min_samples_leaf=2, random_state=0), ExtraTreesClassifier(300, min_samples_leaf=2, random_state=0))]
            for b, s in zip(('XGBoost', 'forest', 'extra trees', 'bag'), p + [sum(p)]):
                r.setdefault(b, []).append([q / 100 for q in quality(s, v[200:])])
        res[kind] = r
        print(kind, {b: np.round(np.mean(v, 0), 3).tolist() for b, v in r.items()}, flush=True)
        json.dump(res, open(out, 'w'))


def table(sets, file, *outs):
    pack, T = np.load(sets), json.load(open(file))
    others = [json.load(open(o)) for o in outs if o.endswith('.json')]
    res = {k: v for o in outs if not o.endswith('.json') for k, v in np.load(o).items()}
    kinds = sorted({k.split('|')[0] for k in res} - {'bag'})
    kinds += [f'{k} + bag' for k in kinds if any(b.startswith('bag|') for b in res)]   # means of probabilities
    for n in (200, 1000):
        R = {}
        for name, m in jobs(pack):
            if m != n:
                continue
            y = pack[f'{name}.y']
            for b in MODELS:
                R[b, name] = np.array(T[f'{name}|{n}'][b])
            every = [np.array(t[f'{name}|{n}'][b]) for t in (T, *others) for b in MODELS[:5]]
            R['best', name] = np.stack([max((v[:, i] for v in every), key=lambda v: sign * v.mean()) for i, sign in enumerate((1, 1, -1))], 1)
            for k in kinds:
                net, _, more = k.partition(' + ')
                if f'{net}|{name}|{n}' in res and (not more or f'bag|{name}|{n}' in res):
                    p = 1 / (1 + np.exp(-res[f'{net}|{name}|{n}'].astype(np.float64)) * (n - 20) / 20)   # at the context's rate of anomalies
                    p = (p + res[f'bag|{name}|{n}']) / 2 if more else p
                    R[k, name] = np.array([quality(v, y[t]) + [calibration(v, y[t])] for v, t in zip(p, pack[f'{name}.te{n}'])])
        for title, names in (('development', DEVELOPMENT), ('table', TABLE)):
            names = [m for m in names if (kinds[0], m) in R]
            if not names:
                continue
            cols = [c for c in (*MODELS[:5], 'best', *kinds) if all((c, m) in R for m in names)]
            print(f'\n20 + {n - 20} labels, {title} sets: AUROC / AUPRC (standard error over draws)\n')
            print('| set | ' + ' | '.join(cols) + ' |\n|---' * 1 + '|---' * len(cols) + '|')
            for m in names:
                print(f'| {m} | ' + ' | '.join('%.1f / %.1f (%.1f, %.1f)' % (*R[c, m][:, :2].mean(0), *(R[c, m][:, :2].std(0, ddof=1) / len(R[c, m]) ** .5)) for c in cols) + ' |')
            print('| mean | ' + ' | '.join('%.1f / %.1f' % tuple(np.mean([R[c, m][:, :2].mean(0) for m in names], 0)) for c in cols) + ' |')
            print('| calibration error | ' + ' | '.join('%.3f' % np.mean([R[c, m][:, 2].mean() for m in names]) for c in cols) + ' |')
            for k in [c for c in cols if c in kinds]:
                for b in [c for c in cols if c != k]:
                    for left, without in (('', ()), (', without injected', INJECTED), (', without sets that led to changes', KNOWN)):
                        d = np.array([R[k, m][:, :2].mean(0) - R[b, m][:, :2].mean(0) for m in names if m not in without])
                        if len(d) > 1:
                            error = d.std(0, ddof=1) / len(d) ** .5
                            print(f'{k} - {b}{left}: AUROC %+.2f (%.2f), AUPRC %+.2f (%.2f), ahead on %d and %d of %d' % (d[:, 0].mean(), error[0], d[:, 1].mean(), error[1], *(d > 0).sum(0), len(d)))


if __name__ == '__main__':
    {'prepare': prepare, 'trees': trees, 'score': score, 'kinds': kinds, 'table': table}[sys.argv[1]](*sys.argv[2:])
