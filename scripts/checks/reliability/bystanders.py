"""People who buy credits, get refunds, and delete pictures and accounts while others run jobs."""

import http.client
import json
import random
import threading
import time
import urllib.parse
import uuid

from devstack.trial import form, png, until

# Answers after which a client tries again with the same key. None: no answer.
RETRY = {None, 202, 429, 500, 503}
RETRY_SECONDS = 0.5
REQUEST_SECONDS = 30
# How long the last answers and messages of Stripe may take. The stand-in repeats a message after 1, 2, 4, 8, 15, 30 and 60 s.
SETTLE_SECONDS = 150
LEAVERS = 6
# The people of the trial that this needs.
COUNT = 2 + LEAVERS


class Bystanders:
    def __init__(self, trial, people):
        self.trial = trial
        self.shopper, self.deleter, *self.leavers = people
        self.stopping = threading.Event()
        self.bought = self.refunded = self.deleted = self.left = 0
        # Answers that no client should get, by what was asked.
        self.strange = {}
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.shop, self.delete_pictures, self.leave)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Returns when everybody has finished what they were doing."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(SETTLE_SECONDS)

    def shop(self):
        """Buys the first pack again and again, and takes every second one back."""
        while not self.stopping.is_set():
            page = self.insist("POST", "/api/payments/create-checkout-session-1", self.shopper)
            if not page:
                return
            url = json.loads(page)["url"]
            self.on_payment_page(url, action="pay", email="shopper@example.test")
            self.bought += 1
            if self.bought % 2 == 0:
                self.on_payment_page(url, action="refund")
                self.refunded += 1
            self.stopping.wait(1)

    def on_payment_page(self, url, **fields):
        address = urllib.parse.urlsplit(url)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        ask(address.netloc, "POST", address.path, headers, urllib.parse.urlencode(fields).encode())

    def delete_pictures(self):
        """Uploads pictures, runs a tool on each, and deletes it before, during or after the run."""
        number = 0
        while not self.stopping.is_set():
            number += 1
            body, kind = form(png(40 + number % 50, 30))
            uploaded = self.insist("POST", "/api/images/upload", self.deleter, body, kind)
            if not uploaded:
                return
            image = json.loads(uploaded)["id"]
            self.run_job(self.deleter, image)
            self.stopping.wait(random.uniform(0, 4))
            self.insist("DELETE", f"/api/images/{image}", self.deleter)
            self.deleted += 1

    def leave(self):
        """Deletes an account with a run in progress every few seconds."""
        for person in self.leavers:
            self.run_job(person, person.image)
            self.stopping.wait(random.uniform(0, 4))
            if self.insist("DELETE", "/api/user", person) is None:
                return
            self.left += 1
            if self.stopping.wait(4):
                return

    def run_job(self, person, image):
        self.insist("POST", f"/api/rmbg-images/remove-bg-ai?imageId={image}", person, is_async=True)

    def insist(self, method, path, person, body=b"", kind=None, is_async=False):
        """Repeats a request with one key until its answer is final. Returns the body, or None if that took too long."""
        headers = {"Authorization": f"Bearer {person.token}", "Idempotency-Key": str(uuid.uuid4())}
        headers |= {"Content-Type": kind} if kind else {}
        headers |= {"Prefer": "respond-async"} if is_async else {}
        deadline = None
        while True:
            status, answer = ask(urllib.parse.urlsplit(self.trial.api).netloc, method, path, headers, body)
            if status not in (RETRY - {202} if is_async else RETRY):
                # A repeated deletion finds nothing; the token of a deleted account is refused.
                if not (200 <= status < 300 or (method == "DELETE" and status in (401, 404))):
                    self.strange[f"{method} {path.split('?')[0]}: {status}"] = answer[:200].decode(errors="replace")
                return answer
            if status == 500:
                self.strange[f"{method} {path.split('?')[0]}: {status}"] = answer[:200].decode(errors="replace")
            deadline = deadline or (time.monotonic() + SETTLE_SECONDS if self.stopping.is_set() else None)
            if deadline and time.monotonic() > deadline:
                return None
            time.sleep(RETRY_SECONDS)

    def settle(self):
        """Waits until every payment and every refund has arrived."""
        paid = "select count(*) from orders where fulfilled_at is not null"
        back = "select count(*) from orders where status = 'refunded'"
        arrived = lambda: self.trial.number(paid) >= self.bought and self.trial.number(back) >= self.refunded
        until(arrived, f"{self.bought} payments and {self.refunded} refunds arrive", SETTLE_SECONDS)


def ask(host, method, path, headers, body=b"", seconds=REQUEST_SECONDS):
    """Returns the status and the body of an answer; None and no body without one."""
    connection = http.client.HTTPConnection(host, timeout=seconds)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None, b""
    finally:
        connection.close()
