"""Questions to the simulator, and answers as lines of text."""

from common.console import Problem

from .simulate import TIERS, Arrival, Simulation, percentile, poisson

# So many jobs, at least, make a slowest twentieth that means something; more than the second number only take time.
LEAST_JOBS, ENOUGH_JOBS = 2000, 20_000
MOST_WORKERS = 4096
DAY = 86_400


def capacity(machine, tool, slots):
    """Jobs a second of one worker when there are always more."""
    jobs = 60 * slots
    name, _, tier = tool.partition(":")
    arrivals = [Arrival(0.0, name, tier or "paid", number) for number in range(jobs)]
    return Simulation(machine, slots=slots).run(arrivals).throughput


def what_one_carries(machine, slots):
    yield f"One worker on {machine.name}, {slots} jobs in flight, always busy:"
    for tool, work in machine.work.items():
        rate = capacity(machine, tool, slots)
        alone = f"alone one takes {work.alone:.2f} s, {work.model:.2f} s of it the model"
        yield f"  {tool:24} {rate:8.2f} jobs a second, {rate * DAY:11,.0f} a day; {alone}"


def check(machine, load):
    for tool, tier in load:
        if machine.kind(tool, tier) not in machine.work:
            raise Problem(f"Nothing was measured of {tool} on {machine.name}; there is {', '.join(machine.work)}.")
        if tier not in TIERS:
            raise Problem(f"'{tier}' is no tier; there is {', '.join(TIERS)}.")


def one_run(machine, load, workers, slots, seconds):
    check(machine, load)
    report = Simulation(machine, workers=workers, slots=slots, seed=1).run(poisson(load, seconds, seed=1), until=seconds)
    done = len(report.done)
    yield f"{workers} workers on {machine.name} for {seconds:.0f} s: {len(report.jobs)} jobs came, {done} done, {done / seconds:.2f} a second"
    for tier in TIERS:
        if waits := report.waits(tier):
            yield f"  {tier:8} wait p50 {percentile(waits, 0.5):8.2f} s, p95 {percentile(waits, 0.95):8.2f} s"
    models = ", ".join(f"{name} {busy:.0%}" for name, busy in sorted(report.busy_models.items()))
    yield f"  processors busy {report.busy_cores / machine.cores:.0%}, models {models}"
    if len(report.jobs) - done > max(10, slots * workers * 2):
        yield f"  {len(report.jobs) - done} were left at the end: this is more than they carry"


def needed(machine, per_day, slots, peak, most_wait):
    """The fewest workers with which the busiest hour's paid jobs wait no longer than they may."""
    check(machine, per_day)
    load = {key: count / DAY * peak for key, count in per_day.items()}
    rate = sum(load.values())
    seconds = max(LEAST_JOBS / rate, min(3600.0, ENOUGH_JOBS / rate))
    # What is surely too few: the work itself, without any wait.
    least = max(1, int(sum(rate / capacity(machine, machine.kind(*key), slots) for key, rate in load.items())))
    yield f"{rate:.2f} jobs a second in the busiest hour, {peak:g} times the mean of {sum(per_day.values()):,.0f} a day"
    for workers in fewest_first(least):
        report = Simulation(machine, workers=workers, slots=slots, seed=1).run(poisson(load, seconds, seed=1), until=seconds)
        waits = {tier: percentile(report.waits(tier), 0.95) for tier in TIERS if report.waits(tier)}
        left = len(report.jobs) - len(report.done)
        keeps_up = left <= max(10, 2 * slots * workers)
        told = ", ".join(f"{tier} p95 {wait:.1f} s" for tier, wait in waits.items())
        yield f"  {workers:4} workers: {told}{'' if keeps_up else f'; {left} jobs are left, the queue grows'}"
        if keeps_up and waits.get("paid", 0.0) <= most_wait:
            yield f"{workers} workers on {machine.name}; one more for the day on which one is away: {workers + 1}."
            return
    raise Problem(f"{MOST_WORKERS} workers are not enough; this is another kind of installation.")


def fewest_first(least):
    workers = least
    while workers <= MOST_WORKERS:
        yield workers
        workers = max(workers + 1, int(workers * 1.05))
