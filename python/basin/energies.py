"""Energies written in Python: basin.energy makes a network of one, which descends and learns."""

import dataclasses
import difflib
import functools
import inspect
from typing import Any, Callable, Optional, overload

import numpy

from basin._engine.descent import (
    Bound,
    Descent,
    Runner,
    check_mask,
    descend,
    number,
    sizes,
    turns_of,
    whole,
)
from basin._engine.library import BasinError, check, ffi, lib
from basin._engine.plan import Plans, backend_of, declare, describe, warn_of_doubles
from basin._engine.tensor import ready, shape_of
from basin._engine.trees import LEAF, mapped, members, parts_of, shapes_text, split, unflatten
from basin._expr.batched import pointer_of
from basin._expr.expression import (
    Expression,
    Graph,
    apply,
    as_expression,
    graph_of,
    required_expression,
)
from basin._expr.layers import seed_of
from basin._expr.unsupported import foreign_functions_named
from basin.functions import Method, Signature, by_reference, gradient_tree, name_of, restore

__all__ = ["Descent", "Energy", "FixedPoint", "energy"]


class Energy(Method):
    """A scalar function of activations g, written in Python; see basin.energy.

    >>> bowl = basin.energies.Energy(lambda g, k: k * numpy.sum(g**2) / 2)
    >>> float(bowl([1.0, 2.0], k=3.0))
    7.5
    """

    def __init__(
        self, python_function: Callable[..., Any], activation: Any = None, batched: int = False
    ):
        if not callable(python_function):
            raise BasinError(f"{python_function!r}, expected a function of activations g")
        self._function, self._batched = python_function, whole("batched", int(batched))
        self._activation = None if activation is None else _activation_of(activation)
        self.__name__ = name_of(python_function)
        self.__doc__ = python_function.__doc__
        self._signature = signature = Signature(python_function)
        names = signature.names
        names = names[names[:1] == ["self"] :]  # of a method
        if not names:
            raise BasinError(f"{self.__name__} has no argument, expected activations g first")
        self._takes_x = names[1:2] == ["x"]
        own = [name for name in names[1 + self._takes_x :] if name != signature.options]
        kinds = signature.signature.parameters
        self._placed = [n for n in own if kinds[n].kind <= kinds[n].POSITIONAL_OR_KEYWORD]
        """Parameters that may be given by position."""
        self._needed = [name for name in own if signature.needs(name)]
        self._of_activation: dict = {}
        if callable(self._activation):
            made = Signature(self._activation)
            self._of_activation = {n: made.needs(n) for n in made.names[1:] if n != "backend"}
        more = [name for name in self._of_activation if name not in own]
        self._parameters, self._only_activation = own + more, set(more)
        self._placed += more if signature.rest is None else []
        self._needed += [name for name in more if self._of_activation[name]]
        for name in self._parameters:
            if name in _KEYWORDS:
                raise BasinError(
                    f"{self.__name__} has a parameter {name!r}, which is a keyword of descend() "
                    f"and other methods: give it another name"
                )
        self._plans, self._runners = Plans(), Plans()

    def __repr__(self) -> str:
        return f"<basin energy {self.__name__}{self._signature.signature}>"

    def _like(self, python_function):
        return Energy(python_function, self._activation, self._batched)

    def __reduce__(self):
        own = self._activation, self._batched
        return restore, (Energy, by_reference(self, self._function), *own)

    # ---- as expressions ----

    def terms(self, g: Any, x: Any = None, /, **parameters: Any) -> dict[str, Any]:
        """Its terms by name at activations g, as expressions; `x`: tokens, for energies of both."""
        first = (g, x) if self._takes_x else (g,)
        graph = _leaves(g)[0]._graph
        parameters = {n: v for n, v in parameters.items() if n not in self._only_activation}
        if self._signature.rest in parameters:  # *args, after the others
            named = [parameters[name] for name in self._placed if name in parameters]
            rest = parameters[self._signature.rest]
            more = [*self._placed, self._signature.rest]
            parameters = {name: v for name, v in parameters.items() if name not in more}
            first = (*first, *named, *rest)
        with foreign_functions_named():
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
            if as_expression(term, graph) is None:
                found = f"term {name!r} is {term!r}" if value is terms else f"it returned {term!r}"
                raise BasinError(f"{self._where()}: {found}, expected an expression of g")
        return terms

    def _where(self):
        """The function and its first line, for errors that come of what it returned."""
        code = getattr(self._function, "__code__", None)
        if code is None:
            return self.__name__
        return f"{self.__name__} ({code.co_filename}, line {code.co_firstlineno})"

    def total(self, terms: dict, x: Any) -> Expression:
        """The sum of terms at tokens x: one number, or one per sample of a `batched` energy."""
        first, expected = _leaves(x)[0], self._lead(x)
        made = {n: required_expression(term, first._graph) for n, term in terms.items()}
        for name, term in made.items():
            if term.shape != expected:
                what = "an energy" if len(made) == 1 else f"the term {name!r}"
                found = f"{self._where()}: {what} {list(term.shape)} of tokens {list(first.shape)}"
                if self._batched:
                    raise BasinError(f"{found}, expected {list(expected)}, one number per sample")
                raise BasinError(
                    f"{found}, expected one number: numpy.sum(..), or basin.energy(batched=True) "
                    f"for one per sample, the first axis"
                )
        return functools.reduce(lambda a, b: a + b, made.values())

    def activation(self, x: Any, parameters: Any = {}) -> Any:  # noqa: B006
        """g of tokens x, as expressions."""
        made = self._activation
        if made is None:
            return x
        if callable(made):
            g = made(x, **{n: v for n, v in parameters.items() if n in self._of_activation})
        else:
            g = mapped(lambda x, activate: activate(x), x, made)
        shapes = [getattr(a, "shape", None) for a in _leaves(g)]
        if not all(isinstance(a, Expression) for a in _leaves(g)):
            raise BasinError(f"the activation returned {g!r}, expected an expression of x")
        if shapes != [a.shape for a in _leaves(x)]:
            raise BasinError(f"the activation made {shapes} of x {[a.shape for a in _leaves(x)]}")
        return g

    def unroll(
        self, x: Any, /, steps: int, alpha: Any, *, recompute: bool = False, noise: float = 0.0,
        seed: Any = 0, turns: Any = None, mask: Any = None, **parameters: Any,
    ) -> Any:  # fmt: skip
        """The tokens after `steps` steps as an expression, through which a loss can be
        differentiated. With `recompute`, memory grows by one token tensor per step.

        alpha, noise, turns and mask are those of descend(); the seed may be an expression, so that
        every call of a function draws anew. Where a parameter is an expression x may be an array.

        >>> bowl = basin.energy(lambda g: numpy.sum(g**2) / 2)
        >>> end = basin.function(lambda x: bowl.unroll(x, steps=2, alpha=0.5))
        >>> end([1.0]), end.grad([1.0])
        (array([0.25], dtype=float32), array([0.25], dtype=float32))
        """
        self._check(parameters)
        graph = graph_of(_leaves([x, parameters, mask]))
        if graph is None:
            raise BasinError("nothing is an expression: descend() takes arrays only")
        x = mapped(lambda a: required_expression(a, graph), _tokens(x))
        packed = Packed(self, x)
        if mask is not None:
            mask = required_expression(packed.row(self._masks(mask, x)), graph)
        bound = Bound(packed, graph, packed.row(x), parameters, packed.turns(turns)[0], mask)
        spec = {"steps": steps, "noise": noise, "recompute": recompute, **sizes(alpha, steps)}
        spec.update(substep=bound.turns, substeps=len(bound.turns))
        if noise:
            spec["seed"] = seed_of(graph, seed)
        # What looks at all tokens, or draws for each of them, is not a batch of descents.
        several = turns or mask is not None or noise
        return packed.states(_descended(bound, packed.row(x), spec, several))

    def _at(self, x, parameters):
        """Activations of tokens x, each a variable, and the energy there."""
        g = mapped(lambda e: apply(lib.basin_variable, e), self.activation(x, parameters))
        return g, self.total(self.terms(g, x, **parameters), x)

    # ---- on arrays ----

    def __call__(self, x: Any, /, *args: Any, backend: Any = None, **parameters: Any) -> Any:
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

    def force(self, x: Any, /, *args: Any, backend: Any = None, **parameters: Any) -> Any:
        """-dE/dg at the activations of tokens x.

        >>> basin.energy(lambda g: numpy.sum(g**2) / 2).force([1.0, 2.0])
        array([-1., -2.], dtype=float32)
        """

        def force(g, total, _):
            return mapped(lambda e: -e, gradient_tree(total, g))

        return self._compute("force", x, backend, self._by_name(args, parameters), force)

    def grad(self, x: Any, /, wrt: str, *, backend: Any = None, **parameters: Any) -> Any:
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
        self, x: Any, v: Any, /, *args: Any, backend: Any = None, **parameters: Any
    ) -> Any:
        """The second derivative of the energy by g, times v.

        >>> basin.energy(lambda g: numpy.sum(g**3)).hessian_vector([1.0, 2.0], [1.0, 1.0])
        array([ 6., 12.], dtype=float32)
        """

        def product(g, total, given):
            slope = mapped(lambda s, v: numpy.sum(s * v), gradient_tree(total, g), given[_VECTOR])
            return gradient_tree(functools.reduce(lambda a, b: a + b, _leaves(slope)), g)

        parameters = {**self._by_name(args, parameters), _VECTOR: _tokens(v)}
        return self._compute("hessian", x, backend, parameters, product)

    def descend(
        self, x: Any, /, *args: Any, steps: int = 12, alpha: Any = 0.1, tolerance: float = 0.0,
        until: float = 0.0, guard: bool = False, accelerate: bool = False, noise: float = 0.0,
        seed: int = 0, turns: Any = None, mask: Any = None, trajectory: bool = False,
        observe: Optional[Callable[[Any], Any]] = None, backend: Any = None, **parameters: Any,
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
        asked, parameters = locals(), self._by_name(args, parameters)
        self._check(parameters)
        chosen, given = backend_of(backend), {**parameters, "x": _tokens(x)}
        key, values = describe(given, chosen.dtype)
        if key is None:
            raise BasinError("x or a parameter is an expression: unroll() takes them")
        x = mapped(ready, given["x"])
        packed = Packed(self, x)
        turns, turns_key = packed.turns(turns)
        row, values = packed.start, values[: len(values) - packed.count]
        packed.forget()
        if mask is not None:
            values = [*values, ready(packed.row(self._masks(mask, x))), row]

        def make(spec, stop):
            warn_of_doubles(backend, given)
            masked = mask is not None
            return self._runner(chosen, packed, row, parameters, spec, stop, turns, masked)

        key = *key, turns_key, mask is None
        return descend(self._runners, chosen, key, make, [row], values, alpha, asked)

    def _runner(self, backend, packed, row, parameters, spec, stop, turns, masked):
        """What descends, for tokens and parameters of such shapes."""
        graph = Graph()

        def state(name, shape):
            return graph.wrap(lib.basin_state(graph.pointer, name.encode(), shape_of(shape)))

        tokens = state("x", row.shape)
        given, values = declare(parameters, state)
        mask = state("mask", row.shape) if masked else None
        bound = Bound(packed, graph, tokens, given, turns, mask)
        spec = {**spec, "substep": bound.turns, "substeps": len(bound.turns)}

        def make(descent, store):
            try:
                check(
                    lib.basin_descent_new, descent, store.pointer, bound.pointer, graph.pointer,
                    shape_of(row.shape), ffi.new("basin_descent_spec *", spec),
                    ffi.new("basin_stop *", stop),
                )  # fmt: skip
            except BasinError as failure:
                bound.reraise()
                raise BasinError(f"{self._where()}: {failure}") from None

        values += [mask, tokens] if masked else []
        return Runner(bound, backend, make, values, [row.shape], packed.states, bound.names)

    def _masks(self, mask, x):
        """A mask of the form of x: of several states those that are missing are free."""
        if isinstance(x, dict) and isinstance(mask, dict):
            unknown = [name for name in mask if name not in x]
            if unknown:
                raise BasinError(f"mask of {unknown[0]!r}, expected one of {list(x)}")
            mask = {name: mask.get(name, 1) for name in x}
        return mapped(lambda m, a: _broadcast(m, a.shape), mask, x)

    # ---- fixed points ----

    def fixed_point(
        self, x: Any, /, *args: Any, steps: int = 1000, alpha: float = 0.1, until: float = 1e-5,
        held: bool = False, accuracy: float = 1e-5, products: int = 0, backend: Any = None,
        **parameters: Any,
    ) -> Any:  # fmt: skip
        """Where dE/dg = 0, as the descent from x finds it: a FixedPoint of arrays, or inside a
        traced function an expression, whose gradients are those of the fixed point, whatever way
        led there: memory is that of one step. It is reached where dE/dg is at most the share
        `until` of each token's length (at most 100 times what that and dE/dg were at first); after
        `steps` steps without that, a warning says so.

        With `held`, tokens are held by where they began, x = x0 - dE/dg: what a layer norm for
        example requires, whose energies have no dE/dg = 0. `accuracy` and `products` bound the
        linear system of the gradient.

        >>> well = basin.energy(lambda g, a: (g**4 / 4 - a * g).sum())
        >>> root = basin.function(lambda a: well.fixed_point(numpy.array([1.0]), a=a))
        >>> root([8.0]).round(3), root.grad([8.0]).round(3)  # a ** (1 / 3)
        (array([2.], dtype=float32), array([0.083], dtype=float32))
        >>> well.fixed_point([1.0], a=[8.0], alpha=0.01, steps=5000)
        FixedPoint(x [1], converged after 37 steps)
        """
        parameters = self._by_name(args, parameters)
        self._check(parameters)
        spec = {"steps": whole("steps", steps), "alpha": number("alpha", alpha)}
        implicit = {"on": True, "until": until, "accuracy": accuracy, "products": products}
        spec["implicit"] = implicit

        def build(graph, given):
            given = dict(given)
            return self._fixed(graph, given.pop("x"), spec, held, given)

        arguments = {"x": _tokens(x), **parameters}
        key = ("fixed", steps, alpha, until, held, accuracy, products, self._clamped)
        plan, values = self._plans.plan(key, backend, arguments, build, self._fixed_name)
        if plan is None:
            return self._expression(arguments, build, None)
        x = plan.tree(values)
        found = plan.found
        return FixedPoint(x, not found.not_converged, found.max_steps, found.change)

    def _fixed(self, graph, x, spec, held, parameters):
        if self._activation is not None and not held:
            raise BasinError(
                f"{self.__name__} has an activation: its tokens are held by where they began, with "
                f"held=True: x = x0 - dE/dg"
            )
        return self._settled(graph, Packed(self, x, held), spec, parameters)

    def _settled(self, graph, packed, spec, parameters={}):  # noqa: B006
        graph.fixed_points, start = True, packed.start
        bound = Bound(packed, graph, start, parameters)
        return packed.states(_descended(bound, start, spec, True))

    def _lead(self, x):
        """The axes of samples of tokens x."""
        return _leaves(x)[0].shape[: self._batched]

    def _check(self, parameters):
        """Refuses names that are not parameters, and missing ones."""
        for name in parameters if not self._signature.options else ():
            if name not in self._parameters and name != _VECTOR:
                known = [*self._parameters, *sorted(_KEYWORDS - {"x"})]
                near = difflib.get_close_matches(name, known, 1)
                near = near or ["alpha" if name in _ALPHA else f"one of {known}"]
                near = ["it in another method"] if name in _KEYWORDS else near
                expected = "it as the first, by position" if name == "x" else near[0]
                raise BasinError(f"{self.__name__} has no parameter {name!r}, expected {expected}")
        for name in self._needed:
            if name not in parameters:
                raise BasinError(f"{self.__name__} needs its parameter {name!r}")

    def _compute(self, what, x, backend, parameters, output):
        self._check(parameters)

        def build(graph, given):
            given = dict(given)
            x, vector = given.pop("x"), given.pop(_VECTOR, None)
            return output(*self._at(x, given), {**given, _VECTOR: vector})

        arguments = {"x": _tokens(x), **parameters}
        result = self._plans.run(what, backend, arguments, build, self._fixed_name)
        if result is NotImplemented:
            return self._expression(arguments, build, what[1] if what[0] == "grad" else None)
        return result

    _fixed_name = ""  # of an argument that seldom changes
    _clamped: tuple = ()  # states that a search of a fixed point leaves alone

    def _expression(self, arguments, build, wrt):
        """The same of expressions, inside a traced function. What a gradient is taken by becomes a
        variable: others may depend on it as well."""
        structure, leaves = split(arguments)
        graph = graph_of(leaves)
        made = iter([required_expression(leaf, graph) for leaf in leaves])
        given = unflatten(structure, made)
        if wrt is not None:
            structure, leaves = split(given[wrt])
            leaves = [apply(lib.basin_variable, leaf) for leaf in leaves]
            given[wrt] = unflatten(structure, iter(leaves))
        return build(graph, given)


class Packed:
    """An energy as that of one array of tokens: several states are one row of numbers (a row per
    sample). The library knows fixed points x = x0 - dE/dg; where x0 is not what holds tokens (held
    False), there is a term more, x0 . g - g . g / 2, with which dE/dg = 0 there."""

    def __init__(self, energy, x, held=None):
        self._energy, self._held = energy, held
        self._x: Any = x
        leaves = _leaves(x)
        self._shapes = [a.shape for a in leaves]
        self._structure, self.count = split(x)[0], len(leaves)
        self._lead = energy._lead(x)
        self._where = energy._where
        if any([shape[: len(self._lead)] != self._lead for shape in self._shapes]):
            raise BasinError(f"states {shapes_text(x)}, expected samples {list(self._lead)}")

    @property
    def start(self):
        return self.row(self._x)

    def forget(self):
        """Lets the states go: what stays knows their shapes."""
        self._x = None

    def row(self, x):
        """States as one array."""
        if self._structure is LEAF:
            return x
        return numpy.concatenate([a.reshape(*self._lead, -1) for a in _leaves(x)], axis=-1)

    def states(self, row):
        """The states of a row, which may have more axes in front."""
        if self._structure is LEAF:
            return row
        at, found, head = 0, [], row.shape[: row.ndim - 1]
        for shape in self._shapes:
            rest = shape[len(self._lead) :]
            size = int(numpy.prod(rest, dtype=int))
            found.append(row[..., at : at + size].reshape(*head, *rest))
            at += size
        return unflatten(self._structure, iter(found))

    def turns(self, turns):
        if turns and self._structure is not LEAF:
            raise BasinError("turns of several states, expected tokens in one array")
        return turns_of(turns)

    def activation(self, row, parameters):
        return self.row(self._energy.activation(self.states(row), parameters))

    def terms(self, g, row, **parameters):
        x = self.states(row)
        terms = self._energy.terms(self.states(g), x, **parameters)
        if self._held is False:  # see the class
            rest = g * (self.row(self._x) - g / 2)
            total = self._energy.total(terms, x)
            terms = {**terms, "": rest.sum(axis=tuple(range(total.ndim, rest.ndim)))}
        return terms

    def total(self, terms, row):
        return self._energy.total(terms, self.states(row))


def _descended(bound, x, spec, several):
    made = ffi.new("basin_descent_spec *", spec)
    pointer = x._pointer if several else pointer_of(x)
    pointer = lib.basin_descend(bound.pointer, pointer, made, ffi.NULL)
    bound.reraise()
    return x._again(pointer)


@dataclasses.dataclass(repr=False)
class FixedPoint:
    """Where a search of dE/dg = 0 ended: see Energy.fixed_point."""

    x: Any
    converged: bool
    steps: int
    change: float
    """The largest share of its length by which a token that has not converged would still move."""

    def __repr__(self) -> str:
        after = f"converged after {self.steps} steps"
        if not self.converged:
            after = f"not converged after {self.steps} steps: change {self.change:.2g}"
        return f"FixedPoint({shapes_text(self.x)}, {after})"


_VECTOR = "vector of hessian_vector"  # no name of a parameter can be this
_ALPHA = ("lr", "rate", "learning_rate", "step_size", "dt", "eta")  # what others call it
_KEYWORDS = {
    name
    for method in (Energy.descend, Energy.unroll, Energy.fixed_point, Energy.grad)
    for name, p in inspect.signature(method).parameters.items()
    if name == "x" or p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
} - {"self"}


def _leaves(tree):
    return split(tree)[1]


def _activation_of(given):
    """An activation by its name, Lagrangian or function, or a tree of them; None: g is x."""
    if isinstance(given, (dict, list, tuple)):
        kind, keys, values = parts_of(given)
        values = [_activation_of(value) for value in values]
        return dict(zip(keys, values)) if kind is dict else tuple(values)
    if callable(getattr(given, "activation", None)):
        return given.activation
    if callable(given):
        return given
    if given is None or isinstance(given, str):
        from basin.ham import Lagrangian

        return Lagrangian(given or "identity").activation
    raise BasinError(f"activation {given!r}, expected a function of tokens x, or a Lagrangian")


def _tokens(x):
    """x as it is computed with: expressions or arrays, one or in a tree. A list is one array."""
    if isinstance(x, (numpy.ndarray, Expression)) or parts_of(x) is None:
        return x
    if isinstance(x, list):
        return ready(x)
    if not _leaves(x):
        raise BasinError(f"states {x!r}, expected one array or more")
    return x


def _broadcast(mask, shape):
    if isinstance(mask, Expression):
        return mask
    mask = check_mask(mask)
    try:
        return numpy.ascontiguousarray(numpy.broadcast_to(mask, shape))
    except ValueError:
        found = list(numpy.shape(mask))
        raise BasinError(f"a mask {found}, expected one for tokens {list(shape)}") from None


@overload
def energy(python_function: Callable[..., Any]) -> Energy: ...


@overload
def energy(
    *, activation: Any = None, batched: int = False
) -> Callable[[Callable[..., Any]], Energy]: ...


def energy(
    python_function: Optional[Callable[..., Any]] = None,
    *,
    activation: Any = None,
    batched: int = False,
) -> Any:
    """Makes an energy of a Python function of activations g and parameters.

    The function returns one number, or a dict of such terms; with `batched` one per sample, whose
    axis is the first (or of the first `batched` axes). `activation` gives g from tokens x,
    basin.layernorm for example; its further arguments are parameters as well. Without it g is x.

    g may be a dict or tuple of arrays, states of several kinds; `activation` is then one of the
    same form: functions, Lagrangians or their names.

    >>> @basin.energy
    ... def wells(g):
    ...     return numpy.sum((g**2 - 1) ** 2) / 4
    >>> wells.descend([-1.5, -0.2, 0.1, 2.0], steps=200, tolerance=1e-4).x.round(2)
    array([-1., -1.,  1.,  1.], dtype=float32)
    >>> @basin.energy(activation={"v": None, "h": "softmax"})
    ... def memory(g, xi):
    ...     return numpy.sum(g["v"] ** 2) / 2 - g["h"] @ xi @ g["v"]
    >>> xi = numpy.eye(2, dtype="f4")
    >>> memory.descend({"v": [1.0, 0.5], "h": [0.0, 0.0]}, steps=200, xi=xi).x["v"].round(2)
    array([1., 0.], dtype=float32)
    """
    if python_function is None:
        return lambda f: Energy(f, activation, batched)
    return Energy(python_function, activation, batched)
