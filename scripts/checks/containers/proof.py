"""The stack in a real engine, while things go wrong. Each proof is a row of the table at the end."""

import json
import struct
import subprocess
import time
import zlib
from dataclasses import asdict, dataclass

from common.config import REPO
from common.console import Problem, line, took, warn
from devstack.trial import chunk, expect, form, png, post, report_of, until

from .running import FRONT, NODE, NODE_FILES, Central, Stack, problem_with, status_of

PHOTO = REPO / "models" / "u2netp" / "golden" / "cat.png"
TINY = REPO / "models" / "tiny"
# What the API may say while something is away: the result, "still under way", "wait", or nothing at all.
HONEST = {"200", "202", "409", "429", "502", "503", "none"}
PRICES = {"remove-background": 5, "upscale": 3, "magic-fix": 8}
SIGN_UP, PACK = 20, 20
JOBS = 60
# Jobs a second: quick machines too are still at it when something goes wrong.
RATE = 6


@dataclass
class Row:
    name: str
    good: bool
    seconds: float
    remark: str


class Proof:
    """One run: the stack, who is on it, and what was found."""

    def __init__(self, engine, images, models):
        self.rows = []
        self.models = models
        self.central = Central(engine, images, models)
        self.node = Stack(engine, NODE, NODE_FILES, {**node_settings(images)})
        self.people = []
        # Jobs whose result somebody was promised.
        self.wanted = 0

    def run(self):
        """Every proof, the later ones only on a stack that started. Returns how many passed and how many failed."""
        steps = [
            the_stack_starts,
            containers_are_hardened,
            a_person_uses_all_of_it,
            a_killed_worker_loses_nothing,
            a_silent_redis_loses_nothing,
            three_workers_share_the_work,
            a_worker_cut_off_from_the_world_loses_nothing,
            workers_told_to_stop_finish_first,
            another_host_joins,
            the_books_add_up,
        ]
        try:
            for step in steps:
                self.prove(step)
                if step is the_stack_starts and not self.rows[-1].good:
                    break
        finally:
            self.prove(everything_ends)
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
        """Starts users who insist on a result for each of `jobs`, a few of which begin each second."""
        self.wanted += jobs
        users = self.central.folder / "users.json"
        users.touch(mode=0o600)
        users.write_text(json.dumps([asdict(person) for person in self.people]))
        command = [REPO / "target" / "release" / "retouch-standins", "load", "--users", users]
        command += ["--jobs", jobs, "--rate", RATE, "--seconds", "300", "--insist", "300"]
        return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    def everybody_gets_a_result(self, load, jobs=JOBS):
        report = report_of(load)
        expect(report["done"] == jobs, f"Everybody gets all of {jobs} results", report)
        strange = set(report["answers"]) - HONEST
        expect(not strange, "What is away for a moment is no server error", report["answers"])
        done = self.central.jobs_done()
        expect(done == self.wanted, f"{self.wanted} wishes are as many jobs done", done)
        return f"{jobs} jobs in {took(report['seconds'])}, answers {report['answers']}"

    def under_way(self, more):
        """Waits until so many more jobs are done, and others are not."""
        enough = self.central.jobs_done() + more
        until(lambda: self.central.jobs_done() >= enough, f"{more} more jobs are done", 120)
        expect(self.central.jobs_done() < self.wanted, "There is still work", self.wanted)


def node_settings(images):
    return {
        "COMPOSE_PROFILES": "",
        "RETOUCH_MODELS": str(TINY),
        "RETOUCH_WORKER_NAME": "the-other-host",
        "RETOUCH_WORKER_MEMORY": "2G",
        "RETOUCH_WORKER_CPUS": "2",
        "RETOUCH_DRAIN_SECS": "30",
        **images.settings,
    }


# What is proven.


def the_stack_starts(proof):
    central = proof.central
    central.prepare_secrets()
    # What a run left behind that was killed.
    central.down()
    try:
        central.up()
        until(lambda: len(central.living()) == 1, "the worker is known", 120)
    except Problem as problem:
        raise Problem(f"{problem}\n{problem_with(central)}") from None
    return ", ".join(sorted(name for name, found in central.services().items() if found[0]["State"] == "running"))


def containers_are_hardened(proof):
    central = proof.central
    looked_at = []
    for service, containers in central.services().items():
        if containers[0]["State"] != "running":
            continue
        container = central.containers(service)[0]
        status = status_of(central.pid(container))
        wanted = 0x400 if service == "web" else 0
        expect(int(status["CapBnd"], 16) == wanted, f"{service} has no capability", status["CapBnd"])
        expect(status["NoNewPrivs"] == "1", f"{service} gains no privileges", status["NoNewPrivs"])
        expect(status["Uid"].split()[0] != "0", f"{service} is not root", status["Uid"])
        code, said = central.run_in(service, "sh", "-c", "echo > /retouch-was-here")
        expect(code != 0 and "ead-only" in said, f"{service} cannot change its file system", (code, said))
        limit = int(central.inspect(container, "{{.HostConfig.Memory}}"))
        expect(limit > 0, f"{service} has a limit of memory", limit)
        published = {one["PublishedPort"] for one in containers[0].get("Publishers") or [] if one["PublishedPort"]}
        # Postgres, Redis and the S3 server are open at the one address that the joining host needs.
        expect(service in ("web", "postgres", "redis", "s3") or not published, f"{service} publishes no port", published)
        looked_at.append(service)
    secrets = [name for name in ("api", "worker") if "postgres://" in central.inspect(central.containers(name)[0], "{{.Config.Env}}")]
    expect(not secrets, "No environment in the engine's books holds a password", secrets)
    return f"{len(looked_at)} services"


def a_person_uses_all_of_it(proof):
    central, photo = proof.central, PHOTO.read_bytes()
    token = central.token("journey@example.test")
    signed = {"Authorization": f"Bearer {token}"}
    image = central.upload(token, photo)
    expect(central.credits(token) == SIGN_UP, f"A new account has {SIGN_UP} credits", central.credits(token))
    mask, kind = mask_form(photo)
    runs = {
        "remove-background": (f"/api/rmbg-images/remove-bg-ai?imageId={image}", signed, b""),
        "upscale": (f"/api/upscale/upscale-ai-2?imageId={image}", signed, b""),
        "magic-fix": (f"/api/magic-images/fix/{image}", {**signed, "Content-Type": kind}, mask),
    }
    left, said = SIGN_UP, []
    for tool, (address, headers, body) in runs.items():
        started = time.monotonic()
        status, results = post(f"{central.url}{address}", headers, body)
        expect(status == 200 and len(results) == 1, f"{tool} gives a result", (status, results))
        width, height = size_of(central.download(results[0]["url"], token))
        said.append(f"{tool} {time.monotonic() - started:.1f} s {width}×{height}")
        wide, high = size_of(photo)
        factor = 2 if tool == "upscale" else 1
        expect((width, height) == (factor * wide, factor * high), f"{tool}'s result has its size", (width, height))
        left -= PRICES[tool]
        proof.wanted += 1
        expect(central.credits(token) == left, f"{tool} costs {PRICES[tool]} credits", central.credits(token))
    central.buy(token, 1)
    until(lambda: central.credits(token) == left + PACK, "the credits of the pack are there", 60)
    prepare_for_faults(proof)
    return f"{', '.join(said)}; bought {PACK} credits"


def prepare_for_faults(proof):
    """Models that take no time, larger pictures, and people with more credits than they can spend."""
    central = proof.central
    central.settings["RETOUCH_MODELS"] = str(TINY)
    central.up("worker")
    picture = png(1600, 1200)
    for name in ("ada", "bob"):
        proof.people.append(central.person(f"{name}@example.test", picture))
        code, said = central.admin("grant", f"{name}@example.test", "100000", "--note", "proof")
        expect(code == 0, "An operator grants credits", said)
    until(lambda: len(central.living()) == 1, "the worker is known", 60)


def a_killed_worker_loses_nothing(proof):
    central = proof.central
    load = proof.begin_load()
    times = []
    # A picture that loses its worker three times would be given up.
    for _ in range(2):
        proof.under_way(5)
        container = central.containers("worker")[0]
        before, killed = central.pid(container), time.monotonic()
        central.kill(container)
        until(lambda: central.pid(container) not in (0, before), "the engine starts it again", 60)  # noqa: B023
        times.append(time.monotonic() - killed)
    restarts = int(central.inspect(container, "{{.RestartCount}}"))
    expect(restarts == 2, "It was killed and started again twice", restarts)
    return f"{proof.everybody_gets_a_result(load)}; back after {', '.join(took(one) for one in times)}"


def a_silent_redis_loses_nothing(proof):
    central = proof.central
    load = proof.begin_load()
    proof.under_way(5)
    redis = central.containers("redis")[0]
    central.engine.docker("pause", redis)
    try:
        before = central.jobs_done()
        time.sleep(15)
        meanwhile = central.jobs_done() - before
    finally:
        central.engine.docker("unpause", redis)
    return f"{proof.everybody_gets_a_result(load)}; {meanwhile:.0f} of them in its 15 s of silence"


def three_workers_share_the_work(proof):
    central = proof.central
    central.up("--scale", "worker=3", "--no-recreate", "worker")
    until(lambda: len(central.living()) == 3, "three workers are known", 60)
    load, busy = proof.begin_load(), set()
    while load.poll() is None and len(busy) < 3:
        busy |= set(central.sql("select distinct lease_owner from jobs where state = 'running'").split())
    said = proof.everybody_gets_a_result(load)
    expect(len(busy) == 3, "Each of three has done some of it", busy)
    return said


def a_worker_cut_off_from_the_world_loses_nothing(proof):
    central = proof.central
    load = proof.begin_load()
    proof.under_way(5)
    cut_off = central.containers("worker")[0]
    networks = central.networks(cut_off)
    for network in networks:
        central.engine.docker("network", "disconnect", network, cut_off)
    try:
        until(lambda: len(central.living()) == 2, "the others are two", 60)
        said = proof.everybody_gets_a_result(load)
    finally:
        for network in networks:
            central.engine.docker("network", "connect", network, cut_off)
    until(lambda: len(central.living()) == 3, "it is back", 120)
    return said


def workers_told_to_stop_finish_first(proof):
    central = proof.central
    load = proof.begin_load()
    proof.under_way(5)
    counted = "select coalesce(sum(attempt - 1), 0) from jobs where state = 'done'"
    before = central.number(counted)
    containers, started = central.containers("worker"), time.monotonic()
    central.compose("stop", "worker")
    seconds = time.monotonic() - started
    codes = [central.inspect(container, "{{.State.ExitCode}}") for container in containers]
    expect(codes == ["0"] * 3, "Each of three ends by itself", codes)
    left = central.number("select count(*) from jobs where state = 'running'")
    expect(left == 0, "Nothing is left running", left)
    central.up("--scale", "worker=1", "worker")
    said = proof.everybody_gets_a_result(load)
    again = central.number(counted) - before
    expect(again == 0, "Stopping in good order counts as no attempt", again)
    return f"{said}; three workers stopped in {took(seconds)}"


def another_host_joins(proof):
    """A project of its own that knows three addresses; then the first host's worker is stopped."""
    central, node = proof.central, proof.node
    addresses = dict(text.rstrip(" \\").split("=", 1) for text in central.prepare("--invite", f"{FRONT}.1").splitlines()[:3])
    node.prepare("--join", **{name: text.strip("'") for name, text in addresses.items()})
    node.up("worker")
    found = list(node.services())
    expect(found == ["worker"], "Nothing comes along", found)
    known = lambda: "the-other-host" in {worker["name"] for worker in central.living()}  # noqa: E731
    until(known, "it is known", 60)
    central.compose("stop", "worker")
    said = proof.everybody_gets_a_result(proof.begin_load())
    code, nodes = central.admin("nodes")
    expect(code == 0 and "the-other-host" in nodes, "`retouch-api admin nodes` shows it", nodes)
    return said


def the_books_add_up(proof):
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
    paid = PRICES["remove-background"] * (proof.wanted - len(PRICES)) + sum(PRICES.values())
    once_each = dict.fromkeys(("jobs", "done", "results", "debits"), proof.wanted)
    right = once_each | {"paid": paid, "held": 0, "wrong_balances": 0}
    expect(counts == right, f"Each wish is one job, one result and one debit: {right}", counts)
    code, said = central.admin("audit")
    expect(code == 0, "`retouch-api admin audit` finds nothing", said)
    return f"{proof.wanted} jobs, {paid} credits; the audit finds nothing"


def everything_ends(proof):
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


def mask_form(photo):
    """A mask of a photo's size with a square in it, and words, as a page sends them: the body and its type."""
    width, height = size_of(photo)
    rows = bytearray()
    for y in range(height):
        inside = height // 3 < y < height // 2
        rows += b"\0" + bytes(255 if inside and width // 3 < x < width // 2 else 0 for x in range(width))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b"")]
    mask = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in parts)
    body, kind = form(mask)
    mark = kind.partition("boundary=")[2].encode()
    prompt = b"--" + mark + b'\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nremove it\r\n'
    return prompt + body, kind
