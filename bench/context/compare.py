"""The C code against PyTorch on real sets, with the same labels, codes and columns.

  compare.py BASIN DATA.npz [LABELS] [PASSES]        e.g. build/basin /work/shared/data/anomaly/tolokers.npz 200 1

Keeps a tenth of LABELS anomalies and the rest normal nodes, hides the other labels, scores the rest by `basin anomaly score
--in-context`, and prints the largest difference of logits. Columns are prepared as evaluate.py does, in double before ranks.
"""
import os
import subprocess
import sys
import tempfile
import numpy as np
import scipy.sparse as sp
import torch
from safetensors.torch import load_file
from evaluate import cell, neighbours, quality, ranks, tokens
from model import Model


def graph(N, e):
    A = sp.coo_matrix((np.ones(len(e)), (e[:, 0], e[:, 1])), (N, N)).tocsr()
    A = ((A + A.T) > 0).astype(np.float64)
    A.setdiag(0)
    A.eliminate_zeros()
    return A


def columns(x, A):
    deg = np.asarray(A.sum(1)).ravel()
    mean = lambda v: ((A @ v.astype(np.float64)) / np.maximum(deg, 1)[:, None]).astype(np.float32)
    m1 = mean(x)
    return np.concatenate([x, m1, mean(m1), np.log1p(deg)[:, None].astype(np.float32)], 1)


def main(basin, path, labels='200', passes='1'):
    n, passes = int(labels), int(passes)
    d = dict(np.load(path))
    x, y, e = d['x'].astype(np.float32), d['y'].astype(np.int64), d['edges']
    known = d['labelled'].astype(bool) if 'labelled' in d else y >= 0
    r = np.random.default_rng(1)
    p, q = (r.permutation(np.flatnonzero(known & (y == v))) for v in (1, 0))
    context = np.sort(np.r_[p[:n // 10], q[:n - n // 10]])
    hidden = np.full(len(y), -1)
    hidden[context] = y[context]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, 'hidden.npz')
        np.savez(file, x=x, y=hidden, edges=e)
        out = subprocess.run([basin, 'anomaly', 'score', '--in-context', file, '--passes', str(passes), '--quiet'], check=True, capture_output=True, text=True).stdout
    rows = np.array([line.split(',')[:2] for line in out.splitlines()[1:]], float)
    node, prob = rows[:, 0].astype(int), rows[:, 1]
    ours = np.log(prob / (1 - prob))
    here = os.path.dirname(os.path.abspath(__file__))
    weights = load_file(os.path.join(here, '../../models/context.safetensors'))
    codes = weights.pop('codes').float()
    m = Model('three-clamped')
    m.load_state_dict({k: v.float() for k, v in weights.items()})
    A, known_label = graph(len(y), e), np.where(hidden < 0, 0, hidden)
    more = cell(np.stack(neighbours(A, known_label, (hidden >= 0).astype(np.int64)), 2))
    X, theirs = torch.tensor(np.concatenate([tokens(*ranks(columns(x, A))), more], 1)), []
    with torch.no_grad():
        for i in range(0, len(node), 500):
            some = torch.cat([X[context], X[node[i:i + 500]]])[None]
            t = torch.tensor(np.r_[hidden[context], np.zeros(len(some[0]) - n)])[None]
            theirs.append(sum(m(some, t, n, codes[None, None, j, :X.shape[1]])[0].numpy() for j in range(passes)) / passes)
    theirs = np.concatenate(theirs) + np.log((n // 10) / (n - n // 10))
    off = np.abs(ours - theirs)
    print(f'{os.path.basename(path)}: {len(node)} queries, {X.shape[1]} cells: logits differ by at most {off.max():.1e}, median {np.median(off):.1e}, deviation of logits {theirs.std():.2f}')
    judged = known[node]
    print('  AUROC and AUPRC: C %.3f %.3f, PyTorch %.3f %.3f' % (*quality(ours[judged], y[node][judged]), *quality(theirs[judged], y[node][judged])))


if __name__ == '__main__':
    main(*sys.argv[1:])
