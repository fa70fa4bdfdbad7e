"""Keeps compiled dependencies from one clone to the next, as the workflow on GitHub does.

Off unless RETOUCH_COMPILED names a folder. Cargo itself decides whether it can use an artifact: the name of each contains a
hash of the compiler, the profile, the features and the version. Our own crates are always compiled, except
`resample`, which contains little more than a dependency that takes two minutes to compile.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from common.config import REPO
from common.console import step, warn

TARGET = REPO / "target"
PARTS = ("deps", "build", ".fingerprint")
# Files of our crates and of their tests.
OWN = ("*retouch*", "it-*", "memory-*")
RESAMPLE = ("*retouch[-_]resample*",)
RESAMPLE_SOURCES = "pixels/resample"
# Before any compilation: Cargo compiles what has changed since the last one.
LONG_AGO = 946_684_800
# Nine tenths of the bytes.
REPLACED = (".rlib", ".rmeta")


def restore():
    """Copies kept dependencies into a clone that has not compiled anything yet."""
    if not folder() or TARGET.exists():
        return
    with locked() as kept:
        if not (kept / "release").is_dir():
            return
        with step("Copying the compiled dependencies of an earlier run"):
            copy(kept / "release", TARGET / "release")
            stamp = kept / "resample"
            if stamp.exists() and stamp.read_text() == digest_of_resample():
                for source in sources_of_resample():
                    os.utime(source, (LONG_AGO, LONG_AGO))


def keep():
    """Keeps the dependencies of this clone, unless those of the same path, lock file, profiles and compiler are kept already."""
    if not folder() or not (TARGET / "release" / "deps").is_dir():
        return
    with locked() as kept:
        stamp = kept / "inputs"
        resample = kept / "resample"
        now = {stamp: inputs(), resample: digest_of_resample()}
        if all(path.exists() and path.read_text() == text for path, text in now.items()):
            return
        try:
            with step("Keeping the compiled dependencies for the next run"):
                shutil.rmtree(kept / "release", ignore_errors=True)
                for path in now:
                    path.unlink(missing_ok=True)
                copy(TARGET / "release", kept / "release")
                for path, text in now.items():
                    path.write_text(text)
        except OSError as error:
            warn(f"Could not keep them: {error}")


def copy(source, target):
    for part in PARTS:
        # Cargo compares times of modification, which `reproduce` keeps.
        shutil.copytree(source / part, target / part, symlinks=True, ignore=not_kept, copy_function=reproduce, dirs_exist_ok=True)


def not_kept(folder, names):
    return shutil.ignore_patterns(*OWN)(folder, names) - shutil.ignore_patterns(*RESAMPLE)(folder, names)


def reproduce(source, target):
    """Links a file if rustc replaces it when it compiles again; cargo and others write into the rest. Copies it otherwise."""
    if source.endswith(REPLACED):
        try:
            return os.link(source, target)
        except OSError:
            # On another file system, or one without links.
            pass
    shutil.copy2(source, target)


def folder():
    return os.environ.get("RETOUCH_COMPILED")


@contextmanager
def locked():
    kept = Path(folder())
    kept.mkdir(parents=True, exist_ok=True)
    with open(kept / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield kept


def sources_of_resample():
    return sorted(path for path in (REPO / RESAMPLE_SOURCES).rglob("*") if path.is_file())


def digest_of_resample():
    # For our own crates, the names of Cargo's artifacts also depend on the path of the clone.
    sha = hashlib.sha256(str(REPO).encode())
    for source in sources_of_resample():
        sha.update(source.read_bytes())
    return sha.hexdigest()


def inputs():
    compiler = subprocess.run(["rustc", "--version", "--verbose"], stdout=subprocess.PIPE, text=True, cwd=REPO).stdout
    files = b"".join((REPO / name).read_bytes() for name in ("Cargo.lock", "Cargo.toml"))
    return hashlib.sha256(files + compiler.encode()).hexdigest()
