"""`scripts/models adopt`: a pipeline that somebody has exported becomes a model with a manifest.

The manifest states every file with its size and sha256, so that from then on what runs is what was adopted. What it says
besides comes from the manifest that is there, or from `models/templates/NAME.toml`.
"""

import shutil
from pathlib import Path

from common.say import Problem

from . import files
from .progress import tell

# What pipelines are made of; what else lies in a folder (weights for other programs, previews) is left out.
PARTS = ("unet", "transformer", "text_encoder", "tokenizer", "vae_encoder", "vae_decoder", "scheduler")
SETTINGS = ("model_index.json", "scheduler_config.json")
SUFFIXES = {".onnx", ".onnx_data", ".pb", ".data", ".json", ".txt", ".bin", ".model"}
# Without one of these there is nothing to run.
MAIN = ("unet/model.onnx", "transformer/model.onnx")
MARK = "# Written by `scripts/models adopt`; what is above is yours to change."


def adopt(models, name, source):
    target = models / name
    if source is not None:
        copy(Path(source), target)
    found = parts_of(target)
    if not any(path in found for path in MAIN):
        raise Problem(f"{target} has neither {MAIN[0]} nor {MAIN[1]}: it is no pipeline that Retouch knows.")
    manifest = target / "model.toml"
    manifest.write_text(said(manifest, models / "templates" / f"{name}.toml", name) + stated(target, found))
    tell(f"{name}: {len(found)} files, {manifest}. Now run `retouch-worker models check {name}`, then bind it in tools.toml.")


def copy(source, target):
    if not source.is_dir():
        raise Problem(f"{source} is no folder.")
    for path in parts_of(source):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if (source / path).resolve() != (target / path).resolve():
            shutil.copyfile(source / path, target / path)


def parts_of(folder):
    """The files of a pipeline, as paths in its folder, in an order that does not depend on the machine."""
    inside = [path for part in PARTS for path in (folder / part).rglob("*") if path.is_file()]
    inside += [folder / name for name in SETTINGS if (folder / name).is_file()]
    wanted = [path for path in inside if path.suffix in SUFFIXES and not path.name.startswith(".")]
    return sorted(path.relative_to(folder).as_posix() for path in wanted)


def said(manifest, template, name):
    """What the manifest says besides its files."""
    for path in (manifest, template):
        if path.is_file():
            return path.read_text().split(MARK)[0].rstrip() + "\n\n"
    raise Problem(f"There is neither {manifest} nor {template}: copy a template and change what differs for {name}.")


def stated(folder, found):
    return "\n".join([MARK, *(f"[[extra]]\n{fields(folder, path)}" for path in found)])


def fields(folder, path):
    file = folder / path
    return f'file = "{path}"\nsha256 = "{files.sha256_of(file)}"\nsize_bytes = {file.stat().st_size}\n'
