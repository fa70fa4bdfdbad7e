"""A temporary home for tests with its own ports and data. The next run with the same name deletes it."""

import os
import random
import shutil
import socket

from common.config import CACHE, load
from common.console import Problem

from . import services
from .postgres import Postgres
from .supervisor import Supervisor, stop_leftovers

# Settings of the user that tests must never use.
ADDRESSES = (
    "DATABASE_URL REDIS_URL REDIS_PREFIX S3_ENDPOINT S3_PUBLIC_ENDPOINT S3_REGION S3_BUCKET S3_ACCESS_KEY_ID "
    "S3_SECRET_ACCESS_KEY OIDC_ISSUER OIDC_CLIENT_ID OIDC_AUDIENCE STRIPE_SECRET_KEY STRIPE_WEBHOOK_SECRET "
    "STRIPE_API_URL RETOUCH_LISTEN RETOUCH_PUBLIC_URL RETOUCH_UI_DIR RETOUCH_URL_SECRET RETOUCH_METRICS_LISTEN "
    "RETOUCH_CREDENTIALS RETOUCH_CREDENTIALS_CHAIN RETOUCH_CREDENTIALS_CHAIN_FILE RETOUCH_CREDENTIALS_KEY "
    "RETOUCH_CREDENTIALS_KEY_FILE RETOUCH_CREDENTIALS_REQUIRED"
).split()
PORTS = [
    *("RETOUCH_PORT", "RETOUCH_POSTGRES_PORT", "RETOUCH_REDIS_PORT", "RETOUCH_S3_PORT", "RETOUCH_STRIPE_PORT"),
    "RETOUCH_OIDC_PORT",
]


class Sandbox:
    def __init__(self, name):
        self.environment = dict(os.environ)
        # Empty, because an unset variable would be read from .env.
        self.environment |= {variable: "" for variable in ADDRESSES}
        self.environment |= {variable: str(port) for variable, port in zip(PORTS, free_ports(len(PORTS)))}
        self.environment["RETOUCH_HOME"] = str(CACHE / "test" / name)
        self.settings = load(self.environment)
        self.settings.throw_away = True
        self.supervisor = Supervisor(self.settings)
        self.postgres = None

    def __enter__(self):
        stop_leftovers(self.settings)
        data = self.settings.data / "postgres"
        if data.is_symlink():
            shutil.rmtree(data.resolve(), ignore_errors=True)
        shutil.rmtree(self.settings.home, ignore_errors=True)
        self.settings.run.mkdir(parents=True)
        return self

    def __exit__(self, *_):
        self.supervisor.stop()

    def start_postgres(self):
        shared = {}
        service = services.postgres_service(self.settings, shared)
        self.postgres = Postgres(self.settings)
        self.supervisor.start([service])
        return shared["DATABASE_URL"]


def free_ports(count):
    """Returns ports that are free now, below the range that the system uses for outgoing connections."""
    ports = []
    for port in random.sample(range(20000, 30000), 1000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise Problem("There are not enough free ports between 20000 and 30000.")
