"""Microseconds per step of descents of networks of layers, beside HAMUX under jit.

Three layers (identity 64, softmax 32, tanh 16) with two linear synapses, or with one of three
layers of one's own, without a batch axis and with batches of 16 and 128: `descend` (energies by
step and term), `unroll` compiled (states alone), and HAMUX's loop under jax.jit with energies by
step and without. CPU time of the process (user and system), all in turn, one thread; the least and
the median of many repetitions.

    python python/bench/hams.py [STEPS [REPETITIONS]]
"""

import os
import statistics
import sys
import time

if hasattr(os, "sched_setaffinity"):  # one thread each: XLA makes one for every processor it sees
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy

import basin
from basin import ham

SIZES = {"v": 64, "h": 32, "t": 16}
KINDS = {"v": "identity", "h": "softmax", "t": "tanh"}
DT = 0.1
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
REPETITIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 100
BACKEND = basin.Backend("cpu", threads=1)


def weights(own):
    rng = numpy.random.default_rng(0)
    shapes = {"vht": (64, 32, 16)} if own else {"vh": (64, 32), "ht": (32, 16)}
    return {n: (rng.normal(size=s) / 8).astype("f4") for n, s in shapes.items()}


def three(v, h, t, w):
    return -numpy.einsum("bi,bj,bk,ijk->b", v, h, t, w)


def with_basin(own, x):
    layers = {name: ham.Layer(KINDS[name], size) for name, size in SIZES.items()}
    w = weights(own)
    synapses = {n: ham.Synapse(three, w=v) if own else ham.linear(w=v) for n, v in w.items()}
    network = ham.HAM(layers, synapses, [(tuple(name), name) for name in w])

    @basin.function(backend=BACKEND)
    def unrolled(x):
        return network.unroll(x, steps=STEPS, alpha=DT)

    return {
        "basin descend": lambda: network.descend(x, steps=STEPS, alpha=DT, backend=BACKEND),
        "basin descended": lambda: unrolled(x),
    }


def with_hamux(own, x, batched):
    import equinox as eqx
    import hamux as hmx
    import jax
    import jax.numpy as jnp

    class Product(eqx.Module):
        W: jax.Array

        def __call__(self, *g):
            return -(g[0] @ self.W @ g[1] if len(g) == 2 else
                     jnp.einsum("i,j,k,ijk->", *g, self.W))  # fmt: skip

    lagrangians = {"v": hmx.lagr_identity, "h": hmx.lagr_softmax, "t": hmx.lagr_tanh}
    neurons = {n: hmx.NeuronLayer(lagrangians[n], (size,)) for n, size in SIZES.items()}
    synapses = {n: Product(jnp.asarray(w)) for n, w in weights(own).items()}
    network = hmx.HAM(neurons, synapses, [(tuple(name), name) for name in synapses])
    network = network.vectorize() if batched else network
    x = {name: jnp.asarray(value) for name, value in x.items()}

    def step(x, _):
        energy, slope = network.dEdact(network.activations(x), x, return_energy=True)
        return jax.tree_util.tree_map(lambda a, b: a - DT * b, x, slope), energy

    @jax.jit
    def traced(x):
        return jax.lax.scan(step, x, None, STEPS)

    @jax.jit
    def plain(x):
        return jax.lax.scan(lambda x, t: (step(x, t)[0], None), x, None, STEPS)[0]

    return {
        "hamux descend": lambda: jax.block_until_ready(traced(x)),
        "hamux descended": lambda: jax.block_until_ready(plain(x)),
    }


def measure(ways):
    """Microseconds per step of each: all of them, their lists."""
    taken = {name: [] for name in ways}
    for run in ways.values():
        run()  # compiles
    for _ in range(REPETITIONS):
        for name, run in ways.items():
            start = time.process_time()
            run()
            taken[name].append(1e6 * (time.process_time() - start) / STEPS)
    return taken


def main():
    rng = numpy.random.default_rng(1)
    for own in (False, True):
        title = "own three-way synapse" if own else "linear synapses"
        print(f"{title + ', least (median)':32}" + "".join(f"{b:>20}" for b in ("none", 16, 128)))
        rows = {}
        for batch in (None, 16, 128):
            head = () if batch is None else (batch,)
            x = {n: rng.normal(size=(*head, size)).astype("f4") for n, size in SIZES.items()}
            ways = with_basin(own, x)
            try:
                ways.update(with_hamux(own, x, batch is not None))
            except ImportError:
                print("without HAMUX, which is not installed", file=sys.stderr)
            for name, taken in measure(ways).items():
                cell = f"{min(taken):.2f} ({statistics.median(taken):.2f})"
                rows.setdefault(name, []).append(cell)
        for name, cells in rows.items():
            print(f"{name:32}" + "".join(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
