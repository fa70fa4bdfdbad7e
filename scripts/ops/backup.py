"""`scripts/backup FOLDER`: Postgres and the pictures, so that together they are one moment.

    FOLDER/objects/images/…            each picture once, shared by all backups: an object never changes
    FOLDER/2026-11-21T030000Z/database.dump
                              objects.tsv      key, size, SHA-256 and type of each object that the dump names
                              backup.json      written last: a backup without it broke off

The database comes first and the objects it names second: the other way round a dump would name pictures that came in
between. What its owner deletes in between is noted as gone, and a restore leaves it deleted.
"""

import argparse
import concurrent.futures
import datetime
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from common import addresses
from common.config import load
from common.console import Problem, line, step, took, warn

from .bucket import Account, Bucket
from .database import Database

AT_ONCE = 8
FORMAT = 1
METRICS = """# HELP retouch_backup_finished_seconds When the last whole backup was finished, in Unix time.
# TYPE retouch_backup_finished_seconds gauge
retouch_backup_finished_seconds {finished:.0f}
# HELP retouch_backup_bytes How large it is, with objects that other backups share.
# TYPE retouch_backup_bytes gauge
retouch_backup_bytes {bytes}
"""


def main():
    parser = argparse.ArgumentParser(prog="scripts/backup", description="Copies Postgres and every picture it names into a folder.")
    parser.add_argument("folder", type=Path, help="where backups are kept; pictures that are there already are not copied again")
    parser.add_argument("--keep", type=int, metavar="N", help="afterwards delete all backups but the newest N, and their pictures")
    parser.add_argument("--metrics", type=Path, metavar="FILE", help="write when it ended, for node_exporter's textfile collector")
    options = parser.parse_args()
    if options.keep is not None and options.keep < 1:
        raise Problem("--keep must be at least 1.")
    settings = load()
    made, missing = back_up(database_of(settings), bucket_of(settings), options.folder.resolve())
    if missing:
        warn(f"{len(missing)} objects are named by the database and not in the bucket: {', '.join(sorted(missing)[:5])} …")
        warn(f"{made} holds everything else. `retouch-api admin audit` names all of them.")
        return 1
    if options.keep:
        forget(options.folder.resolve(), options.keep)
    if options.metrics:
        size = json.loads((made / "backup.json").read_text())["bytes"]
        write_whole(options.metrics, METRICS.format(finished=time.time(), bytes=size))
    return 0


def database_of(settings):
    return Database(settings, addresses.database_url(settings))


def bucket_of(settings):
    shared = addresses.shared_environment(settings)
    wanted = ("S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY")
    if absent := [name for name in wanted if not shared.get(name)]:
        raise Problem(f"{' and '.join(absent)} must be set.")
    access, secret = (shared[name] for name in wanted)
    region, bucket = shared.get("S3_REGION") or "us-east-1", shared.get("S3_BUCKET") or "retouch"
    return Bucket(Account(shared.get("S3_ENDPOINT") or "", region, bucket, access, secret))


def back_up(database, bucket, folder, now=None):
    """Makes one backup. Returns its folder, and the keys that are lost although a row names them."""
    now = now or datetime.datetime.now(datetime.timezone.utc)
    made = folder / now.strftime("%Y-%m-%dT%H%M%SZ")
    made.mkdir(parents=True, mode=0o700)
    started = time.monotonic()
    with step("Dumping the database"), database.moment() as snapshot:
        keys = sorted(database.keys_at(snapshot))
        database.dump(snapshot, made / "database.dump")
    with step(f"Copying what is not there yet of {len(keys)} objects"):
        objects, absent = copy_all(bucket, folder / "objects", keys, known_in(folder))
    # Deleted by its owner meanwhile, or lost?
    missing = absent & database.keys() if absent else set()
    rows = (f"{key}\t{size}\t{checksum}\t{kind}\n" for key, (size, checksum, kind) in sorted(objects.items()))
    write_whole(made / "objects.tsv", "".join(rows))
    dump = made / "database.dump"
    contents = {
        "format": FORMAT,
        "finished": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "database_sha256": checksum_of(dump),
        "objects_sha256": checksum_of(made / "objects.tsv"),
        "objects": len(objects),
        "bytes": dump.stat().st_size + sum(size for size, _, _ in objects.values()),
        "gone": sorted(absent - missing),
        "missing": sorted(missing),
    }
    write_whole(made / "backup.json", json.dumps(contents, indent=2) + "\n")
    line(f"{made}: the database and {len(objects)} objects, {contents['bytes'] / 1e6:.1f} MB, in {took(time.monotonic() - started)}")
    return made, missing


def copy_all(bucket, folder, keys, known):
    """Returns what is in the folder now, by key, and the keys that are not in the bucket."""

    def copy(key):
        if key in known and (folder / key).is_file() and (folder / key).stat().st_size == known[key][0]:
            return known[key]
        path = inside(folder, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".coming-", delete=False) as file:
            try:
                found = bucket.download(key, file)
                if found:
                    file.flush()
                    os.fsync(file.fileno())
                    os.replace(file.name, path)
                return found
            finally:
                Path(file.name).unlink(missing_ok=True)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        copied = dict(zip(keys, threads.map(copy, keys)))
    return {key: found for key, found in copied.items() if found}, {key for key, found in copied.items() if not found}


def inside(folder, key):
    """Where an object lies. A key that leads elsewhere is none of ours."""
    path = (folder / key).resolve()
    if not path.is_relative_to(folder.resolve()) or any(character in key for character in "\t\n"):
        raise Problem(f"The database names an object with a strange key: {key!r}.")
    return path


def whole(folder):
    """Backups that did not break off, the oldest first."""
    return sorted(path.parent for path in folder.glob("*/backup.json"))


def known_in(folder):
    """What earlier backups say of the objects they share."""
    known = {}
    for backup in whole(folder):
        known |= objects_of(backup)
    return known


def objects_of(backup):
    objects = {}
    for text in (backup / "objects.tsv").read_text().splitlines():
        key, size, checksum, kind = text.split("\t")
        objects[key] = (int(size), checksum, kind)
    return objects


def forget(folder, keep):
    """Deletes all but the newest backups, those that broke off before them, and objects that no backup names."""
    kept = whole(folder)[-keep:]
    for backup in sorted(path for path in folder.iterdir() if path.is_dir() and path.name != "objects"):
        if (backup / "database.dump").exists() and backup not in kept and backup < kept[-1]:
            shutil.rmtree(backup)
            line(f"Deleted {backup.name}")
    named = {key for backup in kept for key in objects_of(backup)}
    for path in sorted((folder / "objects").rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif str(path.relative_to(folder / "objects")) not in named:
            path.unlink()


def checksum_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path, text):
    """The file is as it was, or as it shall be, never half."""
    new = path.with_name(f".{path.name}.new")
    with open(new, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


