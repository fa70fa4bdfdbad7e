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

    def test_the_slowest_stage_limits_a_worker(self):
        self.assertAlmostEqual(plan.capacity(self.machine, "cut", 3), 2.0, delta=0.05)
        self.assertAlmostEqual(plan.capacity(self.machine, "cut:free", 3), 10.0, delta=0.3)

    def test_a_tier_may_have_its_own_model(self):
        self.assertEqual(self.machine.kind("cut", "free"), "cut:free")
        self.assertEqual(self.machine.kind("cut", "visitor"), "cut")

    def test_a_plan_finds_the_fewest_workers_that_keep_up(self):
        # 400,000 per day at four times the mean are 18.5 per second; a worker does two.
        lines = list(plan.workers_needed(self.machine, {("cut", "paid"): 400_000}, slots=3, peak=4, max_wait=5))
        self.assertIn("18.52 jobs per second", lines[0])
        workers = int(lines[-1].split()[0])
        self.assertTrue(10 <= workers <= 11, lines)
        self.assertIn("the queue grows", lines[1])

    def test_a_faster_model_needs_fewer_workers(self):
        fast = profile.with_model(self.machine, 0.05)
        lines = list(plan.workers_needed(fast, {("cut", "paid"): 400_000}, slots=3, peak=4, max_wait=5))
        self.assertLess(int(lines[-1].split()[0]), 6)

    def test_a_load_without_measurements_is_rejected(self):
        with self.assertRaisesRegex(Problem, "small has no measurements of paint"):
            list(plan.workers_needed(self.machine, {("paint", "paid"): 1}, 3, 4, 5))
        with self.assertRaisesRegex(Problem, "'rich' is not a tier"):
            list(plan.simulated_load(self.machine, {("cut", "rich"): 1}, 1, 3, 10))

    def test_loads_are_parsed(self):
        self.assertEqual(loads(["cut=2", "cut:free=0.5"]), {("cut", "paid"): 2.0, ("cut", "free"): 0.5})
        with self.assertRaises(Problem):
            loads(["cut"])

    def test_measured_stages_give_the_measured_throughput(self):
        # Throughput of `retouch-worker bench` with several jobs in flight, from docs/performance.md.
        machine = profile.load("cpu-2")
        for tool, slots, measured in (("remove-background", 4, 1.37), ("upscale", 2, 0.64)):
            self.assertAlmostEqual(plan.capacity(machine, tool, slots), measured, delta=0.15 * measured)
