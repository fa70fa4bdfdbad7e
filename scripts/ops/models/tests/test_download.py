import contextlib
import hashlib
import io
import tempfile
import unittest
from pathlib import Path

from common.say import Problem
from ops.models.download import PAUSES_SECONDS, Refused, download

from .shop import Shop

DATA = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(DATA).hexdigest()


class DownloadTest(unittest.TestCase):
    def setUp(self):
        self.shop = Shop()
        self.addCleanup(self.shop.close)
        self.shop.goods["/file"] = DATA
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.target = Path(folder.name) / "file"
        self.part = self.target.with_name("file.part")
        self.slept = []

    def download(self, url=None):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                download(url or f"{self.shop.url}/file", SHA256, self.target, "A file", sleep=self.slept.append)
            finally:
                self.said = said.getvalue()

    def assert_here(self):
        self.assertEqual(self.target.read_bytes(), DATA)
        self.assertFalse(self.part.exists())

    def test_a_file_arrives_whole(self):
        self.download()
        self.assert_here()
        self.assertEqual(self.shop.ranges("/file"), [None])

    def test_what_breaks_off_goes_on_where_it_ended(self):
        self.shop.break_after = [300_000, 1000]
        self.download()
        self.assert_here()
        self.assertEqual(self.shop.ranges("/file"), [None, "bytes=300000-", "bytes=301000-"])
        self.assertIn("A file: broke off at 0.3 MB (the connection was closed); going on in 1 s", self.said)
        self.assertEqual(self.slept, [1, 1], "what brings something starts the pauses anew")

    def test_a_later_run_goes_on_where_an_earlier_one_ended(self):
        self.part.write_bytes(DATA[:200_000])
        self.download()
        self.assert_here()
        self.assertEqual(self.shop.ranges("/file"), ["bytes=200000-"])
        self.assertIn("A file: going on at 0.2 MB", self.said)

    def test_a_part_that_is_whole_is_only_checked(self):
        self.part.write_bytes(DATA)
        self.download()
        self.assert_here()

    def test_a_server_without_ranges_sends_everything_again(self):
        self.shop.knows_ranges = False
        self.part.write_bytes(DATA[:200_000])
        self.download()
        self.assert_here()

    def test_a_damaged_part_is_replaced(self):
        self.part.write_bytes(b"x" * 200_000)
        self.download()
        self.assert_here()
        self.assertEqual(self.shop.ranges("/file"), ["bytes=200000-", None])

    def test_another_file_than_expected_is_thrown_away(self):
        self.shop.goods["/file"] = b"another"
        actual = hashlib.sha256(b"another").hexdigest()
        with self.assertRaisesRegex(Problem, f"A file from 127.0.0.1 has the sha256 {actual}, expected was {SHA256}"):
            self.download()
        self.assertFalse(self.part.exists() or self.target.exists())

    def test_a_server_that_keeps_failing_is_given_up_and_the_part_kept(self):
        self.shop.break_after = [100_000] + [0] * len(PAUSES_SECONDS)
        with self.assertRaisesRegex(Problem, "could not be downloaded from 127.0.0.1: .*0.1 MB are kept; run this again"):
            self.download()
        self.assertEqual(self.part.stat().st_size, 100_000)
        self.assertEqual(self.slept, list(PAUSES_SECONDS))

    def test_a_busy_server_is_asked_again(self):
        self.shop.status = 503
        with self.assertRaisesRegex(Refused, "cannot be reached: the server answered 503 Service Unavailable"):
            self.download()
        self.assertEqual(len(self.shop.asked), 1 + len(PAUSES_SECONDS))

    def test_a_refusal_is_not_asked_again(self):
        with self.assertRaisesRegex(Refused, "127.0.0.1 answered 404 Not Found"):
            self.download(f"{self.shop.url}/nothing")
        self.assertEqual(self.slept, [])

    def test_ctrl_c_says_what_is_kept(self):
        self.part.write_bytes(DATA[:200_000])

        def interrupted(request, timeout):
            raise KeyboardInterrupt

        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(KeyboardInterrupt):
            download(f"{self.shop.url}/file", SHA256, self.target, "A file", interrupted)
        self.assertIn("A file: 0.2 MB are kept; the next fetch goes on from there", said.getvalue())
