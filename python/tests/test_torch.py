"""Energy attention in PyTorch against its own formulas: values, derivatives of both orders, lists
of pairs, compilers, AMP, errors; and the block against Basin's own training."""

import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import basin  # noqa: E402
import basin.torch as bt  # noqa: E402


def tokens(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, *shape, dtype=dtype, generator=generator).unbind()


def formula(q, k, beta, left_out=None, scale=None):
    """The log-sum-exp by PyTorch itself, in double; left_out [N, M] is True where a pair does not
    count."""
    q, k, beta = q.double(), k.double(), torch.as_tensor(beta).double()
    z = (q @ k.transpose(-1, -2)) * (beta if beta.ndim == 0 else beta[:, None, None])
    z = z if scale is None else z * scale
    if left_out is not None:
        z = z.masked_fill(left_out, -torch.inf)
    return torch.logsumexp(z, -1)


def second_order(lse, q, k):
    """A gradient through the force."""
    q, k = (x.detach().clone().requires_grad_() for x in (q, k))
    slopes = torch.autograd.grad(lse(q, k).sum(), (q, k), create_graph=True)
    weight = torch.linspace(-1, 1, q.shape[-1])
    return torch.autograd.grad(sum((x * weight * x).sum() for x in slopes), (q, k))


def triangle(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def edges_of(n, seed=1):
    rng = numpy.random.default_rng(seed)
    edges = rng.integers(n, size=(3 * n, 2))
    return numpy.unique(edges[edges[:, 0] != n // 2], axis=0)  # one query has no key


def mask_of(pairs):
    left_out = torch.ones(pairs.queries, pairs.keys, dtype=torch.bool)
    left_out[tuple(pairs.edges().T)] = False
    return left_out


DOUBLE = {"dtype": torch.float64}
CLOSE = {"rtol": 2e-5, "atol": 2e-5}
PATTERNS = {
    "all": ({}, lambda n: None),
    "others": ({"exclude_self": True}, lambda n: torch.eye(n, dtype=torch.bool)),
    "causal": ({"pairs": "causal"}, triangle),
}


@pytest.mark.parametrize("shape", [(2, 3, 7, 5), (1, 1, 1, 3), (3, 2, 33, 17), (1, 4, 130, 64)])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_values_and_both_derivatives_are_those_of_the_formula(shape, pattern):
    q, k = tokens(*shape)
    options, mask = PATTERNS[pattern]
    if pattern == "others" and shape[2] == 1:
        assert bt.attention_lse(q, k, 0.5, **options).item() == 0  # there is no key
        return
    left_out = mask(shape[2])
    expected = formula(q, k, 0.5, left_out)
    torch.testing.assert_close(bt.attention_lse(q, k, 0.5, **options).double(), expected, **CLOSE)
    ours = second_order(lambda q, k: bt.attention_lse(q, k, 0.5, **options), q, k)
    theirs = second_order(lambda q, k: formula(q, k, 0.5, left_out), q, k)
    for x, y in zip(ours, theirs):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-4)


def test_more_keys_than_queries():
    (q, _), (_, k) = tokens(2, 3, 4, 8), tokens(2, 3, 9, 8)
    torch.testing.assert_close(bt.attention_lse(q, k, 0.3).double(), formula(q, k, 0.3), **CLOSE)


@pytest.mark.parametrize("memory", ["heads first", "tokens first", "neither"])
@pytest.mark.parametrize("beta", [0.4, "tensor", "heads"])
def test_where_heads_lie_does_not_matter(memory, beta):
    q, k = tokens(2, 3, 6, 8)
    if memory == "tokens first":
        q, k = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k))
    if memory == "neither":
        q, k = (x.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0) for x in (q, k))
    beta = {"tensor": torch.tensor(0.4), "heads": torch.tensor([0.3, 0.4, 0.5])}.get(beta, beta)
    expected = formula(q, k, beta)
    torch.testing.assert_close(bt.attention_lse(q, k, beta).double(), expected, **CLOSE)
    ours = second_order(lambda q, k: bt.attention_lse(q, k, beta), q, k)
    theirs = second_order(lambda q, k: formula(q, k, beta), q, k)
    for x, y in zip(ours, theirs):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-4)


def test_the_other_layout_and_any_number_of_axes():
    q, k = tokens(2, 2, 3, 6, 8)
    expected = bt.energy_attention(q, k, 0.4)
    swapped = bt.energy_attention(q.transpose(-2, -3), k.transpose(-2, -3), 0.4, layout="nhy")
    assert swapped.shape == (2, 2, 6, 3)
    torch.testing.assert_close(swapped.transpose(-1, -2), expected)
    alone = bt.energy_attention(q[0, 0], k[0, 0], 0.4)
    torch.testing.assert_close(alone, expected[0, 0])


def test_the_scale_of_the_other_layout():
    (q, k), scale = tokens(2, 3, 6, 8), torch.rand(2, 3, 6, 6)
    turned = [x.transpose(-2, -3) for x in (q, k)]
    for some in (scale, scale[:1, :1], torch.tensor(2.0)):  # one number, or whatever broadcasts
        expected = bt.attention_lse(q, k, 0.4, scale=some)
        some = some.movedim(-3, -1) if some.ndim else some
        found = bt.attention_lse(*turned, 0.4, scale=some, layout="nhy")
        torch.testing.assert_close(found.transpose(-1, -2), expected)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_list_of_pairs(batch):
    q, k = tokens(batch, 2, 11, 6)
    pairs = bt.Pairs(edges_of(11), 11)
    left_out = mask_of(pairs)
    ours = bt.attention_lse(q, k, 0.5, pairs)
    there = ~left_out.all(1)
    torch.testing.assert_close(
        ours[..., there].double(), formula(q, k, 0.5, left_out)[..., there], **CLOSE
    )
    assert (ours[..., ~there] == 0).all() and not there.all()

    def theirs(q, k):
        return formula(q[..., there, :], k, 0.5, left_out[there])

    for x, y in zip(
        second_order(lambda q, k: bt.attention_lse(q, k, 0.5, pairs), q, k),
        second_order(theirs, q, k),
    ):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-4)


def test_a_list_in_a_batch_learns_beta_and_scale():
    q, k = (x.requires_grad_() for x in tokens(2, 2, 5, 3, **DOUBLE))
    pairs = bt.Pairs(edges_of(5), 5)
    beta = torch.tensor([0.4, 0.6], **DOUBLE).requires_grad_()
    scale = torch.linspace(0.5, 1.5, 2 * len(pairs), **DOUBLE).reshape(-1, 2).requires_grad_()

    def energy(q, k, beta, scale):
        return bt.energy_attention(q, k, beta, pairs, scale)

    assert torch.autograd.gradcheck(energy, (q, k, beta, scale))
    assert torch.autograd.gradgradcheck(energy, (q, k, beta, scale))
    fq, fk = bt.attention_force(q, k, beta, pairs, scale)
    slopes = torch.autograd.grad(energy(q, k, beta, scale).sum(), (q, k))
    torch.testing.assert_close((-fq, -fk), slopes)


def test_lists_are_made_of_edges():
    pairs = bt.Pairs(torch.tensor([[0, 1], [2, 1], [0, 1]]), 3, both_ways=True, add_self=True)
    edges = pairs.edges().tolist()
    assert edges == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [2, 1], [2, 2]] and len(pairs) == 7
    with pytest.raises(basin.BasinError, match="names node 3.*0 to 2"):
        bt.Pairs([(0, 3)], 3)


@pytest.mark.parametrize("pattern", ["all", "causal", "list"])
@pytest.mark.parametrize("heads", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_gradcheck_and_gradgradcheck(pattern, heads, scaled):
    q, k = (x.requires_grad_() for x in tokens(1, 2, 5, 3, **DOUBLE))
    beta = torch.tensor([0.4, 0.6] if heads else 0.5, **DOUBLE).requires_grad_()
    pairs = {"all": None, "causal": "causal", "list": bt.Pairs(edges_of(5), 5)}[pattern]
    operands = [q, k, beta]
    if scaled:
        shape = (len(pairs), 2) if pattern == "list" else (1, 2, 5, 5)
        operands.append(0.5 + torch.rand(shape, **DOUBLE).requires_grad_().detach())
        operands[-1].requires_grad_()

    def energy(q, k, beta, scale=None):
        return bt.energy_attention(q, k, beta, pairs, scale)

    assert torch.autograd.gradcheck(energy, operands)
    assert torch.autograd.gradgradcheck(energy, operands)


@pytest.mark.parametrize("pattern", ["all", "causal", "list"])
def test_forward_mode(pattern):
    """Along tangents of all operands; over reverse mode along those of queries and keys."""
    q, k = tokens(2, 2, 4, 3, **DOUBLE)
    pairs = bt.Pairs(edges_of(4), 4) if pattern == "list" else None
    shape = (2, 2, 4, 4) if pairs is None else (len(pairs), 2)
    pairs = pattern if pattern == "causal" else pairs

    def energy(q, k, beta=0.4, scale=None):
        return bt.energy_attention(q, k, beta, pairs, scale)

    more = torch.tensor([0.4, 0.6], **DOUBLE), 0.5 + torch.rand(shape, **DOUBLE)
    learnt = [x.clone().requires_grad_() for x in (q, k, *more)]
    assert torch.autograd.gradcheck(energy, learnt, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(energy, learnt[:2], check_fwd_over_rev=True)


def test_transforms_of_functions():
    """torch.func's, of which jvp is forward mode and hessian both."""
    q, k = tokens(2, 2, 4, 3, **DOUBLE)
    func = torch.func

    def results(lse):
        def total(q, k):
            return -lse(q, k, 0.4).sum() / 0.4

        one = q[:1, :1], k[:1, :1]
        yield func.jvp(total, (q, k), (k, q))[1]
        yield from func.grad(total, (0, 1))(q, k)
        yield from func.vmap(func.grad(total, (0, 1)))(q, k)
        yield from func.jvp(func.grad(total, (0, 1)), (q, k), (k, q))[1]
        yield func.hessian(total)(*one)
        yield func.jacrev(func.jacrev(total))(*one)

    for ours, theirs in zip(results(bt.attention_lse), results(formula)):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("shape", [(2, 3, 0, 4), (0, 3, 5, 4), (2, 0, 5, 4)])
def test_nothing_is_a_number_of_tokens_too(shape):
    q, k = (x.requires_grad_() for x in tokens(*shape))
    slopes = torch.autograd.grad(bt.energy_attention(q, k, 0.4).sum(), (q, k), create_graph=True)
    second = torch.autograd.grad(sum(x.sum() for x in slopes), (q, k))
    assert [x.shape for x in (*slopes, *second)] == [shape] * 4


def test_a_third_derivative_is_refused():
    q, k = (x.requires_grad_() for x in tokens(1, 1, 3, 2))
    (slope,) = torch.autograd.grad(bt.energy_attention(q, k, 1.0).sum(), q, create_graph=True)
    (second,) = torch.autograd.grad(slope.square().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="first and second order"):
        torch.autograd.grad(second.sum(), q)


def test_the_force_is_minus_the_gradient_of_the_energy():
    q, k = (x.requires_grad_() for x in tokens(2, 3, 6, 8))
    for beta in (0.4, torch.tensor([0.3, 0.4, 0.5])):
        slopes = torch.autograd.grad(bt.energy_attention(q, k, beta, "causal").sum(), (q, k))
        for f, s in zip(bt.attention_force(q, k, beta, "causal"), slopes):
            torch.testing.assert_close(f, -s, **CLOSE)


def test_bfloat16_on_the_cpu():
    q, k = tokens(2, 2, 20, 16, dtype=torch.bfloat16)
    ours = bt.attention_lse(q, k, 0.25)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), formula(q, k, 0.25), **CLOSE)
    for x, y in zip(
        second_order(lambda q, k: bt.attention_lse(q, k, 0.25), q, k),
        second_order(lambda q, k: formula(q, k, 0.25), q.double(), k.double()),
    ):
        assert x.dtype == torch.bfloat16
        torch.testing.assert_close(x.double(), y, rtol=0.05, atol=0.02)


def test_amp_casts_tokens_and_nothing_else():
    q, k = (x.requires_grad_() for x in tokens(1, 2, 9, 8))
    with torch.autocast("cpu", torch.bfloat16):
        energy = bt.energy_attention(q, k, 0.4)
    assert energy.dtype == torch.float32
    narrow = bt.energy_attention(q.bfloat16(), k.bfloat16(), 0.4)
    assert torch.equal(energy, narrow)
    energy.sum().backward()
    assert q.grad.dtype == torch.float32
    half = bt.attention_lse(q.half(), k.half(), 0.4)
    torch.testing.assert_close(half.double(), formula(q.half(), k.half(), 0.4), **CLOSE)


@pytest.mark.parametrize("beta", [0.4, "heads"])
def test_compilers_keep_the_operations(beta):
    q, k = tokens(2, 3, 6, 8)
    weight = torch.linspace(0.2, 0.4, 3) if beta == "heads" else beta
    names = []

    def backend(graph, inputs):
        names.extend(str(node.target) for node in graph.graph.nodes)
        return make_boxed_func(graph.forward)

    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def loss(q, k):
        fq, fk = bt.attention_force(q * 1.5, k, weight, "causal")
        return (fq.square().sum() + (fk * 2).sum()) * bt.energy_attention(q, k, weight).sum()

    compiled = torch.compile(loss, backend=aot_autograd(fw_compiler=backend), fullgraph=True)
    results = []
    for function in (loss, compiled):
        a, b = (x.clone().requires_grad_() for x in (q, k))
        value = function(a, b)
        value.backward()
        results.append((value.detach(), a.grad, b.grad))
    for x, y in zip(*results):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-4)
    for operation in ("lse", "force", "reverse"):
        assert any(f"attention_{operation}" in name for name in names), names


def test_modes_see_the_operations():
    """Where nobody looks, calls do without the dispatcher; where somebody does, they must not."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function._schema.name)
            return function(*args, **(kwargs or {}))

    q = torch.randn(1, 2, 5, 4, requires_grad=True)
    with Mode():
        forces = bt.attention_force(q, q.detach(), 0.5)
        found = torch.autograd.grad(forces[0].sum(), q)
    assert {"basin::attention_force", "basin::attention_reverse"} <= set(seen)
    expected = torch.autograd.grad(bt.attention_force(q, q.detach(), 0.5)[0].sum(), q)
    assert torch.equal(found[0], expected[0])


def test_what_is_made_under_a_mode_is_not_kept():
    """Constants of calls are made once, but not those without numbers."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(1, 2, 6, 4)
        assert bt.energy_attention(fake, fake, 0.37).shape == (1, 2, 6)
    x = torch.randn(1, 2, 6, 4)
    found = [bt.energy_attention(x, x, 0.37) for _ in range(2)]
    torch.testing.assert_close(found[0], -bt.attention_lse(x, x, torch.tensor(0.37)) / 0.37)
    assert torch.equal(*found)
    with torch.autocast("cpu", torch.bfloat16):  # the same sizes, and yet another call
        assert not torch.equal(bt.energy_attention(x, x, 0.37), found[0])


def test_what_is_made_in_inference_mode_serves_training_later():
    """Constants of calls are made once, and tensors of inference mode cannot be saved for
    backward."""
    x = torch.randn(1, 2, 5, 4)
    with torch.inference_mode():
        bt.energy_attention(x, x, 0.43), bt.attention_force(x, x, 0.43)
    x.requires_grad_()
    energy, (force, _) = bt.energy_attention(x, x, 0.43), bt.attention_force(x, x, 0.43)
    assert torch.autograd.grad(energy.sum() + force.sum(), x)[0].abs().sum() > 0


def test_operations_pass_opcheck():
    q, k = (x.requires_grad_() for x in tokens(2, 3, 6, 8))
    beta = torch.tensor([0.3, 0.4, 0.5], requires_grad=True)
    w = torch.ones(2, 3, 6)
    ops = torch.ops.basin
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    for operands, flags in (
        ((q, k, torch.tensor([0.3]), None, None), 8),  # one head
        ((q, k, torch.tensor([0.3]), None, None), 8 + 2),
        ((q.transpose(1, 2), k.transpose(1, 2), beta, None, None), 0),
    ):
        own = operands[0].detach()
        weight, static = w if flags else w.transpose(1, 2), (flags, 0, 1.0)
        for operation, more, requested in (
            (ops.attention_lse, (), 1), (ops.attention_force, (weight,), 7),
            (ops.attention_reverse, (weight, own, None), 15),
        ):  # fmt: skip
            args = (*operands, *more, *static, requested)
            torch.library.opcheck(operation, args, test_utils=checks)


def test_threads_may_call_at_the_same_time():
    from concurrent.futures import ThreadPoolExecutor

    q, k = tokens(4, 2, 24, 16)
    expected = bt.attention_lse(q, k, 0.25)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: bt.attention_lse(q, k, 0.25), range(64)):
            assert torch.equal(result, expected)


VECTORISED = {
    "a number": lambda q, k, scale: bt.energy_attention(q, k, 0.5),
    "heads": lambda q, k, scale: bt.energy_attention(q, k, scale[0, :, 0, 0], exclude_self=True),
    "list": lambda q, k, scale: bt.energy_attention(q, k, 0.5, bt.Pairs([(0, 1), (1, 2)], 3)),
    "scale": lambda q, k, scale: bt.energy_attention(q, k, 0.5, scale=scale),
    "force": lambda q, k, scale: torch.cat(bt.attention_force(q, k, 0.5)),
}


@pytest.mark.parametrize("name", VECTORISED)
def test_batches_of_gradients(name):
    q, k = tokens(1, 2, 3, 4, **DOUBLE)
    scale = torch.rand(1, 2, 3, 3, **DOUBLE)
    f, functional = VECTORISED[name], torch.autograd.functional
    found = functional.jacobian(f, (q, k, scale), vectorize=True)
    for a, b in zip(found, functional.jacobian(f, (q, k, scale))):
        torch.testing.assert_close(a, b)
    if name == "force":
        return  # its own second derivative is a third one

    def loss(q, k):
        return f(q, k, scale).sin().sum()

    found = functional.hessian(loss, (q, k), vectorize=True)
    for a, b in zip(sum(found, ()), sum(functional.hessian(loss, (q, k)), ())):
        torch.testing.assert_close(a, b)


def test_meta_tensors():
    q = torch.randn(2, 3, 5, 4, device="meta", requires_grad=True)
    energy = bt.energy_attention(q, q, 0.5)
    assert energy.shape == (2, 3, 5) and energy.is_meta
    slope = torch.autograd.grad(energy.sum(), q, create_graph=True)[0]
    assert torch.autograd.grad(slope.sum(), q)[0].shape == q.shape
    block = bt.EnergyBlock(8, 2, 4, device="meta")
    assert block(torch.randn(2, 5, 8, device="meta")).shape == (2, 5, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": torch.zeros(1, 3, 4, 8)}, r"queries \[1, 2, 4, 8\] and keys \[1, 3, 4, 8\]"),
        ({"k": torch.zeros(1, 2, 4, 8).double()}, "float32 on cpu, keys torch.float64"),
        ({"q": torch.zeros(1, 2, 4, 8).int(), "k": torch.zeros(1, 2, 4, 8).int()}, "int32"),
        ({"beta": torch.ones(3)}, r"beta of shape \[3\].*number or \[2\]"),
        ({"beta": 0}, "beta is 0"),
        ({"beta": None}, "beta is None.*number or an array"),
        ({"q": numpy.zeros((1, 2, 4, 8))}, "queries are a ndarray.*tensor"),
        (
            {"q": torch.zeros(1, 2, 4, 8, device="meta")},
            "float32 on meta, keys torch.float32 on cpu",
        ),
        ({"pairs": torch.tensor([[0, 1]])}, r"pairs are a Tensor, .*Pairs\(edges, N\)"),
        ({"pairs": [(0, 1)]}, r"pairs are a list, .*Pairs\(edges, N\)"),
        ({"pairs": numpy.array([(0, 1)])}, r"pairs are a ndarray, .*Pairs\(edges, N\)"),
        ({"pairs": "casual"}, "None, 'causal' or"),
        ({"pairs": "causal", "k": torch.zeros(1, 2, 5, 8)}, "4 queries and 5 keys"),
        ({"pairs": bt.Pairs([(0, 1)], 5)}, "there are 4 queries and 4 keys"),
        ({"pairs": bt.Pairs([(0, 1)], 4), "exclude_self": True}, "list those that count"),
        ({"scale": torch.ones(2, 2)}, r"scale of shape \[2, 2\].*\[1, 2, 4, 4\]"),
        ({"layout": "bnh"}, "layout 'bnh'.*'hny' or 'nhy'"),
    ],
)
def test_errors_say_what_was_found_and_what_was_wanted(change, message):
    arguments = {"q": torch.zeros(1, 2, 4, 8), "k": torch.zeros(1, 2, 4, 8), "beta": 1.0}
    with pytest.raises(basin.BasinError, match=message):
        bt.energy_attention(**{**arguments, **change})


# ---- the block ----


def test_the_block_descends_its_energy():
    torch.manual_seed(0)
    block = bt.EnergyBlock(dim=16, heads=2, head_dim=4, memories=32, steps=8, alpha=0.05)
    with torch.no_grad():
        for weight in (block.wq, block.wk, block.xi):
            weight.normal_(std=0.3)
    x = torch.randn(3, 7, 16)
    g = block.norm(x).detach().requires_grad_()
    (slope,) = torch.autograd.grad(_energy_of(block, g), g)
    torch.testing.assert_close(block.force(g), -slope, **CLOSE)
    assert (block.energy(block(x)) < block.energy(x)).all()


def _energy_of(block, g):
    """The block's energy of activations."""
    q, k = block._heads(g)
    attention = bt.energy_attention(q, k, block.beta, exclude_self=True, layout="nhy").sum()
    return attention - (g @ block.xi.T).relu().square().sum() / 2


@pytest.mark.parametrize("learn_beta", [False, True])
def test_recomputing_gives_the_same_gradients(learn_beta):
    torch.manual_seed(0)
    block = bt.EnergyBlock(16, 2, 4, 32, steps=3, learn_beta=learn_beta)
    x = torch.randn(2, 7, 16)
    gradients = []
    for block.recompute in (False, True):
        block.zero_grad()
        block(x).square().sum().backward()
        gradients.append([p.grad.clone() for p in block.parameters()])
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b)


def test_a_block_over_a_graph():
    torch.manual_seed(0)
    block = bt.EnergyBlock(16, 2, 4, 32, steps=2)
    pairs = bt.Pairs(edges_of(9), 9, both_ways=True, drop_self=True)
    x = torch.randn(9, 16, requires_grad=True)
    block(x, pairs).square().sum().backward()
    assert torch.isfinite(x.grad).all()
    complete = bt.Pairs([(i, j) for i in range(9) for j in range(9) if i != j], 9)
    torch.testing.assert_close(block(x, complete), block(x))


def test_it_trains_to_the_losses_of_basin():
    """Figure 4: 100 steps of AdamW, the same first parameters, losses within 1e-4."""
    dim, heads, width, memories = 24, 3, 8, 48
    rng = numpy.random.default_rng(0)
    first = {
        "wq": rng.normal(size=(heads, width, dim)) * 0.2,
        "wk": rng.normal(size=(heads, width, dim)) * 0.2,
        "xi": rng.normal(size=(memories, dim)) * 0.2,
        "gamma": numpy.ones(()),
        "delta": numpy.zeros(dim),
    }
    first = {name: values.astype("f4") for name, values in first.items()}
    expected = rng.normal(size=(4, 11, dim)).astype("f4")
    noisy = expected + rng.normal(size=expected.shape).astype("f4")
    steps, alpha, rate, beta = 5, 0.1, 3e-3, width**-0.5

    def loss(wq, wk, xi, gamma, delta, x, y):
        @basin.energy(activation=lambda x: basin.layernorm(x, gamma, delta))
        def block(g, wq, wk, xi):
            q, k = (numpy.einsum("bnd,hyd->bnhy", g, w) for w in (wq, wk))
            attention = -numpy.sum(basin.attention_lse(q, k, beta, exclude_self=True)) / beta
            return attention - numpy.sum(basin.relu(numpy.einsum("bnd,md->bnm", g, xi)) ** 2) / 2

        end = block.unroll(x, steps=steps, alpha=alpha, wq=wq, wk=wk, xi=xi)
        return numpy.mean((end - y) ** 2)

    trainer = basin.Trainer(loss, first, rate=rate, decay=0.0, beta2=0.999, clip=0.0)
    theirs = trainer.fit([{"x": noisy, "y": expected}] * 100)

    layer = bt.EnergyBlock(dim, heads, width, memories, steps=steps, alpha=alpha)
    layer.load_state_dict({name: torch.from_numpy(values) for name, values in first.items()})
    optimiser = torch.optim.AdamW(layer.parameters(), lr=rate, weight_decay=0.0)
    ours = []
    for _ in range(100):
        optimiser.zero_grad()
        value = (layer(torch.from_numpy(noisy)) - torch.from_numpy(expected)).square().mean()
        value.backward()
        optimiser.step()
        ours.append(value.item())
    assert ours[-1] < 0.8 * ours[0]
    assert numpy.abs(numpy.subtract(ours, theirs)).max() < 1e-4, (ours[-1], theirs[-1])
