"""`scripts/models adopt`: turns an exported pipeline into a model with a manifest.

The manifest pins every file by size and sha256. Its other fields come from the existing manifest, or from
`models/templates/NAME.toml`.
"""

import shutil
from pathlib import Path

from common.console import Problem

from . import files
from .progress import info

# The parts of a pipeline. Other files, such as weights for other programs, are ignored.
PARTS = ("unet", "transformer", "text_encoder", "tokenizer", "vae_encoder", "vae_decoder", "scheduler")
SETTINGS = ("model_index.json", "scheduler_config.json")
SUFFIXES = {".onnx", ".onnx_data", ".pb", ".data", ".json", ".txt", ".bin", ".model"}
# A pipeline has one of these.
MAIN = ("unet/model.onnx", "transformer/model.onnx")
MARK = "# Written by `scripts/models adopt`"
NOTE = f"{MARK}; you may edit everything above."


def adopt(models, name, source):
    target = models / name
    if source is not None:
        copy(Path(source), target)
    found = parts_of(target)
    if not any(path in found for path in MAIN):
        raise Problem(f"{target} is not a pipeline: it has no {MAIN[0]} and no {MAIN[1]}.")
    manifest = target / "model.toml"
    manifest.write_text(fields(manifest, models / "templates" / f"{name}.toml", name) + checksums(target, found))
    info(f"{name}: wrote {manifest} with {len(found)} files. Now run `retouch-worker models check {name}`, then bind it in tools.toml.")


def copy(source, target):
    if not source.is_dir():
        raise Problem(f"{source} is not a folder.")
    for path in parts_of(source):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if (source / path).resolve() != (target / path).resolve():
            shutil.copyfile(source / path, target / path)


def parts_of(folder):
    """Returns the files of a pipeline, as sorted paths relative to its folder."""
    inside = [path for part in PARTS for path in (folder / part).rglob("*") if path.is_file()]
    inside += [folder / name for name in SETTINGS if (folder / name).is_file()]
    wanted = [path for path in inside if path.suffix in SUFFIXES and not path.name.startswith(".")]
    return sorted(path.relative_to(folder).as_posix() for path in wanted)


def fields(manifest, template, name):
    """Returns the manifest without its files."""
    for path in (manifest, template):
        if path.is_file():
            return path.read_text().split(MARK)[0].rstrip() + "\n\n"
    raise Problem(f"There is no {manifest} and no {template}. Copy another template and adapt it for {name}.")


def checksums(folder, found):
    return "\n".join([NOTE, *(f"[[extra]]\n{entry(folder, path)}" for path in found)])


def entry(folder, path):
    file = folder / path
    return f'file = "{path}"\nsha256 = "{files.sha256_of(file)}"\nsize_bytes = {file.stat().st_size}\n'
