#!/usr/bin/env python3
"""Writes the pictures of README.md: one example of each tool, before above after.

    pip install pillow==13.0.0
    docs/contact-sheets/before_after.py

Retouch made the results; ui/examples/make.py has the models and the prompts, ui/examples/ATTRIBUTION.md the licenses of the photos.
"""

from pathlib import Path

from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent
PICTURES = HERE.parents[1] / "ui/src/features/examples/pictures"
EXAMPLES = {"remove-background": "lemur", "upscale": "eye", "magic-fix": "remove"}
SIZE = (420, 280)
GAP = 6
SQUARE = 14


def main() -> None:
    for name, example in EXAMPLES.items():
        sheet = Image.new("RGBA", (SIZE[0], 2 * SIZE[1] + GAP))
        for down, moment in enumerate(("before", "after")):
            picture = Image.open(PICTURES / f"{example}-{moment}.avif").convert("RGBA").resize(SIZE, Image.Resampling.BICUBIC)
            sheet.paste(Image.alpha_composite(checkerboard(), picture), (0, down * (SIZE[1] + GAP)))
        sheet.save(HERE / f"{name}.webp", quality=80, method=6)


def checkerboard() -> Image.Image:
    board = Image.new("RGBA", SIZE, "#ffffff")
    draw = ImageDraw.Draw(board)
    for y in range(0, SIZE[1], SQUARE):
        for x in range(y % (2 * SQUARE), SIZE[0], 2 * SQUARE):
            draw.rectangle((x, y, x + SQUARE - 1, y + SQUARE - 1), fill="#d9d9d9")
    return board


if __name__ == "__main__":
    main()
