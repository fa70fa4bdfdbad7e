"""A running Compose stack: its containers, users and images."""

import http.client
import json
import os
import signal
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from common.config import REPO
from common.console import Problem
from devstack import services
from devstack.sandbox import free_ports
from devstack.trial import Person, expect, post, upload

from . import tools

PROJECT, NODE = "retouch-proof", "retouch-proof-node"
FILES = ("docker-compose.gpu.yml", "deploy/compose/cpu.yml", "deploy/compose/central.yml", "deploy/compose/stand-ins.yml")
NODE_FILES = ("docker-compose.gpu.yml", "deploy/compose/cpu.yml")
FRONT = "172.30.231"


class Stack:
    """A Compose project with its own settings and secrets."""

    def __init__(self, engine, name, files, settings):
        self.engine = engine
        self.name = name
        self.files = files
        self.folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        # Containers run as other users and must be able to read the secrets, which the engine mounts.
        self.secrets = self.folder / "secrets"
        # Replaces the settings in this checkout.
        self.settings = {"RETOUCH_SECRETS": str(self.secrets), "RETOUCH_SETTINGS": str(self.folder / "settings.env"), **settings}

    def prepare(self, *arguments, **environment):
        """Runs deploy/compose/prepare. Returns its output."""
        script = REPO / "deploy" / "compose" / "prepare"
        environment = {**os.environ, "RETOUCH_SECRETS": str(self.secrets), "RETOUCH_ENV": str(self.folder / "env"), **environment}
        return tools.text_of([script, *arguments], env=environment)

    @property
    def is_prepared(self):
        return (self.folder / "env").exists()

    def compose(self, *arguments, timeout=None):
        command = [tools.compose(), "--project-name", self.name, "--project-directory", REPO]
        command += ["--env-file", self.folder / "env"]
        for file in self.files:
            command += ["--file", REPO / file]
        environment = {**self.engine.environment, **self.settings}
        return tools.text_of([*command, *arguments], env=environment, timeout=timeout)

    def up(self, *arguments):
        self.compose("up", "--detach", "--no-build", "--wait", "--wait-timeout", "180", *arguments)

    def down(self):
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "60")

    # Containers.

    def containers(self, service):
        """Returns the ids of the containers of a service, oldest first."""
        found = self.engine.docker(
            "ps", "--all", "--quiet", "--no-trunc",
            "--filter", f"label=com.docker.compose.project={self.name}",
            "--filter", f"label=com.docker.compose.service={service}",
        )  # fmt: skip
        return found.split()[::-1]

    def services(self):
        """Returns the states of the containers by service."""
        states = {}
        for text in self.compose("ps", "--all", "--format", "json").splitlines():
            one = json.loads(text)
            states.setdefault(one["Service"], []).append(one)
        return states

    def inspect(self, container, template):
        return self.engine.docker("inspect", "--format", template, container).strip()

    def pid(self, container):
        return int(self.inspect(container, "{{.State.Pid}}"))

    def networks(self, container):
        return list(json.loads(self.inspect(container, "{{json .NetworkSettings.Networks}}")))

    def address(self, service, network):
        template = f'{{{{(index .NetworkSettings.Networks "{self.name}_{network}").IPAddress}}}}'
        return self.inspect(self.containers(service)[0], template)

    def run_in(self, service, *command):
        """Runs a command in a container of a service. Returns its exit status and its output."""
        ended = subprocess.run(
            ["docker", "exec", self.containers(service)[0], *command],
            env=self.engine.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return ended.returncode, ended.stdout.strip()

    def log(self, service):
        return self.compose("logs", "--no-color", "--no-log-prefix", service)


class Central(Stack):
    """All services on one host, with users."""

    def __init__(self, engine, images, models):
        port, https = free_ports(2)
        self.url = f"http://127.0.0.1:{port}"
        settings = {
            "COMPOSE_PROFILES": "api,postgres,redis,s3,worker",
            "RETOUCH_PUBLIC_URL": self.url,
            "RETOUCH_DOMAIN": "retouch.test",
            "RETOUCH_HTTP_PORT": str(port),
            "RETOUCH_HTTPS_PORT": str(https),
            "RETOUCH_FRONT_NET": FRONT,
            "RETOUCH_MODELS": str(models),
            "RETOUCH_WORKER_MEMORY": "8G",
            "RETOUCH_WORKER_CPUS": "2",
            "RETOUCH_API_CPUS": "2",
            "POSTGRES_CPUS": "2",
            "RETOUCH_DRAIN_SECS": "30",
            **images.settings,
        }
        super().__init__(engine, PROJECT, FILES, settings)
        self.backups, self.metrics = self.folder / "backups", self.folder / "metrics"
        self.backups.mkdir(mode=0o700)
        self.settings |= {"RETOUCH_BACKUPS": str(self.backups), "RETOUCH_BACKUP_METRICS": str(self.metrics)}

    def prepare_secrets(self):
        self.prepare()
        # An operator fills in the rest. The last line of a name counts.
        with (self.folder / "env").open("a") as env:
            # The address is one of this machine that containers of another project can also reach.
            env.write(f"COMPOSE_FILE={':'.join(FILES)}\nRETOUCH_PRIVATE_ADDRESS={FRONT}.1\n")
        for name, text in (("stripe_secret_key", "sk_test_proof"), ("stripe_webhook_secret", "whsec_proof")):
            file = self.secrets / name
            file.chmod(0o600)
            file.write_text(text)
            file.chmod(0o444)

    def sql(self, statement, database="retouch"):
        command = ["psql", "--username=retouch", f"--dbname={database}", "--no-psqlrc", "--tuples-only", "--no-align"]
        status, output = self.run_in("postgres", *command, "--set=ON_ERROR_STOP=1", f"--command={statement}")
        expect(status == 0, "Postgres runs the statement", output)
        return output

    def number(self, statement, database="retouch"):
        return float(self.sql(statement, database) or 0)

    def admin(self, *arguments):
        return self.run_in("api", "retouch-api", "admin", *arguments)

    def live_workers(self):
        """Returns the workers that the API considers alive."""
        return (services.get_json(f"{self.url}/readyz") or {}).get("workers", [])

    # Users.

    def token(self, email):
        status, output = self.run_in("identity", "node", "/oidc/token.mjs", email)
        expect(status == 0, "A token can be issued", output)
        return output

    def person(self, email, picture):
        token = self.token(email)
        return Person(self.url, token, upload(self.url, token, picture))

    def credits(self, token):
        request = urllib.request.Request(f"{self.url}/api/user/get", headers={"Authorization": f"Bearer {token}"})
        with services.DIRECT.open(request, timeout=30) as answer:
            return json.load(answer)["credits"]

    def download(self, address, token):
        address = urllib.parse.urljoin(self.url, address)
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        with services.DIRECT.open(request, timeout=60) as answer:
            return answer.read()

    def buy(self, token, pack):
        """Orders a pack and pays with the form of the Stripe stand-in."""
        address = f"{self.url}/api/payments/create-checkout-session-{pack}"
        status, checkout = post(address, {"Authorization": f"Bearer {token}"})
        expect(status in (200, 201), "A pack can be ordered", (status, checkout))
        page = urllib.parse.urlsplit(checkout["url"])
        connection = http.client.HTTPConnection(self.address("stripe", "inside"), page.port, timeout=30)
        try:
            form_data = urllib.parse.urlencode({"action": "pay", "email": "buyer@example.test"})
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Host": page.netloc}
            connection.request("POST", page.path, form_data, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        expect(answer.status in (302, 303), "The page accepts the payment", (answer.status, text[:500]))

    # Jobs.

    def jobs_done(self):
        return self.number("select count(*) from jobs where state = 'done'")

    def kill(self, container):
        """Kills the process directly, because the engine does not restart a container after `docker kill`."""
        os.kill(self.pid(container), signal.SIGKILL)


def status_of(process):
    """Returns the fields of /proc/PID/status."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return dict(text.split(":\t", 1) for text in lines if ":\t" in text)


def problem_with(stack):
    """Returns a Problem with the states of all services, and with the logs of those that failed."""
    parts = []
    for service, containers in stack.services().items():
        states = [f"{one['State']} {one.get('Health') or ''}".strip() for one in containers]
        parts.append(f"{service}: {', '.join(states)}")
        if any(state not in ("running", "running healthy", "exited") for state in states):
            parts.append("\n".join(stack.log(service).splitlines()[-15:]))
    return Problem("\n".join(parts))
