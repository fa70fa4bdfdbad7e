"""Finds prose that reads like a word-for-word translation: in comments, docstrings, Markdown, and messages.

    python3 -m checks.prose [PATH …]    in scripts/

No pattern proves prose good, and some hits are good prose, so the lint fails only above a limit. Messages are string literals
of five words or more. Code, tables of data, and the product's fixed texts are not read.
"""

import re
import sys

from common.config import REPO

from . import git_files

# Suspicious lines that the lint accepts, in about 23,000.
LIMIT = 40

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
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\\n]|\\.)*)`')
SQL = re.compile(r"\s*(select|insert|update|delete|with|create)\b", re.IGNORECASE)
# What is prose in a line of code, by the suffix of the file.
SLASHES = re.compile(r"^\s*/?\*+ (.*)|(?:^|\s)//[/!]?\s(.*)")
HASHES = re.compile(r"(?:^|\s)#+\s+(.*)")
COMMENTS = {
    **dict.fromkeys((".rs", ".ts", ".tsx", ".mjs", ".js", ".css"), SLASHES),
    **dict.fromkeys((".py", ".sh", ".yml", ".yaml", ".toml", ".service", ".conf", ""), HASHES),
    ".md": re.compile(r"^[|#*\s-]*(.*)"),
    ".sql": re.compile(r"--(.*)"),
}


def main():
    for finding in findings(sys.argv[1:]):
        print(finding)
    return 0


def check():
    """Returns one sentence per suspicious line if there are more than the limit."""
    found = list(findings())
    return found if len(found) > LIMIT else []


def findings(paths=()):
    for name in git_files.listed(REPO, "--", *paths):
        path = REPO / name
        if path.suffix not in COMMENTS or EXEMPT.search(name) or not path.is_file():
            continue
        for number, text in prose_of(path.suffix, path.read_text()):
            if pattern := suspicion(text):
                yield f"{name}:{number}: {pattern}: {text}"


def suspicion(text):
    """The name of the first pattern that a line matches, or `None`. Code and quotations are skipped."""
    prose = re.sub(r"`[^`]*`|\"[^\"]*\"|“[^”]*”", "`code`", text)
    return next((name for name, pattern in COMPILED if pattern.search(prose)), None)


def prose_of(suffix, text):
    """Yields the number and the text of each line of prose."""
    is_block = False
    for number, line in enumerate(text.splitlines(), start=1):
        marks = line.count('"""') if suffix == ".py" else line.lstrip().startswith("```") if suffix == ".md" else 0
        is_docstring, is_block = suffix == ".py" and (is_block or marks), is_block ^ (marks % 2 == 1)
        if suffix == ".md" and (is_block or marks):
            continue
        comment = COMMENTS[suffix].search(line)
        found = [line.strip(' "')] if is_docstring else [next(filter(None, comment.groups()), "")] if comment else messages(line)
        yield from ((number, content) for content in found if len(re.findall(r"[A-Za-z]{2,}", content)) >= 3)


def messages(line):
    for match in STRING.finditer(line):
        content = match[1] or match[2] or ""
        if len(content.split()) >= 5 and not SQL.match(content):
            yield content


if __name__ == "__main__":
    sys.exit(main())
