"""Runs the simulator, and reports the results as lines of text."""

from common.console import Problem

from .fair_queue import TIERS
from .simulate import Arrival, Simulation, percentile, poisson

# A p95 needs at least MIN_JOBS; more than ENOUGH_JOBS do not make it more accurate.
MIN_JOBS, ENOUGH_JOBS = 2000, 20_000
MAX_WORKERS = 4096
SECONDS_PER_DAY = 86_400


def capacity(machine, tool, slots):
    """Returns the jobs per second of one worker under full load."""
    jobs = 60 * slots
    name, _, tier = tool.partition(":")
    arrivals = [Arrival(0.0, name, tier or "paid", number) for number in range(jobs)]
    return Simulation(machine, slots=slots).run(arrivals).throughput


def worker_capacity(machine, slots):
    yield f"One worker on {machine.name}, {slots} jobs in flight, full load:"
    for tool, work in machine.work.items():
        rate = capacity(machine, tool, slots)
        alone = f"a single job takes {work.alone:.2f} s, including {work.model:.2f} s for the model"
        yield f"  {tool:24} {rate:8.2f} jobs per second, {rate * SECONDS_PER_DAY:11,.0f} per day; {alone}"


def check(machine, load):
    for tool, tier in load:
        if machine.kind(tool, tier) not in machine.work:
            raise Problem(f"{machine.name} has no measurements of {tool}. Available: {', '.join(machine.work)}.")
        if tier not in TIERS:
            raise Problem(f"'{tier}' is not a tier. Tiers: {', '.join(TIERS)}.")


def simulated_load(machine, load, workers, slots, seconds):
    check(machine, load)
    report = Simulation(machine, workers=workers, slots=slots, seed=1).run(poisson(load, seconds, seed=1), until=seconds)
    done = len(report.done)
    yield f"{workers} workers on {machine.name} for {seconds:.0f} s: {len(report.jobs)} jobs, {done} done, {done / seconds:.2f} per second"
    for tier in TIERS:
        if waits := report.waits(tier):
            yield f"  {tier:8} wait p50 {percentile(waits, 0.5):8.2f} s, p95 {percentile(waits, 0.95):8.2f} s"
    models = ", ".join(f"{name} {busy:.0%}" for name, busy in sorted(report.busy_models.items()))
    yield f"  CPU utilization {report.busy_cores / machine.cores:.0%}, models {models}"
    if len(report.jobs) - done > max(10, slots * workers * 2):
        yield f"  {len(report.jobs) - done} unfinished: the load exceeds the capacity"


def workers_needed(machine, per_day, slots, peak, max_wait):
    """Finds the smallest number of workers that keeps the p95 wait of paid jobs in the busiest hour within `max_wait`."""
    check(machine, per_day)
    load = {key: count / SECONDS_PER_DAY * peak for key, count in per_day.items()}
    rate = sum(load.values())
    seconds = max(MIN_JOBS / rate, min(3600.0, ENOUGH_JOBS / rate))
    # A lower bound: the work alone, without waits.
    least = max(1, int(sum(rate / capacity(machine, machine.kind(*key), slots) for key, rate in load.items())))
    yield f"{rate:.2f} jobs per second in the busiest hour, {peak:g} times the mean of {sum(per_day.values()):,.0f} per day"
    for workers in candidates(least):
        report = Simulation(machine, workers=workers, slots=slots, seed=1).run(poisson(load, seconds, seed=1), until=seconds)
        waits = {tier: percentile(report.waits(tier), 0.95) for tier in TIERS if report.waits(tier)}
        unfinished = len(report.jobs) - len(report.done)
        keeps_up = unfinished <= max(10, 2 * slots * workers)
        summary = ", ".join(f"{tier} p95 {wait:.1f} s" for tier, wait in waits.items())
        yield f"  {workers:4} workers: {summary}{'' if keeps_up else f'; {unfinished} jobs unfinished, the queue grows'}"
        if keeps_up and waits.get("paid", 0.0) <= max_wait:
            yield f"{workers} workers on {machine.name}; {workers + 1} with a spare for failures and upgrades."
            return
    raise Problem(f"{MAX_WORKERS} workers are not enough. This load needs a different design.")


def candidates(least):
    workers = least
    while workers <= MAX_WORKERS:
        yield workers
        workers = max(workers + 1, int(workers * 1.05))
