"""Plots: each draws what an object holds, and returns a figure of matplotlib's."""

import html
from typing import Any

import numpy

DARK, MARK, PALE = "#1f3b57", "#c8553d", "#9fb4c7"


def axes(ax: Any, width: float = 6.4, height: float = 4.0, count: int = 1) -> Any:
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


def bare(ax):
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
        f'<polyline points="{points}" fill="none" stroke="{MARK}" stroke-width="1.5"/></svg>'
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
    ax, figure = axes(ax)
    for name, values in found.terms.items():
        ax.plot(values.sum(axis=1), label=name)
    if len(found.terms) > 1:
        ax.plot(found.energy.sum(axis=1), label="total", color="black")
        ax.legend(frameon=False)
    ax.set_xlabel("step")
    ax.set_ylabel("energy")
    bare(ax)
    return figure
