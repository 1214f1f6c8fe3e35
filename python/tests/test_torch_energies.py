"""Any energy in PyTorch: derivatives of first and second order against differences, compilers,
transforms, modules, types, errors; on CUDA where there is a device."""

import collections
import copy
import dataclasses
import functools
import pickle

import numpy
import pytest
import some_energies

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.utils._pytree import tree_flatten, tree_unflatten  # noqa: E402

import basin  # noqa: E402
import basin.torch as bt  # noqa: E402

CASES = some_energies.cases()
QUANTITIES = {
    "value": bt.value,
    "force": bt.force,
    "descend": lambda energy: bt.unroll(energy, steps=2, alpha=0.1),
}
cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device")
every = pytest.mark.parametrize("output", QUANTITIES)


def given(name, dtype=torch.float64, device="cpu"):
    """The energy, and its arguments as tensors with gradients."""
    energy, x, parameters = CASES[name]
    tensors = [torch.tensor(v, dtype=dtype, device=device) for v in (x, *parameters.values())]
    return energy, [t.requires_grad_() for t in tensors]


def function_of(name, output):
    quantity, names = QUANTITIES[output](CASES[name][0]), list(CASES[name][2])
    return lambda x, *rest: quantity(x, **dict(zip(names, rest)))


def gradients(f, arguments):
    """Of a loss of the results, and of a loss of these, which is of second order."""
    first = torch.autograd.grad(f(*arguments).sin().sum(), arguments, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), arguments)
    return [*first, *second]


@pytest.mark.parametrize("name", CASES)
@every
def test_gradcheck_and_gradgradcheck(name, output):
    _, arguments = given(name)
    f = function_of(name, output)
    assert torch.autograd.gradcheck(f, arguments, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, arguments)


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_basin(name):
    energy, (x, *rest) = given(name)
    parameters = {n: v.detach().numpy() for n, v in zip(CASES[name][2], rest)}
    options = {**parameters, "backend": "ref"}
    tokens = x.detach().numpy()
    found = function_of(name, "value")(x, *rest).detach().numpy()
    numpy.testing.assert_allclose(found, energy(tokens, **options), rtol=1e-14)
    found = function_of(name, "force")(x, *rest).detach().numpy()
    numpy.testing.assert_allclose(found, energy.force(tokens, **options), rtol=1e-14)
    found = function_of(name, "descend")(x, *rest).detach().numpy()
    end = energy.descend(tokens, steps=2, alpha=0.1, **options).x
    numpy.testing.assert_allclose(found, end, rtol=1e-13)


def test_a_third_order():
    _, (x, xi, beta) = given("memory")
    f, along = function_of("memory", "value"), torch.ones_like(x)

    def second(x, xi):
        slope = torch.autograd.grad(f(x, xi, beta).sum(), x, create_graph=True)[0]
        return torch.autograd.grad((slope * along).sum(), x, create_graph=True)[0]

    assert torch.autograd.gradcheck(second, (x, xi))


@every
def test_compiled(output):
    torch._dynamo.reset()
    for name in CASES:
        _, arguments = given(name, torch.float32)
        f = function_of(name, output)
        compiled = torch.compile(lambda *a: f(*a).cos(), fullgraph=True, backend="aot_eager")  # noqa: B023
        ours = torch.autograd.grad(compiled(*arguments).sum(), arguments)
        theirs = torch.autograd.grad(f(*arguments).cos().sum(), arguments)
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a, b)


@every
def test_transforms(output):
    f, (x, xi, beta) = function_of("memory", output), given("memory")[1]
    x, xi, beta = x.detach(), xi.detach(), beta.detach()

    def loss(x):
        return f(x, xi, beta).square().sum()

    by_hand = torch.autograd.functional.hessian(loss, x)
    torch.testing.assert_close(torch.func.hessian(loss)(x), by_hand)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(loss))(x), by_hand)
    torch.testing.assert_close(torch.func.jacfwd(torch.func.jacfwd(loss))(x), by_hand)
    found = torch.autograd.functional.hessian(loss, x, vectorize=True)
    torch.testing.assert_close(found, by_hand)
    many = torch.stack([x, 2 * x, x - 1])
    each = torch.stack([f(one, xi, beta) for one in many])
    torch.testing.assert_close(torch.func.vmap(lambda x: f(x, xi, beta))(many), each)
    assert torch.func.vmap(lambda x: f(x, xi, beta))(many[:0]).shape == (0, *each.shape[1:])
    slopes = torch.func.vmap(torch.func.grad(loss))(many)
    torch.testing.assert_close(slopes, torch.stack([torch.func.grad(loss)(one) for one in many]))
    tangent = torch.func.jvp(loss, (x,), (torch.ones_like(x),))[1]
    torch.testing.assert_close(tangent, torch.func.grad(loss)(x).sum())


def test_batched_gradients():
    f, (x, xi, beta) = function_of("memory", "force"), given("memory")[1]
    made = f(x, xi, beta)
    eye = torch.eye(made.numel(), dtype=made.dtype).reshape(-1, *made.shape)
    found = torch.autograd.grad(made, (x, xi), eye, is_grads_batched=True, retain_graph=True)
    for i, one in enumerate(eye):
        for a, b in zip(found, torch.autograd.grad(made, (x, xi), one, retain_graph=True)):
            torch.testing.assert_close(a[i], b)


def test_a_module_trains():
    torch.manual_seed(0)
    patterns = torch.randn(3, 8).sign()
    layer = bt.module(some_energies.memory, {"xi": torch.randn(3, 8), "beta": 1.0}, steps=4)
    assert [name for name, _ in layer.named_parameters()] == ["xi"]
    assert layer.state_dict().keys() == {"xi"}
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(60):
        noisy = patterns + 0.3 * torch.randn(3, 8)
        loss = (layer(noisy) - patterns).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert layer.value(patterns).shape == (3,)
    assert layer.force(patterns).shape == (3, 8)


def test_a_module_is_copied_moved_and_computes_narrow_types():
    layer = bt.module(some_energies.memory, {"xi": torch.eye(3)}, "force")
    other = copy.deepcopy(layer)
    x = torch.randn(2, 3)
    assert torch.equal(layer(x), other(x))
    narrow = layer.to(torch.bfloat16)(x.bfloat16())
    assert narrow.dtype == torch.bfloat16 and layer.value(x.bfloat16()).dtype == torch.float32
    assert layer.to(torch.float64)(x.double()).dtype == torch.float64
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(other(x), other(x.clone()))
    mixed = bt.force(some_energies.memory)(x, torch.eye(3).double())
    assert mixed.dtype == torch.float64
    assert layer.to("meta")(torch.randn(2, 3, device="meta")).shape == (2, 3)
    assert "force of <basin energy memory" in repr(layer)
    more = other(x, xi=torch.zeros(1, 3))  # in place of its own
    torch.testing.assert_close(more, -x)


def test_a_function_of_basin():
    f = basin.function(lambda x, y: numpy.sum(x * y**2))
    x, y = torch.ones(3, requires_grad=True), torch.arange(3.0, requires_grad=True)
    made = bt.value(f)(x, y)
    assert made.item() == 5
    assert torch.autograd.grad(made, y)[0].tolist() == [0, 2, 4]
    layer = bt.module(f, {"y": torch.arange(3.0)})
    assert layer(x).item() == 5


Pair = collections.namedtuple("Pair", "w b")


@dataclasses.dataclass
class Sums:
    out: object
    hidden: object


@basin.function
def layers(net, x, factor=1.0):
    """A network of two layers, its parameters and its results trees."""
    hidden = numpy.tanh(x @ net["first"].w + net["first"].b)
    out = hidden @ net["rest"][0] + net["rest"][1]["b"]
    return {"out": factor * out, "sums": [Sums(numpy.sum(out), numpy.sum(hidden**2)), None]}


def parameters(dtype=torch.float64):
    draw = functools.partial(torch.randn, dtype=dtype)
    return {"first": Pair(draw(3, 4), draw(4)), "rest": [draw(4, 2), {"b": draw(2)}]}


def test_trees_as_arguments_and_results():
    net, x, f = parameters(), torch.randn(5, 3, dtype=torch.float64), bt.value(layers)
    leaves, spec = tree_flatten((net, x))

    def flat(*leaves):
        made = f(*tree_unflatten(leaves, spec), factor=2.0)
        return made["out"], made["sums"][0].out, made["sums"][0].hidden

    hidden = torch.tanh(x @ net["first"].w + net["first"].b)
    out = hidden @ net["rest"][0] + net["rest"][1]["b"]
    torch.testing.assert_close(flat(*leaves), (2 * out, out.sum(), (hidden**2).sum()))
    assert f(net, x)["sums"][1] is None
    arguments = [leaf.requires_grad_() for leaf in leaves]
    assert torch.autograd.gradcheck(flat, arguments, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(flat, arguments)
    slope = torch.func.grad(lambda net: f(net, x)["sums"][0].hidden)(net)
    assert slope["first"].w.shape == (3, 4) and slope["rest"][1]["b"].tolist() == [0, 0]
    by_row = torch.func.vmap(lambda row: f(net, row)["out"])(x)
    torch.testing.assert_close(by_row, out)
    torch._dynamo.reset()
    made = torch.compile(f, fullgraph=True, backend="aot_eager")(net, x)
    assert isinstance(made["sums"][0], Sums)
    torch.testing.assert_close(made["out"], out)
    assert torch.autograd.grad(made["sums"][0].hidden, net["first"].b)[0].shape == (4,)
    many = bt.value(basin.function(lambda *xs, **by: sum(numpy.sum(x) for x in xs) * by["b"]))
    assert many(torch.ones(2), torch.ones(3), b=2.0) == 10


def test_a_module_of_trees(tmp_path):
    module = bt.module(layers, {"net": parameters(torch.float32), "factor": 2.0})
    names = ["net.first.w", "net.first.b", "net.rest.0", "net.rest.1.b"]
    assert [name for name, _ in module.named_parameters()] == names == list(module.state_dict())
    x = torch.randn(5, 3)
    loss = module(x)["out"].square().mean() + module(x=x, factor=1.0)["sums"][0].out
    loss.backward()
    assert all(p.grad.abs().max() > 0 for p in module.parameters())
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(compiled["out"], module(x)["out"])
    torch.save(module, tmp_path / "module")
    loaded = torch.load(tmp_path / "module", weights_only=False)
    assert torch.equal(loaded(x)["out"], copy.deepcopy(module)(x)["out"])
    assert module.to("meta")(x.to("meta"))["out"].shape == (5, 2)


@pytest.mark.filterwarnings("error:The given NumPy array")  # those of networks are read-only
def test_a_network_of_layers_as_a_module():
    layers = {"v": basin.ham.Layer("identity", 4), "h": basin.ham.Layer("softmax", 3)}
    network = basin.ham.HAM(layers, {"m": basin.ham.linear()}, [(("v", "h"), "m")])

    def predict(net, v):
        at = network.at(net)
        start = {"v": v, "h": numpy.zeros((len(v), 3))}
        end = at.unroll(start, steps=3, alpha=0.5, clamp=["v"])
        return at.activations(end)["h"]

    layer = bt.module(basin.function(predict), {"net": network.params})
    x = torch.randn(5, 4)
    layer(x)[:, 0].sum().backward()
    assert list(layer.state_dict()) == ["net.m.w"] and layer.net.m.w.grad.abs().max() > 0
    start = {"v": x.numpy(), "h": numpy.zeros((5, 3))}
    expected = network.descend(start, steps=3, alpha=0.5, clamp=["v"]).g["h"]
    assert layer(x).dtype == torch.float32
    torch.testing.assert_close(layer(x).detach(), torch.from_numpy(expected))
    names = bt.module(basin.function(lambda p, x: p["a.b"] - p["a_b"] + x * p["type"]), {
        "p": {"type": torch.ones(2), "a.b": torch.ones(2), "a_b": torch.zeros(2)}})  # fmt: skip
    assert list(names.state_dict()) == ["p.type_", "p.a_b", "p.a_b_"]
    assert names(torch.ones(2)).tolist() == [2, 2]


def test_states_of_several_kinds():
    @basin.energy(activation={"v": None, "h": "softmax"})
    def pair(g, w):
        return numpy.sum(g["v"] ** 2) / 2 - g["v"] @ w @ g["h"]

    def by_hand(v, h, w):
        for _ in range(3):
            p = torch.softmax(h, -1)
            v, h = v - 0.1 * (v - w @ p), h + 0.1 * (v @ w)
        return v, h

    def ours(v, h, w):
        end = bt.unroll(pair, steps=3, alpha=0.1)({"v": v, "h": h}, w=w)
        return end["v"], end["h"]

    v, h, w = (
        torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((4,), (3,), (4, 3))
    )
    torch.testing.assert_close(ours(v, h, w), by_hand(v, h, w), rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(ours, (v, h, w))
    assert torch.autograd.gradgradcheck(ours, (v, h, w))
    many = torch.randn(5, 3, dtype=torch.float64)  # of one state only
    found, expected = (torch.func.vmap(f, (None, 0, None))(v, many, w) for f in (ours, by_hand))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    force = bt.force(pair)({"v": v, "h": h}, w=w)
    torch.testing.assert_close(force["v"], w @ torch.softmax(h, -1) - v)
    assert bt.module(pair, {"w": w}, steps=2)({"v": v, "h": h})["h"].shape == (3,)
    with pytest.raises(basin.BasinError, match="x is a list"):
        bt.value(pair)([1.0, 2.0])


def test_an_energy_of_a_tree():
    @basin.energy(batched=True)
    def memory(g, net):
        return numpy.sum(g**2, -1) / 2 - basin.logsumexp(g @ net[0].T + net[1]["b"])

    net = (torch.randn(6, 3), {"b": torch.zeros(6)})
    layer = bt.module(memory, {"net": net}, steps=3, alpha=0.3)
    x = torch.randn(4, 3)
    (layer(x).sum() + layer.value(x).sum() + layer.force(x).sum()).backward()
    assert layer.net.get_parameter("1.b").grad.shape == (6,)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))
    exported = torch.export.export(layer, (x,)).module()
    torch.testing.assert_close(exported(x), layer(x))


def test_options_of_descents():
    energy, (x, xi, beta) = given("memory")

    def fixed(x, xi):
        return bt.fixed_point(energy, steps=500, alpha=0.3, until=1e-12, accuracy=1e-12)(
            x, xi, beta
        )

    assert torch.autograd.gradcheck(fixed, (x, xi), atol=1e-4)
    by_step = bt.unroll(energy, 2, [0.1, 0.2])(x, xi, beta)
    half = bt.unroll(energy, 1, 0.1)(x, xi, beta)
    torch.testing.assert_close(by_step, bt.unroll(energy, 1, 0.2)(half, xi, beta))
    mask = numpy.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    held = bt.module(energy, {"xi": xi}, steps=3, mask=mask)(x) == x
    assert torch.equal(held, torch.from_numpy(mask) == 0)


def test_modules_are_saved(tmp_path):
    layer = bt.module(some_energies.memory, {"xi": torch.eye(3)}, steps=2)
    torch.save(layer, tmp_path / "layer")
    loaded = torch.load(tmp_path / "layer", weights_only=False)
    assert torch.equal(loaded(torch.ones(2, 3)), layer(torch.ones(2, 3)))
    quantity = pickle.loads(pickle.dumps(bt.value(basin.energy(numpy.sum))))
    assert quantity(torch.ones(3)).item() == 3


def test_memory_that_is_not_dense_and_the_same_bits_again():
    f, (x, xi, beta) = function_of("memory", "force"), given("memory", torch.float32)[1]
    turned = x.detach().T.contiguous().T
    assert torch.equal(f(turned, xi, beta), f(x, xi, beta))
    assert torch.equal(f(x, xi, beta), f(x, xi, beta))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: bt.value(3), "energy or a function"),
        (lambda: bt.value(layers)({"first": "a"}, torch.ones(3)), "net.first is a str"),
        (lambda: bt.value(layers)({(1,): torch.ones(3)}, torch.ones(3)), "the key"),
        (lambda: bt.value(layers)(2.0, 3.0), "net is a float.*tensor"),
        (lambda: bt.value(layers)(torch.ones(3), net=torch.ones(3)), "given twice"),
        (lambda: bt.module(some_energies.memory, output="heat"), "value, force"),
        (lambda: bt.module(some_energies.memory, output="value", steps=3), "'descend'"),
        (lambda: bt.module(some_energies.memory, {"eta": 1.0}), "no parameter 'eta'"),
        (lambda: bt.value(some_energies.memory)(torch.ones(3), eta=1.0), "no parameter 'eta'"),
        (lambda: bt.module(some_energies.memory, step=6), "'step'.*steps, alpha"),
        (lambda: bt.module(some_energies.memory)(torch.ones(3)), "needs xi"),
        (
            lambda: bt.value(some_energies.memory)(torch.ones(3), torch.ones(2, 4)),
            "do not multiply",
        ),
        (lambda: bt.value(some_energies.memory)([1.0]), "tensor"),
        (lambda: bt.value(some_energies.memory)(torch.ones(3), xi=[[1.0]]), "xi is a list"),
        (lambda: bt.value(some_energies.memory)(torch.ones(3) * 1j), "complex"),
        (lambda: bt.force(basin.function(lambda x: x)), "'value'"),
        (lambda: bt.value(basin.function(lambda x: None))(torch.ones(2)), "returned no array"),
        (lambda: bt.module(basin.function(lambda x: x)).force(0), "an energy"),
    ],
)
def test_errors(call, text):
    with pytest.raises(basin.BasinError, match=text):
        call()


# ---- on CUDA ----


@cuda
@pytest.mark.parametrize("name", CASES)
@every
def test_cuda_computes_what_the_cpu_does(name, output):
    f = function_of(name, output)
    expected = gradients(f, given(name, torch.float64)[1])
    found = gradients(f, given(name, torch.float32, "cuda")[1])
    for a, b in zip(found, expected):
        assert a.is_cuda
        torch.testing.assert_close(a.cpu().double(), b, rtol=2e-3, atol=2e-3)


@cuda
def test_cuda_keeps_the_order_of_the_callers_stream():
    f, (x, xi, beta) = function_of("memory", "descend"), given("memory", torch.float32, "cuda")[1]
    x, xi, beta = x.detach(), xi.detach(), beta.detach()
    large = torch.randn(4096, 4096, device="cuda")
    expected = f(x + 1, xi, beta)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    for _ in range(20):
        with torch.cuda.stream(stream):
            late = x + (large @ large).isfinite().all()  # x + 1, after a while
            made = f(late, xi, beta) * 1  # and read at once
            del late
        stream.synchronize()
        assert torch.equal(made, expected)


@cuda
def test_cuda_trains_and_compiles():
    torch._dynamo.reset()
    layer = bt.module(some_energies.memory, {"xi": torch.randn(3, 8)}, steps=4).cuda()
    x = torch.randn(5, 8, device="cuda")
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for run in (layer, compiled):
        layer.zero_grad()
        run(x).square().sum().backward()
        assert torch.isfinite(layer.xi.grad).all() and layer.xi.grad.is_cuda
    narrow = layer(x.bfloat16())
    assert narrow.dtype == torch.bfloat16
    torch.testing.assert_close(narrow.float(), layer(x), rtol=0.05, atol=0.05)
    with pytest.raises(basin.BasinError, match="float64 on cpu"):
        layer(x.double())
