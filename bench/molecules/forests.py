"""The default of `basin graph train` beside random forests and XGBoost, as somebody with a table of
molecules and one yes-or-no column would compare them: AUROC on molecules that were set aside, of
random splits (80 : 20) and of a scaffold split. Needs rdkit, scikit-learn, xgboost.

    python bench/molecules/forests.py FOLDER OUT bbbp:p_np tox21:SR-MMP hiv:HIV_active

BASIN is the program ["basin"], OPTIONS what it gets beside the columns [""], SIZE the most
molecules of a set [1500], SAMPLE the seed that chooses them [7], TRAIN how many of them train
[4/5], SPLITS the splits ["0 1 2 scaffold"]. INNER=1 divides the training part of each split once
more, so that settings can be compared without test molecules. Forests: 500 trees on Morgan
fingerprints of radius 2 in 2,048 bits, and on their counts. OUT keeps tables, models and
predictions; predictions that are there are not made again.
"""

import csv
import os
import pathlib
import shlex
import subprocess
import sys
import time

import numpy
from rdkit import Chem, RDLogger
from rdkit.Chem import rdFingerprintGenerator
from rdkit.Chem.Scaffolds import MurckoScaffold
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

RDLogger.DisableLog("rdApp.*")


def read(path, target, size):
    with open(path) as file:
        rows = [row for row in csv.DictReader(file) if row[target] != ""]
    if len(rows) > size:
        draw = numpy.random.default_rng(int(os.environ.get("SAMPLE", "7")))
        chosen = draw.choice(len(rows), size, replace=False)
        rows = [rows[i] for i in sorted(chosen)]
    known = [(row["smiles"], Chem.MolFromSmiles(row["smiles"]), row[target]) for row in rows]
    known = [(text, m, int(float(y))) for text, m, y in known if m and m.GetNumAtoms()]
    return [list(column) for column in zip(*known, strict=True)]


def divide(molecules, how, trains):
    """Training and test molecules; the largest groups of a scaffold train."""
    if how != "scaffold":
        order = numpy.random.default_rng(100 + int(how)).permutation(len(molecules))
        return numpy.sort(order[:trains]), numpy.sort(order[trains:])
    groups, parts = {}, ([], [])
    for i, m in enumerate(molecules):
        groups.setdefault(MurckoScaffold.MurckoScaffoldSmiles(mol=m), []).append(i)
    for group in sorted(groups.values(), key=lambda g: (len(g), g[0]), reverse=True):
        parts[len(parts[0]) + len(group) > trains].extend(group)
    return numpy.sort(parts[0]), numpy.sort(parts[1])


def write(path, smiles, y, part):
    with open(path, "w") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "smiles", "active"])
        rows.writerows([f"m{i}", smiles[i], y[i]] for i in part)


def basin(out, name, smiles, y, train, test):
    """What somebody types: train with the defaults, then predict."""
    program, found = os.environ.get("BASIN", "basin"), out / f"{name}.csv"
    if not found.exists():
        write(out / f"{name}-train.csv", smiles, y, train)
        write(out / f"{name}-test.csv", smiles, y, test)
        model = out / f"{name}.safetensors"
        command = [program, "graph", "train", out / f"{name}-train.csv", "--smiles", "smiles"]
        command += ["--target", "active", "-o", model, *shlex.split(os.environ.get("OPTIONS", ""))]
        with open(out / f"{name}.txt", "w") as log:
            subprocess.run(list(map(str, command)), check=True, stdout=log, stderr=log)
        use = [program, "graph", "predict", model, out / f"{name}-test.csv", "-q", "-o", found]
        subprocess.run(list(map(str, use)), check=True)
    with open(found) as file:
        given = {row["id"]: float(row["p_1"]) for row in csv.DictReader(file)}
    return [given[f"m{i}"] for i in test]


def boosted():
    import xgboost

    return xgboost.XGBClassifier(n_estimators=300, max_depth=6, learning_rate=0.1, n_jobs=1)


def tabular(model, x, y, train, test):
    return model.fit(x[train], y[train]).predict_proba(x[test])[:, 1]


def main(folder, out, *names):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    for name in names:
        table, target = name.split(":")
        smiles, molecules, y = read(
            f"{folder}/{table}.csv", target, int(os.environ.get("SIZE", "1500"))
        )
        y = numpy.array(y)
        bits = numpy.array([make.GetFingerprintAsNumPy(m) for m in molecules])
        counts = numpy.array([make.GetCountFingerprintAsNumPy(m) for m in molecules])
        for how in os.environ.get("SPLITS", "0 1 2 scaffold").split():
            train, test = divide(molecules, how, int(os.environ.get("TRAIN", len(y) * 4 // 5)))
            if os.environ.get("INNER"):
                inner = [molecules[i] for i in train]
                a, b = divide(inner, "50" if how != "scaffold" else how, len(inner) * 4 // 5)
                train, test = train[a], train[b]
            forest = RandomForestClassifier(500, random_state=0)
            start = time.perf_counter()
            found = {"basin": basin(out, f"{table}-{target}-{how}", smiles, y, train, test)}
            seconds = time.perf_counter() - start
            found["forest"] = tabular(forest, bits, y, train, test)
            found["counts"] = tabular(forest, counts, y, train, test)
            found["boosted"] = tabular(boosted(), bits, y, train, test)
            scores = " ".join(f"{k} {roc_auc_score(y[test], p):.3f}" for k, p in found.items())
            print(f"{name} {how}: {len(train)} molecules, {y[train].sum()} active: {scores}; "
                  f"{seconds:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
