"""Console output: one line per step, with the time it took."""

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

TAIL_LINES = 25


class Problem(Exception):
    """An error that the user can fix. Its text is the whole message; there is no stack trace."""


def line(text=""):
    print(text, flush=True)


def warn(text):
    print(f"! {text}", file=sys.stderr, flush=True)


def took(seconds):
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


@contextmanager
def step(text, quiet_after=10):
    """Announces a step, prints a reminder while it runs, and prints the time it took."""
    started = time.monotonic()
    line(f"• {text} …")
    done = threading.Event()

    def remind():
        while not done.wait(quiet_after):
            line(f"  still running: {text[0].lower()}{text[1:]} ({took(time.monotonic() - started)})")

    reminder = threading.Thread(target=remind, daemon=True)
    if quiet_after:
        reminder.start()
    try:
        yield
    finally:
        done.set()
    line(f"  done in {took(time.monotonic() - started)}")


def tail(path, lines=TAIL_LINES):
    try:
        with open(path, errors="replace") as file:
            return "".join(file.readlines()[-lines:]).rstrip()
    except FileNotFoundError:
        return ""


def run_logged(command, log, what, **options):
    """Runs a command with its output in a log file; raises a Problem with the end of the log if it fails."""
    os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, "w") as output:
        try:
            code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options).returncode
        except OSError as error:
            raise Problem(f"Cannot run {command[0]}: {error.strerror}.") from error
    if code:
        raise Problem(f"{what} failed (exit status {code}). The end of {log}:\n\n{tail(log)}")


def run_shown(command, what, **options):
    """Runs a command whose output goes to the terminal."""
    try:
        code = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, **options).returncode
    except OSError as error:
        raise Problem(f"Cannot run {command[0]}: {error.strerror}.") from error
    if code:
        raise Problem(f"{what} failed (exit status {code}); see its output above.")


def report_problems(main, names_files=False):
    """Runs the main function of a script: a Problem or Ctrl-C prints a message instead of a stack trace, and so does a file
    that cannot be used if `names_files`."""
    try:
        sys.exit(main())
    except Problem as problem:
        print(f"\n✗ {problem}", file=sys.stderr, flush=True)
        sys.exit(1)
    except OSError as error:
        if not names_files or not error.filename:
            raise
        print(f"\n✗ {error.filename}: {error.strerror}.", file=sys.stderr, flush=True)
        sys.exit(1)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr, flush=True)
        sys.exit(130)
