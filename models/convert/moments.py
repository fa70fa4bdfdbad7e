#!/usr/bin/env python3
"""Makes the encoder of an autoencoder return its distribution instead of a sample of it.

    models/convert/moments.py IN.onnx OUT.onnx

Older exports of Stable Diffusion end with `mean + deviation * noise`, so that a seed would not give the same picture twice.
This finds that sum, takes the tensor that mean and log-variance are cut from, and makes it the only output:
`latent_parameters`, [batch, 8, height, width], the mean in the first four channels. Nodes that only served the noise are
removed. The same input gives the same bytes on every machine. Needs only Python 3.11.
"""

import sys
from pathlib import Path

from onnx_file import (
    GRAPH,
    GRAPH_OUTPUT,
    NAME,
    NODE,
    NODE_INPUT,
    NODE_OPERATOR,
    NODE_OUTPUT,
    TYPE,
    name_of,
    needed,
    node,
)
from protobuf import Damaged, bytes_field, fields, number_field, text_field

OUTPUT = "latent_parameters"
LATENT_CHANNELS = 4
# Operators that pass values on unchanged, apart from their precision.
TRANSPARENT = {"Cast", "Identity"}
NOISE = {"RandomNormalLike", "RandomNormal"}
CUTS = {"Split", "Slice"}


class Refusal(Exception):
    """The net has another shape than this converter understands; the text says where."""


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: models/convert/moments.py IN.onnx OUT.onnx")
    source, target = map(Path, sys.argv[1:])
    try:
        target.write_bytes(convert(source.read_bytes()))
    except (Refusal, Damaged, OSError) as problem:
        sys.exit(f"models/convert/moments.py: {problem}")


def convert(data):
    """Returns the converted file, from the bytes of an ONNX file."""
    graphs = [value for field, value, _ in fields(data) if field == GRAPH]
    if len(graphs) != 1:
        raise Refusal("the file has no graph, so it is not an ONNX file")
    graph = bytes_field(GRAPH, converted_graph(graphs[0]))
    return b"".join(graph if field == GRAPH else raw for field, _, raw in fields(data))


def converted_graph(graph):
    nodes = [node(value) for field, value, _ in fields(graph) if field == NODE]
    outputs = [value for field, value, _ in fields(graph) if field == GRAPH_OUTPUT]
    if len(outputs) != 1:
        raise Refusal(f"the net has {len(outputs)} outputs; an encoder that samples has one")
    moments = Sample(nodes).moments(name_of(outputs[0]))
    # It may have the right name already.
    if moments != OUTPUT:
        if any(OUTPUT in one.outputs for one in nodes):
            raise Refusal(f"the net already has another tensor named {OUTPUT}")
        nodes.append(node(identity(moments)))
    kept = needed(nodes, [OUTPUT])
    others = b"".join(raw for field, _, raw in fields(graph) if field not in (NODE, GRAPH_OUTPUT))
    return b"".join(node.raw for node in kept) + others + bytes_field(GRAPH_OUTPUT, described(element_of(outputs[0])))


class Sample:
    """The nodes that draw a sample: mean + deviation * noise."""

    def __init__(self, nodes):
        self.made_by = {output: node for node in nodes for output in node.outputs}

    def moments(self, output):
        """Returns the tensor that mean and log-variance are cut from."""
        total = self.maker(output)
        if total.operator != "Add":
            raise Refusal(f"the output {output} is made by {total.operator}, not by the Add of a mean and noise; it may not sample at all")
        parts = [self.maker(name) for name in total.inputs]
        means = [part for part in parts if part.operator in CUTS]
        noisy = [part for part in parts if part.operator == "Mul"]
        if len(means) != 1 or len(noisy) != 1:
            found = " and ".join(part.operator for part in parts)
            raise Refusal(f"the last Add sums {found}; expected a Split or Slice (the mean) and a Mul (the noise)")
        mean, moments = means[0], means[0].inputs[0]
        before = self.ancestors(noisy[0])
        if not any(node.operator in NOISE for node in before):
            raise Refusal("the Mul of the last Add has no random factor, so the net does not sample")
        deviations = [node for node in before if node.operator in CUTS and node.inputs[0] == moments]
        if not deviations:
            raise Refusal("mean and deviation are not cut from the same tensor")
        if mean.operator == "Split" and self.transparent(total.inputs, mean) != mean.outputs[0]:
            raise Refusal("the mean is not the first half of the tensor")
        return moments

    def transparent(self, names, maker):
        """Returns the output of `maker` that one of these tensors comes from."""
        for name in names:
            while name not in maker.outputs and name in self.made_by and self.made_by[name].operator in TRANSPARENT:
                name = self.made_by[name].inputs[0]
            if name in maker.outputs:
                return name
        return None

    def maker(self, name):
        """Returns the node that computes a tensor."""
        if name not in self.made_by:
            raise Refusal(f"no node makes the tensor {name}")
        made = self.made_by[name]
        return self.maker(made.inputs[0]) if made.operator in TRANSPARENT else made

    def ancestors(self, node):
        """Returns the nodes before a node, as far as the tensors that sampling cuts apart."""
        found, waiting = [], [node]
        while waiting:
            makers = [self.made_by[name] for name in waiting.pop().inputs if name in self.made_by]
            makers = [maker for maker in makers if maker not in found]
            found += makers
            waiting += [maker for maker in makers if maker.operator not in CUTS]
        return found


def identity(tensor):
    return text_field(NODE_INPUT, tensor) + text_field(NODE_OUTPUT, OUTPUT) + text_field(NODE_OPERATOR, "Identity")


def element_of(value):
    """Returns the element type of a ValueInfoProto."""
    (kind,) = [found for field, found, _ in fields(value) if field == TYPE]
    (tensor,) = [found for field, found, _ in fields(kind) if field == 1]
    return next(found for field, found, _ in fields(tensor) if field == 1)


def described(element):
    """Returns the ValueInfoProto of the output: its name, element type and shape."""
    sizes = [text_field(2, "batch"), number_field(1, 2 * LATENT_CHANNELS), text_field(2, "latent_height"), text_field(2, "latent_width")]
    shape = b"".join(bytes_field(1, size) for size in sizes)
    tensor = number_field(1, element) + bytes_field(2, shape)
    return text_field(NAME, OUTPUT) + bytes_field(TYPE, bytes_field(1, tensor))


if __name__ == "__main__":
    main()
