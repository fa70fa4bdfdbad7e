import tempfile
import unittest
from pathlib import Path
from unittest import mock

from common import config
from common.console import Problem
from devstack import up


class SettingsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo = config.REPO
        config.REPO = Path(folder.name)
        self.addCleanup(setattr, config, "REPO", self.repo)

    def dotenv(self, text):
        (config.REPO / ".env").write_text(text)

    def test_the_environment_overrides_the_file_and_the_file_overrides_the_default(self):
        self.dotenv("RETOUCH_PORT=9001\nRETOUCH_S3_PORT=9002\n")
        settings = config.load({"RETOUCH_PORT": "9100"})
        self.assertEqual(settings.listen, "127.0.0.1:9100")
        self.assertEqual(settings.s3_port, 9002)
        self.assertEqual(settings.oidc_port, 19400)

    def test_an_empty_variable_overrides_the_file(self):
        self.dotenv("DATABASE_URL=postgres://elsewhere/db\n")
        self.assertTrue(config.load({}).given("DATABASE_URL"))
        self.assertFalse(config.load({"DATABASE_URL": ""}).given("DATABASE_URL"))

    def test_a_secret_can_be_in_a_file_unless_its_variable_is_set(self):
        file = config.REPO / "url"
        file.write_text("postgres://filed/db\n")
        named = {"DATABASE_URL_FILE": str(file)}
        self.assertEqual(config.load(named).get("DATABASE_URL"), "postgres://filed/db")
        self.assertEqual(config.load(named | {"DATABASE_URL": ""}).get("DATABASE_URL"), "postgres://filed/db")
        self.assertEqual(config.load(named | {"DATABASE_URL": "postgres://set/db"}).get("DATABASE_URL"), "postgres://set/db")

    def test_a_missing_file_of_a_secret_is_reported(self):
        with self.assertRaisesRegex(Problem, "Cannot read /nowhere, which S3_SECRET_ACCESS_KEY_FILE names"):
            config.load({"S3_SECRET_ACCESS_KEY_FILE": "/nowhere"})

    def test_the_default_public_url_has_the_port_of_the_api(self):
        self.assertEqual(config.load({"RETOUCH_PORT": "9100"}).public_url, "http://127.0.0.1:9100")

    def test_quotes_comments_and_export_are_accepted(self):
        self.dotenv("# a comment\n\nexport OIDC_ISSUER='https://id.example'\nREDIS_URL=\"redis://a\"\n")
        settings = config.load({})
        self.assertEqual(settings.get("OIDC_ISSUER"), "https://id.example")
        self.assertEqual(settings.get("REDIS_URL"), "redis://a")

    def test_a_comment_may_follow_a_value(self):
        self.dotenv("S3_ENDPOINT=       # AWS itself\nS3_BUCKET=theirs # of the shop\nREDIS_PREFIX=a#b\nOIDC_SCOPE='openid # email'\n")
        settings = config.load({})
        self.assertFalse(settings.given("S3_ENDPOINT"))
        self.assertEqual([settings.get(name) for name in ("S3_BUCKET", "REDIS_PREFIX", "OIDC_SCOPE")], ["theirs", "a#b", "openid # email"])

    def test_an_invalid_line_is_reported_with_its_number(self):
        self.dotenv("PORT 8080\n")
        with self.assertRaisesRegex(Problem, "Line 1 of .env"):
            config.load({})

    def test_scripts_up_refuses_the_env_file_of_docker_compose(self):
        with mock.patch.object(up, "REPO", config.REPO):
            up.check_dotenv()
            self.dotenv("RETOUCH_PUBLIC_URL=http://127.0.0.1:8080\n")
            up.check_dotenv()
            self.dotenv((self.repo / "deploy/compose/env.example").read_text())
            with self.assertRaisesRegex(Problem, "is for Docker Compose"):
                up.check_dotenv()

    def test_an_invalid_port_is_reported(self):
        with self.assertRaisesRegex(Problem, "RETOUCH_PORT must be a port number"):
            config.load({"RETOUCH_PORT": "http"})

    def test_a_secret_is_generated_once_and_only_its_owner_can_read_it(self):
        first = config.load({"RETOUCH_HOME": "home"}).secret("a-key")
        self.assertEqual(config.load({"RETOUCH_HOME": "home"}).secret("a-key"), first)
        self.assertEqual((config.REPO / "home/secrets/a-key").stat().st_mode & 0o777, 0o600)
