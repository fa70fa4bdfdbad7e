"""Downloads Python packages, and installs them into separate folders, pinned by checksum. The running Python stays unchanged."""

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from .config import CACHE
from .console import run_logged, step


def install(requirements, name, label):
    """Returns the folder with the packages of a requirements file; installs them first if it is missing.

    The folder appears atomically. `label` describes the packages in messages.
    """
    version = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / "wheels" / f"{name}-{version}"
    if folder.exists():
        return folder
    with step(f"Installing {label}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="install-") as temporary:
            target = Path(temporary) / "packages"
            command = [sys.executable, "-m", "pip", "install", "--only-binary=:all:", "--require-hashes", "--no-deps"]
            command += ["--no-compile", "--disable-pip-version-check", "--target", str(target)]
            command += ["--requirement", str(requirements)]
            run_logged(command, str(CACHE / "logs" / f"install-{name}.log"), f"Installing {label}")
            shutil.rmtree(folder, ignore_errors=True)
            target.rename(folder)
    return folder


def download_command(name, version, checksums, folder, *options):
    """Returns the command by which pip downloads a package into a folder. `checksums` has the sha256 of each accepted file."""
    requirements = folder / "requirements.txt"
    hashes = " ".join(f"--hash=sha256:{sha256}" for sha256 in checksums)
    requirements.write_text(f"{name}=={version} {hashes}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--disable-pip-version-check", *options]
    return [*command, "--dest", str(folder), "--requirement", str(requirements)]
