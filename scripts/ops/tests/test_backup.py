import contextlib
import datetime
import functools
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from common import addresses, config
from common.config import REPO
from common.console import Problem
from devstack.sandbox import Sandbox, free_ports
from devstack.trial import until
from ops import backup, restore, retouch_api
from ops.bucket import Bucket
from ops.database import SETTING, Database, connection, for_an_older_server

PERSON = "0192a000-0000-7000-8000-000000000001"
IMAGES = [f"0192a000-0000-7000-8000-00000000001{number}" for number in range(3)]
JOB = "0192a000-0000-7000-8000-000000000021"
MIGRATIONS = sorted((REPO / "migrations").glob("*.sql"))


BACK_UP = backup.back_up


def night(day):
    return datetime.datetime(2026, 11, day, 3, tzinfo=datetime.UTC)


class FakeBucket:
    """Keeps objects in memory: (body, type) by key."""

    def __init__(self):
        self.objects = {}
        self.downloaded = []
        self.before_download = self.after_download = lambda: None

    def first_key(self):
        return min(self.objects, default=None)

    def keys(self):
        return set(self.objects)

    def download(self, keys, folder):
        self.downloaded += keys
        self.before_download()
        found = {}
        for key in set(keys) & self.objects.keys():
            body, kind = self.objects[key]
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(body)
            found[key] = (len(body), hashlib.sha256(body).hexdigest(), kind)
        self.after_download()
        return found, set(keys) - found.keys()

    def upload(self, objects, folder):
        for key, (_, _, kind) in objects.items():
            self.objects[key] = ((folder / key).read_bytes(), kind)


@contextlib.contextmanager
def older_server():
    """Starts a Postgres that lacks a setting of pg_restore, if one is installed, such as `postgresql-15` of Debian 12."""
    programs = [folder for version in (15, 16) if (folder := Path(f"/usr/lib/postgresql/{version}/bin")).exists()]
    if not programs:
        raise unittest.SkipTest("Postgres 15 or 16 is not installed in /usr/lib/postgresql")
    [port] = free_ports(1)
    owner = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as home:
        data = Path(home) / "data"
        data.mkdir()
        if owner:
            os.chmod(home, 0o755)
            shutil.chown(data, "nobody", "nogroup")
        make = [programs[0] / "initdb", "--pgdata", data, "--username=retouch", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run(make, check=True, cwd="/", stdout=subprocess.DEVNULL, **owner)
        start = [programs[0] / "postgres", "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1"]
        start += ["-c", "unix_socket_directories=", "-c", "fsync=off"]
        server = subprocess.Popen(start, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **owner)
        try:
            ready = [programs[0] / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
            until(lambda: subprocess.run(ready).returncode == 0, "the older Postgres answers", 30)
            yield f"postgres://retouch@127.0.0.1:{port}"
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


class ConnectionTest(unittest.TestCase):
    def test_special_characters_in_a_password_are_decoded(self):
        found = connection("postgres://ada:p%40ss%2Fword@db.example:6432/retouch?sslmode=require")
        self.assertEqual((found["PGPASSWORD"], found["PGPORT"], found["PGDATABASE"]), ("p@ss/word", "6432", "retouch"))
        self.assertEqual(found["PGSSLMODE"], "require")
        self.assertEqual(connection("postgres://db.example/retouch?ssl-mode=Verify-Full")["PGSSLMODE"], "verify-full")
        for wrong in ("mysql://somewhere/else", "postgres://host:port/retouch", "postgres://host:0/retouch", "postgres://[::1/retouch"):
            with self.assertRaisesRegex(Problem, "must look like"):
                connection(wrong)

    def test_settings_in_the_query_count_as_in_the_programs(self):
        query = "host=/run/postgresql&port=6432&user=ada&password=p%40ss&dbname=pictures&options=-c%20lock_timeout%3D5s&options[work_mem]=64MB"
        expected = {"PGHOST": "/run/postgresql", "PGPORT": "6432", "PGUSER": "ada", "PGPASSWORD": "p@ss", "PGDATABASE": "pictures"}
        self.assertEqual(connection(f"postgres://bob:x@db.example/retouch?{query}"), expected | {"PGOPTIONS": "-c lock_timeout=5s -c work_mem=64MB"})
        self.assertEqual(connection("postgres://%2Frun%2Fpostgresql/retouch")["PGHOST"], "/run/postgresql")
        for query in ("sslcert=/own.pem&sslkey=/own.key&sslrootcert=/ca.pem", "ssl-cert=/own.pem&ssl-key=/own.key&ssl-ca=/ca.pem"):
            found = connection(f"postgres://db.example/retouch?{query}")
            self.assertEqual((found["PGSSLCERT"], found["PGSSLKEY"], found["PGSSLROOTCERT"]), ("/own.pem", "/own.key", "/ca.pem"))

    def test_tls_needs_programs_that_have_it_and_trusts_the_authorities_of_the_system(self):
        url, own = "postgres://db.example/retouch", config.load({"RETOUCH_POSTGRES_BIN": "/usr/bin"})
        for mode in ("require", "verify-ca", "verify-full"):
            with self.assertRaisesRegex(Problem, f"sslmode={mode}.*RETOUCH_POSTGRES_BIN"):
                Database(config.load({"RETOUCH_POSTGRES_BIN": ""}), f"{url}?sslmode={mode}")
        with self.assertRaisesRegex(Problem, "sslcert.*RETOUCH_POSTGRES_BIN"):
            Database(config.load({"RETOUCH_POSTGRES_BIN": ""}), f"{url}?sslcert=/own.pem&sslkey=/own.key")
        with mock.patch.dict(os.environ, {"SSL_CERT_FILE": __file__}):
            self.assertEqual(Database(own, f"{url}?sslmode=verify-full").environment["PGSSLROOTCERT"], __file__)
            self.assertEqual(Database(own, f"{url}?sslmode=verify-full&sslrootcert=own.pem").environment["PGSSLROOTCERT"], "own.pem")
            # With a file, libpq would verify here, too.
            self.assertNotIn("PGSSLROOTCERT", Database(own, f"{url}?sslmode=require").environment)


class ProgramTest(unittest.TestCase):
    """Runs a script in place of retouch-api."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for module, name in ((retouch_api, "PROGRAMS"), (config, "REPO")):
            patch = mock.patch.object(module, name, self.folder)
            patch.start()
            self.addCleanup(patch.stop)

    def settings(self, **environment):
        return config.load({"RETOUCH_HOME": str(self.folder), "PATH": os.environ["PATH"], **environment})

    def program(self, script):
        (self.folder / "retouch-api").write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / "retouch-api").chmod(0o755)

    def test_keys_without_an_endpoint_belong_to_aws(self):
        found = retouch_api.environment(self.settings(S3_ENDPOINT="", S3_ACCESS_KEY_ID="AKIA", S3_BUCKET="theirs"))
        self.assertNotIn("S3_ENDPOINT", found)
        self.assertEqual((found["S3_ACCESS_KEY_ID"], found["S3_BUCKET"]), ("AKIA", "theirs"))

    def test_without_settings_it_uses_the_services_of_scripts_up(self):
        found = retouch_api.environment(self.settings(RETOUCH_S3_PORT="9302", RETOUCH_POSTGRES_PORT="9303"))
        self.assertEqual((found["S3_ENDPOINT"], found["S3_BUCKET"]), ("http://127.0.0.1:9302", "retouch"))
        self.assertIn("@127.0.0.1:9303/retouch", found["DATABASE_URL"])

    def test_a_restore_may_choose_another_bucket_of_scripts_up(self):
        found = retouch_api.environment(self.settings(S3_BUCKET="restored"))
        self.assertEqual(found["S3_BUCKET"], "restored")

    def test_commands_get_only_what_they_need_to_reach_the_data(self):
        found = retouch_api.environment(self.settings(DATABASE_URL="postgres://db/retouch", S3_ACCESS_KEY_ID="AKIA"))
        self.assertEqual({name for name in found.keys() - os.environ.keys() if name.startswith(("RETOUCH_", "STRIPE_"))}, {"RETOUCH_HOME"})
        self.assertFalse((self.folder / "secrets").exists())

    def test_objects_are_passed_as_lines_and_returned_as_json(self):
        self.program(f"""echo "$@" > {self.folder}/arguments; cat > {self.folder}/lines
            echo '{{"objects": [{{"key": "a", "size": 1, "sha256": "0", "contentType": "image/png"}}], "missing": ["b"]}}'""")
        bucket = Bucket(self.settings())
        self.assertEqual(bucket.download(["a", "b"], self.folder), ({"a": (1, "0", "image/png")}, {"b"}))
        self.assertEqual((self.folder / "arguments").read_text(), f"admin --json objects download {self.folder}\n")
        self.assertEqual((self.folder / "lines").read_text(), "a\nb\n")
        bucket.upload({"a": (1, "0", "image/png")}, self.folder)
        self.assertEqual((self.folder / "lines").read_text(), "a\t1\t0\timage/png\n")

    def test_errors_of_the_program_are_reported(self):
        self.program("echo 'retouch-api: no such bucket' >&2; exit 1")
        with self.assertRaisesRegex(Problem, "admin objects failed: retouch-api: no such bucket"):
            Bucket(self.settings()).first_key()
        (self.folder / "retouch-api").unlink()
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}), self.assertRaisesRegex(Problem, "Cannot run retouch-api"):
            Bucket(self.settings()).first_key()


class OlderServerTest(unittest.TestCase):
    def test_only_the_first_occurrence_of_the_setting_is_removed(self):
        statements = [b"SET lock_timeout = 0;\n", SETTING, b"COPY notes (text) FROM stdin;\n", SETTING, b"\\.\n"]
        self.assertEqual(list(for_an_older_server(statements)), [one for number, one in enumerate(statements) if number != 1])


class BackupTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        cls.sandbox = cls.stack.enter_context(Sandbox("backup"))
        cls.sandbox.start_postgres()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        quiet = contextlib.redirect_stdout(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        self.bucket, self.target_bucket = FakeBucket(), FakeBucket()
        self.database, self.target = self.fresh("old"), self.fresh("new")
        self.fill(MIGRATIONS)

    def fill(self, migrations):
        self.database.sql("".join(path.read_text() for path in migrations))
        self.database.sql(f"insert into users (id, issuer, subject) values ('{PERSON}', 'here', 'ada')")
        self.database.sql(f"insert into ledger (user_id, kind, amount) values ('{PERSON}', 'signup_grant', 20)")
        for number, image in enumerate(IMAGES):
            self.picture(image, f"picture {number}".encode())

    def fresh(self, name):
        postgres = self.sandbox.postgres
        postgres.psql(f"drop database if exists {name} with (force)")
        postgres.psql(f"create database {name}")
        return Database(self.sandbox.settings, addresses.own_database_url(postgres.settings).rpartition("/")[0] + f"/{name}")

    def picture(self, image, body):
        for name, content in (("original", body), ("thumbnail", body[:3])):
            self.bucket.objects[f"images/{image}/{name}"] = (content, "image/png")
        self.database.sql(
            f"""insert into images (id, owner_id, object_key, thumbnail_key, content_type, content_sha256, size_bytes, width, height)
                values ('{image}', '{PERSON}', 'images/{image}/original', 'images/{image}/thumbnail', 'image/png', 'x', 9, 8, 8)"""
        )

    def back_up(self, day=1):
        return backup.back_up(self.database, self.bucket, self.folder, night(day))

    def run_backup(self, day, *options, folder=None):
        """Runs `scripts/backup`. Returns its exit status."""
        with (
            mock.patch("sys.argv", ["backup", str(folder or self.folder), *options]),
            mock.patch.object(backup, "database_of", lambda _: self.database),
            mock.patch.object(backup, "Bucket", lambda _: self.bucket),
            mock.patch.object(backup, "back_up", functools.partial(BACK_UP, now=night(day))),
        ):
            return backup.main()

    def run_check(self, made):
        """Runs `scripts/restore --check`. Returns its exit status."""
        arguments = ["restore", "--check", str(made)]
        with mock.patch("sys.argv", arguments), mock.patch.object(restore, "database_of", lambda _: self.target):
            return restore.main()

    def restore(self, made, run=lambda *_: (0, "Everything balances.")):
        objects = restore.check(made)
        with (
            mock.patch.object(restore, "database_of", lambda _: self.target),
            mock.patch.object(restore, "Bucket", lambda _: self.target_bucket),
            mock.patch.object(retouch_api, "run", run),
        ):
            return restore.restore(self.sandbox.settings, made, objects)

    def test_a_backup_restores_the_same_data(self):
        made, missing = self.back_up()
        self.assertEqual((self.restore(made), missing), (0, set()))
        self.assertEqual(self.target_bucket.objects, self.bucket.objects)
        select = "select row_to_json(users) as one from users union all select row_to_json(images) from images"
        self.assertEqual(self.target.rows(select), self.database.rows(select))
        self.assertEqual(self.target.sql("select credits from users"), "20")
        identify = "select id from installation"
        self.assertNotEqual(self.target.sql(identify), self.database.sql(identify))

    def test_a_backup_of_the_first_version_restores(self):
        """Version 0.1.0 had no previews, and its databases no id."""
        first = [path for path in MIGRATIONS if path.name < "0014"]
        self.database = self.fresh("first")
        self.fill(first)
        made, _ = self.back_up()
        commands = []

        def run(_, *arguments):
            commands.append(arguments[0])
            if arguments == ("migrate",):
                self.target.sql("".join(path.read_text() for path in MIGRATIONS if path not in first))
            return 0, ""

        self.assertEqual(self.restore(made, run), 0)
        self.assertEqual(commands, ["--version", "migrate", "admin"])
        self.assertEqual(self.target_bucket.objects, self.bucket.objects)

    def test_a_backup_restores_on_an_older_server(self):
        with older_server() as address:
            self.target = self.fresh_on(address)
            self.assertEqual(self.restore(self.back_up()[0]), 0)
            select = "select row_to_json(users) as one from users union all select row_to_json(images) from images"
            self.assertEqual(self.target.rows(select), self.database.rows(select))
            with self.assertRaisesRegex(Problem, "credits move only by a ledger entry"):
                self.target.sql("update users set credits = 1000")
            # A backup of the older server restores, too.
            self.database, self.target = self.target, self.fresh_on(address, "again")
            self.assertEqual(self.target.sql("select count(*) from pg_tables where schemaname = 'public'"), "0")
            made, _ = self.back_up(2)
            self.target.restore(made / "database.dump")
            self.assertEqual(self.target.rows(select), self.database.rows(select))

    def test_a_failed_restore_leaves_an_older_server_unchanged(self):
        made, _ = self.back_up()
        dump = made / "database.dump"
        with older_server() as address:
            target = self.fresh_on(address)
            target.sql("create table users (id int)")
            with self.assertRaisesRegex(Problem, 'psql failed .*relation "users" already exists'):
                target.restore(dump)
            target.sql("drop table users")
            content = dump.read_bytes()
            dump.write_bytes(content[: len(content) * 3 // 4])
            with self.assertRaisesRegex(Problem, "pg_restore failed"):
                target.restore(dump)
            self.assertEqual(target.sql("select count(*) from pg_tables where schemaname = 'public'"), "0")

    def fresh_on(self, address, name="older"):
        Database(self.sandbox.settings, f"{address}/postgres").sql(f"create database {name}")
        return Database(self.sandbox.settings, f"{address}/{name}")

    def test_triggers_are_restored(self):
        self.restore(self.back_up()[0])
        with self.assertRaisesRegex(Problem, "credits move only by a ledger entry"):
            self.target.sql("update users set credits = 1000")

    def test_a_failed_copy_leaves_the_backup_incomplete(self):
        def fail():
            raise Problem("no such bucket")

        self.bucket.before_download = fail
        with self.assertRaisesRegex(Problem, "no such bucket"):
            self.back_up()
        self.assertEqual(backup.complete(self.folder), [])

    def test_the_next_backup_copies_only_new_objects(self):
        self.back_up(1)
        self.bucket.downloaded.clear()
        self.picture("0192a000-0000-7000-8000-000000000099", b"new")
        made, _ = self.back_up(2)
        self.assertEqual({key.split("/")[1][-2:] for key in self.bucket.downloaded}, {"99"})
        self.assertEqual(len(backup.objects_of(made)), 8)

    def test_an_image_uploaded_after_the_dump_is_not_in_the_backup(self):
        later = "0192a000-0000-7000-8000-000000000077"
        self.bucket.before_download = lambda: self.picture(later, b"later")
        made, missing = self.back_up()
        self.assertEqual(missing, set())
        self.restore(made)
        self.assertEqual(self.target.sql(f"select count(*) from images where id = '{later}'"), "0")

    def test_an_image_deleted_during_the_backup_stays_deleted_and_its_job_fails(self):
        deleted = IMAGES[2]
        self.database.sql(
            f"""insert into jobs (id, owner_id, image_id, tool, tier, cost) values ('{JOB}', '{PERSON}', '{deleted}', 'remove-background', 'paid', 5);
                update users set reserved = 5"""
        )
        self.bucket.before_download = lambda: self.delete(deleted)
        made, missing = self.back_up()
        gone = [f"images/{deleted}/original", f"images/{deleted}/thumbnail"]
        self.assertEqual((missing, json.loads((made / "backup.json").read_text())["gone"]), (set(), gone))
        commands = []

        def run(_, *arguments):
            commands.append(arguments)
            if arguments[:3] == ("admin", "jobs", "fail"):
                ended = "state = 'failed', failure_code = 'ended', finished_at = now()"
                self.target.sql(f"update jobs set {ended} where id = '{arguments[3]}'; update users set reserved = 0")
            return 0, ""

        self.restore(made, run)
        self.assertEqual(commands[0], ("--version",))
        self.assertEqual(commands[1], ("migrate",))
        self.assertEqual(commands[2][:4], ("admin", "jobs", "fail", JOB))
        self.assertEqual(commands[-1], ("admin", "audit"))
        self.assertEqual(self.target.keys(), self.target_bucket.objects.keys())
        self.assertEqual(self.target.sql("select count(*) from images"), "2")

    def test_any_number_of_images_may_be_deleted_during_the_backup(self):
        gone = [f"images/0192a000-0000-7000-8000-{n:012}/original" for n in range(5000)]
        self.database.sql(f"update images set preview_key = ($${gone[-1]}$$) where id = '{IMAGES[0]}'")
        restore.delete_gone(None, self.database, gone)
        self.assertEqual(self.database.sql("select count(*) from images where preview_key is not null"), "0")

    def test_old_backups_go_also_if_an_object_is_missing(self):
        for day in (1, 2, 3):
            self.back_up(day)
        del self.bucket.objects[f"images/{IMAGES[0]}/original"]
        shutil.rmtree(self.folder / "objects" / "images" / IMAGES[0])
        self.assertEqual(self.run_backup(4, "--keep", "2"), 1)
        self.assertEqual(len(backup.complete(self.folder)), 2)

    def delete(self, image):
        self.database.sql(f"update jobs set image_id = null, state = 'cancelled', finished_at = now() where image_id = '{image}'")
        self.database.sql(f"delete from images where id = '{image}'")
        for name in ("original", "thumbnail"):
            del self.bucket.objects[f"images/{image}/{name}"]

    def test_a_missing_object_is_reported_and_the_rest_is_saved(self):
        lost = f"images/{IMAGES[0]}/original"
        del self.bucket.objects[lost]
        made, missing = self.back_up()
        self.assertEqual(missing, {lost})
        self.assertEqual(len(restore.check(made)), 5)
        metrics = self.folder / "retouch.prom"
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(self.run_backup(2, "--metrics", str(metrics)), 1)
        self.assertIn("retouch_backup_missing_objects 1\n", metrics.read_text())
        self.assertIn("retouch_backup_finished_seconds", metrics.read_text())
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(self.run_backup(3, "--allow-missing"), 0)
        self.assertIn("The bucket lacks 1 objects", errors.getvalue())

    def test_objects_that_the_bucket_loses_after_a_backup_are_reported(self):
        self.back_up(1)
        lost = {f"images/{IMAGES[0]}/original", f"images/{IMAGES[1]}/thumbnail"}
        for key in lost:
            del self.bucket.objects[key]
        self.delete(IMAGES[2])
        made, missing = self.back_up(2)
        self.assertEqual(missing, lost)
        self.assertLessEqual(lost, restore.check(made).keys())
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(self.run_backup(3, "--keep", "1"), 1)
        self.assertIn("The bucket lacks 2 objects that the database names", errors.getvalue())
        self.assertIn("2 of the missing objects are in a backup", errors.getvalue())
        self.restore(backup.complete(self.folder)[0])
        self.assertLessEqual(lost, self.target_bucket.objects.keys())

    def test_a_wrong_place_is_refused_before_the_backup(self):
        with self.assertRaisesRegex(Problem, "--metrics"):
            self.run_backup(1, "--metrics", str(self.folder / "nowhere" / "retouch.prom"))
        self.assertEqual(backup.complete(self.folder), [])
        with self.assertRaisesRegex(Problem, "nowhere is not a folder"):
            self.run_backup(1, "--prune", "--keep", "1", folder=self.folder / "nowhere")

    def test_a_restore_needs_an_empty_database_and_bucket(self):
        made, _ = self.back_up()
        self.target.sql("create table something (id int)")
        with self.assertRaisesRegex(Problem, "The database has 1 tables"):
            self.restore(made)
        self.target = self.fresh("new")
        self.target_bucket.objects["images/x/original"] = (b"theirs", "image/png")
        with self.assertRaisesRegex(Problem, "contains images/x/original"):
            self.restore(made)
        self.assertEqual(self.target.sql("select count(*) from pg_tables where schemaname = 'public'"), "0")

    def test_a_restore_without_retouch_api_does_not_start(self):
        made, _ = self.back_up()
        with self.assertRaisesRegex(Problem, "does not run here"):
            self.restore(made, lambda *_: (127, "no such library"))
        self.assertEqual(self.target.sql("select count(*) from pg_tables where schemaname = 'public'"), "0")

    def test_a_damaged_backup_is_rejected_before_anything_changes(self):
        made, _ = self.back_up()
        path = self.folder / "objects" / "images" / IMAGES[1] / "original"
        path.write_bytes(b"picture X")
        with self.assertRaisesRegex(Problem, "1 objects of .* are missing or damaged"):
            self.restore(made)
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(len(restore.check(made, without_damaged=True)), 5)
        self.assertIn(f"Left out 1 objects that are missing or damaged: images/{IMAGES[1]}/original", errors.getvalue())
        path.write_bytes(b"picture 1")
        restore.check(made)
        with open(made / "database.dump", "ab") as dump:
            dump.write(b"x")
        with self.assertRaisesRegex(Problem, "is damaged: its checksum is wrong"):
            self.restore(made)

    def test_an_incomplete_backup_is_rejected(self):
        made, _ = self.back_up()
        (made / "backup.json").unlink()
        with self.assertRaisesRegex(Problem, "an incomplete one"):
            restore.check(made)

    def test_old_backups_are_deleted_with_their_objects(self):
        for day in (1, 2):
            self.back_up(day)
        self.delete(IMAGES[0])
        self.back_up(3)
        backup.forget(self.folder, 1)
        self.assertEqual([path.name for path in backup.complete(self.folder)], ["2026-11-03T030000Z"])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["2026-11-03T030000Z", "objects"])
        left = {path.parent.name for path in (self.folder / "objects").rglob("*") if path.is_file()}
        self.assertEqual(left, set(IMAGES[1:]))
        restore.check(backup.complete(self.folder)[0])

    def test_what_a_killed_backup_left_goes_before_the_next_one(self):
        self.back_up(1)
        (self.folder / "2026-11-05T030000Z").mkdir()
        (self.folder / "2026-11-05T030000Z" / "database.dump").write_bytes(b"incomplete")
        (self.folder / "keycloak").mkdir()
        self.bucket.before_download = lambda: self.assertFalse((self.folder / "2026-11-05T030000Z").exists())
        self.picture("0192a000-0000-7000-8000-000000000099", b"new")
        self.assertEqual(self.run_backup(6), 0)
        self.assertEqual(len(backup.complete(self.folder)), 2)
        self.assertTrue((self.folder / "keycloak").exists())

    def test_prune_makes_room_without_a_new_backup(self):
        for day in (1, 2, 3):
            self.back_up(day)
        with self.assertRaisesRegex(Problem, "--prune needs --keep"):
            self.run_backup(4, "--prune")
        self.assertEqual(self.run_backup(4, "--prune", "--keep", "1"), 0)
        self.assertEqual([path.name[:10] for path in backup.complete(self.folder)], ["2026-11-03"])

    def test_a_damaged_copy_is_found_and_replaced_within_weeks(self):
        first, _ = self.back_up(1)
        damaged = self.folder / "objects" / "images" / IMAGES[1] / "original"
        damaged.write_bytes(b"picture X")
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            for day in range(2, 2 + backup.VERIFY_DAYS):
                self.back_up(day)
        self.assertEqual(errors.getvalue().count("was damaged"), 1)
        self.assertEqual(damaged.read_bytes(), b"picture 1")
        restore.check(first)

    def test_only_the_owner_can_read_the_folder_that_the_first_backup_makes(self):
        folder = self.folder / "backups"
        self.assertEqual(self.run_backup(1, folder=folder), 0)
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)

    def test_a_second_backup_refuses_while_one_is_running(self):
        def begin_another():
            self.bucket.after_download = lambda: None
            # The other one no longer names this picture, so it would delete the copy.
            self.delete(IMAGES[0])
            with self.assertRaisesRegex(Problem, "Another backup into .* is running"):
                self.run_backup(1, "--keep", "1")

        self.bucket.after_download = begin_another
        self.assertEqual(self.run_backup(2), 0)
        self.assertEqual(len(restore.check(backup.complete(self.folder)[-1])), 6)
        self.assertEqual(self.run_backup(3), 0)

    def test_a_backup_that_failed_does_not_block_the_next_one(self):
        def fail():
            raise Problem("no such bucket")

        self.bucket.before_download = fail
        with self.assertRaisesRegex(Problem, "no such bucket"):
            self.run_backup(1)
        self.bucket.before_download = lambda: None
        self.assertEqual(self.run_backup(2), 0)

    def test_a_backup_that_is_being_restored_is_not_deleted(self):
        first, _ = self.back_up(1)
        self.delete(IMAGES[0])
        self.back_up(2)

        def backups_go_on(_):
            self.assertEqual(self.run_backup(3, "--keep", "1"), 0)
            self.assertEqual([path.name[:10] for path in backup.complete(self.folder)], ["2026-11-01", "2026-11-03"])
            restore.check(first)

        with mock.patch.object(self.target, "contents", backups_go_on), contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(self.run_check(first), 0)
        self.assertIn("Kept 2026-11-01T030000Z, because a restore is reading it", errors.getvalue())
        backup.forget(self.folder, 1)
        self.assertEqual([path.name[:10] for path in backup.complete(self.folder)], ["2026-11-03"])
        self.assertFalse((self.folder / "objects" / "images" / IMAGES[0]).exists())

    def test_a_restore_begins_while_a_backup_is_running(self):
        made, _ = self.back_up(1)
        self.bucket.after_download = lambda: self.assertEqual(self.run_check(made), 0)
        self.picture("0192a000-0000-7000-8000-000000000099", b"new")
        self.assertEqual(self.run_backup(2), 0)
