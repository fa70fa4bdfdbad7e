"""Runs the whole stack on a database of :data:`JOBS` jobs, and compares what people and background loops wait for with bars.

Postgres uses fsync, S3 is in memory, and everything shares this machine, as in `scripts/test --only bench`.
"""

import http.client
import json
import os
import time
from pathlib import Path

from common.console import line, step, warn
from devstack.sandbox import Sandbox
from devstack.trial import Trial, commented, expect, form, png, until, upload

from ..bench import PICTURE, cpu_seconds, s3_in_memory
from .statements import Times, timed

JOBS = 2_000_000
USERS = 200_000
PICTURES = 20_000
# Jobs of the heavy user that wait while no worker runs.
WAITING = 830
PEOPLE = 50
LOAD_SECONDS = 15
LOADS = 3
REPEATS = 100
# Covers an audit, the hourly chores, and several rounds of every loop.
IDLE_SECONDS = 100

# Bars.
MAX_REQUEST_MS = 50
MAX_BACKGROUND_MS = 200
# The only request that is allowed to take longer: it cancels all waiting jobs and ends the account, in many statements.
MAX_DELETION_MS = 1000
MIN_SPEED = 0.9

DELETION = "heavy: deleting the account"
FILL = Path(__file__).with_name("fill.sql")
CHORES = "update chores set begun_at = begun_at - interval '1 day'"


def run():
    """Returns how many bars were met and how many were missed."""
    bars = Bars()
    jobs = int(os.environ.get("RETOUCH_SCALE_JOBS") or JOBS)
    with Sandbox("scale") as sandbox, s3_in_memory(sandbox.settings):
        trial = Trial(sandbox, {"RETOUCH_JOBS_IN_FLIGHT": "16"})
        heavy, *people = trial.people(PEOPLE + 1, PICTURE)
        empty = speed(trial, people)
        with step(f"Filling the database with {jobs:,} jobs"):
            fill(trial, heavy, jobs)
        line(f"  the database has {trial.sql('select pg_size_pretty(pg_database_size(current_database()))')}")
        full = speed(trial, people)
        line(f"billed jobs per second: {empty:.0f} empty, {full:.0f} full")
        bars.at_least("billed jobs per second, relative to the empty database", full / empty, MIN_SPEED)
        background = in_background(trial)
        statements = {}
        with timed(trial) as while_asked:
            trial.load(people, seconds=LOAD_SECONDS)
            requests = ask(trial, heavy, people)
        for found in (background, while_asked):
            for statement, times in found.items():
                statements.setdefault(statement, Times()).all += times.all
        with timed(trial) as while_deleted:
            requests |= delete_heavy(trial, heavy)
        for statement, times in while_deleted.items():
            # A request deletes the first batch, so the janitor's batches have its bar.
            statements.setdefault(statement, Times()).all += times.all
        report(bars, statements, background, requests)
        status, printed = trial.program("retouch-api", "admin", "books")
        bars.hold("the audit is clean", status == 0, printed)
    return bars.met, len(bars.missed)


class Bars:
    def __init__(self):
        self.met, self.missed = 0, []

    def hold(self, claim, holds, found):
        if holds:
            self.met += 1
        else:
            self.missed.append(claim)
            warn(f"MISSED: {claim}. Found: {found}")

    def at_least(self, claim, found, bar):
        self.hold(f"{claim} ≥ {bar}", found >= bar, f"{found:.2f}")

    def at_most(self, claim, found, bar):
        self.hold(f"{claim} ≤ {bar} ms", found <= bar, f"{found:.1f} ms")


def speed(trial, people):
    """Returns the billed jobs per second: the best of several loads, because the host's speed varies."""
    trial.load(people, seconds=3)
    best = 0
    for _ in range(LOADS):
        before = cpu_seconds(trial, "postgres")
        report = trial.load(people, seconds=LOAD_SECONDS)
        expect(set(report["answers"]) == {"200"}, "Everybody gets a result", report["answers"])
        spent = (cpu_seconds(trial, "postgres") - before) * 1000 / report["done"]
        line(
            f"  {report['done_per_second']:.0f} billed jobs per second, request p99 {report['p99_ms']:.0f} ms, Postgres {spent:.2f} ms of CPU per job"
        )
        best = max(best, report["done_per_second"])
    return best


def fill(trial, heavy, jobs):
    owner = trial.sql(f"select owner_id from images where id = '{heavy.image}'")
    values = {"jobs": jobs, "users": min(USERS, jobs // 10), "pictures": min(PICTURES, jobs // 15), "heavy": owner}
    trial.sql("\n".join([*(f"\\set {name} {value}" for name, value in values.items()), FILL.read_text()]))
    trial.sql("vacuum analyze")


def in_background(trial):
    """Returns the times of the statements that run when nobody asks for anything."""
    # As if no chore had run for a day.
    trial.sql(CHORES)
    with step("Watching the background"), timed(trial) as found:
        trial.stop("api")
        trial.stop("worker")
        trial.restart("api")
        trial.restart("worker")
        time.sleep(IDLE_SECONDS)
    return found


def ask(trial, heavy, people):
    """Returns the time until the first byte of each request's answer."""
    ordinary = people[0]
    client = Client(trial)
    for number in range(4):
        upload(trial.api, ordinary.token, commented(png(*PICTURE), str(number)))
    old = trial.sql(
        f"""select image_id from results r where owner_id = (select owner_id from images where id = '{heavy.image}')
            and tool = 'remove-background' order by id limit 1"""
    )
    one = "/api/images?limit=50"
    asked = {
        "the balance": (ordinary, "GET", "/api/user/get", REPEATS),
        "five pictures": (ordinary, "GET", "/api/images", REPEATS),
        "an export of five pictures": (ordinary, "GET", "/api/user/export", REPEATS),
        "no jobs": (ordinary, "GET", "/api/jobs", REPEATS),
        "orders": (ordinary, "GET", "/api/checkouts/", REPEATS),
        "keys": (ordinary, "GET", "/api/keys", REPEATS),
        "heavy: a page of pictures": (heavy, "GET", one, REPEATS),
        "heavy: a page by name": (heavy, "GET", f"{one}&sort=name", REPEATS),
        "heavy: a search": (heavy, "GET", f"{one}&search=1", REPEATS),
        "heavy: a picture": (heavy, "GET", f"/api/images/{old}", REPEATS),
        "heavy: the results of a picture": (heavy, "GET", f"/api/rmbg-images/{old}", REPEATS),
        "heavy: all pictures": (heavy, "GET", "/api/images", 10),
        "heavy: an export": (heavy, "GET", "/api/user/export", 5),
    }
    found = {what: client.times(*request) for what, request in asked.items()}
    picture = png(*PICTURE)
    body, kind = form(picture)
    found["an upload"] = client.times(ordinary, "POST", "/api/images/upload", 20, body, {"Content-Type": kind})
    trial.stop("worker")
    wait(trial, heavy)
    found[f"heavy: {WAITING} waiting jobs"] = client.times(heavy, "GET", "/api/jobs", 10)
    job = client.json(heavy, "/api/jobs")["jobs"][WAITING // 2]["id"]
    found["heavy: a waiting job"] = client.times(heavy, "GET", f"/api/jobs/{job}", REPEATS)
    return found


def wait(trial, heavy):
    """Queues jobs of the heavy user."""
    trial.sql(
        f"""set session_replication_role = replica;
            with chosen as (
                select id, owner_id, row_number() over (order by id desc) as n from images
                where owner_id = (select owner_id from images where id = '{heavy.image}') order by id desc limit {WAITING}
            ), job as (
                insert into jobs (id, owner_id, image_id, tool, tier, cost, turn)
                select uuidv7(), owner_id, id, 'remove-background', 'paid', 5, 100000000 + n from chosen returning owner_id
            )
            update users set reserved = reserved + 5 * {WAITING}, credits = greatest(credits, reserved + 5 * {WAITING})
            where id = (select owner_id from job limit 1);
            insert into ledger (user_id, kind, amount, reference)
            select id, 'admin', credits - (select sum(amount) from ledger where user_id = users.id), 'waiting jobs' from users
            where id = (select owner_id from images where id = '{heavy.image}')
              and credits <> (select sum(amount) from ledger where user_id = users.id);"""
    )


def delete_heavy(trial, heavy):
    """Deletes the heavy account, and returns the time until the answer."""
    owner = trial.sql(f"select owner_id from images where id = '{heavy.image}'")
    begun = time.monotonic()
    # Not after a warm-up: an account is deleted once.
    found = Client(trial).times(heavy, "DELETE", "/api/user", 1, warm=False)
    # Its pictures are not in S3, so a worker would fail the waiting jobs meanwhile.
    trial.restart("worker")
    erased = "select count(*) from images where owner_id = '{0}'"
    until(lambda: trial.number(erased.format(owner)) == 0, "the heavy user's pictures are deleted", 300)
    until(lambda: trial.number(f"select count(*) from jobs where owner_id = '{owner}' and prompt = 'remove the lamp'") == 0, "and prompts", 300)
    line(f"  the heavy account was erased {time.monotonic() - begun:.1f} s after the request")
    return {DELETION: found}


class Client:
    """One browser, which keeps its connection."""

    def __init__(self, trial):
        self.address = trial.api.removeprefix("http://")
        self.connection = http.client.HTTPConnection(self.address, timeout=120)
        self.whole = {}

    def times(self, person, method, path, repeats, body=None, headers=None, warm=True):
        times = Times()
        total = Times()
        if warm:
            # What one of a day's requests reads from the disk depends on the disk.
            self.send(person, method, path, body, headers).read()
        for _ in range(repeats):
            begun = time.monotonic()
            response = self.send(person, method, path, body, headers)
            response.read(1)
            times.add((time.monotonic() - begun) * 1000)
            rest = response.read()
            total.add((time.monotonic() - begun) * 1000)
            expect(response.status < 300, f"{method} {path} succeeds", (response.status, rest[:300]))
        times.whole, times.bytes = total.p50, len(rest) + 1
        return times

    def json(self, person, path):
        return json.loads(self.send(person, "GET", path).read())

    def send(self, person, method, path, body=None, headers=None):
        self.connection.request(method, path, body, {"Authorization": f"Bearer {person.token}", **(headers or {})})
        return self.connection.getresponse()


def report(bars, statements, background, requests):
    line("\nrequests: until the first byte, and p50 of the whole answer")
    for what, times in requests.items():
        line(f"  {what:35} p50 {times.p50:8.1f}  p99 {times.p99:8.1f}  whole {times.whole:8.1f} ms {times.bytes:10,} bytes")
        bar = MAX_DELETION_MS if what == DELETION else MAX_REQUEST_MS
        bars.at_most(f"{what}, first byte p99", times.p99, bar)
    line("\nstatements, the slowest first")
    slowest = sorted(statements.items(), key=lambda item: -item[1].p99)
    for statement, times in slowest[:40]:
        where = "background" if statement in background else "request"
        line(f"  {where:10} p50 {times.p50:8.2f}  p99 {times.p99:8.2f} ms  n {len(times.all):6}  {statement[:150]}")
    for statement, times in slowest:
        bar = MAX_BACKGROUND_MS if statement in background else MAX_REQUEST_MS
        bars.at_most(f"p99 of `{statement[:80]}`", times.p99, bar)
    line(f"{len(statements)} statements")
