"""Installs and runs the linters of linters.txt, which are programs in wheels."""

import subprocess
from pathlib import Path

from common import python_tools
from common.config import REPO

REQUIREMENTS = Path(__file__).with_name("linters.txt")


def program(name):
    """Returns the path of a linter."""
    return python_tools.install(REQUIREMENTS, "linters", "linters of migrations, workflows and Python, and kubectl") / "bin" / name


def findings_of(command, folder=REPO, env=None):
    """Runs a linter in a folder. Returns its output if it failed, otherwise an empty string."""
    ended = subprocess.run(
        [str(part) for part in command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if not ended.returncode:
        return ""
    return ended.stdout.strip() or f"{command[0]} failed with exit status {ended.returncode} and no output"


def ruff():
    """Checks the formatting and the lints of Python, by the nearest configuration. Returns the output of each check that failed."""
    commands = (["check", "--quiet"], ["format", "--quiet", "--diff"])
    return [found for command in commands if (found := findings_of([program("ruff"), *command, "--no-cache", "."]))]
