"""The fair order of jobs, as `core/src/jobs/submit.rs` and `claim.rs` compute it in SQL. A test compares the two.

Left out is what the simulator does not have: retries, suspects, cancellations, and workers that lack a model.
"""

import heapq
import itertools
from collections import defaultdict, deque

# In the order of their claims.
TIERS = ("paid", "free", "visitor")
# How many of the jobs that ended last tell which turn is being served, beside the running ones.
REMEMBERED = 8


class FairQueue:
    """Jobs that wait or run. A class is a tier and a tool."""

    def __init__(self):
        self.numbers = itertools.count()
        # By class: waiting jobs as (turn, number, job), and the turns of running jobs and of the last ones that ended.
        self.waiting, self.running, self.ended = defaultdict(list), defaultdict(list), defaultdict(lambda: deque(maxlen=REMEMBERED))
        # By class and owner.
        self.newest = {}

    def submit(self, job):
        """Assigns the job's turn: the one after that being served in its class, or after its owner's last, whichever is greater."""
        kind, owner = keys(job)
        own = [self.newest[owner].turn] if owner in self.newest else []
        job.turn = max([*self.running[kind], *self.ended[kind], *own], default=0) + 1
        heapq.heappush(self.waiting[kind], (job.turn, next(self.numbers), job))
        # Visitors have no account, so each of their jobs is a newcomer's.
        if job.arrival.tier != "visitor":
            self.newest[owner] = job

    def claim(self, tiers=TIERS):
        """Returns the job with the lowest turn of its class: of the highest tier, then of the class whose job has waited longest."""
        heads = [(TIERS.index(kind[0]), waiting[0][1], kind) for kind, waiting in self.waiting.items() if waiting and kind[0] in tiers]
        if not heads:
            return None
        kind = min(heads)[2]
        turn, _, job = heapq.heappop(self.waiting[kind])
        self.running[kind].append(turn)
        return job

    def end(self, job):
        kind, owner = keys(job)
        self.running[kind].remove(job.turn)
        self.ended[kind].append(job.turn)
        # If an older job of the owner still runs, its turn counts among the running ones.
        if self.newest.get(owner) is job:
            del self.newest[owner]


def keys(job):
    """Returns the keys of the job's class, and of its owner in this class."""
    kind = (job.arrival.tier, job.arrival.tool)
    return kind, (*kind, job.arrival.owner)
