#!/usr/bin/env python3
"""Converts a super-resolution net from ncnn to ONNX.

    models/convert/from_ncnn.py NET.param NET.bin OUT.onnx

Supports the operators of Real-ESRGAN's nets and refuses all others by name, because skipping an operator or a parameter
would silently change the results. The same input gives the same bytes on every machine, so a checksum identifies the
result. Needs only Python 3.11.

The net takes any RGB picture, f32 [batch, 3, height, width] in 0..1, and has one output. Half floats stay half floats in the
file; loading converts them to floats once. Three operations are rewritten for speed:

* PReLU. On a CPU, ONNX Runtime keeps channels in blocks for convolutions, and it has no PReLU for blocks: it would convert
  the layout twice around each one. With slope s, PReLU(x) = x + relu((s - 1) x) if s <= 1, and a scale per channel, a ReLU
  and a sum all work on blocks. Channels with s > 1 are negated by the convolution before (its weights times -1: with y = -x,
  PReLU(x) = -(y + relu((s - 1) y))) and negated again by the convolutions after; both are exact.
* A sum of weighted inputs. If an input comes from a convolution, its weights absorb the factor, in f32 when the model loads.
* A factor that no convolution can absorb becomes a scale per channel, which works on blocks, unlike a product.

A scale per channel is written as a BatchNormalization that does nothing else.
"""

import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

from onnx_file import FLOAT, HALF, Graph

MAGIC = "7767517"
FLOAT_WEIGHTS = 0
HALF_WEIGHTS = 0x01306B47
BYTES = {FLOAT: 4, HALF: 2}


class Refusal(Exception):
    """The net has an element that this converter does not support; the text names it."""


@dataclass
class Layer:
    kind: str
    name: str
    inputs: list
    outputs: list
    parameters: dict
    # Convolution: the bytes of the file, [out, in, rows, columns]; PReLU: its slopes.
    weights: bytearray = None
    element: int = FLOAT
    bias: bytearray = None
    slopes: tuple = ()
    used: set = field(default_factory=set)

    def take(self, number, default=None):
        """Returns a parameter's value; without a default, the parameter is required."""
        self.used.add(number)
        value = self.parameters.get(number, default)
        if value is None:
            raise self.refused(f"parameter {number} is missing")
        return value

    def must_be(self, number, expected, meaning):
        if self.take(number, expected) != expected:
            raise self.refused(f"{meaning} (parameter {number}) is {self.parameters[number]}; only {expected} is understood")

    def refused(self, problem):
        return Refusal(f"{self.kind} {self.name}: {problem}")

    @property
    def output(self):
        return self.outputs[0]


@dataclass(frozen=True)
class Shape:
    channels: int
    # Multiple of the input's width and height.
    scale: int


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: models/convert/from_ncnn.py NET.param NET.bin OUT.onnx")
    param, weights, target = map(Path, sys.argv[1:])
    try:
        target.write_bytes(convert(param.read_text(), weights.read_bytes()))
    except (Refusal, OSError, UnicodeDecodeError) as problem:
        sys.exit(f"models/convert/from_ncnn.py: {problem}")


def convert(param, weights):
    """Returns the ONNX file, from the text of a .param and the bytes of a .bin."""
    layers = without_splits(read_layers(param))
    read_weights(layers, weights)
    return Writer(Net(layers)).to_bytes()


def read_layers(text):
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines or lines[0] != [MAGIC]:
        raise Refusal(f"the .param does not start with {MAGIC}: it is not a text param file of ncnn")
    layers = [read_layer(words) for words in lines[2:]]
    blobs = {blob for layer in layers for blob in layer.outputs}
    if lines[1:2] != [[str(len(layers)), str(len(blobs))]]:
        raise Refusal(f"the .param has {len(layers)} layers and {len(blobs)} blobs; its second line says otherwise")
    return layers


def read_layer(words):
    try:
        kind, name, inputs, outputs = words[0], words[1], int(words[2]), int(words[3])
        blobs, settings = words[4 : 4 + inputs + outputs], words[4 + inputs + outputs :]
        parameters = dict(read_parameter(setting) for setting in settings)
    except (IndexError, ValueError):
        raise Refusal(f"not a line of a .param: {' '.join(words)}") from None
    layer = Layer(kind, name, blobs[:inputs], blobs[inputs:], parameters)
    if kind not in OPERATORS:
        raise layer.refused("this operator is not understood")
    if len(parameters) != len(settings):
        raise layer.refused("a parameter is given twice")
    return layer


def read_parameter(setting):
    """Reads `3=1.5` or, for the list in parameter 3, `-23303=2,1.5,2.5`: the list's length and its members."""
    number, value = setting.split("=")
    number = int(number)
    if number > -23300:
        return number, read_number(value)
    length, *members = value.split(",")
    if int(length) != len(members):
        raise ValueError
    return -23300 - number, tuple(map(read_number, members))


def read_number(text):
    return float(text) if "." in text or "e" in text else int(text)


def without_splits(layers):
    """Removes Split layers: in ncnn a blob is used once and Split copies it; in ONNX a tensor may be used many times."""
    originals = {}
    kept = []
    for layer in layers:
        layer.inputs = [originals.get(blob, blob) for blob in layer.inputs]
        if layer.kind == "Split":
            check_arguments(layer)
            originals.update(dict.fromkeys(layer.outputs, layer.inputs[0]))
        else:
            kept.append(layer)
    return kept


def check_arguments(layer):
    least, most = OPERATORS[layer.kind]
    if not least <= len(layer.inputs) <= most or (layer.kind != "Split" and len(layer.outputs) != 1):
        raise layer.refused(f"{len(layer.inputs)} inputs and {len(layer.outputs)} outputs are not understood")
    if unknown := sorted(layer.parameters.keys() - layer.used):
        raise layer.refused(f"parameter {unknown[0]} is not understood")


# The least and the most inputs of each operator.
OPERATORS = {
    "Input": (0, 0),
    "Split": (1, 1),
    "Convolution": (1, 1),
    "PReLU": (1, 1),
    "Concat": (1, 64),
    "Eltwise": (2, 64),
    "BinaryOp": (2, 2),
    "PixelShuffle": (1, 1),
    "Interp": (1, 1),
}


def read_weights(layers, data):
    """Reads the .bin: the weights of all layers in order, without any labels."""
    position = 0

    def take(layer, size):
        nonlocal position
        part = bytearray(data[position : position + size])
        if len(part) != size:
            raise layer.refused(f"the .bin ends in the middle of its weights, {len(data)} bytes from its start")
        position += size
        return part

    for layer in layers:
        if layer.kind == "Convolution":
            count = layer.take(6)
            (tag,) = struct.unpack("<I", take(layer, 4))
            if tag not in (FLOAT_WEIGHTS, HALF_WEIGHTS):
                raise layer.refused(f"weights of type {tag:#010x} are not understood")
            layer.element = HALF if tag == HALF_WEIGHTS else FLOAT
            layer.weights = take(layer, count * BYTES[layer.element])
            # The next part starts at a multiple of four bytes.
            take(layer, -len(layer.weights) % 4)
            if layer.take(5, 0):
                layer.bias = take(layer, 4 * layer.take(0))
        elif layer.kind == "PReLU":
            count = layer.take(0)
            layer.slopes = struct.unpack(f"<{count}f", take(layer, 4 * count))
    if position != len(data):
        raise Refusal(f"the .bin has {len(data) - position} bytes more than the .param describes")


class Net:
    """The layers, and the makers and users of each blob."""

    def __init__(self, layers):
        self.layers = layers
        self.makers = {layer.output: layer for layer in layers}
        self.users = {blob: [layer for layer in layers if blob in layer.inputs] for blob in self.makers}
        if len([layer for layer in layers if layer.kind == "Input"]) != 1:
            raise Refusal("the net must have exactly one Input")
        results = [layer.output for layer in layers if not self.users[layer.output]]
        if len(results) != 1:
            raise Refusal(f"the net must have exactly one output; it has: {', '.join(results)}")
        self.result = results[0]

    def plain_convolution_for(self, user, blob):
        """Returns the convolution that makes a blob, if it has no activation and no other layer uses the blob."""
        maker = self.makers[blob]
        is_plain = maker.kind == "Convolution" and maker.take(9, 0) == 0
        return maker if is_plain and self.users[blob] == [user] and user.inputs.count(blob) == 1 else None

    def factor_for(self, convolution):
        """Returns the factor that the only user of a convolution applies to its output."""
        for user in self.users[convolution.output]:
            if user.kind == "Eltwise" and self.plain_convolution_for(user, convolution.output):
                return factors_of(user)[user.inputs.index(convolution.output)]
        return 1.0

    def turned_outputs(self, convolution):
        """Returns the channels that the PReLU after a convolution needs negated."""
        for user in self.users[convolution.output]:
            is_fitting = user.kind == "PReLU" and len(user.slopes) == convolution.take(0)
            if is_fitting and self.plain_convolution_for(user, convolution.output):
                return steep_channels(user)
        return []

    def turned_inputs(self, convolution):
        """Returns the channels that arrive negated."""
        maker = self.makers[convolution.inputs[0]]
        return steep_channels(maker) if maker.kind == "PReLU" else []


def factors_of(eltwise):
    factors = eltwise.take(1, (1.0,) * len(eltwise.inputs))
    if len(factors) != len(eltwise.inputs):
        raise eltwise.refused(f"{len(factors)} factors for {len(eltwise.inputs)} inputs")
    return factors


def steep_channels(prelu):
    return [channel for channel, slope in enumerate(prelu.slopes) if slope > 1]


class Writer:
    """Writes the layers in order. The keys of `names` and `shapes` are the blobs' names in ncnn."""

    def __init__(self, net):
        self.net = net
        self.graph = Graph("net")
        self.names = {}
        self.shapes = {}

    def to_bytes(self):
        for layer in self.net.layers:
            self.write(layer)
        shape = self.shapes[self.net.result]
        times = "" if shape.scale == 1 else f"{shape.scale}*"
        self.graph.output("output", ["batch", shape.channels, f"{times}height", f"{times}width"])
        return self.graph.to_bytes()

    def write(self, layer):
        if missing := [blob for blob in layer.inputs if blob not in self.shapes]:
            raise layer.refused(f"its input {missing[0]} is made by no layer before it")
        name = "output" if layer.output == self.net.result else layer.output
        self.names[layer.output] = "input" if layer.kind == "Input" else name
        write = getattr(self, layer.kind.lower())
        inputs = [self.names[blob] for blob in layer.inputs]
        self.shapes[layer.output] = write(layer, inputs, [self.shapes[blob] for blob in layer.inputs], name)
        check_arguments(layer)

    def input(self, layer, inputs, shapes, name):
        self.graph.input("input", ["batch", 3, "height", "width"])
        return Shape(3, 1)

    def convolution(self, layer, inputs, shapes, name):
        channels, side, padding = layer.take(0), layer.take(1), layer.take(4, 0)
        kernel = [channels, shapes[0].channels, side, side]
        layer.must_be(2, 1, "dilation")
        layer.must_be(3, 1, "stride")
        if layer.take(6) != channels * shapes[0].channels * side * side:
            raise layer.refused(f"{layer.take(6)} weights are not {' x '.join(map(str, kernel))}")
        if 2 * padding + 1 != side:
            raise layer.refused(f"padding {padding} does not keep the size of what a kernel of {side} is laid over")
        for channel in self.net.turned_outputs(layer):
            turn_output(layer, channel)
        for channel in self.net.turned_inputs(layer):
            turn_input(layer, channel)
        factor = self.net.factor_for(layer)
        weights = self.scaled(self.weights(layer, kernel), factor)
        bias = []
        if layer.bias:
            bias = [self.scaled(self.graph.constant(f"{layer.name}.bias", [channels], layer.bias), factor)]
        activation = self.activation(layer)
        made = f"{name}.linear" if activation else name
        self.graph.node("Conv", [*inputs, weights, *bias], made, kernel_shape=[side, side], pads=[padding] * 4)
        if activation:
            operator, attributes = activation
            self.graph.node(operator, [made], name, **attributes)
        return Shape(channels, shapes[0].scale)

    def weights(self, layer, kernel):
        name = f"{layer.name}.weights"
        if layer.element == FLOAT:
            return self.graph.constant(name, kernel, layer.weights)
        half = self.graph.constant(f"{name}.half", kernel, layer.weights, HALF)
        return self.graph.node("Cast", [half], name, to=FLOAT)

    def scaled(self, constant, factor):
        """Returns a constant times a factor. ONNX Runtime computes it once, when it loads the model."""
        if factor == 1.0:
            return constant
        by = self.graph.constant(f"{constant}.factor", [], [factor])
        return self.graph.node("Mul", [constant, by], f"{constant}.scaled")

    def activation(self, layer):
        kind = layer.take(9, 0)
        settings = layer.take(10, ())
        match kind, len(settings):
            case 0, 0:
                return None
            case 1, 0:
                return "Relu", {}
            case 2, 1:
                return "LeakyRelu", {"alpha": float(settings[0])}
        raise layer.refused(f"activation {kind} with {len(settings)} parameters is not understood")

    def prelu(self, layer, inputs, shapes, name):
        channels = shapes[0].channels
        if layer.take(0) != channels:
            raise layer.refused(f"{layer.take(0)} slopes for {channels} channels")
        if steep_channels(layer):
            before = self.net.plain_convolution_for(layer, layer.inputs[0])
            if before is None or any(user.kind != "Convolution" for user in self.net.users[layer.output]):
                raise layer.refused("a slope above 1 is understood only between convolutions without activation")
        scaled = self.scale_channels(inputs[0], [slope - 1 for slope in layer.slopes], f"{name}.scaled")
        positive = self.graph.node("Relu", [scaled], f"{name}.positive")
        self.graph.node("Add", [inputs[0], positive], name)
        return shapes[0]

    def scale_channels(self, tensor, factors, name):
        channels = len(factors)
        by = self.graph.constant(f"{name}.factors", [channels], factors)
        zeros, ones = f"{channels}.zeros", f"{channels}.ones"
        if zeros not in self.graph.tensors:
            self.graph.constant(zeros, [channels], [0.0] * channels)
            self.graph.constant(ones, [channels], [1.0] * channels)
        return self.graph.node("BatchNormalization", [tensor, by, zeros, zeros, ones], name, epsilon=0.0)

    def concat(self, layer, inputs, shapes, name):
        layer.must_be(0, 0, "axis")
        self.same(layer, {shape.scale for shape in shapes})
        self.graph.node("Concat", inputs, name, axis=1)
        return Shape(sum(shape.channels for shape in shapes), shapes[0].scale)

    def eltwise(self, layer, inputs, shapes, name):
        layer.must_be(0, 1, "operation")
        self.same(layer, set(shapes))
        for index, factor in enumerate(factors_of(layer)):
            if factor != 1.0 and not self.net.plain_convolution_for(layer, layer.inputs[index]):
                factors = [factor] * shapes[index].channels
                inputs[index] = self.scale_channels(inputs[index], factors, f"{name}.input{index}")
        *first, last = inputs
        total = first[0]
        for index, term in enumerate(first[1:], 1):
            total = self.graph.node("Add", [total, term], f"{name}.sum{index}")
        self.graph.node("Add", [total, last], name)
        return shapes[0]

    def binaryop(self, layer, inputs, shapes, name):
        layer.must_be(0, 0, "operation")
        layer.must_be(1, 0, "a number in place of an input")
        self.same(layer, set(shapes))
        self.graph.node("Add", inputs, name)
        return shapes[0]

    def pixelshuffle(self, layer, inputs, shapes, name):
        times = layer.take(0)
        layer.must_be(1, 0, "order")
        if times < 1 or shapes[0].channels % times**2:
            raise layer.refused(f"{shapes[0].channels} channels cannot be {times} x {times} pixels each")
        self.graph.node("DepthToSpace", inputs, name, blocksize=times, mode="CRD")
        return Shape(shapes[0].channels // times**2, shapes[0].scale * times)

    def interp(self, layer, inputs, shapes, name):
        layer.must_be(0, 1, "resize type")
        times = layer.take(1)
        if times != layer.take(2) or times < 1 or times != int(times):
            raise layer.refused(f"scales {times} and {layer.take(2)}: only equal whole numbers are understood")
        scales = self.graph.constant(f"{name}.scales", [4], [1.0, 1.0, times, times])
        # Repeats every pixel at any size, without computing coordinates that could round differently.
        self.graph.node(
            "Resize",
            [*inputs, "", scales],
            name,
            coordinate_transformation_mode="asymmetric",
            mode="nearest",
            nearest_mode="floor",
        )
        return Shape(shapes[0].channels, shapes[0].scale * int(times))

    @staticmethod
    def same(layer, kinds):
        if len(kinds) != 1:
            raise layer.refused("its inputs are of different sizes")


def turn_output(convolution, channel):
    size = len(convolution.weights) // convolution.take(0)
    turn(convolution.weights, convolution.element, channel * size, size)
    if convolution.bias:
        turn(convolution.bias, FLOAT, channel * BYTES[FLOAT], BYTES[FLOAT])


def turn_input(convolution, channel):
    size = BYTES[convolution.element] * convolution.take(1) ** 2
    row = len(convolution.weights) // convolution.take(0)
    for start in range(0, len(convolution.weights), row):
        turn(convolution.weights, convolution.element, start + channel * size, size)


def turn(data, element, start, size):
    """Flips the sign of numbers: the top bit of the last byte of each."""
    step = BYTES[element]
    for position in range(start + step - 1, start + size, step):
        data[position] ^= 0x80


if __name__ == "__main__":
    main()
