"""The text of a pipeline's manifest: what people write above a mark, and what programs write below it."""

import re
import tomllib

from common.console import Problem

# Programs replace everything from here on: the mark of an earlier run, or what a template says about sources.
GENERATED = re.compile(r"^(# Written by `scripts/models (adopt|fetch)`.*|\[(source|export)\].*|\[\[extra\]\].*)$", re.MULTILINE)
GENERATED_TABLES = {"source", "export", "extra"}


def head(path):
    """Returns the part that people write. Refuses a text in which some of it is below, where it would be lost."""
    text = path.read_text()
    found = GENERATED.search(text)
    kept = text[: found.start() if found else None].rstrip() + "\n\n"
    stated, left = facts(text, path), facts(kept, path)
    if lost := [name for name, value in stated.items() if name not in GENERATED_TABLES and left.get(name) != value]:
        raise Problem(f"{path}: move {' and '.join(lost)} above {found[0].strip()!r}, because programs replace everything from there on.")
    return kept


def facts(text, path):
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Problem(f"{path} is not valid TOML: {error}.") from None


def with_reference(head, folder):
    """Returns a head that names the folder of reference vectors."""
    return re.sub(r"^\[", f'reference = "{folder}"\n\n[', head, count=1, flags=re.MULTILINE)


def mark(command):
    return f"# Written by `scripts/models {command}`; you may edit everything above.\n"


def extra(file, sha256, size_bytes, note=""):
    """Returns the entry of a file."""
    comment = f" # {note}" if note else ""
    return f'\n[[extra]]\nfile = "{file}"\nsha256 = "{sha256}"{comment}\nsize_bytes = {size_bytes}\n'
