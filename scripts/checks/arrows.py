"""The directions in which the code may point. Cargo keeps the crates apart; these lines do so inside a crate."""

import re
import subprocess
from dataclasses import dataclass

from common.config import REPO

STATE = r"(sqlx|redis|aws_sdk_s3)::"
HTTP = r"(axum|http|hyper|tower_http)::"
JOBS = r"(sqlx|redis|apalis|aws_sdk_s3)::|retouch_core::(db|queue|jobs|storage|users|images|results|credits)|\bJobId\b"


@dataclass(frozen=True)
class Arrow:
    rule: str
    pattern: str
    # Where it must not occur, and where it may all the same.
    where: tuple
    allowed: tuple = ()


EVERYWHERE = ("core/src", "api/src", "worker/src")
ARROWS = [
    Arrow("routes ask use cases or core; they name no database, Redis or S3", STATE, ("api/src/routes",)),
    Arrow("use cases know no HTTP", HTTP, ("api/src/usecases",)),
    Arrow(
        "pipeline, tools and models know pixels, not jobs",
        JOBS,
        ("worker/src/pipeline", "worker/src/tools", "worker/src/models", "worker/src/pipeline.rs"),
    ),
    Arrow(
        "only core/src/credits.rs writes the ledger, and the one statement that finishes a job",
        r"(?i)\b(insert\s+into|update|delete\s+from)\s+ledger\b",
        EVERYWHERE,
        ("core/src/credits.rs", "core/src/credits/", "core/src/jobs/finish.rs"),
    ),
    Arrow(
        "only core/src/jobs.rs changes a job",
        r"(?i)\b(insert\s+into|update|delete\s+from)\s+jobs\b",
        EVERYWHERE,
        ("core/src/jobs.rs", "core/src/jobs/"),
    ),
    Arrow("only core/src/storage.rs speaks S3", r"\baws_sdk_s3::", EVERYWHERE, ("core/src/storage.rs", "core/src/storage/")),
    Arrow(
        "only core/src/queue.rs speaks to Redis for jobs",
        r"\b(redis|apalis|apalis_core)::",
        EVERYWHERE,
        ("core/src/queue.rs", "core/src/queue/", "core/src/progress.rs"),
    ),
    Arrow(
        "only a session and a pipeline's net name ort",
        r"\bort::",
        EVERYWHERE,
        ("worker/src/models/session.rs", "worker/src/models/session/", "worker/src/diffusion/net.rs"),
    ),
    Arrow("only api/src/payments.rs names Stripe", r"\b(async_)?stripe\w*::", EVERYWHERE, ("api/src/payments.rs", "api/src/payments/")),
    Arrow("only config.rs reads the environment", r"\benv::vars?(_os)?\(", EVERYWHERE, ("core/src/config.rs", "core/src/config/", "api/src/config.rs", "worker/src/config.rs")),
]

# What each crate must not depend on, not even through another one.
FORBIDDEN_CRATES = {
    "retouch-core": {"axum", "ort", "image", "ndarray", "async-stripe"},
    "retouch-api": {"ort", "ndarray", "retouch-worker"},
    "retouch-worker": {"axum", "jsonwebtoken", "async-stripe", "retouch-api"},
}


def wrong_arrows():
    return [finding for arrow in ARROWS for finding in check(arrow)] + list(wrong_crates())


def check(arrow):
    pattern = re.compile(arrow.pattern)
    for path in sorted({file for place in arrow.where for file in rust_files(place)}):
        name = path.relative_to(REPO).as_posix()
        if name.startswith(arrow.allowed):
            continue
        code = without_tests_and_comments(path.read_text())
        for match in pattern.finditer(code):
            number = code.count("\n", 0, match.start()) + 1
            yield f"{name}:{number}: {match.group(0).strip()!r}: {arrow.rule}"


def rust_files(place):
    path = REPO / place
    if path.is_file():
        return [path]
    return [file for file in path.rglob("*.rs") if file.name not in ("tests.rs", "testing.rs")]


def without_tests_and_comments(code):
    # Tests stand at the end of a file; they may look behind the scenes.
    code = re.split(r"^#\[cfg\(test\)\]\s*mod\b", code, maxsplit=1, flags=re.MULTILINE)[0]
    return re.sub(r"//[^\n]*", "", code)


def wrong_crates():
    for package, forbidden in FORBIDDEN_CRATES.items():
        command = ["cargo", "tree", "--locked", "-p", package, "-e", "normal", "--prefix", "none", "-f", "{p}"]
        answer = subprocess.run(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if answer.returncode:
            yield f"cargo tree -p {package} failed: {answer.stderr.strip()[-500:]}"
        found = {line.split()[0] for line in answer.stdout.splitlines() if line.strip()}
        for crate in sorted(found & forbidden):
            yield f"{package} depends on {crate}, which it must not know"
