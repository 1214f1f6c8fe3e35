"""How many hidden molecules the intervals and sets of `basin graph predict` cover where 90 % are
promised: all, those below and above similarity 0.4 to training, and each class. A fifth of the rows
is hidden, or the scaffold split's test.

python coverage.py PROGRAM DATA NAME TARGET random|scaffold EPOCHS MEMBERS SEED
"""

import csv
import random
import subprocess
import sys
import tempfile

program, data, name, target, split, epochs, members, seed = sys.argv[1:]
with open(f"{data}/{name}.csv") as file:
    header, *rows = csv.reader(file)
if split == "random":
    random.Random(int(seed)).shuffle(rows)
with tempfile.TemporaryDirectory() as folder:
    hidden = rows[: len(rows) // 5] if split == "random" else rows
    learnt, asked = f"{folder}/learnt.csv", f"{folder}/asked.csv"
    trained = rows[len(rows) // 5 :] if split == "random" else rows
    for path, part in ((learnt, trained), (asked, hidden)):
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([header, *part])
    how = ["--split", split] if split == "scaffold" else []
    model = f"{folder}/model.safetensors"
    train = ["--target", target, "--epochs", epochs, "--members", members, "--seed", seed]
    train += ["-o", model, *how]
    run = {"check": True, "capture_output": True, "text": True}
    subprocess.run([program, "graph", "train", learnt, *train], **run)
    found = subprocess.run(
        [program, "graph", "predict", model, asked, *how],
        check=True,
        capture_output=True,
        text=True,
    )
counts: dict = {}
for row in csv.DictReader(found.stdout.splitlines()):
    truth = float(hidden[int(row["line"]) - 2][header.index(target)])
    keys = ["all", "below 0.4" if float(row["nearest"]) < 0.4 else "above 0.4"]
    if "set" in row:
        right = f"{truth:.0f}" in row["set"].split("|")
        keys.append(f"class {truth:.0f}")
    else:
        right = float(row[f"{target}_low"]) <= truth <= float(row[f"{target}_high"])
    for key in keys:
        covered, count = counts.get(key, (0, 0))
        counts[key] = covered + right, count + 1
for key, (covered, count) in sorted(counts.items()):
    print(f"{name} {split} seed {seed} {key}: {covered / count:.3f} of {count}")
