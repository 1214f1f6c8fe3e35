"""Models of text: learn to predict the next token, score texts, write."""

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from basin._estimator import Estimator, share_of, sized
from basin._library import BasinError, check, ffi, lib, owned, path_of
from basin._watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from basin._keywords import TextKeywords

__all__ = ["TextModel", "Token"]


@dataclasses.dataclass
class Token:
    """A token of a text, as a model sees it.

    >>> import basin
    >>> model = basin.TextModel(epochs=1, epoch_steps=5, dim=16, context=16).fit("abcd" * 100)
    >>> [token.text for token in model.explain("abc")]
    ['a', 'b', 'c']
    """

    id: int
    text: str
    """What it stands for; a part of a character reads as \\ufffd."""
    surprise: float
    """-log p of this token after those before it; NaN of the first."""
    energy: numpy.ndarray
    """[steps + 1, 2]: of attention and of the feed-forward part, before each step and at the end;
    [0, 2] of a model without energy."""


def _is_path(value):
    return isinstance(value, os.PathLike)


def _text_of(text):
    """A text, token ids, or what files of paths hold, as a basin_text, and what owns its memory."""
    if isinstance(text, str):
        text = text.encode()
    if isinstance(text, bytes):
        keep = ffi.from_buffer("char[]", text)
        return ffi.new("basin_text *", {"bytes": keep, "length": len(text)}), keep
    paths = list(text) if isinstance(text, (list, tuple)) else [text]
    if paths and all(map(_is_path, paths)):
        below = [sorted(Path(p).rglob("*.txt*")) if os.path.isdir(p) else [p] for p in paths]
        paths = [path for files in below for path in files]
        names = [ffi.new("char[]", path_of(path)) for path in paths]
        read = ffi.new("basin_text *")
        check(lib.basin_text_read, read, ffi.new("char *[]", names), len(names))
        return owned(read, lib.basin_text_free), None
    ids = _ids_of(text)
    keep = ffi.from_buffer("int32_t[]", ids)
    return ffi.new("basin_text *", {"id": keep, "length": len(ids)}), keep


def _ids_of(values):
    """The numbers of tokens as int32."""
    ids = numpy.asarray(values) if hasattr(values, "__len__") else None
    if ids is None or ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise BasinError(
            f"text is {type(values).__name__}, wanted str, bytes, paths (pathlib), or token ids: "
            "integers in one dimension"
        )
    if len(ids) and not (ids.min() >= 0 and ids.max() < 1 << 24):
        raise BasinError(f"a token id is {ids.min()} or {ids.max()}, wanted 0 to 16777215")
    return numpy.ascontiguousarray(ids, "int32")


class TextModel(Estimator):
    """Learns to predict the next token of a text: a causal Energy Transformer (NRGPT) or a GPT.

    A text is a str, bytes, a path or list of paths (pathlib) of files and folders of
    .txt, or token ids: an array of integers, or the path of an .npy file that has one. The last
    `validation` of it is scored after every epoch, and chooses the weights that are kept.

    >>> import basin
    >>> model = basin.TextModel(epochs=2, epoch_steps=40, dim=32, heads=2, context=16, rate=0.01)
    >>> model.fit("the energy goes down. " * 50).generate("the", tokens=8, temperature=0)
    ' energy '
    """

    _task = _prefix = "text"
    _own = {"validation": 0.1}
    validation: float

    if TYPE_CHECKING:

        def __init__(
            self, *, validation: float = 0.1, **settings: Unpack[TextKeywords]
        ) -> None: ...

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a text
        tags.input_tags.string = True
        return tags

    def fit(self, text: Any, y: Any = None, *, validation_text: Any = None) -> "Self":
        """Trains; `validation_text` is a text of its own in place of the last part. y is not
        used."""
        (train, _a) = _text_of(text)
        fields = {"train": train[0]}
        if validation_text is None:
            fields["hold_out"] = share_of(self.validation)
        else:
            (own, _b) = _text_of(validation_text)
            if not own.length:
                raise BasinError("validation_text is empty")
            fields["validation"] = own[0]
        return self._train(self._settings(), sized("basin_text_data", **fields))

    def generate(
        self, prompt: Any = "", tokens: int = 200, *, temperature: float = 0.8, top_k: int = 0,
        seed: int = 0,
    ) -> Any:  # fmt: skip
        """What follows a prompt: a str, or of a model of token ids an array of them, as its prompt
        is. `temperature` divides the logits, 0 takes the likeliest token; `top_k` draws from so
        many of the likeliest, 0 from all."""
        how = {"tokens": tokens, "temperature": temperature, "top_k": top_k, "seed": seed}
        told = self._tell(prompt, how)
        if self.settings_["tokens"] == "ids":
            return numpy.array([number for number, _, given, _, _ in told if not given], "int32")
        return b"".join(text for _, text, given, _, _ in told if not given).decode(errors="replace")

    def explain(self, text: Any) -> "list[Token]":
        """The tokens of a text with the surprise and, of NRGPT, the energy of each; of as many as
        the model's context holds, the last ones."""
        if len(text) == 0:
            return []
        energies = lib.basin_text_about(self._fitted()).energies
        told = self._tell(text, {"energies": energies})
        return [
            Token(number, part.decode(errors="replace"), surprise, energy)
            for number, part, _, surprise, energy in told
        ]

    def _tell(self, prompt, how):
        """(id, bytes, given, surprise, energy) of each token."""
        told = []

        def tell(_, token):
            steps = token.steps
            rows = ffi.buffer(token.energy, 16 * (steps + 1)) if steps else b""
            energy = numpy.frombuffer(rows, "f8").reshape(-1, 2).copy()
            text = bytes(ffi.buffer(token.text, token.length))
            told.append((token.id, text, bool(token.given), token.surprise, energy))
            return True

        if isinstance(prompt, bytes) or _is_path(prompt):
            raise TypeError(f"{type(prompt).__name__}, wanted a text: str")
        data, _keep = _text_of(prompt)
        kind = dict(ffi.typeof("basin_text_generation").fields)["tell"].type
        callback = ffi.callback(kind, tell)
        with self._backend().lock, Watch() as watch:
            wish = sized("basin_text_generation", tell=callback, watch=watch.pointer, **how)
            check(lib.basin_text_generate, ffi.NULL, self._fitted(), data, wish)
        if watch.stopped:
            raise KeyboardInterrupt(f"after {len(told)} tokens")
        return told

    def measure(self, text: Any, stride: int = 0) -> "dict[str, Any]":
        """ "loss" in nats per token, "perplexity", "bits" per byte, "accuracy" and "position_loss",
        the loss by the place in a window; of NRGPT "energy", "descent" and "rises", the share of
        steps in which a token's energy rose. Of a text that it was trained on only the part
        counts that training did not see. `stride`: tokens from window to window, by default the
        context.
        """
        data, _keep = _text_of(text)
        scores, scoring = ffi.new("basin_text_scores *"), sized("basin_text_scoring", stride=stride)
        with self._backend().lock:
            check(lib.basin_text_score, scores, self._fitted(), data, scoring)
        scores = owned(scores, lib.basin_text_scores_free)
        names = ("loss", "perplexity", "bits", "accuracy", "energy", "descent", "rises")
        found = {name: getattr(scores, name) for name in (*names, "tokens", "bytes")}
        places = ffi.buffer(scores.position_loss, 8 * scores.context)
        return {**found, "position_loss": numpy.frombuffer(places, "f8").copy()}

    def score(self, text: Any, y: Any = None) -> float:
        """Minus the bits per byte, so that more is better; models with other tokens can be compared
        by it."""
        return -self.measure(text)["bits"]
