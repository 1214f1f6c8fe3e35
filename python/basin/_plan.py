"""Backends, stores and plans: expressions compiled and run."""

import functools
import threading

import numpy

from basin._cuda import check_open
from basin._library import check, ffi, lib, owned
from basin._tensor import Borrowed, array_of


class Backend:
    """What computes: "ref" (double, plain loops), "cpu" (float, fast) or "cuda".

    Names do as well, wherever a backend is wanted; one made here has threads of its own.

    >>> import basin, numpy
    >>> backend = basin.Backend("cpu", threads=1)
    >>> basin.function(lambda x: numpy.sum(x), backend=backend)([1.0, 2.0])
    array(3., dtype=float32)
    """

    def __init__(self, name: str, threads: int = 0):
        if not isinstance(name, str):
            raise TypeError(f"backend {name!r}, wanted a name: ref, cpu or cuda")
        pointer = ffi.new("basin_backend **")
        check_open(lib.basin_backend_open, pointer, name, threads)
        self.pointer = owned(pointer[0], lib.basin_backend_close)
        self.name = name
        self.lock = threading.RLock()  # a backend belongs to one thread at a time
        self.dtype = numpy.dtype("f8" if name == "ref" else "f4")
        self._given = name, threads

    def __repr__(self) -> str:
        return f"Backend({self.name!r}, threads={self._given[1]})"

    def __deepcopy__(self, _) -> "Backend":
        """Itself, so that clones of an estimator compute with the same threads."""
        return self

    def __reduce__(self):
        return Backend, self._given  # in another process, one of its own


@functools.cache
def _opened(name, threads):
    return Backend(name, threads)


def backend_of(backend, threads=0):
    """The backend itself, or the one of that name, opened once a process."""
    return backend if isinstance(backend, Backend) else _opened(backend, threads)


class Store:
    """States by name: parameters, moments."""

    def __init__(self, backend):
        self.backend = backend
        pointer = ffi.new("basin_store **")
        check(lib.basin_store_new, pointer, backend.pointer)
        self.pointer = owned(pointer[0], lib.basin_store_free, backend.pointer)

    def write(self, name, values):
        with self.backend.lock:
            check(lib.basin_store_write, self.pointer, name.encode(), Borrowed(values).pointer)

    def read(self, name):
        tensor = ffi.new("basin_tensor *")
        with self.backend.lock:
            check(lib.basin_store_read, self.pointer, name.encode(), tensor)
        try:
            return array_of(tensor[0])
        finally:
            lib.basin_tensor_free(tensor)


class Plan:
    """Some outputs of a graph, to be computed again and again."""

    def __init__(self, graph, outputs, store):
        self.graph, self.store, self.outputs = graph, store, outputs
        pointers = ffi.new("basin_expr[]", [e._pointer for e in outputs])
        spec = ffi.new("basin_plan_spec *", {"output": pointers, "outputs": len(outputs)})
        plan = ffi.new("basin_plan **")
        with store.backend.lock:
            check(lib.basin_plan_new, plan, store.pointer, spec)
        self.pointer = owned(plan[0], lib.basin_plan_free, store.pointer, graph.pointer)

    def __call__(self, inputs):
        """Outputs as arrays; `inputs` are (expression, values)."""
        with self.store.backend.lock:  # others may run this very plan
            for expression, values in inputs:
                write(self.pointer, expression, values)
            check(lib.basin_plan_run, self.pointer)
            return [self._read(e) for e in self.outputs]

    def _read(self, expression):
        result = Borrowed(numpy.empty(expression.shape, self.store.backend.dtype))
        check(lib.basin_plan_read, self.pointer, expression._pointer, result.pointer)
        return result.array


def write(plan, expression, values):
    check(lib.basin_plan_write, plan, expression._pointer, Borrowed(values).pointer)


__all__ = ["Backend", "Plan", "Store", "backend_of", "write"]
