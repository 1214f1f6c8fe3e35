"""Plots are figures of matplotlib's that show what they should; progress is a bar of tqdm's."""

from xml.etree import ElementTree

import numpy
import pytest

import basin
from basin import tasks

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
figures = pytest.importorskip("matplotlib.figure")


@pytest.fixture(autouse=True)
def close_all():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def drawn(figure, axes):
    """The figure draws without a warning, and has so many axes."""
    assert isinstance(figure, figures.Figure)
    figure.canvas.draw()
    assert len(figure.axes) == axes
    return figure.axes


@pytest.fixture(scope="module")
def detector(network):
    x, edges, y = network
    settings = {"epochs": 2, "members": 1, "hops": 0, "dim": 8, "trees": 0, "threads": 1}
    return tasks.AnomalyDetector(**settings).fit(x, y, edges=edges)


def test_energy_by_step():
    @basin.energy
    def wells(g):
        return {"wells": numpy.sum((g**2 - 1) ** 2) / 4, "tilt": numpy.sum(g) / 10}

    (ax,) = drawn(wells.descend([-1.5, 2.0], steps=20).plot(), 1)
    assert [line.get_label() for line in ax.lines] == ["wells", "tilt", "total"]
    assert len(ax.lines[0].get_xdata()) == 21


def test_the_explanation_of_a_graph():
    rings = [[[i, (i + 1) % n] for i in range(n)] for n in range(5, 11)]
    stars = [[[0, i] for i in range(1, n)] for n in range(5, 11)]
    model = tasks.GraphClassifier(epochs=10, dim=8, memories=8, blocks=1, threads=1)
    model.fit(rings + stars, [0] * 6 + [1] * 6)
    told = model.explain(stars, 2)
    assert told.nodes.shape == (7,) and told.edge.shape == (12, 2)
    without = model.predict_proba([stars[2][:3] + stars[2][4:]])[0, told.column]  # one ray less
    gone = numpy.log(without / (1 - without))
    assert numpy.isnan(told.blank) and numpy.isfinite(gone)
    assert str(told).startswith("GraphExplanation(column ")


def test_tables_for_notebooks(detector, network):
    """Well-formed, and texts of users' are escaped."""

    @basin.energy
    def wells(g, note="<b>"):
        """Two wells & more."""
        return numpy.sum((g**2 - 1) ** 2)

    x, edges, _ = network
    rings = [[[i, (i + 1) % n] for i in range(n)] for n in range(5, 11)]
    stars = [[[0, i] for i in range(1, n)] for n in range(5, 11)]
    graphs = tasks.GraphClassifier(epochs=2, dim=8, memories=8, blocks=1, threads=1)
    graphs.fit(rings + stars, [0] * 6 + [1] * 6)
    layers = {"<v>": basin.ham.Layer("identity", 3)}
    layered = basin.ham.HAM(layers, {"b": basin.ham.bias()}, [(["<v>"], "b")])
    shown = {
        "&lt;b&gt;": wells, "&lt;lambda&gt;": basin.function(lambda x: x),
        "3 steps": wells.descend([0.5], steps=3), "&lt;v&gt;": layered,
        "probability": detector.explain(x, 5, edges=edges), "edge": graphs.explain(stars, 2),
    }  # fmt: skip
    for text, thing in shown.items():
        page = thing._repr_html_()
        assert text in page
        ElementTree.fromstring(f"<div>{page}</div>".replace("<br>", "<br/>"))
    assert "+" in str(graphs.explain(stars, 2))


def test_a_plot_on_axes_that_are_given():
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    descent = basin.energy(lambda g: numpy.sum(g**2)).descend([0.5], steps=3)
    assert descent.plot(ax=ax) is figure


def test_progress_through_tqdm(network, capsys):
    pytest.importorskip("tqdm")
    x, edges, y = network
    settings = {"epochs": 5, "members": 1, "hops": 0, "dim": 8, "trees": 0, "threads": 1}
    tasks.AnomalyDetector(**settings, progress=True).fit(x, y, edges=edges)
    told = capsys.readouterr().err
    assert "training" in told and "loss=" in told and "100%" in told
