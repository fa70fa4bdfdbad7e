"""A small ncnn net with every supported operator, and a reference implementation of it."""

import random
import struct

from .onnx_net import added, convolved, each, mapped, repeated, shuffled

# first: half floats whose size is not a multiple of four bytes, a bias, slopes below 0, at 1 and above 1. second: floats,
# with an activation. third: no bias; the factor of the sum is folded into its weights. The 0.5 of the next sum cannot be
# folded into a convolution.
PARAM = """\
7767517
17 22
Input         data    0 1 data
Split         copies  1 2 data data_0 data_1
Convolution   first   1 1 data_1 a 0=5 1=3 4=1 5=1 6=135
PReLU         steep   1 1 a b 0=5
Convolution   second  1 1 b c 0=4 1=3 4=1 5=1 6=180 9=2 -23310=1,2.000000e-01
Split         more    1 4 c c_0 c_1 c_2 c_3
Convolution   third   1 1 c_3 d 0=4 1=1 6=16
Eltwise       sum     2 1 d c_2 e 0=1 -23301=2,2.000000e-01,1.000000e+00
Split         last    1 2 e e_0 e_1
Eltwise       scaled  3 1 e_1 c_1 c_0 f 0=1 -23301=3,5.000000e-01,1.000000e+00,1.000000e+00
Concat        joined  2 1 e_0 f g 0=0
Convolution   fourth  1 1 g h 0=5 1=1 5=1 6=40 9=1
PReLU         shallow 1 1 h i 0=5
Convolution   fifth   1 1 i j 0=12 1=3 4=1 5=1 6=540
PixelShuffle  larger  1 1 j k 0=2
Interp        base    1 1 data_0 l 0=1 1=2.000000e+00 2=2.000000e+00
BinaryOp      result  2 1 k l m 0=0
"""
SLOPES = (0.25, -0.5, 1.0, 1.75, 2.5)
SHALLOW = (0.5, 0.0, -1.25, 0.75, 1.0)


class Numbers:
    """Reproducible weights, and the .bin file with them."""

    def __init__(self):
        self.random = random.Random(7)
        self.bin = b""
        self.first = self.half(135), self.floats(5)
        self.bin += struct.pack("<5f", *SLOPES)
        self.second = self.tagged_floats(180), self.floats(4)
        self.third = self.half(16)
        self.fourth = self.half(40), self.floats(5)
        self.bin += struct.pack("<5f", *SHALLOW)
        self.fifth = self.half(540), self.floats(12)

    def made(self, count):
        # Multiples of 1/64 are exact as half floats, and their sums are exact as floats.
        return [int(self.random.random() * 65 - 32) / 64 for _ in range(count)]

    def half(self, count):
        numbers = self.made(count)
        data = struct.pack(f"<{count}e", *numbers)
        self.bin += struct.pack("<I", 0x01306B47) + data + bytes(-len(data) % 4)
        return numbers

    def tagged_floats(self, count):
        self.bin += bytes(4)
        return self.floats(count)

    def floats(self, count):
        numbers = self.made(count)
        self.bin += struct.pack(f"<{count}f", *numbers)
        return numbers


def picture(width=5, height=4):
    made = random.Random(3)
    return [[[int(made.random() * 256) / 255 for _ in range(width)] for _ in range(height)] for _ in range(3)]


def compute(numbers, data):
    """Computes the net as the ncnn documentation defines its operators."""
    b = prelu(convolved(data, *numbers.first, padding=1), SLOPES)
    c = mapped(lambda x: x if x > 0 else 0.2 * x, convolved(b, *numbers.second, padding=1))
    d = convolved(c, numbers.third)
    e = added(mapped(lambda x: 0.2 * x, d), c)
    f = added(added(mapped(lambda x: 0.5 * x, e), c), c)
    h = mapped(lambda x: max(x, 0.0), convolved(e + f, *numbers.fourth))
    j = convolved(prelu(h, SHALLOW), *numbers.fifth, padding=1)
    return added(shuffled(j, 2), repeated(data, 2))


def prelu(planes, slopes):
    return [each(lambda x, slope=slope: x if x > 0 else slope * x, plane) for plane, slope in zip(planes, slopes)]
