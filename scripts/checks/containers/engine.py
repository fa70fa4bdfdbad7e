"""A Docker engine: the one that runs, or one of our own for as long as it is needed.

Our own touches nothing of the machine but its folder and the bridges of its networks, which go with them: it writes no
firewall rules and turns on no forwarding. So containers reach each other and this machine, and nothing beyond.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from common.config import CACHE
from common.console import Problem, line, step, tail
from devstack import prerequisites

from . import tools

# Images and layers stay from one run to the next, as downloads do.
STORE = CACHE / "engine"
OPTIONS = ["--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--bridge=none"]


class Engine:
    def __init__(self):
        self.process = None
        self.folder = None
        self.environment = dict(os.environ)
        # The machine's settings for Compose are not ours.
        for name in [name for name in self.environment if name.startswith("COMPOSE_")]:
            del self.environment[name]

    def __enter__(self):
        if self.answers():
            line(f"• Using the Docker engine that runs here ({self.version()})")
            return self
        if os.environ.get("DOCKER_HOST"):
            raise Problem(f"The Docker engine at DOCKER_HOST={os.environ['DOCKER_HOST']} does not answer.")
        if os.geteuid() != 0:
            raise Problem("No Docker engine runs here that you may use, and only root can start one.")
        if missing := [name for name, program in PACKAGES.items() if not shutil.which(program)]:
            prerequisites.install_packages(missing, "No Docker engine runs here, so one is started")
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def is_own(self):
        return self.process is not None

    def start(self):
        with step("Starting a Docker engine of our own"):
            # Short, because the path of a socket may not be long.
            self.folder = Path(tempfile.mkdtemp(prefix="retouch-engine-"))
            STORE.mkdir(parents=True, exist_ok=True)
            self.environment["DOCKER_HOST"] = f"unix://{self.folder}/socket"
            command = ["dockerd", "--host", self.environment["DOCKER_HOST"], "--data-root", STORE / "root"]
            command += ["--exec-root", self.folder / "exec", "--pidfile", self.folder / "pid", *OPTIONS]
            with self.log.open("w") as log:
                self.process = subprocess.Popen(
                    [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            deadline = time.monotonic() + 60
            while not self.answers():
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise Problem(f"The Docker engine did not start. The end of {self.log}:\n\n{tail(self.log)}")
                time.sleep(0.2)

    @property
    def log(self):
        return STORE / "engine.log"

    def stop(self):
        """Ends our own engine; whatever of ours still runs on it ends with it."""
        if self.process:
            if self.process.poll() is None and self.answers():
                left = self.docker("ps", "--quiet").split()
                if left:
                    self.docker("rm", "--force", *left)
                self.docker("network", "prune", "--force")
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self.process = None
            line("• Our Docker engine is stopped")
        if self.folder:
            # Network namespaces of containers are mounted in there until they end.
            for mount in mounts_below(self.folder):
                subprocess.run(["umount", "--lazy", mount], check=False)
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def answers(self):
        command = ["docker", "version", "--format", "{{.Server.Version}}"]
        try:
            return subprocess.run(command, env=self.environment, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
        except OSError:
            return False

    def version(self):
        return self.docker("version", "--format", "{{.Server.Version}}").strip()

    def docker(self, *arguments):
        """Runs `docker`; returns what it printed."""
        return tools.text_of(["docker", *arguments], env=self.environment)


# What is needed for an engine and for base images, with the program that tells whether it is there.
PACKAGES = {"docker.io": "dockerd", "iptables": "iptables", "debootstrap": "debootstrap"}


def mounts_below(folder):
    lines = Path("/proc/self/mounts").read_text().splitlines()
    found = [text.split()[1] for text in lines if text.split()[1].startswith(f"{folder}/")]
    return sorted(found, reverse=True)
