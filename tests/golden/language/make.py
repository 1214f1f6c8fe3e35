"""Makes the golden cases of GPT (see ../README.md): pre-norm layers in plain PyTorch, in double, from
the formulas of Radford et al. 2019; gradients are automatic. Two windows of seven tokens.

    python3 make.py FOLDER"""
import json
import struct
import sys

import torch
from torch.nn import functional as F

V, N, B, D, H, U, LAYERS = 11, 7, 2, 12, 3, 20, 2


def weights(tied, bias):
    """By our names; maps [in, out] but for the tokens and the head, [V, D]."""
    shapes = {"tok": (V, D), "pos": (N + 2, D), "lnf_w": (D,)}
    for i in range(LAYERS):
        for name, shape in {"norm1_w": (D,), "wq": (D, D), "wk": (D, D), "wv": (D, D), "wo": (D, D),
                            "norm2_w": (D,), "mlp_w1": (D, U), "mlp_w2": (U, D)}.items():
            shapes[f"layer{i}.{name}"] = shape
        if bias:
            for name, size in {"norm1_b": D, "bq": D, "bk": D, "bv": D, "bo": D, "norm2_b": D,
                               "mlp_b1": U, "mlp_b2": D}.items():
                shapes[f"layer{i}.{name}"] = (size,)
    if bias:
        shapes.update({"lnf_b": (D,), "head_b": (V,)})
    if not tied:
        shapes["head_w"] = (V, D)
    made = {n: 0.5 * torch.randn(s, dtype=torch.float64) for n, s in shapes.items()}
    return {n: (w + 1 if n.endswith(("norm1_w", "norm2_w", "lnf_w")) else w).requires_grad_() for n, w in made.items()}


def forward(w, ids):
    def norm(x, name):
        return F.layer_norm(x, (D,), w[name + "_w"], w.get(name + "_b"), 1e-5)

    def linear(x, weight, bias):
        return x @ w[weight] + w.get(bias, 0)

    x = w["tok"][ids] + w["pos"][:N]
    for i in range(LAYERS):
        p = f"layer{i}."
        g = norm(x, p + "norm1")
        q, k, v = (linear(g, p + "w" + c, p + "b" + c).view(B, N, H, D // H).transpose(1, 2) for c in "qkv")
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(mixed.transpose(1, 2).reshape(B, N, D), p + "wo", p + "bo")
        x = x + linear(F.gelu(linear(norm(x, p + "norm2"), p + "mlp_w1", p + "mlp_b1")), p + "mlp_w2", p + "mlp_b2")
    return norm(x, "lnf") @ w.get("head_w", w["tok"]).T + w.get("head_b", 0)


def write(path, tensors, meta):
    header, at = {"__metadata__": {k: json.dumps(v) for k, v in meta.items()}}, 0
    for name, t in tensors.items():
        size = t.numel() * t.element_size()
        header[name] = {"dtype": "I32" if t.dtype == torch.int32 else "F64", "shape": list(t.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            file.write(t.detach().contiguous().numpy().tobytes())


def make(folder, name, tied, bias):
    torch.manual_seed(7)
    w, ids, label = weights(tied, bias), torch.randint(V, (B, N)), torch.randint(V, (B, N))
    logits = forward(w, ids)
    loss = F.cross_entropy(logits.view(-1, V), label.view(-1))
    loss.backward()
    tensors = {"in." + n: t for n, t in w.items()} | {"grad." + n: t.grad for n, t in w.items()}
    tensors |= {"in.ids": ids.int().view(-1), "in.label": label.int().view(-1), "out.logits": logits, "out.loss": loss}
    write(f"{folder}/{name}.safetensors", tensors, {"case": name, "heads": H, "layers": LAYERS, "tied": tied, "bias": bias})


make(sys.argv[1], "gpt", False, True)
make(sys.argv[1], "gpt_tied", True, False)
