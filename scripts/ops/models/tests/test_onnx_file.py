import hashlib
import struct
import unittest

from .test_ncnn import converters

with converters():
    from onnx_file import FLOAT, HALF, INT64, Graph


class OnnxFileTest(unittest.TestCase):
    def test_the_output_equals_that_of_the_onnx_package(self):
        graph = Graph("g")
        graph.input("x", [1, 3, "height", "width"])
        graph.constant("half", [1, 3, 1, 1], struct.pack("<3e", 1, -2, 0.5), HALF)
        graph.constant("scales", [4], [1, 1, 2, 2])
        graph.constant("count", [], [300], INT64)
        graph.node("Cast", ["half"], "full", to=FLOAT)
        graph.node("Conv", ["x", "full"], "made", pads=[1, 1, 1, 1])
        graph.node("Resize", ["made", "", "scales"], "large", mode="nearest")
        graph.node("LeakyRelu", ["large"], "y", alpha=0.2)
        graph.output("y", [1, 1, "2*height", "300"])
        # From onnx 1.23.2: helper.make_model(…).SerializeToString(deterministic=True).
        known = "5d71a641923c0274d5d7846a6c1c3f661dc353b0283fbf0ec5c841155e0d6264"
        self.assertEqual(hashlib.sha256(graph.to_bytes()).hexdigest(), known)

    def test_a_tensor_is_defined_once_and_before_its_first_use(self):
        graph = Graph("g")
        graph.input("x", [1])
        with self.assertRaisesRegex(ValueError, "there are two tensors named x"):
            graph.node("Relu", ["x"], "x")
        with self.assertRaisesRegex(ValueError, "y is used before it is made"):
            graph.node("Relu", ["y"], "z")

    def test_the_size_of_a_constant_matches_its_shape(self):
        with self.assertRaisesRegex(ValueError, r"w has 8 bytes, which is not its shape \[3\]"):
            Graph("g").constant("w", [3], [1.0, 2.0])
