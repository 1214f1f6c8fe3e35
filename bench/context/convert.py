"""Weights of pretraining -> the model file that comes with Basin, and a golden case for its C code.

  convert.py model WEIGHTS.safetensors models/context.safetensors     float16, with the codes of cells, whatever their shapes
  convert.py golden tests/golden/context/context.safetensors          a small model with drawn weights, and what it computes in float64

A cell's code is drawn in training for every table; here codes are fixed, four per cell, and scores are means over as many of these
passes as are asked for.
"""
import json
import math
import struct
import sys
import numpy as np
import torch
import torch.nn as nn
from safetensors import safe_open
from model import Block, Model, norm

PASSES, CELLS = 4, 128
TYPES = {np.dtype(np.float16): 'F16', np.dtype(np.float32): 'F32', np.dtype(np.float64): 'F64', np.dtype(np.int32): 'I32'}
START = 0xcbf29ce484222325  # of hashes


def fnv(text, h=START):
    """FNV-1a of a text with its final zero."""
    for byte in text.encode() + b'\0':
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return h


def words(data):
    """basin_hash_words of src/base/hash.h."""
    h, whole = START, len(data) // 8
    for word in np.frombuffer(data, '<u8', whole).tolist():
        h = (h ^ word) * 0x9e3779b97f4a7c15 % 2**64
        h ^= h >> 32
    for byte in data[8 * whole:]:
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return h


def digests(tensors, meta):
    """What docs/formats.md calls basin.digests."""
    lines = [f'{TYPES[a.dtype]} {list(a.shape)} {words(a.tobytes()):016x} {name}' for name, a in sorted(tensors.items())]
    both = sum(fnv(value, fnv(key)) for key, value in meta.items()) % 2**64
    return '\n'.join([*lines, f'metadata {both:016x}'])


def save(path, tensors, meta):
    meta = {k: str(v) for k, v in meta.items() if k != 'basin.digests'}
    tensors = {k: np.ascontiguousarray(a) for k, a in tensors.items()}
    head, blobs, at = {'__metadata__': {**meta, 'basin.digests': digests(tensors, meta)}}, [], 0
    for name in sorted(tensors):
        a = tensors[name]
        head[name] = dict(dtype=TYPES[a.dtype], shape=list(a.shape), data_offsets=[at, at + a.nbytes])
        blobs.append(a.tobytes())
        at += a.nbytes
    text = json.dumps(head).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + b''.join(blobs))


def codes(cells):
    return np.random.default_rng(50).standard_normal((PASSES, cells, 16)).astype(np.float16)


def model(weights, out):
    with safe_open(weights, 'np') as f:
        tensors = {k: f.get_tensor(k).astype(np.float16) for k in f.keys()}
        meta = f.metadata() or {}
    assert any(k.endswith('.col.qv') for k in tensors), 'not an Energy Transformer'
    save(out, {**tensors, 'codes': codes(CELLS)}, {'kind': 'context', 'columns': 'clamped', **meta})


def golden(out):
    """Blocks with sizes of their own, two of which take two steps."""
    torch.manual_seed(7)
    m = Model('three-clamped', 24)
    m.ls = nn.ModuleList(Block(24, h, dh, K, T, axis, joint=False) for h, dh, K, T, axis in
                         ((2, 6, 0, 1, 'columns'), (3, 5, 0, 2, 'rows'), (0, 0, 17, 1, 'cells'),
                          (2, 6, 0, 2, 'columns'), (3, 5, 0, 1, 'rows'), (0, 0, 17, 1, 'cells')))
    m.end = 4
    for k, p in m.named_parameters():
        if k.endswith('sharp'):
            p.data.normal_(0, .1)
        p.data = p.data.half().double()
    n, q, T = 7, 5, 4
    X = torch.randn(1, n + q, T, 3, 3).double()
    X[..., 1] = torch.rand(1, n + q, T, 3).double()
    X[..., 2] = torch.randint(-1, 2, (1, 1, T, 3)).double()
    X[..., 0] *= X[..., 2].abs()
    y = torch.tensor([[0, 1, 0, 0, 1, 0, 0]]).double()
    c = codes(T + 2)
    code = torch.tensor(c[1, :T].astype(np.float64))[None, None]
    y = torch.cat([y, y.new_zeros(1, q)], 1)
    more, energies, kept, share = torch.full((), math.log(n / 200)).double(), [], [], None
    with torch.no_grad():
        x = m.enc(X, y, n, code)
        for i, l in enumerate(m.ls):
            g = norm(x)
            memory = l.store(g, n)
            kept.append(memory)
            if l.row is not None and share is None:                   # what the queries' cells retrieve from each labelled row
                s = l.row.split(g[:, n:, :T].transpose(1, 2).flatten(0, 1), l.row.maps(g.dtype, more)[0])
                share = torch.softmax(s @ memory[1][0][:T].transpose(-1, -2), -1).mean((0, 1))  # [queries, n]
            of = label if i >= 3 else lambda *a: l.energy(*a[1:4])[0, n:]                       # after the last columns only that cell is read
            energies.append(of(l, g, memory, more, n))
            x = l(x, n, more)
            energies.append(of(l, norm(x), memory, more, n))
        ratio = m.o2(nn.functional.gelu(m.o1(m.ln(x[:, n:, -1]))))[0, :, 0]
        assert (ratio - m(X, y, n, code)[0]).abs().max() < 1e-6
    moves = torch.stack([move(m, X[:, n + i:n + i + 1], code, kept, n, more, ratio[i]) for i in range(q)])
    tensors = {k: p.detach().numpy().astype(np.float16) for k, p in m.named_parameters()}
    tensors |= {'codes': c, 'out.move': moves.numpy(), 'in.row': X[0].float().numpy().reshape(n + q, T, 9), 'in.label': y[0, :n].numpy().astype(np.int32),
                'out.ratio': ratio.numpy(), 'out.energy': torch.stack(energies, 1).numpy(), 'out.share': share.numpy()}
    save(out, tensors, {'kind': 'context', 'columns': 'clamped', 'case': 'context', 'pass': 1})


def move(m, X, code, kept, n, more, expected):
    """The derivative of one query's ratio by the logarithms u of how often labelled rows count in blocks over rows."""
    u = torch.zeros(n, dtype=torch.double, requires_grad=True)
    x = m.enc(X, X.new_zeros(1, 1), 0, code)
    for l, memory in zip(m.ls, kept):
        own = l.store(norm(x), 1)
        for t in range(l.T):
            g = norm(x)
            if l.row is None:
                f = l.force(g, own, more)
            else:                                                     # the energy's gradient, with rows counted
                h = g.transpose(1, 2).flatten(0, 1)
                a, kw = l.row, memory[1][0]
                Q, _, Qi, _, _, _, qi, _ = a.maps(g.dtype, more)
                qv = a.split(h, Q)
                both = torch.softmax(qv @ kw.transpose(-1, -2) + u, -1) @ kw
                keys = torch.softmax(qv[..., :a.dh] @ kw[..., :a.dh].transpose(-1, -2) + u, -1) @ kw[..., :a.dh]
                f = (both.transpose(1, 2).flatten(-2) @ Qi - keys.transpose(1, 2).flatten(-2) @ qi)[None].transpose(1, 2)
            x = x + l.alpha.exp()[t] * f
    ratio = m.o2(nn.functional.gelu(m.o1(m.ln(x[:, :, -1]))))[0, 0, 0]
    assert (ratio - expected).abs() < 1e-12
    return torch.autograd.grad(ratio, u)[0]


def label(l, g, memory, more, n):
    """The energy of the queries' label cells."""
    if l.mem is not None:
        return l.mem.energy(g)[0, n:, -1]
    if l.col is not None:
        return l.col.energy(g.flatten(0, 1), memory[0], 0.).unflatten(0, g.shape[:2])[0, n:, -1]
    return l.row.energy(g.transpose(1, 2).flatten(0, 1), memory[1], more).unflatten(0, (1, -1))[0, -1, n:]


if __name__ == '__main__':
    {'model': model, 'golden': golden}[sys.argv[1]](*sys.argv[2:])
