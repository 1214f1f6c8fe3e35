"""Batches of programs (vmap): one axis more through every operation that has a rule, equal to one
entry after the other; operations without a rule are not batched, and nothing is batched wrongly."""

import numpy
import pytest
import some_energies

import basin
from basin._engine import programs as _programs


def run(program, arrays):
    arrays = [numpy.ascontiguousarray(a, float) for a in arrays]
    results = [numpy.empty(shape) for shape in program.outputs]
    program.running("ref").run([a.ctypes.data for a in arrays], [r.ctypes.data for r in results])
    return results


def check(key, shapes, which, size=3):
    """The batch of a program beside its entries; False where it is none."""
    rng = numpy.random.default_rng(5)
    whole = [(size, *s) if which >> i & 1 else s for i, s in enumerate(shapes)]
    arrays = [rng.normal(size=s) for s in whole]
    found = _programs.batched(key, shapes, which, size)
    if found is None:
        return False
    made = run(_programs.find(found, tuple(whole)), arrays)
    for n in range(size):
        one = [a[n] if which >> i & 1 else a for i, a in enumerate(arrays)]
        for a, b in zip(made, run(_programs.find(key, shapes), one)):
            numpy.testing.assert_allclose(a[n], b, rtol=1e-11, atol=1e-12)
    return True


KEPT = []


def of(what, output="value", **options):
    source = _programs.source(what, output, **options)
    KEPT.append(source)
    names = [name for name in source.names if name not in ("gamma", "delta", "epsilon")]
    return f"{source.number}:{','.join(names)}"


def table(*functions):
    return [pytest.param(f, id=str(i)) for i, f in enumerate(functions)]


def pooled(x, w):
    return numpy.sum(numpy.where(x > 0, x, w[0]), axis=0) / (1 + numpy.linalg.norm(w))


RULES = table(
    lambda x, w: x - w * 2,
    lambda x, w: x[0] * w[:, None] + 1 / (3 + x[1] ** 2),
    lambda x, w: x @ w,
    lambda x, w: x.T @ x,
    lambda x, w: w @ w + x[0, 0],
    lambda x, w: numpy.einsum("nd,md,d->nm", x, x, w),
    lambda x, w: numpy.einsum("...d,d", x, w),
    lambda x, w: numpy.tensordot(x, w, 1),
    lambda x, w: numpy.outer(w, x[1]),
    lambda x, w: numpy.mean(x - numpy.mean(x, axis=0), axis=-1) * numpy.max(w),
    lambda x, w: basin.logsumexp(x * w, axis=(0, 1)),
    lambda x, w: basin.softmax(x, axis=0) + basin.softmax(w),
    lambda x, w: basin.layernorm(x) * numpy.tanh(w),
    lambda x, w: numpy.concatenate([x, w[None], numpy.ones((2, 4))]),
    lambda x, w: numpy.stack([x[0], w, w * 2], axis=-1),
    lambda x, w: x[::-1, 1:3] * numpy.roll(w, 1)[:2] + x[[0, 2, 1]][:, :2],
    lambda x, w: x.reshape(2, 6)[:, None] * numpy.cumsum(w)[0],
    lambda x, w: numpy.pad(x, 1)[:4, :4] + numpy.broadcast_to(w, (4, 4)),
    lambda x, w: numpy.diagonal(x[:, :3]) + numpy.trace(x) * w[:3],
    lambda x, w: numpy.var(x) + numpy.prod(w) + numpy.logaddexp(x, w),
    lambda x, w: basin.sparsemax(x) + basin.sparsemax(w),
    lambda x, w: numpy.linalg.norm(x - w, axis=-1),
    lambda x, w: numpy.linalg.solve(x[:, :3] + 3 * numpy.eye(3), w[:3]),
    lambda x, w: numpy.linalg.inv(numpy.outer(w, w) + numpy.eye(4)) @ x.T,
    lambda x, w: numpy.linalg.solve(numpy.stack([x[:, 1:], x[:, :3]]) + 3 * numpy.eye(3), x),
    lambda x, w: numpy.linalg.cholesky(x @ x.T + 2 * numpy.eye(3)) * w[0],
    lambda x, w: numpy.linalg.slogdet(x @ x.T + numpy.eye(3)).logabsdet * w,
    lambda x, w: basin.gradient(numpy.sum(x**3) * w[0], x) if x._batch else x**2 * 3 * w[0],
    lambda x, w: {"a": x, "b": (w, numpy.float64(1.0) * w[0])},
    pooled,
)


@pytest.mark.parametrize("function", RULES)
@pytest.mark.parametrize("which", [1, 2, 3])
def test_each_rule(function, which):
    if which == 2 and "_batch" in function.__code__.co_names:
        return  # the gradient by what entries share
    function = basin.function(function)
    key = of(function)
    shapes = (3, 4), (4,)
    assert check(key, shapes, which)
    outs = len(_programs.find(key, shapes).outputs)
    if outs == 1:
        back = (*shapes, *_programs.find(key, shapes).outputs)
        assert check(f"{key}|v1.3", back, which | 4)
        assert check(f"{key}|v1.1", back, which)
        assert check(f"{key}|j3", (*shapes, *shapes), which | 4)


@pytest.mark.parametrize("name", some_energies.cases())
@pytest.mark.parametrize("output", ["value", "force", "descend"])
def test_energies_and_their_derivatives(name, output):
    energy, x, parameters = some_energies.cases()[name]
    key = of(energy, output, **({"steps": 3} if output == "descend" else {}))
    shapes = (x.shape, *(value.shape for value in parameters.values()))
    made = _programs.find(key, shapes).outputs
    for which in (1, 2, (1 << len(shapes)) - 1):
        assert check(key, shapes, which)
    assert check(f"{key}|v1.1", (*shapes, *made), 1 | 1 << len(shapes))
    assert check(f"{key}|v1.3|v3.1", (*shapes, *made, *shapes[:2]), 1)


def by_sign(x, w):
    return x[numpy.argmax(x[:, 0])] * w


@pytest.mark.parametrize(
    "function",
    table(
        by_sign,
        lambda x, w: basin.attention_lse(
            x.reshape(3, 2, 2), x.reshape(3, 2, 2), pairs=numpy.array([[0, 1]])
        ),
        lambda x, w: numpy.floor(x) + w,
        lambda x, w: basin.gradient(numpy.sum(x * w), w),
    ),
)
def test_what_has_no_rule_is_not_batched(function):
    key = of(basin.function(function))
    assert not check(key, ((3, 4), (4,)), 1)
    key = of(some_energies.memory, "descend", steps=2, noise=0.1)
    assert not check(key, ((2, 3), (4, 3), ()), 1)
