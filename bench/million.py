"""The network of bench/million, and its measures.

    million.py ACCOUNTS FOLDER              writes accounts.csv and transfers.csv
    million.py --time NAME CSV COMMAND...   runs a command; appends seconds and memory
    million.py --sum CSV ACCOUNTS SCORES    all steps together, and how many alerts are frauds

Fraudulent accounts are in rings of ten: they are a little younger and emptier than others (a table alone
does not find them), send each other amounts just below 1,000 and empty themselves into one of the ring.
Everything is a function of the number of accounts.
"""

import csv
import os
import random
import resource
import subprocess
import sys
import time

COUNTRIES = ["DE", "FR", "IT", "ES", "NL", "PL", "AT", "BE", "PT", "SE"]
KINDS = ["card", "transfer", "direct debit", "cash"]
RING = 10
PER_ACCOUNT = 10
DAY = 86400
BEGIN = 1_700_000_000


def write_accounts(path, accounts, fraud, draw):
    with open(path, "w") as f:
        f.write("account,country,age_days,balance,logins,devices,is_fraud\n")
        for i in range(accounts):
            bad = i in fraud
            age = draw.expovariate(1 / (700 if bad else 1100))
            balance = draw.lognormvariate(6.6 if bad else 7, 1.2)
            logins = int(draw.expovariate(1 / (26 if bad else 20)))
            devices = 1 + (draw.random() < (0.4 if bad else 0.25)) + (draw.random() < 0.1)
            f.write(f"a{i},{COUNTRIES[int(draw.random() ** 2 * 10)]},{age:.0f},{balance:.2f},{logins},{devices},{int(bad)}\n")


def write_transfers(path, accounts, rings, draw):
    uniform = draw.random
    inner = 0
    with open(path, "w") as f:
        f.write("from,to,amount,time,kind\n")
        for ring in rings:
            for a in ring:
                for _ in range(4):
                    b = ring[int(uniform() * RING)]
                    if a != b:
                        f.write(f"a{a},a{b},{900 + 99 * uniform():.2f},{BEGIN + int(uniform() * 90 * DAY)},transfer\n")
                        inner += 1
                if a != ring[0]:
                    f.write(f"a{a},a{ring[0]},{3000 * uniform():.2f},{BEGIN + int((90 + uniform()) * DAY)},cash\n")
                    inner += 1
        for _ in range(PER_ACCOUNT * accounts - inner):
            a = int(uniform() * accounts)
            b = int(uniform() ** 3 * accounts)
            f.write(f"a{a},a{b},{5 / (0.001 + uniform()):.2f},{BEGIN + int(uniform() * 91 * DAY)},{KINDS[int(uniform() * 4)]}\n")


def make(accounts, folder):
    draw = random.Random(accounts)
    rings = max(1, accounts // (200 * RING))
    members = draw.sample(range(accounts), rings * RING)
    write_accounts(os.path.join(folder, "accounts.csv"), accounts, set(members), draw)
    rings = [members[r * RING : (r + 1) * RING] for r in range(rings)]
    write_transfers(os.path.join(folder, "transfers.csv"), accounts, rings, draw)


def measure(name, path, command):
    began = time.time()
    code = subprocess.call(command)
    wall = time.time() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(path, "a") as f:
        f.write(f"{name},{wall:.1f},{used.ru_utime + used.ru_stime:.1f},{used.ru_maxrss / 1024:.0f}\n")
    return code


def total(path, accounts, scores):
    rows = list(csv.DictReader(open(path)))
    wall = sum(float(r["wall_s"]) for r in rows)
    cpu = sum(float(r["cpu_s"]) for r in rows)
    print(f"all,{wall:.1f},{cpu:.1f},{max(float(r['peak_mib']) for r in rows):.0f}")
    fraud = {r["account"] for r in csv.DictReader(open(accounts)) if r["is_fraud"] == "1"}
    alerts = list(csv.DictReader(open(scores)))
    column = next(c for c in alerts[0] if c in ("id", "node", "account"))
    named = {r[column] for r in alerts}
    print(f"alerts {len(named)}, of which frauds {len(named & fraud)}")


if __name__ == "__main__":
    if sys.argv[1] == "--time":
        sys.exit(measure(sys.argv[2], sys.argv[3], sys.argv[4:]))
    if sys.argv[1] == "--sum":
        total(*sys.argv[2:5])
    else:
        make(int(sys.argv[1]), sys.argv[2])
