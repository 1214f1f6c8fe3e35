"""An associative memory: patterns are minima of an energy, and a damaged one finds its way back."""

import numpy

import basin

patterns = numpy.sign(numpy.random.default_rng(0).normal(size=(10, 64)))


@basin.energy
def memory(g, xi):
    return numpy.sum(g**2) / 2 - basin.logsumexp(g @ xi.T)


damaged = patterns[3].copy()
damaged[:20] *= -1
found = memory.descend(damaged, steps=50, alpha=0.5, xi=patterns).x
print("bits right before:", int((damaged == patterns[3]).sum()))
print("bits right after: ", int((numpy.sign(found) == patterns[3]).sum()))
