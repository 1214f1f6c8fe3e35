"""The input pipeline of `basin bench pictures` in torchvision, for comparison on the same cores.

    python bench/rivals/pictures_torchvision.py [--way pil|tensor] [--workers 2] FOLDER...

pil: Pillow decodes, transforms on PIL images. tensor: torchvision.io decodes (libjpeg-turbo), v2
transforms on uint8 tensors. Prints images/s of each epoch after the first, which starts the workers.
"""
import argparse
import pathlib
import time

import torch
from PIL import Image
from torchvision import transforms
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

parser = argparse.ArgumentParser()
parser.add_argument("folder", nargs="+")
parser.add_argument("--way", choices=["pil", "tensor"], default="pil")
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--epochs", type=int, default=1)
args = parser.parse_args()

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, folders):
        self.paths = sorted(str(p) for f in folders for p in pathlib.Path(f).rglob("*.jpg"))
        if args.way == "pil":
            self.transform = transforms.Compose([
                transforms.RandomResizedCrop(args.size),
                transforms.RandomHorizontalFlip(),
                transforms.ColorJitter(0.4, 0.4, 0.4),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, DEVIATION),
            ])
        else:
            self.transform = v2.Compose([
                v2.RandomResizedCrop(args.size, antialias=True),
                v2.RandomHorizontalFlip(),
                v2.ColorJitter(0.4, 0.4, 0.4),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, DEVIATION),
            ])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        if args.way == "pil":
            with Image.open(self.paths[i]) as image:
                return self.transform(image.convert("RGB"))
        return self.transform(decode_image(self.paths[i], mode=ImageReadMode.RGB))


def main():
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        Pictures(args.folder), batch_size=args.batch, shuffle=True, drop_last=True,
        num_workers=args.workers, persistent_workers=args.workers > 0)
    for epoch in range(args.epochs + 1):
        start, seen = None, 0
        for batch in loader:
            if start is None:  # the workers' start and first batch are not counted
                start = time.perf_counter()
                continue
            seen += len(batch)
        if epoch:
            print(f"{seen / (time.perf_counter() - start):.1f}", flush=True)


if __name__ == "__main__":
    main()
