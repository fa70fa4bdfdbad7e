"""Asks for the acceptance of a license that demands something of operators, and records it beside the model."""

import sys
import tomllib

from common.console import Problem

from .hub_source import entry, is_commit
from .progress import info

RECORD = "licence-accepted.toml"


def require(model, is_accepted, places, command="fetch", terminal=None, answer=None):
    """Shows a license with its duties. Raises a Problem unless it was accepted: before, now by `is_accepted`, or by an answer.

    `places` are the folders that may have the record of an earlier acceptance.
    """
    source = model.source
    if not source.duties or any(was_accepted(folder / RECORD, model) for folder in places):
        return
    info(f"{model.name} is under the license {model.license}, by {model.attribution}: {source.terms}\nWhoever uses it must:")
    for duty in source.duties:
        info(f"  • {duty}")
    if is_accepted:
        info("Accepted with --accept-licence.")
        return
    terminal = sys.stdin.isatty() if terminal is None else terminal
    if not terminal:
        raise Problem(
            f"{command} {model.name}: nobody has accepted its license, {model.license}. Read {source.terms}, then run "
            f"`scripts/models {command} {model.name} --accept-licence`."
        )
    print("Do you accept this license? [y/N] ", end="", file=sys.stderr, flush=True)
    if (answer or sys.stdin.readline)().strip().lower() not in ("y", "yes"):
        raise Problem(f"{command} {model.name}: its license, {model.license}, was not accepted, so nothing was downloaded.")


def was_accepted(record, model):
    try:
        found = tomllib.loads(record.read_text())
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return False
    source = model.source
    wanted = {"licence": model.license, "repository": source.repository}
    if is_commit(source.revision):
        wanted["revision"] = source.revision
    return all(found.get(field) == value for field, value in wanted.items())


def record(model, commit, folder, today):
    """Records the acceptance of a license, with its date and the revision."""
    if not model.source.duties:
        return
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Written by `scripts/models fetch`: whoever ran it accepted this license.",
        entry("licence", model.license),
        entry("terms", model.source.terms),
        entry("repository", model.source.repository),
        entry("revision", commit),
        f"accepted_on = {today.isoformat()}",
    ]
    (folder / RECORD).write_text("\n".join(lines) + "\n")


def move(place, folder):
    """Moves the record of an acceptance, if there is one."""
    if (place / RECORD).exists():
        (place / RECORD).replace(folder / RECORD)
