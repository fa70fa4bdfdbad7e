import statistics
import unittest

from ops.capacity.profile import Machine, Work
from ops.capacity.simulate import Arrival, Simulation, percentile, poisson

MODEL_ONLY = Work(claim=0, fetch=0, before=0, after=0, pixel_threads=1, model=1.0, store=0)


def machine(work=MODEL_ONLY, **facts):
    return Machine(**{"name": "test", "cores": 2, "model_threads": 2, "work": {"cut": work}, **facts})


def run(arrivals, of=None, **options):
    return Simulation(of or machine(), **options).run(arrivals)


def at_once(count, **more):
    return [Arrival(0.0, "cut", **more) for _ in range(count)]


class StageTest(unittest.TestCase):
    def test_a_job_alone_takes_the_sum_of_its_stages(self):
        work = Work(claim=0.5, fetch=0.1, before=0.2, after=0.3, pixel_threads=1, model=1.0, store=0.4)
        [job] = run(at_once(1), machine(work)).jobs
        self.assertAlmostEqual(job.wait, 0.5)
        self.assertAlmostEqual(job.ended - job.started, work.alone)

    def test_a_model_runs_one_picture_after_the_other(self):
        report = run(at_once(3), slots=3)
        self.assertEqual([round(job.ended, 6) for job in report.jobs], [1, 2, 3])
        self.assertEqual([job.wait for job in report.jobs], [0, 0, 0])
        self.assertAlmostEqual(report.busy_models["0:cut"], 1.0)

    def test_threads_share_the_cores(self):
        # Two threads of the model and one for pixels on two cores: each gets two thirds.
        simulation = Simulation(machine())
        processors, ends = simulation.workers[0].processors, []
        processors.run(1.0, 2, 1.0, lambda: ends.append(("model", simulation.now)))
        processors.run(0.5, 1, 1.0, lambda: ends.append(("pixels", simulation.now)))
        simulation.run([])
        self.assertEqual([(name, round(at, 6)) for name, at in ends], [("pixels", 0.75), ("model", 1.25)])
        self.assertAlmostEqual(processors.spent, 2.5)

    def test_threads_that_wait_for_each_other_lose_more(self):
        simulation = Simulation(machine())
        processors, ends = simulation.workers[0].processors, []
        processors.run(1.0, 2, 2.0, lambda: ends.append(simulation.now))
        processors.run(9.0, 2, 1.0, lambda: None)
        simulation.run([])
        # Half of the time is worth a third of the work.
        self.assertAlmostEqual(ends[0], 3.0)

    def test_on_a_gpu_the_model_leaves_the_cores_to_pixels(self):
        work = Work(claim=0, fetch=0, before=1.0, after=0, pixel_threads=1, model=0.1, store=0)
        report = run(at_once(20), machine(work, model_threads=0), slots=20)
        # Two cores, a second of pixels each, and the last two pictures' models.
        self.assertAlmostEqual(report.jobs[-1].ended, 10.2)


class ClaimTest(unittest.TestCase):
    def test_who_pays_comes_first_and_a_slot_is_kept_for_them(self):
        visitors = [Arrival(0.0, "cut", "visitor", owner) for owner in range(10)]
        report = run(visitors + [Arrival(0.5, "cut", "paid", 99)], slots=2)
        paid = next(job for job in report.jobs if job.arrival.tier == "paid")
        self.assertEqual(paid.wait, 0)
        self.assertAlmostEqual(paid.ended, 2.0)

    def test_whoever_has_least_running_is_next(self):
        many = [Arrival(0.0, "cut", "paid", 1) for _ in range(5)]
        report = run(many + [Arrival(0.1, "cut", "paid", 2)], slots=2)
        other = next(job for job in report.jobs if job.arrival.owner == 2)
        self.assertAlmostEqual(other.started, 1.0)


class QueueTest(unittest.TestCase):
    """Where mathematics knows the answer."""

    def test_one_place_and_chance_arrivals_wait_as_pollaczek_and_khinchin_say(self):
        # M/D/1: mean wait = load × service / (2 × (1 − load)).
        for load in (0.5, 0.8):
            expected = load * 1.0 / (2 * (1 - load))
            waits = run(poisson({("cut", "paid"): load}, 60_000, seed=1, owners=10_000), slots=1).waits()
            self.assertAlmostEqual(statistics.fmean(waits), expected, delta=0.1 * expected)

    def test_two_workers_carry_twice_as_much(self):
        arrivals = poisson({("cut", "paid"): 1.6}, 10_000, seed=2)
        report = run(arrivals, workers=2, slots=1)
        self.assertAlmostEqual(report.throughput, len(arrivals) / 10_000, delta=0.02)
        # Erlang's M/D/2 at 80 % waits about 0.9 services on average; one worker would drown.
        self.assertLess(statistics.fmean(report.waits()), 1.2)

    def test_chance_arrivals_are_as_many_as_asked_for(self):
        arrivals = poisson({("cut", "paid"): 3.0, ("cut", "free"): 1.0}, 5000, seed=3)
        paid = sum(arrival.tier == "paid" for arrival in arrivals)
        self.assertAlmostEqual(paid / 5000, 3.0, delta=0.1)
        self.assertAlmostEqual((len(arrivals) - paid) / 5000, 1.0, delta=0.06)
        self.assertEqual(arrivals, sorted(arrivals, key=lambda arrival: arrival.at))

    def test_percentiles_lie_between_values_as_in_postgres(self):
        self.assertEqual(percentile([0, 10], 0.5), 5)
        self.assertEqual(percentile([1, 2, 3, 4, 5], 0.95), 4.8)
        self.assertEqual(percentile([], 0.95), 0)
