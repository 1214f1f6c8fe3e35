"""Trees of arrays: dicts, lists, tuples, named tuples and dataclasses, nested as one likes.

A list or tuple of nothing but numbers is an array, as NumPy takes it; None holds no array.
"""

import ast
import dataclasses
import importlib
import numbers
import operator

import numpy

from basin._engine.library import BasinError

LEAF = "array"  # the structure of an array itself; that of a container is (type, keys, structures)


def flatten(tree, leaves, leaf=(), others=None):
    """Appends the arrays of a tree to `leaves`; returns its structure, which can be a key of a
    dict. Objects of the types `leaf` are not looked into; `others` is a function that gives type,
    keys and values of containers that are not known here, and None of all else."""
    parts = (others and others(tree)) or parts_of(tree, leaf)
    if parts is None:
        leaves.append(tree)
        return LEAF
    kind, keys, values = parts
    return kind, keys, tuple([flatten(value, leaves, leaf, others) for value in values])


def split(tree, leaf=()):
    """Its structure, and its arrays."""
    leaves: list = []
    return flatten(tree, leaves, leaf), leaves


def unflatten(structure, leaves):
    """A tree of that structure; `leaves` is an iterator."""
    if structure is LEAF:
        return next(leaves)
    kind, keys, children = structure
    values = [unflatten(child, leaves) for child in children]
    if kind is dict:
        return dict(zip(keys, values))
    if kind in (list, tuple):
        return kind(values)
    return None if kind is None else kind(**dict(zip(keys, values)))


def mapped(function, *trees):
    """A tree of what the function makes of the arrays of trees of one form."""
    first, *rest = trees
    if isinstance(first, dict):  # in whose order others are taken
        same = [isinstance(t, dict) and t.keys() == first.keys() for t in rest]
        rest = [{n: t[n] for n in first} if s else t for s, t in zip(same, rest)]
    (structure, *others), leaves = zip(*[split(tree) for tree in (first, *rest)])
    if any([other != structure for other in others]):
        forms = " and ".join(", ".join(names(s, "")) for s in (structure, *others))
        raise BasinError(f"states of two forms: {forms}".replace(" .", " "))
    return unflatten(structure, map(function, *leaves))


def names(structure, name):
    """What the arrays of a tree are called, in their order: w, net.w or net[0]."""
    if structure is LEAF:
        return [name]
    kind, keys, children = structure
    form = "{}[{}]" if kind in (list, tuple) else "{}.{}"
    return [
        found
        for key, child in zip(keys, children)
        for found in names(child, form.format(name, key))
    ]


def shapes_text(tree):
    """The arrays of a tree with their shapes: v [3], h [2]."""
    structure, leaves = split(tree)
    called = [name.removeprefix("x.") for name in names(structure, "x")]
    return ", ".join(f"{name} {list(leaf.shape)}" for name, leaf in zip(called, leaves))


def parts_of(tree, leaf=()):
    """Type, keys and values of a container; None where it is none."""
    if isinstance(tree, (numpy.ndarray, *leaf)):
        return None
    if tree is None:
        return None, (), ()
    if isinstance(tree, dict):
        return dict, tuple(tree), tree.values()
    if isinstance(tree, (list, tuple)):
        if hasattr(tree, "_fields"):
            return type(tree), tree._fields, tree
        if _is_array(tree):
            return None
        return list if isinstance(tree, list) else tuple, tuple(range(len(tree))), tree
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        keys = tuple(field.name for field in dataclasses.fields(tree))
        return type(tree), keys, [getattr(tree, key) for key in keys]
    return None


def members(values):
    """What *args are: a tuple, even of numbers."""
    return tuple(
        numpy.asarray(value)
        if isinstance(value, numbers.Number)
        or (isinstance(value, (list, tuple)) and _is_array(value))
        else value
        for value in values
    )


def _is_array(values):
    return all(
        _is_array(value) if isinstance(value, (list, tuple)) else isinstance(value, numbers.Number)
        for value in values
    )


# ---- structures as texts ----

_PLAIN = {"dict": dict, "list": list, "tuple": tuple, "None": None}
_others: dict = {}  # types by the names that texts have for them


def as_text(structures):
    """Structures by name as one text without "|", from which another process can make them again
    where it can import their types."""
    if all([structure is LEAF for structure in structures.values()]):
        return ",".join(structures)
    literal = tuple([(name, as_literal(structure)) for name, structure in structures.items()])
    return repr(literal).replace("|", "\\x7c")


def from_text(text):
    """The structures by name."""
    if not text.startswith("("):
        return dict.fromkeys(text.split(","), LEAF)
    return {name: _structure(literal) for name, literal in ast.literal_eval(text)}


def as_literal(structure):
    """The structure with names of its types."""
    if structure is LEAF:
        return LEAF
    kind, keys, children = structure
    for key in keys:
        if not isinstance(key, (str, int)):
            raise BasinError(
                f"the key {key!r} of a dict of arrays, expected text or a whole number"
            )
    return _name(kind), tuple(keys), tuple([as_literal(child) for child in children])


def _name(kind):
    if kind is None or kind is dict or kind is list or kind is tuple:
        return "None" if kind is None else kind.__name__
    name = f"{kind.__module__}:{getattr(kind, '__qualname__', '<locals>')}"
    name = f"{name}:{id(kind)}" if "<locals>" in name else name
    if name not in _others:
        _others[name] = kind
    return name


def _structure(literal):
    if literal == LEAF:
        return LEAF
    name, keys, children = literal
    kind = _PLAIN[name] if name in _PLAIN else _others.get(name) or imported(name)
    if kind is None and name != "None":
        raise BasinError(f"{name} is not there, but a compiled function has arguments of this type")
    return kind, keys, tuple([_structure(child) for child in children])


def rebuilt(literal, leaves):
    """A tree of the structure that as_literal() described; torch.compile traces it."""
    if literal == LEAF:
        return next(leaves)
    name, keys, children = literal
    values = [rebuilt(child, leaves) for child in children]
    if name == "dict":
        return dict(zip(keys, values))
    if name == "list":
        return values
    if name == "tuple":
        return tuple(values)
    return None if name == "None" else _others[name](**dict(zip(keys, values)))


def imported(where):
    """What lies at module:name; None where there is nothing."""
    module, _, name = where.partition(":")
    try:
        return operator.attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError):
        return None
