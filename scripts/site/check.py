"""Says which links of the site lead nowhere: files and anchors, in pages and in the index of the
search; and whether a page asks for something over the network."""

import html.parser
import json
import pathlib
import posixpath
import sys
import urllib.parse


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if named.get("id"):
            self.anchors.add(named["id"])
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        elif named.get("src") or named.get("href"):
            self.loaded.append(named.get("src") or named["href"])


def lead(page, link):
    """(file, anchor) that a link of a page means."""
    name, _, anchor = link.partition("#")
    name = urllib.parse.unquote(name)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), name)) if name else page
    return path, urllib.parse.unquote(anchor)


def faults(folder):
    pages = {
        path.relative_to(folder).as_posix(): Links(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
    }
    rows = json.loads(
        (folder / "index.js").read_text(encoding="utf-8").partition("=")[2].rstrip(";\n")
    )
    links = [("index.js", row[0]) for row in rows]
    for page, found in pages.items():
        links += [(page, link) for link in found.links + found.loaded]
        for link in found.loaded:
            if urllib.parse.urlparse(link).netloc:
                yield f"{page}: loads {link}"
    for page, link in links:
        if urllib.parse.urlparse(link).scheme:
            continue
        path, anchor = lead(page, link)
        if not (folder / path).is_file():
            yield f"{page}: no file for {link}"
        elif anchor and path in pages and anchor not in pages[path].anchors:
            yield f"{page}: no anchor for {link}"


def main():
    folder = pathlib.Path(sys.argv[1])
    found = sorted(set(faults(folder)))
    print("\n".join(found) or f"{folder}: every link leads somewhere")
    sys.exit(bool(found))


main()
