"""A slow ONNX interpreter for tests that needs only the standard library."""

import struct
from dataclasses import dataclass, field


@dataclass
class Node:
    operator: str = ""
    inputs: list = field(default_factory=list)
    output: str = ""
    attributes: dict = field(default_factory=dict)


@dataclass
class Tensor:
    name: str
    shape: list
    element: int
    data: bytes

    def numbers(self):
        kind = {1: "f", 7: "q", 10: "e"}[self.element]
        return list(struct.unpack(f"<{len(self.data) // struct.calcsize(kind)}{kind}", self.data))


class OnnxNet:
    def __init__(self, data):
        model = message(data)
        graph = message(model[7][0])
        self.version = model[1][0]
        self.opset = message(model[8][0])[2][0]
        self.nodes = [node(data) for data in graph[1]]
        self.constants = {made.name: made for made in map(tensor, graph.get(5, []))}
        self.inputs = [described(data) for data in graph[11]]
        self.outputs = [described(data) for data in graph[12]]

    def operators(self):
        return [node.operator for node in self.nodes]

    def compute(self, picture):
        """Runs the net on a picture: a list of planes, each a list of rows."""
        values = {name: constant.numbers() for name, constant in self.constants.items()}
        values["input"] = picture
        for node in self.nodes:
            values[node.output] = self.value(node, [values.get(name) for name in node.inputs])
        return values[self.outputs[0][0]]

    def value(self, node, inputs):
        match node.operator:
            case "Cast":
                return inputs[0]
            case "Mul":
                return [number * inputs[1][0] for number in inputs[0]]
            case "Conv":
                padding = node.attributes["pads"][0]
                return convolved(inputs[0], *inputs[1:], padding=padding)
            case "BatchNormalization":
                assert node.attributes == {"epsilon": 0.0} and not any(inputs[2] + inputs[3]) and set(inputs[4]) == {1.0}
                return [each(lambda x, by=by: x * by, plane) for plane, by in zip(inputs[0], inputs[1])]
            case "Relu":
                return mapped(lambda x: max(x, 0.0), inputs[0])
            case "LeakyRelu":
                return mapped(lambda x: x if x > 0 else node.attributes["alpha"] * x, inputs[0])
            case "Add":
                return added(*inputs)
            case "Concat":
                assert node.attributes == {"axis": 1}
                return [plane for planes in inputs for plane in planes]
            case "DepthToSpace":
                assert node.attributes["mode"] == "CRD"
                return shuffled(inputs[0], node.attributes["blocksize"])
            case "Resize":
                assert node.attributes["mode"] == "nearest" and node.attributes["nearest_mode"] == "floor"
                assert node.attributes["coordinate_transformation_mode"] == "asymmetric"
                return repeated(inputs[0], int(inputs[2][2]))


def message(data):
    """Returns the values of each field of a protobuf message; length-delimited ones as bytes."""
    fields, position = {}, 0

    def varint():
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(data):
        key = varint()
        match key & 7:
            case 0:
                value = varint()
            case 2:
                length = varint()
                value, position = data[position : position + length], position + length
            case 5:
                (value,) = struct.unpack_from("<f", data, position)
                position += 4
        fields.setdefault(key >> 3, []).append(value)
    return fields


def node(data):
    fields = message(data)
    attributes = dict(map(attribute, map(message, fields.get(5, []))))
    return Node(fields[4][0].decode(), [name.decode() for name in fields.get(1, [])], fields[2][0].decode(), attributes)


def attribute(fields):
    kind = fields[20][0]
    value = {1: fields.get(2), 2: fields.get(3), 3: fields.get(4), 7: [fields.get(8)]}[kind][0]
    return fields[1][0].decode(), value.decode() if kind == 3 else value


def tensor(data):
    fields = message(data)
    return Tensor(fields[8][0].decode(), fields.get(1, []), fields[2][0], fields[9][0])


def described(data):
    fields = message(data)
    shape = message(message(message(fields[2][0])[1][0])[2][0])
    dimensions = [message(dimension) for dimension in shape[1]]
    return fields[1][0].decode(), [one[1][0] if 1 in one else one[2][0].decode() for one in dimensions]


def each(function, plane):
    return [[function(value) for value in row] for row in plane]


def mapped(function, planes):
    return [each(function, plane) for plane in planes]


def added(first, second):
    return [[[a + b for a, b in zip(*rows)] for rows in zip(*planes)] for planes in zip(first, second)]


def convolved(planes, weights, bias=None, padding=0):
    """Convolves with zero padding that keeps the size."""
    side = 2 * padding + 1
    height, width = len(planes[0]), len(planes[0][0])
    size = len(planes) * side * side
    made = []
    for out in range(len(weights) // size):
        plane = []
        for y in range(height):
            row = []
            for x in range(width):
                total = bias[out] if bias else 0.0
                for channel, source in enumerate(planes):
                    for ky in range(side):
                        for kx in range(side):
                            at_y, at_x = y + ky - padding, x + kx - padding
                            if 0 <= at_y < height and 0 <= at_x < width:
                                weight = weights[out * size + (channel * side + ky) * side + kx]
                                total += weight * source[at_y][at_x]
                row.append(total)
            plane.append(row)
        made.append(plane)
    return made


def shuffled(planes, times):
    """Combines every times² planes into one larger plane, like the pixel shuffle of PyTorch."""
    made = []
    for first in range(0, len(planes), times * times):
        group = planes[first : first + times * times]
        height, width = len(group[0]) * times, len(group[0][0]) * times
        made.append([[group[y % times * times + x % times][y // times][x // times] for x in range(width)] for y in range(height)])
    return made


def repeated(planes, times):
    return [[[value for value in row for _ in range(times)] for row in plane for _ in range(times)] for plane in planes]
