"""Runs test runners, and counts how many tests passed and failed."""

import json
import re
import subprocess
from dataclasses import dataclass

from common.config import REPO
from common.console import Problem


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0

    def __add__(self, other):
        return Counts(self.passed + other.passed, self.failed + other.failed)


def show(command, folder=".", env=None):
    """Returns the exit status of a command whose output goes to the terminal."""
    try:
        return subprocess.run([str(part) for part in command], cwd=REPO / folder, env=env, stdin=subprocess.DEVNULL).returncode
    except OSError as error:
        raise Problem(f"Cannot run {command[0]}: {error.strerror}.") from error


def counted(command, pattern, count, folder=".", env=None):
    """Shows the output of a test runner, and adds up the counts in it: `count(match)` for each match of `pattern`."""
    counts = Counts()
    with subprocess.Popen(
        [str(part) for part in command],
        cwd=REPO / folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for text in process.stdout:
            print(text, end="", flush=True)
            for match in re.finditer(pattern, text):
                counts += count(match)
    return at_least_one_failure(counts, process.returncode)


def by_position(match):
    """For Cargo: the numbers passed and failed."""
    return Counts(int(match[1]), int(match[2]))


def by_word(match):
    """For Node: `pass` or `fail`, and a number."""
    return Counts(passed=int(match[2])) if match[1] == "pass" else Counts(failed=int(match[2]))


def by_unittest(match):
    """For Python: how many tests ran, or how many of them failed."""
    if match[1]:
        return Counts(passed=int(match[2]))
    if match[3] in ("failures", "errors"):
        return Counts(passed=-int(match[4]), failed=int(match[4]))
    return Counts()


def from_report(report, code, count):
    """Returns the counts in a JSON file that a test runner has written before it exited with `code`."""
    if not report.exists():
        return Counts(failed=1)
    return at_least_one_failure(count(json.loads(report.read_text())), code)


def at_least_one_failure(counts, code):
    # A runner that crashes, or code that does not compile, prints no counts.
    return counts + Counts(failed=1) if code and not counts.failed else counts
