"""`scripts/capacity check`: compares the simulator with the real programs on this machine, in two ways.

*Predicted*: single jobs give the times of the stages, and a short full load gives the cost of concurrency. From these
numbers and the arrivals of a long random load, the simulator must predict the waits and the throughput of that load.
*Replayed*: the same with the measured stage times of each job of the load, which is fair even if other programs use the
machine.
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

from .bench import PARTS, Others, cpu_seconds, s3_in_memory

USERS = 8
SLOTS = 3
SINGLE_JOBS = 30
FULL_LOAD_SECONDS = 30
LOAD_SECONDS = 180
LOAD = 0.75
TOLERANCE = 0.15
SEEDS = 20
TOOL = "remove-background"
MODEL = "u2netp"
PHOTO = REPO / "pixels" / "tests" / "photos" / "coffee.jpg"


def run(seconds=LOAD_SECONDS, load=LOAD, seed=1):
    """Returns whether the simulator is within the tolerance."""
    with Sandbox("capacity") as sandbox, s3_in_memory(sandbox.settings), one_model(sandbox.settings) as models:
        metrics = two_ports()
        listen = {"RETOUCH_METRICS_LISTEN": f"127.0.0.1:{metrics}", "RETOUCH_JOBS_IN_FLIGHT": str(SLOTS)}
        trial = Trial(sandbox, listen | {"RETOUCH_MODELS_DIR": str(models)})
        people = with_photo(trial, trial.people(USERS))
        run_in_sequence(people, 5)
        with Others() as others:
            machine = measure_single_jobs(trial, people, metrics + 1)
            machine, maximum = measure_full_load(trial, people, machine)
        warn_of_others("the measurements", others)
        rate = load * maximum
        line(f"  load: {rate:.2f} jobs per second, {load:.0%} of the maximum, for {seconds:.0f} s")
        with Others() as others, Stages(metrics + 1, machine.work[TOOL]) as stages_:
            jobs, arrivals = apply_load(trial, people, poisson({(TOOL, "paid"): rate}, seconds, seed, owners=USERS))
        warn_of_others("the load", others)
        line("predicted:")
        predicted = compare(jobs, simulated(machine, arrivals))
        line("replayed:")
        # Measured times include the sharing of cores, so the replay must not share them again.
        unshared = replace(machine, cores=len(arrivals), model_threads=1, barrier=1.0)
        replayed = compare(jobs, simulated(unshared, stages_.assigned_to(arrivals)))
        return predicted and replayed


def two_ports():
    """Returns the first of two adjacent free ports, for the metrics of the API and of the worker."""
    for port in free_ports(20):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
        return port
    raise Problem("Found no two adjacent free ports.")


def warn_of_others(when, others):
    if others.share > 0.05:
        warn(f"Other programs used {others.share:.0%} of the CPU during {when}.")


@contextmanager
def one_model(settings):
    """A models folder that binds one small net, fast enough on a CPU, to all tiers."""
    source = Path(settings.get("RETOUCH_MODELS_DIR") or REPO / "models") / MODEL
    if not (source / f"{MODEL}.onnx").exists():
        raise Problem(f"The model {MODEL} is missing. Run: scripts/models fetch {MODEL}")
    with tempfile.TemporaryDirectory(prefix="retouch-capacity-") as folder:
        shutil.copytree(source, Path(folder) / MODEL)
        bind = '[[bind]]\ntool = "remove-background"\ntier = "{}"\ndevice = "any"\nmodel = "{}"\n'
        (Path(folder) / "tools.toml").write_text("\n".join(bind.format(tier, MODEL) for tier in ("paid", "free", "visitor")))
        yield Path(folder)


def with_photo(trial, people):
    photo = PHOTO.read_bytes()
    boundary = b"retouchcapacity"
    head = b'Content-Disposition: form-data; name="file"; filename="photo.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
    body = b"--" + boundary + b"\r\n" + head + photo + b"\r\n--" + boundary + b"--\r\n"
    uploaded = []
    for person in people:
        headers = {"Authorization": f"Bearer {person.token}", "Content-Type": f"multipart/form-data; boundary={boundary.decode()}"}
        status, answer = request(trial.api, "POST", "/api/images/upload", headers, body)
        expect(status == 201, "An image can be uploaded", (status, answer))
        uploaded.append(Person(person.api, person.token, answer["id"]))
    return uploaded


def request(api, method, path, headers, body=b""):
    address = urllib.parse.urlsplit(api)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def submit(person, waits=False):
    """Creates a job; with `waits`, waits for its result."""
    path = f"/api/rmbg-images/remove-bg-ai?imageId={person.image}"
    # A new key, because the API would join an identical run in progress.
    headers = {"Authorization": f"Bearer {person.token}", "Idempotency-Key": uuid.uuid4().hex}
    if not waits:
        headers["Prefer"] = "respond-async"
    status, answer = request(person.api, "POST", path, headers)
    expect(status == (200 if waits else 202), "A job is accepted", (status, answer))


def unfinished(trial):
    return trial.number("select count(*) from jobs where state in ('queued', 'running')")


def run_in_sequence(people, count):
    # Polling the database would use CPU time, so this waits for the response of the API.
    for number in range(count):
        submit(people[number % len(people)], waits=True)


def stages(port):
    """Returns the total seconds and the number of runs of each stage, from the metrics of the worker."""
    text = (services.get(f"http://127.0.0.1:{port}/metrics") or b"").decode()
    found = {}
    for kind, labels, value in re.findall(r"^retouch_stage_seconds_(sum|count)\{([^}]*)\} (\S+)$", text, re.M):
        stage = re.search(r'stage="(\w+)"', labels)[1]
        found[stage, kind] = found.get((stage, kind), 0.0) + float(value)
    if not found:
        raise Problem(f"The metrics of the worker on port {port} have no stages.")
    return found


class Stages:
    """Polls the metrics of the worker, which reports all stages of a job when it is done."""

    def __init__(self, port, single):
        self.port, self.single = port, single
        self.works = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.keep_polling)

    def __enter__(self):
        self.before = stages(self.port)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()
        self.poll()

    def keep_polling(self):
        while not self.stopped.wait(0.1):
            self.poll()

    def poll(self):
        after = stages(self.port)
        done = round(after["infer", "count"] - self.before["infer", "count"])
        counts = [round(after[key] - self.before[key]) for key in after if key[1] == "count"]
        if done <= 0 or any(count != done for count in counts):
            # No new job, or its stages are only partly reported.
            return
        mean = {stage: (after[stage, "sum"] - self.before[stage, "sum"]) / done for stage, kind in after if kind == "sum"}
        work = replace(self.single, before=before_model(mean), after=after_model(mean), model=mean["infer"], pixel_threads=1.0, overhead=0.0, spread=(1.0,))
        self.works += [work] * done
        self.before = after

    def assigned_to(self, arrivals):
        """Jobs end roughly in the order of their arrivals."""
        expect(len(self.works) == len(arrivals), "The stages of every job are known", (len(self.works), len(arrivals)))
        return [replace(arrival, work=work) for arrival, work in zip(arrivals, self.works)]


def before_model(stages):
    return stages["decode"] + stages["preprocess"]


def after_model(stages):
    return stages["postprocess"] + stages["foreground"] + stages["encode"]


def measure_single_jobs(trial, people, port):
    """Measures the time of each stage, and the CPU time of each program, without concurrency."""
    start, before = trial.sql("select now()"), stages(port)
    spent = {part: cpu_seconds(trial, part) for part in PARTS}
    run_in_sequence(people, SINGLE_JOBS)
    after = stages(port)
    spent = {part: (cpu_seconds(trial, part) - spent[part]) / SINGLE_JOBS for part in PARTS}
    grown = {key: after[key] - before[key] for key in before}
    mean = {stage: grown[stage, "sum"] / grown[stage, "count"] for stage, kind in before if kind == "sum"}
    rows = trial.row(
        f"""json_agg(extract(epoch from started_at - created_at)) as waits,
            json_agg(extract(epoch from finished_at - started_at)) as runs
            from jobs where created_at > '{start}'"""
    )
    runs, waits = rows["runs"], rows["waits"]
    model, before, after = mean["infer"], before_model(mean), after_model(mean)
    # Time outside of the stages: claiming the job and recording its result.
    bookkeeping = max(statistics.fmean(runs) - sum(mean.values()), 0.0)
    rest = mean["fetch"] + mean["store"] + bookkeeping
    cores = core_count()
    pixels = before + after
    threads = min(max((spent["worker"] - model * cores) / pixels, 1.0), cores)
    overhead = sum(cost for part, cost in spent.items() if part != "worker")
    # The factor scales computation only, not I/O.
    spread = tuple(max((run - rest) / (model + pixels), 0.1) for run in runs)
    work = Work(
        claim=statistics.median(waits),
        fetch=mean["fetch"] + bookkeeping / 2,
        before=before,
        after=after,
        pixel_threads=threads,
        model=model,
        store=mean["store"] + bookkeeping / 2,
        overhead=overhead,
        spread=tuple(factor / statistics.fmean(spread) for factor in spread),
    )
    line(
        f"  single job: claimed after {1000 * work.claim:.0f} ms, pixels {1000 * before:.0f} + {1000 * after:.0f} ms on {threads:.2f} threads, "
        f"model {1000 * model:.0f} ms, rest {1000 * rest:.0f} ms; CPU time of the other programs {1000 * overhead:.0f} ms"
    )
    return Machine(name="here", cores=cores, model_threads=cores, work={TOOL: work})


def core_count():
    from os import sched_getaffinity

    return len(sched_getaffinity(0))


def measure_full_load(trial, people, machine):
    """Returns the machine with a `barrier` that gives the measured throughput under full load, and that throughput.

    If no barrier does, the speed of the machine has changed since the single jobs; then all times are scaled.
    """
    begun, problems = trial.number("select extract(epoch from now())"), []
    end = time.monotonic() + FULL_LOAD_SECONDS

    def submit_until_end(person):
        try:
            while time.monotonic() < end:
                submit(person, waits=True)
        except (Problem, OSError) as problem:
            problems.append(problem)

    threads = [threading.Thread(target=submit_until_end, args=(people[number % len(people)],)) for number in range(2 * SLOTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    # Skips the start, until all slots are in use.
    within = f"finished_at between to_timestamp({begun + 3}) and to_timestamp({begun + FULL_LOAD_SECONDS})"
    done = trial.number(f"select count(*) from jobs where {within}")
    throughput = done / (FULL_LOAD_SECONDS - 3)
    fitted = min((replace(machine, barrier=step / 20) for step in range(20, 81)), key=lambda one: abs(saturated(one) - throughput))
    work, pace = fitted.work[TOOL], saturated(fitted) / throughput
    if abs(pace - 1) > 0.03:
        work = replace(work, before=work.before * pace, model=work.model * pace, after=work.after * pace, overhead=work.overhead * pace)
        fitted = replace(fitted, work={TOOL: work})
    line(f"  full load: {throughput:.2f} jobs per second; barrier {fitted.barrier:.2f}, all times scaled by {pace:.2f}")
    return fitted, throughput


def saturated(machine, jobs=200):
    """Returns the simulated jobs per second under full load."""
    arrivals = [Arrival(0.0, TOOL, "paid", number) for number in range(jobs)]
    return Simulation(machine, slots=SLOTS, seed=7).run(arrivals).throughput


def apply_load(trial, people, arrivals):
    """Submits a job for each arrival. Returns the jobs from the database, and their actual arrivals."""
    start = trial.sql("select now()")
    started, problems = time.monotonic(), []

    def submit_one(arrival):
        try:
            submit(people[arrival.owner])
        except (Problem, OSError) as problem:
            problems.append(problem)

    threads = []
    for arrival in arrivals:
        time.sleep(max(0.0, started + arrival.at - time.monotonic()))
        threads.append(threading.Thread(target=submit_one, args=(arrival,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    while unfinished(trial):
        time.sleep(1)
    jobs = trial.row(
        f"""json_agg(json_build_object('at', extract(epoch from created_at), 'started', extract(epoch from started_at),
                     'ended', extract(epoch from finished_at), 'owner', owner_id) order by created_at) as jobs
            from jobs where created_at > '{start}'"""
    )["jobs"]
    expect(len(jobs) == len(arrivals), "Every job is done", (len(jobs), len(arrivals)))
    first, owners = jobs[0]["at"], sorted({job["owner"] for job in jobs})
    return jobs, [Arrival(job["at"] - first, TOOL, "paid", owners.index(job["owner"])) for job in jobs]


def simulated(machine, arrivals):
    """Simulates the arrivals several times, because the factors of the jobs are random."""
    return [Simulation(machine, slots=SLOTS, seed=seed).run(arrivals) for seed in range(SEEDS)]


def compare(jobs, reports):
    waits = sorted(job["started"] - job["at"] for job in jobs)
    runs = sorted(job["ended"] - job["started"] for job in jobs)
    throughput = len(jobs) / (max(job["ended"] for job in jobs) - jobs[0]["at"])
    mean = lambda of: statistics.fmean(of(report) for report in reports)  # noqa: E731
    rows = [
        ("jobs per second", throughput, mean(lambda report: report.throughput), True),
        ("wait, mean, s", statistics.fmean(waits), mean(lambda report: statistics.fmean(report.waits())), False),
        ("wait, p50, s", percentile(waits, 0.5), mean(lambda report: percentile(report.waits(), 0.5)), False),
        ("wait, p95, s", percentile(waits, 0.95), mean(lambda report: percentile(report.waits(), 0.95)), True),
        ("run, p50, s", percentile(runs, 0.5), mean(lambda report: percentile(report.runs(), 0.5)), False),
        ("run, p95, s", percentile(runs, 0.95), mean(lambda report: percentile(report.runs(), 0.95)), False),
    ]
    line(f"  {len(jobs)} jobs           measured  simulated  difference")
    passed = True
    for name, measured, expected, is_required in rows:
        difference = expected / measured - 1 if measured else 0.0
        is_close = abs(difference) <= TOLERANCE
        passed &= is_close or not is_required
        verdict = "" if not is_required else "  within 15%" if is_close else "  OFF BY MORE THAN 15%"
        line(f"  {name:16} {measured:12.3f} {expected:10.3f} {difference:+10.1%}{verdict}")
    return passed
