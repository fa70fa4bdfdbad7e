"""Keeps what Cargo has compiled from one clone to the next. (The workflow on GitHub keeps only the dependencies.)

Off unless RETOUCH_COMPILED names a folder. Cargo itself decides what it can use. The name of each artifact contains a hash of
the compiler, the profile, the features and the version, and for our crates of the path of the clone. Cargo compiles one of
our crates again if a file of it is newer than the artifact. So each file gets the time of the run that first saw its
present content.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path

from common.config import REPO
from common.console import step, warn
from common.workspace import crates

from . import git_files

TARGET = REPO / "target"
# The fingerprints come last: an artifact without one, because the copy was interrupted, is compiled again.
PARTS = ("deps", "build", ".fingerprint")
# Artifacts of our crates and of their tests.
OWN = ("*retouch*", "it-*", "memory-*")
# If one of these changes, all of our crates are compiled: Cargo does not notice every change, and after some it gives the
# artifacts other names, so that the old ones would stay forever.
SHARED = (".cargo", ".sqlx", "Cargo.lock", "Cargo.toml", "clippy.toml", "migrations")
# Tests compare the code with the documents.
SOURCES = (*crates(), "docs", *SHARED)
# Nine tenths of the bytes of dependencies.
REPLACED = (".rlib", ".rmeta")


def restore():
    """Copies what was kept into a clone that has not compiled anything yet. Returns the state of all sources, for `keep`."""
    # An earlier run in this clone compiled artifacts that are older than any time that could be recorded for them now.
    if not folder() or TARGET.exists():
        return None
    sources = {name: [digest, time.time()] for name, digest in digests().items()}
    with locked() as kept:
        if (kept / "release" / ".fingerprint").is_dir():
            with step("Copying what an earlier run has compiled"):
                reuse(kept, sources)
    return sources


def reuse(kept, sources):
    # Without a record, from an older version of this file, only the dependencies are copied.
    before = json.loads(record_in(kept).read_text()) if record_in(kept).exists() else {"place": None, "sources": {}}
    is_usable = before["place"] == str(REPO) and shared(before["sources"]) == shared(sources)
    copy(kept / "release", TARGET / "release", () if is_usable else OWN)
    if not is_usable:
        return
    for name, (digest, _) in sources.items():
        known, seen = before["sources"].get(name, (None, None))
        if known == digest:
            sources[name][1] = seen
        # Also those that have changed: a copy of a checkout may have kept times from before the artifacts.
        os.utime(REPO / name, (sources[name][1], sources[name][1]))
    # The build script of core depends on the folder.
    newest = max(seen for name, (_, seen) in sources.items() if name.startswith("migrations/"))
    os.utime(REPO / "migrations", (newest, newest))


def keep(sources):
    """Keeps what this clone has compiled. `sources` is their state from before."""
    if not sources or not (TARGET / "release" / "deps").is_dir():
        return
    now = digests()
    # Whether a file that has changed meanwhile was compiled before or after is unknown.
    record = {"place": str(REPO), "sources": {name: state for name, state in sources.items() if now.get(name) == state[0]}}
    with locked() as kept:
        if record_in(kept).exists() and json.loads(record_in(kept).read_text()) == record:
            return
        try:
            with step("Keeping what was compiled for the next run"):
                record_in(kept).unlink(missing_ok=True)
                shutil.rmtree(kept / "release", ignore_errors=True)
                copy(TARGET / "release", kept / "release")
                # A full disk must not leave a part of it.
                written = record_in(kept).with_suffix(".new")
                written.write_text(json.dumps(record))
                written.rename(record_in(kept))
        except OSError as error:
            warn(f"Could not keep it: {error}")


def digests():
    paths = {name: REPO / name for name in git_files.listed(REPO, "--", *SOURCES)}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items() if path.is_file()}


def shared(sources):
    return {name: state[0] for name, state in sources.items() if name.split("/")[0] in SHARED}


def copy(source, target, without=()):
    for part in PARTS:
        # Cargo compares times of modification, which `reproduce` keeps.
        ignored = shutil.ignore_patterns(*without)
        shutil.copytree(source / part, target / part, symlinks=True, ignore=ignored, copy_function=reproduce, dirs_exist_ok=True)


def reproduce(source, target):
    """Links a file if rustc replaces it when it compiles again; cargo and others write into the rest. Copies it otherwise."""
    if source.endswith(REPLACED):
        try:
            return os.link(source, target)
        except OSError:
            # On another file system, or one without links.
            pass
    return shutil.copy2(source, target)


def folder():
    return os.environ.get("RETOUCH_COMPILED")


def record_in(kept):
    return kept / "sources.json"


@contextmanager
def locked():
    kept = Path(folder())
    kept.mkdir(parents=True, exist_ok=True)
    with open(kept / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield kept
