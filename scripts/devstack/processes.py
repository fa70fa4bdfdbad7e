"""Records which processes belong to us. A pid alone does not suffice, because the system reuses pids."""

import fcntl
import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Record:
    name: str
    pid: int
    # Start time in clock ticks since boot; `boot` identifies the boot.
    started: int
    boot: str
    stop_signal: int = signal.SIGTERM
    stop_seconds: float = 10

    @property
    def alive(self):
        return self.boot == boot_id() and start_of(self.pid) == self.started

    def send(self, number, group=False):
        if self.alive:
            try:
                # Every service leads its own process group.
                (os.killpg if group else os.kill)(self.pid, number)
            except ProcessLookupError:
                pass


def boot_id():
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_of(pid):
    """Returns the start time of a process, or None if it has ended or is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may contain blanks and parentheses; the fields after it may not.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def remember(folder, name, pid, **stop):
    """Records a process. Call it right after starting the process, while its pid cannot have been reused."""
    started = start_of(pid)
    if started is None:
        return None
    record = Record(name, pid, started, boot_id(), **stop)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"{name}.json.new"
    temporary.write_text(json.dumps(asdict(record)))
    temporary.replace(folder / f"{name}.json")
    return record


def recall(folder, name):
    try:
        return Record(**json.loads((folder / f"{name}.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def forget(folder, name):
    (folder / f"{name}.json").unlink(missing_ok=True)


def remembered(folder):
    """Returns the recorded processes that are still running, newest first: the order in which to stop them."""
    records = [recall(folder, path.stem) for path in folder.glob("*.json")]
    running = [record for record in records if record and record.alive]
    return sorted(running, key=lambda record: record.started, reverse=True)


def stop(record, force=lambda: False):
    """Signals a process to stop; kills it after its timeout, or when `force` returns true. Returns false if it was killed."""
    record.send(record.stop_signal)
    deadline = time.monotonic() + record.stop_seconds
    while record.alive:
        if time.monotonic() > deadline or force():
            record.send(signal.SIGKILL, group=True)
            while record.alive:
                time.sleep(0.02)
            return False
        time.sleep(0.02)
    return True


def take_lock(run):
    """Locks a checkout until the process ends; `scripts/up` and its supervisor hold the lock. Returns None if another process holds it."""
    run.mkdir(parents=True, exist_ok=True)
    lock = os.open(run / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
