#!/usr/bin/env python3
"""Filling holes in photographs: Basin beside a membrane, OpenCV's two methods and copied patches, by depth.

    python3 -m venv venv && venv/bin/pip install opencv-python-headless
    venv/bin/python bench/holes.py --basin build/basin LIST

LIST names photographs, one path per line (or it is a folder of them). The centre square of each is resized to --size
pixels; a hole (--shape) is cut at a place drawn by --seed. Means over photographs, of the missing pixels:

    PSNR, SSIM  against the truth (Gaussian windows of sigma 1.5)
    detail      energy of what is finer than a Gaussian of sigma 1.5, divided by that of the truth (sums over the
                photographs), at depths of 1 and 2 (the rim), 3 to 9, 10 to 23, and 24 and more pixels (the middle)
    patches     sliced Wasserstein distance of 7 x 7 patches, less their mean colour, to those of the truth, 128
                directions, divided by the membrane's: of all, and of those whose centre is in the middle
    seconds     CPU time per photograph on one thread, with the start of the program

Rivals: the membrane (Laplace's equation from the rim), Telea's and the Navier-Stokes inpainting of OpenCV, a plain
exemplar-based one (Criminisi, Perez, Toyama 2004: 9 x 9 patches by priority, best match of the known ones; slow).
Basin's rows: as it is; `untrained`: with a model of the same shape that has learnt nothing; `still`: the model's
tokens do not descend; `smooth`: --smooth, without the memory of the picture's patches.
"""
import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import cv2
import numpy

RIVALS = "membrane,Telea,Navier-Stokes"
OURS = {"Basin": [], "smooth": ["--smooth"], "still": ["--alpha", "1e-9"], "untrained": []}
BANDS = ((1, 2), (3, 9), (10, 23), (24, 10**6))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pictures", help="a file with one path per line, or a folder")
    parser.add_argument("--basin", default="build/basin")
    parser.add_argument("--model", help="default: the one that basin image complete takes")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--hole", type=int, default=64, help="side of the square, or of the box around a blob")
    parser.add_argument("--shape", choices=("square", "blob", "scratches"), default="square")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder to leave pictures, masks, results and sheets in")
    parser.add_argument("--only", default=RIVALS + ",Basin", help="rows, by commas; also exemplar, " + ", ".join(OURS))
    parser.add_argument("--each", help="a file for the figures of every photograph (CSV)")
    parser.add_argument("--options", default="", help="more options for basin image complete")
    return parser.parse_args()


def paths_of(place):
    if os.path.isdir(place):
        return sorted(os.path.join(place, name) for name in os.listdir(place))
    with open(place, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def centre(path, size):
    picture = cv2.imread(path, cv2.IMREAD_COLOR)
    if picture is None:
        return None
    height, width = picture.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return cv2.resize(picture[top : top + side, left : left + side], (size, size), interpolation=cv2.INTER_AREA)


def draw_mask(shape, size, side, draw):
    mask = numpy.zeros((size, size), numpy.uint8)
    if shape == "scratches":
        for _ in range(8):
            ends = [(draw.randrange(size), draw.randrange(size)) for _ in range(2)]
            cv2.line(mask, *ends, 255, draw.randrange(2, 8))
        return mask
    x, y = draw.randrange(size - side + 1), draw.randrange(size - side + 1)
    if shape == "square":
        mask[y : y + side, x : x + side] = 255
        return mask
    for _ in range(5):  # ellipses about the middle of the box
        at = (x + draw.randrange(side // 3, side - side // 3), y + draw.randrange(side // 3, side - side // 3))
        half = (draw.randrange(side // 6, side // 3), draw.randrange(side // 6, side // 3))
        cv2.ellipse(mask, at, half, draw.randrange(180), 0, 360, 255, -1)
    return mask


def depth_of(mask):
    """Chessboard distance to what is known; the end of the picture is not known."""
    return numpy.rint(cv2.distanceTransform(mask, cv2.DIST_C, 3)).astype(int)


def smooth(z, sigma=1.5):
    return cv2.GaussianBlur(z, (13, 13), sigma, borderType=cv2.BORDER_REPLICATE)


def patches_of(z, chosen):
    """Projections of the 7 x 7 patches around chosen pixels, less their mean colour, sorted."""
    directions = numpy.random.RandomState(1).randn(147, 128).astype(numpy.float32)
    directions /= numpy.linalg.norm(directions, axis=0)
    view = numpy.lib.stride_tricks.sliding_window_view(z, (7, 7), axis=(0, 1))
    view = view[chosen[3:-3, 3:-3]]
    return numpy.sort((view - view.mean(axis=(2, 3), keepdims=True)).reshape(-1, 147) @ directions, axis=0)


def distance(a, b, chosen):
    if not chosen[3:-3, 3:-3].any():
        return numpy.nan
    return float(numpy.sqrt(((patches_of(a, chosen) - patches_of(b, chosen)) ** 2).mean()))


def measures(filled, truth, mask):
    """PSNR, SSIM, patches, patches in the middle, detail by band, the truth's by band."""
    depth = depth_of(mask)
    hole = depth > 0
    a, b = filled.astype(numpy.float32) / 255, truth.astype(numpy.float32) / 255
    ma, mb = smooth(a), smooth(b)
    va, vb, ab = smooth(a * a) - ma**2, smooth(b * b) - mb**2, smooth(a * b) - ma * mb
    ssim = (2 * ma * mb + 1e-4) * (2 * ab + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4))
    error = ((filled.astype(float) - truth) ** 2)[hole].mean()
    inside = depth > 3 if (depth > 3).any() else hole
    fine = [((z - m) ** 2).sum(axis=2) for z, m in ((a, ma), (b, mb))]
    bands = [(depth >= low) & (depth <= high) for low, high in BANDS]
    detail = [z[band].sum() for z in fine for band in bands]
    far = distance(a, b, inside), distance(a, b, bands[-1])
    return [10 * numpy.log10(255**2 / max(error, 1e-10)), ssim[hole].mean(), *far, *detail]


def membrane(picture, mask):
    """Over-relaxation in two colours, begun with Telea's result."""
    z = cv2.inpaint(picture, mask, 3, cv2.INPAINT_TELEA).astype(numpy.float32)
    hole = mask > 0
    across = numpy.add.outer(numpy.arange(len(z)), numpy.arange(z.shape[1])) % 2
    ys, xs = numpy.nonzero(hole)
    box = numpy.s_[max(ys.min() - 1, 0) : ys.max() + 2, max(xs.min() - 1, 0) : xs.max() + 2]
    part, hole, across = z[box], hole[box], across[box]
    side = max(hole.shape)
    over = 2 / (1 + numpy.sin(numpy.pi / side))
    for _ in range(100 + 4 * side):
        for colour in (0, 1):
            grid = numpy.pad(part, ((1, 1), (1, 1), (0, 0)), mode="edge")
            mean = (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) / 4
            here = (hole & (across == colour))[..., None]
            part += over * here * (mean - part)
    return z.round().clip(0, 255).astype(numpy.uint8)


def exemplar(picture, mask, size=9):
    known = mask == 0
    now, confidence, half = picture.astype(numpy.float32), known.astype(numpy.float32), size // 2
    now[~known] = 0
    high, wide = known.shape
    sources = cv2.erode(known.astype(numpy.uint8), numpy.ones((size, size)), borderValue=1) > 0
    sources = sources[half : high - half, half : wide - half]
    while not known.all():
        edge = ~known & (cv2.dilate(known.astype(numpy.uint8), numpy.ones((3, 3))) > 0)
        grey, firm = now.mean(axis=2), cv2.erode(known.astype(numpy.uint8), numpy.ones((3, 3))) > 0
        gx, gy = (cv2.Sobel(grey, cv2.CV_32F, *k) * firm for k in ((1, 0), (0, 1)))
        nx, ny = (cv2.Sobel(known.astype(numpy.float32), cv2.CV_32F, *k) for k in ((1, 0), (0, 1)))
        mean = cv2.blur(confidence * known, (size, size), borderType=cv2.BORDER_CONSTANT)
        # the strongest isophote of a window, across the front
        strong, best, at = gx**2 + gy**2, -1, None
        for v, u in zip(*numpy.nonzero(edge)):
            top, left = max(v - half, 0), max(u - half, 0)
            window = strong[top : v + half + 1, left : u + half + 1]
            i, k = numpy.unravel_index(window.argmax(), window.shape)
            data = abs(-gy[top + i, left + k] * nx[v, u] + gx[top + i, left + k] * ny[v, u])
            priority = mean[v, u] * (data / (numpy.hypot(nx[v, u], ny[v, u]) + 1e-6) / 255 + 1e-3)
            if priority > best:
                best, at = priority, (v, u)
        v, u = numpy.clip(at[0], half, high - half - 1), numpy.clip(at[1], half, wide - half - 1)
        part = numpy.s_[v - half : v + half + 1, u - half : u + half + 1]
        there = known[part].copy()
        weights = numpy.repeat(there[..., None].astype(numpy.float32), 3, axis=2)
        far = numpy.where(sources, cv2.matchTemplate(now, now[part], cv2.TM_SQDIFF, mask=weights), numpy.inf)
        i, k = numpy.unravel_index(far.argmin(), far.shape)
        now[part][~there] = now[i : i + size, k : k + size][~there]
        confidence[part][~there] = mean[at]
        known[part] = True
    return now.round().astype(numpy.uint8)


def run(a, key, names, folder):
    """Completes all photographs in one run; CPU seconds per photograph."""
    done = os.path.join(folder, key)
    model = [a.model] if a.model else []
    if key == "untrained":
        model = [untrained(a, folder)]
    command = [a.basin, "image", "complete", *model, os.path.join(folder, "pictures"), "--threads", "1", "--quiet"]
    command += ["--mask", os.path.join(folder, "masks"), "--most-hidden", "1", "-o", done, *OURS[key], *a.options.split()]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    results = [cv2.imread(os.path.join(done, name + ".completed.png"), cv2.IMREAD_COLOR) for name in names]
    return results, seconds / len(names)


def untrained(a, folder):
    """A model of the shipped one's shape that has seen one photograph, at a rate that changes nothing."""
    path, one = os.path.join(folder, "untrained.safetensors"), os.path.join(folder, "one")
    os.makedirs(one, exist_ok=True)
    shutil.copy(os.path.join(folder, "pictures", "000.png"), one)
    command = [a.basin, "image", "train", one, "--preset", "paper-imagenet", "--no-self-attention", "--batch", "1"]
    command += ["--epochs", "1", "--warmup", "0", "--rate", "1e-12", "--rate-last", "0", "--quiet", "-o", path]
    if not os.path.exists(path):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def rival(key, pictures, masks):
    way = {"membrane": membrane, "exemplar": exemplar,
           "Telea": lambda p, m: cv2.inpaint(p, m, 3, cv2.INPAINT_TELEA),
           "Navier-Stokes": lambda p, m: cv2.inpaint(p, m, 3, cv2.INPAINT_NS)}[key]
    begin = time.process_time()
    results = []
    for picture, mask in zip(pictures, masks):
        holed = picture.copy()
        holed[mask > 0] = 0
        results.append(way(holed, mask))
    return results, (time.process_time() - begin) / len(pictures)


def sheet(path, pictures, masks, results):
    """One row per photograph: with the hole, every result, the truth."""
    rows = []
    for i, (picture, mask) in enumerate(zip(pictures, masks)):
        holed = picture.copy()
        holed[mask > 0] = 128
        rows.append(numpy.hstack([holed, *(results[key][i] for key in results), picture]))
    cv2.imwrite(path, numpy.vstack(rows))


def show(key, m, base, seconds):
    ratios = (m[:, 4:8].sum(axis=0) / numpy.maximum(m[:, 8:12].sum(axis=0), 1e-12))
    far, middle = (numpy.nanmean(m[:, k]) / numpy.nanmean(base[:, k]) for k in (2, 3))
    ahead = 100 * (m[:, 2] < base[:, 2]).mean()
    print("  %-14s PSNR %6.2f (%+.2f)  SSIM %.3f  detail %.2f %.2f %.2f %.2f  patches %.3f, middle %.3f  "
          "ahead of the membrane %3.0f %%  %.2f s" % (key, m[:, 0].mean(), m[:, 0].mean() - base[:, 0].mean(),
          m[:, 1].mean(), *ratios, far, middle, ahead, seconds), flush=True)


def main():
    a = arguments()
    folder = a.keep or tempfile.mkdtemp(prefix="holes-")
    for name in ("pictures", "masks"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    draw = random.Random(a.seed)
    pictures, masks, names = [], [], []
    for path in paths_of(a.pictures):
        picture = centre(path, a.size) if len(pictures) < a.count else None
        if picture is None:
            continue
        mask = draw_mask(a.shape, a.size, a.hole, draw)
        names.append("%03d" % len(pictures))
        for what, part in (("pictures", picture), ("masks", mask)):
            cv2.imwrite(os.path.join(folder, what, names[-1] + ".png"), part)
        pictures.append(picture)
        masks.append(mask)
    if not pictures:
        sys.exit("holes.py: %s: no photograph that can be read" % a.pictures)
    print("%d photographs of %d pixels, %s of %d, seed %d" % (len(pictures), a.size, a.shape, a.hole, a.seed))
    results, table = {}, {}
    keys = a.only.split(",")
    for key in keys if "membrane" in keys else ["membrane", *keys]:
        found, seconds = run(a, key, names, folder) if key in OURS else rival(key, pictures, masks)
        for name, result, picture, mask in zip(names, found, pictures, masks):
            if (result[mask == 0] != picture[mask == 0]).any():
                sys.exit("holes.py: %s: pixels outside the hole have changed" % name)
        results[key] = found
        table[key] = numpy.array([measures(*each) for each in zip(found, pictures, masks)])
        show(key, table[key], table["membrane"], seconds)
    if {"Basin", "untrained"} <= set(table):
        ahead = (table["Basin"][:, 2] < table["untrained"][:, 2]).mean()
        print("  the trained model is ahead of the untrained one in patches on %.0f %% of the photographs" % (100 * ahead))
    if a.each:
        with open(a.each, "w", encoding="utf-8") as file:
            for key, rows in table.items():
                for name, row in zip(names, rows):
                    print(key, name, *("%.5g" % z for z in row), sep=",", file=file)
    if a.keep:
        for i in range(0, len(names), 6):
            part = slice(i, i + 6)
            sheet(os.path.join(folder, "sheet%02d.png" % (i // 6)), pictures[part], masks[part],
                  {key: found[part] for key, found in results.items()})
    else:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
