"""Static checks of the container files, without an engine."""

import json
import os
import sys
from pathlib import Path

from checks import linters, validators
from common.config import REPO
from common.console import Problem

from . import tools
from .realm import wrong_in_realm

FILE = "docker-compose.gpu.yml"
CPU = "deploy/compose/cpu.yml"
GPUS = "deploy/compose/gpus.yml"
CENTRAL = "deploy/compose/central.yml"
STAND_INS = "deploy/compose/stand-ins.yml"
REALM = REPO / "deploy" / "compose" / "retouch-realm.json"
# Every supported combination of Compose files and profiles.
COMPOSITIONS = (
    ([FILE], ["central", "worker"]),
    ([FILE], ["central"]),
    ([FILE], ["worker"]),
    ([FILE, CPU], ["central", "worker"]),
    ([FILE, GPUS], ["central", "gpus-8"]),
    ([FILE, GPUS], ["gpus-2"]),
    ([FILE, CENTRAL], ["central", "worker"]),
    ([FILE, CPU, STAND_INS], ["api", "postgres", "redis", "s3", "worker", "tools"]),
)
# The prefix of images that are built here, which no image on Docker Hub has.
LOCAL = "localhost/retouch/"
# Settings that select published images instead of building them.
PUBLISHED = {"RETOUCH_IMAGE": "registry.example/retouch", "RETOUCH_TAG": "9.9.9"}


def check():
    """Returns the errors in the container files."""
    return [*wrong_compositions(), *filter(None, (lint_of_dockerfiles(), lint_of_compose())), *wrong_in_realm(REALM.read_text())]


def config(files, profiles=(), settings=None):
    """Returns the resolved configuration of the Compose files with `settings`, without .env and settings.env."""
    command = [tools.compose(), "--project-directory", REPO, "--env-file", os.devnull]
    for file in files:
        command += ["--file", REPO / file]
    for profile in profiles:
        command += ["--profile", profile]
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/"), "RETOUCH_SETTINGS": os.devnull}
    environment |= settings or {}
    return json.loads(tools.text_of([*command, "config", "--format", "json"], env=environment))


def wrong_compositions():
    for files, profiles in COMPOSITIONS:
        settings = {"RETOUCH_PRIVATE_ADDRESS": "10.0.0.5"}
        try:
            built = config(files, profiles, settings)["services"]
            published = config(files, profiles, settings | PUBLISHED)["services"]
        except Problem as problem:
            yield str(problem)
        else:
            for finding in wrong_images(built, published):
                yield f"{' '.join(files)} with {','.join(profiles) or 'no profile'}: {finding}"


def wrong_images(built, published):
    """Yields a sentence for each of our services that has no build, could be pulled instead, or ignores `PUBLISHED`."""
    buildable = {service["image"] for service in built.values() if service.get("build")}
    for name, service in built.items():
        repository, _, _ = service["image"].rpartition(":")
        if not repository.startswith(LOCAL):
            if service.get("build"):
                yield f"{name} builds {service['image']}, which is also a name on Docker Hub"
            continue
        if service["image"] not in buildable:
            yield f"{name} runs {service['image']}, which no service builds"
        expected = f"{PUBLISHED['RETOUCH_IMAGE']}/{repository.removeprefix(LOCAL)}:{PUBLISHED['RETOUCH_TAG']}"
        if published[name]["image"] != expected:
            yield f"{name} runs {published[name]['image']} although RETOUCH_IMAGE and RETOUCH_TAG name {expected}"


def lint_of_dockerfiles():
    files = ["Dockerfile", *sorted(Path(__file__).parent.glob("*.Dockerfile"))]
    return linters.findings_of([tools.hadolint(), "--no-color", *files])


def lint_of_compose():
    # Calls the main function, because the launcher may use another Python.
    command = [sys.executable, "-c", "from compose_lint.cli import main; raise SystemExit(main())", "check", "--no-pager", "--no-env"]
    command += ["--fail-on", "low", "--config", "deploy/compose/compose-lint.yml", "--strict-config", "--skip-suppressed", FILE]
    paths = os.pathsep.join([str(tools.install()), str(validators.install())])
    return linters.findings_of(command, env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"})
