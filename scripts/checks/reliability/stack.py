"""A complete Retouch that can be hurt: its dependencies are behind the fault proxy, and ended programs are restarted."""

import os
import signal
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from common.config import REPO
from common.console import Problem, line
from devstack.sandbox import free_ports
from devstack.services import Service
from devstack.trial import Trial, until

from . import proxy

# How long a container engine or systemd waits before it starts an ended program again.
RESTART_SECONDS = 1
REVIVALS = 20


class Stack(Trial):
    def __init__(self, sandbox, settings, worker_settings=(), workers=2):
        """`worker_settings` are settings of single workers: one dict for each of the first ones."""
        self.worker_settings = worker_settings
        taken = set(sandbox.environment.values())
        self.control, *listen = [port for port in free_ports(16) if str(port) not in taken][:4]
        ports = (sandbox.settings.postgres_port, sandbox.settings.redis_port, sandbox.settings.s3_port)
        self.routes = dict(zip(("postgres", "redis", "s3"), zip(listen, ports)))
        # When each dependency returned: (name, time).
        self.returns = []
        self.notes, self.broken = [], []
        super().__init__(sandbox, settings, workers)

    def arrange(self, planned, workers):
        *others, api, worker = planned
        fleet = [self.numbered(self.behind_proxy(worker), number) for number in range(1, workers + 1)]
        for number, settings in enumerate(self.worker_settings):
            fleet[number] = replace(fleet[number], environment={**fleet[number].environment, **settings})
        return [*others, self.proxy_service(), self.behind_proxy(api), *fleet]

    def proxy_service(self):
        return Service(
            name="proxy",
            label="The fault proxy",
            command=lambda: proxy.command(self.control, self.routes),
            ready=lambda: is_open(self.control),
            environment=dict(os.environ),
            options={"cwd": REPO / "scripts"},
        )

    def behind_proxy(self, service):
        environment = dict(service.environment)
        for variable in ("DATABASE_URL", "REDIS_URL", "S3_ENDPOINT"):
            for listen, port in self.routes.values():
                environment[variable] = environment[variable].replace(f"127.0.0.1:{port}", f"127.0.0.1:{listen}")
        return replace(service, environment=environment)

    # Faults.

    def network(self, name, mode):
        """Sets a mode of the proxy (see `proxy.MODES`) for `postgres`, `redis` or `s3`."""
        proxy.send(self.control, name, mode)

    def away(self, name, mode, seconds):
        """Sets a mode, waits, and ends it."""
        self.network(name, mode)
        time.sleep(seconds)
        self.network(name, "pass")

    def returned(self, name):
        """Records that from now on paid work must flow again."""
        self.returns.append((name, time.time()))

    def kill(self, name):
        self.running(name).process.kill()

    def revive(self, name):
        """Starts a killed server again, as often as it takes: Postgres refuses while its orphans still end."""
        self.running(name).process.wait(timeout=60)
        for _ in range(REVIVALS):
            try:
                return self.restart(name)
            except Problem:
                time.sleep(0.2)
        raise Problem(f"{name} could not be started again; log: {self.settings.logs / name}.log")

    def signal_postgres(self, number):
        """Signals every process of Postgres."""
        for pid in family(self.running("postgres").process.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def pause_postgres(self, seconds):
        self.signal_postgres(signal.SIGSTOP)
        time.sleep(seconds)
        self.signal_postgres(signal.SIGCONT)

    def expect(self, holds, claim, found):
        """Records a broken promise and continues."""
        if not holds:
            self.broken.append(f"{claim}; found: {found}")

    def wait_for_done(self, jobs, seconds=60):
        until(lambda: self.number("select count(*) from jobs where state = 'done'") >= jobs, f"{jobs} jobs are done", seconds)


class Keeper:
    """Starts ended services again, like a container engine."""

    def __init__(self, stack, names):
        self.stack, self.names = stack, set(names)
        self.restarts = 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.keep, daemon=True)

    def keep(self):
        ended = {}
        while not self.stopped.wait(0.1):
            for name in sorted(self.names):
                running = self.stack.running(name)
                if running.process.poll() is None:
                    continue
                if time.monotonic() - ended.setdefault(name, time.monotonic()) < RESTART_SECONDS:
                    continue
                del ended[name]
                try:
                    vars(running).update(vars(self.stack.supervisor.spawn(running.service)))
                    self.restarts += 1
                except Problem as problem:
                    line(f"! {problem}")

    @contextmanager
    def without(self, *names):
        """Leaves these services alone meanwhile."""
        self.names -= set(names)
        yield
        self.names |= set(names)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()


def family(pid):
    """Returns the process and its descendants, parents first."""
    pids = [pid]
    for parent in pids:
        try:
            pids += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return pids


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
