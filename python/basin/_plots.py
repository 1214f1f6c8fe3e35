"""Plots: each draws what an object holds, and returns a figure of matplotlib's."""

import html
from typing import Any

import numpy

__all__ = [
    "completion",
    "curve_svg",
    "curves",
    "descent",
    "explanation",
    "graph_explanation",
    "table_html",
    "training",
]

_DARK, _MARK, _PALE = "#1f3b57", "#c8553d", "#9fb4c7"


def _axes(ax: Any, width: float = 6.4, height: float = 4.0, count: int = 1) -> Any:
    """The axes that were given, or some of a new figure; and their figure. A notebook shows what a
    cell returns: a figure that pyplot knew as well would be shown twice."""
    if ax is not None:
        return (ax if count == 1 else list(ax)), (ax if count == 1 else ax[0]).figure
    try:
        from matplotlib import get_backend, pyplot
    except ImportError as failure:
        raise ImportError("plots are drawn by matplotlib: pip install matplotlib") from failure
    figure, axes = pyplot.subplots(1, count, figsize=(width, height), layout="constrained")
    if "inline" in get_backend().lower():
        pyplot.close(figure)
    return axes, figure


def _bare(ax):
    ax.spines[["top", "right"]].set_visible(False)


def curve_svg(values, title, width=240, height=80) -> str:
    """A curve of numbers by step as a small inline picture, and a line of text under it."""
    values = numpy.asarray(values, float)
    finite = values[numpy.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    points = " ".join(
        f"{4 + (width - 8) * i / max(len(values) - 1, 1):.1f},"
        f"{4 + (height - 8) * (high - value) / ((high - low) or 1.0):.1f}"
        for i, value in enumerate(values)
        if numpy.isfinite(value)
    )
    return (
        f'<svg width="{width}" height="{height}" role="img"><title>{html.escape(title)}</title>'
        f'<polyline points="{points}" fill="none" stroke="{_MARK}" stroke-width="1.5"/></svg>'
        f"<br><code>{html.escape(title)}</code>"
    )


def table_html(title, rows) -> str:
    """A table of texts with a line over it, for notebooks; the first of each row names it."""
    lines = []
    for name, *cells in rows:
        rest = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
        lines.append(f"<tr><th>{html.escape(str(name))}</th>{rest}</tr>")
    caption = f'<caption style="white-space:nowrap">{html.escape(title)}</caption>'
    return f'<table style="text-align:left">{caption}{"".join(lines)}</table>'


def descent(found, ax=None) -> Any:
    ax, figure = _axes(ax)
    for name, values in found.terms.items():
        ax.plot(values.sum(axis=1), label=name)
    if len(found.terms) > 1:
        ax.plot(found.energy.sum(axis=1), label="total", color="black")
        ax.legend(frameon=False)
    ax.set_xlabel("step")
    ax.set_ylabel("energy")
    _bare(ax)
    return figure


def training(history, best_epoch=0, ax=None) -> Any:
    """Losses by epoch, a line a member, and on a second scale the score that chooses the epoch."""
    ax, figure = _axes(ax)
    members = sorted({line.get("member", 0) for line in history})
    for member in members:
        lines = [line for line in history if line.get("member", 0) == member]
        label = None if member else "loss" + f" of {len(members)} members" * (len(members) > 1)
        ax.plot(*_series(lines, "loss"), color=_DARK, alpha=1 / (1 + member) ** 0.5, label=label)
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
            other.plot(*found, color=_MARK, marker=".", alpha=1 / (1 + member) ** 0.5)
    if best_epoch:
        ax.axvline(best_epoch, color=_PALE, linestyle=":", label=f"epoch kept: {best_epoch}")
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    return figure


def _series(lines, name):
    """Epochs and values of the lines that have one, the last of each epoch."""
    found = {line["epoch"]: line[name] for line in lines if line.get(name) is not None}
    return list(found), list(found.values())


def _score_of(history):
    names = [name for line in history for name in line]
    wanted = (
        "validation_auprc", "validation_accuracy", "validation_balanced", "validation_loss",
        "test_mse",
    )  # fmt: skip
    return next((name for name in wanted if name in names), None)


def curves(probability, label, ax=None) -> Any:
    """Precision by recall, and true by false positives; `label` is 1 or 0."""
    (first, second), figure = _axes(ax, 8.4, 4.0, 2)
    order = numpy.argsort(-probability, kind="stable")
    hits, sorted_ = numpy.cumsum(label[order] == 1), probability[order]
    ends = numpy.flatnonzero(numpy.append(numpy.diff(sorted_) != 0, True))  # of equal scores
    found, alerts = hits[ends], ends + 1
    positive, count = int(hits[-1]), len(label)
    recall, false = found / positive, (alerts - found) / (count - positive)
    first.step([0, *recall], [1, *(found / alerts)], where="pre", color=_DARK)
    first.axhline(positive / count, color=_PALE, linestyle=":", label="by chance")
    first.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.03))
    second.plot([0, *false], [0, *recall], color=_DARK)
    second.plot([0, 1], [0, 1], color=_PALE, linestyle=":", label="by chance")
    second.set(xlabel="false positive rate", ylabel="true positive rate", ylim=(0, 1.03))
    for ax_ in (first, second):
        ax_.legend(frameon=False)
        _bare(ax_)
    return figure


def completion(found, ax=None) -> Any:
    """What was shown, and what became of it; steps of the descent where they were kept."""
    chosen = numpy.linspace(0, len(found.frames) - 1, min(len(found.frames), 5)).astype(int)
    frames = [(found.frames[i], f"step {i}") for i in chosen]
    pictures = [(found.masked, "shown"), *frames, (found.completed, "completed")]
    axes, figure = _axes(ax, 2.2 * len(pictures), 2.6, len(pictures))
    for one, (picture, title) in zip(axes, pictures):
        grey = picture.shape[2] == 1
        one.imshow(picture[:, :, 0] if grey else picture, cmap="gray", vmin=0, vmax=255)
        one.set_title(title, fontsize=10)
        one.set_axis_off()
    return figure


def explanation(found, names=None, most=10, ax=None) -> Any:
    """Neighbours by their share of attention, features by what they add."""
    (first, second), figure = _axes(ax, 9.0, 4.0, 2)
    neighbours, features = found.neighbours[:most][::-1], found.features[:most][::-1]
    rows = [f"node {n['node']}" if n["node"] != found.node else "itself" for n in neighbours]
    first.barh(rows, [n["share"] for n in neighbours], color=_DARK)
    first.set_xlabel("share of the attention")
    told = [feature_name(feature, names) for feature in features]
    shares = [feature["share"] for feature in features]
    places = range(len(told))
    second.barh(places, shares, color=[_MARK if share > 0 else _PALE for share in shares])
    second.set_yticks(places, told)
    second.axvline(0, color="black", linewidth=0.8)
    second.set_xlabel("what the feature adds")
    for one in (first, second):
        _bare(one)
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
    """Nodes on a circle; colour and size say what each adds, and so do the edges; by the memory of
    molecules, which knows no edges, where its share is above one half."""
    nodes, edges = found.nodes, found.edges
    if found.share > 0.5:
        nodes, edges = found.memory, 0 * edges
    ax, figure = _axes(ax, 5.6, 4.6)
    angle = 2 * numpy.pi * numpy.arange(len(found.nodes)) / max(len(found.nodes), 1)
    x, y = numpy.cos(angle), numpy.sin(angle)
    most = max(numpy.abs(nodes).max(initial=0), numpy.abs(edges).max(initial=0), 1e-12)
    for (a, b), adds in zip(found.edge, edges):
        colour = _MARK if adds > 0 else _DARK
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
    title = f"output {found.output:.3g}, of a blank graph {found.blank:.3g}"
    if found.share > 0.5:
        title = f"memory {found.recalled:.3g}, its share {found.share:.2g}"
    ax.set_title(title, fontsize=10)
    return figure
