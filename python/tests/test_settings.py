"""Settings in Python are those of the C table."""

import copy
import pickle

import numpy
import pytest

import basin
from basin import tasks


@pytest.mark.parametrize("task", ["image", "anomaly", "graphs"])
def test_the_table_describes_every_setting(task):
    table = tasks.settings.table(task)
    assert list(table) == list(tasks.Settings(task))
    for row in table.values():
        assert row.help
        assert row.kind != "choice" or row.default in row.choices
        if row.kind in ("integer", "real"):
            assert row.low <= row.default <= row.high


def test_values_have_python_types():
    settings = tasks.Settings("image", attention=False, rate=2e-4, dim=32, mean=(0.1, 0.2, 0.3))
    assert settings["attention"] is False
    assert (settings["rate"], settings["dim"], settings["mean"]) == (2e-4, 32, (0.1, 0.2, 0.3))


def test_values_of_numpy_are_taken():
    """A grid of parameters hands them over so."""
    settings = tasks.Settings("image", attention=numpy.bool_(False), dim=numpy.int64(32))
    assert (settings["attention"], settings["dim"]) == (False, 32)
    settings["mean"] = numpy.array([0.5, 0.25, 0.125])
    assert settings["mean"] == (0.5, 0.25, 0.125)


def test_settings_are_not_copied_by_halves():
    """A copy would share what the library holds, and a change of one be a change of both."""
    settings = tasks.Settings("image")
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="settings are not copied"):
            copied(settings)


def test_presets_override_defaults_and_keywords_override_presets():
    settings = tasks.Settings("image", "paper-imagenet", heads=3)
    assert settings["dim"] == 768 and settings["heads"] == 3


def test_files_of_settings_go_round(tmp_path):
    one, other = tasks.Settings("graphs", dim=24, mix=True), tasks.Settings("graphs")
    (tmp_path / "run.json").write_text(one.json())
    other.read(tmp_path / "run.json")
    assert dict(one) == dict(other) and other["mix"] is True


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"epoch": 3}, "did you mean 'epochs'"),
        ({"dim": 0}, "dim: 0 is too small"),
        ({"dim": "many"}, "many"),
        ({"select": "auc"}, "auprc"),
    ],
)
def test_mistakes_are_told(change, told):
    with pytest.raises(basin.BasinError, match=told):
        tasks.Settings("anomaly", **change)


def test_settings_without_effect_are_refused():
    with pytest.raises(basin.BasinError, match="hopfield_power"):
        tasks.Settings("anomaly", hopfield_power=4.0).check()


def test_unknown_keywords_of_estimators_name_the_nearest():
    with pytest.raises(TypeError, match="no setting 'epoch'; did you mean 'epochs'"):
        tasks.AnomalyDetector(epoch=3)


def test_the_help_of_estimators_names_all_settings():
    for name in tasks.settings.table("graphs"):
        assert f"    {name}: " in tasks.GraphClassifier.__doc__


def test_parameters_come_back_as_they_were_given():
    model = tasks.ImageCompleter(epochs=3, preset="fashion")
    assert model.get_params()["epochs"] == 3
    assert model.set_params(epochs=4, dim=8).get_params()["epochs"] == 4
    assert pickle.loads(pickle.dumps(model)).dim == 8
    with pytest.raises((TypeError, ValueError)):
        model.set_params(epoch=4)
