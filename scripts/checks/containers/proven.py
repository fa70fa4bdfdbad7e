"""Records the container files with which `scripts/test-compose` last passed, so that `scripts/test` can skip it."""

import hashlib

from common.config import REPO
from common.console import line

# Committed together with the files.
RECORD = REPO / "deploy" / "compose" / "proven.sha256"
PLACES = (
    "Dockerfile",
    ".dockerignore",
    "docker-compose.gpu.yml",
    # Not `*`, because of the secrets and of backup files of editors.
    *("deploy/compose/" + name for name in ("*.yml", "*.conf", "*.json", "*.sh", "*.txt", "env.example", "Caddyfile")),
    *("deploy/compose/" + name for name in ("prepare", "start-keycloak")),
    *("scripts/checks/containers/" + name for name in ("*.Dockerfile", "postgres-entrypoint")),
)


def is_current():
    return RECORD.exists() and RECORD.read_text().strip() == digest()


def remember():
    RECORD.write_text(digest() + "\n")
    line(f"• All proofs passed with these files. Commit {RECORD.relative_to(REPO)} with them")


def digest(root=REPO):
    """Returns a hash of the names and contents of the files."""
    total = hashlib.sha256()
    for path in sorted({path for place in PLACES for path in root.glob(place)}):
        total.update(f"{path.relative_to(root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
