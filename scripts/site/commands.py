"""A page per command, from what `basin help --markdown` prints: the manual pages, which come from
the same tables, say the same. The program is the one that BASIN names, or build/basin."""

import functools
import html
import os
import re
import subprocess

import markup
from page import Page
from tree import ROOT, relative

PAGE = "docs/commands.md"


@functools.cache
def manual():
    program = os.environ.get("BASIN", str(ROOT / "build/basin"))
    return subprocess.run([program, "help", "--markdown"], check=True, capture_output=True, text=True).stdout


def parts():
    """What stands before the commands, then (command, its Markdown) for each."""
    text = manual()
    first, *rest = re.split(r"^## ", text, flags=re.M)
    return first, [tuple(part.split("\n", 1)) for part in rest]


def path_of(command):
    return "commands/" + command.removeprefix("basin ").replace(" ", "-")


def summary(text):
    return text.strip().split("\n", 1)[0].split(": `", 1)[0]


def anchor(command):
    return command.lower().replace(" ", "-")


def contents(path):
    """The page of all commands: each with its summary, under the anchor it has in the document."""
    first, commands = parts()
    page = markup.page_of(path, first)
    rows = "".join(
        f'<tr id="{anchor(name)}"><td><a href="{relative(path_of(name) + ".html", path)}">'
        f"<code>{html.escape(name)}</code></a></td><td>{html.escape(summary(text))}</td></tr>\n"
        for name, text in commands
    )
    body = f'{page.body}<div class="wide"><table>\n{rows}</table></div>\n'
    return Page(page.title, body, page.sections, page.links)


def pages():
    first, commands = parts()
    found = {}
    for name, text in commands:
        manual = name.replace(" ", "-")
        note = f"\n\nAlso `man {manual}` and `{name} --help`. [All commands](../{PAGE})\n"
        page = markup.page_of(path_of(name), f"# {name}\n{text}{note}")
        page.body = page.body.replace('<div class="wide">', '<div class="options">')
        found[path_of(name)] = page
    return found
