#!/usr/bin/env python3
"""Makes the pictures of the landing page and of Magic Fix's examples with Retouch itself, and the facts beside them.

    pip install pillow==13.0.0
    ui/examples/make.py               # after scripts/up or a release build
    ui/examples/make.py restore add   # only these of cases.toml

Run it again after another model was installed: each picture is made by the model that models/tools.toml binds for paid
jobs, or that the case names, and the page says which it was. A case that no installed model can follow ends the script.

Writes ui/src/examples/*.avif, the two examples.json that the page reads, and ATTRIBUTION.md.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from PIL import Image

from marks import mask_of, painted
from page_facts import write_attribution, write_facts
from prepare import PREPARATIONS
from small_files import MOST_BYTES, save_small

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PICTURES = HERE.parent / "src/examples"
WIDE = (720, 480)
THUMB = (240, 160)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", type=Path, default=ROOT / "target/release/retouch-worker", help="what is run")
    arguments.add_argument("--models-dir", type=Path, default=ROOT / "models")
    arguments.add_argument("only", nargs="*", help="ids of cases; all of them if none is given")
    chosen = arguments.parse_args()
    cases = tomllib.loads((HERE / "cases.toml").read_text())
    photos = tomllib.loads((HERE / "photos.toml").read_text())
    PICTURES.mkdir(exist_ok=True)

    worker = Worker(chosen.binary, chosen.models_dir)
    made = {"cut-out": cut_out, "upscale": upscale, "fix": fix}
    facts = []
    for kind, make in made.items():
        for case in cases[kind]:
            if not chosen.only or case["id"] in chosen.only:
                facts.append(make(worker, case))
                print(facts[-1]["id"], facts[-1]["model"], flush=True)
    write_facts(facts, photos, cases)
    write_attribution(HERE / "ATTRIBUTION.md", photos, cases)


def cut_out(worker: "Worker", case: dict) -> dict:
    before = photo_of(case)
    after, model = worker.run("remove-bg", before)
    return facts_of("cut-out", case, pair(case, before, after), model)


def upscale(worker: "Worker", case: dict) -> dict:
    """The small original is written as it is: the browser makes it large, as it would without Retouch."""
    before = photo_of(case)
    chosen = ("--model", case["model"]) if "model" in case else ()
    after, model = worker.run("upscale", before, "--factor", "4", *chosen)
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
    mask = mask_of(before.size, case["marks"], wider=case.get("brush", 0))
    after, name = worker.run("fix", before, "--prompt", case["prompt"], "--seed", str(case.get("seed", 0)), mask=mask)
    size = pair(case, before, after.convert("RGB"))
    save_small(painted(before, mask), PICTURES / f"{case['id']}-marked.avif", THUMB)
    return facts_of("fix", case, size, name) | {
        "text": case["text"],
        "prompt": case["prompt"],
        "note": case.get("note"),
        "isDemo": model.get("demo", False),
    }


def photo_of(case: dict) -> Image.Image:
    photo = Image.open(HERE / "photos" / f"{case['photo']}.jpg").convert("RGB")
    # What comes from a camera is larger than the small pictures that people want to enlarge.
    photo = photo.reduce(case.get("shrink", 1))
    return photo.crop(tuple(case["crop"]))


def pair(case: dict, before: Image.Image, after: Image.Image) -> tuple[int, int]:
    most_bytes = case.get("most_bytes", MOST_BYTES)
    save_small(before, PICTURES / f"{case['id']}-before.avif", WIDE, most_bytes)
    return save_small(after, PICTURES / f"{case['id']}-after.avif", WIDE, most_bytes)


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
    """Runs the tools on files, as the paid jobs would be run."""

    def __init__(self, binary: Path, models: Path) -> None:
        if not binary.is_file():
            sys.exit(f"{binary} is missing: build it with `cargo build --release --workspace`, or name another with --binary")
        self.binary, self.models = binary.resolve(), models.resolve()
        self.bindings = tomllib.loads((self.models / "tools.toml").read_text())["bind"]

    def model_for(self, mode: str) -> dict:
        """The manifest of the model that would fix in this mode; the ids of the fixes are the modes."""
        for line in self.bindings:
            if line["tool"] == "magic-fix" and line.get("mode") == mode and line["tier"] == "paid":
                return tomllib.loads((self.models / line["model"] / "model.toml").read_text())
        sys.exit(f"tools.toml binds no model that could {mode}")

    def run(self, tool: str, picture: Image.Image, *words: str, mask: Image.Image | None = None) -> tuple[Image.Image, str]:
        """The result, and which model made it."""
        with tempfile.TemporaryDirectory() as folder:
            source, marks, target = (Path(folder, name) for name in ("in.png", "mask.png", "out.png"))
            picture.save(source)
            command = [self.binary, "run", tool, source, "-o", target, "--models-dir", self.models, *words]
            if mask:
                mask.save(marks)
                command += ["--mask", marks]
            said = subprocess.run(command, check=True, cwd=self.models.parent, capture_output=True, text=True).stdout
            return Image.open(target).copy(), model_in(said)


def model_in(said: str) -> str:
    return next(line.split()[1] for line in said.splitlines() if line.startswith("model "))


if __name__ == "__main__":
    main()
