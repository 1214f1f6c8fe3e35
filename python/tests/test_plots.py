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
    settings = {"epochs": 12, "members": 2, "hops": 0, "dim": 8, "trees": 0, "threads": 1}
    return tasks.AnomalyDetector(**settings).fit(x, y, edges=edges)


def test_energy_by_step():
    @basin.energy
    def wells(g):
        return {"wells": numpy.sum((g**2 - 1) ** 2) / 4, "tilt": numpy.sum(g) / 10}

    (ax,) = drawn(wells.descend([-1.5, 2.0], steps=20).plot(), 1)
    assert [line.get_label() for line in ax.lines] == ["wells", "tilt", "total"]
    assert len(ax.lines[0].get_xdata()) == 21


def test_a_curve_of_training(detector, tmp_path):
    ax, other = drawn(detector.plot_training(), 2)
    assert len(ax.lines[0].get_xdata()) == 12 and ax.lines[0].get_ydata()[-1] < 1
    assert other.get_ylabel() == "validation auprc"
    assert detector.history_[0]["epoch"] == 1
    detector.save(tmp_path / "model")
    with pytest.raises(basin.BasinError, match="no history"):
        tasks.AnomalyDetector.load(tmp_path / "model").plot_training()


def test_curves_of_detection(detector, network):
    x, edges, y = network
    first, second = drawn(detector.plot_curves(x, y, edges=edges), 2)
    recall, precision = first.lines[0].get_data()
    area = numpy.sum(numpy.diff(recall) * precision[1:])
    assert area == pytest.approx(detector.measure(x, y, edges=edges)["auprc"], abs=1e-6)
    false, true = second.lines[0].get_data()
    area = numpy.sum(numpy.diff(false) * (true[1:] + true[:-1]) / 2)
    assert area == pytest.approx(detector.measure(x, y, edges=edges)["auroc"], abs=1e-6)
    with pytest.raises(basin.BasinError, match="classes.* in y"):
        detector.plot_curves(x, edges=edges)


def test_an_explanation(detector, network):
    x, edges, _ = network
    found = detector.explain(x, 5, edges=edges)
    first, second = drawn(found.plot(), 2)
    assert len(first.patches) == min(10, len(found.neighbours))
    assert len(second.patches) == min(10, len(found.features))


def test_a_completed_picture(stripes):
    model = tasks.ImageCompleter(epochs=1, dim=8, heads=1, head_dim=8, memories=8, batch=8)
    told = model.fit(stripes).complete(stripes[0], rectangle=(4, 4, 8, 8))
    axes = drawn(told.plot(), 2)
    assert axes[0].get_title() == "shown" and axes[-1].get_title() == "completed"
    drawn(model.plot_training(), 1)


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
    drawn(told.plot(), 2)


def test_tables_for_notebooks(detector, network):
    """Well-formed, and texts of users' are escaped."""

    @basin.energy
    def wells(g, note="<b>"):
        """Two wells & more."""
        return numpy.sum((g**2 - 1) ** 2)

    x, edges, y = network
    rings = [[[i, (i + 1) % n] for i in range(n)] for n in range(5, 11)]
    stars = [[[0, i] for i in range(1, n)] for n in range(5, 11)]
    graphs = tasks.GraphClassifier(epochs=2, dim=8, memories=8, blocks=1, threads=1)
    graphs.fit(rings + stars, [0] * 6 + [1] * 6)
    layers = {"<v>": basin.ham.Layer("identity", 3)}
    layered = basin.ham.HAM(layers, {"b": basin.ham.bias()}, [(["<v>"], "b")])
    memory = basin.zoo.Hopfield(numpy.eye(3))
    shown = {
        "&lt;b&gt;": wells, "&lt;lambda&gt;": basin.function(lambda x: x),
        "3 steps": wells.descend([0.5], steps=3), "&lt;v&gt;": layered,
        "Ramsauer": memory, "always": memory.verdict(),
        "&lt;trade&gt;": tasks.Network(x, {"<trade>": edges}, y),
        "probability": detector.explain(x, 5, edges=edges), "edge": graphs.explain(stars, 2),
    }  # fmt: skip
    for text, thing in shown.items():
        page = thing._repr_html_()
        assert text in page
        ElementTree.fromstring(f"<div>{page}</div>".replace("<br>", "<br/>"))
    assert "'always'" in repr(memory.verdict()) and "+" in str(graphs.explain(stars, 2))


def test_a_plot_on_axes_that_are_given(detector):
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    assert detector.plot_training(ax=ax) is figure


def test_progress_through_tqdm(network, capsys):
    pytest.importorskip("tqdm")
    x, edges, y = network
    settings = {"epochs": 5, "members": 1, "hops": 0, "dim": 8, "trees": 0, "threads": 1}
    tasks.AnomalyDetector(**settings, progress=True).fit(x, y, edges=edges)
    told = capsys.readouterr().err
    assert "training" in told and "loss=" in told and "100%" in told
