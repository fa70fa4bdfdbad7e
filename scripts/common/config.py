"""Settings of the scripts. The environment overrides `.env`, which overrides the defaults.

An empty variable counts as unset, so `DATABASE_URL= scripts/up` overrides a line of `.env`.
"""

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from .console import Problem

REPO = Path(__file__).resolve().parents[2]
# Belongs to the checkout, not to one set of data: downloads, logs and build stamps.
CACHE = REPO / ".retouch"
# `release` builds in half the time; the images contain `dist` (see Cargo.toml).
PROFILE = os.environ.get("RETOUCH_CARGO_PROFILE") or "release"
PROGRAMS = REPO / "target" / PROFILE
# Settings that the scripts use themselves, and that may be in the file that NAME_FILE names, as for the programs.
SECRETS = ("DATABASE_URL", "REDIS_URL", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET")


@dataclass
class Settings:
    values: dict
    home: Path
    public_url: str
    listen: str
    postgres_port: int
    redis_port: int
    s3_port: int
    stripe_port: int
    oidc_port: int
    # The Postgres of a test may lose its data if the machine loses power; without fsync it is faster.
    throw_away: bool = False
    _secrets: dict = field(default_factory=dict)

    def get(self, name, default=""):
        return self.values.get(name) or default

    def given(self, name):
        return bool(self.values.get(name))

    @property
    def logs(self):
        return self.home / "logs"

    @property
    def run(self):
        return self.home / "run"

    @property
    def data(self):
        return self.home / "data"

    @property
    def api_url(self):
        """The address of the API on this machine; `public_url` may differ."""
        host, _, port = self.listen.rpartition(":")
        return f"http://{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{port}"

    @property
    def issuer(self):
        return f"http://127.0.0.1:{self.oidc_port}"

    @property
    def stripe_url(self):
        """The address of the Stripe stand-in, for the API and for browsers."""
        return f"http://127.0.0.1:{self.stripe_port}"

    def secret(self, name):
        """Returns a secret from a file that only its owner can read; generates it the first time."""
        if name not in self._secrets:
            path = self.home / "secrets" / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w") as file:
                    file.write(secrets.token_hex(32))
            except FileExistsError:
                pass
            self._secrets[name] = path.read_text().strip()
            if not self._secrets[name]:
                raise Problem(f"{path} is empty. Delete it, and a new secret will be generated.")
        return self._secrets[name]


def load(environment=None):
    environment = dict(os.environ if environment is None else environment)
    values = with_files({**read_dotenv(REPO / ".env"), **environment})
    home = Path(values.get("RETOUCH_HOME") or CACHE)
    if not home.is_absolute():
        home = REPO / home
    listen = values.get("RETOUCH_LISTEN") or f"127.0.0.1:{port(values, 'RETOUCH_PORT', 8080)}"
    if not listen.rpartition(":")[2].isdigit():
        raise Problem(f"RETOUCH_LISTEN must look like 127.0.0.1:8080, not '{listen}'.")
    public_url = values.get("RETOUCH_PUBLIC_URL") or f"http://127.0.0.1:{listen.rpartition(':')[2]}"
    return Settings(
        values={name: value for name, value in values.items() if value},
        home=home,
        listen=listen,
        public_url=public_url.rstrip("/"),
        postgres_port=port(values, "RETOUCH_POSTGRES_PORT", 15432),
        redis_port=port(values, "RETOUCH_REDIS_PORT", 16379),
        s3_port=port(values, "RETOUCH_S3_PORT", 19000),
        stripe_port=port(values, "RETOUCH_STRIPE_PORT", 19001),
        oidc_port=port(values, "RETOUCH_OIDC_PORT", 19400),
    )


def with_files(values):
    """Returns the values, with those of secrets that are in files."""
    read = {}
    for name in SECRETS:
        path = values.get(f"{name}_FILE")
        if path and not values.get(name):
            try:
                read[name] = Path(path).read_text().rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                raise Problem(f"Cannot read {path}, which {name}_FILE names: {error}.") from error
    return values | read


def port(values, name, default):
    text = values.get(name) or str(default)
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise Problem(f"{name} must be a port number, not '{text}'.")
    return int(text)


def read_dotenv(path):
    """Reads lines of NAME=value. Removes quotes around values, comment lines, and comments after ` #` unless the value is quoted."""
    values = {}
    if not path.exists():
        return values
    for number, text in enumerate(path.read_text().splitlines(), 1):
        text = text.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name.isidentifier():
            raise Problem(f"Line {number} of .env is not NAME=value: {text}")
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        elif value[:1] not in ("'", '"'):
            value = f" {value}".partition(" #")[0].strip()
        values[name] = value
    return values
