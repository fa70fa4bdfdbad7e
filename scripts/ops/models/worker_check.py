"""Asks `retouch-worker models check` whether a model can serve what it is to be bound to."""

import subprocess
import tempfile
from pathlib import Path

from common.config import PROGRAMS
from common.console import Problem

from . import runtime
from .progress import info


def require(model, tools, settings):
    """Refuses a model that a worker would refuse. `tools` is the text of a tools.toml with this model's lines only.

    Returns whether a worker was there to check it.
    """
    program = PROGRAMS / "retouch-worker"
    if not program.is_file():
        info(
            f"! No worker is built here, so only the manifest and the checksums of {model.name} were checked. To check the rest "
            f"with Compose, run `docker compose exec worker retouch-worker models check {model.name}`; in a checkout, build the programs "
            f"(`cargo build --release --workspace --bins`), and run `target/release/retouch-worker models check {model.name}`."
        )
        return False
    info(f"Checking {model.name} as a worker would; on a CPU, a large model takes minutes …")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / model.name).symlink_to(model.folder.resolve())
        (Path(folder) / "tools.toml").write_text(tools)
        answer = subprocess.run(
            [program, "models", "check"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**environment(settings), "RETOUCH_MODELS_DIR": folder},
        )
    if answer.returncode:
        raise Problem("\n  ".join(refusal(model.name, answer.stdout.replace(folder, str(model.folder.parent)))))
    return True


def refusal(name, output):
    """Returns why `models check` does not accept a model, in lines."""
    for mark, why in (("WRONG:", "a worker would refuse it"), ("UNCHECKED", "it could not be checked here")):
        if found := [line.strip() for line in output.splitlines() if mark in line]:
            return [f"{name} was not bound, because {why}:", *found]
    return [f"{name} was not bound, because its check failed:", *output.strip().splitlines()[-5:]]


def environment(settings):
    """Returns the environment in which the worker finds ONNX Runtime."""
    values = dict(settings.values)
    if not values.get("ORT_DYLIB_PATH"):
        values["ORT_DYLIB_PATH"] = str(runtime.fetch("gpu" if values.get("RETOUCH_DEVICE") == "cuda" else "cpu"))
    return values
