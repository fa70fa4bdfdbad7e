"""Lists the files of a checkout."""

import subprocess

from common.console import Problem


def listed(folder, *options):
    """Returns what `git ls-files` lists, relative to `folder`."""
    ran = subprocess.run(["git", "ls-files", "-z", *options], cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        raise Problem(f"git ls-files failed: {ran.stderr.strip()}")
    return [name for name in ran.stdout.split("\0") if name]
