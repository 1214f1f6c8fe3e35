"""Descents of energies written in Python: what is built once for a shape, and where it led."""

import dataclasses
import functools
import math
import operator
from typing import TYPE_CHECKING, Any, Optional

import numpy

from basin._engine import plots as _plots
from basin._engine.library import BasinError, check, ffi, lib, owned, text, warn
from basin._engine.plan import Store, are_same, plan_bytes
from basin._engine.tensor import Slots
from basin._engine.trees import shapes_text
from basin._expr.batched import pointer_of
from basin._expr.expression import Expression, apply, required_expression

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def summary(descent, states):
    """A descent in a line: its states, steps and energies."""
    end = ", converged" if descent.converged else ""
    steps = f"{descent.steps} step{'s' * (descent.steps != 1)}"
    if not descent.energy.size:
        return f"Descent({states}, {steps}, no samples{end})"
    first, last = descent.energy.mean(1)[[0, -1]]
    what = "energy" if descent.energy.shape[1] == 1 else "mean energy"
    return f"Descent({states}, {steps}, {what} {first:.5g} -> {last:.5g}{end})"


@dataclasses.dataclass(repr=False)
class Descent:
    """Where a descent went.

    >>> descent = basin.energy(lambda g: numpy.sum(g**2) / 2).descend([1.0, 2.0], steps=3)
    >>> descent.energy[:, 0].round(3), descent.converged
    (array([2.5  , 2.025, 1.64 , 1.329]), False)
    >>> descent
    Descent(x [2], 3 steps, energy 2.5 -> 1.3286)
    """

    x: Any
    """Tokens at the end: an array, or states of the form in which they were given."""
    g: Any
    """Their activations."""
    energy: numpy.ndarray
    """[steps + 1, samples]: the energy before each step and at the end."""
    terms: dict
    """The same for each term by its name."""
    change: numpy.ndarray
    """[steps]: the largest change of an element of g in each step."""
    steps: int
    converged: bool
    """Whether the tolerance was reached, or every sample stayed by `until`."""
    trajectory: Any = None
    """[steps + 1, ..]: the tokens before each step and at the end, where they were asked for."""

    def __repr__(self) -> str:
        return summary(self, shapes_text(self.x))

    def _repr_html_(self) -> str:
        """The energy by step as a small curve, for notebooks."""
        energy = self.energy if self.energy.size else numpy.zeros((1, 1))
        return _plots.curve_svg(energy.mean(1), repr(self))

    def plot(self, ax: Any = None) -> "Figure":
        """Energy by step, a line per term, as a matplotlib figure."""
        return _plots.descent(self, ax)


# ---- an energy as the library's ----

_BUILD = dict(ffi.typeof("basin_term").fields)["build"].type
_ACTIVATION = dict(ffi.typeof("basin_energy").fields)["activation"].type
_MOVE = dict(ffi.typeof("basin_substep").fields)["move"].type
_PROJECT = dict(ffi.typeof("basin_substep").fields)["project"].type
_OBSERVE = dict(ffi.typeof("basin_stop").fields)["observe"].type


class Callbacks:
    """Python functions that C calls while it builds expressions of a graph. Must live as long as
    they may be called; the first exception waits for `reraise`: C code lies in between."""

    def __init__(self, graph):
        self.graph, self.failure, self._kept = graph, None, []

    def callback(self, kind, function):
        """`function`, which returns an expression, as a C function of that type."""

        def guarded(*arguments):
            if self.failure or lib.basin_graph_error(self.graph.pointer):
                return ffi.NULL  # the library has refused something already, and reports what
            try:
                return pointer_of(required_expression(function(*arguments), self.graph))
            except Exception as failure:  # noqa: BLE001
                self.failure = failure
                return ffi.NULL

        return self.keep(ffi.callback(kind, guarded))

    def keep(self, thing):
        self._kept.append(thing)
        return thing

    def text(self, value):
        return self.keep(ffi.new("char[]", str(value).encode()))

    def reraise(self):
        if self.failure is not None:
            raise self.failure

    def checked(self, build, *arguments, **options):
        """What build() returns; what a callback raised comes before what the library made of it."""
        try:
            result = build(*arguments, **options)
        except BasinError:
            self.reraise()
            raise
        self.reraise()
        return result

    def forget(self):
        """When nothing more is built: callbacks hold this object, which holds them."""
        self._kept.clear()


class Bound(Callbacks):
    """An energy of one array of tokens, with its parameters, as the library's basin_energy."""

    def __init__(self, energy, graph, x, parameters, turns=(), mask=None):
        super().__init__(graph)
        self._energy, self._parameters = energy, parameters
        self._x = self._first = x
        self._mask, self._last = mask, (ffi.NULL, {})
        g = energy.activation(x, parameters)
        variable = apply(lib.basin_variable, g)
        terms = energy.terms(variable, x, **parameters)
        total = energy.total(terms, x)  # which checks its shape
        slope = lib.basin_grad(pointer_of(total), pointer_of(variable))
        if not turns and slope == lib.basin_full(graph.pointer, lib.basin_expr_shape(slope), 0):
            warn(f"{energy._where()}: its force is 0 everywhere: it does not depend on g")
        self.names = list(terms)
        terms = [
            {"name": self.text(name), "build": self._again(_BUILD, self._term, name)}
            for name in self.names
        ]
        self._terms = ffi.new("basin_term[]", terms)
        fields = {"term": self._terms, "terms": len(terms)}
        fields["activation"] = self._again(_ACTIVATION, self._activate)
        self.pointer = ffi.new("basin_energy *", fields)
        if mask is not None:
            turns = turns or [{}]
        self.turns = ffi.new("basin_substep[]", [self._turn(turn) for turn in turns])

    def _again(self, kind, build, *first):
        """A function of C's that calls build(*first, expression ..)."""
        return self.callback(kind, lambda _, *a: build(*first, *map(self._first._again, a)))

    def _term(self, name, g):
        if self._last[0] != pointer_of(g):
            self._last = pointer_of(g), self._energy.terms(g, self._x, **self._parameters)
        return self._last[1][name]

    def _activate(self, x):
        self._x = x  # whoever asks for terms next does so at the activations of these tokens
        self._last = ffi.NULL, {}
        return self._energy.activation(x, self._parameters)

    # ---- turns ----

    def _turn(self, turn):
        unknown = [key for key in turn if key not in ("terms", "move", "project")]
        if unknown:
            raise BasinError(f"a turn with {unknown[0]!r}, expected terms, move or project")
        made = {"terms": functools.reduce(int.__or__, map(self._bit, turn.get("terms", ())), 0)}
        if turn.get("move"):
            made["move"] = self._again(_MOVE, turn["move"])
        project = turn.get("project")
        if self._mask is not None:
            made["project"] = self._again(_PROJECT, functools.partial(self._clamp, project))
        elif project:
            made["project"] = self._again(_PROJECT, project)
        return made

    def _bit(self, name):
        if name not in self.names[:32]:
            raise BasinError(f"a turn of term {name!r}, expected one of {self.names[:32]}")
        return 1 << self.names.index(name)

    def _clamp(self, project, x, t):
        return numpy.where(self._mask, project(x, t) if project else x, self._first)


def turns_of(turns):
    """Turns as dicts, and what distinguishes them from others."""
    turns = [{**turn, "terms": listed(turn.get("terms", ()))} for turn in turns or ()]
    return turns, tuple((t["terms"], t.get("move"), t.get("project")) for t in turns)


def listed(names):
    return (names,) if isinstance(names, str) else tuple(names)


def check_mask(mask):
    """A mask as an array, of nothing but 0 and 1."""
    mask = numpy.asarray(mask)
    if mask.dtype != bool and not ((mask == 0) | (mask == 1)).all():
        raise BasinError("a mask of other numbers than 0 and 1")
    return mask


def whole(name, value):
    """A whole number that is not negative, steps or a seed."""
    try:
        found = operator.index(value)
    except TypeError:
        found = -1
    if found < 0:
        raise BasinError(f"{name} {value!r}, expected a whole number of 0 or more")
    return found


def number(name, value):
    """A number, of whatever type."""
    if isinstance(value, str) or numpy.ndim(value) or not float(value) >= 0:
        found = list(numpy.shape(value)) if numpy.ndim(value) else repr(value)
        raise BasinError(f"{name} {found}, expected a number of 0 or more")
    return float(value)


def sizes(alpha, steps):
    """The sizes of steps as fields of a basin_descent_spec: of a number, an array of one for each
    step, or a function of the step."""
    for name, given in (("alpha", alpha), ("steps", steps)):
        if isinstance(given, Expression):
            raise BasinError(
                f"{name} is an expression, expected known numbers; learnt sizes belong in a turn: "
                f"alpha=1, turns=[{{'move': lambda force, x, t: size * force}}]"
            )
    steps = whole("steps", steps)
    if isinstance(alpha, (int, float)):
        return {"alpha": alpha}
    if callable(alpha):
        alpha = [alpha(t) for t in range(steps)]
    if numpy.asarray(alpha).dtype.kind not in "fiub":
        raise BasinError(
            f"alpha {alpha!r}, expected a number, one per step or a function of the step"
        )
    if numpy.ndim(alpha) == 0:
        return {"alpha": float(alpha)}
    if numpy.shape(alpha) != (steps,):
        raise BasinError(f"alpha {list(numpy.shape(alpha))}, expected a number or one per step")
    return {"schedule": ffi.new("double[]", [float(size) for size in alpha])}


# ---- running ----

_SEVERAL = 8  # with this many steps or more, the library takes several at once


def descend(runners, backend, key, make, arrays, values, alpha, asked):
    """A Descent of arrays by a Runner that make(spec, stop) makes and `runners` keep: by `key` and
    by what plans depend on of `asked`, the keywords of descend(); the rest may change."""
    steps, noise = asked["steps"], number("noise", asked["noise"])
    spec = {"steps": steps, **sizes(alpha, steps)}
    stop = {name: asked[name] for name in ("guard", "accelerate")}
    stop.update({name: number(name, asked[name]) for name in ("tolerance", "until")})
    watched = asked["observe"], asked["trajectory"]
    single = steps < _SEVERAL or bool(any(watched) or stop["tolerance"])
    key = backend, *key, noise, stop["until"] > 0, stop["guard"], stop["accelerate"], single
    with backend.lock:
        # A descent inside an observer of this one makes another: this is not there meanwhile.
        runner = runners.borrow(key)
        if runner is None:
            ends = {**stop, "tolerance": float(single)}
            runner = make({"steps": max(steps, 0), "noise": noise}, ends)
        try:
            stop["seed"] = whole("seed", asked["seed"])
            return runner.run(arrays, values, spec, stop, *watched)
        finally:
            runners.give_back(key, runner)


class Moment:
    """A descent before a step, or at its end, as observers see it. Its tokens are read when they
    are first asked for, which must be while the observer runs, and kept."""

    def __init__(self, now, names, read, first=0):
        self.step, self.change = now.step, now.change
        energy = _doubles(now.energy, (now.terms, now.samples), float)
        self.energy: numpy.ndarray = energy[first:].sum(axis=0)
        """[samples]"""
        self.terms: dict = dict(zip(names, energy))
        self._read, self._x = read, None

    @property
    def x(self) -> Any:
        """The tokens."""
        if self._x is None:
            if self._read is None:
                raise BasinError(
                    f"x of step {self.step}, whose moment is over: an observer that keeps moments "
                    f"must read x while it is called (or use trajectory=True)"
                )
            self._x = self._read()
        return self._x

    def end(self):
        """The descent goes on: what was not read cannot be read any more."""
        self._read = None

    def __repr__(self):
        return f"<step {self.step}, energy {self.energy.sum():.5g}>"


class Observer:
    """Python's observers as the library's. Must live while the descent runs. The energy is the sum
    of the terms from `first` on."""

    def __init__(self, observe, names, read, tree, trajectory, first=0):
        self.failure, self._tree = None, tree
        self.trajectory: Optional[list] = [] if trajectory else None
        self._observe, self._names, self._read, self._first = observe, names, read, first
        watches = observe is not None or trajectory
        self.pointer = ffi.callback(_OBSERVE, self._call) if watches else ffi.NULL

    def _call(self, _, now, error):
        try:
            if self.trajectory is not None:
                self.trajectory.append(self._read())
            if self._observe is not None:
                moment = Moment(now, self._names, lambda: self._tree(*self._read()), self._first)
                try:
                    now.stop[0] = _truth(self._observe(moment))
                finally:
                    moment.end()
        except BaseException as failure:  # noqa: BLE001
            self.failure = failure
            now.stop[0] = True
        return lib.BASIN_OK

    def reraise(self):
        if self.failure is not None:
            raise self.failure


def _truth(answer):
    """Whether an observer ends the descent."""
    if isinstance(answer, numpy.ndarray) and answer.ndim:
        found = list(answer.shape)
        raise BasinError(
            f"the observer returned an array {found}, expected one truth value or None"
        )
    return bool(answer)


class Runner:
    """A descent built for tokens and parameters of some shapes, on one backend: `make(descent,
    store)` makes it with the callbacks of `bound`. `values` are states that are written before each
    run, as far as they changed: what depends only on them is computed once, not in every step.
    `shapes` are those of tokens, of which `states(*arrays)` makes what users see; `names` those of
    terms, of which the energy is the sum from `first` on."""

    def __init__(self, bound, backend, make, values, shapes, states, names, first=0):
        self._store, self._dtype = Store(backend), backend.dtype
        self._shapes, self._tree, self._names, self._first = shapes, states, names, first
        self._states = [lib.basin_expr_name(state._pointer) for state in values]
        descent = ffi.new("basin_descent **")
        bound.checked(make, descent, self._store)
        bound.forget()
        graph = bound.graph.pointer
        self.pointer = owned(descent[0], lib.basin_descent_free, self._store.pointer, graph)
        places = range(len(self._shapes))
        tokens = [lib.basin_descent_tokens(self.pointer, i) for i in places]
        self._tokens = [text(lib.basin_expr_name(pointer)) for pointer in tokens]
        shapes = [bound.graph.wrap(pointer).shape for pointer in tokens]
        self._values = Slots([*shapes, *(state.shape for state in values)])
        self._last: list = [None] * len(self._states)
        # The plan of several steps at once is as large as a few of the plan of one.
        self.bytes = 4 * plan_bytes(lib.basin_descent_plan(self.pointer))

    def _read(self):
        return [
            self._store.read(name).reshape(shape) for name, shape in zip(self._tokens, self._shapes)
        ]

    def run(self, x, values, spec, stop, observe=None, trajectory=False):
        """A Descent from the arrays x with the values of states."""
        observer = Observer(observe, self._names, self._read, self._tree, trajectory, self._first)
        sized = ffi.new("basin_descent_spec *", spec)  # points to what the dict keeps
        stop = ffi.new("basin_stop *", {**stop, "observe": observer.pointer})
        result, tokens = ffi.new("basin_descent_result *"), self._values.pointer
        with self._store.backend.lock:
            check(lib.basin_descent_set, self.pointer, sized, stop)
            held = self._values.put([*x, *values])
            for i, state in enumerate(self._states):
                if not are_same([values[i]], [self._last[i]]):
                    place = tokens + len(self._shapes) + i
                    check(lib.basin_store_write, self._store.pointer, state, place)
            self._last = list(values)
            check(lib.basin_descent_run, self.pointer, result, tokens)
            del held
        try:
            observer.reraise()
            return self._result(result, observer.trajectory)
        finally:
            lib.basin_descent_result_free(result)

    def _result(self, result, walked):
        shape = (result.steps + 1, result.terms, result.samples)
        energy = _doubles(result.energy, shape, float)
        summed = shape[1] > 1 or self._first
        total = energy[:, self._first :].sum(axis=1) if summed else energy[:, 0].copy()
        if not numpy.isfinite(total).all():
            warn_not_finite(total.sum(axis=1))
        ends = (
            [_doubles(found[i].data, shape, self._dtype) for i, shape in enumerate(self._shapes)]
            for found in (result.x, result.g)
        )
        if walked is not None:
            walked = self._tree(*[numpy.stack(states) for states in zip(*walked)])
        return Descent(
            x=self._tree(*next(ends)), g=self._tree(*next(ends)), energy=total,
            terms={name: energy[:, i] for i, name in enumerate(self._names)},
            change=_doubles(result.change, (result.steps,), float), steps=result.steps,
            converged=bool(result.converged), trajectory=walked,
        )  # fmt: skip


def _doubles(data, shape, dtype):
    """A copy of doubles of the library's as an array of another type."""
    count = math.prod(shape)
    if count == 0:
        return numpy.empty(shape, dtype)
    return numpy.frombuffer(ffi.buffer(data, 8 * count)).astype(dtype).reshape(shape)


def warn_not_finite(energy):
    """Warns of energies that are not finite."""
    lost = ~numpy.isfinite(energy)
    if lost[0]:
        warn("the energy of the tokens is not finite", RuntimeWarning)
    elif lost.any():
        step = int(lost.argmax())
        message = f"the energy is not finite from step {step} on: a smaller alpha may help"
        warn(message, RuntimeWarning)
