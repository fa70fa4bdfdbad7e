import contextlib
import io
import os
import subprocess
import sys
import unittest
from unittest import mock

from checks import test
from checks.beside import Beside
from checks.counting import Counts
from common.console import Problem


def taken(beside):
    """Returns the result and the output."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        return beside.result(), output.getvalue()


class BesideTest(unittest.TestCase):
    def test_the_output_appears_with_the_result(self):
        def work():
            os.write(1, b"written\n")
            subprocess.run([sys.executable, "-c", "import sys; print('printed', file=sys.stderr)"], check=True)
            return 7

        self.assertEqual(taken(Beside(work)), (7, "written\nprinted\n"))

    def test_it_may_be_nice(self):
        self.assertEqual(taken(Beside(lambda: os.nice(0), niceness=3))[0], os.nice(0) + 3)

    def test_a_problem_is_raised_where_the_result_is_taken(self):
        def work():
            raise Problem("no network")

        with self.assertRaisesRegex(Problem, "no network"):
            taken(Beside(work))

    def test_a_killed_process_is_a_problem(self):
        with self.assertRaisesRegex(Problem, "ended without a result"):
            taken(Beside(lambda: os.kill(os.getpid(), 9)))


class PartsTest(unittest.TestCase):
    def setUp(self):
        self.running = []
        parts = {
            "lint": lambda: self.counts("lint", Counts(passed=1)),
            "rust": lambda: self.counts("rust", Counts(passed=2)),
            "ui": lambda: Counts(failed=3),
            "outages": lambda: self.counts("outages", Counts(passed=4)),
        }
        patch = mock.patch.object(test, "PARTS", parts)
        patch.start()
        self.addCleanup(patch.stop)

    def counts(self, name, counts):
        self.running.append(name)
        return counts

    def run_parts(self, chosen, beside):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return {name: counts for name, (counts, _) in test.run_parts(chosen, beside).items()}

    def test_a_part_beside_another_counts_like_every_part(self):
        found = self.run_parts(["lint", "ui", "rust", "outages"], {"ui": ("outages", 10)})
        self.assertEqual(list(found.items()), [("lint", Counts(1)), ("ui", Counts(0, 3)), ("rust", Counts(2)), ("outages", Counts(4))])
        self.assertEqual(self.running, ["lint", "rust", "outages"])

    def test_a_part_without_the_other_runs_in_turn(self):
        with mock.patch.object(test, "Beside", side_effect=AssertionError):
            found = self.run_parts(["lint", "ui"], {"ui": ("outages", 10)})
        self.assertEqual(found, {"lint": Counts(1), "ui": Counts(0, 3)})

    def test_a_part_that_dies_is_a_failure(self):
        test.PARTS["ui"] = lambda: os.kill(os.getpid(), 9)
        found = self.run_parts(["ui", "outages"], {"ui": ("outages", 10)})
        self.assertEqual(found, {"ui": Counts(failed=1), "outages": Counts(4)})


if __name__ == "__main__":
    unittest.main()
