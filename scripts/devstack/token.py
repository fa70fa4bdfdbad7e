"""`scripts/token`: prints an access token of a local account, for curl and scripts."""

import os
import subprocess
import sys

from common.config import REPO, load
from common.console import Problem

from . import services

USAGE = """usage: scripts/token someone@example.com

Prints an access token of the local account with this email address, valid for an hour. If the account does not exist,
it is created without a password; the first sign-in on the page sets one. Retouch need not be running."""


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(USAGE, file=sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    settings = load()
    if settings.given("OIDC_ISSUER"):
        raise Problem(f"OIDC_ISSUER is set, so accounts belong to {settings.get('OIDC_ISSUER')}. Get a token from that provider.")
    environment = {**os.environ, **services.oidc_environment(settings)}
    command = ["node", REPO / "standins" / "oidc" / "token.mjs", sys.argv[1]]
    try:
        return subprocess.run(command, env=environment).returncode
    except FileNotFoundError as error:
        raise Problem("Node.js is not installed. Install version 20.19 or newer, see https://nodejs.org.") from error
