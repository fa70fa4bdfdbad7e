"""Starts services, restarts those that die, and stops them in reverse order."""

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass

from common.config import REPO
from common.console import Problem, line, tail, took

from . import processes

# While a service starts slowly, a line says so this often.
REMINDER_SECONDS = 30
# The backoff doubles from the first value to the second. It resets after a service has run for HEALTHY_SECONDS.
MIN_BACKOFF_SECONDS = 1
MAX_BACKOFF_SECONDS = 30
HEALTHY_SECONDS = 60


@dataclass
class Running:
    service: object
    process: subprocess.Popen
    record: processes.Record
    started: float
    backoff: float = MIN_BACKOFF_SECONDS
    restart_at: float | None = None


class Stop(BaseException):
    """Raised by Ctrl-C, `scripts/down` or a closed terminal."""


class Supervisor:
    def __init__(self, settings):
        self.settings = settings
        self.running = []
        self.stop_signals = 0
        self.deferring = False

    def take_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.on_signal)

    def on_signal(self, _number, _frame):
        self.stop_signals += 1
        if self.stop_signals == 1 and not self.deferring:
            raise Stop

    @contextmanager
    def signals_deferred(self):
        """Defers signals, so that no process is started without being recorded."""
        self.deferring = True
        try:
            yield
        finally:
            self.deferring = False
        if self.stop_signals:
            raise Stop

    def start(self, services):
        for service in services:
            service.prepare()
            started = time.monotonic()
            with self.signals_deferred():
                running = self.spawn(service)
                self.running.append(running)
            self.wait_until_ready(running)
            service.finish()
            line(f"• {service.label} is ready ({took(time.monotonic() - started)})")

    def spawn(self, service):
        log = self.settings.logs / f"{service.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        options = {"cwd": REPO, **service.options}
        command = [str(part) for part in service.command()]
        try:
            with open(log, "ab") as output:
                process = subprocess.Popen(
                    command,
                    env=service.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C must only reach the supervisor, which stops the services in order.
                    start_new_session=True,
                    **options,
                )
        except OSError as error:
            raise Problem(f"Cannot start {command[0]}: {error.strerror}.") from error
        stop = {"stop_signal": int(service.stop_signal), "stop_seconds": service.stop_seconds}
        record = processes.remember(self.settings.run, service.name, process.pid, **stop)
        return Running(service, process, record, time.monotonic())

    def wait_until_ready(self, running):
        service = running.service
        log = self.settings.logs / f"{service.name}.log"
        started = time.monotonic()
        reminder = started + REMINDER_SECONDS
        while not service.ready():
            if running.process.poll() is not None:
                raise Problem(f"{service.label} {how_it_ended(running.process.returncode)} during startup. The end of {log}:\n\n{tail(log)}")
            now = time.monotonic()
            if now > started + service.start_seconds:
                raise Problem(f"{service.label} did not become ready within {service.start_seconds} s. The end of {log}:\n\n{tail(log)}")
            if now > reminder:
                line(f"  … {service.label} is still {service.start_work} ({took(now - started)}; see tail -f {log})")
                reminder = now + REMINDER_SECONDS
            time.sleep(0.05)

    def watch(self):
        """Restarts services that exit, until a signal raises `Stop`."""
        while True:
            for running in self.running:
                self.restart_if_ended(running)
            time.sleep(0.2)

    def restart_if_ended(self, running):
        now = time.monotonic()
        label = running.service.label
        if running.restart_at is None:
            if running.process.poll() is None:
                return
            if now - running.started > HEALTHY_SECONDS:
                running.backoff = MIN_BACKOFF_SECONDS
            running.restart_at = now + running.backoff
            line(
                f"! {label} {how_it_ended(running.process.returncode)}; restarting in {running.backoff} s "
                f"(log: {self.settings.logs / running.service.name}.log)"
            )
            running.backoff = min(running.backoff * 2, MAX_BACKOFF_SECONDS)
        elif now >= running.restart_at:
            try:
                with self.signals_deferred():
                    fresh = self.spawn(running.service)
                    running.process, running.record, running.started = fresh.process, fresh.record, fresh.started
            except Problem as problem:
                # A build may be replacing the program.
                line(f"! {problem}")
                running.restart_at = now + running.backoff
                return
            running.restart_at = None
            line(f"• {label} restarted")

    def stop(self):
        """Stops all services, newest first. A second Ctrl-C kills them."""
        for running in reversed(self.running):
            if running.process.poll() is None and running.record:
                if not processes.stop(running.record, force=self.forced(running.process)):
                    line(f"! {running.service.label} did not exit in time and was killed")
                running.process.wait()
            processes.forget(self.settings.run, running.service.name)

    def forced(self, process):
        def second_signal():
            process.poll()  # reaps the child if it has ended
            return self.stop_signals > 1

        return second_signal


def seconds_to_stop(services):
    """Returns how long `scripts/down` waits for a supervisor, which stops one service after the other."""
    return sum(service.stop_seconds for service in services) + 30


def how_it_ended(code):
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def stop_leftovers(settings):
    """Stops the processes of a supervisor that was killed. Returns their names."""
    names = []
    for record in processes.remembered(settings.run):
        if record.pid != os.getpid():
            processes.stop(record)
            names.append(record.name)
        processes.forget(settings.run, record.name)
    return names
