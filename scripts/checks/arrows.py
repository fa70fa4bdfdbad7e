"""The directions in which code may point inside a crate. Cargo holds the directions between crates; this checks both."""

import re
import subprocess
from dataclasses import dataclass

from common.config import REPO
from common.workspace import crates

STATE = r"(sqlx|redis|aws_sdk_s3)::"
HTTP = r"(axum|http|hyper|tower_http)::"
JOBS = r"(sqlx|redis|apalis|aws_sdk_s3)::|retouch_core::(db|queue|jobs|storage|users|images|results|credits)|\bJobId\b"


@dataclass(frozen=True)
class Arrow:
    rule: str
    pattern: str
    # The places that must not match, and the exceptions among them. Each must exist.
    where: tuple
    allowed: tuple = ()


EVERYWHERE = tuple(f"{crate}/src" for crate in crates() if crate != "standins")
ARROWS = [
    Arrow("routes call use cases or core; they name no database, Redis or S3", STATE, ("api/src/routes", "api/src/http")),
    Arrow("routes do not know the server", r"\bcrate::server\b", ("api/src/routes", "api/src/http")),
    Arrow("what routes share about HTTP knows no route", r"\bcrate::routes\b", ("api/src/http",)),
    Arrow("use cases know no HTTP", HTTP + r"|\bcrate::(server|routes)\b", ("api/src/usecases",)),
    Arrow("tools know pixels and models, not jobs", JOBS, ("worker/src/tools",)),
    Arrow(
        "select knows pixels and models, not jobs",
        r"sqlx::|retouch_core::(db|jobs|users|results|credits)|\bJobId\b|crate::(job|consumer)\b",
        ("worker/src/select.rs", "worker/src/select/"),
    ),
    Arrow(
        "only core/src/credits writes the ledger",
        r"(?i)\b(insert\s+into|update|delete\s+from)\s+ledger\b",
        EVERYWHERE,
        ("core/src/credits.rs", "core/src/credits/"),
    ),
    Arrow(
        "only core/src/jobs changes a job",
        r"(?i)\b(insert\s+into|update|delete\s+from)\s+jobs\b",
        EVERYWHERE,
        ("core/src/jobs.rs", "core/src/jobs/", "core/src/credits/debit.rs"),
    ),
    Arrow(
        "only core/src/webhooks and the debit write deliveries",
        r"(?i)\b(insert\s+into|update|delete\s+from)\s+webhook_deliveries\b",
        EVERYWHERE,
        ("core/src/webhooks.rs", "core/src/webhooks/", "core/src/credits/debit.rs"),
    ),
    Arrow("only core/src/storage calls S3", r"\baws_sdk_s3::", EVERYWHERE, ("core/src/storage.rs", "core/src/storage/")),
    Arrow("only core/src/queue calls Redis", r"\b(redis|apalis|apalis_core)::", EVERYWHERE, ("core/src/queue.rs", "core/src/queue/")),
    Arrow(
        "only sessions and the nets of pipelines name ort",
        r"\bort::",
        EVERYWHERE,
        ("inference/src/session.rs", "inference/src/session/", "inference/src/diffusion/net.rs", "inference/src/diffusion/net/"),
    ),
    Arrow("only api/src/payments names Stripe", r"\b(async_)?stripe\w*::", EVERYWHERE, ("api/src/payments.rs", "api/src/payments/")),
    Arrow("only heif loads a library and filters system calls", r"\b(libloading|seccompiler)::", EVERYWHERE, ("heif/src",)),
    # It is generic: whoever calls it compiles all its filters.
    Arrow("only resample calls fast_image_resize", r"\bfast_image_resize::", EVERYWHERE, ("pixels/resample/src",)),
    Arrow("only credentials names c2pa", r"\bc2pa::", EVERYWHERE, ("credentials/src",)),
    Arrow("credentials knows neither jobs nor the database", STATE + "|" + JOBS, ("credentials/src",)),
    Arrow(
        "only config.rs reads the environment",
        r"\benv::vars?(_os)?\(",
        EVERYWHERE,
        ("core/src/config.rs", "core/src/config/", "api/src/config.rs", "worker/src/config.rs"),
    ),
]

# Crates that a crate of ours must not depend on, not even indirectly.
STATEFUL = {"sqlx", "redis", "apalis", "aws-sdk-s3", "axum", "reqwest"}
FORBIDDEN_CRATES = {
    "retouch-catalog": STATEFUL | {"tokio", "image", "ort"},
    "retouch-prompts": STATEFUL | {"tokio", "image", "ort"},
    "retouch-pixels": STATEFUL | {"tokio", "ort", "retouch-catalog", "retouch-core"},
    "retouch-heif": STATEFUL | {"ort", "c2pa", "retouch-core"},
    "retouch-inference": STATEFUL | {"retouch-core", "retouch-worker"},
    "retouch-core": {"axum", "ort", "image", "ndarray", "async-stripe", "retouch-pixels", "retouch-inference"},
    "retouch-api": {"ort", "retouch-inference", "retouch-worker"},
    "retouch-worker": {"axum", "jsonwebtoken", "async-stripe", "retouch-api"},
}


def wrong_arrows():
    return [*missing_places(), *(finding for arrow in ARROWS for finding in check(arrow)), *wrong_crates()]


def missing_places():
    """A rule about a file that has moved would check nothing."""
    for arrow in ARROWS:
        for place in (*arrow.where, *arrow.allowed):
            if not (REPO / place).exists():
                yield f"scripts/checks/arrows.py: {place} does not exist: {arrow.rule}"


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
    # The rules do not apply to the unit tests at the end of a file.
    code = re.split(r"^#\[cfg\(test\)\]\s*mod\b", code, maxsplit=1, flags=re.MULTILINE)[0]
    return re.sub(r"//[^\n]*", "", code)


def wrong_crates():
    for package, forbidden in FORBIDDEN_CRATES.items():
        command = ["cargo", "tree", "--locked", "-p", package, "-e", "normal", "--prefix", "none", "-f", "{p}"]
        answer = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
        if answer.returncode:
            yield f"cargo tree -p {package} failed: {answer.stderr.strip()[-500:]}"
        found = {line.split()[0] for line in answer.stdout.splitlines() if line.strip()}
        for crate in sorted(found & forbidden):
            yield f"{package} must not depend on {crate}"
