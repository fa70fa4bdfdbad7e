import contextlib
import io
import unittest

from checks import lint
from common.console import Problem


class LintTest(unittest.TestCase):
    def test_a_check_that_cannot_run_fails_and_the_next_one_runs(self):
        def broken():
            raise Problem("Git is missing.")

        with contextlib.redirect_stdout(io.StringIO()) as output:
            passed = lint.outcomes([("broken", lint.findings_of(broken)), ("good", lint.findings_of(list))])
        self.assertEqual(passed, [False, True])
        self.assertIn("Git is missing.", output.getvalue())
