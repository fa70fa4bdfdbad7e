"""`scripts/models bind` and `unbind`: edit tools.toml, which says which model serves what."""

import os
from pathlib import Path

from common.console import Problem

from . import ability, demand, files, tools_text, worker_check
from .progress import info

# What answers clicks that are bound to no model.
UNBOUND_CLICKS = "the net of Remove Background"


def bind(catalog, name, words, device, settings):
    model = catalog.model(name)
    if model.is_template:
        raise Problem(f"{name} has not been fetched yet. Run `scripts/models fetch {name}` first.")
    if (state := files.state(model)) not in ("present", "needs none"):
        raise Problem(f"The files of {name} are not complete ({state}). Run `scripts/models fetch {name}` first.")
    scopes = parsed(words, device)
    ability.require(model, scopes)
    tools = catalog.folder / "tools.toml"
    before = text_of(tools)
    after = tools_text.bound(before, name, scopes)
    demand.require_all_sizes(after)
    alone = tools_text.bound("", name, scopes)
    is_checked = worker_check.require(model, alone, settings)
    report(before, after, write(tools, before, after))
    if not model.commercial_use and any(scope.tier == "paid" for scope in scopes):
        info(f"! {name} serves paid runs now, but its license, {model.license}, does not allow commercial use.")
    if is_checked:
        info(f"Running workers load {name} within seconds; those that run on another machine need its files too.")
    else:
        info(
            f"Running workers will check {name}, and keep the old model if it fails: look at `/readyz`. No worker starts with a model that "
            "fails. Workers on another machine need its files too."
        )


def unbind(catalog, name, words, device, may_take_offline=False):
    tools = catalog.folder / "tools.toml"
    before = text_of(tools)
    scopes = parsed(words or (*demand.TIERS, demand.SELECT), device)
    after = tools_text.unbound(before, name, scopes)
    if after == before:
        raise Problem(why_not_unbound(before, name, scopes, catalog.bound()))
    if not demand.chains(after):
        raise Problem(f"Without {name}, tools.toml would bind nothing, and workers refuse such a file. Bind another model first.")
    demand.require_all_sizes(after)
    lost = {(name, device) for name, device in demand.served(before).keys() - demand.served(after).keys() if name != demand.CLICKS}
    if lost and not may_take_offline:
        raise Problem(
            f"tools.toml was not changed: without {name}, nothing would serve {listed(lost)}. Bind another model to it, which replaces "
            f"{name}. To undo a bind, rename the newest tools.toml.before.N to tools.toml. To take a tool offline, add --take-offline."
        )
    report(before, after, write(tools, before, after))


def why_not_unbound(text, name, scopes, bound):
    wanted = set().union(*(scope.points() for scope in scopes))
    found = [point for point, chain in demand.chains(text).items() if point in wanted and name in dict(chain)]
    if not found:
        return f"tools.toml does not bind {name} to any of that. It binds {', '.join(sorted(bound))}."
    return f"tools.toml binds {name} to {listed(found)}, but in lines that are for more than that. Bind another model there instead."


def listed(points):
    """Returns demands in words, each once if it is for both devices."""
    devices = {}
    for name, device in sorted(points):
        devices.setdefault(name, []).append(device)
    return ", ".join(name if len(on) > 1 else f"{name} on {on[0]}" for name, on in devices.items())


def parsed(words, device):
    return [scope for word in words for scope in demand.parse(word, device)]


def text_of(tools):
    try:
        return tools.read_text()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise Problem(f"Cannot read {tools}: {error.strerror}.") from None


def write(tools, before, after):
    """Replaces the file. Keeps the one before under the next number, and returns its name; None if there is nothing to keep.

    Binding an old model again would not restore the size limits of its lines.
    """
    if before == after:
        return None
    mode = tools.stat().st_mode & 0o777 if tools.exists() else 0o644
    kept = next_kept(tools) if before else None
    if kept:
        replace(kept, before, mode)
    replace(tools, after, mode)
    return kept and kept.name


def next_kept(tools):
    numbers = [int(path.suffix[1:]) for path in tools.parent.glob(f"{tools.name}.before.*") if path.suffix[1:].isdigit()]
    return Path(f"{tools}.before.{max(numbers, default=0) + 1}")


def replace(path, text, mode):
    """Replaces a file in one step, because workers look at tools.toml once a second."""
    beside = Path(f"{path}.new")
    beside.write_text(text)
    beside.chmod(mode)
    os.replace(beside, path)


def report(before, after, kept):
    """Says what served each demand, what serves it now, and where the file before is kept."""
    old, new = demand.served(before), demand.served(after)
    changes = {}
    for name, device in sorted(old.keys() | new.keys()):
        default = UNBOUND_CLICKS if name == demand.CLICKS else "nothing"
        was, now = (found.get((name, device), default) for found in (old, new))
        if was != now:
            changes.setdefault((name, was, now), []).append(device)
    for (name, was, now), devices in changes.items():
        where = f" on {devices[0]}" if len(devices) == 1 else ""
        info(f"{name}{where}: {was} → {now}")
        if now == "nothing":
            info("  nobody serves it now: the API refuses it before anything is charged")
    if not changes:
        info("Nothing changes: this is how it was bound before." if before == after else "Everything is served as before.")
    for name, device in sorted(demand.chains(after).keys() - new.keys()):
        info(f"! {name} on {device} is bound, but nobody serves it: workers take paid upscales only if 2x and 4x are bound")
    if kept:
        info(f"The file as it was is {kept}; rename it to tools.toml to go back.")
