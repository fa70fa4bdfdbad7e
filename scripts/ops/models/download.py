"""Downloads a file over HTTP. After an interruption, the next attempt, in this run or a later one, resumes."""

import http.client
import ssl
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from common.console import Problem

from . import files
from .progress import Progress, amount, info

CHUNK_BYTES = 1 << 18
TIMEOUT_SECONDS = 60
# Delays before the retries. A retry that receives data starts the list over.
BACKOFF_SECONDS = (1, 3, 10, 30)
NETWORK_ERRORS = (OSError, http.client.HTTPException)


class Refused(Exception):
    """The server refuses to serve the file. Retrying would not help."""


class Interrupted(Exception):
    """The connection failed. Retrying may help."""


def download(address, sha256, target, label, open_address=urllib.request.urlopen, sleep=time.sleep):
    """Downloads a file to `target`, and returns its sha256. It is named `….part` until it is complete and its checksum is right.

    If nobody has published the checksum, `sha256` is None.
    """
    part = target.with_name(target.name + ".part")
    resumed = part.exists() and part.stat().st_size > 0
    transfer_whole(address, part, label, open_address, sleep)
    actual = files.sha256_of(part)
    if actual != sha256 and sha256 and resumed:
        # The part from an earlier run may have been damaged.
        info(f"  {label}: wrong checksum after resuming; downloading it again")
        part.unlink()
        transfer_whole(address, part, label, open_address, sleep)
        actual = files.sha256_of(part)
    if actual != sha256 and sha256:
        part.unlink()
        raise Problem(
            f"{label} from {host_of(address)} has the sha256 {actual}; expected {sha256}. The file was discarded. Either it was "
            "damaged in transit, or the server has a different file under this name."
        )
    part.replace(target)
    return actual


def transfer_whole(address, part, label, open_address, sleep):
    delays = iter(BACKOFF_SECONDS)
    while True:
        before = size_of(part)
        try:
            return transfer(address, part, label, open_address)
        except KeyboardInterrupt:
            if size_of(part):
                info(f"\n  {label}: kept {amount(size_of(part))}; the next fetch resumes there")
            raise
        except Interrupted as reason:
            if size_of(part) > before:
                delays = iter(BACKOFF_SECONDS)
            delay = next(delays, None)
            if delay is None and not size_of(part):
                raise Refused(f"cannot reach {host_of(address)}: {reason}") from None
            if delay is None:
                raise Problem(
                    f"Could not download {label} from {host_of(address)}: {reason}. Kept {amount(size_of(part))}; run this again to resume."
                ) from None
            info(f"  {label}: interrupted at {amount(size_of(part))} ({reason}); resuming in {delay} s")
            sleep(delay)


def transfer(address, part, label, open_address):
    """Downloads the rest of a part."""
    done = size_of(part)
    try:
        response = request_rest(address, done, open_address)
        if response is None:
            return
        with response:
            # A server without support for ranges sends the whole file.
            if response.status == 206:
                info(f"  {label}: resuming at {amount(done)}")
            else:
                done = 0
            total = total_of(response, done)
            with part.open("ab" if done else "wb") as file:
                copy(response, file, Progress(label, done, total))
    except NETWORK_ERRORS as error:
        if isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError):
            raise Refused(f"the certificate of {host_of(address)} is not trusted: {reason_of(error)}") from None
        raise Interrupted(reason_of(error)) from None
    if total is not None and size_of(part) < total:
        raise Interrupted("the connection was closed")


def request_rest(address, done, open_address):
    """Requests the bytes from `done` on. Returns None if there are none."""
    request = urllib.request.Request(address, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        return open_address(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and done:
                return None
            if error.code in (408, 429) or error.code >= 500:
                raise Interrupted(f"the server answered {error.code} {error.reason}") from None
            raise Refused(f"{host_of(address)} answered {error.code} {error.reason}") from None


def total_of(response, done):
    length = response.headers.get("Content-Length")
    return done + int(length) if length is not None and length.isdigit() else None


def copy(response, file, progress):
    while data := response.read(CHUNK_BYTES):
        write(file, data)
        progress.advance(len(data))


def write(file, data):
    try:
        file.write(data)
        file.flush()
    except OSError as error:
        raise Problem(f"Cannot write {file.name}: {error.strerror}.") from None


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def host_of(address):
    return urlsplit(address).hostname or address


def reason_of(error):
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason) or type(error).__name__
