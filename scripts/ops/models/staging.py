"""Builds a model's folder aside and puts it into place by renaming.

Workers map the files of models into memory, and a process whose mapped file is truncated dies with a bus error. So nothing
is ever written into a file that a worker may have open.
"""

import os
import shutil

from common.console import Problem

from .progress import amount

# Left free on the disk, beyond what a download needs.
RESERVE_BYTES = 64_000_000


def aside(models, name, purpose):
    """Returns where a model's folder is built: on the same file system, and hidden from workers and from `list`."""
    return models / f".{name}.{purpose}"


def swap(made, target):
    """Puts a finished folder into place of an old one. Running workers keep the old files until they let go of them."""
    readable(made)
    old = aside(target.parent, target.name, "old")
    recover(target)
    if target.exists():
        target.rename(old)
    made.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def recover(target):
    """Undoes a swap that was interrupted between its two renames."""
    old = aside(target.parent, target.name, "old")
    if old.exists() and not target.exists():
        old.rename(target)
    elif old.exists():
        shutil.rmtree(old)


def prune(folder, kept):
    """Deletes everything but these files: the remains of earlier attempts."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder).as_posix() not in kept:
            path.unlink()


def readable(folder):
    """Makes a folder readable for everyone: in containers, workers run as another user."""
    folder.chmod(0o755)
    for place, folders, files in os.walk(folder):
        for name in folders:
            os.chmod(os.path.join(place, name), 0o755)
        for name in files:
            os.chmod(os.path.join(place, name), 0o644)


def require_space(folder, needed_bytes, what):
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(existing).free
    if free < needed_bytes + RESERVE_BYTES:
        raise Problem(
            f"{what} needs {amount(needed_bytes + RESERVE_BYTES)} in {folder}, but only {amount(free)} are free. Make room. For models, "
            "you may also copy the folder `models` of the checkout to a larger disk, and set RETOUCH_MODELS_DIR to the copy (with Compose, "
            "RETOUCH_MODELS)."
        )
