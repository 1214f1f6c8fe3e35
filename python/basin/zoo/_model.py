"""What the models of basin.zoo share: the library's energies over arrays or expressions."""

import dataclasses
from typing import Any, Callable, ClassVar, Optional

import numpy

from basin._engine.descent import Descent, sizes, whole
from basin._engine.library import BasinError, check, ffi, lib, text
from basin._engine.plots import table_html
from basin._engine.runner import Runner, Stores
from basin._engine.tensor import shape_of
from basin._expr import operations
from basin._expr.expression import Expression, Graph, graph_of, required_expression
from basin.functions import Function
from basin.ham._lagrangians import Callbacks

_PROJECT = dict(ffi.typeof("basin_substep").fields)["project"].type
_BY_STATE = ("x", "g", "trajectory")
TERM = dict(ffi.typeof("basin_term").fields)["build"].type


def choice(what, value, names):
    """The library's constant of that name."""
    if value not in names:
        raise BasinError(f"{what} {value!r}, expected one of {list(names)}")
    return getattr(lib, names[value])


@dataclasses.dataclass(repr=False)
class Verdict:
    """Whether a published update goes down the stated energy: see Model.verdict.

    >>> verdict = zoo.Hopfield(numpy.eye(3), beta=2.0).verdict()
    >>> verdict.answer, round(verdict.cosine, 6), verdict.difference < 1e-6
    ('always', 1.0, True)
    >>> verdict
    Verdict('always': 0 of 320 steps rise, 0 of 640 small ones; cosine 1, difference 0.00)
    """

    steps: int
    """Steps of the published size, over all draws."""
    rises: int
    """How many of them raised the energy,"""
    small_rises: int
    """and how many of twice as many that are a thousand times smaller."""
    cosine: float
    """Of the update and the energy's gradient downwards by g, for a tiny step: mean over draws."""
    min_cosine: float
    difference: float
    """|update - gradient| / |gradient| downwards, for a tiny step: mean over draws."""

    @property
    def answer(self) -> str:
        """ "always", "for small steps" or "not at all"."""
        if self.small_rises:
            return "not at all"
        return "for small steps" if self.rises else "always"

    def __repr__(self) -> str:
        return (
            f"Verdict({self.answer!r}: {self.rises} of {self.steps} steps rise, {self.small_rises} "
            f"of {2 * self.steps} small ones; cosine {self.cosine:.4g}, "
            f"difference {self.difference:.2f})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("goes down its energy", self.answer),
            ("steps of the published size that rise", f"{self.rises} of {self.steps}"),
            ("steps a thousand times smaller that rise", f"{self.small_rises} of {2 * self.steps}"),
            ("cosine of update and gradient", f"{self.cosine:.4g}, min {self.min_cosine:.4g}"),
            ("their relative difference", f"{self.difference:.3g}"),
        ]
        return table_html("Verdict", rows)


class Model:
    """A published model with its numbers, arrays or expressions. `alpha` is the published size of
    its steps."""

    paper: ClassVar[str] = ""
    _struct: ClassVar[str] = ""
    _turns: ClassVar[int] = 0  # that the library's function fills
    _project: ClassVar[Optional[Callable[..., Any]]] = None  # where a step ends, of x
    _begin: ClassVar[Optional[Callable[..., Any]]] = None  # where descents begin, of any x

    def __init__(self, arrays: dict, alpha: float, **settings: Any):
        self.alpha, self._settings = alpha, settings
        self._arrays = {
            name: v if v is None or isinstance(v, Expression) else numpy.array(v, dtype="f8")
            for name, v in arrays.items()
        }
        beta = self._arrays.get("beta")
        if isinstance(beta, numpy.ndarray) and not (numpy.isfinite(beta) & (beta != 0)).all():
            raise BasinError(f"beta {beta}, expected finite numbers other than 0")
        xi = self._arrays.get("xi")
        if xi is not None and xi.ndim < 2:
            raise BasinError(f"xi of shape {list(xi.shape)}, expected [.., memories, dim]")
        self._functions: dict = {}
        self._runners: dict = {}
        self._stores = Stores()

    def __repr__(self) -> str:
        shapes = (f"{n} {list(v.shape)}" for n, v in self._arrays.items() if v is not None)
        return f"{type(self).__name__}({', '.join(shapes)})"

    def _repr_html_(self) -> str:
        """Its paper and its arrays, for notebooks."""
        arrays = [(n, list(v.shape)) for n, v in self._arrays.items() if v is not None]
        return table_html(f"{type(self).__name__}, {self.paper}", arrays)

    def __getstate__(self):
        return {**self.__dict__, "_functions": {}, "_runners": {}, "_stores": None}

    def __setstate__(self, state):
        self.__dict__.update(state, _stores=Stores())

    # ---- what it computes ----

    def energy(self, x: Any, *, backend: Any = "cpu") -> Any:
        """The stated energy of states x: a number per row, or of all."""
        return self._apply("total", x, backend)

    def terms(self, x: Any, *, backend: Any = "cpu") -> dict[str, Any]:
        """The terms of the energy by name."""
        names = self._term_names()
        return {n: self._apply("term", x, backend, number=i) for i, n in enumerate(names)}

    def activation(self, x: Any, *, backend: Any = "cpu") -> Any:
        """g of states x."""
        return self._apply("activation", x, backend)

    def force(self, x: Any, *, backend: Any = "cpu") -> Any:
        """-dE/dg at the activations of x, as the published update takes it."""
        return self._apply("force", x, backend)

    def update(self, x: Any, *, alpha: Optional[float] = None, backend: Any = "cpu") -> Any:
        """x after one published step."""
        return self._apply("descended", x, backend, steps=1, alpha=self._size(alpha))

    def descended(
        self, x: Any, steps: int, alpha: Optional[float] = None, recompute: bool = False
    ) -> Any:
        """x after `steps` steps, through which a loss can be differentiated, by expressions that
        the model was made of as well."""
        options = {"steps": steps, "alpha": self._size(alpha), "recompute": recompute}
        return self._apply("descended", x, "cpu", **options)

    def descend(
        self, x: Any, *, steps: int = 12, alpha: Any = None, tolerance: float = 0.0,
        until: float = 0.0, guard: bool = False, accelerate: bool = False,
        trajectory: bool = False, observe: Optional[Callable[[Any], Any]] = None,
        noise: float = 0.0, seed: int = 0, backend: Any = "cpu",
    ) -> Descent:  # fmt: skip
        """Published steps from x in the C loop; returns a Descent, energies by step included. alpha
        is a number, an array of one for each step, or a function of the step; the other options
        are those of basin.energies.Energy.descend."""
        spec = {"steps": steps, **sizes(self.alpha if alpha is None else alpha, steps)}
        stop = {"tolerance": tolerance, "until": until, "seed": whole("seed", seed)}
        fixed = {"guard": guard, "accelerate": accelerate, "until": until}
        shape = numpy.shape(x)
        self._check(shape)
        with self._stores.running(backend) as store:
            key = noise, guard, accelerate, until > 0, shape, store
            if key not in self._runners:
                bound = Bound(self, Graph())
                self._runners[key] = bound.runner(store, shape, noise, fixed)
            runner = self._runners[key]
            found = runner.run([x], spec, stop, trajectory=trajectory, observe=observe)
        fields = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
        fields.update({n: v["x"] for n, v in fields.items() if n in _BY_STATE and v is not None})
        return Descent(**fields)

    def verdict(self, x: Any = None, *, draws: int = 16, steps: int = 20, seed: int = 0) -> Verdict:
        """Measures whether the published update is the gradient of the stated energy and goes down
        it, from x or from `draws` draws of N(0, 1), in double."""
        rng = numpy.random.default_rng(seed)
        found = []
        for _ in range(1 if x is not None else draws):
            start = rng.normal(size=self._shape()) if x is None else numpy.asarray(x, dtype="f8")
            found.append(self._judge(self._apply("begin", start, "ref"), steps))
        rises, small, cosine, difference = map(numpy.array, zip(*found))
        return Verdict(
            steps * len(found), int(rises.sum()), int(small.sum()), float(cosine.mean()),
            float(cosine.min()), float(difference.mean()),
        )  # fmt: skip

    def _judge(self, x, steps):
        tiny = 1e-6 * self.alpha
        move = self._apply("descended", x, "ref", steps=1, alpha=tiny) - x
        down = self._exact()._apply("downwards", x, "ref")
        large, small = numpy.linalg.norm(move), numpy.linalg.norm(down)
        cosine = (move * down).sum() / (large * small)
        difference = numpy.linalg.norm(move / self._pace(tiny) - down) / small
        first = self.descend(x, steps=steps, backend="ref")
        again = [
            self.descend(y, steps=steps, alpha=1e-3 * self.alpha, backend="ref")
            for y in (x, first.x)
        ]
        return _rises(first), sum(map(_rises, again)), cosine, difference

    # ---- what models change ----

    def _shape(self) -> tuple:
        """Of states that a verdict draws."""
        return (6, self._arrays["xi"].shape[-1])

    def _fields(self, bound: "Bound") -> dict:
        """The fields of its struct."""
        arrays = {name: bound.pointer_of(value) for name, value in self._arrays.items()}
        return {**arrays, **self._settings}

    def _exact(self) -> "Model":
        """A model whose energy has the true gradient, where the force of this has not."""
        return self

    def _pace(self, alpha: float) -> float:
        """By how much a step of size alpha multiplies the force."""
        return alpha

    def _build(self, bound: "Bound") -> None:
        struct = bound.keep(ffi.new(f"{self._struct} *", self._fields(bound)))
        bound.struct = struct
        make = getattr(lib, f"{self._struct}_energy")
        bound.energy[0] = make(struct, bound.turns) if self._turns else make(struct)

    # ---- how ----

    def _size(self, alpha):
        return float(self.alpha if alpha is None else alpha)

    def _check(self, shape):
        expected = self._shape()[-1]
        if shape[-1:] != (expected,):
            raise BasinError(f"x of shape {list(shape)}, expected [.., {expected}] for {self!r}")

    def _term_names(self):
        return Bound(self, graph_of(self._arrays.values()) or Graph()).names

    def _apply(self, what, x, backend, **options):
        self._check(numpy.shape(x))
        graph = graph_of([x, *self._arrays.values()])
        if graph is not None:
            kept = graph.__dict__.setdefault("_models", {})
            bound = kept.get(self)
            if bound is None:
                bound = kept[self] = Bound(self, graph)
            return bound.result(getattr(bound, what), required_expression(x, graph), options)
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
    """A model in a graph: the library's energy and turns."""

    def __init__(self, model, graph):
        super().__init__(graph)
        self.model, self.struct = model, None
        self.energy = ffi.new("basin_energy *")
        self.turns = ffi.new("basin_substep[]", max(model._turns, 1))
        model._build(self)
        self.reraise()
        self.count = model._turns
        if model._project is not None:
            self.turns[0].project = self.callback(
                _PROJECT, lambda _, x, __: model._project(graph.wrap(x))
            )
            self.count = max(self.count, 1)
        self.names = [text(self.energy.term[i].name) for i in range(self.energy.terms)]

    def pointer_of(self, value):
        """An array as a constant; None as NULL."""
        return ffi.NULL if value is None else required_expression(value, self.graph)._pointer

    def result(self, build, x, options):
        try:
            value = build(x, **options)
        except BasinError:
            self.reraise()
            raise
        self.reraise()
        return value

    def call(self, x, function):
        """Any function of it and x."""
        return function(self, x)

    def begin(self, x):
        return x if self.model._begin is None else self.model._begin(x)

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
        if self.count:
            fields.update(turn=self.turns, turns=self.count)
        return ffi.new("basin_descent_spec *", fields)

    def descended(self, x, steps, alpha, recompute=False):
        spec = self.spec(steps, alpha, recompute=recompute)
        return self.graph.wrap(lib.basin_descend(self.energy, x._pointer, spec, ffi.NULL))

    def runner(self, store, shape, noise, fixed):
        spec, shape = self.spec(0, 0.0, noise), shape_of(shape)

        def make(descent, stop):
            energy, graph, new = self.energy, self.graph.pointer, lib.basin_descent_new
            check(new, descent, store.pointer, energy, graph, shape, spec, stop)

        return Runner(self, store, ["x"], self.names, fixed, make, single=True)
