"""Measures prose: which lines of comments, docs and messages read like a word-for-word translation.

`python3 -m checks.prose [--all] [PATH …]` prints the share of suspicious lines per folder. No pattern proves prose good: the
measure only keeps known faults from coming back. It reads comments, docstrings, Markdown and messages (string literals
of five words or more); it does not read code, tables of data, or the product's fixed texts.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path

from common.config import REPO
from common.workspace import crates

# The share of suspicious lines that fails the lint.
LIMIT = 0.01

PATTERNS = {
    "X is no Y": r"(?<!there )(?<!there'll )\b(is|are|was|were|be|as) no (?!longer\b|more\b|less\b|fewer\b|different\b|such\b|one\b|need\b|way\b|point\b|reason\b|\w+er than\b)[a-z]",
    "a free relative as subject": r"(^|[.;:] )(what|whoever|whatever|who)\b[^.;:,?]*?\b(is|are|was|were|stays?|goes|comes|gets|counts|remains|belongs|may|must|can|has|have|does|did|will)\b(?!.*\?)",
    "an unnamed agent": r"\b(nobody else|somebody's|somebody else|everybody's|by whoever|to whoever|of whoever)\b",
    "a passive without an actor": r"\b(is|are|was|were|be|been) (told|asked (for|of|after)|believed|said|let go|looked (at|for|after|up to)|called off|wished|spoken|thrown away|taken (away|over)|given (up|back|away)|begun)\b",
    "a quaint word": r"\b(anew|aloud|amiss|hitherto|thereof|thereby|wherein|whereby|henceforth|at hand|at the utmost|all the same|shall|ought|utmost|lest|upon|amongst|whilst|touchy|wish(es|ed)?)\b",
    "a literal verb": r"\b(goes|go|went|gone|going) on\b(?! to \w)|\b(stands|stood) (in|at|for itself|there|beside|before)\b|\b(becomes?|became|come|comes|came) of\b|\blies (beside|outside|at|there)\b|(?<=[a-z] )is there\b(?!\?)|\bgives? back\b|\bsays? (aloud|so of|of)\b|\btells? of\b",
    "a literal idiom": r"\b(by itself|for ever|none of (it|them) (is|are)|as well as it can|time and again|in vain|not any more|any more\b(?! than)|be it)\b|(?<!no )\bbut for\b",
    "inverted order": r"(^|[.;] )(only (then|there|where|when|what)|nor|neither|not (so|even|until)|never|no longer) (is|are|was|were|does|do|did|has|have|can|may|will)\b",
    "yet for still": r"^(?!.*\b(no|not|never)\b)(?!.*n't\b).*\b(will|would|may|can|to) \w+ yet\b",
    "else for otherwise": r"[,;] else\b",
    "British spelling": r"\b(colours?|coloured|grey(?!\))\w*|normalis\w+|optimis(?!t)\w+|initialis\w+|serialis\w+|behaviour\w*|centre[sd]?|cancelling|labelled|labelling|neighbour\w*|favour\w*|honour\w*|recognis\w+|organis\w+|programme|judgement|towards)\b",
}
COMPILED = [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in PATTERNS.items()]

# Fixed or foreign texts: the product's wording, licenses of others, generated files, migrations that landed.
EXEMPT = re.compile(
    r"^(LICENSE|THIRD-PARTY\.md|migrations/\d{4}|ui/src/api/(openapi\.json|schema\.ts)|clients/python/retouch_client/types\.py|clients/typescript/src/schema\.ts|ui/src/fonts/"
    r"|scripts/checks/prose\.py|scripts/checks/tests/test_prose\.py|CONTRIBUTING\.md|docs/style\.md)|(^|/)package-lock\.json$"
)
ROOMS = (*crates(), "ui", "clients", "scripts", "models", "deploy", "docs")
HASH = {".py", ".sh", ".yml", ".yaml", ".toml", ".service", ".conf", ""}
SLASH = {".rs", ".ts", ".tsx", ".mjs", ".js", ".css"}
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\\n]|\\.)*)`')


@dataclass(frozen=True)
class Line:
    path: str
    number: int
    text: str


def main():
    parser = argparse.ArgumentParser(prog="checks.prose", description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="print every suspicious line")
    parser.add_argument("paths", nargs="*", help="files or folders below the repository; all by default")
    options = parser.parse_args()
    total, found = measure(options.paths)
    if options.all:
        for line, pattern in found:
            print(f"{line.path}:{line.number}: {pattern}: {line.text}")
    report(total, found)
    return 1 if len(found) > LIMIT * sum(total.values()) else 0


def check():
    """For the lint: one sentence per suspicious line if the measure exceeds the limit."""
    total, found = measure(())
    if len(found) <= LIMIT * sum(total.values()):
        return []
    return [f"{line.path}:{line.number}: {pattern}: {line.text}" for line, pattern in found]


def report(total, found):
    for room in sorted(total):
        bad = sum(1 for line, _ in found if room_of(line.path) == room)
        print(f"{room:12} {total[room]:6} lines of prose {bad:5} suspicious {100 * bad / total[room]:5.1f} %")
    everything = sum(total.values()) or 1
    print(f"{'all':12} {everything:6} lines of prose {len(found):5} suspicious {100 * len(found) / everything:5.1f} %")


def measure(paths):
    total, found = {}, []
    for path in files(paths):
        for line in prose_of(path):
            room = room_of(line.path)
            total[room] = total.get(room, 0) + 1
            if pattern := suspicion(line.text):
                found.append((line, pattern))
    return total, found


def suspicion(text):
    """The name of the first pattern that a line matches, or `None`. Code and quotations are skipped."""
    prose = re.sub(r"`[^`]*`|\"[^\"]*\"|“[^”]*”", "`code`", text)
    return next((name for name, pattern in COMPILED if pattern.search(prose)), None)


def files(paths):
    listed = subprocess.run(["git", "ls-files", "-z", "--", *paths], cwd=REPO, stdout=subprocess.PIPE, text=True, check=True)
    for name in listed.stdout.split("\0"):
        path = Path(name)
        if name and not EXEMPT.search(name) and (REPO / name).is_file() and path.suffix in HASH | SLASH | {".md", ".sql"}:
            yield path


def room_of(path):
    first = path.split("/")[0]
    return first if first in ROOMS else "top"


def prose_of(path):
    try:
        text = (REPO / path).read_text()
    except UnicodeDecodeError:
        return
    name = path.as_posix()
    if path.suffix == ".md":
        found = markdown(text)
    elif path.suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        found = python(text)
    elif path.suffix in SLASH:
        found = slashes(text)
    elif path.suffix == ".sql":
        found = ((number, line.split("--", 1)[1]) for number, line in numbered(text) if "--" in line)
    else:
        found = ((number, match[1]) for number, line in numbered(text) if (match := re.search(r"(?:^|\s)#+\s+(.*)", line)))
    for number, content in found:
        content = content.strip()
        if len(re.findall(r"[A-Za-z]{2,}", content)) >= 3:
            yield Line(name, number, content)


def numbered(text):
    return enumerate(text.splitlines(), start=1)


def markdown(text):
    fenced = False
    for number, line in numbered(text):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line.strip("|#*- ")


def slashes(text):
    block = False
    for number, line in numbered(text):
        stripped = line.strip()
        if block or stripped.startswith("/*"):
            block = "*/" not in stripped
            yield number, stripped.strip("/* ")
        elif match := re.match(r"(?:.*?\s)?//[/!]?\s(.*)", line):
            yield number, match[1]
        else:
            yield from ((number, content) for content in messages(line))


def python(text):
    try:
        tree = ast.parse(text)
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = [(token.start[0], token.string.lstrip("# ")) for token in tokens if token.type == tokenize.COMMENT]
    except (SyntaxError, tokenize.TokenError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) >= 5:
            yield from ((node.lineno + offset, line) for offset, line in enumerate(node.value.splitlines()))
    yield from comments


def messages(line):
    for match in STRING.finditer(line):
        content = match[1] or match[2] or ""
        # SQL, paths and class names are not messages.
        if len(content.split()) >= 5 and not re.match(r"\s*(select|insert|update|delete|with|create)\b", content, re.IGNORECASE):
            yield content


if __name__ == "__main__":
    sys.exit(main())
