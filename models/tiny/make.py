#!/usr/bin/env python3
"""Writes the tiny models that tests run, with their manifests and golden images.

They are not trained: `segment` treats bright pixels as the subject, the upscalers repeat pixels, `blur-upscale` after a
blur with a radius of two pixels. They have the contracts of the real models, so everything around them is the same.

`segment-*`, `upscale-*` and `restore` each have a contract that a manifest may state: other element types and axes, a
letterbox, classes, maps of another size, tiles of one size, scales that are resampled. Their expected pictures are made
here with numpy and Pillow, so that a bug of ours cannot confirm itself.

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
from make import expected_alpha, to_element, to_float  # noqa: E402
from onnx_file import FLOAT, HALF, INT64, UINT8, Graph  # noqa: E402

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

# Nets whose contracts differ from the usual one, by the fields that differ.
SEGMENT_CONTRACTS = {
    "segment-f16": {"input": {"element": "f16"}, "output": {"element": "f16"}, "golden": {"tolerance": None}},
    "segment-bytes": {
        "input": {
            "element": "u8", "layout": "nhwc", "divide_by": 1, "mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0]
        },
        "output": {"element": "u8", "layout": "nhw"},
        "postprocess": {"range": "clip"},
    },
    "segment-classes": {
        "output": {"width": 8, "height": 8},
        "postprocess": {"range": "softmax", "classes": 2, "class": 1},
    },
    "segment-logits": {"postprocess": {"range": "sigmoid"}},
    "segment-letterbox": {
        # The border is bright, so that it would show.
        "input": {"fit": "letterbox", "pad_color": [255, 255, 255], "divide_by": 255},
        "output": {"layout": "nhwc", "width": 16, "height": 16},
        "postprocess": {"range": "clip"},
    },
}

# The factors that each serves; its scale is the first.
UPSCALE_CONTRACTS = {
    "upscale-f16": (
        [2],
        {
            "input": {"element": "f16", "layout": "nhwc"},
            "output": {"element": "f16", "layout": "nhwc"},
            "golden": {"tolerance": None},
        },
    ),
    "upscale-bytes": ([4, 2], {"input": {"element": "u8", "divide_by": 1}, "output": {"element": "u8"}}),
    "upscale-fixed": (
        [4, 2],
        {
            "input": {"width": 32, "height": 32},
            "output": {"white": 255},
            "tiling": {"padding": 2, **dict.fromkeys(["largest", "smallest", "multiple_of", "memory_bytes_per_pixel"])},
        },
    ),
    "upscale-x3": ([3, 2, 4], {"upscale": {"resample": True}}),
    "upscale-x8": ([8, 2, 4], {"upscale": {"resample": True}}),
    "restore": ([1], {"tiling": {"padding": 2}}),
}

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

FILL_HALVES = {"image": {"element": "f16"}}
SAFETY_HALVES = {"input": {"element": "f16", "layout": "nchw"}}

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

# The contract of SAM 2: the decoder takes the encoder's features by their names.
SEGMENT_ANYTHING = """\
# Written by models/tiny/make.py: change it there.
name = "segment-anything"
task = "segment-anything"
licence = "Apache-2.0"
commercial_use = true
attribution = "made for the tests of Retouch"
homepage = "https://onnx.ai"
{files}
[input]
name = "image"
layout = "nchw"
width = 32
height = 32
element = "f32"
resize = "bilinear"
divide_by = 255
mean = [0.0, 0.0, 0.0]
std = [1.0, 1.0, 1.0]
"""

UPSCALE_GOLDEN = (
    UPSCALE
    + """
[[golden]]
image = "golden.png"
expected = "golden-x{scale}.png"
tolerance = 0.004
"""
)

# This blur has a radius of one pixel; its weights sum to 1, and every number is exact in binary.
BLUR = np.outer([1, 2, 1], [1, 2, 1]).astype(np.float32) / 16


def main() -> None:
    session = write("segment", "segmentation", segment(), SEGMENT)
    write_golden(session)
    for name, scale, blurs in (("upscale", 4, 0), ("upscale-x2", 2, 0), ("blur-upscale", 4, 2)):
        session = write(name, "upscale", upscale(scale, blurs), UPSCALE.format(scale=scale, padding=blurs))
        check_upscale(session, scale, blurs)
    for name, changes in SEGMENT_CONTRACTS.items():
        session = write(name, "segmentation", segment_contract(name), changed(SEGMENT, changes))
        write_golden(session, name)
    for name, (factors, changes) in UPSCALE_CONTRACTS.items():
        manifest = changed(UPSCALE_GOLDEN.format(scale=factors[0], padding=0), changes)
        session = write(name, "upscale", upscale_contract(name, factors[0]), manifest)
        write_enlarged(session, name, factors)
    write("fill-floats", "fill", fill_floats(), FILL_FLOATS)
    write("fill-bytes", "fill", fill_bytes(), FILL_BYTES)
    write("fill-f16", "fill", fill_floats(HALF), changed(FILL_FLOATS, FILL_HALVES))
    write("safety", "safety", safety(), SAFETY)
    write("safety-f16", "safety", safety_halves(), changed(SAFETY, SAFETY_HALVES))
    write_segment_anything()


def write(name: str, task: str, graph: Graph, manifest: str) -> onnxruntime.InferenceSession:
    data = graph.to_bytes()
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.onnx").write_bytes(data)
    facts = {"name": name, "task": task, "sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
    (folder / "model.toml").write_text(SHARED.format(**facts) + manifest)
    print(f"{name}: {len(data)} bytes")
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def write_segment_anything() -> None:
    folder, files = HERE / "segment-anything", ""
    for part, graph in (("encoder", picture_encoder()), ("decoder", point_decoder())):
        data, file = graph.to_bytes(), f"{part}/model.onnx"
        (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
        files += f'\n[[extra]]\nfile = "{file}"\nsha256 = "{hashlib.sha256(data).hexdigest()}"\nsize_bytes = {len(data)}\n'
        onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        print(f"segment-anything/{part}: {len(data)} bytes")
    (folder / "model.toml").write_text(SEGMENT_ANYTHING.format(files=files))


def changed(manifest: str, changes: dict) -> str:
    """Returns a manifest with fields of its sections set, added, or, if the new value is None, left out."""
    out, section, left = [], None, {name: dict(fields) for name, fields in changes.items()}
    for line in [*manifest.splitlines(), "["]:
        if line.startswith("["):
            added = [f"{field} = {literal(value)}" for field, value in left.pop(section, {}).items() if value is not None]
            at = len(out) - (1 if out and not out[-1] else 0)
            out[at:at] = added
            section = line.strip("[]")
        field = line.split(" = ")[0]
        if field in left.get(section, {}):
            value = left[section].pop(field)
            line = None if value is None else f"{field} = {literal(value)}"
        if line is not None:
            out.append(line)
    assert not left, left
    return "\n".join(out[:-1]) + "\n"


def literal(value) -> str:
    """Returns a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


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


def segment_contract(name: str) -> Graph:
    """The same net, with other tensors around it."""
    kernel = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]).astype(np.float32)
    weights = np.tile(kernel / kernel.sum() / 3 * 4, (1, 3, 1, 1)).astype("<f4")
    graph = Graph("segment")
    if name == "segment-bytes":
        graph.input("input", [1, 32, 32, 3], UINT8)
        graph.node("Cast", ["input"], "floats", to=FLOAT)
        graph.node("Transpose", ["floats"], "planes", perm=[0, 3, 1, 2])
        # Samples of 0..255 become -4..4.
        graph.constant("weights", [1, 3, 5, 5], (weights * 2 / 255).tobytes())
        graph.constant("bias", [1], np.float32([-4]).tobytes())
        graph.node("Conv", ["planes", "weights", "bias"], "brightness", pads=[2, 2, 2, 2])
        graph.node("Sigmoid", ["brightness"], "share")
        graph.constant("white", [1], np.float32([255]).tobytes())
        graph.node("Mul", ["share", "white"], "samples")
        graph.node("Round", ["samples"], "rounded")
        graph.node("Cast", ["rounded"], "bytes", to=UINT8)
        graph.constant("shape", [3], [1, 32, 32], INT64)
        graph.node("Reshape", ["bytes", "shape"], "mask")
        graph.output("mask", [1, 32, 32], UINT8)
        return graph
    element = HALF if name == "segment-f16" else FLOAT
    graph.input("input", [1, 3, 32, 32], element)
    floats = graph.node("Cast", ["input"], "floats", to=FLOAT) if element == HALF else "input"
    graph.constant("weights", [1, 3, 5, 5], weights.tobytes())
    last = "mask" if name == "segment-logits" else "brightness"
    graph.node("Conv", [floats, "weights"], last, pads=[2, 2, 2, 2])
    if name == "segment-logits":
        graph.output("mask", [1, 1, 32, 32])
    elif name == "segment-f16":
        graph.node("Sigmoid", ["brightness"], "share")
        graph.node("Cast", ["share"], "mask", to=HALF)
        graph.output("mask", [1, 1, 32, 32], HALF)
    elif name == "segment-classes":
        graph.node("AveragePool", ["brightness"], "quarter", kernel_shape=[4, 4], strides=[4, 4])
        graph.node("Neg", ["quarter"], "background")
        graph.node("Concat", ["background", "quarter"], "mask", axis=1)
        graph.output("mask", [1, 2, 8, 8])
    else:
        graph.node("Sigmoid", ["brightness"], "share")
        graph.node("AveragePool", ["share"], "half", kernel_shape=[2, 2], strides=[2, 2])
        graph.node("Transpose", ["half"], "mask", perm=[0, 2, 3, 1])
        graph.output("mask", [1, 16, 16, 1])
    return graph


def picture_encoder() -> Graph:
    """The features are the picture itself, and its colors at a quarter of the size."""
    graph = Graph("encoder")
    graph.input("image", [1, 3, 32, 32])
    graph.node("Identity", ["image"], "high_res_feats_0")
    graph.node("AveragePool", ["image"], "image_embed", kernel_shape=[4, 4], strides=[4, 4])
    graph.output("high_res_feats_0", [1, 3, 32, 32])
    graph.output("image_embed", [1, 3, 8, 8])
    return graph


def point_decoder() -> Graph:
    """Selects what has the color of a positive point and not that of a negative one, within the box.

    It returns three masks: the opposite, the right one, and a part of it, of which the right one has the highest score.
    """
    graph = Graph("decoder")
    graph.input("image_embed", [1, 3, 8, 8])
    graph.input("high_res_feats_0", [1, 3, 32, 32])
    graph.input("point_coords", [1, "points", 2])
    graph.input("point_labels", [1, "points"])
    graph.input("mask_input", [1, 1, 16, 16])
    graph.input("has_mask_input", [1])
    scalars = {"zero": 0, "half": 0.5, "one": 1, "two": 2, "three": 3, "four": 4, "far": 8, "never": -8, "steep": 16, "shrink": 2 / 32}
    for name, value in scalars.items():
        graph.constant(name, [1], np.float32([value]).tobytes())
    for name, axes in (("axis_1", [1]), ("axis_2", [2]), ("axis_4", [4]), ("axes_23", [2, 3])):
        graph.constant(name, [len(axes)], axes, INT64)
    for name, axis in (("column", 0), ("row", 1)):
        graph.constant(f"which_{name}", [1], [axis], INT64)
    graph.constant("columns", [1, 1, 1, 32], (np.arange(32, dtype="<f4") + 0.5).tobytes())
    graph.constant("rows", [1, 1, 32, 1], (np.arange(32, dtype="<f4") + 0.5).tobytes())
    # How much each pixel differs from the color at each point: [1, points, 32, 32].
    graph.node("Mul", ["point_coords", "shrink"], "scaled")
    graph.node("Sub", ["scaled", "one"], "places")
    graph.node("Unsqueeze", ["places", "axis_1"], "grid")
    graph.node("GridSample", ["image_embed", "grid"], "sampled", mode="bilinear", padding_mode="border", align_corners=0)
    graph.node("Transpose", ["sampled"], "by_point", perm=[0, 3, 1, 2])
    graph.node("Unsqueeze", ["by_point", "axis_4"], "colors")
    graph.node("Unsqueeze", ["high_res_feats_0", "axis_1"], "pixels")
    graph.node("Sub", ["pixels", "colors"], "differences")
    graph.node("Abs", ["differences"], "distances")
    graph.node("ReduceSum", ["distances", "axis_2"], "distance", keepdims=0)
    graph.node("Mul", ["distance", "steep"], "unlike")
    graph.node("Sub", ["four", "unlike"], "alike_logit")
    graph.node("Sub", ["unlike", "four"], "unlike_logit")
    graph.node("Unsqueeze", ["point_labels", "axes_23"], "labels")
    for kind, label in (("negative", "zero"), ("positive", "one"), ("first", "two"), ("last", "three")):
        graph.node("Equal", ["labels", label], f"is_{kind}")
    graph.node("Where", ["is_positive", "alike_logit", "never"], "alike_each")
    graph.node("ReduceMax", ["alike_each"], "alike", axes=[1])
    graph.node("Where", ["is_positive", "one", "zero"], "positives")
    graph.node("ReduceMax", ["positives"], "most_positive", axes=[1])
    graph.node("Greater", ["most_positive", "half"], "has_positive")
    graph.node("Where", ["has_positive", "alike", "far"], "wanted")
    graph.node("Where", ["is_negative", "unlike_logit", "far"], "unlike_each")
    graph.node("ReduceMin", ["unlike_each"], "not_unwanted", axes=[1])
    for name, line in (("column", "columns"), ("row", "rows")):
        graph.node("Gather", ["point_coords", f"which_{name}"], f"{name}_of_points", axis=2)
        graph.node("Unsqueeze", [f"{name}_of_points", "axis_2"], f"{name}_at")
        graph.node("Sub", [line, f"{name}_at"], f"after_{name}")
        graph.node("Sub", [f"{name}_at", line], f"before_{name}")
    graph.node("Min", ["after_column", "after_row"], "after")
    graph.node("Min", ["before_column", "before_row"], "before")
    graph.node("Where", ["is_last", "before", "far"], "within_last")
    graph.node("Where", ["is_first", "after", "within_last"], "within_each")
    graph.node("ReduceMin", ["within_each"], "within", axes=[1])
    graph.node("Min", ["wanted", "not_unwanted", "within"], "full")
    graph.node("AveragePool", ["full"], "pooled", kernel_shape=[2, 2], strides=[2, 2])
    graph.node("Mul", ["mask_input", "has_mask_input"], "earlier")
    graph.node("Add", ["pooled", "earlier"], "right")
    graph.node("Neg", ["right"], "opposite")
    graph.node("Sub", ["right", "two"], "part")
    graph.node("Concat", ["opposite", "right", "part"], "masks", axis=1)
    graph.constant("scores", [1, 3], np.float32([0.2, 0.9, 0.4]).tobytes())
    graph.node("Identity", ["scores"], "iou_predictions")
    graph.output("masks", [1, 3, 16, 16])
    graph.output("iou_predictions", [1, 3])
    return graph


def upscale_contract(name: str, scale: int) -> Graph:
    """Repeats each pixel, as the other upscalers do, with other tensors around it."""
    graph = Graph("upscale")
    if name == "upscale-fixed":
        rows, columns, batch = 32, 32, 1
    else:
        rows, columns, batch = "height", "width", "batch"
    large = [side * scale if isinstance(side, int) else f"{scale}*{side}" for side in (rows, columns)]
    element = {"upscale-f16": HALF, "upscale-bytes": UINT8}.get(name, FLOAT)
    is_last = name == "upscale-f16"
    tensor = graph.input("input", [batch, rows, columns, 3] if is_last else [batch, 3, rows, columns], element)
    if element != FLOAT:
        tensor = graph.node("Cast", [tensor], "floats", to=FLOAT)
    if is_last:
        tensor = graph.node("Transpose", [tensor], "planes", perm=[0, 3, 1, 2])
    if name in ("upscale-fixed", "restore"):
        graph.constant("blur", [3, 1, 3, 3], np.tile(BLUR, (3, 1, 1)).astype("<f4").tobytes())
        for number in range(2):
            tensor = graph.node("Conv", [tensor, "blur"], f"blurred{number}", group=3, pads=[1, 1, 1, 1])
    if name == "upscale-fixed":
        graph.constant("white", [1], np.float32([255]).tobytes())
        tensor = graph.node("Mul", [tensor, "white"], "bright")
    graph.constant("scales", [4], [1, 1, scale, scale])
    nearest = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}
    is_done = element == FLOAT
    tensor = graph.node("Resize", [tensor, "", "scales"], "output" if is_done else "large", **nearest)
    if is_last:
        tensor = graph.node("Transpose", [tensor], "last", perm=[0, 2, 3, 1])
    if not is_done:
        graph.node("Cast", [tensor], "output", to=element)
    graph.output("output", [batch, *large, 3] if is_last else [batch, 3, *large], element)
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


def fill_floats(element: int = FLOAT) -> Graph:
    """image × 255 × (1 - mask) + 128 × mask."""
    graph = Graph("fill")
    graph.input("image", [1, 3, 64, 64], element)
    graph.input("mask", [1, 1, 64, 64], element)
    numbers = np.float16 if element == HALF else np.float32
    for name, value in (("one", 1.0), ("white", 255.0), ("gray", 128.0)):
        graph.constant(name, [1], numbers([value]).tobytes(), element)
    graph.node("Sub", ["one", "mask"], "kept")
    graph.node("Mul", ["image", "white"], "bright")
    graph.node("Mul", ["bright", "kept"], "known")
    graph.node("Mul", ["mask", "gray"], "filled")
    graph.node("Add", ["known", "filled"], "output")
    graph.output("output", [1, 3, 64, 64], element)
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


def safety_halves() -> Graph:
    """The same in 16-bit floats, on `[batch, channel, row, column]`."""
    graph = Graph("safety")
    graph.input("input", [1, 3, 32, 32], HALF)
    weights = np.float16([[0.02, -0.02], [0.02, -0.02], [-0.04, 0.04]])
    graph.constant("weights", [3, 2], weights.tobytes(), HALF)
    graph.node("ReduceMean", ["input"], "mean", axes=[2, 3], keepdims=0)
    graph.node("MatMul", ["mean", "weights"], "logits")
    graph.node("Softmax", ["logits"], "scores", axis=1)
    graph.output("scores", [1, 2], HALF)
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


def write_enlarged(session: onnxruntime.InferenceSession, name: str, factors: list[int]) -> None:
    """Writes a picture and what it becomes at each factor: the net's output for the mirrored picture, resampled."""
    folder, scale = HERE / name, factors[0]
    picture = textured_picture()
    Image.fromarray(picture).save(folder / "golden.png", optimize=True)
    # The net sees the picture mirrored beyond its border, and the filter reads there too.
    border = 16
    mirrored = np.pad(picture, ((border, border), (border, border), (0, 0)), "reflect").astype(np.float32)
    if name in ("upscale-fixed", "restore"):
        for _ in range(2):
            padded = np.pad(mirrored, ((1, 1), (1, 1), (0, 0)), "edge")
            rows, columns = mirrored.shape[:2]
            shifted = ((padded[y : y + rows, x : x + columns], BLUR[y, x]) for y in range(3) for x in range(3))
            mirrored = sum(part * weight for part, weight in shifted)
    large = mirrored.repeat(scale, axis=0).repeat(scale, axis=1)
    write_resampled(large, folder, "golden", factors, border)
    if name == "upscale-fixed":
        original = np.pad(picture, ((border, border), (border, border), (0, 0)), "reflect")
        write_resampled(with_colors_of(original, rounded(large), scale), folder, "tool", factors, border)
    check_tensors(session, name, picture, scale)


def with_colors_of(original: np.ndarray, large: np.ndarray, scale: int) -> np.ndarray:
    """Corrects an enlarged picture by its drift from the original, as `pixels/src/tile/keep_colors.rs` describes."""
    rows, columns, _ = original.shape
    means = large.reshape(rows, scale, columns, scale, 3).mean(axis=(1, 3))
    padded = np.pad(original.astype(int), ((1, 1), (1, 1), (0, 0)), "edge")
    near = np.stack([padded[y : y + rows, x : x + columns] for y in range(3) for x in range(3)])
    ranges = (near.max(axis=0) - near.min(axis=0)).max(axis=-1)
    weights = np.round(64 / (1 + (ranges / 32) ** 2))[:, :, None]

    def sums_around(values: np.ndarray) -> np.ndarray:
        padded = np.pad(values, ((4, 4), (4, 4), (0, 0)))
        kernel = np.outer([1, 2, 3, 4, 5, 4, 3, 2, 1], [1, 2, 3, 4, 5, 4, 3, 2, 1])
        parts = (padded[y : y + rows, x : x + columns] * kernel[y, x] for y in range(9) for x in range(9))
        return sum(parts)

    drift = sums_around(weights * (original - means)) / sums_around(weights)
    at = [(np.arange(length * scale) + 0.5) / scale - 0.5 for length in (rows, columns)]
    planes = []
    for channel in range(3):
        across = np.stack([np.interp(at[1], np.arange(columns), row) for row in drift[:, :, channel]])
        planes.append(np.stack([np.interp(at[0], np.arange(rows), column) for column in across.T]).T)
    return rounded((large + np.stack(planes, -1)).clip(0, 255)).astype(np.float32)


def rounded(samples: np.ndarray) -> np.ndarray:
    """Rounds halves up, as graphs with u8 outputs do; numpy rounds them to even numbers."""
    return np.floor(samples + 0.5)


def write_resampled(large: np.ndarray, folder: Path, kind: str, factors: list[int], border: int) -> None:
    """Writes an enlarged picture at each factor, without its border of `border` input pixels."""
    scale = factors[0]
    rows, columns, _ = large.shape
    for factor in factors:
        size = (columns // scale * factor, rows // scale * factor)
        planes = [Image.fromarray(large[:, :, channel]).resize(size, Image.Resampling.LANCZOS) for channel in range(3)]
        made = np.stack([np.asarray(plane) for plane in planes], -1)
        inner = slice(border * factor, -border * factor)
        made = made[inner, inner].clip(0, 255).round().astype(np.uint8)
        Image.fromarray(made).save(folder / f"{kind}-x{factor}.png", optimize=True)


def check_tensors(session: onnxruntime.InferenceSession, name: str, picture: np.ndarray, scale: int) -> None:
    """Runs the net as its manifest says. Where it does not blur, every pixel is repeated exactly."""
    manifest = tomllib.loads((HERE / name / "model.toml").read_text())
    spec, output = manifest["input"], manifest["output"]
    part = picture[:32, :32] if "width" in spec else picture
    tensor = to_element(part.transpose(2, 0, 1)[None] / spec["divide_by"], spec)
    made = to_float(session.run([output["name"]], {spec["name"]: tensor})[0], output)
    large = part.repeat(scale, axis=0).repeat(scale, axis=1).transpose(2, 0, 1)[None] / 255
    if name not in ("upscale-fixed", "restore"):
        np.testing.assert_allclose(made, large, rtol=0, atol=5e-4)
    assert made.shape == large.shape


def textured_picture() -> np.ndarray:
    """Diagonal stripes of many widths, larger than a tile of 32 pixels, in which hardly two places are alike."""
    y, x = np.mgrid[0:45, 0:70]
    red, green, blue = (x * 5 + y * 3) % 256, (x * y // 3) % 200, 40 + (x // 4 + y // 3) % 7 * 30
    return np.stack([red, green, blue], -1).astype(np.uint8)


def write_golden(session: onnxruntime.InferenceSession, name: str = "segment") -> None:
    folder = HERE / name
    manifest = tomllib.loads((folder / "model.toml").read_text())
    picture = golden_picture()
    picture.save(folder / "golden.png", optimize=True)
    alpha = expected_alpha(manifest, session, picture)
    Image.fromarray((alpha * 255).round().astype(np.uint8)).save(folder / "golden-alpha.png", optimize=True)
    print(f"{name}: coverage {alpha.mean():.3f}")


def golden_picture() -> Image.Image:
    """A warm disc on a dark slope."""
    y, x = np.mgrid[0:60, 0:90]
    picture = np.stack([20 + x / 3, 30 + y / 2, 60 + x / 4], -1)
    picture[(x - 40) ** 2 + (y - 30) ** 2 < 400] = [240, 200, 150]
    return Image.fromarray(picture.astype(np.uint8))


if __name__ == "__main__":
    main()
