"""The Python reference, read from the package's source: it need be neither built nor imported."""

import ast
import html
import inspect
import re

import markup
from page import Page
from tree import ROOT, address, relative

PACKAGE = ROOT / "python/basin"


def modules():
    """(path, source, names to show or None for all public ones), the package first."""
    shown = {}
    for node in ast.walk(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("basin._"):
            shown.setdefault(node.module[6:], set()).update(alias.name for alias in node.names)
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix()
        private = any(part.startswith("_") and part != "__init__" for part in name.split("/"))
        if not private or name in shown:
            yield path, shown.get(name) if private else None


def public(tree, wanted):
    listed = next(
        (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            and node.targets[0].__class__ is ast.Name
            and node.targets[0].id == "__all__"
        ),
        None,
    )
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            chosen = wanted if wanted is not None else listed
            if node.name in chosen if chosen is not None else not node.name.startswith("_"):
                yield node


def documentation(node):
    """A docstring as HTML: paragraphs, and what begins with >>> or is indented as code."""
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    out = []
    for part in filter(None, re.split(r"\n\s*\n", text)):
        if part.startswith((">>>", "    ")):
            out.append(markup.code(inspect.cleandoc(part), "pycon"))
        else:
            said = html.escape(part, quote=False)
            out.append("<p>" + re.sub(r"`+([^`]+)`+", r"<code>\1</code>", said) + "</p>\n")
    return "".join(out)


def signature(node):
    if isinstance(node, ast.ClassDef):
        init = next(
            (
                item
                for item in node.body
                if isinstance(item, ast.FunctionDef) and item.name == "__init__"
            ),
            None,
        )
        return f"class {node.name}" + (f"({arguments(init)})" if init else "")
    property_ = any(
        isinstance(item, ast.Name) and item.id == "property" for item in node.decorator_list
    )
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return node.name + ("" if property_ else f"({arguments(node)})") + result


def arguments(node):
    said = ast.unparse(node.args)
    return re.sub(r"^(self|cls)(, |$)", "", said)


def fields(node):
    """The annotated fields of a class, with the strings that follow them."""
    out = []
    for i, item in enumerate(node.body):
        if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_"):
            after = node.body[i + 1] if i + 1 < len(node.body) else None
            said = (
                after.value.value
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                else ""
            )
            out.append(
                f"<li><code>{html.escape(ast.unparse(item))}</code> {html.escape(said)}</li>\n"
            )
    return f"<ul>\n{''.join(out)}</ul>\n" if out else ""


def entry(node, level, prefix=""):
    """(HTML, sections) of a class or a function, and of a class's methods."""
    anchor = prefix + node.name
    text = documentation(node)
    sections = [(anchor, anchor, markup.plain(text))]
    out = [
        f'<h{level} id="{anchor}">{html.escape(anchor)}</h{level}>\n',
        markup.code(signature(node), "python"),
        text,
    ]
    if isinstance(node, ast.ClassDef):
        out.append(fields(node))
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
                inner, more = entry(item, level + 1, anchor + ".")
                out.append(inner)
                sections += more
    return "".join(out), sections


def module_name(path):
    name = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
    name = "" if name == "__init__" else "." + name.removesuffix(".__init__")
    return "basin" + name


def page(path, wanted):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title = module_name(path)
    body = [f"<h1>{title}</h1>\n", documentation(tree)]
    sections = [("", title, markup.plain(body[1]))]
    for node in public(tree, wanted):
        inner, more = entry(node, 2)
        body.append(inner)
        sections += more
    return Page(title, "".join(body), sections)


def pages():
    found = {}
    for path, wanted in modules():
        made = page(path, wanted)
        if wanted is None or len(made.sections) > 1:
            found[path.relative_to(ROOT).as_posix()] = made
    return found | {"reference/python": contents(found)}


def contents(found):
    rows = []
    for path, made in found.items():
        names = [name for anchor, name, _ in made.sections[1:] if "." not in name]
        first = re.split(r"(?<=\.)\s", made.sections[0][2], maxsplit=1)[0]
        rows.append(
            f'<tr><td><a href="{relative(address(path), "reference/python")}"><code>{made.title}'
            f"</code></a></td><td>{html.escape(first)}</td><td>{', '.join(names)}</td></tr>\n"
        )
    guide = relative(address("docs/python.md"), "reference/python")
    body = (
        f'<h1>Python reference</h1>\n<p>Begin with <a href="{guide}">the guide</a>.</p>\n'
        f'<div class="wide"><table>\n{"".join(rows)}</table></div>\n'
    )
    return Page("Python reference", body, [("", "Python reference", "")])
