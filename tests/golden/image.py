"""The golden case image_bytes: the image model at sizes whose products fp8 serves.

    python3 -m venv venv && venv/bin/pip install jax
    venv/bin/python tests/golden/image.py tests/golden/image_bytes.safetensors
    venv/bin/python tests/golden/image.py --check tests/golden/image.safetensors

The energy stands as docs/energies.md has it; forces are JAX's gradients of it in double, and gradients go through
the unrolled steps. --check recomputes a file from its inputs and prints the largest relative error.
"""

import json
import struct
import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

B, N, P, D, H, Y, M = 2, 16, 48, 64, 2, 32, 128
EPS = 1e-5
WEIGHTS = ("beta", "dec_b", "dec_w", "delta", "enc_b", "enc_w", "gamma", "mask", "pos", "wk", "wq", "xi")


def norm(p, x):
    centred = x - x.mean(-1, keepdims=True)
    return p["gamma"] * centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + EPS) + p["delta"]


def energies(p, g):
    """Of one picture [N, D]: attention over all other tokens, memories."""
    q, k = jnp.einsum("nd,hyd->hny", g, p["wq"]), jnp.einsum("nd,hyd->hny", g, p["wk"])
    score = p["beta"][:, None, None] * q @ k.transpose(0, 2, 1)
    score = jnp.where(jnp.eye(g.shape[0], dtype=bool), -jnp.inf, score)
    attention = -(jax.nn.logsumexp(score, -1) / p["beta"][:, None]).sum()
    return jnp.stack([attention, -0.5 * (jax.nn.relu(g @ p["xi"].T) ** 2).sum()])


def forward(p, patches, replaced, steps, alpha):
    x = jnp.where(replaced[:, None], p["mask"], patches @ p["enc_w"] + p["enc_b"]) + p["pos"]
    trace = [energies(p, norm(p, x))]
    for _ in range(steps):
        x = x - alpha * jax.grad(lambda g: energies(p, g).sum())(norm(p, x))
        trace.append(energies(p, norm(p, x)))
    return norm(p, x) @ p["dec_w"] + p["dec_b"], jnp.stack(trace)


def compute(given, steps, alpha):
    p = {name: jnp.asarray(given[name]) for name in WEIGHTS}

    def loss_of(p):
        run = jax.vmap(lambda x, r: forward(p, x, r, steps, alpha))
        output, energy = run(given["patches"], given["replaced"] != 0)
        occluded = (given["occluded"] != 0)[..., None]
        error = jnp.where(occluded, (output - given["patches"]) ** 2, 0)
        return error.sum() / (occluded.sum() * given["patches"].shape[-1]), (output, energy)

    (loss, (output, energy)), gradient = jax.value_and_grad(loss_of, has_aux=True)(p)
    result = {"out.loss": loss, "out.patches": output, "out.energy": energy}
    return {**result, **{"grad." + name: g for name, g in gradient.items()}}


def draw_inputs():
    rng = np.random.default_rng(16)
    draw = lambda *shape, by=1.0: by * rng.standard_normal(shape)
    occluded = rng.permuted(np.arange(N)[None].repeat(B, 0), axis=1) < N // 2
    replaced = occluded & (rng.random((B, N)) < 0.9)
    return dict(beta=Y**-0.5 * (1 + 0.2 * rng.random(H)), dec_b=draw(P, by=0.1), dec_w=draw(D, P, by=0.1),
                delta=draw(D, by=0.1), enc_b=draw(D, by=0.1), enc_w=draw(P, D, by=0.1), gamma=np.array(1.05),
                mask=draw(D), pos=draw(N, D, by=0.3), wk=draw(H, Y, D, by=0.1), wq=draw(H, Y, D, by=0.1),
                xi=draw(M, D, by=0.1), patches=draw(B, N, P), occluded=occluded.astype(np.int32),
                replaced=replaced.astype(np.int32))  # fmt: skip


def read(path):
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        head, data = json.loads(file.read(length)), file.read()
    meta, kinds = head.pop("__metadata__"), {"F64": np.float64, "I32": np.int32}
    cut = lambda e: np.frombuffer(data[slice(*e["data_offsets"])], kinds[e["dtype"]]).reshape(e["shape"])
    return meta, {name: cut(entry) for name, entry in head.items()}


def write(path, meta, tensors):
    head, data = {"__metadata__": meta}, b""
    for name, x in sorted(tensors.items()):
        x = np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x)
        kind = "I32" if x.dtype == np.int32 else "F64"
        head[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main(arguments):
    if arguments[0] == "--check":
        meta, known = read(arguments[1])
        given = {name[3:]: x for name, x in known.items() if name.startswith("in.")}
        for name, x in compute(given, int(meta["steps"]), float(meta["alpha"])).items():
            print(f"{name} {np.linalg.norm(x - known[name]) / np.linalg.norm(known[name]):.1e}")
        return
    given = draw_inputs()
    meta = {"case": '"image"', "kind": '"relu"', "self_attention": "false", "steps": "3", "alpha": "0.1",
            "eps": "1e-05", "seed": "16"}  # fmt: skip
    inputs = {"in." + name: x for name, x in given.items()}
    write(arguments[0], meta, {**inputs, **compute(given, 3, 0.1)})


if __name__ == "__main__":
    main(sys.argv[1:])
