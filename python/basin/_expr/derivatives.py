"""Derivatives of expressions beyond gradients, inside functions that Basin traces."""

from typing import Any

from basin._engine.library import BasinError, lib
from basin._expr.expression import Expression, required_expression
from basin._expr.operations import gradient, pulled_back, variables

__all__ = ["hessian", "jacobian", "jvp", "vjp"]


def vjp(y: Expression, x: Any, cotangent: Any) -> Any:
    """The gradient of sum(cotangent y) with respect to x, an expression or a list of them.

    >>> basin.function(lambda x: basin.vjp(x**2, x, [1.0, 10.0]))([1.0, 2.0])
    array([ 2., 40.], dtype=float32)
    """
    return pulled_back("vjp", y, x, cotangent)


def jvp(y: Expression, x: Any, tangent: Any) -> Expression:
    """The derivative of y as x moves along a tangent of its shape: J t, of y's shape. x and the
    tangent may be lists.

    >>> basin.function(lambda x: basin.jvp(x**2, x, [1.0, 10.0]))([1.0, 2.0])
    array([ 2., 40.], dtype=float32)
    """
    many, xs = variables("jvp", y, x)
    tangents = list(tangent) if many else [tangent]
    if len(xs) != len(tangents):
        raise BasinError(f"jvp of {len(xs)} variables along {len(tangents)} tangents")
    tangents = [required_expression(t, y._graph)._pointer for t in tangents]
    xs = [e._pointer for e in xs]
    return y._graph.wrap(lib.basin_jvp(y._pointer, xs, tangents, len(xs)))


def jacobian(y: Expression, x: Expression) -> Expression:
    """All derivatives dy/dx, [*y.shape, *x.shape]: a reverse pass for each element of y, of which
    there are at most 256.

    >>> basin.function(lambda x: basin.jacobian(x * x[0], x))([1.0, 2.0])
    array([[2., 0.],
           [2., 1.]], dtype=float32)
    """
    variables("jacobian", y, x)
    matrix = y._graph.wrap(lib.basin_jacobian(y._pointer, x._pointer))
    return matrix.reshape(*y.shape, *x.shape)


def hessian(y: Expression, x: Expression) -> Expression:
    """All second derivatives of one number y, [*x.shape, *x.shape].

    >>> basin.function(lambda x: basin.hessian(x[0] * x[1], x))([1.0, 2.0])
    array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    variables("hessian", y, x)
    if y.size != 1:
        raise BasinError(f"hessian of {y!r}, expected one number: numpy.sum(y), or y[0]")
    return jacobian(gradient(y, x), x)
