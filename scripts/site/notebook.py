"""Notebooks as pages: their text, their code, and the results that they were saved with."""

import html
import json
import re

import markup
from page import Page, plain
from tree import ROOT

SYMBOLS = {
    "leftarrow": "←",
    "alpha": "α",
    "partial": "∂",
    "sum": "Σ",
    "xi": "ξ",
    "beta": "β",
    "frac14": "¼",
    "frac12": "½",
    "tanh": "tanh",
    "cdot": "·",
    "sqrt": "√",
    "gamma": "γ",
}


def formula(match):
    """The few formulas of the notebooks, in plain characters."""
    text = match.group(1).replace(r"\,", " ").replace("^2", "²")
    return "*" + re.sub(r"\\(\w+)", lambda m: SYMBOLS.get(m.group(1), m.group(1)), text) + "*"


def output(item):
    data = item.get("data", {})
    if "image/png" in data:
        bytes_ = "".join(data["image/png"]).strip()
        return f'<img alt="What the cell drew" src="data:image/png;base64,{bytes_}">\n'
    if "image/svg+xml" in data:
        return "".join(data["image/svg+xml"])
    text = "".join(item.get("text", data.get("text/plain", [])))
    return f'<pre class="output" tabindex="0">{html.escape(text)}</pre>\n' if text else ""


def page(path):
    reader = markup.Reader(path)
    body, title, sections = [], path, []
    for cell in json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            made, parts = reader.read(re.sub(r"\$([^$\n]+)\$", formula, text))
            body.append(made)
            sections += [(anchor, heading, plain(part)) for anchor, heading, part in parts if part]
        else:
            body.append(markup.code(text, "python") + "".join(map(output, cell["outputs"])))
    title = next((heading for _, heading, _ in sections if heading), path)
    return Page(title, "".join(body), sections, reader.links)


def pages():
    found = sorted((ROOT / "python/notebooks").glob("*.ipynb"))
    found += sorted((ROOT / "examples").rglob("*.ipynb"))
    return {
        path.relative_to(ROOT).as_posix(): page(path.relative_to(ROOT).as_posix()) for path in found
    }
