"""`scripts/test --only contract`: checks the API against its OpenAPI document, and with clients.

Schemathesis generates valid and invalid requests for every route and validates the responses. The tests of our clients,
and an MCP client, run on the same stack.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from common import python_tools
from common.console import line, took, warn
from devstack.sandbox import Sandbox
from devstack.trial import Trial, post

from . import clients

REQUIREMENTS = Path(__file__).with_name("schemathesis.txt")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Random requests for each route, in addition to those that test the limits of each parameter.
EXAMPLES = 12


@dataclass(frozen=True)
class Round:
    name: str
    # Options of Schemathesis that select routes and requests.
    options: tuple
    headers: dict = field(default_factory=dict)
    # Values of path parameters.
    ids: dict = field(default_factory=dict)


def install():
    return python_tools.install(REQUIREMENTS, "schemathesis", "Schemathesis")


def run():
    """Runs every round, even if one fails. Returns how many passed and how many failed."""
    programs = install()
    with Sandbox("contract") as sandbox:
        # The API waits this long for a result; the tiny models are faster, and clients cancel calls within that time.
        trial = Trial(sandbox, {"RETOUCH_WAIT_SECS": "5", "RETOUCH_VISITOR_RUNS_PER_HOUR": "1000000"})
        ada, bob, eve = trial.people(3)
        proven, failed = clients.prove(trial, eve)
        rounds = rounds_of(trial, ada, bob)
        violated = 0
        for one in rounds:
            started = time.monotonic()
            line(f"• Testing as {one.name} …")
            if violations(trial, programs, one):
                violated += 1
                warn(f"FAILED: testing as {one.name} ({took(time.monotonic() - started)})")
    return proven + len(rounds) - violated, failed + violated


def rounds_of(trial, ada, bob):
    """Returns the rounds, each with its user and its requests."""
    person = {"Authorization": f"Bearer {ada.token}"}
    named = json.dumps({"name": "contract"}).encode()
    _, key = post(f"{trial.api}/api/keys", {"Content-Type": "application/json", **person}, named)
    hook = json.dumps({"url": "https://1.1.1.1/hook", "events": ["job.done"]}).encode()
    _, webhook = post(f"{trial.api}/api/webhooks", {"Content-Type": "application/json", **person}, hook)
    run_of = f"{trial.api}/api/upscale/upscale-ai-2?imageId={ada.image}"
    _, job = post(run_of, {"Prefer": "respond-async", **person})
    ids = {"imageId": ada.image, "jobId": job["id"], "keyId": key["id"], "webhookId": webhook["id"]}
    every = f"--max-examples={EXAMPLES}"
    # With a token, the stream continues after its first event.
    endless = ("--exclude-operation-id=account_events",)
    return [
        # Deleting the account comes last, because then every request fails.
        Round("a signed-in user", (every, *endless, "--exclude-tag=remove.bg", "--exclude-operation-id=delete_user"), person),
        Round(
            "a signed-in user with valid ids", (every, *endless, "--mode=positive", "--exclude-tag=remove.bg", "--exclude-method=DELETE"), person, ids
        ),
        Round("an API client", (every, "--include-tag=remove.bg"), {"X-Api-Key": key["key"]}),
        Round("a visitor", ("--max-examples=2", "--mode=positive"), ids=ids),
        Round("a user who deletes the account", (every, "--include-operation-id=delete_user"), {"Authorization": f"Bearer {bob.token}"}),
    ]


def violations(trial, programs, one):
    """Runs Schemathesis. Returns 0 if all responses match the document."""
    with tempfile.TemporaryDirectory(dir=trial.settings.run) as folder:
        config = Path(folder) / "schemathesis.toml"
        config.write_text("[parameters]\n" + "".join(f'{name} = "{known}"\n' for name, known in one.ids.items()))
        command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"]
        command += ["--config-file", str(config), "run", f"{trial.api}/api/openapi.json", "--url", trial.api]
        command += ["--checks", CHECKS, "--phases=examples,coverage,fuzzing", "--continue-on-failure"]
        # The same requests in every run, so that failures are reproducible.
        command += ["--generation-deterministic", "--suppress-health-check=all", "--warnings=off"]
        command += ["--request-timeout=30", "--no-color", *one.options]
        for name, value in one.headers.items():
            command += ["--header", f"{name}: {value}"]
        environment = {**os.environ, "PYTHONPATH": str(programs), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL).returncode
