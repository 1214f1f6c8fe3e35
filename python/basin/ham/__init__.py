"""Hierarchical associative memories: layers of neurons and synapses that descend one energy,

    E(g, x) = sum over layers of [<x, g> - L(x)] + sum over connections of E_synapse(g, ..),

whose neurons follow tau dx/dt = -dE/dg. States x and activations g are dicts by layer, of arrays or
of expressions inside a traced function; arrays have the layer's shape, or a batch axis before it.
A program for HAMUX becomes one for Basin line by line:

>>> import numpy, basin
>>> from basin import ham
>>> layers = {"input": ham.Layer("identity", 7), "hidden": ham.Layer("softmax", 9)}
>>> synapses = {"dense": ham.linear()}
>>> network = ham.HAM(layers, synapses, [(("input", "hidden"), "dense")])
>>> x = network.init_states()
>>> g = network.activations(x)
>>> network.energy(g, x), network.dEdg(g, x)["hidden"].shape
(array(-2.1972246, dtype=float32), (9,))
>>> network.descend(x, steps=40, dt=0.5, clamp=["input"])
Descent(input [7], hidden [9], 40 steps, energy -2.1972 -> -2.1972)

Layers, synapses and descents are the C library's (basin/ham.h): built in the graph of each call, so
that E is a function of g and x apart, as HAMUX has it, while descents run in the C loop. A Python
function that is a Lagrangian or a synapse is called by C when expressions are built, never when
numbers are computed.
"""

import copy
import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, Union

import numpy

from basin._engine.descent import sizes, whole
from basin._engine.library import BasinError, check, ffi, lib, text
from basin._engine.plan import Plan, Store, backend_of
from basin._engine.plots import table_html
from basin._engine.runner import NetworkDescent, Stores
from basin._engine.tensor import ready
from basin._expr.expression import Expression, Graph, graph_of, required_expression
from basin.ham import _built
from basin.ham._built import Built
from basin.ham._lagrangians import Lagrangian, lagrangian_of
from basin.ham._synapses import (
    Synapse,
    attention,
    bias,
    conv2d,
    hidden,
    linear,
    memory,
    mixer,
    tensor,
)  # fmt: skip

__all__ = [
    "HAM", "Lagrangian", "Layer", "NetworkDescent", "Synapse", "attention", "bias", "conv2d",
    "hidden", "linear", "memory", "mixer", "tensor",
]  # fmt: skip

States = Mapping[str, Any]


class Layer:
    """A layer of neurons: a Lagrangian (a name, ham.Lagrangian or a function L(x)) and a shape.

    `tau` is the time constant; with `bias`, which is learnt, the Lagrangian is taken at x - bias. A
    parameter of the Lagrangian that is an array or basin.training.Constant(..) is also learnt.

    >>> ham.Layer(ham.Lagrangian("softmax", beta=2.0), 10)
    Layer(Lagrangian('softmax', beta=2.0), [10])
    """

    def __init__(
        self, lagrangian: Union[str, Lagrangian, Callable[..., Any]],
        shape: Union[int, Iterable[int]], *, tau: float = 1.0, bias: bool = False,
    ):  # fmt: skip
        self.lagrangian = lagrangian_of(lagrangian)
        sizes = [shape] if isinstance(shape, numbers.Integral) else shape
        self.shape = tuple(operator.index(size) for size in sizes)
        self.tau, self.bias = tau, bias

    def __repr__(self) -> str:
        return f"Layer({self.lagrangian!r}, {list(self.shape)})"


class HAM:
    """A network of layers, synapses and connections, each a pair (names of layers, synapse).

    The same synapse in several connections shares its weights. Parameters are drawn from `seed`
    unless their synapses have first values.

    >>> layers = {"v": ham.Layer("identity", 2), "h": ham.Layer("softmax", 3)}
    >>> network = ham.HAM(layers, {"vh": ham.linear()}, [(("v", "h"), "vh")], seed=1)
    >>> network
    HAM(v [2], h [3]; vh(v, h); 6 parameters)
    """

    def __init__(
        self, layers: Mapping[str, Layer], synapses: Mapping[str, Synapse],
        connections: Iterable[tuple[Sequence[str], str]], *, seed: int = 0,
    ):  # fmt: skip
        self.layers, self.synapses = dict(layers), dict(synapses)
        self.connections = [(tuple(_names(ends)), name) for ends, name in connections]
        for name, layer in self.layers.items():
            if not isinstance(layer, Layer):
                raise TypeError(f"layer {name!r} is {layer!r}, expected a basin.ham.Layer")
        self.synapses = {
            name: s if isinstance(s, Synapse) else Synapse(s) for name, s in synapses.items()
        }
        for _, name in self.connections:
            if name not in self.synapses:
                raise BasinError(
                    f"there is no synapse {name!r}, expected one of {[*self.synapses]}"
                )
        unused = set(self.synapses) - {name for _, name in self.connections}
        if unused:
            raise BasinError(f"synapse {min(unused)!r} is in no connection")
        self._forget()
        self._values = self._first(seed)

    def __repr__(self) -> str:
        layers = ", ".join(f"{name} {list(layer.shape)}" for name, layer in self.layers.items())
        count = sum(numpy.size(value) for value in self._values.values())
        return f"HAM({layers}; {', '.join(self._terms())}; {count} parameters)"

    def _repr_html_(self) -> str:
        """Layers and connections as a table, for notebooks."""
        rows = [(n, repr(a.lagrangian), str(list(a.shape))) for n, a in self.layers.items()]
        for term, (_, name) in zip(self._terms(), self.connections):
            parts = [n for n in self._values if n.rpartition(".")[0] == name]
            shapes = ", ".join(f"{n} {list(self._values[n].shape)}" for n in parts)
            rows.append((term, repr(self.synapses[name]), shapes))
        return table_html(repr(self), rows)

    def __getstate__(self):
        state = {**self.__dict__, "_values": dict(self._values)}
        return {name: v for name, v in state.items() if name not in ("_plans", "_stores")}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._forget()

    def _forget(self):
        self._plans: dict = {}
        self._stores = Stores(self._fill)

    # ---- parameters ----

    def parameters(self) -> dict[str, Any]:
        """Copies of all parameters by name, "SYNAPSE.w" for example, as arrays; set() changes
        them."""
        return {n: v if isinstance(v, Expression) else v.copy() for n, v in self._values.items()}

    def init(self, seed: int = 0) -> "HAM":
        """Draws all parameters anew but those that were given as arrays; returns itself."""
        return self.set(self._first(seed))

    def set(self, parameters: Mapping[str, Any]) -> "HAM":
        """Replaces some parameters; returns itself.

        >>> network = ham.HAM({"v": ham.Layer("identity", 2)}, {"b": ham.bias()}, [(["v"], "b")])
        >>> network.set({"b.b": [1.0, 2.0]}).parameters()
        {'b.b': array([1., 2.])}
        """
        values = self._checked(parameters)
        if graph_of(values.values()):
            raise BasinError("set() takes arrays; at() takes expressions")
        self._values.update(values)
        for store in self._stores:
            for name, value in values.items():
                store.write(name, value)
        return self

    def at(self, parameters: Mapping[str, Any]) -> "HAM":
        """The same network with other values of some parameters, which may be expressions: inside
        a loss that basin.Trainer minimises by the parameters, for example.

        >>> network = ham.HAM({"v": ham.Layer("identity", 2)}, {"b": ham.bias()}, [(["v"], "b")])
        >>> def loss(b, target):
        ...     end = network.at({"b.b": b}).descended(network.init_states(), steps=9, dt=0.5)
        ...     return numpy.sum((end["v"] - target) ** 2)
        >>> trainer = basin.Trainer(loss, {"b": numpy.zeros(2)}, rate=0.1, decay=0)
        >>> for _ in range(100):
        ...     last = trainer.step(target=[1.0, 2.0])
        >>> network.set({"b.b": trainer.parameters()["b"]}).parameters()["b.b"].round(1)
        array([1., 2.])
        """
        other = copy.copy(self)
        other._values = {**self._values, **self._checked(parameters)}
        return other

    def _checked(self, parameters):
        values = {}
        for name, value in parameters.items():
            if name not in self._values:
                raise BasinError(f"no parameter {name!r}, expected one of {list(self._values)}")
            if not isinstance(value, Expression):
                value = numpy.array(value, dtype="f8")
            expected = numpy.shape(self._values[name])
            if value.shape != expected:
                found = f"{name} of shape {list(value.shape)}"
                raise BasinError(f"{found}, expected {list(expected)}")
            values[name] = value
        return values

    def _first(self, seed):
        store = Store(backend_of("ref"))
        built = Built(self, Graph())
        params = lib.basin_ham_params(built.pointer)
        check(lib.basin_params_init, params, store.pointer, seed)
        names = [text(lib.basin_expr_name(params.param[i].state)) for i in range(params.count)]
        values = {name: store.read(name) for name in names}
        own = [n for n, synapse in self.synapses.items() if type(synapse) is Synapse]
        checked = [name for name in built.given if name.rpartition(".")[0] not in own]
        if checked:
            built.check_used(checked)
        given = {n: numpy.array(v, "f8") for n, v in built.given.items() if not _is_recipe(v)}
        return {**values, **given}

    # ---- states and energies ----

    def init_states(self, batch: Optional[int] = None) -> dict[str, numpy.ndarray]:
        """States of 0 for all layers, with a batch axis where it is given."""
        head = () if batch is None else (batch,)
        return {name: numpy.zeros(head + layer.shape) for name, layer in self.layers.items()}

    def activations(self, x: States, *, backend: Any = "cpu") -> dict[str, Any]:
        """g = dL/dx of all layers."""
        return self._evaluate(_built.activations, {"x": x}, backend)

    def layer_energies(
        self, g: Optional[States], x: States, *, backend: Any = "cpu"
    ) -> dict[str, Any]:
        """<x, g> - L(x) of each layer. g None: those of x, in closed form, which loses no digits
        where neurons saturate."""
        return self._evaluate(_built.layer_energies, {"g": g, "x": x}, backend)

    def connection_energies(self, g: States, *, backend: Any = "cpu") -> dict[str, Any]:
        """The energy of each connection, by "SYNAPSE(LAYER, LAYER)"."""
        return self._evaluate(_built.connection_energies, {"g": g}, backend)

    def energies(self, g: Optional[States], x: States, *, backend: Any = "cpu") -> dict[str, Any]:
        """Those of layers and connections."""
        return self._evaluate(_built.energies, {"g": g, "x": x}, backend)

    def energy(self, g: Optional[States], x: States, *, backend: Any = "cpu") -> Any:
        """E(g, x), their sum: a number, or one per sample."""
        return self._evaluate(_built.energy, {"g": g, "x": x}, backend)["energy"]

    def dEdg(  # noqa: N802
        self, g: States, x: States, *, return_energy: bool = False, backend: Any = "cpu"
    ) -> Any:
        """dE/dg by layer, x held; with `return_energy`, the pair (energy, dE/dg)."""
        result = self._evaluate(_built.gradients, {"g": g, "x": x}, backend)
        energy = result.pop("")
        return (energy, result) if return_energy else result

    # ---- descents ----

    def descend(
        self, x: States, *, steps: int = 12, dt: Any = 0.1, clamp: Iterable[str] = (),
        mask: Optional[States] = None, synapses_only: bool = False, tolerance: float = 0.0,
        until: float = 0.0, guard: bool = False, accelerate: bool = False,
        noise: float = 0.0, seed: int = 0, trajectory: bool = False,
        observe: Optional[Callable[[Any], Any]] = None, backend: Any = "cpu",
    ) -> NetworkDescent:  # fmt: skip
        """Lets states go down the energy: x <- x - (dt / tau) mask dE/dg, in the C library.

        dt is a number, an array of one for each step, or a function of the step. Layers in `clamp`
        stay as they are; `mask` has, by layer, 1 where neurons are free and 0 where they stay.
        `noise` makes it Langevin: sqrt(dt / tau) N(0, noise^2), of the seed, is added to free
        neurons in each step. `synapses_only` leaves the layers' own energies out. Stops early where
        no element of g moved by more than `tolerance`, or where no row moved by more than `until`
        of its length; `guard` halves steps until the energy does not rise; `accelerate` is
        Nesterov's momentum. `observe` is called before each step and at the end with an object that
        has step, x, energy, terms and change, and ends the descent by returning True; with
        `trajectory` the states before each step and at the end are kept.

        >>> layers = {"v": ham.Layer("identity", 2), "h": ham.Layer("softmax", 2)}
        >>> eye = ham.linear(w=2 * numpy.eye(2))
        >>> network = ham.HAM(layers, {"vh": eye}, [(("v", "h"), "vh")])
        >>> end = network.descend({"v": [0.5, 0.0], "h": [0.0, 0.0]}, steps=200, dt=0.2)
        >>> end.g["h"].round(2), bool((numpy.diff(end.energy[:, 0]) <= 1e-6).all())
        (array([0.98, 0.02], dtype=float32), True)
        """
        batch = self._batch({"x": x})
        masks = self._masks(clamp, mask, batch)
        if graph_of([*x.values(), *masks.values()]):
            raise BasinError("x or mask has an expression: descended() takes them")
        stop = {"tolerance": tolerance, "until": until, "seed": whole("seed", seed)}
        fixed = {"guard": guard, "accelerate": accelerate, "until": until}
        kept = tuple(None if mask is None else mask.shape for mask in masks.values())
        with self._stores.running(backend) as store:
            # With an observer or a tolerance, or few steps, the library takes steps one by one.
            single = steps < 8 or bool(trajectory or observe or tolerance)
            key = (
                "descend", batch, synapses_only, guard, accelerate, until > 0, noise, kept, store,
                single,
            )  # fmt: skip
            if key not in self._plans:
                built, count = Built(self, Graph()), 1 if batch is None else batch
                spec = {"synapses_only": synapses_only, "noise": noise, "steps": steps}
                fixed["tolerance"] = float(single)
                self._plans[key] = built.descent(store, count, masks, spec, fixed)
            runner, inputs = self._plans[key]
            written = [(expression, masks[name]) for name, expression in inputs.items()]
            spec = {"steps": steps, **sizes(dt, steps)}
            states = [x[name] for name in self.layers]
            return runner.run(states, spec, stop, written, batch is None, trajectory, observe)

    def descended(
        self, x: States, *, steps: int, dt: float, clamp: Iterable[str] = (),
        mask: Optional[States] = None, synapses_only: bool = False, recompute: bool = False,
    ) -> dict[str, Expression]:  # fmt: skip
        """The states after `steps` steps as expressions, through which a loss can be
        differentiated, by parameters of at() as well. With `recompute`, memory grows by the states
        of one step."""
        batch = self._batch({"x": x})
        masks = self._masks(clamp, mask, batch)
        given = {"x": x, "mask": {n: v for n, v in masks.items() if v is not None}}
        spec = {"steps": steps, "dt": dt, "synapses_only": synapses_only, "recompute": recompute}
        if graph_of([*x.values(), *given["mask"].values(), *self._values.values()]) is None:
            raise BasinError("x has no expression: descend() takes arrays, descended() expressions")

        def build(built, x, mask):
            return built.descended(x, {**spec, "mask": built.masks([mask.get(n) for n in masks])})

        return self._evaluate(build, given, None)

    def recall(
        self, x: States, layer: str, *, sweeps: int = 100, seed: int = 0, backend: Any = "cpu"
    ) -> dict[str, numpy.ndarray]:
        """Recall with binary neurons: states of `layer`, which are -1 or 1, are flipped one at a
        time, in an order of the seed, where that lowers the synapses' energy. Other layers stay.
        Returns the states at the end.

        >>> xi = numpy.array([[1.0, 1, 1, -1, -1, -1], [1, -1, 1, -1, 1, -1]])
        >>> network = ham.HAM({"v": ham.Layer("identity", 6)},
        ...                   {"m": ham.memory(xi=xi, hidden="identity")}, [(["v"], "m")])
        >>> network.recall({"v": [1.0, 1, -1, -1, -1, -1]}, "v")["v"]
        array([ 1.,  1.,  1., -1., -1., -1.])
        """
        batch = self._batch({"x": x})
        if layer not in self.layers:
            raise BasinError(f"no layer {layer!r}, needs one of {list(self.layers)}")
        states = {name: numpy.array(_lifted(x[name], batch), "f8") for name in self.layers}
        bits = states[layer].reshape(len(states[layer]), -1)  # the same memory
        if not numpy.isin(bits, (-1, 1)).all():
            value = bits[~numpy.isin(bits, (-1, 1))][0]
            raise BasinError(f"recall of layer {layer!r}: a state is {value:g}, needs -1 or 1")

        def energy():
            result = self._evaluate(_built.synapses_energy, {"x": states}, backend)["energy"]
            return numpy.array(result, "f8")

        lowest = energy() if self.connections else None
        order = numpy.empty(bits.shape[1], "i8")
        for sweep in range(sweeps if self.connections else 0):
            lib.basin_random_permutation(
                ffi.from_buffer("int64_t[]", order), len(order), whole("seed", seed), sweep
            )
            flips = 0
            for neuron in order:
                bits[:, neuron] *= -1
                tried = energy()
                lower = tried < lowest
                bits[~lower, neuron] *= -1
                lowest = numpy.where(lower, tried, lowest)
                flips += lower.sum()
            if not flips:
                break
        return {name: a if batch is not None else a[0] for name, a in states.items()}

    # ---- how a call is computed ----

    def _terms(self):
        return [f"{name}({', '.join(ends)})" for ends, name in self.connections]

    def _batch(self, given):
        """The batch size of states, None where they have no such axis."""
        found = {}
        for states in given.values():
            extra = [name for name in states or () if name not in self.layers]
            if extra:
                raise BasinError(f"states of {extra[0]!r}, expected those of {list(self.layers)}")
            for name in self.layers if states is not None else ():
                if name not in states:
                    raise BasinError(f"no states of layer {name!r}, expected {list(self.layers)}")
                shape, expected = numpy.shape(states[name]), self.layers[name].shape
                if shape != expected and shape[1:] != expected:
                    found_expected = f"{list(shape)}, expected {list(expected)} or [batch, ..]"
                    raise BasinError(f"states of layer {name!r} have shape {found_expected}")
                found[name] = None if shape == expected else shape[0]
        if len(set(found.values())) > 1:
            raise BasinError(f"batches differ by layer: {found} (None: no batch axis)")
        return next(iter(found.values()), None)

    def _masks(self, clamp, mask, batch):
        """By layer: None where it is free, 0 where it is clamped, or an array of 0 and 1."""
        masks = dict.fromkeys(self.layers)
        mask = {**(mask or {}), **dict.fromkeys(_names(clamp), 0.0)}
        for name, value in mask.items():
            if name not in masks:
                raise BasinError(f"mask of {name!r}, expected one of {list(masks)}")
            known = not isinstance(value, Expression)
            value = numpy.asarray(value, dtype=float) if known else value
            shape = self.layers[name].shape
            if value.shape not in ((), shape, (1 if batch is None else batch, *shape)):
                raise BasinError(f"mask of {name!r}: {list(value.shape)}, expected {list(shape)}")
            if known and not numpy.isin(value, (0, 1)).all():
                raise BasinError(f"a mask of {name!r} with other numbers than 0 and 1")
            masks[name] = None if known and not value.ndim and value else value
        return masks

    def _fill(self, store):
        if graph_of(self._values.values()):
            raise BasinError("parameters are expressions: use it only inside that function")
        for name, value in self._values.items():
            store.write(name, value)

    def _evaluate(self, build, given, backend):
        """What `build` makes of states: arrays of arrays, or expressions of expressions."""
        batch = self._batch({k: v for k, v in given.items() if k != "mask"})
        values = [v for states in given.values() if states for v in states.values()]
        graph = graph_of([*values, *self._values.values()])
        if graph is not None:
            return self._traced(build, graph, given, batch)
        shapes = tuple((k, states is None) for k, states in given.items())
        store = self._stores.of(backend)
        key = build, shapes, batch, store
        if key not in self._plans:
            self._plans[key] = _Compiled(self, build, given, batch, store)
        return self._plans[key](given)

    def _traced(self, build, graph, given, batch):
        built = graph.__dict__.setdefault("_networks", {}).get(self)
        if built is None:
            values = {name: required_expression(v, graph) for name, v in self._values.items()}
            built = graph._networks[self] = Built(self, graph, values)
        states = {}
        for kind, by_layer in given.items():
            if by_layer is None:
                states[kind] = None
                continue
            expected = {n: required_expression(by_layer[n], graph) for n in by_layer}
            lift = kind != "mask" and batch is None
            states[kind] = {n: e.reshape(1, *e.shape) if lift else e for n, e in expected.items()}
        return _lowered(built.checked(build, states), batch)


def _names(names):
    return (names,) if isinstance(names, str) else tuple(names)


def _is_recipe(value):
    return not isinstance(value, numpy.ndarray)


def _lifted(values, batch):
    return values if batch is not None else numpy.asarray(values)[None]


def _lowered(outputs, batch):
    if batch is not None:
        return outputs
    return {name: e.reshape(*e.shape[1:]) for name, e in outputs.items()}


class _Compiled:
    """A function of states, compiled for a batch size."""

    def __init__(self, network, build, given, batch, store):
        graph, head = Graph(), (1,) if batch is None else (batch,)
        layers = network.layers.items()
        self.inputs = {
            kind: {n: graph.input(f"{kind}.{n}", head + layer.shape) for n, layer in layers}
            for kind, states in given.items() if states is not None
        }  # fmt: skip
        states = {kind: self.inputs.get(kind) for kind in given}
        self.built = Built(network, graph)
        outputs = _lowered(self.built.checked(build, states), batch)
        self.names, self.batch = list(outputs), batch
        inputs = [e for states in self.inputs.values() for e in states.values()]
        self.plan = Plan(graph, inputs, list(outputs.values()), store)

    def __call__(self, given):
        kinds = self.inputs.items()
        values = [
            ready(_lifted(given[kind][name], self.batch))
            for kind, states in kinds
            for name in states
        ]
        return dict(zip(self.names, self.plan(values)))
