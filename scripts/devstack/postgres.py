"""The local Postgres: its files, its user, and how it is set up."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
from pathlib import Path

from common import wheels
from common.addresses import POSTGRES_DATABASE, POSTGRES_USER
from common.console import Problem, line, run_logged, step


class Postgres:
    def __init__(self, settings):
        self.settings = settings
        self.port = settings.postgres_port
        self.log = str(settings.logs / "postgres-setup.log")
        self.folder = settings.data / "postgres"
        self.bin = wheels.postgres_bin()
        self.owner = None
        if os.geteuid() == 0:
            self.use_another_user()

    def use_another_user(self):
        """Postgres refuses to run as root; root runs it as the user `nobody`."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        closed = first_closed_folder(self.folder.parent) or first_closed_folder(self.bin)
        if closed and not self.folder.is_symlink():
            if (self.folder / "PG_VERSION").exists():
                raise Problem(
                    f"Postgres must not run as root, and other users cannot reach {self.folder} "
                    f"because they may not enter {closed}. Run: chmod o+x {closed}"
                )
            self.place_elsewhere(closed)
        if self.folder.is_symlink():
            self.move_programs()
            self.folder = self.folder.resolve()
        self.owner = pwd.getpwnam("nobody")
        if self.folder.exists() and self.folder.stat().st_uid != 0:
            # An ordinary user created the data, so Postgres keeps running as that user.
            self.owner = pwd.getpwuid(self.folder.stat().st_uid)

    def place_elsewhere(self, closed):
        target = Path("/var/lib/retouch") / secrets.token_hex(6) / "postgres"
        line(f"  Postgres must not run as root, and other users may not enter {closed}: its data goes to {target}")
        target.parent.mkdir(parents=True, exist_ok=True)
        self.folder.symlink_to(target)

    def move_programs(self):
        programs = wheels.get(wheels.POSTGRES)
        copy = Path("/var/lib/retouch") / programs.name
        if not copy.exists():
            new = copy.with_name(f"{copy.name}.new")
            shutil.copytree(programs, new, dirs_exist_ok=True)
            new.rename(copy)
        self.bin = wheels.postgres_bin(copy)

    def as_owner(self):
        """Returns the options of `subprocess` that run a program as the owner of the data."""
        options = {"cwd": "/"}
        if self.owner:
            options |= {"user": self.owner.pw_uid, "group": self.owner.pw_gid, "extra_groups": []}
        return options

    def prepare(self):
        if (self.folder / "PG_VERSION").exists():
            return
        with step("Creating the database"):
            # Renamed into place when complete, so that an interrupted start leaves no partial database.
            new = self.folder.with_name("postgres.new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True, mode=0o700)
            password = new.with_name("postgres.password")
            password.write_text(self.settings.secret("postgres-password"))
            password.chmod(0o600)
            if self.owner:
                for path in (new, password):
                    os.chown(path, self.owner.pw_uid, self.owner.pw_gid)
            command = [self.bin / "initdb", "--pgdata", new, "--username", POSTGRES_USER, "--pwfile", password]
            command += ["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"]
            command += ["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"]
            command += ["--no-sync"] if self.settings.throw_away else []
            try:
                run_logged(command, self.log, "Creating the database", **self.as_owner())
            finally:
                password.unlink()
            new.rename(self.folder)

    def command(self):
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 300,
            # As in docker-compose.gpu.yml.
            "shared_preload_libraries": "pg_stat_statements",
        }
        if self.settings.throw_away:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        return [self.bin / "postgres", "-D", self.folder] + [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]

    def is_ready(self):
        command = [self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0

    def create_database(self):
        exists = self.psql("select 1 from pg_database where datname = :'name'")
        if exists.strip() != "1":
            self.psql('create database :"name"')

    def psql(self, statement, database="postgres"):
        environment = {**os.environ, "PGPASSWORD": self.settings.secret("postgres-password")}
        command = [self.bin / "psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-v", f"name={POSTGRES_DATABASE}"]
        command += ["-h", "127.0.0.1", "-p", str(self.port), "-U", POSTGRES_USER, "-d", database]
        answer = subprocess.run(command, input=statement, env=environment, capture_output=True, text=True)
        if answer.returncode:
            raise Problem(f"Postgres on port {self.port} refused: {answer.stderr.strip()}")
        return answer.stdout

    def delete(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    # Fast shutdown: disconnects clients. SIGTERM would wait for them.
    stop_signal = signal.SIGINT


def first_closed_folder(path):
    """Returns the outermost folder on the path that other users may not enter, or None."""
    path = path.resolve()
    for folder in [*reversed(path.parents), path]:
        if not folder.stat().st_mode & 0o001:
            return folder
    return None
