#!/usr/bin/env python3
"""Writes eval/: the photo crops, masks and prompts of the shapes demo's evaluation.

The photos are in the scikit-image package, CC0 or public domain. The training uses none of them:
astronaut (NASA), coffee (Rachel Michetti), camera (Lav Varshney), clock_motion (Stéfan van der Walt).

    pip install -r models/demo/requirements.txt
    models/demo/make_eval.py
"""

import json
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from captions import COLORS
from scenes import SIDE, draw_mask

EVAL = Path(__file__).resolve().parent / "eval"
# Photo; left, top and side of the crop; kind of mask; prompt; color.
CASES = (
    ("astronaut", 100, 0, 300, "ellipse", "a red circle", "red"),
    ("astronaut", 0, 0, 200, "box", "blue stripes", "blue"),
    ("astronaut", 300, 0, 212, "blob", "make it green", "green"),
    ("astronaut", 0, 300, 212, "ellipse", "a yellow star", "yellow"),
    ("astronaut", 250, 260, 250, "stroke", "orange", "orange"),
    ("astronaut", 130, 220, 280, "blob", "purple dots", "purple"),
    ("astronaut", 60, 100, 400, "box", "a pink heart", "pink"),
    ("coffee", 200, 0, 400, "ellipse", "a cyan square", "cyan"),
    ("coffee", 0, 0, 300, "blob", "a blue circle", "blue"),
    ("coffee", 0, 150, 250, "stroke", "paint it purple", "purple"),
    ("coffee", 150, 50, 250, "box", "green checks", "green"),
    ("coffee", 350, 150, 250, "ellipse", "a yellow triangle", "yellow"),
    ("coffee", 100, 100, 300, "box", "red and white stripes", "red"),
    ("coffee", 300, 0, 200, "blob", "a heart that is pink", "pink"),
    ("camera", 100, 20, 300, "ellipse", "an orange diamond", "orange"),
    ("camera", 250, 200, 256, "box", "a cyan texture", "cyan"),
    ("camera", 0, 100, 250, "blob", "draw a green star", "green"),
    ("clock", 60, 20, 260, "ellipse", "a violet circle", "purple"),
    ("clock", 0, 80, 220, "box", "pink stripes", "pink"),
    ("clock", 150, 60, 240, "stroke", "fill it with blue", "blue"),
)


def main() -> None:
    EVAL.mkdir(exist_ok=True)
    rng = np.random.default_rng(11)
    cases = []
    for number, (photo, left, top, side, kind, prompt, color) in enumerate(CASES, 1):
        name = f"{number:02}-{photo}"
        image = Image.fromarray(getattr(data, photo)())
        crop = image.resize((SIDE, SIDE), Image.Resampling.LANCZOS, (left, top, left + side, top + side))
        crop.save(EVAL / f"{name}.png", optimize=True)
        mask = suitable_mask(rng, kind)
        Image.fromarray(mask).convert("1").save(EVAL / f"{name}-mask.png", optimize=True)
        cases.append({"photo": f"{name}.png", "mask": f"{name}-mask.png", "prompt": prompt, "color": color})
    hues = {color: values[0] for color, values in COLORS.items() if color != "brown" and values[0] is not None}
    text = json.dumps({"hues": hues, "cases": cases}, indent=1)
    (EVAL / "cases.json").write_text(text + "\n")


def suitable_mask(rng: np.random.Generator, kind: str) -> np.ndarray:
    """Draws a mask over a tenth to a third of the picture."""
    while True:
        mask = draw_mask(rng, kind, compact=kind != "stroke")
        if 0.1 <= mask.mean() <= 0.35:
            return mask


if __name__ == "__main__":
    main()
