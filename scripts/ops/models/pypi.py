"""Finds files in a Python package index, with the settings of pip."""

import ast
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin
from urllib.request import Request

from common.config import CACHE

from .clients import answer_of, run
from .download import NETWORK_ERRORS, TIMEOUT_SECONDS, reason_of
from .progress import info
from .web import opener, with_credentials_of

CLIENT = "pip"
# Media types of an index, in order of preference.
MEDIA_TYPES = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


def find(name, version, sha256):
    """Returns the URLs of a file and a function that opens them. Without URLs, pip has to download the file."""
    settings = Settings.of_pip()
    try:
        open_address = opener(settings.proxy, settings.certificates, settings.trusted_hosts)
    except OSError as error:
        info(f"  cannot read the certificates of pip: {error}")
        return [], None
    addresses = []
    for index in settings.indexes:
        try:
            addresses += addresses_in(index, name, sha256, open_address)
        except (*NETWORK_ERRORS, ValueError) as error:
            info(f"  cannot read a package index: {reason_of(error)}")
    return addresses, open_address


def addresses_in(index, name, sha256, open_address):
    page = f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    with open_address(Request(page, headers={"Accept": MEDIA_TYPES}), timeout=TIMEOUT_SECONDS) as response:
        links = links_in(response.headers.get_content_type(), response.read().decode())
        base = response.url
    return [with_credentials_of(page, urljoin(base, address)) for address, digest in links if digest == sha256]


def links_in(kind, text):
    """Returns the URL and sha256 of each file on a page of an index, which is JSON or HTML."""
    if kind.endswith("json"):
        return [(file["url"], file["hashes"].get("sha256")) for file in json.loads(text)["files"]]
    page = Links()
    page.feed(text)
    return [(address, mark.removeprefix("sha256=")) for address, mark in map(urldefrag, page.addresses)]


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        if tag == "a" and (address := dict(attributes).get("href")):
            self.addresses.append(address)


@dataclass(frozen=True)
class Settings:
    indexes: list
    proxy: str | None
    certificates: str | None
    trusted_hosts: list

    @classmethod
    def of_pip(cls):
        """Reads the settings of `pip download`: the environment overrides its own section, which overrides the global one."""
        lines = [line.partition("=") for line in answer_of([*pip(), "config", "list"]).splitlines()]
        found = {name: value for name, _, value in lines}

        def setting(name):
            for section in (":env:", "download", "global"):
                if value := found.get(f"{section}.{name}"):
                    return ast.literal_eval(value)
            return None

        indexes = [setting("index-url") or default_index(), *(setting("extra-index-url") or "").split()]
        if setting("no-index") not in (None, "", "0", "no", "false", "off"):
            indexes = []
        return cls(
            indexes=[index for index in indexes if index],
            proxy=setting("proxy"),
            certificates=setting("cert"),
            trusted_hosts=(setting("trusted-host") or "").split(),
        )


def default_index():
    """Returns the default index, which pip only states in its help."""
    help_text = " ".join(answer_of([*pip(), "download", "--help"]).split())
    found = re.search(r"--index-url <url> [^(]*\(default (\S+)\)", help_text)
    return found[1] if found else None


def download(name, version, sha256, compiled, folder):
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{name}=={version} --hash=sha256:{sha256}\n")
    command = [
        *pip(), "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--only-binary=:all:", "--ignore-requires-python", "--require-hashes",
        "--dest", folder, "--requirement", requirements,
    ]  # fmt: skip
    if compiled:
        # Names the platform, because this Python may be another version.
        command += ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"]
        command += ["--platform", "manylinux_2_28_x86_64"]
    run(command, f"pip could not download {name} {version}")


def pip():
    """Returns the command of pip: the one of this Python, or one in a virtual environment that this creates."""
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True).returncode == 0:
        return own
    folder = CACHE / "pip"
    if not (folder / "bin" / "pip").exists():
        run(
            [sys.executable, "-m", "venv", folder],
            "This Python has no pip and no venv. Please install one of them (Debian: apt install python3-venv)",
        )
    return [folder / "bin" / "python", "-m", "pip"]
