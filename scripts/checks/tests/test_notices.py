import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from checks import notices
from common.console import Problem


class LicenseTest(unittest.TestCase):
    def test_an_expression_is_free_if_accepted_licenses_satisfy_it(self):
        for free in ("MIT", "MIT OR GPL-3.0", "(MIT OR GPL-3.0) AND Unicode-3.0", "MIT/Apache-2.0", "Apache-2.0 WITH LLVM-exception OR GPL-2.0"):
            self.assertTrue(notices.is_free(free), free)
        for unfree in (
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR ISC) AND SSPL-1.0",
            "not stated",
            "file LICENSE.md",
            "",
            "Apache-2.0 WITH Commons-Clause",
        ):
            self.assertFalse(notices.is_free(unfree), unfree)


class FileTest(unittest.TestCase):
    def setUp(self):
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "THIRD-PARTY.md"
        crates = [notices.Part("serde", "1.0.0", "MIT OR Apache-2.0", "https://example.test/serde")]
        for name, value in (("FILE", self.file), ("crates_in_programs", lambda: crates)):
            patch = mock.patch.object(notices, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.crates = crates

    def test_an_up_to_date_file_passes(self):
        self.file.write_text(notices.made())
        self.assertEqual(notices.check(), [])
        text = self.file.read_text()
        for part in (
            "| [serde](https://example.test/serde) | 1.0.0 |",
            "| react |",
            "`u2netp` | Apache-2.0 | yes",
            "nvidia-cudnn-cu13",
            "instrument-sans",
        ):
            self.assertIn(part, text)

    def test_a_missing_or_outdated_file_is_found(self):
        self.assertIn("is missing", notices.check()[0])
        self.file.write_text(notices.made())
        self.crates[0] = notices.Part("serde", "1.0.1", "MIT OR Apache-2.0", "https://example.test/serde")
        self.assertIn("is out of date", notices.check()[0])

    def test_an_unknown_license_is_found(self):
        self.crates.append(notices.Part("trap", "1.0.0", "SSPL-1.0"))
        self.assertIn("trap 1.0.0 has the license 'SSPL-1.0'", notices.check()[0])

    def test_a_model_without_its_license_fields_is_found(self):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "models" / "new"
            path.mkdir(parents=True)
            (path / "model.toml").write_text('name = "new"\nlicence = "MIT"\n')
            with (
                mock.patch.object(notices, "REPO", Path(folder)),
                self.assertRaisesRegex(Problem, "new/model.toml must have the fields `licence` and `commercial_use`"),
            ):
                notices.models()
