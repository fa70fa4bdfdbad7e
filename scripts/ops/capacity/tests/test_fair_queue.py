import contextlib
import io
import json
import random
import re
import unittest
from functools import partial

from common import addresses
from common.config import REPO
from devstack.sandbox import Sandbox
from ops.capacity.fair_queue import TIERS, FairQueue
from ops.capacity.simulate import Arrival, Job
from ops.database import Database

CUT, UPSCALE = "remove-background", "upscale"
ADA, BOB = 1, 2


class History:
    """What happened to a queue, in order. Jobs are numbered as they are submitted."""

    def __init__(self):
        self.queue, self.jobs, self.order, self.running, self.events = FairQueue(), [], [], [], []

    def submit(self, owner, count=1, tool=CUT, tier="paid"):
        """Returns the numbers of the new jobs."""
        for _ in range(count):
            self.jobs.append(Job(Arrival(0.0, tool, tier, owner), None, 1.0))
            self.queue.submit(self.jobs[-1])
            self.events.append(("submit", self.jobs[-1].arrival))
        return list(range(len(self.jobs) - count, len(self.jobs)))

    def claim(self, tiers=TIERS):
        """Returns the number of the job; None if there is none."""
        self.events.append(("claim", tiers))
        job = self.queue.claim(tiers)
        if job is None:
            return None
        number = next(number for number, one in enumerate(self.jobs) if one is job)
        self.running.append(len(self.order))
        self.order.append(number)
        return number

    def claim_all(self):
        return list(iter(self.claim, None))

    def end(self, place=0):
        """Ends one of the running jobs, counted from the one that was claimed first."""
        claimed = self.running.pop(place)
        self.events.append(("end", claimed))
        self.queue.end(self.jobs[self.order[claimed]])


# Each returns the order found and the right one. The first four are the tests of core/tests/it/jobs/fair_queue.rs.


def users_take_turns(history):
    [free] = history.submit(BOB, tier="free")
    hers, his = history.submit(ADA, 3), history.submit(BOB)
    return history.claim_all(), [hers[0], his[0], hers[1], hers[2], free]


def a_newcomer_does_not_wait_for_a_whole_list(history):
    hers = history.submit(ADA, 12)
    claimed = [history.claim() for _ in range(5)]
    his = history.submit(BOB, 3)
    return claimed + history.claim_all()[:7], hers[:6] + [his[0], hers[6], his[1], hers[7], his[2], hers[8]]


def newcomers_do_not_starve_a_list(history):
    hers, rounds = history.submit(ADA, 10), []
    for number in range(20):
        history.submit(100 + number)
        if history.claim() in hers:
            rounds.append(number)
        history.end()
    return rounds, [0, 2, 5, 9, 14]


def the_longest_waiting_tool_goes_first(history):
    hers, his, third = history.submit(ADA, 2), history.submit(BOB, tool=UPSCALE), history.submit(ADA)
    return history.claim_all(), hers + his + third


def visitors_are_served_in_the_order_of_their_arrival(history):
    # They have no account: two runs of one visitor count as those of two.
    first, second, third = history.submit(ADA, 2, tier="visitor"), history.submit(BOB, tier="visitor"), history.submit(ADA, tier="visitor")
    return history.claim_all(), first + second + third


def the_served_turn_is_remembered_while_nothing_runs(history):
    hers = history.submit(ADA, 3)
    for _ in hers:
        history.claim()
        history.end()
    later, his = history.submit(ADA, 2), history.submit(BOB)
    return history.claim_all(), [later[0], his[0], later[1]]


def a_served_turn_counts_until_eight_more_jobs_have_ended(history):
    hers = history.submit(ADA, 12)
    claimed = [history.claim() for _ in hers]
    for _ in range(8):
        history.end(-1)
    # Her twelfth job was the first to end, and the next end makes it the ninth last.
    his = history.submit(BOB)
    history.end(-1)
    later = history.submit(ADA)
    return claimed + history.claim_all(), hers + later + his


HAND_MADE = (
    users_take_turns,
    a_newcomer_does_not_wait_for_a_whole_list,
    newcomers_do_not_starve_a_list,
    the_longest_waiting_tool_goes_first,
    visitors_are_served_in_the_order_of_their_arrival,
    the_served_turn_is_remembered_while_nothing_runs,
    a_served_turn_counts_until_eight_more_jobs_have_ended,
)


def at_random(history, seed, steps=150):
    """A queue that grows, then many jobs at once, which end in another order than they began."""
    rng = random.Random(seed)
    for step in range(steps):
        what = rng.random()
        if what < (0.6 if step < steps / 2 else 0.25):
            history.submit(rng.randrange(4), tool=rng.choice([CUT, CUT, UPSCALE]), tier=rng.choice(TIERS))
        elif what < 0.75 or not history.running:
            history.claim(TIERS if rng.random() < 0.8 else TIERS[:1])
        else:
            history.end(rng.randrange(len(history.running)))
    history.claim_all()


class FairQueueTest(unittest.TestCase):
    def test_hand_made_arrivals_are_served_in_the_right_order(self):
        for history in HAND_MADE:
            with self.subTest(history.__name__):
                self.assertEqual(*history(History()))

    def test_the_statements_of_core_give_the_same_order(self):
        with contextlib.redirect_stdout(io.StringIO()), Sandbox("fair-queue") as sandbox:
            sandbox.start_postgres()
            sandbox.postgres.psql("create database queue")
            address = addresses.own_database_url(sandbox.postgres.settings).rpartition("/")[0]
            database = Database(sandbox.settings, f"{address}/queue")
            database.sql("".join(path.read_text() for path in sorted((REPO / "migrations").glob("*.sql"))))
            statements = prepared("submit", "insert into jobs (id, owner_id"), prepared("claim", "for update of j skip locked")
            histories = {make.__name__: make for make in HAND_MADE} | {f"at random {seed}": partial(at_random, seed=seed) for seed in range(8)}
            for name, make in histories.items():
                history = History()
                make(history)
                with self.subTest(name):
                    self.assertEqual(replayed(database, statements, history), [(number, history.jobs[number].turn) for number in history.order])


def replayed(database, statements, history):
    """Does the same with the statements of core. Returns the number and turn of each claimed job, in the order of the claims."""
    script, submitted = [*statements, "delete from jobs; delete from images; delete from users;"], 0
    for what, more in history.events:
        if what == "submit":
            script += submission(submitted, more)
            submitted += 1
        elif what == "claim":
            classes = [(tool, tier) for tool in (CUT, UPSCALE) for tier in more]
            tools, tiers = (array(column) for column in zip(*classes))
            script.append(f"execute claim ('{uuid(0, 9)}', {tools}, {tiers}, false, '1 hour', 3, '{{}}', 64, false);")
        else:
            nth = f"select id from jobs where started_at is not null order by started_at offset {more} limit 1"
            script.append(
                "update jobs set state = 'done', lease_owner = null, lease_until = null, finished_at = clock_timestamp() "
                f"where state = 'running' and id = ({nth});"
            )
    database.sql("\n".join(script))
    claimed = database.rows("select id, turn from jobs where started_at is not null order by started_at")
    return [(int(row["id"][-12:]), row["turn"]) for row in claimed]


def submission(number, arrival):
    """A visitor's picture is the visitor's; a user exists from their first job on."""
    is_visitor, is_paid = arrival.tier == "visitor", arrival.tier == "paid"
    owner = "null" if is_visitor else f"'{uuid(arrival.owner, 1)}'"
    if not is_visitor:
        yield f"insert into users (id, issuer, subject) values ({owner}, 'here', '{arrival.owner}') on conflict do nothing;"
    picture, visitor = f"'{uuid(number, 2)}'", "'someone', now() + interval '1 day'" if is_visitor else "null, null"
    columns = "id, owner_id, visitor, expires_at, object_key, thumbnail_key, content_type, content_sha256, size_bytes, width, height"
    yield f"insert into images ({columns}) values ({picture}, {owner}, {visitor}, 'a', 'b', 'image/png', 'x', 9, 8, 8);"
    factor, cost = "2" if arrival.tool == UPSCALE else "null", 5 if is_paid else 0
    values = f"'{uuid(number, 3)}', {owner}, {picture}, '{arrival.tool}', {factor}, '{arrival.tier}', {cost}"
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
