import contextlib
import datetime
import io
import os
import shutil
import subprocess
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock

from common.config import PROGRAMS, REPO, load
from common.console import Problem, warn
from ops.models import export, files, licensing, staging
from ops.models.catalog import Catalog

from . import hub_model

NAME = "tiny-inpainting"
WORKER = PROGRAMS / "retouch-worker"
EXPORT = """
[export]
repository = "somebody/tiny"
revision = "0123456789abcdef0123456789abcdef01234567"
variant = "fp16"
"""


class ExportTest(unittest.TestCase):
    """Everything around the exporter, which is replaced by a copy of the tiny pipeline."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.models = self.folder / "models"
        (self.models / "templates").mkdir(parents=True)
        self.template(hub_model.template({"model_index.json": b""}, ()) + EXPORT)
        (self.folder / "programs").mkdir()
        (self.folder / "programs/retouch-worker").touch()
        self.original = self.folder / "original"
        self.original.mkdir()
        (self.original / "model_index.json").write_text("{}")
        self.commands = []
        self.replace("PROGRAMS", self.folder / "programs")
        self.replace("PLACE", self.folder / "export")
        self.replace("install", lambda scratch: Path("python"))
        self.replace("run_logged", self.exported)
        self.replace("verify", lambda made, settings: None)

    def replace(self, name, value):
        patch = mock.patch.object(export, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def template(self, text):
        (self.models / f"templates/{NAME}.toml").write_text(text)

    def exported(self, command, log, what, env):
        self.commands.append((command[2:], env))
        made = Path(command[3])
        for path, data in hub_model.published().items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_bytes(data)
        shutil.copytree(hub_model.PIPELINE / "reference", made / "reference")

    def export(self, source=None, is_accepted=True, name=NAME):
        settings = load({"HF_TOKEN": "hf_secret", "HOME": "/nowhere"})
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            export.export(self.models, name, source, settings, is_accepted, lambda: datetime.date(2026, 11, 23))

    def test_the_original_weights_become_a_model_with_its_vectors(self):
        self.export()
        model = Catalog(self.models).model(NAME)
        self.assertEqual(files.state(model), "present")
        self.assertTrue((model.folder / "reference/meta.json").is_file())
        manifest = tomllib.loads((model.folder / "model.toml").read_text())
        self.assertEqual(manifest["reference"], "reference", "no check would compare with the vectors")
        self.assertIsNone(model.source, "the manifest names a source of other bytes")
        record = tomllib.loads((model.folder / licensing.RECORD).read_text())
        self.assertEqual((record["repository"], record["accepted_on"]), ("somebody/tiny", datetime.date(2026, 11, 23)))
        [(command, environment)] = self.commands
        self.assertEqual([command[0], *command[2:]], ["somebody/tiny", "--revision", "0123456789abcdef0123456789abcdef01234567", "--variant", "fp16"])
        self.assertEqual((environment["HF_TOKEN"], environment["HF_HOME"]), ("hf_secret", str(self.folder / "export/hub")))
        self.assertEqual(list((self.folder / "export").iterdir()), [], "the environment was not thrown away")

    def test_weights_in_a_folder_need_no_hub(self):
        self.export(self.original, is_accepted=False)
        [(command, _)] = self.commands
        self.assertEqual([command[0], *command[2:]], [str(self.original), "--variant", "fp16"])

    def test_the_unet_is_converted_before_it_is_compared(self):
        compared = []
        self.replace("verify", lambda made, settings: compared.append((made / "unet/model.onnx").read_bytes()))
        self.export()
        self.assertIn(b"MultiHeadAttention", compared[0])
        self.assertEqual((self.models / NAME / "unet/model.onnx").read_bytes(), compared[0])

    def test_an_export_that_differs_from_diffusers_is_discarded(self):
        def differ(made, settings):
            raise Problem("it differs")

        self.replace("verify", differ)
        with self.assertRaisesRegex(Problem, "it differs"):
            self.export()
        self.assertFalse((self.models / NAME).exists())
        self.assertEqual(list((self.folder / "export").iterdir()), [])

    def test_problems_are_found_before_anything_is_installed(self):
        def refused(message, **more):
            with self.subTest(message), self.assertRaisesRegex(Problem, message):
                self.export(**more)
            self.assertEqual(self.commands, [])

        refused("scripts/models export tiny-inpainting --accept-licence", is_accepted=False)
        refused("has no model_index.json, so it is not a pipeline in the layout of diffusers", source=self.folder)
        refused("Models that can be exported: tiny-inpainting", name="other")
        with mock.patch.object(shutil, "disk_usage", lambda folder: mock.Mock(free=10**9)):
            refused("Exporting tiny-inpainting needs 18064.0 MB in .*, but only 1000.0 MB are free")
        (self.folder / "programs/retouch-worker").unlink()
        refused("needs retouch-worker. Build it")
        self.template(hub_model.template({"model_index.json": b""}, ()))
        refused("has no \\[export\\]")
        self.template(hub_model.template({"model_index.json": b""}, ()) + EXPORT.replace("0123", "main"))
        refused("export.revision is 'main456789.*'; it must be a commit of 40 lower-case hexadecimal digits")


@unittest.skipUnless(os.environ.get("RETOUCH_TEST_FULL"), "installs 3 GB: scripts/test --full")
class RealExportTest(unittest.TestCase):
    def test_the_real_exporter_makes_a_pipeline_that_agrees_with_diffusers(self):
        if not WORKER.is_file():
            warn(f"{WORKER} is not built: the real exporter was NOT tested")
            self.skipTest("retouch-worker is not built")
        with tempfile.TemporaryDirectory() as folder:
            models, original = Path(folder) / "models", Path(folder) / "original"
            (models / "templates").mkdir(parents=True)
            (models / f"templates/{NAME}.toml").write_text(hub_model.template({"model_index.json": b""}, ()) + EXPORT)
            python = export.install(Path(folder))
            maker = Path(__file__).with_name("tiny_pipeline.py")
            subprocess.run([python, maker, REPO / "models/tiny/sd-inpaint/tokenizer", original], check=True)
            with mock.patch.object(export, "install", lambda scratch: python), mock.patch.object(staging, "require_space", lambda *arguments: None):
                export.export(models, NAME, original, load({**os.environ, "RETOUCH_DEVICE": "cpu"}))
            self.assertEqual(files.state(Catalog(models).model(NAME)), "present")


if __name__ == "__main__":
    unittest.main()
