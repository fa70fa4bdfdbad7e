"""One file over HTTP. What breaks off is kept, and the next try, in this run or a later one, goes on from there."""

import http.client
import ssl
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from common.say import Problem

from . import files
from .progress import Progress, amount, tell

CHUNK_BYTES = 1 << 18
TIMEOUT_SECONDS = 60
# Tries in a row that bring nothing, and the pauses between them.
PAUSES_SECONDS = (1, 3, 10, 30)
BROKEN = (OSError, http.client.HTTPException)


class Refused(Exception):
    """The server does not give the file; asking again would not help."""


class BrokeOff(Exception):
    """The connection failed; going on may help."""


def download(address, sha256, target, label, open_address=urllib.request.urlopen, sleep=time.sleep):
    """Brings the file with this checksum to `target`. Until it is whole and right it is called `….part`."""
    part = target.with_name(target.name + ".part")
    went_on = part.exists() and part.stat().st_size > 0
    transfer_whole(address, part, label, open_address, sleep)
    actual = files.sha256_of(part)
    if actual != sha256 and went_on:
        # What an earlier run left may have been damaged; a second whole transfer tells.
        tell(f"  {label}: what an earlier try left does not fit; starting anew")
        part.unlink()
        transfer_whole(address, part, label, open_address, sleep)
        actual = files.sha256_of(part)
    if actual != sha256:
        part.unlink()
        raise Problem(
            f"{label} from {host_of(address)} has the sha256 {actual}, expected was {sha256}. It was thrown away. Either it was "
            "damaged on its way or that server has another file under this name."
        )
    part.replace(target)


def transfer_whole(address, part, label, open_address, sleep):
    pauses = iter(PAUSES_SECONDS)
    while True:
        before = size_of(part)
        try:
            return transfer(address, part, label, open_address)
        except KeyboardInterrupt:
            if size_of(part):
                tell(f"\n  {label}: {amount(size_of(part))} are kept; the next fetch goes on from there")
            raise
        except BrokeOff as reason:
            if size_of(part) > before:
                pauses = iter(PAUSES_SECONDS)
            pause = next(pauses, None)
            if pause is None and not size_of(part):
                raise Refused(f"{host_of(address)} cannot be reached: {reason}") from None
            if pause is None:
                raise Problem(
                    f"{label} could not be downloaded from {host_of(address)}: {reason}. {amount(size_of(part))} are kept; run "
                    "this again to go on from there."
                ) from None
            tell(f"  {label}: broke off at {amount(size_of(part))} ({reason}); going on in {pause} s")
            sleep(pause)


def transfer(address, part, label, open_address):
    """Appends what is missing."""
    done = size_of(part)
    try:
        response = ask(address, done, open_address)
        if response is None:
            return
        with response:
            # A server that does not know ranges sends everything again.
            if response.status == 206:
                tell(f"  {label}: going on at {amount(done)}")
            else:
                done = 0
            total = total_of(response, done)
            with part.open("ab" if done else "wb") as file:
                copy(response, file, Progress(label, done, total))
    except BROKEN as error:
        if isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError):
            raise Refused(f"{host_of(address)} shows a certificate that is not trusted here: {sentence(error)}") from None
        raise BrokeOff(sentence(error)) from None
    if total is not None and size_of(part) < total:
        raise BrokeOff("the connection was closed")


def ask(address, done, open_address):
    """The answer to a request for what is missing; None when nothing is."""
    request = urllib.request.Request(address, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        return open_address(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and done:
                return None
            if error.code in (408, 429) or error.code >= 500:
                raise BrokeOff(f"the server answered {error.code} {error.reason}") from None
            raise Refused(f"{host_of(address)} answered {error.code} {error.reason}") from None


def total_of(response, done):
    length = response.headers.get("Content-Length")
    return done + int(length) if length is not None and length.isdigit() else None


def copy(response, file, progress):
    try:
        while data := response.read(CHUNK_BYTES):
            write(file, data)
            progress.advance(len(data))
    finally:
        progress.close()


def write(file, data):
    try:
        file.write(data)
        file.flush()
    except OSError as error:
        raise Problem(f"{file.name} cannot be written: {error.strerror}.") from None


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def host_of(address):
    return urlsplit(address).hostname or address


def sentence(error):
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason) or type(error).__name__
