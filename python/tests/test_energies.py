"""Energies in Python against NumPy's own arithmetic and finite differences."""

import copy
import pickle

import numpy
import pytest

import basin

rng = numpy.random.default_rng(7)
N, D, H, Y, M = 7, 12, 2, 5, 9
TOKENS = rng.normal(size=(N, D))
WEIGHTS = {
    "wk": rng.normal(size=(H, Y, D)) / 3,
    "wq": rng.normal(size=(H, Y, D)) / 3,
    "xi": rng.normal(size=(M, D)) / 3,
}


@basin.energy(activation=basin.layernorm)
def block(g, wk, wq, xi):
    """The paper's block from its equations."""
    beta = Y**-0.5
    k = numpy.einsum("nd,hyd->nhy", g, wk)
    q = numpy.einsum("nd,hyd->nhy", g, wq)
    attention = -numpy.sum(basin.attention_lse(q, k, beta, exclude_self=True)) / beta
    return {"attention": attention, "hopfield": -numpy.sum(basin.relu(g @ xi.T) ** 2) / 2}


def block_in_numpy(x, wk, wq, xi):
    beta = Y**-0.5
    g = (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5)
    scores = beta * numpy.einsum("nd,hyd,hye,me->hnm", g, wq, wk, g)
    scores[:, range(len(x)), range(len(x))] = -numpy.inf
    top = scores.max(-1, keepdims=True)
    lse = numpy.log(numpy.exp(scores - top).sum(-1)) + top[..., 0]
    return -lse.sum() / beta - (numpy.maximum(g @ xi.T, 0) ** 2).sum() / 2


def test_block_agrees_with_numpy():
    ours = block(TOKENS, backend="ref", **WEIGHTS)
    assert ours == pytest.approx(block_in_numpy(TOKENS, **WEIGHTS), rel=1e-12)


def test_gradient_of_a_parameter_agrees_with_differences():
    slope = block.grad(TOKENS, "xi", backend="ref", **WEIGHTS)
    for i, j in [(0, 0), (3, 7), (8, 11)]:
        values = []
        for step in (1e-5, -1e-5):
            xi = WEIGHTS["xi"].copy()
            xi[i, j] += step
            values.append(block_in_numpy(TOKENS, WEIGHTS["wk"], WEIGHTS["wq"], xi))
        assert slope[i, j] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5, abs=1e-7)


def test_second_derivative_is_symmetric_and_right():
    @basin.energy
    def quartic(g):
        return numpy.sum(g**4) + numpy.sum(g) ** 2

    x, v = rng.normal(size=5), rng.normal(size=5)
    expected = 12 * x**2 * v + 2 * v.sum()
    assert quartic.hessian_vector(x, v, backend="ref") == pytest.approx(expected, rel=1e-12)


def test_descent_goes_down():
    descent = block.descend(TOKENS, steps=30, alpha=0.02, **WEIGHTS)
    assert descent.energy.shape == (31, 1)
    assert numpy.all(numpy.diff(descent.energy[:, 0]) < 0)
    assert set(descent.terms) == {"attention", "hopfield"}


def test_descent_agrees_with_an_unrolled_one():
    @basin.function(backend="ref")
    def unrolled(x, wk, wq, xi):
        return block.unroll(x, steps=5, alpha=0.1, wk=wk, wq=wq, xi=xi)

    stepped = block.descend(TOKENS, steps=5, alpha=0.1, backend="ref", **WEIGHTS)
    assert unrolled(TOKENS, **WEIGHTS) == pytest.approx(stepped.x, rel=1e-12)


def test_errors_name_the_line_and_the_shapes():
    @basin.energy
    def wrong(g, w):
        return numpy.sum(g @ w)  # the line

    with pytest.raises(basin.BasinError, match=r"'w' \[3, 4\]") as caught:
        wrong.descend(TOKENS, w=numpy.zeros((3, 4)))
    assert any("the line" in str(entry.statement) for entry in caught.traceback)


def line_of(function, text):
    """The last line of this file in the traceback of what a call of the function raises."""
    with pytest.raises((basin.BasinError, IndexError)) as caught:
        function()
    assert text in str(caught.value)
    here = [entry for entry in caught.traceback if entry.path.name == "test_energies.py"]
    return str(here[-1].statement)


def conditional(g):
    if g[0] > 0:
        return numpy.sum(g)
    return -numpy.sum(g)


def assigned(g):
    g[0] = 3
    return numpy.sum(g)


MISTAKES = [
    (conditional, "if g[0] > 0", "numpy.where instead of if"),
    (assigned, "g[0] = 3", "does not change"),
    (lambda g: numpy.sum(numpy.spacing(g)), "numpy.spacing", "spacing has no form"),
    (lambda g: numpy.sum(numpy.unique(g)), "numpy.unique", "unique has no form"),
    (lambda g: numpy.sum(g, dtype=float), "dtype=float", "numpy.sum of an expression"),
    (lambda g: g[5], "g[5]", "subscript 5"),
    (lambda g: max(g[0], g[1]), "max(g[0]", "numpy.maximum instead of max"),
    (lambda g: numpy.sum(g @ numpy.ones(7)), "g @ numpy.ones(7)", "do not multiply"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
@pytest.mark.parametrize("way", ["__call__", "descend", "force"])
def test_errors_name_the_line_of_the_function(number, way):
    function, line, told = MISTAKES[number]
    ours = basin.energy(function)
    assert line in line_of(lambda: getattr(ours, way)([1.0, 2.0]), told)


@pytest.mark.parametrize("value", [None, "text", {"a": None}])
def test_what_is_no_energy_names_the_function(value):
    def forgetful(g):
        return value

    first = forgetful.__code__.co_firstlineno
    for way in ("__call__", "descend", "force"):
        with pytest.raises(basin.BasinError, match=rf"test_energies.py, line {first}\)"):
            getattr(basin.energy(forgetful), way)([1.0])


def test_terms_of_other_shapes_name_the_function():
    ours = basin.energy(lambda g: {"a": numpy.sum(g), "b": g})
    with pytest.raises(basin.BasinError, match=r"test_energies.py, line \d+\): the term 'b' \[2\]"):
        ours.descend([1.0, 2.0])


@pytest.mark.parametrize(
    ("x", "told"),
    [
        ([["a"]], "type <U1"),
        (numpy.zeros((2, 2), complex), "type complex128"),
        (numpy.array([[None]]), "type object"),
    ],
)
def test_tokens_that_are_no_numbers_are_refused(x, told):
    with pytest.raises(basin.BasinError, match=told):
        basin.energy(lambda g: numpy.sum(g))(x)


def test_layouts_and_types_of_tokens_do_not_matter():
    ours = basin.energy(lambda g: numpy.sum(g * numpy.array([1.0, 10.0])))
    expected = ours([[1.0, 2.0], [3.0, 4.0]])
    for x in (
        [[1, 2], [3, 4]],
        numpy.array([[1, 3], [2, 4]]).T,
        numpy.array([[1, 9, 2], [3, 9, 4]], "f2")[:, ::2],
    ):
        assert ours(x) == expected


def test_a_descent_that_leaves_the_numbers_says_so():
    quartic = basin.energy(lambda g: numpy.sum(g**4))
    with pytest.warns(RuntimeWarning, match="not finite from step . on"):
        quartic.descend([10.0], steps=9, alpha=1.0)
    with pytest.warns(RuntimeWarning, match="the energy of the tokens is not finite"):
        quartic.descend([numpy.nan])


def test_an_energy_is_a_function():
    with pytest.raises(basin.BasinError, match="3.*function"):
        basin.energy(3)


def test_an_unknown_parameter_is_refused():
    with pytest.raises(basin.BasinError, match="no parameter 'wv'"):
        block(TOKENS, wv=numpy.zeros(3), **WEIGHTS)


@pytest.mark.parametrize("misuse", [bool, float, numpy.linalg.svd, numpy.asarray])
def test_values_are_not_there_yet(misuse):
    @basin.energy
    def impatient(g):
        return misuse(g)

    with pytest.raises(basin.BasinError):
        impatient(TOKENS)


# ---- plans are kept ----


def test_an_energy_is_traced_once_for_each_set_of_shapes():
    traces = []

    @basin.energy
    def bowl(g, k, power=2):
        traces.append(g.shape)
        return numpy.sum(k * numpy.sum(g**power))

    x = numpy.array([1.0, 2.0])
    for scale in (1.0, 2.0, 3.0):
        assert bowl(x, k=scale) == scale * 5
        assert bowl.force(x * scale, k=1.0).tolist() == (-2 * scale * x).tolist()
        assert bowl.grad(x * scale, "k", k=1.0) == scale**2 * 5
        assert bowl.hessian_vector(x, scale * x, k=1.0).tolist() == (2 * scale * x).tolist()
    assert len(traces) == 4
    assert bowl(x, k=[1.0, 2.0]) == 15.0 and len(traces) == 5
    assert bowl(x, k=1 / 3, backend="ref").dtype == numpy.float64 and len(traces) == 6


def test_parameters_may_be_trees():
    @basin.energy
    def pulled(g, net):
        return numpy.sum((g - net["to"]) ** 2) * net["by"][0] / 2

    net = {"to": numpy.array([1.0, 2.0]), "by": (numpy.array(3.0), None)}
    assert pulled([0.0, 0.0], net=net) == 7.5
    slope = pulled.grad([0.0, 0.0], "net", net=net)
    assert slope["to"].tolist() == [3, 6] and slope["by"][0] == 2.5 and slope["by"][1] is None
    end = pulled.descend([0.0, 0.0], steps=100, alpha=0.1, net=net).x
    assert end == pytest.approx([1, 2], abs=1e-3)


def test_energies_of_expressions_are_expressions():
    bowl = basin.energy(lambda g, k: k * numpy.sum(g**4), activation=lambda x: 2 * x)
    x, k = numpy.array([1.0, 2.0]), 3.0

    @basin.function(backend="ref")
    def inside(x, k):
        return bowl(x * 2, k=k), bowl.force(x, k=2.0), bowl.grad(x, "k", k=k)

    energy, force, slope = inside(x, k)
    assert energy == pytest.approx(3 * numpy.sum((4 * x) ** 4))
    assert force == pytest.approx(-8 * (2 * x) ** 3)
    assert slope == pytest.approx(numpy.sum((2 * x) ** 4))
    loss = basin.function(lambda x: numpy.sum(bowl.force(x, k=1.0)), backend="ref")
    assert loss.grad(x) == pytest.approx(-12 * (2 * x) ** 2 * 2)


@basin.energy
def wells(g):
    return numpy.sum((g**2 - 1) ** 2) / 4


def test_energies_are_pickled():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(wells, protocol)) is wells
        assert pickle.loads(pickle.dumps(block, protocol)) is block
    again = pickle.loads(pickle.dumps(block))
    assert again(TOKENS, **WEIGHTS) == block(TOKENS, **WEIGHTS)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(basin.energy(lambda g: numpy.sum(g)))
    cloudpickle = pytest.importorskip("cloudpickle")
    again = pickle.loads(cloudpickle.dumps(basin.energy(lambda g: numpy.sum(g))))
    assert again([1.0, 2.0]) == 3


# ---- descents ----


@basin.energy(batched=True)
def memories(g, xi):
    """A modern Hopfield network: tokens are drawn to the nearest rows of xi."""
    return {"pull": numpy.sum(g**2, axis=-1) / 2, "memory": -basin.logsumexp(g @ xi.T)}


XI = rng.normal(size=(9, D))


@pytest.mark.parametrize("backend", ["ref", "cpu"])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_steps_taken_together_are_those_taken_one_by_one(backend, noise):
    """With an observer every step is a plan of its own; the bits are the same."""
    ways = [
        memories.descend(TOKENS, steps=14, noise=noise, seed=3, backend=backend, xi=XI, **more)
        for more in ({}, {"observe": lambda now: None}, {"trajectory": True})
    ]
    for way in ways[1:]:
        assert numpy.array_equal(way.x, ways[0].x)
        assert numpy.array_equal(way.energy, ways[0].energy)
        assert numpy.array_equal(way.change, ways[0].change)
    assert ways[0].trajectory is None and ways[2].trajectory.shape == (15, N, D)
    assert numpy.array_equal(ways[2].trajectory[-1], ways[0].x)
    other = memories.descend(TOKENS, steps=14, noise=noise, seed=4, backend=backend, xi=XI)
    assert numpy.array_equal(other.x, ways[0].x) == (noise == 0)


def test_descents_are_built_once_for_each_set_of_shapes():
    traces = []

    @basin.energy
    def bowl(g, k):
        traces.append(1)
        return k * numpy.sum(g**2) / 2

    bowl.descend([1.0, 2.0], steps=9, k=1.0)
    count = len(traces)
    for alpha, k in ((0.1, 2.0), (0.5, 1.0), ([0.1] * 11, 1.0)):
        steps = 9 if numpy.ndim(alpha) == 0 else 11
        descent = bowl.descend([1.0, 2.0], steps=steps, alpha=alpha, seed=5, k=k)
        shrunk = (1 - numpy.mean(alpha) * k) ** steps
        assert descent.x == pytest.approx(shrunk * numpy.array([1, 2]), rel=1e-5)
    assert len(traces) == count


@pytest.mark.parametrize(
    "alpha",
    [[0.5, 0.25, 0.0, 1.0], numpy.array([0.5, 0.25, 0.0, 1.0]), lambda t: [0.5, 0.25, 0, 1][t]],
)
def test_sizes_may_differ_from_step_to_step(alpha):
    bowl = basin.energy(lambda g: numpy.sum(g**2) / 2)
    descent = bowl.descend([8.0], steps=4, alpha=alpha, trajectory=True, backend="ref")
    assert descent.trajectory[:, 0].tolist() == [8, 4, 3, 3, 0]
    unrolled = basin.function(lambda x: bowl.unroll(x, 3, alpha=[0.5, 0.25, 0.5]))
    assert unrolled([8.0]).tolist() == [1.5]
    with pytest.raises(basin.BasinError, match=r"alpha \[2\].*number or one per step"):
        bowl.descend([8.0], steps=4, alpha=[0.1, 0.2])


def test_clamped_tokens_stay():
    mask = numpy.zeros((N, D))
    mask[2:] = 1
    for more in ({}, {"noise": 0.1}, {"accelerate": True}, {"guard": True}, {"observe": print}):
        end = memories.descend(TOKENS, steps=9, mask=mask, backend="ref", xi=XI, **more).x
        assert numpy.array_equal(end[:2], TOKENS[:2])
        assert (end[2:] != TOKENS[2:]).all()
    free = memories.descend(TOKENS, steps=9, backend="ref", xi=XI).x
    assert numpy.array_equal(free[2:], memories.descend(
        TOKENS, steps=9, mask=mask[:, :1], backend="ref", xi=XI).x[2:])  # fmt: skip
    unrolled = basin.function(
        lambda x, mask: memories.unroll(x, 9, 0.1, mask=mask, xi=XI), backend="ref"
    )
    assert unrolled(TOKENS, mask)[2:] == pytest.approx(free[2:], rel=1e-12)
    assert numpy.array_equal(unrolled(TOKENS, mask)[:2], TOKENS[:2])
    slope = unrolled.grad(TOKENS, mask)
    assert (slope[:2] == 1).all() and (slope[2:] != 1).any()
    with pytest.raises(basin.BasinError, match=r"a mask \[3\].*one for tokens \[7, 12\]"):
        memories.descend(TOKENS, mask=[1, 0, 1], xi=XI)


def test_turns_move_and_land():
    def on_sphere(x, t):
        return x / numpy.linalg.norm(x, axis=-1, keepdims=True)

    turns = [
        {"terms": "pull"},
        {"terms": ["memory"], "move": lambda f, x, t: 2 * f, "project": on_sphere},
    ]
    descent = memories.descend(TOKENS, steps=3, turns=turns, backend="ref", xi=XI)
    x = TOKENS
    for t in range(3):
        x = x - 0.1 * x
        shares = numpy.exp(x @ XI.T)
        x = on_sphere(x + 0.2 * (shares / shares.sum(-1, keepdims=True)) @ XI, t)
    assert descent.x == pytest.approx(x, rel=1e-12)
    unrolled = basin.function(
        lambda x: memories.unroll(x, 3, 0.1, turns=turns, xi=XI), backend="ref"
    )
    assert unrolled(TOKENS) == pytest.approx(x, rel=1e-12)
    for wrong, told in (
        ({"terms": "pul"}, "a turn of term 'pul'"),
        ({"go": 1}, "a turn with 'go'"),
    ):
        with pytest.raises(basin.BasinError, match=told):
            memories.descend(TOKENS, turns=[wrong], xi=XI)


def test_observers_see_every_step_and_may_end_it():
    seen = []

    def observe(now):
        seen.append((now.step, now.x, now.energy, now.terms["pull"], now.change))
        return now.step == 4

    descent = memories.descend(TOKENS, steps=9, observe=observe, backend="ref", xi=XI)
    assert descent.steps == 4 and [s[0] for s in seen] == [0, 1, 2, 3, 4]
    assert numpy.array_equal([s[2] for s in seen], descent.energy)
    assert numpy.array_equal([s[3] for s in seen], descent.terms["pull"])
    assert numpy.array_equal([s[4] for s in seen[1:]], descent.change)
    assert numpy.array_equal(seen[0][1], TOKENS) and numpy.array_equal(seen[4][1], descent.x)

    def broken(now):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        memories.descend(TOKENS, observe=broken, xi=XI)


@pytest.mark.parametrize("backend", ["ref", "cpu"])
def test_moments_keep_the_tokens_of_their_step(backend):
    kept = []

    def keep(now):
        kept.append(now)
        return now.x is not now.x  # read once

    descent = memories.descend(
        TOKENS, steps=3, observe=keep, trajectory=True, backend=backend, xi=XI
    )
    assert descent.steps == 3
    assert numpy.array_equal([now.x for now in kept], descent.trajectory)
    late = []
    memories.descend(TOKENS, steps=3, observe=late.append, backend=backend, xi=XI)
    assert numpy.array_equal([now.energy for now in late], descent.energy)
    for now in late:
        with pytest.raises(basin.BasinError, match=f"x of step {now.step}, whose moment is over"):
            now.x  # noqa: B018


@pytest.mark.parametrize("backend", ["ref", "cpu"])
def test_observers_may_descend_themselves(backend):
    plain = memories.descend(TOKENS, steps=3, backend=backend, xi=XI)
    inner = []

    def look_ahead(now):
        deeper = memories.descend(
            now.x, steps=3, observe=lambda n: nothing(n.x), alpha=0.3, backend=backend, xi=-XI
        )
        inner.append(deeper.x)

    def nothing(x):
        memories.descend(x + 1, steps=3, observe=lambda n: None, backend=backend, xi=XI)

    for _ in range(2):
        outer = memories.descend(TOKENS, steps=3, observe=look_ahead, backend=backend, xi=XI)
        assert numpy.array_equal(outer.x, plain.x)
        assert numpy.array_equal(outer.energy, plain.energy)
    again = memories.descend(TOKENS, steps=3, alpha=0.3, backend=backend, xi=-XI)
    assert numpy.array_equal(inner[0], again.x) and numpy.array_equal(inner[4], again.x)


def test_descents_inside_observers_are_built_once():
    traces = []

    @basin.energy
    def bowl(g):
        traces.append(1)
        return numpy.sum(g**2) / 2

    def descend():
        bowl.descend([1.0], observe=lambda now: bowl.descend(now.x, observe=print) and None)

    descend()
    count = len(traces)
    descend()
    assert len(traces) == count


@pytest.mark.parametrize("answer", [True, numpy.bool_(True), numpy.array(True), 1, "yes"])
def test_any_true_value_ends_a_descent(answer):
    assert memories.descend(TOKENS, observe=lambda now: answer, xi=XI).steps == 0


@pytest.mark.parametrize("answer", [None, False, numpy.bool_(False), 0, ""])
def test_no_other_value_ends_a_descent(answer):
    assert memories.descend(TOKENS, steps=3, observe=lambda now: answer, xi=XI).steps == 3


def test_an_array_does_not_say_whether_a_descent_ends():
    with pytest.raises(basin.BasinError, match=r"returned an array \[7\].*one truth value"):
        memories.descend(TOKENS, observe=lambda now: now.energy < 0, xi=XI)


@pytest.mark.parametrize("value", [0.5, numpy.nan, 2, -1])
def test_masks_are_of_0_and_1(value):
    mask = numpy.ones(D)
    mask[3] = value
    told = "a mask of other numbers than 0 and 1"
    with pytest.raises(basin.BasinError, match=told):
        memories.descend(TOKENS, mask=mask, xi=XI)
    with pytest.raises(basin.BasinError, match=told):
        basin.function(lambda x: memories.unroll(x, 2, 0.1, mask=mask, xi=XI))(TOKENS)
    for free in (True, [True] * D, numpy.ones(D, bool), numpy.ones(D, "f4"), [1] * D):
        memories.descend(TOKENS, mask=free, xi=XI)
        basin.function(lambda x, free=free: memories.unroll(x, 2, 0.1, mask=free, xi=XI))(TOKENS)


def test_descents_stop_where_nothing_moves():
    for more in ({"until": 1e-4}, {"tolerance": 1e-5}, {"until": 1e-4, "accelerate": True}):
        descent = memories.descend(TOKENS, steps=2000, alpha=0.5, backend="ref", xi=XI, **more)
        assert descent.converged and descent.steps < 2000
        assert memories.force(descent.x, backend="ref", xi=XI) == pytest.approx(0, abs=1e-3)
    guarded = memories.descend(TOKENS, steps=9, alpha=50.0, guard=True, backend="ref", xi=XI)
    assert (numpy.diff(guarded.energy, axis=0) <= 0).all()


def test_fixed_points_have_gradients_of_their_own():
    fixed = basin.function(
        lambda x, xi: numpy.sum(
            memories.fixed_point(x, xi, steps=500, alpha=0.3, until=1e-10, accuracy=1e-10)
        ),
        backend="ref",
    )
    slope = fixed.grad(TOKENS, XI, wrt="xi")
    step = numpy.zeros_like(XI)
    step[2, 3] = 1e-5
    difference = (fixed(TOKENS, XI + step) - fixed(TOKENS, XI - step)) / 2e-5
    assert slope[2, 3] == pytest.approx(difference, rel=1e-5)
    with pytest.raises(basin.BasinError, match=r"alpha \[5\], expected a number of 0 or more"):
        memories.fixed_point(TOKENS, XI, alpha=[0.1] * 5)


def test_noise_of_unrolled_descents_comes_from_the_seed():
    end = basin.function(lambda x, s: memories.unroll(x, 3, 0.1, noise=0.5, seed=s, xi=XI))
    assert numpy.array_equal(end(TOKENS, 1), end(TOKENS, 1))
    assert not numpy.array_equal(end(TOKENS, 1), end(TOKENS, 2))
    fixed = basin.function(lambda x: memories.unroll(x, 3, 0.1, noise=0.5, seed=7, xi=XI))
    assert numpy.array_equal(fixed(TOKENS), fixed(TOKENS))


def test_an_energy_may_be_one_of_tokens_too():
    """HAMUX's: E = <x, g> - L(x) with g = dL/dx; the tokens are held in dE/dg."""

    @basin.energy(activation=numpy.tanh)
    def neurons(g, x, w):
        return numpy.sum(x * g - numpy.log(numpy.cosh(x))) - numpy.sum((g @ w) * g) / 2

    x, w = rng.normal(size=6), rng.normal(size=(6, 6))
    w = w + w.T
    g = numpy.tanh(x)
    expected = numpy.sum(x * g - numpy.log(numpy.cosh(x))) - g @ w @ g / 2
    assert neurons(x, backend="ref", w=w) == pytest.approx(expected, rel=1e-12)
    assert neurons.force(x, backend="ref", w=w) == pytest.approx(w @ g - x, rel=1e-12)
    for more in ({}, {"accelerate": True}, {"guard": True}):
        descent = neurons.descend(x, steps=9, backend="ref", w=w, **more)
        assert (numpy.diff(descent.energy[:, 0]) < 0).all()
    y = x
    for _ in range(9):
        y = y + 0.1 * (w @ numpy.tanh(y) - y)
    assert neurons.descend(x, steps=9, backend="ref", w=w).x == pytest.approx(y, rel=1e-12)


@pytest.mark.parametrize("name", ["alpha", "steps", "noise", "backend", "mask", "wrt", "x"])
def test_parameters_named_like_keywords_are_refused_at_once(name):
    space: dict = {}
    exec(f"def clash(g, k, {name}): return g", space)
    with pytest.raises(basin.BasinError, match=f"clash has a parameter '{name}', which is a key"):
        basin.energy(space["clash"])


def test_tokens_may_be_a_list_of_arrays():
    ours = basin.energy(batched=True)(lambda g: numpy.sum(g**2, axis=-1) / 2)
    x = [numpy.ones(2), numpy.ones(2) * 2]
    assert ours(x).tolist() == [1, 4]
    assert ours.force(x).tolist() == [[-1, -1], [-2, -2]]
    assert ours.hessian_vector(x, x).tolist() == [[1, 1], [2, 2]]


class Pair:
    """Energies as methods, with what they need in the object."""

    def __init__(self, k):
        self.k = k

    @basin.energy
    def bowl(self, g, to=0.0):
        return self.k * numpy.sum((g - to) ** 2) / 2

    @basin.energy(activation=numpy.tanh)
    def neurons(self, g, x):
        return numpy.sum(x * g) - self.k * numpy.sum(numpy.log(numpy.cosh(x)))


def test_energies_may_be_methods():
    one, three = Pair(1.0), Pair(3.0)
    assert (one.bowl([1.0, 2.0]), three.bowl([1.0, 2.0])) == (2.5, 7.5)
    assert three.bowl.force([1.0], to=2.0) == 3 and one.bowl is one.bowl
    assert three.bowl.descend([1.0], steps=1, alpha=0.1).x == pytest.approx([0.7])
    assert one.neurons([0.5], backend="ref") == pytest.approx(
        0.5 * numpy.tanh(0.5) - numpy.log(numpy.cosh(0.5))
    )
    assert isinstance(Pair.bowl, basin.energies.Energy)
    for again in (*(pickle.loads(pickle.dumps(three, p)) for p in (2, 4)), copy.deepcopy(three)):
        again.k = 2.0
        assert again.bowl([1.0, 2.0]) == 5 and three.bowl([1.0, 2.0]) == 7.5
    bound = pickle.loads(pickle.dumps(three.bowl))
    assert bound([1.0, 2.0]) == 7.5


def test_parameters_may_be_options():
    ours = basin.energy(lambda g, **rest: rest["a"] * numpy.sum(g**2) + numpy.sum(rest["b"] * g))
    assert ours([1.0, 2.0], a=2.0, b=1.0) == 13
    assert ours.grad([1.0, 2.0], "a", a=2.0, b=1.0) == 5
    assert ours.descend([1.0], steps=1, a=2.0, b=1.0).x == pytest.approx([0.5])
    with pytest.raises(basin.BasinError, match="wrt 'c'"):
        ours.grad([1.0], "c", a=2.0, b=1.0)


def test_what_an_energy_cannot_be_is_refused():
    bowl = basin.energy(lambda g: numpy.sum(g**2))
    with pytest.raises(basin.BasinError, match=r"noise \[2\].*number"):
        bowl.descend([1.0, 2.0], noise=[0.1, 0.2])
    with pytest.raises(basin.BasinError, match=r"until \[1\].*number"):
        bowl.descend([1.0, 2.0], until=[0.1])
    still = basin.energy(lambda g, x, c: numpy.sum(x**2) * c)
    with pytest.warns(match="line [0-9]+.: its force is 0 everywhere.*g"):
        still.descend([1.0, 2.0], c=1.0)
    with pytest.raises(basin.BasinError, match="activation 3.*function of tokens x"):
        basin.energy(activation=3)(lambda g: numpy.sum(g))
    for way in ("__call__", "descend", "force"):
        with pytest.raises(basin.BasinError, match="returned no term"):
            getattr(basin.energy(lambda g: {}), way)([1.0])
        constant = basin.energy(activation=lambda x: numpy.ones(1))(lambda g: numpy.sum(g))
        with pytest.raises(basin.BasinError, match="the activation returned .*.*expr"):
            getattr(constant, way)([1.0])


def test_missing_and_unknown_parameters_are_named_everywhere():
    def inside(**options):
        return basin.function(lambda x: memories.unroll(x, 2, 0.1, **options))(TOKENS)

    for way in (memories, memories.descend, memories.force, lambda _, **o: inside(**o)):
        with pytest.raises(basin.BasinError, match="memories needs its parameter 'xi'"):
            way(TOKENS)
        with pytest.raises(basin.BasinError, match="memories has no parameter 'xy'"):
            way(TOKENS, xi=XI, xy=XI)
    with pytest.raises(basin.BasinError, match="memories has no parameter 'guard'"):
        inside(guard=True, xi=XI)


def test_parameters_keep_their_names_inside_functions():
    inside = basin.function(lambda x, w: memories(x, xi=w))
    with pytest.raises(basin.BasinError, match=r"'g' \[7, 12\] and .*'w'.* \[5, 4\]"):
        inside(TOKENS, numpy.ones((4, 5)))
    bowl = basin.energy(lambda g, k: k * numpy.sum(g**2))
    slope = basin.function(lambda k: bowl.grad(k * numpy.ones(2), "k", k=k))
    assert slope(3.0) == 18  # by the parameter alone: tokens depend on k, too


def test_sizes_that_are_learnt_are_a_turns():
    def learnt(x, a):
        turns = [{"move": lambda force, x, t: a * force}]
        return numpy.sum(memories.unroll(x, 3, 1, turns=turns, xi=XI))

    ours = basin.function(learnt, backend="ref")
    expected = memories.descend(TOKENS, steps=3, alpha=0.1, backend="ref", xi=XI).x.sum()
    assert ours(TOKENS, 0.1) == pytest.approx(expected, rel=1e-12)
    difference = (ours(TOKENS, 0.1 + 1e-6) - ours(TOKENS, 0.1 - 1e-6)) / 2e-6
    assert ours.grad(TOKENS, 0.1, wrt="a") == pytest.approx(difference, rel=1e-6)
    for name in ("alpha", "steps"):
        traced = basin.function(
            lambda x, a, name=name: memories.unroll(x, **{"steps": 3, "alpha": 0.1, name: a}, xi=XI)
        )
        with pytest.raises(basin.BasinError, match=f"{name} is an expression.*numbers"):
            traced(TOKENS, 2.0)


def test_terms_are_a_dict_by_name():
    for value in (tuple, list):
        ours = basin.energy(lambda g, kind=value: kind([numpy.sum(g), numpy.sum(g**2)]))
        for way in (ours, ours.descend):
            with pytest.raises(basin.BasinError, match=f"returned a {value.__name__}"):
                way([1.0, 2.0])
    with pytest.raises(basin.BasinError, match="a term named 1.*text"):
        basin.energy(lambda g: {1: numpy.sum(g)}).descend([1.0])


def test_many_terms():
    ours = basin.energy(lambda g: {f"t{i}": numpy.sum(g**2) * i for i in range(40)})
    descent = ours.descend([1.0], steps=2, alpha=0.0001, backend="ref")
    assert len(descent.terms) == 40
    assert descent.energy[0, 0] == sum(range(40))


def test_results_have_the_type_of_the_backend():
    for backend, dtype in (("ref", "f8"), ("cpu", "f4")):
        descent = memories.descend(TOKENS, steps=2, backend=backend, trajectory=True, xi=XI)
        assert {descent.x.dtype, descent.g.dtype, descent.trajectory.dtype} == {numpy.dtype(dtype)}


def test_notebooks_show_a_curve():
    descent = wells.descend([-1.5, 2.0], steps=5)
    shown = descent._repr_html_()
    assert shown.startswith("<svg") and "polyline" in shown and "energy" in shown
    assert block._repr_html_() == (
        "<code>block(g, wk, wq, xi)</code><br>The paper&#x27;s block from its equations."
    )


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"step": 5}, "no parameter 'step'.*steps"),
        ({"lr": 5}, r"no parameter 'lr', expected alpha"),
        ({"steps": 5.0}, "steps 5.0.*whole number"),
        ({"steps": "5"}, "steps '5'.*whole number"),
        ({"steps": -1}, "steps -1.*whole number"),
        ({"alpha": "a"}, "alpha 'a'.*number"),
        ({"noise": 0.1, "seed": -1}, "seed -1.*whole number"),
    ],
)
def test_mistakes_in_descents_are_named(change, text):
    energy = basin.energy(lambda g, k: k * numpy.sum(g**2))
    with pytest.raises(basin.BasinError, match=text):
        energy.descend([1.0], k=2.0, **change)


def test_parameters_in_their_order():
    energy = basin.energy(lambda g, k, b=1.0: k * numpy.sum(g**2) + b)
    assert energy([1.0], 2.0) == 3 and energy([1.0], 2.0, b=0.0) == 2
    assert energy.force([1.0], 2.0, 5.0).tolist() == [-4]
    for args, options in (((1, 2, 3), {}), ((1,), {"k": 1})):
        for way in (energy, energy.force, energy.descend):
            with pytest.raises(basin.BasinError, match="x, k, b; steps, alpha and other"):
                way([1.0], *args, **options)
    by_name = energy.descend([1.0], k=2.0, b=5.0, steps=3)
    assert numpy.array_equal(energy.descend([1.0], 2.0, 5.0, steps=3).x, by_name.x)
    assert energy.hessian_vector([1.0], [1.0], 2.0).tolist() == [4]


def test_several_parameters_behind_the_others():
    ours = basin.energy(lambda g, k=1.0, *w, b=0.0: k * sum(numpy.sum(g * v) for v in w) + b)
    assert ours([1.0, 2.0], 2.0, 3.0, [1.0, 0.0], b=1.0) == 2 * (9 + 1) + 1
    assert ours.force([1.0, 2.0], 2.0, 3.0).tolist() == [-6, -6]
    end = ours.descend([1.0, 2.0], 1.0, 1.0, [0.0, 1.0], steps=2, alpha=0.5, b=1.0)
    assert end.x.tolist() == [0, 0]
    through = basin.function(lambda x, v: ours(x, 2.0, v, b=1.0))
    assert through.grad([1.0, 2.0], [3.0, 4.0], wrt="v").tolist() == [2, 4]
    for way in (ours, ours.descend):
        with pytest.raises(basin.BasinError, match="of x and 1 more by position, k=...*x"):
            way([1.0], 1.0, k=2.0)


def test_energies_that_are_no_samples_are_named():
    energy = basin.energy(lambda g: numpy.sum(g**2, axis=0))
    with pytest.raises(basin.BasinError, match=r"an energy \[4\] of tokens \[3, 4\].*one"):
        energy.descend(numpy.ones((3, 4)))


def test_no_samples_are_a_descent(recwarn):
    bowl = basin.energy(batched=True)(lambda g: numpy.sum(g**2, axis=-1))
    descent = bowl.descend(numpy.ones((0, 4), "f4"), steps=2)
    assert repr(descent) == "Descent(x [0, 4], 2 steps, no samples)" and not recwarn.list
    assert "no samples" in descent._repr_html_()


# ---- several states, learnt activations, fixed points ----


@pytest.mark.parametrize("activation", ["softmax", basin.ham.Lagrangian("softmax", beta=2.0)])
def test_an_activation_may_be_a_lagrangian_or_its_name(activation):
    own = basin.energy(activation=activation)(lambda g, w: g @ w @ g)
    x, w = rng.normal(size=4), rng.normal(size=(4, 4))
    g = numpy.exp(x * (1 if activation == "softmax" else 2))
    expected = (g / g.sum()) @ w @ (g / g.sum())
    assert own(x, w, backend="ref") == pytest.approx(expected, abs=1e-12)


@basin.energy(activation={"v": None, "h": "softmax"})
def pair(g, w):
    return numpy.sum(g["v"] ** 2) / 2 - g["v"] @ w @ g["h"]


def test_an_activation_of_several_states_may_have_parameters():
    @basin.energy(activation=lambda x, gain: {"v": x["v"], "h": numpy.tanh(gain * x["h"])})
    def own(g, w):
        return numpy.sum(g["v"] ** 2) / 2 - g["v"] @ w @ g["h"]

    x, w = {"v": rng.normal(size=4), "h": rng.normal(size=3)}, rng.normal(size=(4, 3))

    def value(gain):
        return x["v"] @ x["v"] / 2 - x["v"] @ w @ numpy.tanh(gain * x["h"])

    assert own(x, w, gain=1.5, backend="ref") == pytest.approx(value(1.5), abs=1e-12)
    slope = own.grad(x, "gain", w=w, gain=1.5, backend="ref")
    assert slope == pytest.approx((value(1.5 + 1e-6) - value(1.5 - 1e-6)) / 2e-6, abs=1e-8)


def test_states_of_several_kinds_descend_together():
    x, w = {"v": rng.normal(size=4), "h": rng.normal(size=3)}, rng.normal(size=(4, 3))
    end = pair.descend(x, w, steps=12, alpha=0.2, trajectory=True, backend="ref")
    for t in range(12):
        g = numpy.exp(x["h"]) / numpy.exp(x["h"]).sum()
        energy = x["v"] @ x["v"] / 2 - x["v"] @ w @ g
        assert end.energy[t, 0] == pytest.approx(energy, abs=1e-12)
        assert pair(x, w, backend="ref") == pytest.approx(energy, abs=1e-12)
        move = {"v": x["v"] - w @ g, "h": -x["v"] @ w}
        force = pair.force(x, w, backend="ref")
        for name in x:
            assert end.trajectory[name][t] == pytest.approx(x[name], abs=1e-12)
            assert force[name] == pytest.approx(-move[name], abs=1e-12)
        x = {name: x[name] - 0.2 * move[name] for name in x}
    assert repr(end).startswith("Descent(v [4], h [3], 12 steps")
    swapped = pair.descend({"h": x["h"], "v": x["v"]}, w, steps=0, backend="ref")
    assert list(swapped.x) == ["h", "v"] and swapped.g["v"] == pytest.approx(x["v"])
    held = pair.descend(x, w, mask={"v": [1, 0, 1, 0]}, backend="ref").x["v"] == x["v"]
    assert held.tolist() == [False, True, False, True]
    unrolled = basin.function(lambda w: pair.unroll(x, 5, 0.1, w=w), backend="ref")(w)
    assert unrolled["h"] == pytest.approx(pair.descend(x, w, steps=5, backend="ref").x["h"])
    with pytest.raises(basin.BasinError, match="two forms: v and v, h"):
        pair.descend({"v": x["v"]}, w)
    with pytest.raises(basin.BasinError, match="mask of 'q'.*'v', 'h'"):
        pair.descend(x, w, mask={"q": 1})


def test_states_in_a_batch_are_those_one_by_one():
    @basin.energy(batched=True, activation=("tanh", None))
    def field(g, u):
        return numpy.sum(g[1] ** 2, axis=-1) / 2 - numpy.sum(g[0] * g[1] * u, axis=-1)

    x, u = (rng.normal(size=(5, 3)), rng.normal(size=(5, 3))), rng.normal(size=(5, 3))
    whole = field.descend(x, u, steps=9, backend="ref")
    for i in range(5):
        one = field.descend(
            (x[0][i : i + 1], x[1][i : i + 1]), u[i : i + 1], steps=9, backend="ref"
        )
        assert one.x[1][0] == pytest.approx(whole.x[1][i], abs=1e-13)
        assert one.energy[:, 0] == pytest.approx(whole.energy[:, i], abs=1e-13)
    with pytest.raises(basin.BasinError, match=r"x\[1\] \[4, 3\], expected samples \[5\]"):
        field.descend((x[0], x[1][:4]), u)


def test_gamma_and_delta_of_an_activation_are_learnt():
    @basin.energy(activation=basin.layernorm)
    def block(g, xi):
        return -numpy.sum(basin.relu(g @ xi.T) ** 2) / 2

    x, xi, delta = rng.normal(size=(5, 4)), rng.normal(size=(7, 4)), rng.normal(size=4)

    @basin.function(backend="ref")
    def loss(gamma, delta):
        return numpy.sum(block.unroll(x, 4, 0.1, xi=xi, gamma=gamma, delta=delta) ** 2)

    slopes = loss.grad(1.5, delta, wrt=["gamma", "delta"])
    sides = [float(loss(1.5 + s, delta)) for s in (1e-6, -1e-6)]
    assert slopes["gamma"] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6)
    step = numpy.eye(4)[2] * 1e-6
    sides = [float(loss(1.5, delta + s)) for s in (step, -step)]
    assert slopes["delta"][2] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6)
    ended = block.descend(x, xi, steps=4, gamma=1.5, delta=delta, backend="ref").x
    assert (ended**2).sum() == pytest.approx(float(loss(1.5, delta)))
    with pytest.raises(basin.BasinError, match="no parameter 'gama', expected gamma"):
        block.force(x, xi, gama=1.0)


def test_fixed_points_say_whether_they_were_found():
    well = basin.energy(lambda g, a: numpy.sum(g**4 / 4 - a * g))
    found = well.fixed_point([1.0], a=[8.0], alpha=0.02, until=1e-10, backend="ref")
    assert found.converged and found.x == pytest.approx([2.0])
    with pytest.warns(RuntimeWarning, match="1 of 1 fixed points did not converge"):
        lost = well.fixed_point([1.0], a=[8.0], alpha=0.001, steps=3, backend="ref")
    assert not lost.converged and lost.change > 1 and "not converged" in repr(lost)
    with pytest.warns(RuntimeWarning, match="did not converge"):  # further and further away
        slope = basin.energy(lambda g: numpy.sum(g))
        assert not slope.fixed_point([1.0, 2.0], steps=5000).converged
    root = basin.function(lambda a: well.fixed_point(numpy.ones(1), a=a, alpha=0.02, steps=3))
    with pytest.warns(RuntimeWarning, match="fixed points did not converge"):
        root([8.0])
    with pytest.raises(basin.BasinError, match="held=True"):
        basin.energy(activation=basin.layernorm)(lambda g: numpy.sum(g)).fixed_point([1.0, 2.0])


def test_an_energy_that_is_no_number_is_refused():
    with pytest.raises(basin.BasinError, match=r"\[12\] of tokens \[12\], expected one number"):
        basin.energy(lambda g: g**2)(numpy.ones(12))
    several = basin.energy(batched=True)(lambda g: numpy.sum(g**2))
    with pytest.raises(basin.BasinError, match=r"expected \[3\], one number per sample"):
        several.force(numpy.ones((3, 2)))


def test_what_is_narrowed_is_said_once_and_what_does_not_fit_refused(monkeypatch):
    from basin._engine import plan

    monkeypatch.setattr(plan, "_warned", [])
    bowl, x = basin.energy(lambda g: numpy.sum(g**2)), numpy.ones(3)
    with pytest.warns(UserWarning, match="float64 are computed in float32"):
        bowl(x)
    for backend in (None, "cpu", "ref"):
        basin.energy(lambda g: numpy.sum(g**3)).descend(x, backend=backend)
    with pytest.raises(basin.BasinError, match=r"x has 1e\+300, which float32 cannot hold"):
        bowl([1.0, 1e300, 0.0])
    assert bowl([1.0, 1e150, 0.0], backend="ref") == pytest.approx(1e300)
    monkeypatch.setattr(plan, "_warned", [])
    trainer = basin.Trainer(lambda w, x: numpy.sum(w * x), {"w": numpy.ones(3)})
    with pytest.warns(UserWarning, match="float64 are computed in float32"):
        trainer.step(x=x)
    with pytest.raises(basin.BasinError, match=r"x has 1e\+300, which float32 cannot hold"):
        trainer.step(x=1e300 * x)
    with pytest.raises(basin.BasinError, match=r"w has 1e\+300, which float32 cannot hold"):
        basin.Trainer(lambda w: numpy.sum(w), {"w": 1e300 * x})
    for name in ("tolerance", "until", "noise"):
        with pytest.raises(basin.BasinError, match=f"{name} -1, expected a number of 0 or more"):
            bowl.descend(x, **{name: -1})


def test_what_is_called_otherwise_elsewhere_is_named():
    bowl = basin.energy(lambda g: numpy.sum(g**2))
    with pytest.raises(basin.BasinError, match="no parameter 'lr', expected alpha"):
        bowl.descend([1.0], lr=0.3)
    with pytest.raises(basin.BasinError, match="no parameter 'x', expected it as the first"):
        bowl.force([1.0], x=[2.0])
    with pytest.raises(basin.BasinError, match="no parameter 'until', expected it in another"):
        basin.function(lambda x: bowl.unroll(x, 2, 0.1, until=1e-3))([1.0])
    with pytest.raises(basin.BasinError, match="no parameter 'foo', expected one of.*'alpha'"):
        bowl.descend([1.0], foo=0.3)
    jnp, torch = (pytest.importorskip(name) for name in ("jax.numpy", "torch"))
    for library, name in ((jnp, "jnp"), (torch, "torch")):
        with pytest.raises(basin.BasinError, match=rf"numpy.sum\(g\), not {name}.sum"):
            basin.energy(lambda g, total=library.sum: total(g))([1.0, 2.0])
