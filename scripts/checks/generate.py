"""`scripts/generate`: rewrites generated files: query data, the OpenAPI document, the types of the page and the clients."""

import argparse
import os
import re
import shutil
import subprocess

from common.config import REPO
from common.console import Problem, line, run_shown, step
from common.workspace import crates
from devstack import build, prerequisites
from devstack.sandbox import Sandbox

from . import client_types

QUERY_MACRO = re.compile(r"\bquery(_as|_scalar)?(_unchecked)?!")
QUERIES = REPO / ".sqlx"


def main():
    argparse.ArgumentParser(
        prog="scripts/generate", description="Rewrites generated files: query data, the OpenAPI document, the types of the page and the clients."
    ).parse_args()
    prerequisites.check()
    with Sandbox("generate") as sandbox:
        url = sandbox.start_postgres()
        apply_migrations(sandbox)
        write_query_data(url)
    write_document()
    build.install_packages_of("ui")
    client_types.write()
    line("Generated files are up to date. See the changes with git diff.")
    return 0


def apply_migrations(sandbox):
    # With psql, because retouch-api may not build before the query data is written.
    with step("Applying the migrations"):
        for path in sorted((REPO / "migrations").glob("*.sql"), key=lambda path: int(path.name.partition("_")[0])):
            sandbox.postgres.psql(path.read_text(), database="retouch")


def write_query_data(url):
    sources = [path for crate in crates() for path in (REPO / crate).rglob("*.rs")]
    users = [path for path in sources if QUERY_MACRO.search(path.read_text())]
    if not users:
        line("• No checked queries in the code; nothing to write to .sqlx")
        shutil.rmtree(QUERIES, ignore_errors=True)
        return
    packages = sorted({f"retouch-{path.relative_to(REPO).parts[0]}" for path in users})
    # Macros write their data when they run, so the compiler must see these files as changed.
    for path in users:
        os.utime(path)
    # Replaces the old data only when it is complete: an interrupted run changes nothing.
    new = REPO / ".retouch" / "sqlx-new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    environment = {**os.environ, "SQLX_OFFLINE": "false", "SQLX_OFFLINE_DIR": str(new), "DATABASE_URL": url}
    # The whole workspace, because a part of it would use other features and rebuild all dependencies.
    command = ["cargo", "check", "--release", "--workspace", "--locked", "--all-targets"]
    line(f"• Writing the query data of {', '.join(packages)} …")
    run_shown(command, "Writing the query data", cwd=REPO, env=environment)
    shutil.rmtree(QUERIES, ignore_errors=True)
    new.rename(QUERIES)


def write_document():
    line("• Writing the OpenAPI document …")
    environment = {**os.environ, "SQLX_OFFLINE": "true"}
    command = ["cargo", "build", "--release", "--workspace", "--bins", "--locked"]
    run_shown(command, "Building the API", cwd=REPO, env=environment)
    answer = subprocess.run([REPO / "target/release/retouch-api", "openapi"], stdout=subprocess.PIPE)
    if answer.returncode:
        raise Problem("retouch-api openapi failed; see its output above.")
    client_types.DOCUMENT.write_bytes(answer.stdout)
