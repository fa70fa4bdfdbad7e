"""`scripts/pack-worker FOLDER`: packs the worker for a machine that reaches no network, in parts that are easy to carry.

    FOLDER/retouch-worker.tar.gz.0000 … the program, ONNX Runtime's GPU library, and the models of tools.toml
    FOLDER/SHA256SUMS                   checksums of the parts
    FOLDER/bench                        checks, unpacks and measures: `sh bench --minutes 8`

Nothing of Postgres, Redis, S3 or the page is needed there. CUDA 13 and cuDNN 9 must be: installed, or in the packages of
NVIDIA that PyTorch depends on.
"""

import argparse
import hashlib
import io
import shutil
import tarfile
from pathlib import Path

from common.config import PROGRAMS, REPO, load
from common.console import Problem, line, step

from .models import fetch, runtime
from .models.catalog import Catalog

ARCHIVE = "retouch-worker.tar.gz"
START = Path(__file__).with_name("bench_packed.sh")
LARGEST_PART_MIB = 60


def main():
    parser = argparse.ArgumentParser(prog="scripts/pack-worker", description="Packs the worker for a machine without network, in parts.")
    parser.add_argument("folder", type=Path, help="a new folder for the parts")
    parser.add_argument("--part-mib", type=int, default=50, metavar="N", help="the size of a part in MiB, at most 60 [default: 50]")
    parser.add_argument("--cpu", action="store_true", help="pack the library for CPUs, which is a tenth as large")
    options = parser.parse_args()
    if not 1 <= options.part_mib <= LARGEST_PART_MIB:
        raise Problem(f"--part-mib must be from 1 to {LARGEST_PART_MIB}.")
    program = PROGRAMS / "retouch-worker"
    if not program.is_file():
        raise Problem(f"There is no {program}. Build it with `cargo build --release --locked`.")
    settings = load()
    models = REPO / settings.get("RETOUCH_MODELS_DIR", "models")
    fetch.models(Catalog(models), [], settings.values)
    library = runtime.fetch("cpu" if options.cpu else "gpu")
    with step("Packing"):
        parts = pack(options.folder, options.part_mib << 20, program, library.parent, models)
    line(f"{len(parts)} parts and two small files are in {options.folder}. Carry them over, and start: sh bench --minutes 8")
    return 0


def pack(folder, part_bytes, program, libraries, models):
    """Writes the parts and returns their paths."""
    if folder.exists() and any(folder.iterdir()):
        raise Problem(f"{folder} is not empty. Give a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    # A linked model file points to a folder of this machine.
    with Parts(folder, part_bytes) as parts, tarfile.open(fileobj=parts, mode="w|gz", dereference=True) as archive:
        archive.add(program, "retouch/retouch-worker", filter=of_nobody)
        for library in sorted(libraries.glob("libonnxruntime*")):
            archive.add(library, f"retouch/onnxruntime/{library.name}", filter=of_nobody)
        archive.add(models / "tools.toml", "retouch/models/tools.toml", filter=of_nobody)
        for name in Catalog(models).bound():
            archive.add(models / name, f"retouch/models/{name}", filter=of_nobody)
    sums = "".join(f"{sha256}  {path.name}\n" for path, sha256 in parts.made)
    (folder / "SHA256SUMS").write_text(sums)
    shutil.copy(START, folder / "bench")
    return [path for path, _ in parts.made]


def of_nobody(member):
    """Leaves out who owns the files here."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


class Parts(io.RawIOBase):
    """A file in parts of one size, with their checksums."""

    def __init__(self, folder, part_bytes):
        self.folder = folder
        self.part_bytes = part_bytes
        self.made = []
        self.file = None

    def writable(self):
        return True

    def write(self, data):
        rest = memoryview(data)
        while rest:
            if self.file is None:
                self.open_part()
            now = rest[: self.part_bytes - self.written]
            self.file.write(now)
            self.sum.update(now)
            self.written += len(now)
            rest = rest[len(now) :]
            if self.written == self.part_bytes:
                self.close_part()
        return len(data)

    def open_part(self):
        # Names of one length, so that the shell sorts the parts in their order.
        self.path = self.folder / f"{ARCHIVE}.{len(self.made):04}"
        self.file = self.path.open("wb")
        self.sum = hashlib.sha256()
        self.written = 0

    def close_part(self):
        self.file.close()
        self.file = None
        self.made.append((self.path, self.sum.hexdigest()))

    def close(self):
        if self.file is not None:
            self.close_part()
        super().close()
