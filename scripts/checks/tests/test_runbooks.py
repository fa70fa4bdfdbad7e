import contextlib
import io
import re
import unittest

from common.config import REPO
from common.console import Problem
from devstack.sandbox import Sandbox
from ops.database import Database


class CommandTest(unittest.TestCase):
    def test_no_command_replaces_the_compose_files_of_the_settings(self):
        """`docker compose -f` would omit the files in `COMPOSE_FILE`, for example those for CPUs or several GPUs."""
        pages = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
        overriding = {(path.name, command) for path in pages for command in re.findall(r"docker compose -f .*?[`\n]", path.read_text())}
        # The manual explains when to use this one.
        self.assertEqual(overriding, {("operating.md", "docker compose -f docker-compose.gpu.yml up -d worker`")})

    def test_an_empty_setting_has_no_comment_on_its_line(self):
        """Docker Compose would read the comment as the value."""
        pages = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md")), REPO / "deploy/compose/env.example"]
        self.assertEqual([(path.name, text) for path in pages for text in re.findall(r"^#?[A-Z0-9_]+= +#.*", path.read_text(), re.M)], [])

    def test_no_command_is_on_the_line_that_opens_its_block(self):
        """Markdown would take it for a part of the language, and not show it."""
        pages = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
        self.assertEqual([(path.name, text) for path in pages for text in re.findall(r"^.*```\w+ [^`\n]*$", path.read_text(), re.M)], [])


class QueryTest(unittest.TestCase):
    def test_every_query_in_the_docs_runs(self):
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
