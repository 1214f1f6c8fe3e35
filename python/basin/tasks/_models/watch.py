"""Watching a training run: progress, notes, and stopping it."""

import logging
import signal
import threading

from basin.tasks._library import ffi, sized, text
from basin.training import is_true

_log = logging.getLogger("basin")
_FIELDS = dict(ffi.typeof("basin_watch").fields)


def news_of(news) -> dict:
    """How far a run is: what, done, total, loss, speed, unit, seconds_left, epoch, epochs, .."""
    return {
        name: text(value) if isinstance(value, ffi.CData) else value
        for name, value in ((field, getattr(news, field)) for field, _ in _NEWS)
    }


_NEWS = ffi.typeof("basin_progress_report").fields


class Bar:
    """Progress as a bar of tqdm's."""

    def __init__(self):
        try:
            from tqdm.auto import tqdm
        except ImportError as failure:
            raise ImportError("progress is drawn by tqdm: pip install tqdm") from failure
        self._bar = tqdm()

    def __call__(self, news: dict) -> None:
        self._bar.total, self._bar.n = news["total"] or None, news["done"]
        self._bar.set_description(news["what"], refresh=False)
        self._bar.set_postfix({"loss": f"{news['loss']:.4g}", "epoch": news["epoch"]})

    def close(self) -> None:
        self._bar.close()


class Watch:
    """A basin_watch around a run. Ctrl-C, and a callback that returns True, stop it; what a
    callback raises is raised when the run has ended."""

    def __init__(self, progress=None):
        self.stopped, self.notes, self._failure = False, [], None
        self._callback = Bar() if progress is True else progress or None
        self._show = ffi.callback(_FIELDS["show"].type, self._shown)
        self._note = ffi.callback(_FIELDS["note"].type, self._noted)
        self._stop = ffi.callback(_FIELDS["stop"].type, lambda _: self.stopped)
        self.pointer = sized("basin_watch", show=self._show, note=self._note, stop=self._stop)
        self._before = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *failure):
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if isinstance(self._callback, Bar):
            self._callback.close()
        if self._failure is not None and failure[0] is None:
            raise self._failure

    def _interrupt(self, number, _):
        """The first Ctrl-C ends the run, a second one the program."""
        signal.signal(signal.SIGINT, self._before)
        self.stop()

    def stop(self):
        self.stopped = True

    def _shown(self, _, news):
        if self._callback is None or self.stopped:
            return
        try:
            if is_true(self._callback(news_of(news))):
                self.stop()
        except BaseException as failure:  # noqa: B036, C code lies in between
            self._failure = failure
            self.stop()

    def _noted(self, _, line):
        self.notes.append(text(line))
        _log.info("%s", self.notes[-1])
