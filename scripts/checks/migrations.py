"""Lints new migrations with squawk for locks that block large tables. `.squawk.toml` has the rules and excludes old files.

sqlx sends a file to Postgres as one query, so a file outside of a transaction must be a single statement. squawk does not
know that, so this module checks it.
"""

import json
import os
import re
import tomllib

from common.config import REPO
from common.console import Problem

from . import linters

FOLDER = REPO / "migrations"
SETTINGS = REPO / ".squawk.toml"
# At the start of a file, sqlx runs it outside of a transaction.
MARK = "-- no-transaction"


def check(folder=FOLDER):
    """Returns one sentence for each error."""
    texts = {os.path.relpath(path, REPO): path.read_text() for path in sorted(folder.glob("*.sql"))}
    alone = [name for name, text in texts.items() if text.startswith(MARK)]
    together = [name for name in texts if name not in alone]
    findings = [f"{name}: {wrong}" for name, text in texts.items() if (wrong := wrong_transaction(text))]
    # A file with the mark has a single statement, so it cannot set lock_timeout; concurrent index builds need none.
    excluded = [*tomllib.loads(SETTINGS.read_text())["excluded_rules"], "require-lock-timeout"]
    return findings + squawk(together) + squawk(alone, "--no-assume-in-transaction", f"--exclude={','.join(excluded)}")


def wrong_transaction(text):
    """Checks that a file can run inside or outside of a transaction, as it is marked. Returns an error or an empty string."""
    statements = [part for part in re.sub(r"--.*", "", text).split(";") if part.strip()]
    if text.startswith(MARK):
        return "" if len(statements) == 1 else f"a file with `{MARK}` must have exactly one statement"
    if any(re.search(r"\bconcurrently\b", part, re.I) for part in statements):
        return f"`concurrently` does not work in a transaction: begin the file with `{MARK}`"
    return ""


def squawk(names, *options):
    if not names:
        return []
    command = [linters.program("squawk"), "--config", SETTINGS, "--reporter=json", "--no-error-on-unmatched-pattern", *options, *names]
    output = linters.findings_of(command)
    try:
        return [sentence(finding) for finding in json.loads(output or "[]")]
    except json.JSONDecodeError:
        raise Problem(f"squawk failed: {output}") from None


def sentence(finding):
    """Squawk counts lines from 0."""
    text = f"{finding['file']}:{finding['line'] + 1}: {finding['message']}"
    return f"{text} {finding['help'] or ''}".rstrip() + f" [{finding['rule_name']}]"
