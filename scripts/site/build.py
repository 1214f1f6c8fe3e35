"""Writes the site: a page for each document, header, Python module, notebook and command, and for
each source file that one of them links to. The site mirrors the tree, so that a link between two
files of the tree is a link between their pages."""

import pathlib
import shutil
import sys

import commands
import explorer
import header
import markup
import notebook
import python
from frame import Frame
from tree import ROOT, address, documents, listed


def sources(pages):
    """Pages of what the given pages link to and that has none yet, and what those link to."""
    wanted = {path for page in pages.values() for path in page.links}
    while wanted - pages.keys():
        for path in sorted(wanted - pages.keys()):
            pages[path] = markup.folder(path) if (ROOT / path).is_dir() else markup.source(path)
            wanted |= pages[path].links


def collect():
    """All pages by the path of what they show."""
    pages = {}
    for path in documents():
        pages[path] = markup.document(path)
    pages[commands.PAGE] = commands.contents(commands.PAGE)
    pages |= commands.pages()
    pages |= header.pages()
    pages |= python.pages()
    pages |= notebook.pages()
    sources(pages)
    return pages


def write(folder, pages):
    shutil.rmtree(folder, ignore_errors=True)
    frame = Frame(pages, "explorer.html" if explorer.PAGE.exists() else None)
    for path, page in pages.items():
        target = folder / address(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(frame.around(path, page), encoding="utf-8")
    for picture in listed("docs/pictures"):
        target = folder / picture
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / picture, target)
    if explorer.PAGE.exists():
        explorer.write(folder)
    here = pathlib.Path(__file__).parent
    (folder / "site.css").write_text((here / "site.css").read_text() + markup.colours())
    shutil.copyfile(here / "site.js", folder / "site.js")
    (folder / "index.js").write_text(frame.index(), encoding="utf-8")


def main():
    folder = pathlib.Path(sys.argv[1])
    if folder.exists() and not (folder / "site.css").exists() and any(folder.iterdir()):
        sys.exit(f"{folder}: not empty, and not a site")
    pages = collect()
    write(folder, pages)
    print(f"{folder}/index.html: {len(pages)} pages")


main()
