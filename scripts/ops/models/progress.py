"""Shows the progress of a download: a line every few seconds."""

import sys
import time

LINE_SECONDS = 10


def info(text):
    """Prints to stderr, because other programs read the stdout of `scripts/models`."""
    print(text, file=sys.stderr, flush=True)


def amount(size_bytes):
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:.1f} kB"


class Progress:
    def __init__(self, label, done, total, clock=time.monotonic):
        self.label, self.done, self.total, self.clock = label, done, total, clock
        # At the last line.
        self.shown_at, self.shown_bytes = clock(), done

    def advance(self, size_bytes):
        self.done += size_bytes
        seconds = self.clock() - self.shown_at
        if seconds >= LINE_SECONDS:
            whole = f" of {amount(self.total)}" if self.total else ""
            info(f"  {self.label}: {amount(self.done)}{whole}, {(self.done - self.shown_bytes) / seconds / 1e6:.1f} MB/s")
            self.shown_at, self.shown_bytes = self.clock(), self.done
