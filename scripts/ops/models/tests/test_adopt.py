import contextlib
import io
import tempfile
import tomllib
import unittest
from pathlib import Path

from common.console import Problem
from ops.models import adopt, files
from ops.models.catalog import Catalog

TEMPLATE = """\
name = "mine"
task = "sd-inpaint"
licence = "Apache-2.0"
commercial_use = true
homepage = "https://example.com"

[canvas]
side = 64
"""


class AdoptTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.models = Path(scratch.name) / "models"
        self.export = Path(scratch.name) / "export"
        for path, text in {
            "model_index.json": "{}",
            "unet/model.onnx": "net",
            "unet/model.onnx_data": "weights",
            "tokenizer/vocab.json": "{}",
            "unet/diffusion_pytorch_model.safetensors": "for another program",
            "README.md": "words",
        }.items():
            (self.export / path).parent.mkdir(parents=True, exist_ok=True)
            (self.export / path).write_text(text)
        (self.models / "templates").mkdir(parents=True)
        (self.models / "templates/mine.toml").write_text(TEMPLATE)

    def adopted(self):
        return tomllib.loads((self.models / "mine/model.toml").read_text())

    def test_a_folder_becomes_a_model_with_every_checksum(self):
        adopt.adopt(self.models, "mine", self.export)
        extras = {extra["file"]: extra for extra in self.adopted()["extra"]}
        self.assertEqual(
            list(extras), ["model_index.json", "tokenizer/vocab.json", "unet/model.onnx", "unet/model.onnx_data"]
        )
        net = extras["unet/model.onnx"]
        self.assertEqual((net["size_bytes"], net["sha256"]), (3, files.sha256_of(self.export / "unet/model.onnx")))
        self.assertEqual(self.adopted()["canvas"], {"side": 64})
        self.assertEqual(files.state(Catalog(self.models).model("mine")), "present")

    def test_the_output_names_the_next_steps(self):
        with contextlib.redirect_stderr(io.StringIO()) as output:
            adopt.adopt(self.models, "mine", self.export)
        self.assertIn("Now run `retouch-worker models check mine`, then bind it in tools.toml.", output.getvalue())

    def test_adopting_again_keeps_edits_of_the_manifest(self):
        adopt.adopt(self.models, "mine", self.export)
        manifest = self.models / "mine/model.toml"
        manifest.write_text(manifest.read_text().replace("side = 64", "side = 512"))
        (self.models / "mine/unet/model.onnx").write_text("another net")
        self.assertEqual(files.state(Catalog(self.models).model("mine")), "WRONG CHECKSUM")
        adopt.adopt(self.models, "mine", None)
        self.assertEqual(self.adopted()["canvas"], {"side": 512})
        self.assertEqual(files.state(Catalog(self.models).model("mine")), "present")

    def test_a_folder_that_is_not_a_pipeline_is_rejected(self):
        (self.export / "unet/model.onnx").unlink()
        with self.assertRaisesRegex(Problem, "is not a pipeline"):
            adopt.adopt(self.models, "mine", self.export)
        with self.assertRaisesRegex(Problem, "is not a folder"):
            adopt.adopt(self.models, "mine", self.export / "missing")

    def test_fetching_a_model_that_only_has_a_template_says_how_to_adopt_it(self):
        with self.assertRaisesRegex(Problem, "Export it from https://example.com .* adopt mine FOLDER"):
            Catalog(self.models).model("mine")

    def test_a_model_without_a_template_is_rejected(self):
        with self.assertRaisesRegex(Problem, "Copy another template"):
            adopt.adopt(self.models, "other", self.export)


if __name__ == "__main__":
    unittest.main()
