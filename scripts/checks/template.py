"""Migrates the template of a Postgres that belongs to a test, so that each database in it begins with our schema.

sqlx creates a database for each Rust test, as a copy of the template, and applies the migrations that it lacks. Not
`retouch-api migrate`: that needs S3, and the program may have other migrations than the tests, which then refuse to run.
"""

import hashlib

from common.config import REPO

# As sqlx makes it.
RECORDS = """create table _sqlx_migrations (
    version bigint primary key,
    description text not null,
    installed_on timestamptz not null default now(),
    success boolean not null,
    checksum bytea not null,
    execution_time bigint not null
);
"""


def migrate(postgres):
    files = sorted((REPO / "migrations").glob("*.sql"))
    postgres.psql(RECORDS + "".join(map(applied, files)), database="template1")


def applied(file):
    """Returns the statements that apply a migration and record it, in one transaction like sqlx."""
    statements = file.read_text()
    version, description = file.stem.replace("_", " ").split(" ", 1)
    # sqlx compares it with that of the migration in the tests.
    checksum = hashlib.sha384(statements.encode()).hexdigest()
    record = f"insert into _sqlx_migrations values ({int(version)}, '{description}', now(), true, '\\x{checksum}', 0);"
    if statements.startswith("-- no-transaction"):
        return f"{statements}\n;{record}\n"
    return f"begin;\n{statements}\n;{record}\ncommit;\n"
