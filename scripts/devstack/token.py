"""`scripts/token`: an access token of a local account, for curl and scripts."""

import os
import subprocess
import sys

from common.config import REPO, load
from common.say import Problem

from . import services

USAGE = """usage: scripts/token someone@example.com

Prints an access token of that local account, good for an hour. It is the account that the sign-in page knows by
the same email address. An account that does not exist yet is made without a password; whoever signs in with it
first on the page chooses one. Retouch need not run."""


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(USAGE, file=sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    settings = load()
    if settings.given("OIDC_ISSUER"):
        raise Problem(
            f"OIDC_ISSUER is {settings.get('OIDC_ISSUER')}: accounts are kept there, so ask that provider for a token."
        )
    environment = {**os.environ, **services.oidc_environment(settings)}
    command = ["node", REPO / "standins" / "oidc" / "token.mjs", sys.argv[1]]
    try:
        return subprocess.run(command, env=environment).returncode
    except FileNotFoundError as error:
        raise Problem("Node.js is not installed. Install version 20.19 or newer, see https://nodejs.org.") from error
