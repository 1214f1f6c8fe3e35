"""What estimators share: their keywords from the table of settings, training, files."""

import inspect
import json
import numbers
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy

from basin._engine.plan import backend_of
from basin.tasks._data.table import array_of_any
from basin.tasks._library import BasinError, check, ffi, lib, owned, path_of, sized, text, warn
from basin.tasks._models.sklearn import BaseEstimator, DataConversionWarning, NotFittedError
from basin.tasks._models.watch import Watch
from basin.tasks.settings import Settings, nearest, table

if TYPE_CHECKING:
    import os

    from typing_extensions import Self


def _constructor(cls):
    """An __init__ that takes the settings of the task by name, with an explicit signature."""

    def __init__(self, **given):  # noqa: N807
        cls._check_names(given)
        for name, default in cls._defaults.items():
            setattr(self, name, given.get(name, default))

    kind = inspect.Parameter
    parameters = [kind("self", kind.POSITIONAL_OR_KEYWORD)]
    parameters += [kind(n, kind.KEYWORD_ONLY, default=v) for n, v in cls._defaults.items()]
    __init__.__qualname__ = f"{cls.__name__}.__init__"
    __init__.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return __init__


def _help(task):
    lines = ["", "", '    Settings, None for that of the preset (here: the preset "default"):', ""]
    for row in table(task).values():
        choices = f" One of {', '.join(row.choices)}." if row.choices else ""
        lines.append(f"    {row.name}: {row.help}{choices} [{row.default}]")
    return "\n".join(lines) + "\n    "


class Estimator(BaseEstimator):
    """A model of one task. Subclasses name the task and the prefix of its C functions."""

    _task, _prefix = "", ""
    _written_as: tuple = ()  # what the task's writer takes after the model
    _also_trained: tuple = ()  # results of the task's training besides the model and the outcome
    _kind: "tuple[bytes, ...]" = ()  # what `open` takes besides the path
    _own: dict = {"preset": None, "backend": "cpu", "threads": 0, "progress": None}
    _defaults: dict
    preset: Optional[str]
    backend: Any
    threads: int
    progress: Any

    def __init_subclass__(cls, **options):
        """Gives a class the settings of its task as keywords. Its own __init__, if
        it has one, stays."""
        own = {}
        for parent in reversed(cls.__mro__):
            own.update(parent.__dict__.get("_own", {}))
        settings = dict.fromkeys(table(cls._task)) if cls._task else {}
        cls._defaults = cls.__dict__.get("_only") or {**own, **settings}
        if "__init__" not in cls.__dict__:
            cls.__init__ = _constructor(cls)  # type: ignore[method-assign]
        if cls.__doc__ and cls._task:
            cls.__doc__ = cls.__doc__.rstrip() + _help(cls._task)
        super().__init_subclass__(**options)

    # ---- settings ----

    @classmethod
    def _check_names(cls, given):
        for name in given:
            if name not in cls._defaults:
                close = nearest(name, cls._defaults)
                raise TypeError(f"{cls.__name__} has no setting {name!r}{close}")

    def _settings(self):
        """What was given by name, over the preset."""
        given = {name: getattr(self, name) for name in table(self._task)}
        given = {name: value for name, value in given.items() if value is not None}
        return Settings(self._task, self.preset, **given)

    @property
    def settings_(self) -> dict:
        """All settings of the trained model, with what training chose."""
        return dict(Settings.of(self._model_settings(), self))

    # ---- the model ----

    def _model_settings(self):
        return self._c("get_info")(self._fitted()).settings

    def _c(self, verb):
        return getattr(lib, f"basin_{self._prefix}_{verb}")

    def _backend(self):
        return backend_of(self.backend, self.threads)

    def _fitted(self):
        model = self.__dict__.get("_model")
        if model is None:
            raise NotFittedError(f"this {type(self).__name__} has learnt nothing: call fit or load")
        return model

    def __sklearn_is_fitted__(self):
        return self.__dict__.get("_model") is not None

    def _own_model(self, pointer):
        self._model = owned(pointer, self._c("close"), self._backend().pointer)

    def _train(self, settings, data):
        """Trains; an interrupt keeps what was learnt."""
        backend = self._backend()
        model = ffi.new(f"basin_{self._prefix}_model **")
        outcome = sized("basin_training_result")
        with tempfile.TemporaryDirectory(prefix="basin") as folder:
            log = pathlib.Path(folder, "log")
            file = ffi.new("char[]", path_of(log))
            with backend.lock, Watch(self.progress) as watch:
                fields = {"backend": backend.pointer, "watch": watch.pointer, "log": file}
                training = sized("basin_training_options", **fields)
                results = (model, outcome, *self._also_trained)
                check(self._c("train"), *results, settings.pointer, data, training)
            lines = log.read_text().splitlines() if log.exists() else []
        self.history_ = [json.loads(line) for line in lines]
        self.notes_ = watch.notes
        self.outcome_ = outcome_of(outcome)
        if watch.stopped and not model[0]:
            raise KeyboardInterrupt("stopped before the first step")
        self._own_model(model[0])
        if watch.stopped:
            warn(
                f"stopped after {outcome.steps} of {outcome.steps_planned} steps; the model has "
                "what was learnt by then"
            )
        return self

    # ---- files ----

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the model file: the one that the program `basin` writes and reads."""
        with self._backend().lock:
            check(self._c("write"), path_of(path), self._fitted(), *self._written_as)

    @classmethod
    def load(
        cls, path: Union[str, "os.PathLike[str]"], backend: Any = "cpu", threads: int = 0
    ) -> "Self":
        """A model from a file that save() or the program wrote, or one that comes with Basin, by
        its name: "photos" and "fashion" complete pictures."""
        if isinstance(path, str) and path.isidentifier() and not pathlib.Path(path).exists():
            found = ffi.new("char[4096]")
            check(lib.basin_models_find, found, 4096, path.encode())
            path = text(found) or path
        self = cls(backend=backend, threads=threads)
        self._open(path)
        return self

    def _open(self, path):
        model = ffi.new(f"basin_{self._prefix}_model **")
        with self._backend().lock:
            check(self._c("open"), model, *self._kind, path_of(path), self._backend().pointer)
        self._own_model(model[0])
        self._opened()

    def _opened(self):
        """What a subclass keeps of a model that was read."""

    def __getstate__(self):
        state = {name: value for name, value in self.__dict__.items() if name != "_model"}
        if self.__dict__.get("_model") is not None:
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "model.safetensors")
                self.save(path)
                state["_file"] = path.read_bytes()
        return state

    def __setstate__(self, state):
        file = state.pop("_file", None)
        if file is not None:
            self.__dict__.update(state)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "model.safetensors")
                path.write_bytes(file)
                self._open(path)
        self.__dict__.update(state)


def score_of(score) -> dict:
    """The measures of a basin_score by name."""
    entries = (score.measure[i] for i in range(score.measures))
    return {text(entry.name): entry.value for entry in entries}


_OUTCOME = (
    "stopped", "parameters", "epochs", "steps", "best_epoch", "loss", "seconds", "memory", "items",
)  # fmt: skip


def outcome_of(outcome) -> dict:
    """What came of a run, by the names of basin_training_result; `best` has the scores."""
    result = {name: getattr(outcome, name) for name in _OUTCOME}
    return {**result, "best": score_of(outcome.best)}


def column_of(y, count, what="y", unknown="; -1 is unknown"):
    """An array [count]; also of a column [count, 1], as scikit-learn's estimators take it."""
    values = array_of_any(y)
    if values.shape == (count, 1):
        message = f"A column-vector {what} was passed when a 1d array was expected"
        warn(message, DataConversionWarning)
        values = values[:, 0]
    if values.shape != (count,):
        raise BasinError(f"{what} of shape {list(values.shape)}, expected [{count}]")
    if values.dtype.kind == "f" and not numpy.isfinite(values).all():
        place = int(numpy.argmin(numpy.isfinite(values)))
        raise BasinError(f"{what} of {place} is {values[place]}, expected a class{unknown}")
    return values


def gaps_of(y):
    """Labels with -1 in place of NaN among numbers: there is none."""
    values = array_of_any(y)
    return numpy.where(numpy.isnan(values), -1, values) if values.dtype.kind == "f" else values


def there_of(values):
    """Which entries of an object array are there: not None, NaN or pandas' NA."""
    same = [value is not None and value == value for value in values]  # of NA it is NA
    return numpy.array([isinstance(one, (bool, numpy.bool_)) and bool(one) for one in same], bool)


def known_labels(values, expected):
    """Labels, and which of them are known: all that are there, but for the number -1."""
    kind = values.dtype.kind
    if kind == "f" and not numpy.array_equal(values, numpy.rint(values)):
        raise BasinError(f"Unknown label type: y is continuous, expected {expected}")
    if kind in "iuf":
        return values, values != -1
    if kind != "O":
        return values, numpy.ones(len(values), bool)
    unknown = [isinstance(value, numbers.Integral) and value == -1 for value in values]
    return values, there_of(values) & ~numpy.array(unknown, bool)


def share_of(validation):
    """A part of the data that validates; None is 0."""
    if validation is None:
        return 0
    if not 0 <= validation < 1:
        raise BasinError(f"validation is {validation}, expected a part: 0 to below 1")
    return validation


def split_of_nodes(validation):
    """The same as fields of basin_nodes_data."""
    if validation is None:
        return {"split": lib.BASIN_NODES_SPLIT_DEFAULT}
    share = share_of(validation)
    split = lib.BASIN_NODES_SPLIT_HOLD_OUT if share else lib.BASIN_NODES_SPLIT_NONE
    return {"split": split, "ratio": share}


def labels_of(y, count, what="y"):
    """Whole numbers [count]; refuses what would lose something."""
    values = column_of(y, count, what)
    if values.dtype.kind not in "iub" and not (
        values.dtype.kind == "f" and numpy.array_equal(values, numpy.rint(values))
    ):
        raise BasinError(f"{what} of type {values.dtype}, expected whole numbers")
    return narrowed(values, "i4", what)


def narrowed(values, dtype, what):
    """Numbers as an array of a type that may not hold them: those are named, not changed."""
    with numpy.errstate(over="ignore", invalid="ignore"):
        result = numpy.ascontiguousarray(values, dtype=dtype)
    lost = ~numpy.isfinite(result) if result.dtype.kind == "f" else result != values
    lost &= numpy.isfinite(values)
    if lost.any():
        place = tuple(int(i[0]) for i in numpy.nonzero(lost))
        raise BasinError(f"{what}: {values[place]} is too large for {result.dtype}")
    return result
