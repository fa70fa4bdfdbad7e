"""Runs pip and npm."""

import subprocess

from common.console import Problem


def answer_of(command):
    """Returns the output of a command, or an empty string if it fails."""
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def run(command, problem):
    command = [str(part) for part in command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        detail = (done.stderr or done.stdout).strip().splitlines()
        raise Problem("\n  ".join([problem + ":", *detail[-8:]]))
