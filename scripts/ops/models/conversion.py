"""Runs the programs in `models/convert`."""

import subprocess
import sys

from common.config import REPO
from common.console import Problem

# What manifests call the conversions of nets.
PROGRAMS = {"attention": "attention.py", "moments": "moments.py"}


def run(program, *arguments):
    """Returns what the program says about the conversion, if anything."""
    answer = answer_of(program, *arguments)
    if answer.returncode:
        raise Problem(f"The conversion failed: {answer.stdout.strip()}")
    return answer.stdout.strip()


def external_data(net):
    """Returns the names of the files in which a graph keeps tensors."""
    answer = answer_of("external_data.py", net)
    if answer.returncode:
        raise Problem(f"{net} cannot be used: {answer.stdout.strip()}. Export or download it again.")
    return answer.stdout.split("\n")[:-1]


def answer_of(program, *arguments):
    # Isolated, so that packages installed here cannot change the result.
    command = [sys.executable, "-B", "-E", "-s", "-S", REPO / "models" / "convert" / program]
    return subprocess.run([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
