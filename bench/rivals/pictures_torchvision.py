"""The input pipeline of `basin bench --pictures` in torchvision, for comparison on the same cores.

    python bench/rivals/pictures_torchvision.py [--way pil|tensor] [--workers 2] FOLDER...

pil: Pillow decodes, transforms on PIL images. tensor: torchvision.io decodes (libjpeg-turbo), v2
transforms on uint8 tensors. Prints images/s of the epochs after the first, which starts the workers.
"""
import pathlib
import time

import torch
import torchvision
from PIL import Image
from torchvision import transforms
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

from common import options, report

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, folders, way, size):
        self.paths = sorted(str(p) for f in folders for p in pathlib.Path(f).rglob("*.jpg"))
        self.pil = way == "pil"
        kind = transforms if self.pil else v2
        to_float = kind.ToTensor() if self.pil else kind.ToDtype(torch.float32, scale=True)
        self.transform = kind.Compose([
            kind.RandomResizedCrop(size, antialias=True),
            kind.RandomHorizontalFlip(),
            kind.ColorJitter(0.4, 0.4, 0.4),
            to_float,
            kind.Normalize(MEAN, DEVIATION),
        ])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        if self.pil:
            with Image.open(self.paths[i]) as image:
                return self.transform(image.convert("RGB"))
        return self.transform(decode_image(self.paths[i], mode=ImageReadMode.RGB))


def images_per_second(loader):
    """The first batch, for which the workers start, is not counted."""
    start, seen = None, 0
    for batch in loader:
        if start is None:
            start = time.perf_counter()
        else:
            seen += len(batch)
    return seen / (time.perf_counter() - start)


def main():
    parser = options(__doc__.split("\n")[0], workers=2, batch=64, size=224, epochs=1)
    parser.add_argument("--way", choices=["pil", "tensor"], default="pil")
    parser.add_argument("folder", nargs="+")
    o = parser.parse_args()
    torch.set_num_threads(1)
    pictures = Pictures(o.folder, o.way, o.size)
    if len(pictures) < 2 * o.batch:
        parser.error(f"{len(pictures)} JPEG files; wanted two batches, {2 * o.batch}")
    loader = torch.utils.data.DataLoader(pictures, o.batch, shuffle=True, drop_last=True,
                                         num_workers=o.workers, persistent_workers=o.workers > 0)
    speeds = [images_per_second(loader) for _ in range(o.epochs + 1)][1:]
    report(rival="torchvision " + torchvision.__version__, what="pictures", way=o.way, size=o.size,
           workers=o.workers, images_per_s=[round(s, 1) for s in speeds])


if __name__ == "__main__":
    main()
