import tempfile
import unittest
from pathlib import Path

from checks import arrows


class ArrowsTest(unittest.TestCase):
    def findings(self, name, code):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(code)
            repo, arrows.REPO = arrows.REPO, Path(folder)
            try:
                return [finding for arrow in arrows.ARROWS for finding in arrows.check(arrow)]
            finally:
                arrows.REPO = repo

    def test_a_route_that_asks_the_database_is_found_with_its_line(self):
        [finding] = self.findings("api/src/routes/images.rs", "//! Images.\nuse sqlx::PgPool;\n")
        self.assertTrue(finding.startswith("api/src/routes/images.rs:2:"), finding)

    def test_a_route_that_the_http_parts_or_a_use_case_know_is_found(self):
        for name in ("api/src/http/caller.rs", "api/src/usecases/run_tool.rs"):
            self.assertEqual(len(self.findings(name, "use crate::routes::views::JobView;\n")), 1, name)
        self.assertEqual(self.findings("api/src/server/router.rs", "use crate::routes::files;\n"), [])

    def test_comments_and_tests_may_name_anything(self):
        code = "// unlike sqlx:: we\nfn a() {}\n#[cfg(test)]\nmod tests { use sqlx::PgPool; }\n"
        self.assertEqual(self.findings("api/src/routes/images.rs", code), [])

    def test_only_the_ledger_writes_the_ledger(self):
        code = 'fn a() { query!("insert into ledger (user_id) values ($1)"); }\n'
        self.assertEqual(len(self.findings("core/src/jobs.rs", code)), 1)
        self.assertEqual(self.findings("core/src/credits.rs", code), [])

    def test_a_rule_about_a_file_that_moved_is_an_error(self):
        self.assertEqual(list(arrows.missing_places()), [])
        with tempfile.TemporaryDirectory() as folder:
            repo, arrows.REPO = arrows.REPO, Path(folder)
            try:
                self.assertTrue(list(arrows.missing_places()))
            finally:
                arrows.REPO = repo
