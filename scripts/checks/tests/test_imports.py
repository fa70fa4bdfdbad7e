import tempfile
import unittest
from pathlib import Path

from checks import python_imports
from checks.graph import cycle


class GraphTest(unittest.TestCase):
    def test_a_cycle_is_found_with_its_arrows(self):
        self.assertEqual(cycle([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("f", "a")]), {("a", "b"), ("b", "c"), ("c", "a")})

    def test_a_graph_without_cycles_has_none(self):
        self.assertEqual(cycle([("a", "b"), ("a", "c"), ("b", "c")]), set())


class PythonImportsTest(unittest.TestCase):
    def findings(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, code in files.items():
                path = Path(folder, *name.split("__")).with_suffix(".py")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(code)
            return list(python_imports.check(Path(folder)))

    def test_a_room_must_not_import_a_room_above_it(self):
        [finding] = self.findings(common__a="import os\n\nfrom ops.b import x\n", ops__b="x = 1\n")
        self.assertEqual(finding, "common/a.py:3: common must not import ops (ops/b.py)")
        self.assertEqual(len(self.findings(ops__a="def f():\n    from devstack import b\n", devstack__b="")), 1)

    def test_tests_may_import_any_room(self):
        self.assertEqual(self.findings(common__tests__test_a="from devstack import b\n", devstack__b=""), [])

    def test_files_that_import_each_other_are_found_with_their_lines(self):
        [finding] = self.findings(ops__a="from . import b\n", ops__b="def f():\n    from .a import g\n")
        self.assertIn("2 files import each other", finding)
        self.assertIn("ops/a.py:1: imports ops/b.py", finding)
        self.assertIn("ops/b.py:2: imports ops/a.py", finding)

    def test_this_repository_has_none(self):
        self.assertEqual(list(python_imports.check()), [])


if __name__ == "__main__":
    unittest.main()
