"""Three energies of different kinds, with tokens and parameters in double: what the tests of
basin.torch and basin.jax differentiate."""

import numpy

import basin


@basin.energy(batched=True)
def memory(g, xi, beta=2.0):
    """A dense associative memory with a log-sum-exp."""
    return numpy.sum(g**2, axis=-1) / 2 - basin.logsumexp(beta * (g @ xi.T)) / 2


one = basin.energy(memory._function)  # of one row of tokens


@basin.energy(activation=basin.layernorm)
def block(g, wq, wk, xi):
    """The paper's block, its ReLU smooth: attention and memories over layer-normed tokens."""
    q, k = (numpy.einsum("nd,hyd->nhy", g, w) for w in (wq, wk))
    attention = -numpy.sum(basin.attention_lse(q, k, 0.5, exclude_self=True)) / 0.5
    return {"attention": attention, "memories": -numpy.sum(basin.softplus(g @ xi.T) ** 2) / 2}


@basin.energy
def oscillators(g, weight):
    """Kuramoto's pairs of phases."""
    return -numpy.sum(weight * numpy.cos(g[:, None] - g[None, :])) / 2


def cases():
    """name -> (energy, tokens, parameters)."""
    rng = numpy.random.default_rng(3)
    draw = rng.normal
    return {
        "memory": (memory, draw(size=(2, 3)), {"xi": draw(size=(4, 3)), "beta": draw(size=())}),
        "block": (
            block,
            draw(size=(4, 5)),
            {"wq": draw(size=(2, 3, 5)), "wk": draw(size=(2, 3, 5)), "xi": draw(size=(3, 5))},
        ),
        "oscillators": (oscillators, draw(size=5), {"weight": draw(size=(5, 5))}),
    }
