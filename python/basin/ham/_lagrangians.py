"""Lagrangians, which make layers of neurons: L(x) gives activations g = dL/dx and the neurons' own
energy <x, g> - L(x).

The library's eleven, with r = max(x, 0):

    identity   1/2 sum x^2                       relu       1/2 sum r^2
    repu       1/n sum r^n, n = power            exp        1/beta sum e^(beta x)
    rexp       sum e^(beta r)/beta - r           tanh       1/beta sum ln cosh(beta x)
    sigmoid    scale/beta sum ln(1 + e^(beta x)) softmax    1/beta ln sum e^(beta x)
    ghostmax   1/beta ln(1 + sum weight e^(beta x))
    layernorm  D gamma sqrt(var + epsilon) + <delta, x>
    spherical  gamma sqrt(sum x^2 + epsilon) + <delta, x>

The last five act along rows, the last axis (or `axes` axes from `axis` on, counted from the end).
"""

import itertools
from typing import Any, Callable, Union

from basin._engine.descent import Callbacks
from basin._engine.library import BasinError, ffi, lib, text
from basin._expr.expression import Expression, required_expression
from basin.functions import Function, name_of

NAMES = tuple(
    map(text, itertools.takewhile(bool, map(lib.basin_lagrangian_name, itertools.count())))
)
PARAMETERS = ("beta", "scale", "gamma", "delta", "weight")
SETTINGS = ("power", "epsilon", "axis", "axes")
_OWN = dict(ffi.typeof("basin_lagrangian").fields)["custom"].type


class Lagrangian:
    """A Lagrangian by its name and parameters, or a Python function L(x).

    The names are identity, relu, repu, exp, rexp, tanh, sigmoid, softmax, ghostmax, layernorm and
    spherical. Parameters may be learnt: beta, scale, gamma, delta, weight; settings are power,
    epsilon, axis and axes.

    Called, it is L(x) with rows (the last axis) summed, as an expression or on arrays. A function
    of your own is given states with a batch axis first and keeps that axis; what else is left of
    the sum is taken afterwards.

    >>> softmax = ham.Lagrangian("softmax", beta=2.0)
    >>> softmax.activation([0.0, 0.0, 0.0, 0.0])
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    >>> softmax([0.0, 0.0, 0.0, 0.0])  # ln(4) / 2
    array(0.6931472, dtype=float32)
    >>> own = ham.Lagrangian(lambda x: numpy.sum(x**4, axis=-1) / 4)
    >>> own.activation([1.0, 2.0]), float(own.energy([1.0, 2.0]))
    (array([1., 8.], dtype=float32), 12.75)
    """

    def __init__(self, lagrangian: Union[str, Callable[..., Any]] = "identity", **parameters: Any):
        unknown = [name for name in parameters if name not in (*PARAMETERS, *SETTINGS)]
        if callable(lagrangian) and parameters:
            raise TypeError("a function L(x) has no parameters: use functools.partial")
        if unknown:
            raise TypeError(f"no parameter {unknown[0]!r} of Lagrangians: {PARAMETERS + SETTINGS}")
        if not callable(lagrangian) and str(lagrangian).rstrip("0123456789.") not in NAMES:
            raise BasinError(f"Lagrangian {lagrangian!r}, expected a function or one of {NAMES}")
        self._of = lagrangian
        self.settings = {name: v for name, v in parameters.items() if name in SETTINGS}
        self.parameters = {name: v for name, v in parameters.items() if name in PARAMETERS}
        self._functions: dict = {}

    def __repr__(self) -> str:
        name = name_of(self._of) if callable(self._of) else self._of
        given = {**self.parameters, **self.settings}
        return f"Lagrangian({', '.join([repr(name), *(f'{k}={v}' for k, v in given.items())])})"

    def __getstate__(self):
        return {**self.__dict__, "_functions": {}}

    def __call__(self, x: Any, *, backend: Any = None) -> Any:
        """L(x), a number per row: the last axis is summed."""
        return self._apply("value", x, backend)

    def activation(self, x: Any, *, backend: Any = None) -> Any:
        """g = dL/dx, of the shape of x."""
        return self._apply("activation", x, backend)

    def energy(self, x: Any, *, backend: Any = None) -> Any:
        """<x, g> - L(x), a number per row, in closed form."""
        return self._apply("energy", x, backend)

    def _apply(self, kind, x, backend):
        if isinstance(x, Expression):
            bound = Bound(self, x._graph)
            rows = () if kind == "activation" else (max(x.ndim - self.settings.get("axes", 1), 0),)
            result = getattr(lib, f"basin_lagrangian_{kind}")(bound.pointer, x._pointer, *rows)
            bound.reraise()
            return x._graph.wrap(result)
        key = kind, backend
        if key not in self._functions:
            function = Function(lambda x: self._apply(kind, x, None), backend=backend)
            self._functions[key] = function
        return self._functions[key](x)


def lagrangian_of(given: Any) -> Lagrangian:
    """A Lagrangian, of its name or its function."""
    return given if isinstance(given, Lagrangian) else Lagrangian(given)


class Bound(Callbacks):
    """A Lagrangian in a graph as the library's struct."""

    def __init__(self, lagrangian, graph, owner=None):
        super().__init__(graph)
        self.pointer = self.keep(ffi.new("basin_lagrangian *", fields_of(lagrangian, self, owner)))


def fields_of(lagrangian, callbacks, declare=None):
    """The fields of a basin_lagrangian; `declare(part, value)` makes parameters that are learnt."""
    graph, of = callbacks.graph, lagrangian._of
    fields: dict = dict(lagrangian.settings)
    for part, value in lagrangian.parameters.items():
        learnt = declare(part, value) if declare else None
        expression = required_expression(value, graph) if learnt is None else learnt
        if part == "delta" and not expression.ndim:
            raise BasinError(f"delta {value!r} of {lagrangian!r}, expected a number per neuron")
        fields[part] = expression._pointer
    if callable(of):
        fields["custom"] = callbacks.callback(_OWN, lambda x, _: of(graph.wrap(x)))
    else:
        fields["name"] = callbacks.text(of)
    return fields
