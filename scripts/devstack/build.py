"""Builds the page and the programs and fetches the models; skips whatever is up to date."""

import hashlib
import os
import subprocess

from common.config import CACHE, PROFILE, REPO
from common.console import Problem, line, run_logged, run_shown, step

NOT_SOURCES = {"node_modules", "dist", "test-results", "playwright-report", "coverage"}
STAMPS = CACHE / "stamps"
# Set by scripts/test when its lint has checked the types of the page, which takes longer than to build it.
TYPES_CHECKED = "RETOUCH_TYPES_CHECKED"


def build(settings):
    """Builds everything that `scripts/up` needs. Returns the path of the ONNX Runtime library."""
    install_packages_of("standins/oidc")
    build_ui()
    build_programs()
    return fetch_models(settings)


def install_packages_of(folder):
    lock = REPO / folder / "package-lock.json"
    inputs = digest([lock, lock.with_name("package.json")], extra=node_version())
    stamp = Stamp(folder.replace("/", "-") + "-packages", inputs)
    if stamp.fresh and (lock.parent / "node_modules").is_dir():
        return
    with step(f"Installing the packages of {folder}"):
        log = str(CACHE / "logs" / f"npm-ci-{folder.replace('/', '-')}.log")
        run_logged(["npm", "ci", "--no-fund", "--no-audit"], log, "npm ci", cwd=lock.parent)
    stamp.write()


def build_ui():
    install_packages_of("ui")
    folder = REPO / "ui"
    stamp = Stamp("ui-dist", digest(sources_of(folder), extra=node_version()))
    if stamp.fresh and (folder / "dist" / "index.html").exists():
        return
    command = ["node_modules/.bin/vite", "build"] if os.environ.get(TYPES_CHECKED) else ["npm", "run", "build"]
    with step("Building the page"):
        run_logged(command, str(CACHE / "logs" / "build-ui.log"), "Building the page", cwd=folder)
    stamp.write()


def sources_of(folder):
    files = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in NOT_SOURCES]
        files += [os.path.join(place, name) for name in names]
    return sorted(files)


def build_programs(profile=PROFILE):
    line("• Building the programs (the first time takes a while) …")
    # .sqlx is checked in, so the build needs no database.
    environment = {**os.environ, "SQLX_OFFLINE": "true"}
    # A developer's own target folder would hide the programs from those who start them.
    command = ["cargo", "build", "--profile", profile, "--workspace", "--bins", "--locked", "--target-dir", REPO / "target"]
    run_shown(command, "Building the programs", cwd=REPO, env=environment)


def fetch_models(settings, names=()):
    models = REPO / "scripts" / "models"
    run_shown([models, "fetch", *names], "Fetching the models", cwd=REPO, env=settings.values)
    return settings.get("ORT_DYLIB_PATH") or runtime_library(settings, models)


def runtime_library(settings, models):
    kind = ["--gpu"] if settings.get("RETOUCH_DEVICE") == "cuda" else []
    answer = subprocess.run([models, "runtime", *kind], stdout=subprocess.PIPE, text=True, cwd=REPO, env=settings.values)
    path = answer.stdout.strip()
    if answer.returncode or not os.path.exists(path):
        raise Problem("Could not fetch ONNX Runtime; see the output above.")
    return path


class Stamp:
    """Records the digest of the inputs of a build."""

    def __init__(self, name, inputs):
        self.path = STAMPS / name
        self.inputs = inputs

    @property
    def fresh(self):
        return self.path.exists() and self.path.read_text() == self.inputs

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(self.inputs)


def digest(paths, extra=""):
    sha = hashlib.sha256(extra.encode())
    for path in paths:
        sha.update(f"\0{os.path.relpath(path, REPO)}\0".encode())
        try:
            with open(path, "rb") as file:
                sha.update(file.read())
        except FileNotFoundError:
            sha.update(b"(missing)")
    return sha.hexdigest()


def node_version():
    return subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
