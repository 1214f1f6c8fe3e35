"""Pages from Markdown, source files and folders."""

import html
import posixpath

from markdown_it import MarkdownIt
from page import Anchors, Page, plain
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound
from tree import ROOT, address, listed, relative, target

FORMAT = HtmlFormatter(nowrap=True)


def colours():
    """Style of highlighted code, light and dark."""
    light = HtmlFormatter(style="friendly").get_style_defs("pre")
    dark = HtmlFormatter(style="native").get_style_defs(".dark pre")
    keep = [line for line in (light + "\n" + dark).splitlines() if " ." in line]
    return "".join(line + "\n" for line in keep if "pre ." in line)


def code(text, language=None, name=None):
    """A block of code, coloured where the language is known."""
    try:
        lexer = get_lexer_by_name(language) if language else get_lexer_for_filename(name or "")
        inner = highlight(text, lexer, FORMAT)
    except ClassNotFound:
        inner = html.escape(text)
    return f'<pre tabindex="0"><code>{inner}</code></pre>\n'


LONG, HEADINGS = 6000, 4  # characters and headings from which on a page has contents


def contents(parts):
    """Links to the headings of the second level, for a long page; else nothing."""
    listed = [(anchor, heading) for anchor, heading, part in parts if part.startswith("<h2")]
    if len(listed) < HEADINGS or sum(len(plain(part)) for _, _, part in parts) < LONG:
        return ""
    items = "".join(f'<li><a href="#{anchor}">{html.escape(heading)}</a></li>\n' for anchor, heading in listed)
    return f'<details class="contents" open><summary>On this page</summary>\n<ul>\n{items}</ul></details>\n'


class Reader:
    """Turns the Markdown of one file into HTML whose links lead to other pages of the site."""

    def __init__(self, path):
        self.path, self.anchors, self.links = path, Anchors(), set()
        self.markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        rules = self.markdown.renderer.rules
        rules["fence"] = lambda tokens, i, *_: code(tokens[i].content, tokens[i].info.strip())
        rules["code_block"] = lambda tokens, i, *_: code(tokens[i].content, "text")
        rules["table_open"] = lambda *_: '<div class="wide"><table>\n'
        rules["table_close"] = lambda *_: "</table></div>\n"

    def lead(self, link):
        """Where a link of the file leads on the site."""
        name, mark, anchor = link.partition("#")
        found = None if ":" in name or not name else target(self.path, name)
        if found is None:
            return link
        if posixpath.splitext(found)[1] in (".svg", ".png", ".jpg"):
            return relative(found, self.path)
        self.links.add(found)
        return relative(address(found), self.path) + mark + anchor

    def inline(self, token):
        for child in token.children or []:
            for name in ("href", "src"):
                if child.attrGet(name):
                    child.attrSet(name, self.lead(child.attrGet(name)))
            if child.type == "image":
                child.attrSet("loading", "lazy")

    def read(self, text):
        """HTML, and (anchor, heading, HTML of the section) by heading."""
        tokens, sections = self.markdown.parse(text), [["", "", 0]]
        for i, token in enumerate(tokens):
            if token.type == "inline":
                self.inline(token)
            if token.type == "heading_open":
                heading = "".join(part.content for part in tokens[i + 1].children)
                token.attrSet("id", self.anchors.of(heading))
                sections.append([token.attrGet("id"), heading, i])
        render = self.markdown.renderer.render
        ends = [section[2] for section in sections[1:]] + [len(tokens)]
        parts = [
            (anchor, heading, render(tokens[begin:end], self.markdown.options, {}))
            for (anchor, heading, begin), end in zip(sections, ends)
        ]
        return "".join(part[2] for part in parts), parts


def page_of(path, text, title=None):
    """The page of some Markdown that stands, or could stand, in the file `path`."""
    reader = Reader(path)
    body, parts = reader.read(text)
    found = [(anchor, heading, plain(part)) for anchor, heading, part in parts if part.strip()]
    title = title or next((heading for _, heading, _ in parts if heading), path)
    head, mark, rest = body.partition("</h1>\n")
    return Page(title, head + mark + contents(parts) + rest if mark else body, found, reader.links)


def document(path):
    return page_of(path, (ROOT / path).read_text(encoding="utf-8"))


def source(path):
    """A file as it is."""
    text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
    body = f"<h1>{html.escape(path)}</h1>\n" + code(text, name=posixpath.basename(path))
    return Page(path, body, [("", path, text)])


def folder(path):
    """What lies in a folder."""
    links = "".join(
        f'<li><a href="{relative(address(item), posixpath.join(path, "x"))}">'
        f"{html.escape(posixpath.basename(item))}</a></li>\n"
        for item in listed(path)
    )
    return Page(
        path,
        f"<h1>{html.escape(path)}/</h1>\n<ul>\n{links}</ul>\n",
        [("", path, "")],
        set(listed(path)),
    )
