"""Finds cycles between the files of a Rust crate, which the compiler allows.

    python3 -m checks.rust_cycles [CRATE …]    in scripts/; without arguments, every crate of the workspace

A file depends on another one if it names an item that the other one defines: in a `use`, or by a path in its code.
Declaring a module with `mod` is not a dependency, and neither is a re-export (`pub use`), unless the file names the
re-exported item as well. A name that is re-exported counts for the file that defines it. So a module and its child form
a cycle only if the module uses items of the child and the child uses items of the module.

It relies on the layout of rustfmt: a definition is an item of its file if it starts at the margin. It does not see:
* methods and fields: `x.f()` is not a use of the file with `f`; `X::f()` is a use of the file that defines `X`, even if
  the `impl` block with `f` is in another file
* items that a macro generates: they count for the module in the path
* code of tests (`#[cfg(test)]`)
* scopes: an import or a local name in a function counts for the whole file
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from common.config import REPO
from common.console import Problem, line
from common.workspace import crates

from .graph import cycle

TEXT = re.compile(
    r"""//[^\n]*
      | [bc]?r(?P<hashes>\#*)".*?"(?P=hashes)
      | [bc]?"(?:\\.|[^"\\])*"
      | b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'])'""",
    re.VERBOSE | re.DOTALL,
)
# An item, field or statement with its attributes: one line, or the lines up to the brace below its start.
TEST = re.compile(r"^( *)#\[cfg\(test\)\]\n(?:\1#\[[^\n]*\n)*(?:\1[^\n]*[;,}]\n|.*?^\1\}[^\n]*\n)", re.MULTILINE | re.DOTALL)
PUB = r"(?:pub(?:\([^)]*\))? )?"
INLINE = re.compile(rf"^{PUB}mod \w+ \{{\n.*?^\}}", re.MULTILINE | re.DOTALL)
CHILD = re.compile(rf"^{PUB}mod (\w+);", re.MULTILINE)
USE = re.compile(r"^ *(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
ITEM = re.compile(
    rf'^{PUB}(?:(?:const|async|unsafe|extern "") )*(?:fn|struct|enum|union|trait|type|const|static mut|static|mod|macro_rules!) (\w+)', re.MULTILINE
)
# Not a field or a method, which follow a single dot, nor a lifetime.
PATH = re.compile(r"(?<![\w:'])(?<!(?<!\.)\.)[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")


@dataclass
class Module:
    """A file."""

    file: Path
    parent: "Module | None"
    children: dict = field(default_factory=dict)
    items: set = field(default_factory=set)
    # Imported paths by local name, and those of which everything is imported.
    imports: dict = field(default_factory=dict)
    globs: list = field(default_factory=list)
    # Paths that the file names, each with its first line.
    paths: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Item:
    file: Path
    name: str


@dataclass(frozen=True)
class Use:
    source: Path
    line: int
    path: str
    target: Path
    item: str


def main():
    findings = check([Path(name).resolve() for name in sys.argv[1:]] or None)
    for finding in findings:
        line(finding)
    return 1 if findings else 0


def check(folders=None):
    """Returns one text for each crate with a cycle, with the lines that make it."""
    folders = folders or [REPO / crate for crate in sorted(crates())]
    return [finding for folder in folders for root in roots(folder) if (finding := cycle_of(root))]


def roots(crate):
    """Returns the root files of a package; the compiler treats each as a separate crate."""
    patterns = ("src/lib.rs", "src/main.rs", "src/bin/*.rs", "tests/*.rs", "tests/*/main.rs", "benches/*.rs")
    return sorted(path for pattern in patterns for path in crate.glob(pattern))


def cycle_of(root):
    """Returns a description of a cycle; an empty string if there is none."""
    uses = uses_of(root)
    arrows = cycle((use.source, use.target) for use in uses)
    if not arrows:
        return ""
    found = sorted((shown(use.source), use.line, use.path, shown(use.target)) for use in uses if (use.source, use.target) in arrows)
    lines = [f"  {source}:{number}: {path} (in {target})" for source, number, path, target in found]
    return "\n".join([f"{len(arrows)} files use each other: {', '.join(sorted(shown(source) for source, _ in arrows))}", *lines])


def shown(path):
    return str(path.relative_to(REPO)) if path.is_relative_to(REPO) else str(path)


def uses_of(root):
    """Returns every use of an item by another file of the crate with this root."""
    found = set()
    for module in all_modules(read_module(root, None, root.parent)):
        for path, number in module.paths.items():
            target = resolve(module, path)
            if isinstance(target, Item) and target.file != module.file:
                found.add(Use(module.file, number, "::".join(path), target.file, target.name))
    return found


def all_modules(module):
    yield module
    for child in module.children.values():
        yield from all_modules(child)


def read_module(file, parent, folder):
    """Reads a file and the files of its modules, which are in `folder`."""
    code = TEXT.sub(lambda text: '""' + "\n" * text[0].count("\n"), file.read_text())
    if "/*" in code:
        raise Problem(f"{shown(file)}: write comments with //, so that scripts/checks/rust_cycles.py can read the file.")
    code = TEST.sub(lambda test: "\n" * test[0].count("\n"), code)
    # A module within the file counts as one of its items; its `super` is the file.
    code = INLINE.sub(lambda inline: re.sub(r"(?<!::)\bsuper::", "self::", inline[0]), code)
    module = Module(file, parent, items=set(ITEM.findall(code)))
    for name in CHILD.findall(code):
        module.items.remove(name)
        module.children[name] = read_module(folder / f"{name}.rs", module, folder / name)
    for use in USE.finditer(code):
        for path, name in leaves(use[2]):
            if path[-1] == "*":
                module.globs.append(path[:-1])
                continue
            module.imports[name] = path
            if not use[1]:
                module.paths.setdefault(path, code.count("\n", 0, use.start()) + 1)
    code = USE.sub(lambda use: "\n" * use[0].count("\n"), code)
    for path in PATH.finditer(code):
        module.paths.setdefault(tuple(path[0].split("::")), code.count("\n", 0, path.start()) + 1)
    return module


def leaves(tree, before=()):
    """Yields the leaves of a `use` tree: the segments of each and the name it gets."""
    head, brace, rest = tree.strip().partition("{")
    if brace:
        before = (*before, *filter(None, head.split("::")))
        for part in parts_of(rest.rpartition("}")[0]):
            yield from leaves(part, before)
        return
    path, _, name = head.partition(" as ")
    # `::name` is a crate; `a::{self}` names `a`.
    path = (*before, *path.split("::"))
    path = path[:-1] if path[-1] == "self" and len(path) > 1 else path
    yield path, name or path[-1]


def parts_of(group):
    """Splits the inside of a group at the commas that are not in an inner one."""
    part, depth = "", 0
    for sign in group + ",":
        if sign == "," and not depth:
            if part.strip():
                yield part
            part = ""
            continue
        depth += {"{": 1, "}": -1}.get(sign, 0)
        part += sign


def resolve(module, path, trail=frozenset()):
    """Returns the `Item` or the `Module` that a path names from inside a module; None for other crates."""
    here, rest = module, path
    if path[0] == "crate":
        while here.parent:
            here = here.parent
        rest = path[1:]
    elif path[0] in ("self", "super"):
        while rest and rest[0] in ("self", "super"):
            here, rest = (here.parent if rest[0] == "super" else here), rest[1:]
    else:
        found = lookup(module, path[0], trail)
        if not isinstance(found, Module):
            return found
        here, rest = found, path[1:]
    for name in rest:
        found = lookup(here, name, trail)
        if not isinstance(found, Module):
            # An unknown name was probably generated by a macro.
            return found or Item(here.file, name)
        here = found
    return here


def lookup(module, name, trail):
    """Returns the child module, the item or the import with this name in a module; None if there is none."""
    if name in module.children:
        return module.children[name]
    if name in module.items:
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
        if isinstance(target, Module) and (found := lookup(target, name, trail)):
            return found
    return None


if __name__ == "__main__":
    sys.exit(main())
