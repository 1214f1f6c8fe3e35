"""Functions of arrays, traced once for each set of shapes and compiled: basin.function."""

import collections.abc
import html
import importlib
import inspect
import operator
import sys
from typing import Any, Callable, Optional, overload

from basin._engine.library import BasinError
from basin._engine.plan import Plans, set_plan_cache
from basin._engine.trees import LEAF, members, split, unflatten
from basin._expr.expression import as_expression, required_expression
from basin._expr.operations import gradient
from basin._expr.unsupported import foreign_functions_named

__all__ = ["Function", "function", "set_plan_cache"]


def name_of(python_function):
    """What it is called; of partial functions and objects that are called, their class."""
    return getattr(python_function, "__name__", type(python_function).__name__)


class Signature:
    """The arguments of a Python function, bound by name. Those that have a default keep it as it
    is, untraced."""

    def __init__(self, python_function):
        self.signature = inspect.signature(python_function)
        parameters = self.signature.parameters.values()
        self.names = [p.name for p in parameters]
        self._plain = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        self._needed = [p.name for p in parameters if p.default is p.empty]
        self._known = set(self.names)
        self.options = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
        """The name of **options, or None."""
        self.rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        """The name of *args, or None."""

    def needs(self, name):
        """Whether an argument has no default."""
        parameter = self.signature.parameters[name]
        stars = parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL
        return parameter.default is parameter.empty and parameter.kind not in stars

    def bind(self, args, options):
        """What was given, by name, in the order of the signature."""
        if self._plain and len(args) <= len(self.names):
            bound = dict(zip(self.names, args))
            if options and self._known.issuperset(options) and bound.keys().isdisjoint(options):
                bound.update(options)
                bound = {name: bound[name] for name in self.names if name in bound}
            if len(bound) == len(args) + len(options) and all([n in bound for n in self._needed]):
                return bound
        bound = dict(self.signature.bind(*args, **options).arguments)  # says what is wrong
        if self.rest in bound:
            bound[self.rest] = members(bound[self.rest])
        return bound

    def call(self, python_function, arguments):
        """The function of arguments by name, *args and **options among them."""
        bound = inspect.BoundArguments(self.signature, collections.OrderedDict(arguments))
        with foreign_functions_named():
            return python_function(*bound.args, **bound.kwargs)


class Method:
    """What is made of a function and can be a method as well: each object of the class gets one of
    its own, in which `self` is bound, and keeps it."""

    _attribute = None
    _function: Callable[..., Any]
    _signature: Signature
    __name__: str

    def _like(self, python_function):
        """The same of another function."""
        raise NotImplementedError

    def __set_name__(self, owner, name):
        self._attribute = name

    def __get__(self, instance, owner=None):
        if instance is None or not hasattr(self._function, "__get__"):
            return self
        bound = self._like(self._function.__get__(instance, owner))
        bound._attribute = self._attribute
        if self._attribute and hasattr(instance, "__dict__"):
            instance.__dict__[self._attribute] = bound
        return bound

    def _repr_html_(self) -> str:
        """Its name, arguments and first line of documentation, for notebooks."""
        about = inspect.cleandoc(self.__doc__ or "").partition("\n")[0]
        name = html.escape(f"{self.__name__}{self._signature.signature}")
        return f"<code>{name}</code>" + (f"<br>{html.escape(about)}" if about else "")

    def __reduce_ex__(self, protocol):
        instance = getattr(self._function, "__self__", None)
        if self._attribute and isinstance(getattr(type(instance), self._attribute, None), Method):
            return getattr, (instance, self._attribute)
        name = _own_name(self._function)
        if protocol < 4 and name and _found(self._function, name) is self:
            # Older protocols pickle memory._function as an attribute of a pickled memory.
            return restore_named, (self._function.__module__, name)
        return self.__reduce__()


class Function(Method):
    """A Python function that Basin computes and differentiates; see basin.function.

    >>> square = basin.functions.Function(lambda x: x * x)
    >>> square([3.0]), square.grad([3.0])
    (array([9.], dtype=float32), array([6.], dtype=float32))
    """

    def __init__(self, python_function, backend=None):
        if not callable(python_function):
            raise BasinError(f"{python_function!r}, expected a function of arrays")
        self._function, self._backend = python_function, backend
        self._signature, self._plans = Signature(python_function), Plans()
        self.__name__ = name_of(python_function)
        self.__doc__ = python_function.__doc__
        self.__wrapped__ = python_function

    def __repr__(self) -> str:
        return f"<basin function {self.__name__}{self._signature.signature}>"

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Its value: arrays in, arrays out, or dicts, lists and tuples of them. On expressions it
        is the plain Python function."""
        arguments = self._signature.bind(args, options)
        result = self._plans.run("value", self._backend, arguments, self._value)
        if result is NotImplemented:
            return self._signature.call(self._function, arguments)
        return result

    def grad(self, *args: Any, wrt: Any = None, **options: Any) -> Any:
        """The gradient of the sum of its value, of the structure and shapes of the argument `wrt`
        (a name; the first argument where it is None); a dict of them for a list of names.

        >>> loss = basin.function(lambda net, x: numpy.sum(net["w"] * x + net["b"]))
        >>> loss.grad({"w": [1.0, 2.0], "b": 0.0}, [3.0, 4.0])
        {'w': array([3., 4.], dtype=float32), 'b': array(2., dtype=float32)}
        """
        return self._gradient("grad", args, wrt, options)[1]

    def value_and_grad(self, *args: Any, wrt: Any = None, **options: Any) -> Any:
        """Its value and grad(), computed together.

        >>> basin.function(lambda x: x * x).value_and_grad([3.0])
        (array([9.], dtype=float32), array([6.], dtype=float32))
        """
        return self._gradient("both", args, wrt, options)

    def _value(self, graph, arguments):
        value = self._signature.call(self._function, arguments)
        leaves = split(value)[1]
        if not leaves or any(as_expression(leaf, graph) is None for leaf in leaves):
            raise BasinError(f"{self.__name__} returned no expression")
        return value

    def _gradient(self, what, args, wrt, options):
        arguments = self._signature.bind(args, options)
        names = self._wrt(wrt, arguments)

        def build(graph, given):
            value = self._value(graph, given)
            if split(value)[0] is not LEAF:
                raise BasinError(f"the gradient of {self.__name__}, which returns several arrays")
            value = required_expression(value, graph)
            given = {**given.get(self._signature.options, {}), **given}
            grads = {name: gradient_tree(value, given[name]) for name in names}
            grads = grads if wrt is not None and not isinstance(wrt, str) else grads[names[0]]
            return (None if what == "grad" else value), grads

        key = what, wrt if wrt is None or isinstance(wrt, str) else tuple(names)
        result = self._plans.run(key, self._backend, arguments, build)
        if result is NotImplemented:
            raise BasinError(f"the gradient of {self.__name__} of expressions: use basin.gradient")
        return result

    def _wrt(self, wrt, arguments):
        """The names of what a gradient is taken by."""
        known = {**arguments.get(self._signature.options, {}), **arguments}
        if not known:
            raise BasinError(f"the gradient of {self.__name__}, which was given no argument")
        names = [next(iter(arguments))] if wrt is None else [wrt] if isinstance(wrt, str) else wrt
        if not isinstance(names, collections.abc.Iterable):
            raise BasinError(f"wrt {wrt!r}, expected a name or a list of names of {list(known)}")
        names = list(names)
        unknown = [name for name in names if name not in list(known)]
        if unknown:
            raise BasinError(f"wrt {unknown[0]!r}, expected one of {list(known)}")
        return names

    def _like(self, python_function):
        return Function(python_function, self._backend)

    def __reduce__(self):
        return restore, (Function, by_reference(self, self._function), self._backend)


# ---- pickling ----


def _found(python_function, name):
    """What a function's module has under a name."""
    module = sys.modules.get(getattr(python_function, "__module__", None))
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        return None


def _own_name(python_function):
    """What a decorated function is called in its module."""
    return getattr(python_function, "__qualname__", "").removesuffix("._function")


def by_reference(owner, python_function):
    """The function as pickle can find it: decorated, it is an attribute of what has its name."""
    name = getattr(python_function, "__qualname__", "")
    if name and _found(python_function, name) is owner:
        python_function.__qualname__ = name + "._function"
    return python_function


def restore(kind, python_function, *rest):
    """The very object that is decorated in a module, or one like it."""
    name = getattr(python_function, "__qualname__", "").rpartition("._function")[0]
    found = _found(python_function, name) if name else None
    return found if type(found) is kind else kind(python_function, *rest)


def restore_named(module, name):
    """What a module has under a name."""
    return operator.attrgetter(name)(importlib.import_module(module))


def gradient_tree(value, tree):
    """The gradient of a value by a tree of expressions, of the same structure."""
    structure, leaves = split(tree)
    found = gradient(value, leaves) if leaves else []
    return found[0] if structure is LEAF else unflatten(structure, iter(found))


@overload
def function(python_function: Callable[..., Any], *, backend: Any = None) -> Function: ...


@overload
def function(*, backend: Any = None) -> Callable[[Callable[..., Any]], Function]: ...


def function(python_function: Optional[Callable[..., Any]] = None, *, backend: Any = None) -> Any:
    """Makes a Python function of arrays one that Basin compiles, once for each set of shapes.

    >>> @basin.function
    ... def length(x):
    ...     return numpy.sqrt(numpy.sum(x**2))
    >>> float(length([3.0, 4.0]))
    5.0
    >>> length.grad([3.0, 4.0]).round(3)
    array([0.6, 0.8], dtype=float32)
    """
    if python_function is None:
        return lambda f: Function(f, backend)
    return Function(python_function, backend)
