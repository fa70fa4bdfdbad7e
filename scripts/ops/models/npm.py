"""Where a file of an npm registry lies, by npm's settings."""

import json
import shutil
from urllib.parse import urlsplit

from common.say import Problem

from .clients import answer_of, run
from .progress import tell
from .web import opener

CLIENT = "npm"


def find(name, version, sha256):
    """The addresses to try, and what opens them. Where npm does not say them, it must fetch the file itself."""
    if shutil.which("npm") is None:
        raise Problem(f"npm is needed to fetch {name}; install Node.js 20.")
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
        tell(f"  npm's certificates cannot be read: {error}")
        return [], None
    return candidates(address, registry), open_address


def candidates(address, registry):
    """A registry that mirrors another may name the other's addresses; npm then asks the mirror, and so do we first."""
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
