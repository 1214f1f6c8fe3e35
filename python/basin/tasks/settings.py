"""Settings of the tasks: one table in C has their names, ranges, defaults and help."""

import dataclasses
import difflib
import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import numpy

from basin.tasks._library import BasinError, check, ffi, lib, made, path_of, text

__all__ = ["Setting", "Settings", "nearest", "presets", "table"]


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting as the table describes it."""

    name: str
    kind: str
    """"integer", "real", "switch", "choice" or "channels"."""
    default: Any
    """Its value in the preset "default"."""
    low: Optional[float]
    high: Optional[float]
    choices: tuple
    help: str
    needs: Optional[str]
    """What it has an effect with, "arch=et hopfield=on"; None: always."""


def _listed(pointer):
    """A NULL-terminated list of texts."""
    result = []
    while pointer and pointer[len(result)]:
        result.append(text(pointer[len(result)]))
    return tuple(result)


def _kind(number):
    name = ffi.string(ffi.cast("basin_setting_kind", number))
    return name.replace("BASIN_SETTING_", "").lower()


@functools.cache
def _rows(task):
    rows: dict[str, Any] = {}
    while row := lib.basin_setting_at(task.encode(), len(rows)):
        rows[text(row.name)] = row
    if not rows:
        raise BasinError(f"task {task!r}, expected image, anomaly, node or graphs")
    return rows


@functools.cache
def table(task: str) -> dict:
    """The settings of a task by name.

    >>> tasks.settings.table("image")["patch"]
    Setting(name='patch', kind='integer', default=4, low=1.0, high=8192.0, choices=(), \
help='Height and width of a patch.', needs=None)
    """
    defaults, result = Settings(task), {}
    for name, row in _rows(task).items():
        kind = _kind(row.kind)
        ranged = kind in ("integer", "real")
        result[name] = Setting(
            name=name, kind=kind, default=defaults[name], low=row.low if ranged else None,
            high=row.high if ranged else None, choices=_listed(row.choices),
            help=text(row.help) or "", needs=text(row.needs),
        )  # fmt: skip
    return result


def presets(task: str) -> tuple:
    """The names of a task's presets; "default" comes first.

    >>> tasks.settings.presets("image")[0], "fashion" in tasks.settings.presets("image")
    ('default', True)
    """
    _rows(task)
    return _listed(lib.basin_settings_presets(task.encode()))


def nearest(name: str, names) -> str:
    """A hint for an unknown name: "; did you mean 'epochs'?", or nothing."""
    close = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _as_text(value):
    if isinstance(value, str):
        return value
    if hasattr(value, "item") and numpy.ndim(value) == 0:  # a number of NumPy's
        value = value.item()
    if value is True or value is False:
        return "on" if value else "off"
    if hasattr(value, "__len__"):
        return ",".join(_as_text(part) for part in value)
    return repr(value) if isinstance(value, float) else str(value)


def _as_value(kind, value):
    if kind == "switch":
        return value == "on"
    if kind == "channels":
        return tuple(float(part) for part in value.split(","))
    return {"integer": int, "real": float}.get(kind, str)(value)


class Settings(Mapping):
    """What is trained and how, by name: a mapping that checks what is put into it.

    `task` is "image", "anomaly", "node" or "graphs"; what is not named has the
    preset's value.

    >>> settings = tasks.Settings("anomaly", epochs=20, dim=32)
    >>> settings["dim"], settings["attention"]
    (32, True)
    >>> settings["dim"] = 0
    Traceback (most recent call last):
        ...
    basin.BasinError: dim: 0 is too small; at least 1
    """

    _owner: Any = None

    def __init__(self, task: str, preset: Optional[str] = None, **settings: Any):
        _rows(task)
        name = ffi.NULL if preset is None else preset.encode()
        new, free = lib.basin_settings_new, lib.basin_settings_free
        self.pointer, self.task = made(new, free, task.encode(), name), task
        for key, value in settings.items():
            self[key] = value

    @classmethod
    def of(cls, pointer, owner) -> "Settings":
        """A view of settings that belong to an object of the library's, `owner`."""
        self = cls.__new__(cls)
        self.pointer, self.task = pointer, text(lib.basin_settings_task(pointer)) or ""
        self._owner = owner
        return self

    def __getitem__(self, name: str):
        self._check_name(name)
        value = ffi.new("char[]", 256)
        check(lib.basin_settings_get, value, 256, self.pointer, name.encode())
        return _as_value(_kind(_rows(self.task)[name].kind), text(value))

    def __setitem__(self, name: str, value) -> None:
        self._check_name(name)
        check(lib.basin_settings_set, self.pointer, name.encode(), _as_text(value).encode())

    def __iter__(self) -> Iterator[str]:
        return iter(_rows(self.task))

    def __len__(self) -> int:
        return len(_rows(self.task))

    def __repr__(self) -> str:
        return f"Settings({self.task!r}, {json.dumps(dict(self))})"

    def __reduce__(self):
        """Copies would share what the library holds, and a change of one be a change of both."""
        raise TypeError(f"settings are not copied; make others: Settings({self.task!r}, ..)")

    def check(self) -> None:
        """Raises where settings do not go together, or one that was set has no effect."""
        check(lib.basin_settings_check, self.pointer)

    def json(self) -> str:
        """All of them, in the form that `basin NOUN train --config` and read() take."""
        return json.dumps(dict(self), indent=4)

    def read(self, path) -> None:
        """Takes what a file of settings names: of json(), or of the program's --print-config."""
        check(lib.basin_settings_read, self.pointer, path_of(path))

    def _check_name(self, name):
        if name not in _rows(self.task):
            close = nearest(name, _rows(self.task))
            raise BasinError(f"the task {self.task} has no setting {name!r}{close}")
