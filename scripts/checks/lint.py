"""`scripts/lint`: checks formatting, lints, dependencies between modules, and deployment files."""

import argparse
import os
import subprocess
import time

from common.config import REPO, load
from common.console import Problem, line, took
from devstack import build, prerequisites

from . import client_types, clients, kubernetes, links, linters, migrations, monitoring, notices, prose, python_imports, rust_cycles, workflows
from .arrows import wrong_arrows
from .beside import Beside
from .containers import checks as containers


def main():
    argparse.ArgumentParser(prog="scripts/lint", description="Checks formatting, lints, dependencies and deployment files.").parse_args()
    load()
    prerequisites.check()
    build.install_packages_of("ui")
    passed, failed = run()
    line(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def run():
    """Runs every check, even if one fails. Returns how many passed and how many failed."""
    clippy = ["cargo", "clippy", "--release", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]
    checks = [
        ("Rust formatting", program(["cargo", "fmt", "--all", "--check"])),
        ("dependencies between modules", findings_of(wrong_arrows)),
        ("cycles between Rust files", findings_of(rust_cycles.check)),
        ("formatting and lints of Python", findings_of(linters.ruff)),
        ("imports of the scripts", findings_of(python_imports.check)),
        ("alerts, board and runbooks", findings_of(monitoring.check)),
        ("Kubernetes manifests", findings_of(kubernetes.check)),
        ("third-party licenses", findings_of(notices.check)),
        ("images and the compose stack", findings_of(containers.check)),
        ("locks of migrations", findings_of(migrations.check)),
        ("workflows", findings_of(workflows.check)),
        ("links and paths in documents", findings_of(links.check)),
        ("plain English", findings_of(prose.check)),
        ("formatting, imports and lints of the page", program(["npm", "run", "--silent", "lint"], "ui")),
        ("types made from the API's document", findings_of(client_types.check)),
        ("formatting, lints and types of the clients", findings_of(clients.check)),
        ("types of the page", program(["node_modules/.bin/tsc", "--noEmit"], "ui")),
    ]
    # Clippy often waits for one crate, and leaves a processor idle.
    others = Beside(lambda: outcomes(checks))
    passed = outcomes([("clippy", program(clippy))]) + others.result()
    return passed.count(True), passed.count(False)


def outcomes(checks):
    """Runs the checks. Returns for each whether it passed."""
    passed = []
    for name, check in checks:
        started = time.monotonic()
        line(f"• Checking {name} …")
        passed.append(check())
        line(f"  {'ok' if passed[-1] else 'FAILED'} ({took(time.monotonic() - started)})")
    return passed


def program(command, folder="."):
    def run_it():
        environment = {**os.environ, "SQLX_OFFLINE": "true"}
        try:
            return subprocess.run(command, cwd=REPO / folder, env=environment, stdin=subprocess.DEVNULL).returncode == 0
        except OSError as error:
            line(f"  cannot run {command[0]}: {error.strerror}")
            return False

    return run_it


def findings_of(check):
    """Wraps a check that returns one sentence for each error."""

    def run_it():
        try:
            findings = check()
        except Problem as problem:
            findings = [problem]
        for finding in findings:
            line(f"  {finding}")
        return not findings

    return run_it
