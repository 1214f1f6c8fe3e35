"""The C reference: each public header as a page, its comments as text, its declarations as code
under an anchor a name."""

import html
import re
import textwrap

import markup
from page import Page
from tree import ROOT, address, relative

NAME = re.compile(r"\b(basin_\w+|BASIN_\w+)\b")
DECLARED = re.compile(
    r"^BASIN_API[^;(]*?\b(basin_\w+)\s*[(;]|^#define\s+(BASIN_\w+)|^\}\s*(basin_\w+);"
    r"|^typedef\b[^;{]*?\b(basin_\w+)(?:;|\()|^static inline[^;(]*?\b(basin_\w+)\("
    r"|^\s+(BASIN_[A-Z0-9_]+)\b(?=[ ,=])|^enum \{ (BASIN_\w+)",
    re.M,
)


def paths():
    found = sorted(ROOT.glob("include/basin/*.h")) + sorted(ROOT.glob("include/basin/tasks/*.h"))
    return [path.relative_to(ROOT).as_posix() for path in found]


def split(text):
    """(comment, code) in the order of the file; the first comment is that of the file."""
    opening, text = re.match(r"/\*(.*?)\*/\n(.*)", text, re.S).groups()
    text = re.sub(r'#ifdef __cplusplus\n(extern "C" \{|\})\n#endif\n', "\n", text)
    text = re.sub(r"^#ifndef BASIN_\w+_H\n#define BASIN_\w+_H\n", "", text, flags=re.M)
    text = re.sub(r"#endif\s*\Z", "", text)
    blocks = re.split(r"\n\s*\n(?=\S)|\n(?=/\*)", text)
    found = [(opening, "")]
    for block in filter(str.strip, blocks):
        comment = re.match(r"\s*/\*(.*?)\*/\n?(.*)", block, re.S)
        found.append(comment.groups() if comment else ("", block.strip("\n")))
    return found


def prose(comment):
    """A comment as HTML: what is indented is code, the rest paragraphs."""
    lines = [re.sub(r"^ \* ?", "", line.rstrip()) for line in comment.strip().split("\n")]
    lines = ["" if line.strip() == "*" else line for line in lines]
    out = []
    for part in re.split(r"\n\s*\n", "\n".join(lines)):
        if re.search(r"^(?: {2,}|\t)", part, re.M):
            out.append(lists(part))
        else:
            out.append(f"<p>{inline(part)}</p>\n")
    return "".join(out)


def lists(part):
    """A part with indented lines: text before them, then a block of code."""
    text, block = [], []
    for line in part.split("\n"):
        (block if line.startswith("  ") or block else text).append(line)
    head = f"<p>{inline(' '.join(text))}</p>\n" if text else ""
    block = textwrap.dedent("\n".join(block))
    return head + f'<pre tabindex="0"><code>{html.escape(block)}</code></pre>\n'


def inline(text):
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def names(text):
    return [next(filter(None, match.groups())) for match in DECLARED.finditer(text)]


def owners(texts):
    """Which header declares a name, first come."""
    found = {}
    for path, blocks in texts.items():
        for _, text in blocks:
            for name in names(text):
                found.setdefault(name, path)
    return found


def code(path, text, owner, done):
    """Declarations with an anchor at each name that they declare, and links at the others."""
    own = set(names(text))

    def mark(match):
        name = match.group(0)
        if name in own and owner[name] == path:
            if name in done:
                return name
            done.add(name)
            return f'<b id="{name}">{name}</b>'
        if name not in owner:
            return name
        return f'<a href="{relative(address(owner[name]), path)}#{name}">{name}</a>'

    marked = NAME.sub(mark, html.escape(re.sub(r"(?<!#define )BASIN_API ", "", text), quote=False))
    marked = re.sub(r"(/\*.*?\*/)", r'<span class="c">\1</span>', marked, flags=re.S)
    return f'<pre tabindex="0"><code>{marked}</code></pre>\n'


def page(path, blocks, owner):
    title = path.removeprefix("include/")
    body = [f"<h1>&lt;{title}&gt;</h1>\n", prose(blocks[0][0])]
    sections, done = [("", title, markup.plain(body[1]))], set()
    for comment, text in blocks[1:]:
        heading = re.match(r" ---- (.+?) ----\s*(.*)", comment, re.S)
        if heading:
            anchor = heading.group(1).replace(" ", "-")
            body.append(f'<h2 id="{anchor}">{html.escape(heading.group(1).capitalize())}</h2>\n')
            comment = heading.group(2)
        if text.startswith("#include"):
            continue
        said = prose(comment) if comment else ""
        found = [name for name in names(text) if owner[name] == path and name not in done]
        shown = code(path, text, owner, done) if text else ""
        body.append(f'<div class="entry">{said}{shown}</div>\n')
        for name in found[:40]:
            sections.append((name, name, markup.plain(said)))
    return Page(title, "".join(body), sections)


def pages():
    texts = {path: split((ROOT / path).read_text(encoding="utf-8")) for path in paths()}
    owner = owners(texts)
    found = {path: page(path, blocks, owner) for path, blocks in texts.items()}
    return found | {"reference/c": contents(texts)}


def contents(texts):
    """The list of headers, each with the first sentence of its comment."""
    rows = []
    for path, blocks in texts.items():
        first = re.split(r"(?<=\.)\s", markup.plain(prose(blocks[0][0])), maxsplit=1)[0]
        rows.append(
            f'<tr><td><a href="{relative(address(path), "reference/c")}"><code>'
            f"{path.removeprefix('include/')}</code></a></td><td>{html.escape(first)}</td></tr>\n"
        )
    body = (
        "<h1>C reference</h1>\n<p>One header a topic. <code>basin/basin.h</code> includes the "
        "engine (libbasin), <code>basin/tasks/tasks.h</code> the tasks.</p>\n"
        f'<div class="wide"><table>\n{"".join(rows)}</table></div>\n'
    )
    return Page("C reference", body, [("", "C reference", "")])
