"""The wells of examples/00: tokens fall into the nearest minimum of an energy."""

import numpy

import basin


@basin.energy
def wells(g):
    return numpy.sum((g**2 - 1) ** 2) / 4


descent = wells.descend([-1.5, -0.2, 0.1, 2.0], steps=200, tolerance=1e-4)
print(descent.x.round(2))
