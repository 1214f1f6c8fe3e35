"""The published weights of the Energy Transformer of images (npz) as a model file.

    python3 published.py plaindict_ckpt.npz model.safetensors
    basin image complete model.safetensors photo.jpg --mask 40,60,80,80

The keys are Wk, Wq [H, Y, D], Xi [D, M], Wenc [P, D], Benc, Wdec [D, P], Bdec, POS_embed,
MASK_token, LNORM_gamma, LNORM_bias and, where there is one, CLS_token. Sizes follow from the
shapes; what the file does not say is as in the paper: 12 steps of 0.1, beta 1 / sqrt(Y), tokens may
attend to themselves, ImageNet's means and deviations. Needs NumPy."""

import json
import math
import os
import struct
import sys
import zipfile

import numpy as np

NAMES = {
    "Wk": ("wk", 3),
    "Wq": ("wq", 3),
    "Xi": ("xi", 2),
    "Wenc": ("enc_w", 2),
    "Benc": ("enc_b", 1),
    "Wdec": ("dec_w", 2),
    "Bdec": ("dec_b", 1),
    "POS_embed": ("pos", 2),
    "CLS_token": ("cls", 1),
    "MASK_token": ("mask", 1),
    "LNORM_bias": ("delta", 1),
    "LNORM_gamma": ("gamma", 0),
}

# The paper's table: what such a file does not say.
PAPER = {"steps": 12, "alpha": 0.1, "attention": True, "hopfield": True, "self_attention": True}
PAPER |= {"hopfield_kind": "relu", "hopfield_power": 3, "beta": 0, "learn_beta": False}
PAPER |= {"occlude": 100 / 196, "keep": 0.1, "batch": 768, "rate": 5e-4, "warmup": 2, "decay": 0.05}
PAPER |= {"rate_first": 5e-7, "rate_last": 5e-7, "beta2": 0.99, "clip": 1, "seed": 0, "epochs": 100}
PAPER |= {"crop": "random", "crop_scale": 0.08, "flip": True, "jitter": 0.4, "recompute": False}
PAPER |= {"init": "paper", "positive_gamma": False, "holes": 0, "average": 0, "patience": 0}


def read(path):
    """The tensors under our names, leading axes of length 1 dropped."""
    tensors = {}
    with np.load(path) as file:
        for theirs, (ours, rank) in NAMES.items():
            if theirs not in file and theirs == "CLS_token":
                continue
            if theirs not in file:
                sys.exit(f"published.py: {path} has no array {theirs}")
            array = file[theirs]
            extra = array.ndim - rank
            if extra < 0 or any(n != 1 for n in array.shape[:extra]) or array.size == 0:
                sys.exit(f"published.py: {theirs} is {list(array.shape)}, needs {rank} axes")
            array = array.reshape(array.shape[extra:])
            tensors[ours] = np.array(array.T if ours == "xi" else array, "<f4", order="C")
    return tensors


def check(tensors, wanted):
    for name, shape in wanted.items():
        if name in tensors and tensors[name].shape != shape:
            sys.exit(f"published.py: {name} is {tensors[name].shape}, needs {shape}")


def settings(tensors):
    heads, head_dim, dim = tensors["wk"].shape
    values, memories = tensors["enc_w"].shape[0], tensors["xi"].shape[0]
    tokens = tensors["pos"].shape[0] - ("cls" in tensors)
    channels = 3 if values % 3 == 0 and math.isqrt(values // 3) ** 2 == values // 3 else 1
    patch, across = math.isqrt(values // channels), math.isqrt(max(tokens, 0))
    if patch**2 * channels != values or across**2 != tokens or tokens < 1:
        sys.exit(
            f"published.py: {tokens} patches of {values} numbers, needs a square number of square "
            "patches of 1 or 3 channels"
        )
    vector = (dim,)
    shapes = {"wq": (heads, head_dim, dim), "xi": (memories, dim), "enc_w": (values, dim)}
    shapes |= {
        "dec_w": (dim, values),
        "dec_b": (values,),
        "pos": (tokens + ("cls" in tensors), dim),
    }
    check(tensors, shapes | dict.fromkeys(("enc_b", "mask", "cls", "delta"), vector))
    return {
        "arch": "et",
        "channels": channels,
        "size": across * patch,
        "patch": patch,
        "dim": dim,
        "heads": heads,
        "head_dim": head_dim,
        "memories": memories,
        "cls": "cls" in tensors,
        "mean": [0.485, 0.456, 0.406] if channels == 3 else [0.449, 0, 0],
        "deviation": [0.229, 0.224, 0.225] if channels == 3 else [0.226, 1, 1],
        **PAPER,
    }


def write(path, tensors, config):
    header = {"__metadata__": {"basin.model": "image", "basin.config": json.dumps(config)}}
    at = 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    aside = f"{path}.part"
    try:
        with open(aside, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for array in tensors.values():
                file.write(array.tobytes())
        os.replace(aside, path)
    except OSError as why:
        if os.path.exists(aside):
            os.remove(aside)
        sys.exit(f"published.py: cannot write {path}: {why.strerror}")


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].endswith(".safetensors"):
        sys.exit("usage: python3 published.py WEIGHTS.npz MODEL.safetensors")
    try:
        arrays = read(sys.argv[1])
    except (OSError, ValueError, zipfile.BadZipFile) as why:
        sys.exit(f"published.py: {sys.argv[1]} is no npz that can be read: {why}")
    write(sys.argv[2], arrays, settings(arrays))
