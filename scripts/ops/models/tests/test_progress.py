import contextlib
import io
import unittest

from ops.models.progress import Progress


class ProgressTest(unittest.TestCase):
    def lines(self, total, seconds):
        now = 0.0
        progress = Progress("a model", 5_000_000, total, lambda: now)
        with contextlib.redirect_stderr(io.StringIO()) as output:
            for _ in range(seconds):
                now += 1
                progress.advance(1_000_000)
        return output.getvalue().splitlines()

    def test_a_line_is_printed_every_ten_seconds(self):
        self.assertEqual(self.lines(40_000_000, 25), ["  a model: 15.0 MB of 40.0 MB, 1.0 MB/s", "  a model: 25.0 MB of 40.0 MB, 1.0 MB/s"])

    def test_an_unknown_size_is_omitted(self):
        self.assertEqual(self.lines(None, 10), ["  a model: 15.0 MB, 1.0 MB/s"])
