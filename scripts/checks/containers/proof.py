"""Proofs with the stack in an engine. Each proof is a row of the table at the end."""

import json
import struct
import subprocess
import time
from dataclasses import asdict, dataclass

from common.config import REPO
from common.console import Problem, line, took, warn
from devstack.trial import expect, form, mask, png, post, report_of, until, upload

from .running import FRONT, NODE, NODE_FILES, Central, Stack, problem_with, status_of

PHOTO = REPO / "models" / "u2netp" / "golden" / "cat.png"
TINY = REPO / "models" / "tiny"
# Acceptable responses during an outage: a result, "in progress", "retry later", or no response.
ACCEPTABLE = {"200", "202", "409", "429", "502", "503", "none"}
PRICES = {"remove-background": 5, "upscale": 3, "magic-fix": 8}
SIGN_UP, PACK = 20, 20
JOBS = 60
# Jobs per second. Low enough that a fast machine is still busy when a failure is injected.
RATE = 6


@dataclass
class Row:
    name: str
    good: bool
    seconds: float
    remark: str


class Proof:
    """One run: the stack, its users, and the results."""

    def __init__(self, engine, images, models):
        self.rows = []
        self.models = models
        self.central = Central(engine, images, models)
        self.node = Stack(engine, NODE, NODE_FILES, {**node_settings(images)})
        self.people = []
        # The number of submitted jobs.
        self.submitted = 0

    def run(self):
        """Runs every proof, unless the stack does not start. Returns how many passed and how many failed."""
        steps = [
            the_stack_starts,
            containers_are_hardened,
            a_user_runs_every_tool,
            a_killed_worker_loses_no_job,
            a_paused_redis_loses_no_job,
            three_workers_share_the_load,
            a_disconnected_worker_loses_no_job,
            stopping_workers_finish_their_jobs,
            another_host_joins,
            accounts_balance,
            a_backup_can_be_restored,
        ]
        try:
            for step in steps:
                self.prove(step)
                if step is the_stack_starts and not self.rows[-1].good:
                    break
        finally:
            self.prove(nothing_is_left)
        return sum(row.good for row in self.rows), sum(not row.good for row in self.rows)

    def prove(self, step):
        name, started = step.__name__.replace("_", " "), time.monotonic()
        line(f"• Proving: {name} …")
        try:
            remark, good = step(self) or "", True
        except (Problem, OSError, subprocess.SubprocessError) as problem:
            remark, good = str(problem).splitlines()[0][:160], False
            warn(f"FAILED: {name}\n{problem}")
        seconds = time.monotonic() - started
        self.rows.append(Row(name, good, seconds, remark))
        line(f"  {'proven' if good else 'FAILED'} ({took(seconds)}) {remark}")

    def table(self):
        width = max(len(row.name) for row in self.rows)
        for row in self.rows:
            yield f"{row.name:{width}}  {'ok    ' if row.good else 'FAILED'} {took(row.seconds):>9}  {row.remark}"

    # Load.

    def begin_load(self, jobs=JOBS):
        """Starts users who submit `jobs` at RATE, and retry until each has a result."""
        self.submitted += jobs
        users = self.central.folder / "users.json"
        users.touch(mode=0o600)
        users.write_text(json.dumps([asdict(person) for person in self.people]))
        command = [REPO / "target" / "release" / "retouch-standins", "load", "--users", users]
        command += ["--jobs", jobs, "--rate", RATE, "--seconds", "300", "--insist", "300"]
        return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    def all_jobs_finish(self, load, jobs=JOBS):
        report = report_of(load)
        expect(report["done"] == jobs, f"Users receive all {jobs} results", report)
        unexpected = set(report["answers"]) - ACCEPTABLE
        expect(not unexpected, "A temporary outage causes no server error", report["answers"])
        done = self.central.jobs_done()
        expect(done == self.submitted, f"All {self.submitted} jobs are done, each once", done)
        return f"{jobs} jobs in {took(report['seconds'])}, answers {report['answers']}"

    def wait_for_progress(self, more):
        """Waits until `more` jobs are done, while others are still open."""
        enough = self.central.jobs_done() + more
        until(lambda: self.central.jobs_done() >= enough, f"{more} more jobs are done", 120)
        expect(self.central.jobs_done() < self.submitted, "Some jobs are still open", self.submitted)


def node_settings(images):
    return {
        "COMPOSE_PROFILES": "worker",
        "RETOUCH_MODELS": str(TINY),
        "RETOUCH_WORKER_NAME": "the-other-host",
        "RETOUCH_WORKER_MEMORY": "2G",
        "RETOUCH_WORKER_CPUS": "2",
        "RETOUCH_DRAIN_SECS": "30",
        **images.settings,
    }


# Proofs.


def the_stack_starts(proof):
    central = proof.central
    central.prepare_secrets()
    # Removes the rest of a run that was killed.
    central.down()
    try:
        central.up()
        until(lambda: len(central.live_workers()) == 1, "the API knows the worker", 120)
    except Problem as problem:
        raise Problem(f"{problem}\n{problem_with(central)}") from None
    return ", ".join(sorted(name for name, found in central.services().items() if found[0]["State"] == "running"))


def containers_are_hardened(proof):
    central = proof.central
    checked = []
    for service, containers in central.services().items():
        if containers[0]["State"] != "running":
            continue
        container = central.containers(service)[0]
        status = status_of(central.pid(container))
        allowed = 0x400 if service == "web" else 0
        expect(int(status["CapBnd"], 16) == allowed, f"{service} has no capability", status["CapBnd"])
        expect(status["NoNewPrivs"] == "1", f"{service} gains no privileges", status["NoNewPrivs"])
        expect(status["Uid"].split()[0] != "0", f"{service} is not root", status["Uid"])
        code, output = central.run_in(service, "sh", "-c", "echo > /retouch-was-here")
        expect(code != 0 and "ead-only" in output, f"{service} cannot change its file system", (code, output))
        limit = int(central.inspect(container, "{{.HostConfig.Memory}}"))
        expect(limit > 0, f"{service} has a memory limit", limit)
        published = {one["PublishedPort"] for one in containers[0].get("Publishers") or [] if one["PublishedPort"]}
        # The joining host needs Postgres, Redis and the S3 server.
        expect(service in ("web", "postgres", "redis", "s3") or not published, f"{service} publishes no port", published)
        checked.append(service)
    secrets = [name for name in ("api", "worker") if "postgres://" in central.inspect(central.containers(name)[0], "{{.Config.Env}}")]
    expect(not secrets, "No environment of a container contains a password", secrets)
    return f"{len(checked)} services"


def a_user_runs_every_tool(proof):
    central, photo = proof.central, PHOTO.read_bytes()
    token = central.token("journey@example.test")
    signed = {"Authorization": f"Bearer {token}"}
    image = upload(central.url, token, photo)
    expect(central.credits(token) == SIGN_UP, f"A new account has {SIGN_UP} credits", central.credits(token))
    fix, kind = form(mask(*size_of(photo)), prompt="remove it")
    runs = {
        "remove-background": (f"/api/rmbg-images/remove-bg-ai?imageId={image}", signed, b""),
        "upscale": (f"/api/upscale/upscale-ai-2?imageId={image}", signed, b""),
        "magic-fix": (f"/api/magic-images/fix/{image}", {**signed, "Content-Type": kind}, fix),
    }
    balance, summaries = SIGN_UP, []
    for tool, (address, headers, body) in runs.items():
        started = time.monotonic()
        status, results = post(f"{central.url}{address}", headers, body)
        expect(status == 200 and len(results) == 1, f"{tool} returns a result", (status, results))
        width, height = size_of(central.download(results[0]["url"], token))
        summaries.append(f"{tool} {time.monotonic() - started:.1f} s {width}×{height}")
        wide, high = size_of(photo)
        factor = 2 if tool == "upscale" else 1
        expect((width, height) == (factor * wide, factor * high), f"The result of {tool} has the expected size", (width, height))
        balance -= PRICES[tool]
        proof.submitted += 1
        expect(central.credits(token) == balance, f"{tool} costs {PRICES[tool]} credits", central.credits(token))
    central.buy(token, 1)
    until(lambda: central.credits(token) == balance + PACK, "the account has the credits of the pack", 60)
    prepare_for_failures(proof)
    return f"{', '.join(summaries)}; bought {PACK} credits"


def prepare_for_failures(proof):
    """Switches to tiny models and larger images, and creates users with more credits than they can spend."""
    central = proof.central
    central.settings["RETOUCH_MODELS"] = str(TINY)
    central.up("worker")
    picture = png(1600, 1200)
    for name in ("ada", "bob"):
        proof.people.append(central.person(f"{name}@example.test", picture))
        code, output = central.admin("grant", f"{name}@example.test", "100000", "--note", "proof")
        expect(code == 0, "An operator can grant credits", output)
    until(lambda: len(central.live_workers()) == 1, "the API knows the worker", 60)


def a_killed_worker_loses_no_job(proof):
    central = proof.central
    load = proof.begin_load()
    times = []
    # A job that loses its worker three times fails.
    for _ in range(2):
        proof.wait_for_progress(5)
        container = central.containers("worker")[0]
        before, killed = central.pid(container), time.monotonic()
        central.kill(container)
        until(lambda: central.pid(container) not in (0, before), "the engine restarts it", 60)
        times.append(time.monotonic() - killed)
    restarts = int(central.inspect(container, "{{.RestartCount}}"))
    expect(restarts == 2, "The engine restarted it twice", restarts)
    return f"{proof.all_jobs_finish(load)}; restarted after {', '.join(took(one) for one in times)}"


def a_paused_redis_loses_no_job(proof):
    central = proof.central
    load = proof.begin_load()
    proof.wait_for_progress(5)
    redis = central.containers("redis")[0]
    central.engine.docker("pause", redis)
    try:
        before = central.jobs_done()
        time.sleep(15)
        meanwhile = central.jobs_done() - before
    finally:
        central.engine.docker("unpause", redis)
    summary = proof.all_jobs_finish(load)
    expect(meanwhile > 0, "Workers run jobs without Redis", meanwhile)
    # Its health check failed during the pause, and `up` refuses to start what depends on an unhealthy service.
    state = lambda: central.engine.docker("inspect", "--format", "{{.State.Health.Status}}", redis).strip()
    until(lambda: state() == "healthy", "Redis is healthy again", 60)
    return f"{summary}; {meanwhile:.0f} of them during the 15 s pause"


def three_workers_share_the_load(proof):
    central = proof.central
    central.up("--scale", "worker=3", "--no-recreate", "worker")
    until(lambda: len(central.live_workers()) == 3, "the API knows three workers", 60)
    load, busy = proof.begin_load(), set()
    while load.poll() is None and len(busy) < 3:
        busy |= set(central.sql("select distinct lease_owner from jobs where state = 'running'").split())
    summary = proof.all_jobs_finish(load)
    expect(len(busy) == 3, "All three workers ran jobs", busy)
    return summary


def a_disconnected_worker_loses_no_job(proof):
    central = proof.central
    load = proof.begin_load()
    proof.wait_for_progress(5)
    disconnected = central.containers("worker")[0]
    networks = central.networks(disconnected)
    for network in networks:
        central.engine.docker("network", "disconnect", network, disconnected)
    try:
        until(lambda: len(central.live_workers()) == 2, "two workers are alive", 60)
        summary = proof.all_jobs_finish(load)
    finally:
        for network in networks:
            central.engine.docker("network", "connect", network, disconnected)
    until(lambda: len(central.live_workers()) == 3, "it is alive again", 120)
    return summary


def stopping_workers_finish_their_jobs(proof):
    central = proof.central
    load = proof.begin_load()
    proof.wait_for_progress(5)
    retries = "select coalesce(sum(attempt - 1), 0) from jobs where state = 'done'"
    before = central.number(retries)
    containers, started = central.containers("worker"), time.monotonic()
    central.compose("stop", "worker")
    seconds = time.monotonic() - started
    codes = [central.inspect(container, "{{.State.ExitCode}}") for container in containers]
    expect(codes == ["0"] * 3, "All three workers exit on their own", codes)
    running = central.number("select count(*) from jobs where state = 'running'")
    expect(running == 0, "No job is left running", running)
    central.up("--scale", "worker=1", "worker")
    summary = proof.all_jobs_finish(load)
    added = central.number(retries) - before
    expect(added == 0, "A graceful stop does not count as an attempt", added)
    return f"{summary}; three workers stopped in {took(seconds)}"


def another_host_joins(proof):
    """Another project joins with the printed addresses; then the worker of the first host stops."""
    central, node = proof.central, proof.node
    addresses = dict(text.rstrip(" \\").split("=", 1) for text in central.prepare("--invite", f"{FRONT}.1").strip().splitlines()[:3])
    node.prepare("--join", **{name: text.strip("'") for name, text in addresses.items()})
    node.up("worker")
    found = list(node.services())
    expect(found == ["worker"], "Only the worker is started", found)
    known = lambda: "the-other-host" in {worker["name"] for worker in central.live_workers()}
    until(known, "the API knows it", 60)
    central.compose("stop", "worker")
    summary = proof.all_jobs_finish(proof.begin_load())
    code, workers = central.admin("workers")
    expect(code == 0 and "the-other-host" in workers, "`retouch-api admin workers` lists it", workers)
    return summary


def accounts_balance(proof):
    central = proof.central
    counts = json.loads(
        central.sql(
            """select row_to_json(one) from (select
                 (select count(*) from jobs) as jobs,
                 (select count(*) from jobs where state = 'done') as done,
                 (select count(*) from results) as results,
                 (select count(*) from ledger where kind = 'job') as debits,
                 (select -sum(amount) from ledger where kind = 'job') as paid,
                 (select sum(reserved) from users) as held,
                 (select count(*) from users u
                  where credits <> (select sum(amount) from ledger l where l.user_id = u.id)) as wrong_balances) one"""
        )
    )
    paid = PRICES["remove-background"] * (proof.submitted - len(PRICES)) + sum(PRICES.values())
    once_each = dict.fromkeys(("jobs", "done", "results", "debits"), proof.submitted)
    right = once_each | {"paid": paid, "held": 0, "wrong_balances": 0}
    expect(counts == right, f"Each run has one job, one result and one debit: {right}", counts)
    code, output = central.admin("audit")
    expect(code == 0, "`retouch-api admin audit` finds nothing", output)
    return f"{proof.submitted} jobs, {paid} credits; the audit finds nothing"


def a_backup_can_be_restored(proof):
    """A backup is restored into another database and another bucket."""
    central = proof.central
    run = ("run", "--rm", "--no-deps", "--no-TTY")
    central.compose(*run, "backup", "/backups", "--keep", "1", "--metrics", "/metrics/retouch.prom")
    metrics = (central.metrics / "retouch.prom").read_text()
    expect("retouch_backup_missing_objects 0" in metrics, "Nothing is missing in the backup", metrics)
    (made,) = central.backups.glob("20*Z")
    central.sql("create database retouch_restored")
    database = (central.secrets / "database_url").read_text().strip() + "_restored"
    elsewhere = ("--env", f"DATABASE_URL={database}", "--env", "S3_BUCKET=restored")
    central.compose(*run, *elsewhere, "--entrypoint", "restore", "backup", f"/backups/{made.name}")
    results = "select count(*) from results"
    restored = central.number(results, "retouch_restored")
    expect(restored == central.number(results), "The restored database has all results", restored)
    contents = json.loads((made / "backup.json").read_text())
    return f"{contents['objects']} objects, {contents['bytes'] / 1e6:.0f} MB"


def nothing_is_left(proof):
    for stack in (proof.node, proof.central):
        if stack.is_prepared:
            stack.down()
    central = proof.central
    left = [central.engine.docker(*what, "--quiet", "--filter", f"label=com.docker.compose.project={stack.name}").split()
            for stack in (proof.node, proof.central) for what in (("ps", "--all"), ("network", "ls"), ("volume", "ls"))]  # fmt: skip
    expect(not any(left), "No container, network or volume is left", left)


# Pictures.


def size_of(picture):
    expect(picture.startswith(b"\x89PNG"), "It is a PNG", picture[:16])
    return struct.unpack(">II", picture[16:24])
