import io
import unittest

from ops.models.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProgressTest(unittest.TestCase):
    def progress(self, out, total=40_000_000):
        self.now = 0.0
        return Progress("a model", 0, total, out, lambda: self.now)

    def advance(self, progress, seconds, size_bytes):
        self.now += seconds
        progress.advance(size_bytes)

    def test_a_terminal_shows_a_bar_with_speed_and_time_left(self):
        out = Terminal()
        progress = self.progress(out)
        self.advance(progress, 1, 10_000_000)
        self.assertIn("\r  ██████░░░░░░░░░░░░░░░░░░  10.0 of 40.0 MB  10.0 MB/s  3 s left  a model", out.getvalue())
        progress.close()
        self.assertTrue(out.getvalue().endswith("\n"))

    def test_without_a_terminal_a_line_is_printed_every_ten_seconds(self):
        out = io.StringIO()
        progress = self.progress(out)
        for _ in range(25):
            self.advance(progress, 1, 1_000_000)
        progress.close()
        self.assertEqual(
            out.getvalue(),
            "  a model: 10.0 of 40.0 MB  1.0 MB/s  30 s left\n  a model: 20.0 of 40.0 MB  1.0 MB/s  20 s left\n",
        )

    def test_the_speed_is_a_moving_average(self):
        progress = self.progress(io.StringIO())
        self.advance(progress, 1, 20_000_000)
        for _ in range(10):
            self.advance(progress, 1, 100_000)
        self.assertEqual(progress.figures(), "21.0 of 40.0 MB  0.1 MB/s  3 min 10 s left")

    def test_an_unknown_size_is_omitted(self):
        out = Terminal()
        progress = self.progress(out, None)
        self.advance(progress, 2, 3_000_000)
        self.assertIn("\r  3.0 MB  1.5 MB/s  a model", out.getvalue())
