"""Starts the services, watches them, starts again what dies, and stops them in order."""

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass

from common.config import REPO
from common.say import Problem, line, tail, took

from . import processes

START_SECONDS = 120
FIRST_PAUSE_SECONDS = 1
LONGEST_PAUSE_SECONDS = 30
# Whoever ran this long before it died is started again at once, not after a longer pause.
HEALTHY_SECONDS = 60


@dataclass
class Running:
    service: object
    process: subprocess.Popen
    record: processes.Record
    started: float
    pause: float = FIRST_PAUSE_SECONDS
    again_at: float | None = None


class Stop(BaseException):
    """Somebody asked us to stop: Ctrl-C, `scripts/down` or a closed terminal."""


class Supervisor:
    def __init__(self, settings):
        self.settings = settings
        self.running = []
        self.asked_to_stop = 0
        self.holding = False

    def take_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.on_signal)

    def on_signal(self, _number, _frame):
        self.asked_to_stop += 1
        if self.asked_to_stop == 1 and not self.holding:
            raise Stop

    @contextmanager
    def signals_held(self):
        """No signal may come between the start of a process and the note that it is ours."""
        self.holding = True
        try:
            yield
        finally:
            self.holding = False
        if self.asked_to_stop:
            raise Stop

    def start(self, services):
        for service in services:
            service.prepare()
            started = time.monotonic()
            with self.signals_held():
                running = self.spawn(service)
                self.running.append(running)
            self.wait_until_ready(running)
            service.finish()
            line(f"• {service.label} is up ({took(time.monotonic() - started)})")

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
                    # Ctrl-C reaches only us; we stop the services in order.
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
        deadline = time.monotonic() + START_SECONDS
        while not service.ready():
            log = self.settings.logs / f"{service.name}.log"
            if running.process.poll() is not None:
                raise Problem(
                    f"{service.label} {how_it_ended(running.process.returncode)} while it started. "
                    f"The end of {log}:\n\n{tail(log)}"
                )
            if time.monotonic() > deadline:
                raise Problem(
                    f"{service.label} runs but did not become ready in {START_SECONDS} s. "
                    f"The end of {log}:\n\n{tail(log)}"
                )
            time.sleep(0.05)

    def watch(self):
        """Runs until a signal ends it. A service that ends is started again, each time after a longer pause."""
        while True:
            for running in self.running:
                self.look_after(running)
            time.sleep(0.2)

    def look_after(self, running):
        now = time.monotonic()
        label = running.service.label
        if running.again_at is None:
            if running.process.poll() is None:
                return
            if now - running.started > HEALTHY_SECONDS:
                running.pause = FIRST_PAUSE_SECONDS
            running.again_at = now + running.pause
            line(f"! {label} {how_it_ended(running.process.returncode)}; it starts again in {running.pause} s "
                 f"(log: {self.settings.logs / running.service.name}.log)")
            running.pause = min(running.pause * 2, LONGEST_PAUSE_SECONDS)
        elif now >= running.again_at:
            try:
                with self.signals_held():
                    fresh = self.spawn(running.service)
                    running.process, running.record, running.started = fresh.process, fresh.record, fresh.started
            except Problem as problem:
                # The program may be in the middle of being rebuilt.
                line(f"! {problem}")
                running.again_at = now + running.pause
                return
            running.again_at = None
            line(f"• {label} was started again")

    def stop(self):
        """Stops everything, the newest first. A second Ctrl-C does not wait for anybody."""
        for running in reversed(self.running):
            if running.process.poll() is None and running.record:
                gentle = processes.stop(running.record, impatient=self.is_impatient(running.process))
                if not gentle:
                    line(f"! {running.service.label} did not end by itself and was killed")
                running.process.wait()
            processes.forget(self.settings.run, running.service.name)

    def is_impatient(self, process):
        def impatient():
            process.poll()  # so that an ended child does not linger
            return self.asked_to_stop > 1

        return impatient


def how_it_ended(code):
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def stop_leftovers(settings):
    """Stops what an earlier start left behind because its supervisor was killed. Returns their names."""
    names = []
    for record in processes.remembered(settings.run):
        if record.pid != os.getpid():
            processes.stop(record)
            names.append(record.name)
        processes.forget(settings.run, record.name)
    return names
