"""What a loss through an attention force costs: PyTorch's and JAX's own derivatives, and Basin's
from both. Prints JSON lines: milliseconds (median), and memory beyond inputs and results.

    python attention.py check       energy attention on cuda against formulas in double
    python attention.py torch       --batch 32 --heads 12 --tokens 196 --precision bf16
    python attention.py jax         the same from JAX
    python attention.py list        a training step over the edges of a graph, Amazon's size
    python attention.py jvp         jvp_flash_attention: the query's half of the same
    python attention.py values      softmax attention with values: orders, forward mode, memory
    python attention.py values_check  the same against formulas in double, PyTorch and JAX
    python attention.py values_jax  orders in JAX beside its own attention; memory: of its buffers
    python attention.py overhead    microseconds of a call on the cpu, over the call in C
    python attention.py calls       microseconds of the host for calls from PyTorch on cuda
"""

import argparse
import contextlib
import functools
import json
import math
import os
import statistics
import sys
import time


def say(**figures):
    print(json.dumps(figures), flush=True)


def milliseconds(step, wait, reps, warm=5):
    for _ in range(warm):
        step()
    wait()
    times = []
    for _ in range(reps):
        begin = time.perf_counter()
        step()
        wait()
        times.append(time.perf_counter() - begin)
    return round(1e3 * statistics.median(times), 4)


def in_turn(steps, reps, **told):
    """Steps on the cpu that take turns, so that other programs slow all of them. One thread has
    its CPU time, which they do not change; with more it is the least time that counts."""
    alone = len(os.sched_getaffinity(0)) == 1
    clock = time.process_time if alone else time.perf_counter
    times = {name: [] for name in steps}
    for turn in range(-2, reps):
        for name, step in steps.items():
            begin = clock()
            step()
            if turn >= 0:
                times[name].append(1e3 * (clock() - begin))
    for name, ms in times.items():
        ms = {"ms": round(statistics.median(ms), 3), "least": round(min(ms), 3)}
        say(**told, way=name, clock="cpu" if alone else "wall", **ms)


# ---- PyTorch ----


def torch_operands(o, torch):
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[o.precision]
    shape = (o.batch, o.heads, o.tokens, o.width)
    generator = torch.Generator(o.device).manual_seed(0)
    return [torch.randn(shape, device=o.device, dtype=dtype, generator=generator) for _ in range(4)]


def torch_steps(o, torch):
    """Ways to the same gradient: with PyTorch's formula and with ours."""
    from basin.torch import attention_force, energy_attention

    q, k, wq, wk = torch_operands(o, torch)
    q.requires_grad_(), k.requires_grad_()
    beta = o.width**-0.5
    grad = torch.autograd.grad

    def formula(q, k):
        z = (q @ k.transpose(-1, -2)).float()
        return -(torch.logsumexp(beta * z, -1) / beta).sum()

    def ours(q, k):
        return energy_attention(q, k, beta).sum()

    def loss(fq, fk):
        return (fq.float() * wq.float()).sum() + (fk.float() * wk.float()).sum()

    def through(energy):
        return grad(loss(*grad(energy(q, k), (q, k), create_graph=True)), (q, k))

    def pulled(energy):
        forces = grad(energy(q, k), (q, k), create_graph=True)
        return grad(forces, (q, k), (wq, wk))

    return {
        "torch autograd": lambda: through(formula),
        "torch autograd, grad_outputs": lambda: pulled(formula),
        "basin, energy_attention": lambda: through(ours),
        "basin, energy_attention, grad_outputs": lambda: pulled(ours),
        "basin, attention_force": lambda: grad(loss(*attention_force(q, k, beta)), (q, k)),
        "basin, attention_force, grad_outputs": lambda: grad(
            attention_force(q, k, beta), (q, k), (wq, wk)
        ),
    }


def captured(step, torch):
    """The step as a CUDA graph of PyTorch's."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step()
    graph.kept = results
    return graph.replay


def torch_memory(step, torch):
    """MiB that a step takes at most beyond what lies there before it and what it returns."""
    step()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    results = step()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    return peak, peak - sum(x.numel() * x.element_size() for x in results)


def run_torch(o):
    import torch

    for name, step in torch_steps(o, torch).items():
        try:
            ms = milliseconds(step, torch.cuda.synchronize, o.reps)
            peak, beyond = torch_memory(step, torch)
            say(way=name, **sizes(o), ms=ms, peak_mib=mib(peak), beyond_mib=mib(beyond))
            # Without a thread of its own for derivatives, which waits for Python's lock and is
            # waited for.
            with torch.autograd.set_multithreading_enabled(False):
                ms = milliseconds(step, torch.cuda.synchronize, o.reps)
            say(way=name + ", one thread", **sizes(o), ms=ms)
            if "grad_outputs" in name or "basin" in name:
                replay = captured(step, torch)
                ms = milliseconds(replay, torch.cuda.synchronize, o.reps)
                say(way=name + ", CUDA graph", **sizes(o), ms=ms)
                del replay
        except (RuntimeError, torch.OutOfMemoryError) as error:
            say(way=name, **sizes(o), error=str(error)[:300])
    operations_torch(o, torch)


def operations_torch(o, torch):
    """Each operation by itself."""
    q, k, a, b = torch_operands(o, torch)
    beta = torch.full((1,), o.width**-0.5, device="cuda")
    w = torch.ones(q.shape[:3], device="cuda")
    timed(torch, o.reps, operations_of((q, k, beta, None, None), w, a, b), **sizes(o))


def operations_of(operands, w, a, b):
    """Calls of the operations, heads being entries of the batch."""
    from basin._engine.eager import ONE_HEAD
    from basin.torch._ops import attention

    static = ONE_HEAD, 0, 1.0
    return {
        "lse": lambda: attention.lse((*static, 1), *operands),
        "force": lambda: attention.force((*static, 3), *operands, w),
        "reverse": lambda: attention.reverse((*static, 3), *operands, w, a, b),
    }


def timed(torch, reps, steps, **told):
    """Milliseconds of each step on the device, one behind the other."""
    for name, step in steps.items():
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        step()
        torch.cuda.synchronize()
        events[0].record()
        for _ in range(reps):
            step()
        events[1].record()
        torch.cuda.synchronize()
        say(operation=name, **told, ms=round(events[0].elapsed_time(events[1]) / reps, 4))


def sizes(o):
    names = ("batch", "heads", "tokens", "width", "precision")
    return {name: getattr(o, name) for name in names}


def mib(bytes_):
    return round(bytes_ / 2**20, 2)


def run_calls(o):
    """What the host does for a call, of sizes that take the device no time."""
    import torch

    from basin.torch import attention_lse, energy_attention

    o.batch, o.heads, o.tokens = 1, 1, 8
    q, k, a, b = torch_operands(o, torch)
    beta, w = torch.full((1,), 0.1, device="cuda"), torch.ones(q.shape[:3], device="cuda")
    learnt = q.clone().requires_grad_(), k.clone().requires_grad_()
    ways = {
        "q + k": lambda: q + k, "empty": lambda: torch.empty_like(q),
        **operations_of((q, k, beta, None, None), w, a, b),
        "attention_lse, recorded": lambda: attention_lse(*learnt, 0.125),
        "energy_attention, recorded": lambda: energy_attention(*learnt, 0.125),
        "and sum": lambda: energy_attention(*learnt, 0.125).sum(),
        "(q + k).sum() and grad": lambda: torch.autograd.grad(
            (learnt[0] + learnt[1]).sum(), learnt
        ),
        **torch_steps(o, torch),
    }  # fmt: skip
    for threads in (True, False):
        with torch.autograd.set_multithreading_enabled(threads):
            for name, step in ways.items():
                say(call=name, own_thread=threads, us=bursts(step, torch.cuda.synchronize))


def bursts(step, wait, reps=200, length=4):
    """Microseconds of a step, median of short queues."""
    times = []
    for _ in range(reps):
        wait()
        begin = time.perf_counter_ns()
        for _ in range(length):
            step()
        times.append((time.perf_counter_ns() - begin) / length)
    return round(statistics.median(times) / 1e3, 2)


# ---- JAX ----


def run_jax(o):
    import jax
    import jax.numpy as jnp

    from basin.jax import energy_attention

    dtype = {"f32": jnp.float32, "bf16": jnp.bfloat16}[o.precision]
    shape = (o.batch, o.heads, o.tokens, o.width)
    keys = jax.random.split(jax.random.key(0), 4)
    q, k, wq, wk = (jax.random.normal(key, shape, dtype) for key in keys)
    jax.block_until_ready((q, k, wq, wk))
    beta = o.width**-0.5

    def formula(q, k):
        z = beta * jnp.einsum("bhcy,bhky->bhck", q, k).astype(jnp.float32)
        return -(jax.nn.logsumexp(z, -1) / beta).sum()

    def ours(q, k):
        return energy_attention(q, k, beta).sum()

    def step_of(energy, both):
        force = jax.grad(energy, (0, 1))

        def pulled(q, k):
            fq, fk = force(q, k)
            return (fq.astype(jnp.float32) * wq).sum() + (fk.astype(jnp.float32) * wk).sum()

        made = jax.value_and_grad if both else jax.grad
        return jax.jit(made(pulled, (0, 1)))

    # What is asked last has the higher peak: ours comes first.
    for name, energy, both in (
        ("basin from jax", ours, False), ("basin from jax, with the loss", ours, True),
        ("jax", formula, False), ("jax, with the loss", formula, True),
    ):  # fmt: skip
        if o.only and o.only != name:
            continue
        step = step_of(energy, both)
        results = jax.block_until_ready(step(q, k))
        ms = milliseconds(lambda step=step: jax.block_until_ready(step(q, k)), lambda: None, o.reps)
        device = jax.devices()[0]
        stats = device.memory_stats() or {}
        kept = sum(x.nbytes for x in jax.tree.leaves((q, k, wq, wk, results)))
        peak = stats.get("peak_bytes_in_use", 0)
        say(way=name, **sizes(o), ms=ms, peak_mib=mib(peak), beyond_mib=mib(peak - kept))


# ---- a graph ----


def run_list(o):
    import torch
    from torch.nn import functional

    from basin.torch import Pairs, attention_force

    n, device = o.nodes, "cuda"
    torch.manual_seed(0)
    codes = torch.randint(n * n, (int(1.05 * o.edges) + 64,), device=device).unique()
    codes = codes[torch.randperm(len(codes), device=device)[: o.edges]].sort().values
    dst, src = codes // n, codes % n  # by query
    begin = time.perf_counter()
    pairs = Pairs(torch.stack([dst, src], 1), n)
    say(step="list of pairs", pairs=len(pairs), seconds=round(time.perf_counter() - begin, 2))
    width = dim = 128
    y = torch.randn(n, 25, device=device)
    label = (torch.rand(n, device=device) < 0.07).long()

    def new(*shape):
        return torch.nn.Parameter(0.02 * torch.randn(*shape, device=device))

    p = {
        "wk": new(2, width, dim), "wq": new(2, width, dim), "xi": new(640, dim),
        "emb": new(dim, 25), "out": new(2, 2 * dim),
        "beta": torch.nn.Parameter(torch.tensor(width**-0.5, device=device)),
    }  # fmt: skip
    first = {name: x.detach().clone() for name, x in p.items()}

    def scattered(q, k):
        score = p["beta"] * (k[src] * q[dst]).sum(-1)
        most = torch.full((n, 2), float("-inf"), device=device)
        most = most.scatter_reduce(0, dst[:, None].expand_as(score), score.detach(), "amax")
        e = torch.exp(score - most[dst])
        total = torch.zeros_like(most).index_add(0, dst, e)
        weight = (e / total[dst])[..., None]
        dq = torch.zeros_like(k).index_add(0, dst, weight * k[src])
        return dq, torch.zeros_like(q).index_add(0, src, weight * q[dst])

    def ours(q, k):
        return attention_force(q, k, p["beta"], pairs, layout="nhy")

    def narrow(q, k):
        return (x.float() for x in ours(q.bfloat16(), k.bfloat16()))

    def step_of(force):
        with torch.no_grad():
            for name, x in p.items():
                x.copy_(first[name])
        optimiser = torch.optim.Adam(p.values(), lr=1e-3)

        def step():
            optimiser.zero_grad(set_to_none=True)
            x = y @ p["emb"].T
            g = before = functional.layer_norm(x, (dim,))
            q, k = (torch.einsum("nd,hyd->nhy", g, p[name]) for name in ("wq", "wk"))
            dq, dk = force(q, k)
            f = torch.einsum("nhy,hyd->nd", dq, p["wq"]) + torch.einsum("nhy,hyd->nd", dk, p["wk"])
            x = x + f + torch.relu(g @ p["xi"].T) @ p["xi"]
            g = functional.layer_norm(x, (dim,))
            rows = torch.cat([before, g], -1) @ p["out"].T
            loss = functional.cross_entropy(
                rows, label, weight=torch.tensor([1.0, 13.0], device=device)
            )
            loss.backward()
            optimiser.step()
            return loss

        return step

    operations_list(o, torch, pairs, width)
    for name, force in {"basin": ours, "basin, bf16": narrow, "torch scatter": scattered}.items():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        step = step_of(force)
        losses = [round(step().item(), 6) for _ in range(3)]
        ms = milliseconds(step, torch.cuda.synchronize, 3 if "scatter" in name else o.reps, 1)
        peak = torch.cuda.max_memory_allocated()
        say(way=name, nodes=n, pairs=len(pairs), ms=ms, peak_gib=round(peak / 2**30, 3),
            losses=losses)  # fmt: skip


def operations_list(o, torch, pairs, width):
    """The operations of such a step by themselves, 2 heads."""
    from basin.torch._ops import attention

    beta, w = torch.full((2,), width**-0.5, device="cuda"), torch.ones(1, o.nodes, 2, device="cuda")
    static = 0, len(pairs), 1.0
    for name, dtype in {"f32": torch.float32, "bf16": torch.bfloat16}.items():
        q, k, a, b = torch.randn(4, 1, o.nodes, 2, width, device="cuda").to(dtype)
        operands = q, k, beta, None, pairs.packed, w
        force = functools.partial(attention.force, (*static, 3), *operands)
        reverse = functools.partial(attention.reverse, (*static, 3), *operands, a, b)
        more = functools.partial(attention.reverse, (*static, 15), *operands, a, b)
        timed(torch, o.reps, {
            "list, force": force, "list, reverse": reverse,
            "list, reverse, gradients of beta and w": more,
        }, pairs=len(pairs), precision=name)  # fmt: skip


# ---- jvp_flash_attention ----


def run_jvp(o):
    """attention(q, k, k) is the query's side of the force, so its backward pass is half of what
    ours computes; the key's side cannot be written with it."""
    import torch
    from jvp_flash_attention.jvp_attention import JVPAttn, attention

    q, k, wq, wk = torch_operands(o, torch)
    q.requires_grad_(), k.requires_grad_()

    def half():
        return torch.autograd.grad(attention(q, k, k), (q, k), wq)

    def values():
        own, along = tuple(x.detach() for x in (q, k, wk)), (wq, wk, q.detach())
        return torch.func.jvp(JVPAttn.fwd_dual, own, along)

    def dual():
        q0, k0 = q.detach(), k.detach()
        return torch.func.jvp(lambda q, k: JVPAttn.fwd_dual(q, k, k), (q0, k0), (wq, wk))

    for name, step in (
        ("half of the reverse", half), ("forward with tangents", dual),
        ("forward with tangents, values of their own", values),
    ):  # fmt: skip
        try:
            ms = milliseconds(step, torch.cuda.synchronize, o.reps)
            say(way="jvp_flash_attention, " + name, **sizes(o), ms=ms)
        except Exception as error:
            say(way="jvp_flash_attention, " + name, **sizes(o), error=str(error)[:300])


# ---- the overhead of a call ----


def values_steps(o, torch):
    """Steps of each order, with PyTorch's math path, FlashAttention and ours."""
    from torch.autograd import forward_ad as forward
    from torch.nn.attention import SDPBackend

    from basin.torch import attention

    q, k, v, c = torch_operands(o, torch)
    tangents = torch_operands(o, torch)[1:]
    operands = [x.requires_grad_() for x in (q, k, v)]
    usual, grad = torch.nn.functional.scaled_dot_product_attention, torch.autograd.grad

    def second(function):
        first = grad(function(*operands, is_causal=o.causal), operands, c, create_graph=True)
        return *first, *grad(first, operands, tangents)

    def moved(function):
        with torch.no_grad():
            return torch.func.jvp(
                lambda *x: function(*x, is_causal=o.causal), tuple(operands), tuple(tangents)
            )

    def dual(function):
        with torch.no_grad(), forward.dual_level():
            pairs = [forward.make_dual(x.detach(), t) for x, t in zip(operands, tangents)]
            return tuple(forward.unpack_dual(function(*pairs, is_causal=o.causal)))

    def result(function):
        with torch.no_grad():
            return (function(*operands, is_causal=o.causal),)

    def first(function):
        return grad(function(*operands, is_causal=o.causal), operands, c)

    steps = {}
    orders = {"second": second, "jvp": dual, "jvp, torch.func": moved}
    orders |= {"forward": result, "backward": first}
    for order, step in orders.items():
        steps[order] = {
            "math path": (SDPBackend.MATH, functools.partial(step, usual)),
            "basin": (None, functools.partial(step, attention)),
        }
        if order in ("forward", "backward"):
            steps[order]["flash"] = (SDPBackend.FLASH_ATTENTION, functools.partial(step, usual))
    product = functools.partial(second, lambda q, k, v, is_causal: q * k * v)
    steps["q k v, pointwise"] = {"two reverses of PyTorch's": (None, product)}
    return steps


def run_values(o):
    import torch
    from torch.nn.attention import sdpa_kernel

    def timed(order, way, step):
        told = {"order": order, "way": way, **sizes(o), "causal": o.causal}
        try:
            ms = milliseconds(step, torch.cuda.synchronize, o.reps)
            with torch.autograd.set_multithreading_enabled(False):
                alone = milliseconds(step, torch.cuda.synchronize, o.reps)
            beyond = torch_memory(step, torch)[1]
            replay = captured(step, torch)
            graph = milliseconds(replay, torch.cuda.synchronize, o.reps)
            say(**told, ms=ms, one_thread=alone, graph=graph, beyond_mib=mib(beyond))
        except (RuntimeError, torch.OutOfMemoryError) as error:
            say(**told, error=str(error)[:300])

    def on_cpu(ways):
        def step_of(backend, step):
            with sdpa_kernel(backend) if backend else contextlib.nullcontext():
                return step()

        return {way: functools.partial(step_of, *given) for way, given in ways.items()}

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    for order, ways in values_steps(o, torch).items():
        if o.device == "cpu":
            in_turn(on_cpu(ways), o.reps, order=order, **sizes(o), causal=o.causal)
            continue
        for way, (backend, step) in ways.items():
            if not way.startswith(o.only):
                continue
            with sdpa_kernel(backend) if backend else contextlib.nullcontext():
                timed(order, way, step)


CHAIN = 20


def chained(jax, step):
    """Steps one behind the other in one call, which the host then does not count in."""

    def body(operands, _):
        operands = list(operands)
        for i, x in enumerate(jax.tree.leaves(step(*operands))):
            operands[i % 3] = operands[i % 3] + 1e-3 * x.astype(operands[0].dtype)
        return tuple(operands), None

    return jax.jit(lambda *x: jax.lax.scan(body, x, None, length=CHAIN)[0])


def time_of_chain(jax, step, o, operands):
    """Milliseconds of one of them, where they are asked for."""
    if not o.chain:
        return None
    many = chained(jax, step)
    ms = milliseconds(lambda: jax.block_until_ready(many(*operands)), lambda: None, 5, 2)
    return round(ms / CHAIN, 4)


def run_values_jax(o):
    """Orders of basin.jax.attention beside those of jax.nn.dot_product_attention."""
    import jax
    import jax.numpy as jnp

    from basin.jax import attention

    dtype = {"f32": jnp.float32, "bf16": jnp.bfloat16}[o.precision]
    keys = jax.random.split(jax.random.key(0), 7)
    shape = (o.batch, o.tokens, o.heads, o.width)
    operands = [jax.random.normal(key, shape, dtype) for key in keys]  # q, k, v, c and tangents

    # All are arguments: XLA computes products of constants when it compiles.
    def first(function, q, k, v, c, *along):
        out, back = jax.vjp(functools.partial(function, is_causal=o.causal), q, k, v)
        return (out, *back(c))

    def second(function, q, k, v, c, *along):
        _, back = jax.vjp(lambda *x: first(function, *x, c)[1:], q, k, v)
        return back(along)

    def moved(function, q, k, v, c, *along):
        whole = functools.partial(function, is_causal=o.causal)
        return jax.jvp(whole, (q, k, v), along)

    usual = jax.nn.dot_product_attention
    ways = {
        "basin": attention, "xla": usual, "cudnn": functools.partial(usual, implementation="cudnn")
    }  # fmt: skip
    for order, step in {"second": second, "jvp": moved, "backward": first}.items():
        if o.device == "cpu":
            runs = {way: jax.jit(functools.partial(step, ways[way])) for way in ("basin", "xla")}
            waits = {
                w: lambda run=run: jax.block_until_ready(run(*operands)) for w, run in runs.items()
            }
            in_turn(waits, o.reps, order=order + " from jax", **sizes(o), causal=o.causal)
            continue
        for way, function in ways.items():
            if o.only and o.only != way:
                continue
            told = {"order": order, "way": way + " from jax", **sizes(o), "causal": o.causal}
            try:
                run = jax.jit(functools.partial(step, function))
                jax.block_until_ready(run(*operands))
                wait = lambda run=run: jax.block_until_ready(run(*operands))  # noqa: E731
                ms = milliseconds(wait, lambda: None, o.reps)
                memory = run.lower(*operands).compile().memory_analysis()
                chain = time_of_chain(jax, functools.partial(step, function), o, operands)
                say(**told, ms=ms, chain=chain, beyond_mib=mib(memory.temp_size_in_bytes))
            except Exception as error:
                say(**told, error=str(error).splitlines()[0][:200])


def softmax_in_double(torch, q, k, v, bias=None, causal=False):
    """The formula, 0 where a query sees no key."""
    each = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(each, 1), v.repeat_interleave(each, 1)
    s = q @ k.mT / q.shape[-1] ** 0.5 + (0 if bias is None else bias)
    if causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    p = torch.exp(s - s.amax(-1, keepdim=True).detach().clamp_min(-1e300))
    return p / p.sum(-1, keepdim=True).clamp_min(1e-300) @ v


def all_orders(torch, function, operands, along, c):
    operands, c = [x.detach().requires_grad_() for x in operands], c.detach().requires_grad_()
    out = function(*operands)
    first = torch.autograd.grad(out, operands, c, create_graph=True)
    again = torch.autograd.grad(first, [*operands, c], along)
    moved = torch.func.jvp(function, tuple(operands), tuple(along))[1]
    return [out, *first, *again, moved]


def check_values(torch, shape, kind, dtype, device):
    """The largest error of all orders, and whether a second run gives the same bits."""
    from basin.torch import Pairs, attention

    b, h, kh, n, m, y, w = shape
    torch.manual_seed(n + m)
    sizes = [(b, h, n, y), (b, kh, m, y), (b, kh, m, w), *([(h, n, m)] if kind == "bias" else [])]
    types = [dtype] * 3 + [torch.float32]
    operands, along = ([torch.randn(s).to(t).double() for s, t in zip(sizes, types)] for _ in "12")
    c, mask, pairs = torch.randn(b, h, n, w).to(dtype).double(), None, None
    if kind == "list":
        mask = torch.rand(n, m) < 0.3
        pairs = Pairs(mask.nonzero(), n, m, device=device)
        mask = torch.zeros(n, m).double().masked_fill(~mask, -torch.inf)

    def exact(q, k, v, bias=mask):
        return softmax_in_double(torch, q, k, v, bias, kind == "causal")

    def ours(q, k, v, bias=None):
        return attention(q, k, v, bias, is_causal=kind == "causal", enable_gqa=True, pairs=pairs)

    def given(xs):
        return [x.to(device, t) for x, t in zip(xs, types)]

    wanted = all_orders(torch, exact, operands, along, c)
    runs = [
        all_orders(torch, ours, given(operands), given(along), c.to(device, dtype)) for _ in "12"
    ]
    errors = [wrong(x.cpu(), z) for x, z in zip(runs[0], wanted) if z.any()]
    return max(errors, default=0.0), all(torch.equal(x, z) for x, z in zip(*runs))


def check_values_jax(torch):
    """Orders in JAX against those in PyTorch in double on the cpu; shared heads, odd sizes."""
    import jax
    import jax.numpy as jnp
    import numpy

    from basin.jax import Pairs, attention

    worst = {}
    for b, h, kh, n, m, y, w in ((2, 4, 2, 70, 130, 64, 64), (1, 2, 2, 129, 129, 40, 24)):
        sizes = [(b, h, n, y), (b, kh, m, y), (b, kh, m, w), (b, h, n, w)]
        mask = numpy.random.default_rng(0).random((n, m)) < 0.3
        for kind in ("all", "causal", "list", "bias"):
            for precision, dtype in {"f32": torch.float32, "bf16": torch.bfloat16}.items():
                xs = [torch.randn(s).to(dtype).double() for s in (*sizes, *sizes[:3])]
                bias = torch.zeros(n, m).double().masked_fill(~torch.tensor(mask), -torch.inf)
                left_out = bias if kind in ("list", "bias") else None
                exact = functools.partial(
                    softmax_in_double, torch, bias=left_out, causal=kind == "causal"
                )
                wanted = all_orders(torch, exact, xs[:3], xs[4:], xs[3])
                told = {"is_causal": True} if kind == "causal" else {}
                told |= {"pairs": Pairs(numpy.argwhere(mask), n, m)} if kind == "list" else {}
                told |= {"bias": jnp.asarray(bias.numpy(), "f4")} if kind == "bias" else {}
                given = [jnp.asarray(x.transpose(1, 2).numpy(), "f4") for x in xs]
                given = [x.astype("bfloat16" if precision == "bf16" else "f4") for x in given]
                q, k, v, c, *along = given
                ours = functools.partial(attention, **told)

                def first(q, k, v, c, ours=ours):
                    return jax.vjp(ours, q, k, v)[1](c)

                @jax.jit
                def orders(q, k, v, c, along, ours=ours, first=first):
                    again = jax.vjp(first, q, k, v, c)[1](tuple(along))
                    moved = jax.jvp(ours, (q, k, v), tuple(along))[1]
                    return [ours(q, k, v), *first(q, k, v, c), *again, moved]

                found = orders(q, k, v, c, along)
                errors = [
                    wrong(torch.tensor(numpy.array(x, "f4")).transpose(1, 2), z)
                    for x, z in zip(found, wanted)
                ]
                name = f"jax {kind} {precision}"
                worst[name] = max(worst.get(name, 0), *errors)
    return worst


def run_values_check(o):
    """Every order on the device against formulas in double on the cpu."""
    import torch

    torch.use_deterministic_algorithms(True)
    shapes = [
        (2, 3, 3, 37, 37, 64, 64), (1, 4, 2, 70, 130, 64, 64), (2, 2, 1, 65, 33, 40, 24),
        (1, 2, 2, 129, 129, 128, 128), (1, 1, 1, 40, 50, 160, 200), (3, 1, 1, 1, 5, 7, 3),
        (1, 1, 1, 300, 300, 64, 64),
    ]  # fmt: skip
    worst, bad = {}, 0
    for dtype, limit in (
        (torch.float32, 2e-5), (torch.bfloat16, 3e-2), (torch.float16, 5e-3)
    ):  # fmt: skip
        for shape in shapes:
            for kind in ("all", "causal", "bias", "list"):
                error, same = check_values(torch, shape, kind, dtype, o.device)
                name = f"{kind} {str(dtype)[6:]}"
                worst[name] = max(worst.get(name, 0), error)
                if not error < limit or not same:
                    bad += 1
                    say(wrong=shape, kind=kind, dtype=str(dtype), error=error, same_bits=same)
    if not o.no_jax:
        found = check_values_jax(torch)
        bad += sum(not x < (3e-2 if "bf16" in name else 2e-5) for name, x in found.items())
        worst |= found
    say(values_check={k: float(f"{v:.2g}") for k, v in worst.items()}, right=bad == 0)
    return 1 if bad else 0


def run_overhead(o):
    import torch

    import basin.torch as bt
    from basin._engine import eager as _eager
    from basin._engine.library import ffi, lib

    torch.set_num_threads(1)
    q, k = torch.randn(2, 1, 2, 8, 8)
    out, beta = torch.empty(1, 2, 8), torch.full((1,), 0.3)
    job = ffi.new("basin_eager_attention *")
    job.dtype, job.batch, job.queries, job.keys, job.heads, job.head_dim = (
        lib.BASIN_F32,
        2,
        8,
        8,
        1,
        8,
    )
    for name, x in {"q": q, "k": k, "beta": beta, "lse": out}.items():
        setattr(job, name, ffi.cast("void *", x.data_ptr()))
    eager, error = _eager.opened("cpu", 1), ffi.new("basin_error *")
    call = microseconds(lambda: lib.basin_eager_run(eager, _eager.LSE, job, error))
    say(overhead="the call in C", us=call)
    with torch.no_grad():
        ways = {"torch": lambda: bt.attention_lse(q, k, 0.3)}
        say(overhead="torch", us=round(microseconds(ways["torch"]) - call, 2))
    learnt = q.clone().requires_grad_(), k.clone().requires_grad_()
    us = microseconds(lambda: bt.attention_lse(*learnt, 0.3))
    say(overhead="torch, recorded for derivatives", us=round(us - call, 2))
    us = microseconds(lambda: bt.energy_attention(*learnt, 0.3))
    say(overhead="torch, energy_attention, recorded", us=round(us - call, 2))
    overhead_of_jax(call)


def overhead_of_jax(call):
    import jax

    import basin.jax as bj

    q, k = jax.random.normal(jax.random.key(0), (2, 1, 2, 8, 8))
    ours = jax.jit(lambda q, k: bj.attention_lse(q, k, 0.3))
    nothing = jax.jit(lambda q, k: q + k)
    us = microseconds(lambda: ours(q, k).block_until_ready())
    say(overhead="jax, jit", us=round(us - call, 2))
    us = microseconds(lambda: nothing(q, k).block_until_ready())
    say(overhead="jax, jit of q + k, for comparison", us=us)


def microseconds(step, reps=5000):
    times = []
    for _ in range(200):
        step()
    for _ in range(reps):
        begin = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - begin)
    return round(statistics.median(times) / 1e3, 2)


# ---- whether it is right ----


def wrong(found, wanted):
    """The error relative to the largest number, as norms; infinite where something is NaN, which
    max() would pass over."""
    error = float((found.detach().double() - wanted.detach()).norm() / wanted.detach().norm())
    return math.inf if math.isnan(error) else error


def check_torch(torch, device):
    from basin.torch import Pairs, attention_lse

    torch.manual_seed(0)
    worst = {}
    shapes = [
        (2, 3, 196, 64), (3, 2, 197, 64), (2, 2, 33, 17), (1, 2, 300, 32), (1, 1, 130, 128),
        (1, 2, 700, 64), (2, 2, 1024, 48),
    ]  # fmt: skip
    for shape in shapes:
        n = shape[2]
        graph = torch.rand(n, n, device=device) < 0.2
        graph[n // 2] = False
        patterns = {
            "all": (None, None), "causal": ("causal", torch.ones_like(graph).triu(1)),
            "list": (Pairs(graph.nonzero(), n), ~graph),
        }  # fmt: skip
        for precision, dtype in {"f32": torch.float32, "bf16": torch.bfloat16}.items():
            for name, (pairs, left_out) in patterns.items():
                for kind in ("number", "one", "each"):
                    errors = check_one(
                        torch, attention_lse, shape, dtype, pairs, left_out, kind, device
                    )
                    for result, error in errors.items():
                        key = f"torch {precision} {name} {result}"
                        worst[key] = max(worst.get(key, 0), error)
    return worst


def check_one(torch, attention_lse, shape, dtype, pairs, left_out, kind, device):
    """`kind` of beta: a number, which is not learnt, or learnt, one of all heads or of each."""
    q, k, a, b = (torch.randn(shape, device=device, dtype=dtype) for _ in range(4))
    beta = torch.full((shape[1] if kind == "each" else 1,), shape[3] ** -0.5, device=device)
    beta = beta * torch.linspace(0.8, 1.2, len(beta), device=device)
    there = slice(None) if left_out is None else ~left_out.all(1)

    def formula(q, k, beta):
        z = (q @ k.transpose(-1, -2)) * beta[:, None, None]
        z = z if left_out is None else z.masked_fill(left_out, -torch.inf)
        return torch.logsumexp(z[:, :, there], -1)

    def ours(q, k, beta):
        beta = beta.item() if kind == "number" else beta
        return attention_lse(q, k, beta, pairs)[:, :, there]

    def results(lse, q, k, beta, a, b):
        q, k, beta = (x.detach().clone().requires_grad_() for x in (q, k, beta))
        learnt = (q, k) if kind == "number" else (q, k, beta)
        value = lse(q, k, beta)
        weight = torch.linspace(-1, 2, value.shape[2], device=device, dtype=value.dtype)
        slopes = torch.autograd.grad((value * weight).sum(), learnt, create_graph=True)
        loss = (slopes[0] * a).sum() + (slopes[1] * b).sum()
        return [value, *slopes, *torch.autograd.grad(loss, learnt)]

    doubles = [x.double() for x in (q, k, beta, a, b)]
    both = zip(results(ours, q, k, beta, a, b), results(formula, *doubles))
    names = ("lse", "dq", "dk", "dbeta", "gq", "gk", "gbeta")
    names = [name for name in names if kind != "number" or "beta" not in name]
    return {name: wrong(x, y) for name, (x, y) in zip(names, both)}


def check_block(torch, device):
    """The block as a layer, tokens and gradients, against the same on the cpu in double."""
    from basin.torch import EnergyBlock

    torch.manual_seed(1)
    block = EnergyBlock(128, heads=2, head_dim=64, memories=256, steps=3, learn_beta=True)
    with torch.no_grad():
        block.wq.mul_(50), block.wk.mul_(50)
    x = torch.randn(2, 300, 128)

    def results(block, x):
        block.zero_grad()
        y = block(x)
        y.square().sum().backward()
        return [y.detach().cpu(), *(p.grad.detach().cpu() for p in block.parameters())]

    wanted = results(block.double(), x.double())
    found = results(block.float().to(device), x.to(device))
    names = ["tokens", *(name for name, _ in block.named_parameters())]
    return {f"torch f32 block {n}": wrong(a, b) for n, a, b in zip(names, found, wanted)}


def check_jax(torch):
    import jax
    import jax.numpy as jnp
    import numpy

    from basin.jax import Pairs, attention_lse

    worst = {}
    for shape in [(2, 3, 196, 64), (2, 2, 33, 17), (1, 2, 700, 64)]:
        n = shape[2]
        graph = numpy.random.default_rng(0).random((n, n)) < 0.2
        patterns = {
            "all": (None, numpy.zeros_like(graph)), "causal": ("causal", ~numpy.tri(n, dtype=bool)),
            "list": (Pairs(numpy.argwhere(graph), n), ~graph),
        }  # fmt: skip
        values = numpy.random.default_rng(1).normal(size=(4, *shape))
        for precision, dtype in {"f32": jnp.float32, "bf16": jnp.bfloat16}.items():
            for name, (pairs, left_out) in patterns.items():
                q, k, a, b = (jnp.asarray(x, dtype) for x in values)

                def loss(q, k, pairs=pairs, a=a, b=b):
                    energy = lambda q, k: attention_lse(q, k, 0.125, pairs).sum()  # noqa: E731
                    fq, fk = jax.grad(energy, (0, 1))(q, k)
                    return (fq * a).astype("f4").sum() + (fk * b).astype("f4").sum()

                found = jax.jit(jax.grad(loss, (0, 1)))(q, k)
                wanted = double_second(torch, (q, k, a, b), left_out)
                errors = [
                    wrong(torch.tensor(numpy.array(x, "f4")), y) for x, y in zip(found, wanted)
                ]
                key = f"jax {precision} {name}"
                worst[key] = max(worst.get(key, 0), *errors)
    batched = jax.vmap(lambda q, k: attention_lse(q, k, 0.125))(q, k)
    worst["jax vmap"] = float(abs(batched - attention_lse(q, k, 0.125)).max())
    return worst


def double_second(torch, operands, left_out):
    import numpy

    q, k, a, b = (torch.tensor(numpy.array(x, "f4")).double() for x in operands)
    q.requires_grad_(), k.requires_grad_()
    z = (q @ k.transpose(-1, -2)) * 0.125
    value = torch.logsumexp(z.masked_fill(torch.tensor(left_out), -torch.inf), -1).sum()
    fq, fk = torch.autograd.grad(value, (q, k), create_graph=True)
    return torch.autograd.grad((fq * a).sum() + (fk * b).sum(), (q, k))


def run_check(o):
    import torch

    worst = {**check_torch(torch, o.device), **check_block(torch, o.device)}
    if not o.no_jax:
        worst.update(check_jax(torch))
    # Terms of gbeta cancel, so that little of their precision is left.
    limits = {"bf16 all gbeta": 0.1, "bf16 causal gbeta": 0.1, "bf16 list gbeta": 0.1,
              "f32": 2e-4, "bf16": 2e-2, "vmap": 1e-5}  # fmt: skip
    bad = 0
    for name, error in worst.items():
        limit = next(limit for word, limit in limits.items() if word in name)
        bad += not error < limit
        say(check=name, error=error, limit=limit, right=error < limit)
    say(check="all", right=bad == 0)
    return 1 if bad else 0


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = ("check", "torch", "calls", "jax", "list", "jvp", "overhead", "values", "values_check",
             "values_jax")  # fmt: skip
    a.add_argument("what", choices=names)
    defaults = {"batch": 32, "heads": 12, "tokens": 196, "width": 64, "reps": 50,
                "nodes": 11944, "edges": 8796784}  # fmt: skip
    for name, value in defaults.items():
        a.add_argument("--" + name, type=int, default=value)
    a.add_argument("--precision", choices=["f32", "bf16"], default="bf16")
    a.add_argument("--device", default="cuda", help="check, values: of PyTorch")
    a.add_argument("--causal", action="store_true", help="values: each token sees those before it")
    a.add_argument("--only", default="", help="jax, values: this way alone")
    a.add_argument("--chain", action="store_true", help="values_jax: also 20 steps in one call")
    a.add_argument("--no-jax", action="store_true", help="check: PyTorch alone")
    o = a.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    return globals()["run_" + o.what](o)


if __name__ == "__main__":
    sys.exit(main())
