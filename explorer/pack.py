"""Puts the Explorer into one file: page, style, scripts, the engine and what it shows.

    python3 explorer/pack.py BUILD OUTPUT

BUILD has engine.js and engine.wasm. The modules are joined in the order of their imports, without
these. The policy allows the page's own scripts and styles, by their hashes, and the viewer's.
"""

import base64
import gzip
import hashlib
import json
import math
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
MODULES = ("draw", "landscape", "letters", "labels", "patches", "picture", "sudoku", "accounts", "reports", "tour", "app")
FASHION = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz"
SAMPLES = 24


def joined():
    """The modules as one script: each begins with its imports, and has its own exports."""
    parts, names = [], {}
    for module in MODULES:
        text = (HERE / f"{module}.js").read_text()
        text = re.sub(r"^import .*?;\n", "", text, flags=re.M)
        for name in re.findall(r"^(?:export )?(?:async )?(?:const|let|class|function) (\w+)", text, flags=re.M):
            if name in names:
                sys.exit(f"{module}.js: {name} is also in {names[name]}.js; names are the page's")
            names[name] = module
        parts.append(re.sub(r"^export ", "", text, flags=re.M))
    return "\n".join(parts)


def weights(path):
    """A model file without what only training needs."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    config = json.loads(header["__metadata__"].get("basin.config", "{}"))
    header.pop("trained_on", None)
    out, kept = {"__metadata__": header.pop("__metadata__")}, b""
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        out[name] = {**entry, "data_offsets": [len(kept), len(kept) + end - begin]}
        kept += body[begin:end]
    text = json.dumps(out).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + kept, config


def samples():
    """Clothes that the model never saw, from Debian's package; without it, a shirt of our own."""
    path = next((p for p in (FASHION, *map(str, pathlib.Path("/usr/share").glob("**/t10k-images-idx3-ubyte.gz"))) if pathlib.Path(p).exists()), None)
    if path:
        data = gzip.open(path).read()[16:]
        return data[: SAMPLES * 784]
    shirt = bytearray(784)
    for y in range(28):
        for x in range(28):
            sleeve = 4 <= y < 13 and 2 <= x < 26 and abs(x - 13.5) < 6 + (13 - y) * 0.4 + 4
            body = 4 <= y < 26 and 8 <= x < 20 and not (y < 8 and abs(x - 13.5) < 3)
            shirt[28 * y + x] = int(150 + 40 * math.sin(x)) if body or sleeve else 0
    return bytes(shirt)


def packed(data):
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def block(name, data):
    return f'<script type="application/octet-stream" id="{name}">{packed(data)}</script>\n'


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main(build, output):
    script, style = joined(), (HERE / "style.css").read_text()
    worker = (build / "engine.js").read_text() + "\n" + (HERE / "worker.js").read_text()
    (build / "page.mjs").write_text(script)
    if subprocess.run(["node", "--check", build / "page.mjs"]).returncode:
        sys.exit("the joined modules are not one script")
    if "</script" in worker + script:
        sys.exit("a script contains </script")
    viewer = (ROOT / "share/basin/viewer.html").read_text()
    theirs = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', viewer).group(1)
    allowed = {kind: " ".join(re.findall(rf"{kind}-src ([^;]*)", theirs)) for kind in ("script", "style")}
    fashion, config = weights(ROOT / "models/fashion.safetensors")
    keep = ("channels", "size", "patch", "dim", "heads", "head_dim", "memories", "steps", "alpha", "mean", "deviation")
    data = block("wasm", (build / "engine.wasm").read_bytes()) + block("fashion", fashion)
    data += f'<script type="application/json" id="fashion-config">{json.dumps({k: config[k] for k in keep})}</script>\n'
    data += f'<script type="application/octet-stream" id="samples">{base64.b64encode(samples()).decode()}</script>\n'
    data += f'<script type="application/octet-stream" id="hills">{base64.b64encode((ROOT / "examples/pictures/hills.jpg").read_bytes()).decode()}</script>\n'
    data += block("sudoku", (ROOT / "examples/sudoku/sudoku.safetensors").read_bytes())
    data += block("accounts-model", (HERE / "accounts.safetensors").read_bytes())
    data += f'<script type="application/json" id="network-data">{json.dumps(json.loads((HERE / "accounts.json").read_text()))}</script>\n'
    data += block("viewer", viewer.encode())
    policy = (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data: blob:; media-src blob:; worker-src blob:; "
        f"style-src {digest(style)} {allowed['style']}; script-src {digest(script)} {allowed['script']} 'wasm-unsafe-eval'"
    )
    page = (HERE / "page.html").read_text()
    for name, value in {"POLICY": policy, "STYLE": style, "DATA": data, "WORKER": worker, "SCRIPT": script}.items():
        page = page.replace(f"@{name}@", value)
    output.write_text(page)
    print(f"{output}: {output.stat().st_size:,} bytes")


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
