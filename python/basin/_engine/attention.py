"""Attention over the arrays of a framework: the table of its operations, their derivatives, and
what callers of energy attention give as these operations take it. basin.torch and basin.jax have
the rest: how an operation becomes one of the framework's.

A framework, `f` here, is an object with its module of array functions (`xp`) and what differs by
framework: `operation` makes one with derivatives, `run` computes it. An operation is called with
what is static (flags, the length of a list, the factor of the log-sum-exp or with values of the
scores, bits of the results that are requested) and its operands, and gives a list of results; None
is an operand or a result that is absent, a tangent or a cotangent that is zero.

Shapes of energy attention are q [.., N, H, Y], k [.., M, H, Y], beta [H], scale [.., N, M, H] (of a
list [pairs, H]), w and lse [.., N, H]; with the flag ONE_HEAD the axis H is missing, but for
beta's. With values they are q [B, N, H, Y], k [B, M, K, Y], v [B, M, K, V], with HEADS_FIRST
[B, H, N, Y] and so on; bias and its tangent [B, H, N, M], of which the first three may be 1 (of a
list [B, pairs, H], B may be 1).
"""

import functools
import numbers
from typing import Any, NamedTuple

from basin._engine.eager import (
    CAUSAL,
    EXCLUDE_SELF,
    HEADS_FIRST,
    ONE_HEAD,
    list_offsets,
    pattern_of,
)  # fmt: skip
from basin._engine.library import BasinError, lib


class Operation(NamedTuple):
    number: int
    operands: "list[str]"  # in the order of a job
    results: "list[str]"


_DENSE, _WITH = "q k beta scale pairs", "q k v bias pairs"
OPERATIONS = {
    name: Operation(getattr(lib, f"BASIN_EAGER_{name.upper()}"), operands.split(), results.split())
    for name, operands, results in (
        ("lse", _DENSE, "lse"),
        ("force", f"{_DENSE} w", "dq dk dbeta dscale"),
        ("reverse", f"{_DENSE} w a b", "gq gk gw gbeta gscale"),
        ("values", _WITH, "o"),
        ("values_reverse", f"{_WITH} c", "dq dk dv dbias"),
        ("values_second", f"{_WITH} c a b av abias ac", "gq gk gv gbias gc"),
    )
}
_DQ, _DK, _DBETA, _DSCALE, _GW = 1, 2, 4, 8, 4  # results of the force, of its reverse
_C = 16  # gc


def bits(needs):
    """The mask of those that are needed."""
    return sum(1 << i for i, need in enumerate(needs) if need)


def requested_of(results, requested):
    return [x if requested >> i & 1 else None for i, x in enumerate(results)]


def _add(a, b):
    return b if a is None else a if b is None else a + b


def _add_each(some, more):
    return [_add(a, b) for a, b in zip(some, more)]


def _scaled(x, factor):
    return x if x is None or factor == 1.0 else x * factor


def _like(x):
    return None if x is None else (x.shape, x.dtype)


class Attention:
    """The six operations over a framework."""

    def __init__(self, f):
        self.f = f
        both = {"values": self._values_both}
        for name, row in OPERATIONS.items():
            rules = [getattr(self, f"_{name}_{what}") for what in ("shapes", "jvp", "vjp")]
            compute = functools.partial(self._compute, row, rules[0])
            setattr(self, name, f.operation(name, compute, *rules, both.get(name)))

    def _compute(self, operation, shapes, static, *operands):
        return self.f.run(operation, static, shapes(static, *operands), operands)

    # ---- the log-sum-exp, times the factor ----

    def _lse_shapes(self, static, q, *_):
        return [(q.shape[:-1], self.f.real(q))]

    def _lse_jvp(self, static, operands, tangents):
        q, k, beta, scale, pairs = operands
        a, b, t_beta, t_scale, _ = tangents
        w, moved = self.f.full(q, q.shape[:-1], 1.0), None
        if t_beta is not None:  # beta multiplies q
            a = _add(a, self.f.cast((t_beta / beta)[:, None], q.dtype) * q)
        if a is not None or b is not None:
            moved = self.reverse((*static[:3], _GW), *operands, w, a, b)[2]
        if t_scale is not None:
            slopes = self.force((*static[:3], _DSCALE), *operands, w)[3] * t_scale
            if pairs is None:
                moved = _add(moved, slopes.sum(-1 if static[0] & ONE_HEAD else -2))
            else:
                queries, _ = self._nodes(static, q, k, pairs)
                moved = _add(moved, self.f.sums_at(queries, slopes, q.shape[1])[None])
        return [_scaled(moved, static[2])]

    def _lse_vjp(self, static, operands, cotangents, needs):
        w = _scaled(cotangents[0], static[2])
        return [*self.force((*static[:3], bits(needs[:4])), *operands, w), None]

    # ---- the force: dq, dk, dbeta, dscale, the gradient of sum(w lse) ----

    def _force_shapes(self, static, q, k, beta, scale, pairs, w):
        return requested_of(map(_like, (q, k, beta, scale)), static[3])

    def _force_jvp(self, static, operands, tangents):
        """Second derivatives of one number, sum(w lse), are symmetric."""
        *own, _, t_w = tangents
        found = [None] * 4 if t_w is None else self.force(static, *operands[:5], t_w)
        if any(t is not None for t in own):
            needs = [static[3] >> i & 1 for i in range(4)]
            moved = self._force_vjp(static, operands, own, [*needs, False, False])
            found = _add_each(found, moved[:4])
        return found

    def _force_vjp(self, static, operands, cotangents, needs):
        a, b, c_beta, c_scale = cotangents
        requested, found = bits((*needs[:2], needs[5], *needs[2:4])), [None] * 5
        if c_beta is not None:
            a, *more = self._through_dbeta(static, operands, a, c_beta)
            found = [more[0], None, None, more[1], None]
        if a is not None or b is not None:
            slopes = self.reverse((*static[:3], requested), *operands, a, b)
            found = _add_each(found, slopes)
        if c_scale is not None:
            found = _add_each(found, self._through_dscale(static, operands, c_scale))
        gq, gk, gw, gbeta, gscale = requested_of(found, requested)
        return [gq, gk, gbeta, gscale, None, gw]

    def _through_dbeta(self, static, operands, a, c):
        """beta dbeta is q . dq, so a cotangent c of dbeta is the cotangent c q / beta of dq: that,
        and what else depends on q and beta."""
        q, beta = operands[0], operands[2]
        dq, _, dbeta, _ = self.force((*static[:3], _DQ | _DBETA), *operands)
        ratio = c / beta
        by_head = self.f.cast(ratio[:, None], q.dtype)
        return _add(a, by_head * q), by_head * dq, -ratio * dbeta

    def _through_dscale(self, static, operands, c):
        """Gradients of sum(c dscale) with respect to q, k, w, beta and scale."""
        q, k, beta, scale, pairs, w = operands

        def slopes(q, k, w, beta, scale):
            return [self._slopes(static, q, k, beta, scale, pairs, w)]

        return self.f.vjp(slopes, (q, k, w, beta, scale), [c])

    def _slopes(self, static, q, k, beta, scale, pairs, w):
        """dscale, written out: memory for every pair and head."""
        xp, cast = self.f.xp, functools.partial(self.f.cast, dtype=w.dtype)
        (lse,) = self.lse((*static[:2], 1.0, 1), q, k, beta, scale, pairs)
        if pairs is not None:
            queries, keys = self._nodes(static, q, k, pairs)
            y = beta * (cast(q[0, queries]) * cast(k[0, keys])).sum(-1)
            return w[0, queries] * xp.exp(y * scale - lse[0, queries]) * y
        one = static[0] & ONE_HEAD
        form = "...ny,...my->...nm" if one else "...nhy,...mhy->...nmh"
        y = beta * xp.einsum(form, cast(q), cast(k))
        lse, w = (x[..., None] if one else x[..., None, :] for x in (lse, w))
        hidden = self._hidden(static[0], *y.shape[slice(-2, None) if one else slice(-3, -1)], q)
        hidden = hidden if one else hidden[..., None]
        return w * xp.exp(xp.where(hidden, -1e30, y * scale - lse)) * y

    def _hidden(self, flags, queries, keys, like):
        """[N, M]: whether a query does not see a key."""
        n, m = self.f.arange(queries, like)[:, None], self.f.arange(keys, like)
        return (n < m) & bool(flags & CAUSAL) | (n == m) & bool(flags & EXCLUDE_SELF)

    def _nodes(self, static, q, k, pairs):
        """Query and key of each pair of a list."""
        return nodes_of(self.f, pairs, q.shape[1], k.shape[1], static[1])

    # ---- its reverse: gq, gk, gw, gbeta, gscale, the gradient of sum(a dq) + sum(b dk) ----

    def _reverse_shapes(self, static, q, k, beta, scale, pairs, w, a, b):
        return requested_of(map(_like, (q, k, w, beta, scale)), static[3])

    def _reverse_jvp(self, static, operands, derivatives, needs=None):
        raise NotImplementedError(
            "energy attention has derivatives of first and second order, the second over reverse "
            "mode, as hessian takes it; another one was asked for"
        )

    _reverse_vjp = _reverse_jvp

    # ---- with values: the result ----

    def _output(self, q, v):
        return (*q.shape[:3], v.shape[3]), q.dtype

    def _values_shapes(self, static, q, k, v, bias, pairs):
        return [self._output(q, v)]

    def _values_jvp(self, static, operands, tangents):
        a, b, av, abias, _ = tangents
        second = self.values_second((*static[:3], _C), *operands, None, a, b, av, abias, None)
        return [second[4]]

    def _values_vjp(self, static, operands, cotangents, needs):
        reverse = (*static[:3], bits(needs[:4]))
        dq, dk, dv, dbias = self.values_reverse(reverse, *operands, cotangents[0])
        return [dq, dk, dv, _to_bias(dbias, operands[3]), None]

    def _values_both(self, static, operands, tangents):
        """The result and its tangent, at hardly more than the tangent costs."""
        number, names, results = OPERATIONS["values_second"]
        second = Operation(number, names, [*results, "o"])
        a, b, av, abias, _ = tangents
        made = [None] * 4 + [self._output(operands[0], operands[2])] * 2
        operands = (*operands, None, a, b, av, abias, None)
        found = self.f.run(second, static, made, operands)
        return found[5:], found[4:5]

    # ---- its reverse: dq, dk, dv and all of dbias ----

    def _all_slopes(self, static, q, k, bias, pairs):
        """The gradient of a bias before it is summed over what it repeats along."""
        if bias is None:
            return None
        batch, heads, queries, keys = sizes_with_values(static[0], q.shape, k.shape)
        slopes = (batch, heads, queries, keys) if pairs is None else (batch, static[1], heads)
        return slopes, bias.dtype

    def _values_reverse_shapes(self, static, q, k, v, bias, pairs, c):
        found = [*map(_like, (q, k, v)), self._all_slopes(static, q, k, bias, pairs)]
        return requested_of(found, static[3])

    def _values_reverse_jvp(self, static, operands, tangents):
        a, b, av, abias, _, ac = tangents
        return self.values_second(static, *operands, a, b, av, abias, ac)[:4]

    def _values_reverse_vjp(self, static, operands, cotangents, needs):
        """Second derivatives are symmetric: cotangents are tangents."""
        second = (*static[:3], bits((*needs[:4], needs[5])))
        gq, gk, gv, gbias, gc = self.values_second(second, *operands, *cotangents, None)
        return [gq, gk, gv, _to_bias(gbias, operands[3]), None, gc]

    # ---- the second order: gq, gk, gv, all of gbias, gc ----

    def _values_second_shapes(self, static, q, k, v, bias, pairs, *_):
        slopes = self._all_slopes(static, q, k, bias, pairs)
        return requested_of([*map(_like, (q, k, v)), slopes, self._output(q, v)], static[3])

    def _values_second_jvp(self, static, operands, tangents):
        """A third order, but for tangents of the tangents, in which it is linear."""
        there = [i for i, t in enumerate(tangents) if t is not None and i != 4]
        function = functools.partial(self._written_by, static, operands, there)
        some = [operands[i] for i in there], [tangents[i] for i in there]
        moved = iter(self.f.jvp(function, *some))
        made = self._values_second_shapes(static, *operands)
        return [None if x is None else next(moved) for x in made]

    def _values_second_vjp(self, static, operands, cotangents, needs):
        given, found = operands[:5], [None] * 11
        if operands[5] is None and static[3] == _C:
            # The reverse of a forward derivative is of second order.
            u, tangents = cotangents[4], operands[6:10]
            requested, more = bits(needs[:4]), bits(needs[6:10])
            if requested:
                second = (*static[:3], requested)
                found[:4] = self.values_second(second, *given, u, *tangents, None)[:4]
            if more:
                found[6:10] = self.values_reverse((*static[:3], more), *given, u)
            found[3], found[9] = _to_bias(found[3], given[3]), _to_bias(found[9], operands[9])
            return found
        there = [i for i, x in enumerate(operands) if needs[i] and x is not None]
        function = functools.partial(self._written_by, static, operands, there)
        made = zip(cotangents, self._values_second_shapes(static, *operands))
        given = [self.f.zeros(operands[0], *s) if x is None else x for x, s in made if s]
        for i, x in zip(there, self.f.vjp(function, [operands[i] for i in there], given)):
            found[i] = x
        return found

    def _written_by(self, static, operands, there, *some):
        """The formula as a function of only those operands."""
        changed = dict(zip(there, some))
        found = self._written(static, *(changed.get(i, x) for i, x in enumerate(operands)))
        made = self._values_second_shapes(static, *operands)
        return [x for x, shape in zip(found, made) if shape]

    def _written(self, static, q, k, v, bias, pairs, c, a, b, av, abias, ac):
        """The second order written out, with memory for every pair: what third derivatives need."""
        flags, _, factor, _ = static
        if pairs is not None:
            raise NotImplementedError(
                "attention along a list has derivatives to second order; a third one was asked for"
            )
        f, xp, kind = self.f, self.f.xp, q.dtype
        batch, heads, queries, keys = sizes_with_values(flags, q.shape, k.shape)
        each = heads // k.shape[1 if flags & HEADS_FIRST else 2]

        def wide(x):
            """[B, H, N, Y] in the type of sums."""
            x = None if x is None else f.cast(x, real)
            return x if x is None or flags & HEADS_FIRST else xp.swapaxes(x, 1, 2)

        def repeated(x):
            return None if x is None else f.repeat(x, each)

        def product(x, y):
            return zero if x is None or y is None else x @ xp.swapaxes(y, -1, -2)

        def summed(x, y, z, w):
            return x @ y if w is None else x @ y + z @ w

        def narrow(x, shared=False):
            x = x.reshape(batch, -1, each, *x.shape[2:]).sum(2) if shared else x
            return f.cast(x if flags & HEADS_FIRST else xp.swapaxes(x, 1, 2), kind)

        real = f.real(q)
        zero = f.zeros(q, (batch, heads, queries, keys), real)
        c = f.zeros(q, *self._output(q, v)) if c is None else c
        q, c, a, ac = map(wide, (q, c, a, ac))
        k, v, b, av = (repeated(wide(x)) for x in (k, v, b, av))
        s = factor * product(q, k) + (0 if bias is None else bias)
        if flags & CAUSAL:
            s = xp.where(self._hidden(flags, queries, keys, q), -xp.inf, s)
        p = xp.exp(s - f.top(s))
        total = p.sum(-1)[..., None]
        p = p / xp.where(total > 0, total, xp.ones_like(total))
        ts = factor * (product(a, k) + product(q, b)) + (0 if abias is None else abias)
        g, tg = product(c, v), product(ac, v) + product(c, av)
        tp = p * (ts - (p * ts).sum(-1)[..., None])
        slope = g - (p * g).sum(-1)[..., None]
        ds, u = p * slope, tp * slope + p * tg
        tds = u - p * u.sum(-1)[..., None]
        by_key = [xp.swapaxes(x, -1, -2) for x in (tds, ds, tp, p)]
        return [
            narrow(factor * summed(tds, k, ds, b)),
            narrow(factor * summed(by_key[0], q, by_key[1], a), True),
            narrow(summed(by_key[2], c, by_key[3], ac), True), tds,
            narrow(summed(tp, v, p, av)),
        ]  # fmt: skip


def sizes_with_values(flags, q, k):
    """Batch, heads, queries and keys, of tokens of these shapes."""
    return (*q[:3], k[2]) if flags & HEADS_FIRST else (q[0], q[2], q[1], k[1])


def _to_bias(slopes, bias):
    if slopes is None:
        return None
    axes = tuple(i for i, n in enumerate(bias.shape) if n == 1 and slopes.shape[i] != 1)
    return slopes.sum(axes).reshape(bias.shape) if axes else slopes


def nodes_of(f, packed, queries, keys, count):
    """Query and key of each pair of a packed list, by query, then by key."""
    (row, key, *_), _ = list_offsets(queries, keys, count)
    ends, places = packed[row + 1 : row + 1 + queries], f.arange(count, packed)
    return f.xp.searchsorted(ends, places, side="right"), packed[key : key + count]


# ---- what callers of energy attention give ----


class Problem:
    """Energy attention of tokens of a shape and type: what is checked, and the operands beside
    tokens. `flags` are the framework's."""

    def __init__(self, attention, q, k, beta, pairs, scale, exclude_self, layout, flags=0):
        if layout not in ("hny", "nhy"):
            raise BasinError(f"layout {layout!r}, expected 'hny' or 'nhy'")
        self._attention, self._f, xp = attention, attention.f, attention.f.xp
        tokens, heads = (-2, -3) if layout == "hny" else (-3, -2)
        _check_tokens(q, k, tokens, self._f)
        sizes, heads = (q.shape[tokens], k.shape[tokens]), q.shape[heads]
        kind = self._f.Pairs, self._f.name
        found, count, flags = pattern_of(pairs, *kind, exclude_self, *sizes, flags)
        if found is not None:
            self._f.check_beside("pairs", found.packed, q)
        real = self._f.real(q)
        self._number = _number_of(beta, self._f)
        learnt, beta = self._f.is_learnt(beta), self._f.beta_of(beta, real, q)
        if beta.shape not in ((), (1,), (heads,)):
            raise BasinError(f"beta of shape {list(beta.shape)}, expected a number or [{heads}]")
        several = beta.shape not in ((), (1,))
        # One beta and heads first: the heads are entries of the batch.
        dense = scale is not None or self._f.is_dense(q)
        one = layout == "hny" and found is None and not several and dense
        self._swaps = layout == "hny" and not one
        self._across = beta[:, None] if several and layout == "hny" else beta
        beta = xp.broadcast_to(beta, (1 if one else heads,))
        if scale is not None:
            shape = (
                (*q.shape[:-1], sizes[1]) if layout == "hny" else (*q.shape[:-2], sizes[1], heads)
            )
            shape = shape if found is None else (count, heads)
            scale = self._f.expanded("scale", scale, real, q, shape)
            scale = xp.moveaxis(scale, -3, -1) if self._swaps and found is None else scale
        # The kernels sum gradients of beta and scale over one entry of a batch with a list.
        self._apart = found is not None and (scale is not None or learnt)
        self._rest = beta, scale, None if found is None else found.packed
        self._static = flags | ONE_HEAD * one, count

    def _laid(self, x):
        return self._f.xp.swapaxes(x, -2, -3) if self._swaps else x

    def _each(self, call, static, q, k, *w):
        """An operation, over the entries of the batch where these are apart."""
        if not self._apart:
            return call(static, q, k, *self._rest, *w)

        def one(q, k, *w):
            return [x for x in call(static, q, k, *self._rest, *w) if x is not None]

        lead = q.shape[:-3]
        flat = [x.reshape(-1, *x.shape[len(lead) :]) for x in (q, k, *w)]
        return [x.reshape(*lead, *x.shape[2:]) for x in self._f.each(one, *flat)]

    def lse(self, q: Any, k: Any, factor: float = 1.0) -> Any:
        """Times a factor: [.., H, N], or [.., N, H] where heads come after tokens."""
        static = *self._static, factor, 1
        x = self._each(self._attention.lse, static, self._laid(q), self._laid(k))[0]
        return self._f.xp.swapaxes(x, -1, -2) if self._swaps else x

    def energy(self, q: Any, k: Any) -> Any:
        """-lse / beta."""
        if self._number is None:
            return -self.lse(q, k) / self._across
        return self.lse(q, k, -1 / self._number)

    def force(self, q: Any, k: Any) -> Any:
        """Minus the gradient of the summed energy by q and k."""
        q, k = self._laid(q), self._laid(k)
        static = *self._static, 1.0, _DQ | _DK
        if self._number is None:
            w = self._f.xp.broadcast_to(1 / self._rest[0], q.shape[:-1])
        else:
            w = self._f.full(q, q.shape[:-1], 1 / self._number)
        dq, dk = self._each(self._attention.force, static, q, k, w)[:2]
        return self._laid(dq), self._laid(dk)


def _number_of(beta, f):
    """beta as a number; None of arrays, of which only shapes are known."""
    if f.is_array(beta):
        return None
    if not isinstance(beta, numbers.Real):
        raise BasinError(f"beta is {beta!r}, expected a number or an array [H]")
    if beta == 0:
        raise BasinError("beta is 0, expected another number: energies are divided by it")
    return float(beta)


def _check_tokens(q, k, tokens, f):
    same = list(q.shape), list(k.shape)
    if q.ndim >= 3 and q.ndim == k.ndim:
        same[0][tokens] = same[1][tokens] = 0
    if q.ndim < 3 or same[0] != same[1]:
        raise BasinError(
            f"queries {list(q.shape)} and keys {list(k.shape)}, expected three axes or more that "
            "differ only in tokens"
        )
    if f.place(q) != f.place(k):
        raise BasinError(f"queries are {f.place(q)}, keys {f.place(k)}")
    if not f.computes(q):
        raise BasinError(f"queries of {f.place(q)}, expected {f.EXPECTED}")
