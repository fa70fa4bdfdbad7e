"""Finds cycles between the files of a Rust crate, which the compiler allows.

    python3 -m checks.rust_cycles [CRATE …]    in scripts/; without arguments, every crate of the workspace

A file depends on another one if it names an item that the other one defines: in a `use`, or by a path in its code.
Declaring a module with `mod` is not a dependency, and neither is a re-export (`pub use`), unless the file names the
re-exported item as well. A name that is re-exported counts for the file that defines it. So a module and its child form
a cycle only if the module uses items of the child and the child uses items of the module.

It reads tokens and does not resolve types. So it does not see:
* methods and fields: `x.f()` is not a use of the file with `f`; `X::f()` is a use of the file that defines `X`, even if
  the `impl` block with `f` is in another file
* items that a macro generates: they count for the module in the path
* code of tests (`#[cfg(test)]`); code of any other `#[cfg]` counts, whether it is active or not
* scopes of functions: an import or a local name in a function counts for the whole module
"""

import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from common.config import REPO
from common.console import line
from common.workspace import crates

from .graph import cycles

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
      | (?P<comment>/\*)
      | (?P<raw>[bc]?r(?P<hashes>\#*)".*?"(?P=hashes))
      | (?P<string>[bc]?"(?:\\.|[^"\\])*")
      | (?P<char>b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'])')
      | (?P<lifetime>'\w+)
      | (?P<name>(?:r\#)?[A-Za-z_]\w*)
      | (?P<number>\d\w*)
      | (?P<sign>::|\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
ITEMS = {"fn", "struct", "enum", "union", "trait", "type", "const", "static"}
STARTS = ITEMS | {"pub", "mod", "use", "impl", "async", "unsafe", "extern", "macro_rules"}
PATH_STARTS = {"crate", "self", "super"}
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


@dataclass(frozen=True)
class Token:
    text: str
    line: int
    is_name: bool


@dataclass
class Module:
    file: Path
    parent: "Module | None"
    children: dict = field(default_factory=dict)
    items: set = field(default_factory=set)
    macros: set = field(default_factory=set)
    # Imported paths by local name.
    imports: dict = field(default_factory=dict)
    globs: list = field(default_factory=list)
    # Resolved after the whole crate has been read: (segments, line).
    private_uses: list = field(default_factory=list)
    paths: list = field(default_factory=list)

    @property
    def root(self):
        return self.parent.root if self.parent else self


@dataclass(frozen=True)
class Item:
    file: Path
    name: str


@dataclass(frozen=True, order=True)
class Use:
    source: Path
    line: int
    path: str
    target: Path
    item: str


def main():
    crates = [Path(name).resolve() for name in sys.argv[1:]] or workspace()
    findings = check(crates)
    for finding in findings:
        line(finding)
    return 1 if findings else 0


def check(crates=None):
    """Returns one text for each cycle, with the lines that make it."""
    return [describe(group, uses) for crate in crates or workspace() for root in roots(crate) for group, uses in cycles_of(root)]


def workspace():
    return sorted(REPO / crate for crate in crates())


def roots(crate):
    """Returns the root files of a package; the compiler treats each as a separate crate."""
    patterns = ("src/lib.rs", "src/main.rs", "src/bin/*.rs", "src/bin/*/main.rs", "tests/*.rs", "tests/*/main.rs", "benches/*.rs", "examples/*.rs")
    return sorted(path for pattern in patterns for path in crate.glob(pattern))


def cycles_of(root):
    uses = uses_of(root)
    edges = defaultdict(set)
    for use in uses:
        edges[use.source].add(use.target)
    for group in cycles(edges):
        yield group, first_of_each(use for use in uses if use.source in group and use.target in group)


def first_of_each(uses):
    """Returns the first line on which a file uses an item."""
    first = {}
    for use in sorted(uses):
        first.setdefault((use.source, use.target, use.item), use)
    return sorted(first.values())


def describe(group, uses):
    text = [f"{len(group)} files use each other: {', '.join(map(shown, group))}"]
    return "\n".join(text + [f"  {shown(use.source)}:{use.line}: {use.path} (in {shown(use.target)})" for use in uses])


def shown(path):
    return str(path.relative_to(REPO)) if path.is_relative_to(REPO) else str(path)


def uses_of(root):
    """Returns every use of an item by another file of the crate with this root."""
    found = set()
    for module in all_modules(read_module(root, None, root.parent)):
        for segments, number in module.private_uses:
            note(found, module, segments, number, resolve(module, segments))
        for segments, number in module.paths:
            note(found, module, segments, number, resolve_in_code(module, segments))
    return found


def note(found, module, segments, number, target):
    if isinstance(target, Item) and target.file != module.file:
        found.add(Use(module.file, number, "::".join(segments), target.file, target.name))


def all_modules(module):
    yield module
    for child in module.children.values():
        yield from all_modules(child)


# Reading.


def read_module(file, parent, folder):
    """Reads a file and the files of its modules, which are in `folder`."""
    module = Module(file, parent)
    Reader(tokens(file.read_text()), module, folder).read()
    return module


def tokens(code):
    """Returns the tokens of a source text without comments and lifetimes. Literals become `""`."""
    found, at, number = [], 0, 1
    while at < len(code):
        match = TOKEN.match(code, at)
        kind, text, end = match.lastgroup, match[0], match.end()
        if kind == "comment":
            end = end_of_comment(code, at)
            text = code[at:end]
        elif kind == "name":
            found.append(Token(text.removeprefix("r#"), number, True))
        elif kind == "sign":
            found.append(Token(text, number, False))
        elif kind not in ("space", "lifetime"):
            found.append(Token('""', number, False))
        number += text.count("\n")
        at = end
    return found


def end_of_comment(code, at):
    """Block comments nest."""
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(code, at):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(code)


class Reader:
    """Fills a module from the tokens of its file."""

    def __init__(self, tokens, module, folder):
        self.tokens = tokens
        self.at = 0
        # Inline modules nest: (module, its folder, the depth of braces outside of it).
        self.open = [(module, folder, -1)]
        self.depth = 0
        self.path_attribute = None

    @property
    def module(self):
        return self.open[-1][0]

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at].text if at < len(self.tokens) else ""

    def at_module_level(self):
        return self.depth == self.open[-1][2] + 1

    def read(self):
        while self.at < len(self.tokens):
            self.read_one()

    def read_one(self):
        token = self.tokens[self.at]
        text = token.text
        if text == "#" and self.peek(1) in ("[", "!"):
            self.read_attribute()
        elif text == "mod" and self.is_name(1) and self.peek(2) in (";", "{"):
            self.read_mod()
        elif text == "use" and self.peek(1) != "<":
            self.read_use()
        elif text in OPEN and text == "{":
            self.depth += 1
            self.at += 1
        elif text == "}":
            self.depth -= 1
            if self.depth == self.open[-1][2]:
                self.open.pop()
            self.at += 1
        elif text == "macro_rules" and self.peek(1) == "!":
            self.module.macros.add(self.peek(2))
            self.at += 3
        elif text in ITEMS and self.defines():
            self.at += 2
        elif token.is_name:
            self.read_path()
        else:
            self.at += 1

    def is_name(self, ahead):
        at = self.at + ahead
        return at < len(self.tokens) and self.tokens[at].is_name

    def defines(self):
        """Records the item that a keyword such as `fn` defines. Returns false if no item follows, as in `const fn`."""
        ahead = 2 if self.peek(1) == "mut" else 1
        if not self.is_name(ahead) or self.peek(ahead) in ITEMS | {"unsafe", "async", "extern"}:
            return False
        if self.at_module_level():
            self.module.items.add(self.peek(ahead))
        return True

    def read_attribute(self):
        inner = self.peek(1) == "!"
        start = self.at + (2 if inner else 1)
        self.at = self.closing(start) + 1
        words = [token.text for token in self.tokens[start : self.at]]
        if inner:
            return
        if words[1:2] == ["cfg"] and "test" in words and "not" not in words:
            self.skip_item()

    def closing(self, at):
        """Returns the index of the bracket that closes the one at `at`."""
        depth = 0
        while at < len(self.tokens):
            text = self.tokens[at].text
            depth += (text in OPEN) - (text in CLOSE)
            if depth == 0:
                return at
            at += 1
        return at

    def skip_item(self):
        """Skips an item, or a field, statement or arm, together with its other attributes."""
        while self.peek() == "#":
            self.at = self.closing(self.at + 1) + 1
        ends = {";"} if self.peek() in STARTS else {";", ","}
        while self.at < len(self.tokens):
            text = self.peek()
            if text in ends:
                self.at += 1
                return
            if text == "{":
                self.at = self.closing(self.at) + 1
                return
            if text in CLOSE:
                return
            self.at = self.closing(self.at) + 1 if text in OPEN else self.at + 1

    def read_mod(self):
        name, inline = self.peek(1), self.peek(2) == "{"
        module, folder, _ = self.open[-1]
        self.at += 3
        if inline:
            child = Module(module.file, module)
            module.children[name] = child
            self.open.append((child, folder / name, self.depth))
            self.depth += 1
            return
        for file, inside in ((folder / f"{name}.rs", folder / name), (folder / name / "mod.rs", folder / name)):
            if file.is_file():
                module.children[name] = read_module(file, module, inside)
                return

    def read_use(self):
        number = self.tokens[self.at].line
        is_reexport = self.at > 0 and (self.tokens[self.at - 1].text == "pub" or self.is_restricted())
        self.at += 1
        for segments, name in self.read_tree([]):
            if segments[-1] == "*":
                self.module.globs.append(segments[:-1])
                continue
            if name != "_":
                self.module.imports[name] = segments
            if not is_reexport:
                self.module.private_uses.append((segments, number))
        self.at += 1

    def is_restricted(self):
        """Returns whether `pub(crate)`, `pub(super)` or `pub(in …)` precedes the current token."""
        at = self.at - 1
        if self.tokens[at].text != ")":
            return False
        while at > 0 and self.tokens[at].text != "(":
            at -= 1
        return at > 0 and self.tokens[at - 1].text == "pub"

    def read_tree(self, before):
        """Returns the leaves of a `use` tree: the segments of each and the name it gets."""
        segments = list(before)
        if self.peek() == "::":
            # `::name` is a crate.
            segments.append("")
            self.at += 1
        while self.at < len(self.tokens):
            text = self.peek()
            if text == "{":
                leaves = []
                self.at += 1
                while self.peek() != "}":
                    leaves += self.read_tree(segments)
                    if self.peek() == ",":
                        self.at += 1
                self.at += 1
                return leaves
            segments.append(text)
            self.at += 1
            if self.peek() == "::":
                self.at += 1
                continue
            break
        # `use a::{self}` names `a`.
        if segments[-1] == "self" and len(segments) > 1:
            segments.pop()
        name = segments[-1]
        if self.peek() == "as":
            name = self.peek(1)
            self.at += 2
        return [(segments, name)]

    def read_path(self):
        start = self.at
        segments = [self.peek()]
        self.at += 1
        while self.peek() == "::" and self.is_name(1):
            segments.append(self.peek(1))
            self.at += 2
        previous = self.tokens[start - 1].text if start else ""
        # A field, a method, or a name in another crate.
        if previous not in (".", "::"):
            if self.peek() == "!" and len(segments) == 1:
                segments.append("!")
            self.module.paths.append((tuple(segments), self.tokens[start].line))


# Resolving.


def resolve_in_code(module, segments):
    """Returns the item that a path in code names, if it is one of this crate."""
    if segments[-1] == "!":
        return macro(module, segments[0])
    if len(segments) == 1 and segments[0] in PATH_STARTS | {"Self"}:
        return None
    return resolve(module, segments)


def macro(module, name):
    """A macro is visible in the modules below the one that defines it."""
    seen = module
    while seen:
        if name in seen.macros:
            return Item(seen.file, name)
        seen = seen.parent
    return resolve(module, (name,))


def resolve(module, segments, trail=frozenset()):
    """Returns the `Item` or the `Module` that a path names from inside a module; None for other crates."""
    here, rest = module, list(segments)
    if rest[0] == "":
        return None
    if rest[0] == "crate":
        here, rest = module.root, rest[1:]
    elif rest[0] in ("self", "super"):
        while rest and rest[0] in ("self", "super"):
            if rest[0] == "super":
                here = here.parent
            rest = rest[1:]
            if here is None:
                return None
    else:
        found = lookup(module, rest[0], trail)
        if not isinstance(found, Module):
            return found
        here, rest = found, rest[1:]
    for name in rest:
        found = lookup(here, name, trail)
        if found is None:
            # Probably generated by a macro.
            return Item(here.file, name)
        if isinstance(found, Item):
            return found
        here = found
    return here


def lookup(module, name, trail=frozenset()):
    """Returns the child module, the item or the import with this name in a module; None if there is none."""
    if name in module.children:
        return module.children[name]
    if name in module.items or name in module.macros:
        return Item(module.file, name)
    # The first segment of `use image::image` is the crate, not the import.
    step = (id(module), name)
    if step in trail:
        return None
    trail = trail | {step}
    if name in module.imports:
        return resolve(module, module.imports[name], trail)
    for glob in module.globs:
        target = resolve(module, glob, trail)
        if isinstance(target, Module):
            found = lookup(target, name, trail)
            if found is not None:
                return found
    return None


if __name__ == "__main__":
    sys.exit(main())
