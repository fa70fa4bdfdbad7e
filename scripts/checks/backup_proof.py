"""Proves with the real programs that a backup made under load restores completely."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from common.config import REPO, load
from common.console import line
from devstack.sandbox import Sandbox
from devstack.trial import Trial, expect, png, report_of, until, upload
from ops import backup, restore, retouch_api
from ops.bucket import Bucket
from ops.database import Database

DELETED = 10


def a_backup_can_be_restored():
    """A backup is made during a load, while images are deleted; the restored installation passes the audit."""
    with Sandbox("proofs-backup") as sandbox, tempfile.TemporaryDirectory(prefix="retouch-backups-") as folder:
        trial = Trial(sandbox, {"RETOUCH_JOBS_IN_FLIGHT": "4"}, workers=1)
        people = trial.people(6)
        doomed = [upload(trial.api, people[0].token, png(40 + number, 30)) for number in range(DELETED)]
        load_ = trial.begin_load(people * 2, jobs=300, seconds=60, insist=60)
        until(lambda: trial.number("select count(*) from jobs where state = 'done'") >= 100, "100 jobs are done", 90)
        settings = of_the_trial(trial, folder)
        bucket, database = Bucket(settings), backup.database_of(settings)
        made, missing = with_deletions(trial, people[0].token, doomed, bucket, lambda: backup.back_up(database, bucket, Path(folder)))
        report = report_of(load_)
        expect(not missing, "A backup under load is complete", missing)
        expect(report["done"] == 300, "All jobs finish during a backup", report)
        gone = json.loads((made / "backup.json").read_text())["gone"]
        expect(gone, "Images were deleted during the backup", gone)
        then = json.loads((made / "backup.json").read_text())["objects"]
        restored(trial, settings, made)
        second, missing = backup.back_up(database, bucket, Path(folder))
        expect(not missing and len(backup.objects_of(second)) > then, "A later backup has more objects", (missing, then))
        check = subprocess.run([REPO / "scripts" / "restore", "--check", second], capture_output=True, text=True)
        expect(check.returncode == 0, "`scripts/restore --check` passes", check.stdout + check.stderr)
        line(f"  {then} objects in the first backup, {len(gone)} deleted during it, {len(backup.objects_of(second))} in the second")


def of_the_trial(trial, home):
    """Returns the settings that an operator would set where `scripts/up` never ran: addresses in the environment."""
    running = trial.running("api").service.environment
    names = ("DATABASE_URL", "S3_ENDPOINT", "S3_REGION", "S3_BUCKET", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY")
    return load({"RETOUCH_HOME": home} | {name: running[name] for name in names})


def with_deletions(trial, token, images, bucket, make):
    """Makes a backup, and deletes images with their objects when it starts copying."""
    download = bucket.download

    def delete():
        for image in images:
            command = ["curl", "-sf", "-X", "DELETE", "-H", f"Authorization: Bearer {token}", f"{trial.api}/api/images/{image}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        until(lambda: trial.number("select count(*) from doomed_objects") == 0, "the janitor deletes the objects", 60)

    def delete_first(keys, folder):
        delete()
        return download(keys, folder)

    bucket.download = delete_first
    try:
        return make()
    finally:
        bucket.download = download


def restored(trial, settings, made):
    """Restores into another database and bucket of the same servers, which passes the audit; a second restore is refused."""
    trial.postgres.psql("create database restored")
    place, _, _ = settings.values["DATABASE_URL"].rpartition("/")
    target = load({**settings.values, "DATABASE_URL": f"{place}/restored", "S3_BUCKET": "restored"})
    status = restore.restore(target, made, restore.check(made))
    expect(status == 0, "A restore succeeds", status)
    copy = Database(target, target.values["DATABASE_URL"])
    books = "select (select sum(amount) from ledger) = (select sum(credits) from users)"
    expect(copy.sql(books) == "t", "Balances are the sums of their ledger entries", copy.sql("select sum(credits) from users"))
    # As on a node where nobody changed the bucket.
    status, output = retouch_api.run(load({**target.values, "S3_BUCKET": settings.values["S3_BUCKET"]}), "migrate")
    expect(status != 0 and "belongs to another database" in output, "The old bucket is refused", output)
    refused = subprocess.run([REPO / "scripts" / "restore", made], env={**target.values, "PATH": os.environ["PATH"]}, capture_output=True, text=True)
    expect(refused.returncode == 1 and "needs an empty one" in refused.stderr, "A second restore is refused", refused.stderr)
