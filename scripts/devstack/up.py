"""`scripts/up`: from a fresh clone to a running Retouch."""

import argparse
import fcntl
import json
import os
import subprocess
import sys
import time

from common.config import REPO, load, read_dotenv
from common.say import Problem, line, took, warn

from . import build, prerequisites, processes, services
from .supervisor import Stop, Supervisor, stop_leftovers


def main():
    options = arguments()
    settings = load()
    if options.supervise:
        return supervise(settings, options.runtime, options.lock)
    check_dotenv()
    check_owner(settings)
    lock = take_lock(settings)
    if lock is None:
        return already_up(settings)
    started = time.monotonic()
    left = stop_leftovers(settings)
    if left:
        line(f"• Stopped what an earlier start left behind: {', '.join(left)}")
    prerequisites.check()
    # Looked at before the long build, so that nobody waits for it in vain.
    services.check_ports(services.plan(settings, runtime=""))
    runtime = build.build(settings)
    line(f"• Everything is built ({took(time.monotonic() - started)}); starting it")
    if options.detach:
        return start_detached(settings, runtime, lock)
    return supervise(settings, runtime, lock)


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/up",
        description="Builds and starts Retouch on this machine. .env.example names the settings.",
    )
    parser.add_argument("--detach", action="store_true", help="return when it is ready; scripts/down stops it")
    parser.add_argument("--supervise", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--runtime", default="", help=argparse.SUPPRESS)
    parser.add_argument("--lock", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def check_dotenv():
    if "COMPOSE_FILE" in read_dotenv(REPO / ".env"):
        raise Problem(
            "The .env of this checkout is Docker Compose's, and its addresses are not those of scripts/up. "
            "Move it away, or use another checkout for one of the two."
        )


def check_owner(settings):
    if settings.home.exists() and not os.access(settings.home, os.W_OK):
        raise Problem(f"{settings.home} belongs to another user. Run this as that user, or set RETOUCH_HOME.")


def take_lock(settings):
    """Held as long as this checkout prepares or runs; the system gives it back however we end."""
    settings.run.mkdir(parents=True, exist_ok=True)
    lock = os.open(settings.run / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def already_up(settings):
    supervisor = processes.recall(settings.run, "supervisor")
    if supervisor and supervisor.alive and ready_file(settings).exists():
        address = json.loads(ready_file(settings).read_text())["url"]
        line(f"Retouch is running already, at {address}. scripts/down stops it.")
        return 0
    raise Problem("Another scripts/up is still preparing this checkout. Wait for it, or stop it with Ctrl-C.")


def ready_file(settings):
    return settings.run / "ready"


def supervise(settings, runtime, lock):
    supervisor = Supervisor(settings)
    supervisor.take_signals()
    processes.remember(settings.run, "supervisor", os.getpid(), stop_seconds=150)
    detached = os.environ.get("RETOUCH_DETACHED") == "1"
    try:
        planned = services.plan(settings, runtime)
        turn_logs(settings, [*(service.name for service in planned), "migrate", "supervisor"])
        services.check_ports(planned)
        supervisor.start(planned)
        check_ready(settings)
        # The word itself is the sign that scripts/up --detach waits for.
        ready_file(settings).write_text(json.dumps({"url": settings.public_url}))
        announce(settings, detached)
        supervisor.watch()
    except Stop:
        line("\n• Stopping …")
    finally:
        # What is stopped needs no second thought: from here on a signal only makes us impatient.
        supervisor.asked_to_stop = max(supervisor.asked_to_stop, 1)
        ready_file(settings).unlink(missing_ok=True)
        supervisor.stop()
        processes.forget(settings.run, "supervisor")
        line(f"• Everything is stopped; the data stays in {settings.home}")
        os.close(lock)
    return 0


def check_ready(settings):
    url = f"{settings.api_url}/readyz"
    deadline = time.monotonic() + 30
    while services.get(url) is None:
        if time.monotonic() > deadline:
            raise Problem(f"Everything runs, but {url} does not say so. Logs: {settings.logs}")
        time.sleep(0.1)


def announce(settings, detached):
    if not detached:
        line(f"  Logs: {settings.logs}   Ctrl-C stops everything.")
    line(f"Retouch is ready at {settings.public_url}")
    if detached:
        log = os.open(settings.logs / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        # Closing our end of the pipe lets the waiting scripts/up return.
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)


def turn_logs(settings, names):
    """Each start begins its logs anew and keeps those of the start before."""
    settings.logs.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = settings.logs / f"{name}.log"
        if path.exists():
            path.replace(path.with_suffix(".log.1"))


def start_detached(settings, runtime, lock):
    command = [sys.executable, REPO / "scripts" / "up", "--supervise", "--runtime", runtime, "--lock", str(lock)]
    child = subprocess.Popen(
        command,
        env={**os.environ, "RETOUCH_DETACHED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        pass_fds=[lock],
    )
    os.close(lock)
    try:
        for text in child.stdout:
            print(text, end="", flush=True)
    except KeyboardInterrupt:
        child.terminate()
        for text in child.stdout:
            print(text, end="", flush=True)
        raise
    if ready_file(settings).exists():
        line("  scripts/down stops it.")
        return 0
    warn("Retouch did not start.")
    return child.wait() or 1
