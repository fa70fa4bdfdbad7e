"""Folders of tools that are downloaded once for a checkout."""

import fcntl
import tempfile
from pathlib import Path

from .config import CACHE


def folder(name, make):
    """Returns a folder, which `make(folder)` fills the first time. It appears when it is complete; one process at a time makes one."""
    path = CACHE / "wheels" / name
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent, prefix="new-") as temporary:
                made = Path(temporary) / name
                made.mkdir()
                make(made)
                # Postgres may run as another user, and must be able to read its programs.
                made.chmod(0o755)
                made.rename(path)
    return path
