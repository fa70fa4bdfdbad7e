"""Finds out what is known about the tensors of a net before it runs: shapes, element types, and small values.

A size that is not known is a text: two sizes with the same text are equal. Numbers that are computed from such a size are
texts as well. Whatever an operator makes that is not listed here remains unknown.
"""

import math
import struct
from collections import Counter

from onnx_file import FLOAT, GRAPH_INPUT, HALF, INITIALIZER, INT64, NAME, NODE_ATTRIBUTE, TYPE, VALUE_INFO
from protobuf import fields, integers, signed

INT32, DOUBLE = 6, 11
FORMATS = {FLOAT: "f", INT32: "i", INT64: "q", HALF: "e", DOUBLE: "d"}
# The values of larger tensors are not needed.
MOST_VALUES = 16
# Fields of TensorProto: the dimensions, the element type, the name, raw values, and values as integers.
DIMENSIONS, ELEMENT, TENSOR_NAME, RAW, INTEGERS = 1, 2, 8, 9, {5, 7}
FLOATS = {4: "f", 10: "d"}
# Of AttributeProto.
LIST_OF_F, LIST_OF_I = 7, 8
ZEROS = {1: 0.0, 2: 0}
# The output has the shape of the first input.
LIKE_FIRST = {
    *("Cast", "Dropout", "Erf", "Exp", "Floor", "Gelu", "Identity", "InstanceNormalization", "LayerNormalization", "Neg"),
    *("Not", "Sigmoid", "Softmax", "Sqrt", "Tanh"),
}
ARITHMETIC = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: divided(a, b)}
# Exporters round quotients down with these. A truth counts as a number.
COMPARISONS = {
    "And": lambda a, b: a and b,
    "Equal": lambda a, b: a == b,
    "Greater": lambda a, b: a > b,
    "Less": lambda a, b: a < b,
    "Or": lambda a, b: a or b,
    "Xor": lambda a, b: a != b,
}


class Facts:
    def __init__(self, parts, nodes):
        self.shapes = {}
        self.elements = {}
        # A tuple for a list, the number or text itself for a scalar.
        self.values = {}
        # Tensors full of zeros.
        self.zeros = set()
        for field, value, _ in parts:
            if field == INITIALIZER:
                self.tensor(value)
            elif field in (GRAPH_INPUT, VALUE_INFO):
                self.described(value)
        # Nodes are sorted: each follows those that make its inputs.
        for one in nodes:
            if not one.domain:
                self.learn(one)

    def number(self, name):
        """Returns the number that a tensor holds; None if it is unknown, or not a single one."""
        found = self.values.get(name)
        if isinstance(found, tuple) and len(found) == 1:
            (found,) = found
        return found if isinstance(found, (int, float)) else None

    def attributes(self, one):
        """Returns the numbers, lists of numbers, and tensors among the attributes of a node."""
        (data,) = [value for _, value, _ in fields(one.raw)]
        return dict(attribute(value) for field, value, _ in fields(data) if field == NODE_ATTRIBUTE)

    def tensor(self, data, name=None):
        """Takes a TensorProto in."""
        stated, shape, element, value = read_tensor(data)
        name = name or stated
        self.shapes[name], self.elements[name] = shape, element
        if value is not None:
            self.values[name] = value

    def described(self, data):
        """Takes a ValueInfoProto in."""
        facts = {field: value for field, value, _ in fields(data)}
        name = bytes(facts[NAME]).decode()
        tensor = next((value for field, value, _ in fields(facts.get(TYPE, b"")) if field == 1), b"")
        for field, value, _ in fields(tensor):
            if field == 1:
                self.elements[name] = value
            else:
                sizes = [size for field, size, _ in fields(value) if field == 1]
                self.shapes[name] = tuple(described_size(size) or open_size(name, axis) for axis, size in enumerate(sizes))

    def learn(self, one):
        """Takes in what a node makes."""
        output, settings = one.outputs[0], self.attributes(one)
        shapes = [self.shapes.get(name) for name in one.inputs]
        values = [self.values.get(name) for name in one.inputs]
        shape = value = None
        match one.operator:
            case "Constant":
                self.constant(output, settings)
                return
            case "Shape" if shapes[0] is not None:
                value = shapes[0][settings.get("start", 0) : settings.get("end")]
            case "Gather" if isinstance(values[0], tuple) and settings.get("axis", 0) == 0:
                value = gathered(values[0], values[1])
            case "Unsqueeze" if values[0] is not None and not isinstance(values[0], tuple):
                value = (values[0],)
            case "Squeeze" if isinstance(values[0], tuple) and len(values[0]) == 1:
                (value,) = values[0]
            case "Concat" if all(isinstance(found, tuple) for found in values):
                value = sum(values, ())
            case "Concat" if None not in shapes:
                shape = opened(output, shapes[0], [settings["axis"]])
            case "Slice":
                value, shape = sliced(output, shapes[0], values)
            case "Split" if shapes[0] is not None:
                for name in one.outputs:
                    self.shapes[name] = opened(name, shapes[0], [settings.get("axis", 0)])
            case "Transpose" if shapes[0] is not None:
                shape = tuple(shapes[0][axis] for axis in settings.get("perm", range(len(shapes[0]))[::-1]))
            case "Reshape" if isinstance(values[1], tuple):
                shape = reshaped(output, shapes[0], values[1], settings.get("allowzero"))
            case "MatMul" if None not in shapes and min(map(len, shapes)) > 1:
                first, second = shapes
                shape = (*broadcast(output, first[:-2], second[:-2]), first[-2], second[-1])
            case "ConstantOfShape" if isinstance(values[0], tuple):
                shape = values[0]
                if "value" not in settings or read_tensor(settings["value"])[3] in ((0,), (0.0,)):
                    self.zeros.add(output)
            case "Conv" if shapes[1] is not None:
                batch = shapes[0][0] if shapes[0] else open_size(output, 0)
                shape = (batch, shapes[1][0], *(open_size(output, axis) for axis in range(2, len(shapes[1]))))
            case operator if calculate := (ARITHMETIC | COMPARISONS).get(operator):
                shape = broadcast(output, *shapes)
                value = computed(output, calculate, *values)
            case operator if operator in LIKE_FIRST:
                shape = shapes[0]
                value = self.of_one(operator, output, values[0], settings)
        if shape is None and value is not None:
            shape = (len(value),) if isinstance(value, tuple) else ()
        if one.operator == "Mul" and not self.zeros.isdisjoint(one.inputs):
            self.zeros.add(output)
        for store, found in ((self.shapes, shape), (self.values, value)):
            if found is not None:
                store[output] = found
        if one.operator == "Cast":
            self.elements[output] = settings["to"]
        elif one.operator in ("MatMul", "Reshape", "Transpose", *ARITHMETIC, *LIKE_FIRST):
            # Their inputs have one type, apart from the shape of a Reshape.
            inputs = one.inputs[: 1 if one.operator == "Reshape" else 2]
            self.elements.update({output: self.elements[name] for name in inputs if name in self.elements})

    def constant(self, output, settings):
        if "value" in settings:
            self.tensor(settings["value"], output)
        for name in ("value_int", "value_ints", "value_float", "value_floats"):
            if name in settings:
                self.values[output] = settings[name]
                self.shapes[output] = (len(settings[name]),) if isinstance(settings[name], tuple) else ()
                self.elements[output] = INT64 if "int" in name else FLOAT

    def of_one(self, operator, output, value, settings):
        """Returns the value that an operator with one input makes."""
        if value is None:
            return None
        match operator:
            case "Identity":
                return value
            case "Cast" if settings["to"] in (INT32, INT64):
                return each(output, int, value)
            case "Cast" if settings["to"] in FORMATS:
                return each(output, float, value)
            case "Not":
                return each(output, lambda number: not number, value)
            case "Floor":
                return each(output, math.floor, value)
            case "Sqrt":
                return each(output, lambda number: math.sqrt(number) if number >= 0 else math.nan, value)
        return None


def described_size(dimension):
    """Returns the number or the name of a dimension; None if it has neither."""
    for field, value, _ in fields(dimension):
        if field == 1 and signed(value) > 0:
            return value
        if field == 2 and value:
            return bytes(value).decode()
    return None


def attribute(data):
    """Returns the name and the value of an AttributeProto; None for what is neither a number, nor numbers, nor a tensor."""
    name, value, lists = "", None, {LIST_OF_F: [], LIST_OF_I: []}
    for field, found, _ in fields(data):
        match field:
            case 1:
                name = bytes(found).decode()
            case 2:
                (value,) = struct.unpack("<f", found)
            case 3:
                value = signed(found)
            case 5:
                value = found
            case 7:
                lists[field] += struct.unpack(f"<{len(found) // 4}f", found)
            case 8:
                lists[field] += integers(found)
            case 20 if value is None:
                # Some writers omit a zero. What follows is its type.
                value = ZEROS.get(found)
    return name, next((tuple(numbers) for numbers in lists.values() if numbers), value)


def read_tensor(data):
    """Returns the name, the shape, the element type, and the value of a TensorProto; None for the value of a large one."""
    name, shape, element, numbers = "", [], None, []
    for field, value, _ in fields(data):
        if field == DIMENSIONS:
            shape += integers(value)
        elif field == ELEMENT:
            element = value
        elif field == TENSOR_NAME:
            name = bytes(value).decode()
        elif field in (RAW, *INTEGERS, *FLOATS):
            numbers.append((field, value))
    count = math.prod(shape)
    if element in FORMATS and len(shape) < 2 and count <= MOST_VALUES:
        found = tuple(number for field, value in numbers for number in decoded(field, value, element))
        if len(found) == count:
            return name, tuple(shape), element, found if shape else found[0]
    return name, tuple(shape), element, None


def decoded(field, value, element):
    """Returns the numbers in a field of a TensorProto."""
    if field in INTEGERS:
        found = list(integers(value))
        # Half floats are stored as the integers with the same bits.
        return struct.unpack(f"<{len(found)}e", struct.pack(f"<{len(found)}H", *found)) if element == HALF else found
    kind = FLOATS.get(field, FORMATS[element])
    return struct.unpack(f"<{len(value) // struct.calcsize(kind)}{kind}", value)


def open_size(name, axis):
    return f"{name}:{axis}"


def opened(name, shape, axes):
    """Returns a shape in which the sizes of some axes are unknown."""
    axes = {axis % len(shape) for axis in axes}
    return tuple(open_size(name, axis) if axis in axes else size for axis, size in enumerate(shape))


def gathered(values, index):
    try:
        return tuple(values[at] for at in index) if isinstance(index, tuple) else values[index]
    except (IndexError, TypeError):
        return None


def sliced(name, shape, values):
    """Returns the value and the shape of a Slice."""
    starts, ends, axes, steps = (values[at] if at < len(values) else None for at in range(1, 5))
    numbers = (starts, ends, steps or (1,))
    if isinstance(values[0], tuple):
        whole = all(isinstance(found, tuple) and len(found) == 1 and isinstance(found[0], int) for found in numbers)
        return (values[0][slice(*(found[0] for found in numbers))] if whole else None), None
    if shape is None:
        return None, None
    known = isinstance(axes, tuple) and all(isinstance(axis, int) for axis in axes)
    return None, opened(name, shape, axes if known else range(len(shape)))


def reshaped(name, shape, target, allows_zero):
    """Returns the shape that a Reshape makes; None if it is not certain."""
    if allows_zero and 0 in target or shape is None and 0 in target:
        return None
    copied = [shape[axis] if size == 0 and axis < len(shape) else size for axis, size in enumerate(target)]
    return tuple(remaining(shape, copied) or open_size(name, axis) if size == -1 else size for axis, size in enumerate(copied))


def remaining(shape, target):
    """Returns the size that is written as -1; None if that does not follow from the others."""
    rest = Counter(size for size in shape or () if isinstance(size, str))
    others = Counter(size for size in target if isinstance(size, str))
    before, after = (math.prod(size for size in sizes if isinstance(size, int)) for sizes in (shape or (), target))
    if shape is None or others - rest or after == 0 or before % after:
        return None
    left, factor = list((rest - others).elements()), before // -after
    if not left:
        return factor
    return left[0] if len(left) == 1 and factor == 1 else None


def broadcast(name, first, second):
    if first is None or second is None:
        return None
    length = max(len(first), len(second))
    pairs = zip((1,) * (length - len(first)) + first, (1,) * (length - len(second)) + second)
    return tuple(wider(pair, open_size(name, axis)) for axis, pair in enumerate(pairs))


def wider(pair, unknown):
    """Returns the size to which two broadcast."""
    first, second = pair
    if first == second or second == 1:
        return first
    if first == 1:
        return second
    return next((size for size in pair if isinstance(size, int)), unknown)


def computed(name, operator, first, second):
    """Returns the value that two make, element by element."""
    if first is None or second is None:
        return None
    if not isinstance(first, tuple) and not isinstance(second, tuple):
        return calculated(name, operator, first, second)
    first, second = (found if isinstance(found, tuple) else (found,) for found in (first, second))
    length = max(len(first), len(second))
    if any(len(found) not in (1, length) for found in (first, second)):
        return None
    pairs = zip(first * (length // len(first)), second * (length // len(second)))
    return tuple(calculated(open_size(name, at), operator, *pair) for at, pair in enumerate(pairs))


def each(name, operator, value):
    if isinstance(value, tuple):
        return tuple(calculated(open_size(name, at), operator, number) for at, number in enumerate(value))
    return calculated(name, operator, value)


def calculated(name, operator, *numbers):
    """Returns a number; the text `name` if it depends on an unknown one."""
    if any(isinstance(number, str) for number in numbers):
        return name
    try:
        return operator(*numbers)
    except (ArithmeticError, ValueError):
        return name


def divided(first, second):
    """Divides like ONNX, which rounds integers towards zero."""
    if isinstance(first, int) and isinstance(second, int):
        return abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
    return first / second
