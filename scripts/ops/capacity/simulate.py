"""The simulator: workers that claim, fetch, compute and store, as `worker/src/consumer.rs` and `job.rs` do it.

Processors are shared among the threads that want them, a model and a GPU work on one picture after the other, S3 and
the database only take time. Nothing here knows how long a job takes together with others: that is what comes out.
"""

import heapq
import itertools
import random
from collections import Counter, deque
from dataclasses import dataclass, field

TIERS = ("paid", "free", "visitor")


@dataclass(frozen=True)
class Arrival:
    at: float
    tool: str
    tier: str = "paid"
    owner: int = 0
    # What this very job needs, where that was measured; else what its kind needs.
    work: object = None


@dataclass
class Job:
    arrival: Arrival
    work: object
    factor: float
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
        """Jobs a second, from the first arrival to the last end."""
        done = self.done
        return len(done) / (max(job.ended for job in done) - min(job.arrival.at for job in done)) if len(done) > 1 else 0.0

    def waits(self, tier=None):
        return sorted(job.wait for job in self.jobs if job.started is not None and tier in (None, job.arrival.tier))

    def runs(self):
        return sorted(job.ended - job.started for job in self.done)


def percentile(ordered, share):
    """As Postgres's percentile_cont: between two values by how near each is."""
    if not ordered:
        return 0.0
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def poisson(rates, seconds, seed, owners=20):
    """Arrivals by chance: `rates` are jobs a second by (tool, tier)."""
    chance = random.Random(seed)
    arrivals = []
    for (tool, tier), rate in rates.items():
        at = chance.expovariate(rate) if rate > 0 else seconds
        while at < seconds:
            arrivals.append(Arrival(at, tool, tier, chance.randrange(owners)))
            at += chance.expovariate(rate)
    return sorted(arrivals, key=lambda arrival: arrival.at)


class Processors:
    """Threads of one machine, each with an equal share of its cores."""

    def __init__(self, simulation, machine):
        self.simulation, self.machine = simulation, machine
        self.wanting = {}
        self.since = 0.0
        self.spent = 0.0
        self.timer = 0

    def run(self, seconds, threads, barrier, then):
        """`seconds` with all of `threads` to itself; longer when they are shared."""
        if seconds <= 0:
            return then()
        self.advance()
        self.wanting[next(self.simulation.numbers)] = [seconds, threads, barrier, then]
        self.plan()

    @property
    def share(self):
        """What a thread gets of a core."""
        wanted = sum(threads for _, threads, _, _ in self.wanting.values())
        return min(1.0, self.machine.cores / wanted) if wanted else 1.0

    def pace(self, threads, barrier):
        """Seconds of work done in a second; threads that wait for each other lose more than their share."""
        share = self.share
        return share / (1 + (barrier - 1) * (1 - share)) if threads > 1 else share

    def advance(self):
        passed = self.simulation.now - self.since
        self.since = self.simulation.now
        share = self.share
        for one in self.wanting.values():
            self.spent += one[1] * share * passed
            one[0] -= self.pace(one[1], one[2]) * passed

    def plan(self):
        self.timer += 1
        if not self.wanting:
            return
        left = min(one[0] / self.pace(one[1], one[2]) for one in self.wanting.values())
        timer = self.timer
        self.simulation.after(max(left, 0.0), lambda: self.due(timer))

    def due(self, timer):
        if timer != self.timer:
            return
        self.advance()
        over = [number for number, one in self.wanting.items() if one[0] <= 1e-9]
        thens = [self.wanting.pop(number)[3] for number in over]
        self.plan()
        for then in thens:
            then()


class Line:
    """So many at once, the others wait in line: the pool for pixels, a model, a GPU."""

    def __init__(self, simulation, places):
        self.simulation, self.places = simulation, places
        self.waiting = deque()
        self.busy = 0.0

    def enter(self, work):
        """`work` is told what to call when its place is free again."""
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
    """One process: slots, a pool for pixels, one line for each model."""

    def __init__(self, simulation, machine, slots):
        self.simulation, self.machine, self.slots = simulation, machine, slots
        self.processors = Processors(simulation, machine)
        self.pixels = Line(simulation, max(1, round(machine.cores)))
        self.models = {}
        self.gpu = Line(simulation, 1) if machine.has_gpu else None
        self.running = Counter()

    def looks(self):
        """Takes as much as there are slots for."""
        while sum(self.running.values()) < self.slots:
            unpaid = self.running["free"] + self.running["visitor"]
            # What nobody pays for leaves a slot to those who pay, if there is more than one.
            job = self.simulation.next_job(paid_only=unpaid >= max(1, self.slots - 1))
            if job is None:
                return
            self.take(job)

    def take(self, job):
        simulation, tier = self.simulation, job.arrival.tier
        self.running[tier] += 1
        simulation.owners[job.arrival.owner] += 1
        kind = self.machine.kind(job.arrival.tool, tier)
        work, factor = job.work, job.factor
        model = self.models.setdefault(kind, Line(simulation, 1))

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
                    self.processors.run(seconds, self.machine.model_threads, self.machine.barrier, over)

            model.enter(on_model)

        def store():
            simulation.after(work.store, recorded)

        def recorded():
            job.ended = simulation.now
            self.running[tier] -= 1
            simulation.owners[job.arrival.owner] -= 1
            simulation.wake()

        # What the rest of the stack does for a job, where it shares the processors.
        self.processors.run(work.overhead, 1, 1.0, lambda: None)
        simulation.after(work.claim, claimed)

    def on_pixels(self, seconds, threads, then):
        def work(leave):
            self.processors.run(seconds, threads, 1.0, lambda: (leave(), then()))

        self.pixels.enter(work)


class Simulation:
    """`workers` machines with `slots` jobs in flight each."""

    def __init__(self, machine, workers=1, slots=3, seed=0):
        self.now, self.numbers, self.events = 0.0, itertools.count(), []
        self.machine, self.chance = machine, random.Random(seed)
        self.jobs, self.owners = [], Counter()
        # Of each tier, who waits with what, each person's oldest first.
        self.queued = {tier: {} for tier in TIERS}
        self.workers = [Worker(self, machine, slots) for _ in range(workers)]

    def after(self, seconds, then):
        heapq.heappush(self.events, (self.now + seconds, next(self.numbers), then))

    def run(self, arrivals, until=None):
        """Everything that arrives, to its end; or what there is at `until`."""
        for arrival in arrivals:
            heapq.heappush(self.events, (arrival.at, next(self.numbers), lambda arrival=arrival: self.arrives(arrival)))
        while self.events and (until is None or self.events[0][0] <= until):
            self.now, _, then = heapq.heappop(self.events)
            then()
        for worker in self.workers:
            worker.processors.advance()
        models = {f"{number}:{kind}": line.busy / self.now for number, worker in enumerate(self.workers) for kind, line in worker.models.items()}
        spent = sum(worker.processors.spent for worker in self.workers)
        return Report(self.jobs, self.now, spent / (self.now * len(self.workers)) if self.now else 0.0, models)

    def arrives(self, arrival):
        work = arrival.work or self.machine.work[self.machine.kind(arrival.tool, arrival.tier)]
        job = Job(arrival, work, self.chance.choice(work.spread))
        self.jobs.append(job)
        self.queued[arrival.tier].setdefault(arrival.owner, deque()).append(job)
        self.wake()

    def wake(self):
        # Whichever hears the doorbell first; none is nearer than another.
        for worker in self.chance.sample(self.workers, len(self.workers)):
            worker.looks()

    def next_job(self, paid_only):
        """Paid before free, whoever has least running first, then by age: `jobs::claim`."""
        for tier in TIERS[:1] if paid_only else TIERS:
            if lines := self.queued[tier]:
                owner = min(lines, key=lambda owner: (self.owners[owner], lines[owner][0].arrival.at))
                job = lines[owner].popleft()
                if not lines[owner]:
                    del lines[owner]
                return job
        return None
