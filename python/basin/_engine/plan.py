"""Backends, stores and plans: expressions compiled and run."""

import collections
import contextlib
import functools
import itertools
import threading

import numpy

from basin._engine.cuda import check_open
from basin._engine.library import BasinError, check, ffi, lib, made, owned, raise_error, warn
from basin._engine.tensor import Borrowed, Slots, array_of, ready
from basin._engine.trees import LEAF, names, split, unflatten
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
    """The backend itself, or the one of that name ("cpu" by default), opened once per process."""
    return backend if isinstance(backend, Backend) else _opened(backend or "cpu", threads)


class Store:
    """States by name: parameters, moments."""

    def __init__(self, backend):
        self.backend = backend
        new, free, needs = lib.basin_store_new, lib.basin_store_free, backend.pointer
        self.pointer = made(new, free, needs, needs=(needs,))

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

    structure, found = LEAF, None

    def __init__(self, graph, inputs, outputs, store, fixed=0):
        """The last `fixed` inputs are copied only where the array is another or could change."""
        self.graph, self.store = graph, store
        self._fixed, self._last = len(inputs) - fixed, [None] * fixed
        self._outputs = ffi.new("basin_expr[]", [e._pointer for e in outputs])
        self._shapes = [e.shape for e in outputs]
        self._in, self._out = Slots([e.shape for e in inputs]), Slots(self._shapes)
        given = [(e._pointer, self._in.pointer + i) for i, e in enumerate(inputs)]
        self._given, self._error = ffi.new("basin_feed[]", given), ffi.new("basin_error *")
        self._counts = len(given), len(outputs)
        spec = ffi.new("basin_plan_spec *", {"output": self._outputs, "outputs": len(outputs)})
        new, needs = lib.basin_plan_new, (store.pointer, graph.pointer)
        with store.backend.lock:
            self.pointer = made(new, lib.basin_plan_free, store.pointer, spec, needs=needs)
        self.bytes = plan_bytes(self.pointer)

    def __call__(self, values):
        """Outputs as arrays; `values` are those of the inputs, from ready(), in their order."""
        backend = self.store.backend
        results = [numpy.empty(shape, backend.dtype) for shape in self._shapes]
        with backend.lock:  # others may run this very plan
            held, given = (self._in.put(values), self._out.put(results)), values[self._fixed :]
            count = self._fixed if given and are_same(given, self._last) else self._counts[0]
            status = lib.basin_plan_call(
                self.pointer, self._given, count, self._outputs, self._out.pointer,
                self._counts[1], self._error,
            )  # fmt: skip
            if status:
                raise_error(status, self._error)
            self._last = given
            if self.graph.fixed_points:
                self.found = warn_not_converged(self.store)
        del held
        return results

    def tree(self, values):
        """The same as a tree of arrays."""
        results = self(values)
        return results[0] if self.structure is LEAF else unflatten(self.structure, iter(results))


def are_same(given, last):
    """Whether these are the very arrays of the last time, and nobody can have changed them."""
    return all([a is b and not a.flags.writeable for a, b in zip(given, last)])


def plan_bytes(plan):
    """What a plan takes, with what Python and the library keep of its expressions."""
    stats = ffi.new("basin_plan_stats *", {"size": ffi.sizeof("basin_plan_stats")})
    lib.basin_plan_get_stats(stats, plan)
    own = 100_000 + 3_000 * (stats.nodes + stats.calls)
    return stats.arena_bytes + stats.input_bytes + stats.state_bytes + own


def warn_not_converged(store):
    """Warns of fixed points, and of their gradients, that were not found since the last call, by
    any plan of a store; returns the counts."""
    found = ffi.new("basin_convergence *", {"size": ffi.sizeof("basin_convergence")})
    lib.basin_store_take_convergence(found, store.pointer)
    if found.not_converged:
        warn(
            f"{found.not_converged} of {found.points} fixed points did not converge: tokens still "
            f"moved by {found.change:.2g} of their length after {found.max_steps} steps; more "
            f"steps, or another alpha",
            RuntimeWarning,
        )
    if found.unsolved:
        warn(
            f"{found.unsolved} of {found.solutions} gradients of fixed points are off by up to "
            f"{found.residual:.2g}: more products",
            RuntimeWarning,
        )
    return found


# ---- what is kept ----

_numbers = itertools.count()
_recent: "collections.OrderedDict[int, tuple]" = collections.OrderedDict()  # the last used last
_kept = {"bytes": 0, "limit": 128 << 20}
_ALWAYS = 6  # of which as many stay, however large
_DEEPEST = 8  # descents inside observers of one another that are kept
_lock = threading.RLock()


def set_plan_cache(limit: int) -> int:
    """How many bytes the plans may take that functions, energies and networks keep by the shapes of
    their arguments, 128 MiB at first; beyond that the least recently used go, but for the last
    six. Returns what it was.

    >>> before = basin.functions.set_plan_cache(64 << 20)
    >>> basin.functions.set_plan_cache(before) >> 20
    64
    """
    if not isinstance(limit, int) or limit < 0:
        raise BasinError(f"a plan cache of {limit!r} bytes, expected a whole number of 0 or more")
    before, _kept["limit"] = _kept["limit"], limit
    _evict()
    return before


def _evict():
    with _lock:
        while _kept["bytes"] > _kept["limit"] and len(_recent) > _ALWAYS:
            number, (made, key, size) = _recent.popitem(last=False)
            made.pop(key, None)
            _kept["bytes"] -= size


class Plans:
    """Plans of one Python function, kept by what is computed, where, and the shapes of arguments,
    which may be trees of arrays."""

    def __init__(self):
        self._made = {}

    def __del__(self):
        for number, _ in list(self._made.values()):
            found = _recent.pop(number, None)
            _kept["bytes"] -= found[2] if found else 0

    def __len__(self):
        return len(self._made)

    def put(self, key, thing, size):
        with _lock:
            number = next(_numbers)
            self.take(key)
            self._made[key] = number, thing
            _recent[number] = self._made, key, size
            _kept["bytes"] += size
        if _kept["bytes"] > _kept["limit"]:
            _evict()

    def take(self, key):
        """What was put there, which is then not kept any more; None without it."""
        with _lock:
            number, thing = self._made.pop(key, (None, None))
            if number is not None:
                _kept["bytes"] -= _recent.pop(number)[2]
        return thing

    def borrow(self, key):
        """What was given back there: one that nobody uses meanwhile, or None."""
        free = ((key, i) for i in range(_DEEPEST) if (key, i) in self._made)
        return self.take(next(free, None))

    def give_back(self, key, thing):
        free = (i for i in range(_DEEPEST) if (key, i) not in self._made)
        self.put((key, next(free, 0)), thing, thing.bytes)

    def find(self, key, make):
        """What was put there; at first what make() returns, with its `bytes`."""
        number, thing = self._made.get(key, (None, None))
        if number is None:
            thing = make()
            self.put(key, thing, thing.bytes)
        else:
            with contextlib.suppress(KeyError):  # another thread dropped it
                _recent.move_to_end(number)
        return thing

    def run(self, what, backend, arguments, build, fixed=""):
        """Results of `build`, a function of a graph and arguments as expressions, which returns a
        tree of expressions. NotImplemented where arguments are expressions already. Arrays of the
        argument `fixed`, the last one, seldom change."""
        plan, leaves = self.plan(what, backend, arguments, build, fixed)
        return NotImplemented if plan is None else plan.tree(leaves)

    def plan(self, what, backend, arguments, build, fixed=""):
        """The same before it is run, and the arrays; None where arguments are expressions."""
        chosen = backend_of(backend)
        key, leaves = describe(arguments, chosen.dtype)
        if key is None:
            return None, leaves

        def make():
            warn_of_doubles(backend, {k: v for k, v in arguments.items() if k != fixed})
            return _trace(chosen, arguments, build, fixed)

        return self.find((what, chosen, *key), make), leaves


_DOUBLE, _SINGLE = numpy.dtype("f8"), numpy.dtype("f4")
_LARGEST = float(numpy.finfo("f4").max)


def check_range(name, values):
    """Refuses doubles that would be infinite in the backend's type."""
    size = max(values.max(initial=0.0), -values.min(initial=0.0))
    if not size <= _LARGEST:
        size = numpy.abs(values[numpy.isfinite(values)]).max(initial=0.0)
        if size > _LARGEST:
            raise BasinError(
                f"{name} has {size:g}, which float32 cannot hold: backend='ref' computes in float64"
            )


_warned: list = []


def warn_of_doubles(backend, arguments):
    """Says once that arrays of doubles are computed in float32, where no backend was chosen."""
    leaves = split(list(arguments.values()))[1]
    if backend is None and not _warned and any(getattr(a, "dtype", 0) == _DOUBLE for a in leaves):
        _warned.append(True)
        warn(
            "arrays of float64 are computed in float32: backend='ref' computes in float64, and "
            "backend='cpu' accepts it without this line, which comes once"
        )


def describe(arguments, dtype=None):
    """What a trace for these arguments depends on, and their arrays; None where expressions are
    among them. An array of doubles that `dtype` cannot hold is an error."""
    key, leaves = [], []
    for name, value in arguments.items():
        if type(value) is numpy.ndarray:
            value = ready(value)
            if value.dtype == _DOUBLE and dtype == _SINGLE:
                check_range(name, value)
            leaves.append(value)
            key += name, value.shape
            continue
        structure, found = split(value)
        if any([isinstance(leaf, Expression) for leaf in found]):
            return None, leaves
        found = [ready(leaf) for leaf in found]
        for leaf in found if dtype == _SINGLE else ():
            if leaf.dtype == _DOUBLE:
                check_range(name, leaf)
        key += [name] if structure is LEAF else [name, structure]
        key += [leaf.shape for leaf in found]
        leaves += found
    return key, leaves


def declare(arguments, declare_one):
    """Arguments as trees of what declare_one(name, shape) makes of each array, and these."""
    trees, made, seen = {}, [], set()
    for name, value in arguments.items():
        structure, leaves = split(value)
        new = []
        for called, leaf in zip(names(structure, name), leaves):
            while called in seen:  # {"a.b": .., "a": {"b": ..}}
                called += "'"
            seen.add(called)
            new.append(declare_one(called, numpy.shape(leaf)))
        made += new
        trees[name] = unflatten(structure, iter(new))
    return trees, made


def _trace(backend, arguments, build, fixed):
    graph = Graph()
    given, inputs = declare(arguments, graph.input)
    structure, outputs = split(build(graph, given))
    outputs = [required_expression(output, graph) for output in outputs]
    plan = Plan(graph, inputs, outputs, Store(backend), len(split(arguments.get(fixed))[1]))
    plan.structure = structure
    return plan


def write(plan, expression, values):
    check(lib.basin_plan_write, plan, expression._pointer, Borrowed(values).pointer)
