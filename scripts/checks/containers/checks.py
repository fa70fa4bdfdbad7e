"""What is checked at every `scripts/lint`, without an engine and within seconds."""

import json
import os
import subprocess
from pathlib import Path

from common.config import REPO
from common.say import Problem

from . import tools
from .realm import wrong_in_realm

FILE = "docker-compose.gpu.yml"
CPU = "deploy/compose/cpu.yml"
GPUS = "deploy/compose/gpus.yml"
CENTRAL = "deploy/compose/central.yml"
STAND_INS = "deploy/compose/stand-ins.yml"
REALM = REPO / "deploy" / "compose" / "retouch-realm.json"
# Every way in which our files are put together.
COMPOSITIONS = (
    ([FILE], ["central"]),
    ([FILE], []),
    ([FILE, CPU], ["central"]),
    ([FILE, GPUS], ["central", "gpus-8"]),
    ([FILE, GPUS], ["gpus-2"]),
    ([FILE, CENTRAL], ["central"]),
    ([FILE, CPU, STAND_INS], ["api", "postgres", "redis", "s3", "tools"]),
)


def check():
    """Everything that is wrong with the container files."""
    return [*wrong_compositions(), *lint_of_dockerfiles(), *lint_of_compose(), *wrong_in_realm(REALM.read_text())]


def config(files, profiles=(), settings=None):
    """What Docker Compose makes of the files: only `settings` count, whatever .env and settings.env of this machine say."""
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
        try:
            config(files, profiles, {"RETOUCH_PRIVATE_ADDRESS": "10.0.0.5"})
        except Problem as problem:
            yield str(problem)


def lint_of_dockerfiles():
    ended = subprocess.run(
        [tools.hadolint(), "--no-color", "Dockerfile", *sorted(Path(__file__).parent.glob("*.Dockerfile"))],
        cwd=REPO,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if ended.returncode:
        yield ended.stdout.strip()


def lint_of_compose():
    suppressed = ["--config", "deploy/compose/compose-lint.yml", "--strict-config", "--skip-suppressed"]
    code, said = tools.compose_lint("check", "--no-pager", "--no-env", "--fail-on", "low", *suppressed, FILE)
    if code:
        yield said
