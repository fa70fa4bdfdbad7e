#!/usr/bin/env python3
"""Writes the tiny models that tests run, with their manifests and golden images.

They are not trained: `segment` treats bright pixels as the subject, the upscalers repeat pixels, `blur-upscale` after a
blur with a radius of two pixels. They have the contracts of the real models, so everything around them is the same.

    pip install numpy==2.4.6 pillow==13.0.0 onnxruntime==1.31.1
    models/tiny/make.py
"""

import hashlib
import sys
import tomllib
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "convert"), str(HERE.parents[1] / "worker/tests/reference")]
from make import expected_alpha  # noqa: E402
from onnx_file import UINT8, Graph  # noqa: E402

SHARED = """\
# Written by models/tiny/make.py: change it there.
name = "{name}"
task = "{task}"
file = "{name}.onnx"
sha256 = "{sha256}"
size_bytes = {size_bytes}
licence = "Apache-2.0"
commercial_use = true
attribution = "made for the tests of Retouch"
homepage = "https://onnx.ai"
"""

SEGMENT = """
[input]
name = "input"
layout = "nchw"
width = 32
height = 32
element = "f32"
resize = "bilinear"
divide_by = "max"
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]

[output]
name = "mask"

[postprocess]
range = "minmax"
resize = "bilinear"

[[golden]]
image = "golden.png"
expected = "golden-alpha.png"
tolerance = 0.004
"""

UPSCALE = """
[input]
name = "input"
layout = "nchw"
element = "f32"
divide_by = 255
mean = [0.0, 0.0, 0.0]
std = [1.0, 1.0, 1.0]

[output]
name = "output"

[upscale]
scale = {scale}

[tiling]
mode = "exact"
padding = {padding}
blend = 0
largest = 512
smallest = 16
multiple_of = 1
memory_bytes_per_pixel = 400
"""

# LaMa's contract: floats, 1 where to fill, 0..255 out.
FILL_FLOATS = """
modes = ["remove"]
output_white = 255

[canvas]
side = 64
fit = "square"

[image]
name = "image"
element = "f32"
white = 1

[mask]
name = "mask"
fill = 1
keep = 0

[output]
name = "output"
"""

# The contract of MI-GAN's pipeline: bytes, 255 where to keep.
FILL_BYTES = """
modes = ["remove"]
output_white = 255

[canvas]
side = 512
fit = "keep"

[image]
name = "image"
element = "u8"
white = 255

[mask]
name = "mask"
fill = 0
keep = 255

[output]
name = "result"
"""

SAFETY = """
unsafe_class = 1
threshold = 0.8

[input]
name = "input"
order = "bgr"
resize = 40
crop = 32
mean = [104.0, 117.0, 123.0]

[output]
name = "scores"
"""

# This blur has a radius of one pixel; its weights sum to 1, and every number is exact in binary.
BLUR = np.outer([1, 2, 1], [1, 2, 1]).astype(np.float32) / 16


def main() -> None:
    session = write("segment", "segmentation", segment(), SEGMENT)
    write_golden(session)
    for name, scale, blurs in (("upscale", 4, 0), ("upscale-x2", 2, 0), ("blur-upscale", 4, 2)):
        session = write(name, "upscale", upscale(scale, blurs), UPSCALE.format(scale=scale, padding=blurs))
        check_upscale(session, scale, blurs)
    write("fill-floats", "fill", fill_floats(), FILL_FLOATS)
    write("fill-bytes", "fill", fill_bytes(), FILL_BYTES)
    write("safety", "safety", safety(), SAFETY)


def write(name: str, task: str, graph: Graph, manifest: str) -> onnxruntime.InferenceSession:
    data = graph.to_bytes()
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.onnx").write_bytes(data)
    facts = {"name": name, "task": task, "sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
    (folder / "model.toml").write_text(SHARED.format(**facts) + manifest)
    print(f"{name}: {len(data)} bytes")
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def segment() -> Graph:
    """Alpha = sigmoid of brightness after a 5 × 5 blur; a second output stands for the unused ones."""
    kernel = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]).astype(np.float32)
    weights = np.tile(kernel / kernel.sum() / 3 * 4, (1, 3, 1, 1)).astype("<f4")
    graph = Graph("segment")
    graph.input("input", [1, 3, 32, 32])
    graph.constant("weights", [1, 3, 5, 5], weights.tobytes())
    graph.node("Conv", ["input", "weights"], "brightness", pads=[2, 2, 2, 2])
    graph.node("Sigmoid", ["brightness"], "mask")
    graph.output("mask", [1, 1, 32, 32])
    graph.output("brightness", [1, 1, 32, 32])
    return graph


def upscale(scale: int, blurs: int) -> Graph:
    """Blurs each channel, with black beyond the border, then repeats each pixel."""
    graph = Graph("upscale")
    tensor = graph.input("input", ["batch", 3, "height", "width"])
    if blurs:
        graph.constant("blur", [3, 1, 3, 3], np.tile(BLUR, (3, 1, 1)).astype("<f4").tobytes())
    for number in range(blurs):
        tensor = graph.node("Conv", [tensor, "blur"], f"blurred{number}", group=3, pads=[1, 1, 1, 1])
    graph.constant("scales", [4], [1, 1, scale, scale])
    graph.node(
        "Resize",
        [tensor, "", "scales"],
        "output",
        coordinate_transformation_mode="asymmetric",
        mode="nearest",
        nearest_mode="floor",
    )
    graph.output("output", ["batch", 3, f"{scale}*height", f"{scale}*width"])
    return graph


def fill_floats() -> Graph:
    """image × 255 × (1 - mask) + 128 × mask."""
    graph = Graph("fill")
    graph.input("image", [1, 3, 64, 64])
    graph.input("mask", [1, 1, 64, 64])
    for name, value in (("one", 1.0), ("white", 255.0), ("gray", 128.0)):
        graph.constant(name, [1], np.float32([value]).tobytes())
    graph.node("Sub", ["one", "mask"], "kept")
    graph.node("Mul", ["image", "white"], "bright")
    graph.node("Mul", ["bright", "kept"], "known")
    graph.node("Mul", ["mask", "gray"], "filled")
    graph.node("Add", ["known", "filled"], "output")
    graph.output("output", [1, 3, 64, 64])
    return graph


def fill_bytes() -> Graph:
    """Returns the picture where the mask is 255, gray where it is 0."""
    graph = Graph("fill")
    graph.input("image", [1, 3, "height", "width"], UINT8)
    graph.input("mask", [1, 1, "height", "width"], UINT8)
    graph.constant("white", [1], bytes([255]), UINT8)
    graph.constant("gray", [1], bytes([128]), UINT8)
    graph.node("Equal", ["mask", "white"], "kept")
    graph.node("Where", ["kept", "image", "gray"], "result")
    graph.output("result", [1, 3, "height", "width"], UINT8)
    return graph


def safety() -> Graph:
    """Softmax of how much redder than green and blue the mean color is."""
    graph = Graph("safety")
    graph.input("input", [1, 32, 32, 3])
    graph.constant("weights", [3, 2], np.float32([[0.02, -0.02], [0.02, -0.02], [-0.04, 0.04]]).tobytes())
    graph.node("ReduceMean", ["input"], "mean", axes=[1, 2], keepdims=0)
    graph.node("MatMul", ["mean", "weights"], "logits")
    graph.node("Softmax", ["logits"], "scores", axis=1)
    graph.output("scores", [1, 2])
    return graph


def check_upscale(session: onnxruntime.InferenceSession, scale: int, blurs: int) -> None:
    """Compares the model with numpy on noise."""
    noise = np.random.default_rng(1).random((1, 3, 7, 5), np.float32)
    expected = noise
    for _ in range(blurs):
        padded = np.pad(expected, ((0, 0), (0, 0), (1, 1), (1, 1)))
        expected = sum(padded[:, :, y : y + 7, x : x + 5] * BLUR[y, x] for y in range(3) for x in range(3))
    expected = expected.repeat(scale, axis=2).repeat(scale, axis=3)
    np.testing.assert_allclose(session.run(["output"], {"input": noise})[0], expected, rtol=0, atol=1e-6)


def write_golden(session: onnxruntime.InferenceSession) -> None:
    folder = HERE / "segment"
    manifest = tomllib.loads((folder / "model.toml").read_text())
    picture = golden_picture()
    picture.save(folder / "golden.png", optimize=True)
    alpha = expected_alpha(manifest, session, picture)
    Image.fromarray((alpha * 255).round().astype(np.uint8)).save(folder / "golden-alpha.png", optimize=True)
    print(f"segment: coverage {alpha.mean():.3f}")


def golden_picture() -> Image.Image:
    """A warm disc on a dark slope."""
    y, x = np.mgrid[0:60, 0:90]
    picture = np.stack([20 + x / 3, 30 + y / 2, 60 + x / 4], -1)
    picture[(x - 40) ** 2 + (y - 30) ** 2 < 400] = [240, 200, 150]
    return Image.fromarray(picture.astype(np.uint8))


if __name__ == "__main__":
    main()
