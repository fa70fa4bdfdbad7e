"""Checks the links of Markdown files: a relative link must lead to a file, and a fragment to a heading of it.

Paths in backticks must exist too, so that documents follow a file that moves: `core/src/jobs.rs`, `core/src/jobs*`,
`worker/src/tools/<tool>.rs` for any tool, and `routes/views.rs` somewhere.
"""

import re
from functools import cache
from urllib.parse import unquote

from common.config import REPO
from common.workspace import crates

from . import git_files

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]+(?:\([^()\s]*\)[^()\s]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
FENCE = re.compile(r"^([ \t]*)(```|~~~).*?^\1\2[ \t]*$", re.M | re.S)
CODE = re.compile(r"(`+)(.+?)\1")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.M)
ROOMS = "|".join((*crates(), "clients", "scripts", "ui", "models", "migrations", "deploy", "docs"))
PATH = re.compile(rf"(?:{ROOMS})/[\w.*/-]*\w[\w.*-]*/?|\.github/[\w./-]+")
# The end of the path of a source file.
END = re.compile(r"[\w.-]+(?:/[\w.-]+)*/[\w.-]+\.(?:rs|tsx?|mjs|py)")
# Built, fetched and secret files, placeholders, and `deploy/NAME` of kubectl.
ABSENT = re.compile(r"^(deploy/compose/secrets|deploy/monitoring/nodes|deploy/retouch-|models/sd15-inpainting|ui/dist)|\.onnx$|/(X$|NNNN)")
# Records of the past, and texts of others.
EXEMPT = ("CHANGELOG.md", "THIRD-PARTY.md")


def check(folder=REPO):
    """Returns one sentence for each link that leads nowhere."""
    listed = git_files.listed(folder, "--cached", "--others", "--exclude-standard")
    files = [name for name in sorted(set(listed)) if (folder / name).is_file()]
    pages = [folder / name for name in files if name.endswith(".md") and name not in EXEMPT]
    ends = {name[at.end() :] for name in files for at in re.finditer("^|/", name)}
    return [finding for page in pages for finding in [*wrong_links(folder, page), *wrong_paths(folder, page, ends)]]


def wrong_links(folder, page):
    text = FENCE.sub(keep_lines, page.read_text())
    plain = CODE.sub(lambda code: " " * len(code[0]), text)
    for link in LINK.finditer(plain):
        target = unquote(link[1])
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        where = f"{page.relative_to(folder)}:{text.count(chr(10), 0, link.start()) + 1}"
        name, _, fragment = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.is_relative_to(folder) or not path.exists():
            yield f"{where}: {target} does not exist"
        elif fragment and path.suffix == ".md" and fragment not in anchors(path):
            yield f"{where}: {path.relative_to(folder)} has no heading #{fragment}"


def wrong_paths(folder, page, ends):
    text = FENCE.sub(keep_lines, page.read_text())
    for code in CODE.finditer(text):
        name = re.sub(r"<\w+>", "*", code[2])
        if ABSENT.search(name):
            continue
        if (PATH.fullmatch(name) and not any(folder.glob(name))) or (not PATH.match(name) and END.fullmatch(name) and name not in ends):
            number = text.count("\n", 0, code.start()) + 1
            yield f"{page.relative_to(folder)}:{number}: `{code[2]}` does not exist"


def keep_lines(block):
    return "\n" * block[0].count("\n")


@cache
def anchors(path):
    """Returns the fragments of a page's headings, as GitHub makes them."""
    found = {}
    for heading in HEADING.finditer(FENCE.sub(keep_lines, path.read_text())):
        slug = slug_of(heading[1])
        count = found[slug] = found.get(slug, -1) + 1
        if count:
            found[f"{slug}-{count}"] = 0
    return set(found)


def slug_of(heading):
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[`*]", "", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
