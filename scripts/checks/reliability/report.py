"""What a scenario measured, and whether it keeps the promises."""

from dataclasses import asdict, dataclass, field

# Paid work flows again when this share of the submitted rate is finished in a window of this many seconds.
FLOWING_SHARE = 0.5
WINDOW_SECONDS = 3


@dataclass
class Numbers:
    submitted: int
    done: int
    failed: int
    paid_without_result: int
    results_without_debit: int
    # Seconds until paid work flowed again, for each dependency that returned; None if it never did.
    flows_after: dict
    # The longest time in which no paid job finished while jobs were submitted, in seconds.
    pause: float
    # The time from the first request of a job to its result that 99 of 100 jobs do not exceed, in seconds.
    p99: float
    audit: str
    # Jobs that lost their worker at least once.
    suspects: int = 0
    # Further measurements, and further broken promises, in words.
    notes: list = field(default_factory=list)
    broken: list = field(default_factory=list)

    @property
    def lost(self):
        return self.submitted - self.done - self.failed

    def violations(self, flow_seconds, pause_seconds=None, p99_seconds=None):
        """Returns one sentence for each broken promise."""
        found = [
            f"{count} {what}"
            for count, what in (
                (self.lost, "jobs lost"),
                (self.failed, "jobs failed for good"),
                (self.paid_without_result, "paid without a result"),
                (self.results_without_debit, "results without a debit"),
            )
            if count
        ]
        for name, seconds in self.flows_after.items():
            if seconds is None:
                found.append(f"paid work never flowed after {name}")
            elif seconds > flow_seconds:
                found.append(f"paid work flowed {seconds:.1f} s after {name}, later than {flow_seconds} s")
        if pause_seconds and self.pause > pause_seconds:
            found.append(f"no paid job finished for {self.pause:.1f} s, longer than {pause_seconds} s")
        if p99_seconds and self.p99 > p99_seconds:
            found.append(f"1 of 100 results took {self.p99:.1f} s or more, longer than {p99_seconds} s")
        if self.audit:
            found.append(f"the audit found: {self.audit}")
        return found + self.broken

    def text(self):
        flows = "; ".join(f"flows {seconds_text(seconds)} after {name}" for name, seconds in self.flows_after.items())
        parts = [
            f"{self.submitted} submitted",
            f"{self.done} done",
            f"{self.lost} lost",
            f"{self.paid_without_result} paid without result",
            f"{self.results_without_debit} results without debit",
            f"{self.failed} failed",
            flows,
            f"longest pause {self.pause:.1f} s",
            f"99 of 100 results within {self.p99:.1f} s",
            f"{self.suspects} suspects",
            f"audit {'found problems' if self.audit else 'clean'}",
            *self.notes,
        ]
        return ", ".join(part for part in parts if part)

    def record(self, violations):
        return asdict(self) | {"lost": self.lost, "violations": violations}


def seconds_text(seconds):
    return "never" if seconds is None else f"{seconds:.1f} s"


def recovery(finishes, since, rate):
    """Returns the seconds from `since` until paid work flows again, or None if it never does.

    `finishes` are the times at which jobs finished, in order, and `rate` is the number submitted per second. If fewer jobs
    are left than a window needs, all of them must finish in one.
    """
    later = [time for time in finishes if time >= since]
    needed = max(1, min(len(later), round(rate * WINDOW_SECONDS * FLOWING_SHARE)))
    for first, time in enumerate(later):
        last = first + needed - 1
        if last < len(later) and later[last] - time <= WINDOW_SECONDS:
            return time - since
    return None


def longest_pause(finishes, begin, end):
    """Returns the longest time between two finished jobs from `begin` to `end`."""
    times = [begin, *(time for time in finishes if begin <= time <= end), end]
    return max(later - earlier for earlier, later in zip(times, times[1:]))


def table(records):
    """Returns the records of a campaign, by name, as a Markdown table."""
    head = "| scenario | done | lost | failed | paid without result | results without debit | flows again after | longest pause | audit |"
    rows = [head, "|---|---|---|---|---|---|---|---|---|"]
    for name, found in records.items():
        flows = ", ".join(seconds_text(seconds) for seconds in found["flows_after"].values()) or "–"
        cells = [
            f"`{name}`",
            f"{found['done']} of {found['submitted']}",
            *(found[key] for key in ("lost", "failed", "paid_without_result", "results_without_debit")),
            flows,
            f"{found['pause']:.1f} s",
            "problems" if found["audit"] else "clean",
        ]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(rows)
