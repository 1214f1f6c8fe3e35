"""The zoo: published models that state an energy, each an object of its arrays with

    energy(x), force(x)    the stated energy, and -dE/dg as its update takes it
    update(x)              one published step
    descend(x, ..)         many, in the C library, with energies by step
    verdict()              whether the update is the gradient of the energy and descends it

MODELS lists their classes; Model is what these share. On arrays they compute; inside a traced
function, where x or the arrays of the model are expressions, they give expressions, which a loss is
differentiated through. States are rows x [N, D] and energies one number per row unless a model says
otherwise; linear maps are stored [out, in].

>>> import numpy
>>> from basin import zoo
>>> memories = zoo.Hopfield(numpy.array([[1.0, 0.0], [0.0, 1.0]]), beta=8.0)
>>> memories.update([[0.9, 0.2]]).round(2)
array([[1., 0.]], dtype=float32)
>>> memories.verdict().answer
'always'
"""

from basin.zoo._model import Model, Verdict
from basin.zoo._models import (
    CRATE,
    EBT,
    LSR,
    NRGPT,
    AKOrN,
    ConvergentEnergyTransformer,
    Dense,
    DrDAM,
    EnergyTransformer,
    EnergyTransformerStack,
    EquilibriumPropagation,
    GatedMemories,
    GaussianMemories,
    GraphHopfield,
    Hopfield,
    HyperSET,
    InputDrivenPlasticity,
    PairTokens,
    SparseCode,
)  # fmt: skip

__all__ = [
    "AKOrN", "CRATE", "ConvergentEnergyTransformer", "Dense", "DrDAM", "EBT", "EnergyTransformer",
    "EnergyTransformerStack", "EquilibriumPropagation", "GatedMemories", "GaussianMemories",
    "GraphHopfield", "Hopfield", "HyperSET", "InputDrivenPlasticity", "LSR", "MODELS", "Model",
    "NRGPT", "PairTokens", "SparseCode", "Verdict",
]  # fmt: skip

MODELS = tuple(Model.__subclasses__())
