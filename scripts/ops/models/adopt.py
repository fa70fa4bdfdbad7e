"""`scripts/models adopt`: turns an exported pipeline into a model with a manifest.

The UNet is converted on the way (`attention.py`). The manifest pins every file by size and sha256.
Its other fields come from the existing manifest, or from `models/templates/NAME.toml`.
"""

import os
import shutil
import tomllib
from pathlib import Path

from common.console import Problem

from . import catalog, conversion, files, hub_source, manifest_text, staging
from .pipeline import LOOSE_SETTINGS, NETS, SETTINGS, UNET, Pipeline
from .progress import info


def adopt(models, name, source, reference=None):
    """Adopts a folder. `reference` names the folder in it that has reference vectors, if the manifest does not."""
    target = models / name
    staging.recover(target)
    folder = target if source is None else Path(source)
    if source is None and not target.is_dir():
        raise Problem(f"There is no {target}. Give the folder of the exported pipeline: `scripts/models adopt {name} FOLDER`.")
    head = head_of(models, name)
    if reference and "reference" not in tomllib.loads(head):
        head = manifest_text.with_reference(head, reference)
    facts = tomllib.loads(head)
    pipeline = Pipeline(folder)
    vectors = vectors_of(facts, folder, target)
    had_source = (target / "model.toml").is_file() and "source" in catalog.read_toml(target / "model.toml")
    if target.exists() and folder.resolve() == target.resolve():
        pin_in_place(pipeline, head)
    else:
        copy_and_swap(pipeline, head, models, target, vectors)
    if had_source:
        info("  left out [source]: these files are not those that it names")
    report(pipeline, target, facts)


def head_of(models, name):
    """Returns the part of the manifest that people write."""
    for path in (models / name / "model.toml", models / "templates" / f"{name}.toml"):
        if not path.is_file():
            continue
        head = manifest_text.head(path)
        stated = tomllib.loads(head).get("name")
        if stated != name:
            raise Problem(f"{path}: name is {stated!r}; it must be {name!r}.")
        return head
    templates = ", ".join(sorted(str(path) for path in (models / "templates").glob("*.toml"))) or "models/templates"
    raise Problem(
        f"There is neither {models / name / 'model.toml'} nor {models / 'templates' / f'{name}.toml'}, which say what the pipeline is "
        f"for. Copy a template ({templates}) to the latter, and adapt its name, license, and canvas."
    )


def vectors_of(facts, folder, target):
    """Returns the folder of reference vectors that comes along, as the manifest names it; None if there is none, or the old one stays."""
    name = facts.get("reference")
    if name is None:
        return None
    if not hub_source.is_inside(name):
        raise Problem(f"reference is {name!r}; it must be a relative path without `..`.")
    if (folder / name).is_dir():
        return name
    if (target / name).is_dir():
        return None
    raise Problem(f"The manifest states reference = {name!r}, but there is no {folder / name}. Put the vectors there, or remove that line.")


def copy_and_swap(pipeline, head, models, target, vectors):
    """Builds the folder aside and swaps it, because workers may have the old files mapped."""
    made = staging.aside(models, target.name, "adopt")
    shutil.rmtree(made, ignore_errors=True)
    staging.require_space(models, pipeline.size_bytes, target.name)
    made.mkdir(parents=True)
    try:
        keep_others(target, made, vectors)
        if vectors:
            shutil.copytree(pipeline.folder / vectors, made / vectors, dirs_exist_ok=True)
        for path, file in pipeline.files.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            if path == UNET:
                info(f"  {path}: {conversion.run(conversion.PROGRAMS['attention'], file, made / path)}")
            else:
                shutil.copyfile(file, made / path)
        (made / "model.toml").write_text(head + pinned(made, pipeline.files))
        staging.swap(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def keep_others(target, made, vectors):
    """Copies what belongs to the model, but not to the pipeline: golden images, references, notes, an accepted license."""
    replaced = {*NETS, *SETTINGS, *LOOSE_SETTINGS, vectors, "model.toml"}
    for path in sorted(target.iterdir()) if target.is_dir() else ():
        if path.name not in replaced and path.suffix not in (".onnx", ".data", ".onnx_data"):
            (shutil.copytree if path.is_dir() else shutil.copyfile)(path, made / path.name)


def pin_in_place(pipeline, head):
    moved = [path for path, file in pipeline.files.items() if file != pipeline.folder / path]
    if moved:
        raise Problem(f"{pipeline.folder} has a flat layout. Move it elsewhere, and give its folder: `scripts/models adopt NAME FOLDER`.")
    beside = pipeline.folder / ".model.toml"
    beside.write_text(head + pinned(pipeline.folder, pipeline.files))
    os.replace(beside, pipeline.folder / "model.toml")
    staging.readable(pipeline.folder)


def pinned(folder, paths):
    entries = [manifest_text.extra(path, files.sha256_of(folder / path), (folder / path).stat().st_size) for path in sorted(paths)]
    return manifest_text.mark("adopt") + "".join(entries)


def report(pipeline, target, facts):
    for path in pipeline.left_out:
        info(f"  left out {path}: no graph of the pipeline uses it")
    if pipeline.is_sdxl and facts.get("canvas", {}).get("side", 0) < 1024:
        info(f"  this is an SDXL pipeline, made for sides of 1024 pixels: set canvas.side in {target / 'model.toml'}")
    modes = " ".join(sorted(facts.get("strength", {})))
    info(
        f"{target.name}: {target} has {len(pipeline.files)} files, all of them in its manifest. Look at its results, then run "
        f"`scripts/models bind {target.name} {modes}`, which checks it first."
    )
