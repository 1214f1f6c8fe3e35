"""Descents on arrays: made once for a shape, then run often, with an observer if given."""

import dataclasses

import numpy

from basin._descent import Descent, say_where_it_left
from basin._library import BasinError, check, ffi, lib, owned
from basin._plan import write
from basin._tensor import Borrowed, array_of


@dataclasses.dataclass(repr=False)
class NetworkDescent(Descent):
    """Where a descent of a network went: as a Descent, but x, g and trajectory are dicts by layer.

    >>> from basin import ham
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
        first, last = self.energy.mean(1)[[0, -1]]
        what = "energy" if self.energy.shape[1] == 1 else "mean energy"
        end = ", converged" if self.converged else ""
        return (
            f"Descent({states}, {self.steps} step{'s' * (self.steps != 1)}, "
            f"{what} {first:.5g} -> {last:.5g}{end})"
        )


class Moment:
    """A descent between two steps, as an observer sees it."""

    def __init__(self, runner, now):
        self._runner = runner
        self.step, self.change = now.step, now.change
        flat = numpy.frombuffer(ffi.buffer(now.energy, 8 * now.terms * now.samples)).copy()
        self._energy = flat.reshape(now.terms, now.samples)

    @property
    def x(self):
        """The states by layer, copied when they are asked for."""
        return self._runner.states()

    @property
    def energy(self):
        """[samples]"""
        return self._energy[self._runner.first :].sum(0)

    @property
    def terms(self):
        """[samples] by the name of the term."""
        return dict(zip(self._runner.terms, self._energy))


class Runner:
    """A basin_descent, made once and run often; `make(descent, stop)` makes it. `names` are those
    of the states and `terms` those of the energy, which is the sum of those from `first` on;
    `watched`: with an observer."""

    def __init__(self, callbacks, store, names, terms, stop, watched, make, first=0):
        self.callbacks, self.store = callbacks, store
        self.names, self.terms, self.first = names, terms, first
        self._trajectory = self._observe = self._failure = None
        if watched:
            stop = {**stop, "observe": callbacks.keep(ffi.callback("basin_observer", self._watch))}
        descent = ffi.new("basin_descent **")
        try:
            make(descent, ffi.new("basin_stop *", stop))
        except BasinError:
            callbacks.reraise()
            raise
        graph = callbacks.graph.pointer
        self.pointer = owned(descent[0], lib.basin_descent_free, store.pointer, graph)

    def states(self):
        found = {}
        for i, name in enumerate(self.names):
            state = lib.basin_expr_name(lib.basin_descent_tokens(self.pointer, i))
            values = self.store.read(ffi.string(state).decode())
            found[name] = values if self._batched else values[0]
        return found

    def _watch(self, _, now, error):
        try:
            moment = Moment(self, now)
            if self._trajectory is not None:
                self._trajectory.append(moment.x)
            if self._observe is not None and self._observe(moment) is True:
                now.stop[0] = True
            return lib.BASIN_OK
        except BaseException as failure:  # noqa: BLE001
            self._failure = failure
            return lib.basin_fail(error, lib.BASIN_BAD_VALUE, b"the observer raised")

    def run(self, states, inputs=(), lifted=False, trajectory=False, observe=None):
        """Descends from arrays; `inputs` are (expression, values). With `lifted`, states lack the
        batch axis that the library wants."""
        self._batched, self._failure = not lifted, None
        self._trajectory, self._observe = [] if trajectory else None, observe
        for expression, values in inputs:
            write(lib.basin_descent_plan(self.pointer), expression, values)
        tensors = [Borrowed(x if self._batched else x[None]) for x in states]
        given = ffi.new("basin_tensor[]", [tensor.pointer[0] for tensor in tensors])
        result = ffi.new("basin_descent_result *")
        try:
            check(lib.basin_descent_run, self.pointer, result, given)
            return self._read(result)
        except BasinError:
            if self._failure is not None:
                raise self._failure from None
            raise
        finally:
            lib.basin_descent_result_free(result)

    def _read(self, result):
        shape = (result.steps + 1, result.terms, result.samples)
        energy = numpy.frombuffer(ffi.buffer(result.energy, 8 * int(numpy.prod(shape))))
        energy = energy.reshape(shape).copy()
        say_where_it_left(energy[:, self.first :].sum(axis=(1, 2)))
        walked = None
        if self._trajectory is not None:
            walked = {n: numpy.stack([x[n] for x in self._trajectory]) for n in self.names}
        return NetworkDescent(
            x=self._arrays(result.x),
            g=self._arrays(result.g),
            energy=energy[:, self.first :].sum(axis=1),
            terms={name: energy[:, i] for i, name in enumerate(self.terms)},
            change=numpy.frombuffer(ffi.buffer(result.change, 8 * result.steps)).copy(),
            steps=result.steps,
            converged=bool(result.converged),
            trajectory=walked,
        )

    def _arrays(self, tensors):
        dtype = self.store.backend.dtype
        arrays = [array_of(tensors[i]).astype(dtype) for i in range(len(self.names))]
        return dict(zip(self.names, arrays if self._batched else [a[0] for a in arrays]))
