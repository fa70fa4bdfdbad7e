"""Reads and writes the `[source]` of a model that comes from a repository on a hub."""

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from common.console import Problem

from .conversion import PROGRAMS

COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
REPOSITORY = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
FIELDS = {"registry", "repository", "revision", "terms", "duties", "files"}
FILE_FIELDS = {"path", "file", "repository", "revision", "convert", "sha256", "source_sha256", "size_bytes"}


@dataclass(frozen=True)
class SourceFile:
    repository: str
    # A commit, or the branch "main".
    revision: str
    # In the repository; None if it has to be found by its checksum.
    path: str | None
    # In the model's folder.
    file: str
    convert: str | None
    # Of the file in the model's folder; None if nobody has published it.
    sha256: str | None
    # Of the file in the repository, if it is converted.
    source_sha256: str | None
    # Of the download.
    size_bytes: int | None

    @property
    def download_sha256(self):
        return self.source_sha256 if self.convert else self.sha256


@dataclass(frozen=True)
class HubSource:
    repository: str
    revision: str
    # The address of the license, and what it demands. Without demands, nobody has to accept it.
    terms: str | None
    duties: tuple
    files: tuple


def is_commit(revision):
    return COMMIT.fullmatch(revision) is not None


def read(table, own_files, where):
    """Returns the source that a `[source]` table describes. `own_files` maps the files of the manifest to sha256 and size."""
    refuse_unknown(table, FIELDS, f"{where}: source")
    repository = checked(table, "repository", REPOSITORY, 'two words with a slash between them: "owner/name"', f"{where}: source")
    revision = checked_revision(table, f"{where}: source")
    duties = table.get("duties", [])
    if not isinstance(duties, list) or not all(isinstance(duty, str) for duty in duties):
        raise Problem(f"{where}: source.duties is {duties!r}; it must be a list of sentences.")
    entries = table.get("files")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise Problem(f"{where}: source has no files; it must list at least one as [[source.files]].")
    files = tuple(read_file(entry, repository, revision, own_files, f"{where}: source.files") for entry in entries)
    if missing := sorted(own_files.keys() - {file.file for file in files}):
        raise Problem(f"{where}: source.files does not say where {missing[0]} comes from; add [[source.files]] with its path.")
    terms = table.get("terms")
    if duties and not isinstance(terms, str):
        raise Problem(f"{where}: source has duties but no terms; add the address of the license as terms.")
    return HubSource(repository, revision, terms, tuple(duties), files)


def read_file(entry, repository, revision, own_files, where):
    refuse_unknown(entry, FILE_FIELDS, where)
    path, file = entry.get("path"), entry.get("file", entry.get("path"))
    for field, value in (("path", path), ("file", file)):
        if value is not None and not is_inside(value):
            raise Problem(f"{where}.{field} is {value!r}; it must be a relative path without `..`.")
    if file is None:
        raise Problem(f"{where} has neither path nor file; path names the file in the repository.")
    own = own_files.get(file, {})
    convert = entry.get("convert")
    if convert is not None and convert not in PROGRAMS:
        raise Problem(f"{where}.convert is {convert!r}; it must be {' or '.join(sorted(PROGRAMS))}.")
    if "source_sha256" in entry and convert is None:
        raise Problem(f"{where}: {file} has a source_sha256, but is not converted; write sha256, or add convert.")
    if own and "sha256" in entry:
        raise Problem(f"{where}: the sha256 of {file} is stated twice; remove it here.")
    sha256 = own.get("sha256") or checked_sha256(entry, "sha256", where)
    size_bytes = entry.get("size_bytes", None if convert else own.get("size_bytes"))
    if path is None and (sha256 is None or convert is not None):
        raise Problem(f"{where}: {file} has no path and no sha256 by which to find it; add one of them.")
    return SourceFile(
        repository=checked(entry, "repository", REPOSITORY, '"owner/name"', where) if "repository" in entry else repository,
        revision=checked_revision(entry, where) if "revision" in entry else revision,
        path=path,
        file=file,
        convert=convert,
        sha256=sha256,
        source_sha256=checked_sha256(entry, "source_sha256", where),
        size_bytes=size_bytes,
    )


def refuse_unknown(table, known, where):
    if unknown := sorted(table.keys() - known):
        raise Problem(f"{where}.{unknown[0]} is not a field of this kind of source; the fields are {', '.join(sorted(known))}.")


def checked(table, field, pattern, accepted, where):
    value = table.get(field)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise Problem(f"{where}.{field} is {value!r}; it must be {accepted}.")
    return value


def checked_revision(table, where):
    value = table.get("revision")
    if value != "main" and not (isinstance(value, str) and is_commit(value)):
        raise Problem(f'{where}.revision is {value!r}; it must be a commit of 40 lower-case hexadecimal digits, or "main".')
    return value


def checked_sha256(table, field, where):
    value = table.get(field)
    if value is None or isinstance(value, str) and SHA256.fullmatch(value):
        return value
    raise Problem(f"{where}.{field} is {value!r}; it must have 64 lower-case hexadecimal digits.")


def is_inside(path):
    parts = PurePosixPath(path).parts if isinstance(path, str) else ()
    return bool(parts) and not path.startswith("/") and ".." not in parts


def written(source, files):
    """Returns the text of a `[source]` whose files are pinned. `files` are the source's, as they were fetched."""
    lines = ["[source]", 'registry = "hub"', entry("repository", source.repository), entry("revision", source.revision)]
    if source.terms:
        lines.append(entry("terms", source.terms))
    if source.duties:
        lines += ["duties = [", *(f"    {quoted(duty)}," for duty in source.duties), "]"]
    for file in files:
        lines += ["", "[[source.files]]", entry("path", file.path)]
        if file.file != file.path:
            lines.append(entry("file", file.file))
        if (file.repository, file.revision) != (source.repository, source.revision):
            lines += [entry("repository", file.repository), entry("revision", file.revision)]
        if file.convert:
            lines += [entry("convert", file.convert), entry("source_sha256", file.source_sha256), f"size_bytes = {file.size_bytes}"]
    return "\n".join(lines) + "\n"


def entry(field, text):
    return f"{field} = {quoted(text)}"


def quoted(text):
    # A JSON string is a TOML string.
    return json.dumps(text, ensure_ascii=False)
