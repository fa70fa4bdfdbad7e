"""Postgres for a backup: its own programs, and one moment that a dump and a list of objects share."""

import json
import os
import subprocess
import urllib.parse
from contextlib import contextmanager
from pathlib import Path

from . import wheels
from .say import Problem

# Every object that a row names.
NAMED = """select object_key as key from images union select thumbnail_key from images
           union select object_key from results union select thumbnail_key from results"""


class Database:
    def __init__(self, settings, url):
        self.environment = {**os.environ, **connection(url)}
        folder = settings.get("RETOUCH_POSTGRES_BIN")
        self.bin = Path(folder) if folder else wheels.postgres_bin()

    def sql(self, statement, **variables):
        command = [self.bin / "psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1"]
        command += [part for name, value in variables.items() for part in ("-v", f"{name}={value}")]
        ran = subprocess.run(command, input=statement, env=self.environment, capture_output=True, text=True)
        if ran.returncode:
            raise Problem(f"Postgres refused: {ran.stderr.strip()}")
        return ran.stdout.strip()

    def rows(self, select, **variables):
        return json.loads(self.sql(f"select coalesce(json_agg(one), '[]') from ({select}) one", **variables))

    def keys(self):
        return {row["key"] for row in self.rows(NAMED)}

    @contextmanager
    def moment(self):
        """A snapshot that others can join, for as long as this lasts."""
        command = [self.bin / "psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1"]
        holder = subprocess.Popen(
            [*map(str, command)], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            holder.stdin.write("begin isolation level repeatable read read only;\nselect pg_export_snapshot();\n")
            holder.stdin.flush()
            name = holder.stdout.readline().strip()
            if not name:
                raise Problem(f"Postgres refused: {holder.stderr.read().strip()}")
            yield name
        finally:
            holder.stdin.close()
            holder.wait()
            holder.stdout.close()
            holder.stderr.close()

    def keys_at(self, snapshot):
        begun = f"begin isolation level repeatable read read only;\nset transaction snapshot '{snapshot}';\n"
        return set(self.sql(begun + f"select key from ({NAMED}) named;\ncommit;").split())

    def dump(self, snapshot, file):
        self.run("pg_dump", f"--snapshot={snapshot}", "--format=custom", "--no-owner", "--no-privileges", f"--file={file}")

    def restore(self, file):
        name = self.environment["PGDATABASE"]
        self.run("pg_restore", "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", f"--dbname={name}", file)

    def contents(self, file):
        """What a dump holds, when it can be read at all."""
        return self.run("pg_restore", "--list", file)

    def run(self, program, *arguments):
        command = [str(self.bin / program), *map(str, arguments)]
        ran = subprocess.run(command, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if ran.returncode:
            raise Problem(f"{program} failed (exit status {ran.returncode}): {ran.stderr.strip()[-2000:]}")
        return ran.stdout


def connection(url):
    """The address as Postgres's programs take it from the environment, where no list of processes shows the password."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql") or not parts.path.strip("/"):
        raise Problem("DATABASE_URL must look like postgres://user:password@host/retouch.")
    options = dict(urllib.parse.parse_qsl(parts.query))
    found = {
        "PGHOST": parts.hostname or options.get("host", ""),
        "PGPORT": str(parts.port or 5432),
        "PGUSER": urllib.parse.unquote(parts.username or ""),
        "PGPASSWORD": urllib.parse.unquote(parts.password or ""),
        "PGDATABASE": urllib.parse.unquote(parts.path.strip("/")),
        "PGSSLMODE": options.get("sslmode", ""),
        "PGSSLROOTCERT": options.get("sslrootcert", ""),
    }
    return {name: value for name, value in found.items() if value}
