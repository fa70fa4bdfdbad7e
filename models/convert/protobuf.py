"""Reads and writes fields of protobuf messages, the format of ONNX files.

A message is a sequence of fields; a field is a key, which holds its number and the kind of its value, and the value: an
integer in groups of seven bits, four or eight bytes, or a length and that many bytes.
"""


class Damaged(Exception):
    """The bytes are not a message."""


def fields(data):
    """Yields number, value, and the bytes of each field. A value is an integer, or bytes."""
    position = 0
    while position < len(data):
        start = position
        key, position = _varint_at(data, position)
        match key & 7:
            case 0:
                value, position = _varint_at(data, position)
            case 1 | 5 as kind:
                end = position + (8 if kind == 1 else 4)
                value, position = data[position:end], end
            case 2:
                length, position = _varint_at(data, position)
                value, position = data[position : position + length], position + length
            case kind:
                raise Damaged(f"field {key >> 3} has the unknown kind {kind}")
        if position > len(data):
            raise Damaged("the last field is cut off")
        yield key >> 3, value, data[start:position]


def text_field(field, text):
    return bytes_field(field, text.encode())


def bytes_field(field, data):
    return length_field(field, len(data)) + data


def length_field(field, length):
    """Begins a field of that many bytes, which the caller writes."""
    return key(field, 2) + _varint(length)


def number_field(field, value):
    return key(field, 0) + _varint(value)


def key(field, kind):
    return _varint(field << 3 | kind)


def signed(value):
    """Returns an integer that may be negative: those are written as large ones."""
    return value - (1 << 64) if value >> 63 else value


def integers(value):
    """Yields the integers of a field that repeats: one for each field, or all of them packed into one."""
    if isinstance(value, int):
        yield signed(value)
        return
    position = 0
    while position < len(value):
        found, position = _varint_at(value, position)
        yield signed(found)


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


def _varint_at(data, position):
    value = shift = 0
    while True:
        if position >= len(data):
            raise Damaged("the last field is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position
