"""An HTTP server for tests that can interrupt responses, ignore ranges and return errors."""

import contextlib
import http.server
import threading


class FileServer:
    """Serves `files` by path. `break_after`: the sizes in bytes at which the next responses are cut off."""

    def __init__(self):
        self.files = {}
        self.requests = []
        self.break_after = []
        self.supports_ranges = True
        self.status = None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def ranges(self, path):
        return [range_ for requested, range_ in self.requests if requested == path]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def handler_of(server):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            server.requests.append((self.path, self.headers.get("Range")))
            data = server.files.get(self.path)
            if server.status or data is None:
                return self.send_error(server.status or 404)
            start = self.start_of_range(len(data))
            if start is None:
                return self.send_error(416)
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            limit = server.break_after.pop(0) if server.break_after else len(data)
            with contextlib.suppress(OSError):
                self.wfile.write(data[start : start + limit])
            self.close_connection = True

        def start_of_range(self, length):
            requested = self.headers.get("Range")
            if not requested or not server.supports_ranges:
                return 0
            start = int(requested.removeprefix("bytes=").removesuffix("-"))
            return start if start < length else None

        def log_message(self, *arguments):
            pass

    return Handler
