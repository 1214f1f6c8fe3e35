"""Products of arrays by NumPy's rules: matmul, dot, einsum and their relatives."""

import numbers
import string
from typing import Any, NamedTuple

import numpy

from basin._engine.library import BasinError, ffi, lib
from basin._expr.batched import NotBatchedError, pointer_of
from basin._expr.expression import axes_of, expressions


class SlogdetResult(NamedTuple):
    sign: Any
    logabsdet: Any


def matmul(a, b):
    """Vectors are one row or one column; leading axes are repeated to one another."""
    a, b = expressions(a, b)
    x = a.reshape(1, -1) if a.ndim == 1 else a
    y = b.reshape(-1, 1) if b.ndim == 1 else b
    if not _multiplies(x, y):
        return _plain(a, b)  # which raises
    alike = y.ndim == 2 or x.shape[:-2] == y.shape[:-2]
    # Where leading axes differ: a contraction, in which nothing is repeated in memory.
    product = _plain(x, y) if alike else einsum("...mk,...kn->...mn", x, y)
    shape = list(product.shape)
    if b.ndim == 1:
        del shape[-1]
    if a.ndim == 1:
        del shape[-1 if b.ndim == 1 else -2]
    return product.reshape(*shape)


def _plain(a, b):
    if b._batch is None and (a._batch is None or b.ndim == 2):
        return a._again(lib.basin_matmul(pointer_of(a), b._pointer))
    if not _multiplies(a, b):
        raise NotBatchedError("a product of shapes that do not multiply")
    return einsum("...mk,...kn->...mn", a, b)


def _multiplies(x, y):
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-2]:
        return False
    return all(1 in (n, m) or n == m for n, m in zip(x.shape[-3::-1], y.shape[-3::-1]))


def dot(a, b):
    a, b = expressions(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return tensordot(a, b, axes=(-1, -2 if b.ndim > 1 else -1))


def inner(a, b):
    a, b = expressions(a, b)
    return a * b if a.ndim == 0 or b.ndim == 0 else tensordot(a, b, axes=(-1, -1))


def vdot(a, b):
    a, b = expressions(a, b)
    return dot(a.reshape(-1), b.reshape(-1))


def vecdot(a, b, axis=-1):
    a, b = expressions(a, b)
    return numpy.sum(numpy.moveaxis(a, axis, -1) * numpy.moveaxis(b, axis, -1), -1)


def tensordot(a, b, axes=2):
    a, b = expressions(a, b)
    if isinstance(axes, numbers.Integral):
        gone_a, gone_b = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        gone_a, gone_b = ([n] if isinstance(n, numbers.Integral) else list(n) for n in axes)
    gone_a, gone_b = _resolved(a, gone_a), _resolved(b, gone_b)
    lengths = [a.shape[i] for i in gone_a]
    if lengths != [b.shape[i] for i in gone_b]:
        raise BasinError(f"tensordot of {a!r} and {b!r}: axes {axes} differ in length")
    kept_a = [i for i in range(a.ndim) if i not in gone_a]
    kept_b = [i for i in range(b.ndim) if i not in gone_b]
    count = int(numpy.prod(lengths))
    rows = numpy.transpose(a, kept_a + gone_a).reshape(-1 if a.size else 0, count)
    columns = numpy.transpose(b, gone_b + kept_b).reshape(count, -1 if b.size else 0)
    shape = [a.shape[i] for i in kept_a] + [b.shape[i] for i in kept_b]
    return _plain(rows, columns).reshape(*shape)


def _resolved(a, axes):
    axes_of(a, axes)  # which refuses what is not an axis, or is one twice
    return [int(i) % a.ndim for i in axes]


def outer(a, b):
    a, b = expressions(a, b)
    return a.reshape(-1, 1) * b.reshape(1, -1)


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    a, b = expressions(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = numpy.moveaxis(a, axisa, -1), numpy.moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise BasinError(f"cross of {a!r} and {b!r}, expected vectors of 3")
    product = a[..., [1, 2, 0]] * b[..., [2, 0, 1]] - a[..., [2, 0, 1]] * b[..., [1, 2, 0]]
    return numpy.moveaxis(product, -1, axisc)


# ---- decompositions ----


def cholesky(a, /, *, upper=False):
    (a,) = expressions(a)
    lower = a._again(lib.basin_cholesky(pointer_of(a)))
    return lower.mT if upper else lower


def solve(a, b):
    a, b = expressions(a, b)
    vector, general = b.ndim == 1, lib.BASIN_SOLVE_GENERAL
    if a._batch is None and b._batch is None:
        return a._again(lib.basin_solve(a._pointer, b._pointer, general))
    b = b.reshape(-1, 1) if vector else b
    rank = max(a.ndim, b.ndim)  # so that the batch stands in front of both
    x, y = (z.reshape(*(1,) * (rank - z.ndim), *z.shape) for z in (a, b))
    batched = x if x._batch is not None else y
    found = batched._again(lib.basin_solve(pointer_of(x), pointer_of(y), general))
    return found[..., 0] if vector else found


def inv(a):
    (a,) = expressions(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise BasinError(f"inv of {a!r}, expected [.., n, n]")
    return solve(a, a._graph.wrap(lib.basin_eye(a._graph.pointer, a.shape[-1])))


def slogdet(a):
    (a,) = expressions(a)
    sign = ffi.new("basin_expr *")
    size = a._again(lib.basin_slogdet(pointer_of(a), sign))
    return SlogdetResult(a._again(sign[0]), size)


def det(a):
    sign, size = slogdet(a)
    return sign * numpy.exp(size)


# ---- contractions ----


def einsum(spec, *operands, optimize=False):
    """Letters, capitals, "...", no "->", axes of 1 that are repeated; lists of numbers as well."""
    if not isinstance(spec, str):
        spec, operands = _lettered(spec, *operands)
    operands = expressions(*operands)
    left, arrow, out = spec.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise BasinError(f"einsum: '{spec}' has {len(terms)} operands, {len(operands)} were given")
    if not arrow:
        out = _implied(terms)
    axes = max(_ellipsis_axes(term, a, spec) for term, a in zip(terms, operands))
    free = [c for c in string.ascii_letters if c not in spec][:axes]
    terms = [_spelled(term, a, free) for term, a in zip(terms, operands)]
    out = out.replace("...", "".join(free))
    terms, operands = _without_repeated(terms, operands)
    for pair in _pairs(terms, out, operands):
        joined = [(terms.pop(i), operands.pop(i)) for i in sorted(pair, reverse=True)]
        left, (x, y) = "".join([term for term, _ in joined]), (a for _, a in joined)
        kept = "".join(dict.fromkeys(c for c in left if c in "".join([out, *terms])))
        operands.append(_contract([term for term, _ in joined], kept, [x, y], spec))
        terms.append(kept)
    return _contract(terms, out, operands, spec)


def _pairs(terms, out, operands):
    """Which operands to contract first, where there are more than two: the library takes them from
    left to right, whatever the products cost on the way."""
    if not 2 < len(terms) < 8 or any(a._batch is not None for a in operands):
        return []
    shapes = [numpy.broadcast_to(0.0, a.shape) for a in operands]
    text = f"{','.join(terms)}->{out}"
    return numpy.einsum_path(text, *shapes, optimize=("optimal", 1 << 62))[0][1:-1]


def _contract(terms, out, operands, spec):
    """The library's letters are small ones, and its operands at most 8."""
    used = sorted(set("".join(terms)))
    if not set(out) <= set(used) or len(used) > 26:
        raise BasinError(f"einsum: '{spec}' does not fit {', '.join(map(repr, operands))}")
    small = {c: c for c in used if c in string.ascii_lowercase}
    free = (c for c in string.ascii_lowercase if c not in small)
    letters = str.maketrans({c: small.get(c) or next(free) for c in used})
    first = next((a for a in operands if a._batch is not None), operands[0])
    if first._batch is not None:  # the letter of the batch stands in front
        of = next(free, None)
        if of is None:
            raise NotBatchedError("a contraction of 26 letters")
        terms = [term if a._batch is None else f"{of}{term}" for term, a in zip(terms, operands)]
        out, letters[ord(of)] = f"{of}{out}", of
    text = f"{','.join(terms)}->{out}".translate(letters)
    pointers = ffi.new("basin_expr[]", [pointer_of(a) for a in operands])
    return first._again(lib.basin_einsum_many(text.encode(), pointers, len(operands)))


def _implied(terms):
    """Without "->": letters that appear once, in the order of the alphabet."""
    letters = "".join(terms).replace("...", "")
    once = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return ("..." if any("..." in term for term in terms) else "") + once


def _ellipsis_axes(term, a, spec):
    letters = len(term.replace("...", ""))
    count = a.ndim - letters
    if "." in term.replace("...", "") or count < 0 or (count and "..." not in term):
        raise BasinError(f"einsum: '{spec}' does not fit {a!r}")
    return count


def _spelled(term, a, free):
    count = a.ndim - len(term.replace("...", ""))
    return term.replace("...", "".join(free[len(free) - count :]))


def _without_repeated(terms, operands):
    """Axes of 1 whose letter is longer elsewhere go: the library repeats nothing."""
    length = {}
    for term, a in zip(terms, operands):
        for letter, size in zip(term, a.shape):
            length[letter] = max(length.get(letter, 0), size)
    found = []
    for term, a in zip(terms, operands):
        keep = [size == length[c] or size != 1 for c, size in zip(term, a.shape)]
        kept = "".join(c for c, stays in zip(term, keep) if stays)
        shape = [size for size, stays in zip(a.shape, keep) if stays]
        found.append((kept, a if kept == term else a.reshape(*shape)))
    return [term for term, _ in found], [a for _, a in found]


def _lettered(first, *rest):
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) as text and operands."""
    given = [first, *rest]
    lists, out = given[1 : len(given) - len(given) % 2 : 2], given[-1] if len(given) % 2 else None
    text = ",".join(map(_letters_of, lists))
    return text + ("" if out is None else "->" + _letters_of(out)), given[: len(lists) * 2 : 2]


def _letters_of(axes):
    return "".join("..." if i is Ellipsis else string.ascii_letters[i] for i in axes)
