import contextlib
import datetime
import hashlib
import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest
import urllib.parse
from pathlib import Path
from unittest import mock

from common import addresses, config
from common.config import REPO
from common.console import Problem
from devstack.sandbox import Sandbox, free_ports
from devstack.trial import until
from ops import backup, bucket, restore
from ops.database import SETTING, Database, connection, for_an_older_server

PERSON = "0192a000-0000-7000-8000-000000000001"
IMAGES = [f"0192a000-0000-7000-8000-00000000001{number}" for number in range(3)]
JOB = "0192a000-0000-7000-8000-000000000021"


class Store(http.server.BaseHTTPRequestHandler):
    """As much of an S3 server as a backup sees; it lists two keys a page."""

    def do_HEAD(self):
        self.answer(200 if self.path.strip("/").split("/")[0] in self.server.buckets else 404)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
            return self.answer(400, b"XAmzContentSHA256Mismatch")
        if self.key is None:
            self.server.buckets[self.bucket] = {}
        else:
            self.server.buckets[self.bucket][self.key] = (body, self.headers["Content-Type"])
        self.answer(200)

    def do_GET(self):
        objects = self.server.buckets[self.bucket]
        if self.key is None:
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
            keys = sorted(key for key in objects if key.startswith(query["prefix"]) and key > query.get("continuation-token", ""))
            entries = "".join(f"<Contents><Key>{key}</Key><Size>{len(objects[key][0])}</Size></Contents>" for key in keys[:2])
            more = f"<NextContinuationToken>{keys[1]}</NextContinuationToken>" if keys[2:] else ""
            body = f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{entries}{more}</ListBucketResult>'
            return self.answer(200, body.encode())
        self.server.asked.append(self.key)
        self.server.before_get(self.key)
        if self.server.stumbles:
            return self.answer(self.server.stumbles.pop(), b"SlowDown")
        if self.key not in objects:
            return self.answer(404, b"NoSuchKey")
        self.answer(200, *objects[self.key])

    def answer(self, status, body=b"", kind="application/xml"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

    @property
    def bucket(self):
        return urllib.parse.urlsplit(self.path).path.strip("/").partition("/")[0]

    @property
    def key(self):
        return urllib.parse.unquote(urllib.parse.urlsplit(self.path).path.strip("/").partition("/")[2]) or None


@contextlib.contextmanager
def older_server():
    """A Postgres that pg_restore does not know how to speak to, where the machine has one: Debian 12 does in `postgresql-15`."""
    programs = [folder for version in (15, 16) if (folder := Path(f"/usr/lib/postgresql/{version}/bin")).exists()]
    if not programs:
        raise unittest.SkipTest("there is no Postgres 15 or 16 in /usr/lib/postgresql")
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


class SignatureTest(unittest.TestCase):
    def test_a_request_is_signed_as_the_example_of_aws(self):
        # "GET Bucket Lifecycle" in AWS's documentation of Signature Version 4.
        account = bucket.Account("", "us-east-1", "examplebucket", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
        headers = {"host": "examplebucket.s3.amazonaws.com", "x-amz-content-sha256": bucket.NOTHING}
        now = datetime.datetime(2013, 5, 24, tzinfo=datetime.timezone.utc)
        signed = bucket.sign(account, "GET", "/", "lifecycle=", headers, now)
        expected = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        self.assertTrue(signed["authorization"].endswith(f"Signature={expected}"), signed["authorization"])

    def test_a_password_with_signs_in_it_reaches_postgres(self):
        found = connection("postgres://ada:p%40ss%2Fword@db.example:6432/retouch?sslmode=require")
        self.assertEqual((found["PGPASSWORD"], found["PGPORT"], found["PGDATABASE"]), ("p@ss/word", "6432", "retouch"))
        self.assertEqual(found["PGSSLMODE"], "require")
        with self.assertRaises(Problem):
            connection("mysql://somewhere/else")


class WhereTest(unittest.TestCase):
    """Which store a backup speaks to."""

    def account(self, **environment):
        with tempfile.TemporaryDirectory() as home, mock.patch.object(config, "REPO", Path(home)):
            return backup.bucket_of(config.load({"RETOUCH_HOME": home, **environment})).account

    def test_keys_without_an_address_are_those_of_aws(self):
        keys = {"S3_ACCESS_KEY_ID": "AKIA", "S3_SECRET_ACCESS_KEY": "secret"}
        account = self.account(S3_ENDPOINT="", S3_REGION="eu-central-1", S3_BUCKET="theirs", **keys)
        self.assertEqual(account, bucket.Account("", "eu-central-1", "theirs", "AKIA", "secret"))
        self.assertEqual(bucket.Bucket(account).address.netloc, "s3.eu-central-1.amazonaws.com")

    def test_without_either_it_is_what_is_started_here(self):
        account = self.account(RETOUCH_S3_PORT="9302", S3_REGION="eu-central-1")
        self.assertEqual((account.endpoint, account.region, account.bucket), ("http://127.0.0.1:9302", "us-east-1", "retouch"))

    def test_an_address_without_keys_is_refused(self):
        with self.assertRaisesRegex(Problem, "S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set"):
            self.account(S3_ENDPOINT="https://s3.example")
        with self.assertRaisesRegex(Problem, "^S3_SECRET_ACCESS_KEY must be set"):
            self.account(S3_ACCESS_KEY_ID="AKIA")


class OlderServerTest(unittest.TestCase):
    def test_the_setting_that_it_refuses_is_left_out_and_nothing_else(self):
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
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.stack.callback(cls.server.server_close)
        cls.stack.callback(cls.server.shutdown)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        quiet = contextlib.redirect_stdout(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        self.server.buckets, self.server.asked, self.server.stumbles = {"old": {}}, [], []
        self.server.before_get = lambda key: None
        self.database, self.target = self.fresh("old"), self.fresh("new")
        schema = "".join(path.read_text() for path in sorted((REPO / "migrations").glob("*.sql")))
        self.database.sql(schema)
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
            self.server.buckets["old"][f"images/{image}/{name}"] = (content, "image/png")
        self.database.sql(
            f"""insert into images (id, owner_id, object_key, thumbnail_key, content_type, content_sha256, size_bytes, width, height)
                values ('{image}', '{PERSON}', 'images/{image}/original', 'images/{image}/thumbnail', 'image/png', 'x', 9, 8, 8)"""
        )

    def bucket(self, name):
        return bucket.Bucket(bucket.Account(f"http://127.0.0.1:{self.server.server_port}", "here", name, "key", "secret"))

    def back_up(self, day=1):
        now = datetime.datetime(2026, 11, day, 3, tzinfo=datetime.timezone.utc)
        return backup.back_up(self.database, self.bucket("old"), self.folder, now)

    def restore(self, made, program=lambda *_: (0, "Everything balances.")):
        objects = restore.check(made)
        with (
            mock.patch.object(restore, "database_of", lambda _: self.target),
            mock.patch.object(restore, "bucket_of", lambda _: self.bucket("new")),
            mock.patch.object(restore, "program", program),
        ):
            return restore.restore(self.sandbox.settings, made, objects)

    def test_everything_comes_back_as_it_was(self):
        made, missing = self.back_up()
        self.assertEqual((self.restore(made), missing), (0, set()))
        self.assertEqual(self.server.buckets["new"], self.server.buckets["old"])
        select = "select row_to_json(users) as one from users union all select row_to_json(images) from images"
        self.assertEqual(self.target.rows(select), self.database.rows(select))
        self.assertEqual(self.target.sql("select credits from users"), "20")

    def test_everything_comes_back_on_an_older_server_too(self):
        with older_server() as address:
            self.target = self.fresh_on(address)
            self.assertEqual(self.restore(self.back_up()[0]), 0)
            select = "select row_to_json(users) as one from users union all select row_to_json(images) from images"
            self.assertEqual(self.target.rows(select), self.database.rows(select))
            with self.assertRaisesRegex(Problem, "credits move only by a ledger entry"):
                self.target.sql("update users set credits = 1000")
            # And what such a server holds goes the same way.
            self.database, self.target = self.target, self.fresh_on(address, "again")
            self.assertEqual(self.target.sql("select count(*) from pg_tables where schemaname = 'public'"), "0")
            made, _ = self.back_up(2)
            self.target.restore(made / "database.dump")
            self.assertEqual(self.target.rows(select), self.database.rows(select))

    def test_half_a_restore_leaves_an_older_server_as_it_was(self):
        made, _ = self.back_up()
        dump = made / "database.dump"
        with older_server() as address:
            target = self.fresh_on(address)
            target.sql("create table users (id int)")
            with self.assertRaisesRegex(Problem, 'psql failed .*relation "users" already exists'):
                target.restore(dump)
            target.sql("drop table users")
            whole = dump.read_bytes()
            dump.write_bytes(whole[: len(whole) * 3 // 4])
            with self.assertRaisesRegex(Problem, "pg_restore failed"):
                target.restore(dump)
            self.assertEqual(target.sql("select count(*) from pg_tables where schemaname = 'public'"), "0")

    def fresh_on(self, address, name="older"):
        Database(self.sandbox.settings, f"{address}/postgres").sql(f"create database {name}")
        return Database(self.sandbox.settings, f"{address}/{name}")

    def test_the_rules_of_the_books_come_back_too(self):
        self.restore(self.back_up()[0])
        with self.assertRaisesRegex(Problem, "credits move only by a ledger entry"):
            self.target.sql("update users set credits = 1000")

    def test_a_server_that_stumbles_is_asked_again(self):
        self.server.stumbles = [503, 500]
        self.assertEqual(self.back_up()[1], set())

    def test_a_server_that_refuses_ends_the_backup(self):
        self.server.stumbles = [403] * 100
        with self.assertRaisesRegex(Problem, "403"):
            self.back_up()
        self.assertEqual(backup.whole(self.folder), [])

    def test_the_next_backup_copies_only_what_is_new(self):
        self.back_up(1)
        self.server.asked.clear()
        self.picture("0192a000-0000-7000-8000-000000000099", b"new")
        made, _ = self.back_up(2)
        self.assertEqual({key.split("/")[1][-2:] for key in self.server.asked}, {"99"})
        self.assertEqual(len(backup.objects_of(made)), 8)

    def test_a_picture_that_came_after_the_dump_is_not_missed(self):
        later = "0192a000-0000-7000-8000-000000000077"
        self.meanwhile(lambda: self.picture(later, b"later"))
        made, missing = self.back_up()
        self.assertEqual(missing, set())
        self.restore(made)
        self.assertEqual(self.target.sql(f"select count(*) from images where id = '{later}'"), "0")

    def test_what_its_owner_deletes_meanwhile_stays_deleted_and_its_run_ends(self):
        deleted = IMAGES[2]
        self.database.sql(
            f"""insert into jobs (id, owner_id, image_id, tool, tier, cost) values ('{JOB}', '{PERSON}', '{deleted}', 'remove-background', 'paid', 5);
                update users set reserved = 5"""
        )
        self.meanwhile(lambda: self.delete(deleted))
        made, missing = self.back_up()
        gone = [f"images/{deleted}/original", f"images/{deleted}/thumbnail"]
        self.assertEqual((missing, json.loads((made / "backup.json").read_text())["gone"]), (set(), gone))
        said = []

        def program(_, *arguments):
            said.append(arguments)
            if arguments[:3] == ("admin", "jobs", "fail"):
                ended = "state = 'failed', failure_code = 'ended', finished_at = now()"
                self.target.sql(f"update jobs set {ended} where id = '{arguments[3]}'; update users set reserved = 0")
            return 0, ""

        self.restore(made, program)
        self.assertEqual(said[0], ("--version",))
        self.assertEqual(said[1][:4], ("admin", "jobs", "fail", JOB))
        self.assertEqual(said[-1], ("admin", "audit"))
        self.assertEqual(self.target.keys(), {key for key in self.server.buckets["new"]})
        self.assertEqual(self.target.sql("select count(*) from images"), "2")

    def meanwhile(self, happens):
        """Once, when the first object is asked for."""
        todo = [happens]

        def before_get(_):
            # Threads ask at once; taking from a list is for one of them.
            with contextlib.suppress(IndexError):
                todo.pop()()

        self.server.before_get = before_get
        # One after the other, so that the first comes before the rest.
        single = mock.patch.object(backup, "AT_ONCE", 1)
        single.start()
        self.addCleanup(single.stop)

    def delete(self, image):
        self.database.sql(f"update jobs set image_id = null, state = 'cancelled', finished_at = now() where image_id = '{image}'")
        self.database.sql(f"delete from images where id = '{image}'")
        for name in ("original", "thumbnail"):
            del self.server.buckets["old"][f"images/{image}/{name}"]

    def test_a_picture_that_is_lost_is_named_and_the_rest_is_saved(self):
        lost = f"images/{IMAGES[0]}/original"
        del self.server.buckets["old"][lost]
        made, missing = self.back_up()
        self.assertEqual(missing, {lost})
        self.assertEqual(len(restore.check(made)), 5)

    def test_a_restore_into_what_is_not_empty_is_refused(self):
        made, _ = self.back_up()
        self.target.sql("create table something (id int)")
        with self.assertRaisesRegex(Problem, "The database holds 1 tables"):
            self.restore(made)
        self.target = self.fresh("new")
        self.server.buckets["new"] = {"images/x/original": (b"theirs", "image/png")}
        with self.assertRaisesRegex(Problem, "holds images/x/original"):
            self.restore(made)
        self.assertEqual(self.target.sql("select count(*) from pg_tables where schemaname = 'public'"), "0")

    def test_a_restore_that_could_not_be_audited_does_not_begin(self):
        made, _ = self.back_up()
        with self.assertRaisesRegex(Problem, "does not run here"):
            self.restore(made, lambda *_: (127, "no such library"))
        self.assertEqual(self.target.sql("select count(*) from pg_tables where schemaname = 'public'"), "0")

    def test_a_damaged_backup_is_refused_before_anything_changes(self):
        made, _ = self.back_up()
        path = self.folder / "objects" / "images" / IMAGES[1] / "original"
        path.write_bytes(b"picture X")
        with self.assertRaisesRegex(Problem, "1 objects of .* are missing or damaged"):
            self.restore(made)
        path.write_bytes(b"picture 1")
        restore.check(made)
        with open(made / "database.dump", "ab") as dump:
            dump.write(b"x")
        with self.assertRaisesRegex(Problem, "is not as it was written"):
            self.restore(made)

    def test_a_backup_that_broke_off_is_none(self):
        made, _ = self.back_up()
        (made / "backup.json").unlink()
        with self.assertRaisesRegex(Problem, "broke off"):
            restore.check(made)

    def test_old_backups_go_with_the_pictures_only_they_have(self):
        for day in (1, 2):
            self.back_up(day)
        self.delete(IMAGES[0])
        self.back_up(3)
        (self.folder / "2026-10-01T030000Z").mkdir()
        (self.folder / "2026-10-01T030000Z" / "database.dump").write_bytes(b"broke off")
        backup.forget(self.folder, 1)
        self.assertEqual([path.name for path in backup.whole(self.folder)], ["2026-11-03T030000Z"])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["2026-11-03T030000Z", "objects"])
        left = {path.parent.name for path in (self.folder / "objects").rglob("*") if path.is_file()}
        self.assertEqual(left, set(IMAGES[1:]))
        restore.check(backup.whole(self.folder)[0])
