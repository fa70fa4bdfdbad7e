"""The client. `types.py`, generated from the API's document, has the types of its answers."""

import contextlib
import http.client
import json
import math
import random
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from .types import Image, Job, Result, SelectRequest, User

# Refusals that ask to come back. Only those of Retouch itself say that nothing happened: a proxy may have lost its server,
# which may have done its work.
PASSING = (429, 502, 503, 504)
# How long the server may be silent, in seconds, when an interrupted program cancels a run.
HURRY = 5


class _ReadsEarlyAnswers(http.client.HTTPConnection):
    """A server may refuse a large body before it has read it, and close the connection: then its answer tells why."""

    def request(self, *args: Any, **options: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            super().request(*args, **options)


class _ReadsEarlyAnswersOverTls(_ReadsEarlyAnswers, http.client.HTTPSConnection):
    pass


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_ReadsEarlyAnswers, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_ReadsEarlyAnswersOverTls, req, context=ssl.create_default_context())


OPENER = urllib.request.build_opener(_Http, _Https)


class RetouchError(Exception):
    """What this client raises.

    An error of a run has its idempotency key: a call with the same key waits for the same run. It also has the id of
    the job once the server has returned it.
    """

    idempotency_key: str | None = None
    job_id: str | None = None


class Refused(RetouchError):
    """The server refused a request. Says why in a sentence for people; `code` is for programs, where there is one.

    `is_of_proxy` is true if it was not Retouch but something before it.
    """

    def __init__(self, status: int, detail: str, code: str | None = None, retry_after: float | None = None, *, is_of_proxy: bool = False):
        super().__init__(detail)
        self.status, self.detail, self.code, self.retry_after = status, detail, code, retry_after
        self.is_of_proxy = is_of_proxy


class RunFailed(RetouchError):
    """A run failed, at no cost."""

    def __init__(self, job: Job):
        failure = job.get("failure")
        super().__init__(failure["detail"] if failure else "The run failed.")
        self.job, self.code = job, failure["code"] if failure else None


class Canceled(RetouchError):
    """A run was canceled, at no cost: here because it took too long, or elsewhere."""


class ResultDeleted(RetouchError):
    """A run was paid, but its result has been deleted since, so a call with its key cannot return it."""


class Unreachable(RetouchError):
    """The server did not answer, however often it was asked."""


class _Delivery:
    """Whether the server may have done what a request asks for."""

    is_possible = False


class Retouch:
    """An account at a Retouch server, by API key or by token.

    `retries` says how often a request is repeated after a lost connection or a refusal that asks to come back. Every
    run has an idempotency key, so that no repeat is paid twice. `timeout` is how long the server may be silent, in seconds.
    """

    def __init__(self, address: str, key: str | None = None, *, token: str | None = None, retries: int = 4, timeout: float = 60):
        if not key and not token:
            raise ValueError('Pass key="rt_…" or token="…": both are missing or empty. If yours comes from an environment variable, set it.')
        self.address, self.retries, self.timeout = address.rstrip("/"), retries, timeout
        self.credential = ("X-Api-Key", key) if key else ("Authorization", f"Bearer {token}")

    def account(self) -> User:
        """Returns the account and its credits."""
        return self.json("GET", "/api/user/get")

    def upload(self, picture: str | Path | bytes, name: str = "picture", *, idempotency_key: str | None = None) -> Image:
        """Uploads a PNG, JPEG, WebP, HEIC or AVIF: a file, or its bytes.

        Another call with the same file and `idempotency_key` returns the same image.
        """
        if not isinstance(picture, bytes):
            picture, name = Path(picture).read_bytes(), Path(picture).name
        body, headers = form({}, name, picture)
        headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        return self.json("POST", "/api/images/upload", body, headers)

    def remove_background(self, image: str, **options: Any) -> Result:
        """Cuts out the subject of an uploaded image. Takes the same options as `run`."""
        return self.run(f"/api/rmbg-images/remove-bg-ai?imageId={quoted(image)}", **options)

    def upscale(self, image: str, factor: Literal[2, 4] = 2, **options: Any) -> Result:
        """Enlarges an uploaded image. Takes the same options as `run`."""
        if factor not in (2, 4):
            raise ValueError("factor must be 2 or 4")
        return self.run(f"/api/upscale/upscale-ai-{factor}?imageId={quoted(image)}", **options)

    def magic_fix(self, image: str, prompt: str, mask: bytes, exact: bool | None = None, **options: Any) -> Result:
        """Repaints the area that the mask, a PNG, marks in an uploaded image. Takes the same options as `run`."""
        fields = {"prompt": prompt} | ({} if exact is None else {"exactMask": str(exact).lower()})
        body, headers = form(fields, "mask.png", mask)
        return self.run(f"/api/magic-images/fix/{quoted(image)}", body=body, headers=headers, **options)

    def select(self, image: str, clicks: SelectRequest) -> bytes:
        """Returns the mask of the clicked object, a PNG. Free."""
        headers = {"Content-Type": "application/json"}
        return self.request("POST", f"/api/images/{quoted(image)}/select", json.dumps(clicks).encode(), headers)

    def download(self, result: Result, format: Literal["png", "jpg", "webp"] = "png", quality: int = 90) -> bytes:
        """Returns the file of a result."""
        query = "" if format == "png" else f"?format={format}&quality={quality}"
        return self.request("GET", f"/api/results/{result['imageId']}/file{query}")

    def run(
        self,
        path: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = {},
        patience: float = 600,
        idempotency_key: str | None = None,
        on_change: Callable[[Job], None] = lambda job: None,
    ) -> Result:
        """Runs a tool and waits for its result, `patience` seconds at most; then, or after an error, cancels the run.

        If the server is too busy to accept the run in this time, its refusal is raised, and there is no run. Another call
        with the same `idempotency_key` waits for the same run, so that a program that was restarted pays once. A run that
        failed fails again with the same key; a canceled one frees its key. `on_change` gets the job before each pause.
        """
        key, job, delivery = idempotency_key or str(uuid.uuid4()), None, _Delivery()
        headers = {**headers, "Idempotency-Key": key, "Prefer": "respond-async"}
        ends = time.monotonic() + patience
        try:
            job = json.loads(self._repeat("POST", path, body, headers, ends, delivery))
            return result_of(self._wait_for_end(job, ends, on_change))
        except RetouchError as error:
            error.idempotency_key, error.job_id = key, job and job["id"]
            raise
        except BaseException:
            if job is None and delivery.is_possible:
                # Interrupted. The run may have been accepted, and only a repeat returns its job.
                with contextlib.suppress(Exception):
                    self.cancel(json.loads(self._send("POST", path, body, headers, timeout=HURRY))["id"])
            raise

    def _wait_for_end(self, job: Job, ends: float, on_change: Callable[[Job], None]) -> Job:
        """Waits until a job ends; at `ends`, or after an error, cancels it."""
        pause = 0.1
        try:
            while is_active(job) and time.monotonic() < ends:
                on_change(job)
                time.sleep(min(pause, max(ends - time.monotonic(), 0)))
                pause = min(pause * 1.5, 2)
                job = self._poll(job, ends)
        except BaseException:
            # The run would be paid, and its result lost.
            with contextlib.suppress(Exception):
                self.cancel(job["id"])
            raise
        # It may end at this moment; then there is a result after all.
        return self.cancel(job["id"]) if is_active(job) else job

    def _poll(self, job: Job, ends: float) -> Job:
        """Returns the job as it is now, or as it was if the server is away for a moment."""
        try:
            return self.json("GET", f"/api/jobs/{quoted(job['id'])}", ends=ends)
        except (Refused, Unreachable) as error:
            if not is_passing(error):
                raise
            return job

    def job(self, job: str) -> Job:
        """Returns a job as it is now."""
        return self.json("GET", f"/api/jobs/{quoted(job)}")

    def cancel(self, job: str) -> Job:
        """Cancels a job, which then costs nothing, and returns it. A job that has ended stays as it is."""
        return self.json("DELETE", f"/api/jobs/{quoted(job)}")

    def json(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = {}, *, ends: float = math.inf) -> Any:
        """Sends a request, as `request` does, and returns the JSON of its answer."""
        return json.loads(self.request(method, path, body, headers, ends=ends))

    def request(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = {}, *, ends: float = math.inf) -> bytes:
        """Sends a request to any route and returns the body of its answer.

        No pause before a repeat lasts beyond `ends`, a time of `time.monotonic`: the refusal is raised instead.
        """
        return self._repeat(method, path, body, headers, ends, _Delivery())

    def _repeat(self, method: str, path: str, body: bytes, headers: Mapping[str, str], ends: float, delivery: _Delivery) -> bytes:
        """Sends a request as often as it takes, and keeps `delivery` up to date, for a caller that is interrupted."""
        # A lost answer to anything else may have had an effect.
        repeatable = method in ("GET", "DELETE") or "Idempotency-Key" in headers
        attempt = 0
        while True:
            was_possible, delivery.is_possible = delivery.is_possible, True
            try:
                return self._send(method, path, body, headers)
            except (Refused, Unreachable) as error:
                delivery.is_possible = was_possible or not is_busy(error)
                if attempt >= self.retries or not (is_passing(error) if repeatable else is_busy(error)):
                    raise
                if method == "POST" and not is_busy(error):
                    # The run may have been accepted. Only a repeat returns its job, which can then be canceled.
                    ends = math.inf
                pause = pause_after(error, attempt)
                if time.monotonic() + pause > ends:
                    raise
            time.sleep(pause)
            attempt += 1

    def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str], timeout: float | None = None) -> bytes:
        """Sends a request once."""
        request = urllib.request.Request(self.address + path, body or None, dict(headers), method=method)
        request.add_unredirected_header(*self.credential)
        try:
            with OPENER.open(request, timeout=timeout or self.timeout) as answer:
                return answer.read()
        except urllib.error.HTTPError as answer:
            raise refusal(answer) from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self.address} does not answer: {error}") from error


def is_active(job: Job) -> bool:
    return job["state"] in ("queued", "running")


def result_of(job: Job) -> Result:
    """Returns the result of a job that has ended."""
    match job["state"], job["results"]:
        case "done", [result, *_]:
            return result
        case "done", _:
            raise ResultDeleted("The result was deleted; the run was paid.")
        case "cancelled", _:
            raise Canceled("The run was canceled.")
        case _:
            raise RunFailed(job)


def is_busy(error: Refused | Unreachable) -> bool:
    """Returns whether a refusal came before anything happened."""
    return isinstance(error, Refused) and (error.status == 429 or (error.status == 503 and not error.is_of_proxy))


def is_passing(error: Refused | Unreachable) -> bool:
    return isinstance(error, Unreachable) or error.status in PASSING or error.code == "outcome_unknown"


def pause_after(error: Refused | Unreachable, attempt: int) -> float:
    """Returns how many seconds to wait before another try."""
    if isinstance(error, Refused) and error.retry_after is not None:
        return error.retry_after
    return 0.5 * 2**attempt * random.uniform(0.5, 1)


def quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def form(fields: Mapping[str, str], name: str, file: bytes) -> tuple[bytes, dict[str, str]]:
    """Returns the body and the headers of a form with a file."""
    line = uuid.uuid4().hex
    parts = [f'--{line}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{text}\r\n' for field, text in fields.items()]
    safe = name.replace("\\", "_").replace('"', "%22").replace("\r", "").replace("\n", "")
    parts.append(f'--{line}\r\nContent-Disposition: form-data; name="file"; filename="{safe}"\r\n\r\n')
    body = "".join(parts).encode() + file + f"\r\n--{line}--\r\n".encode()
    return body, {"Content-Type": f"multipart/form-data; boundary={line}"}


def refusal(answer: urllib.error.HTTPError) -> Refused:
    wait = answer.headers.get("Retry-After") or ""
    try:
        problem = json.load(answer)
        detail, code = str(problem["detail"]), problem.get("code")
    except (ValueError, KeyError, TypeError, AttributeError, OSError, http.client.HTTPException):
        # From a proxy, perhaps.
        detail, code = answer.reason, None
    is_of_proxy = answer.headers.get_content_type() != "application/problem+json"
    return Refused(answer.code, detail, code, float(wait) if wait.isdigit() else None, is_of_proxy=is_of_proxy)
