"""Simulates workers that claim, fetch, compute and store, like `worker/src/consumer.rs` and `job.rs`.

Threads share the cores, a model and a GPU process one picture at a time, S3 and the database only take time. The inputs are
times of single jobs; the simulation shows how concurrent jobs slow each other down.
"""

import heapq
import itertools
import random
from collections import Counter, deque
from dataclasses import dataclass, field

from .fair_queue import TIERS, FairQueue


@dataclass(frozen=True)
class Arrival:
    at: float
    tool: str
    tier: str = "paid"
    owner: int = 0
    # The measured work of this job; None for the work of its kind.
    work: object = None


@dataclass
class Job:
    arrival: Arrival
    work: object
    factor: float
    turn: int = None
    started: float = None
    ended: float = None

    @property
    def wait(self):
        return self.started - self.arrival.at


@dataclass
class Report:
    jobs: list
    seconds: float
    busy_cores: float
    busy_models: dict = field(default_factory=dict)

    @property
    def done(self):
        return [job for job in self.jobs if job.ended is not None]

    @property
    def throughput(self):
        """Jobs per second, from the first arrival to the last end."""
        done = self.done
        return len(done) / (max(job.ended for job in done) - min(job.arrival.at for job in done)) if len(done) > 1 else 0.0

    def waits(self, tier=None):
        return sorted(job.wait for job in self.jobs if job.started is not None and tier in (None, job.arrival.tier))

    def runs(self):
        return sorted(job.ended - job.started for job in self.done)


def percentile(ordered, share):
    """Interpolates linearly, like percentile_cont in Postgres."""
    if not ordered:
        return 0.0
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def poisson(rates, seconds, seed, owners=20):
    """Returns random arrivals. `rates` are jobs per second by (tool, tier)."""
    rng = random.Random(seed)
    arrivals = []
    for (tool, tier), rate in rates.items():
        at = rng.expovariate(rate) if rate > 0 else seconds
        while at < seconds:
            arrivals.append(Arrival(at, tool, tier, rng.randrange(owners)))
            at += rng.expovariate(rate)
    return sorted(arrivals, key=lambda arrival: arrival.at)


class Cpu:
    """The cores of a machine, shared equally by its threads."""

    def __init__(self, simulation, machine):
        self.simulation, self.machine = simulation, machine
        self.tasks = {}
        self.since = 0.0
        self.spent = 0.0
        self.timer = 0

    def run(self, seconds, threads, barrier, then):
        """Runs a task that takes `seconds` on an idle machine, then calls `then`."""
        if seconds <= 0:
            return then()
        self.advance()
        self.tasks[next(self.simulation.numbers)] = [seconds, threads, barrier, then]
        self.schedule()

    @property
    def share(self):
        """The share of a core that each thread gets."""
        running = sum(threads for _, threads, _, _ in self.tasks.values())
        return min(1.0, self.machine.cores / running) if running else 1.0

    def pace(self, threads, barrier):
        """Seconds of work per second. Threads that wait for each other lose more than their share."""
        share = self.share
        return share / (1 + (barrier - 1) * (1 - share)) if threads > 1 else share

    def advance(self):
        passed = self.simulation.now - self.since
        self.since = self.simulation.now
        share = self.share
        for one in self.tasks.values():
            self.spent += one[1] * share * passed
            one[0] -= self.pace(one[1], one[2]) * passed

    def schedule(self):
        self.timer += 1
        if not self.tasks:
            return
        left = min(one[0] / self.pace(one[1], one[2]) for one in self.tasks.values())
        timer = self.timer
        self.simulation.after(max(left, 0.0), lambda: self.finish_tasks(timer))

    def finish_tasks(self, timer):
        if timer != self.timer:
            return
        self.advance()
        finished = [number for number, one in self.tasks.items() if one[0] <= 1e-9]
        thens = [self.tasks.pop(number)[3] for number in finished]
        self.schedule()
        for then in thens:
            then()


class Resource:
    """Serves a limited number of users at a time, in order: the pixel pool, a model, a GPU."""

    def __init__(self, simulation, places):
        self.simulation, self.places = simulation, places
        self.waiting = deque()
        self.busy = 0.0

    def enter(self, work):
        """Calls `work(leave)` as soon as there is a place; `leave()` frees it."""
        if self.places:
            self.places -= 1
            self.begin(work)
        else:
            self.waiting.append(work)

    def begin(self, work):
        began = self.simulation.now

        def leave():
            self.busy += self.simulation.now - began
            if self.waiting:
                self.begin(self.waiting.popleft())
            else:
                self.places += 1

        work(leave)


class Worker:
    """A worker process: slots, a pixel pool, one session per model."""

    def __init__(self, simulation, machine, slots):
        self.simulation, self.machine, self.slots = simulation, machine, slots
        self.cpu = Cpu(simulation, machine)
        self.pixels = Resource(simulation, max(1, round(machine.cores)))
        self.models = {}
        self.gpu = Resource(simulation, 1) if machine.has_gpu else None
        self.running = Counter()

    def claim(self):
        """Claims jobs until all slots are in use."""
        while sum(self.running.values()) < self.slots:
            unpaid = self.running["free"] + self.running["visitor"]
            # If there are several slots, one is reserved for paid jobs.
            job = self.simulation.queue.claim(TIERS if unpaid < max(1, self.slots - 1) else TIERS[:1])
            if job is None:
                return
            self.run(job)

    def run(self, job):
        simulation, tier = self.simulation, job.arrival.tier
        self.running[tier] += 1
        kind = self.machine.kind(job.arrival.tool, tier)
        work, factor = job.work, job.factor
        model = self.models.setdefault(kind, Resource(simulation, 1))

        def claimed():
            job.started = simulation.now
            simulation.after(work.fetch, decoded)

        def decoded():
            self.on_pixels(work.before * factor, work.pixel_threads, infer)

        def infer():
            def on_model(leave):
                def over():
                    leave()
                    self.on_pixels(work.after * factor, work.pixel_threads, store)

                seconds = work.model * factor
                if self.gpu:
                    self.gpu.enter(lambda free: simulation.after(seconds, lambda: (free(), over())))
                else:
                    self.cpu.run(seconds, self.machine.model_threads, self.machine.barrier, over)

            model.enter(on_model)

        def store():
            simulation.after(work.store, recorded)

        def recorded():
            job.ended = simulation.now
            self.running[tier] -= 1
            simulation.queue.end(job)
            simulation.wake()

        # The other programs do their share of the job on the same cores.
        self.cpu.run(work.overhead, 1, 1.0, lambda: None)
        simulation.after(work.claim, claimed)

    def on_pixels(self, seconds, threads, then):
        def work(leave):
            self.cpu.run(seconds, threads, 1.0, lambda: (leave(), then()))

        self.pixels.enter(work)


class Simulation:
    """`workers` machines with `slots` jobs in flight each."""

    def __init__(self, machine, workers=1, slots=3, seed=0):
        self.now, self.numbers, self.events = 0.0, itertools.count(), []
        self.machine, self.rng = machine, random.Random(seed)
        self.jobs, self.queue = [], FairQueue()
        self.workers = [Worker(self, machine, slots) for _ in range(workers)]

    def after(self, seconds, then):
        heapq.heappush(self.events, (self.now + seconds, next(self.numbers), then))

    def run(self, arrivals, until=None):
        """Runs until all jobs are done, or until the time `until`."""
        for arrival in arrivals:
            heapq.heappush(self.events, (arrival.at, next(self.numbers), lambda arrival=arrival: self.enqueue(arrival)))
        while self.events and (until is None or self.events[0][0] <= until):
            self.now, _, then = heapq.heappop(self.events)
            then()
        for worker in self.workers:
            worker.cpu.advance()
        models = {f"{number}:{kind}": model.busy / self.now for number, worker in enumerate(self.workers) for kind, model in worker.models.items()}
        spent = sum(worker.cpu.spent for worker in self.workers)
        return Report(self.jobs, self.now, spent / (self.now * len(self.workers)) if self.now else 0.0, models)

    def enqueue(self, arrival):
        work = arrival.work or self.machine.work[self.machine.kind(arrival.tool, arrival.tier)]
        job = Job(arrival, work, self.rng.choice(work.spread))
        self.jobs.append(job)
        self.queue.submit(job)
        self.wake()

    def wake(self):
        # The doorbell reaches the workers in random order.
        for worker in self.rng.sample(self.workers, len(self.workers)):
            worker.claim()
