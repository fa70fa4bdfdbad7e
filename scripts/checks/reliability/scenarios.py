"""The faults of the campaign. Each scenario is one fault under load, on a stack of its own."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from common.config import REPO
from common.console import Problem
from devstack import prerequisites, services
from devstack.trial import commented, form, png, until

from .bystanders import ask

# After so many jobs the fault begins.
WARM_JOBS = 30
# A poisonous picture has this width, in pixels: the worker that opens it dies.
POISON_WIDTH = 77
# Each of its three attempts costs a lease, and it waits for paid work and for the other suspects.
POISON_SECONDS = 300
CLOCK_OFFSET_SECONDS = 300


class Skipped(Exception):
    """The scenario cannot run here; the text says why."""


@dataclass(frozen=True)
class Scenario:
    name: str
    promise: str
    # Injects the fault and ends it, and says when each dependency returned.
    fault: Callable
    # Jobs submitted per second, whatever happens.
    rate: float = 10
    jobs: int = 300
    settings: dict = field(default_factory=dict)
    # Settings of single workers.
    worker_settings: Callable = tuple
    # Prepares the machine: a context manager that gets the sandbox and yields more settings.
    around: Callable = lambda _: nullcontext({})
    # Paid work flows again so many seconds after the return.
    flow_seconds: float = 5
    # No paid job finishes for longer than this; None where a dependency is away on purpose.
    pause_seconds: float | None = None
    # 99 of 100 jobs have their results so soon after the first request; None where a dependency is away on purpose.
    p99_seconds: float | None = None
    # Services that are started again when they end.
    kept: tuple = ("api", "worker", "worker-2")


# Postgres.


def postgres_stopped(seconds):
    def fault(stack):
        stack.stop("postgres", signal.SIGINT)
        time.sleep(seconds)
        stack.restart("postgres")
        stack.returned("Postgres")

    return fault


def postgres_paused(stack):
    stack.pause_postgres(60)
    stack.returned("Postgres")


def postgres_half_open(stack):
    stack.network("postgres", "half-open")


@contextmanager
def small_disk(sandbox):
    """Puts the data of Postgres on a disk of its own."""
    if os.geteuid():
        raise Skipped("only root can mount a small disk")
    folder = Path(tempfile.mkdtemp(prefix="retouch-disk-", dir="/var/lib"))
    folder.chmod(0o755)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=320m,mode=0755", "none", folder], capture_output=True, text=True)
    if mounted.returncode:
        folder.rmdir()
        raise Skipped(f"this machine lets nobody mount a disk: {mounted.stderr.strip()}")
    try:
        sandbox.settings.data.mkdir(parents=True, exist_ok=True)
        (sandbox.settings.data / "postgres").symlink_to(folder / "postgres")
        yield {}
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


def disk_full(stack):
    ballast = stack.postgres.folder.parent / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass
    time.sleep(20)
    ballast.unlink()
    until(stack.postgres.is_ready, "Postgres runs again")
    stack.returned("the disk")


# S3.


def s3_away(mode, seconds):
    def fault(stack):
        stack.away("s3", mode, seconds)
        stack.returned("S3")

    return fault


def s3_hung(stack):
    stack.network("s3", "hang")
    asked = time.monotonic()
    status = upload(stack)
    seconds = time.monotonic() - asked
    stack.notes.append(f"an upload to a hung S3 answered {status} after {seconds:.1f} s")
    stack.expect(status == 503 and seconds <= 30, "An upload to a hung S3 gets 503 within 30 s", (status, seconds))
    asked = time.monotonic()
    status, _ = ask(stack.host, "GET", "/readyz", {}, seconds=90)
    seconds = time.monotonic() - asked
    stack.notes.append(f"/readyz answered {status} after {seconds:.1f} s")
    stack.expect(status == 503 and seconds <= 5, "/readyz answers 503 within 5 s", (status, seconds))
    time.sleep(max(0, 20 - seconds))
    stack.network("s3", "pass")
    stack.returned("S3")


def upload(stack):
    """Returns the status of an upload; None if it has none after 90 s."""
    body, kind = form(png(70, 50))
    headers = {"Authorization": f"Bearer {stack.customers[0].token}", "Content-Type": kind}
    return ask(stack.host, "POST", "/api/images/upload", headers, body, seconds=90)[0]


def refuse_a_share(stack):
    stack.stop("s3")
    stack.restart("s3", "--fail-share", "0.2", "--fail-seed", "1")


def s3_refuses_a_share(stack):
    refuse_a_share(stack)
    time.sleep(30)
    stack.stop("s3")
    stack.restart("s3")
    refused = stack.log("s3").count("Refused request")
    stack.notes.append(f"S3 refused {refused} requests")
    stack.expect(refused > 50, "S3 refused requests", refused)
    stack.returned("S3")


# Redis.


def redis_away(mode):
    def fault(stack):
        stack.away("redis", mode, 20)
        stack.returned("Redis")

    return fault


def redis_flushed(stack):
    for _ in range(20):
        answer = services.answer_of_redis(stack.settings, "FLUSHALL", seconds=5)
        stack.expect(answer == b"+OK", "Valkey flushes", answer)
        time.sleep(1)
    stack.returned("the last flush")


# Processes.


def kills(stack):
    """Kills a random process every few seconds; servers start again at once, programs after a second."""
    chosen = random.Random(1)
    for _ in range(13):
        name = chosen.choice(("api", "worker", "worker-2", "postgres", "s3", "valkey"))
        stack.kill(name)
        if name in ("postgres", "s3", "valkey"):
            stack.revive(name)
        time.sleep(4)


def wrong_clocks():
    library = faketime()
    fake = {"LD_PRELOAD": library, "DONT_FAKE_MONOTONIC": "1"}
    return [fake | {"FAKETIME": f"{sign}{CLOCK_OFFSET_SECONDS}s"} for sign in "+-"]


def faketime():
    """Returns the path of libfaketime; installs it if this is root."""
    for _ in range(2):
        if found := sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")):
            return str(found[0])
        try:
            prerequisites.install_packages(["faketime"], "A worker gets a wrong clock")
        except Problem as problem:
            raise Skipped(str(problem)) from problem
    raise Skipped("the package faketime has no libfaketimeMT.so.1")


def nothing_more(_):
    """The fault applies from the start."""


def one_suspect(stack):
    """A visitor's picture kills every worker that opens it."""
    status, _ = stack.visit(commented(png(POISON_WIDTH, 50), "poison"))
    stack.expect(status == 202, "A visitor's run is accepted", status)
    ended = "select count(*) from jobs where tier = 'visitor' and state = 'failed'"
    until_or_note(stack, lambda: stack.number(ended) == 1, "the poisonous job fails", POISON_SECONDS)
    crashes = sum(stack.log(name).count("Aborting on purpose") for name in ("worker", "worker-2"))
    stack.notes.append(f"{crashes} crashes")


# Magic Fix.

FIXES = 200
# Jobs end after fifteen minutes without a worker that serves them.
FIX_SECONDS = 17 * 60


@contextmanager
def own_models(_):
    """A models folder that the scenario may change."""
    with tempfile.TemporaryDirectory(prefix="retouch-models-") as folder:
        shutil.copytree(REPO / "models" / "tiny", folder, dirs_exist_ok=True)
        yield {"RETOUCH_MODELS_DIR": folder}


def unserved_mode(stack):
    """Two hundred edits wait when the workers restart without the only model that serves them."""
    bindings = Path(stack.settings.get("RETOUCH_MODELS_DIR")) / "tools.toml"
    text, _, last = bindings.read_text().rpartition("[[bind]]")
    if 'mode = "edit"' not in last:
        raise Problem("The last binding of models/tiny/tools.toml is not the one for edits.")
    with stack.keeper.without("worker", "worker-2"):
        for name in ("worker", "worker-2"):
            stack.stop(name)
        accepted = submit_fixes(stack)
        bindings.write_text(text)
        for name in ("worker", "worker-2"):
            stack.restart(name)
    stack.returned("the workers")
    stack.notes.append(f"the API accepted {accepted} of {FIXES} edits while no worker ran")
    waiting = "select count(*) from jobs where tool = 'magic-fix' and state in ('queued', 'running')"
    time.sleep(5)
    left = stack.number(waiting)
    transactions, started = commits(stack), time.monotonic()
    time.sleep(10)
    rate = (commits(stack) - transactions) / (time.monotonic() - started)
    stack.notes.append(f"{left:.0f} edits without a worker waited, at {rate:.0f} transactions per second")
    stack.expect(rate < 200, "Edits without a worker cost less than 200 transactions per second", rate)
    until_or_note(stack, lambda: stack.number(waiting) == 0, "edits without a worker end", FIX_SECONDS)


def until_or_note(stack, holds, claim, seconds):
    started = time.monotonic()
    while not holds():
        if time.monotonic() - started > seconds:
            return stack.expect(False, f"Within {seconds} s, {claim}", "they did not")
        time.sleep(1)
    stack.notes.append(f"{claim} after {time.monotonic() - started:.0f} s")


def commits(stack):
    return stack.number("select xact_commit from pg_stat_database where datname = current_database()")


def submit_fixes(stack):
    def submit(number):
        person = stack.customers[number % len(stack.customers)]
        # An equal request would join the first one. The tiny model knows only a few words.
        body, kind = form(png(64, 48), prompt="make it a red circle" + " red" * (number // len(stack.customers)))
        headers = {"Authorization": f"Bearer {person.token}", "Content-Type": kind, "Prefer": "respond-async"}
        return ask(stack.host, "POST", f"/api/magic-images/fix/{person.image}", headers, body)[0]

    with ThreadPoolExecutor(8) as clients:
        return list(clients.map(submit, range(FIXES))).count(202)


# Programs drop silent connections within ten seconds, and work flows again five seconds later.
HALF_OPEN_SECONDS = 15
STEADY = {"rate": 5, "pause_seconds": 5}

SCENARIOS = (
    Scenario("kills", "A kill -9 of any process every few seconds loses nothing.", kills, **STEADY),
    Scenario("postgres-stopped-25", "Postgres may be stopped for 25 s.", postgres_stopped(25)),
    Scenario("postgres-stopped-60", "Postgres may be stopped for a minute.", postgres_stopped(60)),
    Scenario("postgres-paused-60", "Postgres may hang for a minute.", postgres_paused),
    Scenario(
        "postgres-half-open",
        "Connections to Postgres may fall silent.",
        postgres_half_open,
        rate=5,
        pause_seconds=HALF_OPEN_SECONDS,
        p99_seconds=2 * HALF_OPEN_SECONDS,
    ),
    Scenario(
        "postgres-disk-full",
        "The disk of Postgres may be full for 20 s.",
        disk_full,
        around=small_disk,
        kept=("api", "worker", "worker-2", "postgres"),
    ),
    Scenario("s3-refused-20", "S3 may refuse connections for 20 s.", s3_away("refuse", 20)),
    Scenario("s3-refused-60", "S3 may refuse connections for a minute.", s3_away("refuse", 60)),
    Scenario("s3-hung", "S3 may hang.", s3_hung),
    Scenario("s3-fails-every-fifth", "S3 may refuse every fifth request.", s3_refuses_a_share, rate=5),
    Scenario("redis-refused", "Redis may refuse connections.", redis_away("refuse"), **STEADY),
    Scenario("redis-hung", "Redis may hang.", redis_away("hang"), **STEADY),
    Scenario("redis-flushed", "Redis may lose everything, again and again.", redis_flushed, **STEADY),
    Scenario("wrong-clocks", "The clock of a worker may be five minutes off.", nothing_more, worker_settings=wrong_clocks, **STEADY),
    Scenario(
        "one-suspect",
        "A picture that kills its workers does not delay paid work.",
        one_suspect,
        settings={"RETOUCH_FAULT_ABORT_AT_WIDTH": str(POISON_WIDTH), "RETOUCH_FAULT_DELAY_MS": "6000"},
        jobs=500,
        **STEADY,
    ),
    Scenario("unserved-mode", "Edits without a worker that serves them end, and cost nothing.", unserved_mode, around=own_models, rate=5),
)


# The short form.


def overlapping(stack):
    refuse_a_share(stack)
    # Postgres returns while Redis is still away.
    stack.network("redis", "refuse")
    stack.stop("postgres", signal.SIGINT)
    time.sleep(25)
    stack.restart("postgres")
    stack.returned("Postgres")
    time.sleep(12)
    stack.network("redis", "pass")
    # Connections to Postgres fall silent while S3 is away.
    stack.network("s3", "refuse")
    time.sleep(3)
    stack.network("postgres", "half-open")
    time.sleep(17)
    stack.network("s3", "pass")
    stack.returned("S3")
    time.sleep(6)
    for name in ("api", "worker"):
        stack.kill(name)
    until(stack.is_ready, "the API is ready")
    stack.returned("the kills")


SHORT = Scenario(
    "short",
    "Nothing is lost while Postgres, Redis and S3 go away in turn, S3 refuses every fifth request, and programs are killed.",
    overlapping,
    rate=4,
)
