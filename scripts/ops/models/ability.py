"""What a model can serve by its manifest. A worker refuses the rest without opening the model, and with it tools.toml."""

from common.console import Problem

from . import catalog


def require(model, scopes):
    """Refuses scopes that a model cannot serve."""
    facts = catalog.read_toml(model.manifest)
    for demand in sorted({demand for scope in scopes for demand, _ in scope.points()}):
        if reason := objection(facts, demand):
            raise Problem(f"{model.name} was not bound, because it cannot serve {demand}: {reason}.")


def objection(facts, demand):
    """Returns why a model cannot serve a demand; None if it can."""
    task = facts["task"]
    match demand.split(":"):
        case ["magic-fix", _, mode]:
            modes = modes_of(facts)
            if modes and mode not in modes:
                return f"its modes are {', '.join(sorted(modes))}"
            is_able = bool(modes)
        case ["upscale", _, factor]:
            if task == "upscale":
                return scale_objection(facts.get("upscale", {}), int(factor.removesuffix("x")))
            is_able = False
        case ["clicks"]:
            is_able = task == "segment-anything"
        case _:
            is_able = task == "segmentation"
    return None if is_able else f"its task is {task}"


def modes_of(facts):
    """Returns the modes of Magic Fix that a model can serve."""
    match facts["task"]:
        case "upscale":
            # A net that does not enlarge was trained to clean.
            return {"enhance", "restore"} if facts.get("upscale", {}).get("scale") == 1 else {"enhance"}
        case "exemplar-fill" | "fill":
            return set(facts.get("modes", ()))
        case "sd-inpaint" | "flux2-klein":
            return set(facts.get("strength", ()))
    return set()


def scale_objection(upscale, factor):
    scale = upscale.get("scale")
    # Resampling enlarges by at most one half.
    is_near = isinstance(scale, int) and 1 < scale and factor * 2 <= scale * 3
    if (scale, factor) in ((2, 2), (4, 4), (4, 2)) or is_near and upscale.get("resample"):
        return None
    if scale == 1:
        return "its scale is 1: it cleans a picture without enlarging it; bind it to enhance or restore"
    more = f"; with upscale.resample = true, its output is resampled to {factor}X" if is_near else ""
    return f"its scale is {scale}, not {factor}{more}"
