"""Descents of networks and of the zoo's models on arrays: made once for a shape, run often."""

import contextlib
import dataclasses

import numpy

from basin._engine import descent as _descent
from basin._engine.descent import Descent, Observer, warn_not_finite
from basin._engine.library import BasinError, check, ffi, lib, owned, text
from basin._engine.plan import Store, backend_of, write
from basin._engine.tensor import Borrowed, array_of


@dataclasses.dataclass(repr=False)
class NetworkDescent(Descent):
    """Where a descent of a network went: as a Descent, but x, g and trajectory are dicts by layer.

    >>> network = ham.HAM({"v": ham.Layer("identity", 2)}, {}, [])
    >>> network.descend({"v": [1.0, 2.0]}, steps=2, dt=0.5, trajectory=True).trajectory["v"]
    array([[1.  , 2.  ],
           [0.5 , 1.  ],
           [0.25, 0.5 ]], dtype=float32)
    """

    trajectory: "dict | None" = None
    """By layer, the states before each step and at the end: [steps + 1, ..]; None where they were
    not asked for."""

    def __repr__(self) -> str:
        states = ", ".join(f"{name} {list(x.shape)}" for name, x in self.x.items())
        return _descent.summary(self, states)


class Stores:
    """Stores of a network or model by backend, filled by `fill(store)` when they are made. Descents
    of one store share their tokens: one that runs inside an observer of another has its own
    store."""

    def __init__(self, fill=lambda store: None):
        self._fill, self._made, self._running = fill, {}, {}

    def __iter__(self):
        return iter(list(self._made.values()))

    def of(self, backend, depth=0):
        """The store that is `depth` descents deep."""
        backend = backend_of(backend)
        if (backend, depth) not in self._made:
            store = Store(backend)
            self._fill(store)
            self._made[backend, depth] = store
        return self._made[backend, depth]

    @contextlib.contextmanager
    def running(self, backend):
        """A store for a descent, while which the backend is locked."""
        backend = backend_of(backend)
        with backend.lock:
            depth = self._running.get(backend, 0)
            self._running[backend] = depth + 1
            try:
                yield self.of(backend, depth)
            finally:
                self._running[backend] = depth


class Runner:
    """A basin_descent, made once and run often; `make(descent, stop)` makes it, with what cannot
    change later: `fixed` has guard, accelerate and until. `names` are those of the states and
    `terms` those of the energy, which is the sum of those from `first` on. Observers see states by
    name, or the only one of a `single` model."""

    def __init__(self, callbacks, store, names, terms, fixed, make, first=0, single=False):
        self.callbacks, self.store, self._fixed = callbacks, store, fixed
        self.names, self.terms, self.first = names, terms, first
        self._batched, self._single = True, single
        descent = ffi.new("basin_descent **")
        try:
            make(descent, ffi.new("basin_stop *", fixed))
        except BasinError:
            callbacks.reraise()
            raise
        graph = callbacks.graph.pointer
        self.pointer = owned(descent[0], lib.basin_descent_free, store.pointer, graph)

    def run(self, states, spec, stop, inputs=(), lifted=False, trajectory=False, observe=None):
        """A NetworkDescent from arrays. `spec` and `stop` are fields of basin_descent_set, `inputs`
        are (expression, values). With `lifted`, states lack the batch axis that the library
        requires."""
        self._batched = not lifted
        observer = Observer(observe, self.terms, self._states, trajectory, self.first)
        spec = ffi.new("basin_descent_spec *", spec)
        stop = {**self._fixed, **stop, "observe": observer.pointer}
        check(lib.basin_descent_set, self.pointer, spec, ffi.new("basin_stop *", stop))
        for expression, values in inputs:
            write(lib.basin_descent_plan(self.pointer), expression, values)
        tensors = [Borrowed(numpy.asarray(x)[None] if lifted else x) for x in states]
        given = ffi.new("basin_tensor[]", [tensor.pointer[0] for tensor in tensors])
        result = ffi.new("basin_descent_result *")
        check(lib.basin_descent_run, self.pointer, result, given)
        try:
            observer.reraise()
            return self._read(result, observer.trajectory)
        finally:
            lib.basin_descent_result_free(result)

    def _states(self):
        names = [lib.basin_descent_tokens(self.pointer, i) for i in range(len(self.names))]
        values = [self.store.read(text(lib.basin_expr_name(name))) for name in names]
        return values[0] if self._single else self._by_name(values)

    def _by_name(self, arrays):
        return dict(zip(self.names, arrays if self._batched else [a[0] for a in arrays]))

    def _read(self, result, walked):
        shape = (result.steps + 1, result.terms, result.samples)
        energy = numpy.frombuffer(ffi.buffer(result.energy, 8 * int(numpy.prod(shape))))
        energy = energy.reshape(shape).copy()
        warn_not_finite(energy[:, self.first :].sum(axis=(1, 2)))
        dtype, places = self.store.backend.dtype, range(len(self.names))
        if walked is not None and self._single:
            walked = {self.names[0]: numpy.stack(walked)}
        elif walked is not None:
            walked = {name: numpy.stack([x[name] for x in walked]) for name in self.names}
        return NetworkDescent(
            x=self._by_name([array_of(result.x[i], dtype) for i in places]),
            g=self._by_name([array_of(result.g[i], dtype) for i in places]),
            energy=energy[:, self.first :].sum(axis=1),
            terms={name: energy[:, i] for i, name in enumerate(self.terms)},
            change=numpy.frombuffer(ffi.buffer(result.change, 8 * result.steps)).copy(),
            steps=result.steps, converged=bool(result.converged), trajectory=walked,
        )  # fmt: skip
