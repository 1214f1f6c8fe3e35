"""Training of any traced loss: optimizers with warm-up and cosine, callbacks, checkpoints."""

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, ClassVar, Optional

import numpy

from basin._engine.library import BasinError, bundle_of, check, ffi, lib, made, owned, path_of, text
from basin._engine.plan import (
    Plans,
    Store,
    backend_of,
    declare,
    describe,
    plan_bytes,
    warn_not_converged,
    warn_of_doubles,
    write,
)
from basin._engine.tensor import shape_of
from basin._engine.trees import names, split, unflatten
from basin._expr.expression import Graph, as_expression
from basin.functions import Signature

__all__ = ["Constant", "Lecun", "Normal", "Trainer", "Uniform"]


@dataclasses.dataclass(frozen=True)
class _Init:
    kind: ClassVar[str] = ""
    shape: tuple
    scale: float


class Normal(_Init):
    """First values from N(0, scale^2).

    >>> first = {"w": basin.training.Normal((100, 100), 0.1)}
    >>> trainer = basin.Trainer(lambda w, x: numpy.sum(x @ w), first, seed=1)
    >>> bool(abs(trainer.parameters()["w"].std() - 0.1) < 0.01)
    True
    """

    kind = "NORMAL"


class Uniform(_Init):
    """First values uniform in (-scale, scale).

    >>> first = {"w": basin.training.Uniform((1000,), 0.5)}
    >>> trainer = basin.Trainer(lambda w, x: numpy.sum(x * w), first)
    >>> bool((abs(trainer.parameters()["w"]) < 0.5).all())
    True
    """

    kind = "UNIFORM"


class Constant(_Init):
    """First values all equal to scale.

    >>> first = {"w": basin.training.Constant((3,), 2.0)}
    >>> basin.Trainer(lambda w, x: numpy.sum(x * w), first).parameters()["w"]
    array([2., 2., 2.], dtype=float32)
    """

    kind = "CONSTANT"


class Lecun(_Init):
    """First values from N(0, 1 / fan_in), cut at two deviations; `scale` is fan_in.

    >>> first = {"w": basin.training.Lecun((100, 50), 100)}
    >>> trainer = basin.Trainer(lambda w, x: numpy.sum(x @ w), first)
    >>> bool(abs(trainer.parameters()["w"]).max() < 0.25)
    True
    """

    kind = "LECUN"


def is_true(answer) -> bool:
    """Whether a callback ends a run: True, of Python or NumPy, and nothing else."""
    return isinstance(answer, (bool, numpy.bool_)) and bool(answer)


class _Params:
    """Parameters declared on a graph, freed with it."""

    def __init__(self, graph, parameters):
        self.pointer = owned(ffi.new("basin_params *"), lib.basin_params_free, graph.pointer)
        lib.basin_params_begin(self.pointer, graph.pointer)
        self.states = {}
        for name, first in parameters.items():
            init = first if isinstance(first, _Init) else Constant(numpy.shape(first), 0.0)
            recipe = {"kind": getattr(lib, "BASIN_INIT_" + init.kind), "scale": init.scale}
            recipe = ffi.new("basin_init *", recipe)[0]
            state = lib.basin_param_add(
                self.pointer, b"", name.encode(), shape_of(init.shape), recipe
            )
            self.states[name] = graph.wrap(state)


class Trainer:
    """Trains the parameters of a loss, a Python function of parameters and of a batch's arrays.

    >>> def loss(w, x, y):
    ...     return numpy.mean((x @ w - y) ** 2)
    >>> x = numpy.random.default_rng(0).normal(size=(64, 3))
    >>> y = x @ numpy.array([[1.0], [2.0], [3.0]])
    >>> trainer = basin.Trainer(loss, {"w": basin.training.Normal((3, 1), 0.1)}, rate=0.1)
    >>> for _ in range(200):
    ...     last = trainer.step(x=x, y=y)
    >>> trainer.parameters()["w"].ravel().round(2)
    array([1., 2., 3.], dtype=float32)
    """

    def __init__(
        self, loss: Callable[..., Any], parameters: Mapping[str, Any], *, rate: float = 1e-3,
        steps: int = 0, warmup: int = 0, rate_first: float = 0.0,
        rate_last: Optional[float] = None, decay: float = 0.0, beta1: float = 0.9,
        beta2: float = 0.99, epsilon: float = 1e-8, clip: float = 0.0, seed: int = 0,
        optimizer: str = "adamw", backend: Any = None,
    ):  # fmt: skip
        """`parameters` maps names to first arrays, to Normal, Uniform, Constant or Lecun, or to
        trees of them: dicts, lists, tuples. The rate rises over `warmup` steps and falls as a
        cosine until step `steps`; with `steps` 0 it stays. `optimizer` is "adamw", "lion" or "sgd",
        whose momentum is beta1. Weights decay by `decay` times the rate
        per step, and gradients are clipped to the global norm `clip` where that is not 0."""
        self._kwargs = {name: v for name, v in locals().items() if name not in _GIVEN}
        for name in ("rate", "rate_first", "rate_last", "decay", "epsilon", "clip", "steps",
                     "warmup"):  # fmt: skip
            number = self._kwargs[name]
            if number is not None and not 0 <= number < math.inf:
                raise BasinError(f"{name} {number}, expected a finite number of 0 or more")
        self._loss, self._declared, self._structures = loss, {}, {}
        for name, tree in parameters.items():
            self._structures[name], leaves = split(tree, (_Init,))
            for path, leaf in zip(names(self._structures[name], name), leaves):
                if path in self._declared:
                    raise BasinError(f"two parameters are called {path!r}: rename one")
                self._declared[path] = leaf
        self._store = Store(backend_of(backend))
        self._given = dict(parameters)
        if optimizer not in _OPTIMIZERS:
            raise BasinError(f"optimizer {optimizer!r}, expected one of {', '.join(_OPTIMIZERS)}")
        self._plans, self._steps = Plans(), 0
        last = (0.0 if steps else rate) if rate_last is None else rate_last
        first = rate_first if warmup else rate
        self._schedule = {
            "warmup": warmup, "total": max(steps, 1), "first": first, "peak": rate, "last": last,
        }  # fmt: skip
        self._optimizer = {
            "size": ffi.sizeof("basin_optimizer_config"), "beta1": beta1, "beta2": beta2,
            "epsilon": epsilon, "weight_decay": decay, "clip": clip,
            "kind": getattr(lib, f"BASIN_OPTIMIZER_{optimizer.upper()}"),
        }  # fmt: skip
        self._signature = Signature(loss)
        self._check_names(parameters)
        self._initialise(seed)

    def _check_names(self, given):
        known = self._signature.names
        unknown = [name for name in given if name not in known]
        if unknown and not self._signature.options:
            raise BasinError(f"the loss has no argument {unknown[0]!r}, expected some of {known}")

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return self._steps

    def step(self, **batch: Any) -> float:
        """One step on a batch, the other arguments of the loss; returns the loss before it."""
        value = ffi.new("double *")
        with self._lock():
            plan, arrays = self._plan(batch)
            for expression, values in zip(plan.inputs, arrays):
                write(lib.basin_trainer_plan(plan.trainer), expression, values)
            lib.basin_trainer_set_step(plan.trainer, self._steps)
            check(lib.basin_trainer_step, value, plan.trainer)
            self._steps += 1
            if plan.graph.fixed_points:
                warn_not_converged(self._store)
        return value[0]

    def fit(
        self,
        batches: Iterable[Mapping[str, Any]],
        callbacks: Sequence[Callable[["Trainer", float], Any]] = (),
    ) -> list[float]:
        """A step on each of `batches`, which are dicts. A callback is called with the trainer and
        the loss after each step; one that returns True ends it. Ctrl-C also ends it, and what was
        learnt stays. Returns the losses."""
        losses = []
        with contextlib.suppress(KeyboardInterrupt):
            for batch in batches:
                if not isinstance(batch, Mapping):
                    found = type(batch).__name__
                    raise BasinError(f"a batch is {found}, expected a dict of the loss's arguments")
                losses.append(self.step(**batch))
                if any([is_true(callback(self, losses[-1])) for callback in callbacks]):
                    break
        return losses

    def parameters(self) -> dict[str, Any]:
        """The parameters by name: arrays, in trees such as they were given."""
        return self._trees(self._store.read(name) for name in self._declared)

    def _trees(self, leaves):
        """Trees of parameters by argument; `leaves` are in the order in which they are declared."""
        leaves = iter(leaves)
        return {name: unflatten(s, leaves) for name, s in self._structures.items()}

    def save(self, path: Any) -> None:
        """Everything needed to go on, moments included; written aside, then renamed."""
        parts = [ffi.new("char[]", s.encode()) for s in ("optimizer", self._kwargs["optimizer"])]
        meta = ffi.new("basin_meta *", parts)
        with self._lock():
            file = path_of(path), self._store.pointer, self._steps, meta, 1
            check(lib.basin_checkpoint_write, *file)

    def load(self, path: Any) -> None:
        """Goes on from what save() wrote."""
        bundle, step = bundle_of(path), ffi.new("int64_t *")
        saved, own = text(lib.basin_bundle_meta(bundle, b"optimizer")), self._kwargs["optimizer"]
        if saved not in (None, own):
            raise BasinError(f"{path}: saved by optimizer {saved!r}, expected this one's, {own!r}")
        with self._lock():
            # What the store lacks so far: moments, which a plan's first step would make.
            for i in range(lib.basin_bundle_count(bundle)):
                name = lib.basin_bundle_name(bundle, i)
                if text(name).rpartition(".")[0] in self._declared and not len(self._plans):
                    tensor = lib.basin_bundle_at(bundle, i)
                    check(lib.basin_store_write, self._store.pointer, name, tensor)
            check(lib.basin_checkpoint_read, step, self._store.pointer, bundle)
            self._steps = step[0]

    def __getstate__(self):
        names = (lib.basin_store_name(self._store.pointer, i) for i in itertools.count())
        with self._lock():
            states = {text(n): self._store.read(text(n)) for n in itertools.takewhile(bool, names)}
        return self._loss, self._given, self._kwargs, states, self._steps

    def __setstate__(self, state):
        loss, given, kwargs, states, steps = state
        self.__init__(loss, given, **kwargs)
        for name, values in states.items():
            self._store.write(name, values)
        self._steps = steps

    def _lock(self):
        return self._store.backend.lock

    def __repr__(self):
        names, count = ", ".join(self._declared), self._steps
        return f"<basin trainer of {names} after {count} step{'s' * (count != 1)}>"

    def _initialise(self, seed):
        graph = Graph()
        check(
            lib.basin_params_init, _Params(graph, self._declared).pointer, self._store.pointer, seed
        )
        for name, first in self._declared.items():
            if not isinstance(first, _Init):
                describe({name: first}, self._store.backend.dtype)  # which checks its range
                self._store.write(name, first)

    def _plan(self, batch):
        """The plan for a batch of such shapes, and its arrays."""
        batch = dict(sorted(batch.items()))
        key, arrays = describe(batch, self._store.backend.dtype)
        if key is None:
            raise BasinError("a batch of expressions, expected arrays")

        def make():
            self._check_batch(batch)
            warn_of_doubles(self._kwargs["backend"], batch)
            return _TrainingPlan(self, batch)

        return self._plans.find(tuple(key), make), arrays

    def _check_batch(self, batch):
        self._check_names(batch)
        for name in self._signature.names:
            if name in batch and name in self._structures:
                raise BasinError(f"a batch with {name!r}, which is a parameter that is learnt")
            given = name in batch or name in self._structures
            if not given and self._signature.needs(name):
                raise BasinError(f"a batch without {name!r}, which the loss needs")


class _TrainingPlan:
    """The loss traced for one shape of batch."""

    def __init__(self, owner, batch):
        self.graph = graph = Graph()
        params = _Params(graph, owner._declared)
        given, self.inputs = declare(batch, graph.input)
        states = owner._trees(params.states.values())
        loss = as_expression(owner._loss(**states, **given), graph)
        if loss is None or loss.shape != ():
            raise BasinError(f"the loss is {loss!r}, expected one number")
        spec = {"optimizer": owner._optimizer, "schedule": owner._schedule}
        needs = owner._store.pointer, params.pointer
        self.trainer = made(
            lib.basin_trainer_new, lib.basin_trainer_free, *needs, loss._pointer,
            ffi.new("basin_trainer_spec *", spec), needs=needs,
        )  # fmt: skip
        self.bytes = plan_bytes(lib.basin_trainer_plan(self.trainer))


_OPTIMIZERS = ("adamw", "lion", "sgd")
_GIVEN = ("self", "loss", "parameters")  # of Trainer() beside its keywords
