"""Reads and writes ONNX files: the part of the format that our models need, with the same bytes on every machine.

An ONNX file is one protobuf message. onnx.proto defines the numbers of its fields. Fields are written in the order of their
numbers, as by other writers.
"""

import struct
from dataclasses import dataclass

from protobuf import bytes_field, fields, key, number_field, text_field

OPSET = 17
IR_VERSION = 8

FLOAT = 1
UINT8 = 2
INT64 = 7
HALF = 10
ELEMENT_BYTES = {FLOAT: 4, UINT8: 1, INT64: 8, HALF: 2}

# Fields of ModelProto, GraphProto, NodeProto, AttributeProto and ValueInfoProto.
GRAPH, OPERATOR_SET = 7, 8
NODE, INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT, VALUE_INFO = 1, 5, 11, 12, 13
NODE_INPUT, NODE_OUTPUT, NODE_OPERATOR, NODE_ATTRIBUTE, NODE_DOMAIN = 1, 2, 4, 5, 7
GRAPHS_OF_ATTRIBUTE = {6, 11}
NAME, TYPE = 1, 2


@dataclass(frozen=True)
class Node:
    operator: str
    inputs: tuple
    outputs: tuple
    # Empty for the operators of ONNX itself.
    domain: str
    # The tensors that graphs inside the node use, such as the branches of an If.
    inner: tuple
    raw: bytes


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
        dimensions = b"".join(number_field(1, dimension) for dimension in shape)
        self.constants.append(dimensions + number_field(2, element) + text_field(8, self._new(name)) + bytes_field(9, bytes(data)))
        return name

    def node(self, operator, inputs, output, **attributes):
        """Adds an operation. Returns its output's name, so that calls can be nested. An input "" is omitted."""
        known = b"".join(text_field(1, name and self._known(name)) for name in inputs)
        settings = b"".join(bytes_field(5, attribute(name, value)) for name, value in sorted(attributes.items()))
        self.nodes.append(known + text_field(2, self._new(output)) + text_field(4, operator) + settings)
        return output

    def to_bytes(self):
        graph = b"".join(
            [
                *(bytes_field(1, node) for node in self.nodes),
                text_field(2, self.name),
                *(bytes_field(5, constant) for constant in self.constants),
                *(bytes_field(11, value) for value in self.inputs),
                *(bytes_field(12, value) for value in self.outputs),
            ]
        )
        operators = text_field(1, "") + number_field(2, OPSET)
        return number_field(1, IR_VERSION) + bytes_field(7, graph) + bytes_field(8, operators)

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
        bytes_field(1, text_field(2, dimension) if isinstance(dimension, str) else number_field(1, dimension)) for dimension in shape
    )
    tensor = number_field(1, element) + bytes_field(2, dimensions)
    return text_field(1, name) + bytes_field(2, bytes_field(1, tensor))


def attribute(name, value):
    """Returns an AttributeProto. Its kind follows from the value: int, float, str, or a list of ints."""
    if isinstance(value, int):
        return text_field(1, name) + number_field(3, value) + number_field(20, 2)
    if isinstance(value, float):
        return text_field(1, name) + key(2, 5) + struct.pack("<f", value) + number_field(20, 1)
    if isinstance(value, str):
        return text_field(1, name) + text_field(4, value) + number_field(20, 3)
    return text_field(1, name) + b"".join(number_field(8, item) for item in value) + number_field(20, 7)


def node(data):
    """Returns the node of a NodeProto."""
    texts = {NODE_INPUT: [], NODE_OUTPUT: [], NODE_OPERATOR: [], NODE_DOMAIN: []}
    inner = []
    for field, value, _ in fields(data):
        if field in texts:
            texts[field].append(bytes(value).decode())
        elif field == NODE_ATTRIBUTE:
            inner += [name for kind, graph, _ in fields(value) if kind in GRAPHS_OF_ATTRIBUTE for name in used_by(graph)]
    inputs, outputs, operator, domain = texts.values()
    return Node("".join(operator), tuple(inputs), tuple(outputs), "".join(domain), tuple(inner), bytes_field(NODE, bytes(data)))


def used_by(graph):
    """Yields the tensors that a graph uses."""
    for field, value, _ in fields(graph):
        if field == NODE:
            one = node(value)
            yield from (*one.inputs, *one.inner)
        elif field == GRAPH_OUTPUT:
            yield name_of(value)


def needed(nodes, outputs):
    """Returns the nodes that outputs depend on, in their order."""
    wanted, kept = set(outputs), []
    # Nodes are sorted: each follows those that make its inputs.
    for one in reversed(nodes):
        if wanted & set(one.outputs):
            wanted.update(one.inputs, one.inner)
            kept.append(one)
    return kept[::-1]


def name_of(value):
    """Returns the name in a ValueInfoProto."""
    return next(bytes(found).decode() for field, found, _ in fields(value) if field == NAME)
