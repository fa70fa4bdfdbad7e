"""Runs `retouch-api` with the addresses of this installation."""

import json
import os
import subprocess

from common import addresses
from common.config import PROGRAMS
from common.console import Problem


def run(settings, *arguments):
    """Returns the exit status and the output."""
    ran = start(settings, arguments)
    return ran.returncode, (ran.stdout + ran.stderr).strip()


def answer(settings, *arguments, lines=()):
    """Runs `retouch-api admin --json` with `lines` as its standard input. Returns the parsed output."""
    ran = start(settings, ("admin", "--json", *arguments), "".join(f"{line}\n" for line in lines))
    if ran.returncode:
        raise Problem(f"retouch-api admin {arguments[0]} failed: {ran.stderr.strip()[-2000:]}")
    return json.loads(ran.stdout)


def start(settings, arguments, text=""):
    built = PROGRAMS / "retouch-api"
    command = [str(built) if built.exists() else "retouch-api", *map(str, arguments)]
    try:
        return subprocess.run(command, env=environment(settings), input=text, capture_output=True, text=True)
    except OSError as error:
        raise Problem(f"Cannot run retouch-api ({error.strerror}). Build it, or add it to PATH.") from error


def environment(settings):
    return {**os.environ, **addresses.data_environment(settings)}
