"""Finds files in an npm registry, with the settings of npm."""

import json
import shutil
from urllib.parse import urlsplit

from common.console import Problem

from .clients import answer_of, run
from .progress import info
from .web import opener

CLIENT = "npm"


def find(name, version, sha256):
    """Returns the URLs to try and a function that opens them. Without URLs, npm has to download the file."""
    if shutil.which("npm") is None:
        raise Problem(f"Fetching {name} requires npm. Please install Node.js 20.")
    address = answer_of(["npm", "view", f"{name}@{version}", "dist.tarball"]).strip()
    settings = read_settings()
    if not address.startswith(("https://", "http://")):
        return [], None
    scope = name.partition("/")[0]
    registry = settings.get(f"{scope}:registry") or settings.get("registry") or ""
    try:
        open_address = opener(
            settings.get("https-proxy") or settings.get("proxy"),
            settings.get("cafile"),
            [] if settings.get("strict-ssl", True) else [host for url in (address, registry) if (host := urlsplit(url).hostname)],
        )
    except OSError as error:
        info(f"  cannot read the certificates of npm: {error}")
        return [], None
    return candidates(address, registry), open_address


def candidates(address, registry):
    """A mirror may return URLs of the original registry. Like npm, this tries the mirror first."""
    path = urlsplit(address).path
    if not registry or urlsplit(registry).netloc == urlsplit(address).netloc:
        return [address]
    return [registry.rstrip("/") + path, address]


def read_settings():
    try:
        return json.loads(answer_of(["npm", "config", "list", "--long", "--json"]))
    except json.JSONDecodeError:
        return {}


def download(name, version, sha256, compiled, folder):
    run(
        ["npm", "pack", "--silent", "--pack-destination", folder, f"{name}@{version}"],
        f"npm could not download {name} {version}",
    )
