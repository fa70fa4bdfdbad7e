"""`scripts/capacity`: estimates throughput and waits of an installation, and how many workers a load needs."""

import argparse
import math

from common.console import Problem, line

from . import profile
from .plan import simulated_load, worker_capacity, workers_needed


def main(check_simulator):
    """Runs the command line. `check_simulator` runs `scripts/capacity check`; it needs the programs, so it is in `checks`."""
    parser = argparse.ArgumentParser(prog="scripts/capacity", description="Estimates what an installation can handle, and what a load needs.")
    tasks = parser.add_subparsers(dest="task", required=True)
    carries = tasks.add_parser("carries", help="maximum throughput of one worker, by tool")
    simulate = tasks.add_parser("simulate", help="waits and throughput under a load")
    plan = tasks.add_parser("plan", help="number of workers for a number of pictures per day")
    check = tasks.add_parser("check", help="compare the simulator with the real programs on this machine (five minutes)")
    for one in (carries, simulate, plan):
        one.add_argument("--machine", default="cpu-2", help="a table of scripts/ops/capacity/profiles.toml (default: cpu-2)")
        one.add_argument("--slots", type=above_zero(int), default=3, help="jobs in flight per worker, RETOUCH_JOBS_IN_FLIGHT (default: 3)")
        one.add_argument("--model-ms", type=above_zero(float), metavar="MS", help="replaces the measured time of the model, for every tool")
    for one in (simulate, plan):
        one.add_argument("load", nargs="+", metavar="TOOL[:TIER]=NUMBER", help="jobs per second; for a plan, pictures per day")
    simulate.add_argument("--workers", type=above_zero(int), default=1)
    simulate.add_argument("--seconds", type=above_zero(float), default=3600)
    plan.add_argument("--peak", type=above_zero(float), default=4.0, help="load of the busiest hour divided by the mean (default: 4)")
    plan.add_argument("--wait", type=above_zero(float), default=5.0, help="maximum p95 wait of paid jobs, in seconds (default: 5)")
    check.add_argument("--seconds", type=above_zero(float), default=180)
    check.add_argument("--load", type=above_zero(float), default=0.75, help="share of the maximum throughput (default: 0.75)")
    check.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.task == "check":
        return 0 if check_simulator(options.seconds, options.load, options.seed) else 1
    machine = chosen(options)
    if options.task == "carries":
        for text in worker_capacity(machine, options.slots):
            line(text)
    elif options.task == "simulate":
        for text in simulated_load(machine, loads(options.load), options.workers, options.slots, options.seconds):
            line(text)
    else:
        for text in workers_needed(machine, loads(options.load), options.slots, options.peak, options.wait):
            line(text)
    return 0


def chosen(options):
    try:
        machine = profile.load(options.machine)
    except KeyError as error:
        raise Problem(error.args[0]) from error
    return machine if options.model_ms is None else profile.with_model(machine, options.model_ms / 1000)


def above_zero(kind):
    """Returns the parser of a number of this kind above zero."""

    def parse(text):
        try:
            number = kind(text)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            raise argparse.ArgumentTypeError(f"{text} is not a {'whole ' if kind is int else ''}number above zero")
        return number

    return parse


def loads(given):
    """Parses loads such as `upscale:free=0.5` into rates by (tool, tier)."""
    found = {}
    for text in given:
        name, equals, number = text.partition("=")
        tool, _, tier = name.partition(":")
        try:
            found[tool, tier or "paid"] = above_zero(float)(number)
        except argparse.ArgumentTypeError as error:
            raise Problem(f"'{text}' is not TOOL[:TIER]=NUMBER, with a number above zero.") from error
    return found
