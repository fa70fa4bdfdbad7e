"""Python packages that some tests use, each set in a folder of its own and pinned by checksums.

They are never installed into the Python that runs this: who needs them names the folder.
"""

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from common.config import CACHE
from common.console import run_logged, step


def install(requirements, name, label):
    """The folder with the packages that the file `requirements` lists whole, filled when it is not there.

    It appears whole or not at all. `label` says to people what the packages are.
    """
    version = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / "wheels" / f"{name}-{version}"
    if folder.exists():
        return folder
    with step(f"Getting {label}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="getting-") as temporary:
            target = Path(temporary) / "packages"
            command = [sys.executable, "-m", "pip", "install", "--only-binary=:all:", "--require-hashes", "--no-deps"]
            command += ["--no-compile", "--disable-pip-version-check", "--target", str(target)]
            command += ["--requirement", str(requirements)]
            run_logged(command, str(CACHE / "logs" / f"get-{name}.log"), f"Downloading {label}")
            shutil.rmtree(folder, ignore_errors=True)
            target.rename(folder)
    return folder
