"""What estimators take from scikit-learn, and stand-ins where it is not installed, which are also
what type checkers see."""

from typing import TYPE_CHECKING, Any

__all__ = [
    "BaseEstimator", "ClassifierMixin", "DataConversionWarning", "NotFittedError", "RegressorMixin",
]  # fmt: skip


class DataConversionWarning(UserWarning):
    """Data were given in another form than expected."""


class NotFittedError(ValueError, AttributeError):
    """Nothing was learnt yet."""


class ClassifierMixin:
    """Marks classifiers."""


class RegressorMixin:
    """Marks regressors."""


class BaseEstimator:
    """What estimators need of scikit-learn's."""

    _defaults: dict

    def get_params(self, deep: bool = True) -> "dict[str, Any]":
        return {name: getattr(self, name) for name in self._defaults}

    def set_params(self, **given: Any) -> Any:
        type(self)._check_names(given)
        for name, value in given.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks."""

    def __repr__(self):
        given = ((name, getattr(self, name)) for name in self._defaults)
        shown = ", ".join(f"{n}={v!r}" for n, v in given if v != self._defaults[n])
        return f"{type(self).__name__}({shown})"


if not TYPE_CHECKING:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
        from sklearn.exceptions import DataConversionWarning, NotFittedError
    except ImportError:
        pass
