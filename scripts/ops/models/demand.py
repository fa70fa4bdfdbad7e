"""What a line of tools.toml binds a model to: a tool or a mode of Magic Fix, a tier, a device; or to clicks on a device."""

import tomllib
from dataclasses import dataclass
from itertools import product

from common.console import Problem

MODES = ("edit", "restore", "remove", "enhance", "add")
# The tiers of each tool, and for upscales the factors of each tier.
TIERS = {"remove-background": ("paid", "free", "visitor"), "upscale": ("paid", "free", "visitor"), "magic-fix": ("paid",)}
FACTORS = {"paid": (2, 4), "free": (2,), "visitor": (2,)}
DEVICES = ("cpu", "cuda")
# The word for the model that answers clicks. Its lines are [[select]], those of tools [[bind]].
SELECT = "select"
CLICKS = "clicks"
TABLES = ("bind", "select")


@dataclass(frozen=True)
class Scope:
    """The demands that a line is for. A mode or a factor of None means all of them, and the device may be "any"."""

    tool: str
    tier: str | None
    device: str
    mode: str | None = None
    factor: int | None = None
    # The size of the largest picture, width times height. None for any size.
    largest_pixels: int | None = None

    def points(self):
        """Returns each single demand: a name as `models check` prints it, and a device."""
        devices = DEVICES if self.device == "any" else (self.device,)
        match self.tool:
            case "select":
                names = [CLICKS]
            case "magic-fix":
                names = [f"magic-fix:{self.tier}:{mode}" for mode in MODES if self.mode in (None, mode)]
            case "upscale":
                names = [f"upscale:{self.tier}:{factor}x" for factor in FACTORS[self.tier] if self.factor in (None, factor)]
            case _:
                names = [f"{self.tool}:{self.tier}"]
        return set(product(names, devices))

    @property
    def table(self):
        return "select" if self.tool == SELECT else "bind"

    def fields(self):
        if self.tool == SELECT:
            return {"device": self.device}
        found = {"tool": self.tool, "tier": self.tier, "mode": self.mode, "factor": self.factor, "device": self.device}
        found["largest_pixels"] = self.largest_pixels
        return {name: value for name, value in found.items() if value is not None}


def parse(word, device):
    """Returns the scopes of a word such as `edit`, `upscale:paid`, or `upscale:paid:4x`."""
    if word == SELECT:
        return [Scope(SELECT, None, device)]
    first, *rest = word.split(":")
    tool, mode = ("magic-fix", first) if first in MODES else (first, None)
    if tool not in TIERS:
        raise Problem(
            f"{word!r} names neither a tool nor a mode of Magic Fix; the tools are {', '.join(TIERS)}, the modes {', '.join(MODES)}, and {SELECT} is for clicks."
        )
    tier = rest.pop(0) if rest else None
    if tier not in (None, *TIERS[tool]):
        raise Problem(f"{word!r}: {tier!r} is not a tier of {tool}; its tiers are {', '.join(TIERS[tool])}.")
    factor = None
    if rest and tool == "magic-fix" and mode is None and rest[0] in MODES:
        mode = rest.pop(0)
    elif rest and tool == "upscale" and rest[0] in [f"{factor}x" for factor in FACTORS[tier]]:
        factor = int(rest.pop(0)[0])
    if rest:
        raise Problem(
            f"{word!r} has too many parts at {rest[0]!r}; write MODE or TOOL, then :TIER if it is for one tier, such as edit or upscale:free."
        )
    return [Scope(tool, tier, device, mode, factor) for tier in ((tier,) if tier else TIERS[tool])]


def scope_of(line, table="bind"):
    """Returns the scope of a line of tools.toml."""
    if table == SELECT:
        if line.get("device") not in (*DEVICES, "any"):
            raise Problem(
                f"tools.toml has a [[select]] whose device is {line.get('device')!r}; accepted are {', '.join(DEVICES)}, any. Correct it first."
            )
        return Scope(SELECT, None, line["device"])
    for field, accepted in (("tool", TIERS), ("tier", TIERS.get(line.get("tool"), ())), ("device", (*DEVICES, "any"))):
        if line.get(field) not in accepted:
            raise Problem(f"tools.toml has a line whose {field} is {line.get(field)!r}; accepted are {', '.join(accepted)}. Correct that line first.")
    return Scope(line["tool"], line["tier"], line["device"], line.get("mode"), line.get("factor"), line.get("largest_pixels"))


def served(text):
    """Returns what serves each single demand that workers take, such as `large up to 65536 pixels, then compact`."""
    found = chains(text)
    return {point: ", then ".join(model + up_to(limit) for model, limit in found[point]) for point in found if is_taken(*point, found)}


def is_taken(name, device, bound):
    """Returns whether a worker takes jobs with a bound demand: upscales only if all factors of their tier are bound."""
    tool, *rest = name.split(":")
    return tool != "upscale" or all((f"upscale:{rest[0]}:{factor}x", device) in bound for factor in FACTORS[rest[0]])


def chains(text):
    """Returns the models that serve each single demand and their size limits: those of the lines that fit, up to the first without limit."""
    found, document = {}, tomllib.loads(text)
    for table in TABLES:
        for line in document.get(table, []):
            scope = scope_of(line, table)
            for point in scope.points():
                chain = found.setdefault(point, [])
                if not chain or chain[-1][1] is not None:
                    chain.append((line["model"], scope.largest_pixels))
    return found


def up_to(limit):
    return "" if limit is None else f" up to {limit} pixels"


def require_all_sizes(text):
    """Refuses a text that workers refuse: wherever a line stops at a size, another one must serve larger pictures."""
    for (name, device), chain in sorted(chains(text).items()):
        model, limit = chain[-1]
        if limit is not None:
            raise Problem(
                f"tools.toml was not changed: only {model} would serve {name} on {device}, up to {limit} pixels and nothing larger, and "
                f"workers refuse such a file. Bind another model to {name}, or unbind {model} first."
            )
