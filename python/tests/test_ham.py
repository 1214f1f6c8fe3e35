"""Hierarchical associative memories against formulas in NumPy, the golden files, and HAMUX."""

import copy
import importlib.util
import json
import os
import pathlib
import pickle
import subprocess
import sys

import numpy
import pytest
import safetensors.numpy

import basin
from basin import ham

ROOT = pathlib.Path(__file__).resolve().parents[2]
RNG = numpy.random.default_rng(5)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def close(ours, theirs, **tolerance):
    numpy.testing.assert_allclose(ours, theirs, **(tolerance or CLOSE))


def softmax(z):
    p = numpy.exp(z - z.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def classifier(**options):
    layers = {"v": ham.Layer("identity", 5), "h": ham.Layer("softmax", 4)}
    synapses = {"vh": ham.linear(w=RNG.normal(size=(5, 4)))}
    return ham.HAM(layers, synapses, [(("v", "h"), "vh")], **options)


def states(network, batch=None, seed=1):
    rng = numpy.random.default_rng(seed)
    return {n: rng.normal(size=x.shape) for n, x in network.init_states(batch).items()}


# ---- formulas in NumPy ----


@pytest.mark.parametrize("batch", [None, 3])
def test_energy_and_gradient_are_the_formulas(batch):
    network = classifier()
    x, g = states(network, batch, 1), states(network, batch, 2)
    w = network.params["vh"]["w"]
    lagrangian = (x["v"] ** 2).sum(-1) / 2 + numpy.log(numpy.exp(x["h"]).sum(-1))
    products = (x["v"] * g["v"]).sum(-1) + (x["h"] * g["h"]).sum(-1)
    synapse = -numpy.einsum("...i,...j,ij->...", g["v"], g["h"], w)
    close(network.energy(g, x, backend="ref"), products - lagrangian + synapse)
    close(network.connection_energies(g, backend="ref")["vh(v, h)"], synapse)
    energy, slopes = network.dEdg(g, x, return_energy=True, backend="ref")
    close(energy, products - lagrangian + synapse)
    close(slopes["v"], x["v"] - g["h"] @ w.T)
    close(slopes["h"], x["h"] - g["v"] @ w)


@pytest.mark.parametrize("batch", [None, 3])
def test_a_descent_is_the_loop_in_numpy(batch):
    network = classifier()
    x, w = states(network, batch), network.params["vh"]["w"]
    descent = network.descend(x, steps=7, alpha=0.3, trajectory=True, backend="ref")
    for t in range(8):
        close(descent.trajectory["v"][t], x["v"])
        close(descent.trajectory["h"][t], x["h"])
        energy = network.energy(network.activations(x, backend="ref"), x, backend="ref")
        close(descent.energy[t], numpy.atleast_1d(energy))
        g = {"v": x["v"], "h": softmax(x["h"])}
        moves = {"v": x["v"] - g["h"] @ w.T, "h": x["h"] - g["v"] @ w}
        x = {name: x[name] - 0.3 * moves[name] for name in x}
    close(descent.x["v"], descent.trajectory["v"][-1])
    assert descent.steps == 7
    assert list(descent.terms) == ["v", "h", "vh(v, h)"]


def test_the_golden_network():
    path = ROOT / "tests/golden/ham.safetensors"
    golden = safetensors.numpy.load_file(path)
    with safetensors.safe_open(path, "numpy") as file:
        meta = file.metadata()
    numbers = {k: json.loads(v) for k, v in meta.items() if k in ("beta", "gamma", "tau", "dt")}
    beta, tau = numbers["beta"], numbers["tau"]
    norm = ham.Lagrangian("layernorm", gamma=numbers["gamma"], delta=golden["in.delta"])
    layers = {
        "v": ham.Layer(norm, 12, tau=tau["v"]),
        "h": ham.Layer(ham.Lagrangian("softmax", beta=beta), 9, tau=tau["h"]),
        "c": ham.Layer(ham.Lagrangian("tanh", beta=beta), 5, tau=tau["c"]),
    }
    synapses = {
        "vh": ham.linear(w=golden["in.W_vh"]),
        "hc": ham.linear(w=golden["in.W_hc"]),
        "c": ham.bias(b=golden["in.b_c"]),
        "am": ham.memory(xi=golden["in.xi"], hidden=ham.Lagrangian("softmax", beta=beta)),
    }
    connections = [(("v", "h"), "vh"), (("h", "c"), "hc"), (["c"], "c"), (["v"], "am")]
    network = ham.HAM(layers, synapses, connections)
    x = {name: golden[f"in.x.{name}"] for name in layers}
    assert "delta" in network.params["v"]
    descent = network.descend(x, steps=int(meta["steps"]), alpha=numbers["dt"], backend="ref")
    layer_terms = numpy.stack([descent.terms[name][:, 0] for name in layers], axis=1)
    close(layer_terms, golden["out.energy"][:, :3])
    close(descent.energy[:, 0], golden["out.energy"].sum(1))
    slopes = network.dEdg(network.activations(x, backend="ref"), x, backend="ref")
    for name in layers:
        close(descent.x[name], golden[f"out.x.{name}"])
        close(slopes[name], golden[f"out.dEdg.{name}"])


def test_own_functions_equal_the_library():
    def product(g1, g2, w):
        return -numpy.sum((g1 @ w) * g2, axis=-1)

    w = RNG.normal(size=(5, 4))
    layers = {
        "v": ham.Layer(lambda x: numpy.sum(x**2, axis=-1) / 2, 5),
        "h": ham.Layer(lambda x: basin.logsumexp(x), 4),
    }
    own = ham.HAM(layers, {"vh": ham.Synapse(product, w=w)}, [(("v", "h"), "vh")])
    named = classifier().set({"vh": {"w": w}})
    x = states(own, 3)
    close(own.activations(x, backend="ref")["h"], softmax(x["h"]))
    ours, theirs = (n.descend(x, steps=5, alpha=0.2, backend="ref") for n in (own, named))
    close(ours.x["h"], theirs.x["h"])
    close(ours.energy, theirs.energy)


def lse(z):
    return numpy.log(numpy.exp(z).sum(-1))


def unit(w, axis):
    return w / numpy.linalg.norm(w, axis=axis, keepdims=True)


def each_row(a, b, w):
    return -numpy.einsum("bni,bnj,ij->b", a, b, w)


def by_attention(a, w):
    scores = numpy.einsum("bnd,hyd,hye,bme->bhnm", a, w["wq"], w["wk"], a) / 2
    scores[:, :, numpy.arange(3), numpy.arange(3)] = -numpy.inf
    return -2 * lse(scores).sum((1, 2))


SYNAPSES = {  # two layers [3, 4]: the synapse, its connection, and its energy of a, b and weights
    "linear": (ham.linear(bias=True, deviation=1), "ab",
               lambda a, b, w: -(a @ w["w"] * b).sum(1) - b @ w["b"], True),
    "rows": (ham.linear(rows="each"), "ab", lambda a, b, w: each_row(a, b, w["w"]), False),
    "summed": (ham.bias(rows="summed", b=RNG.normal(size=4)), "a",
               lambda a, b, w: -a.sum(1) @ w["b"], False),
    "memory": (ham.memory(5, deviation=1, normalize=True), "a",
               lambda a, b, w: -lse(a @ unit(w["xi"], 1).T), True),
    "cubic": (ham.memory(5, hidden="repu3", distance=True, xi=RNG.normal(size=(5, 12))), "a",
              lambda a, b, w: -(numpy.maximum(-((a[:, None] - w["xi"]) ** 2).sum(2) / 2, 0) ** 3
                                ).sum(1) / 3, True),
    "hidden": (ham.hidden(5, bias=True, deviation=1), "ab",
               lambda a, b, w: -(numpy.maximum(a @ w["w1"] + b @ w["w2"] + w["b"], 0) ** 2).sum(1)
               / 2, True),
    "tensor": (ham.tensor(5, heads=2, hidden="identity", deviation=1), "ab",
               lambda a, b, w: -(numpy.einsum("bi,bj,huij->bhu", a, b, w["w"]) ** 2).sum((1, 2))
               / 2, True),
    "mixer": (ham.mixer(5, heads=2, deviation=1), "ab",
              lambda a, b, w: -lse(numpy.einsum("bni,bnj,huij->bhu", a, b, w["w"])).sum(1), False),
    "attention": (ham.attention(2, 4, exclude_self=True, deviation=1), "a",
                  lambda a, b, w: by_attention(a, w), False),
}  # fmt: skip


@pytest.mark.parametrize("name", SYNAPSES)
def test_synapses_are_their_formulas(name):
    synapse, ends, formula, flat = SYNAPSES[name]
    layers = {"a": ham.Layer("identity", (3, 4)), "b": ham.Layer("identity", (3, 4))}
    network = ham.HAM(layers, {"s": synapse}, [(tuple(ends), "s")], seed=2)
    g = states(network, 6, 3)
    weights = {n: v + 0.1 * (n == "b") for n, v in network.params["s"].items()}
    network.set({"s": weights})
    a, b = (x.reshape(6, -1) if flat else x for x in g.values())
    (energy,) = network.connection_energies(g, backend="ref").values()
    close(energy, formula(a, b, weights))
    assert abs(energy).max() > 0 or name == "cubic"  # whose scores are negative


def test_layers_with_a_bias_and_states_of_other_backends():
    layers = {"v": ham.Layer("tanh", 3, bias=True, tau=2.0)}
    network = ham.HAM(layers, {"b": ham.bias(b=[0.5, 0.0, -0.5])}, [(["v"], "b")])
    network.set({"v": {"bias": [0.1, 0.2, 0.3]}})
    x = {"v": numpy.array([0.4, -0.2, 1.0])}
    y = x["v"] - [0.1, 0.2, 0.3]
    g = network.activations(x, backend="ref")
    close(g["v"], numpy.tanh(y))
    own = (y * g["v"]).sum() - numpy.log(numpy.cosh(y)).sum()
    close(network.layer_energies(g, x, backend="ref")["v"], own)
    close(network.layer_energies(None, x, backend="ref")["v"], own)
    slope = y - [0.5, 0.0, -0.5]
    close(network.dEdg(g, x, backend="ref")["v"], slope)
    end = network.descend(x, steps=1, alpha=0.2, backend="ref")
    close(end.x["v"], x["v"] - 0.1 * slope)
    fast = network.descend(x, steps=1, alpha=0.2)
    assert fast.x["v"].dtype == numpy.float32
    close(fast.x["v"], end.x["v"], rtol=1e-6)


# ---- what a network can do ----


def test_clamped_layers_and_masked_neurons_stay():
    network = classifier()
    x = states(network, 2)
    free = numpy.array([1.0, 0, 1, 1])
    end = network.descend(x, steps=5, alpha=0.2, clamp=["v"], mask={"h": free}, backend="ref")
    close(end.x["v"], x["v"])
    close(end.x["h"][:, 1], x["h"][:, 1])
    assert (abs(end.x["h"] - x["h"])[:, [0, 2, 3]] > 1e-3).all()
    other = network.descend(x, steps=5, alpha=0.2, clamp=["v"], mask={"h": 1 - free}, backend="ref")
    assert abs(other.x["h"] - x["h"])[:, 1].min() > 1e-3


def test_observers_see_and_end_a_descent():
    network, seen = classifier(), []

    def observe(now):
        seen.append((now.step, float(now.energy[0]), now.x["v"].shape, sorted(now.terms)))
        return now.step == 3

    descent = network.descend(states(network), steps=9, alpha=0.1, observe=observe)
    assert descent.steps == 3
    assert [s[0] for s in seen] == [0, 1, 2, 3]
    assert seen[0][2:] == ((5,), ["h", "v", "vh(v, h)"])
    close([s[1] for s in seen], descent.energy[:, 0])

    def fail(now):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        network.descend(states(network), steps=9, alpha=0.1, observe=fail)


def test_kept_moments_have_the_states_of_their_step():
    network, kept = classifier(), []
    x = states(network)
    whole = network.descend(x, steps=3, alpha=0.3, trajectory=True)
    network.descend(x, steps=3, alpha=0.3, observe=lambda now: kept.append(now) or now.x and None)
    assert [now.step for now in kept] == [0, 1, 2, 3]
    for step, now in enumerate(kept):
        close(now.x["v"], whole.trajectory["v"][step])
        close(now.x["h"], whole.trajectory["h"][step])
    kept.clear()
    network.descend(x, steps=3, alpha=0.3, observe=kept.append)
    with pytest.raises(basin.BasinError, match="x of step 1, whose moment is over"):
        _ = kept[1].x


@pytest.mark.parametrize("options", [{}, {"clamp": "v"}, {"guard": True}])
def test_a_descent_inside_an_observer_leaves_the_outer_one_alone(options):
    network = classifier()
    x, other, ends = states(network), states(network, seed=2), []
    alone, inner = (network.descend(y, steps=3, alpha=0.3) for y in (x, other))
    expected = network.descend(other, steps=3, alpha=0.3, **options)

    def observe(now):
        before = now.x["v"]
        ends.append(network.descend(other, steps=3, alpha=0.3, **options).x["h"])
        network.descend(x, steps=2, observe=lambda q: network.descend(q.x, steps=1) and None)
        close(now.x["v"], before)

    found = network.descend(x, steps=3, alpha=0.3, observe=observe)
    close(found.x["v"], alone.x["v"])
    close(found.energy, alone.energy)
    assert len(ends) == 4
    for end in ends:
        close(end, expected.x["h"])
    close(network.descend(other, steps=3, alpha=0.3).x["h"], inner.x["h"])

    def fail(now):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        network.descend(x, observe=fail)
    close(network.descend(x, steps=3, alpha=0.3, observe=observe).x["v"], alone.x["v"])


def test_noise_is_of_its_seed_and_of_free_neurons():
    layers = {"v": ham.Layer("identity", 400, tau=4.0), "h": ham.Layer("identity", 400)}
    network = ham.HAM(layers, {}, [])
    x, options = network.init_states(5), {"steps": 1, "alpha": 0.25, "noise": 2.0}
    end = network.descend(x, seed=3, **options)
    close(end.x["v"].std(), 2.0 * 0.25, rtol=0.05)
    close(end.x["h"].std(), 2.0 * 0.5, rtol=0.05)
    assert abs(numpy.corrcoef(end.x["v"].ravel(), end.x["h"].ravel())[0, 1]) < 0.1
    close(network.descend(x, seed=3, **options).x["v"], end.x["v"])
    assert (network.descend(x, seed=4, **options).x["v"] != end.x["v"]).all()
    free = numpy.arange(400) % 2
    held = network.descend(x, seed=3, clamp="v", mask={"h": free}, **{**options, "steps": 9})
    assert not held.x["v"].any()
    assert not held.x["h"][:, free == 0].any()
    assert held.x["h"][:, free == 1].all()
    several = network.descend(x, seed=3, steps=20, alpha=0.1, noise=1.0, backend="ref")
    watched = network.descend(x, seed=3, steps=20, alpha=0.1, noise=1.0, backend="ref",
                              observe=lambda now: None)  # fmt: skip
    close(several.x["h"], watched.x["h"])
    with pytest.raises(basin.BasinError, match="noise -1.*0 or more"):
        network.descend(x, noise=-1.0)
    with pytest.raises(basin.BasinError, match="noise 1 together with the guard"):
        network.descend(x, noise=1.0, guard=True)


def test_steps_of_many_sizes_and_the_energy_of_synapses_alone():
    network, seen = classifier(), []
    x = states(network, 2)
    sizes = [0.3, 0.2, 0.1]
    by_array = network.descend(x, steps=3, alpha=sizes, backend="ref")
    by_function = network.descend(x, steps=3, alpha=lambda t: sizes[t], backend="ref")
    close(by_array.x["h"], by_function.x["h"])
    y = x
    for size in sizes:
        y = network.descend(y, steps=1, alpha=size, backend="ref").x
    close(by_array.x["h"], y["h"])
    assert len(network._runners) == 1
    end = network.descend(
        x, steps=4, alpha=0.1, synapses_only=True, observe=lambda now: seen.append(now.energy)
    )
    close(end.energy, end.terms["vh(v, h)"])
    close(numpy.stack(seen), end.energy)
    with pytest.raises(basin.BasinError, match="number or one per step"):
        network.descend(x, steps=3, alpha=[0.1, 0.2])


def test_a_descent_ends_at_rest():
    network = classifier()
    descent = network.descend(states(network), steps=500, alpha=0.5, tolerance=1e-6, backend="ref")
    assert descent.converged
    assert descent.steps < 500
    assert (numpy.diff(descent.energy[:, 0]) < 1e-12).all()


def test_parameters_are_drawn_set_and_copied():
    network = ham.HAM(
        {"v": ham.Layer(ham.Lagrangian("softmax", beta=basin.training.Constant((), 2.0)), 3)},
        {"m": ham.memory(6), "b": ham.bias(b=[1.0, 2.0, 3.0])},
        [(["v"], "m"), (["v"], "b")],
        seed=3,
    )
    first = network.params
    shapes = {n: {k: v.shape for k, v in parts.items()} for n, parts in first.items()}
    assert shapes == {"v": {"beta": ()}, "m": {"xi": (6, 3)}, "b": {"b": (3,)}}
    assert 0.005 < first["m"]["xi"].std() < 0.04
    x = states(network)
    before = network.energy(None, x, backend="ref")
    other = pickle.loads(pickle.dumps(network.set({"v": {"beta": 1.0}})))
    assert network.energy(None, x, backend="ref") != before
    close(other.energy(None, x, backend="ref"), network.energy(None, x, backend="ref"))
    close(network.at({"v": {"beta": 2.0}}).energy(None, x, backend="ref"), before)
    assert (network.init(4).params["m"]["xi"] != first["m"]["xi"]).all()
    close(network.params["b"]["b"], [1, 2, 3])


def test_parameters_are_copies():
    w = RNG.normal(size=(5, 4))
    layers = {"v": ham.Layer("identity", 5), "h": ham.Layer("softmax", 4)}
    network = ham.HAM(layers, {"vh": ham.linear(w=w)}, [(("v", "h"), "vh")])
    first, x = w.copy(), states(network)
    before = network.energy(None, x)
    w += 1
    with pytest.raises(ValueError, match="read-only"):
        network.params["vh"]["w"] += 1
    for parts in (network.params, network.params["vh"]):
        with pytest.raises(basin.BasinError, match="read-only: network.set"):
            parts["w"] = w
    free = copy.deepcopy(network.params)
    free["vh"]["w"] = w
    with pytest.raises(basin.BasinError, match="tau 0, .*above 0"):
        ham.Layer("identity", 5, tau=0)
    other = copy.copy(network).set({"vh": {"w": 2 * first}})
    close(network.params["vh"]["w"], first)
    close(other.params["vh"]["w"], 2 * first)
    for again in (network, copy.deepcopy(network), copy.copy(network), network.init(1)):
        close(again.energy(None, x), before)
        close(again.energy(None, x, backend="ref"), before, rtol=1e-5)
    assert abs(other.energy(None, x) - before) > 1e-3


def test_a_network_in_a_notebook():
    def pull(g, w):
        return -numpy.sum(g * w, axis=-1)

    layers = {"<v>": ham.Layer("tanh", numpy.int64(2)), "h": ham.Layer("softmax", (3,))}
    synapses = {"a&b": ham.linear(), "own": ham.Synapse(pull, w=numpy.ones(2))}
    network = ham.HAM(layers, synapses, [(("<v>", "h"), "a&b"), (["<v>"], "own")])
    page = network._repr_html_()
    assert page.count("<tr>") == page.count("</tr>") == 4
    assert "<th>&lt;v&gt;</th><td>Lagrangian(&#x27;tanh&#x27;)</td><td>[2]</td>" in page
    assert "<th>a&amp;b(&lt;v&gt;, h)</th>" in page
    assert "a&amp;b.w [2, 3]" in page
    assert "<v>" not in page


def test_zero_states_are_narrowed_nowhere(monkeypatch):
    from basin._engine import plan

    monkeypatch.setattr(plan, "_warned", [])
    network, double = classifier(), classifier().init_states(3, "f8")
    x = network.init_states(2)
    g = network.activations(x)
    assert network.energy(g, x).shape == network.energy(None, x).shape == (2,)
    assert network.descend(x, steps=2).x["v"].dtype == numpy.float32
    assert network.descend(x, steps=2, backend="ref").x["v"].dtype == numpy.float64
    assert network.fixed_point(x, clamp="v").x["h"].shape == (2, 4)
    assert not plan._warned and double["v"].dtype == numpy.float64
    with pytest.warns(UserWarning, match="float64 are computed in float32"):
        network.descend(double, steps=2)


def test_sizes_of_numpy():
    three = numpy.int64(3)
    layers = {"v": ham.Layer("identity", three), "t": ham.Layer("tanh", (three, numpy.int32(4)))}
    synapses = {"m": ham.memory(three), "a": ham.attention(numpy.int64(2), three)}
    network = ham.HAM(layers, synapses, [(["v"], "m"), (["t"], "a")], seed=numpy.int64(1))
    x = network.init_states(numpy.int64(2))
    assert network.descend(x, steps=three, alpha=numpy.float32(0.1)).x["t"].shape == (2, 3, 4)
    with pytest.raises(TypeError):
        ham.Layer("identity", 3.0)


def test_gradients_of_parameters_are_differences():
    network = classifier()
    x, w = states(network, 2), network.params["vh"]["w"]

    @basin.function(backend="ref")
    def loss(w, v, h):
        end = network.at({"vh": {"w": w}}).unroll({"v": v, "h": h}, steps=4, alpha=0.4, clamp="v")
        return numpy.sum(network.activations(end)["h"] ** 2)

    slope = loss.grad(w, x["v"], x["h"])
    for i, j in [(0, 0), (4, 3), (2, 1)]:
        step = numpy.zeros_like(w)
        step[i, j] = 1e-6
        sides = [float(loss(w + s * step, x["v"], x["h"])) for s in (1, -1)]
        close(slope[i, j], (sides[0] - sides[1]) / 2e-6, rtol=1e-6, atol=1e-9)


def test_a_classifier_is_trained_through_its_descent():
    network = ham.HAM(
        {"image": ham.Layer("identity", 8), "label": ham.Layer("softmax", 3)},
        {"memory": ham.hidden(16)},
        [(("image", "label"), "memory")],
    )
    rng = numpy.random.default_rng(0)
    centres, labels = 2 * rng.normal(size=(3, 8)), numpy.eye(3)
    kind = rng.integers(3, size=60)
    images = centres[kind] + 0.3 * rng.normal(size=(60, 8))

    def loss(net, image, label):
        at = network.at(net)
        x = {**network.init_states(60), "image": image}
        end = at.unroll(x, steps=3, alpha=0.5, clamp=["image"])
        return -numpy.mean(numpy.sum(label * numpy.log(at.activations(end)["label"]), axis=-1))

    trainer = basin.Trainer(loss, {"net": network.params}, rate=0.02, decay=0)
    losses = [trainer.step(image=images, label=labels[kind]) for _ in range(60)]
    assert losses[-1] < 0.1 * losses[0]
    network.set(trainer.parameters()["net"])
    end = network.descend({**network.init_states(60), "image": images}, steps=3, alpha=0.5,
                          clamp=["image"])  # fmt: skip
    assert (end.g["label"].argmax(-1) == kind).mean() > 0.95


def test_mistakes_are_named():
    network = classifier()
    with pytest.raises(basin.BasinError, match="no states of layer 'h'"):
        network.energy(None, {"v": numpy.zeros(5)})
    with pytest.raises(basin.BasinError, match=r"shape \[4\].*\[5\] or \[batch, ..\]"):
        network.activations({"v": numpy.zeros(4), "h": numpy.zeros(4)})
    with pytest.raises(basin.BasinError, match="batches differ"):
        network.activations({"v": numpy.zeros((2, 5)), "h": numpy.zeros(4)})
    with pytest.raises(basin.BasinError, match="no parameter 'vh.x'"):
        network.set({"vh": {"x": 1.0}})
    with pytest.raises(basin.BasinError, match="there is no layer 'w'"):
        ham.HAM(network.layers, network.synapses, [(("v", "w"), "vh")])
    with pytest.raises(basin.BasinError, match="function or one of"):
        ham.Layer("maxout", 3)
    with pytest.raises(basin.BasinError, match=r"'vh.w' has shape \[4, 5\].*\[5, 4\]"):
        ham.HAM(network.layers, {"vh": ham.linear(w=numpy.ones((4, 5)))}, [(("v", "h"), "vh")])
    with pytest.raises(basin.BasinError, match=r"custom Lagrangian has shape \[\]"):
        ham.HAM({"v": ham.Layer(lambda x: numpy.sum(x**2), 3)}, {}, [])
    with pytest.raises(ZeroDivisionError):
        ham.HAM(network.layers, {"s": ham.Synapse(lambda g: 1 / 0)}, [(["v"], "s")])
    with pytest.raises(basin.BasinError, match="\\[1, ..\\], a number per sample"):
        ham.HAM(network.layers, {"s": ham.Synapse(lambda g: numpy.sum(g))}, [(["v"], "s")])


def test_what_is_not_used_is_refused():
    network = classifier()
    layers, ends = network.layers, [(("v", "h"), "m")]
    with pytest.raises(basin.BasinError, match="parameter 'm.w3' is not used by 'm'"):
        ham.HAM(layers, {"m": ham.hidden(5, w3=numpy.ones((4, 5)))}, ends)
    with pytest.raises(basin.BasinError, match="parameter 'h.gamma' is not used by 'h'"):
        softmax = ham.Lagrangian("softmax", gamma=numpy.ones(()))
        ham.HAM({**layers, "h": ham.Layer(softmax, 4)}, {"m": ham.linear()}, ends)
    with pytest.raises(basin.BasinError, match="synapse 'n' is in no connection"):
        ham.HAM(layers, {"m": ham.linear(), "n": ham.linear()}, ends)
    x = states(network)
    for call in (network.activations, network.descend, lambda x: network.energy(None, x)):
        with pytest.raises(basin.BasinError, match=r"states of 'z'.*those of \['v', 'h'\]"):
            call({**x, "z": numpy.zeros(3)})
    with pytest.raises(basin.BasinError, match="a batch of 0 samples.*1 or more"):
        network.descend(network.init_states(0))


@pytest.mark.parametrize("mask", [0.5, [1, 1, 0.5, 0], [1, 0, numpy.nan, 1], [1, 2, 1, 1]])
def test_masks_are_of_0_and_1(mask):
    network = classifier()
    with pytest.raises(basin.BasinError, match="mask of 'h' with other numbers than 0 and 1"):
        network.descend(states(network), mask={"h": mask})


def test_masks_of_truth_values():
    network = classifier()
    x, free = states(network, 2), numpy.array([True, False, True, True])
    ends = [network.descend(x, mask={"h": m, "v": 1}).x["h"] for m in (free, free.astype(int))]
    close(*ends)
    close(ends[0], network.descend(x, mask={"h": numpy.stack([free, free])}).x["h"])
    close(network.descend(x, mask={"h": False}).x["h"], x["h"], rtol=1e-6)


# ---- beside HAMUX ----


@pytest.fixture
def hamux():
    if importlib.util.find_spec("hamux") is None or importlib.util.find_spec("jax") is None:
        pytest.skip("hamux or JAX is not installed")
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield pytest.importorskip("hamux")
    jax.config.update("jax_enable_x64", before)


LAGRANGIANS = {
    "identity": ("identity", {}),
    "relu": ("relu", {}),
    "repu": ("repu", {"power": 3.0}),
    "exp": ("exp", {"beta": 0.7}),
    "rexp": ("rexp", {"beta": 0.7}),
    "tanh": ("tanh", {"beta": 1.3}),
    "sigmoid": ("sigmoid", {"beta": 1.3}),
    "softmax": ("softmax", {"beta": 2.0}),
    "layernorm": ("layernorm", {"gamma": 1.5}),
    "spherical_norm": ("spherical", {"gamma": 1.5}),
    "ghostmax": ("ghostmax", {}),
}


@pytest.mark.parametrize("name", LAGRANGIANS)
def test_lagrangians_are_those_of_hamux(hamux, name):
    import jax

    ours, options = LAGRANGIANS[name]
    x = numpy.random.default_rng(2).normal(size=9)
    theirs = {"n" if k == "power" else k: v for k, v in options.items()}
    layer = hamux.NeuronLayer(lambda x: getattr(hamux, f"lagr_{name}")(x, **theirs), (9,))
    ours = ham.Lagrangian(ours, **options)
    close(ours(x, backend="ref"), layer.lagrangian(jax.numpy.asarray(x)))
    g = layer.activations(jax.numpy.asarray(x))
    close(ours.activation(x, backend="ref"), g)
    close(ours.energy(x, backend="ref"), layer.energy(g, x))


def same_network(hamux, neurons, synapses, connections, ours):
    """All that HAMUX computes of a network, beside ours, at one sample and at a batch."""
    theirs = hamux.HAM(neurons, synapses, connections)
    for batch in (None, 3):
        model = theirs if batch is None else theirs.vectorize()
        x = states(ours, batch, 7)
        g = ours.activations(x, backend="ref")
        there = model.activations(x)
        for name in x:
            close(g[name], there[name])
        tree = model.energy_tree(there, x)
        for name, energy in ours.layer_energies(g, x, backend="ref").items():
            close(energy, tree["neurons"][name])
        energies = ours.connection_energies(g, backend="ref").values()
        for energy, expected in zip(energies, tree["connections"]):
            close(energy, expected)
        energy, slopes = model.dEdact(there, x, return_energy=True)
        close(ours.energy(g, x, backend="ref"), energy)
        for name, slope in ours.dEdg(g, x, backend="ref").items():
            close(slope, slopes[name])


def test_the_network_of_the_walkthrough(hamux):
    import jax

    neurons = {
        "n1": hamux.NeuronLayer(hamux.lagr_sigmoid, (10,)),
        "n2": hamux.NeuronLayer(lambda x: hamux.lagr_softmax(x, axis=-1), (100,)),
    }
    synapses = {
        "s1": hamux.LinearSynapseWithBias.rand_init(jax.random.key(0), 10, 100),
        "b": hamux.BiasSynapse(jax.random.normal(jax.random.key(1), (10,))),
    }
    ours = ham.HAM(
        {"n1": ham.Layer("sigmoid", 10), "n2": ham.Layer("softmax", 100)},
        {
            "s1": ham.linear(w=synapses["s1"].W, b=synapses["s1"].b),
            "b": ham.bias(b=synapses["b"].b),
        },
        [(("n1", "n2"), "s1"), (["n1"], "b")],
    )
    connections = [(("n1", "n2"), "s1"), (("n1",), "b")]
    same_network(hamux, neurons, synapses, connections, ours)


@pytest.mark.parametrize("stride", [1, 2])
def test_the_convolution_of_the_walkthrough(hamux, stride):
    import jax

    size = 8 // stride
    conv = hamux.ConvSynapse.from_conv_params(
        jax.random.key(42), 5, 3, (3, 3), (stride, stride), "SAME"
    )
    neurons = {
        "a": hamux.NeuronLayer(hamux.lagr_identity, (8, 8, 3)),
        "b": hamux.NeuronLayer(hamux.lagr_relu, (size, size, 5)),
    }
    w = numpy.asarray(conv.W).transpose(2, 3, 1, 0)
    ours = ham.HAM(
        {"a": ham.Layer("identity", (8, 8, 3)), "b": ham.Layer("relu", (size, size, 5))},
        {"conv": ham.conv2d(stride=stride, w=w)},
        [(("a", "b"), "conv")],
    )
    same_network(hamux, neurons, {"conv": conv}, [(("a", "b"), "conv")], ours)


def test_the_memory_of_the_demo(hamux):
    import equinox
    import jax

    class DenseSynapseHid(equinox.Module):
        W: jax.Array
        beta: float = 1.0

        def __call__(self, xhat1):
            w = self.W / jax.numpy.sqrt(jax.numpy.sum(self.W**2, axis=0, keepdims=True))
            return -1 / self.beta * jax.nn.logsumexp(self.beta * xhat1 @ w, axis=-1)

    def dense(g, w, beta):
        w = w / numpy.sqrt(numpy.sum(w**2, axis=0, keepdims=True))
        return -1 / beta * basin.logsumexp(beta * g @ w, axis=-1)

    w = 0.02 * numpy.random.default_rng(3).normal(size=(28, 90))
    neurons = {"input": hamux.NeuronLayer(hamux.lagr_spherical_norm, (28,))}
    ours = ham.HAM(
        {"input": ham.Layer("spherical", 28)},
        {"s1": ham.Synapse(dense, w=w, beta=1.0)},
        [(["input"], "s1")],
    )
    same_network(
        hamux, neurons, {"s1": DenseSynapseHid(jax.numpy.asarray(w))}, [(["input"], "s1")], ours
    )


TUTORIAL = [ROOT / "python/tests/hamux_tutorial.py", ROOT / "python/examples/ham.py"]


def printed(program, **environment):
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_tutorial_line_by_line(hamux):
    theirs, ours = printed(TUTORIAL[0], JAX_ENABLE_X64="1"), printed(TUTORIAL[1])
    assert len(ours) == len(theirs) == 4
    for line, expected in zip(ours, theirs):
        close(line, expected)


def test_the_tutorial_takes_fewer_lines():
    lines = [
        len([line for line in path.read_text().splitlines() if line.strip() and line[0] != "#"])
        for path in TUTORIAL
    ]
    assert lines[1] < lines[0] <= 60


def test_recall_flips_bits_back():
    patterns = numpy.where(RNG.random((2, 60)) < 0.5, -1.0, 1.0)
    layer, memory = ham.Layer("identity", (6, 10)), ham.memory(xi=patterns, hidden="identity")
    network = ham.HAM({"bits": layer}, {"m": memory}, [(["bits"], "m")])
    damaged = patterns.copy()
    damaged[:, 3::10] *= -1
    end = network.recall({"bits": damaged.reshape(2, 6, 10)}, "bits", backend="ref")["bits"]
    close(end.reshape(2, 60), patterns)
    damaged[0, 5] = 0.5
    with pytest.raises(basin.BasinError, match="0.5"):
        network.recall({"bits": damaged.reshape(2, 6, 10)}, "bits")
    with pytest.raises(basin.BasinError, match="no layer"):
        network.recall({"bits": patterns.reshape(2, 6, 10)}, "v")


# ---- as an energy ----


@pytest.mark.parametrize("batch", [None, 3])
def test_a_network_is_an_energy(batch):
    network = classifier()
    x = states(network, batch)
    g = network.activations(x, backend="ref")
    close(network(x, backend="ref"), network.energy(g, x, backend="ref"))
    slopes, force = network.dEdg(g, x, backend="ref"), network.force(x, backend="ref")
    close(force["v"], -slopes["v"])
    close(force["h"], -slopes["h"])
    w, v = network.params["vh"]["w"], states(network, batch, seed=4)
    curved = network.hessian_vector(x, v, backend="ref")
    close(curved["v"], -v["h"] @ w.T)
    close(curved["h"], -v["v"] @ w)
    slope = network.grad(x, "params", backend="ref")["vh"]["w"]
    close(slope, -g["v"].reshape(-1, 5).T @ g["h"].reshape(-1, 4))


@pytest.mark.parametrize("clamp", [(), "v"])
def test_the_fixed_point_of_a_network_has_gradients(clamp):
    network = classifier()
    x = states(network)
    options = {"clamp": clamp, "alpha": 0.3, "until": 1e-12, "accuracy": 1e-12}

    @basin.function(backend="ref")
    def loss(w):
        return numpy.sum(network.at({"vh": {"w": w}}).fixed_point(x, **options)["h"] ** 2)

    found = network.fixed_point(x, **options, backend="ref")
    assert found.converged
    force = network.force(found.x, backend="ref")
    assert abs(force["h"]).max() < 1e-10 and (clamp or abs(force["v"]).max() < 1e-10)
    assert (found.x["v"] == x["v"]).all() == bool(clamp)
    w = network.params["vh"]["w"]
    step = numpy.zeros_like(w)
    step[2, 1] = 1e-6
    difference = (loss(w + step) - loss(w - step)) / 2e-6
    close(loss.grad(w)[2, 1], difference, rtol=1e-6, atol=1e-8)


def test_parameters_are_saved_and_loaded(tmp_path):
    network = classifier()
    network.save(tmp_path / "network.safetensors")
    other = classifier().load(tmp_path / "network.safetensors")
    assert (other.params["vh"]["w"] == network.params["vh"]["w"]).all()
    smaller = ham.HAM({"v": ham.Layer("identity", 5)}, {"b": ham.bias()}, [(["v"], "b")])
    with pytest.raises(basin.BasinError, match="b.b"):
        smaller.load(tmp_path / "network.safetensors")
    with pytest.raises(basin.BasinError, match="no parameter 'vh.q', expected one of"):
        network.set({"vh": {"q": 1.0}})
    with pytest.raises(basin.BasinError, match="expected a dict"):
        network.set({"vh.w": 1.0})
