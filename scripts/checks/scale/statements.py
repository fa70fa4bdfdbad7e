"""Times every statement of our programs, from Postgres's own log."""

import math
import re
from contextlib import contextmanager
from dataclasses import dataclass, field

# Marks the beginning of a line of the log, because statements have several lines.
MARK = "@@"
SETTINGS = {
    "log_line_prefix": f"'{MARK}%p|%a|'",
    "log_min_duration_statement": "0",
    "log_parameter_max_length": "0",
}
TIMED = re.compile(r"LOG:  duration: ([\d.]+) ms(?:  (parse|bind|execute|statement)[^:]*: (.*))?", re.DOTALL)


@dataclass
class Times:
    """Durations in milliseconds."""

    all: list = field(default_factory=list)

    def add(self, milliseconds):
        self.all.append(milliseconds)

    def share(self, part):
        ordered = sorted(self.all)
        return ordered[max(0, math.ceil(part * len(ordered)) - 1)]

    @property
    def p50(self):
        return self.share(0.5)

    @property
    def p99(self):
        return self.share(0.99)


@contextmanager
def timed(trial):
    """Yields a dictionary that has the times of every statement, by its text, after the block."""
    for name, value in SETTINGS.items():
        trial.sql(f"alter system set {name} = {value}")
    trial.sql("select pg_reload_conf()")
    log = trial.settings.logs / "postgres.log"
    begun, found = log.stat().st_size, {}
    try:
        yield found
    finally:
        trial.sql("alter system reset all")
        trial.sql("select pg_reload_conf()")
        with log.open("rb") as file:
            file.seek(begun)
            found.update(times_in(file.read().decode(errors="replace")))


def times_in(text):
    """Adds parsing and planning, which Postgres reports separately, to each execution."""
    times, before = {}, {}
    for entry in re.split(rf"^{MARK}", text, flags=re.MULTILINE)[1:]:
        process, program, rest = entry.split("|", 2)
        match = TIMED.match(rest)
        if program == "psql" or not match or not match[3]:
            continue
        milliseconds, step, statement = float(match[1]), match[2], " ".join(match[3].split())
        key = (process, statement)
        if step in ("parse", "bind"):
            before[key] = before.get(key, 0) + milliseconds
        else:
            times.setdefault(statement, Times()).add(milliseconds + before.pop(key, 0))
    return times
