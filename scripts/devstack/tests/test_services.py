import tempfile
import unittest
from pathlib import Path

from common import addresses, config
from common.console import Problem
from devstack import services


class PlanTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, config, "REPO", config.REPO)
        config.REPO = Path(folder.name)
        # With configured addresses, planning downloads nothing.
        elsewhere = ("DATABASE_URL", "REDIS_URL", "S3_ENDPOINT", "OIDC_ISSUER")
        self.given = {name: "elsewhere" for name in elsewhere} | {"RETOUCH_HOME": str(Path(folder.name) / "home")}

    def settings(self, **more):
        return config.load(self.given | more)

    def planned(self, settings):
        return {service.name: service for service in services.plan(settings)}

    def test_without_a_key_the_api_uses_the_stripe_stand_in(self):
        settings = self.settings(RETOUCH_STRIPE_PORT="9301", RETOUCH_PORT="9100")
        service = self.planned(settings)["stripe"]
        self.assertEqual(service.port, (9301, "RETOUCH_STRIPE_PORT"))
        command = [str(part) for part in service.command()]
        self.assertIn("http://127.0.0.1:9100/api/payments/webhook", command)
        shared = addresses.shared_environment(settings)
        self.assertEqual(shared["STRIPE_API_URL"], "http://127.0.0.1:9301/")
        self.assertRegex(shared["STRIPE_SECRET_KEY"], "^sk_test_[0-9a-f]{64}$")
        self.assertRegex(shared["STRIPE_WEBHOOK_SECRET"], "^whsec_[0-9a-f]{64}$")
        self.assertFalse([part for part in command if "sk_test_" in part or "whsec_" in part])

    def test_with_a_key_there_is_no_stripe_stand_in(self):
        settings = self.settings(STRIPE_SECRET_KEY="sk_live_1", STRIPE_WEBHOOK_SECRET="whsec_1")
        self.assertNotIn("stripe", self.planned(settings))
        shared = addresses.shared_environment(settings)
        self.assertEqual(shared["STRIPE_SECRET_KEY"], "sk_live_1")
        self.assertEqual(shared["STRIPE_WEBHOOK_SECRET"], "whsec_1")
        self.assertNotIn("STRIPE_API_URL", shared)

    def test_the_worker_has_time_to_load_its_models(self):
        worker = services.worker_service(self.settings(), {}, runtime="")
        self.assertEqual(worker.start_seconds, 900)

    def test_the_worker_has_time_to_drain(self):
        default = services.worker_service(self.settings(), {}, runtime="")
        self.assertEqual(default.stop_seconds, 25 + 15)
        patient = services.worker_service(self.settings(RETOUCH_DRAIN_SECS="120"), {}, runtime="")
        self.assertEqual(patient.stop_seconds, 120 + 15)
        with self.assertRaisesRegex(Problem, "RETOUCH_DRAIN_SECS must be .*, not '2m'"):
            services.worker_service(self.settings(RETOUCH_DRAIN_SECS="2m"), {}, runtime="")

    def test_the_drain_is_that_of_the_worker_by_default(self):
        source = (Path(services.__file__).parents[2] / "worker" / "src" / "config.rs").read_text()
        self.assertIn(f'env = "RETOUCH_DRAIN_SECS", default_value_t = {services.DRAIN_SECONDS},', source)

    def test_with_keys_but_no_endpoint_images_go_to_aws(self):
        settings = self.settings(S3_ENDPOINT="", S3_ACCESS_KEY_ID="AKIA", S3_REGION="eu-central-1", S3_BUCKET="theirs")
        self.assertNotIn("s3", self.planned(settings))
        shared = addresses.shared_environment(settings)
        self.assertNotIn("S3_ENDPOINT", shared)
        self.assertEqual((shared["S3_ACCESS_KEY_ID"], shared["S3_REGION"], shared["S3_BUCKET"]), ("AKIA", "eu-central-1", "theirs"))
        self.assertIn("s3", self.planned(self.settings(S3_ENDPOINT="")))
