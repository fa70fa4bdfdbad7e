#!/usr/bin/env python3
"""Writes 20 pictures with known masks for `retouch-worker bench select`: cutouts of photos over photos of other things.

IS-Net computes a cutout's alpha from its photo; from then on it is the truth, because the new picture is composed with
it. The subject is scaled, mirrored and placed differently each time, with the light of its own photo and no shadow.

Everything is CC0 or in the public domain: the photos of ui/examples (see ATTRIBUTION.md there), the astronaut of
pixels/tests/photos (NASA), and from the scikit-image 0.26.0 package grass, gravel and brick (CC0Textures), the cup's table
(Rachel Michetti), and the Hubble deep field (NASA).

    pip install numpy==2.4.6 pillow==13.0.0 onnxruntime==1.31.1 scikit-image==0.26.0
    models/golden/selections.py FOLDER
"""

import sys
import tomllib
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image
from skimage import data
from skimage.measure import label
from skimage.morphology import dilation, disk, opening

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "worker/tests/reference"))
from make import expected_alpha  # noqa: E402

PHOTOS = {
    name: REPOSITORY / "ui/examples/photos" / f"{name}.jpg" for name in ("lemur", "cup", "zebra", "cat", "rocket")
} | {"astronaut": REPOSITORY / "pixels/tests/photos/astronaut.jpg"}
BACKGROUNDS = ("grass", "gravel", "brick", "hubble_deep_field")
# The table beside the cup.
WOOD = (455, 0, 600, 110)
# The radius, in pixels, of what is thinner than a subject's parts: cables and lattices.
THIN = 3
# Subject; background; share of the picture's height that the subject takes; its middle across and down; mirrored; the
# picture's width and height.
CASES = (
    ("lemur", "grass", 0.8, 0.5, 0.55, False, (1600, 1200)),
    ("lemur", "brick", 0.5, 0.3, 0.6, True, (4000, 3000)),
    ("lemur", "wood", 0.6, 0.7, 0.5, False, (1200, 900)),
    ("lemur", "hubble_deep_field", 0.35, 0.25, 0.4, True, (1200, 1200)),
    ("cup", "gravel", 0.7, 0.5, 0.5, False, (1000, 1000)),
    ("cup", "grass", 0.45, 0.65, 0.6, True, (4000, 3000)),
    ("cup", "hubble_deep_field", 0.55, 0.4, 0.5, False, (1500, 1000)),
    ("zebra", "gravel", 0.7, 0.5, 0.55, False, (1600, 1200)),
    ("zebra", "brick", 0.5, 0.4, 0.6, True, (1200, 1000)),
    ("zebra", "grass", 0.6, 0.6, 0.6, False, (3000, 2000)),
    ("zebra", "wood", 0.45, 0.3, 0.5, True, (1200, 800)),
    ("cat", "brick", 0.6, 0.5, 0.5, False, (1200, 1000)),
    ("cat", "gravel", 0.6, 0.6, 0.5, True, (2000, 1500)),
    ("cat", "grass", 0.7, 0.45, 0.6, False, (1000, 800)),
    ("astronaut", "brick", 0.9, 0.5, 0.55, False, (1200, 1200)),
    ("astronaut", "grass", 0.6, 0.3, 0.6, True, (1600, 1200)),
    ("astronaut", "gravel", 0.7, 0.65, 0.6, False, (3000, 2250)),
    ("astronaut", "hubble_deep_field", 0.8, 0.5, 0.6, True, (1000, 1000)),
    ("rocket", "grass", 0.85, 0.5, 0.5, False, (1200, 1200)),
    ("rocket", "brick", 0.7, 0.6, 0.5, True, (1600, 1200)),
)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    manifest = tomllib.loads((REPOSITORY / "models/isnet/model.toml").read_text())
    session = onnxruntime.InferenceSession(
        REPOSITORY / "models/isnet" / manifest["file"], providers=["CPUExecutionProvider"]
    )
    cutouts = {name: cut_out(path, manifest, session) for name, path in PHOTOS.items()}
    backgrounds = {name: to_rgb(getattr(data, name)()) for name in BACKGROUNDS}
    backgrounds["wood"] = to_rgb(data.coffee()).crop(WOOD)
    for number, (subject, background, *place, size) in enumerate(CASES, 1):
        picture, mask = compose(cutouts[subject], backgrounds[background], place, size)
        name = f"{number:02}-{subject}-{background.split('_')[0]}"
        picture.save(folder / f"{name}.jpg", quality=92)
        mask.save(folder / f"{name}-mask.png", optimize=True)
        print(f"{name}: {size[0]} × {size[1]}, {np.asarray(mask).mean() / 2.55:.1f} % subject")


def to_rgb(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(pixels).convert("RGB")


def cut_out(path: Path, manifest: dict, session: onnxruntime.InferenceSession) -> Image.Image:
    """Returns the largest subject as RGBA, without the towers beside the rocket, cropped to where its alpha is not 0."""
    photo = Image.open(path).convert("RGB")
    alpha = expected_alpha(manifest, session, photo)
    parts = label(opening(alpha >= 0.5, disk(THIN)))
    largest = parts == np.bincount(parts[parts > 0]).argmax()
    alpha = np.where(dilation(largest, disk(2 * THIN)) & (alpha >= 0.04), alpha, 0)
    photo.putalpha(Image.fromarray((alpha * 255).round().astype(np.uint8)))
    return photo.crop(photo.getbbox())


def compose(
    subject: Image.Image, background: Image.Image, place: list, size: tuple[int, int]
) -> tuple[Image.Image, Image.Image]:
    share, across, down, is_mirrored = place
    width, height = size
    scale = max(width / background.width, height / background.height)
    large = background.resize((round(background.width * scale), round(background.height * scale)), Image.Resampling.BICUBIC)
    picture = large.crop((0, 0, width, height))
    if is_mirrored:
        subject = subject.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    scale = height * share / subject.height
    subject = subject.resize((round(subject.width * scale), round(subject.height * scale)), Image.Resampling.LANCZOS)
    left, top = round(width * across - subject.width / 2), round(height * down - subject.height / 2)
    layer = Image.new("RGBA", size)
    layer.paste(subject, (left, top))
    alpha = layer.getchannel("A")
    picture.paste(layer.convert("RGB"), (0, 0), alpha)
    return picture, alpha.point(lambda value: 255 if value >= 128 else 0)


if __name__ == "__main__":
    main()
