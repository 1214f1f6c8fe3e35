"""scikit-learn's own checks of estimators as they are, and what it does with them: pipelines,
searches.

Tables are nodes without edges. Of lists of graphs, pictures and texts, which are no tables,
scikit-learn checks what needs no data. MEANINGLESS lists the checks that cannot hold, each with
its reason; docs/python.md has the same list.
"""

import numpy
import pytest

from basin import tasks

checks = pytest.importorskip("sklearn.utils.estimator_checks")
base = pytest.importorskip("sklearn.base")
pytest.importorskip("sklearn", "1.6", reason="checks that may fail are listed since 1.6")

pytestmark = [
    pytest.mark.filterwarnings("ignore:y has the 2 classes"),
    pytest.mark.filterwarnings("ignore:A column-vector y"),
]
UNKNOWN = {"check_classifiers_classes": "its labels are -1 and 1, and -1 means unknown"}
MEANINGLESS = {
    "AnomalyDetector": UNKNOWN, "InContextDetector": UNKNOWN, "NodeClassifier": UNKNOWN,
}  # fmt: skip
DETECTOR = {
    "epochs": 20, "members": 1, "scaling": "standard", "hops": 0, "dim": 16, "rate": 0.01,
    "warmup": 2, "trees": 0, "validation": 0, "threads": 1,
}  # fmt: skip
NODES = {
    "epochs": 20, "scaling": "standard", "hops": 0, "dim": 16, "rate": 0.01, "warmup": 2,
    "validation": 0, "threads": 1,
}  # fmt: skip
GRAPHS = {
    "epochs": 20, "dim": 16, "memories": 16, "blocks": 1, "rate": 0.01, "validation": 0,
    "threads": 1,
}  # fmt: skip


@checks.parametrize_with_checks(
    [
        tasks.AnomalyDetector(**DETECTOR),
        tasks.InContextDetector(threads=1),
        tasks.NodeClassifier(**NODES),
        tasks.GraphClassifier(**GRAPHS),
        tasks.GraphRegressor(**GRAPHS),
        tasks.ImageCompleter(),
    ],  # fmt: skip
    expected_failed_checks=lambda estimator: MEANINGLESS.get(type(estimator).__name__, {}),
)
def test_a_check_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "name",
    [
        "check_estimator_cloneable", "check_estimator_repr", "check_no_attributes_set_in_init",
        "check_do_not_raise_errors_in_init_or_set_params", "check_get_params_invariance",
        "check_set_params", "check_parameters_default_constructible", "check_valid_tag_types",
        "check_mixin_order",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "kind",
    [
        tasks.AnomalyDetector, tasks.NodeClassifier, tasks.GraphClassifier, tasks.GraphRegressor,
        tasks.ImageCompleter,
    ],
)  # fmt: skip
def test_a_check_that_needs_no_data(kind, name):
    check = getattr(checks, name, None)
    if check is None:
        pytest.skip(f"this scikit-learn has no {name}")
    check(kind.__name__, kind())


def test_a_subclass_keeps_keywords_and_its_own_constructor():
    class Mine(tasks.AnomalyDetector):
        def __init__(self, *, size=8):
            super().__init__(dim=size)
            self.size = size

    assert Mine().validation is None
    assert base.clone(Mine(size=4)).dim == 4


# ---- searches over nodes of one graph ----


@pytest.fixture(scope="module")
def graph(network):
    x, edges, y = network
    return tasks.Network(x, edges, y)


def test_cross_validation_keeps_the_graph_whole(graph, network):
    selection = pytest.importorskip("sklearn.model_selection")
    model = tasks.AnomalyDetector(**DETECTOR)
    scores = selection.cross_val_score(model, graph, graph.labels, cv=3)
    assert scores.shape == (3,) and scores.mean() > 0.6
    rates = selection.cross_val_score(model, graph, graph.labels, cv=3, scoring="roc_auc")
    assert rates.mean() > 0.8
    train = numpy.arange(120) < 80
    whole = tasks.AnomalyDetector(**DETECTOR).fit(graph[train], graph.labels[train])
    labels = numpy.where(train, network[2], -1)
    other = tasks.AnomalyDetector(**DETECTOR).fit(network[0], labels, edges=network[1])
    expected = other.predict_proba(network[0], edges=network[1])
    assert numpy.array_equal(whole.predict_proba(graph[~train]), expected[~train])


def test_rows_cut_without_their_edges_name_what_keeps_the_graph_whole(network):
    x, edges, y = network
    tables = pytest.importorskip("pandas").DataFrame
    ids = [f"A{i}" for i in range(len(x))]
    named = tables({"src": [ids[i] for i in edges[:, 0]], "dst": [ids[i] for i in edges[:, 1]]})
    model = tasks.AnomalyDetector(**DETECTOR)
    for rows, pairs in ((tables(x), tables(edges)), (tables(x).assign(id=ids), named), (x, edges)):
        with pytest.raises(ValueError, match="a Network of all rows"):
            model.fit(rows[:60], y[:60], edges=pairs)


def test_a_grid_of_settings(graph):
    selection = pytest.importorskip("sklearn.model_selection")
    model = tasks.AnomalyDetector(**DETECTOR)
    search = selection.GridSearchCV(model, {"dim": [8, 16], "rate": [0.01]}, cv=2)
    search.fit(graph, graph.labels)
    assert search.best_params_["dim"] in (8, 16)
    assert search.best_estimator_.predict(graph).shape == (120,)


def test_a_pipeline_in_front_of_a_detector(network):
    pipeline, preprocessing = (
        pytest.importorskip("sklearn.pipeline"),
        pytest.importorskip("sklearn.preprocessing"),
    )
    x, edges, y = network
    steps = pipeline.make_pipeline(preprocessing.RobustScaler(), tasks.AnomalyDetector(**DETECTOR))
    steps.fit(x, y, anomalydetector__edges=edges)
    assert steps.predict_proba(x, edges=edges).shape == (120, 2)
    assert base.clone(steps)[-1].dim == 16


def test_a_pipeline_behind_a_reader_of_graphs():
    pipeline, preprocessing = (
        pytest.importorskip("sklearn.pipeline"),
        pytest.importorskip("sklearn.preprocessing"),
    )
    rings = [[[i, (i + 1) % n] for i in range(n)] for n in range(5, 11)]
    stars = [[[0, i] for i in range(1, n)] for n in range(5, 11)]
    read = preprocessing.FunctionTransformer(lambda graphs: [tasks.Graph(g) for g in graphs])
    steps = pipeline.make_pipeline(read, tasks.GraphClassifier(**GRAPHS))
    steps.fit(rings + stars, ["ring"] * 6 + ["star"] * 6)
    assert steps.score(rings + stars, ["ring"] * 6 + ["star"] * 6) > 0.9


def test_optuna_searches(graph):
    optuna = pytest.importorskip("optuna")
    selection = pytest.importorskip("sklearn.model_selection")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        settings = {**DETECTOR, "dim": trial.suggest_categorical("dim", [8, 16])}
        settings["rate"] = trial.suggest_float("rate", 1e-3, 3e-2, log=True)
        model = tasks.AnomalyDetector(**settings)
        return selection.cross_val_score(model, graph, graph.labels, cv=2).mean()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
    study.optimize(objective, n_trials=3)
    assert study.best_value > 0.5
