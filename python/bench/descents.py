"""Microseconds per step of a descent, and per call of an energy and its force, beside JAX.

A state of 64 numbers and 128 memories, batches of 1, 16 and 64, one thread: `descend` (energies by
step, change of g), `unroll` compiled (tokens alone), and JAX's fori_loop under jit with the
energies by step and without them; energy() and force() beside a compiled basin.function of the
same. All in turn, so that a busy moment meets each; the least and the
median of many short repetitions.

    python python/bench/descents.py [STEPS [REPETITIONS]]
"""

import os
import statistics
import sys
import time

if hasattr(os, "sched_setaffinity"):  # one thread each: XLA makes one for every processor it sees
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy

import basin

WIDTH, MEMORIES, ALPHA = 64, 128, 0.1
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
REPETITIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
BACKEND = basin.Backend("cpu", threads=1)


@basin.energy(batched=True)
def memory(g, xi):
    return numpy.sum(g * g, axis=-1) / 2 - basin.logsumexp(g @ xi.T)


@basin.function(backend=BACKEND)
def unrolled(x, xi):
    return memory.unroll(x, STEPS, ALPHA, xi=xi)


@basin.function(backend=BACKEND)
def compiled_energy(x, xi):
    return memory(x, xi=xi)


@basin.function(backend=BACKEND)
def compiled_force(x, xi):
    return memory.force(x, xi=xi)


def with_basin(x, xi):
    return {
        "basin descend": lambda: memory.descend(
            x, steps=STEPS, alpha=ALPHA, backend=BACKEND, xi=xi
        ),
        "basin descended": lambda: unrolled(x, xi),
        "basin energy()": lambda: memory(x, backend=BACKEND, xi=xi),
        "basin energy, compiled": lambda: compiled_energy(x, xi),
        "basin force()": lambda: memory.force(x, backend=BACKEND, xi=xi),
        "basin force, compiled": lambda: compiled_force(x, xi),
    }


def with_jax(x, xi):
    import jax
    import jax.numpy as jnp

    def energy(g, xi):
        return jnp.sum(g * g, -1) / 2 - jax.nn.logsumexp(g @ xi.T, axis=-1)

    def total(g, xi):
        value = energy(g, xi)
        return jnp.sum(value), value

    both = jax.value_and_grad(total, has_aux=True)

    @jax.jit
    def traced(x, xi):
        def step(t, carry):
            x, trace = carry
            (_, value), slope = both(x, xi)
            return x - ALPHA * slope, trace.at[t].set(value)

        x, trace = jax.lax.fori_loop(0, STEPS, step, (x, jnp.zeros((STEPS + 1, len(x)))))
        return x, trace.at[STEPS].set(energy(x, xi))

    slope = jax.grad(lambda g, xi: total(g, xi)[0])

    @jax.jit
    def plain(x, xi):
        return jax.lax.fori_loop(0, STEPS, lambda t, x: x - ALPHA * slope(x, xi), x)

    value, force = jax.jit(energy), jax.jit(lambda g, xi: -slope(g, xi))
    x, xi = jnp.asarray(x), jnp.asarray(xi)
    return {
        "jax descend": lambda: jax.block_until_ready(traced(x, xi)),
        "jax descended": lambda: plain(x, xi).block_until_ready(),
        "jax energy()": lambda: value(x, xi).block_until_ready(),
        "jax force()": lambda: force(x, xi).block_until_ready(),
    }


def measure(ways):
    """Microseconds of each: all of them, their lists."""
    taken = {name: [] for name in ways}
    for run in ways.values():
        run()  # compiles
    for _ in range(REPETITIONS):
        for name, run in ways.items():
            times = 1 if "descend" in name else 10  # calls in a row: the first finds cold caches
            start = time.perf_counter()
            for _ in range(times):
                run()
            taken[name].append(1e6 * (time.perf_counter() - start) / times)
    return taken


def main():
    rng = numpy.random.default_rng(0)
    xi = (rng.normal(size=(MEMORIES, WIDTH)) / 8).astype("f4")
    print(f"{'microseconds, least (median)':32}" + "".join(f"{b:>20}" for b in (1, 16, 64)))
    rows = {}
    for batch in (1, 16, 64):
        x = rng.normal(size=(batch, WIDTH)).astype("f4")
        ways = with_basin(x, xi)
        try:
            ways.update(with_jax(x, xi))
        except ImportError:
            print("without JAX, which is not installed", file=sys.stderr)
        for name, taken in measure(ways).items():
            per = STEPS if "descend" in name else 1
            figures = min(taken) / per, statistics.median(taken) / per
            rows.setdefault(name, []).append("{:.2f} ({:.2f})".format(*figures))
    for name, cells in rows.items():
        unit = " per step" if "descend" in name else " per call"
        print(f"{name + unit:32}" + "".join(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
