import tempfile
import unittest
from pathlib import Path

from common.console import Problem
from ops.capacity import plan, profile
from ops.capacity.main import loads

PROFILES = """
[small]
cores = 2
model_threads = 0
[small.work.cut]
claim = 0.0
fetch = 0.0
before = 0.1
after = 0.1
pixel_threads = 1
model = 0.5
store = 0.0
[small.work."cut:free"]
claim = 0.0
fetch = 0.0
before = 0.0
after = 0.0
pixel_threads = 1
model = 0.1
store = 0.0
"""


class PlanTest(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "profiles.toml"
            path.write_text(PROFILES)
            self.machine = profile.load("small", path)
            with self.assertRaisesRegex(KeyError, "has no .large.; it has small"):
                profile.load("large", path)

    def test_one_worker_carries_what_its_slowest_part_does(self):
        self.assertAlmostEqual(plan.capacity(self.machine, "cut", 3), 2.0, delta=0.05)
        self.assertAlmostEqual(plan.capacity(self.machine, "cut:free", 3), 10.0, delta=0.3)

    def test_a_tier_may_have_a_model_of_its_own(self):
        self.assertEqual(self.machine.kind("cut", "free"), "cut:free")
        self.assertEqual(self.machine.kind("cut", "visitor"), "cut")

    def test_a_plan_finds_the_fewest_workers_that_keep_up(self):
        # 400,000 a day at four times the mean: 18.5 a second, and a worker does two.
        said = list(plan.needed(self.machine, {("cut", "paid"): 400_000}, slots=3, peak=4, most_wait=5))
        self.assertIn("18.52 jobs a second", said[0])
        workers = int(said[-1].split()[0])
        self.assertTrue(10 <= workers <= 11, said)
        self.assertIn("the queue grows", said[1])

    def test_a_quicker_model_needs_fewer(self):
        quick = profile.with_model(self.machine, 0.05)
        said = list(plan.needed(quick, {("cut", "paid"): 400_000}, slots=3, peak=4, most_wait=5))
        self.assertLess(int(said[-1].split()[0]), 6)

    def test_a_load_that_was_not_measured_is_refused(self):
        with self.assertRaisesRegex(Problem, "Nothing was measured of paint on small"):
            list(plan.needed(self.machine, {("paint", "paid"): 1}, 3, 4, 5))
        with self.assertRaisesRegex(Problem, "'rich' is no tier"):
            list(plan.one_run(self.machine, {("cut", "rich"): 1}, 1, 3, 10))

    def test_loads_are_read_from_words(self):
        self.assertEqual(loads(["cut=2", "cut:free=0.5"]), {("cut", "paid"): 2.0, ("cut", "free"): 0.5})
        with self.assertRaises(Problem):
            loads(["cut"])

    def test_with_measured_stages_it_comes_to_the_measured_throughput(self):
        # `retouch-worker bench` on the same machine, docs/performance.md: what it reached with several in flight.
        machine = profile.load("cpu-2")
        for tool, slots, reached in (("remove-background", 4, 1.37), ("upscale", 2, 0.64)):
            self.assertAlmostEqual(plan.capacity(machine, tool, slots), reached, delta=0.15 * reached)
