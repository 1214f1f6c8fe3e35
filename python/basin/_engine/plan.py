"""Backends, stores and plans: expressions compiled and run."""

import functools
import threading

import numpy

from basin._engine.cuda import check_open
from basin._engine.library import check, ffi, lib, owned, raise_error
from basin._engine.tensor import Borrowed, Slots, array_of, ready
from basin._engine.trees import LEAF, flatten, names, unflatten
from basin._expr.expression import Expression, Graph, required_expression


class Backend:
    """What computes: "ref" (double, plain loops), "cpu" (float, fast) or "cuda".

    Names do as well, wherever a backend is expected; one made here has its own threads.

    >>> backend = basin.Backend("cpu", threads=1)
    >>> basin.function(lambda x: numpy.sum(x), backend=backend)([1.0, 2.0])
    array(3., dtype=float32)
    """

    def __init__(self, name: str, threads: int = 0):
        if not isinstance(name, str):
            raise TypeError(f"backend {name!r}, expected a name: ref, cpu or cuda")
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
        return Backend, self._given  # in another process, its own


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
            check(lib.basin_store_get, tensor, self.pointer, name.encode())
        try:
            return array_of(tensor[0])
        finally:
            lib.basin_tensor_free(tensor)


class Plan:
    """Some outputs of a graph, to be computed again and again from its inputs."""

    def __init__(self, graph, inputs, outputs, store):
        self.graph, self.store = graph, store
        self._outputs = ffi.new("basin_expr[]", [e._pointer for e in outputs])
        self._shapes = [e.shape for e in outputs]
        self._in, self._out = Slots([e.shape for e in inputs]), Slots(self._shapes)
        given = [(e._pointer, self._in.pointer + i) for i, e in enumerate(inputs)]
        self._given, self._error = ffi.new("basin_feed[]", given), ffi.new("basin_error *")
        self._counts = len(given), len(outputs)
        spec = ffi.new("basin_plan_spec *", {"output": self._outputs, "outputs": len(outputs)})
        plan = ffi.new("basin_plan **")
        with store.backend.lock:
            check(lib.basin_plan_new, plan, store.pointer, spec)
        self.pointer = owned(plan[0], lib.basin_plan_free, store.pointer, graph.pointer)

    def __call__(self, values):
        """Outputs as arrays; `values` are those of the inputs, from ready(), in their order."""
        backend = self.store.backend
        results = [numpy.empty(shape, backend.dtype) for shape in self._shapes]
        with backend.lock:  # others may run this very plan
            held = self._in.put(values), self._out.put(results)
            status = lib.basin_plan_call(
                self.pointer, self._given, self._counts[0], self._outputs, self._out.pointer,
                self._counts[1], self._error,
            )  # fmt: skip
            if status:
                raise_error(status, self._error)
        del held
        return results


class Plans:
    """Plans of one Python function, kept by what is computed, where, and the shapes of arguments,
    which may be trees of arrays."""

    def __init__(self):
        self._made = {}

    def run(self, what, backend, arguments, build):
        """Results of `build`, a function of a graph and arguments as expressions, which returns a
        tree of expressions. NotImplemented where arguments are expressions already."""
        key, leaves = describe(arguments)
        if key is None:
            return NotImplemented
        key = (what, backend, *key)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = _trace(backend, arguments, build)
        plan, structure = made
        results = plan(leaves)
        return results[0] if structure is LEAF else unflatten(structure, iter(results))


def describe(arguments):
    """What a trace for these arguments depends on, and their arrays; None where expressions are
    among them."""
    key, leaves = [], []
    for name, value in arguments.items():
        if type(value) is numpy.ndarray:
            value = ready(value)
            leaves.append(value)
            key += name, value.shape
            continue
        found = []
        structure = flatten(value, found)
        if any([isinstance(leaf, Expression) for leaf in found]):
            return None, leaves
        found = [ready(leaf) for leaf in found]
        key += [name] if structure is LEAF else [name, structure]
        key += [leaf.shape for leaf in found]
        leaves += found
    return key, leaves


def declare(arguments, declare_one):
    """Arguments as trees of what declare_one(name, shape) makes of each array, and these."""
    trees, made, seen = {}, [], set()
    for name, value in arguments.items():
        leaves = []
        structure = flatten(value, leaves)
        new = []
        for called, leaf in zip(names(structure, name), leaves):
            while called in seen:  # {"a.b": .., "a": {"b": ..}}
                called += "'"
            seen.add(called)
            new.append(declare_one(called, numpy.shape(leaf)))
        made += new
        trees[name] = unflatten(structure, iter(new))
    return trees, made


def _trace(backend, arguments, build):
    graph, outputs = Graph(), []
    given, inputs = declare(arguments, graph.input)
    structure = flatten(build(graph, given), outputs)
    outputs = [required_expression(output, graph) for output in outputs]
    return Plan(graph, inputs, outputs, Store(backend)), structure


def write(plan, expression, values):
    check(lib.basin_plan_write, plan, expression._pointer, Borrowed(values).pointer)
