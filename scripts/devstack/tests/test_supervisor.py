import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

from common.console import Problem
from devstack import processes, services
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
