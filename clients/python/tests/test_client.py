"""Tests the client: against a server that fails as told, and against a real one that `scripts/checks/clients.py` starts."""

import contextlib
import json
import os
import socket
import tempfile
import threading
import unittest
import unittest.mock
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from retouch_client import Canceled, Refused, ResultDeleted, Retouch, Unreachable
from retouch_client.client import OPENER
from retouch_client.types import Job

FACTS = json.loads(os.environ.get("RETOUCH_CLIENT_FACTS", "null"))


@unittest.skipUnless(FACTS, "scripts/test --only contract starts this with a server")
class AgainstAServer(unittest.TestCase):
    def setUp(self):
        self.retouch = Retouch(FACTS["address"], FACTS["key"])
        self.picture = bytes.fromhex(FACTS["picture"])
        self.mask = bytes.fromhex(FACTS["mask"])

    def test_every_tool_runs_and_is_paid_once(self):
        before = self.retouch.account()["credits"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a “photo”.png")
            path.write_bytes(self.picture)
            image = self.retouch.upload(path)
        self.assertEqual((image["name"], image["x"], image["y"]), ("a “photo”.png", 64, 48))
        states = []
        cutout = self.retouch.remove_background(image["id"], on_change=lambda job: states.append(job["state"]), idempotency_key="python")
        self.assertTrue(set(states) <= {"queued", "running"}, states)
        again = self.retouch.remove_background(image["id"], idempotency_key="python")
        self.assertEqual(again["imageId"], cutout["imageId"])
        large = self.retouch.upscale(image["id"], 2)
        self.assertEqual((large["width"], large["height"]), (128, 96))
        fixed = self.retouch.magic_fix(image["id"], "remove it", self.mask, exact=True)
        self.assertEqual(fixed["mode"], "remove")
        self.assertEqual(before - self.retouch.account()["credits"], 5 + 3 + 8)
        self.assertEqual(self.retouch.download(fixed)[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(self.retouch.download(cutout, "webp", 80)[8:12], b"WEBP")

    def test_refusals_have_a_status_a_sentence_and_a_code(self):
        image = self.retouch.upload(self.picture)["id"]
        for status, code, run in [
            (404, None, lambda: self.retouch.remove_background("../nothing")),
            (422, "prompt_required", lambda: self.retouch.magic_fix(image, " ", self.mask)),
            (415, None, lambda: self.retouch.upload(b"hello")),
            (401, None, Retouch(FACTS["address"], "rt_wrong").account),
        ]:
            with self.assertRaises(Refused) as refused:
                run()
            self.assertEqual((refused.exception.status, refused.exception.code), (status, code))
            self.assertTrue(refused.exception.detail)


class Server(BaseHTTPRequestHandler):
    """Answers with the next of the server's answers: (status, headers, JSON), or hangs up."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.command, self.path, self.headers.get("Idempotency-Key")))
        answer = self.server.answers.pop(0)
        if answer is None:
            self.close_connection = True
            return
        status, headers, body = answer
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        kind = "application/problem+json" if status >= 400 and isinstance(body, dict) else "application/json"
        for name, value in {"Content-Length": str(len(data)), "Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


def job(state: str, **more) -> Job:
    return {"id": "7", "state": state, "results": [], **more}


class AgainstFailures(unittest.TestCase):
    def setUp(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
        self.addCleanup(self.server.server_close)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.shutdown)
        self.server.requests = []
        self.retouch = Retouch(f"http://127.0.0.1:{self.server.server_port}/", "rt_key", retries=2)

    def test_a_missing_key_is_refused_at_once(self):
        for key in (None, ""):
            with self.assertRaisesRegex(ValueError, "key"):
                Retouch("http://127.0.0.1", key)

    def test_a_factor_other_than_2_and_4_is_refused_at_once(self):
        with self.assertRaisesRegex(ValueError, "^factor must be 2 or 4$"):
            self.retouch.upscale("1", 3)
        self.assertEqual(self.server.requests, [])

    def test_a_run_is_repeated_with_the_same_key(self):
        done = job("done", results=[{"imageId": "9"}])
        self.server.answers = [None, (503, {"Retry-After": "0"}, {"detail": "Busy."}), (202, {}, done)]
        self.assertEqual(self.retouch.upscale("1", 4)["imageId"], "9")
        self.assertEqual(len(self.server.requests), 3)
        self.assertEqual(len({key for _, _, key in self.server.requests}), 1)

    def test_an_upload_is_repeated_with_the_same_key(self):
        self.server.answers = [None, (503, {"Retry-After": "0"}, {}), (201, {}, {"id": "1"})]
        self.assertEqual(self.retouch.upload(b"picture")["id"], "1")
        keys = [key for _, _, key in self.server.requests]
        self.assertEqual((len(keys), len(set(keys))), (3, 1))
        self.assertTrue(keys[0])

    def test_a_request_without_a_key_is_not_repeated_after_a_lost_answer(self):
        self.server.answers = [None]
        with self.assertRaises(Unreachable):
            self.retouch.request("POST", "/api/images/delete")

    def test_a_request_without_a_key_is_repeated_only_if_the_server_is_busy(self):
        self.server.answers = [(503, {"Retry-After": "0"}, {}), (504, {}, b"<html>")]
        with self.assertRaises(Refused) as refused:
            self.retouch.request("POST", "/api/images/delete")
        self.assertEqual((refused.exception.status, len(self.server.requests)), (504, 2))
        # A proxy does not know what its server has done.
        self.server.answers = [(503, {"Retry-After": "0"}, b"<html>")]
        with self.assertRaises(Refused) as refused:
            self.retouch.request("POST", "/api/images/delete")
        self.assertEqual((refused.exception.status, len(self.server.requests)), (503, 3))

    def test_a_body_that_breaks_off_is_read_again(self):
        part = (200, {"Content-Length": "100"}, b"{")
        self.server.answers = [part, (200, {}, {"credits": 7})]
        self.assertEqual(self.retouch.account()["credits"], 7)
        self.server.answers = [part] * 3
        with self.assertRaises(Unreachable):
            self.retouch.account()

    def test_a_refusal_is_not_repeated_unless_it_asks_for_it(self):
        self.server.answers = [(402, {}, {"detail": "Not enough credits", "code": None})]
        with self.assertRaisesRegex(Refused, "Not enough credits"):
            self.retouch.remove_background("1")
        self.server.answers = [(502, {"Retry-After": "0"}, b"<html>")] * 3
        with self.assertRaises(Refused) as refused:
            self.retouch.account()
        self.assertEqual(refused.exception.status, 502)

    def test_a_run_that_takes_too_long_is_canceled(self):
        self.server.answers = [(202, {}, job("queued")), (200, {}, job("cancelled"))]
        with self.assertRaises(Canceled):
            self.retouch.remove_background("1", patience=0)
        self.assertEqual(self.server.requests[-1][:2], ("DELETE", "/api/jobs/7"))
        # Unless it has just ended.
        done = job("done", results=[{"imageId": "9"}])
        self.server.answers = [(202, {}, job("running")), (200, {}, done)]
        self.assertEqual(self.retouch.remove_background("1", patience=0)["imageId"], "9")

    def test_a_pause_that_outlasts_the_patience_is_not_begun(self):
        self.server.answers = [(503, {"Retry-After": "60"}, {"detail": "Busy."})]
        with self.assertRaisesRegex(Refused, "Busy."):
            self.retouch.remove_background("1", patience=5)
        self.assertEqual(len(self.server.requests), 1)

    def test_a_lost_submission_is_repeated_beyond_the_patience_to_cancel_it(self):
        for lost in (None, (503, {"Retry-After": "0"}, b"<html>")):
            self.server.answers = [lost, (504, {"Retry-After": "0"}, {}), (202, {}, job("queued")), (200, {}, job("cancelled"))]
            with self.assertRaises(Canceled):
                self.retouch.remove_background("1", patience=0)
            self.assertEqual(self.server.requests[-1][:2], ("DELETE", "/api/jobs/7"))

    def test_a_run_outlasts_an_outage(self):
        self.retouch.retries = 0
        outage = [None, (503, {}, {"detail": "Busy."}), (504, {}, b"<html>"), None]
        self.server.answers = [(202, {}, job("running")), *outage, (200, {}, job("done", results=[{"imageId": "9"}]))]
        self.assertEqual(self.retouch.remove_background("1")["imageId"], "9")

    def test_a_run_that_cannot_be_followed_is_canceled(self):
        self.server.answers = [(202, {}, job("running")), (401, {}, {"detail": "Expired."}), (200, {}, job("cancelled"))]
        with self.assertRaisesRegex(Refused, "Expired.") as refused:
            self.retouch.remove_background("1")
        self.assertEqual(self.server.requests[-1][:2], ("DELETE", "/api/jobs/7"))
        self.assertEqual(refused.exception.job_id, "7")
        self.assertEqual(refused.exception.idempotency_key, self.server.requests[0][2])

    def test_a_run_that_cannot_be_canceled_either_says_which_it_is(self):
        self.server.answers = [(202, {}, job("running")), (401, {}, {"detail": "Expired."}), (403, {}, {})]
        with self.assertRaisesRegex(Refused, "Expired.") as refused:
            self.retouch.remove_background("1")
        self.assertEqual(refused.exception.job_id, "7")

    def test_a_mistake_of_the_caller_cancels_the_run(self):
        self.server.answers = [(202, {}, job("running")), (200, {}, job("cancelled"))]
        with self.assertRaises(ZeroDivisionError):
            self.retouch.remove_background("1", on_change=lambda job: 1 / 0)
        self.assertEqual(self.server.requests[-1][:2], ("DELETE", "/api/jobs/7"))

    def test_a_refusal_that_comes_before_the_whole_file_is_heard(self):
        listener = socket.create_server(("127.0.0.1", 0))
        connections = []

        def refuse():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connections.append(connection)
                    connection.recv(65536)
                    body = b'{"detail": "This file is too large."}'
                    connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
                    connection.close()

        threading.Thread(target=refuse, daemon=True).start()
        self.addCleanup(listener.close)
        retouch = Retouch(f"http://127.0.0.1:{listener.getsockname()[1]}", "rt_key")
        with self.assertRaises(Refused) as refused:
            retouch.upload(bytes(30_000_000))
        self.assertEqual((refused.exception.status, refused.exception.detail), (413, "This file is too large."))
        self.assertEqual(len(connections), 1)

    def interrupt_a_run(self):
        """Runs a tool until the first pause."""
        with unittest.mock.patch("time.sleep", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            self.retouch.remove_background("1")

    def test_an_interrupt_during_the_submission_cancels_the_run(self):
        unknown = (500, {}, {"detail": "Who knows?", "code": "outcome_unknown"})
        for lost in (None, (502, {}, b"<html>"), (503, {}, b"<html>"), unknown):
            self.server.requests.clear()
            self.server.answers = [lost, (202, {}, job("queued")), (200, {}, job("cancelled"))]
            self.interrupt_a_run()
            first, repeat, cancel = self.server.requests
            self.assertEqual(repeat, first)
            self.assertEqual(cancel[0], "DELETE")

    def test_an_interrupt_while_the_server_is_busy_starts_no_run(self):
        for status in (429, 503):
            self.server.requests.clear()
            self.server.answers = [(status, {}, {"detail": "Busy."})]
            self.interrupt_a_run()
            self.assertEqual(len(self.server.requests), 1)

    def test_an_interrupted_program_waits_only_for_a_moment_to_cancel_its_run(self):
        self.server.answers = [None, (202, {}, job("queued")), (200, {}, job("cancelled"))]
        with unittest.mock.patch.object(OPENER, "open", wraps=OPENER.open) as sent:
            self.interrupt_a_run()
        self.assertEqual([call.kwargs["timeout"] for call in sent.call_args_list][:2], [60, 5])

    def test_a_lost_submission_tells_its_key(self):
        self.retouch.retries = 0
        self.server.answers = [None]
        with self.assertRaises(Unreachable) as unreachable:
            self.retouch.remove_background("1")
        self.assertEqual(unreachable.exception.idempotency_key, self.server.requests[0][2])
        self.assertIsNone(unreachable.exception.job_id)

    def test_a_deleted_result_does_not_count_as_a_failure(self):
        self.server.answers = [(202, {}, job("done"))]
        with self.assertRaisesRegex(ResultDeleted, "The result was deleted; the run was paid."):
            self.retouch.remove_background("1", idempotency_key="mine")


if __name__ == "__main__":
    unittest.main()
