"""`scripts/test --only contract`: the API answers as its OpenAPI document says, whatever it is sent.

Schemathesis makes requests of every route from the document, right ones and wrong ones, and judges the answers.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from common.console import line, took, warn
from devstack.sandbox import Sandbox
from devstack.trial import Trial, post

from . import python_tools

REQUIREMENTS = Path(__file__).with_name("schemathesis.txt")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Made of chance for each route, beside those that try each parameter's limits.
EXAMPLES = 12


@dataclass(frozen=True)
class Round:
    name: str
    # Which routes, and what sort of requests.
    options: tuple
    headers: dict = field(default_factory=dict)
    # Ids to use where a route asks for one.
    ids: dict = field(default_factory=dict)


def run():
    """Every round, even when one fails. Returns how many passed and how many failed."""
    programs = python_tools.install(REQUIREMENTS, "schemathesis", "Schemathesis")
    failed = 0
    with Sandbox("contract") as sandbox:
        # A run that takes longer is answered with its job; the models of the tests are quicker than that.
        trial = Trial(sandbox, {"RETOUCH_WAIT_SECS": "1", "RETOUCH_VISITOR_RUNS_PER_HOUR": "1000000"})
        rounds = rounds_of(trial)
        for one in rounds:
            started = time.monotonic()
            line(f"• Asking as {one.name} …")
            if judge(trial, programs, one):
                failed += 1
                warn(f"FAILED: asking as {one.name} ({took(time.monotonic() - started)})")
    return len(rounds) - failed, failed


def rounds_of(trial):
    """Who asks for what."""
    ada, bob = trial.people(2)
    person = {"Authorization": f"Bearer {ada.token}"}
    named = json.dumps({"name": "contract"}).encode()
    _, key = post(f"{trial.api}/api/keys", {"Content-Type": "application/json", **person}, named)
    run_of = f"{trial.api}/api/upscale/upscale-ai-2?imageId={ada.image}"
    _, job = post(run_of, {"Prefer": "respond-async", **person})
    ids = {"imageId": ada.image, "jobId": job["id"], "keyId": key["id"]}
    every = f"--max-examples={EXAMPLES}"
    return [
        # Whoever left is told nothing but that, so that this comes last.
        Round("a person", (every, "--exclude-tag=remove.bg", "--exclude-operation-id=delete_user"), person),
        Round("a person who knows ids", (every, "--mode=positive", "--exclude-tag=remove.bg", "--exclude-method=DELETE"), person, ids),
        Round("a program", (every, "--include-tag=remove.bg"), {"X-Api-Key": key["key"]}),
        Round("nobody", ("--max-examples=2", "--mode=positive"), ids=ids),
        Round("a person who leaves", (every, "--include-operation-id=delete_user"), {"Authorization": f"Bearer {bob.token}"}),
    ]


def judge(trial, programs, one):
    """Returns 0 when all answers are as the document says."""
    with tempfile.TemporaryDirectory(dir=trial.settings.run) as folder:
        config = Path(folder) / "schemathesis.toml"
        config.write_text("[parameters]\n" + "".join(f'{name} = "{known}"\n' for name, known in one.ids.items()))
        command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"]
        command += ["--config-file", str(config), "run", f"{trial.api}/api/openapi.json", "--url", trial.api]
        command += ["--checks", CHECKS, "--phases=examples,coverage,fuzzing", "--continue-on-failure"]
        # The same requests on every run: a failure can be looked at again, and no run fails by luck.
        command += ["--generation-deterministic", "--suppress-health-check=all", "--warnings=off"]
        command += ["--request-timeout=30", "--no-color", *one.options]
        for name, value in one.headers.items():
            command += ["--header", f"{name}: {value}"]
        environment = {**os.environ, "PYTHONPATH": str(programs), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL).returncode
