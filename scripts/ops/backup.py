"""`scripts/backup FOLDER`: saves a consistent copy of Postgres and of the objects that it names.

    FOLDER/lock                        held while a backup runs
    FOLDER/objects/images/…            each object once, shared by all backups, because objects never change
    FOLDER/2026-11-21T030000Z/database.dump
                              objects.tsv      key, size, SHA-256 and type of each object that the dump names
                              backup.json      written last: without it, the backup is incomplete

The database is copied first, so that the dump names no object that is uploaded during the backup. Objects that are deleted
during the backup are recorded as gone, and a restore deletes their rows. Each backup also lists the bucket, to
find what it has lost since, and reads a share of the objects that earlier backups copied, to copy damaged ones again.
"""

import argparse
import datetime
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

from common import addresses
from common.config import load
from common.console import Problem, line, step, took, warn

from .bucket import Bucket
from .database import Database

FORMAT = 1
# Every copied object is read again once in so many days.
VERIFY_DAYS = 28
DATED = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z")
METRICS = """# HELP retouch_backup_finished_seconds When the last complete backup finished, in Unix time.
# TYPE retouch_backup_finished_seconds gauge
retouch_backup_finished_seconds {finished:.0f}
# HELP retouch_backup_bytes Its size, including objects that it shares with other backups.
# TYPE retouch_backup_bytes gauge
retouch_backup_bytes {bytes}
# HELP retouch_backup_missing_objects Objects that the database names and the bucket lacked.
# TYPE retouch_backup_missing_objects gauge
retouch_backup_missing_objects {missing}
"""


def main():
    parser = argparse.ArgumentParser(prog="scripts/backup", description="Copies Postgres and all objects that it names into a folder.")
    parser.add_argument("folder", type=Path, help="the folder of the backups; objects in it are not copied again")
    parser.add_argument("--keep", type=int, metavar="N", help="afterwards, delete all backups except the newest N, with their objects")
    parser.add_argument("--prune", action="store_true", help="only delete what --keep says, without a new backup: for a full disk")
    parser.add_argument("--metrics", type=Path, metavar="FILE", help="write the time of the backup for the textfile collector of node_exporter")
    parser.add_argument("--allow-missing", action="store_true", help="exit with 0 even if the bucket lacked objects, which is still reported")
    options = parser.parse_args()
    if options.keep is not None and options.keep < 1:
        raise Problem("--keep must be at least 1.")
    if options.prune and not options.keep:
        raise Problem("--prune needs --keep N.")
    if options.metrics and not options.metrics.parent.is_dir():
        raise Problem(f"--metrics: {options.metrics.parent} is not a folder.")
    settings, folder = load(), options.folder.resolve()
    if options.prune and not folder.is_dir():
        raise Problem(f"{folder} is not a folder.")
    with alone_in(folder):
        discard_incomplete(folder)
        if options.prune:
            forget(folder, options.keep)
            return 0
        made, missing = back_up(database_of(settings), Bucket(settings), folder)
        # Also if objects are missing: this backup names those that earlier ones hold.
        if options.keep:
            forget(folder, options.keep)
    if options.metrics:
        size = json.loads((made / "backup.json").read_text())["bytes"]
        write_atomically(options.metrics, METRICS.format(finished=time.time(), bytes=size, missing=len(missing)))
    if missing:
        some = ", ".join(sorted(missing)[:5]) + (" …" if len(missing) > 5 else "")
        warn(f"The bucket lacks {len(missing)} objects that the database names: {some}")
        held = len(missing & objects_of(made).keys())
        warn(f"{made} has everything else; {held} of the missing objects are in a backup. docs/runbooks/objects-missing.md says what to do.")
        return 0 if options.allow_missing else 1
    return 0


def database_of(settings):
    return Database(settings, addresses.database_url(settings))


@contextmanager
def alone_in(folder):
    """Keeps other backups out of a folder: they would delete the objects that this one has copied but not named yet."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A file, because NFS does not lock folders.
    with open(folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Problem(f"Another backup into {folder} is running. Wait until it has finished, then start this one again.") from error
        yield


@contextmanager
def kept(backup):
    """Keeps `forget` from deleting a backup that a restore is reading."""
    try:
        dump = open(backup / "database.dump", "rb")
    except FileNotFoundError as error:
        raise Problem(f"{backup} has no database.dump. It is not a backup, or an incomplete one.") from error
    with dump:
        # A file system without locks must not prevent a restore.
        with suppress(OSError):
            fcntl.flock(dump, fcntl.LOCK_SH)
        yield


def back_up(database, bucket, folder, now=None):
    """Makes a backup. Returns its folder, and the keys of missing objects that a row names."""
    now = now or datetime.datetime.now(datetime.UTC)
    made = folder / now.strftime("%Y-%m-%dT%H%M%SZ")
    made.mkdir(parents=True, mode=0o700)
    started = time.monotonic()
    with step("Dumping the database"), database.snapshot() as snapshot:
        keys = sorted(database.keys_at(snapshot))
        database.dump(snapshot, made / "database.dump")
    with step(f"Copying new objects of {len(keys)}"):
        objects, absent = copy_new(bucket, folder / "objects", keys, known_in(folder), now.toordinal())
    with step("Comparing them with the bucket"):
        absent |= objects.keys() - bucket.keys()
    # An absent object is missing if a row still names it; otherwise its owner has deleted it.
    missing = absent & database.keys() if absent else set()
    rows = (f"{key}\t{size}\t{checksum}\t{kind}\n" for key, (size, checksum, kind) in sorted(objects.items()))
    write_atomically(made / "objects.tsv", "".join(rows))
    dump = made / "database.dump"
    contents = {
        "format": FORMAT,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "database_sha256": checksum_of(dump),
        "objects_sha256": checksum_of(made / "objects.tsv"),
        "objects": len(objects),
        "bytes": dump.stat().st_size + sum(size for size, _, _ in objects.values()),
        "gone": sorted(absent - missing),
        "missing": sorted(missing),
    }
    write_atomically(made / "backup.json", json.dumps(contents, indent=2) + "\n")
    line(f"{made}: the database and {len(objects)} objects, {contents['bytes'] / 1e6:.1f} MB, in {took(time.monotonic() - started)}")
    return made, missing


def copy_new(bucket, folder, keys, known, day):
    """Copies objects that earlier backups lack or hold damaged. Returns all objects by key, and the keys of absent objects."""
    shared = {key: known[key] for key in keys if key in known and is_whole(inside(folder, key), known[key], verify=is_due(key, day))}
    new = [key for key in keys if key not in shared and inside(folder, key)]
    copied, absent = bucket.download(new, folder) if new else ({}, set())
    return shared | copied, absent


def is_whole(path, known, verify):
    """Returns whether an object has the known size, and with `verify` the known checksum. Reports a wrong checksum."""
    size, checksum, _ = known
    if not path.is_file() or path.stat().st_size != size:
        return False
    if verify and checksum_of(path) != checksum:
        warn(f"{path} was damaged; it is copied again if the bucket still has it.")
        return False
    return True


def is_due(key, day):
    """Spreads the objects over VERIFY_DAYS days."""
    return zlib.crc32(key.encode()) % VERIFY_DAYS == day % VERIFY_DAYS


def inside(folder, key):
    """Returns the path of an object. Raises a Problem if the key leads out of the folder."""
    path = (folder / key).resolve()
    if not path.is_relative_to(folder.resolve()) or any(character in key for character in "\t\n"):
        raise Problem(f"The database names an object with an invalid key: {key!r}.")
    return path


def complete(folder):
    """Returns the complete backups, oldest first."""
    return sorted(path.parent for path in folder.glob("*/backup.json"))


def known_in(folder):
    """Returns the objects of all earlier backups by key."""
    known = {}
    for backup in complete(folder):
        known |= objects_of(backup)
    return known


def objects_of(backup):
    objects = {}
    for text in (backup / "objects.tsv").read_text().splitlines():
        key, size, checksum, kind = text.split("\t")
        objects[key] = (int(size), checksum, kind)
    return objects


def discard_incomplete(folder):
    """Deletes what killed backups have left: nobody restores it, and it takes the room of the next one."""
    for backup in sorted(folder.iterdir()):
        if DATED.fullmatch(backup.name) and not (backup / "backup.json").exists():
            shutil.rmtree(backup)
            line(f"Deleted {backup.name}, which was incomplete")


def forget(folder, keep):
    """Deletes all backups but the newest, and objects that no remaining backup names."""
    for backup in complete(folder)[:-keep]:
        delete(backup)
    named = {key for backup in complete(folder) for key in objects_of(backup)}
    for path in sorted((folder / "objects").rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif str(path.relative_to(folder / "objects")) not in named:
            path.unlink()


def delete(backup):
    """Deletes a backup, unless a restore is reading it."""
    with open(backup / "database.dump", "r+b") as dump:
        try:
            fcntl.flock(dump, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            warn(f"Kept {backup.name}, because a restore is reading it. A later backup with --keep deletes it.")
            return
        # From now on it is incomplete, so a restore that gets the lock next rejects it.
        (backup / "backup.json").unlink(missing_ok=True)
    shutil.rmtree(backup)
    line(f"Deleted {backup.name}")


def checksum_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path, text):
    new = path.with_name(f".{path.name}.new")
    with open(new, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
