"""Energies written in Python: basin.energy makes a network of one, which descends and learns."""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Callable, Optional, overload

import numpy

from basin import _plots, operations
from basin._expr import Expression, Graph, apply, as_expression, graph_of, wanted_expression
from basin._library import BasinError, check, ffi, lib, owned, warn
from basin._plan import Plans, Store, backend_of, declare, describe, write
from basin._tensor import Borrowed, array_of
from basin._trees import flatten, unflatten
from basin.functions import Signature, by_reference, gradient_tree, name_of, restore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Descent", "Energy", "energy"]


@dataclasses.dataclass(repr=False)
class Descent:
    """Where a descent went.

    >>> import numpy, basin
    >>> descent = basin.energy(lambda g: numpy.sum(g**2) / 2).descend([1.0, 2.0], steps=3)
    >>> descent.energy[:, 0].round(3), descent.converged
    (array([2.5  , 2.025, 1.64 , 1.329]), False)
    >>> descent
    Descent(x [2], 3 steps, energy 2.5 -> 1.3286)
    """

    x: numpy.ndarray
    """Tokens at the end."""
    g: numpy.ndarray
    """Their activations."""
    energy: numpy.ndarray
    """[steps + 1, samples]: the energy before each step and at the end."""
    terms: dict
    """The same for each term by its name."""
    change: numpy.ndarray
    """[steps]: the largest change of an element of g in each step."""
    steps: int
    converged: bool
    """Whether the tolerance was reached."""

    def __repr__(self) -> str:
        first, last = self.energy.mean(1)[[0, -1]]
        what = "energy" if self.energy.shape[1] == 1 else "mean energy"
        end = ", converged" if self.converged else ""
        return (
            f"Descent(x {list(self.x.shape)}, {self.steps} step{'s' * (self.steps != 1)}, "
            f"{what} {first:.5g} -> {last:.5g}{end})"
        )

    def plot(self, ax: Any = None) -> "Figure":
        """Energy by step, a line per term, as a matplotlib figure."""
        return _plots.descent(self, ax)


class Energy:
    """A scalar function of activations g, written in Python; see basin.energy.

    >>> import numpy, basin
    >>> bowl = basin.Energy(lambda g, k: k * numpy.sum(g**2) / 2)
    >>> float(bowl([1.0, 2.0], k=3.0))
    7.5
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        activation: Optional[Callable[..., Any]] = None,
    ):
        if not callable(python_function):
            raise BasinError(f"{python_function!r}, wanted a function of activations g")
        self._function, self._activation = python_function, activation
        self.__name__ = name_of(python_function)
        self.__doc__ = python_function.__doc__
        self._signature = Signature(python_function)
        names = self._signature.names
        if not names:
            raise BasinError(f"{self.__name__} has no argument, wanted activations g first")
        self._parameters = names[1:]
        self._known, self._plans = {*names[1:], _VECTOR}, Plans()

    def __repr__(self) -> str:
        return f"<basin energy {self.__name__}{self._signature.signature}>"

    def __reduce__(self):
        return restore, (Energy, by_reference(self, self._function), self._activation)

    # ---- as expressions ----

    def terms(self, g: Expression, **parameters: Any) -> dict[str, Any]:
        """Its terms by name at activations g, as expressions."""
        value = self._function(g, **parameters)
        terms = value if isinstance(value, dict) else {self.__name__: value}
        for name, term in terms.items():
            if as_expression(term, g._graph) is None:
                found = f"term {name!r} is {term!r}" if value is terms else f"it returned {term!r}"
                raise BasinError(f"{self._where()}: {found}, wanted an expression of g")
        return terms

    def _where(self):
        """The function and its first line, for errors that come of what it returned."""
        code = getattr(self._function, "__code__", None)
        if code is None:
            return self.__name__
        return f"{self.__name__} ({code.co_filename}, line {code.co_firstlineno})"

    def activation(self, x: Expression) -> Expression:
        """g of tokens x, as expressions."""
        return x if self._activation is None else self._activation(x)

    def descended(
        self, x: Expression, steps: int, alpha: float, recompute: bool = False, **parameters: Any
    ) -> Expression:
        """The tokens after so many steps as an expression, through which a loss can be
        differentiated. With `recompute`, memory grows by one token tensor a step.

        >>> import numpy, basin
        >>> bowl = basin.energy(lambda g: numpy.sum(g**2) / 2)
        >>> end = basin.function(lambda x: bowl.descended(x, steps=2, alpha=0.5))
        >>> end([1.0]), end.grad([1.0])
        (array([0.25], dtype=float32), array([0.25], dtype=float32))
        """
        if not isinstance(x, Expression):
            raise BasinError("x is no expression: descend() takes arrays, descended() expressions")
        bound = _Bound(self, x._graph, x, parameters)
        spec = {"steps": steps, "alpha": alpha, "recompute": recompute}
        spec = ffi.new("basin_descent_spec *", spec)
        pointer = lib.basin_descend(bound.pointer, x._pointer, spec, ffi.NULL)
        bound.reraise()
        return x._graph.wrap(pointer)

    # ---- on arrays ----

    def __call__(self, x: Any, /, *, backend: Any = "cpu", **parameters: Any) -> Any:
        """The energy of tokens x: a number, or one per sample. Of expressions, inside traced
        functions, an expression."""
        return self._compute("energy", x, backend, parameters, lambda g, total, _: total)

    def force(self, x: Any, /, *, backend: Any = "cpu", **parameters: Any) -> Any:
        """-dE/dg at the activations of tokens x.

        >>> import numpy, basin
        >>> basin.energy(lambda g: numpy.sum(g**2) / 2).force([1.0, 2.0])
        array([-1., -2.], dtype=float32)
        """

        def force(g, total, _):
            return -operations.gradient(total, g)

        return self._compute("force", x, backend, parameters, force)

    def grad(self, x: Any, wrt: str, /, *, backend: Any = "cpu", **parameters: Any) -> Any:
        """The gradient of the energy with respect to a parameter, by its name.

        >>> import numpy, basin
        >>> basin.energy(lambda g, k: k * numpy.sum(g**2) / 2).grad([1.0, 2.0], "k", k=3.0)
        array(2.5, dtype=float32)
        """
        if wrt not in self._parameters:
            raise BasinError(f"wrt {wrt!r}, wanted one of {self._parameters}")
        if wrt not in parameters:
            raise BasinError(f"wrt {wrt!r}, which has its default: give it a value")

        def slope(g, total, given):
            return gradient_tree(total, given[wrt])

        return self._compute(("grad", wrt), x, backend, parameters, slope)

    def hessian_vector(self, x: Any, v: Any, /, *, backend: Any = "cpu", **parameters: Any) -> Any:
        """The second derivative of the energy by g, times v.

        >>> import numpy, basin
        >>> basin.energy(lambda g: numpy.sum(g**3)).hessian_vector([1.0, 2.0], [1.0, 1.0])
        array([ 6., 12.], dtype=float32)
        """

        def product(g, total, given):
            return operations.gradient(operations.gradient(total, g) * given[_VECTOR], g)

        return self._compute("hessian", x, backend, {**parameters, _VECTOR: v}, product)

    def descend(
        self, x: Any, *, steps: int = 12, alpha: float = 0.1, tolerance: float = 0.0,
        guard: bool = False, noise: float = 0.0, seed: int = 0, backend: Any = "cpu",
        **parameters: Any,
    ) -> Descent:  # fmt: skip
        """Lets tokens x go down the energy: x <- x - alpha dE/dg.

        Stops early where no element of g moved by more than `tolerance`; `guard` halves steps
        until the energy does not rise; `noise` makes it Langevin. Returns a Descent.

        >>> import numpy, basin
        >>> basin.energy(lambda g: numpy.sum(g**2) / 2).descend([1.0], steps=2, alpha=0.5).x
        array([0.25])
        """
        graph = Graph()
        tokens = graph.input("x", numpy.shape(x))
        given, inputs = self._inputs(graph, parameters)
        bound = _Bound(self, graph, tokens, given)
        spec = {"steps": steps, "alpha": alpha, "noise": noise}
        stop = {"tolerance": tolerance, "guard": guard, "seed": seed}
        store = Store(backend_of(backend))
        with store.backend.lock:
            descent = self._descent(bound, store, tokens, spec, stop)
            for expression, values in inputs:
                write(lib.basin_descent_plan(descent), expression, values)
            return _run(descent, x, bound.names)

    def _descent(self, bound, store, tokens, spec, stop):
        descent, graph = ffi.new("basin_descent **"), tokens._graph.pointer
        shape = lib.basin_expr_shape(tokens._pointer)
        spec, stop = ffi.new("basin_descent_spec *", spec), ffi.new("basin_stop *", stop)
        try:
            check(
                lib.basin_descent_new,
                descent,
                store.pointer,
                bound.pointer,
                graph,
                shape,
                spec,
                stop,
            )
        except BasinError as failure:
            bound.reraise()
            raise BasinError(f"{self._where()}: {failure}") from None
        return owned(descent[0], lib.basin_descent_free, store.pointer, graph)

    def _inputs(self, graph, parameters):
        """Arrays as inputs; returns expressions by name, and (expression, values)."""
        unknown = [name for name in parameters if name not in self._parameters]
        if unknown:
            raise BasinError(f"{self.__name__} has no parameter {unknown[0]!r}")
        key, values = describe(parameters)
        if key is None:
            raise BasinError("parameters are expressions: descend() takes arrays, descended() them")
        given, inputs = declare(parameters, graph.input)
        return given, list(zip(inputs, values))

    def _compute(self, what, x, backend, parameters, output):
        for name in parameters:
            if name not in self._known:
                raise BasinError(f"{self.__name__} has no parameter {name!r}")

        def build(graph, given):
            g = apply(lib.basin_variable, self.activation(given["x"]))
            names = [name for name in parameters if name != _VECTOR]
            terms = self.terms(g, **{name: given[name] for name in names})
            total = functools.reduce(lambda a, b: a + b, terms.values())
            return output(g, wanted_expression(total, graph), given)

        arguments = {"x": x, **parameters}
        result = self._plans.run(what, backend_of(backend), arguments, build)
        if result is NotImplemented:
            return self._expression(arguments, build)
        return result

    def _expression(self, arguments, build):
        """The same of expressions, inside a traced function."""
        leaves: list = []
        structure = flatten(arguments, leaves)
        graph = graph_of(leaves)
        leaves = [apply(lib.basin_variable, wanted_expression(leaf, graph)) for leaf in leaves]
        return build(graph, unflatten(structure, iter(leaves)))


_VECTOR = "vector of hessian_vector"  # no name of a parameter can be this

_BUILD = dict(ffi.typeof("basin_term").fields)["build"].type
_ACTIVATION = dict(ffi.typeof("basin_energy").fields)["activation"].type


class _Bound:
    """An energy with its parameters as the library's basin_energy. Must live as long as that is
    used; an exception of the Python function waits in `failure`."""

    def __init__(self, energy, graph, x, parameters):
        self.failure = None
        self._energy, self._graph, self._parameters = energy, graph, parameters
        self.names = list(energy.terms(energy.activation(x), **parameters))
        if not self.names:
            raise BasinError("an energy without terms, wanted 1 or more")
        self._text = [ffi.new("char[]", name.encode()) for name in self.names]
        builders = [functools.partial(self._build_term, name) for name in self.names]
        self._build = [ffi.callback(_BUILD, build) for build in builders]
        self._activation = ffi.callback(_ACTIVATION, self._activate)
        terms = zip(self._text, self._build)
        self._terms = ffi.new("basin_term[]", [{"name": t, "build": b} for t, b in terms])
        fields = {"term": self._terms, "terms": len(self.names)}
        if energy._activation is not None:
            fields["activation"] = self._activation
        self.pointer = ffi.new("basin_energy *", fields)

    def reraise(self):
        if self.failure is not None:
            raise self.failure

    def _build_term(self, name, _, g):
        return self._guarded(
            lambda: self._energy.terms(self._graph.wrap(g), **self._parameters)[name]
        )

    def _activate(self, _, x):
        return self._guarded(lambda: self._energy.activation(self._graph.wrap(x)))

    def _guarded(self, build):
        """What it builds, or NULL and the exception kept: C code lies in between."""
        if lib.basin_graph_error(self._graph.pointer):
            return ffi.NULL  # the library has refused something already, and says what
        try:
            return wanted_expression(build(), self._graph)._pointer
        except Exception as failure:  # noqa: BLE001
            self.failure = self.failure or failure
            return ffi.NULL


def _run(descent, x, names):
    result = ffi.new("basin_descent_result *")
    check(lib.basin_descent_run, descent, result, Borrowed(x).pointer)
    try:
        shape = (result.steps + 1, result.terms, result.samples)
        energy = numpy.frombuffer(ffi.buffer(result.energy, 8 * int(numpy.prod(shape))))
        energy = energy.reshape(shape).copy()
        change = numpy.frombuffer(ffi.buffer(result.change, 8 * result.steps)).copy()
        _say_where_it_left(energy.sum(axis=(1, 2)))
        return Descent(
            x=array_of(result.x[0]),
            g=array_of(result.g[0]),
            energy=energy.sum(axis=1),
            terms={name: energy[:, i] for i, name in enumerate(names)},
            change=change,
            steps=result.steps,
            converged=bool(result.converged),
        )
    finally:
        lib.basin_descent_result_free(result)


def _say_where_it_left(energy):
    """Warns of energies that are no numbers."""
    lost = ~numpy.isfinite(energy)
    if lost[0]:
        warn("the energy of the tokens is not finite", RuntimeWarning)
    elif lost.any():
        step = int(lost.argmax())
        told = f"the energy is not finite from step {step} on: a smaller alpha may help"
        warn(told, RuntimeWarning)


@overload
def energy(python_function: Callable[..., Any]) -> Energy: ...


@overload
def energy(
    *, activation: Optional[Callable[..., Any]] = None
) -> Callable[[Callable[..., Any]], Energy]: ...


def energy(
    python_function: Optional[Callable[..., Any]] = None,
    *,
    activation: Optional[Callable[..., Any]] = None,
) -> Any:
    """Makes an energy of a Python function of activations g and parameters.

    The function returns one number per sample, or a dict of such terms. `activation` gives g from
    tokens x, basin.layernorm for example; without it g is x.

    >>> import numpy, basin
    >>> @basin.energy
    ... def wells(g):
    ...     return numpy.sum((g**2 - 1) ** 2) / 4
    >>> wells.descend([-1.5, -0.2, 0.1, 2.0], steps=200, tolerance=1e-4).x.round(2)
    array([-1., -1.,  1.,  1.])
    """
    if python_function is None:
        return lambda f: Energy(f, activation)
    return Energy(python_function, activation)
