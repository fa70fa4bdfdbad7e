"""The few requests to an S3 server that a backup needs, signed as AWS prescribes (Signature Version 4).

Bodies are streamed, and sent with their checksum in the signature: a server that received other bytes refuses them.
"""

import datetime
import hashlib
import hmac
import http.client
import ssl
import threading
import time
import urllib.parse
import xml.etree.ElementTree
from dataclasses import dataclass

from common.console import Problem

NOTHING = hashlib.sha256().hexdigest()
CHUNK = 1 << 20
# A single request may carry no more.
LARGEST = 5 << 30
TRIES = 4


@dataclass(frozen=True)
class Account:
    endpoint: str
    region: str
    bucket: str
    access_key: str
    secret_key: str


class Refused(Problem):
    def __init__(self, status, what, body):
        super().__init__(f"The S3 server answered {status} to {what}: {body[:300].decode(errors='replace').strip()}")
        self.status = status


class Bucket:
    """May be used by several threads; each has a connection of its own."""

    def __init__(self, account):
        self.account = account
        endpoint = account.endpoint or f"https://s3.{account.region}.amazonaws.com"
        self.address = urllib.parse.urlsplit(endpoint)
        if self.address.scheme not in ("http", "https") or not self.address.hostname:
            raise Problem(f"S3_ENDPOINT must look like https://s3.example, not '{endpoint}'.")
        self.local = threading.local()

    def exists(self):
        try:
            self.ask("HEAD", "")
        except Refused as refused:
            if refused.status == 404:
                return False
            raise
        return True

    def create(self):
        self.ask("PUT", "")

    def list(self, prefix):
        """Every key that begins so, with its size."""
        token = None
        while True:
            query = {"list-type": "2", "prefix": prefix, **({"continuation-token": token} if token else {})}
            _, body = self.ask("GET", "", query)
            page = xml.etree.ElementTree.fromstring(body)
            # Some servers name a namespace, some do not.
            for one in page.iter():
                one.tag = one.tag.rpartition("}")[2]
            for entry in page.findall("Contents"):
                yield entry.findtext("Key"), int(entry.findtext("Size"))
            token = page.findtext("NextContinuationToken")
            if not token:
                return

    def download(self, key, file):
        """Writes an object to `file`. Returns its size, checksum and type; None when there is no such object."""
        for attempt in attempts():
            try:
                file.seek(0)
                file.truncate()
                return self.receive(key, file)
            except Refused as refused:
                if refused.status == 404:
                    return None
                attempt.failed(refused)
            except (OSError, http.client.HTTPException) as error:
                attempt.failed(error)

    def receive(self, key, file):
        answer = self.send("GET", key)
        if answer.status != 200:
            raise Refused(answer.status, f"GET {key}", answer.read())
        size, checksum = 0, hashlib.sha256()
        while part := answer.read(CHUNK):
            file.write(part)
            checksum.update(part)
            size += len(part)
        said = answer.headers.get("Content-Length")
        if said is not None and int(said) != size:
            raise ConnectionError(f"{key} broke off after {size} of {said} bytes")
        return size, checksum.hexdigest(), answer.headers.get("Content-Type") or "application/octet-stream"

    def upload(self, key, file, size, checksum, kind):
        if size > LARGEST:
            raise Problem(f"{key} is larger than 5 GiB; copy it with another program.")
        for attempt in attempts():
            try:
                file.seek(0)
                self.ask("PUT", key, body=file, size=size, checksum=checksum, kind=kind)
                return
            except Refused as refused:
                attempt.failed(refused)
            except (OSError, http.client.HTTPException) as error:
                attempt.failed(error)

    def ask(self, method, key, query=None, **body):
        answer = self.send(method, key, query, **body)
        content = answer.read()
        if answer.status // 100 != 2:
            raise Refused(answer.status, f"{method} {key or self.account.bucket}", content)
        return answer, content

    def send(self, method, key, query=None, body=None, size=0, checksum=NOTHING, kind=None):
        path = "/" + urllib.parse.quote(f"{self.account.bucket}/{key}".rstrip("/"), safe="/-._~")
        path = self.address.path.rstrip("/") + path
        host = self.address.netloc
        headers = {"host": host, "x-amz-content-sha256": checksum}
        query = urllib.parse.urlencode(sorted((query or {}).items()), quote_via=urllib.parse.quote, safe="-._~")
        signed = sign(self.account, method, path, query, headers, datetime.datetime.now(datetime.timezone.utc))
        if kind:
            signed["content-type"] = kind
        if method == "PUT":
            signed["content-length"] = str(size)
        connection = self.connection()
        try:
            connection.request(method, f"{path}?{query}" if query else path, body, signed)
            return connection.getresponse()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise

    def connection(self):
        # A server closes what is idle; a fresh one costs little beside a picture.
        if old := getattr(self.local, "connection", None):
            old.close()
        if self.address.scheme == "https":
            made = http.client.HTTPSConnection(self.address.netloc, timeout=60, context=ssl.create_default_context())
        else:
            made = http.client.HTTPConnection(self.address.netloc, timeout=60)
        self.local.connection = made
        return made


def attempts():
    """Until one succeeds; the last failure is everybody's."""
    for number in range(1, TRIES + 1):
        yield Attempt(number)


@dataclass
class Attempt:
    number: int

    def failed(self, error):
        lasting = isinstance(error, Refused) and error.status // 100 == 4
        if lasting or self.number == TRIES:
            raise error if isinstance(error, Problem) else Problem(f"The S3 server cannot be reached: {error}") from error
        time.sleep(0.2 * 4 ** (self.number - 1))


def sign(account, method, path, query, headers, now):
    """The headers with which the server believes that we hold the secret."""
    moment, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    headers = {**headers, "x-amz-date": moment}
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        [method, path, query, *(f"{name}:{headers[name]}" for name in sorted(headers)), "", names, headers["x-amz-content-sha256"]]
    )
    scope = f"{day}/{account.region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{account.secret_key}".encode()
    for part in (day, account.region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    credential = f"AWS4-HMAC-SHA256 Credential={account.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": credential}
