"""Draws what search.py found by depth and by breadth.

python examples/sudoku/search.py sudoku.safetensors boards.csv --steps 1024 --output boards.pt
python examples/sudoku/search.py sudoku.safetensors hardest.csv --starts 64 --steps 512 --assume 16 --rounds 4 --output hardest.pt
python examples/sudoku/draw.py boards.pt hardest.pt curves.svg
"""

import sys

import torch
from matplotlib import pyplot
from search import held

CHOICES = (("rules", "#1b7837"), ("energy", "#2166ac"), ("rest", "#b2182b"))


def chosen(found, by, breadth):
    """Percent of puzzles, by depth, whose answer is right, chosen of the first `breadth` starts."""
    right, energy, move, kept = (found[k][:, :, :breadth] for k in ("right", "energy", "move", "kept"))
    if by == "rest":
        answer = right.gather(2, move.argmin(2, keepdim=True))[:, :, 0]
    else:
        answer = held(right, energy).bool()
    if by == "rules":
        answer = answer | kept.any(2)
    return answer.float().mean(1) * 100


def main(boards, hardest, output):
    pyplot.rcParams.update(
        {
            "svg.hashsalt": "basin",
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    boards, hardest = torch.load(boards), torch.load(hardest)
    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(10, 3.2), layout="constrained", sharey=True)
    states = boards["right"][:, :, 0].float().mean(1) * 100
    left.plot(boards["depths"], states, "o:", color="#999999", markersize=3, label="states")
    left.plot(boards["depths"], chosen(boards, "energy", 1), "o-", color="#2166ac", markersize=3, label="by energy")
    left.set(xscale="log", xlabel="steps", ylabel="% solved", title="Royle's test boards, one start", ylim=(-2, 102))
    starts, depths = hardest["right"].shape[2], hardest["depths"]
    widths = [2**k for k in range(20) if 2**k <= starts]
    for k, width in enumerate(widths[::2]):
        shade = str(0.75 - 0.75 * k / max(1, len(widths[::2]) - 1))
        middle.plot(
            depths,
            chosen(hardest, "rules", width),
            "o-",
            color=shade,
            markersize=3,
            label=f"{width} start{'s' * (width > 1)}",
        )
    middle.set(xscale="log", xlabel="steps", title="Hardest list, by rules")
    for by, color in CHOICES:
        line = [chosen(hardest, by, width)[-1] for width in widths]
        right.plot(widths, line, "o-", color=color, markersize=3, label=f"by {by}")
    rounds = hardest["rounds"]
    if len(rounds) > 1:
        share = [100 * r / hardest["right"].shape[1] for r in rounds]
        more = [starts * (k + 1) for k in range(len(rounds))]
        right.plot(more, share, "o--", color="#1b7837", markersize=3, label="by rules, more rounds")
    right.set(xscale="log", xlabel="starts", title=f"Hardest list, after {depths[-1]} steps")
    for axes in (left, middle, right):
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.25)
    for axes in (left, middle, right):
        axes.legend(frameon=False)
    figure.savefig(output, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
