"""A network with the statistics of one of the paper's fraud sets as npz, to try things out and to
measure time and memory; scores on it say nothing about the real set.

    python3 fraud.py --like yelp --scale 0.03 accounts.npz
    basin anomaly train accounts.npz

Nodes, edges, features, the share of anomalies and the share of edges between equal labels are the
set's; degrees have a heavy tail, and some of the anomalies hide. A seed gives one network. Where a
scale below 1 would leave too few pairs of nodes, there are fewer edges. Needs NumPy."""

import argparse

import numpy as np

SETS = {  # nodes, edges, features, anomalous, homophily, share of edges within anomalies, shift, hidden
    "amazon": (11944, 4398392, 25, 0.0687, 0.954, 0.01, 1.0, 0.35),
    "yelp": (45954, 3846979, 32, 0.1453, 0.773, 0.03, 0.5, 0.5),
    "tfinance": (39357, 21222543, 10, 0.0458, 0.971, 0.01, 0.9, 0.4),
    "tsocial": (5781065, 73105508, 10, 0.0301, 0.624, 0.05, 0.7, 0.5),
}


def draw(random, first, second, count):
    """`count` different pairs of the two lists; those at their beginning have more of them."""
    keys, within, power = np.empty(0, np.int64), first is second, 2
    while len(keys) < count:
        size = int(1.1 * (count - len(keys))) + 16
        u = (random.random(size) ** power * len(first)).astype(np.int64)
        v = (random.random(size) ** power * len(second)).astype(np.int64)
        if within:
            u, v = np.minimum(u, v)[u != v], np.maximum(u, v)[u != v]
        before, keys = len(keys), np.union1d(keys, u * len(second) + v)
        if 3 * (len(keys) - before) < size:
            power = 1  # pairs of weight are taken: any pair then
    keys = np.delete(keys, random.choice(len(keys), len(keys) - count, replace=False))
    return np.stack([first[keys // len(second)], second[keys % len(second)]], 1).astype(np.int32)


def draw_edges(random, normal, anomalous, edges, homophily, ring):
    n, a = len(normal), len(anomalous)
    cross = min(round((1 - homophily) * edges), int(0.5 * a * n))
    among = min(round(ring * edges), int(0.25 * a * (a - 1)))
    rest = min(edges - cross - among, int(0.4 * n * (n - 1)))
    return np.concatenate([
        draw(random, normal, normal, rest),
        draw(random, anomalous, anomalous, among),
        draw(random, anomalous, normal, cross),
    ])  # fmt: skip


def draw_features(random, label, degree, features, shift, hidden):
    """Hidden factors, a shift of anomalies and a trace of the degree, as amounts, counts, rates and
    plain numbers in turn."""
    hide = random.random(len(label)) < hidden
    known = np.concatenate([
        0.4 * random.standard_normal((len(label), 4)),
        (label * np.where(hide, 0.25 * shift, shift))[:, None],
        0.1 * np.log1p(degree)[:, None],
    ], axis=1)  # fmt: skip
    x = known @ random.standard_normal((6, features))
    x += 0.6 * random.standard_normal(x.shape)
    x[:, 0::4] = np.exp(0.7 * x[:, 0::4])
    x[:, 1::4] = np.floor(np.exp(0.8 * x[:, 1::4] + 0.5))
    x[:, 2::4] = 1 / (1 + np.exp(-x[:, 2::4]))
    return x.astype(np.float32)


def make(like, scale, seed):
    nodes, edges, features, share, homophily, ring, shift, hidden = SETS[like]
    nodes = max(round(nodes * scale), 20)
    edges = min(round(edges * scale), int(0.15 * nodes * (nodes - 1)))
    random = np.random.default_rng(seed)
    order = random.permutation(nodes)
    anomalous, normal = np.split(order, [round(share * nodes)])
    pairs = draw_edges(random, normal, anomalous, edges, homophily, ring)
    label = np.zeros(nodes, np.int8)
    label[anomalous] = 1
    degree = np.bincount(pairs.ravel(), minlength=nodes)
    x = draw_features(random, label, degree, features, shift, hidden)
    return {"x": x, "y": label, "edges": pairs}


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--like", choices=SETS, default="amazon", help="the set to imitate")
    parser.add_argument("--scale", type=float, default=1, help="of the nodes and edges")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("output")
    given = parser.parse_args()
    if not 0 < given.scale <= 100 or given.seed < 0:
        parser.error("--scale needs a number above 0 and at most 100, --seed one from 0 on")
    arrays = make(given.like, given.scale, given.seed)
    np.savez(given.output, **arrays)
    nodes, features = arrays["x"].shape
    print(f"{given.output}: {nodes} nodes, {len(arrays['edges'])} edges, {features} features, "
          f"{arrays['y'].sum()} anomalous")  # fmt: skip


if __name__ == "__main__":
    main()
