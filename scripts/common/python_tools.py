"""Downloads Python packages, and installs them into separate folders, pinned by checksum. The running Python stays unchanged."""

import hashlib
import sys

from . import made_once
from .config import CACHE
from .console import run_logged, step


def install(requirements, name, label):
    """Returns the folder with the packages of a requirements file; installs them first if it is missing. `label` describes them in messages."""

    def make(folder):
        command = [sys.executable, "-m", "pip", "install", "--only-binary=:all:", "--require-hashes", "--no-deps"]
        command += ["--no-compile", "--disable-pip-version-check", "--target", str(folder)]
        command += ["--requirement", str(requirements)]
        with step(f"Installing {label}"):
            run_logged(command, str(CACHE / "logs" / f"install-{name}.log"), f"Installing {label}")

    version = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    return made_once.folder(f"{name}-{version}", make)


def download_command(name, version, checksums, folder, *options):
    """Returns the command by which pip downloads a package into a folder. `checksums` has the sha256 of each accepted file."""
    requirements = folder / "requirements.txt"
    hashes = " ".join(f"--hash=sha256:{sha256}" for sha256 in checksums)
    requirements.write_text(f"{name}=={version} {hashes}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--disable-pip-version-check", *options]
    return [*command, "--dest", str(folder), "--requirement", str(requirements)]
