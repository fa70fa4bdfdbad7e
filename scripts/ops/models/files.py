"""Files identified by their sha256."""

import hashlib
import os
import shutil

from common.console import Problem


def sha256_of(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_valid(path, sha256):
    return path.is_file() and sha256_of(path) == sha256


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
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copyfile(made, beside)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
