"""Energies written in Python: basin.energy makes a network of one, which descends and learns."""

import difflib
import functools
import inspect
from typing import Any, Callable, Optional, overload

import numpy

from basin._engine.descent import Bound, Descent, Runner, check_mask, sizes, turns_of, whole
from basin._engine.library import BasinError, ffi, lib
from basin._engine.plan import Plans, backend_of, describe
from basin._engine.tensor import ready
from basin._engine.trees import flatten, members, unflatten
from basin._expr import operations
from basin._expr.batched import pointer_of
from basin._expr.expression import Expression, apply, as_expression, graph_of, required_expression
from basin.functions import Method, Signature, by_reference, gradient_tree, name_of, restore

__all__ = ["Descent", "Energy", "energy"]


class Energy(Method):
    """A scalar function of activations g, written in Python; see basin.energy.

    >>> bowl = basin.energies.Energy(lambda g, k: k * numpy.sum(g**2) / 2)
    >>> float(bowl([1.0, 2.0], k=3.0))
    7.5
    """

    def __init__(
        self, python_function: Callable[..., Any], activation: Optional[Callable[..., Any]] = None
    ):
        if not callable(python_function):
            raise BasinError(f"{python_function!r}, expected a function of activations g")
        if activation is not None and not callable(activation):
            raise BasinError(f"activation {activation!r}, expected a function of tokens x")
        self._function, self._activation = python_function, activation
        self.__name__ = name_of(python_function)
        self.__doc__ = python_function.__doc__
        self._signature = Signature(python_function)
        names = self._signature.names
        names = names[names[:1] == ["self"] :]  # of a method
        if not names:
            raise BasinError(f"{self.__name__} has no argument, expected activations g first")
        self._takes_x = names[1:2] == ["x"]
        options = self._signature.options
        self._parameters = [name for name in names[1 + self._takes_x :] if name != options]
        kinds = self._signature.signature.parameters
        self._placed = [
            n for n in self._parameters if kinds[n].kind <= kinds[n].POSITIONAL_OR_KEYWORD
        ]
        """Parameters that may be given by position."""
        self._needed = [name for name in self._parameters if self._signature.needs(name)]
        for name in self._parameters:
            if name in _KEYWORDS:
                raise BasinError(
                    f"{self.__name__} has a parameter {name!r}, which is a keyword of descend() "
                    f"and other methods: give it another name"
                )
        self._plans, self._runners = Plans(), {}

    def __repr__(self) -> str:
        return f"<basin energy {self.__name__}{self._signature.signature}>"

    def _like(self, python_function):
        return Energy(python_function, self._activation)

    def __reduce__(self):
        return restore, (Energy, by_reference(self, self._function), self._activation)

    # ---- as expressions ----

    def terms(self, g: Expression, x: Any = None, /, **parameters: Any) -> dict[str, Any]:
        """Its terms by name at activations g, as expressions; `x`, the tokens, for an energy of
        these as well."""
        first = (g, x) if self._takes_x else (g,)
        if self._signature.rest in parameters:  # *args, behind the others
            named = [parameters[name] for name in self._placed if name in parameters]
            rest = parameters[self._signature.rest]
            more = [*self._placed, self._signature.rest]
            parameters = {name: v for name, v in parameters.items() if name not in more}
            value = self._function(*first, *named, *rest, **parameters)
        else:
            value = self._function(*first, **parameters)
        terms = value if isinstance(value, dict) else {self.__name__: value}
        if isinstance(value, (list, tuple)):
            found = f"it returned a {type(value).__name__}"
            raise BasinError(f"{self._where()}: {found}, expected an expression of g, or a dict")
        if not terms:
            raise BasinError(f"{self._where()}: it returned no term, expected 1 or more")
        for name, term in terms.items():
            if not isinstance(name, str):
                raise BasinError(f"{self._where()}: a term named {name!r}, expected text")
            if as_expression(term, g._graph) is None:
                found = f"term {name!r} is {term!r}" if value is terms else f"it returned {term!r}"
                raise BasinError(f"{self._where()}: {found}, expected an expression of g")
        return terms

    def _where(self):
        """The function and its first line, for errors that come of what it returned."""
        code = getattr(self._function, "__code__", None)
        if code is None:
            return self.__name__
        return f"{self.__name__} ({code.co_filename}, line {code.co_firstlineno})"

    def activation(self, x: Expression) -> Expression:
        """g of tokens x, as expressions."""
        if self._activation is None:
            return x
        g = self._activation(x)
        if not isinstance(g, Expression):
            raise BasinError(f"the activation returned {g!r}, expected an expression of x")
        return g

    def descended(
        self, x: Expression, /, steps: int, alpha: Any, *, recompute: bool = False,
        noise: float = 0.0, seed: Any = 0, turns: Any = None, mask: Any = None,
        until: Optional[float] = None, accuracy: float = 0.0, products: int = 0,
        **parameters: Any,
    ) -> Expression:  # fmt: skip
        """The tokens after so many steps as an expression, through which a loss can be
        differentiated. With `recompute`, memory grows by one token tensor per step.

        alpha, noise, turns and mask are those of descend(); the seed may be an expression, so that
        every call of a function draws anew. With `until`, tokens go to a fixed point instead, and
        gradients are those of the fixed point, whatever way led there: x <- x + alpha (x0 - x -
        dE/dg), held by where they began, until no token would move by more than that share of its
        length, after `steps` steps at most; `accuracy` and `products` bound the linear system of
        the gradient.

        >>> bowl = basin.energy(lambda g: numpy.sum(g**2) / 2)
        >>> end = basin.function(lambda x: bowl.descended(x, steps=2, alpha=0.5))
        >>> end([1.0]), end.grad([1.0])
        (array([0.25], dtype=float32), array([0.25], dtype=float32))
        >>> fixed = basin.function(lambda x: bowl.descended(x, 100, 0.5, until=1e-6))
        >>> fixed([1.0]).round(3), fixed.grad([1.0]).round(3)  # x = x0 - x
        (array([0.5], dtype=float32), array([0.5], dtype=float32))
        """
        if not isinstance(x, Expression):
            raise BasinError("x is no expression: descend() takes arrays, descended() expressions")
        self._check(parameters)
        graph = x._graph
        if mask is not None:
            known = isinstance(mask, Expression)
            mask = mask if known else required_expression(check_mask(mask), graph)
        bound = Bound(self, graph, x, parameters, turns_of(turns)[0], mask)
        spec = {"steps": steps, "noise": noise, "recompute": recompute, **sizes(alpha, steps)}
        spec.update(substep=bound.turns, substeps=len(bound.turns))
        if noise:
            spec["seed"] = _seed(graph, seed)
        if until is not None:
            spec["implicit"] = {
                "on": True, "until": until, "accuracy": accuracy, "products": products,
            }  # fmt: skip
        made = ffi.new("basin_descent_spec *", spec)
        # What looks at all tokens, or draws for each of them, is not a batch of descents.
        several = turns or mask is not None or noise or until is not None
        pointer = x._pointer if several else pointer_of(x)
        pointer = lib.basin_descend(bound.pointer, pointer, made, ffi.NULL)
        bound.reraise()
        return x._again(pointer)

    # ---- on arrays ----

    def __call__(self, x: Any, /, *args: Any, backend: Any = "cpu", **parameters: Any) -> Any:
        """The energy of tokens x: a number, or one per sample. Of expressions, inside traced
        functions, an expression. Parameters are given by name, or in their order."""
        parameters = self._by_name(args, parameters)
        return self._compute("energy", x, backend, parameters, lambda g, total, _: total)

    def _by_name(self, args, parameters):
        if not args:
            return parameters
        names = self._placed[: len(args)]
        several = self._signature.rest is not None
        if len(args) > len(names) and not several or any(name in parameters for name in names):
            expected = ", ".join(["x", *self._parameters])
            found = "".join(f", {name}=.." for name in parameters)
            raise BasinError(
                f"{self.__name__} of x and {len(args)} more by position{found}, expected "
                f"{expected}; steps, alpha and other options go by name"
            )
        rest = {self._signature.rest: members(args[len(names) :])} if several else {}
        return {**dict(zip(names, args)), **rest, **parameters}

    def force(self, x: Any, /, *args: Any, backend: Any = "cpu", **parameters: Any) -> Any:
        """-dE/dg at the activations of tokens x.

        >>> basin.energy(lambda g: numpy.sum(g**2) / 2).force([1.0, 2.0])
        array([-1., -2.], dtype=float32)
        """

        def force(g, total, _):
            return -operations.gradient(total, g)

        return self._compute("force", x, backend, self._by_name(args, parameters), force)

    def grad(self, x: Any, /, wrt: str, *, backend: Any = "cpu", **parameters: Any) -> Any:
        """The gradient of the energy with respect to a parameter, by its name.

        >>> basin.energy(lambda g, k: k * numpy.sum(g**2) / 2).grad([1.0, 2.0], "k", k=3.0)
        array(2.5, dtype=float32)
        """
        self._check(parameters)
        if wrt not in self._parameters and wrt not in list(parameters):
            raise BasinError(f"wrt {wrt!r}, expected one of {self._parameters}")
        if wrt not in parameters:
            raise BasinError(f"wrt {wrt!r}, which has its default: give it a value")

        def slope(g, total, given):
            return gradient_tree(total, given[wrt])

        return self._compute(("grad", wrt), x, backend, parameters, slope)

    def hessian_vector(
        self, x: Any, v: Any, /, *args: Any, backend: Any = "cpu", **parameters: Any
    ) -> Any:
        """The second derivative of the energy by g, times v.

        >>> basin.energy(lambda g: numpy.sum(g**3)).hessian_vector([1.0, 2.0], [1.0, 1.0])
        array([ 6., 12.], dtype=float32)
        """

        def product(g, total, given):
            return operations.gradient(operations.gradient(total, g) * given[_VECTOR], g)

        parameters = {**self._by_name(args, parameters), _VECTOR: _tokens(v)}
        return self._compute("hessian", x, backend, parameters, product)

    def descend(
        self, x: Any, /, *args: Any, steps: int = 12, alpha: Any = 0.1, tolerance: float = 0.0,
        until: float = 0.0, guard: bool = False, accelerate: bool = False, noise: float = 0.0,
        seed: int = 0, turns: Any = None, mask: Any = None, trajectory: bool = False,
        observe: Optional[Callable[[Any], Any]] = None, backend: Any = "cpu", **parameters: Any,
    ) -> Descent:  # fmt: skip
        """Lets tokens x go down the energy: x <- x - alpha dE/dg. Returns a Descent. Parameters are
        given by name, or in their order.

        `alpha` is a number, an array of one for each step, or a function of the step. The descent
        stops early where no element of g moved by more than `tolerance`, or where no token of any
        sample moved by more than the share `until` of its length. `guard` halves steps until the
        energy does not rise; `accelerate` adds Nesterov's momentum; `noise` makes it Langevin.

        `mask` is 1 where tokens are free and 0 where they are clamped. `turns` are the turns of a
        step, dicts of `terms` (names; all without it), `move`, a function of the force, x and the
        number of the step, and `project`, one of the new tokens and that number. `observe` gets
        a Moment (step, x, energy, terms, change) before each step and at the end, and ends
        the descent by returning a true value; x is read while it runs. `trajectory` keeps all
        tokens.

        >>> bowl = basin.energy(lambda g: numpy.sum(g**2) / 2)
        >>> bowl.descend([1.0], steps=2, alpha=0.5).x
        array([0.25], dtype=float32)
        >>> bowl.descend([1.0, 1.0], steps=2, alpha=[0.5, 1.0], mask=[1, 0], trajectory=True
        ... ).trajectory
        array([[1. , 1. ],
               [0.5, 1. ],
               [0. , 1. ]], dtype=float32)
        """
        parameters = self._by_name(args, parameters)
        self._check(parameters)
        if isinstance(x, Expression):
            raise BasinError("x is an expression: descended() takes them, descend() arrays")
        key, values = describe(parameters)
        if key is None:
            raise BasinError("parameters are expressions: descended() takes them")
        x, backend = ready(x), backend_of(backend)
        noise, until = _number("noise", noise), _number("until", until)
        if mask is not None:
            mask = _broadcast(mask, x.shape)
        turns, turns_key = turns_of(turns)
        stop = {"tolerance": tolerance, "until": until, "guard": guard, "accelerate": accelerate}
        spec = {"steps": steps, **sizes(alpha, steps)}
        asks = bool(trajectory or observe or tolerance)
        # What the plans of a descent depend on; the rest may change from run to run.
        key = (
            backend, x.shape, *key, turns_key, mask is None, noise, until > 0, guard, accelerate,
            asks or steps < _SEVERAL,
        )  # fmt: skip
        with backend.lock:
            idle = self._runners.pop(key, [])
            self._runners[key] = idle  # the last one used comes last
            if len(self._runners) > _MOST:
                self._runners.pop(next(iter(self._runners)))
            if not idle:
                fixed = {**stop, "tolerance": float(asks), "turns": turns, "mask": mask is not None}
                fixed.update(noise=noise, steps=max(steps, 0))
                idle.append(Runner(self, backend, x.shape, parameters, fixed))
            runner = idle.pop()  # a descent inside an observer of this one takes another
            try:
                return runner.run(
                    x, values, mask, spec, {**stop, "seed": whole("seed", seed)}, observe,
                    trajectory,
                )  # fmt: skip
            finally:
                idle.append(runner)

    def _check(self, parameters):
        """Refuses what is no parameter, and what is missing."""
        for name in parameters if not self._signature.options else ():
            if name not in self._parameters and name != _VECTOR:
                known = [*self._parameters, *sorted(_KEYWORDS)]
                near = difflib.get_close_matches(name, known, 1) or [f"one of {self._parameters}"]
                raise BasinError(f"{self.__name__} has no parameter {name!r}, expected {near[0]}")
        for name in self._needed:
            if name not in parameters:
                raise BasinError(f"{self.__name__} needs its parameter {name!r}")

    def _compute(self, what, x, backend, parameters, output):
        self._check(parameters)

        def build(graph, given):
            x = given["x"]
            g = apply(lib.basin_variable, self.activation(x))
            names = [name for name in parameters if name != _VECTOR]
            terms = self.terms(g, x, **{name: given[name] for name in names})
            total = functools.reduce(lambda a, b: a + b, terms.values())
            return output(g, required_expression(total, graph), given)

        arguments = {"x": _tokens(x), **parameters}
        result = self._plans.run(what, backend_of(backend), arguments, build)
        if result is NotImplemented:
            return self._expression(arguments, build, what[1] if what[0] == "grad" else None)
        return result

    def _expression(self, arguments, build, wrt):
        """The same of expressions, inside a traced function. What a gradient is taken by becomes a
        variable: others may depend on it as well."""
        leaves: list = []
        structures = {name: flatten(tree, leaves) for name, tree in arguments.items()}
        graph = graph_of(leaves)
        made = iter([required_expression(leaf, graph) for leaf in leaves])
        given = {name: unflatten(structures[name], made) for name in arguments}
        if wrt is not None:
            leaves = []
            structure = flatten(given[wrt], leaves)
            leaves = [apply(lib.basin_variable, leaf) for leaf in leaves]
            given[wrt] = unflatten(structure, iter(leaves))
        return build(graph, given)


_VECTOR = "vector of hessian_vector"  # no name of a parameter can be this
_MOST = 64  # descents kept by an energy
_SEVERAL = 8  # from so many steps on, the library takes several at once
_KEYWORDS = {
    name
    for method in (Energy.descend, Energy.descended, Energy.grad)
    for name, p in inspect.signature(method).parameters.items()
    if name == "x" or p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
} - {"self"}


def _tokens(x):
    """x as it is computed with: an expression, or one array, even of a list of arrays."""
    return x if isinstance(x, Expression) else ready(x)


def _number(name, value):
    if type(value) is float:
        return value
    if numpy.ndim(value):
        raise BasinError(f"{name} {list(numpy.shape(value))}, expected a number")
    return float(value)


def _broadcast(mask, shape):
    mask = check_mask(mask)
    try:
        return numpy.ascontiguousarray(numpy.broadcast_to(mask, shape))
    except ValueError:
        found = list(numpy.shape(mask))
        raise BasinError(f"a mask {found}, expected one for tokens {list(shape)}") from None


def _seed(graph, seed):
    """What noise is drawn from: two indices."""
    if isinstance(seed, Expression):
        pair = numpy.stack([seed, seed * 0])
        return graph.wrap(lib.basin_to_index(pair._pointer, 1 << 24))._pointer
    words = [int(seed) & 0xFFFFFFFF, int(seed) >> 32 & 0xFFFFFFFF]
    return graph.places(numpy.array(words, "u4").view("i4"))


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

    >>> @basin.energy
    ... def wells(g):
    ...     return numpy.sum((g**2 - 1) ** 2) / 4
    >>> wells.descend([-1.5, -0.2, 0.1, 2.0], steps=200, tolerance=1e-4).x.round(2)
    array([-1., -1.,  1.,  1.], dtype=float32)
    """
    if python_function is None:
        return lambda f: Energy(f, activation)
    return Energy(python_function, activation)
