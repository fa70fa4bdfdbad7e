"""Checks the imports in `scripts/`: the packages depend on each other in one direction, and there are no cycles."""

import ast
from collections import defaultdict

from common.config import REPO

from .graph import cycle

SCRIPTS = REPO / "scripts"
# The packages that each package may import. Tests may import all packages.
MAY_IMPORT = {
    "common": {"common"},
    "ops": {"common", "ops"},
    "devstack": {"common", "devstack"},
    "checks": {"common", "ops", "devstack", "checks"},
}


def check(folder=SCRIPTS):
    """Returns one sentence for each forbidden import, and one for a cycle."""
    imports = {path: imports_of(path, folder) for path in sorted(folder.rglob("*.py"))}
    return [*forbidden_imports(imports, folder), *import_cycles(imports, folder)]


def forbidden_imports(imports, folder):
    for path, found in imports.items():
        room = path.relative_to(folder).parts[0]
        if room not in MAY_IMPORT or "tests" in path.relative_to(folder).parts:
            continue
        for target, number in sorted(found.items()):
            other = target.relative_to(folder).parts[0]
            if other not in MAY_IMPORT[room]:
                yield f"{path.relative_to(folder)}:{number}: {room} must not import {other} ({target.relative_to(folder)})"


def import_cycles(imports, folder):
    arrows = cycle((path, target) for path, found in imports.items() for target in found)
    lines = [f"{path.relative_to(folder)}:{imports[path][target]}: imports {target.relative_to(folder)}" for path, target in sorted(arrows)]
    if lines:
        yield f"{len(lines)} files import each other:\n    " + "\n    ".join(lines)


def imports_of(path, folder):
    """Returns the files that a file imports, anywhere in it, with the line of the first import of each."""
    found = defaultdict(lambda: 1 << 30)
    for node in ast.walk(ast.parse(path.read_text())):
        for module in names_of(node, path, folder):
            if (target := file_of(module, folder)) and target != path:
                found[target] = min(found[target], node.lineno)
    return dict(found)


def names_of(node, path, folder):
    if isinstance(node, ast.Import):
        return [alias.name.split(".") for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    package = list(path.parent.relative_to(folder).parts)
    base = package[: len(package) - node.level + 1] if node.level else []
    base += node.module.split(".") if node.module else []
    # A name is a module of the package, or defined in its __init__.py.
    names = [[*base, alias.name] for alias in node.names]
    return [name if file_of(name, folder) else base for name in names]


def file_of(module, folder):
    path = folder.joinpath(*module)
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if module and file.is_file():
            return file
    return None
