#!/usr/bin/env python3
"""Parts the photographs that the shipped model is trained on: train/, val/ and test/, by a seed.

    python3 bench/photographs.py DATA OUT

DATA holds folders of photographs: imagenet, bsds, flowers, and more/ with imagenet_val and others. Of imagenet 200 are
for test and of imagenet_val 100 for validation, drawn by seed 14; all others train. OUT gets links to the files, so
that it takes no room. Then:

    basin image train OUT/train --test OUT/val -o photos.safetensors ...
"""

import pathlib
import random
import sys


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def main(data, out):
    draw = random.Random(14)
    test = set(draw.sample(names(data / "imagenet"), 200))
    val = set(draw.sample(names(data / "more" / "imagenet_val"), 100))
    others = sorted(path for path in (data / "more").iterdir() if path.is_dir())
    count = {"train": 0, "val": 0, "test": 0}
    for folder in [data / "imagenet", data / "bsds", data / "flowers", *others]:
        for name in names(folder):
            part = "train"
            if folder.name == "imagenet" and name in test:
                part = "test"
            if folder.name == "imagenet_val" and name in val:
                part = "val"
            to = out / part / folder.name
            to.mkdir(parents=True, exist_ok=True)
            (to / name).symlink_to((folder / name).resolve())
            count[part] += 1
    print(", ".join(f"{part} {n}" for part, n in count.items()))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
