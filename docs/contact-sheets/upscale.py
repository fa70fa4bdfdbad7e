#!/usr/bin/env python3
"""Writes upscale.jpg: crops of photos four times as large, by Retouch with each of its upscalers and by Pillow's
bicubic filter, and a logo with soft edges on black, on white and on green.

    pip install pillow==13.0.0
    scripts/models fetch realesr-animevideov3-x4 realesrgan-x4plus
    docs/contact-sheets/upscale.py            # after scripts/up or a release build

The photos are in the public domain or CC0: pixels/tests/photos/README.md.
"""

import subprocess
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PHOTOS = ROOT / "pixels/tests/photos"
MODELS = ("realesr-animevideov3-x4", "realesrgan-x4plus")
CROPS = (("astronaut.jpg", (176, 50)), ("chelsea.png", (110, 60)), ("coffee.jpg", (250, 150)))
SIZE = (112, 88)
GAP = 8


def upscaled(picture: Image.Image, model: str) -> Image.Image:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.png"), Path(folder, "out.png")
        picture.save(source)
        command = [ROOT / "target/release/retouch-worker", "run", "upscale", source, "-o", target, "--model", model]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        return Image.open(target).copy()


def logo() -> Image.Image:
    """Draws a ring and a bar with soft edges; transparent pixels are black, as most programs leave them."""
    large = Image.new("L", (SIZE[0] * 8, SIZE[1] * 8))
    draw = ImageDraw.Draw(large)
    draw.ellipse((80, 40, 700, 660), outline=255, width=90)
    draw.rounded_rectangle((300, 300, 860, 400), radius=50, fill=255)
    alpha = large.resize(SIZE, Image.Resampling.BOX)
    picture = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    picture.paste((230, 60, 40), mask=alpha)
    colour = Image.composite(Image.new("RGB", SIZE, (230, 60, 40)), Image.new("RGB", SIZE), alpha.point(lambda a: 255 * (a > 0)))
    return Image.merge("RGBA", (*colour.split(), alpha))


def main() -> None:
    rows = []
    for name, (x, y) in CROPS:
        crop = Image.open(PHOTOS / name).convert("RGB").crop((x, y, x + SIZE[0], y + SIZE[1]))
        plain = crop.resize((SIZE[0] * 4, SIZE[1] * 4), Image.Resampling.BICUBIC)
        rows.append([plain, *(upscaled(crop, model) for model in MODELS)])
    large = upscaled(logo(), MODELS[0])
    rows.append([on(large, colour) for colour in ((0, 0, 0), (255, 255, 255), (0, 160, 60))])
    width, height = SIZE[0] * 4, SIZE[1] * 4
    sheet = Image.new("RGB", ((width + GAP) * 3 - GAP, (height + GAP) * len(rows) - GAP), (32, 32, 32))
    for down, row in enumerate(rows):
        for across, picture in enumerate(row):
            sheet.paste(picture, (across * (width + GAP), down * (height + GAP)))
    sheet.save(HERE / "upscale.jpg", quality=88)
    print(HERE / "upscale.jpg", sheet.size)


def on(picture: Image.Image, colour: tuple) -> Image.Image:
    ground = Image.new("RGB", picture.size, colour)
    ground.paste(picture, mask=picture.getchannel("A"))
    return ground


if __name__ == "__main__":
    main()
