#!/usr/bin/env python3
"""Prints the files in which an ONNX graph keeps tensors, one per line.

    models/convert/external_data.py NET.onnx

Needs only Python 3.11. Reads large files without holding them in memory.
"""

import mmap
import sys
from pathlib import Path

from protobuf import Damaged, fields

# Fields of ModelProto, GraphProto, TensorProto and StringStringEntryProto.
GRAPH, NODE, INITIALIZER, EXTERNAL_DATA = 7, 1, 5, 13
KEY, VALUE = 1, 2
# Fields of NodeProto and AttributeProto: tensors and graphs inside a node.
ATTRIBUTE, TENSOR, SUBGRAPH = 5, 5, 6


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: models/convert/external_data.py NET.onnx")
    try:
        found = locations(Path(sys.argv[1]))
    except (Damaged, OSError) as problem:
        sys.exit(f"it is not an ONNX file: {problem}")
    for location in sorted(found):
        print(location)


def locations(path):
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise Damaged("it is empty")
        # Parts of it stay in use, so it is closed with the program.
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    graphs = [value for field, value, _ in fields(view) if field == GRAPH]
    if len(graphs) != 1:
        raise Damaged("it has no graph")
    return set(in_graph(graphs[0]))


def in_graph(graph):
    for field, value, _ in fields(graph):
        if field == INITIALIZER:
            yield from in_tensor(value)
        elif field == NODE:
            for attribute in (found for kind, found, _ in fields(value) if kind == ATTRIBUTE):
                for kind, found, _ in fields(attribute):
                    if kind == TENSOR:
                        yield from in_tensor(found)
                    elif kind == SUBGRAPH:
                        yield from in_graph(found)


def in_tensor(tensor):
    for field, value, _ in fields(tensor):
        if field == EXTERNAL_DATA:
            entry = {kind: bytes(found).decode() for kind, found, _ in fields(value)}
            if entry.get(KEY) == "location":
                yield entry[VALUE]


if __name__ == "__main__":
    main()
