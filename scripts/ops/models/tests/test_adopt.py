import contextlib
import io
import tempfile
import tomllib
import unittest
from pathlib import Path

from common.say import Problem
from ops.models import adopt, files
from ops.models.catalogue import Catalogue

TEMPLATE = """\
name = "mine"
task = "sd-inpaint"
licence = "Apache-2.0"
commercial_use = true
homepage = "https://example.com"

[canvas]
side = 64
"""


class Adopting(unittest.TestCase):
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
        stated = {extra["file"]: extra for extra in self.adopted()["extra"]}
        self.assertEqual(
            list(stated), ["model_index.json", "tokenizer/vocab.json", "unet/model.onnx", "unet/model.onnx_data"]
        )
        net = stated["unet/model.onnx"]
        self.assertEqual((net["size_bytes"], net["sha256"]), (3, files.sha256_of(self.export / "unet/model.onnx")))
        self.assertEqual(self.adopted()["canvas"], {"side": 64})
        self.assertEqual(files.state(Catalogue(self.models).model("mine")), "present")

    def test_what_comes_next_is_a_check_and_then_a_binding(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            adopt.adopt(self.models, "mine", self.export)
        self.assertIn("Now run `retouch-worker models check mine`, then bind it in tools.toml.", said.getvalue())

    def test_what_was_changed_in_a_manifest_stays_when_it_is_adopted_again(self):
        adopt.adopt(self.models, "mine", self.export)
        manifest = self.models / "mine/model.toml"
        manifest.write_text(manifest.read_text().replace("side = 64", "side = 512"))
        (self.models / "mine/unet/model.onnx").write_text("another net")
        self.assertEqual(files.state(Catalogue(self.models).model("mine")), "WRONG CHECKSUM")
        adopt.adopt(self.models, "mine", None)
        self.assertEqual(self.adopted()["canvas"], {"side": 512})
        self.assertEqual(files.state(Catalogue(self.models).model("mine")), "present")

    def test_what_is_no_pipeline_is_refused(self):
        (self.export / "unet/model.onnx").unlink()
        with self.assertRaisesRegex(Problem, "is no pipeline"):
            adopt.adopt(self.models, "mine", self.export)
        with self.assertRaisesRegex(Problem, "is no folder"):
            adopt.adopt(self.models, "mine", self.export / "missing")

    def test_fetching_what_only_has_a_template_says_how_to_bring_it(self):
        with self.assertRaisesRegex(Problem, "export it from https://example.com .* adopt mine FOLDER"):
            Catalogue(self.models).model("mine")

    def test_a_model_without_a_template_is_refused(self):
        with self.assertRaisesRegex(Problem, "copy a template"):
            adopt.adopt(self.models, "other", self.export)


if __name__ == "__main__":
    unittest.main()
