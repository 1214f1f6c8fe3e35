"""Where a training step's time goes, on twelve shapes of 300,000 cells. steps.py OUT.json [--kinds KINDS] [--compile KINDS]"""
import json
import sys
import time
import torch
import torch.nn.functional as F
from model import Model
from prior import Prior
from train import Optimizer, trained

dev = 'cuda' if torch.cuda.is_available() else 'cpu'
small = dev == 'cpu'
CELLS = 3000 if small else 300000


def sync():
    if not small:
        torch.cuda.synchronize()


def shapes(k=4 if small else 12):
    p, r = Prior(7, dev), []
    for _ in range(k):
        T, n, q = p.shape()
        if small:
            n, q = 100, 10
        r.append((int(max(2, min(128, CELLS / ((n + 200) * (T + 1)), 65000 / (n + 200)))), T, n, q))
    return r


def clock(f, args, rounds=2):
    """Mean milliseconds over args, after one round of warm-up."""
    for a in args:
        f(*a)
    sync()
    t = time.time()
    for _ in range(rounds):
        for a in args:
            f(*a)
    sync()
    return 1e3 * (time.time() - t) / rounds / len(args)


def main():
    out, res = sys.argv[1], {}
    kinds = sys.argv[sys.argv.index('--compile') + 1].split(',') if '--compile' in sys.argv else None
    torch.backends.cuda.matmul.allow_tf32 = True
    S = shapes()
    res['shapes'] = S

    def say(k, v):
        res[k] = v
        print(f'{k:40s} {v:8.2f}', flush=True)
        json.dump(res, open(out, 'w'))

    if not small:
        torch.backends.cuda.enable_cudnn_sdp(False)
    prior = Prior(3, dev)
    say('prior', clock(prior.tables, S, 1))
    T = [(*prior.tables(*s), s[2]) for s in S]
    for kind in kinds or (sys.argv[sys.argv.index('--kinds') + 1].split(',') if '--kinds' in sys.argv else ('transformer', 'alt', 'three', 'three-lse')):
        m = Model(kind).to(dev)
        opt = Optimizer(m, .4, dev)
        if kinds:
            import torch._dynamo as dyn
            dyn.config.cache_size_limit = dyn.config.accumulated_cache_size_limit = 256
            for l in m.ls:
                l.forward = trained(l.forward)

        def forward(X, y, n):
            with torch.no_grad():
                m(X, y, n)

        def both(X, y, n):
            F.binary_cross_entropy_with_logits(m(X, y, n), y[:, n:]).backward()

        def step(X, y, n):
            both(X, y, n)
            opt.step(1e-4)
        tag = ' compiled' if kinds else ''
        if kinds:
            t = time.time()
            for a in T:
                step(*a)
            sync()
            say(f'{kind} seconds of compiling', time.time() - t)
        say(f'{kind} step{tag}', clock(step, T, 2))
        if not kinds:
            say(f'{kind} forward and backward{tag}', clock(both, T, 1))
            say(f'{kind} forward, no gradient{tag}', clock(forward, T, 1))
    if not small and len(sys.argv) < 4:                                  # largest kernels of the energy's step
        m = Model('alt').to(dev)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]) as prof:
            for X, y, n in T[:4]:
                F.binary_cross_entropy_with_logits(m(X, y, n), y[:, n:]).backward()
            sync()
        print(prof.key_averages().table(sort_by='self_cuda_time_total', row_limit=22, max_name_column_width=70))


if __name__ == '__main__':
    main()
