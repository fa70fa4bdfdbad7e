"""Shows the progress of a download: a bar on a terminal, otherwise a line every few seconds."""

import collections
import shutil
import sys
import time

BAR = 24
REDRAW_SECONDS = 0.1
LINE_SECONDS = 10
# The speed is a moving average over this time.
WINDOW_SECONDS = 5


def info(text):
    """Prints to stderr, because other programs read the stdout of `scripts/models`."""
    print(text, file=sys.stderr, flush=True)


def amount(size_bytes):
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:.1f} kB"


class Progress:
    def __init__(self, label, done, total, out=None, clock=time.monotonic):
        self.label = label
        self.done = done
        self.total = total
        self.out = out or sys.stderr
        self.clock = clock
        self.terminal = self.out.isatty()
        self.recent = collections.deque([(clock(), done)])
        self.shown = clock() - (REDRAW_SECONDS if self.terminal else 0)
        self.drawn = False

    def advance(self, size_bytes):
        self.done += size_bytes
        now = self.clock()
        self.recent.append((now, self.done))
        while len(self.recent) > 2 and self.recent[0][0] < now - WINDOW_SECONDS:
            self.recent.popleft()
        if now - self.shown >= (REDRAW_SECONDS if self.terminal else LINE_SECONDS):
            self.shown = now
            self.show()

    def close(self):
        """Ends the line of the bar."""
        if self.drawn:
            self.show()
            print(file=self.out, flush=True)

    def show(self):
        if not self.terminal:
            print(f"  {self.label}: {self.figures()}", file=self.out, flush=True)
            return
        text = f"  {self.bar()}{self.figures()}  {self.label}"
        width = shutil.get_terminal_size().columns - 1
        print("\r" + text[:width].ljust(width), end="", file=self.out, flush=True)
        self.drawn = True

    def bar(self):
        if not self.total:
            return ""
        full = min(BAR, BAR * self.done // self.total)
        return f"{'█' * full}{'░' * (BAR - full)}  "

    def figures(self):
        parts = [f"{self.done / 1e6:.1f} of {amount(self.total)}" if self.total else amount(self.done)]
        if speed := self.speed():
            parts.append(f"{speed / 1e6:.1f} MB/s")
            if self.total and self.done < self.total:
                parts.append(f"{duration((self.total - self.done) / speed)} left")
        return "  ".join(parts)

    def speed(self):
        (first, before), (last, after) = self.recent[0], self.recent[-1]
        return (after - before) / (last - first) if last > first else 0


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
