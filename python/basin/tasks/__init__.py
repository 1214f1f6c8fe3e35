"""The applications: detectors of anomalous nodes, classes of nodes, models of small graphs, and
completion of pictures, as estimators in scikit-learn's manner, with readers of their data.

>>> import numpy
>>> from basin.tasks import AnomalyDetector
>>> rng = numpy.random.default_rng(0)
>>> x, edges = rng.normal(size=(200, 4)), rng.integers(200, size=(600, 2))
>>> detector = AnomalyDetector(epochs=30, members=1, hops=0, threads=1)
>>> detector.fit(x, x[:, 0] > 1, edges=edges).predict_proba(x, edges=edges).shape
(200, 2)
"""

from basin.tasks import settings
from basin.tasks._data.graphset import Graph, GraphSet
from basin.tasks._data.network import Network
from basin.tasks._models.anomaly import AnomalyDetector, Threshold
from basin.tasks._models.classes import NodeClassifier
from basin.tasks._models.context import InContextDetector, Retrieval
from basin.tasks._models.graphs import GraphClassifier, GraphExplanation, GraphRegressor
from basin.tasks._models.images import Completion, ImageCompleter
from basin.tasks._models.live import LiveDetector, LiveScore
from basin.tasks._models.nodes import Drift, Explanation
from basin.tasks.settings import Settings

__all__ = [
    "AnomalyDetector", "Completion", "Drift", "Explanation", "Graph", "GraphClassifier",
    "GraphExplanation", "GraphRegressor", "GraphSet", "ImageCompleter",
    "InContextDetector", "LiveDetector", "LiveScore", "Network", "NodeClassifier", "Retrieval",
    "Settings", "Threshold", "settings",
]  # fmt: skip
