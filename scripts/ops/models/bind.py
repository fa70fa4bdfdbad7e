"""`scripts/models bind` and `unbind`: edit tools.toml, which says which model serves what."""

import os
from pathlib import Path

from common.console import Problem

from . import demand, files, tools_text, worker_check
from .progress import info


def bind(catalog, name, words, device, settings):
    model = catalog.model(name)
    if model.is_template:
        raise Problem(f"{name} has not been fetched yet. Run `scripts/models fetch {name}` first.")
    if (state := files.state(model)) not in ("present", "needs none"):
        raise Problem(f"The files of {name} are not complete ({state}). Run `scripts/models fetch {name}` first.")
    scopes = parsed(words, device)
    tools = catalog.folder / "tools.toml"
    before = text_of(tools)
    after = tools_text.bound(before, name, scopes)
    demand.require_all_sizes(after)
    alone = tools_text.bound("", name, scopes)
    worker_check.require(model, alone, settings)
    write(tools, before, after)
    report(before, after)
    if not model.commercial_use and any(scope.tier == "paid" for scope in scopes):
        info(f"! {name} serves paid runs now, but its license, {model.license}, does not allow commercial use.")
    info(f"Running workers load {name} within seconds; those that run on another machine need its files too.")


def unbind(catalog, name, words, device):
    tools = catalog.folder / "tools.toml"
    before = text_of(tools)
    after = tools_text.unbound(before, name, parsed(words, device))
    if after == before:
        bound = sorted(catalog.bound())
        raise Problem(f"tools.toml does not bind {name} to {', '.join(words) or 'anything'}. It binds {', '.join(bound)}.")
    if not demand.chains(after):
        raise Problem(f"Without {name}, tools.toml would bind nothing, and workers refuse such a file. Bind another model first.")
    demand.require_all_sizes(after)
    write(tools, before, after)
    report(before, after)


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
    """Replaces the file, and keeps the one before: binding an old model again would not restore the size limits of its lines."""
    if before == after:
        return
    mode = tools.stat().st_mode & 0o777 if tools.exists() else 0o644
    if before:
        replace(Path(f"{tools}.before"), before, mode)
    replace(tools, after, mode)


def replace(path, text, mode):
    """Replaces a file in one step, because workers look at tools.toml once a second."""
    beside = Path(f"{path}.new")
    beside.write_text(text)
    beside.chmod(mode)
    os.replace(beside, path)


def report(before, after):
    """Says what served each demand, and what serves it now."""
    old, new = demand.served(before), demand.served(after)
    changes = {}
    for name, device in sorted(old.keys() | new.keys()):
        was, now = (found.get((name, device), "nothing") for found in (old, new))
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
    if before not in ("", after):
        info("The file as it was is tools.toml.before; rename it to tools.toml to go back.")
