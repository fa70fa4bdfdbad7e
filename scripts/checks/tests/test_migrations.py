import os
import tempfile
import tomllib
import unittest
from fnmatch import fnmatch
from pathlib import Path

from checks import migrations
from common.config import REPO

GOOD = """\
set local lock_timeout = '5s';

create table gadgets (
    id       uuid primary key,
    owner_id uuid not null references users (id),
    amount   integer not null,

    constraint gadgets_amount check (amount > 0)
);
create index gadgets_of_owner on gadgets (owner_id);

alter table jobs
    add column speed integer,
    add column slow  boolean not null default false,
    add constraint jobs_speed check (speed > 0) not valid;
"""


class MigrationTest(unittest.TestCase):
    def findings(self, text):
        """Returns the findings for a new migration."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "0900_new.sql").write_text(text)
            return " ".join(migrations.check(Path(folder)))

    def with_timeout(self, statement):
        return self.findings(f"set local lock_timeout = '5s';\n{statement};\n")

    def test_the_migrations_of_this_repository_pass(self):
        self.assertEqual(migrations.check(), [])

    def test_only_migrations_from_before_the_linter_are_excluded(self):
        patterns = tomllib.loads(migrations.SETTINGS.read_text())["excluded_paths"]
        names = [os.path.relpath(path, REPO) for path in migrations.FOLDER.glob("*.sql")]
        excluded = [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]
        self.assertEqual(len(excluded), 17)
        self.assertEqual(max(excluded), "migrations/0017_hardware.sql")

    def test_a_valid_migration_passes(self):
        self.assertEqual(self.findings(GOOD), "")
        self.assertEqual(self.with_timeout("alter table jobs validate constraint jobs_speed"), "")

    def test_concurrent_index_changes_pass(self):
        mark = "-- no-transaction\n-- Finds slow jobs; the page lists them.\n"
        self.assertEqual(self.findings(f"{mark}create index concurrently if not exists jobs_slow on jobs (speed);\n"), "")
        self.assertEqual(self.findings(f"{mark}drop index concurrently if exists jobs_slow;\n"), "")

    def test_an_index_that_blocks_writers_is_found(self):
        self.assertIn("[require-concurrent-index-creation]", self.with_timeout("create index jobs_slow on jobs (speed)"))
        self.assertIn("[require-concurrent-index-deletion]", self.with_timeout("drop index jobs_slow"))
        self.assertIn(
            "[require-concurrent-index-creation]", self.findings("-- no-transaction\ncreate index if not exists jobs_slow on jobs (speed);\n")
        )

    def test_an_index_that_could_not_be_built_is_found(self):
        concurrent = "create index concurrently if not exists jobs_slow on jobs (speed);\n"
        self.assertIn("begin the file with `-- no-transaction`", self.findings(concurrent))
        self.assertIn("begin the file with `-- no-transaction`", self.findings(f"-- A line before it.\n-- no-transaction\n{concurrent}"))
        self.assertIn("exactly one statement", self.findings(f"-- no-transaction\nset lock_timeout = '5s';\n{concurrent}"))
        # A second attempt would fail on the remains of the first.
        self.assertIn("[prefer-robust-stmts]", self.findings("-- no-transaction\ncreate index concurrently jobs_slow on jobs (speed);\n"))

    def test_a_long_lock_is_found(self):
        for statement, rule in (
            ("alter table jobs add column mark uuid not null default gen_random_uuid()", "adding-field-with-default"),
            ("alter table jobs add constraint jobs_speed check (speed > 0)", "constraint-missing-not-valid"),
            ("alter table jobs add constraint jobs_owner foreign key (mark) references users (id)", "adding-foreign-key-constraint"),
            ("alter table jobs add constraint jobs_once unique (speed)", "disallowed-unique-constraint"),
            ("alter table jobs alter column speed set not null", "adding-not-nullable-field"),
            ("alter table jobs alter column cost type bigint", "changing-column-type"),
        ):
            self.assertIn(f"[{rule}]", self.with_timeout(statement), statement)

    def test_a_lock_without_a_limit_is_found(self):
        self.assertIn("0900_new.sql:1: Missing `set lock_timeout`", self.findings("alter table jobs add column speed integer;\n"))

    def test_changes_that_break_the_previous_version_need_a_reason(self):
        self.assertIn("[ban-drop-column]", self.with_timeout("alter table jobs drop column speed"))
        self.assertIn("[renaming-column]", self.with_timeout("alter table jobs rename column cost to price"))
        self.assertEqual(self.with_timeout("-- Not read since 0.4.\n-- squawk-ignore ban-drop-column\nalter table jobs drop column speed"), "")


if __name__ == "__main__":
    unittest.main()
