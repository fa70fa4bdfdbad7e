"""`scripts/models list`: prints a table of all models."""

from common.console import Problem

from . import demand, files
from .hub_source import HubSource
from .progress import amount

TITLES = ("NAME", "TASK", "SIZE", "LICENSE", "COMMERCIAL USE", "SERVES", "SOURCE", "FILE")


def show(catalog):
    lines, problems = table(catalog)
    for line in lines:
        print(line, flush=True)
    if problems:
        raise Problem("\n✗ ".join(problems))


def table(catalog):
    """Returns the lines of the table, and the problems found.

    Models that `fetch` gets by default come first, in the order of tools.toml. The line of an invalid model has the reason.
    """
    problems = []
    try:
        bound = served_by(catalog)
    except Problem as problem:
        bound = None
        problems.append(str(problem))
    names = list(dict.fromkeys([*(bound or ()), *catalog.names()]))
    rows, reasons = {}, {}
    for name in names:
        try:
            rows[name] = row(catalog.model(name), serving(bound, name))
        except Problem as problem:
            reasons[name] = str(problem)
        except OSError as error:
            reasons[name] = f"Cannot read {error.filename}: {error.strerror}."
    if reasons:
        problems.append(f"Invalid models, for the reasons above: {', '.join(reasons)}.")
    widths = [max(map(len, column)) for column in zip(TITLES, *rows.values())]
    # Added after the column widths are computed, so that a long reason does not widen a column.
    invalid = {name: (name, f"✗ {serving(bound, name)}: {reason}") for name, reason in reasons.items()}
    lines = [TITLES, *((rows | invalid)[name] for name in names)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in lines], problems


def serving(bound, name):
    if bound is None:
        return "unknown"
    return f"default: {bound[name]}" if name in bound else "optional"


def row(model, serves):
    return (
        model.name,
        model.task,
        size_of(model),
        model.license,
        "yes" if model.commercial_use else "no",
        serves,
        source_of(model),
        files.state(model),
    )


def size_of(model):
    known = [file.size_bytes for file in model.files if file.size_bytes is not None]
    return ("about " if len(known) < len(model.files) else "") + amount(sum(known))


def served_by(catalog):
    """Returns the bindings of each model in tools.toml, such as `upscale (paid on cuda, free)`."""
    found = {}
    for line in catalog.bindings():
        factor = f" {line['factor']}x" if "factor" in line else f" {line['mode']}" if "mode" in line else ""
        device = "" if line["device"] == "any" else f" on {line['device']}"
        found.setdefault(line["model"], {}).setdefault(line["tool"], []).append(
            f"{line['tier']}{factor}{demand.up_to(line.get('largest_pixels'))}{device}"
        )
    for line in catalog.selectors():
        device = "any device" if line["device"] == "any" else line["device"]
        found.setdefault(line["model"], {}).setdefault("clicks", []).append(device)
    return {model: "; ".join(f"{tool} ({', '.join(tiers)})" for tool, tiers in tools.items()) for model, tools in found.items()}


def source_of(model):
    match model.source:
        case None:
            return "part of Retouch" if model.attribution == "Retouch" else "provided by you"
        case HubSource(repository=repository, revision=revision):
            return f"hub {repository} {revision[:8]}"
        case {"registry": "url", "url": url}:
            return url
        case {"registry": registry, "package": package, "version": version, **more}:
            return f"{registry} {package} {version}" + (f", converted from {more['convert']}" if "convert" in more else "")
