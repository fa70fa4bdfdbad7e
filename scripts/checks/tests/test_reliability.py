import contextlib
import socket
import subprocess
import threading
import unittest

from checks.reliability import proxy
from checks.reliability.report import Numbers, longest_pause, recovery, table
from checks.reliability.scenarios import SCENARIOS
from common.config import REPO
from devstack.sandbox import free_ports
from devstack.trial import until

SILENCE_SECONDS = 0.3


def echo(server):
    """Echoes every connection until its end."""

    def serve(connection):
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(1024):
                connection.sendall(data)

    with contextlib.suppress(OSError):
        while True:
            threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


class ProxyTest(unittest.TestCase):
    def setUp(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        threading.Thread(target=echo, args=(server,), daemon=True).start()
        self.control, self.port = free_ports(2)
        command = proxy.command(self.control, {"echo": (self.port, server.getsockname()[1])})
        process = subprocess.Popen(command, cwd=REPO / "scripts")
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until(lambda: self.answers(None), "the proxy listens", 30)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        self.addCleanup(connection.close)
        return connection

    def answers(self, connection, text=b"hello"):
        """Returns whether the echo of `text` arrives soon, on a new connection if there is none."""
        try:
            connection = connection or self.connect()
            connection.sendall(text)
            connection.settimeout(SILENCE_SECONDS)
            return connection.recv(1024) == text
        except TimeoutError:
            return False
        except OSError:
            return None

    def set(self, mode):
        proxy.send(self.control, "echo", mode)

    def test_a_refused_server_resets_connections_and_accepts_none(self):
        open_one = self.connect()
        self.assertTrue(self.answers(open_one))
        self.set("refuse")
        with self.assertRaises(ConnectionError):
            open_one.sendall(b"x") or open_one.recv(1)
        with self.assertRaises(ConnectionRefusedError):
            self.connect()
        self.set("pass")
        self.assertTrue(self.answers(None))

    def test_a_hung_server_accepts_and_continues_later(self):
        open_one = self.connect()
        self.assertTrue(self.answers(open_one))
        self.set("hang")
        new = self.connect()
        self.assertEqual([self.answers(open_one, b"one"), self.answers(new, b"two")], [False, False])
        self.set("pass")
        for connection, text in ((open_one, b"one"), (new, b"two")):
            connection.settimeout(10)
            self.assertEqual(connection.recv(1024), text)

    def test_half_open_connections_stay_silent_for_good(self):
        open_one = self.connect()
        self.assertTrue(self.answers(open_one))
        self.set("half-open")
        self.assertTrue(self.answers(None))
        self.set("pass")
        self.assertIs(self.answers(open_one), False)

    def test_dropped_connections_can_be_made_again(self):
        open_one = self.connect()
        self.assertTrue(self.answers(open_one))
        self.set("drop")
        self.assertIsNone(self.answers(open_one))
        self.assertTrue(self.answers(None))

    def test_an_unknown_command_is_refused(self):
        for name, mode in (("echo", "explode"), ("nobody", "pass")):
            with self.assertRaises(ValueError):
                proxy.send(self.control, name, mode)


class ReportTest(unittest.TestCase):
    def numbers(self, **changed):
        usual = {
            "submitted": 300,
            "done": 300,
            "failed": 0,
            "paid_without_result": 0,
            "results_without_debit": 0,
            "flows_after": {"Postgres": 2.0},
            "pause": 1.0,
            "p99": 2.5,
            "audit": "",
        }
        return Numbers(**usual | changed)

    def test_kept_promises_have_no_violations(self):
        self.assertEqual(self.numbers().violations(5, 5, 30), [])

    def test_each_broken_promise_is_named(self):
        for changed in (
            {"done": 299},
            {"failed": 1, "done": 299},
            {"paid_without_result": 1},
            {"results_without_debit": 1},
            {"flows_after": {"S3": 5.1}},
            {"flows_after": {"S3": None}},
            {"pause": 5.1},
            {"p99": 30.1},
            {"audit": "Found 1 problem."},
            {"broken": ["The upload had no answer"]},
        ):
            self.assertEqual(len(self.numbers(**changed).violations(5, 5, 30)), 1, changed)

    def test_waits_are_allowed_where_a_dependency_is_away(self):
        self.assertEqual(self.numbers(pause=60, p99=70).violations(5), [])

    def test_work_flows_when_half_of_the_rate_is_finished(self):
        before, trickle = [1, 2, 3], [100 + number for number in range(10)]
        flood = [120 + number / 10 for number in range(100)]
        self.assertEqual(recovery(before + trickle + flood, since=95, rate=10), 25)
        self.assertEqual(recovery(flood, since=120, rate=10), 0)

    def test_a_trickle_is_no_flow(self):
        self.assertIsNone(recovery([10 + 2 * number for number in range(50)], since=5, rate=10))

    def test_no_work_is_no_flow(self):
        self.assertIsNone(recovery([1, 2, 3], since=5, rate=10))

    def test_the_last_jobs_need_not_fill_a_window(self):
        self.assertEqual(recovery([1, 8, 9], since=5, rate=10), 3)

    def test_the_longest_pause_includes_both_ends(self):
        self.assertEqual(longest_pause([4, 5, 6], 0, 7), 4)
        self.assertEqual(longest_pause([1, 2], 0, 9), 7)

    def test_a_table_has_a_row_for_each_scenario(self):
        rows = table({"kills": self.numbers().record([])}).splitlines()
        self.assertEqual(len(rows), 3)
        self.assertIn("| `kills` | 300 of 300 | 0 | 0 | 0 | 0 | 2.0 s | 1.0 s | clean |", rows)


class ScenarioTest(unittest.TestCase):
    def test_names_are_unique(self):
        names = [scenario.name for scenario in SCENARIOS]
        self.assertEqual(len(names), len(set(names)))
