"""A complete Retouch for proofs and benchmarks: real processes, tiny models, users with credits."""

import http.client
import json
import os
import signal
import struct
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import zlib
from dataclasses import asdict, dataclass, replace

from common.addresses import POSTGRES_DATABASE
from common.config import PROGRAMS, REPO
from common.console import Problem, took

from . import build, services
from .postgres import Postgres

# Per-user limits would distort the results.
WITHOUT_USER_LIMITS = {
    "RETOUCH_USER_RUNS_PER_MINUTE": "1000000",
    "RETOUCH_USER_UPLOADS_PER_MINUTE": "1000000",
}


class Broken(Problem):
    """A claim that does not hold."""


def expect(holds, claim, found):
    if not holds:
        raise Broken(f"{claim}. Found: {found}")


@dataclass
class Person:
    api: str
    token: str
    image: str


class Trial:
    def __init__(self, sandbox, settings, workers=1):
        self.settings = sandbox.settings
        self.supervisor = sandbox.supervisor
        # Proofs kill Postgres, which must not lose data; benchmarks include the cost of fsync.
        self.settings.throw_away = False
        own = {"RETOUCH_MODELS_DIR": str(REPO / "models" / "tiny"), "RETOUCH_DEVICE": "cpu"}
        self.settings.values |= own | WITHOUT_USER_LIMITS | settings
        given = self.settings.get("ORT_DYLIB_PATH")
        planned = services.plan(self.settings, given or build.runtime_library(self.settings, REPO / "scripts" / "models"))
        self.api = self.settings.api_url
        self.postgres = Postgres(self.settings)
        self.supervisor.start(self.arrange(planned, workers))

    def arrange(self, planned, workers):
        """Returns the services to start, in order, with so many workers."""
        *others, worker = planned
        return [*others, *(self.numbered(worker, number) for number in range(1, workers + 1))]

    def numbered(self, worker, number):
        """Returns the service of one of several workers; it is ready when all workers up to this one are."""
        if number == 1:
            return replace(worker, environment={**worker.environment, "RETOUCH_WORKER_NAME": "worker-1"})
        environment = {**worker.environment, "RETOUCH_WORKER_NAME": f"worker-{number}"}
        ready = lambda: len((services.get_json(f"{self.settings.api_url}/readyz") or {}).get("workers", [])) >= number
        name, label = f"worker-{number}", f"Worker {number}"
        return replace(worker, name=name, label=label, environment=environment, ready=ready)

    # Processes.

    def running(self, name):
        return next(running for running in self.supervisor.running if running.service.name == name)

    def stop(self, name, number=signal.SIGTERM):
        process = self.running(name).process
        process.send_signal(number)
        process.wait(timeout=60)

    def restart(self, name, *more):
        """Restarts a service with `more` arguments."""
        running = self.running(name)
        service, command = running.service, running.service.command
        fresh = self.supervisor.spawn(replace(service, command=lambda: [*command(), *more]))
        vars(running).update(vars(fresh))
        self.supervisor.wait_until_ready(running)

    def log(self, name):
        return (self.settings.logs / f"{name}.log").read_text(errors="replace")

    def is_ready(self):
        return services.get(f"{self.api}/readyz") is not None

    def program(self, *command):
        """Runs a program with the environment of the API. Returns its exit status and its output."""
        command = [PROGRAMS / command[0], *command[1:]]
        ended = subprocess.run(
            [str(part) for part in command],
            env=self.running("api").service.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return ended.returncode, ended.stdout.strip()

    # The database.

    def sql(self, statement):
        return self.postgres.psql(statement, database=POSTGRES_DATABASE).strip()

    def number(self, statement):
        return float(self.sql(statement) or 0)

    def row(self, columns):
        return json.loads(self.sql(f"select row_to_json(one) from (select {columns}) one"))

    # Users.

    def people(self, count, size=(64, 48)):
        """Creates users, each with an image of this size and more credits than they can spend."""
        emails = [f"person-{number}@example.test" for number in range(count)]
        environment = {**os.environ, **services.oidc_environment(self.settings)}
        command = ["node", str(REPO / "standins" / "oidc" / "token.mjs"), *emails]
        made = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        picture = png(*size)
        people = [Person(self.api, token, upload(self.api, token, picture)) for token in made.stdout.split()]
        self.sql("insert into ledger (user_id, kind, amount, reference) select id, 'admin', 1000000, 'trial ' || id from users")
        return people

    def visit(self, picture, headers=None, source="127.0.0.1"):
        """Submits a run as a visitor from an address of this machine, without waiting for its result."""
        body, kind = form(picture)
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.api).netloc, timeout=60, source_address=(source, 0))
        try:
            headers = {"Content-Type": kind, "Prefer": "respond-async", **(headers or {})}
            connection.request("POST", "/api/free/remove-bg-fr", body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers
        finally:
            connection.close()

    def begin_load(self, people, **options):
        """Starts `retouch-standins load`. A person who occurs n times in `people` runs n jobs at a time."""
        users = self.settings.run / "users.json"
        users.touch(mode=0o600)
        users.write_text(json.dumps([asdict(person) for person in people]))
        command = [str(PROGRAMS / "retouch-standins"), "load", "--users", str(users)]
        command += [part for name, value in options.items() for part in (f"--{name}", str(value))]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    def load(self, people, **options):
        return report_of(self.begin_load(people, **options))


def report_of(load):
    printed, _ = load.communicate()
    if load.returncode:
        raise Problem(f"retouch-standins load exited with status {load.returncode}; see its output above.")
    return json.loads(printed)


def until(holds, what, seconds=60):
    """Waits until `holds()` is true."""
    started = time.monotonic()
    while not holds():
        if time.monotonic() - started > seconds:
            raise Broken(f"Not within {took(seconds)}: {what}")
        time.sleep(0.05)


def post(address, headers, body=b""):
    """Returns the status and the JSON body of the response."""
    request = urllib.request.Request(address, body, headers)
    try:
        with services.DIRECT.open(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def upload(api, token, picture):
    """Returns the id of the new image."""
    body, kind = form(picture)
    status, image = post(f"{api}/api/images/upload", {"Authorization": f"Bearer {token}", "Content-Type": kind}, body)
    expect(status == 201, "An image can be uploaded", (status, image))
    return image["id"]


def form(picture, **fields):
    """Returns the body and the content type of a form with text fields and a picture."""
    line = uuid.uuid4().hex
    texts = "".join(f'--{line}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields.items())
    head = f'--{line}\r\nContent-Disposition: form-data; name="file"; filename="picture.png"\r\nContent-Type: image/png\r\n\r\n'
    return (texts + head).encode() + picture + f"\r\n--{line}--\r\n".encode(), f"multipart/form-data; boundary={line}"


def png(width, height):
    """Returns a PNG with a disk in it."""

    def color(x, y):
        inside = (2 * x - width) ** 2 + (2 * y - height) ** 2 < min(width, height) ** 2 // 2
        return (220, 40, 40) if inside else (x * 255 // width, y * 255 // height, 128)

    return encoded(width, height, 2, color)


def mask(width, height):
    """Returns a gray PNG with a white rectangle in the middle."""
    return encoded(width, height, 0, lambda x, y: (255 * (width // 3 < x < width // 2 and height // 3 < y < height // 2),))


def encoded(width, height, color_type, color):
    """Returns a PNG whose pixel at (x, y) has the samples `color(x, y)`."""
    rows = b"".join(b"\0" + bytes(sample for x in range(width) for sample in color(x, y)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in parts)


def commented(picture, comment):
    """Returns the same picture with a comment, so that its hash differs."""
    end = len(picture) - 12
    return picture[:end] + chunk(b"tEXt", b"Comment\0" + comment.encode()) + picture[end:]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
