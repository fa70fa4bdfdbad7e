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
PHOTOS = HERE.parent / "photos"


def expected_alpha(manifest: dict, session: onnxruntime.InferenceSession, photo: Image.Image) -> np.ndarray:
    """Alpha as floats 0..1, of the photo's size."""
    spec = manifest["input"]
    small = photo.convert("RGB").resize((spec["width"], spec["height"]), Image.Resampling.BILINEAR)
    samples = np.asarray(small, np.float64)
    divisor = max(samples.max(), 1) if spec["divide_by"] == "max" else spec["divide_by"]
    samples = (samples / divisor - spec["mean"]) / spec["std"]
    tensor = samples.transpose(2, 0, 1)[None].astype(np.float32)
    values = session.run([manifest["output"]["name"]], {spec["name"]: tensor})[0][0, 0]
    if manifest["postprocess"]["range"] == "minmax":
        values = (values - values.min()) / (values.max() - values.min())
    else:
        values = values.clip(0, 1)
    full = Image.fromarray(values.astype(np.float32)).resize(photo.size, Image.Resampling.BILINEAR)
    return np.asarray(full).clip(0, 1)


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
