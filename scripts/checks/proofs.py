"""`scripts/test --only proofs`: proves the guarantees of the credit system with real processes and injected failures."""

import itertools
import random
import threading
import time

from common.console import Problem, line, took, warn
from devstack.sandbox import Sandbox
from devstack.trial import Trial, commented, expect, png, until

from .backup_proof import a_backup_can_be_restored
from .reliability.campaign import prove
from .reliability.scenarios import SHORT

VISITOR_RUNS = 30
FLOODERS = 4


def run():
    """Runs every proof, even if one fails. Returns how many passed and how many failed."""
    failed = 0
    proofs = (nothing_is_lost_in_outages, visitors_do_not_delay_paid_jobs, a_backup_can_be_restored)
    for proof in proofs:
        name, started = proof.__name__.replace("_", " "), time.monotonic()
        line(f"• Proving: {name} …")
        try:
            proof()
            line(f"  proven ({took(time.monotonic() - started)})")
        except Problem as problem:
            failed += 1
            warn(f"FAILED: {name} ({took(time.monotonic() - started)})\n  {problem}")
    return len(proofs) - failed, failed


def nothing_is_lost_in_outages():
    """The short form of `scripts/reliability`: outages, crashes and refusals that overlap, on one stack."""
    violations = prove(SHORT)
    expect(not violations, SHORT.promise, "; ".join(violations))


def visitors_do_not_delay_paid_jobs():
    """Spoofed headers do not raise the hourly limit of an address; a flood from many addresses does not delay paid jobs."""
    with Sandbox("proofs-flood") as sandbox:
        trial = Trial(sandbox, {"RETOUCH_VISITOR_RUNS_PER_HOUR": str(VISITOR_RUNS)})
        people = trial.people(10)
        picture = png(900, 700)
        idle = p95_wait_ms(trial, people)
        limit_cannot_be_spoofed(trial, picture)
        start = trial.sql("select now()")
        with Flood(trial, picture) as flood:
            waits = lambda: trial.number("select count(*) from jobs where state = 'queued' and tier = 'visitor'") >= 10
            until(waits, "visitors are queued")
            flooded = p95_wait_ms(trial, people)
        expect(set(flood.answers) <= {202, 503}, "The API accepts or rejects the flood", flood.answers)
        expect(flood.answers.get(503, 0) > 0, "The queue of visitors was full", flood.answers)
        ran = f"from jobs where tier = 'visitor' and state = 'done' and finished_at > '{start}'"
        run_ms = trial.number(f"select percentile_cont(0.95) within group (order by {ms('finished_at - started_at')}) {ran}")
        runs = int(trial.number(f"select count(*) {ran}"))
        line(f"  paid p95 wait: idle {idle:.1f} ms, flooded {flooded:.1f} ms; a run of a visitor takes {run_ms:.0f} ms")
        line(f"  flood: {sum(flood.answers.values())} requests, {runs} runs, answers {flood.answers}")
        expect(runs >= 10, "Runs of visitors were done meanwhile", runs)
        expect(flooded <= idle + run_ms, f"Paid jobs wait at most one short run ({run_ms:.1f} ms) longer", (idle, flooded))


def p95_wait_ms(trial, people):
    """Returns the p95 wait of paid jobs at five jobs per second."""
    start = trial.sql("select now()")
    report = trial.load(people, jobs=60, rate=5)
    expect(report["done"] == 60, "Users receive every result", report)
    waits = f"percentile_cont(0.95) within group (order by {ms('started_at - created_at')})"
    return trial.number(f"select {waits} from jobs where tier = 'paid' and created_at > '{start}'")


def ms(interval):
    return f"extract(epoch from {interval}) * 1000"


def limit_cannot_be_spoofed(trial, picture):
    accepted = 0
    for number in range(2 * VISITOR_RUNS):
        spoofed = {"X-Forwarded-For": f"203.0.113.{number}, 198.51.100.{number}"} if number % 2 else {}
        # A full queue would refuse it without counting it.
        until(lambda: trial.number("select count(*) from jobs where state = 'queued' and tier = 'visitor'") == 0, "no visitor waits")
        status, headers = trial.visit(commented(picture, f"one {number}"), spoofed)
        accepted += status == 202
        expect(status != 429 or int(headers.get("Retry-After", 0)) > 0, "A rejection has a Retry-After header", headers)
        expect(status in (202, 429), "The API accepts or rejects a visitor", status)
    expect(accepted == VISITOR_RUNS, f"An address gets {VISITOR_RUNS} runs per hour, whatever its headers say", accepted)


class Flood:
    """Visitors from many addresses, as fast as the API responds."""

    def __init__(self, trial, picture):
        self.trial, self.picture = trial, picture
        self.answers = {}
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.numbers = itertools.count()
        self.threads = [threading.Thread(target=self.keep_visiting) for _ in range(FLOODERS)]

    def keep_visiting(self):
        while not self.stopped.is_set():
            picture = commented(self.picture, f"flood {next(self.numbers)}")
            # All of 127.0.0.0/8 is this machine, so every visitor can have a different address.
            source = f"127.{random.randint(1, 250)}.{random.randint(1, 250)}.{random.randint(1, 250)}"
            try:
                status, _ = self.trial.visit(picture, source=source)
            except OSError as error:
                status = str(error)
            with self.lock:
                self.answers[status] = self.answers.get(status, 0) + 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()
