"""`scripts/down`: stops what `scripts/up` started here, and nothing else."""

import argparse
import time

from common.config import load
from common.say import Problem, line, took

from . import processes
from .supervisor import stop_leftovers


def main():
    argparse.ArgumentParser(prog="scripts/down", description="Stops what scripts/up started in this checkout.").parse_args()
    settings = load()
    started = time.monotonic()
    supervisor = processes.recall(settings.run, "supervisor")
    if supervisor and supervisor.alive:
        line("• Stopping Retouch …")
        # The supervisor stops its services in order and then ends.
        if not processes.stop(supervisor):
            line("! The supervisor did not end by itself and was killed")
        left = stop_leftovers(settings)
    else:
        left = stop_leftovers(settings)
        if not left:
            line("Retouch is not running.")
            return 0
        line(f"• Stopped what an earlier start left behind: {', '.join(left)}")
    if processes.remembered(settings.run):
        raise Problem(f"Something still runs; {settings.run} names it.")
    line(f"Retouch is stopped ({took(time.monotonic() - started)}). Its data stays in {settings.home}.")
    return 0
