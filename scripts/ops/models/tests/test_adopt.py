import contextlib
import io
import json
import mmap
import os
import stat
import tempfile
import tomllib
import unittest
from pathlib import Path

from common.console import Problem
from ops.models import adopt, files, licensing, staging
from ops.models.catalog import Catalog

from .attention_net import AttentionNet
from .sampling_encoder import convert_module

TEMPLATE = """\
name = "mine"
task = "sd-inpaint"
licence = "Apache-2.0"
commercial_use = true
homepage = "https://example.com"

[canvas]
side = 64

[strength]
edit = 1.0
add = 1.0
"""
NETS = ("unet", "text_encoder", "vae_encoder", "vae_decoder")


def net(data=None, name="x"):
    """Returns an ONNX file, with a tensor in the file `data`."""
    protobuf = convert_module("protobuf")
    tensor = protobuf.number_field(2, 1) + protobuf.text_field(8, name)
    if data:
        for key, value in (("location", data), ("length", "4")):
            tensor += protobuf.bytes_field(13, protobuf.text_field(1, key) + protobuf.text_field(2, value))
    return protobuf.number_field(1, 8) + protobuf.bytes_field(7, protobuf.text_field(2, name) + protobuf.bytes_field(5, tensor))


class AdoptTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.models = Path(scratch.name) / "models"
        self.export = Path(scratch.name) / "export"
        self.write(
            {
                **{f"{part}/model.onnx": net() for part in NETS},
                "model_index.json": self.index(),
                "unet/model.onnx": net("model.onnx_data"),
                "unet/model.onnx_data": b"weights",
                "unet/config.json": b"{}",
                "tokenizer/vocab.json": b"{}",
                "scheduler/scheduler_config.json": b"{}",
                "README.md": b"words",
            }
        )
        (self.models / "templates").mkdir(parents=True)
        (self.models / "templates/mine.toml").write_text(TEMPLATE)

    def write(self, contents):
        for path, data in contents.items():
            (self.export / path).parent.mkdir(parents=True, exist_ok=True)
            (self.export / path).write_bytes(data)

    def index(self, **more):
        parts = {part: ["diffusers", "OnnxRuntimeModel"] for part in ("unet", "text_encoder", "tokenizer", "scheduler", "vae")}
        return json.dumps({"_class_name": "OnnxStableDiffusionInpaintPipeline", "safety_checker": [None, None], **parts, **more}).encode()

    def adopt(self, name="mine", folder=...):
        with contextlib.redirect_stderr(io.StringIO()) as output:
            adopt.adopt(self.models, name, self.export if folder is ... else folder)
        self.output = output.getvalue()

    def refusal(self, **more):
        with self.assertRaises(Problem) as caught:
            self.adopt(**more)
        return str(caught.exception)

    def adopted(self):
        return tomllib.loads((self.models / "mine/model.toml").read_text())

    def extras(self):
        return {extra["file"]: extra for extra in self.adopted()["extra"]}

    def assert_nothing_adopted(self):
        self.assertEqual([path.name for path in self.models.iterdir()], ["templates"])

    def test_a_folder_becomes_a_model_with_every_checksum(self):
        self.adopt()
        extras = self.extras()
        self.assertEqual(
            list(extras),
            [
                "model_index.json",
                "scheduler/scheduler_config.json",
                "text_encoder/model.onnx",
                "tokenizer/vocab.json",
                "unet/config.json",
                "unet/model.onnx",
                "unet/model.onnx_data",
                "vae_decoder/model.onnx",
                "vae_encoder/model.onnx",
            ],
        )
        made = extras["unet/model.onnx_data"]
        self.assertEqual((made["size_bytes"], made["sha256"]), (7, files.sha256_of(self.export / "unet/model.onnx_data")))
        self.assertEqual(self.adopted()["canvas"], {"side": 64})
        self.assertEqual(files.state(Catalog(self.models).model("mine")), "present")
        self.assertFalse((self.models / "mine/README.md").exists())

    def test_the_output_names_the_next_step(self):
        self.adopt()
        self.assertIn("then run `scripts/models bind mine add edit`, which checks it first.", self.output)

    def test_files_that_no_graph_uses_are_left_out_and_named(self):
        self.write({"unet/diffusion_pytorch_model.safetensors": b"for another program", "unet/weights.pb": b"old", "unet/model_fp16.onnx": net()})
        self.adopt()
        for path in ("unet/diffusion_pytorch_model.safetensors", "unet/weights.pb", "unet/model_fp16.onnx"):
            self.assertIn(f"left out {path}: no graph", self.output)
            self.assertFalse((self.models / "mine" / path).exists())

    def test_adopting_again_prunes_what_the_new_export_lacks_and_keeps_edits(self):
        self.adopt()
        manifest = self.models / "mine/model.toml"
        manifest.write_text(manifest.read_text().replace("side = 64", "side = 512"))
        for path in ("golden/cat.png", licensing.RECORD):
            (self.models / "mine" / path).parent.mkdir(exist_ok=True)
            (self.models / "mine" / path).write_text("mine")
        (self.export / "unet/model.onnx_data").unlink()
        self.write({"unet/model.onnx": net(name="another")})
        self.adopt()
        self.assertEqual(self.adopted()["canvas"], {"side": 512})
        self.assertNotIn("unet/model.onnx_data", self.extras())
        self.assertFalse((self.models / "mine/unet/model.onnx_data").exists(), "old data was kept")
        self.assertEqual((self.models / "mine/golden/cat.png").read_text(), "mine")
        self.assertEqual((self.models / "mine" / licensing.RECORD).read_text(), "mine")
        self.assertEqual(files.state(Catalog(self.models).model("mine")), "present")

    def test_a_file_that_a_worker_has_mapped_is_never_truncated(self):
        self.adopt()
        with (self.models / "mine/unet/model.onnx_data").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            self.write({"unet/model.onnx_data": b"w"})
            self.adopt()
            # Reading beyond the end of a truncated file would end this process with a bus error.
            self.assertEqual(mapped[:], b"weights")
        self.assertEqual((self.models / "mine/unet/model.onnx_data").read_bytes(), b"w")

    def test_a_failure_leaves_the_old_model_as_it_was(self):
        self.adopt()
        before = (self.models / "mine/model.toml").read_text()
        (self.export / "unet/model.onnx_data").unlink()
        self.assertIn("keeps tensors in 'model.onnx_data', but there is no", self.refusal())
        self.assertEqual((self.models / "mine/model.toml").read_text(), before)
        self.assertEqual(files.state(Catalog(self.models).model("mine")), "present")
        self.assertEqual([path.name for path in self.models.glob(".*")], [])

    def test_private_files_become_readable(self):
        for path in self.export.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        old = os.umask(0o077)
        self.addCleanup(os.umask, old)
        self.adopt()
        modes = {stat.S_IMODE(path.stat().st_mode) for path in [self.models / "mine", *(self.models / "mine").rglob("*")]}
        self.assertEqual(modes, {0o755, 0o644})

    def test_changed_files_in_place_are_pinned_again(self):
        self.adopt()
        (self.models / "mine/unet/config.json").write_text('{"in_channels": 9}')
        self.assertEqual(files.state(Catalog(self.models).model("mine")), "WRONG CHECKSUM")
        self.adopt(folder=None)
        self.assertEqual(files.state(Catalog(self.models).model("mine")), "present")

    def test_a_flat_layout_is_sorted_into_folders(self):
        self.export = self.export.with_name("flat")
        self.write(
            {
                "transformer_q8.onnx": net("transformer_q8-00000.data"),
                "transformer_q8-00000.data": b"weights",
                "text_encoder.onnx": net("text_encoder.onnx_data"),
                "text_encoder.onnx_data": b"words",
                "text_encoder_2.onnx": net(name="second"),
                "vae_encoder.onnx": net(),
                "vae_decoder.onnx": net(),
                "scheduler_config.json": b"{}",
                "tokenizer/tokenizer.json": b"{}",
            }
        )
        self.adopt()
        self.assertEqual(
            set(self.extras()),
            {
                "scheduler_config.json",
                "text_encoder/model.onnx",
                "text_encoder/text_encoder.onnx_data",
                "text_encoder_2/model.onnx",
                "tokenizer/tokenizer.json",
                "transformer/model.onnx",
                "transformer/transformer_q8-00000.data",
                "vae_decoder/model.onnx",
                "vae_encoder/model.onnx",
            },
        )
        self.write({"transformer_q4.onnx": net()})
        self.assertIn("several files for transformer: transformer_q4.onnx, transformer_q8.onnx", self.refusal())

    def test_every_part_of_sdxl_is_listed(self):
        self.write({"text_encoder_2/model.onnx": net("model.onnx_data"), "text_encoder_2/model.onnx_data": b"w", "tokenizer_2/vocab.json": b"{}"})
        self.write({"model_index.json": self.index(text_encoder_2=["t", "C"], tokenizer_2=["t", "C"], force_zeros_for_empty_prompt=True)})
        self.adopt()
        for path in ("text_encoder_2/model.onnx", "text_encoder_2/model.onnx_data", "tokenizer_2/vocab.json"):
            self.assertIn(path, self.extras())
        self.assertIn("this is an SDXL pipeline, made for sides of 1024 pixels: set canvas.side", self.output)

    def test_a_part_that_is_missing_or_unknown_is_refused_before_anything_is_copied(self):
        for index, message in (
            (self.index(text_encoder_2=["t", "C"]), "has no text_encoder_2/model.onnx, but model_index.json names text_encoder_2"),
            (self.index(tokenizer_2=["t", "C"]), "has no tokenizer_2/, but model_index.json names tokenizer_2"),
            (self.index(controlnet=["d", "C"]), "names the component controlnet, which no pipeline that Retouch supports has"),
            (b"{", "is not valid JSON"),
        ):
            with self.subTest(message):
                self.write({"model_index.json": index})
                self.assertIn(message, self.refusal())
                self.assert_nothing_adopted()

    def test_settings_that_stable_diffusion_cannot_do_without_are_named(self):
        self.write({"text_encoder_2/model.onnx": net(), "tokenizer_2/vocab.json": b"{}", "model_index.json": b"{}"})
        for path in ("model_index.json", "scheduler/scheduler_config.json", "tokenizer/vocab.json", "tokenizer_2/vocab.json"):
            with self.subTest(path):
                data = (self.export / path).read_bytes()
                (self.export / path).unlink()
                self.assertIn(f"has no {path.removesuffix('vocab.json')}, but a pipeline with a unet needs it", self.refusal())
                self.assert_nothing_adopted()
                self.write({path: data})

    def test_what_is_not_an_export_is_refused_before_anything_is_copied(self):
        original = self.export.with_name("original")
        (original / "unet").mkdir(parents=True)
        (original / "unet/diffusion_pytorch_model.safetensors").write_bytes(b"weights")
        empty = self.export.with_name("empty")
        empty.mkdir()
        for folder, message in (
            (original, "holds weights that were never exported to ONNX"),
            (empty, "has neither unet/model.onnx nor transformer/model.onnx"),
            (self.export / "missing", "is not a folder"),
            (None, "Give the folder of the exported pipeline"),
        ):
            with self.subTest(message):
                self.assertIn(message, self.refusal(folder=folder))
                self.assert_nothing_adopted()
        # An older adoption does not make up for what the folder lacks.
        self.adopt()
        self.assertIn("never exported", self.refusal(folder=original))

    def test_damaged_files_are_named_with_the_next_step(self):
        for path, data, message in (
            (
                "vae_encoder/model.onnx",
                b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
                "is only a Git LFS pointer. Run `git lfs pull`",
            ),
            ("vae_encoder/model.onnx", b"", "vae_encoder/model.onnx cannot be used: it is not an ONNX file: it is empty"),
            ("vae_encoder/model.onnx", b"words", "is not an ONNX file"),
        ):
            with self.subTest(message):
                self.write({path: data})
                self.assertIn(message, self.refusal())
                self.assert_nothing_adopted()
        (self.export / "vae_encoder/model.onnx").unlink()
        (self.export / "vae_encoder/model.onnx").symlink_to("gone.onnx")
        self.assertIn("vae_encoder/model.onnx is a link to gone.onnx, which does not exist", self.refusal())

    def test_a_model_without_a_template_is_refused_before_anything_is_copied(self):
        self.assertIn("Copy a template", self.refusal(name="other"))
        (self.models / "templates/other.toml").write_text(TEMPLATE)
        self.assertIn("name is 'mine'; it must be 'other'", self.refusal(name="other"))
        self.assert_nothing_adopted()

    def test_the_unet_is_converted_on_the_way_and_left_as_it_is_in_place(self):
        unet = AttentionNet().to_bytes()
        self.write({"unet/model.onnx": unet})
        self.adopt()
        made = (self.models / "mine/unet/model.onnx").read_bytes()
        self.assertIn(b"MultiHeadAttention", made)
        self.assertEqual(self.extras()["unet/model.onnx"]["size_bytes"], len(made))
        self.assertEqual((self.export / "unet/model.onnx").read_bytes(), unet, "the export was changed")
        (self.models / "mine/unet/model.onnx").write_bytes(unet)
        self.adopt(folder=None)
        self.assertEqual((self.models / "mine/unet/model.onnx").read_bytes(), unet)

    def test_reference_vectors_come_along_as_the_manifest_names_them(self):
        stated = TEMPLATE.replace("[canvas]", 'reference = "vectors"\n\n[canvas]')
        (self.models / "templates/mine.toml").write_text(stated)
        self.assertIn("states reference = 'vectors', but there is no", self.refusal())
        self.assert_nothing_adopted()
        self.write({"vectors/meta.json": b"{}"})
        self.adopt()
        self.assertEqual((self.models / "mine/vectors/meta.json").read_text(), "{}")
        # An export without vectors keeps the old ones, as it keeps golden images.
        (self.export / "vectors/meta.json").unlink()
        (self.export / "vectors").rmdir()
        self.adopt()
        self.assertTrue((self.models / "mine/vectors/meta.json").is_file())
        (self.models / "templates/other.toml").write_text(stated.replace('"mine"', '"other"').replace('"vectors"', '"../vectors"'))
        self.assertIn("reference is '../vectors'; it must be a relative path", self.refusal(name="other"))

    def test_fields_that_programs_would_replace_are_refused_by_name(self):
        (self.models / "templates/mine.toml").write_text(TEMPLATE.replace("[canvas]", '[export]\nrepository = "a/b"\n\n[canvas]'))
        self.assertIn("move canvas and strength above '[export]', because programs replace everything from there on", self.refusal())
        self.assert_nothing_adopted()

    def test_an_adoption_replaces_the_source_of_a_fetched_model(self):
        text = TEMPLATE + '\n# Written by `scripts/models fetch`; you may edit everything above.\n[source]\nregistry = "hub"\n'
        (self.models / "mine").mkdir()
        (self.models / "mine/model.toml").write_text(text)
        self.adopt()
        self.assertNotIn("source", self.adopted())
        self.assertIn("left out [source]: these files are not those that it names", self.output)
        self.adopt()
        self.assertNotIn("[source]", self.output)

    def test_fetching_a_model_that_only_has_a_template_says_how_to_adopt_it(self):
        with self.assertRaisesRegex(Problem, "Export it from https://example.com .* adopt mine FOLDER"):
            Catalog(self.models).model("mine")

    def test_an_interrupted_swap_is_undone(self):
        self.adopt()
        (self.models / "mine").rename(staging.aside(self.models, "mine", "old"))
        self.adopt(folder=None)
        self.assertEqual(files.state(Catalog(self.models).model("mine")), "present")


if __name__ == "__main__":
    unittest.main()
