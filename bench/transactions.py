#!/usr/bin/env python3
"""Makes tables of accounts and of transfers from public sets of transactions.

    python3 bench/transactions.py DATA OUT

DATA holds bitcoin_otc/, amlsim/, S-FFSD.csv, paysim_sample.csv.gz and card_handbook.npz, as their sources give
them. OUT gets NAME-nodes.csv (id, label, features if any) and NAME-edges.csv (src, dst, what an edge carries):

    otc     who rates whom on Bitcoin OTC; REV2's labels of users, most have none
    cycle   AMLSim 20K_cycle200; fraudStep, which tells the answer, is left out
    fanin   AMLSim 20K_fanin200cycle200
    ffsd    S-FFSD; a payer is fraudulent where one of its labelled payments is
    paysim  PaySim; the payer of a fraudulent payment is
    cards   the Fraud Detection Handbook's first 31 days; a card or terminal that saw a fraud is

Then, with what edges carry and without, the past for training and the future for tests:

    basin anomaly eval OUT/cycle-nodes.csv OUT/cycle-edges.csv --directed --split-time time --rivals xgboost
    basin anomaly eval OUT/cycle-nodes.csv OUT/cycle-edges.csv --directed --split-time time --rivals xgboost --facts none
"""

import csv
import gzip
import pathlib
import sys
import zipfile


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


def rows_of(path):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as file:
        yield from csv.reader(file)


def make_otc(data, out):
    label = {user: int(kind == "-1") for user, kind in rows_of(data / "bitcoin_otc" / "otc_gt.csv")}
    edges = list(rows_of(data / "bitcoin_otc" / "soc-sign-bitcoinotc.csv"))
    users = sorted({row[i] for row in edges for i in (0, 1)}, key=int)
    write(out / "otc-nodes.csv", ["id", "label"], [(user, label.get(user, "")) for user in users])
    write(out / "otc-edges.csv", ["src", "dst", "rating", "time"], edges)


def make_amlsim(data, out, name, folder):
    source = data / "amlsim" / folder
    nodes = list(rows_of(source / "nodes.csv"))[1:]
    edges = list(rows_of(source / "transactions.csv"))[1:]
    write(out / f"{name}-nodes.csv", ["id", "label", "init_balance"], [row[:3] for row in nodes])
    write(out / f"{name}-edges.csv", ["src", "dst", "value", "time"], edges)


def worst(labels):
    """1 where one is fraudulent, 0 where one is known and none is, else nothing."""
    return 1 if "1" in labels else 0 if "0" in labels else ""


def make_ffsd(data, out):
    rows = list(rows_of(data / "S-FFSD.csv"))[1:]
    seen = {}
    for _, source, target, *_, label in rows:
        seen.setdefault(source, set()).add(label)
        seen.setdefault(target, set())
    write(out / "ffsd-nodes.csv", ["id", "label"], [(node, worst(seen[node])) for node in seen])
    write(out / "ffsd-edges.csv", ["src", "dst", "amount", "location", "kind", "time"],
          [(r[1], r[2], r[3], r[4], r[5], r[0]) for r in rows])


def make_paysim(data, out):
    rows = list(rows_of(data / "paysim_sample.csv.gz"))[1:]
    seen = {}
    for row in rows:
        seen.setdefault(row[3], set()).add(row[9][0])
        seen.setdefault(row[6], set())
    write(out / "paysim-nodes.csv", ["id", "label"], [(node, worst(seen[node])) for node in seen])
    write(out / "paysim-edges.csv",
          ["src", "dst", "amount", "kind", "old_from", "new_from", "old_to", "new_to", "time"],
          [(r[3], r[6], r[2], r[1], r[4], r[5], r[7], r[8], r[0]) for r in rows])


def numbers(archive, name):
    """One array of an npz, by hand: numpy is no part of this."""
    raw = archive.read(name + ".npy")
    head = raw[10:10 + int.from_bytes(raw[8:10], "little")].decode()
    code = {"<i2": "h", "<i4": "i", "|u1": "B"}[head.split("'descr': '")[1].split("'")[0]]
    return memoryview(raw[10 + len(head):]).cast(code)


def make_cards(data, out):
    with zipfile.ZipFile(data / "card_handbook.npz") as archive:
        card, terminal, second, cents, fraud = (
            numbers(archive, name) for name in ("customer", "terminal", "seconds", "cents", "fraud"))
    label = {}
    for c, t, f in zip(card, terminal, fraud):
        for node in (f"c{c}", f"t{t}"):
            label[node] = max(label.get(node, 0), f)
    write(out / "cards-nodes.csv", ["id", "label"], sorted(label.items()))
    write(out / "cards-edges.csv", ["src", "dst", "amount", "time"],
          ((f"c{c}", f"t{t}", a / 100, s / 86400) for c, t, a, s in zip(card, terminal, cents, second)))


def main(data, out):
    out.mkdir(parents=True, exist_ok=True)
    make_otc(data, out)
    make_amlsim(data, out, "cycle", "20K_cycle200")
    make_amlsim(data, out, "fanin", "20K_fanin200cycle200")
    make_ffsd(data, out)
    make_paysim(data, out)
    make_cards(data, out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
