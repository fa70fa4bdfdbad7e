"""`scripts/down`: stops what `scripts/up` started in this checkout."""

import argparse
import time

from common.config import load
from common.console import Problem, line, took

from . import processes
from .supervisor import stop_leftovers


def main():
    argparse.ArgumentParser(prog="scripts/down", description="Stops what scripts/up started in this checkout.").parse_args()
    settings = load()
    started = time.monotonic()
    supervisor = processes.recall(settings.run, "supervisor")
    if supervisor and supervisor.alive:
        line("• Stopping Retouch …")
        # The supervisor stops its services in order, then exits.
        if not processes.stop(supervisor):
            line("! The supervisor did not exit in time and was killed")
        stop_leftovers(settings)
    else:
        if processes.take_lock(settings.run) is None:
            raise Problem("scripts/up is still building in this checkout. Stop it with Ctrl-C where it runs, or wait until it has started.")
        leftovers = stop_leftovers(settings)
        if not leftovers:
            line("Retouch is not running.")
            return 0
        line(f"• Stopped processes of an earlier start: {', '.join(leftovers)}")
    if processes.remembered(settings.run):
        raise Problem(f"Some processes are still running; see {settings.run}.")
    line(f"Retouch is stopped ({took(time.monotonic() - started)}). The data remains in {settings.home}.")
    return 0
