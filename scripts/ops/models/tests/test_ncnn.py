import contextlib
import hashlib
import importlib
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from common.config import REPO

from .ncnn_net import PARAM, SHALLOW, Numbers, compute, picture
from .onnx_net import OnnxNet

FOLDER = REPO / "models" / "convert"


@contextlib.contextmanager
def converters():
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("from_ncnn")
    finally:
        sys.path.remove(str(FOLDER))


with converters() as ncnn:
    convert, Refusal = ncnn.convert, ncnn.Refusal


class NcnnTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.numbers = Numbers()
        cls.file = convert(PARAM, cls.numbers.bin)
        cls.net = OnnxNet(cls.file)

    def refusal(self, param=PARAM, weights=None):
        with self.assertRaises(Refusal) as caught:
            convert(param, self.numbers.bin if weights is None else weights)
        return str(caught.exception)

    def test_the_converted_net_computes_the_same(self):
        for width, height in ((5, 4), (1, 1), (3, 7)):
            data = picture(width, height)
            expected = compute(self.numbers, data)
            made = self.net.compute(data)
            self.assertEqual((len(made), len(made[0]), len(made[0][0])), (3, 2 * height, 2 * width))
            for planes in zip(made, expected):
                for rows in zip(*planes):
                    for value, right in zip(*rows):
                        self.assertAlmostEqual(value, right, places=5)

    def test_the_output_is_reproducible(self):
        known = "601ff9dc3ff007a419af8fcadb7f52b05b0f017f6176f7498498240ff5e150de"
        self.assertEqual(hashlib.sha256(self.file).hexdigest(), known, "changing the converter changes the checksum of every converted model")

    def test_inputs_and_outputs_have_any_size(self):
        self.assertEqual((self.net.version, self.net.opset), (8, 17))
        self.assertEqual(self.net.inputs, [("input", ["batch", 3, "height", "width"])])
        self.assertEqual(self.net.outputs, [("output", ["batch", 3, "2*height", "2*width"])])

    def test_half_floats_stay_half_floats(self):
        weights = self.net.constants["fifth.weights.half"]
        self.assertEqual((weights.element, weights.shape, weights.numbers()), (10, [12, 5, 3, 3], self.numbers.fifth[0]))

    def test_no_operator_breaks_the_blocked_layout_of_channels(self):
        self.assertFalse({"PRelu", "Split"} & set(self.net.operators()))
        products = [node for node in self.net.nodes if node.operator == "Mul"]
        self.assertEqual([node.inputs[0] for node in products], ["third.weights"], "only constants are multiplied")

    def test_an_unsupported_operator_is_reported(self):
        self.assertEqual(self.refusal(PARAM.replace("PixelShuffle  larger", "Reorg  larger")), "Reorg larger: this operator is not understood")

    def test_an_unsupported_parameter_is_reported(self):
        for line, changed, message in (
            ("9=1\n", "9=1 18=5\n", "Convolution fourth: parameter 18 is not understood"),
            ("9=1\n", "9=5\n", "Convolution fourth: activation 5 with 0 parameters"),
            ("9=1\n", "3=2\n", "Convolution fourth: stride (parameter 3) is 2; only 1 is understood"),
            ("0=12 1=3 4=1", "0=12 1=3 4=0", "Convolution fifth: padding 0 does not keep the size"),
            ("0=12 1=3", "0=11 1=3", "Convolution fifth: 540 weights are not 11 x 5 x 3 x 3"),
            ("g 0=0", "g 0=1", "Concat joined: axis (parameter 0) is 1"),
            ("m 0=0", "m 0=2", "BinaryOp result: operation (parameter 0) is 2"),
            ("e 0=1", "e 0=2", "Eltwise sum: operation (parameter 0) is 2"),
            ("2,2.000000e-01,1.000000e+00", "1,1.000000e+00", "Eltwise sum: 1 factors for 2 inputs"),
            ("k 0=2", "k 0=2 1=1", "PixelShuffle larger: order (parameter 1) is 1"),
            ("l 0=1", "l 0=2", "Interp base: resize type (parameter 0) is 2"),
            ("2=2.000000e+00", "2=3.000000e+00", "Interp base: scales 2.0 and 3.0"),
            ("1=2.000000e+00 2=2.000000e+00", "1=4.000000e+00 2=4.000000e+00", "BinaryOp result: its inputs are of different sizes"),
            ("data    0 1 data", "data    0 1 data 0=64", "Input data: parameter 0 is not understood"),
            (" 6=16\n", "\n", "Convolution third: parameter 6 is missing"),
        ):
            with self.subTest(message):
                # With one channel fewer, there is one bias fewer.
                weights = self.numbers.bin[:-4] if "0=11" in changed else self.numbers.bin
                self.assertIn(message, self.refusal(PARAM.replace(line, changed), weights))

    def test_there_must_be_one_slope_per_channel(self):
        slopes = struct.pack("<5f", *SHALLOW)
        fewer = self.numbers.bin.replace(slopes, slopes[4:])
        self.assertEqual(self.refusal(PARAM.replace("i 0=5", "i 0=4"), fewer), "PReLU shallow: 4 slopes for 5 channels")
        more = self.numbers.bin.replace(slopes, slopes + struct.pack("<f", 2))
        self.assertEqual(self.refusal(PARAM.replace("i 0=5", "i 0=6"), more), "PReLU shallow: 6 slopes for 5 channels")

    def test_an_invalid_param_file_is_rejected(self):
        self.assertIn("does not start with 7767517", self.refusal("7767518\n"))
        self.assertIn("not a line of a .param: Convolution x", self.refusal("7767517\n1 1\nConvolution x\n"))
        self.assertIn("has 17 layers and 22 blobs", self.refusal(PARAM.replace("17 22", "17 21")))

    def test_all_weights_must_be_used(self):
        self.assertIn("the .bin has 4 bytes more than the .param describes", self.refusal(weights=self.numbers.bin + bytes(4)))
        self.assertIn("fifth: the .bin ends in the middle of its weights", self.refusal(weights=self.numbers.bin[:-4]))

    def test_weights_of_an_unsupported_type_are_rejected(self):
        weights = struct.pack("<I", 0x000D4B38) + self.numbers.bin[4:]
        self.assertEqual(self.refusal(weights=weights), "Convolution first: weights of type 0x000d4b38 are not understood")

    def test_a_steep_slope_needs_convolutions_around_it(self):
        weights = self.numbers.bin.replace(struct.pack("<5f", *SHALLOW), struct.pack("<5f", *SHALLOW[:4], 1.5))
        self.assertIn("PReLU shallow: a slope above 1", self.refusal(weights=weights))

    def test_a_net_has_one_output(self):
        without_end = PARAM.replace("17 22", "16 21").replace("BinaryOp      result  2 1 k l m 0=0\n", "")
        self.assertEqual(self.refusal(without_end), "the net must have exactly one output; it has: k, l")

    def test_the_program_reports_errors(self):
        with tempfile.TemporaryDirectory() as name:
            param, weights, target = (Path(name) / part for part in ("net.param", "net.bin", "net.onnx"))
            param.write_text(PARAM)
            weights.write_bytes(self.numbers.bin)
            command = [sys.executable, "-B", "-E", "-s", "-S", FOLDER / "from_ncnn.py", param, weights, target]
            self.assertEqual(subprocess.run(command).returncode, 0)
            self.assertEqual(target.read_bytes(), self.file)
            weights.write_bytes(b"")
            answer = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            self.assertEqual(answer.returncode, 1)
            self.assertIn("Convolution first: the .bin ends", answer.stderr)
