"""`scripts/test-compose`: runs docker-compose.gpu.yml in an engine, without a GPU, and injects failures."""

import argparse
import shutil
import signal
from pathlib import Path

from common.config import REPO, load
from common.console import Problem, line, warn
from devstack import build, prerequisites

from . import checks, proven
from .engine import Engine
from .images import Images, are_fresh
from .proof import Proof


def main():
    options = arguments()
    prerequisites.check()
    passed, failed = run(options.from_source, options.models)
    line(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def run(from_source=False, models=None):
    """Returns how many proofs passed and how many failed."""
    if findings := checks.check():
        raise Problem("The container files have errors:\n\n  " + "\n  ".join(findings))
    if not are_fresh():
        # `prebuilt` in the Dockerfile copies target/release.
        build.build_programs("release")
    if not from_source:
        build.build_ui()
    if models is None:
        build.fetch_models(load())
    # SIGTERM cleans up like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Engine() as engine:
        images = Images(engine, from_source)
        images.build_all()
        proof = Proof(engine, images, Path(models or REPO / "models").resolve())
        try:
            counts = proof.run()
        finally:
            for stack in (proof.central, proof.node):
                shutil.rmtree(stack.folder, ignore_errors=True)
        show(images, proof)
    if counts[1] == 0:
        proven.remember()
    return counts


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/test-compose",
        description="Builds the images, starts the Compose stack in a Docker engine, uses all of it, and injects failures. "
        "As root, starts an engine if none is running. Leaves nothing behind except images in .retouch/engine.",
    )
    parser.add_argument("--from-source", action="store_true", help="compile inside Docker instead of using target/release")
    parser.add_argument("--models", metavar="FOLDER", help="models for the proofs; default: those of scripts/models fetch")
    return parser.parse_args()


def show(images, proof):
    line("\n== images")
    for image, megabytes in images.sizes():
        line(f"{image:36} {megabytes:7.0f} MB")
    if not images.has_registry:
        warn("No image registry was reachable: Keycloak, the S3 server, Postgres, Valkey and Caddy were stand-ins, see above.")
    line("\n== proofs")
    for text in proof.table():
        line(text)
