"""Reads repositories on a model hub: Hugging Face, or a mirror that answers like it."""

import json
import os
import urllib.error
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

from common.console import Problem

from .download import Refused, download

ENDPOINT = "https://huggingface.co"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Listed:
    """A file in a repository."""

    size_bytes: int | None
    # Published by the hub for large files only.
    sha256: str | None


@dataclass(frozen=True)
class Listing:
    """The files of a repository at a commit."""

    commit: str
    files: dict


class Hub:
    """`HF_ENDPOINT` names a mirror; `HF_TOKEN`, or the file that `hf auth login` writes, opens gated repositories."""

    def __init__(self, environment=os.environ):
        self.endpoint = checked_endpoint(environment.get("HF_ENDPOINT") or ENDPOINT)
        self.token = token_in(environment)

    @property
    def host(self):
        return urlsplit(self.endpoint).hostname

    def address(self, repository, revision, path):
        return f"{self.endpoint}/{repository}/resolve/{revision}/{quote(path)}"

    def listing(self, repository, revision, scratch):
        """Returns the files of a repository. `scratch` is a file that this may overwrite."""
        address = f"{self.endpoint}/api/models/{repository}/revision/{revision}?blobs=true"
        scratch.unlink(missing_ok=True)
        self.download(repository, address, None, scratch, f"the file list of {repository}")
        try:
            answer = json.loads(scratch.read_bytes())
            files = {file["rfilename"]: listed(file) for file in answer["siblings"]}
            return Listing(str(answer["sha"]), files)
        except (ValueError, KeyError, TypeError) as error:
            raise Refused(f"{self.host} answered {address} with something else than a file list ({error})") from None
        finally:
            scratch.unlink(missing_ok=True)

    def download(self, repository, address, sha256, target, label):
        """Like `download.download`, with the token. Returns the sha256 of the file."""
        opener = build_opener(Redirects(self))

        def open_address(request, timeout):
            self.authorize(request)
            try:
                return opener.open(request, timeout=timeout)
            except urllib.error.HTTPError as error:
                if error.code in (401, 403, 404):
                    with error:
                        raise Refused(self.refusal(repository, error)) from None
                raise

        return download(address, sha256, target, label, open_address)

    def authorize(self, request):
        """Adds the token, for the hub itself and nobody it redirects to."""
        if self.token and origin(request.full_url) == origin(self.endpoint):
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")

    def refusal(self, repository, error):
        page = f"{self.endpoint}/{repository}"
        said = error.headers.get("X-Error-Message")
        answer = f"{self.host} answered {error.code} {error.reason}" + (f": {said}" if said else "")
        if urlsplit(error.url).hostname != self.host:
            return f"{urlsplit(error.url).hostname} answered {error.code} {error.reason}"
        if error.code == 404:
            return f"{answer}; see {page} for what is there now"
        if self.token:
            return f"{answer}; the account of your token has no access to {repository}: accept its conditions on {page}, or use another token"
        return (
            f"{answer}; {repository} is gated, private, or gone: accept its conditions on {page}, and set HF_TOKEN to an access token of your account"
        )


class Redirects(HTTPRedirectHandler):
    """Follows redirects: with the token only on the hub itself, and never from HTTPS to plain HTTP."""

    def __init__(self, hub):
        self.hub = hub

    def redirect_request(self, request, file, code, message, headers, address):
        following = super().redirect_request(request, file, code, message, headers, address)
        if following is not None:
            if request.full_url.startswith("https:") and not following.full_url.startswith("https:"):
                raise Refused(f"{urlsplit(request.full_url).hostname} redirects to {urlsplit(address).hostname} without encryption")
            self.hub.authorize(following)
        return following


def listed(file):
    large = file.get("lfs") or {}
    return Listed(file.get("size", large.get("size")), large.get("sha256"))


def checked_endpoint(address):
    parts = urlsplit(address.rstrip("/"))
    if parts.hostname and (parts.scheme == "https" or parts.scheme == "http" and parts.hostname in LOOPBACK):
        return address.rstrip("/")
    raise Problem(f"HF_ENDPOINT is {address!r}; it must be an https address, such as {ENDPOINT}. Correct it, or unset it.")


def token_in(environment):
    """Returns the token from where the hub's own tools keep it."""
    if token := environment.get("HF_TOKEN", "").strip():
        return token
    cache = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home()) / ".cache"
    home = environment.get("HF_HOME") or Path(cache) / "huggingface"
    file = Path(environment.get("HF_TOKEN_PATH") or Path(home) / "token").expanduser()
    try:
        return file.read_text().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Problem(f"Cannot read your token in {file}: {error.strerror}. Correct its permissions, or set HF_TOKEN.") from None


def origin(address):
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port
