import contextlib
import datetime
import io
import os
import shutil
import stat
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock
from urllib.request import Request

from common.config import REPO
from common.console import Problem
from ops.models import download, fetch, files, hub_fetch, licensing, packages, staging
from ops.models.catalog import Catalog
from ops.models.download import Refused
from ops.models.hub import Hub, Redirects
from ops.models.hub_source import HubSource

from . import hub_model
from .fake_hub import COMMIT, FakeHub
from .sampling_encoder import convert_module

NAME = "tiny-inpainting"
UNET = "unet/model.onnx"
ENCODER = "vae_encoder/model.onnx"


class HubTest(unittest.TestCase):
    """Fetches a pipeline from a hub that redirects to another host."""

    @classmethod
    def setUpClass(cls):
        cls.published = hub_model.published()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.models = Path(scratch.name) / "models"
        (self.models / "templates").mkdir(parents=True)
        self.hub = FakeHub()
        self.addCleanup(self.hub.close)
        self.hub.repositories[hub_model.REPOSITORY] = dict(self.published)
        self.hub.small = {path for path in self.published if not path.endswith(".onnx")}
        self.template(hub_model.template(self.published))
        self.catalog = Catalog(self.models)
        self.replace(packages, "DOWNLOADS", Path(scratch.name) / "downloads")
        self.replace(download, "BACKOFF_SECONDS", (0,))

    def replace(self, place, name, value):
        patch = mock.patch.object(place, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def template(self, text):
        (self.models / f"templates/{NAME}.toml").write_text(text)

    @property
    def folder(self):
        return self.models / NAME

    def fetch(self, is_accepted=True, environment=None, name=NAME):
        with contextlib.redirect_stderr(io.StringIO()) as output:
            try:
                fetch.models(self.catalog, [name], environment or self.hub.environment, is_accepted)
            finally:
                self.output = output.getvalue()

    def refusal(self, **more):
        with self.assertRaises(Problem) as caught:
            self.fetch(**more)
        return str(caught.exception)

    def manifest(self):
        return tomllib.loads((self.folder / "model.toml").read_text())

    def test_a_template_becomes_a_model_whose_files_are_all_pinned(self):
        self.fetch()
        manifest = self.manifest()
        extras = {extra["file"]: extra for extra in manifest["extra"]}
        self.assertEqual(set(extras), set(self.published))
        for path, data in self.published.items():
            made = (self.folder / path).read_bytes()
            self.assertEqual(made == data, path != ENCODER, path)
            self.assertEqual((extras[path]["sha256"], extras[path]["size_bytes"]), (hub_model.sha256(made), len(made)))
        self.assertEqual(manifest["source"]["revision"], COMMIT, "the branch was not resolved")
        encoder = next(file for file in manifest["source"]["files"] if file["path"] == ENCODER)
        self.assertEqual(encoder["source_sha256"], hub_model.sha256(self.published[ENCODER]))
        self.assertEqual((self.folder / ENCODER).read_bytes(), convert_module("moments").convert(self.published[ENCODER]))
        self.assertEqual(manifest["strength"], {"edit": 1.0, "add": 1.0})
        self.assertEqual(files.state(self.catalog.model(NAME)), "present")
        self.assertEqual([path.name for path in self.models.rglob(".*")], [], "something was left behind")
        self.assertEqual(sum(path.is_file() for path in self.folder.rglob("*")), len(self.published) + 2)

    def test_a_unet_is_converted_on_the_way(self):
        sha256 = hub_model.sha256(self.published[UNET])
        self.template(hub_model.template(self.published).replace(f'sha256 = "{sha256}"', f'convert = "attention"\nsource_sha256 = "{sha256}"'))
        self.fetch()
        self.assertIn("unet/model.onnx: attentions that are now one node each: 8", self.output)
        made = (self.folder / UNET).read_bytes()
        self.assertIn(b"MultiHeadAttention", made)
        [unet] = [file for file in self.manifest()["source"]["files"] if file["path"] == UNET]
        self.assertEqual((unet["convert"], unet["source_sha256"], unet["size_bytes"]), ("attention", sha256, len(self.published[UNET])))
        [extra] = [extra for extra in self.manifest()["extra"] if extra["file"] == UNET]
        self.assertEqual((extra["sha256"], extra["size_bytes"]), (hub_model.sha256(made), len(made)))
        # A lost file is made again from the same download.
        (self.folder / UNET).unlink()
        self.fetch()
        self.assertEqual((self.folder / UNET).read_bytes(), made)

    def test_the_manifest_says_which_checksums_nobody_had_published(self):
        self.fetch()
        lines = (self.folder / "model.toml").read_text().splitlines()
        self.assertIn("# A comment that stays.", lines)
        recorded = [lines[at - 1] for at, line in enumerate(lines) if line.endswith("# recorded at the first fetch")]
        self.assertIn('file = "model_index.json"', recorded)
        self.assertIn(f'file = "{ENCODER}"', recorded)
        self.assertNotIn(f'file = "{UNET}"', recorded)

    def test_recorded_checksums_hold_from_then_on(self):
        self.fetch()
        (self.folder / "model_index.json").unlink()
        self.hub.repositories[hub_model.REPOSITORY]["model_index.json"] = b"{}"
        self.assertIn("expected", self.refusal())
        self.assertFalse((self.folder / "model_index.json").exists())
        self.hub.repositories[hub_model.REPOSITORY]["model_index.json"] = self.published["model_index.json"]
        self.fetch()
        self.assertEqual(files.state(self.catalog.model(NAME)), "present")

    def test_a_table_after_the_source_is_not_lost(self):
        self.template(hub_model.template(self.published) + '\n[reference_image]\nedit = "gray"\n')
        self.assertIn("move reference_image above '[source]', because programs replace everything from there on", self.refusal())
        self.assertFalse(self.folder.exists())

    def test_lost_files_are_fetched_and_converted_again_without_touching_the_others(self):
        self.fetch()
        before, manifest = (self.folder / UNET).stat(), (self.folder / "model.toml").read_text()
        (self.folder / ENCODER).unlink()
        self.hub.has_lists = False
        self.fetch(is_accepted=False)
        self.assertEqual(files.state(self.catalog.model(NAME)), "present")
        self.assertEqual((self.folder / UNET).stat().st_ino, before.st_ino)
        self.assertEqual((self.folder / "model.toml").read_text(), manifest)
        self.assertEqual(self.hub.downloads(UNET), [None])

    def test_an_interrupted_download_resumes_in_a_later_run_at_the_same_commit(self):
        self.hub.break_after = [10**9] * (list(self.published).index(UNET)) + [30_000, 0, 0]
        self.assertIn("run this again to resume", self.refusal())
        self.assertFalse(self.folder.exists(), "half a model is in place")
        self.hub.break_after = []
        self.hub.commits.append("f" * 40)
        self.fetch()
        self.assertEqual(self.manifest()["source"]["revision"], COMMIT, "the branch was resolved again")
        self.assertEqual(self.hub.downloads(UNET)[-1], "bytes=30000-")
        self.assertEqual(len(self.hub.downloads("model_index.json")), 1, "a finished file was downloaded again")
        self.assertEqual((self.folder / UNET).read_bytes(), self.published[UNET])

    def test_what_an_earlier_attempt_left_does_not_become_part_of_the_model(self):
        old = staging.aside(self.models, NAME, "part") / "unet/model.onnx_data"
        old.parent.mkdir(parents=True)
        old.write_bytes(b"of another template")
        self.fetch()
        self.assertFalse((self.folder / "unet/model.onnx_data").exists())

    def test_a_file_that_the_hub_has_replaced_is_refused_before_it_is_downloaded(self):
        self.hub.repositories[hub_model.REPOSITORY][UNET] = b"another net"
        message = self.refusal()
        self.assertIn(f"has the sha256 {hub_model.sha256(b'another net')}, but the manifest expects", message)
        self.assertIn("name the commit", message)
        self.assertEqual(self.hub.store_requests, [])

    def test_a_damaged_file_is_discarded(self):
        self.hub.has_lists = False
        self.template(hub_model.template(self.published).replace('"main"', f'"{COMMIT}"'))
        self.hub.repositories[hub_model.REPOSITORY][UNET] = b"damaged"
        self.assertIn("The file was discarded", self.refusal())
        self.assertFalse(self.folder.exists())

    def test_a_converted_file_with_another_checksum_is_discarded(self):
        self.template(hub_model.template(self.published).replace('convert = "moments"', f'convert = "moments"\nsha256 = "{"0" * 64}"'))
        self.assertIn("after its conversion; the manifest expects 0000", self.refusal())
        self.assertFalse(self.folder.exists())

    def test_the_license_is_shown_and_refused_before_the_first_byte(self):
        message = self.refusal(is_accepted=False)
        self.assertIn(
            f"nobody has accepted its license, CreativeML-OpenRAIL-M. Read https://example.com/license, then run `scripts/models fetch {NAME} --accept-licence`",
            message,
        )
        self.assertIn("  • be kind\n  • tell your users\n", self.output)
        self.assertEqual(self.hub.hub_requests + self.hub.store_requests, [])

    def test_the_acceptance_is_recorded_with_date_and_revision(self):
        model = self.catalog.model(NAME)
        with contextlib.redirect_stderr(io.StringIO()):
            hub_fetch.fetch(model, Hub(self.hub.environment), True, lambda: datetime.date(2026, 11, 23))
        record = tomllib.loads((self.folder / licensing.RECORD).read_text())
        self.assertEqual(
            record,
            {
                "licence": "CreativeML-OpenRAIL-M",
                "terms": "https://example.com/license",
                "repository": hub_model.REPOSITORY,
                "revision": COMMIT,
                "accepted_on": datetime.date(2026, 11, 23),
            },
        )

    def test_a_person_is_asked_once(self):
        model = self.catalog.model(NAME)
        ask = lambda answer: licensing.require(model, False, (self.folder,), terminal=True, answer=lambda: answer)
        with contextlib.redirect_stderr(io.StringIO()) as output:
            ask("y\n")
            for no in ("\n", "n\n", ""):
                with self.assertRaisesRegex(Problem, "was not accepted"):
                    ask(no)
        self.assertIn("Do you accept this license? [y/N] ", output.getvalue())

    def test_a_gated_repository_needs_a_token_which_only_the_hub_gets(self):
        self.hub.gated.add(hub_model.REPOSITORY)
        message = self.refusal()
        self.assertIn(f"accept its conditions on {self.hub.url}/{hub_model.REPOSITORY}, and set HF_TOKEN", message)
        self.assertIn("GatedRepo, says the hub", message)
        self.assertIn("the account of your token has no access", self.refusal(environment={**self.hub.environment, "HF_TOKEN": "wrong"}))
        self.fetch(environment={**self.hub.environment, "HF_TOKEN": self.hub.token})
        self.assertEqual({token for _, _, token in self.hub.store_requests}, {None}, "the token was sent to where the hub redirects")
        self.assertEqual(files.state(self.catalog.model(NAME)), "present")

    def test_redirects_keep_the_token_on_the_hub_and_never_lose_encryption(self):
        hub = Hub({"HF_ENDPOINT": "https://hub.example", "HF_TOKEN": "secret"})
        redirect = lambda address: Redirects(hub).redirect_request(Request("https://hub.example/a"), None, 302, "Found", {}, address)
        self.assertEqual(redirect("https://hub.example/renamed").unredirected_hdrs, {"Authorization": "Bearer secret"})
        for elsewhere in ("https://store.example/a", "https://hub.example:8443/a"):
            following = redirect(elsewhere)
            self.assertEqual((following.headers, following.unredirected_hdrs), ({}, {}), elsewhere)
        with self.assertRaisesRegex(Refused, "hub.example redirects to store.example without encryption"):
            redirect("http://store.example/a")

    def test_the_token_may_be_in_the_file_of_the_hubs_own_tools(self):
        home = self.models.parent / "home"
        for place, environment in (
            (home / ".cache/huggingface/token", {"HOME": str(home)}),
            (home / "hf/token", {"HOME": str(home), "HF_HOME": str(home / "hf")}),
            (home / "key", {"HOME": str(home), "HF_TOKEN_PATH": str(home / "key")}),
        ):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("from a file\n")
            self.assertEqual(Hub(environment).token, "from a file")
        self.assertEqual(Hub({"HOME": str(home), "HF_TOKEN": "given"}).token, "given")
        self.assertIsNone(Hub({"HOME": "/nowhere"}).token)

    def test_a_mirror_without_encryption_is_refused(self):
        for address in ("http://mirror.example", "mirror.example", "ftp://mirror.example"):
            with self.assertRaisesRegex(Problem, "HF_ENDPOINT is .*must be an https address"):
                Hub({"HF_ENDPOINT": address})
        self.assertEqual(Hub({"HF_ENDPOINT": "https://mirror.example/"}).endpoint, "https://mirror.example")

    def test_a_full_disk_is_found_before_the_first_file(self):
        self.replace(shutil, "disk_usage", lambda folder: mock.Mock(free=staging.RESERVE_BYTES + 1000))
        self.assertRegex(self.refusal(), r"tiny-inpainting needs .* MB in .*, but only .* are free\. Make room")
        self.assertEqual(self.hub.store_requests, [])

    def test_a_missing_file_is_reported_with_what_is_there(self):
        del self.hub.repositories[hub_model.REPOSITORY]["tokenizer/vocab.json"]
        self.assertIn(f"has no tokenizer/vocab.json at {COMMIT}; it has model_index.json", self.refusal())

    def test_a_repository_that_does_not_exist_is_reported_with_its_page(self):
        self.hub.repositories.clear()
        self.assertIn(f"see {self.hub.url}/{hub_model.REPOSITORY} for what is there now", self.refusal())

    def test_a_pointer_in_place_of_the_file_is_refused(self):
        self.hub.repositories[hub_model.REPOSITORY]["model_index.json"] = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n"
        self.assertIn("has only the Git LFS pointer of model_index.json", self.refusal())

    def test_every_file_can_be_read_by_everyone(self):
        old = os.umask(0o077)
        self.addCleanup(os.umask, old)
        self.fetch()
        modes = {stat.S_IMODE(path.stat().st_mode) for path in [self.folder, *self.folder.rglob("*")]}
        self.assertEqual(modes, {0o755, 0o644})

    def test_a_single_file_is_found_by_its_checksum(self):
        data = b"a net" * 1000
        self.hub.repositories["somebody/net"] = {"some/export.onnx": data, "README.md": b"words"}
        folder = self.models / "net"
        folder.mkdir()
        (folder / "model.toml").write_text(
            f'name = "net"\ntask = "fill"\nfile = "net.onnx"\nsha256 = "{hub_model.sha256(data)}"\nsize_bytes = {len(data)}\n'
            'licence = "MIT"\ncommercial_use = true\nattribution = "somebody"\nhomepage = "https://example.com"\n\n'
            '[source]\nregistry = "hub"\nrepository = "somebody/net"\nrevision = "main"\n\n[[source.files]]\nfile = "net.onnx"\n'
        )
        self.fetch(is_accepted=False, name="net")
        self.assertEqual((folder / "net.onnx").read_bytes(), data)
        self.assertEqual([path.name for path in sorted(folder.iterdir())], ["model.toml", "net.onnx"])
        self.hub.repositories["somebody/net"] = {"some/export.onnx": b"other"}
        (folder / "net.onnx").unlink()
        self.assertIn("no file of somebody/net", self.refusal(name="net"))

    def test_a_swap_that_was_interrupted_is_undone(self):
        self.fetch()
        self.folder.rename(staging.aside(self.models, NAME, "old"))
        self.fetch()
        self.assertIn("already present", self.output)

    def test_wrong_fields_are_named_with_what_is_accepted(self):
        good = hub_model.template(self.published)
        for old, new, message in (
            ('revision = "main"', 'revision = "v1"', "source.revision is 'v1'; it must be a commit of 40 lower-case hexadecimal digits"),
            ('"somebody/tiny-onnx"', '"tiny"', "source.repository is 'tiny'; it must be two words"),
            ('convert = "moments"', 'convert = "mean"', "source.files.convert is 'mean'; it must be attention or moments"),
            ('path = "model_index.json"', 'path = "../model_index.json"', "must be a relative path without `..`"),
            (
                'path = "model_index.json"',
                'path = "model_index.json"\nsha = "0"',
                "source.files.sha is not a field of this kind of source; the fields are convert",
            ),
            ('terms = "https://example.com/license"\n', "", "source has duties but no terms"),
            ('task = "sd-inpaint"', 'task = "fill"', "a template must be of a pipeline"),
            ('licence = "Crea', 'license = "Crea', "has no licence; it has license, which must be spelled licence"),
        ):
            with self.subTest(new):
                self.template(good.replace(old, new, 1))
                self.assertIn(message, self.refusal())


class ShippedTest(unittest.TestCase):
    def test_every_shipped_manifest_and_template_is_sound(self):
        catalog = Catalog(REPO / "models")
        models = {name: catalog.model(name) for name in catalog.names()}
        self.assertTrue(models["sd15-inpainting"].is_template or (REPO / "models/sd15-inpainting").is_dir())
        self.assertFalse(models["flux2-klein-4b"].is_template)
        for name, model in models.items():
            if isinstance(model.source, HubSource) and not model.is_template:
                self.assertEqual(
                    {file.file for file in model.source.files}, {file.path.relative_to(model.folder).as_posix() for file in model.files}, name
                )


if __name__ == "__main__":
    unittest.main()
