"""The linters of linters.txt. They come as programs in wheels, in a folder of their own."""

import subprocess
from pathlib import Path

from common.config import REPO

from . import python_tools

REQUIREMENTS = Path(__file__).with_name("linters.txt")


def program(name):
    """The path of a linter."""
    return python_tools.install(REQUIREMENTS, "linters", "the linters of migrations and workflows") / "bin" / name


def said_by(command):
    """Runs a linter. Returns what it printed if it failed; "" if it found nothing."""
    ended = subprocess.run(
        [str(part) for part in command], cwd=REPO, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if not ended.returncode:
        return ""
    return ended.stdout.strip() or f"{command[0]} ended with exit status {ended.returncode} and said nothing"
