"""`scripts/capacity check`: whether the simulator is right, against the real programs on this machine.

Twice. *Foretold*: jobs one at a time give the times of the stages, a short crowd gives what they cost each other; with
these numbers and the arrivals of a long, random load the simulator has to come to the waits and the throughput that the
load then has. *Retold*: the same with the times of the stages that each job of that load really had, which is fair also
on a machine whose other programs come and go.
"""

import http.client
import json
import re
import shutil
import socket
import statistics
import tempfile
import threading
import time
import urllib.parse
import uuid
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from common.config import REPO
from common.console import Problem, line, warn
from devstack import services
from devstack.sandbox import Sandbox, free_ports
from devstack.trial import Person, Trial, expect
from ops.capacity.profile import Machine, Work
from ops.capacity.simulate import Arrival, Simulation, percentile, poisson

from .bench import PARTS, Others, processor_seconds, s3_in_memory

PEOPLE = 8
SLOTS = 3
ALONE = 30
CROWD_SECONDS = 30
LOAD_SECONDS = 180
LOAD = 0.75
TOLERANCE = 0.15
SEEDS = 20
TOOL = "remove-background"
MODEL = "u2netp"
PHOTO = REPO / "worker" / "tests" / "photos" / "coffee.jpg"


def run(seconds=LOAD_SECONDS, load=LOAD, seed=1):
    """Returns whether the simulator came within the tolerance."""
    with Sandbox("capacity") as sandbox, s3_in_memory(sandbox.settings), one_model(sandbox.settings) as models:
        metrics = two_ports()
        listen = {"RETOUCH_METRICS_LISTEN": f"127.0.0.1:{metrics}", "RETOUCH_JOBS_IN_FLIGHT": str(SLOTS)}
        trial = Trial(sandbox, listen | {"RETOUCH_MODELS_DIR": str(models)})
        people = with_photo(trial, trial.people(PEOPLE))
        one_after_another(people, 5)
        with Others() as others:
            machine = measure_alone(trial, people, metrics + 1)
            machine, most = measure_crowd(trial, people, machine)
        say_others("the measuring", others)
        rate = load * most
        line(f"  the load is {rate:.2f} jobs a second, {load:.0%} of that, for {seconds:.0f} s")
        with Others() as others, Stages(metrics + 1, machine.work[TOOL]) as seen:
            real, arrivals = really(trial, people, poisson({(TOOL, "paid"): rate}, seconds, seed, owners=PEOPLE))
        say_others("the load", others)
        line("foretold:")
        foretold = compare(real, simulated(machine, arrivals))
        line("retold:")
        retold = compare(real, simulated(replace(machine, cores=len(arrivals), model_threads=1, barrier=1.0), seen.given_to(arrivals)))
        return foretold and retold


def two_ports():
    """The API's metrics are at the first, the worker's at the one after it."""
    for port in free_ports(20):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
        return port
    raise Problem("There are no two free ports beside each other.")


def say_others(when, others):
    if others.share > 0.05:
        warn(f"Other programs took {others.share:.0%} of the processors during {when}.")


@contextmanager
def one_model(settings):
    """A models folder in which one small net serves everybody: quick enough for a processor."""
    source = Path(settings.get("RETOUCH_MODELS_DIR") or REPO / "models") / MODEL
    if not (source / f"{MODEL}.onnx").exists():
        raise Problem(f"The model {MODEL} is not here. Run: scripts/models fetch {MODEL}")
    with tempfile.TemporaryDirectory(prefix="retouch-capacity-") as folder:
        shutil.copytree(source, Path(folder) / MODEL)
        bind = '[[bind]]\ntool = "remove-background"\ntier = "{}"\ndevice = "any"\nmodel = "{}"\n'
        (Path(folder) / "tools.toml").write_text("\n".join(bind.format(tier, MODEL) for tier in ("paid", "free", "visitor")))
        yield Path(folder)


def with_photo(trial, people):
    photo = PHOTO.read_bytes()
    line_ = b"retouchcapacity"
    head = b'Content-Disposition: form-data; name="file"; filename="photo.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
    body = b"--" + line_ + b"\r\n" + head + photo + b"\r\n--" + line_ + b"--\r\n"
    uploaded = []
    for person in people:
        headers = {"Authorization": f"Bearer {person.token}", "Content-Type": f"multipart/form-data; boundary={line_.decode()}"}
        status, answer = ask(trial.api, "POST", "/api/images/upload", headers, body)
        expect(status == 201, "A photo can be uploaded", (status, answer))
        uploaded.append(Person(person.api, person.token, answer["id"]))
    return uploaded


def ask(api, method, path, headers, body=b""):
    address = urllib.parse.urlsplit(api)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def submit(person, waits=False):
    """Begins a job; who waits is answered with its result."""
    path = f"/api/rmbg-images/remove-bg-ai?imageId={person.image}"
    # Of its own: an identical run that is still under way would be joined.
    headers = {"Authorization": f"Bearer {person.token}", "Idempotency-Key": uuid.uuid4().hex}
    if not waits:
        headers["Prefer"] = "respond-async"
    status, answer = ask(person.api, "POST", path, headers)
    expect(status == (200 if waits else 202), "A job is taken in", (status, answer))


def unfinished(trial):
    return trial.number("select count(*) from jobs where state in ('queued', 'running')")


def one_after_another(people, count):
    # Whoever asks the database whether a job is done takes the processors from it.
    for number in range(count):
        submit(people[number % len(people)], waits=True)


def stages(port):
    """Seconds and runs of each stage so far, as Prometheus reads them."""
    text = (services.get(f"http://127.0.0.1:{port}/metrics") or b"").decode()
    found = {}
    for kind, labels, value in re.findall(r"^retouch_stage_seconds_(sum|count)\{([^}]*)\} (\S+)$", text, re.M):
        stage = re.search(r'stage="(\w+)"', labels)[1]
        found[stage, kind] = found.get((stage, kind), 0.0) + float(value)
    if not found:
        raise Problem(f"The worker's metrics on port {port} name no stages.")
    return found


class Stages:
    """Looks at the worker's metrics again and again: the stages of a job are reported together when it is done."""

    def __init__(self, port, alone):
        self.port, self.alone = port, alone
        self.works = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look_on)

    def __enter__(self):
        self.before = stages(self.port)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.look()

    def look_on(self):
        while not self.over.wait(0.1):
            self.look()

    def look(self):
        after = stages(self.port)
        done = round(after["infer", "count"] - self.before["infer", "count"])
        counts = [round(after[key] - self.before[key]) for key in after if key[1] == "count"]
        if done <= 0 or any(count != done for count in counts):
            # Nothing new, or in the middle of being reported.
            return
        took = {stage: (after[stage, "sum"] - self.before[stage, "sum"]) / done for stage, kind in after if kind == "sum"}
        before_it = took["decode"] + took["preprocess"]
        after_it = took["postprocess"] + took["foreground"] + took["encode"]
        work = replace(self.alone, before=before_it, after=after_it, model=took["infer"], pixel_threads=1.0, overhead=0.0, spread=(1.0,))
        self.works += [work] * done
        self.before = after

    def given_to(self, arrivals):
        """Jobs end in the order in which they came, but for neighbours."""
        expect(len(self.works) == len(arrivals), "Each job's stages were seen", (len(self.works), len(arrivals)))
        return [replace(arrival, work=work) for arrival, work in zip(arrivals, self.works)]


def measure_alone(trial, people, port):
    """Each stage's time when nothing else is under way, and what a job costs the processors."""
    begun, before = trial.sql("select now()"), stages(port)
    spent = {part: processor_seconds(trial, part) for part in PARTS}
    one_after_another(people, ALONE)
    after = stages(port)
    spent = {part: (processor_seconds(trial, part) - spent[part]) / ALONE for part in PARTS}
    grown = {key: after[key] - before[key] for key in before}
    mean = {stage: grown[stage, "sum"] / grown[stage, "count"] for stage, kind in before if kind == "sum"}
    rows = trial.row(
        f"""json_agg(extract(epoch from started_at - created_at)) as waits,
            json_agg(extract(epoch from finished_at - started_at)) as runs
            from jobs where created_at > '{begun}'"""
    )
    runs, waits = rows["runs"], rows["waits"]
    model, before_it = mean["infer"], mean["decode"] + mean["preprocess"]
    after_it = mean["postprocess"] + mean["foreground"] + mean["encode"]
    # What no stage tells: taking the job, and recording what became of it.
    books = max(statistics.fmean(runs) - sum(mean.values()), 0.0)
    rest = mean["fetch"] + mean["store"] + books
    cores = len_cores()
    pixels = before_it + after_it
    threads = min(max((spent["worker"] - model * cores) / pixels, 1.0), cores)
    overhead = sum(cost for part, cost in spent.items() if part != "worker")
    # A factor scales all that computes; what is read and written takes its time regardless.
    spread = tuple(max((run - rest) / (model + pixels), 0.1) for run in runs)
    work = Work(
        claim=statistics.median(waits),
        fetch=mean["fetch"] + books / 2,
        before=before_it,
        after=after_it,
        pixel_threads=threads,
        model=model,
        store=mean["store"] + books / 2,
        overhead=overhead,
        spread=tuple(factor / statistics.fmean(spread) for factor in spread),
    )
    line(
        f"  alone: claimed after {1000 * work.claim:.0f} ms, pixels {1000 * before_it:.0f} + {1000 * after_it:.0f} ms on {threads:.2f} threads, "
        f"model {1000 * model:.0f} ms, rest {1000 * rest:.0f} ms; the other programs {1000 * overhead:.0f} ms of processor"
    )
    return Machine(name="here", cores=cores, model_threads=cores, work={TOOL: work})


def len_cores():
    from os import sched_getaffinity

    return len(sched_getaffinity(0))


def measure_crowd(trial, people, machine):
    """What jobs cost each other, from the most that the worker does: the one number that cannot be seen from outside.
    Where even that does not explain it, the machine's pace has changed, and all times with it."""
    begun, problems = trial.number("select extract(epoch from now())"), []
    over = time.monotonic() + CROWD_SECONDS

    def come_again(person):
        try:
            while time.monotonic() < over:
                submit(person, waits=True)
        except (Problem, OSError) as problem:
            problems.append(problem)

    crowd = [threading.Thread(target=come_again, args=(people[number % len(people)],)) for number in range(2 * SLOTS)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    if problems:
        raise problems[0]
    # From a full worker to a full worker.
    within = f"finished_at between to_timestamp({begun + 3}) and to_timestamp({begun + CROWD_SECONDS})"
    done = trial.number(f"select count(*) from jobs where {within}")
    real = done / (CROWD_SECONDS - 3)
    fitted = min((replace(machine, barrier=step / 20) for step in range(20, 81)), key=lambda one: abs(saturated(one) - real))
    work, pace = fitted.work[TOOL], saturated(fitted) / real
    if abs(pace - 1) > 0.03:
        work = replace(work, before=work.before * pace, model=work.model * pace, after=work.after * pace, overhead=work.overhead * pace)
        fitted = replace(fitted, work={TOOL: work})
    waits = f"a model's threads wait for each other by a factor of {fitted.barrier:.2f}, all times by one of {pace:.2f}"
    line(f"  in a crowd: at most {real:.2f} jobs a second; {waits}")
    return fitted, real


def saturated(machine, jobs=200):
    """Jobs a second when there are always more."""
    arrivals = [Arrival(0.0, TOOL, "paid", number) for number in range(jobs)]
    return Simulation(machine, slots=SLOTS, seed=7).run(arrivals).throughput


def really(trial, people, arrivals):
    """Does what the arrivals say; returns what the database saw of it, and when they really came."""
    begun = trial.sql("select now()")
    started, problems = time.monotonic(), []

    def come(arrival):
        try:
            submit(people[arrival.owner])
        except (Problem, OSError) as problem:
            problems.append(problem)

    comers = []
    for arrival in arrivals:
        time.sleep(max(0.0, started + arrival.at - time.monotonic()))
        comers.append(threading.Thread(target=come, args=(arrival,)))
        comers[-1].start()
    for comer in comers:
        comer.join()
    if problems:
        raise problems[0]
    while unfinished(trial):
        time.sleep(1)
    jobs = trial.row(
        f"""json_agg(json_build_object('at', extract(epoch from created_at), 'started', extract(epoch from started_at),
                     'ended', extract(epoch from finished_at), 'owner', owner_id) order by created_at) as jobs
            from jobs where created_at > '{begun}'"""
    )["jobs"]
    expect(len(jobs) == len(arrivals), "Every job was done", (len(jobs), len(arrivals)))
    first, owners = jobs[0]["at"], sorted({job["owner"] for job in jobs})
    return jobs, [Arrival(job["at"] - first, TOOL, "paid", owners.index(job["owner"])) for job in jobs]


def simulated(machine, arrivals):
    """The same arrivals, several times: which job is a slow one is chance."""
    return [Simulation(machine, slots=SLOTS, seed=seed).run(arrivals) for seed in range(SEEDS)]


def compare(jobs, reports):
    waits = sorted(job["started"] - job["at"] for job in jobs)
    runs = sorted(job["ended"] - job["started"] for job in jobs)
    throughput = len(jobs) / (max(job["ended"] for job in jobs) - jobs[0]["at"])
    mean = lambda of: statistics.fmean(of(report) for report in reports)  # noqa: E731
    rows = [
        ("jobs a second", throughput, mean(lambda report: report.throughput), True),
        ("wait, mean, s", statistics.fmean(waits), mean(lambda report: statistics.fmean(report.waits())), False),
        ("wait, p50, s", percentile(waits, 0.5), mean(lambda report: percentile(report.waits(), 0.5)), False),
        ("wait, p95, s", percentile(waits, 0.95), mean(lambda report: percentile(report.waits(), 0.95)), True),
        ("run, p50, s", percentile(runs, 0.5), mean(lambda report: percentile(report.runs(), 0.5)), False),
        ("run, p95, s", percentile(runs, 0.95), mean(lambda report: percentile(report.runs(), 0.95)), False),
    ]
    line(f"  {len(jobs)} jobs           measured  simulated  difference")
    good = True
    for name, real, expected, must in rows:
        off = expected / real - 1 if real else 0.0
        good &= abs(off) <= TOLERANCE or not must
        verdict = "" if not must else "  within 15 %" if abs(off) <= TOLERANCE else "  MISSED 15 %"
        line(f"  {name:16} {real:12.3f} {expected:10.3f} {off:+10.1%}{verdict}")
    return good
