"""A network in a MATLAB file (CARE-GNN's layout of Amazon and YelpChi) as npz.

    python3 mat.py Amazon.mat Amazon.npz
    basin data convert Amazon.npz amazon.basin --unlabelled-first 3305

Sparse homo (network, adj, adjacency, A) and net_NAME [N, N] are relations: an entry (i, j) is an
edge i -> j, stored zeros are none. features (feature, attributes, attr, X) are [N, F], label
(labels, gnd, y) has N entries. Needs SciPy."""

import sys

import numpy as np
import scipy.io
import scipy.sparse

NAMES = {
    "edges": "homo network adj adjacency a",
    "x": "features feature attributes attr x",
    "y": "label labels gnd y",
}


def entry(name, value):
    """The name in the npz file and the array; None for variables that mean nothing here."""
    if name.startswith("net_") and name[4:]:
        key = "edges_" + name[4:]
    else:
        key = next((k for k, names in NAMES.items() if name.lower() in names.split()), None)
    if key is None:
        return None
    if np.iscomplexobj(value):
        sys.exit(f"mat.py: {name} holds complex numbers, needs real ones")
    if not key.startswith("edges"):
        dense = value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)
        return key, dense.astype(np.float32) if key == "x" else dense.ravel()
    if not scipy.sparse.issparse(value) or value.shape[0] != value.shape[1]:
        sys.exit(f"mat.py: {name} {value.shape} is no sparse [N, N] matrix, as edges must be")
    edges = value.tocoo()
    kept = edges.data != 0
    return key, np.stack([edges.row[kept], edges.col[kept]], axis=1).astype(np.int32)


def main(path, out):
    try:
        variables = scipy.io.loadmat(path)
    except NotImplementedError:
        sys.exit(f"mat.py: {path}: MATLAB 7.3 (HDF5), needs version 5: save it again with -v7")
    found = [entry(name, value) for name, value in variables.items() if not name.startswith("__")]
    arrays = dict(pair for pair in found if pair)
    if not any(key.startswith("edges") for key in arrays):
        sys.exit(f"mat.py: {path}: no edges are in it, needs sparse matrices homo or net_NAME")
    np.savez(out, **arrays)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
