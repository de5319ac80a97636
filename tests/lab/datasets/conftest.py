"""Fixtures of the tests of data sets."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from file_server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            state.asked.append((self.path, asked))
            self.close_connection = True
            content = state.files.get(self.path)
            if content is None:
                self.send_error(404, "Not Found")
                return
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and state.ranges else 0
            if start and start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if state.chunked:
                self.send_header("Transfer-Encoding", "chunked")
            elif state.lengths:
                self.send_header("Content-Length", state.length or str(len(content) - start))
            self.send_header("Connection", "close")
            self.end_headers()
            body = content[start:][: state.cut_after]
            try:
                for place in range(0, len(body), 50_000):
                    part = body[place : place + 50_000]
                    state.sent += len(part)
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part) if state.chunked else part)
                    time.sleep(state.pause)
                if state.chunked and len(body) == len(content) - start:
                    self.wfile.write(b"0\r\n\r\n")
            except OSError:
                pass  # the client went away

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        http.shutdown()
        thread.join()
