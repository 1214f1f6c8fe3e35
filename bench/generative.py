"""How good are samples of `basin image sample`? And what do simple scores say of pictures that do not belong?

    basin image sample clothes.safetensors -n 5000 --folder samples
    python bench/generative.py --train fashion-mnist --test fashion-mnist --samples energy=samples --odd digits=mnist

A small convolutional network is trained on the labels of the training pictures (ours: no figure of it can be compared
with Frechet distances in features of Inception). The Frechet distance is between its 64 features of the samples and of the
test pictures; beside it those of as many training pictures, of a Gaussian that is fitted to the training pictures' pixels
(the floor), and of the test pictures with noise. Of pictures that do not belong: AUROC of the Mahalanobis distance to that Gaussian
and of the likelihood under probabilistic PCA, and of the model's outlier score and energy, from what `basin image eval` says:

    basin image eval clothes.safetensors fashion-mnist --best 10000 --json > own.json
    basin image eval clothes.safetensors mnist --best 10000 --json > digits.json
    python bench/generative.py .. --energies digits=own.json,digits.json

PICTURES: a folder of idx files (Fashion-MNIST, MNIST), a folder with a folder of pictures per class, or a plain folder.
"""
import argparse, glob, gzip, json, os, struct, zlib
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F


def read_png(path):
    """8 bits, grey or RGB, not interlaced: what basin writes."""
    data, at, body = open(path, "rb").read(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IHDR": width, height, _, colour = struct.unpack(">IIBB", data[at + 8 : at + 18])
        if kind == b"IDAT": body += data[at + 8 : at + 8 + size]
        at += size + 12
    c = 3 if colour == 2 else 1
    raw, stride = zlib.decompress(body), width * c
    out, up = bytearray(), bytes(stride)
    for y in range(height):
        f, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for x in range(stride if f else 0):
            a, b, d = line[x - c] if x >= c else 0, up[x], up[x - c] if x >= c else 0
            if f == 4:
                pa, pb, pd = abs(b - d), abs(a - d), abs(a + b - 2 * d)
                guess = a if pa <= pb and pa <= pd else b if pb <= pd else d
            else:
                guess = (0, a, b, (a + b) // 2)[f]
            line[x] = line[x] + guess & 255
        out += line
        up = line
    return np.frombuffer(bytes(out), np.uint8).reshape(height, width, c)


def read_picture(path):
    if path.endswith(".png"): return read_png(path)
    from PIL import Image
    a = np.asarray(Image.open(path))
    return a if a.ndim == 3 else a[..., None]


def idx(path):
    data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    shape = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def load(path, half, limit):
    """Pictures [n, height, width, channels] and labels, or None."""
    found = [f for f in glob.glob(f"{path}/*idx3-ubyte*") if os.path.basename(f).startswith(half)]
    if found:
        labels = found[0].replace("images-idx3", "labels-idx1")
        return idx(found[0])[..., None][:limit], idx(labels)[:limit] if os.path.exists(labels) else None
    inner = f"{path}/{'train' if half == 'train' else 'test'}"
    path = inner if os.path.isdir(inner) else path
    classes = sorted(d for d in os.listdir(path) if os.path.isdir(f"{path}/{d}"))
    files = [(f, k) for k, d in enumerate(classes or ["."]) for f in sorted(glob.glob(f"{path}/{d}/*.*g"))]
    order = np.random.default_rng(0).permutation(len(files))[:limit] if classes else range(min(len(files), limit))
    pictures = np.stack([read_picture(files[i][0]) for i in order])
    return pictures, np.array([files[i][1] for i in order]) if classes else None


def classifier(x, labels, device, steps):
    torch.manual_seed(5)
    c, size = x.shape[1], x.shape[2]
    block = lambda a, b, s: [nn.Conv2d(a, b, 3, stride=s, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
    side = (size + 3) // 4
    net = nn.Sequential(*block(c, 32, 1), *block(32, 64, 2), *block(64, 128, 2), *block(128, 128, 1), nn.Flatten(),
                        nn.Linear(128 * side * side, 64), nn.ReLU(), nn.Linear(64, int(labels.max()) + 1)).to(device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps)
    for _ in range(steps):
        i = torch.randint(0, len(x), (128,), device=device)
        batch = torch.where(torch.rand(128, 1, 1, 1, device=device) < 0.5, x[i].flip(3), x[i])
        loss = F.cross_entropy(net(batch), labels[i])
        optimiser.zero_grad(); loss.backward(); optimiser.step(); schedule.step()
    return net.eval()


def moments(f): return f.mean(0), torch.cov(f.T)


def frechet(a, b):
    (m, s), (k, r) = a, b
    w, u = torch.linalg.eigh(s)
    root = u @ torch.diag(w.clamp(min=0).sqrt()) @ u.T
    both = torch.linalg.eigvalsh(root @ r @ root).clamp(min=0).sqrt().sum()
    return float((m - k).square().sum() + s.trace() + r.trace() - 2 * both)


def auroc(low, high):
    z = torch.cat([low, high])
    rank = z.argsort().argsort().double() + 1
    m = len(high)
    return float((rank[len(low):].sum() - m * (m + 1) / 2) / (m * len(low)))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--train", required=True); p.add_argument("--test", required=True)
    p.add_argument("--samples", nargs="*", default=[], help="NAME=FOLDER")
    p.add_argument("--odd", nargs="*", default=[], help="NAME=PICTURES that do not belong")
    p.add_argument("--energies", nargs="*", default=[], help="NAME=OWN.json,OTHER.json")
    p.add_argument("--limit", type=int, default=60000); p.add_argument("--steps", type=int, default=3000)
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensor = lambda a: torch.tensor(np.ascontiguousarray(a.transpose(0, 3, 1, 2)), dtype=torch.float32, device=device) / 255
    train, label = load(o.train, "train", o.limit)
    test, test_label = load(o.test, "t10k" if glob.glob(f"{o.test}/t10k*") else "test", o.limit)
    x, t = tensor(train), tensor(test)
    net = classifier(x, torch.tensor(label.astype(np.int64), device=device), device, o.steps)
    with torch.no_grad():
        features = lambda a: torch.cat([net[:-1](c) for c in a.split(500)]).double()
        right = (torch.cat([net(c) for c in t.split(500)]).argmax(1).cpu().numpy() == test_label).mean() if test_label is not None else float("nan")
        print(f"classifier: {len(x)} pictures, {100 * right:.1f} % of {len(t)} test pictures right")
        real = moments(features(t))
        named = [(s.split("=")[0], tensor(load(s.split("=")[1], "", 10**9)[0])) for s in o.samples]
        count = min([len(s) for _, s in named] or [2000])
        torch.manual_seed(o.seed)
        flat = x.reshape(len(x), -1).double()
        mean, cov = flat.mean(0), torch.cov(flat.T) + 1e-6 * torch.eye(flat.shape[1], device=device, dtype=torch.double)
        draw = mean + torch.randn(count, len(mean), device=device, dtype=torch.double) @ torch.linalg.cholesky(cov).T
        gauss = draw.clamp(0, 1).float().reshape(count, *x.shape[1:])
        sets = [("training pictures", x[torch.randperm(len(x), device=device)[:count]]), ("Gaussian fit", gauss),
                ("test pictures, noise 0.1", (t + 0.1 * torch.randn_like(t)).clamp(0, 1)[:count])] + named
        for name, s in sets:
            print(f"Frechet distance of {name:28s} {frechet(moments(features(s[:count])), real):9.2f}  ({min(count, len(s))})", flush=True)
        w, u = torch.linalg.eigh(cov)
        top, rest = u[:, -64:], w[:-64].mean()
        inverse = torch.linalg.inv(cov)
        def mahalanobis(a): d = a.reshape(len(a), -1).double() - mean; return (d @ inverse * d).sum(1)
        def pca(a):
            d = a.reshape(len(a), -1).double() - mean; z = d @ top
            return (z * z / w[-64:]).sum(1) + ((d * d).sum(1) - (z * z).sum(1)) / rest
        for s in o.odd + ["Gaussian samples"]:
            name, _, path = s.partition("=")
            odd = tensor(load(path, "t10k" if glob.glob(f"{path}/t10k*") else "test", 2000)[0]) if path else gauss
            print(f"AUROC against {name}: Mahalanobis {auroc(mahalanobis(t), mahalanobis(odd)):.3f}, PCA {auroc(pca(t), pca(odd)):.3f}", flush=True)
        for s in o.energies:
            name, _, paths = s.partition("=")
            own, other = ([json.load(open(f))["best"] for f in paths.split(",")])
            for key in ("outlier", "energy", "error"):
                score = [torch.tensor([row[key] for row in rows]).double() for rows in (own, other)]
                print(f"AUROC against {name}: {key} {auroc(*score):.3f}", flush=True)


if __name__ == "__main__":
    main()
