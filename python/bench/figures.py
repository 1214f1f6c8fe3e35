"""Figures of docs/python.md: the memory of a process that has met many shapes, the time of a call,
and the time to read tables of pandas.

python python/bench/figures.py plans          # forces of 3,000 batch sizes, descents of 1,500
python python/bench/figures.py tables [ROWS]  # transfers of five columns [1,000,000]; needs pandas
"""

import resource
import sys
import tempfile
import time

import numpy

import basin


def plans():
    @basin.energy(batched=True)
    def wells(g):
        return numpy.sum((g**2 - 1) ** 2, axis=-1) / 4

    many = numpy.random.default_rng(0).normal(size=(3000, 256)).astype("f4")
    for n in range(1, 3001):
        wells.force(many[:n])
    for n in range(1, 1501):
        wells.descend(many[:n], steps=2)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB at most")
    few, begin = many[:1, :8], time.process_time()
    for _ in range(10000):
        wells.force(few)
    print(f"{(time.process_time() - begin) * 100:.1f} microseconds per call of eight numbers")


def tables(rows):
    import pandas

    from basin import tasks

    rng = numpy.random.default_rng(0)
    ids = [f"A{i}" for i in range(rows // 10)]
    accounts = pandas.DataFrame({"id": ids, "balance": rng.normal(size=len(ids))})
    ends = rng.integers(0, len(ids), (2, rows))
    transfers = pandas.DataFrame(
        {"payer": numpy.take(ids, ends[0]), "payee": numpy.take(ids, ends[1])}
        | {"amount": rng.lognormal(size=rows).round(2), "time": rng.integers(1.7e9, 1.8e9, rows)}
        | {"kind": numpy.take(["card", "wire"], rng.integers(0, 2, rows))}
    )
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        tasks.Network(accounts, transfers).write(f"{folder}/graph.basin")
    print(f"{time.process_time() - begin:.1f} s of CPU for {rows:,} transfers")


if __name__ == "__main__":
    if sys.argv[1:] == ["plans"]:
        plans()
    elif sys.argv[1:2] == ["tables"]:
        tables(int(sys.argv[2]) if sys.argv[2:] else 1000000)
    else:
        sys.exit(__doc__)
