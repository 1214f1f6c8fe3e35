"""basin.torch.attention against PyTorch's math path in double: all derivatives to second order."""

import functools
import math

import pytest

torch = pytest.importorskip("torch")

from basin import BasinError  # noqa: E402
from basin.torch import Pairs, attention  # noqa: E402

gradcheck = functools.partial(
    torch.autograd.gradcheck, check_forward_ad=True, check_batched_grad=True
)
gradgradcheck = functools.partial(torch.autograd.gradgradcheck, check_batched_grad=True)


def usual(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """PyTorch's math path, 0 where a query sees no key."""
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    s = (q * (scale.reshape(-1, 1, 1) if torch.is_tensor(scale) else scale)) @ k.mT
    if is_causal:
        seen = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
        s = s.masked_fill(~seen, -math.inf)
    if attn_mask is not None:
        s = s.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else s + attn_mask
    p = torch.exp(s - s.amax(-1, keepdim=True).detach().clamp_min(-1e300))
    return p / p.sum(-1, keepdim=True).clamp_min(1e-300) @ v


def random(*shape, dtype=torch.float64, grad=True):
    return torch.randn(shape, dtype=dtype, requires_grad=grad)


def derivatives(function, operands):
    """The result, gradients, gradients of a function of these, tangents, and of the gradient."""
    operands = [x.detach().requires_grad_() for x in operands]
    turn = lambda x, n: torch.cos(n * torch.arange(x.numel())).reshape(x.shape).to(x.dtype)  # noqa: E731
    out = function(*operands)
    c = turn(out, 3).requires_grad_()
    first = torch.autograd.grad(out, operands, c, create_graph=True)
    total = sum((turn(x, i + 2) * x + x * x).sum() for i, x in enumerate(first))
    again = torch.autograd.grad(total, [*operands, c])
    along = tuple(turn(x, 1) for x in operands)
    moved = torch.func.jvp(function, tuple(operands), along)[1]
    slope = torch.func.grad(
        lambda *x: (function(*x) * c.detach()).sum(), tuple(range(len(operands)))
    )
    return [out, *first, *again, moved, *torch.func.jvp(slope, tuple(operands), along)[1]]


def agree(function, other, operands, dtype, bound):
    exact = derivatives(other, [x.double() for x in operands])
    found = derivatives(function, [x.to(dtype) for x in operands])
    for x, y in zip(found, exact):
        assert (x.double() - y).norm() <= bound * max(1, y.norm())


CASES = {
    "plain": ((2, 3, 7, 4), (2, 3, 5, 4), (2, 3, 5, 6), {}),
    "causal": ((1, 2, 9, 5), (1, 2, 9, 5), (1, 2, 9, 5), {"is_causal": True}),
    "causal, fewer keys": ((1, 2, 9, 5), (1, 2, 4, 5), (1, 2, 4, 5), {"is_causal": True}),
    "shared heads": ((2, 6, 4, 3), (2, 2, 5, 3), (2, 2, 5, 7), {"enable_gqa": True}),
    "scale": ((3, 1, 3), (3, 8, 3), (3, 8, 1), {"scale": -0.3}),
    "broadcast": ((2, 1, 4, 3), (5, 3), (5, 2), {}),
    "mask": ((2, 2, 4, 3), (2, 2, 6, 3), (2, 2, 6, 3),
             {"attn_mask": torch.rand(2, 1, 4, 6).round().bool() & (torch.arange(4) > 0)[:, None]}),
    "long": ((1, 1, 70, 17), (1, 1, 300, 17), (1, 1, 300, 33), {}),
}  # fmt: skip


@pytest.mark.parametrize(
    "dtype, bound", [("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 0.05)]
)
@pytest.mark.parametrize("case", CASES)
def test_all_derivatives(case, dtype, bound):
    torch.manual_seed(0)
    *shapes, options = CASES[case]
    operands = [random(*s, grad=False) for s in shapes]
    if dtype == "bfloat16":
        operands = [x.bfloat16().double() for x in operands]
    agree(
        lambda *x: attention(*x, **options), lambda *x: usual(*x, **options), operands,
        getattr(torch, dtype), bound,
    )  # fmt: skip


@pytest.mark.parametrize("by", [(0, 1, 2, 3), (0, 1, 2), (1,), (3,)])
@pytest.mark.parametrize("some", [(0, 1, 2), (0,), (1, 2)])
def test_some_gradients_of_some_gradients(some, by):
    operands = [random(1, 2, 5, 4) for _ in range(4)]
    tangents = [random(1, 2, 5, 4, grad=False) for _ in range(3)]

    def second(function, dtype):
        q, k, v, c = changed = [x.detach().to(dtype).requires_grad_() for x in operands]
        first = torch.autograd.grad(function(q, k, v), (q, k, v), c, create_graph=True)
        return torch.autograd.grad(
            [first[i] for i in some], [changed[i] for i in by],
            [tangents[i].to(dtype) for i in some],
        )  # fmt: skip

    for x, y in zip(second(attention, torch.float32), second(usual, torch.float64)):
        assert (x - y).norm() <= 1e-5 * y.norm()


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 1, 5), (4, 5), (2, 1, 1, 5), (5,)])
def test_learnt_bias_and_scale(shape):
    torch.manual_seed(1)
    operands = random(2, 3, 4, 2), random(2, 3, 5, 2), random(2, 3, 5, 2), random(*shape), random(3)

    def of(function):
        return lambda q, k, v, bias, scale: function(q, k, v, attn_mask=bias, scale=scale)

    agree(of(attention), of(usual), operands, torch.float64, 1e-12)
    assert gradgradcheck(of(attention), operands)


def test_learnt_scale_of_bfloat16():
    """Neither it nor its gradient has the few digits of bfloat16."""
    torch.manual_seed(0)
    q, k, v = (random(2, 4, 64, 48, dtype=torch.bfloat16, grad=False) for _ in range(3))

    def of(dtype):
        scale = torch.full((4,), 48**-0.5, dtype=torch.promote_types(dtype, torch.float32))
        out = attention(q.to(dtype), k.to(dtype), v.to(dtype), scale=scale.requires_grad_())
        return out, torch.autograd.grad((out * v).sum(), scale)[0]

    for x, y, bound in zip(of(torch.bfloat16), of(torch.float64), (0.003, 0.005)):
        assert (x.double() - y).norm() <= bound * y.norm()


def test_gradcheck():
    torch.manual_seed(2)
    operands = random(1, 4, 3, 2), random(1, 2, 4, 2), random(1, 2, 4, 3)
    for options in ({"enable_gqa": True}, {"enable_gqa": True, "is_causal": True}):
        function = functools.partial(attention, **options)
        assert gradcheck(function, operands, check_forward_ad=True)
        assert gradgradcheck(function, operands, check_fwd_over_rev=True)


@pytest.mark.parametrize("dtype, bound", [("float64", 1e-12), ("float32", 1e-5)])
def test_lists(dtype, bound):
    torch.manual_seed(3)
    pairs = Pairs([(0, 1), (0, 4), (2, 2), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4)], 4, 5)
    edges = pairs.edges()
    operands = random(2, 4, 4, 3), random(2, 2, 5, 3), random(2, 2, 5, 2), random(len(pairs), 4)

    def listed(q, k, v, bias):
        return attention(q, k, v, bias, enable_gqa=True, pairs=pairs)

    def dense(q, k, v, bias):
        mask = bias.new_full((4, 4, 5), -math.inf)
        mask = mask.index_put((torch.arange(4)[:, None], edges[:, 0], edges[:, 1]), bias.T)
        return usual(q, k, v, mask, enable_gqa=True)

    agree(listed, dense, operands, getattr(torch, dtype), bound)
    if dtype == "float64":
        assert gradgradcheck(listed, operands)


def test_large_scores_and_empty_rows():
    q, k, v = (60 * random(1, 1, 6, 4, grad=False) for _ in range(3))
    agree(attention, usual, (q, k, v), torch.float64, 1e-9)
    mask = torch.zeros(6, 6, dtype=torch.bool)
    for x in derivatives(functools.partial(attention, attn_mask=mask), (q, k, v)):
        assert (x == 0).all()
    assert attention(q[:, :, :0], k, v).shape == (1, 1, 0, 4)
    assert (attention(q, k[:, :, :0], v[:, :, :0]) == 0).all()


@pytest.mark.parametrize("some", [(0, 1, 2, 3), (0,), (2, 3)])
@pytest.mark.parametrize("way", ["torch.func", "forward_ad"])
def test_reverse_over_forward(way, some):
    """Gradients of a loss of tangents, with respect to operands and tangents, some being given."""
    torch.manual_seed(9)
    operands = [random(2, 3, 5, 4), random(2, 3, 6, 4), random(2, 3, 6, 2), random(3, 5, 6)]
    along = [random(*operands[i].shape) for i in some]

    def tangent(function):
        def given(*xs):
            return function(*(dict(zip(some, xs)).get(i, x) for i, x in enumerate(operands)))

        primals = [operands[i] for i in some]
        if way == "torch.func":
            return torch.func.jvp(given, tuple(primals), tuple(along))
        with torch.autograd.forward_ad.dual_level():
            pairs = [torch.autograd.forward_ad.make_dual(*x) for x in zip(primals, along)]
            return torch.autograd.forward_ad.unpack_dual(given(*pairs))

    def results(function):
        out, moved = tangent(function)
        loss = out.square().sum() + moved.square().sum()
        return [out, moved, *torch.autograd.grad(loss, [*operands, *along])]

    for x, y in zip(results(attention), results(usual)):
        assert torch.allclose(x, y)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_nan_stays(dtype):
    q, k = random(1, 1, 3, 2, dtype=dtype, grad=False), random(1, 1, 5, 2, dtype=dtype, grad=False)
    q[0, 0, 1, 0] = math.nan
    assert attention(q, k, k).isnan().all(-1).flatten().tolist() == [False, True, False]
    assert attention(k, q, torch.ones_like(q)).isnan().all()


def test_transforms():
    torch.manual_seed(4)
    q, k, v = (random(2, 3, 5, 4) for _ in range(3))
    each = torch.func.vmap(attention)(
        torch.stack([q, 2 * q]), torch.stack([k, k]), torch.stack([v, v])
    )
    assert torch.allclose(each[1], attention(2 * q, k, v))
    each = torch.func.vmap(attention, (1, 1, None), 1)(q, k, v[:, 0])
    assert torch.allclose(each[:, 2], attention(q[:, 2], k[:, 2], v[:, 0]))

    bias = random(2, 1, 1, 5)  # repeats along heads and queries
    each = torch.func.vmap(attention, (None, None, None, 0))(q, k, v, bias[:, None])
    assert torch.allclose(each[1], attention(q, k, v, bias[1]))

    masks = torch.rand(2, 5, 5).round().bool()
    each = torch.func.vmap(attention, (None, None, None, 0))(q, k, v, masks)
    assert torch.allclose(each[1], attention(q, k, v, masks[1]))

    def loss(q):
        return attention(q, k[:1, :1], v[:1, :1]).square().sum()

    def other(q):
        return usual(q, k[:1, :1], v[:1, :1]).square().sum()

    one = q[:1, :1].detach()
    for hessian in (
        torch.func.hessian, lambda f: torch.func.jacrev(torch.func.jacrev(f)),
        lambda f: torch.func.jacrev(torch.func.jacfwd(f)),
        lambda f: torch.func.jacfwd(torch.func.jacfwd(f)),
    ):  # fmt: skip
        assert torch.allclose(hessian(loss)(one), hessian(other)(one))
    batched = torch.autograd.functional.hessian(loss, one, vectorize=True)
    assert torch.allclose(batched, torch.func.hessian(other)(one))


@pytest.mark.parametrize("how", ["hessian", "jacrev", "forward", "jacfwd"])
def test_third_derivatives_by_transforms(how):
    f = torch.func
    third = {
        "hessian": lambda g: f.grad(lambda x: f.hessian(g)(x).pow(2).sum()),
        "jacrev": lambda g: f.jacrev(f.jacrev(f.jacrev(g))),
        "forward": lambda g: f.jacrev(f.hessian(g)),
        "jacfwd": lambda g: f.jacfwd(f.jacfwd(f.jacfwd(g))),
    }[how]
    q, k, v = (random(1, 2, 5, 4, grad=False) for _ in range(3))

    def loss(function):
        return lambda x: function(x * q[0, 0, 0, 0] + q, k + x, v * x).pow(2).sum()

    x = random(4, grad=False)
    torch.testing.assert_close(third(loss(attention))(x), third(loss(usual))(x))


def test_third_derivatives():
    torch.manual_seed(5)
    operands = random(1, 2, 3, 2), random(1, 1, 3, 2), random(1, 1, 3, 2)

    def third(function):
        out = function(*operands, is_causal=True, enable_gqa=True)
        for power in (2, 3):
            found = torch.autograd.grad((out**power).sum(), operands, create_graph=True)
            out = torch.cat([x.flatten() for x in found])
        return torch.autograd.grad(out.sin().sum(), operands)

    for x, y in zip(third(attention), third(usual)):
        assert torch.allclose(x, y)


def test_fourth_derivatives_of_operands_that_depend_on_each_other():
    torch.manual_seed(5)
    x = random(1, 2, 3, 2)

    def fourth(function):
        q = 1.5 * x
        out = function(q, q.sin(), q)
        for _ in range(3):
            (out,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
        return out, *torch.autograd.grad(out.square().sum(), x)

    for found, expected in zip(fourth(attention), fourth(usual)):
        assert torch.allclose(found, expected)


def test_compile_checkpoint_autocast():
    torch.manual_seed(6)
    q, k, v = (random(1, 2, 8, 4, dtype=torch.float32) for _ in range(3))

    def penalty(q, k, v):
        out = attention(q, k, v, is_causal=True)
        slope = torch.autograd.grad(out.square().sum(), q, create_graph=True)[0]
        return out.sum() + slope.square().sum()

    expected = torch.autograd.grad(attention(q, k, v).sin().sum(), (q, k, v))
    compiled = torch.compile(
        lambda *x: attention(*x).sin().sum(), backend="aot_eager", fullgraph=True
    )
    for x, y in zip(torch.autograd.grad(compiled(q, k, v), (q, k, v)), expected):
        assert torch.allclose(x, y, atol=1e-6)
    kept = torch.utils.checkpoint.checkpoint(attention, q, k, v, use_reentrant=False)
    for x, y in zip(torch.autograd.grad(kept.sin().sum(), (q, k, v)), expected):
        assert torch.equal(x, y)
    assert torch.isfinite(torch.autograd.grad(penalty(q, k, v), k)[0]).all()
    with torch.autocast("cpu", torch.bfloat16):
        assert attention(q, k, v).dtype == torch.bfloat16
    assert attention(q.half(), k.half(), v.half()).dtype == torch.float16
    torch.library.opcheck(
        torch.ops.basin.attention_values.default, (q, k, v, None, None, 16, 0, 0.5, 1),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )  # fmt: skip


def test_compiled_transforms():
    q, k, v = torch.randn(3, 1, 2, 6, 4)

    def slope(q, k, v):
        return torch.func.grad(lambda q: attention(q, k, v).sin().sum())(q)

    def through_slopes(q, k, v):
        return torch.func.grad(lambda q: slope(q, k, v).square().sum())(q)

    def of_each(q, k, v):
        return torch.vmap(slope)(q.mT.mT[None], k[None], v[None])

    def moved(q, k, v):
        return torch.func.jvp(lambda q: attention(q, k, v), (q,), (k,))[1]

    for function in (slope, through_slopes, of_each, moved):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="aot_eager", fullgraph=function is not moved)
        assert torch.allclose(compiled(q, k, v), function(q, k, v), atol=1e-6)
    torch._dynamo.reset()
    lengths = torch.compile(attention, backend="aot_eager", fullgraph=True, dynamic=True)
    for n in (5, 6):
        q, k, v = torch.randn(3, 1, 2, n, 4)
        assert torch.allclose(lengths(q, k, v), attention(q, k, v), atol=1e-6)


def test_checkpoint_of_tangents():
    x = random(1, 2, 3, 2)

    def total(x):
        function = lambda y: attention(y, y.sin(), y)  # noqa: E731
        return torch.func.jvp(function, (x,), (x.cos(),))[1].square().sum()

    kept = torch.utils.checkpoint.checkpoint(total, x, use_reentrant=False)
    assert torch.equal(*(torch.autograd.grad(y, x)[0] for y in (kept, total(x))))


def test_few_axes_and_no_tokens():
    x = random(5, 4)
    number = torch.tensor(0.5, dtype=torch.float64)
    for scale in (number, number[None]):
        assert torch.allclose(attention(x, x, x, scale=scale), attention(x, x, x, scale=0.5))
    q, k = random(2, 3, 0, 4), random(2, 3, 5, 4)
    assert attention(q[0], k[0], k[0]).shape == (3, 0, 4)
    assert attention(q[0], x, x, enable_gqa=True).shape == (3, 0, 4)
    assert torch.func.vmap(attention)(q[:, None], k[:, None], k[:, None]).shape == (2, 1, 3, 0, 4)


def test_same_bits_with_any_number_of_threads():
    q, k, v = (random(2, 2, 200, 16, dtype=torch.float32) for _ in range(3))
    before = torch.get_num_threads()
    found = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        found.append(derivatives(functools.partial(attention, is_causal=True), (q, k, v)))
    torch.set_num_threads(before)
    assert all(torch.equal(x, y) for x, y in zip(*found))


@pytest.mark.parametrize(
    "options, message",
    [({"dropout_p": 0.1}, "drops nothing"), ({"scale": torch.ones(2, 2)}, "number"),
     ({"attn_mask": torch.ones(9)}, "broadcasts to"), ({"pairs": 3}, "basin.torch.Pairs"),
     ({"key": torch.ones(3, 9)}, "one width"), ({"key": [1]}, "a list"),
     ({"key": torch.ones(1, 3, 5, 4), "value": torch.ones(1, 3, 5, 4)}, "enable_gqa"),
     ({"query": torch.ones(3, 4).double()}, "torch.float64"),
     ({"attn_mask": torch.ones(5, 5).long()}, "int64.*bool"), ({"attn_mask": 3}, "is a int"),
     ({"attn_mask": torch.ones(5, 5, device="meta")}, "attn_mask on meta"),
     ({"is_causal": True, "attn_mask": torch.ones(5, 5)}, "one of them")],
)  # fmt: skip
def test_refused(options, message):
    given = {name: torch.ones(1, 2, 5, 4) for name in ("query", "key", "value")}
    with pytest.raises(BasinError, match=message):
        attention(**{**given, **options})
