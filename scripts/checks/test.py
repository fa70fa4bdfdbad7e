"""`scripts/test`: runs the tests, and prints a summary."""

import argparse
import contextlib
import functools
import os
import shutil
import sys
import time

from common import wheels
from common.config import CACHE, REPO, load
from common.console import Problem, line, took, warn
from devstack import build, prerequisites
from devstack.sandbox import Sandbox

from . import bench, browsers, clients, compiled, contract, lint, proofs, scale
from .beside import Beside
from .containers import compose, proven
from .counting import Counts, by_position, by_unittest, by_word, counted, from_report, show
from .reliability import campaign
from .reliability.scenarios import SHORT

REPORTS = CACHE / "test" / "reports"
RUST_MODELS = ["u2netp", "isnet", "realesr-animevideov3-x4"]


def main():
    options = arguments()
    chosen = [name for name in PARTS if name in (options.only or usual_parts(options.full))]
    if options.full:
        os.environ["RETOUCH_TEST_FULL"] = "1"
    if options.jobs:
        os.environ["RETOUCH_SCALE_JOBS"] = str(options.jobs)
    results = {}
    try:
        line("== preparation")
        sources = compiled.restore()
        prepare(chosen)
        results |= run_parts(chosen, {} if options.only else BESIDE)
        # Clippy and the Rust tests compile everything; if one of them failed, something may be missing.
        if all(name in results and not results[name][0].failed for name in ("lint", "rust")):
            compiled.keep(sources)
    except Problem as problem:
        warn(str(problem))
        results["preparation"] = (Counts(failed=1), 0)
    return summarize(results)


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/test", description="Runs the tests of all parts, or of those selected with --only.")
    parser.add_argument("--only", action="append", choices=PARTS, help="run only this part; may be repeated")
    parser.add_argument("--full", action="store_true", help="add the slow proofs")
    parser.add_argument("--jobs", type=int, help="how many jobs the database of `--only scale` has")
    return parser.parse_args()


def prepare(chosen):
    prerequisites.check()
    REPORTS.mkdir(parents=True, exist_ok=True)
    if not {"scripts", "contract", "outages", "proofs", "bench", "scale"} & set(chosen):
        return install(chosen)
    # Downloads wait for the network, and the compiler often for one crate.
    others = Beside(functools.partial(install, chosen))
    try:
        build.build_programs()
    except Problem:
        # Otherwise it would continue beside the next run.
        others.result()
        raise
    others.result()


def install(chosen):
    if {"lint", "ui", "contract", "e2e"} & set(chosen):
        build.install_packages_of("ui")
    if {"scripts", "contract", "e2e", "outages", "proofs", "bench", "scale"} & set(chosen):
        build.install_packages_of("standins/oidc")
    if "rust" in chosen:
        build.install_packages_of("api/tests/removebg-client")
    # The parts download what is missing, one after the other. If that fails, they report it.
    with contextlib.suppress(Problem):
        download(chosen)


def download(chosen):
    if "rust" in chosen:
        models_environment(RUST_MODELS)
        wheels.postgres_bin()
        redis_servers()
        prerequisites.require_heif()
    if "contract" in chosen:
        contract.install()
        clients.install()
    if "e2e" in chosen:
        build.fetch_models(load())
        browsers.chromium()
        browsers.firefox()


def run_parts(chosen, beside):
    """Runs the parts in order, but those in `beside` while their other part runs."""
    aside = {name: pair for name, pair in beside.items() if {name, pair[0]} <= set(chosen)}
    results = {}
    for name in chosen:
        if name in aside:
            continue
        others = {
            other: Beside(functools.partial(run_part, other, PARTS[other]), niceness) for other, (part, niceness) in aside.items() if part == name
        }
        results[name] = run_part(name, PARTS[name])
        results |= {other: finish(other, process) for other, process in others.items()}
    return {name: results[name] for name in chosen}


def finish(name, process):
    try:
        return process.result()
    except Problem as problem:
        warn(f"{name}: {problem}")
        return Counts(failed=1), 0


def run_part(name, part):
    line(f"\n== {name}")
    started = time.monotonic()
    try:
        counts = part()
    except Problem as problem:
        warn(str(problem))
        counts = Counts(failed=1)
    return counts, time.monotonic() - started


def summarize(results):
    total = Counts()
    line("\n== summary")
    for name, (counts, seconds) in results.items():
        total += counts
        line(f"{name:12} {counts.passed:5} passed {counts.failed:5} failed   {took(seconds)}")
    line(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


def test_lint():
    counts = Counts(*lint.run())
    if not counts.failed:
        os.environ[build.TYPES_CHECKED] = "1"
    return counts


def test_scripts():
    """The identity provider, and the scripts."""
    reporter = ["--test-reporter=spec", "--test-reporter-destination=stdout"]
    files = sorted((REPO / "standins/oidc/test").glob("*.test.mjs"))
    provider = counted(["node", "--test", *reporter, *files], r"^(?:ℹ|#) (pass|fail) (\d+)", by_word)
    python = [sys.executable, "-m", "unittest", "discover", "--start-directory", ".", "--pattern", "test_*.py"]
    scripts = counted(python, r"^(Ran) (\d+) tests?|(\w+)=(\d+)", by_unittest, folder="scripts")
    return provider + scripts


def test_ui():
    report = REPORTS / "vitest.json"
    report.unlink(missing_ok=True)
    command = ["node_modules/.bin/vitest", "run", "--reporter=default", "--reporter=json", f"--outputFile.json={report}"]
    code = show(command, "ui")
    return from_report(report, code, lambda found: Counts(found["numPassedTests"], found["numFailedTests"]))


def test_rust():
    prerequisites.require_heif()
    environment = {**os.environ, **models_environment(RUST_MODELS), "SQLX_OFFLINE": "true"}
    environment["RETOUCH_TEST_REDIS_SERVERS"] = ":".join(redis_servers())
    command = ["cargo", "test", "--release", "--workspace", "--locked", "--no-fail-fast"]
    pattern = r"^test result: \w+\. (\d+) passed; (\d+) failed"
    # Reads only the environment, not .env, which may name a production database.
    if environment.get("DATABASE_URL"):
        return counted(command, pattern, by_position, env=environment)
    with Sandbox("rust") as sandbox:
        environment["DATABASE_URL"] = sandbox.start_postgres()
        return counted(command, pattern, by_position, env=environment)


def test_contract():
    """The API against its OpenAPI document, and with clients."""
    return Counts(*contract.run())


def test_e2e():
    """The page in real browsers against the whole stack, with separate ports and data."""
    found = {"CHROMIUM": browsers.chromium(), "FIREFOX": browsers.firefox()}
    report = REPORTS / "playwright.json"
    report.unlink(missing_ok=True)
    with Sandbox("e2e") as sandbox:
        url = f"http://127.0.0.1:{sandbox.settings.listen.rpartition(':')[2]}"
        environment = {
            **sandbox.environment,
            **found,
            "RETOUCH_URL": url,
            "PLAYWRIGHT_JSON_OUTPUT_NAME": str(report),
            "CI": "1",
        }
        try:
            if show([REPO / "scripts/up", "--detach"], env=environment):
                raise Problem(f"The stack did not start. Logs: {sandbox.settings.logs}")
            command = ["node_modules/.bin/playwright", "test", "--reporter=list,json"]
            code = show(command, "ui", env=environment)
        finally:
            show([REPO / "scripts/down"], env=environment)
    stats = lambda found: Counts(found["stats"]["expected"] + found["stats"]["flaky"], found["stats"]["unexpected"])
    return from_report(report, code, stats)


def test_outages():
    """The whole stack while its dependencies go away and its programs are killed: the short form of scripts/reliability."""
    return Counts(*campaign.run([SHORT]))


def test_proofs():
    """The same, and the slow proofs: floods of visitors, and backups under load."""
    return Counts(*proofs.run())


def measure():
    """Benchmarks of the whole stack. Runs only if selected; needs an idle machine."""
    return Counts(*bench.run())


def measure_at_scale():
    """A database of millions of jobs. Runs only if selected; needs an idle machine, 20 minutes, and 10 GB of disk."""
    return Counts(*scale.run())


def test_containers():
    """The Compose stack in a real engine. Takes ten minutes, so it runs only if its files have changed, or if selected."""
    return Counts(*compose.run())


PARTS = {
    "lint": test_lint,
    "scripts": test_scripts,
    "ui": test_ui,
    "rust": test_rust,
    "contract": test_contract,
    "e2e": test_e2e,
    "outages": test_outages,
    "proofs": test_proofs,
    "bench": measure,
    "scale": measure_at_scale,
    "containers": test_containers,
}

# In a run of everything, the part on the left runs beside the one on the right, with this niceness. Clippy often compiles
# only one crate. The outages mostly sleep, but promise that work flows again within seconds, so the page's tests yield.
BESIDE = {"scripts": ("lint", 0), "ui": ("outages", 10)}


def usual_parts(full):
    skipped = {"bench", "scale"}
    # The proofs include the outages.
    skipped.add("outages" if full else "proofs")
    if proven.is_current():
        skipped.add("containers")
    return [name for name in PARTS if name not in skipped]


def models_environment(names):
    settings = load()
    runtime = build.fetch_models(settings, names)
    return {"ORT_DYLIB_PATH": runtime, "RETOUCH_MODELS_DIR": settings.get("RETOUCH_MODELS_DIR", str(REPO / "models"))}


def redis_servers():
    """Returns the servers to test against: Valkey from its wheel, and Redis from Debian."""
    servers = [str(wheels.valkey_server())]
    redis = shutil.which("redis-server") or redis_without_its_service()
    if redis:
        servers.append(redis)
    return servers


def redis_without_its_service():
    # redis-tools installs no service. Its redis-check-rdb is the server program, which behaves according to its name.
    if not os.path.exists("/usr/bin/redis-check-rdb"):
        try:
            prerequisites.install_packages(["redis-tools"], "The tests run against both Redis and Valkey")
        except Problem as problem:
            warn(f"{problem}\n\n  Continuing with Valkey only.")
            return None
    link = CACHE / "test" / "redis-server"
    link.unlink(missing_ok=True)
    link.symlink_to("/usr/bin/redis-check-rdb")
    return str(link)
