"""Functions of arrays, traced once a shape and compiled: basin.function."""

import inspect
from typing import Any, Callable, Optional, overload

import numpy

from basin._expr import Expression, Graph, as_expression
from basin._library import BasinError
from basin._plan import Plan, Store, backend_of
from basin.operations import gradient

__all__ = ["Function", "function"]


def signature_of(python_function):
    """The names of its arguments; defaults may be numbers, which are not traced."""
    return inspect.signature(python_function)


def name_of(python_function):
    """What it is called; of partial functions and objects that are called, their class."""
    return getattr(python_function, "__name__", type(python_function).__name__)


class Trace:
    """One tracing of a Python function for arguments of some shapes."""

    def __init__(self, python_function, arguments):
        self.graph = Graph()
        self.inputs = {
            name: self.graph.input(name, numpy.shape(value)) for name, value in arguments.items()
        }
        value = as_expression(python_function(**self.inputs), self.graph)
        if value is None:
            raise BasinError(f"{name_of(python_function)} returned no expression")
        self.value = value


class Function:
    """A Python function that Basin computes and differentiates; see basin.function.

    >>> import basin
    >>> square = basin.Function(lambda x: x * x)
    >>> square([3.0]), square.grad([3.0])
    (array([9.], dtype=float32), array([6.], dtype=float32))
    """

    def __init__(self, python_function, backend="cpu"):
        if not callable(python_function):
            raise BasinError(f"{python_function!r}, wanted a function of arrays")
        self._function, self._backend, self._plans = python_function, backend, {}
        self.__name__ = name_of(python_function)
        self.__doc__ = python_function.__doc__
        self.__wrapped__ = python_function

    def __repr__(self) -> str:
        return f"<basin function {self.__name__}{signature_of(self._function)}>"

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Its value: arrays in, an array out. On expressions it is the plain Python function."""
        arguments = self._bind(args, options)
        if any(isinstance(value, Expression) for value in arguments.values()):
            return self._function(**arguments)
        return self._run(arguments, None)[0]

    def grad(self, *args: Any, wrt: Any = None, **options: Any) -> Any:
        """The gradient of the sum of its value: an array of the shape of the argument `wrt` (a
        name; the first argument where it is None), or a dict of them for a list of names."""
        arguments = self._bind(args, options)
        names = [next(iter(arguments))] if wrt is None else [wrt] if isinstance(wrt, str) else wrt
        unknown = [name for name in names if name not in arguments]
        if unknown:
            raise BasinError(f"wrt {unknown[0]!r}, wanted one of {list(arguments)}")
        results = self._run(arguments, tuple(names))
        return results[0] if wrt is None or isinstance(wrt, str) else dict(zip(names, results))

    def _bind(self, args, options):
        """What was given, by name. Arguments that have a default keep it as it is."""
        return dict(signature_of(self._function).bind(*args, **options).arguments)

    def _run(self, arguments, wrt):
        backend = backend_of(self._backend)
        shapes = tuple((name, numpy.shape(value)) for name, value in arguments.items())
        key = (shapes, wrt)
        if key not in self._plans:
            trace = Trace(self._function, arguments)
            outputs = [trace.value]
            if wrt is not None:
                outputs = gradient(trace.value, [trace.inputs[name] for name in wrt])
            self._plans[key] = trace, Plan(trace.graph, outputs, Store(backend))
        trace, plan = self._plans[key]
        return plan([(trace.inputs[name], value) for name, value in arguments.items()])


@overload
def function(python_function: Callable[..., Any], *, backend: Any = "cpu") -> Function: ...


@overload
def function(*, backend: Any = "cpu") -> Callable[[Callable[..., Any]], Function]: ...


def function(python_function: Optional[Callable[..., Any]] = None, *, backend: Any = "cpu") -> Any:
    """Makes a Python function of arrays one that Basin compiles, once for each set of shapes.

    >>> import numpy, basin
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
