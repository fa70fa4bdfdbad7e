"""What the shapes demo can be asked for: colours, things, and the wordings that it is trained on."""

import itertools
import re
from dataclasses import dataclass

import numpy as np

# Hue in degrees, saturation from–to and value from–to in per cent. None: no hue.
COLOURS = {
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
TWO_COLOUR_WORDINGS = ("{c} and {d} {t}", "{c} {t} on {d}")
SHAPE_WORDINGS = (
    "a {c} {t}", "a {c} {t}", "{c} {t}", "{c} {t}", "one {c} {t}", "the {c} {t}", "a {t} that is {c}", "a {t} in {c}",
    "add a {c} {t}", "draw a {c} {t}", "paint a {c} {t} here", "put a {c} {t} here", "a {c} {t}, please",
)  # fmt: skip
COLOURLESS_WORDINGS = {"shape": ("a {t}", "add a {t}", "{t}"), "pattern": ("{t}", "add {t}")}


@dataclass(frozen=True)
class Request:
    """What to paint. `second` is a pattern's other colour, `colour` is ANY where the caption shall not name it."""

    thing: str
    colour: str
    second: str = "white"
    names_colour: bool = True


def wordings(request: Request) -> tuple[str, ...]:
    if request.thing == PLAIN:
        return PLAIN_WORDINGS
    kind = "shape" if request.thing in SHAPES else "pattern"
    if not request.names_colour:
        return COLOURLESS_WORDINGS[kind]
    if kind == "pattern" and request.second != "white":
        return TWO_COLOUR_WORDINGS
    return SHAPE_WORDINGS if kind == "shape" else PATTERN_WORDINGS


def names(colour: str) -> tuple[str, ...]:
    return SYNONYMS.get(colour, (colour,))


def caption(request: Request, rng: np.random.Generator) -> str:
    text = rng.choice(wordings(request)).replace("{t}", request.thing)
    text = text.replace("{c}", rng.choice(names(request.colour))).replace("{d}", rng.choice(names(request.second)))
    return text.replace("a orange", "an orange")


def random_request(rng: np.random.Generator) -> Request:
    kind = rng.choice(("plain", "pattern", "shape"), p=(0.27, 0.28, 0.45))
    # Colours that have a hue twice as often as black, white, gray and brown.
    weights = np.array([1.0 if c in ("black", "white", "gray", "brown") else 2.0 for c in COLOURS])
    colour, second = rng.choice(list(COLOURS), size=2, replace=False, p=weights / weights.sum())
    names_colour = rng.random() > 0.04
    if kind == "plain":
        return Request(PLAIN, str(colour))
    if kind == "shape":
        return Request(str(rng.choice(SHAPES)), str(colour), names_colour=names_colour)
    if colour == "white" or rng.random() < 0.25:
        return Request(str(rng.choice(PATTERNS)), str(colour), str(second), names_colour)
    return Request(str(rng.choice(PATTERNS)), str(colour), names_colour=names_colour)


def vocabulary() -> list[str]:
    """Every word of every wording, which is all the words the text encoder has ever seen."""
    templates = itertools.chain(
        PLAIN_WORDINGS, PATTERN_WORDINGS, TWO_COLOUR_WORDINGS, SHAPE_WORDINGS, *COLOURLESS_WORDINGS.values()
    )
    words = {word for template in templates for word in re.findall(r"[a-z]+", re.sub(r"{.}", "", template))}
    words |= {name for colour in COLOURS for name in names(colour)} | set(SHAPES) | set(PATTERNS) | {"an"}
    return sorted(words)
