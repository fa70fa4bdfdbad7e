import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from common.config import REPO

from .attention_net import HEAD_SIZE, HEADS, WIDTH, AttentionNet
from .onnx_net import message
from .sampling_encoder import convert_module

PROGRAM = REPO / "models/convert/attention.py"
UNET = REPO / "models/tiny/sd-inpaint/unet/model.onnx"


class AttentionTest(unittest.TestCase):
    def setUp(self):
        self.attention = convert_module("attention")

    def converted(self, data):
        parts = []
        count = self.attention.convert(data, parts.append)
        return count, b"".join(parts)

    def nodes_of(self, data):
        return [self.attention.node(one) for one in message(message(data)[7][0])[1]]

    def settings_of(self, node):
        attributes = [message(data) for data in message(message(node.raw)[1][0])[5]]
        return {one[1][0].decode(): one.get(2, one.get(3))[0] for one in attributes}

    def test_both_known_patterns_become_one_node(self):
        default = HEAD_SIZE**-0.5
        for computes_sizes in (True, False):
            for scale, stated in ((None, {}), (default, {}), (default * 1.0004, {}), (0.25, {"scale": 0.25})):
                with self.subTest(computes_sizes=computes_sizes, scale=scale):
                    net = AttentionNet(computes_sizes, scale).to_bytes()
                    count, made = self.converted(net)
                    self.assertEqual(count, 1)
                    nodes = self.nodes_of(made)
                    self.assertEqual([one.operator for one in nodes], ["MatMul", "MatMul", "MatMul", "MultiHeadAttention", "Identity"])
                    fused = nodes[3]
                    self.assertEqual((fused.inputs, fused.outputs, fused.domain), (("q", "k", "v"), ("joined",), "com.microsoft"))
                    self.assertEqual(self.settings_of(fused), {"num_heads": HEADS, **stated})
                    self.assertEqual(self.converted(net)[1], made, "the bytes differ between runs")

    def test_heads_may_be_part_of_the_batch(self):
        count, made = self.converted(AttentionNet(scale=0.25, folds=True).to_bytes())
        self.assertEqual(count, 1)
        nodes = self.nodes_of(made)
        self.assertEqual([one.operator for one in nodes], ["MatMul", "MatMul", "MatMul", "MultiHeadAttention", "Identity"])
        self.assertEqual(self.settings_of(nodes[3]), {"num_heads": HEADS, "scale": 0.25})

    def test_a_head_size_may_be_a_quotient_that_is_rounded_down(self):
        count, made = self.converted(AttentionNet(divides=True).to_bytes())
        self.assertEqual(count, 1)
        self.assertEqual([one.operator for one in self.nodes_of(made)], ["MatMul", "MatMul", "MatMul", "MultiHeadAttention", "Identity"])

    def test_only_what_is_still_used_remains(self):
        net = AttentionNet().to_bytes()
        _, made = self.converted(net)
        before, after = (message(message(data)[7][0]) for data in (net, made))
        self.assertEqual([message(tensor)[8][0] for tensor in after[5]], [b"q_weights", b"k_weights", b"v_weights"])
        for field in (2, 11, 12):
            self.assertEqual(after[field], before[field])
        imports = [{field: values[0] for field, values in message(one).items()} for one in message(made)[8]]
        self.assertEqual(imports, [{1: b"", 2: 17}, {1: b"com.microsoft", 2: 1}])

    def test_an_attention_that_is_converted_stays_as_it_is(self):
        _, made = self.converted(AttentionNet().to_bytes())
        self.assertEqual(self.converted(made), (0, made))

    def test_whatever_is_not_certain_stays_untouched(self):
        for change in (
            {"mask": True},
            {"perm": (0, 2, 3, 1)},
            {"columns": (0, 2, 1, 3)},
            {"axis": 1},
            {"shows_scores": True},
            {"scale": -0.5},
            {"folds": True, "scale": 0.5, "axis": 1},
            {"folds": True, "scale": 0.5, "mask": True},
            {"folds": True, "scale": 0.5, "unfolded": 2 * HEADS},
            # A picture instead of a sequence.
            {"rank": 4},
            # Heads that cut across the sequence.
            {"split": [-1, HEAD_SIZE, WIDTH]},
            {"split": [7, -1, HEAD_SIZE]},
            {"split": [-1, HEADS, HEAD_SIZE, 1], "perm": (0, 2, 1, 3)},
            # A text that all pictures of a batch share.
            {"batch_of_context": 1, "computes_sizes": False},
        ):
            with self.subTest(change):
                net = AttentionNet(**change).to_bytes()
                self.assertEqual(self.converted(net), (0, net))

    def test_a_unet_of_an_export_loses_the_nodes_of_every_attention(self):
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "unet.onnx"
            answer = self.run_program(UNET, made)
            self.assertEqual((answer.returncode, answer.stdout), (0, "attentions that are now one node each: 8\n"), answer.stderr)
            operators = [one.operator for one in self.nodes_of(made.read_bytes())]
            self.assertEqual((operators.count("MultiHeadAttention"), operators.count("Softmax")), (8, 0))
            self.assertLess(len(operators), 800)
            # In place, too.
            once = made.read_bytes()
            self.assertEqual(self.run_program(made, made).stdout, "attentions that are now one node each: 0\n")
            self.assertEqual(made.read_bytes(), once)
            self.assertEqual(list(Path(folder).iterdir()), [made])

    def test_the_program_says_what_is_wrong_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.onnx", Path(folder) / "out.onnx"
            for data, reason in ((b"", "the file is empty"), (b"\x08\x08", "is not an ONNX file"), (b"\x3a\xff\x01cut", "is cut off")):
                source.write_bytes(data)
                answer = self.run_program(source, target)
                self.assertEqual(answer.returncode, 1)
                self.assertRegex(answer.stderr, rf"^models/convert/attention.py: .*{reason}.*\n$")
                self.assertEqual(list(Path(folder).iterdir()), [source])

    def run_program(self, source, target):
        command = [sys.executable, "-B", "-E", "-s", "-S", PROGRAM, source, target]
        return subprocess.run([str(part) for part in command], capture_output=True, text=True)


if __name__ == "__main__":
    unittest.main()
