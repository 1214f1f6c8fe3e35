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
>>> network.descend(x, steps=40, alpha=0.5, clamp=["input"])
Descent(input [7], hidden [9], 40 steps, energy -2.1972 -> -2.1972)

Layers, synapses and descents are the C library's (basin/ham.h): built in the graph of each call, so
that E is a function of g and x apart, as HAMUX has it, while descents run in the C loop. A Python
function that is a Lagrangian or a synapse is called by C when expressions are built, never when
numbers are computed.
"""

import copy
import copyreg
import functools
import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional, Union

import numpy

from basin._engine.descent import Descent, descend, listed, whole
from basin._engine.library import BasinError, bundle_of, check, ffi, lib, path_of, text
from basin._engine.plan import Store, backend_of, declare, describe, warn_of_doubles
from basin._engine.plots import table_html
from basin._engine.tensor import ready, shape_of
from basin._engine.trees import mapped
from basin._expr.expression import Expression, Graph, graph_of, required_expression
from basin.energies import Energy, Packed, _leaves
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
    "HAM", "Lagrangian", "Layer", "Synapse", "attention", "bias", "conv2d",
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
        if not 0 < tau < numpy.inf:
            raise BasinError(f"tau {tau}, expected a finite number above 0")

    def __repr__(self) -> str:
        return f"Layer({self.lagrangian!r}, {list(self.shape)})"


class HAM(Energy):
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
        self.layers = dict(layers)
        self.connections = [(tuple(listed(ends)), name) for ends, name in connections]
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
        super().__init__(self._energy)
        self._values = self._first(seed)

    def __set_name__(self, owner, name):
        """A network is the same for all objects of a class."""

    def __get__(self, instance, owner=None):
        return self

    def _energy(self, g, x, params):
        return _built.energies(self._built(_leaves(g)[0]._graph, params), g, x)

    def __repr__(self) -> str:
        layers = ", ".join(f"{name} {list(layer.shape)}" for name, layer in self.layers.items())
        count = sum(map(numpy.size, _leaves(self._values)))
        return f"HAM({layers}; {', '.join(self._terms())}; {count} parameters)"

    def _repr_html_(self) -> str:
        """Layers and connections as a table, for notebooks."""
        rows = [(n, repr(a.lagrangian), str(list(a.shape))) for n, a in self.layers.items()]
        for term, (_, name) in zip(self._terms(), self.connections):
            parts = self._values.get(name, {}).items()
            shapes = ", ".join(f"{name}.{n} {list(value.shape)}" for n, value in parts)
            rows.append((term, repr(self.synapses[name]), shapes))
        return table_html(repr(self), rows)

    def __reduce_ex__(self, _):
        state = self.layers, self.synapses, self.connections, self._values
        return copyreg.__newobj__, (type(self),), state

    def __setstate__(self, state):
        self.layers, self.synapses, self.connections, values = state
        super().__init__(self._energy)
        self._values = mapped(_own, values)

    # ---- parameters ----

    @property
    def params(self) -> dict[str, Any]:
        """All parameters, params["SYNAPSE"]["w"] for example: arrays that only set() replaces."""
        return ReadOnly({owner: ReadOnly(parts) for owner, parts in self._values.items()})

    def init(self, seed: int = 0) -> "HAM":
        """Draws all parameters anew but those that were given as arrays; returns itself."""
        self._values = self._first(seed)
        return self

    def set(self, params: Mapping[str, Any]) -> "HAM":
        """Replaces some parameters; returns itself.

        >>> network = ham.HAM({"v": ham.Layer("identity", 2)}, {"b": ham.bias()}, [(["v"], "b")])
        >>> network.set({"b": {"b": [1.0, 2.0]}}).params
        {'b': {'b': array([1., 2.])}}
        """
        values = self._checked(params)
        if graph_of(_leaves(values)):
            raise BasinError("set() takes arrays; at() takes expressions")
        self._values = values
        return self

    def at(self, params: Mapping[str, Any]) -> "HAM":
        """The same network with other values of some parameters, which may be expressions: inside
        a loss that basin.Trainer minimises by the parameters, for example.

        >>> network = ham.HAM({"v": ham.Layer("identity", 2)}, {"b": ham.bias()}, [(["v"], "b")])
        >>> def loss(b, target):
        ...     at = network.at({"b": {"b": b}})
        ...     end = at.unroll(network.init_states(), steps=9, alpha=0.5)
        ...     return numpy.sum((end["v"] - target) ** 2)
        >>> trainer = basin.Trainer(loss, {"b": numpy.zeros(2)}, rate=0.1, decay=0)
        >>> for _ in range(100):
        ...     last = trainer.step(target=[1.0, 2.0])
        >>> network.set({"b": trainer.parameters()}).params["b"]["b"].round(1)
        array([1., 2.])
        """
        other = copy.copy(self)
        other._values = self._checked(params)
        return other

    def save(self, path: Any) -> None:
        """Writes the parameters as safetensors, under names such as "SYNAPSE.w"."""
        store = Store(backend_of("ref"))
        for name, value in _flat(self._values).items():
            store.write(name, value)
        check(lib.basin_checkpoint_write, path_of(path), store.pointer, 0, ffi.NULL, 0)

    def load(self, path: Any) -> "HAM":
        """Takes the parameters that save() wrote of a network of the same form; returns itself."""
        store, step = Store(backend_of("ref")), ffi.new("int64_t *")
        for name, value in _flat(self._values).items():
            store.write(name, value)
        check(lib.basin_checkpoint_read, step, store.pointer, bundle_of(path))
        return self.set(_nested({name: store.read(name) for name in _flat(self._values)}))

    def _checked(self, params):
        """All parameters, with those that are given in their place."""
        known, given = _flat(self._values), _flat(params)
        for name, value in given.items():
            if name not in known:
                raise BasinError(f"no parameter {name!r}, expected one of {list(known)}")
            value = value if isinstance(value, Expression) else _own(value)
            expected = numpy.shape(known[name])
            if value.shape != expected:
                found = f"{name} of shape {list(value.shape)}"
                raise BasinError(f"{found}, expected {list(expected)}")
            known[name] = value
        return _nested(known)

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
        given = {n: v for n, v in built.given.items() if isinstance(v, numpy.ndarray)}
        return _nested({n: _own(v) for n, v in {**values, **given}.items()})

    # ---- states and energies ----

    def init_states(self, batch: Optional[int] = None, dtype: Any = "f4") -> dict[str, Any]:
        """States of 0 for all layers, with a batch axis where it is given."""
        head = () if batch is None else (batch,)
        return {n: numpy.zeros(head + layer.shape, dtype) for n, layer in self.layers.items()}

    def activations(self, x: States, *, backend: Any = None) -> dict[str, Any]:
        """g = dL/dx of all layers."""
        return self._evaluate(_built.activations, {"x": x}, backend)

    def layer_energies(
        self, g: Optional[States], x: States, *, backend: Any = None
    ) -> dict[str, Any]:
        """<x, g> - L(x) of each layer. g None: those of x, exact where neurons saturate."""
        return self._evaluate(_built.layer_energies, {"g": g, "x": x}, backend)

    def connection_energies(self, g: States, *, backend: Any = None) -> dict[str, Any]:
        """The energy of each connection, by "SYNAPSE(LAYER, LAYER)"."""
        return self._evaluate(_built.connection_energies, {"g": g}, backend)

    def energies(self, g: Optional[States], x: States, *, backend: Any = None) -> dict[str, Any]:
        """Those of layers and connections."""
        return self._evaluate(_built.energies, {"g": g, "x": x}, backend)

    def energy(self, g: Optional[States], x: States, *, backend: Any = None) -> Any:
        """E(g, x), their sum: a number, or one per sample."""
        return self._evaluate(_built.energy, {"g": g, "x": x}, backend)["energy"]

    def dEdg(  # noqa: N802
        self, g: States, x: States, *, return_energy: bool = False, backend: Any = None
    ) -> Any:
        """dE/dg by layer, x held; with `return_energy`, the pair (energy, dE/dg)."""
        result = self._evaluate(_built.gradients, {"g": g, "x": x}, backend)
        energy = result.pop("")
        return (energy, result) if return_energy else result

    def __call__(self, x: States, /, *, backend: Any = None, **params: Any) -> Any:
        """The energy at the activations of x, without loss of digits where neurons saturate."""
        at = self.at(params["params"]) if params else self
        return at.energy(None, x, backend=backend)

    # ---- as an energy ----

    _fixed_name = "params"

    def _check(self, parameters):
        parameters.setdefault("params", self._values)
        super()._check(parameters)

    def _lead(self, x):
        name, shape = next((name, numpy.shape(e)) for name, e in x.items())
        return shape[: len(shape) - len(self.layers[name].shape)]

    def activation(self, x: Any, parameters: Any = {}) -> Any:  # noqa: B006
        """g of states x, as expressions."""
        batch = self._batch({"x": x})
        built = self._built(_leaves(x)[0]._graph, parameters.get("params", self._values))
        states = {name: _lifted(x[name], batch) for name in self.layers}
        return _lowered(built.checked(_built.activations, built, x=states), batch)

    def terms(self, g: Any, x: Any = None, /, **parameters: Any) -> dict[str, Any]:
        """Its terms by name at activations g of states x, as expressions."""
        batch = self._batch({"g": g, "x": x})
        built = self._built(_leaves(g)[0]._graph, parameters.get("params", self._values))
        states = {k: {n: _lifted(s[n], batch) for n in self.layers} for k, s in zip("gx", (g, x))}
        return _lowered(built.checked(_built.energies, built, **states), batch)

    def total(self, terms: dict, x: Any) -> Expression:
        """The sum of terms."""
        return functools.reduce(lambda a, b: a + b, terms.values())

    # ---- descents ----

    def descend(
        self, x: States, *, steps: int = 12, alpha: Any = 0.1, clamp: Iterable[str] = (),
        mask: Optional[States] = None, synapses_only: bool = False, tolerance: float = 0.0,
        until: float = 0.0, guard: bool = False, accelerate: bool = False,
        noise: float = 0.0, seed: int = 0, trajectory: bool = False,
        observe: Optional[Callable[[Any], Any]] = None, backend: Any = None,
    ) -> Descent:  # fmt: skip
        """Lets states go down the energy: x <- x - (alpha / tau) mask dE/dg, in the C library.

        Layers in `clamp` stay as they are; `mask` has, by layer, 1 where neurons are free and 0
        where they stay. `noise` makes it Langevin: sqrt(alpha / tau) N(0, noise^2), of the seed, is
        added to free neurons in each step. `synapses_only` leaves the layers' own energies out. All
        else is as in basin.energies.Energy.descend.

        >>> layers = {"v": ham.Layer("identity", 2), "h": ham.Layer("softmax", 2)}
        >>> eye = ham.linear(w=2 * numpy.eye(2))
        >>> network = ham.HAM(layers, {"vh": eye}, [(("v", "h"), "vh")])
        >>> end = network.descend({"v": [0.5, 0.0], "h": [0.0, 0.0]}, steps=200, alpha=0.2)
        >>> end.g["h"].round(2), bool((numpy.diff(end.energy[:, 0]) <= 1e-6).all())
        (array([0.98, 0.02], dtype=float32), True)
        """
        asked, batch = locals(), self._batch({"x": x})
        masks = self._masks_of(clamp, mask, batch)
        given = {"x": {name: x[name] for name in self.layers}, "params": self._values}
        chosen = backend_of(backend)
        key, values = describe(given, chosen.dtype)
        if key is None or graph_of(masks.values()):
            raise BasinError("x, mask or a parameter is an expression: unroll() takes them")
        states, values = values[: len(self.layers)], values[len(self.layers) :]
        arrays = {n: m for n, m in masks.items() if m is not None and m.ndim}
        values += [ready(m) for m in arrays.values()]

        def make(spec, stop):
            warn_of_doubles(backend, {"x": x})
            spec["synapses_only"] = synapses_only
            return self._network(chosen, batch, masks, arrays, spec, stop)

        kept = tuple(None if mask is None else mask.shape for mask in masks.values())
        key = *key, batch, synapses_only, kept
        return descend(self._runners, chosen, key, make, states, values, alpha, asked)

    def _network(self, backend, batch, masks, arrays, spec, stop):
        graph = Graph()

        def state(name, shape):
            return graph.wrap(lib.basin_state(graph.pointer, name.encode(), shape_of(shape)))

        params, values = declare(self._values, state)
        given = {n: state(f"mask {n}", mask.shape) for n, mask in arrays.items()}
        zero = graph.constant(0.0)
        masks = [given.get(n, None if m is None else zero) for n, m in masks.items()]
        values += given.values()
        built = Built(self, graph, _flat(params))
        names = list(self.layers)
        return built.runner(
            backend, batch, masks, values, spec, stop, lambda *leaves: dict(zip(names, leaves))
        )

    def unroll(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: States, *, steps: int, alpha: float, clamp: Iterable[str] = (),
        mask: Optional[States] = None, synapses_only: bool = False, recompute: bool = False,
    ) -> dict[str, Expression]:  # fmt: skip
        """The states after `steps` steps as expressions, through which a loss can be
        differentiated, by parameters of at() as well. `recompute`: memory grows by states only."""
        masks = self._masks_of(clamp, mask, self._batch({"x": x}))
        given = {"x": x, "mask": {n: v for n, v in masks.items() if v is not None}}
        spec = {"steps": steps, "dt": alpha, "synapses_only": synapses_only, "recompute": recompute}
        if graph_of(_leaves([given, self._values])) is None:
            raise BasinError("nothing is an expression: descend() takes arrays only")

        def build(built, x, mask):
            return built.unroll(x, {**spec, "mask": built.masks([mask.get(n) for n in masks])})

        return self._evaluate(build, given, None)

    def fixed_point(self, x: States, /, *, clamp: Iterable[str] = (), **options: Any) -> Any:
        """Where dE/dg = 0, with the layers of `clamp` as they are: basin.energies.Energy's.

        >>> layers = {"v": ham.Layer("identity", 2), "h": ham.Layer("tanh", 2)}
        >>> network = ham.HAM(layers, {"vh": ham.linear(w=2 * numpy.eye(2))}, [(("v", "h"), "vh")])
        >>> network.fixed_point({"v": [0.5, 0.0], "h": [0.0, 0.0]}, clamp="v").x["h"].round(4)
        array([1., 0.], dtype=float32)
        """
        with_clamp = copy.copy(self)
        with_clamp._clamped, with_clamp._plans = listed(clamp), self._plans
        self._masks_of(clamp, None, None)  # which checks the names
        return Energy.fixed_point(with_clamp, x, **options)

    def _fixed(self, graph, x, spec, held, parameters):
        x = {name: required_expression(x[name], graph) for name in self.layers}
        return {**x, **self._settled(graph, Settled(self, x, parameters), spec)}

    def recall(
        self, x: States, layer: str, *, sweeps: int = 100, seed: int = 0, backend: Any = None
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
        states = {
            name: numpy.array(_lifted(numpy.asarray(x[name]), batch), "f8") for name in self.layers
        }
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

    def _masks_of(self, clamp, mask, batch):
        """By layer: None where it is free, 0 where it is clamped, or an array of 0 and 1."""
        masks = dict.fromkeys(self.layers)
        mask = {**(mask or {}), **dict.fromkeys(listed(clamp), 0.0)}
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

    def _evaluate(self, build, given, backend):
        """What `build` makes of states: arrays of arrays, or expressions of expressions."""
        batch = self._batch({k: v for k, v in given.items() if k != "mask"})

        def whole(graph, given):
            given = dict(given)
            built, states = self._built(graph, given.pop("params")), {}
            for kind, by_layer in given.items():
                lift = None if batch is None and kind != "mask" else 1
                by_layer = by_layer and {n: _lifted(e, lift) for n, e in by_layer.items()}
                states[kind] = by_layer
            return _lowered(built.checked(build, built, **states), batch)

        given = {k: v and {n: v[n] for n in self.layers if n in v} for k, v in given.items()}
        arguments = {**given, "params": self._values}
        result = self._plans.run(build, backend, arguments, whole, "params")
        return self._expression(arguments, whole, None) if result is NotImplemented else result

    def _built(self, graph, params):
        """The network in a graph."""
        values = {n: required_expression(v, graph) for n, v in _flat(params).items()}
        networks = graph.__dict__.setdefault("_networks", {})
        key = (self, *(e._pointer for e in values.values()))
        if key not in networks:
            networks[key] = Built(self, graph, values)
        return networks[key]


class ReadOnly(dict):
    """A dict that shows what a network has; its copies and pickles are plain dicts."""

    def __setitem__(self, *_, **__):
        raise BasinError("params are read-only: network.set({'SYNAPSE': {'w': ..}}) replaces them")

    update: Any = __setitem__

    def __reduce__(self):
        return dict, ({**self},)


class Settled(Packed):
    """The states of a network's free layers as one row: they are x = bias - dE_synapses/dg."""

    def __init__(self, network, x, parameters):
        free = {n: e for n, e in x.items() if n not in network._clamped}
        super().__init__(network, free)
        self._lead = network._lead(x)
        self._all, self._parameters, self._network = x, parameters, network

    def activation(self, row, parameters):
        g = self._network.activation({**self._all, **self.states(row)}, self._parameters)
        return self.row({name: g[name] for name in self._x})

    def terms(self, g, row, **_):
        network, batch = self._network, self._lead[0] if self._lead else None
        built = network._built(g._graph, self._parameters["params"])
        held = network.activation(self._all, self._parameters)
        given = {**held, **self.states(g)}
        given = {n: _lifted(e, batch) for n, e in given.items()}
        terms = _lowered(built.checked(_built.connection_energies, built, g=given), batch)
        start = self.row({n: e - built.bias(n) for n, e in self._x.items()})
        return {**terms, "": (g * start).sum(axis=-1)}

    def total(self, terms, row):
        return self._network.total(terms, row)


def _own(value):
    """A copy of an array, which nobody can change; expressions as they are."""
    if isinstance(value, Expression):
        return value
    value = numpy.array(value, "f8")
    value.flags.writeable = False
    return value


def _flat(params):
    """Parameters by names such as "vh.w"."""
    found = {}
    for owner, parts in params.items():
        if not isinstance(parts, Mapping):
            raise BasinError(f"parameters {owner!r}, expected a dict: {{'SYNAPSE': {{'w': ..}}}}")
        found.update({f"{owner}.{part}": value for part, value in parts.items()})
    return found


def _nested(values):
    found: dict = {}
    for name, value in values.items():
        owner, _, part = name.rpartition(".")
        found.setdefault(owner, {})[part] = value
    return found


def _lifted(values, batch):
    return values if batch is not None else values.reshape(1, *values.shape)


def _lowered(outputs, batch):
    if batch is not None:
        return outputs
    return {name: e.reshape(*e.shape[1:]) for name, e in outputs.items()}
