import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from common.console import Problem
from devstack import processes, services, supervisor
from devstack.supervisor import Supervisor, stop_leftovers


class SupervisorTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        home = Path(folder.name)
        self.settings = SimpleNamespace(run=home / "run", logs=home / "logs", home=home)
        self.supervisor = Supervisor(self.settings)
        self.addCleanup(self.quietly, self.supervisor.stop)

    def quietly(self, call, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            call(*arguments)
        return output.getvalue()

    def service(self, code, **more):
        return services.Service("thing", "The thing", lambda: [sys.executable, "-c", code], lambda: True, dict(os.environ), **more)

    def start(self, code="import time; time.sleep(60)", **more):
        self.quietly(self.supervisor.start, [self.service(code, **more)])
        return self.supervisor.running[0]

    def test_a_killed_service_is_restarted(self):
        running = self.start()
        first = running.process
        running.backoff = 0.1
        first.kill()
        first.wait()
        output = self.quietly(self.supervisor.restart_if_ended, running)
        self.assertIn("The thing was killed by SIGKILL", output)
        time.sleep(0.15)
        self.quietly(self.supervisor.restart_if_ended, running)
        self.assertNotEqual(running.process.pid, first.pid)
        self.assertTrue(running.record.alive)

    def test_the_backoff_grows(self):
        running = self.start("raise SystemExit(1)")
        running.process.wait()
        self.quietly(self.supervisor.restart_if_ended, running)
        self.assertEqual(running.backoff, 2)

    def test_stop_ends_services_and_deletes_their_records(self):
        running = self.start()
        self.quietly(self.supervisor.stop)
        self.assertEqual(running.process.returncode, -signal.SIGTERM)
        self.assertEqual(processes.remembered(self.settings.run), [])

    def test_a_service_that_ignores_its_signal_is_killed(self):
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('deaf', 'w'); time.sleep(60)"
        running = self.start(code, stop_seconds=0.2, options={"cwd": self.settings.home})
        while not (self.settings.home / "deaf").exists():
            time.sleep(0.02)
        self.quietly(self.supervisor.stop)
        self.assertEqual(running.process.returncode, -signal.SIGKILL)

    def test_a_service_that_exits_during_startup_shows_its_log(self):
        service = self.service("print('no such model'); raise SystemExit(3)")
        service.ready = lambda: False
        with self.assertRaisesRegex(Problem, "(?s)exited with status 3 during startup.*no such model"):
            self.quietly(self.supervisor.start, [service])

    def test_a_service_has_its_own_time_to_start(self):
        service = self.service("import time; time.sleep(60)", start_seconds=0.1)
        service.ready = lambda: False
        with self.assertRaisesRegex(Problem, "did not become ready within 0.1 s"):
            self.quietly(self.supervisor.start, [service])

    def test_a_slow_start_says_what_it_waits_for(self):
        service = self.service("import time; time.sleep(60)", start_work="loading its models")
        ready_at = time.monotonic() + 0.5
        service.ready = lambda: time.monotonic() > ready_at
        with mock.patch.object(supervisor, "REMINDER_SECONDS", 0.1):
            output = self.quietly(self.supervisor.start, [service])
        reminder = rf"The thing is still loading its models \(0\.\d s; see tail -f {self.settings.logs}/thing\.log\)"
        self.assertGreater(len(re.findall(reminder, output)), 1, output)

    def test_a_supervisor_has_time_to_stop_every_service(self):
        planned = [self.service("", stop_seconds=seconds) for seconds in (30, 615)]
        self.assertGreater(supervisor.seconds_to_stop(planned), 645)

    def test_leftovers_are_stopped_other_processes_are_not(self):
        mine, foreign = (subprocess.Popen(["sleep", "60"], start_new_session=True) for _ in range(2))
        self.addCleanup(foreign.wait)
        self.addCleanup(foreign.kill)
        processes.remember(self.settings.run, "mine", mine.pid)
        record = processes.remember(self.settings.run, "reused", foreign.pid)
        # A reused pid: same number, different start time.
        path = self.settings.run / "reused.json"
        path.write_text(path.read_text().replace(str(record.started), str(record.started - 1)))
        self.assertEqual(stop_leftovers(self.settings), ["mine"])
        self.assertEqual(mine.wait(5), -signal.SIGTERM)
        self.assertIsNone(foreign.poll())

    def test_a_port_in_use_is_reported_with_its_variable(self):
        import socket

        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            with self.assertRaisesRegex(Problem, f"Port {port} is in use.*RETOUCH_PORT={port + 1}"):
                services.check_port(port, "RETOUCH_PORT")
