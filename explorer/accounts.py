"""Draws the Explorer's network of accounts, which nobody has, and trains its detector by the program.

    python3 explorer/accounts.py build/basin
    python3 explorer/accounts.py --tables FOLDER

The first writes explorer/accounts.json (what the page shows) and explorer/accounts.safetensors, the second the
tables that the detector learns from, for `basin reproduce` (tests/explorer/model). A ring of
mules passes money on: their accounts are young, hold little and move much, and know each other. Two
honest shops look like mules by their numbers, but trade with everybody; one mule looks honest by
its numbers, and its partners give it away.
"""

import csv
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

NODES, MULES, COLUMNS = 160, 14, ("age", "balance", "sent", "received")


def account(kind, rng):
    if kind == "mule":
        return [rng.uniform(5, 1200), rng.uniform(10, 4000), rng.uniform(1, 7), rng.uniform(1, 7)]
    if kind == "shop":
        return [rng.uniform(20, 120), rng.uniform(50, 400), rng.uniform(4, 9), rng.uniform(4, 9)]
    return [rng.uniform(60, 3000), rng.uniform(100, 9000), rng.uniform(0, 6), rng.uniform(0, 6)]


def draw(seed):
    rng = random.Random(seed)
    kinds = ["mule"] * MULES + ["shop"] * 4 + ["person"] * (NODES - MULES - 4)
    rng.shuffle(kinds)
    mules = [i for i, kind in enumerate(kinds) if kind == "mule"]
    shops = [i for i, kind in enumerate(kinds) if kind == "shop"]
    rows = [account(kind, rng) for kind in kinds]
    hidden = mules[0]
    rows[hidden] = account("person", rng)
    edges = set()
    for i, kind in enumerate(kinds):
        for _ in range(2):
            j = rng.choice(mules if kind == "mule" and rng.random() < 0.5 else range(NODES))
            if i != j and (kind == "mule" or kinds[j] != "mule" or rng.random() < 0.7):
                edges.add((min(i, j), max(i, j)))
    for shop in shops:
        for i in rng.sample([i for i, kind in enumerate(kinds) if kind == "person"], 12):
            edges.add((min(i, shop), max(i, shop)))
    for other in mules[1:5]:
        edges.add((min(hidden, other), max(hidden, other)))
    return kinds, [[round(v, 1) for v in row] for row in rows], sorted(edges)


def layout(count, edges):
    """Places in 0 .. 600: accounts repel each other, transfers pull; the same for the same network."""
    rng = random.Random(7)
    place = [[rng.uniform(0, 600), rng.uniform(0, 600)] for _ in range(count)]
    for turn in range(260):
        heat, move = 22 * (1 - turn / 260), [[0.05 * (300 - x), 0.05 * (300 - y)] for x, y in place]

        def push(a, b, by):
            for axis in (0, 1):
                step = by(place[a][axis] - place[b][axis])
                move[a][axis] += step
                move[b][axis] -= step

        for a in range(count):
            for b in range(a):
                apart = 700 / (math.dist(place[a], place[b]) ** 2 + 1)
                push(a, b, lambda d: d * apart)
        for a, b in edges:
            near = math.dist(place[a], place[b]) / 70
            push(a, b, lambda d: -d * near)
        for p, m in zip(place, move):
            size = math.hypot(*m) or 1
            for axis in (0, 1):
                p[axis] = max(12, min(588, p[axis] + m[axis] * min(size, heat) / size))
    return [[round(x), round(y)] for x, y in place]


def table(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def tables(folder):
    all_rows, all_edges = [], []
    for seed in range(8):  # it learns from seven other networks of the kind
        kinds, rows, edges = draw(seed)
        for i, (kind, row) in enumerate(zip(kinds, rows)):
            label = "" if seed == 0 else int(kind == "mule")
            all_rows.append([f"{seed}-{i}", *row, label])
        all_edges += [[f"{seed}-{a}", f"{seed}-{b}"] for a, b in edges]
    table(f"{folder}/accounts.csv", ["id", *COLUMNS, "label"], all_rows)
    table(f"{folder}/transfers.csv", ["from", "to"], all_edges)


def main(program):
    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as folder:
        tables(folder)
        # Kernels without vectors, so that other processors train the same bits.
        subprocess.run(
            [pathlib.Path(program).resolve(), "anomaly", "train", "accounts.csv", "transfers.csv"]
            + ["-o", here / "accounts.safetensors", "--members", "1", "--blocks", "2", "--dim", "16", "--trees", "0"]
            + ["--hops", "1", "--sampling", "full", "--epochs", "200", "--patience", "40", "--seed", "1"],
            check=True,
            cwd=folder,
            env={**os.environ, "BASIN_ISA": "portable"},
        )
    kinds, rows, edges = draw(0)
    network = {"columns": COLUMNS, "kinds": kinds, "rows": rows, "edges": edges, "place": layout(NODES, edges)}
    (here / "accounts.json").write_text(json.dumps(network).replace("], [", "],\n["))


if sys.argv[1] == "--tables":
    tables(sys.argv[2])
else:
    main(sys.argv[1])
