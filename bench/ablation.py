"""The paper's ablation at a size of your choice: trains Full, Self, NoHN + Self, NoHN and NoATT with each seed, scores them on
test pictures, prints a table and draws the learning curves.

    python bench/ablation.py fashion-mnist --seeds 1 2 3 -o ablation

Runs whose score is there already are not repeated, so that the command may be interrupted and given again. What every run has
in common (--options) defaults to a size that one core trains in a minute: 28 x 28 pixels, 16 patches, D 64, one epoch of
48,000 pictures, each seen once, so that the training loss is that of new pictures.

A model without attention cannot do better than the mean training picture, place by place: tokens are joined by attention
alone, so that a hidden one knows its place and nothing else. That mean's error is printed beside the table.
"""
import argparse, glob, gzip, json, os, struct, subprocess
import numpy as np

KINDS = {"Full": [], "Self": ["--self-attention"], "NoHN + Self": ["--no-hopfield", "--self-attention"],
         "NoHN": ["--no-hopfield"], "NoATT": ["--no-attention"]}
SMALL = "--preset fashion --patch 7 --dim 64 --heads 4 --head-dim 16 --memories 256 --steps 6 --batch 32 --rate 2e-3 --epochs 1 --warmup 0"


def call(o, out, *line):
    with open(out, "w") as to:
        subprocess.run([o.basin, "image", *line], check=True, stdout=to)


def run(o, name, seed):
    stem = f"{o.output}/{name.replace(' ', '')}-{seed}"
    if not os.path.exists(f"{stem}.json"):
        common = f"{o.output}/common.json"  # settings of a file may be idle: memories without the Hopfield network
        call(o, common, "train", *o.options.split(), "--print-config")
        compute = ["--quiet", *o.compute.split()]
        call(o, f"{stem}.log", "train", *o.pictures, "--config", common, *KINDS[name], "--limit", str(o.limit), "--seed", str(seed), "--log", f"{stem}.jsonl",
             "--log-every", "10", "--restart", "-o", f"{stem}.safetensors", *compute)
        call(o, f"{stem}.part", "eval", f"{stem}.safetensors", *(o.test or o.pictures), "--limit", str(o.scored), "--masks", str(o.masks), "--json", *compute)
        os.replace(f"{stem}.part", f"{stem}.json")
    with open(f"{stem}.json") as found:
        return json.load(found)


def mean_picture(folder, deviation, limit=0, scored=0):
    """Masked MSE of the mean training picture: masks are uniform, so that it is the mean over all pixels. idx files alone."""
    def read(half):
        path = [f for f in glob.glob(f"{folder}/*images-idx3*") if os.path.basename(f).startswith(half)][0]
        data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
        return np.frombuffer(data, np.uint8, offset=16).reshape(-1, *struct.unpack(">2I", data[8:16])) / 255
    return float(np.mean((read("t10k")[: scored or None] - read("train")[: limit or None].mean(0)) ** 2)) / deviation**2


def curve(path, width=6):
    rows = [json.loads(line) for line in open(path)]
    rows = [(r["step"], r["loss"]) for r in rows if "loss" in r and "epoch" not in r]
    step, loss = np.array(rows).T
    smooth = np.convolve(loss, np.ones(width) / width, "valid")
    return step[width - 1 :], smooth


def draw(o, best):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plot
    plot.figure(figsize=(7, 4))
    for k, name in enumerate(KINDS):
        for i, seed in enumerate(o.seeds):
            path = f"{o.output}/{name.replace(' ', '')}-{seed}.jsonl"
            if os.path.exists(path): plot.plot(*curve(path), color=f"C{k}", lw=1.2, label=None if i else name)
    if best: plot.axhline(best, color="grey", ls=":", label="mean picture")
    plot.xlabel("step"); plot.ylabel("loss (mean of 60 steps)"); plot.legend(); plot.grid(alpha=0.3)
    plot.tight_layout(); plot.savefig(f"{o.output}/ablation.png", dpi=110)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("pictures", nargs="+"); p.add_argument("--test", nargs="*", help="default: the test half of PICTURES")
    p.add_argument("--basin", default="build/basin"); p.add_argument("-o", "--output", default="ablation")
    p.add_argument("--options", default=SMALL); p.add_argument("--limit", type=int, default=48000, help="training pictures; 0: all"); p.add_argument("--compute", default="--threads 1")
    p.add_argument("--seeds", type=int, nargs="+", default=[1]); p.add_argument("--kinds", nargs="+", default=list(KINDS))
    p.add_argument("--scored", type=int, default=0, help="test pictures; 0: all"); p.add_argument("--masks", type=int, default=1)
    o = p.parse_args()
    os.makedirs(o.output, exist_ok=True)
    got = {name: [] for name in o.kinds}
    for seed in o.seeds:
        for name in o.kinds:
            got[name].append(run(o, name, seed))
            print(f"{name:12s} seed {seed}: {got[name][-1]['mse']:.4f}, deviation over pictures {got[name][-1]['mse_deviation_pictures']:.4f}", flush=True)
    print("\n" + " | ".join(o.kinds))
    print(" | ".join(f"{np.mean([r['mse'] for r in rows]):.4f} +- {np.std([r['mse'] for r in rows]):.4f} ({np.mean([r['mse_deviation_pictures'] for r in rows]):.3f})"
                     for rows in got.values()), "  mean +- deviation over seeds (over pictures)")
    best = None
    if glob.glob(f"{o.pictures[0]}/*images-idx3*"):
        probe = glob.glob(f"{o.output}/*.safetensors")[0]
        data = open(probe, "rb").read()
        meta = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]
        best = mean_picture(o.pictures[0], json.loads(meta["basin.config"])["deviation"][0], o.limit, o.scored)
        print(f"mean training picture, place by place: {best:.4f}")
    draw(o, best)


if __name__ == "__main__":
    main()
