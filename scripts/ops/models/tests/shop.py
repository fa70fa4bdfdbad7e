"""A web server for tests that can break off, forget ranges and refuse."""

import contextlib
import http.server
import threading


class Shop:
    """Serves `goods` by their paths. `break_after`: how many bytes each of the next answers may have."""

    def __init__(self):
        self.goods = {}
        self.kinds = {}
        self.asked = []
        self.break_after = []
        self.knows_ranges = True
        self.status = None
        self.login = None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def ranges(self, path):
        return [one for asked, one in self.asked if asked == path]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def handler_of(shop):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            shop.asked.append((self.path, self.headers.get("Range")))
            data = shop.goods.get(self.path)
            if shop.status or data is None:
                return self.send_error(shop.status or 404)
            if shop.login and self.headers.get("Authorization") != shop.login:
                return self.send_error(401)
            start = self.start_of_range(len(data))
            if start is None:
                return self.send_error(416)
            self.send_response(206 if start else 200)
            self.send_header("Content-Type", shop.kinds.get(self.path, "application/octet-stream"))
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            most = shop.break_after.pop(0) if shop.break_after else len(data)
            with contextlib.suppress(OSError):
                self.wfile.write(data[start : start + most])
            self.close_connection = True

        def start_of_range(self, length):
            asked = self.headers.get("Range")
            if not asked or not shop.knows_ranges:
                return 0
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            return start if start < length else None

        def log_message(self, *arguments):
            pass

    return Handler
