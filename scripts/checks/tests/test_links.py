import subprocess
import tempfile
import unittest
from pathlib import Path

from checks import links


class LinksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        subprocess.run(["git", "init", "--quiet", self.folder], check=True)
        self.write("docs/other.md", "# Other\n\n## A *further* node, `one` step\n\n## Twice\n\n## Twice\n")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def findings(self, text):
        self.write("docs/page.md", text)
        return links.check(self.folder)

    def test_links_that_lead_somewhere_pass(self):
        text = "[a](other.md) [b](other.md#a-further-node-one-step) [c](../docs) [d](https://example.com/x#y) [e](#here)\n# Here\n"
        self.assertEqual(self.findings(text), [])

    def test_a_missing_file_is_found_with_its_line(self):
        self.assertEqual(self.findings("# Page\n\n[a](gone.md)"), ["docs/page.md:3: gone.md does not exist"])

    def test_a_missing_heading_is_found(self):
        self.assertEqual(self.findings("[a](other.md#gone)"), ["docs/page.md:1: docs/other.md has no heading #gone"])

    def test_a_heading_that_occurs_twice_is_numbered(self):
        self.assertEqual(self.findings("[a](other.md#twice-1)"), [])
        self.assertEqual(len(self.findings("[a](other.md#twice-2)")), 1)

    def test_examples_in_code_are_not_links(self):
        self.assertEqual(self.findings("`[a](gone.md)`\n\n```\n[a](gone.md)\n# Not a heading\n```\n"), [])

    def test_text_between_two_examples_is_no_code(self):
        text = "Text\n\n```\ncode\n```\n\n[a](gone.md)\n\n```\nmore\n```\n"
        self.assertEqual(self.findings(text), ["docs/page.md:7: gone.md does not exist"])

    def test_a_link_out_of_the_repository_is_found(self):
        self.assertEqual(len(self.findings("[a](../../elsewhere)")), 1)

    def test_a_path_in_backticks_must_exist(self):
        self.write("core/src/jobs.rs", "")
        self.assertEqual(self.findings("`core/src/jobs.rs`, `core/src/jobs*`, `core/`, `core::jobs`, `scripts/test --full`"), [])
        self.assertEqual(self.findings("`core/src/gone.rs`"), ["docs/page.md:1: `core/src/gone.rs` does not exist"])
        self.assertEqual(self.findings("`core/src/<job>.rs`, `src/jobs.rs`, `jobs.rs`, `gone.rs`, `other/NAME`"), [])
        for gone in ("core/src/jobs/<kind>.rs", "src/gone.rs"):
            self.assertEqual(self.findings(f"`{gone}`"), [f"docs/page.md:1: `{gone}` does not exist"])
