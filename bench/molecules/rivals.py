"""Random forest and XGBoost on Morgan fingerprints (radius 2, 2,048 bits) on DeepChem's scaffold
split, the one of `basin graph train --split scaffold`. Needs rdkit, scikit-learn, xgboost.

    python bench/molecules/rivals.py FOLDER [esol freesolv bbbp clintox tox21]
"""

import csv
import sys

import numpy
from rdkit import Chem, RDLogger
from rdkit.Chem import rdFingerprintGenerator
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
}


def read(path, targets):
    with open(path) as file:
        rows = list(csv.DictReader(file))
    targets = targets or [name for name in rows[0] if name != "smiles"]
    known = [(Chem.MolFromSmiles(row["smiles"]), row) for row in rows]
    known = [(m, row) for m, row in known if m and (len(targets) > 1 or row[targets[0]] != "")]
    y = [[float(row[t]) if row[t] else numpy.nan for t in targets] for _, row in known]
    return [m for m, _ in known], numpy.array(y)


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


def scores(fit, predict, x, y, parts):
    """Mean over targets: AUROC and average precision, or RMSE and MAE."""
    train, valid, test = parts
    binary = numpy.isin(y[~numpy.isnan(y)], (0, 1)).all()
    found = []
    for c in range(y.shape[1]):
        known = [[i for i in part if not numpy.isnan(y[i, c])] for part in (train + valid, test)]
        if binary and len(set(y[known[1], c])) < 2:
            continue
        model = fit(binary).fit(x[known[0]], y[known[0], c])
        p, t = predict(model, x[known[1]], binary), y[known[1], c]
        if binary:
            found.append((roc_auc_score(t, p), average_precision_score(t, p)))
        else:
            found.append((numpy.sqrt(numpy.mean((t - p) ** 2)), numpy.mean(abs(t - p))))
    return numpy.mean(found, axis=0)


def forest(binary):
    kind = RandomForestClassifier if binary else RandomForestRegressor
    return kind(300, n_jobs=2, random_state=0)


def boosted(binary):
    import xgboost

    kind = xgboost.XGBClassifier if binary else xgboost.XGBRegressor
    return kind(n_estimators=300, max_depth=6, learning_rate=0.1, n_jobs=2, random_state=0)


def predict(model, x, binary):
    return model.predict_proba(x)[:, 1] if binary else model.predict(x)


def main(folder, *names):
    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    for name in names or SETS:
        molecules, y = read(f"{folder}/{name}.csv", SETS[name])
        x = numpy.array([make.GetFingerprintAsNumPy(m) for m in molecules])
        parts = split(molecules)
        for what, fit in (("random forest", forest), ("XGBoost", boosted)):
            a, b = scores(fit, predict, x, y, parts)
            print(f"{name}: {what} {a:.4f} {b:.4f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
