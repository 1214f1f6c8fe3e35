"""Basin: you write the energy; Basin derives the network.

>>> import numpy, basin
>>> @basin.energy
... def wells(g):
...     return numpy.sum((g**2 - 1) ** 2) / 4
>>> wells.descend([-1.5, 2.0], steps=200).x.round(2)
array([-1.,  1.], dtype=float32)
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

from basin import _library
from basin._library import BasinError
from basin._plan import Backend
from basin.derivatives import hessian, jacobian, jvp, vjp
from basin.energies import Descent, Energy, energy
from basin.functions import Function, function
from basin.lagrangians import Lagrangian
from basin.layers import (
    avg_pool,
    conv2d,
    cross_entropy,
    dropout,
    gather,
    max_pool,
    normal,
    one_hot,
    scatter,
    top_k,
    uniform,
)
from basin.operations import (
    attention_lse,
    entmax15,
    erf,
    gelu,
    gradient,
    heaviside,
    layernorm,
    lncosh,
    log_softmax,
    logsumexp,
    normmax2,
    relu,
    shrink,
    sigmoid,
    silu,
    softmax,
    softplus,
    sparsemax,
    stop_gradient,
    to_box,
    to_sphere,
    to_tangent,
)
from basin.training import Constant, Lecun, Normal, Trainer, Uniform

_LATER = {
    "AnomalyDetector": "anomaly", "Explanation": "anomaly", "Network": "_network",
    "NodeClassifier": "nodes", "LiveDetector": "live", "LiveScore": "live",
    "Graph": "_graphset", "GraphSet": "_graphset", "GraphClassifier": "graphs",
    "GraphRegressor": "graphs", "GraphExplanation": "graphs", "ImageCompleter": "images",
    "Completion": "images", "Settings": "settings",
    "settings": "settings", "ham": "ham", "zoo": "zoo",
}  # fmt: skip
_FRAMEWORKS = "interchange", "jax", "torch"  # modules that need what not everyone has


if _TYPE_CHECKING:
    from basin import ham as ham
    from basin import settings as settings
    from basin import zoo as zoo
    from basin._graphset import Graph as Graph
    from basin._graphset import GraphSet as GraphSet
    from basin._network import Network as Network
    from basin.anomaly import AnomalyDetector as AnomalyDetector
    from basin.anomaly import Explanation as Explanation
    from basin.graphs import GraphClassifier as GraphClassifier
    from basin.graphs import GraphExplanation as GraphExplanation
    from basin.graphs import GraphRegressor as GraphRegressor
    from basin.images import Completion as Completion
    from basin.images import ImageCompleter as ImageCompleter
    from basin.live import LiveDetector as LiveDetector
    from basin.live import LiveScore as LiveScore
    from basin.settings import Settings as Settings


def __getattr__(name):
    """Estimators are imported when they are asked for: scikit-learn takes its time."""
    if name in _FRAMEWORKS:
        return _importlib.import_module(f"basin.{name}")
    if name not in _LATER:
        raise AttributeError(f"module 'basin' has no attribute {name!r}")
    module = _importlib.import_module(f"basin.{_LATER[name]}")
    return module if _LATER[name] == name else getattr(module, name)


__version__ = _library.text(_library.lib.basin_version())

__all__ = [
    "Backend", "BasinError", "Constant", "Descent", "Energy", "Function", "Lagrangian",
    "Lecun", "Normal", "Trainer", "Uniform", "attention_lse", "avg_pool", "conv2d",
    "cross_entropy", "dropout", "energy", "entmax15", "erf", "function", "gather", "gelu",
    "gradient", "heaviside", "hessian", "jacobian", "jvp",
    "layernorm", "lncosh", "log_softmax", "logsumexp", "max_pool", "normal",
    "normmax2", "one_hot", "relu", "scatter", "shrink", "sigmoid", "silu", "softmax", "softplus",
    "sparsemax", "stop_gradient", "to_box", "to_sphere", "to_tangent", "top_k", "uniform", "vjp",
]  # fmt: skip
__all__ += _LATER


def __dir__():
    """What is for users: no module or name that is here only to make the others."""
    return sorted([*__all__, *_FRAMEWORKS, "__doc__", "__version__"])
