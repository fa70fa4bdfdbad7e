import json
import os
import re
import subprocess
import tempfile
import unittest
from ipaddress import ip_address, ip_network
from pathlib import Path

from checks.containers import checks, proven
from checks.containers.checks import CENTRAL, CPU, FILE, GPUS, config
from checks.containers.realm import wrong_in_realm
from checks.release_notes import version_of
from common.config import REPO
from common.console import Problem

# Services that run our programs.
OURS = {"api", "migrate", "worker"}


# Sources with the settings of `serve`.
SETTINGS = (
    *("core/src/config.rs", "core/src/telemetry.rs", "credentials/src/policy.rs", "heif/src/heif.rs"),
    *("api/src/config.rs", "worker/src/config.rs", "worker/src/commands.rs"),
)


def settings_in(source):
    """Yields the variables of a clap struct in Rust: `env = "NAME"`, or `env` for the name of the field."""
    for field in re.finditer(r"#\[arg\((.*?)\)\]\s*pub (\w+):", source, re.S):
        if named := re.search(r'\benv = "(\w+)"', field[1]):
            yield named[1]
        elif re.search(r"\benv\b", field[1]):
            yield field[2].upper()


def gpus_of(service):
    devices = service["deploy"]["resources"].get("reservations", {}).get("devices", [])
    return [device["device_ids"] for device in devices]


class WholeHostTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = config([FILE], ["central", "worker"])
        cls.services = cls.stack["services"]

    def test_all_services_are_defined(self):
        parts = {"web", "postgres", "redis", "s3", "keycloak", "folders"}
        self.assertEqual(set(self.services), OURS | parts)

    def test_a_host_without_a_gpu_can_leave_out_the_worker(self):
        self.assertEqual(set(config([FILE], ["central"])["services"]), set(self.services) - {"worker"})

    def test_a_missing_folder_of_backups_is_not_created_readable_by_everyone(self):
        [backups, _] = config([FILE], ["tools"])["services"]["backup"]["volumes"]
        self.assertEqual((backups["target"], backups["bind"].get("create_host_path", False)), ("/backups", False))

    def test_only_the_web_server_publishes_ports_and_only_to_this_host(self):
        publishing = {name: service["ports"] for name, service in self.services.items() if service.get("ports")}
        self.assertEqual(set(publishing), {"web"})
        self.assertEqual({port["host_ip"] for port in publishing["web"]}, {"127.0.0.1"})
        self.assertEqual([port["published"] for port in publishing["web"]], ["80", "443"])

    def test_data_services_have_no_internet_access(self):
        self.assertTrue(self.stack["networks"]["inside"]["internal"])
        for name in ("postgres", "redis", "s3"):
            self.assertEqual(set(self.services[name]["networks"]), {"inside"}, name)

    def test_containers_are_hardened(self):
        for name, service in self.services.items():
            with self.subTest(name):
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertEqual(service["security_opt"], ["no-new-privileges:true"])
                self.assertEqual(service.get("read_only", False), name != "keycloak")
                limits = service["deploy"]["resources"]["limits"]
                self.assertGreater(int(limits["memory"]), 0)
                self.assertEqual(service["logging"]["options"], {"max-size": "20m", "max-file": "5"})
        capabilities = {name: service["cap_add"] for name, service in self.services.items() if service.get("cap_add")}
        self.assertEqual(capabilities, {"web": ["NET_BIND_SERVICE"], "folders": ["CHOWN"]})

    def test_long_running_services_restart_and_have_a_health_check(self):
        for name, service in self.services.items():
            with self.subTest(name):
                once = name in ("migrate", "folders")
                self.assertEqual(service["restart"] == "unless-stopped", not once)
                self.assertEqual(bool(service["healthcheck"].get("disable")), once)
        for name, program in (("api", "retouch-api"), ("worker", "retouch-worker")):
            check = self.services[name]["healthcheck"]["test"]
            self.assertEqual(check, ["CMD", f"/usr/local/bin/{program}", "healthcheck"])

    def test_secrets_are_files_not_environment_variables(self):
        for name, service in self.services.items():
            for variable, text in (service.get("environment") or {}).items():
                if any(word in variable for word in ("PASSWORD", "SECRET", "ACCESS_KEY")):
                    self.assertTrue(not text or text.startswith("/run/secrets/"), f"{name}: {variable}={text}")
        self.assertTrue(all(Path(one["file"]).parent.name == "secrets" for one in self.stack["secrets"].values()))

    def test_our_services_have_exactly_the_secrets_that_they_read(self):
        for name, service in self.services.items():
            read = {text.rpartition("/")[2] for variable, text in (service.get("environment") or {}).items()
                    if text and variable.endswith("_FILE") and text.startswith("/run/secrets/")}  # fmt: skip
            given = {secret["source"] for secret in service.get("secrets", [])}
            with self.subTest(name):
                self.assertLessEqual(read, given)
                if name in OURS:
                    self.assertEqual(read, given)

    def test_the_api_starts_after_the_migrations(self):
        migrate = self.services["api"]["depends_on"]["migrate"]
        self.assertEqual((migrate["condition"], migrate["required"]), ("service_completed_successfully", True))

    def test_a_worker_has_more_time_to_stop_than_to_drain(self):
        worker = self.services["worker"]
        self.assertEqual(worker["stop_grace_period"], "2m30s")
        self.assertLess(int(worker["environment"]["RETOUCH_DRAIN_SECS"]), 150)

    def test_a_worker_has_read_only_access_to_its_models(self):
        [models] = self.services["worker"]["volumes"]
        self.assertEqual((models["target"], models["read_only"]), ("/models", True))

    def test_the_api_trusts_only_the_web_server(self):
        front = self.services["web"]["networks"]["front"]
        self.assertEqual(self.services["api"]["environment"]["RETOUCH_TRUSTED_PROXIES"], front["ipv4_address"])
        [pool] = self.stack["networks"]["front"]["ipam"]["config"]
        self.assertIn(ip_address(front["ipv4_address"]), ip_network(pool["subnet"]))
        self.assertNotIn(ip_address(front["ipv4_address"]), ip_network(pool["ip_range"]))

    def test_redis_does_not_evict_doorbells(self):
        settings = (REPO / "deploy/compose/redis.conf").read_text().splitlines()
        self.assertIn("maxmemory-policy noeviction", settings)
        self.assertIn("appendonly yes", settings)

    def test_the_issuer_has_the_public_address(self):
        own = config([FILE], ["central"], {"RETOUCH_PUBLIC_URL": "https://retouch.example", "GOOGLE_CLIENT_ID": "x"})
        api = own["services"]["api"]["environment"]
        self.assertEqual(api["OIDC_ISSUER"], "https://retouch.example/realms/retouch")
        self.assertEqual((api["OIDC_GOOGLE_HINT"], api["OIDC_FACEBOOK_HINT"]), ("google", ""))
        self.assertEqual(own["services"]["keycloak"]["environment"]["KC_HOSTNAME"], "https://retouch.example")

    def test_an_external_s3_service_replaces_the_local_one(self):
        own = config([FILE], ["api", "postgres", "redis", "keycloak", "worker"], {"S3_ENDPOINT": "", "S3_REGION": "eu-central-1"})
        self.assertNotIn("s3", own["services"])
        worker = own["services"]["worker"]["environment"]
        self.assertEqual((worker["S3_ENDPOINT"], worker["S3_REGION"]), ("", "eu-central-1"))


class FurtherSettingsTest(unittest.TestCase):
    """Settings in settings.env."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "settings.env"

    def services(self, text, files=(FILE,), profiles=("central", "worker"), **settings):
        self.file.write_text(text)
        return config(files, profiles, {"RETOUCH_SETTINGS": str(self.file), **settings})["services"]

    def test_they_apply_to_the_api_and_all_workers_only(self):
        given = {"OIDC_SCOPE": "openid email", "RETOUCH_KEEP_TENSORS": "false", "REDIS_PREFIX": "other"}
        services = self.services("".join(f"{name}={text}\n" for name, text in given.items()), (FILE, GPUS), ("central", "gpus-2"))
        reached = {name for name, service in services.items() if given.items() <= (service.get("environment") or {}).items()}
        self.assertEqual(reached, {"api", "worker", "worker-1"})

    def test_dotenv_overrides_them(self):
        worker = self.services("RETOUCH_JOBS_IN_FLIGHT=9\n", RETOUCH_JOBS_IN_FLIGHT="5")["worker"]
        self.assertEqual(worker["environment"]["RETOUCH_JOBS_IN_FLIGHT"], "5")

    def test_they_cannot_override_fixed_settings(self):
        services = self.services("RETOUCH_METRICS_LISTEN=\nRETOUCH_DEVICE=auto\nRETOUCH_HEALTH_FILE=\nRETOUCH_URL_SECRET_FILE=/x\n")
        worker, api = services["worker"]["environment"], services["api"]["environment"]
        self.assertEqual((worker["RETOUCH_DEVICE"], worker["RETOUCH_HEALTH_FILE"]), ("cuda", "/tmp/health"))
        self.assertEqual((worker["RETOUCH_METRICS_LISTEN"], api["RETOUCH_METRICS_LISTEN"]), ("0.0.0.0:9464",) * 2)
        self.assertEqual(api["RETOUCH_URL_SECRET_FILE"], "/run/secrets/url_secret")

    def test_the_manual_lists_every_setting(self):
        known = {name for source in SETTINGS for name in settings_in((REPO / source).read_text())}
        self.assertLess({"DATABASE_CONNECTIONS", "RETOUCH_LOG", "OIDC_SCOPE", "RETOUCH_STALL_SECS", "RETOUCH_BATCH"}, known)
        further = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", (REPO / "docs/settings.md").read_text()))
        # The manual explains these elsewhere.
        further |= {"RETOUCH_FEW_SHAPES", "RETOUCH_KEEP_TENSORS", "RETOUCH_TENSORRT", "RETOUCH_TENSORRT_CACHE"}
        services = config([FILE], ["central", "worker"])["services"]
        named = {name for service in OURS for name in services[service]["environment"]}
        named |= {name.removesuffix("_FILE") for name in named}
        in_the_images = set(re.findall(r"\b([A-Z][A-Z0-9_]+)=", (REPO / "Dockerfile").read_text()))
        self.assertEqual(further & named, set(), "These lines of settings.env would have no effect.")
        # STRIPE_API_URL is only for stand-ins.
        self.assertEqual(known - named - in_the_images - {"STRIPE_API_URL"}, further)

    def test_the_file_is_optional(self):
        self.assertEqual(set(config([FILE], ["worker"], {"RETOUCH_SETTINGS": str(self.file)})["services"]), {"worker"})


class WorkerTest(unittest.TestCase):
    def test_it_reserves_one_gpu(self):
        worker = config([FILE], ["worker"], {"RETOUCH_GPU": "MIG-2f1c9a5e"})["services"]["worker"]
        [device] = worker["deploy"]["resources"]["reservations"]["devices"]
        self.assertEqual(device, {"driver": "nvidia", "device_ids": ["MIG-2f1c9a5e"], "capabilities": ["gpu"]})
        self.assertEqual(worker["environment"]["RETOUCH_DEVICE"], "cuda")

    def test_with_cpu_yml_it_reserves_no_gpu(self):
        worker = config([FILE, CPU], ["worker"])["services"]["worker"]
        self.assertEqual(gpus_of(worker), [])
        self.assertEqual(worker["environment"]["RETOUCH_DEVICE"], "cpu")
        self.assertEqual(worker["build"]["target"], "worker-cpu")
        self.assertGreater(int(worker["deploy"]["resources"]["limits"]["memory"]), 0)

    def test_each_of_several_gpus_has_its_own_worker(self):
        for count in (2, 3, 4, 8):
            services = config([FILE, GPUS], [f"gpus-{count}"])["services"]
            gpus = sorted(gpu for service in services.values() for [gpu] in gpus_of(service))
            self.assertEqual(gpus, [str(number) for number in range(count)])
        self.assertEqual(set(config([FILE, GPUS], ["worker"])["services"]), {"worker"})

    def test_mig_slices_replace_indexes(self):
        settings = {"RETOUCH_GPU": "MIG-a", "RETOUCH_GPU_1": "MIG-b"}
        services = config([FILE, GPUS], ["gpus-2"], settings)["services"]
        self.assertEqual([gpus_of(services[name]) for name in ("worker", "worker-1")], [[["MIG-a"]], [["MIG-b"]]])

    def test_further_workers_differ_only_in_gpu_and_name(self):
        services = config([FILE, GPUS], ["gpus-2"])["services"]
        first, second = services["worker"], services["worker-1"]
        for service in (first, second):
            service["deploy"]["resources"].pop("reservations")
            service.pop("profiles", None)
            service.pop("build", None)
        self.assertEqual(first, second)

    def test_the_central_host_publishes_services_at_one_address(self):
        services = config([FILE, CENTRAL], ["central"], {"RETOUCH_PRIVATE_ADDRESS": "10.0.0.5"})["services"]
        for name in ("postgres", "redis", "s3"):
            self.assertEqual([port["host_ip"] for port in services[name]["ports"]], ["10.0.0.5"], name)
        with self.assertRaisesRegex(Problem, "RETOUCH_PRIVATE_ADDRESS"):
            config([FILE, CENTRAL], ["central"])


class ImagesTest(unittest.TestCase):
    """Images are built on the host, or pulled from the registry in RETOUCH_IMAGE."""

    files = [FILE, GPUS]
    profiles = ["central", "gpus-2", "tools"]

    def images(self, **settings):
        services = config(self.files, self.profiles, settings)["services"]
        return {name: services[name]["image"] for name in ("api", "migrate", "folders", "worker", "worker-1", "models", "backup")}

    def test_they_are_built_by_default(self):
        images = self.images()
        self.assertEqual(set(images.values()), {f"localhost/retouch/{name}:{version_of()}" for name in ("api", "worker-cuda", "models", "backup")})
        self.assertEqual(self.images(RETOUCH_IMAGE="", RETOUCH_TAG=""), images)

    def test_a_prefix_and_a_tag_select_published_images(self):
        images = self.images(RETOUCH_IMAGE="ghcr.io/owner/retouch", RETOUCH_TAG="1.2.3")
        self.assertEqual(set(images.values()), {f"ghcr.io/owner/retouch/{name}:1.2.3" for name in ("api", "worker-cuda", "models", "backup")})

    def test_the_builder_gets_every_file_that_the_dockerfile_copies(self):
        copied = re.findall(r"^COPY (?!--)(.+) \S+$", (REPO / "Dockerfile").read_text(), re.M)
        sent = [line[1:] for line in (REPO / ".dockerignore").read_text().splitlines() if line.startswith("!")]
        for path in map(Path, " ".join(copied).split()):
            with self.subTest(path):
                self.assertTrue({path, *path.parents} & set(map(Path, sent)), f".dockerignore lacks !{path}")

    def test_private_keys_are_neither_sent_to_the_builder_nor_committed(self):
        self.assertIn("**/*.pem", (REPO / ".dockerignore").read_text().splitlines())
        # Older manuals made the folder of a crate.
        for path in ("content-credentials/key.pem", "credentials/authority-key.pem"):
            self.assertEqual(subprocess.run(["git", "check-ignore", "--quiet", path], cwd=REPO).returncode, 0, path)

    def test_the_default_tag_is_the_version_of_this_checkout(self):
        self.assertEqual(self.images(RETOUCH_IMAGE="ghcr.io/owner/retouch")["api"], f"ghcr.io/owner/retouch/api:{version_of()}")

    def test_the_setting_of_a_single_image_overrides_them(self):
        images = self.images(RETOUCH_IMAGE="ghcr.io/owner/retouch", RETOUCH_API_IMAGE="mine/api@sha256:" + "0" * 64)
        self.assertEqual({images[name] for name in ("api", "migrate", "folders")}, {"mine/api@sha256:" + "0" * 64})
        self.assertIn("ghcr.io/owner/retouch/worker-cuda:", images["worker"])

    def test_a_service_that_ignores_them_is_found(self):
        built = {
            "api": {"image": "localhost/retouch/api:0.1.0", "build": {"target": "api"}},
            "other": {"image": "localhost/retouch/other:0.1.0"},
            "redis": {"image": "redis:8"},
        }
        published = {"api": {"image": "localhost/retouch/api:0.1.0"}, "other": {"image": "registry.example/retouch/other:9.9.9"}}
        self.assertEqual(list(checks.wrong_images(built, published)), [
            "api runs localhost/retouch/api:0.1.0 although RETOUCH_IMAGE and RETOUCH_TAG name registry.example/retouch/api:9.9.9",
            "other runs localhost/retouch/other:0.1.0, which no service builds",
        ])  # fmt: skip

    def test_an_image_that_is_built_here_but_could_be_pulled_is_found(self):
        built = {"api": {"image": "retouch/api:0.1.0", "build": {"target": "api"}}}
        published = {"api": {"image": "registry.example/retouch/api:9.9.9"}}
        self.assertEqual(list(checks.wrong_images(built, published)), ["api builds retouch/api:0.1.0, which is also a name on Docker Hub"])


class BrokenFileTest(unittest.TestCase):
    """Errors that Docker Compose must detect."""

    def refused(self, override):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "broken.json"
            file.write_text(json.dumps({"services": {"worker": override}}))
            with self.assertRaises(Problem) as caught:
                config([FILE, file], ["worker"])
        return str(caught.exception)

    def test_a_misspelled_key(self):
        devices = [{"driver": "nvidia", "capabilitties": ["gpu"]}]
        self.assertIn("capabilitties", self.refused({"deploy": {"resources": {"reservations": {"devices": devices}}}}))

    def test_a_count_beside_ids(self):
        devices = [{"driver": "nvidia", "count": 1, "device_ids": ["0"], "capabilities": ["gpu"]}]
        self.assertIn("exclusive", self.refused({"deploy": {"resources": {"reservations": {"devices": devices}}}}))

    def test_an_undefined_secret(self):
        self.assertIn("no_such", self.refused({"secrets": ["no_such"]}))


class RealmTest(unittest.TestCase):
    text = checks.REALM.read_text()

    def changed(self, **changes):
        realm = json.loads(self.text)
        realm.update(changes)
        return wrong_in_realm(json.dumps(realm))

    def client(self, **changes):
        [client] = json.loads(self.text)["clients"]
        return self.changed(clients=[{**client, **changes}])

    def test_the_file_is_valid(self):
        self.assertEqual(wrong_in_realm(self.text), [])

    def test_an_unknown_field(self):
        self.assertRegex(self.changed(registrationAlowed=True)[0], "registrationAlowed")

    def test_an_unknown_placeholder(self):
        self.assertRegex(self.changed(displayName="${COMPANY}")[0], "COMPANY")

    def test_settings_that_sign_in_depends_on(self):
        self.assertRegex(self.client(attributes={})[0], "PKCE")
        self.assertRegex(self.client(publicClient=False)[0], "public")
        self.assertRegex(self.client(redirectUris=["*"])[0], "redirects only to the page")
        self.assertEqual(len(self.client(protocolMappers=[])), 2)
        self.assertRegex(self.changed(identityProviders=[])[0], "google")

    def test_invalid_json(self):
        self.assertRegex(wrong_in_realm("{")[0], "not valid JSON")


class PrepareTest(unittest.TestCase):
    script = REPO / "deploy/compose/prepare"
    places = {
        "DATABASE_URL": "postgres://retouch:x@10.0.0.5:5432/retouch",
        "REDIS_URL": "redis://:x@10.0.0.5:6379",
        "S3_ENDPOINT": "http://key:secret@10.0.0.5:7070",
    }

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def prepare(self, *arguments, host="first", **environment):
        home = self.folder / host
        settings = {"PATH": os.environ["PATH"], "RETOUCH_SECRETS": str(home / "secrets"), "RETOUCH_ENV": str(home / "env")}
        home.mkdir(exist_ok=True)
        command = [self.script, *arguments]
        return subprocess.run(command, env={**settings, **environment}, capture_output=True, text=True)

    def assert_refuses_to_join(self, why, places=None):
        refused = self.prepare("--join", host="second", **(places or self.places))
        self.assertEqual(refused.returncode, 2)
        self.assertIn(why, refused.stderr)

    def secret(self, name, host="first"):
        return (self.folder / host / "secrets" / name).read_text()

    def env(self, host="first"):
        return self.folder / host / "env"

    def settings(self, host="first"):
        return dict(text.split("=", 1) for text in self.env(host).read_text().splitlines() if text[:1].isupper())

    def files(self, host):
        folder = self.folder / host
        return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}

    def test_secrets_are_long_and_protected(self):
        self.assertEqual(self.prepare().returncode, 0)
        folder = self.folder / "first" / "secrets"
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.assertRegex(self.secret("postgres_password"), "^[0-9a-f]{48}$")
        self.assertIn(self.secret("postgres_password"), self.secret("database_url"))
        # A service without one of its secrets would not start.
        required = set(config([FILE], ["central"])["secrets"])
        self.assertEqual({path.name for path in folder.iterdir()}, required)

    def test_existing_files_are_kept(self):
        self.prepare()
        before, env = self.secret("url_secret"), self.env()
        changed = env.read_text().replace("COMPOSE_PROFILES=central,worker", "COMPOSE_PROFILES=api")
        env.write_text(changed)
        self.assertEqual(self.prepare().returncode, 0)
        self.assertEqual((self.secret("url_secret"), env.read_text()), (before, changed))

    def test_a_host_that_starts_no_worker_is_told(self):
        self.assertEqual(self.prepare().stderr, "")
        env = self.env()
        written = env.read_text()
        for profiles, told in (("central", True), ("", True), ("central,gpus-4", False), ("worker", False)):
            env.write_text(written.replace("COMPOSE_PROFILES=central,worker", f"COMPOSE_PROFILES={profiles}"))
            self.assertEqual("has no worker" in self.prepare().stderr, told, profiles)

    def test_an_older_joined_host_keeps_its_worker(self):
        self.prepare("--join", host="second", **self.places)
        env = self.env("second")
        written = env.read_text()
        for profiles, kept in (("", "worker"), ("mine", "worker,mine"), ("gpus-2,mine", "gpus-2,mine")):
            env.write_text(written.replace("COMPOSE_PROFILES=worker", f"COMPOSE_PROFILES={profiles}"))
            self.prepare("--join", host="second", **self.places)
            self.assertEqual(self.settings("second")["COMPOSE_PROFILES"], kept)

    def test_every_variant_sets_the_compose_files(self):
        self.prepare()
        self.assertEqual(self.settings()["COMPOSE_FILE"], FILE)
        self.prepare("--join", host="second", **self.places)
        self.assertEqual(self.settings("second")["COMPOSE_FILE"], FILE)

    def test_the_settings_of_another_program_are_rejected(self):
        (self.folder / "first").mkdir()
        self.env().write_text("RETOUCH_PUBLIC_URL=http://127.0.0.1:8080\n")
        for arguments, given in (((), {}), (("--join",), self.places)):
            refused = self.prepare(*arguments, **given)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("has no line COMPOSE_FILE=, so it belongs to another program", refused.stderr)
        self.assertEqual([path.name for path in (self.folder / "first").iterdir()], ["env"])

    def open_first(self):
        """Lets other hosts reach the services of the first."""
        self.prepare()
        with self.env().open("a") as env:
            env.write(f"COMPOSE_FILE={FILE}:{CENTRAL}\nRETOUCH_PRIVATE_ADDRESS=10.0.0.5\n")

    def invite(self, address="10.0.0.5"):
        """Returns the lines of the printed command."""
        printed = self.prepare("--invite", address)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        # A shell does not remember a command that begins with a space.
        self.assertEqual(printed.stdout[:2], " D")
        return printed.stdout.strip().splitlines()

    def test_a_host_that_others_cannot_reach_invites_none(self):
        self.prepare()
        for line, missing in (("", "central.yml"), (f"COMPOSE_FILE={FILE}:{CENTRAL}\n", "RETOUCH_PRIVATE_ADDRESS")):
            with self.env().open("a") as env:
                env.write(line)
            refused = self.prepare("--invite", "10.0.0.5")
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertIn(missing, refused.stderr)

    def test_another_host_joins_with_the_printed_command(self):
        self.open_first()
        output = self.invite()
        self.assertEqual(output[3], "deploy/compose/prepare --join && docker compose run --rm models && docker compose up -d worker")
        given = dict(text.rstrip(" \\").split("=", 1) for text in output[:3])
        joined = self.prepare("--join", host="second", **{name: text.strip("'") for name, text in given.items()})
        self.assertEqual(joined.returncode, 0, joined.stderr)
        for name in ("s3_access_key_id", "s3_secret_access_key"):
            self.assertEqual(self.secret(name, "second"), self.secret(name))
        self.assertEqual(self.secret("redis_url", "second"), f"redis://:{self.secret('redis_password')}@10.0.0.5:6379")
        settings = self.settings("second")
        self.assertEqual(settings["S3_ENDPOINT"], "http://10.0.0.5:7070")
        self.assertEqual(settings["COMPOSE_PROFILES"], "worker")

    def test_an_address_that_another_host_cannot_use_is_refused(self):
        self.open_first()
        for address in ("http://10.0.0.5", "10.0.0.5:8080", "gpu host", "localhost", "127.0.0.1", "[::1]"):
            refused = self.prepare("--invite", address)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), address)
            self.assertIn(address, refused.stderr)
        for address in ("first.example.com", "[fd00::5]"):
            self.assertIn(f"@{address}:6379", self.invite(address)[1])

    def test_joining_hosts_use_the_same_published_images(self):
        images = {"RETOUCH_IMAGE": "ghcr.io/owner/retouch", "RETOUCH_TAG": "1.2.3"}
        self.prepare(**images)
        self.assertLessEqual(images.items(), self.settings().items())
        self.open_first()
        output = self.invite()
        self.assertEqual(output[3:5], ["RETOUCH_IMAGE='ghcr.io/owner/retouch' \\", "RETOUCH_TAG='1.2.3' \\"])
        given = dict(text.rstrip(" \\").split("=", 1) for text in output[:5])
        joined = self.prepare("--join", host="second", **{name: text.strip("'") for name, text in given.items()})
        self.assertEqual(joined.returncode, 0, joined.stderr)
        self.assertLessEqual(images.items(), self.settings("second").items())

    def test_joining_hosts_use_the_same_database_and_bucket(self):
        self.open_first()
        address = self.secret("database_url").removesuffix("/retouch") + "/pictures?sslrootcert=/etc/ca.pem"
        file = self.folder / "first" / "secrets" / "database_url"
        file.unlink()
        file.write_text(address)
        bucket = {"S3_BUCKET": "retouch-restored", "S3_REGION": "eu-central-1"}
        with self.env().open("a") as env:
            env.writelines(f"{name}={text}\n" for name, text in bucket.items())
        *given, _ = self.invite()
        given = {name: text.strip("'") for name, text in (text.rstrip(" \\").split("=", 1) for text in given)}
        self.assertEqual(given["DATABASE_URL"], f"postgres://retouch:{self.secret('postgres_password')}@10.0.0.5:5432/pictures")
        joined = self.prepare("--join", host="second", **given)
        self.assertEqual(joined.returncode, 0, joined.stderr)
        self.assertLessEqual(bucket.items(), self.settings("second").items())
        before = self.files("second")
        self.assertEqual(self.prepare("--join", host="second", **given).returncode, 0)
        self.assert_refuses_to_join("S3_BUCKET in", {**given, "S3_BUCKET": "retouch"})
        self.assert_refuses_to_join("S3_REGION in", {**given, "S3_REGION": "us-east-1"})
        self.assertEqual(self.files("second"), before)

    def test_joining_without_the_s3_keys_is_rejected(self):
        self.assert_refuses_to_join("http://KEY:SECRET@", {**self.places, "S3_ENDPOINT": "http://10.0.0.5:7070"})

    def test_joining_again_with_the_same_addresses_changes_nothing(self):
        self.prepare("--join", host="second", **self.places)
        env = self.env("second")
        changed = env.read_text().replace("COMPOSE_PROFILES=worker", "COMPOSE_PROFILES=gpus-4")
        env.write_text(changed)
        again = self.prepare("--join", host="second", **self.places)
        self.assertEqual((again.returncode, again.stdout, env.read_text()), (0, "", changed))

    def test_joining_with_other_addresses_is_rejected(self):
        self.prepare("--join", host="second", **self.places)
        before = self.files("second")
        others = {
            "DATABASE_URL": "postgres://retouch:x@10.0.0.6:5432/retouch",
            "REDIS_URL": "redis://:x@10.0.0.6:6379",
            "S3_ENDPOINT": "http://key:secret@10.0.0.6:7070",
        }
        for name, address in others.items():
            self.assert_refuses_to_join("To join again with other addresses, delete", {**self.places, name: address})
        self.assert_refuses_to_join("s3_secret_access_key has another value", {**self.places, "S3_ENDPOINT": "http://key:other@10.0.0.5:7070"})
        self.assertEqual(self.files("second"), before)

    def test_a_complete_host_cannot_join_another(self):
        self.prepare(host="second")
        self.assert_refuses_to_join("has the password of a Postgres on this host")
        for file in (self.folder / "second" / "secrets").iterdir():
            file.unlink()
        self.assert_refuses_to_join("starts more than workers")
        self.assertEqual(set(self.files("second")), {"env"})

    def test_a_joined_host_runs_only_a_worker(self):
        self.prepare("--join", host="second", **self.places)
        settings = self.settings("second")
        services = config(settings["COMPOSE_FILE"].split(":"), settings["COMPOSE_PROFILES"].split(), settings)["services"]
        self.assertEqual(set(services), {"worker"})
        self.assertEqual(services["worker"]["environment"]["S3_ENDPOINT"], "http://10.0.0.5:7070")

    def test_every_line_of_the_example_is_a_known_setting(self):
        names = {line.lstrip("#").split("=")[0] for line in (REPO / "deploy/compose/env.example").read_text().splitlines()
                 if "=" in line and line.lstrip("#")[:1].isupper() and " " not in line.split("=")[0]}  # fmt: skip
        files = "".join((REPO / file).read_text() for file in (FILE, CPU, GPUS, CENTRAL))
        unread = {name for name in names if f"${{{name}" not in files} - {"COMPOSE_FILE", "COMPOSE_PROFILES"}
        self.assertEqual(unread, set())
        # These are files in the folder of secrets, or that folder.
        secret = {"DATABASE_URL", "REDIS_URL", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY", "RETOUCH_SECRETS"}
        self.assertEqual(set(re.findall(r"\$\{([A-Z][A-Z0-9_]*)", files)) - names, secret)


class ProvenTest(unittest.TestCase):
    def test_changes_of_files_count_and_changes_of_secrets_do_not(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            compose = root / "deploy" / "compose"
            (compose / "secrets").mkdir(parents=True)
            (root / "Dockerfile").write_text("FROM scratch\n")
            seen = [proven.digest(root)]
            (root / "Dockerfile").write_text("FROM debian\n")
            seen.append(proven.digest(root))
            (compose / "more.yml").write_text("services: {}\n")
            seen.append(proven.digest(root))
            (compose / "more.yml").rename(compose / "other.yml")
            seen.append(proven.digest(root))
            self.assertEqual(len(set(seen)), 4)
            (compose / "secrets" / "stripe_secret_key").write_text("sk")
            (compose / "proven.sha256").write_text("what was")
            self.assertEqual(proven.digest(root), seen[-1])

    def test_all_tracked_container_files_count(self):
        places = ["Dockerfile", ".dockerignore", "docker-compose.gpu.yml", "deploy/compose", "scripts/checks/containers"]
        listed = subprocess.run(["git", "ls-files", *places], cwd=REPO, capture_output=True, text=True)
        if listed.returncode:
            self.skipTest("not a checkout")
        counted = {str(path.relative_to(REPO)) for place in proven.PLACES for path in REPO.glob(place)}
        programs = {name for name in listed.stdout.split() if name.endswith(".py") or name.endswith("tools.txt")}
        self.assertEqual(set(listed.stdout.split()) - programs - {"deploy/compose/proven.sha256"}, counted)


if __name__ == "__main__":
    unittest.main()
