"""Edits the text of tools.toml, and keeps its comments."""

import re
import sys
from pathlib import Path

from common import python_tools

from .demand import TABLES, scope_of

REQUIREMENTS = Path(__file__).with_name("tomlkit.txt")


def bound(text, name, scopes):
    """Returns the text with a model bound to these scopes. Lines for the same demands are replaced; the first line that fits wins."""
    document = toml().parse(text)
    for scope in scopes:
        bind(document, name, scope)
    return tidy(document.as_string(), text)


def bind(document, name, scope):
    lines = document.get(scope.table)
    if lines is None:
        if document.body:
            document.add(toml().nl())
        lines = document[scope.table] = toml().aot()
    points, own = scope.points(), [scope_of(line, scope.table).points() for line in lines]
    replaced = [at for at, of_line in enumerate(own) if of_line <= points]
    # A wider line before the new one would win.
    wider = next((at for at, of_line in enumerate(own) if at not in replaced and of_line & points), None)
    if replaced and (wider is None or replaced[0] < wider):
        change(lines[replaced.pop(0)], name, scope)
    else:
        lines.insert(len(lines) if wider is None else wider, new_line(name, scope))
        replaced = [at + (wider is not None and at >= wider) for at in replaced]
    for at in reversed(replaced):
        del lines[at]


def change(line, name, scope):
    """Changes a line in place, which keeps the comments around it."""
    wanted = {**scope.fields(), "model": name}
    for field in [field for field in line if field not in wanted]:
        del line[field]
    for field, value in wanted.items():
        if line.get(field) != value:
            line[field] = value


def new_line(name, scope):
    line = toml().table()
    for field, value in {**scope.fields(), "model": name}.items():
        line[field] = value
    line.add(toml().nl())
    return line


def unbound(text, name, scopes):
    """Returns the text without the lines that bind a model to these scopes only."""
    document = toml().parse(text)
    wanted = set().union(*(scope.points() for scope in scopes))
    for table in TABLES:
        lines = document.get(table, [])
        for at in reversed(range(len(lines))):
            if lines[at].get("model") == name and scope_of(lines[at], table).points() <= wanted:
                del lines[at]
    return tidy(document.as_string(), text)


def tidy(text, before):
    """Removes the blank lines that inserting leaves behind, unless the author is fond of them."""
    if "\n\n\n" not in before:
        text = re.sub(r"\n{3,}", "\n\n", text)
    return text.rstrip("\n") + "\n" if text.strip() else text


def toml():
    """Returns tomlkit, from a folder of its own."""
    folder = str(python_tools.install(REQUIREMENTS, "tomlkit", "tomlkit, which edits tools.toml"))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import tomlkit

    return tomlkit
