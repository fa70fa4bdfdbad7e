"""A model hub for tests: a hub that lists repositories and redirects downloads to another host, as the real one does."""

import contextlib
import hashlib
import http.server
import json
import threading
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    """Serves `repositories`, which map a path to bytes, at every commit of `commits`, the last of which is "main".

    `hub_requests` and `store_requests` record path, range and token of each request. Downloads come from a second server, the
    store; `break_after` holds the sizes in bytes at which its next responses are cut off.
    """

    def __init__(self):
        self.repositories = {}
        self.gated = set()
        self.token = "hf_secret"
        self.has_lists = True
        # Paths that are not in Git LFS, so that no checksum is published.
        self.small = set()
        self.commits = [COMMIT]
        self.break_after = []
        self.hub_requests, self.store_requests = [], []
        self.store = self.serve(self.answer_store, self.store_requests)
        self.server = self.serve(self.answer_hub, self.hub_requests)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def environment(self):
        return {"HF_ENDPOINT": self.url, "HF_TOKEN_PATH": "/nowhere/token"}

    def downloads(self, path):
        """Returns the ranges of the requests for a file."""
        return [requested for place, requested, _ in self.store_requests if place.endswith(f"/{path}")]

    def answer_hub(self, handler, path):
        kind, rest = ("api", path.removeprefix("/api/models/")) if path.startswith("/api/") else ("file", path.strip("/"))
        repository, _, rest = rest.partition("/revision/" if kind == "api" else "/resolve/")
        revision, _, name = rest.partition("/")
        files = self.repositories.get(repository)
        if files is None or revision not in ("main", *self.commits):
            return handler.refuse(404, "RevisionNotFound")
        if repository in self.gated and handler.headers.get("Authorization") != f"Bearer {self.token}":
            return handler.refuse(401 if "Authorization" not in handler.headers else 403, "GatedRepo")
        if kind == "api":
            return handler.answer(json.dumps(self.list(files, revision)).encode()) if self.has_lists else handler.refuse(404, "NoLists")
        if name not in files:
            return handler.refuse(404, "EntryNotFound")
        return handler.redirect(f"http://127.0.0.1:{self.store.server_port}/{repository}/{name}?signature=1")

    def list(self, files, revision):
        siblings = []
        for path, data in files.items():
            large = {} if path in self.small else {"lfs": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}}
            siblings.append({"rfilename": path, "size": len(data), **large})
        return {"sha": self.commits[-1] if revision == "main" else revision, "siblings": siblings}

    def answer_store(self, handler, path):
        owner, name, path = path.strip("/").split("/", 2)
        handler.answer(self.repositories[f"{owner}/{name}"][path], self.break_after.pop(0) if self.break_after else None)

    def serve(self, answer, requests):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = unquote(urlsplit(self.path).path)
                requests.append((path, self.headers.get("Range"), self.headers.get("Authorization")))
                answer(self, path)

            def answer(self, data, limit=None):
                start = int((self.headers.get("Range") or "bytes=0-")[len("bytes=") : -1])
                if start and start >= len(data):
                    return self.send_error(416)
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(data) - start))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(data[start:] if limit is None else data[start : start + limit])
                self.close_connection = True

            def redirect(self, address):
                self.send_response(302)
                self.send_header("Location", address)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def refuse(self, status, code):
                self.send_response(status)
                self.send_header("X-Error-Code", code)
                self.send_header("X-Error-Message", f"{code}, says the hub")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    def close(self):
        for server in (self.server, self.store):
            server.shutdown()
            server.server_close()
