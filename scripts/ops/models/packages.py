"""Package files and files on the web, each in a cache under its sha256.

Where a package's file lies is asked of the registry's own client, with the settings that the client has; then the file is
downloaded here, because neither pip nor npm goes on with what broke off. Where that does not work out, because the
registry wants a login, say, the client downloads the file itself.
"""

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from common.config import CACHE
from common.say import Problem

from . import files, npm, pypi
from .download import Refused, download
from .progress import tell

DOWNLOADS = CACHE / "downloads"
REGISTRIES = {"pypi": pypi, "npm": npm}


def package(source, compiled=False):
    """The package file that a source names. `compiled`: it exists for this processor and operating system only."""
    name, version, sha256 = source["package"], source["version"], source["sha256"]
    label = f"{name} {version}"
    registry = REGISTRIES[source["registry"]]
    return cached(sha256, lambda target: from_registry(registry, name, version, sha256, compiled, target, label))


def file_at(url, sha256, label):
    return cached(sha256, lambda target: from_web(url, sha256, target, label))


def cached(sha256, fetch):
    target = DOWNLOADS / sha256
    if files.is_right(target, sha256):
        return target
    with alone():
        if not files.is_right(target, sha256):
            fetch(target)
    return target


def forget(sha256):
    (DOWNLOADS / sha256).unlink(missing_ok=True)


def from_registry(registry, name, version, sha256, compiled, target, label):
    tell(f"{label}: asking {registry.CLIENT} where it is …")
    addresses, open_address = registry.find(name, version, sha256)
    for address in addresses:
        try:
            return download(address, sha256, target, label, open_address)
        except Refused as reason:
            tell(f"  {reason}")
    tell(f"{label}: {registry.CLIENT} downloads it …")
    with scratch() as folder:
        registry.download(name, version, sha256, compiled, folder)
        made = [path for path in folder.iterdir() if path.suffix in (".whl", ".tgz")]
        if len(made) != 1:
            raise Problem(f"{registry.CLIENT} gave {len(made)} files for {label}; one was expected.")
        files.install(made[0], target, sha256, label)


def from_web(url, sha256, target, label):
    try:
        download(url, sha256, target, label)
    except Refused as reason:
        raise Problem(f"{label} is not there: {reason} ({url}).") from None


@contextmanager
def scratch():
    """A folder for what is on its way to its place."""
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as folder:
        yield Path(folder)


@contextmanager
def alone():
    """One process at a time downloads; another one finds its file in the cache when it is let in."""
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    folder = os.open(DOWNLOADS, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Another scripts/models is downloading; waiting for it …")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
