"""Lints new migrations for locks that stop a large table, with squawk. `.squawk.toml` has the rules, and the files from before.

sqlx sends a file to Postgres as one query. Without a transaction of its own that works for a single statement only, and squawk
does not know it: two rules are checked here.
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
# What sqlx looks for at the very beginning of a file.
MARK = "-- no-transaction"


def check(folder=FOLDER):
    """Returns one sentence for each thing that is wrong."""
    texts = {os.path.relpath(path, REPO): path.read_text() for path in sorted(folder.glob("*.sql"))}
    alone = [name for name, text in texts.items() if text.startswith(MARK)]
    together = [name for name in texts if name not in alone]
    findings = [f"{name}: {wrong}" for name, text in texts.items() if (wrong := wrong_transaction(text))]
    # A file with the mark has no room for `set lock_timeout`, and building an index concurrently lets others read and write.
    excluded = [*tomllib.loads(SETTINGS.read_text())["excluded_rules"], "require-lock-timeout"]
    return findings + squawk(together) + squawk(alone, "--no-assume-in-transaction", f"--exclude={','.join(excluded)}")


def wrong_transaction(text):
    """Returns what is wrong with a file's place inside or outside of a transaction; "" if nothing is."""
    statements = [part for part in re.sub(r"--.*", "", text).split(";") if part.strip()]
    if text.startswith(MARK):
        return "" if len(statements) == 1 else f"a file with `{MARK}` holds exactly one statement"
    if any(re.search(r"\bconcurrently\b", part, re.I) for part in statements):
        return f"`concurrently` does not work in a transaction: begin the file with `{MARK}`"
    return ""


def squawk(names, *options):
    if not names:
        return []
    command = [linters.program("squawk"), "--config", SETTINGS, "--reporter=json", "--no-error-on-unmatched-pattern", *options, *names]
    said = linters.said_by(command)
    try:
        return [sentence(finding) for finding in json.loads(said or "[]")]
    except json.JSONDecodeError:
        raise Problem(f"squawk failed: {said}") from None


def sentence(finding):
    """Squawk counts lines from 0."""
    text = f"{finding['file']}:{finding['line'] + 1}: {finding['message']}"
    return f"{text} {finding['help'] or ''}".rstrip() + f" [{finding['rule_name']}]"
