"""Basin: you write the energy; Basin derives the network.

>>> import numpy, basin
>>> @basin.energy
... def wells(g):
...     return numpy.sum((g**2 - 1) ** 2) / 4
>>> wells.descend([-1.5, 2.0], steps=200).x.round(2)
array([-1.,  1.])
"""

from basin._library import BasinError, lib, text
from basin._plan import Backend
from basin.energies import Descent, Energy, energy
from basin.functions import Function, function
from basin.operations import (
    attention_lse,
    erf,
    gradient,
    heaviside,
    layernorm,
    lncosh,
    logsumexp,
    relu,
    sigmoid,
    softmax,
    softplus,
    stop_gradient,
)
from basin.training import Constant, Lecun, Normal, Trainer, Uniform

__version__ = text(lib.basin_version())

__all__ = [
    "Backend", "BasinError", "Constant", "Descent", "Energy", "Function", "Lecun", "Normal",
    "Trainer", "Uniform", "attention_lse", "energy", "erf", "function", "gradient", "heaviside",
    "layernorm", "lncosh", "logsumexp", "relu", "sigmoid", "softmax", "softplus", "stop_gradient",
]  # fmt: skip
