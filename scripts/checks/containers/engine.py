"""Provides a Docker engine: the running one, or a temporary one.

The temporary engine changes nothing on the machine except its folder and the bridges of its networks. It writes no
firewall rules and does not enable forwarding, so containers can reach only each other and this machine.
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

# Kept between runs, to reuse images and layers.
STORE = CACHE / "engine"
OPTIONS = ["--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--bridge=none"]


class Engine:
    def __init__(self):
        self.process = None
        self.folder = None
        self.environment = dict(os.environ)
        # Ignores the Compose settings of the user.
        for name in [name for name in self.environment if name.startswith("COMPOSE_")]:
            del self.environment[name]

    def __enter__(self):
        if self.answers():
            line(f"• Using the running Docker engine ({self.version()})")
            return self
        if os.environ.get("DOCKER_HOST"):
            raise Problem(f"The Docker engine at DOCKER_HOST={os.environ['DOCKER_HOST']} does not answer.")
        if os.geteuid() != 0:
            raise Problem("You cannot access a running Docker engine, and only root can start one.")
        if missing := [name for name, program in PACKAGES.items() if not shutil.which(program)]:
            prerequisites.install_packages(missing, "No Docker engine is running, so this starts one")
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        with step("Starting a temporary Docker engine"):
            # Short, because paths of sockets are limited.
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
        """Stops the temporary engine with all containers."""
        if self.process:
            if self.process.poll() is None and self.answers():
                if containers := self.docker("ps", "--quiet").split():
                    self.docker("rm", "--force", *containers)
                self.docker("network", "prune", "--force")
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self.process = None
            line("• Stopped the temporary Docker engine")
        if self.folder:
            # Network namespaces of containers may still be mounted in it.
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
        """Runs `docker`. Returns its output."""
        return tools.text_of(["docker", *arguments], env=self.environment)


# Packages for an engine and for base images, each with a program in it.
PACKAGES = {"docker.io": "dockerd", "iptables": "iptables", "debootstrap": "debootstrap"}


def mounts_below(folder):
    lines = Path("/proc/self/mounts").read_text().splitlines()
    found = [text.split()[1] for text in lines if text.split()[1].startswith(f"{folder}/")]
    return sorted(found, reverse=True)
