"""A graph file of DGL (dgl.save_graphs, format 2, DGL 0.5 and later) as npz, without DGL.

    python3 dgl.py tfinance tfinance.npz
    basin data convert tfinance.npz tfinance.basin

The first graph of the file; of several node types the first with labels, else the largest, with the
relations within it. Features are the node tensor feature (features, feat, x, attr), labels label
(labels, y), masks train_mask(s), val_mask(s) or valid_mask(s), test_mask(s). Needs NumPy."""

import sys

import numpy as np

FILE, GRAPH, META = 0xDD2E4FF046B4A13F, 0xDD589FBE35224ABF, 0xDD3C5FFE20046ABF
RELATION = 0xDD2E60F0F6B4A127
TENSOR, CSR, COO = 0xDD5E40F096B4A13F, 0xDD6CD31205DFF127, 0xDD61FFD305DFF127
SIGNED, UNSIGNED, FLOAT, BOOL = 0, 1, 2, 6  # codes of types
TYPES = {(SIGNED, bits): f"<i{bits // 8}" for bits in (8, 16, 32, 64)}
TYPES |= {(FLOAT, bits): f"<f{bits // 8}" for bits in (16, 32, 64)}
TYPES |= {(UNSIGNED, 8): "u1", (BOOL, 8): "?", (UNSIGNED, 1): "?"}
NAMES = {
    "x": "feature features feat x attr",
    "y": "label labels y",
    "train_masks": "train_mask train_masks",
    "val_masks": "val_mask val_masks valid_mask valid_masks",
    "test_masks": "test_mask test_masks",
}


class Reader:
    def __init__(self, path):
        self.data, self.at = np.memmap(path, np.uint8, "r"), 0

    def take(self, dtype, count=1):
        size = np.dtype(dtype).itemsize * count
        if self.at + size > len(self.data):
            sys.exit(f"cut off at byte {self.at} of {len(self.data)}")
        self.at += size
        return np.frombuffer(self.data[self.at - size : self.at].tobytes(), dtype)

    def number(self):
        return int(self.take("<u8")[0])

    def magic(self, wanted, what):
        if self.number() != wanted:
            sys.exit(f"{what} at byte {self.at - 8}: not a DGL graph file of format 2")

    def text(self):
        return bytes(self.take("u1", self.number())).decode()

    def tensor(self):
        self.magic(TENSOR, "a tensor")
        self.take("u1", 16)  # reserved, and the device, which is always the host
        rank, (code, bits) = int(self.take("<i4")[0]), self.take("u1", 4)[:2]
        shape = self.take("<i8", rank)
        dtype = np.dtype(TYPES[int(code), int(bits)])
        return self.take(dtype, self.number() // dtype.itemsize).reshape(shape)

    def tensors(self):
        return {self.text(): self.tensor() for _ in range(self.number())}

    def edges(self, coo):
        """[E, 2], rows first, and what number each entry has."""
        self.magic(COO if coo else CSR, "a matrix")
        self.take("<u8", 2)
        first, second, number = self.tensor(), self.tensor(), self.tensor()
        self.take("u1", 2 if coo else 1)  # whether it is sorted
        row = first if coo else np.repeat(np.arange(len(first) - 1), np.diff(first))
        return np.stack([row, second], 1), number

    def meta(self):
        self.magic(META, "a meta graph")
        return self.edges(False)

    def relation(self):
        self.magic(RELATION, "a relation")
        code = self.number()
        self.number()
        forms = code & 7 if code >> 32 else {1: 1, 2: 2, 3: 4}[code]  # COO, CSR, CSC
        found = None
        for form in (1, 2, 4):
            if forms & form:
                self.meta()
                pairs, _ = self.edges(form == 1)
                found = (pairs[:, ::-1] if form == 4 else pairs) if found is None else found
        return found


def read(path):
    r = Reader(path)
    r.magic(FILE, "the file")
    if r.number() != 2 or r.number() != 2:
        sys.exit("not a graph file of DGL 0.5 or later")
    r.at = 4096
    r.at = r.number()
    r.magic(GRAPH, "a graph")
    joins, number = r.meta()
    joins = joins[np.argsort(number)] if len(number) else joins
    relations = [r.relation() for _ in range(r.number())]
    nodes = r.take("<u8", r.number())
    tensors = [r.tensors() for _ in range(r.number())]
    for _ in range(r.number()):
        r.tensors()  # of edges
    for _ in range(r.number()):
        r.text()  # names of node types
    names = [r.text() for _ in range(r.number())]
    labelled = [t for t, own in enumerate(tensors) if set(own) & set(NAMES["y"].split())]
    chosen = labelled[0] if labelled else int(np.argmax(nodes))
    out = {}
    for key, usual in NAMES.items():
        for name in usual.split():
            if key not in out and name in tensors[chosen]:
                out[key] = tensors[chosen][name]
    for ends, pairs, name in zip(joins, relations, names, strict=True):
        if (ends == chosen).all():
            out["edges" if name in ("", "_E") else f"edges_{name}"] = pairs
    return out


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    np.savez(sys.argv[2], **read(sys.argv[1]))
