#!/usr/bin/env python3
"""Writes the expected alpha of every test photo: the model's contract in numpy, Pillow and onnxruntime,
independent of the Rust code. Run it when a photo or a manifest changes:

    pip install numpy==2.4.6 pillow==13.0.0 onnxruntime==1.31.1
    worker/tests/reference/make.py
"""

import tomllib
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

HERE = Path(__file__).resolve().parent
MODELS = HERE.parents[2] / "models"
PHOTOS = HERE.parents[2] / "pixels/tests/photos"


def expected_alpha(
    manifest: dict, session: onnxruntime.InferenceSession, photo: Image.Image, *, of_map: bool = False
) -> np.ndarray:
    """Alpha as floats 0..1, of the photo's size; `of_map`: the map as it is, as golden images want it."""
    spec, output, postprocess = manifest["input"], manifest["output"], manifest["postprocess"]
    left, top, right, bottom = content(spec, photo.size)
    small = photo.convert("RGB").resize((right - left, bottom - top), Image.Resampling.BILINEAR)
    framed = Image.new("RGB", (spec["width"], spec["height"]), tuple(spec.get("pad_color", (0, 0, 0))))
    framed.paste(small, (left, top))
    samples = np.asarray(framed, np.float64)
    divisor = max(samples.max(), 1) if spec["divide_by"] == "max" else spec["divide_by"]
    samples = (samples / divisor - spec["mean"]) / spec["std"]
    tensor = to_element(samples.transpose(2, 0, 1)[None], spec)
    maps = to_float(session.run([output["name"]], {spec["name"]: tensor})[0], output)[0]
    if postprocess["range"] == "softmax":
        # Without the maximum, large logits overflow.
        maps = np.exp(maps - maps.max(0))
        maps /= maps.sum(0)
    elif postprocess["range"] == "sigmoid":
        maps = 1 / (1 + np.exp(-maps))
    values = maps[postprocess.get("class", 0)]
    # The picture covers a part of the map; its outermost cells may cover border too.
    across, down = values.shape[1] / spec["width"], values.shape[0] / spec["height"]
    box = [left * across, top * down, right * across, bottom * down]
    x, y = int(np.floor(box[0])), int(np.floor(box[1]))
    values = values[y : int(np.ceil(box[3])), x : int(np.ceil(box[2]))]
    box = (box[0] - x, box[1] - y, box[2] - x, box[3] - y)
    if postprocess["range"] == "minmax":
        values = (values - values.min()) / (values.max() - values.min())
    else:
        values = values.clip(0, 1)
    if not of_map and postprocess.get("inside", "opaque") == "opaque":
        values = made_opaque(values)
    full = Image.fromarray(values.astype(np.float32)).resize(photo.size, Image.Resampling.BILINEAR, box=box)
    return np.asarray(full).clip(0, 1)


def made_opaque(values: np.ndarray) -> np.ndarray:
    """The map with the inside of the subject at 1."""
    reach = max(1, max(values.shape) // 128)
    padded = np.pad(values, reach, mode="edge")
    side = 2 * reach + 1
    least = np.lib.stride_tricks.sliding_window_view(padded, (side, side)).min((2, 3))
    share = ((least - 0.6) / 0.2).clip(0, 1)
    share = share**2 * (3 - 2 * share)
    return values + (1 - values) * share


def content(spec: dict, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Where the picture lies in the input: left, top, right, bottom."""
    width, height = spec["width"], spec["height"]
    if spec.get("fit", "stretch") == "stretch":
        return 0, 0, width, height
    scale = min(width / size[0], height / size[1])
    columns, rows = (max(1, int(np.floor(side * scale + 0.5))) for side in size)
    centered = spec.get("align", "center") == "center"
    left, top = ((width - columns) // 2, (height - rows) // 2) if centered else (0, 0)
    return left, top, left + columns, top + rows


def to_element(tensor: np.ndarray, spec: dict) -> np.ndarray:
    """A tensor of batch, channel, row and column, as the graph stores it."""
    if spec["layout"] == "nhwc":
        tensor = tensor.transpose(0, 2, 3, 1)
    return tensor.astype({"f32": np.float32, "f16": np.float16, "u8": np.uint8}[spec["element"]])


def to_float(tensor: np.ndarray, spec: dict) -> np.ndarray:
    """An output as floats of batch, channel, row and column, with white at 1."""
    layout = spec.get("layout", "nchw")
    if layout == "nhw":
        tensor = tensor[:, None]
    elif layout == "nhwc":
        tensor = tensor.transpose(0, 3, 1, 2)
    white = spec.get("white", 255 if spec.get("element") == "u8" else 1)
    return tensor.astype(np.float64) / white


def main() -> None:
    for name in ("u2netp",):
        manifest = tomllib.loads((MODELS / name / "model.toml").read_text())
        session = onnxruntime.InferenceSession(
            MODELS / name / manifest["file"], providers=["CPUExecutionProvider"]
        )
        for photo in sorted([*PHOTOS.glob("*.jpg"), *PHOTOS.glob("*.png")]):
            alpha = expected_alpha(manifest, session, Image.open(photo))
            target = HERE / f"{photo.stem}-{name}.png"
            Image.fromarray((alpha * 255).round().astype(np.uint8)).save(target, optimize=True)
            print(f"{target.name}: coverage {alpha.mean():.3f}")


if __name__ == "__main__":
    main()
