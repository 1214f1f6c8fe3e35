"""Trees of arrays: dicts, lists, tuples, named tuples and dataclasses, nested as one likes.

A list or tuple of nothing but numbers is an array, as NumPy takes it; None holds no array.
"""

import dataclasses
import numbers

import numpy

LEAF = "array"  # the structure of an array itself; that of a container is (type, keys, structures)


def flatten(tree, leaves, leaf=()):
    """Appends the arrays of a tree to `leaves`; returns its structure, which can be a key of a
    dict. Objects of the types `leaf` are not looked into."""
    parts = None if isinstance(tree, leaf) else _parts(tree)
    if parts is None:
        leaves.append(tree)
        return LEAF
    kind, keys, values = parts
    return kind, keys, tuple([flatten(value, leaves, leaf) for value in values])


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


def _parts(tree):
    """Type, keys and values of a container; None where it is none."""
    if isinstance(tree, numpy.ndarray):
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


def _is_array(values):
    return all(
        _is_array(value) if isinstance(value, (list, tuple)) else isinstance(value, numbers.Number)
        for value in values
    )


__all__ = ["LEAF", "flatten", "names", "unflatten"]
