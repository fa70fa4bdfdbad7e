"""`scripts/up`: builds and starts Retouch on this machine."""

import argparse
import json
import os
import subprocess
import sys
import time

from common.config import REPO, load, read_dotenv
from common.console import Problem, line, took, warn

from . import build, prerequisites, processes, services
from .supervisor import Stop, Supervisor, seconds_to_stop, stop_leftovers


def main():
    options = arguments()
    settings = load()
    if options.supervise:
        return supervise(settings, options.runtime, options.lock)
    check_dotenv()
    check_owner(settings)
    lock = processes.take_lock(settings.run)
    if lock is None:
        return already_up(settings)
    started = time.monotonic()
    if leftovers := stop_leftovers(settings):
        line(f"• Stopped processes of an earlier start: {', '.join(leftovers)}")
    prerequisites.check()
    prerequisites.advise_heif()
    # Checked before the long build, so that a taken port is reported early.
    services.check_ports(services.plan(settings, runtime=""))
    runtime = build.build(settings)
    line(f"• Built everything ({took(time.monotonic() - started)}); starting")
    if options.detach:
        return start_detached(settings, runtime, lock)
    return supervise(settings, runtime, lock)


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/up",
        description="Builds and starts Retouch on this machine. See .env.example for the settings.",
    )
    parser.add_argument("--detach", action="store_true", help="return when Retouch is ready; stop it with scripts/down")
    parser.add_argument("--supervise", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--runtime", default="", help=argparse.SUPPRESS)
    parser.add_argument("--lock", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def check_dotenv():
    if "COMPOSE_FILE" in read_dotenv(REPO / ".env"):
        raise Problem(
            "The .env of this checkout is for Docker Compose; scripts/up needs other addresses. Move the file away, or use separate checkouts."
        )


def check_owner(settings):
    if settings.home.exists() and not os.access(settings.home, os.W_OK):
        raise Problem(f"Cannot write to {settings.home}. Run this as its owner, or set RETOUCH_HOME.")


def already_up(settings):
    supervisor = processes.recall(settings.run, "supervisor")
    if supervisor and supervisor.alive and ready_file(settings).exists():
        address = json.loads(ready_file(settings).read_text())["url"]
        line(f"Retouch is already running at {address}. Stop it with scripts/down.")
        return 0
    raise Problem("Another scripts/up is starting in this checkout. Wait for it, or stop it with Ctrl-C.")


def ready_file(settings):
    return settings.run / "ready"


def supervise(settings, runtime, lock):
    supervisor = Supervisor(settings)
    supervisor.take_signals()
    processes.remember(settings.run, "supervisor", os.getpid(), stop_seconds=150)
    detached = os.environ.get("RETOUCH_DETACHED") == "1"
    try:
        planned = services.plan(settings, runtime)
        processes.remember(settings.run, "supervisor", os.getpid(), stop_seconds=seconds_to_stop(planned))
        rotate_logs(settings, [*(service.name for service in planned), "migrate", "supervisor"])
        services.check_ports(planned)
        supervisor.start(planned)
        check_ready(settings)
        # `scripts/up --detach` waits until this file exists.
        ready_file(settings).write_text(json.dumps({"url": settings.public_url}))
        announce(settings, detached)
        supervisor.watch()
    except Stop:
        line("\n• Stopping …")
    finally:
        # From here on, a signal forces the services to stop instead of raising `Stop`.
        supervisor.stop_signals = max(supervisor.stop_signals, 1)
        ready_file(settings).unlink(missing_ok=True)
        supervisor.stop()
        processes.forget(settings.run, "supervisor")
        line(f"• Stopped. The data remains in {settings.home}")
        os.close(lock)
    return 0


def check_ready(settings):
    url = f"{settings.api_url}/readyz"
    deadline = time.monotonic() + 30
    while services.get(url) is None:
        if time.monotonic() > deadline:
            raise Problem(f"All services are running, but {url} does not answer. Logs: {settings.logs}")
        time.sleep(0.1)


def announce(settings, detached):
    if not detached:
        line(f"  Logs: {settings.logs}   Stop with Ctrl-C.")
    line(f"Retouch is ready at {settings.public_url}")
    if detached:
        log = os.open(settings.logs / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        # Closes the pipe, so that the waiting scripts/up returns.
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)


def rotate_logs(settings, names):
    """Keeps the logs of the previous start."""
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
        line("  Stop it with scripts/down.")
        return 0
    warn("Retouch did not start.")
    return child.wait() or 1
