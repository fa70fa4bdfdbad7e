"""Where a file of the Python Package Index lies, by pip's settings."""

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
from .download import BROKEN, TIMEOUT_SECONDS, sentence
from .progress import tell
from .web import opener, with_login_of

CLIENT = "pip"
# What an index may answer with, the first preferred.
ANSWERS = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


def find(name, version, sha256):
    """The addresses of the file with this checksum, and what opens them. Where none is found, pip must see to it."""
    settings = Settings.of_pip()
    try:
        open_address = opener(settings.proxy, settings.certificates, settings.trusted_hosts)
    except OSError as error:
        tell(f"  pip's certificates cannot be read: {error}")
        return [], None
    addresses = []
    for index in settings.indexes:
        try:
            addresses += addresses_in(index, name, sha256, open_address)
        except (*BROKEN, ValueError) as error:
            tell(f"  an index of pip's cannot be asked: {sentence(error)}")
    return addresses, open_address


def addresses_in(index, name, sha256, open_address):
    page = f"{index.rstrip('/')}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    with open_address(Request(page, headers={"Accept": ANSWERS}), timeout=TIMEOUT_SECONDS) as response:
        links = links_in(response.headers.get_content_type(), response.read().decode())
        base = response.url
    return [with_login_of(page, urljoin(base, address)) for address, digest in links if digest == sha256]


def links_in(kind, text):
    """Each file's address and sha256, from either kind of page that an index may give."""
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
        """What `pip download` would go by: its files, then the section for this command, then the environment."""
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
    """The index that pip goes to when nobody names one, as its help says it."""
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
        # Name the platform, so that the same file comes whichever Python runs this script.
        command += ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"]
        command += ["--platform", "manylinux_2_28_x86_64"]
    run(command, f"pip could not download {name} {version}")


def pip():
    """A pip that works: this Python's own, or one in a virtual environment made for the purpose."""
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True).returncode == 0:
        return own
    folder = CACHE / "pip"
    if not (folder / "bin" / "pip").exists():
        run(
            [sys.executable, "-m", "venv", folder],
            "This Python has neither pip nor venv; install one (Debian: apt install python3-venv)",
        )
    return [folder / "bin" / "python", "-m", "pip"]
