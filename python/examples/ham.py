"""The tutorial of HAMUX's README with Basin: three layers, two synapses, energies, a descent."""

import numpy

from basin import ham


def linear(g1, g2, w):
    return numpy.einsum("bi,bj,ij->b", g1, g2, w)


rng = numpy.random.default_rng(0)
layers = {
    "input": ham.Layer("identity", 7),
    "labels": ham.Layer("softmax", 8),
    "hidden": ham.Layer("softmax", 9),
}
synapses = {
    "dense1": ham.Synapse(linear, w=rng.normal(0, 0.02, (7, 9))),
    "dense2": ham.Synapse(linear, w=rng.normal(0, 0.02, (8, 9))),
}
connections = [(("input", "hidden"), "dense1"), (("labels", "hidden"), "dense2")]
network = ham.HAM(layers, synapses, connections)

x = network.init_states()
g = network.activations(x, backend="ref")
print(float(network.energy(g, x, backend="ref")))
print(network.dEdg(g, x, backend="ref")["hidden"].tolist())

batch = {name: rng.normal(size=x.shape) for name, x in sorted(network.init_states(3).items())}
print(network.energy(None, batch, backend="ref").tolist())

descent = network.descend(batch, steps=40, alpha=0.5, backend="ref")
print(descent.energy[39].tolist())
