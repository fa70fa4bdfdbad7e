import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from common.config import REPO

from .onnx_net import message
from .sampling_encoder import convert_module, sampling

ENCODER = REPO / "models/tiny/sd-inpaint/vae_encoder/model.onnx"


class MomentsTest(unittest.TestCase):
    def setUp(self):
        self.moments = convert_module("moments")
        self.encoder = ENCODER.read_bytes()

    def nodes_of(self, data):
        graph = message(message(data)[7][0])
        return [self.moments.node(one) for one in graph[1]]

    def outputs_of(self, data):
        return [self.moments.name_of(value) for value in message(message(data)[7][0])[12]]

    def test_an_encoder_that_samples_returns_its_distribution(self):
        # In most exports the tensor has another name; this one is as long.
        renamed = self.encoder.replace(b"latent_parameters", b"quantized_moments")
        for encoder, names in ((self.encoder, []), (renamed, ["Identity"])):
            for operator in ("Slice", "Split"):
                with self.subTest(operator=operator, names=names):
                    sampled = sampling(encoder, operator)
                    self.assertEqual(self.outputs_of(sampled), ["latent_sample"])
                    made = self.moments.convert(sampled)
                    self.assertEqual(self.outputs_of(made), ["latent_parameters"])
                    # The rest is the unchanged encoder, and the node that renames its output.
                    before, after = self.nodes_of(encoder), self.nodes_of(made)
                    self.assertEqual([node.raw for node in after[: len(before)]], [node.raw for node in before])
                    self.assertEqual([node.operator for node in after[len(before) :]], names)
                    self.assertEqual(self.moments.convert(sampled), made, "the bytes differ between runs")

    def test_other_nets_are_refused_with_the_reason(self):
        swapped = sampling(self.encoder, "Split", reversed_halves=True)
        for data, reason in (
            (self.encoder, "it may not sample at all"),
            (b"", "is not an ONNX file"),
            (b"\x3a\xff\x01cut", "is cut off"),
            (swapped, "the mean is not the first half"),
        ):
            with self.subTest(reason), self.assertRaisesRegex((self.moments.Refusal, self.moments.Damaged), reason):
                self.moments.convert(data)

    def test_the_program_says_what_is_wrong_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-B", "-E", "-s", "-S", REPO / "models/convert/moments.py", ENCODER, Path(folder) / "out.onnx"]
            answer = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(answer.returncode, 1)
            self.assertRegex(answer.stderr, r"^models/convert/moments.py: the output latent_parameters is made by \w+, not by the Add .*\n$")
            self.assertFalse((Path(folder) / "out.onnx").exists())
