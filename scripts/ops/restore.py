"""`scripts/restore BACKUP`: brings Postgres and the pictures back, into what is empty and nowhere else."""

import argparse
import concurrent.futures
import json
import os
import subprocess
import time
from pathlib import Path

from common import addresses
from common.config import PROGRAMS, load
from common.console import Problem, line, step, took

from .backup import AT_ONCE, FORMAT, bucket_of, checksum_of, database_of, inside, objects_of

REASON = "The picture had been deleted. You have not been charged."


def main():
    parser = argparse.ArgumentParser(prog="scripts/restore", description="Brings a backup back into an empty database and bucket.")
    parser.add_argument("backup", type=Path, help="a folder that scripts/backup has made, e.g. /backups/2026-11-21T030000Z")
    parser.add_argument("--check", action="store_true", help="only look whether every byte of it is there")
    options = parser.parse_args()
    settings, backup = load(), options.backup.resolve()
    objects = check(backup)
    if options.check:
        database_of(settings).contents(backup / "database.dump")
        line(f"{backup} is whole: the database and {len(objects)} objects.")
        return 0
    return restore(settings, backup, objects)


def check(backup):
    """Everything that a restore would read, before it changes anything. Returns the objects."""
    try:
        contents = json.loads((backup / "backup.json").read_text())
    except FileNotFoundError as error:
        raise Problem(f"{backup} has no backup.json: it is no backup, or one that broke off.") from error
    if contents["format"] != FORMAT:
        raise Problem(f"{backup} is of format {contents['format']}; this version reads {FORMAT}.")
    for name in ("database.dump", "objects.tsv"):
        if checksum_of(backup / name) != contents[f"{name.partition('.')[0]}_sha256"]:
            raise Problem(f"{backup / name} is not as it was written.")
    objects = objects_of(backup)
    folder = backup.parent / "objects"

    def is_right(key):
        path, (size, checksum, _) = inside(folder, key), objects[key]
        return path.is_file() and path.stat().st_size == size and checksum_of(path) == checksum

    with step(f"Checking {len(objects)} objects"), concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        wrong = [key for key, right in zip(objects, threads.map(is_right, objects)) if not right]
    if wrong:
        raise Problem(f"{len(wrong)} objects of {backup} are missing or damaged: {', '.join(wrong[:5])}")
    return objects


def restore(settings, backup, objects):
    database, bucket = database_of(settings), bucket_of(settings)
    started = time.monotonic()
    refuse_what_is_not_empty(database, bucket)
    status, said = program(settings, "--version")
    if status:
        raise Problem(f"retouch-api does not run here: {said}")
    with step("Restoring the database"):
        database.restore(backup / "database.dump")
        database.sql("analyze")
    take_out(settings, database, json.loads((backup / "backup.json").read_text())["gone"])
    keys = sorted(database.keys() & objects.keys())
    with step(f"Copying {len(keys)} objects"):
        if not bucket.exists():
            bucket.create()
        copy_back(bucket, backup.parent / "objects", keys, objects)
    with step("Auditing the books and the bucket"):
        status, said = audit(settings)
    line(said)
    if status:
        raise Problem("The restore is complete, but the audit has found something; see above. Nobody should work on it yet.")
    line(f"Restored {backup} in {took(time.monotonic() - started)}. Start the API and the workers now.")
    return 0


def refuse_what_is_not_empty(database, bucket):
    tables = database.sql("select count(*) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')")
    if tables != "0":
        raise Problem(f"The database holds {tables} tables. A restore needs an empty one: `create database retouch_restored`.")
    if bucket.exists():
        for folder in ("images/", "results/"):
            for key, _ in bucket.list(folder):
                raise Problem(f"The bucket {bucket.account.bucket} holds {key}. A restore needs an empty one, or a new name in S3_BUCKET.")


def take_out(settings, database, gone):
    """What its owner deleted while the backup was made stays deleted; runs on it end and cost nothing."""
    # A new bucket knows of no upload that was under way.
    database.sql("delete from unfinished_uploads")
    if not gone:
        return
    named = "object_key = any(:'gone') or thumbnail_key = any(:'gone')"
    keys = "{" + ",".join(gone) + "}"
    unfinished = f"select j.id from jobs j join images i on i.id = j.image_id where j.state in ('queued', 'running') and ({named})"
    for row in database.rows(unfinished.replace("object_key", "i.object_key").replace("thumbnail_key", "i.thumbnail_key"), gone=keys):
        status, said = program(settings, "admin", "jobs", "fail", row["id"], "--reason", REASON)
        if status:
            raise Problem(f"Run {row['id']} could not be ended: {said}")
    database.sql(f"delete from results where {named}; delete from images where {named}", gone=keys)


def copy_back(bucket, folder, keys, objects):
    def copy(key):
        size, checksum, kind = objects[key]
        with open(inside(folder, key), "rb") as file:
            bucket.upload(key, file, size, checksum, kind)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        for _ in threads.map(copy, keys):
            pass


def audit(settings):
    return program(settings, "admin", "audit")


def program(settings, *arguments):
    """`retouch-api` on what was restored: its exit status and what it printed."""
    shared = addresses.shared_environment(settings)
    shared.setdefault("DATABASE_URL", addresses.database_url(settings))
    built = PROGRAMS / "retouch-api"
    command = [str(built) if built.exists() else "retouch-api", *arguments]
    try:
        ran = subprocess.run(command, env={**os.environ, **shared}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError as error:
        raise Problem(f"Cannot run retouch-api ({error.strerror}): build it, or put it on the search path. A restore ends with its audit.") from error
    return ran.returncode, (ran.stdout + ran.stderr).strip()
