"""Functions of arrays of fixed shapes, their derivatives, and plans of them on memory that others
own: what basin.torch and basin.jax share.

A program knows how it is traced. Its derivatives are programs as well, so that there is one of
every order: Basin's reverse mode differentiates the trace. A text names a program for inputs of any
shape: the number of its source, names of the arguments (with their structures, where they are trees
of arrays), and how it was derived, as in "7:x,xi|v1.3|j1|b1.64". Plans are made when they first
run.
"""

import functools
import inspect
import itertools
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy

from basin._engine.library import BasinError, check, ffi, lib
from basin._engine.plan import Backend, Plan, Plans, Store, backend_of, warn_not_converged
from basin._engine.trees import LEAF, as_text, flatten, from_text, imported, unflatten
from basin._engine.trees import names as leaf_names
from basin._expr import operations
from basin._expr.batched import Batched, NotBatchedError, each, pointer_of, size_of
from basin._expr.expression import Expression, Graph, required_expression
from basin.energies import Energy
from basin.functions import Function

_NO_OPTIONS = ("self", "x", "args", "backend", "parameters")
OUTPUTS = ("value", "force", "descend", "fixed_point")
_OPTIONS = {
    output: [n for n in inspect.signature(method).parameters if n not in _NO_OPTIONS]
    for output, method in (("descend", Energy.unroll), ("fixed_point", Energy.fixed_point))
}


def bits(mask: int, count: int) -> "list[int]":
    """Which of `count` bits the mask has."""
    return [i for i in range(count) if mask >> i & 1]


def mask(flags: "Sequence[Any]") -> int:
    """The mask of those that are true."""
    return sum(1 << i for i, flag in enumerate(flags) if flag)


# ---- programs ----


class Program:
    """A function of arrays of these shapes; `outputs` are the shapes of its results."""

    def __init__(self, name: str, names: Any, shapes: Any, build: Any, outputs: Any = None):
        # Names of inputs are different: two of one name would be the same input.
        self.name, self.names, self.shapes, self._build = name, names, shapes, build
        self.structure: Any = LEAF  # of its results; those of derivatives are a list
        self._derived: dict[str, Program] = {}
        self._plans, self._resident = Plans(), {}
        self._lock = threading.Lock()
        self.outputs = tuple(e.shape for e in self.trace()[2]) if outputs is None else outputs

    def build(self, graph: Graph, inputs: "list[Expression]") -> "list[Expression]":
        """Its outputs as expressions of the inputs."""
        return self._build(graph, inputs)

    def trace(self) -> "tuple[Graph, list[Expression], list[Expression]]":
        """A graph of it: inputs and outputs."""
        try:
            return self._trace()
        except BasinError as failure:
            if "third derivatives" not in str(failure):
                raise
        with operations.plain_attention():  # which can be differentiated further
            return self._trace()

    def _trace(self):
        graph = Graph()
        inputs = [graph.input(name, shape) for name, shape in zip(self.names, self.shapes)]
        return graph, inputs, self.build(graph, inputs)

    def derived(self, how: str) -> "Program":
        """Its derivative. "v1.3": gradients with respect to inputs 0 and 1 (mask 3), of a
        cotangent of output 0 (mask 1); inputs are those of this program, then cotangents. "j3": how
        outputs move along tangents of inputs 0 and 1, which follow the inputs. "b3.64": inputs 0
        and 1 and all outputs have an axis of 64 in front."""
        if how[0] == "b":  # of which there may be one for every size: find() keeps the last ones
            return _batch(self, how)
        if how not in self._derived:
            self._derived[how] = (_reverse if how[0] == "v" else _forward)(self, how)
        return self._derived[how]

    def running(self, backend: str, device: int = 0, threads: int = 0) -> "Running":
        """What computes it; `backend` is a name, `device` the calling thread's on cuda."""
        key = backend, device, threads
        with self._lock:
            if backend != "cuda":
                return self._plans.find(key, lambda: Running(self, _backend(*key)))
            if key not in self._resident:  # what runs on a device may be captured there
                self._resident[key] = Running(self, _backend(*key))
            return self._resident[key]


def _pointers(expressions):
    return ffi.new("basin_expr[]", [pointer_of(e) for e in expressions])


def _differentiated(inputs, places):
    """Inputs by some of which is differentiated: in a batch each entry has its own."""
    size, inputs = size_of(inputs), list(inputs)
    for i in places if size is not None else ():
        inputs[i] = each(size, [inputs[i]])[0]
    return size, inputs


def _reverse(base, how):
    given, requested = map(int, how[1:].split("."))
    count, chosen = len(base.shapes), bits(given, len(base.outputs))

    def build(graph, inputs):
        _, inputs = _differentiated(inputs, bits(requested, count))
        outputs, along = (
            base.build(graph, inputs[:count]),
            [inputs[i] for i in bits(requested, count)],
        )
        given = zip(chosen, inputs[count:])
        parts = [operations.pulled_back("vjp", outputs[i], along, c) for i, c in given]
        return [functools.reduce(lambda a, b: a + b, part) for part in zip(*parts)]

    names = (*base.names, *(f"cotangent {count + i}" for i in range(len(chosen))))
    shapes = (*base.shapes, *(base.outputs[i] for i in chosen))
    results = tuple(base.shapes[i] for i in bits(requested, count))
    return Program(f"{base.name}|{how}", names, shapes, build, results)


def _forward(base, how):
    count, moved = len(base.shapes), bits(int(how[1:]), len(base.shapes))

    def build(graph, inputs):
        size, inputs = _differentiated(inputs, [*moved, *range(count, len(inputs))])
        x, t = _pointers([inputs[i] for i in moved]), _pointers(inputs[count:])
        outputs = base.build(graph, inputs[:count])
        outputs = outputs if size is None else each(size, outputs)
        return [y._again(lib.basin_jvp(pointer_of(y), x, t, len(moved))) for y in outputs]

    names = (*base.names, *(f"tangent {count + i}" for i in range(len(moved))))
    shapes = (*base.shapes, *(base.shapes[i] for i in moved))
    return Program(f"{base.name}|{how}", names, shapes, build, base.outputs)


def _batch(base, how):
    which, size = map(int, how[1:].split("."))
    chosen = bits(which, len(base.shapes))

    def build(graph, inputs):
        if size_of(inputs) is not None:
            raise NotBatchedError("a batch of batches")
        inputs = [Batched(graph, x._pointer) if i in chosen else x for i, x in enumerate(inputs)]
        return [graph.wrap(y._whole) for y in each(size, base.build(graph, inputs))]

    shapes = tuple((size, *s) if i in chosen else s for i, s in enumerate(base.shapes))
    made = Program(f"{base.name}|{how}", base.names, shapes, build)
    if made.outputs != tuple((size, *shape) for shape in base.outputs):
        raise NotBatchedError(f"{base.name} of a batch has other shapes")
    return made


@functools.lru_cache(maxsize=512)
def batched(key: str, shapes: Any, which: int, size: int) -> "str | None":
    """The name of a program for `size` entries at once, the inputs of the mask `which` with an axis
    in front; None where an operation has no rule for that, and entries are computed one by one."""
    name = f"{key}|b{which}.{size}"
    try:
        find(name, tuple((size, *s) if which >> i & 1 else s for i, s in enumerate(shapes)))
    except Exception:  # noqa: BLE001, entries report errors of the function itself
        return None
    return name


# ---- where programs come from ----

_numbers = itertools.count(1)
_sources: "weakref.WeakValueDictionary[int, Source]" = weakref.WeakValueDictionary()


class Source:
    """A quantity of an energy, or a function: a program for arguments of any shapes."""

    def __init__(self, what: Any, output: str, options: "dict[str, Any]"):
        self.what, self.output, self.options = what, output, options
        self._rest, self._options = what._signature.rest, what._signature.options
        stars = self._rest, self._options
        self.names = [name for name in what._signature.names if name not in stars]
        self._needed = [name for name in self.names if what._signature.needs(name)]
        self.is_energy = isinstance(what, Energy)
        if self.is_energy:
            first = self.names[0]
            self.names, self._needed = [first, *what._parameters], [first, *what._needed]
        self.others: Any = None  # as flatten() has it: containers of a framework's
        self.number = next(_numbers)
        self._prefix = f"{self.number}:"  # a text: torch.compile traces numbers
        _sources[self.number] = self

    def __repr__(self) -> str:
        return f"<{self.output} of {self.what!r}>"

    def bind(self, args: Any, parameters: "dict[str, Any]") -> "dict[str, Any]":
        """The arguments that were given, by name, in their order; an energy's first is also x."""
        names = self.names
        if len(args) > len(names) and self._rest is None:
            raise BasinError(f"{len(args)} arguments of {self!r}, expected {', '.join(names)}")
        given = dict(zip(names, args))
        if self.is_energy and names[0] not in given and "x" in parameters:
            parameters = {names[0] if name == "x" else name: v for name, v in parameters.items()}
        for name in parameters:
            if name in given:
                raise BasinError(f"{name} of {self!r} was given twice")
            if name not in names and self._options is None:
                raise BasinError(f"{self!r} has no parameter {name!r}")
        given = {**given, **parameters}
        for name in self._needed:
            if name not in given:
                raise BasinError(f"{self!r} needs {name}, which was not given")
        bound = {name: given[name] for name in names if name in given}
        if len(args) > len(names):
            bound[self._rest] = tuple(args[len(names) :])
        more = {name: value for name, value in given.items() if name not in names}
        if more:
            bound.update(more if self.is_energy else {self._options: more})
        return bound

    def flat(self, args: Any, parameters: "dict[str, Any]", leaf: Any, others: Any = None) -> Any:
        """The name of the program for these arguments, names of their arrays, and these; `leaf` and
        `others` as flatten() has them."""
        given, leaves, structures = self.bind(args, parameters), [], {}
        for name, value in given.items():
            structures[name] = flatten(value, leaves, leaf, others)
        text = as_text(structures)
        called = _called(structures) if text.startswith("(") else list(structures)
        return self._prefix + text, called, leaves

    def program(self, arguments: str, shapes: Any) -> Program:
        """For arguments by names and structures, and the shapes of their arrays."""
        structures, found = from_text(arguments), [LEAF]
        tokens = range(len(leaf_names(next(iter(structures.values()), LEAF), "x")))

        def build(graph, inputs):
            if self.is_energy:  # whose tokens move
                inputs = _differentiated(inputs, tokens)[1]
            leaves, made = iter(inputs), []
            given = {name: unflatten(tree, leaves) for name, tree in structures.items()}
            found[0] = flatten(self._value(given), made, (), self.others)
            return [required_expression(value, graph) for value in made]

        name = f"{self.output} of {self.what.__name__}"
        program = Program(name, _called(structures), shapes, build)
        if not program.outputs:
            raise BasinError(f"{self.what.__name__} returned no array")
        program.structure = found[0]
        return program

    def _value(self, given):
        if not self.is_energy:
            return self.what._signature.call(self.what._function, given)
        x = given.pop(self.names[0])
        method = {"descend": "unroll", "value": "__call__"}.get(self.output, self.output)
        return getattr(self.what, method)(x, **self.options, **given)


def _called(structures):
    """What the arrays are called, each by another name: w, net.w or net[0]."""
    called: list = []
    for name, structure in structures.items():
        for leaf in leaf_names(structure, name):
            called.append(leaf + "'" * called.count(leaf))
    return called


@functools.lru_cache(maxsize=128)
def find(key: str, shapes: "tuple[tuple[int, ...], ...]") -> Program:
    """The program of that name for inputs of these shapes."""
    base, derived, how = key.rpartition("|")
    if not derived:
        number, _, names = key.partition(":")
        return _sources[int(number)].program(names, shapes)
    which = int(how[1:].partition(".")[0])
    if how[0] == "b":
        shapes = tuple(s[1:] if which >> i & 1 else s for i, s in enumerate(shapes))
    else:  # tangents or cotangents come last
        shapes = shapes[: len(shapes) - len(bits(which, len(shapes)))]
    return find(base, shapes).derived(how)


@functools.lru_cache(maxsize=64)
def _source(what, output, options):
    return Source(what, output, dict(options))


def source(what: Any, output: str = "value", **options: Any) -> Source:
    """The source of an energy, a function of Basin's, or a Python function, which is an energy."""
    if not isinstance(what, (Energy, Function)):
        if not callable(what):
            raise BasinError(f"{what!r}, expected an energy or a function of Basin's")
        what = Energy(what)
    if output not in OUTPUTS:
        raise BasinError(f"output {output!r}, expected one of {', '.join(OUTPUTS)}")
    if isinstance(what, Function) and output != "value":
        raise BasinError(f"output {output!r} of the function {what.__name__}, expected 'value'")
    if output not in _OPTIONS and options:
        raise BasinError(f"{next(iter(options))} with output {output!r}, expected 'descend'")
    for name in options:
        if name not in _OPTIONS[output]:
            raise BasinError(f"the option {name!r}, expected one of {', '.join(_OPTIONS[output])}")
    if output == "descend":
        options = {"steps": 12, "alpha": 0.1, **options}
    options = {name: _plain(value) for name, value in options.items()}
    try:
        return _source(what, output, tuple(sorted(options.items())))
    except TypeError:  # a mask, for example, is not hashed
        return Source(what, output, options)


def _plain(value):
    """A list of numbers, such as alphas by step, as a tuple."""
    values = numpy.asarray(value) if isinstance(value, (list, tuple, numpy.ndarray)) else None
    return value if values is None or values.ndim != 1 else tuple(values.tolist())


# ---- energies by where they are imported from ----


def address(what: Any) -> "str | None":
    """module:name where the energy can be imported from there, else None."""
    name = getattr(what._function, "__qualname__", "").removesuffix("._function")
    module = getattr(what._function, "__module__", None)
    where = f"{module}:{name}"
    return where if module and imported(where) is what else None


def restored(kind: Any, what: Any, output: str, options: "dict[str, Any]") -> Any:
    """A quantity that was pickled with the address of its energy, or with the energy."""
    found = imported(what) if isinstance(what, str) else what
    if found is None:
        raise BasinError(f"{what} is not there, but a pickled quantity of it needs it")
    return kind(found, output, **options)


class Quantity:
    """Value, force or descent of an energy as a function of arrays of a framework, which computes
    in __call__."""

    def __init__(self, energy: Any, output: str, **options: Any) -> None:
        self._source = source(energy, output, **options)
        self.__name__ = f"{output}_of_{self._source.what.__name__}"

    def __repr__(self) -> str:
        return repr(self._source)

    def __reduce__(self):
        # Old protocols cannot name a decorated function.
        known = self._source
        what = address(known.what) or known.what
        return restored, (type(self), what, known.output, known.options)

    def __deepcopy__(self, _) -> "Quantity":
        return self


# ---- running ----


class Running:
    """The plan of a program on one backend."""

    def __init__(self, program: Program, backend: Backend):
        graph, inputs, outputs = program.trace()
        self.plan, self.backend = Plan(graph, inputs, outputs, Store(backend)), backend
        self._kept, self.bytes = [_pointers(inputs), _pointers(outputs)], self.plan.bytes
        self._from = ffi.new("uintptr_t[]", max(len(inputs), 1))
        self._to = ffi.new("uintptr_t[]", max(len(outputs), 1))
        self.pointer = ffi.new(
            "basin_eager_plan *",
            {
                "plan": self.plan.pointer, "input": self._kept[0], "inputs": len(inputs),
                "output": self._kept[1], "outputs": len(outputs),
                "from": ffi.cast("void **", self._from), "to": ffi.cast("void **", self._to),
            },
        )  # fmt: skip

    def run(self, sources: "list[int]", results: "list[int]", stream: int = 0) -> None:
        """On arrays at these addresses, dense and of the backend's type."""
        with self.backend.lock:
            self._from[0 : len(sources)] = sources
            self._to[0 : len(results)] = results
            self.pointer.stream = ffi.cast("void *", stream)
            check(lib.basin_eager_run_plan, self.pointer)
            if self.plan.graph.fixed_points:
                warn_not_converged(self.plan.store)


@functools.cache
def _backend(name, device, threads):
    return Backend(name) if name == "cuda" else backend_of(name, threads)
