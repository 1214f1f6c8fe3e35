"""What NumPy has and expressions have not, with what does instead where something does."""

import contextlib

import numpy

from basin._engine.library import BasinError

_SHAPE = "its shape would depend on values; numpy.where(mask, a, 0) keeps the shape"
_SOLVER = "of decompositions there are numpy.linalg.cholesky, solve, inv, slogdet and det"
_VALUE = "an expression has no value yet: return it from a basin.function and look at the result"
_FIXED = "an expression does not change: make another, with numpy.where for example"
_SCATTER = "basin.scatter(values, index, rows) sums by index"
_SORT = "numpy.sort and numpy.argsort are there"

# Methods and attributes of arrays.
METHODS = {
    "item": _VALUE, "tolist": _VALUE, "tobytes": _VALUE, "tofile": _VALUE, "data": _VALUE,
    "fill": _FIXED, "put": _FIXED, "resize": _FIXED, "sort": "numpy.sort(a) gives it sorted",
    "partition": "numpy.sort(a) gives it sorted", "argpartition": _SORT,
    "nonzero": _SHAPE, "compress": "a[mask] takes a known mask",
    "imag": "expressions are real", "flat": "a.ravel() is flat", "view": "a.reshape, a.astype",
    "searchsorted": "numpy.sum(a[:, None] < v, axis=0) counts those below v",
    "ptp": "numpy.ptp(a)", "choose": "numpy.select or numpy.take_along_axis",
}  # fmt: skip

# Functions by their path in NumPy. Those that are not here are refused without advice.
_ADVICE = {
    "nonzero argwhere flatnonzero extract unique unique_values trim_zeros": _SHAPE,
    "isin in1d intersect1d union1d setdiff1d": "numpy.any(a[..., None] == b, axis=-1)",
    "linalg.lstsq linalg.pinv linalg.svd linalg.qr linalg.eig linalg.eigh linalg.eigvals "
    "linalg.eigvalsh linalg.matrix_rank linalg.cond": _SOLVER,
    "fft.fft fft.ifft fft.rfft fft.irfft fft.fft2 fft.fftn": "a product with a matrix of cosines "
    "and one of sines does it, numpy.cos(2 * numpy.pi * numpy.outer(k, n) / size)",
    "linalg.svdvals polyfit roots": _SOLVER,
    "linspace": "a + (b - a) * numpy.linspace(0, 1, n)",
    "logspace geomspace": "numpy.exp(a + (b - a) * numpy.linspace(0, 1, n))",
    "cov corrcoef": "c = a - a.mean(1, keepdims=True), then c @ c.T / (a.shape[1] - 1)",
    "insert block": "numpy.concatenate and numpy.stack join parts",
    "gradient": "numpy.diff; of functions basin.gradient(y, x)",
    "meshgrid ix_": "numpy.broadcast_arrays(a[:, None], b[None, :])",
    "piecewise": "numpy.where and numpy.select choose", "choose": "numpy.select, numpy.where",
    "vander": "a[:, None] ** numpy.arange(n)", "modf": "numpy.trunc(a) and a - numpy.trunc(a)",
    "isposinf isneginf": "a == numpy.inf", "unwrap": "cos and sin of angles know no jumps",
    "cumulative_sum": "numpy.cumsum", "cumulative_prod": "numpy.cumprod",
    "tril_indices_from triu_indices_from diag_indices_from": "numpy.tril_indices(len(a)), ..",
    "packbits unpackbits": "expressions are floating-point numbers",
    "einsum_path": "numpy.einsum chooses its order",
    "partition argpartition lexsort": _SORT,
    "bincount histogram histogram2d histogramdd add.at": _SCATTER,
    "searchsorted digitize": "numpy.sum(a[..., None] >= bins, axis=-1)",
    "put putmask place copyto fill_diagonal put_along_axis": _FIXED,
    "nansum nancumsum": "numpy.where(numpy.isnan(a), 0, a) first",
    "nanmean": "numpy.sum(numpy.where(numpy.isnan(a), 0, a)) / numpy.sum(~numpy.isnan(a))",
    "nanmax nanmin nanprod nancumprod nanvar nanstd nanargmax nanargmin nanmedian nanquantile "
    "nanpercentile": "numpy.where(numpy.isnan(a), b, a) first, b a value that changes nothing",
    "array2string array_repr array_str save savetxt": _VALUE,
    "vectorize apply_along_axis apply_over_axes": "functions of expressions act on whole arrays",
    "imag angle iscomplex": "expressions are real",
    "frexp ldexp nextafter spacing signbit": "numpy.sign and numpy.log2 may do",
    "gcd lcm left_shift right_shift bitwise_count": "expressions are floating-point numbers",
    "rollaxis rot90": "numpy.moveaxis, numpy.flip and numpy.swapaxes", "resize": "a[places]",
    "compress delete": "a subscript, a[mask]", "ediff1d": "numpy.diff(a.reshape(-1))",
    "hsplit vsplit dsplit": "numpy.split with an axis",
    "average": "numpy.sum(w * a) / numpy.sum(w)", "kron": "numpy.einsum('ij,kl->ikjl', a, b)",
    "trapezoid": "numpy.sum((y[1:] + y[:-1]) * dx) / 2", "polyval": "Horner's scheme",
    "linalg.matrix_power": "products: a @ a", "nan_to_num": "numpy.where(numpy.isnan(a), 0, a)",
    "fmod": "numpy.remainder", "fmax fmin": "numpy.maximum, numpy.minimum",
    "copysign": "abs(a) * numpy.sign(b)", "logaddexp2": "numpy.logaddexp",
    "sinc": "numpy.where(a == 0, 1, numpy.sin(b) / b), b not 0 where a is",
    "interp": "numpy.where over the pieces, or basin.relu at the nodes",
    "result_type can_cast min_scalar_type": "every expression has the backend's type",
}  # fmt: skip


@contextlib.contextmanager
def foreign_functions_named():
    """Says which library's functions expressions take where another one's refuses them."""
    try:
        yield
    except TypeError as error:
        if "Expression" not in str(error):
            raise
        raise BasinError(
            "functions of arrays are NumPy's: numpy.sum(g), not jnp.sum(g); numpy.sum(g), not "
            f"torch.sum(g): {error}"
        ) from error


def _resolve(path):
    found = numpy
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


FUNCTIONS = {_resolve(path): advice for paths, advice in _ADVICE.items() for path in paths.split()}
FUNCTIONS.pop(None, None)  # names that this version of NumPy does not have


# Functions of SciPy's.
_SPECIAL = {
    "expit": "basin.sigmoid", "erf": "basin.erf", "erfc": "1 - basin.erf(a)",
    "log_expit": "-basin.softplus(-a)", "xlogy": "numpy.where(a == 0, 0, a * numpy.log(b))",
    "entr": "-a * numpy.log(a)", "logit": "numpy.log(a / (1 - a))",
}  # fmt: skip


def refusal(function, name):
    """The message for a function that has no form for expressions."""
    if isinstance(function, numpy.ufunc) and getattr(numpy, name, None) is None:
        advice = _SPECIAL.get(name, "write it with NumPy's functions")
        return f"{name}, which is not NumPy's, has no form for expressions: {advice}"
    module = getattr(function, "__module__", None) or "numpy"
    module = module if module.startswith("numpy.") and "._" not in module else "numpy"
    advice = FUNCTIONS.get(function, "docs/python-names.md lists those that have one")
    return f"{module}.{name} has no form for expressions: {advice}"
