"""What the models of basin.zoo share: the library's energies over arrays or expressions."""

import copy
import dataclasses
import inspect
import itertools
from typing import Any, Callable, ClassVar, Optional

import numpy

from basin._engine.descent import Callbacks, Descent, Runner, descend
from basin._engine.library import BasinError, check, ffi, lib, text
from basin._engine.plan import Plans, backend_of, warn_of_doubles
from basin._engine.tensor import Borrowed, ready, shape_of
from basin._expr import operations
from basin._expr.derivatives import vjp
from basin._expr.expression import Expression, Graph, graph_of, required_expression
from basin.functions import Function

# ---- the library's table ----


def _listed(pointer):
    """A C array that ends with a NULL name."""
    while pointer and pointer.name:
        yield pointer[0]
        pointer += 1


def _models():
    return itertools.takewhile(bool, map(lib.basin_zoo_at, itertools.count()))


class Row:
    """A row of the library's table of models."""

    def __init__(self, name):
        model = next(row for row in _models() if text(row.name) == name)
        kind = model.kind
        self.name, self.alpha, self.exact = name, kind.alpha, text(kind.exact)
        self.tensors = {text(t.name): t for t in _listed(kind.tensor)}
        self.settings = {text(t.name): t for t in _listed(kind.setting)}
        self.variant = {text(t.name): t.number for t in _listed(model.variant)}
        self.state = next(iter(self.tensors))
        papers = (text(row.reference) for row in _models() if row.kind == kind)
        self.paper = "; ".join(dict.fromkeys(papers))
        self.text = f"{text(kind.title)}.\n\n{text(kind.formula)}"

    def axes(self, name):
        """The shape of a tensor, as a list of sizes by letter."""
        shape = text(self.tensors[name].shape).rstrip("|")
        return [axis for axis in shape.split(",") if axis not in ("", "..")]

    def parameters(self, takes):
        """For a constructor: tensors, then settings. Those that `takes` names must be given."""
        for name in takes or list(self.tensors)[1:]:
            row = self.tensors[name]
            needed = takes or (row.deviation and not row.optional)
            default = _EMPTY if needed else None if row.optional else row.value
            yield inspect.Parameter(name, _PLAIN, default=default)
        for name, row in self.settings.items():
            default = self.variant.get(name, row.value)
            if row.choices:
                default = text(row.choices).split("|")[int(default)]
            elif (row.min, row.max) == (0, 1) and row.value in (0, 1):
                default = bool(default)
            yield inspect.Parameter(name, _NAMED, default=default)
        if "alpha" not in self.tensors:
            yield inspect.Parameter("alpha", _NAMED, default=None)


_PLAIN, _NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
_EMPTY = inspect.Parameter.empty


DRAWS = 100  # of a verdict, as in the program and in docs/zoo.md
_EXACT, _PROBES = 256, 64  # numbers of a state up to which all of a Jacobian is computed
_NORMAL = 1.959963984540054  # of intervals of 95 %


@dataclasses.dataclass(repr=False)
class Verdict:
    """Whether a published update goes down the stated energy, and whether its force is a gradient
    at all: see Model.verdict.

    >>> verdict = zoo.Hopfield(numpy.eye(3), beta=2.0).verdict()
    >>> verdict.answer, round(verdict.cosine, 6), verdict.difference < 1e-6
    ('always', 1.0, True)
    >>> verdict.gradient, verdict.skew < 1e-6
    (True, True)
    >>> print(str(verdict).replace("; ", "\\n"))
    Verdict('always': 0 of 2000 steps rise, 0 of 4000 small ones, in 0 to 3.7 % of draws
    cosine 1, difference 0.00
    a gradient, skew 0.000 +- 0.000)
    """

    steps: int
    """Steps of the published size, over all draws."""
    rises: int
    """How many of them raised the energy,"""
    small_rises: int
    """and how many of twice as many that are a thousand times smaller."""
    cosine: float
    """Cosine of the update and the energy's gradient downwards by g, for a tiny step: mean."""
    min_cosine: float
    difference: float
    """|update - gradient| / |gradient| downwards, for a tiny step: mean over draws."""
    draws: int
    rising_draws: int
    """In how many of the draws a small step raised the energy."""
    skew: float
    """|J - J'| / 2 |J| of the Jacobian J of the force, by the activations: 0 of a gradient, of
    whatever energy, 0.71 of random numbers, at most 1; mean over draws."""
    skew_error: float
    """Half the interval of 95 % of that mean."""
    step_skew: float
    """The same of one step of the published size."""

    @property
    def gradient(self) -> bool:
        """Whether the force is a gradient, if perhaps of another energy than the stated one."""
        return self.skew < 1e-4

    @property
    def rising_interval(self) -> "tuple[float, float]":
        """The percentage of draws in which a small step rises: the interval of 95 % (Wilson)."""
        n, share, z = self.draws, self.rising_draws / self.draws, _NORMAL
        centre, weight = share + z * z / (2 * n), 1 + z * z / n
        half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
        low = 100 * (centre - half) / weight if self.rising_draws else 0.0
        return low, 100 * (centre + half) / weight if self.rising_draws < n else 100.0

    @property
    def answer(self) -> str:
        """ "always", "for small steps" or "not at all"."""
        if self.small_rises:
            return "not at all"
        return "for small steps" if self.rises else "always"

    def __repr__(self) -> str:
        low, high = self.rising_interval
        return (
            f"Verdict({self.answer!r}: {self.rises} of {self.steps} steps rise, {self.small_rises} "
            f"of {2 * self.steps} small ones, in {low:.2g} to {high:.2g} % of draws; "
            f"cosine {self.cosine:.4g}, difference {self.difference:.2f}; "
            f"{'a' if self.gradient else 'no'} gradient, "
            f"skew {self.skew:.3f} +- {self.skew_error:.3f})"
        )


class Model:
    """A published model with its numbers, arrays or expressions, by the names of a row of the
    library's table; `sizes` are numbers by letter. `alpha` is the size of its steps."""

    paper: ClassVar[str] = ""
    _row: ClassVar[Row]
    __signature__: ClassVar[inspect.Signature]
    _pace: ClassVar[str] = ""  # the tensor that multiplies the force in a step

    def __init_subclass__(cls, row: str = "", takes: str = "", **options: Any):
        super().__init_subclass__(**options)
        if row:
            cls._row = Row(row)
            cls.paper = cls._row.paper
            cls.__doc__ = f"{cls._row.text}\n\n{inspect.cleandoc(cls.__doc__ or '')}"
            if "__init__" not in vars(cls):
                cls.__signature__ = inspect.Signature(list(cls._row.parameters(takes.split())))

    def __init__(self, *arguments: Any, **named: Any):
        bound = self.__signature__.bind(*arguments, **named)
        bound.apply_defaults()
        self._fill(bound.arguments)

    def _fill(self, given: dict, **sizes: int) -> None:
        """Takes what it is made of; the library checks it now, unless there are expressions."""
        row, learned = self._row, given.get("t1_w") is not None
        alpha = None if "alpha" in row.tensors else given.pop("alpha", None)
        self.alpha = float(alpha if alpha is not None else 1.0 if learned else row.alpha)
        self._sizes = sizes
        self._settings = {n: given.pop(n) for n in row.settings if n in given}
        self._arrays = {
            n: v
            if v is None or isinstance(v, Expression)
            else numpy.array(v, dtype="i4" if n == "edges" else "f8")
            for n, v in given.items()
        }
        beta = self._arrays.get("beta")
        if isinstance(beta, numpy.ndarray) and not (numpy.isfinite(beta) & (beta != 0)).all():
            raise BasinError(f"beta {beta}, expected finite numbers other than 0")
        self._functions, self._runners = {}, Plans()
        if graph_of(self._arrays.values()) is None:
            self._check_values()

    def _check_values(self) -> None:
        Bound(self, Graph())

    def __repr__(self) -> str:
        shapes = (f"{n} {list(v.shape)}" for n, v in self._arrays.items() if v is not None)
        return f"{type(self).__name__}({', '.join(shapes)})"

    def __getstate__(self):
        return {**self.__dict__, "_functions": {}, "_runners": None}

    def __setstate__(self, state):
        self.__dict__.update(state, _runners=Plans())

    # ---- what it computes ----

    def energy(self, x: Any, *, backend: Any = None) -> Any:
        """The stated energy of states x: a number per row, or of all."""
        return self._apply("total", x, backend)

    def terms(self, x: Any, *, backend: Any = None) -> dict[str, Any]:
        """The terms of the energy by name."""
        names = Bound(self, graph_of(self._arrays.values()) or Graph()).names
        return {n: self._apply("term", x, backend, number=i) for i, n in enumerate(names)}

    def activation(self, x: Any, *, backend: Any = None) -> Any:
        """g of states x."""
        return self._apply("activation", x, backend)

    def force(self, x: Any, *, backend: Any = None) -> Any:
        """-dE/dg at the activations of x, as the published update takes it."""
        return self._apply("force", x, backend)

    def update(self, x: Any, *, alpha: Optional[float] = None, backend: Any = None) -> Any:
        """x after one published step."""
        return self._apply("unroll", x, backend, steps=1, alpha=self._size(alpha))

    def unroll(
        self, x: Any, steps: int, alpha: Optional[float] = None, recompute: bool = False
    ) -> Any:
        """x after `steps` steps, through which a loss can be differentiated, by expressions that
        the model was made of as well."""
        options = {"steps": steps, "alpha": self._size(alpha), "recompute": recompute}
        return self._apply("unroll", x, "cpu", **options)

    def descend(
        self, x: Any, *, steps: int = 12, alpha: Any = None, tolerance: float = 0.0,
        until: float = 0.0, guard: bool = False, accelerate: bool = False,
        trajectory: bool = False, observe: Optional[Callable[[Any], Any]] = None,
        noise: float = 0.0, seed: int = 0, backend: Any = None,
    ) -> Descent:  # fmt: skip
        """Published steps from x in the C loop; returns a Descent, energies by step included. alpha
        is a number, an array of one for each step, or a function of the step; the other options
        are those of basin.energies.Energy.descend."""
        asked, array, chosen = locals(), ready(x), backend_of(backend)
        self._check(array.shape)

        def make(spec, stop):
            warn_of_doubles(backend, {"x": x})
            spec["alpha"] = 0.0
            return Bound(self, Graph()).runner(chosen, array.shape, spec, stop)

        alpha = self.alpha if alpha is None else alpha
        return descend(self._runners, chosen, array.shape, make, [array], [], alpha, asked)

    def verdict(
        self, x: Any = None, *, draws: int = DRAWS, steps: int = 20, seed: int = 0
    ) -> Verdict:
        """Measures whether the published update is the gradient of the stated energy and goes down
        it, or is a gradient at all, in double, from x or from `draws` draws of N(0, 1)."""
        rng = numpy.random.default_rng((seed, 1))  # not those that made the memories
        found, skews = [], []
        for _ in range(1 if x is not None else draws):
            start = rng.normal(size=self._shape()) if x is None else numpy.asarray(x, dtype="f8")
            found.append(self._judge(self.output("begin", start, backend="ref"), steps))
            sizes = 1e-6 * self.alpha, self.alpha
            skews.append([part for size in sizes for part in self._skew(start, size)])
        rises, small, cosine, difference = map(numpy.array, zip(*found))
        skew, error, step, _ = map(numpy.array, zip(*skews))
        spread = skew.var() / (len(skew) - 1) if len(skew) > 1 else 0.0
        return Verdict(
            steps * len(found), int(rises.sum()), int(small.sum()), float(cosine.mean()),
            float(cosine.min()), float(difference.mean()), len(found), int((small > 0).sum()),
            float(skew.mean()), float(_NORMAL * (spread + (error**2).mean() / len(error)) ** 0.5),
            float(step.mean()),
        )  # fmt: skip

    def _skew(self, start, alpha):
        """Of the update in a step of that size, pulled back to where states are free: the share of
        the Jacobian's skew part, and its standard error."""
        key = "field", alpha
        if key not in self._functions:

            def field(y, direction):
                bound = Bound(self, y._graph)
                x = bound.output(y, "begin")
                move = (bound.unroll(x, 1, alpha) - x) / alpha
                along = vjp(bound.activation(x), y, move)
                return along, vjp(along, y, direction)

            self._functions[key] = Function(field, backend="ref")
        field, n = self._functions[key], start.size
        if n <= _EXACT:
            rows = [field(start, v.reshape(start.shape))[1] for v in numpy.eye(n)]
            matrix = numpy.reshape(rows, (n, n))
            size = numpy.linalg.norm(matrix)
            return (numpy.linalg.norm(matrix - matrix.T) / (2 * size) if size else 0.0), 0.0
        rng, apart, both = numpy.random.default_rng(1), [], []
        for v in rng.normal(size=(_PROBES, *start.shape)):
            back = field(start, v)[1]
            ahead, behind = (field(start + by * v, v)[0] for by in (1e-5, -1e-5))
            forward = (ahead - behind) / 2e-5
            apart.append(((forward - back) ** 2).sum() / 4)
            both.append((forward**2 + back**2).sum() / 2)
        total = sum(both)
        share = sum(apart) / total if total else 0.0
        error = numpy.linalg.norm(numpy.array(apart) - share * numpy.array(both))
        return share**0.5, error / total / (2 * share**0.5) if share else 0.0

    def _judge(self, x, steps):
        tiny = 1e-6 * self.alpha
        move = self._apply("unroll", x, "ref", steps=1, alpha=tiny) - x
        down = self._exact()._apply("downwards", x, "ref")
        large, small = numpy.linalg.norm(move), numpy.linalg.norm(down)
        cosine = (move * down).sum() / (large * small) if large * small else float(large == small)
        pace = tiny * float(self._arrays[self._pace]) if self._pace else tiny
        difference = numpy.linalg.norm(move / pace - down) / (small or 1)
        first = self.descend(x, steps=steps, backend="ref")
        slow = {"steps": steps, "alpha": 1e-3 * self.alpha, "backend": "ref"}
        again = [self.descend(y, **slow) for y in (x, first.x)]
        return _rises(first), sum(map(_rises, again)), cosine, difference

    def output(self, name: str, x: Any, *, backend: Any = None) -> Any:
        """A further result at states x, by name; "begin": x moved to where descents begin."""
        return self._apply("output", x, backend, name=name)

    # ---- how ----

    def _exact(self) -> "Model":
        """A model whose energy has the true gradient, where the force of this has not."""
        if not self._row.exact:
            return self
        return self._copy(_settings={**self._settings, self._row.exact: False})

    def _copy(self, **changes: Any) -> "Model":
        other = copy.copy(self)
        other.__dict__.update(changes, _functions={}, _runners=Plans())
        return other

    def _size(self, alpha):
        return float(self.alpha if alpha is None else alpha)

    def _shape(self) -> tuple:
        """The shape of states that a verdict draws."""
        sizes = dict(self._sizes)  # of all tensors by letter
        for name, value in self._arrays.items():
            if value is not None and name in self._row.tensors:
                for axis, size in zip(self._row.axes(name)[::-1], value.shape[::-1]):
                    sizes.setdefault(axis, size)
        sizes.setdefault("N", 6)
        return tuple(sizes[axis] for axis in self._row.axes(self._row.state))

    def _check(self, shape):
        expected = self._shape()[-1]
        if shape[-1:] != (expected,):
            raise BasinError(f"x of shape {list(shape)}, expected [.., {expected}] for {self!r}")

    def _apply(self, what, x, backend, **options):
        self._check(numpy.shape(x))
        graph = graph_of([x, *self._arrays.values()])
        if graph is not None:
            kept = graph.__dict__.setdefault("_models", {})
            bound = kept.get(self) or kept.setdefault(self, Bound(self, graph))
            return bound.checked(getattr(bound, what), required_expression(x, graph), **options)
        key = what, backend, tuple(options.items())
        if key not in self._functions:
            function = Function(lambda x: self._apply(what, x, None, **options), backend=backend)
            self._functions[key] = function
        return self._functions[key](x)


def _rises(descent):
    """Steps that raised the energy; one that is not finite did."""
    energy = descent.energy.sum(1)
    return int((~(energy[1:] <= energy[:-1] + 1e-13 * (1 + abs(energy[:-1])))).sum())


def _like(x, energy):
    """The energy of one state without rows is one number."""
    return energy.reshape(()) if x.ndim == 1 and energy.shape == (1,) else energy


class Bound(Callbacks):
    """A model in a graph, as the library builds it."""

    def __init__(self, model, graph):
        super().__init__(graph)
        values = [self._value(n, v) for n, v in model._arrays.items() if v is not None]
        values += [self._value(n, v) for n, v in model._settings.items()]
        values += [self._value(n, v) for n, v in model._sizes.items()]
        array = ffi.new("basin_zoo_value[]", values)
        name = model._row.name.encode()
        self.zoo = lib.basin_zoo_build(graph.pointer, name, array, len(values))
        if not self.zoo:
            graph.wrap(self.zoo)  # raises
        self.energy = ffi.addressof(self.zoo, "energy")
        self.names = [text(self.energy.term[i].name) for i in range(self.energy.terms)]

    def _value(self, name, value):
        fields = {"name": self.text(name)}
        if isinstance(value, str):
            return {**fields, "choice": self.text(value)}
        if name == "edges":
            return {**fields, "data": self.keep(Borrowed(value)).pointer}
        if isinstance(value, (Expression, numpy.ndarray)):
            return {**fields, "expr": required_expression(value, self.graph)._pointer}
        return {**fields, "number": float(value)}

    def output(self, x, name):
        return self.graph.wrap(lib.basin_zoo_output(self.zoo, name.encode(), x._pointer))

    def activation(self, x):
        return self.graph.wrap(lib.basin_energy_activation(self.energy, x._pointer))

    def term(self, x, number):
        g = self.activation(x)
        return _like(x, self.graph.wrap(lib.basin_energy_term(self.energy, g._pointer, number)))

    def total(self, x):
        g = self.activation(x)
        return _like(x, self.graph.wrap(lib.basin_energy_total(self.energy, g._pointer)))

    def force(self, x):
        g = self.activation(x)
        return self.graph.wrap(lib.basin_energy_force(self.energy, g._pointer))

    def downwards(self, x):
        """-dE/dg through all that the energy has of g, keys included."""
        g = self.activation(x)
        if not self.energy.activation:
            g = self.graph.wrap(lib.basin_variable(x._pointer))
        total = self.graph.wrap(lib.basin_energy_total(self.energy, g._pointer))
        return -operations.gradient(total, g)

    def spec(self, steps, alpha, noise=0.0, recompute=False):
        fields = {"steps": steps, "alpha": alpha, "noise": noise, "recompute": recompute}
        if self.zoo.substeps:
            fields.update(substep=self.zoo.substep, substeps=self.zoo.substeps)
        return ffi.new("basin_descent_spec *", fields)

    def unroll(self, x, steps, alpha, recompute=False):
        spec = self.spec(steps, alpha, recompute=recompute)
        return self.graph.wrap(lib.basin_descend(self.energy, x._pointer, spec, ffi.NULL))

    def runner(self, backend, shape, spec, stop):
        spec = self.spec(**spec)

        def make(descent, store):
            check(
                lib.basin_descent_new, descent, store.pointer, self.energy, self.graph.pointer,
                shape_of(shape), spec, ffi.new("basin_stop *", stop),
            )  # fmt: skip

        return Runner(self, backend, make, [], [shape], lambda x: x, self.names)
