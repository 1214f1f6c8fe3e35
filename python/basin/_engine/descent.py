"""Descents of energies written in Python: what is built once for a shape and run again and again,
and where it led."""

import dataclasses
import functools
import math
import operator
from typing import TYPE_CHECKING, Any, Optional

import numpy

from basin._engine import plots as _plots
from basin._engine.library import BasinError, check, ffi, lib, owned, text, warn
from basin._engine.plan import Store, declare
from basin._engine.tensor import Slots, shape_of, shape_tuple
from basin._expr.batched import pointer_of
from basin._expr.expression import Expression, Graph, apply, required_expression

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
    """Whether the tolerance was reached, or every sample stayed by `until`."""
    trajectory: Optional[numpy.ndarray] = None
    """[steps + 1, ..]: the tokens before each step and at the end, where they were asked for."""

    def __repr__(self) -> str:
        return summary(self, f"x {list(self.x.shape)}")

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


class Bound:
    """An energy with its parameters as the library's basin_energy. Must live as long as that is
    used; an exception of the Python function waits in `failure`."""

    def __init__(self, energy, graph, x, parameters, turns=(), mask=None):
        self.failure = None
        self._energy, self._graph, self._parameters = energy, graph, parameters
        self._x = self._first = x
        self._mask, self._last = mask, (ffi.NULL, {})
        g = apply(lib.basin_variable, required_expression(energy.activation(x), graph))
        terms = energy.terms(g, x, **parameters)
        self.names = list(terms)
        self.samples = numpy.broadcast_shapes(*map(numpy.shape, terms.values()))
        self._text = [ffi.new("char[]", name.encode()) for name in self.names]
        self._kept: list = []
        terms = [
            {"name": text, "build": self._callback(_BUILD, self._term, name)}
            for text, name in zip(self._text, self.names)
        ]
        self._terms = ffi.new("basin_term[]", terms)
        fields = {"term": self._terms, "terms": len(terms)}
        fields["activation"] = self._callback(_ACTIVATION, self._activate)
        self.pointer = ffi.new("basin_energy *", fields)
        if mask is not None:
            turns = turns or [{}]
        self.turns = ffi.new("basin_substep[]", [self._turn(turn) for turn in turns])

    def reraise(self):
        if self.failure is not None:
            raise self.failure

    def _callback(self, kind, build, *first):
        """A function of C's that calls build(*first, expression ..); NULL and the exception kept
        where that raises: C code lies in between."""

        def call(_, *pointers):
            if lib.basin_graph_error(self._graph.pointer):
                return ffi.NULL  # the library has refused something already, and reports what
            try:
                made = build(*first, *[self._first._again(pointer) for pointer in pointers])
                return pointer_of(required_expression(made, self._graph))
            except Exception as failure:  # noqa: BLE001
                self.failure = self.failure or failure
                return ffi.NULL

        made = ffi.callback(kind, call)
        self._kept.append(made)
        return made

    def _term(self, name, g):
        if self._last[0] != pointer_of(g):
            self._last = pointer_of(g), self._energy.terms(g, self._x, **self._parameters)
        return self._last[1][name]

    def _activate(self, x):
        self._x = x  # whoever asks for terms next does so at the activations of these tokens
        self._last = ffi.NULL, {}
        return self._energy.activation(x)

    # ---- turns ----

    def _turn(self, turn):
        unknown = [key for key in turn if key not in ("terms", "move", "project")]
        if unknown:
            raise BasinError(f"a turn with {unknown[0]!r}, expected terms, move or project")
        made = {"terms": functools.reduce(int.__or__, map(self._bit, turn.get("terms", ())), 0)}
        if turn.get("move"):
            made["move"] = self._callback(_MOVE, turn["move"])
        project = turn.get("project")
        if self._mask is not None:
            made["project"] = self._callback(_PROJECT, functools.partial(self._clamp, project))
        elif project:
            made["project"] = self._callback(_PROJECT, project)
        return made

    def _bit(self, name):
        if name not in self.names[:32]:
            raise BasinError(f"a turn of term {name!r}, expected one of {self.names[:32]}")
        return 1 << self.names.index(name)

    def _clamp(self, project, x, t):
        return numpy.where(self._mask, project(x, t) if project else x, self._first)


def turns_of(turns):
    """Turns as dicts, and what distinguishes them from others."""
    turns = [{**turn, "terms": _listed(turn.get("terms", ()))} for turn in turns or ()]
    return turns, tuple((t["terms"], t.get("move"), t.get("project")) for t in turns)


def _listed(names):
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
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise BasinError(f"{name} {value!r}, expected a whole number of 0 or more")
    return number


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

    def __init__(self, observe, names, read, trajectory, first=0):
        self.failure = None
        self.trajectory: Optional[list] = [] if trajectory else None
        self._observe, self._names, self._read, self._first = observe, names, read, first
        watches = observe is not None or trajectory
        self.pointer = ffi.callback(_OBSERVE, self._call) if watches else ffi.NULL

    def _call(self, _, now, error):
        try:
            if self.trajectory is not None:
                self.trajectory.append(self._read())
            if self._observe is not None:
                moment = Moment(now, self._names, self._read, self._first)
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
    """A descent built for tokens and parameters of some shapes, on one backend. Parameters are
    states: what depends only on them is computed once, not in every step."""

    def __init__(self, energy, backend, shape, parameters, fixed):
        self._graph, self._store, self._dtype = Graph(), Store(backend), backend.dtype
        self._x = self._state("x", shape)
        given, states = declare(parameters, self._state)
        self._states = [lib.basin_expr_name(state._pointer) for state in states]
        self._values = Slots([shape, *(state.shape for state in states)])
        turns, masked = fixed.pop("turns"), fixed.pop("mask")
        self._mask = self._state("mask", shape) if masked else None
        bound = Bound(energy, self._graph, self._x, given, turns, self._mask)
        if bound.samples != shape[: len(bound.samples)]:
            raise BasinError(
                f"{energy._where()}: energies {list(bound.samples)} of tokens {list(shape)}, "
                f"expected one number, or one per sample, {list(shape[:1])}: numpy.sum(.., axis=-1)"
            )
        self._names = bound.names
        spec = {"steps": fixed.pop("steps"), "noise": fixed.pop("noise"), "substep": bound.turns}
        spec = ffi.new("basin_descent_spec *", {**spec, "substeps": len(bound.turns)})
        stop = ffi.new("basin_stop *", fixed)
        descent = ffi.new("basin_descent **")
        try:
            check(
                lib.basin_descent_new, descent, self._store.pointer, bound.pointer,
                self._graph.pointer, shape_of(shape), spec, stop,
            )  # fmt: skip
        except BasinError as failure:
            bound.reraise()
            raise BasinError(f"{energy._where()}: {failure}") from None
        self._pointer = owned(
            descent[0], lib.basin_descent_free, self._store.pointer, self._graph.pointer
        )
        tokens = lib.basin_descent_tokens(self._pointer, 0)
        self._tokens = text(lib.basin_expr_name(tokens))

    def _state(self, name, shape):
        return self._graph.wrap(
            lib.basin_state(self._graph.pointer, name.encode(), shape_of(shape))
        )

    def _read(self):
        return self._store.read(self._tokens)

    def run(self, x, values, mask, spec, stop, observe, trajectory):
        """A Descent from tokens x with the values of parameters."""
        observer = Observer(observe, self._names, self._read, trajectory)
        sized = ffi.new("basin_descent_spec *", spec)  # points to what the dict keeps
        stop = ffi.new("basin_stop *", {**stop, "observe": observer.pointer})
        result, tokens = ffi.new("basin_descent_result *"), self._values.pointer
        with self._store.backend.lock:
            check(lib.basin_descent_set, self._pointer, sized, stop)
            held = self._values.put([x, *values])
            for i, state in enumerate(self._states, 1):
                check(lib.basin_store_write, self._store.pointer, state, tokens + i)
            if mask is not None:
                self._store.write("mask", mask)
                self._store.write("x", x)
            check(lib.basin_descent_run, self._pointer, result, tokens)
            del held
        try:
            observer.reraise()
            descent = result_of(result, self._names, self._dtype)
        finally:
            lib.basin_descent_result_free(result)
        if trajectory:
            descent.trajectory = numpy.stack(observer.trajectory)
        return descent


def _doubles(data, shape, dtype):
    """A copy of doubles of the library's as an array of another type."""
    count = math.prod(shape)
    if count == 0:
        return numpy.empty(shape, dtype)
    return numpy.frombuffer(ffi.buffer(data, 8 * count)).astype(dtype).reshape(shape)


def result_of(result, names, dtype):
    """A Descent of one tensor of tokens from the library's result."""
    energy = _doubles(result.energy, (result.steps + 1, result.terms, result.samples), float)
    total = energy[:, 0].copy() if result.terms == 1 else energy.sum(axis=1)
    if not numpy.isfinite(total).all():
        warn_not_finite(energy.sum(axis=(1, 2)))
    return Descent(
        x=_doubles(result.x[0].data, shape_tuple(result.x[0].shape), dtype),
        g=_doubles(result.g[0].data, shape_tuple(result.g[0].shape), dtype), energy=total,
        terms={name: energy[:, i] for i, name in enumerate(names)},
        change=_doubles(result.change, (result.steps,), float), steps=result.steps,
        converged=bool(result.converged),
    )  # fmt: skip


def warn_not_finite(energy):
    """Warns of energies that are not finite."""
    lost = ~numpy.isfinite(energy)
    if lost[0]:
        warn("the energy of the tokens is not finite", RuntimeWarning)
    elif lost.any():
        step = int(lost.argmax())
        message = f"the energy is not finite from step {step} on: a smaller alpha may help"
        warn(message, RuntimeWarning)
