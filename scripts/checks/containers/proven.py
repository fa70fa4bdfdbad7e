"""Which container files the proof last passed with: it takes ten minutes, so `scripts/test` starts it for others only."""

import hashlib

from common.config import REPO
from common.console import line

# Beside the files, and checked in with them.
RECORD = REPO / "deploy" / "compose" / "proven.sha256"
PLACES = (
    "Dockerfile",
    ".dockerignore",
    "docker-compose.gpu.yml",
    # Not the folder of secrets, nor what an editor leaves.
    *("deploy/compose/" + name for name in ("*.yml", "*.conf", "*.json", "*.sh", "*.txt", "env.example", "Caddyfile")),
    *("deploy/compose/" + name for name in ("prepare", "start-keycloak")),
    *("scripts/checks/containers/" + name for name in ("*.Dockerfile", "postgres-entrypoint")),
)


def is_current():
    return RECORD.exists() and RECORD.read_text().strip() == digest()


def remember():
    RECORD.write_text(digest() + "\n")
    line(f"• Proven with these files: commit {RECORD.relative_to(REPO)} with them")


def digest(root=REPO):
    """Of names and contents, the record itself not among them."""
    total = hashlib.sha256()
    for path in sorted({path for place in PLACES for path in root.glob(place)}):
        total.update(f"{path.relative_to(root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
