"""The services of the stack, in start order, with the environment of each."""

import json
import os
import signal
import socket
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from common import addresses, wheels
from common.config import PROGRAMS, REPO
from common.console import Problem, run_logged, step

from .postgres import Postgres

# The default of the worker (`worker/src/config.rs`).
DRAIN_SECONDS = 25


@dataclass
class Service:
    name: str
    label: str
    command: Callable[[], list]
    ready: Callable[[], bool]
    environment: dict = field(default_factory=dict)
    # The port it listens on, and the name of the variable that sets it.
    port: tuple = ()
    # Run before the service starts, and when it is ready.
    prepare: Callable[[], None] = lambda: None
    finish: Callable[[], None] = lambda: None
    options: dict = field(default_factory=dict)
    # How long it may take to become ready, and what it does meanwhile.
    start_seconds: float = 120
    start_work: str = "starting"
    stop_signal: int = signal.SIGTERM
    stop_seconds: float = 10


def plan(settings, runtime=None):
    """Returns the services to start: those without a configured address; with a `runtime`, also the API and the worker."""
    shared = addresses.shared_environment(settings)
    services = []
    if not settings.given("DATABASE_URL"):
        services.append(postgres_service(settings, shared))
    if not settings.given("REDIS_URL"):
        services.append(valkey_service(settings, shared))
    if addresses.has_own_store(settings):
        services.append(s3_service(settings, shared))
    if not settings.given("OIDC_ISSUER"):
        services.append(oidc_service(settings, shared))
    if not settings.given("STRIPE_SECRET_KEY"):
        services.append(stripe_service(settings, shared))
    if runtime is not None:
        services += [api_service(settings, shared), worker_service(settings, shared, runtime)]
    return services


def postgres_service(settings, shared):
    postgres = Postgres(settings)
    shared["DATABASE_URL"] = addresses.own_database_url(settings)
    return Service(
        name="postgres",
        label="Postgres",
        command=postgres.command,
        ready=postgres.is_ready,
        environment={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
        port=(settings.postgres_port, "RETOUCH_POSTGRES_PORT"),
        prepare=postgres.prepare,
        finish=postgres.create_database,
        options=postgres.as_owner(),
        stop_signal=postgres.stop_signal,
        stop_seconds=30,
    )


def valkey_service(settings, shared):
    configuration = settings.run / "valkey.conf"

    def prepare():
        folder = settings.data / "valkey"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        configuration.touch(mode=0o600)
        configuration.write_text(
            f"bind 127.0.0.1\nport {settings.redis_port}\nrequirepass {settings.secret('redis-password')}\n"
            f'dir "{folder}"\nappendonly yes\nsave ""\nmaxmemory-policy noeviction\ndaemonize no\n'
        )

    return Service(
        name="valkey",
        label="Valkey",
        command=lambda: [wheels.valkey_server(), configuration],
        ready=lambda: answer_of_redis(settings, "PING") == b"+PONG",
        environment=shared,
        port=(settings.redis_port, "RETOUCH_REDIS_PORT"),
        prepare=prepare,
    )


def s3_service(settings, shared):
    folder = settings.data / "s3"
    listen = f"127.0.0.1:{settings.s3_port}"
    return Service(
        name="s3",
        label="The S3 server",
        command=lambda: [PROGRAMS / "retouch-standins", "s3", "--root", folder, "--listen", listen],
        ready=lambda: answers(f"http://{listen}/"),
        # Reads its keys from the environment, because command lines are visible to other users.
        environment=shared,
        port=(settings.s3_port, "RETOUCH_S3_PORT"),
        prepare=lambda: folder.mkdir(parents=True, exist_ok=True),
    )


def oidc_service(settings, shared):
    return Service(
        name="oidc",
        label="The identity provider",
        command=lambda: ["node", REPO / "standins" / "oidc" / "server.mjs"],
        ready=lambda: get_json(f"{settings.issuer}/.well-known/openid-configuration") is not None,
        environment={**shared, **oidc_environment(settings)},
        port=(settings.oidc_port, "RETOUCH_OIDC_PORT"),
    )


def oidc_environment(settings):
    return {
        "RETOUCH_OIDC_PORT": str(settings.oidc_port),
        "RETOUCH_OIDC_DATA": str(settings.data / "oidc"),
        "RETOUCH_PUBLIC_URL": settings.public_url,
        "OIDC_CLIENT_ID": "retouch",
        "OIDC_AUDIENCE": "retouch-api",
    }


def stripe_service(settings, shared):
    listen = f"127.0.0.1:{settings.stripe_port}"
    webhook = f"{settings.api_url}/api/payments/webhook"
    folder = settings.data / "stripe"
    return Service(
        name="stripe",
        label="The Stripe stand-in",
        command=lambda: [
            *(PROGRAMS / "retouch-standins", "stripe", "--listen", listen, "--public-url", settings.stripe_url),
            *("--webhook", webhook, "--data", folder),
        ],
        ready=lambda: get_json(f"{settings.stripe_url}/stand-in") is not None,
        # Reads its secrets from the environment, because command lines are visible to other users.
        environment=shared,
        port=(settings.stripe_port, "RETOUCH_STRIPE_PORT"),
        prepare=lambda: folder.mkdir(parents=True, exist_ok=True, mode=0o700),
    )


def api_service(settings, shared):
    program = PROGRAMS / "retouch-api"
    environment = {
        **shared,
        "RETOUCH_LISTEN": settings.listen,
        "RETOUCH_UI_DIR": settings.get("RETOUCH_UI_DIR", str(REPO / "ui" / "dist")),
        "RETOUCH_URL_SECRET": settings.get("RETOUCH_URL_SECRET") or settings.secret("url-secret"),
        # Makes the page show its contact link; nobody receives mail at this address.
        "RETOUCH_CONTACT_EMAIL": settings.get("RETOUCH_CONTACT_EMAIL", "contact@retouch.localhost"),
    }

    def prepare():
        if environment.get("RETOUCH_CREDENTIALS_CHAIN_FILE") == str(addresses.credentials_folder(settings) / "chain.pem"):
            make_credentials(settings, program)
        with step("Migrating the database"):
            log = str(settings.logs / "migrate.log")
            run_logged([program, "migrate"], log, "Migrating the database", env=environment, cwd=REPO)

    return Service(
        name="api",
        label="The API",
        command=lambda: [program, "serve"],
        ready=lambda: get(f"{settings.api_url}/healthz") is not None,
        environment=environment,
        port=(int(settings.listen.rpartition(":")[2]), "RETOUCH_PORT"),
        prepare=prepare,
        stop_seconds=20,
    )


def make_credentials(settings, program):
    """Makes the certificate that signs results, the first time."""
    folder = addresses.credentials_folder(settings)
    if folder.exists():
        return
    with step("Making a certificate that signs results"):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Complete or absent, even if this is interrupted.
        with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
            made = Path(partial) / "credentials"
            log = str(settings.logs / "migrate.log")
            command = [program, "admin", "credentials", "init", "--out", made, "--organization", "Retouch trial"]
            run_logged(command, log, "Making a certificate", cwd=REPO)
            made.rename(folder)


def worker_service(settings, shared, runtime):
    environment = {
        **shared,
        "RETOUCH_MODELS_DIR": settings.get("RETOUCH_MODELS_DIR", str(REPO / "models")),
        "ORT_DYLIB_PATH": runtime,
        "RETOUCH_DEVICE": settings.get("RETOUCH_DEVICE", "auto"),
        # As in the image: large pages save up to a tenth of the CPU time of a picture.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    }
    if metrics := settings.get("RETOUCH_METRICS_LISTEN"):
        # The API listens on the given port.
        host, _, port = metrics.rpartition(":")
        environment["RETOUCH_METRICS_LISTEN"] = f"{host}:{int(port) + 1}"
    return Service(
        name="worker",
        label="The worker",
        command=lambda: [PROGRAMS / "retouch-worker", "serve"],
        ready=lambda: has_worker(get_json(f"{settings.api_url}/readyz")),
        environment=environment,
        # Large models take minutes on a slow disk or CPU.
        start_seconds=900,
        start_work="loading and checking its models",
        # After the drain, a worker needs time to hand back the jobs that it could not finish.
        stop_seconds=drain_seconds(settings) + 15,
    )


def drain_seconds(settings):
    """Returns how long the worker waits for running jobs when it stops."""
    text = settings.get("RETOUCH_DRAIN_SECS", str(DRAIN_SECONDS))
    if not text.isdigit() or int(text) > 3600:
        raise Problem(f"RETOUCH_DRAIN_SECS must be a number of seconds up to 3600, not '{text}'.")
    return int(text)


def has_worker(answer):
    return isinstance(answer, dict) and bool(answer.get("workers"))


def check_ports(services):
    for service in services:
        if service.port:
            check_port(*service.port)


def check_port(port, variable):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError as error:
            raise Problem(f"Port {port} is reserved for root. Set {variable} to a port above 1023.") from error
        except OSError as error:
            raise Problem(
                f"Port {port} is in use by another program. Stop that program, or choose another port: "
                f"put {variable}={port + 1} in .env, or in front of scripts/up."
            ) from error


def answer_of_redis(settings, command, seconds=1):
    """Returns the line that our Valkey answers; an empty one if it does not."""
    try:
        with socket.create_connection(("127.0.0.1", settings.redis_port), timeout=seconds) as connection, connection.makefile("rb") as answers:
            connection.sendall(f"AUTH {settings.secret('redis-password')}\r\n{command}\r\n".encode())
            answers.readline()
            return answers.readline().strip()
    except OSError:
        return b""


# Bypasses proxies, which cannot reach addresses of this machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(url):
    try:
        with DIRECT.open(url, timeout=2) as response:
            return response.read()
    except OSError:
        return None


def get_json(url):
    try:
        return json.loads(get(url) or b"null")
    except ValueError:
        return None


def answers(url):
    try:
        DIRECT.open(url, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
