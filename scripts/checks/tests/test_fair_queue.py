"""Compares the statements that submit and claim jobs with a model of the fair order (docs/decisions/0005-fair-queueing.md)."""

import contextlib
import io
import json
import random
import re
import unittest
from collections import defaultdict
from dataclasses import dataclass

from common import addresses
from common.config import REPO
from devstack.sandbox import Sandbox
from ops.database import Database

CUT, UPSCALE = "remove-background", "upscale"
ADA, BOB = 1, 2
# In the order of their claims.
TIERS = ("paid", "free", "visitor")
# How many of the jobs that ended last tell which turn is being served, beside the running ones.
REMEMBERED = 8


@dataclass(eq=False)
class Job:
    number: int
    owner: int
    tool: str
    tier: str
    turn: int = 0

    @property
    def kind(self):
        """The job's class."""
        return self.tier, self.tool


class FairQueue:
    """The model. Left out are retries, suspects, cancellations, and workers that lack a model.

    It records everything that happens, for `replayed`.
    """

    def __init__(self):
        self.jobs, self.events = [], []
        self.waiting, self.claimed, self.running = [], [], []
        # By class.
        self.ended = defaultdict(list)

    def submit(self, owner, count=1, tool=CUT, tier="paid"):
        """Returns the numbers of the new jobs. Each gets the turn after that being served, or after its owner's last, whichever is greater."""
        for _ in range(count):
            job = Job(len(self.jobs), owner, tool, tier)
            served = [one.turn for one in [*self.running, *self.ended[job.kind][-REMEMBERED:]] if one.kind == job.kind]
            # Visitors have no account, so each of their jobs is a newcomer's.
            own = [one.turn for one in [*self.waiting, *self.running] if one.kind == job.kind and one.owner == owner and tier != "visitor"]
            job.turn = max([*served, *own], default=0) + 1
            self.jobs.append(job)
            self.waiting.append(job)
            self.events.append(("submit", job))
        return list(range(len(self.jobs) - count, len(self.jobs)))

    def claim(self, tiers=TIERS):
        """Returns the number of the job with the lowest turn of its class: of the highest tier, then of the class whose job has waited longest."""
        self.events.append(("claim", tiers))
        heads = {}
        for job in sorted(self.waiting, key=lambda job: (job.turn, job.number)):
            heads.setdefault(job.kind, job)
        allowed = [job for job in heads.values() if job.tier in tiers]
        if not allowed:
            return None
        job = min(allowed, key=lambda job: (TIERS.index(job.tier), job.number))
        self.waiting.remove(job)
        self.running.append(job)
        self.claimed.append(job)
        return job.number

    def claim_all(self):
        return list(iter(self.claim, None))

    def end(self, place=0):
        """Ends one of the running jobs, counted from the one that was claimed first."""
        job = self.running.pop(place)
        self.ended[job.kind].append(job)
        self.events.append(("end", self.claimed.index(job)))


# Each returns the order found and the right one. core/tests/it/jobs/fair_queue.rs has more.


def users_take_turns(queue):
    [free] = queue.submit(BOB, tier="free")
    hers, his = queue.submit(ADA, 3), queue.submit(BOB)
    return queue.claim_all(), [hers[0], his[0], hers[1], hers[2], free]


def visitors_are_served_in_the_order_of_their_arrival(queue):
    # They have no account: two runs of one visitor count as those of two.
    first, second, third = queue.submit(ADA, 2, tier="visitor"), queue.submit(BOB, tier="visitor"), queue.submit(ADA, tier="visitor")
    return queue.claim_all(), first + second + third


def the_served_turn_is_remembered_while_nothing_runs(queue):
    hers = queue.submit(ADA, 3)
    for _ in hers:
        queue.claim()
        queue.end()
    later, his = queue.submit(ADA, 2), queue.submit(BOB)
    return queue.claim_all(), [later[0], his[0], later[1]]


def a_served_turn_counts_until_eight_more_jobs_have_ended(queue):
    hers = queue.submit(ADA, 12)
    claimed = [queue.claim() for _ in hers]
    for _ in range(8):
        queue.end(-1)
    # Her twelfth job was the first to end, and the next end makes it the ninth last.
    his = queue.submit(BOB)
    queue.end(-1)
    later = queue.submit(ADA)
    return claimed + queue.claim_all(), hers + later + his


HAND_MADE = (
    users_take_turns,
    visitors_are_served_in_the_order_of_their_arrival,
    the_served_turn_is_remembered_while_nothing_runs,
    a_served_turn_counts_until_eight_more_jobs_have_ended,
)


def at_random(seed, steps=150):
    """Returns a queue that grows, then has many jobs at once, which end in another order than they began."""
    rng, queue = random.Random(seed), FairQueue()
    for step in range(steps):
        what = rng.random()
        if what < (0.6 if step < steps / 2 else 0.25):
            queue.submit(rng.randrange(4), tool=rng.choice([CUT, CUT, UPSCALE]), tier=rng.choice(TIERS))
        elif what < 0.75 or not queue.running:
            queue.claim(TIERS if rng.random() < 0.8 else TIERS[:1])
        else:
            queue.end(rng.randrange(len(queue.running)))
    queue.claim_all()
    return queue


class FairQueueTest(unittest.TestCase):
    def test_the_statements_of_core_give_the_order_of_the_model(self):
        queues = {f"at random {seed}": at_random(seed) for seed in range(8)}
        for make in HAND_MADE:
            queue = queues[make.__name__] = FairQueue()
            self.assertEqual(*make(queue))
        with contextlib.redirect_stdout(io.StringIO()), Sandbox("fair-queue") as sandbox:
            sandbox.start_postgres()
            sandbox.postgres.psql("create database queue")
            address = addresses.own_database_url(sandbox.settings).rpartition("/")[0]
            database = Database(sandbox.settings, f"{address}/queue")
            database.sql("".join(path.read_text() for path in sorted((REPO / "migrations").glob("*.sql"))))
            for name, queue in queues.items():
                with self.subTest(name):
                    self.assertEqual(replayed(database, queue.events), [(job.number, job.turn) for job in queue.claimed])


def replayed(database, events):
    """Does the same with the statements of core. Returns the number and turn of each claimed job, in the order of the claims."""
    script = [prepared("submit", "insert into jobs (id, owner_id"), prepared("claim", "for update of j skip locked")]
    script.append("delete from jobs; delete from images; delete from users;")
    for what, more in events:
        if what == "submit":
            script += submission(more)
        elif what == "claim":
            tools, tiers = zip(*((tool, tier) for tool in (CUT, UPSCALE) for tier in more))
            script.append(f"execute claim ('{uuid(0, 9)}', {array(tools)}, {array(tiers)}, false, '1 hour', 3, '{{}}', 64, false);")
        else:
            nth = f"select id from jobs where started_at is not null order by started_at offset {more} limit 1"
            script.append(
                "update jobs set state = 'done', lease_owner = null, lease_until = null, finished_at = clock_timestamp() "
                f"where state = 'running' and id = ({nth});"
            )
    database.sql("\n".join(script))
    claimed = database.rows("select id, turn from jobs where started_at is not null order by started_at")
    return [(int(row["id"][-12:]), row["turn"]) for row in claimed]


def submission(job):
    """A visitor's picture is the visitor's; a user exists from their first job on."""
    is_visitor, is_paid = job.tier == "visitor", job.tier == "paid"
    owner = "null" if is_visitor else f"'{uuid(job.owner, 1)}'"
    if not is_visitor:
        yield f"insert into users (id, issuer, subject) values ({owner}, 'here', '{job.owner}') on conflict do nothing;"
    picture, visitor = f"'{uuid(job.number, 2)}'", "'someone', now() + interval '1 day'" if is_visitor else "null, null"
    columns = "id, owner_id, visitor, expires_at, object_key, thumbnail_key, content_type, content_sha256, size_bytes, width, height"
    yield f"insert into images ({columns}) values ({picture}, {owner}, {visitor}, 'a', 'b', 'image/png', 'x', 9, 8, 8);"
    factor, cost = "2" if job.tool == UPSCALE else "null", 5 if is_paid else 0
    values = f"'{uuid(job.number, 3)}', {owner}, {picture}, '{job.tool}', {factor}, '{job.tier}', {cost}"
    yield f"execute submit ({values}, null, null, null, null, null, null, null, true, false);"


def uuid(number, kind):
    return f"0192a000-0000-7000-800{kind}-{number:012}"


def array(texts):
    return "'{" + ",".join(texts) + "}'"


def prepared(name, text):
    """Prepares the statement of core that contains a text."""
    [found] = [one for path in (REPO / ".sqlx").glob("*.json") if text in (one := json.loads(path.read_text()))["query"]]
    types = (kind.lower().replace("array", "[]") for kind in found["describe"]["parameters"]["Left"])
    # sqlx reads types from the names of columns: "id: JobId", "queued_total!".
    query = re.sub(r'"(\w+)(: \w+|!)"', r'"\1"', found["query"])
    return f"prepare {name} ({', '.join(types)}) as {query};"
