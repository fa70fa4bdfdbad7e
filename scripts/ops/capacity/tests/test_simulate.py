import statistics
import unittest

from ops.capacity.profile import Machine, Work
from ops.capacity.simulate import Arrival, Simulation, percentile, poisson

MODEL_ONLY = Work(claim=0, fetch=0, before=0, after=0, pixel_threads=1, model=1.0, store=0)


def machine(work=MODEL_ONLY, **facts):
    return Machine(**{"name": "test", "cores": 2, "model_threads": 2, "work": {"cut": work}, **facts})


def run(arrivals, on=None, **options):
    return Simulation(on or machine(), **options).run(arrivals)


def simultaneous(count, **more):
    return [Arrival(0.0, "cut", **more) for _ in range(count)]


class StageTest(unittest.TestCase):
    def test_a_single_job_takes_the_sum_of_its_stages(self):
        work = Work(claim=0.5, fetch=0.1, before=0.2, after=0.3, pixel_threads=1, model=1.0, store=0.4)
        [job] = run(simultaneous(1), machine(work)).jobs
        self.assertAlmostEqual(job.wait, 0.5)
        self.assertAlmostEqual(job.ended - job.started, work.alone)

    def test_a_model_runs_one_picture_at_a_time(self):
        report = run(simultaneous(3), slots=3)
        self.assertEqual([round(job.ended, 6) for job in report.jobs], [1, 2, 3])
        self.assertEqual([job.wait for job in report.jobs], [0, 0, 0])
        self.assertAlmostEqual(report.busy_models["0:cut"], 1.0)

    def test_threads_share_the_cores(self):
        # Two model threads and one pixel thread on two cores: each gets two thirds.
        simulation = Simulation(machine())
        cpu, ends = simulation.workers[0].cpu, []
        cpu.run(1.0, 2, 1.0, lambda: ends.append(("model", simulation.now)))
        cpu.run(0.5, 1, 1.0, lambda: ends.append(("pixels", simulation.now)))
        simulation.run([])
        self.assertEqual([(name, round(at, 6)) for name, at in ends], [("pixels", 0.75), ("model", 1.25)])
        self.assertAlmostEqual(cpu.spent, 2.5)

    def test_threads_that_wait_for_each_other_lose_more(self):
        simulation = Simulation(machine())
        cpu, ends = simulation.workers[0].cpu, []
        cpu.run(1.0, 2, 2.0, lambda: ends.append(simulation.now))
        cpu.run(9.0, 2, 1.0, lambda: None)
        simulation.run([])
        # Half of the CPU time does a third of the work.
        self.assertAlmostEqual(ends[0], 3.0)

    def test_a_model_on_a_gpu_uses_no_core(self):
        work = Work(claim=0, fetch=0, before=1.0, after=0, pixel_threads=1, model=0.1, store=0)
        report = run(simultaneous(20), machine(work, model_threads=0), slots=20)
        # 20 seconds of pixels on two cores, then the models of the last two pictures.
        self.assertAlmostEqual(report.jobs[-1].ended, 10.2)


class ClaimTest(unittest.TestCase):
    def test_paid_jobs_come_first_and_have_a_reserved_slot(self):
        visitors = [Arrival(0.0, "cut", "visitor", owner) for owner in range(10)]
        report = run(visitors + [Arrival(0.5, "cut", "paid", 99)], slots=2)
        paid = next(job for job in report.jobs if job.arrival.tier == "paid")
        self.assertEqual(paid.wait, 0)
        self.assertAlmostEqual(paid.ended, 2.0)

    def test_a_newcomer_waits_for_one_job_of_another_user(self):
        # The second turn is being served; the newcomer's is the third, like that of the next one in the list, which is older.
        many = [Arrival(0.0, "cut", "paid", 1) for _ in range(5)]
        report = run(many + [Arrival(0.1, "cut", "paid", 2)], slots=2)
        newcomer = next(job for job in report.jobs if job.arrival.owner == 2)
        self.assertEqual([job.turn for job in report.jobs], [1, 2, 3, 4, 5, 3])
        self.assertAlmostEqual(newcomer.started, 2.0)


class QueueTest(unittest.TestCase):
    """Compares with results of queueing theory."""

    def test_waits_match_the_pollaczek_khinchine_formula(self):
        # M/D/1: mean wait = load × service / (2 × (1 − load)).
        for load in (0.5, 0.8):
            expected = load * 1.0 / (2 * (1 - load))
            waits = run(poisson({("cut", "paid"): load}, 60_000, seed=1, owners=10_000), slots=1).waits()
            self.assertAlmostEqual(statistics.fmean(waits), expected, delta=0.1 * expected)

    def test_two_workers_have_twice_the_throughput(self):
        arrivals = poisson({("cut", "paid"): 1.6}, 10_000, seed=2)
        report = run(arrivals, workers=2, slots=1)
        self.assertAlmostEqual(report.throughput, len(arrivals) / 10_000, delta=0.02)
        # At 80 % load, the mean wait of M/D/2 is about 0.9 service times; one worker would be overloaded.
        self.assertLess(statistics.fmean(report.waits()), 1.2)

    def test_random_arrivals_have_the_given_rates(self):
        arrivals = poisson({("cut", "paid"): 3.0, ("cut", "free"): 1.0}, 5000, seed=3)
        paid = sum(arrival.tier == "paid" for arrival in arrivals)
        self.assertAlmostEqual(paid / 5000, 3.0, delta=0.1)
        self.assertAlmostEqual((len(arrivals) - paid) / 5000, 1.0, delta=0.06)
        self.assertEqual(arrivals, sorted(arrivals, key=lambda arrival: arrival.at))

    def test_percentiles_interpolate_like_postgres(self):
        self.assertEqual(percentile([0, 10], 0.5), 5)
        self.assertEqual(percentile([1, 2, 3, 4, 5], 0.95), 4.8)
        self.assertEqual(percentile([], 0.95), 0)
