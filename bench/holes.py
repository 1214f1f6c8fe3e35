#!/usr/bin/env python3
"""Filling holes in photographs: Basin beside OpenCV's Telea inpainting and the rim's mean colour.

    python3 -m venv venv && venv/bin/pip install opencv-python-headless
    venv/bin/python bench/holes.py --basin build/basin --model models/photos.safetensors LIST

LIST names photographs, one path a line (or it is a folder of them). The centre square of each is
resized to --size pixels; a square hole of --hole pixels is cut at a place drawn by --seed. Printed
are the mean PSNR inside the hole for all three, and the seam: the mean absolute step between
neighbouring pixels where borders of windows or patches could lie, by that beside them.
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


def rim_mean(picture, hole):
    x, y, side = hole
    rim = numpy.zeros(picture.shape[:2], bool)
    rim[max(y - 1, 0) : y + side + 1, max(x - 1, 0) : x + side + 1] = True
    rim[y : y + side, x : x + side] = False
    filled = picture.copy()
    filled[y : y + side, x : x + side] = picture[rim].mean(axis=0).round()
    return filled


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
    command = [a.basin, "image", "complete"] + ([a.model] if a.model else [])
    command += [sources, "--mask", masks, "--quiet", "-o", done] + a.options.split()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    table = {"Basin": [], "Telea": [], "mean of the rim": []}
    results = []
    for picture, hole, name in zip(pictures, holes, names):
        mask = cv2.imread(os.path.join(masks, name + ".png"), cv2.IMREAD_GRAYSCALE)
        ours = cv2.imread(os.path.join(done, name + ".completed.png"), cv2.IMREAD_COLOR)
        holed = picture.copy()
        holed[mask > 0] = 0
        if (ours[mask == 0] != picture[mask == 0]).any():
            sys.exit("holes.py: %s: pixels outside the hole have changed" % name)
        results.append(ours)
        row = {
            "Basin": ours,
            "Telea": cv2.inpaint(holed, mask, 3, cv2.INPAINT_TELEA),
            "mean of the rim": rim_mean(picture, hole),
        }
        for key, result in row.items():
            table[key].append(psnr(result, picture, hole))
        if a.each:
            print(name, *("%s %.2f" % (key, table[key][-1]) for key in table))
    print("%d photographs of %d pixels, holes of %d x %d" % (len(pictures), a.size, a.hole, a.hole))
    for key, values in table.items():
        print("  %-16s %.2f dB" % (key, numpy.mean(values)))
    print("  seam             %.3f (photographs as they are: %.3f)"
          % (seam(results, holes), seam(pictures, holes)))
    if not a.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
