#!/usr/bin/env python3
"""Benchmark sets of graphs (Dwivedi et al., "Benchmarking graph neural networks").

    python3 bench/graphsets.py pattern pattern.safetensors              # or cluster; --seed N
    python3 bench/graphsets.py superpixels mnist.safetensors --pictures mnist/
    basin graph train pattern.safetensors --preset sbm

PATTERN and CLUSTER are stochastic block models whose nodes are to be classified, drawn with the
parameters of the benchmark; its own files cannot be regenerated, as their seeds were not kept.
Superpixels are SLIC segments (Achanta et al. 2012) of MNIST's idx files or CIFAR-10's binary
batches, each joined to its 8 nearest. Needs NumPy alone; writes the packed form that
docs/formats.md describes, with its split into training, validation and test.
"""

import argparse
import gzip
import json
import multiprocessing
import pathlib
import struct

import numpy

SMALLEST, LARGEST, PATTERNS = 5, 34, 100  # nodes of a community; hidden patterns
NEAREST, ITERATIONS = 8, 10
CIFAR_RECORD = 3073


# ---- PATTERN and CLUSTER ----


def blocks(random, communities, inside, outside):
    """The community of each node, and which pairs are joined."""
    sizes = random.integers(SMALLEST, LARGEST + 1, communities)
    community = numpy.repeat(numpy.arange(communities), sizes)
    chance = numpy.where(community[:, None] == community, inside, outside)
    return community, numpy.triu(random.random(chance.shape) < chance, 1)


def draw_pattern(random, hidden):
    """Five communities, and a hidden pattern joined to everything else with probability 0.5."""
    community, joined = blocks(random, 5, 0.5, 0.35)
    n, size = len(community), len(hidden["feature"])
    whole = numpy.zeros((n + size, n + size), bool)
    whole[:n, :n] = joined
    whole[:n, n:] = random.random((n, size)) < 0.5
    whole[n:, n:] = hidden["joined"]
    feature = numpy.concatenate([random.integers(0, 3, n), hidden["feature"]])
    return numpy.repeat([0, 1], [n, size]), feature, whole


def draw_cluster(random, _):
    """Six communities; one node of each has its number + 1 for a feature, all others 0."""
    community, joined = blocks(random, 6, 0.55, 0.25)
    feature = numpy.zeros_like(community)
    for c in range(6):
        feature[random.choice(numpy.flatnonzero(community == c))] = c + 1
    return community, feature, joined


def block_model(name, sizes, seed):
    random = numpy.random.default_rng([seed, 1])
    patterns = []
    for _ in range(PATTERNS):
        size = random.integers(SMALLEST, LARGEST + 1)
        joined = numpy.triu(random.random((size, size)) < 0.5, 1)
        patterns.append({"feature": random.integers(0, 3, size), "joined": joined})
    draw = draw_pattern if name == "pattern" else draw_cluster
    graphs = []
    for i in range(sum(sizes)):
        random = numpy.random.default_rng([seed, 2, i])
        of, feature, joined = draw(random, patterns[i % PATTERNS])
        order = random.permutation(len(of))  # so that a node's number says nothing of its class
        joined = (joined | joined.T)[order][:, order]
        graphs.append(
            {
                "edge": numpy.argwhere(joined),
                "node_label": feature[order, None],
                "class_of": of[order],
            }
        )
    return graphs


# ---- superpixels ----


def to_lab(rgb):
    """sRGB 0 .. 1 to CIE Lab (D65)."""
    linear = numpy.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    xyz = (
        linear
        @ numpy.array(
            [
                [0.412453, 0.357580, 0.180423],
                [0.212671, 0.715160, 0.072169],
                [0.019334, 0.119193, 0.950227],
            ]
        ).T
    )
    t = xyz / [0.95047, 1, 1.08883]
    x, y, z = numpy.moveaxis(numpy.where(t > 0.008856, numpy.cbrt(t), 7.787 * t + 16 / 116), -1, 0)
    return numpy.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


def centres(height, width, wanted, step):
    """The middles of cells about as wide as high, row by row."""
    rows = min(max(1, int(height / step + 0.5)), height)
    place = []
    for r in range(rows):
        columns = min(wanted * (r + 1) // rows - wanted * r // rows, width)
        y = (r + 0.5) * height / rows - 0.5
        place += [(y, (c + 0.5) * width / columns - 0.5) for c in range(columns)]
    return numpy.array(place)


def connect(label, smallest):
    """Numbers connected pieces; those that are too small join the one they were reached from."""
    height, width = label.shape
    fresh = numpy.full(label.shape, -1)
    found = 0
    for y in range(height):
        for x in range(width):
            if fresh[y, x] >= 0:
                continue
            near = fresh[y, x - 1] if x else fresh[y - 1, x] if y else -1
            queue = [(y, x)]
            fresh[y, x] = found
            for v, u in queue:
                for b, a in ((v, u - 1), (v, u + 1), (v - 1, u), (v + 1, u)):
                    if (
                        0 <= b < height
                        and 0 <= a < width
                        and fresh[b, a] < 0
                        and label[b, a] == label[y, x]
                    ):
                        fresh[b, a] = found
                        queue.append((b, a))
            if len(queue) < smallest and near >= 0:
                fresh[tuple(numpy.array(queue).T)] = near
            else:
                found += 1
    return fresh


def slic(pixel, segments, compactness):
    """k-means in colour and place around a grid of centres, each looking twice its step far."""
    height, width, channels = pixel.shape
    step = (height * width / segments) ** 0.5
    colour = (to_lab(pixel) if channels == 3 else pixel).reshape(-1, channels)
    place = numpy.stack(numpy.mgrid[:height, :width], -1).reshape(-1, 2).astype(float)
    at = centres(height, width, segments, step)
    whole = (at + 0.5).astype(int)
    of = colour[whole[:, 0] * width + whole[:, 1]]
    label = numpy.full(height * width, -1)
    for _ in range(ITERATIONS):
        low, high = numpy.maximum(at - 2 * step, 0).astype(int), at + 2 * step
        away = []  # squared, of rows and of columns; infinite beyond the window of a centre
        for axis, cells in enumerate((height, width)):
            along = numpy.arange(cells, dtype=float)[:, None]
            outside = (along < low[:, axis]) | (along > high[:, axis])
            away.append(numpy.where(outside, numpy.inf, (along - at[:, axis]) ** 2))
        apart = (away[0][:, None] + away[1]).reshape(height * width, -1)
        apart *= (compactness / step) ** 2
        apart += sum((colour[:, c, None] - of[:, c]) ** 2 for c in range(channels))
        nearest = apart.argmin(1)
        found = numpy.isfinite(numpy.take_along_axis(apart, nearest[:, None], 1)[:, 0])
        label = numpy.where(found, nearest, label)
        held = label >= 0
        count = numpy.bincount(label[held], minlength=len(at))
        some = count > 0  # a centre without pixels stays
        for to, values in ((at, place), (of, colour)):
            for c in range(values.shape[1]):
                sums = numpy.bincount(label[held], values[held, c], len(at))
                to[some, c] = sums[some] / count[some]
    return connect(label.reshape(height, width), int(0.5 * step * step))


def superpixel_graph(job):
    """Nodes: mean colour and place of segments; edges: the 8 nearest, exp(-(d / sigma)^2)."""
    pixel, class_of, segments, compactness = job
    pixel = pixel / 255
    height, width, channels = pixel.shape
    label = slic(pixel, segments, compactness).ravel()
    y, x = numpy.mgrid[:height, :width]
    columns = [pixel[..., c] for c in range(channels)] + [(x + 0.5) / width, (y + 0.5) / height]
    count = numpy.bincount(label)
    node = numpy.stack([numpy.bincount(label, c.ravel()) / count for c in columns], 1)
    n = len(node)
    d = numpy.hypot(*(node[:, None, -2:] - node[:, -2:]).transpose(2, 0, 1))
    numpy.fill_diagonal(d, numpy.inf)
    most = min(NEAREST, n - 1)
    near = numpy.argsort(d, 1, kind="stable")[:, :most]
    numpy.fill_diagonal(d, 0)
    sigma = numpy.take_along_axis(d, near, 1).sum(1) / NEAREST + 1e-8
    near = numpy.sort(near, 1)
    edge = numpy.stack([numpy.repeat(numpy.arange(n), most), near.ravel()], 1)
    i, j = edge.T
    weight = (numpy.exp(-((d[i, j] / sigma[i]) ** 2)) + numpy.exp(-((d[i, j] / sigma[j]) ** 2))) / 2
    return {
        "edge": edge,
        "node_attribute": node,
        "edge_attribute": weight[:, None],
        "class_of": [class_of],
    }


def read(path):
    return (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()


def read_pictures(folder, half):
    """Bytes [count, height, width, channels] and classes of one half."""
    folder = pathlib.Path(folder)
    kind = {"train": "train", "test": "t10k"}[half]
    images, labels = (sorted(folder.rglob(f"{kind}-{what}?idx*")) for what in ("images", "labels"))
    if images and labels:
        data = read(images[0])
        count, height, width = struct.unpack(">3I", data[4:16])
        pixel = numpy.frombuffer(data, numpy.uint8, offset=16).reshape(count, height, width, 1)
        return pixel, numpy.frombuffer(read(labels[0]), numpy.uint8, offset=8)
    batches = sorted(folder.rglob({"train": "data_batch_*.bin", "test": "test_batch.bin"}[half]))
    if not batches:
        raise SystemExit(
            f"graphsets: {folder}: neither MNIST's idx files nor CIFAR-10's batches for {half}"
        )
    record = numpy.frombuffer(b"".join(map(read, batches)), numpy.uint8).reshape(-1, CIFAR_RECORD)
    return record[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), record[:, 0]


def superpixels(options):
    """The graphs and their split: the first training pictures are for validation."""
    jobs, sizes = [], []
    for half in ("train", "test"):
        pixel, class_of = read_pictures(options.pictures, half)
        grey = pixel.shape[-1] == 1
        segments = options.segments or (75 if grey else 150)
        compactness = options.compactness or (0.25 if grey else 10)
        count = min(len(pixel), options.limit or len(pixel))
        first = options.validation if half == "train" else 0
        order = numpy.roll(numpy.arange(count), -first)
        jobs += [(pixel[i], int(class_of[i]), segments, compactness) for i in order]
        sizes += [count - first, first] if half == "train" else [count]
    if min(sizes) < 0:
        raise SystemExit(
            f"graphsets: {options.validation} of {sum(sizes[:2])} training pictures for validation"
        )
    with multiprocessing.Pool() as pool:
        return pool.map(superpixel_graph, jobs, chunksize=64), sizes


# ---- the packed form ----

DTYPE = {"<f4": "F32", "<i4": "I32", "<i8": "I64"}


def write_set(path, name, task, graphs, sizes):
    nodes = [len(g.get("node_label", g.get("node_attribute"))) for g in graphs]
    start = lambda counts: numpy.concatenate([[0], numpy.cumsum(counts)]).astype("<i8")
    tensor = {"node_start": start(nodes), "edge_start": start([len(g["edge"]) for g in graphs])}
    for key in graphs[0]:
        kind = "<f4" if key.endswith("attribute") else "<i4"
        tensor[key] = numpy.concatenate([g[key] for g in graphs]).astype(kind)
    value, of = numpy.unique(tensor["class_of"], return_inverse=True)
    tensor |= {"class_of": of.astype("<i4"), "class_value": value.astype("<i8")}
    split = " ".join(map(str, sizes))
    header = {
        "__metadata__": {"format": "basin graph set 1", "name": name, "task": task, "split": split}
    }
    at = 0
    for key, data in sorted(tensor.items(), key=lambda item: -item[1].itemsize):
        header[key] = {
            "dtype": DTYPE[data.dtype.str],
            "shape": data.shape,
            "data_offsets": [at, at + data.nbytes],
        }
        at += data.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for key in header:
            if key in tensor:
                file.write(tensor[key].tobytes())
    edges = len(tensor["edge"])
    print(f"{path}: {len(graphs)} graphs ({split}), {sum(nodes)} nodes, {edges} edges")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kind", choices=["pattern", "cluster", "superpixels"])
    parser.add_argument("output", help="the packed set, .safetensors")
    parser.add_argument(
        "--train", type=int, default=10000, help="graphs for training (pattern, cluster) [10000]"
    )
    parser.add_argument(
        "--validation", type=int, help="graphs for validation [2000, 1000, 5000 of the pictures]"
    )
    parser.add_argument(
        "--test", type=int, help="graphs for the test (pattern, cluster) [2000, 1000]"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--pictures", help="superpixels: the folder with MNIST's or CIFAR-10's files"
    )
    parser.add_argument(
        "--limit", type=int, help="superpixels: at most so many pictures of each half"
    )
    parser.add_argument(
        "--segments",
        type=int,
        help="superpixels per picture, at most [75 of grey ones, 150 of colours]",
    )
    parser.add_argument(
        "--compactness",
        type=float,
        help="weight of place against colour [0.25 of grey ones, 10 of colours]",
    )
    return parser.parse_args()


def main():
    options = arguments()
    usual = {"pattern": 2000, "cluster": 1000, "superpixels": 5000}[options.kind]
    if options.validation is None:
        options.validation = usual
    if options.kind != "superpixels":
        sizes = [options.train, options.validation, usual if options.test is None else options.test]
        graphs = block_model(options.kind, sizes, options.seed)
        write_set(options.output, options.kind.upper(), "node classes", graphs, sizes)
    elif not options.pictures:
        raise SystemExit("graphsets: superpixels need --pictures")
    else:
        graphs, sizes = superpixels(options)
        write_set(options.output, "superpixels", "graph classes", graphs, sizes)


if __name__ == "__main__":
    main()
