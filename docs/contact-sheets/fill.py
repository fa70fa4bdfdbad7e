#!/usr/bin/env python3
"""Writes fill.jpg: holes in photos, filled by Retouch, by OpenCV (Navier-Stokes and Telea) and by a smooth transition
(pull-push), and prints how each result compares with its surroundings.

    pip install numpy==2.4.6 pillow==13.0.0 scikit-image==0.26.0 opencv-python-headless==5.0.0.93
    docs/contact-sheets/fill.py               # after scripts/up or a release build

Two figures, of brightness:
  texture  median of the local contrast (standard deviation in 7 x 7 pixels) in the hole / in the ring of 24 pixels
           around it; the median, because rings hold edges of other things
  seam     mean step between neighbors across the hole's border / between neighbors within 6 pixels of it
The hole is the whole area that a patch may change: the painted area plus the margin that `worker/src/tools/magic_fix.rs`
allows. All methods get the same hole. Both figures are 1 for an invisible fill, unless the photo itself differs there; the
second column has the photo's own figures. Time is CPU time of all cores together.

The photos are part of scikit-image's package, which states that each of these is CC0 or in the public domain: astronaut
and hubble_deep_field (NASA), rocket (SpaceX), chelsea (Stefan van der Walt), coffee (Rachel Michetti), camera (Lav
Varshney), brick, grass and gravel (CC0Textures).
"""

import argparse
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
import skimage
from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PHOTOS = Path(skimage.__file__).parent / "data"
METHODS = ("Retouch", "Navier-Stokes", "Telea", "pull-push")
CELL = (240, 220)
GAP = 6

# Name, photo, and the painted shapes: ("ellipse" | "polygon" | "line", points, width). Scratches are restored, the
# rest is removed.
CASES = (
    ("spoon", "coffee.png", [("polygon", [(300, 262), (350, 225), (395, 215), (440, 60), (470, 60), (460, 130), (412, 240), (415, 300), (385, 335), (335, 335), (305, 300)], 0)]),
    ("rocket", "rocket.jpg", [("polygon", [(300, 120), (355, 120), (360, 300), (380, 426), (265, 426), (300, 300)], 0)]),
    ("badge", "astronaut.png", [("ellipse", [125, 345, 220, 435], 0)]),
    ("scratches", "astronaut.png", [("line", [(20, 30), (500, 400)], 4), ("line", [(250, 5), (230, 500)], 2), ("line", [(10, 480), (490, 200)], 7)]),
    ("eye", "chelsea.png", [("ellipse", [110, 70, 210, 165], 0)]),
    ("man", "camera.png", [("polygon", [(0, 220), (60, 120), (160, 60), (200, 40), (260, 45), (350, 80), (355, 200), (300, 230), (400, 511), (0, 511)], 0)]),
    ("brick", "brick.png", [("ellipse", [180, 180, 330, 330], 0)]),
    ("grass", "grass.png", [("ellipse", [180, 180, 330, 330], 0)]),
    ("gravel", "gravel.png", [("ellipse", [180, 180, 330, 330], 0)]),
    ("stars", "hubble_deep_field.jpg", [("ellipse", [480, 380, 630, 530], 0)]),
)


def mask_of(size: tuple, shapes: list) -> Image.Image:
    mask = Image.new("L", size)
    draw = ImageDraw.Draw(mask)
    for kind, points, width in shapes:
        if kind == "line":
            draw.line(points, fill=255, width=width)
        else:
            getattr(draw, kind)(points, fill=255)
    return mask


def reached(hole: np.ndarray, prompt: str) -> np.ndarray:
    """Returns the hole plus the margin that a patch may change."""
    longest, shortest = max(hole.shape), min(hole.shape)
    share, least, most = (80, 8, 24) if prompt == "remove it" else (400, 2, 6)
    reach = min(max(least, min(most, longest // share)), max(1, shortest // 8))
    return cv2.distanceTransform((~hole).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE) <= reach + 0.5


def classical(binary: Path, photo: Image.Image, mask: Image.Image, prompt: str) -> tuple:
    """Returns the picture, and the CPU seconds of the whole command, including its files."""
    with tempfile.TemporaryDirectory() as folder:
        source, marks, target = (Path(folder, name) for name in ("in.png", "mask.png", "out.png"))
        photo.save(source)
        mask.save(marks)
        command = [binary.resolve(), "run", "fix", source, "--mask", marks, "--prompt", prompt, "-o", target]
        start = of_children()
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        return np.asarray(Image.open(target).convert("RGB")), of_children() - start


def of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def pull_push(rgb: np.ndarray, hole: np.ndarray) -> np.ndarray:
    """Sums known pixels down a pyramid and fills unknown ones from the level below on the way up."""

    def filled(sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
        height, width = weights.shape
        if weights.min() >= 1 or max(height, width) == 1:
            return sums / np.maximum(weights, 1e-6)[..., None]
        pad = ((0, height % 2), (0, width % 2))
        s, w = np.pad(sums, (*pad, (0, 0))), np.pad(weights, pad)
        s = s.reshape(s.shape[0] // 2, 2, s.shape[1] // 2, 2, 3).sum((1, 3))
        w = w.reshape(w.shape[0] // 2, 2, w.shape[1] // 2, 2).sum((1, 3))
        scale = 1 / np.maximum(w, 1)
        below = filled(s * scale[..., None], w * scale).astype(np.float32)
        large = cv2.resize(below, (below.shape[1] * 2, below.shape[0] * 2), interpolation=cv2.INTER_LINEAR)
        return sums + (1 - weights)[..., None] * large[:height, :width]

    known = (~hole).astype(np.float32)
    smooth = filled(rgb * known[..., None], known)
    return np.where(hole[..., None], (smooth + 0.5).clip(0, 255).astype(np.uint8), rgb)


def by(method: str, binary: Path, photo: Image.Image, mask: Image.Image, prompt: str) -> tuple:
    if method == "Retouch":
        return classical(binary, photo, mask, prompt)
    rgb, marks = np.asarray(photo), np.asarray(mask)
    start = time.process_time()
    if method == "pull-push":
        out = pull_push(rgb, marks > 127)
    else:
        out = cv2.inpaint(rgb, marks, 5, cv2.INPAINT_NS if method == "Navier-Stokes" else cv2.INPAINT_TELEA)
    return out, time.process_time() - start


def figures(rgb: np.ndarray, hole: np.ndarray) -> tuple:
    """Returns texture and seam, as defined above."""
    luma = rgb.astype(np.float32) @ np.float32([0.299, 0.587, 0.114])
    mean, square = cv2.blur(luma, (7, 7)), cv2.blur(luma * luma, (7, 7))
    deviation = np.sqrt(np.maximum(square - mean * mean, 0))
    inside = cv2.distanceTransform(hole.astype(np.uint8), cv2.DIST_L2, 5)
    outside = cv2.distanceTransform((~hole).astype(np.uint8), cv2.DIST_L2, 5)
    # Windows entirely inside or outside the hole; scratches are too narrow for that.
    least = 4 if inside.max() > 8 else 0
    texture = np.median(deviation[inside > least]) / np.median(deviation[(outside > 4) & (outside <= 28)])
    near = (inside <= 6) & (outside <= 6)
    across = beside = pairs = others = 0.0
    for axis in (0, 1):
        step = np.abs(np.diff(luma, axis=axis))
        first, second = (np.take(hole, range(hole.shape[axis] - 1), axis), np.take(hole, range(1, hole.shape[axis]), axis))
        close = np.take(near, range(hole.shape[axis] - 1), axis) & np.take(near, range(1, hole.shape[axis]), axis)
        border, rest = first != second, (first == second) & close
        across, pairs = across + step[border].sum(), pairs + border.sum()
        beside, others = beside + step[rest].sum(), others + rest.sum()
    return texture, (across / pairs) / (beside / others)


def cell(rgb: np.ndarray, box: tuple) -> Image.Image:
    crop = Image.fromarray(rgb).crop(box)
    scale = max(CELL[0] / crop.width, CELL[1] / crop.height)
    return crop.resize(CELL, Image.Resampling.LANCZOS, box=centered(crop.size, scale))


def centered(size: tuple, scale: float) -> tuple:
    width, height = min(CELL[0] / scale, size[0]), min(CELL[1] / scale, size[1])
    left, top = (size[0] - width) / 2, (size[1] - height) / 2
    return left, top, left + width, top + height


def around(mask: Image.Image) -> tuple:
    """Returns the displayed box: the hole and some of its surroundings, with the shape of a cell."""
    left, top, right, bottom = mask.getbbox()
    height = min(max(bottom - top, (right - left) * CELL[1] / CELL[0], 150) * 1.35, mask.height)
    width = min(height * CELL[0] / CELL[1], mask.width)
    x = min(max((left + right - width) / 2, 0), mask.width - width)
    y = min(max((top + bottom - height) / 2, 0), mask.height - height)
    return tuple(round(value) for value in (x, y, x + width, y + height))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", type=Path, default=ROOT / "target/release/retouch-worker", help="the worker to run")
    arguments.add_argument("--output", type=Path, default=HERE / "fill.jpg")
    arguments.add_argument("only", nargs="*", help="names of cases; default: all")
    chosen = arguments.parse_args()
    cases = [case for case in CASES if not chosen.only or case[0] in chosen.only]
    size = ((CELL[0] + GAP) * (len(METHODS) + 1) - GAP, (CELL[1] + GAP) * len(cases) - GAP)
    sheet = Image.new("RGB", size, (32, 32, 32))
    print("| hole | share | the photo itself | " + " | ".join(f"{method}: texture, seam, CPU time" for method in METHODS) + " |")
    print("|---" * (len(METHODS) + 3) + "|")
    for down, (name, file, shapes) in enumerate(cases):
        photo = Image.open(PHOTOS / file).convert("RGB")
        mask = mask_of(photo.size, shapes)
        prompt = "restore" if name == "scratches" else "remove it"
        hole, box = reached(np.asarray(mask) > 127, prompt), around(mask)
        marked = np.asarray(photo).copy()
        marked[hole] = (255, 0, 255)
        pictures, columns = [marked], [name, f"{hole.mean():.1%}", "{:.2f}, {:.2f}".format(*figures(np.asarray(photo), hole))]
        for method in METHODS:
            whole = mask if method == "Retouch" else Image.fromarray(hole.astype(np.uint8) * 255)
            out, seconds = by(method, chosen.binary, photo, whole, prompt)
            assert (out[~hole] == np.asarray(photo)[~hole]).all(), f"{method} changed pixels outside the hole"
            texture, seam = figures(out, hole)
            columns.append(f"{texture:.2f}, {seam:.2f}, {seconds:.2f} s")
            pictures.append(out)
        print("| " + " | ".join(columns) + " |", flush=True)
        for across, picture in enumerate(pictures):
            sheet.paste(cell(picture, box), (across * (CELL[0] + GAP), down * (CELL[1] + GAP)))
    sheet.save(chosen.output, quality=84)
    print(chosen.output, sheet.size, chosen.output.stat().st_size)


if __name__ == "__main__":
    main()
