# The tutorial of HAMUX's README, as it stands there but for the plot, the classmethod's weights
# (drawn by NumPy, so that Basin's program has the same), activations that are computed anew in
# each step, and prints. It is run by
# test_ham.py beside examples/ham.py, the same program with Basin.
import equinox as eqx
import hamux as hmx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy


class LinearSynapse(eqx.Module):
    """The energy synapse corrolary of the linear layer in standard neural networks"""

    W: jax.Array

    def __call__(self, xhat1: jax.Array, xhat2: jax.Array):
        return xhat1 @ self.W @ xhat2

    @classmethod
    def rand_init(cls, rng, D1: int, D2: int):
        return cls(W=jnp.asarray(rng.normal(0, 0.02, (D1, D2))))


rng = numpy.random.default_rng(0)
nhid = 9
nlabel = 8
ninput = 7

neurons = {
    "input": hmx.NeuronLayer(hmx.lagr_identity, (ninput,)),
    "labels": hmx.NeuronLayer(hmx.lagr_softmax, (nlabel,)),
    "hidden": hmx.NeuronLayer(hmx.lagr_softmax, (nhid,)),
}

synapses = {
    "dense1": LinearSynapse.rand_init(rng, ninput, nhid),
    "dense2": LinearSynapse.rand_init(rng, nlabel, nhid),
}

connections = [(("input", "hidden"), "dense1"), (("labels", "hidden"), "dense2")]

ham = hmx.HAM(neurons, synapses, connections)
xs = ham.init_states()  # No batch size
xhats = ham.activations(xs)
print(float(ham.energy(xhats, xs)))
print(ham.dEdact(xhats, xs)["hidden"].tolist())

vham = ham.vectorize()
bs = 3
xs = vham.init_states(bs)  # Batch size 3
xs = jtu.tree_map(lambda x: jnp.asarray(rng.normal(size=x.shape)), xs)
xhats = vham.activations(xs)
print(vham.energy(xhats, xs).tolist())

nsteps = 40
step_size = 0.5
energies = jnp.empty((nsteps, bs))
for i in range(nsteps):
    xhats = vham.activations(xs)
    energy, slopes = vham.dEdact(xhats, xs, return_energy=True)
    energies = energies.at[i].set(energy)
    xs = jtu.tree_map(lambda x, u: x - step_size * u, xs, slopes)
print(energies[-1].tolist())
