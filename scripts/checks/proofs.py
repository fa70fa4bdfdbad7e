"""`scripts/test --only proofs`: what the credit system promises, kept by the real processes while things go wrong."""

import http.client
import itertools
import random
import signal
import threading
import time

from common.console import Problem, line, took, warn
from devstack.sandbox import Sandbox
from devstack.trial import Trial, commented, expect, form, png, report_of, until

from .backup_proof import a_backup_can_be_restored

JOBS = 300
# When Postgres is killed, and when it is restarted as an operator does it.
BLOWS = ((75, signal.SIGQUIT), (150, signal.SIGINT), (225, signal.SIGQUIT))
# What the API may answer while what it needs is away: the result, "still under way", "wait", or nothing at all.
HONEST = {"200", "202", "409", "429", "503", "none"}
VISITOR_RUNS = 30
FLOODERS = 4


def run():
    """Every proof, even when one fails. Returns how many passed and how many failed."""
    failed = 0
    proofs = (nothing_is_lost_and_nothing_paid_twice, visitors_hold_up_nobody_who_pays, a_backup_can_be_restored)
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


def nothing_is_lost_and_nothing_paid_twice():
    """Postgres is killed twice and restarted once, and S3 refuses every fifth request, while people run many jobs."""
    with Sandbox("proofs-chaos") as sandbox:
        trial = Trial(sandbox, {"RETOUCH_JOBS_IN_FLIGHT": "8"}, workers=2)
        people = trial.people(6)
        trial.stop("s3")
        trial.restart("s3", "--fail-share", "0.2", "--fail-seed", "1")
        # Four jobs at a time each.
        load = trial.begin_load(people * 4, jobs=JOBS, seconds=300, insist=300)
        for enough, blow in BLOWS:
            done = lambda: trial.number("select count(*) from jobs where state = 'done'") >= enough  # noqa: B023, E731
            until(done, f"{enough} of {JOBS} jobs are done", 180)
            trial.stop("postgres", blow)
            until(lambda: not trial.is_ready(), "the API notices that Postgres is gone")
            trial.restart("postgres")
        report = report_of(load)
        line(f"  {report['done']} done in {took(report['seconds'])}; answers: {report['answers']}")
        was_hard(trial, report)
        expect(report["done"] == JOBS, f"Everybody gets all of {JOBS} results", report)
        strange = set(report["answers"]) - HONEST
        expect(not strange, "What is away for a moment is answered with 503, never with 500", report["answers"])
        adds_up(trial)


def was_hard(trial, report):
    """Whoever meets no trouble proves nothing."""
    deaths = trial.log("postgres").count("received immediate shutdown request")
    expect(deaths == 2, "Postgres was killed twice", deaths)
    refused = trial.log("s3").count("Refused request")
    expect(refused >= JOBS // 3, "S3 refused many requests", refused)
    troubled = report["answers"].get("503", 0) + report["answers"].get("none", 0)
    expect(troubled > 0, "Somebody noticed that Postgres was away", report["answers"])


def adds_up(trial):
    found = trial.row(
        """(select count(*) from jobs) as jobs,
           (select count(*) from jobs where state = 'done') as done,
           (select count(distinct idempotency_key) from jobs) as wishes,
           (select count(*) from results) as results,
           (select count(distinct job_id) from ledger where kind = 'job') as paid_jobs,
           (select count(*) from ledger where kind = 'job') as debits,
           (select -sum(amount) from ledger where kind = 'job') as paid,
           (select sum(reserved) from users) as held,
           (select count(*) from users u
            where credits <> (select sum(amount) from ledger l where l.user_id = u.id)) as wrong_balances"""
    )
    once_each = dict.fromkeys(("jobs", "done", "wishes", "results", "paid_jobs", "debits"), JOBS)
    right = once_each | {"paid": 5 * JOBS, "held": 0, "wrong_balances": 0}
    expect(found == right, f"Each wish is one job, one result and one debit: {right}", found)
    # The program of the operator must see it too, with every object in the bucket.
    status, said = trial.program("retouch-api", "admin", "audit")
    expect(status == 0, "The audit finds nothing", said)


def visitors_hold_up_nobody_who_pays():
    """One address gets its hourly number whatever it claims to be; a thousand addresses take no turn of who pays."""
    with Sandbox("proofs-flood") as sandbox:
        trial = Trial(sandbox, {"RETOUCH_VISITOR_RUNS_PER_HOUR": str(VISITOR_RUNS)})
        people = trial.people(10)
        picture = png(900, 700)
        idle = paid_wait_ms(trial, people)
        one_address_gets_its_number(trial, picture)
        begun = trial.sql("select now()")
        with Flood(trial, picture) as flood:
            waits = lambda: trial.number("select count(*) from jobs where state = 'queued' and tier = 'visitor'") >= 10  # noqa: E731
            until(waits, "visitors queue up")
            flooded = paid_wait_ms(trial, people)
        expect(set(flood.answers) <= {202, 503}, "A flood is let in or refused", flood.answers)
        expect(flood.answers.get(503, 0) > 0, "Visitors' queue was full", flood.answers)
        ran = f"from jobs where tier = 'visitor' and state = 'done' and finished_at > '{begun}'"
        one_run = trial.number(f"select percentile_cont(0.95) within group (order by {ms('finished_at - started_at')}) {ran}")
        runs = int(trial.number(f"select count(*) {ran}"))
        line(f"  paid p95 wait: idle {idle:.1f} ms, flooded {flooded:.1f} ms; a visitor's run takes {one_run:.0f} ms")
        line(f"  the flood: {sum(flood.answers.values())} requests, {runs} runs, answers {flood.answers}")
        expect(runs >= 10, "Visitors' runs took place meanwhile", runs)
        expect(flooded <= idle + one_run, f"Who pays waits at most one short run ({one_run:.1f} ms) longer", (idle, flooded))


def paid_wait_ms(trial, people):
    """How long 19 of 20 paid jobs wait at most, five of them a second."""
    begun = trial.sql("select now()")
    report = trial.load(people, jobs=60, rate=5)
    expect(report["done"] == 60, "Who pays gets every result", report)
    waits = f"percentile_cont(0.95) within group (order by {ms('started_at - created_at')})"
    return trial.number(f"select {waits} from jobs where tier = 'paid' and created_at > '{begun}'")


def ms(interval):
    return f"extract(epoch from {interval}) * 1000"


def one_address_gets_its_number(trial, picture):
    """… and no more by claiming to be others."""
    let_in = 0
    for number in range(2 * VISITOR_RUNS):
        spoofed = {"X-Forwarded-For": f"203.0.113.{number}, 198.51.100.{number}"} if number % 2 else {}
        status, headers = visit(trial, commented(picture, f"one {number}"), spoofed)
        let_in += status != 429
        expect(status != 429 or int(headers.get("Retry-After", 0)) > 0, "Who is refused is told when to come back", headers)
        expect(status in (202, 429, 503), "A visitor is let in or refused", status)
    expect(let_in == VISITOR_RUNS, f"One address gets {VISITOR_RUNS} runs an hour, whatever it claims to be", let_in)


def visit(trial, picture, headers, source="127.0.0.1"):
    """A visitor's run that waits for nothing."""
    body, kind = form(picture)
    host, _, port = trial.api.removeprefix("http://").rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60, source_address=(source, 0))
    try:
        headers = {"Content-Type": kind, "Prefer": "respond-async", **headers}
        connection.request("POST", "/api/free/remove-bg-fr", body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        connection.close()


class Flood:
    """Visitors from everywhere, as many as the API answers."""

    def __init__(self, trial, picture):
        self.trial, self.picture = trial, picture
        self.answers = {}
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.numbers = itertools.count()
        self.threads = [threading.Thread(target=self.visit_on) for _ in range(FLOODERS)]

    def visit_on(self):
        while not self.over.is_set():
            picture = commented(self.picture, f"flood {next(self.numbers)}")
            # All of 127.0.0.0/8 is this machine: every visitor has an address of their own.
            source = f"127.{random.randint(1, 250)}.{random.randint(1, 250)}.{random.randint(1, 250)}"
            try:
                status, _ = visit(self.trial, picture, {}, source)
            except OSError as error:
                status = str(error)
            with self.lock:
                self.answers[status] = self.answers.get(status, 0) + 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
