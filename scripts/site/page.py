"""What a page is before the frame is put around it, and the names of its anchors."""

import dataclasses
import html
import re


@dataclasses.dataclass
class Page:
    title: str
    body: str
    sections: list
    """(anchor, heading, text) for the search."""
    links: set = dataclasses.field(default_factory=set)
    """Paths in the tree that it links to."""


class Anchors:
    """Anchors of headings, as GitHub makes them, none twice."""

    def __init__(self):
        self.used = {}

    def of(self, heading):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = self.used.get(name, 0)
        self.used[name] = count + 1
        return f"{name}-{count}" if count else name


def plain(text):
    """The text of a piece of HTML, for the search."""
    text = re.sub(r"<[^>]+>", " ", text)
    return re.sub(r"\s+", " ", html.unescape(text)).strip()
