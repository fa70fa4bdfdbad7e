"""The text of a pipeline's manifest: what people write above a mark, and what programs write below it."""

import re

# Programs replace everything from here on: the mark of an earlier run, or what a template says about sources.
GENERATED = re.compile(r"^(# Written by `scripts/models (adopt|fetch)`.*|\[(source|export)\].*)$", re.MULTILINE)


def head(path):
    """Returns the part that people write."""
    text = path.read_text()
    found = GENERATED.search(text)
    return text[: found.start() if found else None].rstrip() + "\n\n"


def mark(command):
    return f"# Written by `scripts/models {command}`; you may edit everything above.\n"


def extra(file, sha256, size_bytes, note=""):
    """Returns the entry of a file."""
    comment = f" # {note}" if note else ""
    return f'\n[[extra]]\nfile = "{file}"\nsha256 = "{sha256}"{comment}\nsize_bytes = {size_bytes}\n'
