import re
import shutil
import tempfile
import unittest
from pathlib import Path

from checks import release_notes
from common.config import REPO
from common.console import Problem

CHANGELOG = "# Changes\n\n## Unreleased\n\n- Not yet.\n\n## 0.2.0 (2026-12-01)\n\n### Added\n\n- New.\n\n## 0.1.0\n\nFirst.\n"


class SectionTest(unittest.TestCase):
    def test_a_section_ends_at_the_next_version(self):
        self.assertEqual(release_notes.section("0.2.0", CHANGELOG), "### Added\n\n- New.")
        self.assertEqual(release_notes.section("0.1.0", CHANGELOG), "First.")

    def test_a_version_without_a_heading_has_no_section(self):
        self.assertEqual(release_notes.section("0.2", CHANGELOG), "")
        self.assertEqual(release_notes.section("0.3.0", CHANGELOG), "")


class TagTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in (*release_notes.PLACES, "Cargo.toml"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPO / name, self.root / name)
        self.version = release_notes.version_of()
        (self.root / "CHANGELOG.md").write_text(f"# Changes\n\n## {self.version}\n\nText.\n")

    def test_all_files_of_this_checkout_name_one_version(self):
        self.assertEqual(list(release_notes.wrong_places()), [])

    def test_a_valid_tag_returns_the_text(self):
        self.assertEqual(release_notes.notes(f"v{self.version}", self.root), "Text.")

    def test_another_tag_is_rejected(self):
        with self.assertRaisesRegex(Problem, "The tag is v9.9.9"):
            release_notes.notes("v9.9.9", self.root)

    def test_a_version_without_notes_is_rejected(self):
        (self.root / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\nText.\n")
        with self.assertRaisesRegex(Problem, "CHANGELOG.md has no text"):
            release_notes.notes(f"v{self.version}", self.root)

    def test_an_outdated_file_is_reported(self):
        for name in release_notes.PLACES:
            with self.subTest(name):
                path = self.root / name
                before = path.read_text()
                path.write_text(before.replace(self.version, "0.0.9"))
                with self.assertRaisesRegex(Problem, f"{name} names 0.0.9"):
                    release_notes.notes(f"v{self.version}", self.root)
                path.write_text(before)

    def test_one_outdated_line_of_several_is_reported(self):
        path = self.root / "deploy/compose/env.example"
        path.write_text(path.read_text().replace(f"worker-cuda:{self.version}", "worker-cuda:0.0.9"))
        with self.assertRaisesRegex(Problem, f"env.example names 0.0.9, {self.version}"):
            release_notes.notes(f"v{self.version}", self.root)

    def test_no_command_in_the_manual_names_a_version(self):
        """It would be outdated after the next release."""
        pages = [REPO / "README.md", REPO / "deploy/kubernetes/README.md", *sorted((REPO / "docs").rglob("*.md"))]
        named = rf"retouch/[\w-]+:{re.escape(self.version)}|newTag: {re.escape(self.version)}"
        self.assertEqual([(page.name, text) for page in pages for text in re.findall(named, page.read_text())], [])


if __name__ == "__main__":
    unittest.main()
