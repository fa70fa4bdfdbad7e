import contextlib
import io
import unittest
from unittest import mock

from common.console import Problem
from ops.capacity import main


class ArgumentsTest(unittest.TestCase):
    def refusal(self, *arguments):
        with mock.patch("sys.argv", ["capacity", *arguments]), contextlib.redirect_stderr(io.StringIO()) as errors:
            with self.assertRaises((Problem, SystemExit)) as refused:
                main.main(None)
        return errors.getvalue() + str(refused.exception)

    def test_numbers_that_make_no_sense_are_refused(self):
        for number in ("0", "-4", "nan", "inf", "many", ""):
            self.assertIn("is not TOOL[:TIER]=NUMBER", self.refusal("plan", f"upscale={number}"))
        for option in ("--workers", "--slots", "--seconds", "--model-ms"):
            self.assertIn("0 is not a", self.refusal("simulate", "upscale=1", option, "0"))
        self.assertIn("nan is not a number above zero", self.refusal("check", "--load", "nan"))
        self.assertIn("0.5 is not a whole number above zero", self.refusal("plan", "upscale=1", "--slots", "0.5"))
