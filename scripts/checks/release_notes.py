"""`scripts/release-notes`: checks that a tag may become a release, and prints its section of CHANGELOG.md.

Several files name the version. If one of them were outdated, operators would run the images of another version.
"""

import argparse
import re
import tomllib

from common.config import REPO
from common.console import Problem

# Files that name the version, and how. Every match must be the version of Cargo.toml.
PLACES = {
    "docker-compose.gpu.yml": r"\$\{RETOUCH_TAG:-([^}]+)\}",
    "deploy/compose/cpu.yml": r"\$\{RETOUCH_TAG:-([^}]+)\}",
    "deploy/compose/env.example": r"^#RETOUCH_(?:TAG=|\w+_IMAGE=localhost/retouch/[\w-]+:)(.+)$",
    "deploy/kubernetes/base/kustomization.yaml": r"^ +newTag: (.+)$",
    "ui/src/api/openapi.json": r'^    "version": "([^"]+)"',
    "clients/python/pyproject.toml": r'^version = "([^"]+)"',
    "clients/typescript/package.json": r'^  "version": "([^"]+)"',
}


def main():
    print(notes(arguments().tag))


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/release-notes",
        description="Prints the release notes of a version: its section of CHANGELOG.md. Fails if any file names another version.",
    )
    parser.add_argument("tag", help="the tag of the release, for example v0.2.0")
    return parser.parse_args()


def notes(tag, root=REPO):
    """Returns the text of the release. Raises a Problem with all errors."""
    version = version_of(root)
    findings = list(wrong_places(root))
    if tag != f"v{version}":
        findings.append(f"The tag is {tag}, but Cargo.toml says {version}: tag v{version}, or change the version first")
    text = section(version, (root / "CHANGELOG.md").read_text())
    if not text:
        findings.append(f"CHANGELOG.md has no text under the heading `## {version}`")
    if findings:
        raise Problem("\n".join(findings))
    return text


def version_of(root=REPO):
    return tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def wrong_places(root=REPO):
    """Yields a sentence for each file that does not name the version in Cargo.toml."""
    version = version_of(root)
    for name, pattern in PLACES.items():
        found = set(re.findall(pattern, (root / name).read_text(), re.M))
        if found != {version}:
            yield f"{name} names {', '.join(sorted(found)) or 'no version'}; Cargo.toml names {version}"


def section(version, changelog):
    """Returns the text below the heading of a version, `## 0.2.0` or `## 0.2.0 (2026-12-01)`, or an empty string."""
    found = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    return found[1].strip() if found else ""
