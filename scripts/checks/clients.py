"""The typed clients and `/mcp`: lints the TypeScript client, and proves that programs reach the API with them.

The proof runs as a part of `scripts/test --only contract`, on its stack: the tests of both clients, and an official MCP
client that runs every tool in both versions of its protocol. Debits are exact; calls that are canceled cost nothing.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from common import python_tools
from common.config import REPO
from common.console import Problem, line, took, warn
from devstack.trial import expect, mask, png, post

from . import linters

PYTHON = REPO / "clients" / "python"
TYPESCRIPT = REPO / "clients" / "typescript"
TOOLS = REPO / "ui" / "node_modules" / ".bin"
MCP_CLIENT = Path(__file__).with_name("mcp_client.py")
MCP_PACKAGES = Path(__file__).with_name("mcp_client.txt")


def check():
    """Lints the TypeScript client. Returns the output of each linter that failed."""
    commands = ([TOOLS / "biome", "ci", "."], [TOOLS / "tsc", "--noEmit", "-p", "."])
    return [found for command in commands if (found := linters.findings_of(command, TYPESCRIPT))]


def install():
    return python_tools.install(MCP_PACKAGES, "mcp-client", "an MCP client")


def prove(trial, person):
    """Runs every proof, even if one fails. Returns how many passed and how many failed."""
    bearer = {"Content-Type": "application/json", "Authorization": f"Bearer {person.token}"}
    _, key = post(f"{trial.api}/api/keys", bearer, json.dumps({"name": "clients"}).encode())
    facts = {"address": trial.api, "key": key["key"], "picture": png(64, 48).hex(), "mask": mask(64, 48).hex()}
    # Proxies cannot reach addresses of this machine.
    environment = {**os.environ, "RETOUCH_CLIENT_FACTS": json.dumps(facts), "NO_PROXY": "*", "PYTHONDONTWRITEBYTECODE": "1"}
    proofs = (
        ("the Python client", lambda: python_client(environment)),
        ("the TypeScript client", lambda: typescript_client(environment)),
        ("an MCP client", lambda: mcp_client(trial, environment)),
    )
    failed = 0
    for name, proof in proofs:
        started = time.monotonic()
        line(f"• Testing {name} …")
        try:
            proof()
        except Problem as problem:
            failed += 1
            warn(f"FAILED: {name} ({took(time.monotonic() - started)})\n{problem}")
    return len(proofs) - failed, failed


def python_client(environment):
    # From outside the folder, with what an installation would have.
    run([sys.executable, "-m", "unittest", "discover", "-s", PYTHON / "tests"], {**environment, "PYTHONPATH": str(PYTHON)})


def typescript_client(environment):
    run([TOOLS / "tsc", "-p", TYPESCRIPT], environment)
    run(["node", "--test", TYPESCRIPT / "test"], environment)


def mcp_client(trial, environment):
    environment = {**environment, "PYTHONPATH": str(install())}
    run([sys.executable, MCP_CLIENT, "tools"], environment)
    # Without a worker that answers, runs last until they are canceled.
    worker = trial.running("worker").process
    worker.send_signal(signal.SIGSTOP)
    try:
        run([sys.executable, MCP_CLIENT, "cancel"], environment)
    finally:
        worker.send_signal(signal.SIGCONT)
    left = trial.sql("select count(*) from jobs where state in ('queued', 'running')")
    expect(left == "0", "No canceled job is left", left)


def run(command, environment):
    try:
        ended = subprocess.run(
            [str(part) for part in command],
            cwd=REPO,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
    except OSError as error:
        raise Problem(f"Cannot run {command[0]}: {error.strerror}.") from error
    except subprocess.TimeoutExpired as stuck:
        raise Problem(f"It did not end within two minutes.\n{stuck.stdout or ''}") from None
    if ended.returncode:
        raise Problem(ended.stdout)
