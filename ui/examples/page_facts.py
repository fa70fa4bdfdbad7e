"""What the page has to know of the pictures, and whom to thank for the photos."""

import json
from pathlib import Path

FEATURES = Path(__file__).resolve().parents[1] / "src/features"
# A feature of the page knows no other one, so each has the facts that it shows.
LANDING = FEATURES / "landing/examples.json"
MAGIC_FIX = FEATURES / "tools/magic-fix/examples/examples.json"
LISTS = {"cut-out": "cutOuts", "upscale": "upscales", "fix": "fixes"}


def write_facts(facts: list[dict], photos: dict, cases: dict) -> None:
    """Those of the pictures that were made now; of the others what is known stays."""
    known = json.loads(LANDING.read_text()) if LANDING.is_file() else {}
    ids = {case["id"] for group in cases.values() for case in group}
    lists = {name: [entry for entry in known.get(name, []) if entry["id"] in ids] for name in LISTS.values()}
    for fact in facts:
        entry = {key: value for key, value in fact.items() if key not in ("kind", "photo")}
        photo = photos[fact["photo"]]
        entry["credit"] = f"Photo: {photo['author']}, {photo['licence']}"
        put(lists[LISTS[fact["kind"]]], entry)
    write_json(LANDING, lists)
    write_json(MAGIC_FIX, lists["fixes"])


def put(entries: list[dict], entry: dict) -> None:
    """In the place of the one with its id, or at the end."""
    for index, known in enumerate(entries):
        if known["id"] == entry["id"]:
            entries[index] = entry
            return
    entries.append(entry)


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_attribution(path: Path, photos: dict, cases: dict) -> None:
    uses: dict[str, list[str]] = {name: [] for name in photos}
    for case in (case for group in cases.values() for case in group):
        uses[case["photo"]].append(case["id"])
    lines = [
        "# Photos of the examples",
        "",
        "Written by `make.py` from `photos.toml` and `cases.toml`. None of these licences asks for it; we thank all the same.",
        "The results were made by Retouch and are under the licence of this repository.",
        "",
        "| photo | what | by | licence | where it is from | used for |",
        "|---|---|---|---|---|---|",
    ]
    for name, photo in photos.items():
        found = photo["found"] + ("; " + photo["changes"] if "changes" in photo else "")
        cells = [f"photos/{name}.jpg", photo["what"], photo["author"], photo["licence"], f"<{photo['source']}>, found in {found}", ", ".join(uses[name])]
        lines.append("| " + " | ".join(cells) + " |")
    path.write_text("\n".join(lines) + "\n")
