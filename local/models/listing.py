"""`scripts/models list`."""

from . import files
from .progress import amount

TITLES = ("NAME", "TASK", "SIZE", "LICENCE", "COMMERCIAL USE", "SERVES", "SOURCE", "FILE")


def show(catalogue):
    for line in table(catalogue):
        print(line)


def table(catalogue):
    """The models that `fetch` gets by default come first, in the order of tools.toml."""
    serves = served_by(catalogue)
    names = [*serves, *(name for name in catalogue.names() if name not in serves)]
    rows = [TITLES, *(row(catalogue.model(name), serves.get(name)) for name in names)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]


def row(model, serves):
    return (
        model.name,
        model.task,
        amount(sum(file.size_bytes for file in model.files)),
        model.licence,
        "yes" if model.commercial_use else "no",
        f"default: {serves}" if serves else "optional",
        source_of(model),
        files.state(model),
    )


def served_by(catalogue):
    """What tools.toml binds each model to, as `upscale (paid on cuda, free)`."""
    found = {}
    for line in catalogue.bindings():
        factor = f" {line['factor']}x" if "factor" in line else f" {line['mode']}" if "mode" in line else ""
        device = "" if line["device"] == "any" else f" on {line['device']}"
        found.setdefault(line["model"], {}).setdefault(line["tool"], []).append(f"{line['tier']}{factor}{device}")
    return {
        model: "; ".join(f"{tool} ({', '.join(tiers)})" for tool, tiers in tools.items()) for model, tools in found.items()
    }


def source_of(model):
    match model.source:
        case None:
            # A demo and a fill of our own are in the checkout; whatever else names no source, its operator has adopted.
            return "part of Retouch" if model.attribution == "Retouch" else "brought by you"
        case {"registry": "url", "url": url}:
            return url
        case {"registry": registry, "package": package, "version": version, **more}:
            return f"{registry} {package} {version}" + (f", converted from {more['convert']}" if "convert" in more else "")
