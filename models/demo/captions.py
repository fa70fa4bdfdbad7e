"""The vocabulary of the shapes demo: colors, things, and the wordings it is trained on."""

import itertools
import re
from dataclasses import dataclass

import numpy as np

# Hue in degrees, ranges of saturation and of value in percent. None: no hue.
COLORS = {
    "red": (0, 82, 100, 72, 95),
    "orange": (28, 88, 100, 88, 100),
    "yellow": (54, 82, 100, 86, 100),
    "green": (125, 68, 95, 48, 80),
    "cyan": (183, 70, 95, 80, 95),
    "blue": (225, 74, 95, 62, 95),
    "purple": (275, 62, 88, 48, 80),
    "pink": (328, 45, 65, 92, 100),
    "brown": (24, 60, 75, 34, 50),
    "black": (None, 0, 0, 3, 12),
    "white": (None, 0, 0, 92, 100),
    "gray": (None, 0, 0, 45, 60),
}
SYNONYMS = {"gray": ("gray", "grey"), "purple": ("purple", "violet"), "cyan": ("cyan", "turquoise")}
SHAPES = ("circle", "square", "triangle", "star", "heart", "diamond")
PATTERNS = ("stripes", "dots", "checks")
PLAIN = "plain"
ANY = "any"

PLAIN_WORDINGS = (
    "{c}", "{c}", "make it {c}", "paint it {c}", "turn it {c}", "color it {c}", "fill it with {c}", "{c} paint",
    "a {c} area", "the area in {c}", "plain {c}", "all {c}", "{c} color", "the colour {c}", "{c} texture",
    "a {c} texture", "please make this {c}",
)  # fmt: skip
PATTERN_WORDINGS = (
    "{c} {t}", "{c} {t}", "{c} {t}", "{c} and white {t}", "with {c} {t}", "add {c} {t}", "paint {c} {t} here",
    "a pattern of {c} {t}", "a texture with {c} {t}", "{t} in {c}",
)  # fmt: skip
TWO_COLOR_WORDINGS = ("{c} and {d} {t}", "{c} {t} on {d}")
SHAPE_WORDINGS = (
    "a {c} {t}", "a {c} {t}", "{c} {t}", "{c} {t}", "one {c} {t}", "the {c} {t}", "a {t} that is {c}", "a {t} in {c}",
    "add a {c} {t}", "draw a {c} {t}", "paint a {c} {t} here", "put a {c} {t} here", "a {c} {t}, please",
)  # fmt: skip
COLORLESS_WORDINGS = {"shape": ("a {t}", "add a {t}", "{t}"), "pattern": ("{t}", "add {t}")}


@dataclass(frozen=True)
class Request:
    """What to paint. `second` is a pattern's other color; with `names_color` false, the caption names no color."""

    thing: str
    color: str
    second: str = "white"
    names_color: bool = True


def wordings(request: Request) -> tuple[str, ...]:
    if request.thing == PLAIN:
        return PLAIN_WORDINGS
    kind = "shape" if request.thing in SHAPES else "pattern"
    if not request.names_color:
        return COLORLESS_WORDINGS[kind]
    if kind == "pattern" and request.second != "white":
        return TWO_COLOR_WORDINGS
    return SHAPE_WORDINGS if kind == "shape" else PATTERN_WORDINGS


def names(color: str) -> tuple[str, ...]:
    return SYNONYMS.get(color, (color,))


def caption(request: Request, rng: np.random.Generator) -> str:
    text = rng.choice(wordings(request)).replace("{t}", request.thing)
    text = text.replace("{c}", rng.choice(names(request.color))).replace("{d}", rng.choice(names(request.second)))
    return text.replace("a orange", "an orange")


def random_request(rng: np.random.Generator) -> Request:
    kind = rng.choice(("plain", "pattern", "shape"), p=(0.27, 0.28, 0.45))
    # Colors with a hue occur twice as often as black, white, gray and brown.
    weights = np.array([1.0 if c in ("black", "white", "gray", "brown") else 2.0 for c in COLORS])
    color, second = rng.choice(list(COLORS), size=2, replace=False, p=weights / weights.sum())
    names_color = rng.random() > 0.04
    if kind == "plain":
        return Request(PLAIN, str(color))
    if kind == "shape":
        return Request(str(rng.choice(SHAPES)), str(color), names_color=names_color)
    if color == "white" or rng.random() < 0.25:
        return Request(str(rng.choice(PATTERNS)), str(color), str(second), names_color)
    return Request(str(rng.choice(PATTERNS)), str(color), names_color=names_color)


def vocabulary() -> list[str]:
    """Returns every word of every wording: all that the text encoder has ever seen."""
    templates = itertools.chain(
        PLAIN_WORDINGS, PATTERN_WORDINGS, TWO_COLOR_WORDINGS, SHAPE_WORDINGS, *COLORLESS_WORDINGS.values()
    )
    words = {word for template in templates for word in re.findall(r"[a-z]+", re.sub(r"{.}", "", template))}
    words |= {name for color in COLORS for name in names(color)} | set(SHAPES) | set(PATTERNS) | {"an"}
    return sorted(words)
