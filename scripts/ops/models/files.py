"""Files identified by their sha256."""

import hashlib
import os
import shutil

from common.console import Problem

from . import staging

POINTER = b"version https://git-lfs.github.com/spec/"


def sha256_of(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_valid(path, sha256):
    """Returns whether a file has a checksum. No file has the checksum None, which nobody has published yet."""
    return path.is_file() and sha256_of(path) == sha256


def is_pointer(path):
    """Returns whether a file is what a clone without Git LFS has in place of a large file."""
    with path.open("rb") as file:
        return file.read(len(POINTER)) == POINTER


def state(model):
    if not model.files:
        return "needs none"
    if not all(file.path.is_file() for file in model.files):
        return "missing"
    return "present" if all(is_valid(file.path, file.sha256) for file in model.files) else "WRONG CHECKSUM"


def install(made, target, sha256, what):
    """Copies a file into place atomically, after checking its sha256."""
    actual = sha256_of(made)
    if actual != sha256:
        raise Problem(f"{what} has the sha256 {actual}; expected {sha256}. The file was discarded.")
    target.parent.mkdir(parents=True, exist_ok=True)
    staging.require_space(target.parent, made.stat().st_size, what)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copyfile(made, beside)
        # In containers, workers run as another user.
        beside.chmod(0o644)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
