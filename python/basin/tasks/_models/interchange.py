"""Model files as folders of Hugging Face's kind, config.json and model.safetensors, and back.

A Basin model is one safetensors file that holds its settings. A folder holds them in config.json,
so that tools which expect one find it; the tensors are the same.
"""

import json
import pathlib
from typing import Any

from basin._engine.library import BasinError, bundle_of, check, ffi, lib, made, path_of, text

_TYPE, _CONFIG = "basin.model", "basin.config"  # metadata of a model file
_PREFIX = "basin-"  # of model_type, "basin-image"


def _metadata(bundle):
    pairs, value = {}, ffi.new("char **")
    while key := lib.basin_bundle_meta_at(bundle, len(pairs), value):
        pairs[text(key)] = text(value[0])
    return pairs


def _write(path, bundle, metadata):
    """The tensors of a bundle under other metadata."""
    other = made(lib.basin_bundle_new, lib.basin_bundle_free, ffi.NULL, needs=(bundle,))
    for key, value in metadata.items():
        check(lib.basin_bundle_meta_set, other, key.encode(), value.encode())
    for i in range(lib.basin_bundle_count(bundle)):
        tensor = lib.basin_bundle_at(bundle, i)
        borrowed = ffi.new("basin_tensor *")
        borrowed[0] = lib.basin_tensor_borrow(tensor.data, tensor.dtype, tensor.shape)
        check(lib.basin_bundle_add, other, lib.basin_bundle_name(bundle, i), borrowed)
    check(lib.basin_bundle_write, path_of(path), other)


def to_huggingface(model: Any, folder: Any) -> None:
    """Writes a model as config.json and model.safetensors into a folder, which is made.

    `model` is the path of a model file, or anything with `save`, such as a fitted estimator. The
    settings are keys of config.json; the file's other metadata are under "basin".

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> try:
    ...     tasks.to_huggingface("nowhere.safetensors", folder)
    ... except FileNotFoundError as failure:
    ...     print(failure.errno)
    2
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.safetensors"
    if hasattr(model, "save"):
        model.save(path)
        model = path
    bundle = bundle_of(model)
    metadata = _metadata(bundle)
    metadata.pop("basin.digests", None)  # of this file, not of one that others may train
    if _TYPE not in metadata or _CONFIG not in metadata:
        raise BasinError(f"{model}: no model of Basin's: its metadata lack {_TYPE!r}")
    config = {"model_type": _PREFIX + metadata.pop(_TYPE), **json.loads(metadata.pop(_CONFIG))}
    config["basin"] = metadata
    _write(path, bundle, {"format": "pt"})  # which other readers ask for
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def from_huggingface(folder: Any, path: Any) -> None:
    """Makes a model file of a folder that `to_huggingface` wrote, also after its tensors were
    trained elsewhere; the program and the estimators open it.

    >>> tasks.from_huggingface("nowhere", "model.safetensors")
    Traceback (most recent call last):
        ...
    basin.BasinError: nowhere: there is no config.json
    """
    folder = pathlib.Path(folder)
    if not (folder / "config.json").exists():
        raise BasinError(f"{folder}: there is no config.json")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise BasinError(f"{folder / 'config.json'}: {error}") from None
    kind = config.pop("model_type", None) if isinstance(config, dict) else None
    if not isinstance(kind, str) or not kind.startswith(_PREFIX):
        raise BasinError(
            f"{folder / 'config.json'}: model_type {kind!r}, expected one that begins with "
            f"{_PREFIX!r}"
        )
    metadata = {_TYPE: kind[len(_PREFIX) :], **config.pop("basin", {})}
    metadata[_CONFIG] = json.dumps(config, separators=(",", ":"))
    _write(path, bundle_of(folder / "model.safetensors"), metadata)
