"""Turns the encoder of an autoencoder into one that samples inside, as older exports do: the reverse of `moments.py`."""

import importlib
import sys

from common.config import REPO

FLOAT = 1


def convert_module(name):
    """Returns a module of `models/convert`."""
    folder = str(REPO / "models" / "convert")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def sampling(data, operator="Slice", reversed_halves=False):
    """Appends the sampling of diffusers to an encoder: mean + exp(0.5 * clip(log-variance)) * noise."""
    protobuf = convert_module("protobuf")

    def node(kind, inputs, outputs, attributes=b""):
        names = b"".join(protobuf.text_field(1, name) for name in inputs) + b"".join(protobuf.text_field(2, name) for name in outputs)
        return protobuf.bytes_field(1, names + protobuf.text_field(4, kind) + attributes)

    def number(name, values, element):
        import struct

        dimensions = protobuf.number_field(1, len(values)) if element == 7 else b""
        packed = struct.pack(f"<{len(values)}{'q' if element == 7 else 'f'}", *values)
        tensor = dimensions + protobuf.number_field(2, element) + protobuf.text_field(8, name) + protobuf.bytes_field(9, packed)
        return protobuf.bytes_field(5, tensor)

    (graph,) = [value for field, value, _ in protobuf.fields(data) if field == 7]
    (output,) = [value for field, value, _ in protobuf.fields(graph) if field == 12]
    moments = next(value.decode() for field, value, _ in protobuf.fields(output) if field == 1)
    halves = ["mean", "log_variance"]
    if reversed_halves:
        halves.reverse()
    if operator == "Split":
        axis = protobuf.bytes_field(5, protobuf.text_field(1, "axis") + protobuf.number_field(3, 1) + protobuf.number_field(20, 2))
        cuts = [node("Split", [moments], halves, axis)]
    else:
        cuts = [
            node("Slice", [moments, "zero", "four", "one"], ["mean"]),
            node("Slice", [moments, "four", "eight", "one"], ["log_variance"]),
        ]
    tail = [
        *cuts,
        node("Clip", ["log_variance", "low", "high"], ["clipped"]),
        node("Mul", ["clipped", "half"], ["halved"]),
        node("Exp", ["halved"], ["deviation"]),
        node("RandomNormalLike", ["mean"], ["noise"]),
        node(
            "Cast",
            ["noise"],
            ["cast"],
            protobuf.bytes_field(5, protobuf.text_field(1, "to") + protobuf.number_field(3, 1) + protobuf.number_field(20, 2)),
        ),
        node("Mul", ["deviation", "cast"], ["scattered"]),
        node("Add", ["mean", "scattered"], ["latent_sample"]),
    ]
    constants = [number("zero", [0], 7), number("one", [1], 7), number("four", [4], 7), number("eight", [8], 7)]
    constants += [number("low", [-30.0], FLOAT), number("high", [20.0], FLOAT), number("half", [0.5], FLOAT)]
    sizes = b"".join(protobuf.bytes_field(1, protobuf.text_field(2, name)) for name in ("b", "c", "h", "w"))
    tensor = protobuf.number_field(1, FLOAT) + protobuf.bytes_field(2, sizes)
    sampled = protobuf.text_field(1, "latent_sample") + protobuf.bytes_field(2, protobuf.bytes_field(1, tensor))
    nodes = b"".join(raw for field, _, raw in protobuf.fields(graph) if field == 1)
    others = b"".join(raw for field, _, raw in protobuf.fields(graph) if field not in (1, 12))
    body = nodes + b"".join(tail) + others + b"".join(constants) + protobuf.bytes_field(12, sampled)
    return b"".join(protobuf.bytes_field(7, body) if field == 7 else raw for field, _, raw in protobuf.fields(data))
