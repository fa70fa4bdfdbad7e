"""`scripts/models export`: exports a pipeline from its original weights, in a virtual environment that is deleted afterwards."""

import os
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from common.config import CACHE, PROGRAMS, REPO
from common.console import Problem, run_logged, step

from . import adopt, catalog, conversion, hub_source, licensing, staging, worker_check
from .hub import Hub
from .pipeline import UNET
from .progress import info

PLACE = CACHE / "export"
CONVERT = REPO / "models" / "convert"
# The packages, which bring their CUDA libraries along.
PACKAGES_BYTES = 9_000_000_000
# The original weights, the export, its copy, and what the exporter writes in between.
WEIGHTS_BYTES = 9_000_000_000


def export(models, name, source, settings, is_accepted=False, today=date.today):
    """Exports into `models/NAME`. `source` is a folder with the original weights; by default they come from the hub."""
    model, origin = described(models, name)
    if not (PROGRAMS / "retouch-worker").is_file():
        raise Problem("Comparing the export with diffusers needs retouch-worker. Build it: cargo build --release --workspace --bins")
    if source is None:
        licensing.require(model, is_accepted, (models / name,), "export")
    elif not (Path(source) / "model_index.json").is_file():
        raise Problem(f"{source} has no model_index.json, so it is not a pipeline in the layout of diffusers. Give the folder that has it.")
    staging.require_space(PLACE, PACKAGES_BYTES + WEIGHTS_BYTES, f"Exporting {name}")
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE, prefix="run-") as scratch:
        made = Path(scratch) / "pipeline"
        run_exporter(install(Path(scratch)), origin, source, made, settings)
        # Before the comparison, so that what is compared is what runs.
        conversion.run(conversion.PROGRAMS["attention"], made / UNET, made / UNET)
        verify(made, settings)
        adopt.adopt(models, name, made, reference="reference")
    if source is None:
        licensing.record(model, origin["revision"], models / name, today())
        # The download is kept if something fails, so that the next run resumes it.
        shutil.rmtree(PLACE / "hub", ignore_errors=True)


def described(models, name):
    template = models / "templates" / f"{name}.toml"
    if not template.is_file():
        known = sorted(path.stem for path in (models / "templates").glob("*.toml") if "export" in catalog.read_toml(path))
        raise Problem(f"There is no {template}, which would say what to export. Models that can be exported: {', '.join(known) or 'none'}.")
    table = catalog.read_toml(template).get("export")
    if not isinstance(table, dict):
        raise Problem(f"{template} has no [export], which names the repository of the original weights. Export {name} yourself, then adopt it.")
    hub_source.refuse_unknown(table, {"repository", "revision", "variant"}, f"{template}: export")
    hub_source.checked(table, "repository", hub_source.REPOSITORY, '"owner/name"', f"{template}: export")
    hub_source.checked(table, "revision", hub_source.COMMIT, "a commit of 40 lower-case hexadecimal digits", f"{template}: export")
    return catalog.described(name, template, models / name, is_template=True).of(table["repository"], table["revision"]), table


def install(scratch):
    """Returns the Python of a virtual environment with the exporter, whose packages are pinned by checksum."""
    with step("Installing the exporter: PyTorch, diffusers, and optimum (3 GB)"):
        folder = scratch / "environment"
        done = subprocess.run([sys.executable, "-m", "venv", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Problem(f"Cannot create a virtual environment (Debian: apt install python3-venv): {done.stdout.strip()}")
        python = folder / "bin" / "python"
        command = [python, "-m", "pip", "install", "--require-hashes", "--only-binary=:all:", "--no-deps", "--disable-pip-version-check"]
        command += ["--no-cache-dir", "--requirement", CONVERT / "export.txt"]
        run_logged([str(part) for part in command], str(CACHE / "logs" / "export-install.log"), "Installing the exporter")
    return python


def run_exporter(python, origin, source, made, settings):
    command = [python, CONVERT / "export_pipeline.py", source or origin["repository"], made]
    if source is None:
        command += ["--revision", origin["revision"]]
    if variant := origin.get("variant"):
        command += ["--variant", variant]
    hub = Hub(settings.values)
    # The hub's own client reads these; its downloads are deleted with the packages.
    environment = {**os.environ, **settings.values, "HF_HOME": str(PLACE / "hub"), "HF_ENDPOINT": hub.endpoint}
    if hub.token:
        environment["HF_TOKEN"] = hub.token
    with step("Exporting, and recording vectors with diffusers"):
        log = str(CACHE / "logs" / "export.log")
        run_logged([str(part) for part in command], log, "Exporting", env=environment)


def verify(made, settings):
    """Compares the export with what diffusers did with the same weights."""
    with step("Comparing the export with diffusers"):
        command = [PROGRAMS / "retouch-worker", "models", "verify", made, "--reference", made / "reference"]
        done = subprocess.run(
            command, env=worker_check.environment(settings), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    for line in done.stdout.splitlines():
        info(f"  {line}")
    if done.returncode:
        raise Problem("The export was discarded, because its results differ from those of diffusers; see the lines above.")
