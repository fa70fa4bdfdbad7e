import contextlib
import hashlib
import io
import tempfile
import unittest
from pathlib import Path

from common.console import Problem
from ops.models.download import BACKOFF_SECONDS, Refused, download

from .file_server import FileServer

DATA = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(DATA).hexdigest()


class DownloadTest(unittest.TestCase):
    def setUp(self):
        self.server = FileServer()
        self.addCleanup(self.server.close)
        self.server.files["/file"] = DATA
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.target = Path(folder.name) / "file"
        self.part = self.target.with_name("file.part")
        self.slept = []

    def download(self, url=None):
        with contextlib.redirect_stderr(io.StringIO()) as output:
            try:
                download(url or f"{self.server.url}/file", SHA256, self.target, "A file", sleep=self.slept.append)
            finally:
                self.output = output.getvalue()

    def assert_complete(self):
        self.assertEqual(self.target.read_bytes(), DATA)
        self.assertFalse(self.part.exists())

    def test_a_file_is_downloaded(self):
        self.download()
        self.assert_complete()
        self.assertEqual(self.server.ranges("/file"), [None])

    def test_an_interrupted_download_resumes(self):
        self.server.break_after = [300_000, 1000]
        self.download()
        self.assert_complete()
        self.assertEqual(self.server.ranges("/file"), [None, "bytes=300000-", "bytes=301000-"])
        self.assertIn("A file: interrupted at 0.3 MB (the connection was closed); resuming in 1 s", self.output)
        self.assertEqual(self.slept, [1, 1], "received data resets the backoff")

    def test_a_later_run_resumes(self):
        self.part.write_bytes(DATA[:200_000])
        self.download()
        self.assert_complete()
        self.assertEqual(self.server.ranges("/file"), ["bytes=200000-"])
        self.assertIn("A file: resuming at 0.2 MB", self.output)

    def test_a_complete_part_is_only_verified(self):
        self.part.write_bytes(DATA)
        self.download()
        self.assert_complete()

    def test_without_ranges_the_whole_file_is_downloaded_again(self):
        self.server.supports_ranges = False
        self.part.write_bytes(DATA[:200_000])
        self.download()
        self.assert_complete()

    def test_a_damaged_part_is_replaced(self):
        self.part.write_bytes(b"x" * 200_000)
        self.download()
        self.assert_complete()
        self.assertEqual(self.server.ranges("/file"), ["bytes=200000-", None])

    def test_a_file_with_a_wrong_checksum_is_discarded(self):
        self.server.files["/file"] = b"another"
        actual = hashlib.sha256(b"another").hexdigest()
        with self.assertRaisesRegex(Problem, f"A file from 127.0.0.1 has the sha256 {actual}; expected {SHA256}"):
            self.download()
        self.assertFalse(self.part.exists() or self.target.exists())

    def test_the_part_is_kept_if_the_server_keeps_failing(self):
        self.server.break_after = [100_000] + [0] * len(BACKOFF_SECONDS)
        with self.assertRaisesRegex(Problem, "Could not download A file from 127.0.0.1: .*Kept 0.1 MB; run this again"):
            self.download()
        self.assertEqual(self.part.stat().st_size, 100_000)
        self.assertEqual(self.slept, list(BACKOFF_SECONDS))

    def test_a_busy_server_is_retried(self):
        self.server.status = 503
        with self.assertRaisesRegex(Refused, "cannot reach 127.0.0.1: the server answered 503 Service Unavailable"):
            self.download()
        self.assertEqual(len(self.server.requests), 1 + len(BACKOFF_SECONDS))

    def test_a_refusal_is_not_retried(self):
        with self.assertRaisesRegex(Refused, "127.0.0.1 answered 404 Not Found"):
            self.download(f"{self.server.url}/nothing")
        self.assertEqual(self.slept, [])

    def test_ctrl_c_reports_the_size_of_the_part(self):
        self.part.write_bytes(DATA[:200_000])

        def interrupted(request, timeout):
            raise KeyboardInterrupt

        with contextlib.redirect_stderr(io.StringIO()) as output, self.assertRaises(KeyboardInterrupt):
            download(f"{self.server.url}/file", SHA256, self.target, "A file", interrupted)
        self.assertIn("A file: kept 0.2 MB; the next fetch resumes there", output.getvalue())
