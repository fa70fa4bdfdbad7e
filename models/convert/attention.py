#!/usr/bin/env python3
"""Rewrites each attention of a net into one node that ONNX Runtime has a fast kernel for.

    models/convert/attention.py IN.onnx OUT.onnx

Exports spread an attention over some forty nodes, which start one after the other. This finds softmax(query * key * scale) *
value between the Reshapes and Transposes that split and merge heads, and puts a MultiHeadAttention of com.microsoft in its
place. Where anything is unknown, or differs from that, nothing changes; a net without an attention is copied. Data files
stay as they are: the result belongs beside the same ones. The same input gives the same bytes on every machine. Needs only
Python 3.11. Maps the file, so that its weights are never in memory as a whole.
"""

import mmap
import os
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path

from facts import Facts
from onnx_file import (
    FLOAT,
    GRAPH,
    GRAPH_OUTPUT,
    HALF,
    INITIALIZER,
    NODE,
    NODE_ATTRIBUTE,
    NODE_DOMAIN,
    NODE_INPUT,
    NODE_OPERATOR,
    NODE_OUTPUT,
    OPERATOR_SET,
    attribute,
    name_of,
    needed,
    node,
)
from protobuf import Damaged, bytes_field, fields, length_field, number_field, text_field

DOMAIN = "com.microsoft"
# [batch, sequence, heads, head size] to heads first; for the key also to columns.
HEADS_FIRST, COLUMNS = (0, 2, 1, 3), (0, 2, 3, 1)
UNCHANGED = (0, 1, 2, 3)
LAST_AXIS = {3: (-1, 2), 4: (-1, 3)}
# Scales this close to the default, 1 / sqrt(head size), are the default rounded to half floats.
ROUNDING = 1e-3
INITIALIZER_NAME = 8


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: models/convert/attention.py IN.onnx OUT.onnx")
    source, target = map(Path, sys.argv[1:])
    # The target may be the source, which is mapped.
    beside = target.with_name(f".{target.name}.part")
    try:
        with beside.open("wb") as file:
            count = convert(mapped(source), file.write)
        os.replace(beside, target)
    except (Damaged, OSError) as problem:
        beside.unlink(missing_ok=True)
        sys.exit(f"models/convert/attention.py: {problem}")
    print(f"attentions that are now one node each: {count}")


def mapped(path):
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise Damaged("the file is empty")
        # Parts of it stay in use, so it is closed with the program.
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def convert(data, write):
    """Writes the converted file, in parts. Returns how many attentions it has found in the bytes of an ONNX file."""
    parts = list(fields(data))
    graphs = [value for field, value, _ in parts if field == GRAPH]
    if len(graphs) != 1:
        raise Damaged("the file has no graph, so it is not an ONNX file")
    count, graph = converted_graph(graphs[0])
    if not count:
        write(data)
        return 0
    for field, _, raw in parts:
        for part in [length_field(GRAPH, sum(map(len, graph))), *graph] if field == GRAPH else [raw]:
            write(part)
    if not any(field == OPERATOR_SET and names_domain(value) for field, value, _ in parts):
        write(bytes_field(OPERATOR_SET, text_field(1, DOMAIN) + number_field(2, 1)))
    return count


def names_domain(operator_set):
    return any(field == 1 and bytes(value).decode() == DOMAIN for field, value, _ in fields(operator_set))


def converted_graph(graph):
    """Returns how many attentions a graph has, and the parts of the converted one."""
    parts = list(fields(graph))
    nodes = [node(value) for field, value, _ in parts if field == NODE]
    outputs = [name_of(value) for field, value, _ in parts if field == GRAPH_OUTPUT]
    net = Net(nodes, outputs, Facts(parts, nodes))
    found = [attention for one in nodes if one.operator == "Softmax" and (attention := net.attention(one))]
    replaced = {attention.output: node(attention.written()) for attention in found}
    kept = needed([replaced.get(one.outputs[0], one) for one in nodes if one.outputs], outputs)
    used = {name for one in kept for name in (*one.inputs, *one.inner)} | set(outputs)
    others = [raw for field, value, raw in parts if field != NODE and (field != INITIALIZER or initializer_name(value) in used)]
    return len(found), [*(one.raw for one in kept), *others]


def initializer_name(tensor):
    return next((bytes(value).decode() for field, value, _ in fields(tensor) if field == INITIALIZER_NAME), "")


@dataclass(frozen=True)
class Attention:
    query: str
    key: str
    value: str
    output: str
    heads: int
    # None for the default.
    scale: float | None

    def written(self):
        """Returns the NodeProto."""
        settings = {"num_heads": self.heads} | ({} if self.scale is None else {"scale": self.scale})
        return b"".join(
            [
                *(text_field(NODE_INPUT, name) for name in (self.query, self.key, self.value)),
                text_field(NODE_OUTPUT, self.output),
                text_field(NODE_OPERATOR, "MultiHeadAttention"),
                *(bytes_field(NODE_ATTRIBUTE, attribute(name, value)) for name, value in settings.items()),
                text_field(NODE_DOMAIN, DOMAIN),
            ]
        )


@dataclass(frozen=True)
class Step:
    """A node that only scales values, permutes axes, changes the precision, or folds the heads into the batch, or back."""

    source: str
    order: tuple = UNCHANGED
    scale: float = 1.0
    # The element type that it makes; None if it does not change.
    element: int | None = None
    is_fold: bool = False


@dataclass(frozen=True)
class Way:
    """Such nodes between two others, all together."""

    # Where it ends: a tensor going back, a node going forward.
    end: object
    order: tuple = UNCHANGED
    scale: float = 1.0
    element: int | None = None
    folds: int = 0

    def back(self, step):
        """Returns the way with a step before it."""
        order = tuple(step.order[axis] for axis in self.order)
        return Way(step.source, order, self.scale * step.scale, self.element or step.element, self.folds + step.is_fold)

    def forward(self, step, end):
        """Returns the way with a step after it."""
        order = tuple(self.order[axis] for axis in step.order)
        return Way(end, order, self.scale * step.scale, step.element or self.element, self.folds + step.is_fold)


class Net:
    def __init__(self, nodes, outputs, facts):
        self.facts = facts
        self.outputs = set(outputs)
        self.made_by = {output: one for one in nodes for output in one.outputs}
        self.users = defaultdict(list)
        for one in nodes:
            for name in (*one.inputs, *one.inner):
                self.users[name].append(one)

    def attention(self, softmax):
        """Returns the attention around a Softmax; None if it is not certainly one."""
        if softmax.domain:
            return None
        scores = self.back(softmax.inputs[0])
        products = self.maker(scores.end, "MatMul")
        mixed = self.forward(softmax.outputs[0])
        if not products or not self.is_inner(scores.end) or mixed.end is None or mixed.end.operator != "MatMul":
            return None
        if mixed.end.inputs[0] == mixed.end.inputs[1] or self.back(mixed.end.inputs[0]).end != softmax.outputs[0]:
            return None
        sides = [self.back(name) for name in (*products.inputs, mixed.end.inputs[1])]
        merged = self.forward(mixed.end.outputs[0])
        folds = merged.folds
        if any(way.scale != 1 for way in (mixed, sides[2], merged)) or any(way.order != UNCHANGED or way.folds for way in (scores, mixed)):
            return None
        # With the heads in the batch, there are three axes.
        if folds > 1 or any(way.folds != folds for way in sides) or not self.is_over_columns(softmax, 4 - folds):
            return None
        if [way.order for way in (*sides, merged)] != [HEADS_FIRST, COLUMNS, HEADS_FIRST, HEADS_FIRST]:
            return None
        splits = [self.maker(way.end, "Reshape") for way in sides]
        if not all(splits) or not all(self.is_inner(way.end) for way in sides) or merged.end is None or merged.end.operator != "Reshape":
            return None
        # Casts in between are dropped: the kernel sums in 32 bits.
        return self.checked(splits, merged.end, sides[0].scale * sides[1].scale * scores.scale, merged.element or sides[2].element)

    def checked(self, splits, merge, scale, element):
        """Returns the attention if all shapes, and the element types, are known to be right."""
        names = [split.inputs[0] for split in splits]
        shapes = [self.facts.shapes.get(name) for name in names]
        kinds = {self.facts.elements.get(name) for name in names}
        targets = [self.target(one, length) for one, length in zip([*splits, merge], (4, 4, 4, 3))]
        if not all(targets) or any(shape is None or len(shape) != 3 for shape in shapes):
            return None
        heads, width = targets[0][2], shapes[0][2]
        # Known if heads were folded.
        before = self.facts.shapes.get(merge.inputs[0])
        if before is not None and before[2] != heads:
            return None
        if not isinstance(heads, int) or not isinstance(width, int) or heads < 1 or width % heads or not scale > 0:
            return None
        if len(kinds) != 1 or not kinds <= {FLOAT, HALF} or element not in (None, *kinds):
            return None
        batches = {shape[0] for shape in shapes}
        # The products repeat a batch of one; the operator does not. Sizes under other names are equal, or nothing would run.
        if 1 in batches and len(batches) > 1:
            return None
        tails = [[heads, width // heads]] * 3 + [[width]]
        for shape, target, tail in zip([*shapes, shapes[0]], targets, tails):
            if shape[2] != width or not is_sure(target, batches, shape[1], tail):
                return None
        default = (width // heads) ** -0.5
        return Attention(*names, merge.outputs[0], heads, None if isclose(scale, default, rel_tol=ROUNDING) else scale)

    def target(self, reshape, length):
        """Returns the shape that a Reshape is given, with 0 for sizes that it copies; None if that is unknown."""
        found = self.facts.values.get(reshape.inputs[1])
        if not isinstance(found, tuple) or len(found) != length or self.facts.attributes(reshape).get("allowzero"):
            return None
        return found

    def is_over_columns(self, softmax, axes):
        # The default depends on the version of the operators.
        return self.facts.attributes(softmax).get("axis") in LAST_AXIS[axes]

    def back(self, name):
        """Follows a tensor back through inner nodes."""
        way = Way(name)
        while self.is_inner(way.end) and (step := self.step(self.made_by.get(way.end))):
            way = way.back(step)
        return way

    def forward(self, name):
        """Follows a tensor to the node that uses it, through inner nodes."""
        way = Way(None)
        while self.is_inner(name):
            (user,) = self.readers(name)
            step = self.step(user)
            if not step or step.source != name:
                return replace(way, end=user)
            name, way = user.outputs[0], way.forward(step, None)
        return way

    def step(self, one):
        """Returns what a node does, if it is a step."""
        if one is None or one.domain:
            return None
        match one.operator:
            case "Identity":
                return Step(one.inputs[0])
            case "Cast" if (kind := self.facts.attributes(one)["to"]) in (FLOAT, HALF):
                return Step(one.inputs[0], element=kind)
            case "Transpose":
                axes = self.facts.attributes(one).get("perm", ())
                if len(axes) == 3 and axes[0] == 0:
                    axes = (0, 1, axes[1] + 1, axes[2] + 1)
                return Step(one.inputs[0], axes) if len(axes) == 4 else None
            case "Reshape" if self.is_fold(*(self.facts.shapes.get(name) for name in (one.inputs[0], one.outputs[0]))):
                return Step(one.inputs[0], is_fold=True)
            case "Mul" | "Div":
                first, second = one.inputs
                if factor := self.facts.number(second):
                    return Step(first, scale=factor if one.operator == "Mul" else 1 / factor)
                if one.operator == "Mul" and (factor := self.facts.number(first)):
                    return Step(second, scale=factor)
            case "Add":
                # Exporters write a product with a scale as a sum with nothing.
                for source, other in (one.inputs, one.inputs[::-1]):
                    shapes = self.facts.shapes.get(source), self.facts.shapes.get(other)
                    if other in self.facts.zeros and None not in shapes and len(shapes[0]) == len(shapes[1]) and shapes[0][-2:] == shapes[1][-2:]:
                        return Step(source)
        return None

    def is_fold(self, before, after):
        """Says whether a Reshape makes [batch * heads, ...] of [batch, heads, ...], or the reverse."""
        if before is None or after is None or sorted((len(before), len(after))) != [3, 4]:
            return False
        return before[-2:] == after[-2:]

    def maker(self, name, operator):
        made = self.made_by.get(name)
        return made if made and made.operator == operator and not made.domain else None

    def is_inner(self, name):
        """Says whether a single node uses the values of a tensor."""
        return name not in self.outputs and len(self.readers(name)) == 1

    def readers(self, name):
        return [one for one in self.users[name] if one.operator != "Shape"]


def is_sure(target, batches, sequence, tail):
    """Says whether a shape is certainly [batch, sequence, *tail]. It has as many elements as that, so one size may be open."""
    known = [target[0] == 0 or target[0] in batches, target[1] in (0, sequence), *(size == wanted for size, wanted in zip(target[2:], tail))]
    return known.count(False) <= 1 and (all(known) or target[known.index(False)] == -1 or known[2:] == [True] * len(tail))


if __name__ == "__main__":
    main()
