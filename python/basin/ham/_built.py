"""Networks of basin.ham inside a graph: the library's basin_ham, and energies as expressions."""

from basin._engine.descent import Callbacks, Runner
from basin._engine.library import BasinError, check, ffi, lib, owned, text
from basin._engine.tensor import shape_of
from basin._expr import operations
from basin._expr.expression import apply
from basin.ham._lagrangians import fields_of
from basin.ham._synapses import is_learnt, recipe_of


class Built(Callbacks):
    """A network in a graph as the library's basin_ham; parameters are states of the store, or
    `values`, expressions by name."""

    def __init__(self, network, graph, values=None):
        super().__init__(graph)
        self.network, self.given = network, {}
        self.pointer = owned(lib.basin_ham_new(graph.pointer), lib.basin_ham_free, graph.pointer)
        for name, value in (values or {}).items():
            lib.basin_ham_bind(self.pointer, name.encode(), value._pointer)
        self.lagrangians = {n: self._add_layer(n, layer) for n, layer in network.layers.items()}
        self.synapses = {n: self._add_synapse(n, s) for n, s in network.synapses.items()}
        for ends, name in network.connections:
            ends = ", ".join(ends).encode()
            self._check(lib.basin_ham_connect(self.pointer, name.encode(), ends))
        count = len(network.layers) + len(network.connections)
        self.terms = [text(lib.basin_ham_term_name(self.pointer, i)) for i in range(count)]
        if len(set(self.terms)) < len(self.terms):
            raise BasinError(f"two connections or layers of one name in {self.terms}")

    def _check(self, number):
        self.reraise()
        if number < 0:
            self.graph.wrap(ffi.NULL)

    def parameter(self, owner, part, first):
        """The parameter OWNER.PART, whose first values are given."""
        self.given[f"{owner}.{part}"] = first
        shape, recipe = recipe_of(first)
        owner, part = owner.encode(), part.encode()
        return self.graph.wrap(lib.basin_ham_parameter(self.pointer, owner, part, shape, recipe))

    def declare(self, owner):
        """Makes parameters of a Lagrangian's arrays; numbers stay what they are."""
        return lambda part, v: self.parameter(owner, part, v) if is_learnt(v) else None

    def _add_layer(self, name, layer):
        fields = fields_of(layer.lagrangian, self, self.declare(name))
        lagrangian = self.keep(ffi.new("basin_lagrangian *", fields))
        fields = {
            "name": self.text(name), "shape": shape_of(layer.shape), "lagrangian": lagrangian[0],
            "tau": layer.tau, "bias": layer.bias,
        }  # fmt: skip
        self._check(lib.basin_ham_layer(self.pointer, ffi.new("basin_layer *", fields)))
        return lagrangian

    def _add_synapse(self, name, synapse):
        fields = {"name": self.text(name), **synapse.fields(self, name)}
        struct = self.keep(ffi.new("basin_synapse *", fields))
        self._check(lib.basin_ham_synapse(self.pointer, struct))
        return struct

    def check_used(self, names):
        """Refuses parameters that no energy depends on."""
        owners = {name: name.rpartition(".")[::2] for name in names}
        states = [self.parameter(*owners[name], self.given[name]) for name in names]
        g, x = (
            {n: self.graph.input(f"{kind}.{n}", (1, *layer.shape)) for n, layer in
             self.network.layers.items()}
            for kind in "gx"
        )  # fmt: skip
        total = self.checked(energy, self, g=g, x=x)["energy"]
        for name, slope in zip(names, operations.gradient(total, states)):
            zero = lib.basin_full(self.graph.pointer, shape_of(slope.shape), 0)
            if slope._pointer == zero:
                raise BasinError(f"the parameter {name!r} is not used by {owners[name][0]!r}")

    # ---- as expressions; all have a batch axis ----

    def activation(self, name, x):
        place = list(self.lagrangians).index(name)
        return self.graph.wrap(lib.basin_ham_activation(self.pointer, place, x._pointer))

    def bias(self, name):
        """The bias of a layer, 0 without one."""
        layer = self.network.layers[name]
        if not layer.bias:
            return 0
        zero, shape = ffi.new("basin_init *")[0], shape_of(layer.shape)
        bias = lib.basin_ham_parameter(self.pointer, name.encode(), b"bias", shape, zero)
        return self.graph.wrap(bias)

    def layer_energy(self, name, g, x):
        lagrangian, bias = self.lagrangians[name], self.bias(name)
        x = x if isinstance(bias, int) else x - bias
        if g is None:
            return self.graph.wrap(lib.basin_lagrangian_energy(lagrangian, x._pointer, 1))
        value = self.graph.wrap(lib.basin_lagrangian_value(lagrangian, x._pointer, 1))
        return _per_sample(x * g) - value

    def connection_energy(self, ends, name, g):
        struct = self.synapses[name]
        pointers = ffi.new("basin_expr[]", [g[end]._pointer for end in ends])
        energy = lib.basin_synapse_energy(self.pointer, struct, pointers, len(ends))
        self.reraise()
        return _per_sample(self.graph.wrap(energy))

    def masks(self, masks):
        """The array of masks of a basin_ham_spec: NULL where a layer is free."""
        pointers = [ffi.NULL if mask is None else mask._pointer for mask in masks]
        return self.keep(ffi.new("basin_expr[]", pointers))

    def runner(self, backend, batch, masks, values, spec, stop, states):
        """A descent on arrays. `masks` are expressions by layer, or None where it is free; `values`
        states that are written before each run."""
        mask = self.masks(masks)
        spec = ffi.new("basin_ham_spec *", {**spec, "mask": mask})

        def make(descent, store):
            size, new = 1 if batch is None else batch, lib.basin_ham_descent_new
            ends = ffi.new("basin_stop *", stop)
            check(new, descent, self.pointer, store.pointer, size, spec, ends)

        layers = self.network.layers.values()
        shapes = [(() if batch is None else (batch,)) + layer.shape for layer in layers]
        first = len(shapes) if spec.synapses_only else 0
        return Runner(self, backend, make, values, shapes, states, self.terms, first)

    def unroll(self, x, spec):
        count = len(self.lagrangians)
        start = ffi.new("basin_expr[]", [x[name]._pointer for name in self.lagrangians])
        end, spec = ffi.new("basin_expr[]", count), ffi.new("basin_ham_spec *", spec)
        lib.basin_ham_descend(self.pointer, end, start, spec, ffi.NULL)
        self.reraise()
        return {name: self.graph.wrap(end[i]) for i, name in enumerate(self.lagrangians)}


def _per_sample(a):
    return a.sum(axis=tuple(range(1, a.ndim))) if a.ndim > 1 else a


def activations(built, x):
    return {name: built.activation(name, x[name]) for name in x}


def layer_energies(built, g, x):
    return {name: built.layer_energy(name, g and g[name], x[name]) for name in x}


def connection_energies(built, g):
    network = built.network
    terms = zip(network._terms(), network.connections)
    return {term: built.connection_energy(ends, name, g) for term, (ends, name) in terms}


def synapses_energy(built, x):
    return {"energy": sum(connection_energies(built, activations(built, x)).values())}


def energies(built, g, x):
    at = activations(built, x) if g is None else g
    return {**layer_energies(built, g, x), **connection_energies(built, at)}


def energy(built, g, x):
    return {"energy": sum(energies(built, g, x).values())}


def gradients(built, g, x):
    g = {name: apply(lib.basin_variable, e) for name, e in g.items()}
    total = energy(built, g, x)["energy"]
    return {"": total, **dict(zip(g, operations.gradient(total, list(g.values()))))}
