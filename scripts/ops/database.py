"""Postgres for backups: runs its client programs, with a snapshot that a dump and a list of objects share."""

import json
import os
import ssl
import subprocess
import tempfile
import urllib.parse
from contextlib import contextmanager, suppress
from pathlib import Path

from common import wheels
from common.console import Problem

# The keys of all objects that a row names. In the schema of 0.1.0, whose tables have no previews, `preview_key` is the outer column.
NAMED = """select key from (select null::text as preview_key) older_schema, lateral (
               select unnest(array[object_key, thumbnail_key, preview_key]) as key from images
               union select unnest(array[object_key, thumbnail_key, preview_key]) from results
           ) every where key is not null"""

# The first version with the setting that pg_restore 17 and newer sets at the start.
HAS_TRANSACTION_TIMEOUT = 170000
SETTING = b"SET transaction_timeout = 0;\n"

TLS_MODES = ("require", "verify-ca", "verify-full")
# The settings in the query of DATABASE_URL that the other programs know too, with or without hyphens.
QUERY = {
    **{"host": "PGHOST", "hostaddr": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"},
    **{"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslca": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY"},
}


class Database:
    def __init__(self, settings, url):
        self.environment = {**os.environ, **connection(url)}
        folder = settings.get("RETOUCH_POSTGRES_BIN")
        mode = self.environment.get("PGSSLMODE", "")
        reason = "sslcert" if "PGSSLCERT" in self.environment else f"sslmode={mode}" if mode in TLS_MODES else ""
        if not folder and reason:
            raise Problem(
                f"DATABASE_URL asks for TLS ({reason}), which the Postgres programs that the scripts download lack. Install others, "
                "such as Debian's postgresql-client, and set RETOUCH_POSTGRES_BIN to their folder (docs/backup.md)."
            )
        if mode.startswith("verify-"):
            # Without a setting, retouch-api trusts the public authorities, but libpq only a file of the user.
            self.environment.setdefault("PGSSLROOTCERT", ssl.get_default_verify_paths().cafile or "system")
        self.bin = Path(folder) if folder else wheels.postgres_bin()

    def sql(self, statement, **variables):
        command = [self.bin / "psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1"]
        # Not as arguments, whose length is limited.
        setting = "".join(f"\\set {name} {quoted(value)}\n" for name, value in variables.items())
        ran = subprocess.run(command, input=setting + statement, env=self.environment, capture_output=True, text=True)
        if ran.returncode:
            raise Problem(f"Postgres reported an error: {ran.stderr.strip()}")
        return ran.stdout.strip()

    def rows(self, select, **variables):
        return json.loads(self.sql(f"select coalesce(json_agg(one), '[]') from ({select}) one", **variables))

    def keys(self):
        return {row["key"] for row in self.rows(NAMED)}

    @contextmanager
    def snapshot(self):
        """Exports a snapshot that other connections can use within this context."""
        command = [self.bin / "psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1"]
        holder = subprocess.Popen(
            [*map(str, command)], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            holder.stdin.write("begin isolation level repeatable read read only;\nselect pg_export_snapshot();\n")
            holder.stdin.flush()
            name = holder.stdout.readline().strip()
            if not name:
                raise Problem(f"Postgres reported an error: {holder.stderr.read().strip()}")
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
        """Restores a dump in one transaction."""
        options = ["--no-owner", "--no-privileges", "--exit-on-error"]
        if int(self.sql("show server_version_num")) < HAS_TRANSACTION_TIMEOUT:
            return self.restore_to_older_server(options, file)
        return self.run("pg_restore", *options, "--single-transaction", f"--dbname={self.environment['PGDATABASE']}", file)

    def restore_to_older_server(self, options, file):
        """Restores through psql, without the setting that the server does not know."""
        reading = [str(self.bin / "pg_restore"), *options, "--file=-", str(file)]
        writing = [str(self.bin / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
        with (
            tempfile.TemporaryFile() as restore_errors,
            tempfile.TemporaryFile() as psql_errors,
            subprocess.Popen(reading, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=restore_errors) as source,
            subprocess.Popen(writing, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=psql_errors) as target,
        ):
            try:
                target.stdin.write(b"begin;\n")
                target.stdin.writelines(for_an_older_server(source.stdout))
                # An incomplete restore must not be committed.
                if source.wait() == 0:
                    target.stdin.write(b"commit;\n")
                else:
                    target.kill()
            except BrokenPipeError:
                # psql has exited with an error.
                source.kill()
            with suppress(BrokenPipeError):
                target.stdin.close()
            for program, process, errors in (("pg_restore", source, restore_errors), ("psql", target, psql_errors)):
                # A negative status is a signal, usually sent because the other program failed.
                if process.wait() > 0:
                    errors.seek(0)
                    raise failed(program, process.returncode, errors.read().decode(errors="replace"))
            if source.returncode or target.returncode:
                raise Problem(f"A signal ended the restore ({source.returncode}, {target.returncode}).")

    def contents(self, file):
        """Lists the contents of a dump. Fails if it is not readable."""
        return self.run("pg_restore", "--list", file)

    def run(self, program, *arguments):
        command = [str(self.bin / program), *map(str, arguments)]
        ran = subprocess.run(command, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if ran.returncode:
            raise failed(program, ran.returncode, ran.stderr)
        return ran.stdout


def quoted(value):
    """Quotes an argument of a command of psql."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n") + "'"


def failed(program, status, errors):
    return Problem(f"{program} failed (exit status {status}): {errors.strip()[-2000:]}")


def for_an_older_server(statements):
    """Removes the first occurrence of the setting; a later one would be data."""
    found = False
    for statement in statements:
        if not found and statement == SETTING:
            found = True
        else:
            yield statement


def connection(url):
    """Returns the connection settings as environment variables, because command lines are visible to other users."""
    expected = "DATABASE_URL must look like postgres://user:password@host:5432/retouch."
    try:
        parts = urllib.parse.urlsplit(url)
        port = 5432 if parts.port is None else parts.port
    except ValueError as error:
        raise Problem(expected) from error
    found = {
        "PGHOST": urllib.parse.unquote(parts.hostname or ""),
        "PGPORT": str(port),
        "PGUSER": urllib.parse.unquote(parts.username or ""),
        "PGPASSWORD": urllib.parse.unquote(parts.password or ""),
        "PGDATABASE": urllib.parse.unquote(parts.path.strip("/")),
    }
    options = []
    for name, value in urllib.parse.parse_qsl(parts.query):
        if variable := QUERY.get(name.replace("-", "")):
            found[variable] = value.lower() if variable == "PGSSLMODE" else value
        elif name == "options":
            options.append(value)
        elif name.startswith("options["):
            options.append(f"-c {name[8:-1]}={value}")
    found["PGOPTIONS"] = " ".join(options)
    if parts.scheme not in ("postgres", "postgresql") or not found["PGDATABASE"] or not port:
        raise Problem(expected)
    return {name: value for name, value in found.items() if value}
