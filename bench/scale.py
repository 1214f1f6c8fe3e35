"""The cost model of docs/scale.md: what ranks should take, beside what they took.

    scale.py          prints the tables of docs/lab/scale.md
    scale.py --test   checks the arithmetic on numbers that can be worked out by hand

Nothing is fitted to the runs that are predicted. Measured apart from them: how much slower a process of two
cores is while others that do not talk to it are busy beside it, the bytes a second that a rank sends
(bench/ranks.c), the latency of a question to all, and the step of one process.
"""

import math
import sys

MB, GB, MIB = 1e6, 1e9, 2**20


# ---- the model ----


def slices(numbers, n, shards):
    """Bytes that a rank sends to sum so many float32 numbers over shards, and as many come in."""
    power = n & (n - 1) == 0 and shards % n == 0
    nodes = 1 if power else 2 * math.log2(shards)  # of the tree that a rank has left
    return (nodes + 1) * (n - 1) / n * 4 * numbers


def batch_step(n, shards, shard_seconds, slowdown, numbers, bandwidth, latency):
    """Seconds of a step of pictures, graphs or text: T(n) = ceil(S / n) t c + 4 L + bytes / W."""
    computing = math.ceil(shards / n) * shard_seconds * slowdown
    return computing + (4 * latency + slices(numbers, n, shards) / bandwidth if n > 1 else 0)


def halo_bytes(n, parts, nodes, width, halo=1.0):
    """Bytes of one exchange that come to a rank from others; `halo`: the share of all nodes that a part sees."""
    return parts / n * halo * nodes * (1 - 1 / n) * 4 * width


def graph_step(
    n, parts, one_seconds, slowdown, balance, exchanges, nodes, width, bandwidth, latency, halo=1.0
):
    """Seconds of a step on a graph in parts: T(n) = b c T(1) / n + X (bytes / W + L)."""
    computing = one_seconds * slowdown * (balance / n if n > 1 else 1)
    travel = halo_bytes(n, parts, nodes, width, halo) / bandwidth + latency if n > 1 else 0
    return computing + exchanges * travel


def part_bytes(pairs, own, halo, heads, head_dim, dim=32, steps=2, columns=33):
    """Memory of a part while it trains: a pair is in two lists of two plans and in the file, and has two numbers a
    head between the passes over it. A node of the part has its inputs four times, five tokens for each step (of all
    blocks) and 15 + 3 per step rows of all heads; one of the halo 4.75 + 1.5 per step such rows."""
    width = 4 * heads * head_dim
    node = 16 * columns + 20 * steps * dim + (15 + 3 * steps) * width
    return pairs * (2 * 12 + 4 + 8 * heads) + own * node + halo * (4.75 + 1.5 * steps) * width


def tree_bytes(nodes, rows, columns=33):
    """What trees add: XGBoost, its rows (at most 200,000) and the logits of all nodes."""
    return 16 * MB + 32 * nodes + 20 * columns * min(rows, 200000)


def rank_bytes(n, parts, pairs, own, halo, heads, head_dim, nodes, program=27 * MB, columns=33):
    return program + 16 * nodes + parts / n * part_bytes(pairs, own, halo, heads, head_dim, columns=columns)


# ---- what was measured on the lent machine: 16 cores, 2 a rank; 2026-11-16 ----

PICTURES = 4872193  # numbers of the paper's image model
QUESTION = {2: 1.0e-6, 4: 2.0e-6, 8: 4.4e-6}
SENDING = {
    "morning": {2: 2.90 * GB, 4: 3.17 * GB, 8: 3.23 * GB},
    "noon": {2: 0.93 * GB, 4: 1.20 * GB, 8: 1.23 * GB},
}

# The slowest of n processes that do not talk: seconds of a step.
APART = {
    "pictures": {1: 2.1791, 2: 2.5406, 4: 2.6582, 8: 2.9142},
    "amazon": {1: 0.7523, 2: 0.8613, 4: 0.8222, 8: 0.8439},
    "tfinance": {1: 3.728, 8: 4.878},
}

# What ranks took: (when, what): seconds of a step.
TOOK = {
    ("noon", "pictures"): {1: 2.4723, 2: 2.5869, 4: 2.6743, 8: 3.0100},
    ("noon", "amazon"): {2: 0.4796, 4: 0.2241, 8: 0.1193},
    ("noon", "tfinance"): {8: 0.7404},
    ("morning", "pictures"): {1: 1.9576, 2: 2.2886, 4: 2.6016, 8: 3.0082},
    ("morning", "amazon"): {1: 0.5410, 2: 0.3746, 4: 0.1859, 8: 0.1035},
    ("morning", "tfinance"): {1: 2.603, 2: 1.938, 4: 1.2012, 8: 0.6036},
}

GRAPH = {  # nodes, directed edges, parts, the largest part's edges over the mean, halo as a share of all nodes
    "amazon": (11944, 8796784, 8, 1.016, 1.0),
    "tfinance": (39357, 42445086, 8, 1.024, 1.0),
}
HEADS, HEAD_DIM, EXCHANGES = (
    2,
    16,
    8,
)  # two blocks of one step: keys out and forces back, forward and in reverse

MEMORY = {  # MiB of the largest rank
    "amazon": {1: 564, 2: 302, 4: 170, 8: 104},
    "tfinance": {1: 2280, 2: 1155, 4: 590, 8: 308},
}


def predict(when, what, n):
    """Seconds of a step of the run; `noon` was measured with the processes apart beside it."""
    apart, took = APART[what], TOOK[when, what]
    one = apart[1] if when == "noon" else took[1]
    if n not in apart:
        return None
    sending, question = SENDING[when].get(n, GB), QUESTION.get(n, 0)
    if what == "pictures":
        return batch_step(n, n, one, apart[n] / apart[1], PICTURES, SENDING["morning"].get(n, GB), question)
    nodes, _, parts, balance, halo = GRAPH[what]
    return graph_step(
        n,
        parts,
        one,
        apart[n] / apart[1],
        balance,
        EXCHANGES,
        nodes,
        HEADS * HEAD_DIM,
        sending,
        question,
        halo,
    )


def predict_memory(what, n):
    nodes, edges, parts, balance, halo = GRAPH[what]
    own, columns = nodes / parts, 78 if what == "amazon" else 33
    pairs, beyond = balance * edges / parts, halo * nodes - own
    return rank_bytes(n, parts, pairs, own, beyond, HEADS, HEAD_DIM, nodes, columns=columns)


# ---- memory on sparse graphs: `share/basin/fraud.py --like L --scale S`, `data part -n P --method stream`, then
# `anomaly train --epochs 1 --members 1 --threads 1 --trees 0` under /usr/bin/time; arm64, Open MPI 4.1.4 ----

SPARSE = {  # nodes, directed edges, features, parts, halo nodes of all parts: {ranks: MB of the largest}
    "T-Social-like, 50k": ((50006, 1264726, 10, 8, 210150), {1: 545, 2: 284, 4: 152}),
    "T-Social-like, 200k": ((200025, 5058902, 10, 8, 841468), {1: 2143, 2: 1095, 4: 566}),
    "T-Social-like, 50k in 2": ((50006, 1264726, 10, 2, 42952), {1: 352}),
    "T-Social-like, 50k in 16": ((50006, 1264726, 10, 16, 349544), {1: 729}),
    "YelpChi-like, 14k": ((13786, 2308188, 32, 8, 93779), {1: 301}),
    "Amazon-like, 3.6k": ((3583, 2639036, 25, 8, 25080), {1: 184}),
    "T-Finance-like, 2k": ((1968, 1161316, 10, 8, 13776), {1: 91}),
}


def sparse_memory(what, n):
    (nodes, edges, features, parts, halo), _ = SPARSE[what]
    of = edges / parts, nodes / parts, halo / parts
    return rank_bytes(n, parts, *of, HEADS, HEAD_DIM, nodes, columns=3 * (features + 1))


# ---- tables ----


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def compare(when, what, n, unit, measured, predicted):
    row(
        when,
        what,
        str(n),
        "%.4g %s" % (measured, unit),
        "%.4g %s" % (predicted, unit),
        "%+.0f %%" % (100 * (predicted / measured - 1)),
    )


def print_runs():
    row("when", "what", "ranks", "measured", "predicted", "difference")
    print("|---|---|---|---|---|---|")
    for (when, what), took in TOOK.items():
        for n, seconds in took.items():
            predicted = predict(when, what, n)
            if predicted is not None and not (when == "morning" and n == 1):
                compare(when, what, n, "s", seconds, predicted)
    for what, took in MEMORY.items():
        for n, mib in took.items():
            compare("morning", what + ", memory", n, "MiB", mib, predict_memory(what, n) / MIB)
    for what, (_, took) in SPARSE.items():
        for n, mb in took.items():
            compare("arm64", what + ", memory", n, "MB", mb, sparse_memory(what, n) / MB)


def print_imagenet():
    """64 GPUs: 40 GB/s arrive of 50, 10 us a message of which 8 are under way at a time; one H200 alone: 5,100 a second."""
    n, one, sending, message = 64, 5100.0, 40 * GB, 10e-6
    row(
        "batch",
        "pictures a GPU",
        "computing",
        "travelling and asking",
        "pictures a second",
        "of 64 times one",
    )
    print("|---|---|---|---|---|---|")
    for batch in (768, 4096, 16384):
        computing = batch / n / one
        travel = slices(PICTURES, n, n) / sending + 2 * (n - 1) / 8 * message + 4 * 25e-6
        speed = batch / (computing + travel)
        row(
            "%d" % batch,
            "%d" % (batch / n),
            "%.1f ms" % (1e3 * computing),
            "%.1f ms" % (1e3 * travel),
            "%d" % speed,
            "%.0f %%" % (100 * speed / one / n),
        )


def print_billion():
    """A rank of 1,024: 25 neighbours a node; a core computes 5 M edges a second with heads 2 x 128."""
    nodes, edges, n, cores, sending = 1e9, 2.5e10, 1024, 16, 10 * GB
    row("heads", "halo", "an exchange", "4 of them", "pairs", "memory of a rank")
    print("|---|---|---|---|---|---|")
    for heads, head_dim, halo in ((3, 128, 18e6), (2, 16, 18e6), (2, 16, 2.4e6)):
        arriving = halo * 4 * heads * head_dim
        pairs = edges / n / (5e6 * cores * 256 / (heads * head_dim))
        memory = rank_bytes(n, n, edges / n, nodes / n, halo, heads, head_dim, nodes)
        row(
            "%d x %d" % (heads, head_dim),
            "%.3g M nodes" % (halo / 1e6),
            "%.2g GB" % (arriving / GB),
            "%.2g s" % (4 * arriving / sending),
            "%.2g s" % pairs,
            "%.3g GB" % (memory / GB),
        )


def check():
    assert slices(1000, 4, 8) == 2 * 3 / 4 * 4000
    assert slices(1000, 3, 8) == 7 * 2 / 3 * 4000
    assert batch_step(1, 8, 2.0, 1.0, 1000, 1e3, 1e9) == 16.0
    assert batch_step(3, 8, 2.0, 1.5, 0, 1e3, 0.25) == 3 * 3.0 + 1.0
    assert halo_bytes(8, 8, 800, 2) == 700 * 8
    assert halo_bytes(2, 8, 800, 2, 0.5) == 4 * 200 * 8
    assert graph_step(1, 8, 3.0, 1.0, 1.1, 8, 800, 2, 1e3, 1.0) == 3.0
    assert abs(graph_step(8, 8, 8.0, 1.5, 1.1, 2, 800, 2, 5600.0, 0.5) - (1.65 + 2 * 1.5)) < 1e-12
    assert part_bytes(10, 100, 0, 2, 16) == 440 + 100 * (528 + 1280 + 21 * 128)
    assert part_bytes(10, 0, 100, 2, 16) == 440 + 100 * 7.75 * 128
    assert rank_bytes(4, 8, 10, 0, 100, 2, 16, 5, 1000) == 1000 + 80 + 2 * 99640
    off = [sparse_memory(what, n) / MB / mb - 1 for what in SPARSE for n, mb in SPARSE[what][1].items()]
    assert max(map(abs, off)) < 0.15, off
    worst = [
        abs(predict(w, x, n) / t - 1)
        for (w, x), took in TOOK.items()
        for n, t in took.items()
        if w == "noon" and predict(w, x, n)
    ]
    assert max(worst) < 0.2, "a run whose cores were measured beside it is predicted within 20 %"


if __name__ == "__main__":
    if sys.argv[1:] == ["--test"]:
        check()
    else:
        for table in (print_runs, print_imagenet, print_billion):
            table()
            print()
