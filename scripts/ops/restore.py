"""`scripts/restore BACKUP`: restores Postgres and the objects into an empty database and an empty bucket."""

import argparse
import concurrent.futures
import json
import time
from pathlib import Path

from common.config import load
from common.console import Problem, line, step, took, warn

from . import retouch_api
from .backup import FORMAT, checksum_of, database_of, inside, kept, objects_of
from .bucket import Bucket

# Shown to the owner of a job whose image was deleted.
REASON = "The picture had been deleted. You have not been charged."
# A process that still uses the old bucket then sees that it belongs to another database. Version 0.1.0 has no id.
NEW_ID = """do $$ begin
    if to_regclass('installation') is not null then update installation set id = gen_random_uuid(); end if;
end $$"""
DELETIONS = "repeat the deletions since the backup (docs/backup.md, step 5)"


def main():
    parser = argparse.ArgumentParser(prog="scripts/restore", description="Restores a backup into an empty database and an empty bucket.")
    parser.add_argument("backup", type=Path, help="a folder created by scripts/backup, such as /backups/2026-11-21T030000Z")
    parser.add_argument("--check", action="store_true", help="only check that the backup is complete and undamaged")
    parser.add_argument(
        "--without-damaged", action="store_true", help="restore what is whole; the audit at the end names the objects that are left out"
    )
    options = parser.parse_args()
    settings, backup = load(), options.backup.resolve()
    with kept(backup):
        objects = check(backup, options.without_damaged)
        if options.check:
            database_of(settings).contents(backup / "database.dump")
            line(f"{backup} is complete: the database and {len(objects)} objects.")
            return 0
        return restore(settings, backup, objects)


def check(backup, without_damaged=False):
    """Verifies the checksums of all files of a backup. Returns its objects; `without_damaged` leaves out those that are not whole."""
    try:
        contents = json.loads((backup / "backup.json").read_text())
    except FileNotFoundError as error:
        raise Problem(f"{backup} has no backup.json. It is not a backup, or an incomplete one.") from error
    except ValueError as error:
        raise Problem(f"{backup / 'backup.json'} is damaged: {error}.") from error
    if contents["format"] != FORMAT:
        raise Problem(f"{backup} has the format {contents['format']}; this version reads {FORMAT}.")
    for name in ("database.dump", "objects.tsv"):
        if checksum_of(backup / name) != contents[f"{name.partition('.')[0]}_sha256"]:
            raise Problem(f"{backup / name} is damaged: its checksum is wrong.")
    objects = objects_of(backup)
    folder = backup.parent / "objects"

    def is_valid(key):
        path, (size, checksum, _) = inside(folder, key), objects[key]
        return path.is_file() and path.stat().st_size == size and checksum_of(path) == checksum

    with step(f"Checking {len(objects)} objects"), concurrent.futures.ThreadPoolExecutor() as threads:
        invalid = [key for key, valid in zip(objects, threads.map(is_valid, objects)) if not valid]
    if invalid and not without_damaged:
        some = ", ".join(invalid[:5])
        raise Problem(f"{len(invalid)} objects of {backup} are missing or damaged: {some}. --without-damaged restores everything else.")
    if invalid:
        warn(f"Left out {len(invalid)} objects that are missing or damaged: {', '.join(invalid)}")
    return {key: objects[key] for key in objects.keys() - invalid}


def restore(settings, backup, objects):
    database, bucket = database_of(settings), Bucket(settings)
    started = time.monotonic()
    status, output = retouch_api.run(settings, "--version")
    if status:
        raise Problem(f"retouch-api does not run here: {output}")
    require_empty(database, bucket)
    with step("Restoring the database"):
        database.restore(backup / "database.dump")
        database.sql(NEW_ID)
        database.sql("analyze")
    gone = json.loads((backup / "backup.json").read_text())["gone"]
    keys = sorted((database.keys() & objects.keys()) - set(gone))
    with step(f"Copying {len(keys)} objects"):
        bucket.upload({key: objects[key] for key in keys}, backup.parent / "objects")
    # For a backup of an older version: the commands below know only the newest schema. After the copy, because it refuses an empty bucket.
    status, output = retouch_api.run(settings, "migrate")
    if status:
        raise Problem(f"Could not migrate the database: {output}")
    delete_gone(settings, database, gone)
    with step("Auditing the ledger and the bucket"):
        status, output = retouch_api.run(settings, "admin", "audit")
    line(output)
    if status:
        raise Problem(f"The restore is complete, but the audit has findings; see above. Before you start the API, resolve them, and {DELETIONS}.")
    line(f"Restored {backup} in {took(time.monotonic() - started)}.")
    line(f"Before you start the API and the workers, {DELETIONS}.")
    return 0


def require_empty(database, bucket):
    tables = database.sql("select count(*) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')")
    if tables != "0":
        raise Problem(f"The database has {tables} tables. A restore needs an empty one; docs/backup.md says how to keep this one.")
    if key := bucket.first_key():
        raise Problem(f"The bucket contains {key}. A restore needs an empty one, or a new name in S3_BUCKET.")


def delete_gone(settings, database, gone):
    """Deletes the rows of objects that were deleted during the backup; open jobs on them fail at no cost."""
    # The new bucket has no unfinished uploads.
    database.sql("delete from unfinished_uploads")
    if not gone:
        return
    named = "object_key = any(:'gone') or thumbnail_key = any(:'gone')"
    keys = "{" + ",".join(gone) + "}"
    unfinished = f"select j.id from jobs j join images i on i.id = j.image_id where j.state in ('queued', 'running') and ({named})"
    for row in database.rows(unfinished.replace("object_key", "i.object_key").replace("thumbnail_key", "i.thumbnail_key"), gone=keys):
        status, output = retouch_api.run(settings, "admin", "jobs", "fail", row["id"], "--reason", REASON)
        if status:
            raise Problem(f"Could not end job {row['id']}: {output}")
    database.sql(f"delete from results where {named}; delete from images where {named}", gone=keys)
    # A picture without its preview is whole.
    for table in ("results", "images"):
        database.sql(f"update {table} set preview_key = null where preview_key = any(:'gone')", gone=keys)
