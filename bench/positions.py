"""Learned positions of image models side by side, as in the paper's appendix: how beta and weight
decay shape them.

    python3 bench/positions.py FIGURE.png MODEL.safetensors...

A square of maps for each model: a map per patch, at its place, with the cosines of its position
with all others, in one scale of colours. Prints the mean cosine of patches that share an edge, and
of any two. Needs NumPy, safetensors and matplotlib."""

import sys

import matplotlib
import numpy as np
from safetensors.numpy import load_file

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def cosines(path: str) -> np.ndarray:
    """[N, N] of the patches; a CLS token before them is left out."""
    position = load_file(path)["pos"].astype(np.float64)
    across = int(np.sqrt(len(position)))
    position = position[len(position) - across * across :]
    position /= np.maximum(np.linalg.norm(position, axis=1, keepdims=True), 1e-300)
    return position @ position.T


def main(figure: str, *models: str) -> None:
    maps = [cosines(path) for path in models]
    low = min(m.min() for m in maps)
    _, axes = plt.subplots(1, len(maps), figsize=(4 * len(maps), 4), squeeze=False)
    for path, m, axis in zip(models, maps, axes[0], strict=True):
        n = len(m)
        across = int(np.sqrt(n))
        i, j = np.tril_indices(n, -1)
        beside = (i - j == across) | ((i - j == 1) & (i % across > 0))
        print(f"{path}: next patches {m[i, j][beside].mean():.3f}, any {m[i, j].mean():.3f}")
        tiles = m.reshape(across, across, across, across).transpose(0, 2, 1, 3).reshape(n, n)
        axis.imshow(tiles, vmin=low, vmax=1)
        axis.set_axis_off()
        axis.set_title(path, fontsize=8)
    plt.savefig(figure, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
