"""What judges deployment files: kubernetes-validate, jsonschema and PyYAML, pinned in validators.txt.

They lie in a folder of their own and are put on the path of this process only.
"""

import hashlib
import importlib
import shutil
import sys
import tempfile
from pathlib import Path

from .config import CACHE
from .say import run_logged, step

REQUIREMENTS = Path(__file__).with_name("validators.txt")


def yaml():
    return load("yaml")


def load(name):
    """A module of these packages."""
    folder = str(install())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def install():
    """The folder with the packages, filled when it is not there. It appears whole or not at all."""
    version = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / "wheels" / f"validators-{version}"
    if folder.exists():
        return folder
    with step("Getting the validators of deployment files"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="getting-") as temporary:
            target = Path(temporary) / "packages"
            command = [sys.executable, "-m", "pip", "install", "--only-binary=:all:", "--require-hashes", "--no-compile"]
            command += ["--disable-pip-version-check", "--target", str(target), "--requirement", str(REQUIREMENTS)]
            run_logged(command, str(CACHE / "logs" / "get-validators.log"), "Downloading the validators")
            shutil.rmtree(folder, ignore_errors=True)
            target.rename(folder)
    return folder
