"""What is the same on every page: head, navigation, search; and the index that it searches."""

import html
import json
import re

from tree import ROOT, address, relative, target

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{root}site.css">
<script src="{root}site.js" data-root="{root}"></script>
</head>
<body>
<header>
<a class="name" href="{root}index.html">Basin</a>
<input id="search" type="search" placeholder="Search" aria-label="Search" autocomplete="off">
<button id="shade" type="button" aria-label="Light or dark">◐</button>
<button id="menu" type="button" aria-label="Contents" aria-expanded="false">☰</button>
</header>
<div id="found" hidden></div>
<div class="columns">
<nav aria-label="Contents">
{navigation}</nav>
<main>
{body}</main>
</div>
</body>
</html>
"""
REFERENCE = (
    ("docs/commands.md", "Commands"),
    ("reference/c", "C reference"),
    ("reference/python", "Python reference"),
    ("python/notebooks", "Notebooks"),
)


def groups():
    """(heading, paths) in the order of the table in docs/README.md."""
    found = [("Start", ["README.md"])]
    text = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\| (.+?) \|", text, re.M):
        heading, link = re.match(r"\*\*(.+)\*\*", row), re.match(r"\[.+?\]\((.+?)\)", row)
        if heading:
            found.append((heading.group(1), []))
        elif link and target("docs/README.md", link.group(1)):
            found[-1][1].append(target("docs/README.md", link.group(1)))
    return found


class Frame:
    def __init__(self, pages, explorer=None):
        """`explorer` is the address of the Explorer, None where it was not made."""
        self.pages = pages
        self.explorer = explorer
        titled = dict(REFERENCE)
        self.groups = []
        for heading, paths in groups():
            if heading == "Reference":
                paths = [path for path in titled if path in pages] + [
                    path for path in paths if path not in titled
                ]
            self.groups.append(
                (heading, [(path, titled.get(path) or self.title(path)) for path in paths])
            )

    def title(self, path):
        if path == "README.md":
            return "Basin"
        return self.pages[path].title.split(":")[0] if path in self.pages else path

    def navigation(self, path):
        out = []
        for heading, items in self.groups:
            out.append(f"<h2>{html.escape(heading)}</h2>\n<ul>\n")
            for item, title in items:
                here = ' aria-current="page"' if item == path else ""
                out.append(
                    f'<li><a href="{relative(address(item), path)}"{here}>'
                    f"{html.escape(title)}</a></li>\n"
                )
            if heading == "Start" and self.explorer:
                link = relative(self.explorer, path)
                out.append(f'<li><a href="{link}">Explorer: try it in this browser</a></li>\n')
            out.append("</ul>\n")
        return "".join(out)

    def around(self, path, page):
        title = page.title if page.title.startswith("Basin") else f"{page.title} - Basin"
        root = relative("x", path)[:-1]
        return PAGE.format(
            title=html.escape(title), root=root, body=page.body, navigation=self.navigation(path)
        )

    def index(self):
        """The sections of all pages as a script, since a page from disk may fetch nothing."""
        rows = []
        for path, page in self.pages.items():
            for anchor, heading, text in page.sections:
                rows.append(
                    [
                        address(path) + ("#" + anchor if anchor else ""),
                        page.title,
                        heading or page.title,
                        text,
                    ]
                )
        return "window.basinIndex = " + json.dumps(rows, ensure_ascii=False) + ";\n"
