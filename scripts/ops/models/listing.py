"""`scripts/models list`."""

from common.say import Problem

from . import files
from .progress import amount

TITLES = ("NAME", "TASK", "SIZE", "LICENCE", "COMMERCIAL USE", "SERVES", "SOURCE", "FILE")


def show(catalogue):
    lines, problems = table(catalogue)
    for line in lines:
        print(line, flush=True)
    if problems:
        raise Problem("\n✗ ".join(problems))


def table(catalogue):
    """The lines, and what is wrong. The models that `fetch` gets by default come first, in the order of tools.toml.

    A model that is wrong is a line with the reason, and hides no other.
    """
    problems = []
    try:
        bound = served_by(catalogue)
    except Problem as problem:
        bound = None
        problems.append(str(problem))
    names = list(dict.fromkeys([*(bound or ()), *catalogue.names()]))
    rows, reasons = {}, {}
    for name in names:
        try:
            rows[name] = row(catalogue.model(name), serving(bound, name))
        except Problem as problem:
            reasons[name] = str(problem)
        except OSError as error:
            reasons[name] = f"{error.filename} cannot be read: {error.strerror}."
    if reasons:
        problems.append(f"Wrong, for the reasons above: {', '.join(reasons)}.")
    widths = [max(map(len, column)) for column in zip(TITLES, *rows.values())]
    # A reason is as long as it is: it makes no column wider.
    wrong = {name: (name, f"✗ {serving(bound, name)}: {reason}") for name, reason in reasons.items()}
    lines = [TITLES, *((rows | wrong)[name] for name in names)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in lines], problems


def serving(bound, name):
    if bound is None:
        return "unknown"
    return f"default: {bound[name]}" if name in bound else "optional"


def row(model, serves):
    return (
        model.name,
        model.task,
        amount(sum(file.size_bytes for file in model.files)),
        model.licence,
        "yes" if model.commercial_use else "no",
        serves,
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
