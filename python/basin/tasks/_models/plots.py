"""Plots of what estimators learn and predict, as figures of matplotlib."""

from typing import Any

import numpy

from basin._engine.plots import DARK, MARK, PALE, bare
from basin._engine.plots import axes as new_axes


def training(history, best_epoch=0, ax=None) -> Any:
    """Losses by epoch, a line per member, and on a second scale the score of epochs."""
    ax, figure = new_axes(ax)
    members = sorted({line.get("member", 0) for line in history})
    for member in members:
        lines = [line for line in history if line.get("member", 0) == member]
        label = None if member else "loss" + f" of {len(members)} members" * (len(members) > 1)
        ax.plot(*_series(lines, "loss"), color=DARK, alpha=1 / (1 + member) ** 0.5, label=label)
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss")
    ax.spines["top"].set_visible(False)
    score = _score_of(history)
    if score is None:
        ax.spines["right"].set_visible(False)
    else:
        other = ax.twinx()
        other.spines["top"].set_visible(False)
        other.set_ylabel(score.replace("_", " "))
        for member in members:
            lines = [line for line in history if line.get("member", 0) == member]
            found = _series(lines, score)
            other.plot(*found, color=MARK, marker=".", alpha=1 / (1 + member) ** 0.5)
    if best_epoch:
        ax.axvline(best_epoch, color=PALE, linestyle=":", label=f"epoch kept: {best_epoch}")
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    return figure


def _series(lines, name):
    """Epochs and values of the lines that have one, the last of each epoch."""
    found = {line["epoch"]: line[name] for line in lines if line.get(name) is not None}
    return list(found), list(found.values())


def _score_of(history):
    names = [name for line in history for name in line]
    expected = (
        "validation_auprc", "validation_accuracy", "validation_balanced", "validation_loss",
        "test_mse",
    )  # fmt: skip
    return next((name for name in expected if name in names), None)


def curves(probability, label, ax=None) -> Any:
    """Precision by recall, and true by false positives; `label` is 1 or 0."""
    (first, second), figure = new_axes(ax, 8.4, 4.0, 2)
    order = numpy.argsort(-probability, kind="stable")
    hits, sorted_ = numpy.cumsum(label[order] == 1), probability[order]
    ends = numpy.flatnonzero(numpy.append(numpy.diff(sorted_) != 0, True))  # of equal scores
    found, alerts = hits[ends], ends + 1
    positive, count = int(hits[-1]), len(label)
    recall, false = found / positive, (alerts - found) / (count - positive)
    first.step([0, *recall], [1, *(found / alerts)], where="pre", color=DARK)
    first.axhline(positive / count, color=PALE, linestyle=":", label="by chance")
    first.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.03))
    second.plot([0, *false], [0, *recall], color=DARK)
    second.plot([0, 1], [0, 1], color=PALE, linestyle=":", label="by chance")
    second.set(xlabel="false positive rate", ylabel="true positive rate", ylim=(0, 1.03))
    for ax_ in (first, second):
        ax_.legend(frameon=False)
        bare(ax_)
    return figure


def completion(found, ax=None) -> Any:
    """What was shown, and what became of it."""
    pictures = [(found.masked, "shown"), (found.completed, "completed")]
    axes, figure = new_axes(ax, 2.2 * len(pictures), 2.6, len(pictures))
    for one, (picture, title) in zip(axes, pictures):
        grey = picture.shape[2] == 1
        one.imshow(picture[:, :, 0] if grey else picture, cmap="gray", vmin=0, vmax=255)
        one.set_title(title, fontsize=10)
        one.set_axis_off()
    return figure


def explanation(found, names=None, most=10, ax=None) -> Any:
    """Neighbours by their share of attention, features by what they add."""
    (first, second), figure = new_axes(ax, 9.0, 4.0, 2)
    neighbours, features = found.neighbours[:most][::-1], found.features[:most][::-1]
    rows = [f"node {n['node']}" if n["node"] != found.node else "itself" for n in neighbours]
    first.barh(rows, [n["share"] for n in neighbours], color=DARK)
    first.set_xlabel("share of the attention")
    labels = [feature_name(feature, names) for feature in features]
    shares = [feature["share"] for feature in features]
    places = range(len(labels))
    second.barh(places, shares, color=[MARK if share > 0 else PALE for share in shares])
    second.set_yticks(places, labels)
    second.axvline(0, color="black", linewidth=0.8)
    second.set_xlabel("what the feature adds")
    for one in (first, second):
        bare(one)
    figure.suptitle(f"node {found.node}: probability {found.probability:.3f}, rank {found.rank}")
    return figure


def feature_name(feature, names) -> str:
    column, hop = feature["column"], feature["hop"]
    name = f"column {column}"
    if column < 0:
        name = "labels of neighbours"
    elif names is not None:
        name = names[column] if column < len(names) else "degree"
    return name if hop == 0 else f"{name}, {hop} hop{'s' * (hop > 1)} away"


def graph_explanation(found, ax=None) -> Any:
    """Nodes on a circle; colour and size say what each adds, and so do the edges."""
    nodes, edges = found.nodes, found.edges
    ax, figure = new_axes(ax, 5.6, 4.6)
    angle = 2 * numpy.pi * numpy.arange(len(found.nodes)) / max(len(found.nodes), 1)
    x, y = numpy.cos(angle), numpy.sin(angle)
    most = max(numpy.abs(nodes).max(initial=0), numpy.abs(edges).max(initial=0), 1e-12)
    for (a, b), adds in zip(found.edge, edges):
        colour = MARK if adds > 0 else DARK
        ax.plot(x[[a, b]], y[[a, b]], color=colour, linewidth=0.6 + 3 * abs(adds) / most, zorder=1)
    marks = ax.scatter(
        x, y, s=160, c=nodes, cmap="RdBu_r", vmin=-most, vmax=most, edgecolors="black",
        zorder=2,
    )  # fmt: skip
    for i in range(len(found.nodes)):
        ax.annotate(str(i), (1.13 * x[i], 1.13 * y[i]), ha="center", va="center", fontsize=9)
    figure.colorbar(marks, ax=ax, label="what a node adds")
    ax.set_aspect("equal")
    ax.margins(0.12)
    ax.set_axis_off()
    ax.set_title(f"output {found.output:.3g}", fontsize=10)
    return figure
