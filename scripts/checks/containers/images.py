"""Builds the images of the Dockerfile, and provides their base images.

With access to an image registry, it uses the real base images. Without, it builds them from Debian packages and from
downloads of the project, and replaces the servers of the stack by the programs of `scripts/up`.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from checks.release_notes import version_of
from common import wheels
from common.config import CACHE, REPO
from common.console import Problem, line, run_logged, step
from common.workspace import crates
from devstack import build

from . import tools
from .engine import STORE

HERE = Path(__file__).parent
CONTEXTS = CACHE / "test" / "compose" / "contexts"
DEBIAN, NODE, RUST = "retouch-base/debian:bookworm", "retouch-base/node:20", "retouch-base/rust:1.95"
SERVICES = "retouch-stand-in/services"
STAND_INS = {
    "POSTGRES_IMAGE": "retouch-stand-in/postgres",
    "VALKEY_IMAGE": "retouch-stand-in/valkey",
    "CADDY_IMAGE": "retouch-stand-in/caddy",
}
REAL_BASES = {"RUNTIME_IMAGE": "debian:bookworm-slim", "NODE_IMAGE": "node:20-bookworm-slim", "RUST_IMAGE": "rust:1.95-slim-bookworm"}
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PROGRAMS = ("retouch-api", "retouch-worker", "retouch-standins")


class Images:
    def __init__(self, engine, from_source):
        self.engine = engine
        self.from_source = from_source
        self.has_registry = None
        # Settings of Compose that select these images.
        self.settings = {}

    def build_all(self):
        check_programs()
        self.has_registry = self.registry_is_reachable()
        if self.has_registry:
            line("• Using the real base images from the image registry")
            bases = REAL_BASES
            node = REAL_BASES["NODE_IMAGE"]
        else:
            line("• No image registry is reachable. Building base images, and using stand-ins:")
            line("    Keycloak: standins/oidc (the realm file is only checked)   S3 server: retouch-standins s3")
            line("    Postgres 17 and Valkey: those of scripts/up   Caddy: from Debian")
            self.build_bases()
            self.build_stand_ins()
            bases = {"RUNTIME_IMAGE": DEBIAN, "NODE_IMAGE": NODE, "RUST_IMAGE": RUST, "POSTGRES_CLIENT_IMAGE": STAND_INS["POSTGRES_IMAGE"]}
            node = NODE
            self.settings |= STAND_INS
        self.build_services(node)
        self.build_own(bases)

    def registry_is_reachable(self):
        command = ["docker", "pull", "--quiet", REAL_BASES["RUNTIME_IMAGE"]]
        try:
            pulled = subprocess.run(command, env=self.engine.environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=90)
        except subprocess.TimeoutExpired:
            return False
        return pulled.returncode == 0

    # Replacements of published images.

    def build_bases(self):
        if not self.exists(DEBIAN):
            with step("Building a Debian image"):
                self.build_debian()
        self.build(NODE, node_context(), HERE / "node.Dockerfile", {"BASE": DEBIAN})
        if self.from_source:
            self.build(RUST, rust_context(), HERE / "rust.Dockerfile", {"BASE": DEBIAN})

    def build_debian(self):
        tree = STORE / "debian"
        shutil.rmtree(tree, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", str(tree)]
        run_logged(command, str(CACHE / "logs" / "debootstrap.log"), "Downloading the base packages of Debian")
        for folder in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(tree / folder)
            (tree / folder / "partial").mkdir(parents=True)
        # Like the real image, does not keep the indexes of apt.
        (tree / "etc/apt/apt.conf.d/docker-clean").write_text('Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n')
        if CERTIFICATES.exists():
            # Package registries may be behind a proxy with its own certificate.
            shutil.copyfile(CERTIFICATES, tree / CERTIFICATES.relative_to("/"))
        with subprocess.Popen(["tar", "-C", tree, "-c", "."], stdout=subprocess.PIPE) as packing:
            command = ["docker", "import", "--change", 'CMD ["bash"]', "-", DEBIAN]
            subprocess.run(command, stdin=packing.stdout, env=self.engine.environment, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)

    def build_stand_ins(self):
        postgres = fresh_context("postgres")
        shutil.copytree(wheels.get(wheels.POSTGRES), postgres / "programs")
        shutil.copy(HERE / "postgres-entrypoint", postgres)
        self.build(STAND_INS["POSTGRES_IMAGE"], postgres, HERE / "postgres.Dockerfile", {"BASE": DEBIAN})
        valkey = fresh_context("valkey")
        shutil.copy(wheels.valkey_server(), valkey)
        self.build(STAND_INS["VALKEY_IMAGE"], valkey, HERE / "valkey.Dockerfile", {"BASE": DEBIAN})
        self.build(STAND_INS["CADDY_IMAGE"], fresh_context("caddy"), HERE / "caddy.Dockerfile", {"BASE": DEBIAN})

    def build_services(self, node):
        build.install_packages_of("standins/oidc")
        context = fresh_context("services")
        shutil.copytree(REPO / "standins" / "oidc", context / "oidc", symlinks=True)
        shutil.copy(REPO / "target" / "release" / "retouch-standins", context)
        self.build(SERVICES, context, HERE / "services.Dockerfile", {"BASE": node})

    # Images of the Dockerfile.

    def build_own(self, bases):
        binaries = "built" if self.from_source else "prebuilt"
        for image, target in own_images().items():
            self.build(image, REPO, REPO / "Dockerfile", {**bases, "BINARIES": binaries}, target)

    def build(self, image, context, dockerfile, arguments, target=None):
        """Builds with Compose, which includes a client for BuildKit."""
        description = {"context": str(context), "dockerfile": str(dockerfile), "args": arguments, "network": "host"}
        if target:
            description["target"] = target
        file = CONTEXTS / "build.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"name": "retouch-images", "services": {"it": {"image": image, "build": description}}}))
        log = str(CACHE / "logs" / f"image-{image.replace('/', '-').replace(':', '-')}.log")
        with step(f"Building {image}"):
            # COMPOSE_BAKE would need a plugin that may not be installed.
            environment = {**self.engine.environment, "COMPOSE_BAKE": "false", "BUILDKIT_PROGRESS": "plain"}
            run_logged([tools.compose(), "--file", file, "build"], log, f"Building {image}", env=environment)

    def exists(self, image):
        return bool(self.engine.docker("images", "--quiet", image).strip())

    def sizes(self):
        """Yields our images with their sizes in MB."""
        for image in own_images():
            yield image, int(self.engine.docker("image", "inspect", "--format", "{{.Size}}", image)) / 1e6


def own_images():
    return {f"localhost/retouch/{name}:{version_of()}": name for name in ("api", "worker-cpu", "backup")}


def check_programs():
    """Checks that target/release has the programs, which the stand-ins always need."""
    missing = [name for name in PROGRAMS if not (REPO / "target" / "release" / name).exists()]
    if missing:
        raise Problem(f"target/release has no {', '.join(missing)}. Run `scripts/up` or `cargo build --release --workspace` first.")


def fresh_context(name):
    folder = CONTEXTS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def node_context():
    context = fresh_context("node")
    shutil.copy(tools.text_of(["node", "-p", "process.execPath"]).strip(), context / "node")
    packages = Path(tools.text_of(["npm", "root", "--global"]).strip())
    shutil.copytree(packages / "npm", context / "npm", symlinks=True)
    return context


def rust_context():
    context = fresh_context("rust")
    toolchain = Path(tools.text_of(["rustc", "--print", "sysroot"], cwd=REPO).strip())
    # Leaves out the documentation, which is the larger part.
    leave = shutil.ignore_patterns("doc", "share", "rustfmt*", "*clippy*")
    shutil.copytree(toolchain, context / "toolchain", symlinks=True, ignore=leave)
    return context


def newest_source():
    """Returns the modification time of the newest source file of the programs."""
    roots = [REPO / name for name in (*crates(), "migrations", "Cargo.lock")]
    files = [path for root in roots for path in ([root] if root.is_file() else root.rglob("*")) if path.suffix in (".rs", ".sql", ".lock", ".toml")]
    return max(os.path.getmtime(path) for path in files)


def are_fresh():
    """Returns whether the programs in target/release are newer than their sources."""
    programs = [REPO / "target" / "release" / name for name in PROGRAMS]
    return all(path.exists() for path in programs) and min(map(os.path.getmtime, programs)) >= newest_source()
