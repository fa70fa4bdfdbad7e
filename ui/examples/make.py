#!/usr/bin/env python3
"""Generates the example pictures of the page with Retouch itself, and the facts that the page shows about them.

    pip install pillow==13.0.0
    ui/examples/make.py               # after scripts/up or a release build
    ui/examples/make.py restore add   # only these cases of cases.toml

Run it again after installing another model: each picture is made by the model that the case names or, by default, the
one that models/tools.toml binds for paid jobs. The page names the model. The script fails if no installed model can run a
case.

Writes the pictures and JSON files in ui/src/features/examples, and ATTRIBUTION.md.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from PIL import Image

from marks import mask_of, overlay
from page_facts import write_attribution, write_facts
from prepare import PREPARATIONS
from small_files import MAX_BYTES, save_small

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PICTURES = HERE.parent / "src/features/examples/pictures"
WIDE = (720, 480)
THUMB = (240, 160)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", type=Path, default=ROOT / "target/release/retouch-worker", help="the worker to run")
    arguments.add_argument("--models-dir", type=Path, default=ROOT / "models")
    arguments.add_argument("only", nargs="*", help="ids of cases (default: all)")
    options = arguments.parse_args()
    cases = tomllib.loads((HERE / "cases.toml").read_text())
    photos = tomllib.loads((HERE / "photos.toml").read_text())
    PICTURES.mkdir(exist_ok=True)

    worker = Worker(options.binary, options.models_dir)
    makers = {"cutout": cut_out, "upscale": upscale, "fix": fix}
    facts = []
    for kind, make in makers.items():
        for case in cases[kind]:
            if not options.only or case["id"] in options.only:
                facts.append(make(worker, case))
                print(facts[-1]["id"], facts[-1]["model"], flush=True)
    write_facts(facts, photos, cases)
    write_attribution(HERE / "ATTRIBUTION.md", photos, cases)


def cut_out(worker: "Worker", case: dict) -> dict:
    before = photo_of(case)
    after, model = worker.run("remove-bg", before)
    return facts_of("cutout", case, pair(case, before, after), model)


def upscale(worker: "Worker", case: dict) -> dict:
    """Saves the small original unchanged: the browser enlarges it, as it would without Retouch."""
    before = photo_of(case)
    model_option = ("--model", case["model"]) if "model" in case else ()
    after, model = worker.run("upscale", before, "--factor", "4", *model_option)
    size = save_small(after.convert("RGB"), PICTURES / f"{case['id']}-after.avif", WIDE)
    save_small(before, PICTURES / f"{case['id']}-before.avif", before.size)
    return facts_of("upscale", case, size, model)


def fix(worker: "Worker", case: dict) -> dict:
    before = photo_of(case)
    if name := case.get("prepare"):
        before = PREPARATIONS[name](before, case["marks"])
    model = worker.model_for(case["id"])
    if "full" in case and not model.get("demo", False):
        case = {**case, **case["full"]}
    mask = mask_of(before.size, case["marks"], widen=case.get("brush", 0))
    after, name = worker.run("fix", before, "--prompt", case["prompt"], "--seed", str(case.get("seed", 0)), mask=mask)
    size = pair(case, before, after.convert("RGB"))
    save_small(overlay(before, mask), PICTURES / f"{case['id']}-marked.avif", THUMB)
    return facts_of("fix", case, size, name) | {
        "text": case["text"],
        "prompt": case["prompt"],
        "note": case.get("note"),
        "isDemo": model.get("demo", False),
    }


def photo_of(case: dict) -> Image.Image:
    photo = Image.open(HERE / "photos" / f"{case['photo']}.jpg").convert("RGB")
    # Camera photos are larger than the small pictures that people want to enlarge.
    photo = photo.reduce(case.get("shrink", 1))
    return photo.crop(tuple(case["crop"]))


def pair(case: dict, before: Image.Image, after: Image.Image) -> tuple[int, int]:
    max_bytes = case.get("max_bytes", MAX_BYTES)
    save_small(before, PICTURES / f"{case['id']}-before.avif", WIDE, max_bytes)
    return save_small(after, PICTURES / f"{case['id']}-after.avif", WIDE, max_bytes)


def facts_of(kind: str, case: dict, size: tuple[int, int], model: str) -> dict:
    return {
        "kind": kind,
        "id": case["id"],
        "title": case["title"],
        "alt": case["alt"],
        "result": case["result"],
        "photo": case["photo"],
        "width": size[0],
        "height": size[1],
        "model": model,
    }


class Worker:
    """Runs the tools on files, like paid jobs."""

    def __init__(self, binary: Path, models: Path) -> None:
        if not binary.is_file():
            sys.exit(f"{binary} does not exist. Build it with `cargo build --release --workspace`, or set --binary.")
        self.binary, self.models = binary.resolve(), models.resolve()
        self.bindings = tomllib.loads((self.models / "tools.toml").read_text())["bind"]

    def model_for(self, mode: str) -> dict:
        """Returns the manifest of the paid model for a fix mode. The ids of the fixes are the modes."""
        for line in self.bindings:
            if line["tool"] == "magic-fix" and line.get("mode") == mode and line["tier"] == "paid":
                return tomllib.loads((self.models / line["model"] / "model.toml").read_text())
        sys.exit(f"tools.toml binds no model for the fix mode {mode}")

    def run(self, tool: str, picture: Image.Image, *options: str, mask: Image.Image | None = None) -> tuple[Image.Image, str]:
        """Returns the result and the name of its model."""
        with tempfile.TemporaryDirectory() as folder:
            source, marks, target = (Path(folder, name) for name in ("in.png", "mask.png", "out.png"))
            picture.save(source)
            command = [self.binary, "run", tool, source, "-o", target, "--models-dir", self.models, *options]
            if mask:
                mask.save(marks)
                command += ["--mask", marks]
            output = subprocess.run(command, check=True, cwd=self.models.parent, capture_output=True, text=True).stdout
            return Image.open(target).copy(), model_in(output)


def model_in(output: str) -> str:
    return next(line.split()[1] for line in output.splitlines() if line.startswith("model "))


if __name__ == "__main__":
    main()
