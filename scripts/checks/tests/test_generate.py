import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from checks import generate
from common.console import Problem


class QueryDataTest(unittest.TestCase):
    """Runs a function in place of cargo."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        (root / ".retouch").mkdir()
        (root / "core").mkdir()
        (root / "core" / "jobs.rs").write_text('query!("select 1")')
        self.queries = root / ".sqlx"
        self.queries.mkdir()
        (self.queries / "query-old.json").touch()
        for name, value in (("REPO", root), ("QUERIES", self.queries), ("crates", lambda: ["core"])):
            patch = mock.patch.object(generate, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, error=None):
        def cargo(*_, env, **__):
            (Path(env["SQLX_OFFLINE_DIR"]) / "query-new.json").touch()
            if error:
                raise error

        with mock.patch.object(generate, "run_shown", cargo), contextlib.redirect_stdout(io.StringIO()):
            generate.write_query_data("postgres://somewhere/retouch")

    def written(self):
        return [path.name for path in self.queries.iterdir()]

    def test_the_new_data_replaces_the_old(self):
        self.write()
        self.assertEqual(self.written(), ["query-new.json"])

    def test_an_interrupted_or_failed_run_leaves_the_old_data(self):
        for error in (KeyboardInterrupt(), Problem("it does not compile")):
            with self.subTest(error), self.assertRaises(type(error)):
                self.write(error)
            self.assertEqual(self.written(), ["query-old.json"])
        self.write()
        self.assertEqual(self.written(), ["query-new.json"])


if __name__ == "__main__":
    unittest.main()
