"""The training scenes of the shapes demo: photos with something painted into a random mask.

Everything is drawn here or comes from photographs in the scikit-image package that are CC0 or public domain. The
astronaut, the coffee cup, the camera man and the clock are left out, because `evaluate.py` runs on them.
"""

import colorsys
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw
from scipy import ndimage

from captions import COLORS, PATTERNS, SHAPES, Request, random_request

SIDE = 128
PHOTOS = ("chelsea", "rocket", "hubble_deep_field", "retina", "brick", "grass", "gravel")


@dataclass
class Scene:
    """A picture u8 [128, 128, 3] with `request` painted within `mask`, bool [128, 128]."""

    picture: np.ndarray
    mask: np.ndarray
    request: Request


def load_photos() -> list[Image.Image]:
    from skimage import data

    return [Image.fromarray(getattr(data, name)()).convert("RGB") for name in PHOTOS]


def make_scene(photos: list[Image.Image], rng: np.random.Generator, varied: bool = False) -> Scene:
    """Paints shapes on white and all patterns of a kind alike, which a small net learns quickly; unless `varied`."""
    background = photo_crop(photos, rng) if rng.random() < 0.7 else drawn_background(rng)
    request = random_request(rng)
    mask = random_mask(rng, compact=request.thing in SHAPES and rng.random() < 0.85)
    where = np.clip(ndimage.gaussian_filter(painted_area(request, mask, rng).astype(np.float32), 0.7), 0, 1) * mask
    paint = shaded(fill(request, rng, varied), rng)
    if request.thing in SHAPES and not varied:
        background = np.where(mask[..., None], shaded(ground(request, rng), rng), background)
    picture = background + where[..., None] * (paint - background)
    return Scene((picture.clip(0, 1) * 255).round().astype(np.uint8), mask, request)


# Backgrounds, f32 [128, 128, 3] in 0..1.


def photo_crop(photos: list[Image.Image], rng: np.random.Generator) -> np.ndarray:
    photo = photos[rng.integers(len(photos))]
    side = int(rng.integers(90, min(photo.size)))
    left, top = (int(rng.integers(0, length - side + 1)) for length in photo.size)
    crop = photo.resize((SIDE, SIDE), Image.Resampling.BILINEAR, (left, top, left + side, top + side))
    pixels = np.asarray(crop, np.float32) / 255
    if rng.random() < 0.5:
        pixels = pixels[:, ::-1]
    if rng.random() < 0.6:
        pixels = pixels[..., rng.permutation(3)]
    gains = rng.uniform(0.75, 1.25, 3) * rng.uniform(0.7, 1.3)
    return np.clip(pixels * gains.astype(np.float32), 0, 1) ** np.float32(rng.uniform(0.7, 1.4))


def drawn_background(rng: np.random.Generator) -> np.ndarray:
    first, second = rng.random((2, 3), np.float32)
    level = (smooth_noise(rng, rng.uniform(3, 40)) if rng.random() < 0.5 else ramp(rng))[..., None]
    picture = first + level * (second - first)
    for _ in range(rng.integers(0, 5)):
        draw = Image.new("L", (SIDE, SIDE))
        box = sorted(rng.integers(0, SIDE, 2)), sorted(rng.integers(0, SIDE, 2))
        corners = (box[0][0], box[1][0], box[0][1], box[1][1])
        pen = ImageDraw.Draw(draw)
        (pen.ellipse if rng.random() < 0.5 else pen.rectangle)(tuple(map(int, corners)), fill=255)
        inside = np.asarray(draw, np.float32)[..., None] / 255
        picture = picture + inside * (rng.random(3, np.float32) - picture)
    noise = rng.standard_normal((SIDE, SIDE, 1), np.float32) * np.float32(rng.uniform(0, 0.06))
    return np.clip(picture + noise, 0, 1)


def smooth_noise(rng: np.random.Generator, scale: float) -> np.ndarray:
    """Returns values in 0..1, with features of about `scale` pixels."""
    cells = max(2, round(SIDE / scale)) + 1
    coarse = Image.fromarray((rng.random((cells, cells)) * 255).astype(np.uint8))
    return np.asarray(coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC), np.float32) / 255


def ramp(rng: np.random.Generator) -> np.ndarray:
    """0..1 in a random direction."""
    rows, columns = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32) / SIDE
    angle = rng.uniform(0, 2 * np.pi)
    level = rows * np.sin(angle) + columns * np.cos(angle)
    return ((level - level.min()) / np.ptp(level)).astype(np.float32)


# Masks.


def random_mask(rng: np.random.Generator, compact: bool) -> np.ndarray:
    """Covers 5 to 60 % of the picture with an ellipse or a box or, unless `compact`, a blob or a brush stroke."""
    kinds = ("ellipse", "box", "blob") if compact else ("ellipse", "box", "blob", "stroke", "stroke")
    while True:
        mask = draw_mask(rng, rng.choice(kinds), compact)
        if 0.05 <= mask.mean() <= 0.6:
            return mask


def draw_mask(rng: np.random.Generator, kind: str, compact: bool) -> np.ndarray:
    if kind == "blob":
        rows, columns = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
        row, column = rng.uniform(30, SIDE - 30, 2)
        angles = np.arctan2(rows - row, columns - column)
        waves = sum(rng.uniform(0, 0.14) * np.sin(k * angles + rng.uniform(0, 6.3)) for k in (1, 2, 3, 4))
        return np.hypot(rows - row, columns - column) < rng.uniform(20, 52) * (1 + waves)
    image = Image.new("L", (SIDE, SIDE))
    pen = ImageDraw.Draw(image)
    if kind == "stroke":
        points = [rng.uniform(15, SIDE - 15, 2)]
        for _ in range(rng.integers(1, 5)):
            points.append(np.clip(points[-1] + rng.normal(0, 35, 2), 8, SIDE - 8))
        radius = rng.uniform(6, 16)
        pen.line([tuple(p) for p in points], fill=255, width=int(2 * radius))
        for x, y in points:
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
        return np.asarray(image) > 127
    half = rng.uniform(15, 50, 2)
    if compact:
        half[1] = half[0] * rng.uniform(0.75, 1.3)
    middle = rng.uniform(np.minimum(half, 60) * 0.8, SIDE - np.minimum(half, 60) * 0.8)
    corners = tuple(np.concatenate([middle - half, middle + half]))
    (pen.ellipse if kind == "ellipse" else pen.rectangle)(corners, fill=255)
    if kind == "box" and rng.random() < 0.4:
        image = image.rotate(rng.uniform(-45, 45), center=tuple(middle))
    return np.asarray(image) > 127


# The paint.


def painted_area(request: Request, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns the whole mask, or a shape about as large as the mask, placed where the mask is thickest."""
    if request.thing not in SHAPES:
        return mask
    distance = ndimage.distance_transform_edt(np.pad(mask, 1)[::2, ::2]) * 2
    thickest = distance.max()
    rows, columns = np.nonzero(distance > 0.9 * thickest)
    row, column = rows.mean() * 2 - 1, columns.mean() * 2 - 1
    radius = np.clip(0.92 * np.sqrt(mask.sum() / np.pi), thickest * 0.95, thickest * 1.25) * rng.uniform(0.92, 1.05)
    image = Image.new("L", (SIDE, SIDE))
    ImageDraw.Draw(image).polygon(outline(request.thing, column, row, radius), fill=255)
    return (np.asarray(image) > 127) & mask


def outline(shape: str, x: float, y: float, radius: float) -> list[tuple[float, float]]:
    """Returns a polygon around a circle of that radius."""
    turn = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    match shape:
        case "circle":
            points = np.stack([np.cos(turn), np.sin(turn)], 1)
        case "square":
            points = np.array([(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)])
        case "diamond":
            points = np.array([(0, -1.15), (0.85, 0), (0, 1.15), (-0.85, 0)])
        case "triangle":
            points = np.array([(0, -1.05), (1.08, 0.85), (-1.08, 0.85)])
        case "star":
            angles = np.arange(10) * np.pi / 5 - np.pi / 2
            lengths = np.where(np.arange(10) % 2 == 0, 1.15, 0.52)[:, None]
            points = np.stack([np.cos(angles), np.sin(angles)], 1) * lengths
        case "heart":
            heights = 13 * np.cos(turn) - 5 * np.cos(2 * turn) - 2 * np.cos(3 * turn) - np.cos(4 * turn)
            points = np.stack([16 * np.sin(turn) ** 3, -heights - 2.5], 1) / 14.5
    return [(x + radius * px, y + radius * py) for px, py in points]


def ground(request: Request, rng: np.random.Generator) -> np.ndarray:
    """Returns the background of a shape."""
    name = "black" if request.color == "white" else "white"
    return np.broadcast_to(color(name, rng), (SIDE, SIDE, 3))


def fill(request: Request, rng: np.random.Generator, varied: bool) -> np.ndarray:
    first = color(request.color, rng)
    if request.thing not in PATTERNS:
        return np.broadcast_to(first, (SIDE, SIDE, 3))
    second = color(request.second, rng)
    level = pattern(request.thing, rng, varied)[..., None]
    return second + level * (first - second)


def color(name: str, rng: np.random.Generator) -> np.ndarray:
    hue, low_saturation, high_saturation, low_value, high_value = COLORS[name]
    turn = 0.0 if hue is None else ((hue + rng.uniform(-5, 5)) % 360) / 360
    saturation = rng.uniform(low_saturation, high_saturation) / 100
    value = rng.uniform(low_value, high_value) / 100
    return np.array(colorsys.hsv_to_rgb(turn, saturation, value), np.float32)


def pattern(kind: str, rng: np.random.Generator, varied: bool) -> np.ndarray:
    """Returns 1 for the first color, 0 for the second, soft in between."""
    rows, columns = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    period, shift = rng.uniform(22, 32), rng.uniform(0, 32, 2)
    period = period if varied else 28
    if kind == "stripes":
        angle = rng.choice((0, np.pi / 4, np.pi / 2, 3 * np.pi / 4)) if varied else np.pi / 4
        wave = np.sin((rows * np.sin(angle) + columns * np.cos(angle) + shift[0]) * 2 * np.pi / period) + 0.2
        return np.clip(wave * 3 + 0.5, 0, 1).astype(np.float32)
    across = (columns + shift[0]) * 2 * np.pi / period
    down = (rows + shift[1]) * 2 * np.pi / period
    if kind == "checks":
        return np.clip(np.sin(across) * np.sin(down) * 5 + 0.5, 0, 1).astype(np.float32)
    return np.clip((np.cos(across) + np.cos(down) - 0.2) * 3 + 0.5, 0, 1).astype(np.float32)


def shaded(paint: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Lightens one side slightly and adds grain, as on real surfaces."""
    light = 1 + rng.uniform(0, 0.25) * (ramp(rng) - 0.5) + rng.uniform(0, 0.1) * (smooth_noise(rng, 12) - 0.5)
    grain = rng.standard_normal((SIDE, SIDE, 1), np.float32) * np.float32(rng.uniform(0, 0.02))
    return (paint * light[..., None] + grain).astype(np.float32)


