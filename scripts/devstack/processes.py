"""Which processes are ours. A pid alone is not enough: the system hands it out again after a process ends."""

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
    # When the process started, in clock ticks since the boot that `boot` names.
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
                # Every service leads a group of its own.
                (os.killpg if group else os.kill)(self.pid, number)
            except ProcessLookupError:
                pass


def boot_id():
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_of(pid):
    """None for a process that is gone or only waits for its parent to notice."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in brackets may hold blanks and brackets of its own; what follows it may not.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def remember(folder, name, pid, **stop):
    """Call it while the process is surely ours: right after its start."""
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
    """What runs of what we started, the newest first: the order in which to stop it."""
    records = [recall(folder, path.stem) for path in folder.glob("*.json")]
    running = [record for record in records if record and record.alive]
    return sorted(running, key=lambda record: record.started, reverse=True)


def stop(record, impatient=lambda: False):
    """Asks a process to end, waits, and ends it by force when it does not. True when it ended by itself."""
    record.send(record.stop_signal)
    deadline = time.monotonic() + record.stop_seconds
    while record.alive:
        if time.monotonic() > deadline or impatient():
            record.send(signal.SIGKILL, group=True)
            while record.alive:
                time.sleep(0.02)
            return False
        time.sleep(0.02)
    return True
