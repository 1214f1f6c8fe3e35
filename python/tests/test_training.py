"""Training in Python: it learns, it stops, and it goes on to the same bits."""

import pickle

import numpy
import pytest

import basin

rng = numpy.random.default_rng(1)
X = rng.normal(size=(32, 6))
Y = numpy.tanh(X @ rng.normal(size=(6, 2)))


def loss(w, v, x, y):
    return numpy.mean((numpy.tanh(x @ w) @ v - y) ** 2)


def trainer(**options):
    first = {"w": basin.training.Normal((6, 16), 0.3), "v": rng_weights()}
    return basin.Trainer(loss, first, rate=0.01, decay=0.01, **options)


def rng_weights():
    return numpy.random.default_rng(5).normal(size=(16, 2)) / 4


def test_it_learns():
    ours = trainer()
    losses = ours.fit([{"x": X, "y": Y}] * 150)
    assert losses[-1] < losses[0] / 5
    assert ours.steps == 150


def test_a_callback_ends_it():
    assert len(trainer().fit([{"x": X, "y": Y}] * 9, [lambda t, _: t.steps == 4])) == 4


def test_an_interrupt_keeps_what_was_learnt():
    def interrupt(ours, _):
        if ours.steps == 3:
            raise KeyboardInterrupt

    ours = trainer()
    assert len(ours.fit([{"x": X, "y": Y}] * 9, [interrupt])) == 3
    assert not numpy.array_equal(ours.parameters()["v"], rng_weights().astype("f4"))


def test_only_true_ends_a_run():
    """A callback that returned the loss ended it after one step."""
    batches = [{"x": X, "y": Y}] * 4
    assert len(trainer().fit(batches, [lambda _, loss: loss])) == 4
    assert len(trainer().fit(batches, [lambda ours, _: numpy.bool_(ours.steps == 2)])) == 2


def test_a_loaded_run_goes_on_to_the_same_bits(tmp_path):
    whole, first, second = trainer(), trainer(), trainer()
    whole.fit([{"x": X, "y": Y}] * 20)
    first.fit([{"x": X, "y": Y}] * 8)
    first.save(tmp_path / "run.safetensors")
    second.load(tmp_path / "run.safetensors")
    second.fit([{"x": X, "y": Y}] * 12)
    for name, values in whole.parameters().items():
        assert numpy.array_equal(values, second.parameters()[name])


def test_other_batch_sizes_share_the_parameters():
    ours = trainer()
    for rows in (32, 8, 32):
        last = ours.step(x=X[:rows], y=Y[:rows])
    assert ours.steps == 3 and numpy.isfinite(last)


def test_a_loss_through_a_descent():
    @basin.energy(batched=True)
    def memory(g, xi):
        return numpy.sum(g**2, axis=-1) / 2 - basin.logsumexp(4 * (g @ xi.T)) / 4

    def miss(xi, cue, expected):
        end = memory.unroll(cue, steps=3, alpha=0.5, xi=xi)
        return numpy.mean((end - expected) ** 2)

    expected = numpy.sign(rng.normal(size=(8, 10)))
    cue = expected * (rng.random(expected.shape) > 0.3)
    ours = basin.Trainer(miss, {"xi": basin.training.Normal((8, 10), 0.3)}, rate=0.05, clip=1)
    losses = ours.fit([{"cue": cue, "expected": expected}] * 200)
    assert losses[-1] < losses[0] / 4


def test_a_vector_is_no_loss():
    ours = basin.Trainer(lambda w, x: x @ w, {"w": basin.training.Normal((6,), 1.0)})
    with pytest.raises(basin.BasinError):
        ours.step(x=X)


def test_parameters_and_batches_are_trees(tmp_path):
    def loss(net, scale, pair):
        x, y = pair
        return numpy.mean((x @ net["w"] * scale[0] + net["b"] - y) ** 2)

    first = {
        "net": {"w": basin.training.Normal((3, 1), 0.1), "b": [0.0]},
        "scale": (numpy.ones(1),),
    }
    trainer = basin.Trainer(loss, first, rate=0.05, seed=1)
    x = numpy.random.default_rng(0).normal(size=(64, 3))
    pair = x, x @ [[1.0], [2.0], [3.0]] + 1
    losses = [trainer.step(pair=pair) for _ in range(200)]
    assert losses[-1] < 1e-3 * losses[0]
    found = trainer.parameters()
    assert sorted(found) == ["net", "scale"]
    assert isinstance(found["scale"], tuple)
    numpy.testing.assert_allclose(found["net"]["b"], [1.0], atol=0.05)
    trainer.save(tmp_path / "run.safetensors")
    other = basin.Trainer(loss, first, rate=0.05, seed=2)
    other.load(tmp_path / "run.safetensors")
    numpy.testing.assert_array_equal(other.parameters()["net"]["w"], found["net"]["w"])


def test_nothing_decays_and_nothing_is_clipped_unless_asked():
    """A first step of AdamW is the rate, whatever the size of the gradient; the second one shows
    the ratio of gradients, which clipping would change."""

    def taken(**options):
        ours = basin.Trainer(
            lambda w, x: numpy.sum(w * x), {"w": [1.0, 1.0]}, rate=0.1, backend="ref", **options
        )
        for x in (1.0, 100.0):
            ours.step(x=[x, 0.0])
        return ours.parameters()["w"]

    plain = taken()
    m, v = 0.9 * 0.1 + 0.1 * 100, 0.99 * 0.01 + 0.01 * 100**2
    second = (m / (1 - 0.9**2)) / numpy.sqrt(v / (1 - 0.99**2))
    assert plain == pytest.approx([1 - 0.1 - 0.1 * second, 1], rel=1e-6)
    assert taken(decay=0.5)[1] < 1
    assert taken(clip=1.0)[0] != pytest.approx(plain[0], rel=1e-3)


def test_batches_are_dicts_of_what_the_loss_needs():
    ours = trainer()
    for batch, told in (
        ({"x": X, "y": Y, "z": 1.0}, "the loss has no argument 'z'"),
        ({"x": X}, "a batch without 'y', which the loss needs"),
        ({"x": X, "y": Y, "w": X}, "a batch with 'w', which is a parameter that is learnt"),
    ):
        with pytest.raises(basin.BasinError, match=told):
            ours.step(**batch)
    with pytest.raises(basin.BasinError, match="a batch is ndarray.*dict"):
        ours.fit([X])
    with pytest.raises(basin.BasinError, match="the loss has no argument 'u'"):
        basin.Trainer(loss, {"u": [1.0]})
    free = basin.Trainer(lambda w, **batch: numpy.sum(w * batch["x"]), {"w": [1.0, 2.0]})
    assert free.step(x=[1.0, 1.0]) == 3


def test_two_parameters_of_one_name_are_refused():
    twice = {"net": {"a": {"b": numpy.zeros(2)}, "a.b": numpy.zeros(2)}}
    with pytest.raises(basin.BasinError, match=r"two parameters are called 'net.a.b'"):
        basin.Trainer(lambda net: numpy.sum(net["a"]["b"] - net["a.b"]), twice)


@pytest.mark.parametrize(
    "change", [{"rate": -1}, {"rate": numpy.nan}, {"decay": -1}, {"steps": -1}]
)
def test_numbers_without_meaning_are_refused(change):
    with pytest.raises(basin.BasinError, match=f"{next(iter(change))} .*.*finite number"):
        basin.Trainer(lambda w: numpy.sum(w), {"w": numpy.ones(1)}, **change)


@pytest.mark.parametrize("optimizer", ["adamw", "lion", "sgd"])
def test_trainers_are_pickled_and_loaded_before_a_step(tmp_path, optimizer):
    options = {"rate": 0.01, "optimizer": optimizer}
    weights = {"w": numpy.ones((6, 3)) / 9, "v": numpy.ones((3, 2)) / 9}
    first = basin.Trainer(loss, weights, **options)
    losses = first.fit([{"x": X, "y": Y}] * 30)
    assert losses[-1] < losses[0]
    first.save(tmp_path / "run.safetensors")
    again = pickle.loads(pickle.dumps(first))
    loaded = basin.Trainer(loss, weights, **options)
    loaded.load(tmp_path / "run.safetensors")
    other = "sgd" if optimizer == "adamw" else "adamw"
    with pytest.raises(basin.BasinError, match=f"by optimizer '{optimizer}', .* '{other}'"):
        basin.Trainer(loss, weights, optimizer=other).load(tmp_path / "run.safetensors")
    rest = [t.fit([{"x": X, "y": Y}] * 3) for t in (first, again, loaded)]
    assert rest[0] == rest[1] == rest[2] and loaded.steps == 33
    with pytest.raises(basin.BasinError, match="optimizer 'adam', expected one of adamw"):
        basin.Trainer(loss, weights, optimizer="adam")
