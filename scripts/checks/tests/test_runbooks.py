import contextlib
import io
import re
import unittest

from common.config import REPO
from common.console import Problem
from devstack.sandbox import Sandbox
from ops.database import Database


class CommandTest(unittest.TestCase):
    def test_no_command_overrides_the_files_that_the_settings_name(self):
        """`docker compose -f` would leave out what `COMPOSE_FILE` adds: ports, the processor in place of the GPU, more workers."""
        pages = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
        overriding = {(path.name, command) for path in pages for command in re.findall(r"docker compose -f .*?[`\n]", path.read_text())}
        # That one says itself when it may be used.
        self.assertEqual(overriding, {("operating.md", "docker compose -f docker-compose.gpu.yml up -d worker`")})

    def test_an_empty_setting_has_nothing_behind_it(self):
        """Docker Compose would take the comment for the value."""
        pages = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md")), REPO / "deploy/compose/env.example"]
        self.assertEqual([(path.name, text) for path in pages for text in re.findall(r"^#?[A-Z0-9_]+= +#.*", path.read_text(), re.M)], [])


class QueryTest(unittest.TestCase):
    def test_every_query_of_the_pages_for_operators_can_be_asked(self):
        pages = {path: re.findall(r'^ *sql "([^"$]+)"', path.read_text(), re.M) for path in sorted((REPO / "docs").rglob("*.md"))}
        self.assertGreater(sum(map(len, pages.values())), 10)
        with contextlib.redirect_stdout(io.StringIO()), Sandbox("runbooks") as sandbox:
            database = Database(sandbox.settings, sandbox.start_postgres())
            database.sql("".join(path.read_text() for path in sorted((REPO / "migrations").glob("*.sql"))))
            for path, queries in pages.items():
                for query in queries:
                    with self.subTest(page=path.name, query=query):
                        try:
                            database.sql(query)
                        except Problem as problem:
                            self.fail(str(problem))
