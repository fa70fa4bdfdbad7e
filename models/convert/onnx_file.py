"""Writes ONNX files: the part of the format that our models need, with the same bytes on every machine.

An ONNX file is one protobuf message. A message is a sequence of fields; a field is a key, which holds its number and the kind
of its value, and the value: an integer in groups of seven bits, four bytes, or a length and that many bytes. onnx.proto
defines the numbers. Fields are written in the order of their numbers, as by other writers.
"""

import struct

OPSET = 17
IR_VERSION = 8

FLOAT = 1
UINT8 = 2
INT64 = 7
HALF = 10
ELEMENT_BYTES = {FLOAT: 4, UINT8: 1, INT64: 8, HALF: 2}


class Graph:
    """A model under construction. Nodes keep the order in which they are added; each must follow its inputs."""

    def __init__(self, name):
        self.name = name
        self.tensors = set()
        self.nodes = []
        self.constants = []
        self.inputs = []
        self.outputs = []

    def input(self, name, shape, element=FLOAT):
        """Adds an input. A dimension is a number, or a name if any number is allowed."""
        self.inputs.append(_described(self._new(name), shape, element))
        return name

    def output(self, name, shape, element=FLOAT):
        self.outputs.append(_described(self._known(name), shape, element))

    def constant(self, name, shape, data, element=FLOAT):
        """Stores a tensor in the file, from numbers or from its little-endian bytes."""
        if not isinstance(data, (bytes, bytearray)):
            data = struct.pack(f"<{len(data)}{'q' if element == INT64 else 'f'}", *data)
        count = 1
        for dimension in shape:
            count *= dimension
        if len(data) != count * ELEMENT_BYTES[element]:
            raise ValueError(f"{name} has {len(data)} bytes, which is not its shape {shape}")
        dimensions = b"".join(_number(1, dimension) for dimension in shape)
        self.constants.append(dimensions + _number(2, element) + _text(8, self._new(name)) + _bytes(9, bytes(data)))
        return name

    def node(self, operator, inputs, output, **attributes):
        """Adds an operation. Returns its output's name, so that calls can be nested. An input "" is omitted."""
        known = b"".join(_text(1, name and self._known(name)) for name in inputs)
        settings = b"".join(_bytes(5, _attribute(name, value)) for name, value in sorted(attributes.items()))
        self.nodes.append(known + _text(2, self._new(output)) + _text(4, operator) + settings)
        return output

    def to_bytes(self):
        graph = b"".join(
            [
                *(_bytes(1, node) for node in self.nodes),
                _text(2, self.name),
                *(_bytes(5, constant) for constant in self.constants),
                *(_bytes(11, value) for value in self.inputs),
                *(_bytes(12, value) for value in self.outputs),
            ]
        )
        operators = _text(1, "") + _number(2, OPSET)
        return _number(1, IR_VERSION) + _bytes(7, graph) + _bytes(8, operators)

    def _new(self, name):
        if name in self.tensors:
            raise ValueError(f"there are two tensors named {name}")
        self.tensors.add(name)
        return name

    def _known(self, name):
        if name not in self.tensors:
            raise ValueError(f"{name} is used before it is made")
        return name


def _described(name, shape, element):
    """Returns a ValueInfoProto: a tensor's name, element type and shape."""
    dimensions = b"".join(
        _bytes(1, _text(2, dimension) if isinstance(dimension, str) else _number(1, dimension)) for dimension in shape
    )
    tensor = _number(1, element) + _bytes(2, dimensions)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _attribute(name, value):
    """Returns an AttributeProto. Its kind follows from the value: int, float, str, or a list of ints."""
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    if isinstance(value, float):
        return _text(1, name) + _key(2, 5) + struct.pack("<f", value) + _number(20, 1)
    if isinstance(value, str):
        return _text(1, name) + _text(4, value) + _number(20, 3)
    return _text(1, name) + b"".join(_number(8, item) for item in value) + _number(20, 7)


def _text(field, text):
    return _bytes(field, text.encode())


def _bytes(field, data):
    return _key(field, 2) + _varint(len(data)) + data


def _number(field, value):
    return _key(field, 0) + _varint(value)


def _key(field, kind):
    return _varint(field << 3 | kind)


def _varint(value):
    """Encodes seven bits per byte, the lowest first; the top bit means that more follow."""
    if value < 0:
        raise ValueError(f"{value} is negative, which this writer does not support")
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
