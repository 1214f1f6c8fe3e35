"""The tree that the site shows: which files there are, and the address of each one's page."""

import pathlib
import posixpath

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "*.md",
    "docs/*.md",
    "docs/tutorials/*.md",
    "docs/lab/*.md",
    "examples/*.md",
    "examples/*/*.md",
    "paper/*.md",
    "models/*.md",
    "bench/rivals/*.md",
    "tests/golden/*.md",
)
MADE = ("docs/commands.md",)  # pages without a file: the program prints what they show


def documents():
    found = [path for pattern in DOCUMENTS for path in sorted(ROOT.glob(pattern))]
    return [path.relative_to(ROOT).as_posix() for path in found]


def listed(folder):
    """The files of a folder that readers may want to see, by name."""
    found = [path for path in (ROOT / folder).iterdir() if not path.name.startswith((".", "__"))]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def address(path):
    """Where the page of a file or folder stands."""
    if path == "README.md":
        return "index.html"
    if (ROOT / path).is_dir():
        return posixpath.join(path, "folder.html")
    return (path[:-3] if path.endswith(".md") else path) + ".html"


def relative(target, path):
    """The link from the page of `path` to an address."""
    return posixpath.relpath(target, posixpath.dirname(address(path)) or ".")


def target(path, link):
    """The file of the tree that a link in `path` means; None where it has none."""
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    there = found in MADE or (ROOT / found).exists()
    return found if there and not found.startswith("..") else None
