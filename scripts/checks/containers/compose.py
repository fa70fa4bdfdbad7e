"""`scripts/test-compose`: docker-compose.gpu.yml in a real engine, on a processor, while things go wrong."""

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
        raise Problem("The container files are not right:\n\n  " + "\n  ".join(findings))
    if not are_fresh():
        # What `prebuilt` in the Dockerfile takes, whatever is used elsewhere.
        build.build_programs("release")
    if not from_source:
        build.build_ui()
    if models is None:
        build.fetch_models(load())
    # Told to stop, it takes everything down first, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Engine() as engine:
        images = Images(engine, from_source)
        images.make()
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
        description="Builds the images, starts the compose stack in a Docker engine, has a person use all of it, and breaks "
        "things. Starts an engine, as root, where none runs; leaves nothing behind but images in .retouch/engine.",
    )
    parser.add_argument("--from-source", action="store_true", help="compile inside Docker; otherwise target/release is used")
    parser.add_argument("--models", metavar="FOLDER", help="models for the journey; by default those that scripts/models fetches")
    return parser.parse_args()


def show(images, proof):
    line("\n== images")
    for image, megabytes in images.sizes():
        line(f"{image:28} {megabytes:7.0f} MB")
    if not images.has_registry:
        warn("No image registry answered: Keycloak, the S3 server, Postgres, Valkey and Caddy were stand-ins, see above.")
    line("\n== proofs")
    for text in proof.table():
        line(text)
