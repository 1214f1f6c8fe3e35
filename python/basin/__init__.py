"""Basin: you write the energy; Basin derives the network.

>>> import numpy, basin
>>> @basin.energy
... def wells(g):
...     return numpy.sum((g**2 - 1) ** 2) / 4
>>> wells.descend([-1.5, 2.0], steps=200).x.round(2)
array([-1.,  1.], dtype=float32)

This is the engine. basin.tasks has the estimators, basin.ham networks of layers, basin.zoo
published models; basin.torch and basin.jax make energies operations of these frameworks.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

from basin import energies, functions, training
from basin._engine import library as _library
from basin._engine.descent import Descent
from basin._engine.library import BasinError
from basin._engine.plan import Backend
from basin._expr.derivatives import hessian, jacobian, jvp, vjp
from basin._expr.layers import (
    avg_pool,
    conv2d,
    cross_entropy,
    dropout,
    max_pool,
    normal,
    one_hot,
    scatter,
    top_k,
    uniform,
)  # fmt: skip
from basin._expr.operations import (
    attention_lse,
    entmax15,
    erf,
    gelu,
    gradient,
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
)  # fmt: skip
from basin.energies import energy
from basin.functions import function
from basin.training import Trainer

_LAZY = ("ham", "jax", "tasks", "torch", "zoo")  # modules that are imported when they are used

if _TYPE_CHECKING:
    from basin import ham, tasks, zoo


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'basin' has no attribute {name!r}")
    return _importlib.import_module(f"basin.{name}")


__version__ = _library.text(_library.lib.basin_version())

__all__ = [
    "Backend", "BasinError", "Descent", "Trainer", "attention_lse", "avg_pool", "conv2d",
    "cross_entropy", "dropout", "energies", "energy", "entmax15", "erf", "function", "functions",
    "gelu", "gradient", "ham", "hessian", "jacobian", "jvp", "layernorm", "lncosh", "log_softmax",
    "logsumexp", "max_pool", "normal", "normmax2", "one_hot", "relu", "scatter", "shrink",
    "sigmoid", "silu", "softmax", "softplus", "sparsemax", "stop_gradient", "tasks", "to_box",
    "to_sphere", "to_tangent", "top_k", "training", "uniform", "vjp", "zoo",
]  # fmt: skip


def __dir__():
    """What is for users: no name that is here only to make the others."""
    return sorted({*__all__, *_LAZY, "__version__"})
