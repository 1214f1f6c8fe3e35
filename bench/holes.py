#!/usr/bin/env python3
"""Filling holes in photographs: Basin beside a membrane, OpenCV's two methods and copied patches.

    python3 -m venv venv && venv/bin/pip install opencv-python-headless
    venv/bin/python bench/holes.py --basin build/basin --model models/photos.safetensors LIST

LIST names photographs, one path a line (or it is a folder of them). The centre square of each is
resized to --size pixels; a square hole of --hole pixels is cut at a place drawn by --seed. Means over
photographs, of the hole alone:

    PSNR, SSIM  against the truth (Gaussian windows of sigma 1.5)
    detail      energy of what is finer than a Gaussian of sigma 1.5, by that of a ring of 16 pixels around
    Wasserstein sliced distance of 7 x 7 patches to those of the truth, 128 directions, values 0 to 1
    seam        mean absolute step between neighbouring pixels where borders of windows or patches could
                lie, by that beside them

Rivals: the membrane (Laplace's equation from the rim), Telea's and the Navier-Stokes inpainting of OpenCV, a plain
exemplar-based one (Criminisi, Perez, Toyama 2004: 9 x 9 patches by priority, best match of the known ones).
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

import cv2
import numpy


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pictures", help="a file with one path a line, or a folder")
    parser.add_argument("--basin", default="build/basin")
    parser.add_argument("--model", help="default: the one that basin image complete takes")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--hole", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder to leave pictures, masks and results in")
    parser.add_argument("--only", default="membrane,Telea,Navier-Stokes,exemplar,Basin", help="methods, by commas")
    parser.add_argument("--each", action="store_true", help="print every picture")
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


def psnr(a, b, hole):
    x, y, side = hole
    part = numpy.s_[y : y + side, x : x + side]
    error = numpy.mean((a[part].astype(float) - b[part].astype(float)) ** 2)
    return 10 * numpy.log10(255**2 / max(error, 1e-10))


def smooth(z, sigma=1.5):
    return cv2.GaussianBlur(z, (13, 13), sigma, borderType=cv2.BORDER_REPLICATE)


def measures(filled, truth, hole):
    """PSNR, SSIM, detail, Wasserstein."""
    x, y, side = hole
    part = numpy.s_[y : y + side, x : x + side]
    a, b = filled.astype(numpy.float32) / 255, truth.astype(numpy.float32) / 255
    ma, mb = smooth(a), smooth(b)
    va, vb, ab = smooth(a * a) - ma**2, smooth(b * b) - mb**2, smooth(a * b) - ma * mb
    ssim = (2 * ma * mb + 1e-4) * (2 * ab + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4))
    ring = numpy.zeros(a.shape[:2], bool)
    ring[max(y - 16, 0) : y + side + 16, max(x - 16, 0) : x + side + 16] = True
    ring[part] = False
    fine = ((a - ma) ** 2).sum(axis=2)
    directions = numpy.random.RandomState(1).randn(147, 128)
    directions /= numpy.linalg.norm(directions, axis=0)
    sorted_ = []
    for z in (a[part], b[part]):
        patches = numpy.lib.stride_tricks.sliding_window_view(z, (7, 7), axis=(0, 1)).reshape(-1, 147)
        sorted_.append(numpy.sort(patches @ directions, axis=0))
    far = numpy.sqrt(((sorted_[0] - sorted_[1]) ** 2).mean())
    return psnr(filled, truth, hole), ssim[part].mean(), fine[part].mean() / fine[ring].mean(), far


def membrane(picture, hole):
    x, y, side = hole
    grid = numpy.pad(picture.astype(float), ((1, 1), (1, 1), (0, 0)), mode="edge")
    part = grid[y : y + side + 2, x : x + side + 2]
    part[1:-1, 1:-1] = part[0].mean(axis=0)
    inside = numpy.add.outer(numpy.arange(side), numpy.arange(side)) % 2
    at_edge = (y == 0, x == 0, y + side == len(picture), x + side == picture.shape[1])
    for _ in range(1500):
        for colour in (0, 1):
            if at_edge[0]: part[0] = part[1]
            if at_edge[1]: part[:, 0] = part[:, 1]
            if at_edge[2]: part[-1] = part[-2]
            if at_edge[3]: part[:, -1] = part[:, -2]
            mean = (part[:-2, 1:-1] + part[2:, 1:-1] + part[1:-1, :-2] + part[1:-1, 2:]) / 4
            centre_ = part[1:-1, 1:-1]
            centre_ += 1.9 * (inside == colour)[..., None] * (mean - centre_)
    filled = picture.copy()
    filled[y : y + side, x : x + side] = part[1:-1, 1:-1].round().clip(0, 255)
    return filled


def exemplar(picture, hole, size=9):
    x, y, side = hole
    known = numpy.ones(picture.shape[:2], bool)
    known[y : y + side, x : x + side] = False
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


def steps(picture, hole):
    """Sums of absolute steps inside the hole between columns and between rows, [side - 1] each."""
    x, y, side = hole
    part = picture[y : y + side, x : x + side].astype(float)
    across = numpy.abs(numpy.diff(part, axis=1)).mean(axis=(0, 2))
    down = numpy.abs(numpy.diff(part, axis=0)).mean(axis=(1, 2))
    return across, down


def seam(results, holes, rim=8, most=16, near=2):
    """Borders of windows and patches lie at regular places of the hole. So steps are sorted by their
    place modulo every period up to `most`, and the mean of each class is divided by that of the steps
    `near` by on both sides: the largest quotient. (By all others in the hole instead, the detail that
    every filling has near the rim would count as a seam.)"""
    worst = 0
    for axis in (0, 1):
        line = sum(steps(r, h)[axis] for r, h in zip(results, holes))
        moves = [k for k in range(-near, near + 1) if k]
        beside = sum(numpy.roll(line, k) for k in moves) / len(moves)
        place = numpy.arange(len(line))
        inside = (place >= rim) & (place < len(line) - rim)
        for period in range(4, most + 1):
            for phase in range(period):
                here = inside & (place % period == phase)
                worst = max(worst, line[here].mean() / beside[here].mean())
    return worst


def main():
    a = arguments()
    folder = a.keep or tempfile.mkdtemp(prefix="holes-")
    sources, masks, done = (os.path.join(folder, name) for name in ("pictures", "masks", "completed"))
    for place in (sources, masks, done):
        os.makedirs(place, exist_ok=True)
    draw = random.Random(a.seed)
    pictures, holes, names = [], [], []
    for path in paths_of(a.pictures):
        picture = centre(path, a.size) if len(pictures) < a.count else None
        if picture is None:
            continue
        hole = (draw.randrange(a.size - a.hole + 1), draw.randrange(a.size - a.hole + 1), a.hole)
        mask = numpy.zeros((a.size, a.size), numpy.uint8)
        mask[hole[1] : hole[1] + a.hole, hole[0] : hole[0] + a.hole] = 255
        names.append("%03d" % len(pictures))
        cv2.imwrite(os.path.join(sources, names[-1] + ".png"), picture)
        cv2.imwrite(os.path.join(masks, names[-1] + ".png"), mask)
        pictures.append(picture)
        holes.append(hole)
    if not pictures:
        sys.exit("holes.py: %s: no photograph that can be read" % a.pictures)
    names_of, results = a.only.split(","), []
    if "Basin" in names_of:
        command = [a.basin, "image", "complete"] + ([a.model] if a.model else [])
        command += [sources, "--mask", masks, "--quiet", "-o", done] + a.options.split()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    table = {key: [] for key in names_of}
    for picture, hole, name in zip(pictures, holes, names):
        mask = cv2.imread(os.path.join(masks, name + ".png"), cv2.IMREAD_GRAYSCALE)
        holed = picture.copy()
        holed[mask > 0] = 0
        for key in names_of:
            if key == "Basin":
                result = cv2.imread(os.path.join(done, name + ".completed.png"), cv2.IMREAD_COLOR)
                results.append(result)
                if (result[mask == 0] != picture[mask == 0]).any():
                    sys.exit("holes.py: %s: pixels outside the hole have changed" % name)
            elif key in ("membrane", "exemplar"):
                result = {"membrane": membrane, "exemplar": exemplar}[key](picture, hole)
            else:
                way = cv2.INPAINT_TELEA if key == "Telea" else cv2.INPAINT_NS
                result = cv2.inpaint(holed, mask, 3, way)
            table[key].append(measures(result, picture, hole))
            if a.keep:
                cv2.imwrite(os.path.join(folder, "%s.%s.png" % (name, key)), result)
        if a.each:
            print(name, *("%s %.2f" % (key, table[key][-1][0]) for key in table), flush=True)
    print("%d photographs of %d pixels, holes of %d x %d, seed %d" % (len(pictures), a.size, a.hole, a.hole, a.seed))
    for key, rows in table.items():
        m = numpy.array(rows)
        print("  %-14s PSNR %.2f dB, SSIM %.3f, detail %.2f (median %.2f), Wasserstein %.4f"
              % (key, m[:, 0].mean(), m[:, 1].mean(), m[:, 2].mean(), numpy.median(m[:, 2]), m[:, 3].mean()))
    if results:
        print("  seam %.3f (photographs as they are: %.3f)" % (seam(results, holes), seam(pictures, holes)))
    if not a.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
