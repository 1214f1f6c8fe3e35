"""Random forest and XGBoost on counted Morgan fingerprints (radius 2, 2,048 numbers) and chemprop
(D-MPNN, its defaults) on DeepChem's scaffold split, the one of `basin graph train --split scaffold`,
with the CPU seconds of each. Molecules are in standard form (largest part, neutral): as written,
charges give ClinTox's labels away.
Needs rdkit, scikit-learn, xgboost, chemprop.

    python bench/molecules/rivals.py FOLDER [esol freesolv bbbp clintox tox21 sider ..]

MODELS="forest boosted chemprop" says which, EPOCHS how long chemprop trains [50].
"""

import csv
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy
from rdkit import Chem, RDLogger
from rdkit.Chem import rdFingerprintGenerator
from rdkit.Chem.MolStandardize import rdMolStandardize
from rdkit.Chem.Scaffolds import MurckoScaffold
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import average_precision_score, roc_auc_score

RDLogger.DisableLog("rdApp.*")
SETS = {
    "esol": ["logSolubility"],
    "freesolv": ["freesolv"],
    "bbbp": ["p_np"],
    "clintox": ["CT_TOX"],
    "tox21": None,
    "sider": None,
    "qm7": ["u0_atom"],
    "hiv": None,
}


def read(path, targets):
    with open(path) as file:
        rows = list(csv.DictReader(file))
    targets = targets or [name for name in rows[0] if name != "smiles"]
    largest, neutral = rdMolStandardize.LargestFragmentChooser(), rdMolStandardize.Uncharger()
    known = [(Chem.MolFromSmiles(row["smiles"]), row) for row in rows]
    known = [(m and neutral.uncharge(largest.choose(m)), row) for m, row in known]
    known = [(m, row) for m, row in known if m and (len(targets) > 1 or row[targets[0]] != "")]
    y = [[float(row[t]) if row[t] else numpy.nan for t in targets] for _, row in known]
    return [m for m, _ in known], [Chem.MolToSmiles(m) for m, _ in known], numpy.array(y)


def split(molecules):
    groups, parts = {}, ([], [], [])
    for i, m in enumerate(molecules):
        groups.setdefault(MurckoScaffold.MurckoScaffoldSmiles(mol=m), []).append(i)
    for group in sorted(groups.values(), key=lambda g: (len(g), g[0]), reverse=True):
        train, valid, _ = parts
        if len(train) + len(group) <= len(molecules) * 8 // 10:
            parts[0].extend(group)
        elif len(train) + len(valid) + len(group) <= len(molecules) * 9 // 10:
            parts[1].extend(group)
        else:
            parts[2].extend(group)
    return parts


def measure(p, y, part):
    """Mean over targets: AUROC and average precision, or RMSE and MAE. p and y [part, targets]."""
    binary = numpy.isin(y[~numpy.isnan(y)], (0, 1)).all()
    found = []
    for c in range(y.shape[1]):
        known = [k for k, i in enumerate(part) if not numpy.isnan(y[i, c])]
        t, q = y[part][known, c], p[known, c]
        if not binary:
            found.append((numpy.sqrt(numpy.mean((t - q) ** 2)), numpy.mean(abs(t - q))))
        elif len(set(t)) == 2:
            found.append((roc_auc_score(t, q), average_precision_score(t, q)))
    return numpy.mean(found, axis=0)


def tabular(fit, x, y, parts):
    train, valid, test = parts
    binary = numpy.isin(y[~numpy.isnan(y)], (0, 1)).all()
    p = numpy.zeros((len(test), y.shape[1]))
    for c in range(y.shape[1]):
        known = [i for i in train + valid if not numpy.isnan(y[i, c])]
        p[:, c] = predict(fit(binary).fit(x[known], y[known, c]), x[test], binary)
    return p


def chemprop(smiles, y, parts):
    """The command of the package; validation molecules choose the epoch."""
    binary = numpy.isin(y[~numpy.isnan(y)], (0, 1)).all()
    names = [f"t{c}" for c in range(y.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        data, out = pathlib.Path(folder, "data.csv"), pathlib.Path(folder, "out")
        with open(data, "w") as file:
            rows = csv.writer(file)
            rows.writerow(["smiles", *names])
            for text, row in zip(smiles, y, strict=True):
                rows.writerow([text, *("" if numpy.isnan(v) else f"{v:g}" for v in row)])
        splits = pathlib.Path(folder, "splits.json")
        part = dict(zip(("train", "val", "test"), parts, strict=True))
        splits.write_text(json.dumps([part]))
        command = [f"{pathlib.Path(sys.executable).parent}/chemprop", "train", "-i", data]
        command += ["--task-type", "classification" if binary else "regression", "-o", out]
        command += ["--splits-file", splits, "--epochs", os.environ.get("EPOCHS", "50")]
        command += ["--smiles-columns", "smiles", "--target-columns", *names, "-n", "0"]
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        found = next(out.rglob("test_predictions.csv"))
        with open(found) as file:
            rows = list(csv.DictReader(file))
    return numpy.array([[float(row[n]) for n in names] for row in rows])


def forest(binary):
    kind = RandomForestClassifier if binary else RandomForestRegressor
    return kind(300, n_jobs=2, random_state=0)


def boosted(binary):
    import xgboost

    kind = xgboost.XGBClassifier if binary else xgboost.XGBRegressor
    return kind(n_estimators=300, max_depth=6, learning_rate=0.1, n_jobs=2, random_state=0)


def predict(model, x, binary):
    return model.predict_proba(x)[:, 1] if binary else model.predict(x)


def spent():
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(sum(resource.getrusage(k)[:2]) for k in kinds)


def main(folder, *names):
    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    models = os.environ.get("MODELS", "forest boosted chemprop").split()
    for name in names or SETS:
        molecules, smiles, y = read(f"{folder}/{name}.csv", SETS[name])
        x = numpy.array([make.GetCountFingerprintAsNumPy(m) for m in molecules])
        parts = split(molecules)
        for what in models:
            began = spent()
            if what == "chemprop":
                p = chemprop(smiles, y, parts)
            else:
                p = tabular({"forest": forest, "boosted": boosted}[what], x, y, parts)
            a, b = measure(p, y, parts[2])
            print(f"{name}: {what} {a:.4f} {b:.4f}, CPU {spent() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
