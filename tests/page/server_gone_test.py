"""The browser's words for a server that ended are known, however far a request had come; other failures are told
from them, so that a test that expects the end of its server still fails by those.

Symptom: a test failed now and then by ERR_EMPTY_RESPONSE, as it expected ERR_CONNECTION_... only."""
import pathlib
import socket
import socketserver
import struct
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import browser

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve().parent
browser.ensure(BUILD)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
# What is sent before the connection ends, by path.
ENDINGS = {
    "/empty": b"",
    "/chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "/length": HEAD + b"Content-Length: 100\r\n\r\nhello",
    "/reset": b"",
    "/missing": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "/loop": b"HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
}
PAGE = HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\nok"
GONE = ["/empty", "/chunked", "/length", "/reset"]
OTHER = ["/missing", "/loop"]


class Endings(socketserver.StreamRequestHandler):
    def handle(self):
        path = self.rfile.readline().split()[1].decode()
        while self.rfile.readline().strip():
            pass
        self.wfile.write(ENDINGS.get(path, PAGE))
        if path == "/reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def shutdown_request(self, request):
        self.close_request(request)  # with SO_LINGER: a reset and no orderly end


class ServerGone(browser.PageTest):
    def setUp(self):
        self.server = Server(("127.0.0.1", 0), Endings)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.addCleanup(self.end)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def end(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def problems(self, page, url):
        """What the browser logs of one request."""
        page.problems.clear()
        page.evaluate("url => fetch(url).then(reply => reply.text()).catch(() => '')", url)
        while not page.problems:
            page.wait_for_event("console")
        found = list(page.problems)
        page.problems.clear()
        return found

    def test_every_end_of_a_server_is_known(self):
        page = self.open(self.url + "/page")
        for path in GONE:
            with self.subTest(path=path):
                for problem in self.problems(page, self.url + path):
                    self.assertTrue(any(name in problem for name in browser.SERVER_GONE), problem)

    def test_a_server_that_is_away_is_known(self):
        page = self.open(self.url + "/page")
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))  # and does not listen
            for problem in self.problems(page, f"http://127.0.0.1:{unused.getsockname()[1]}/"):
                self.assertTrue(any(name in problem for name in browser.SERVER_GONE), problem)

    def test_other_failures_are_none_of_them(self):
        page = self.open(self.url + "/page")
        for path in OTHER:
            with self.subTest(path=path):
                for problem in self.problems(page, self.url + path):
                    self.assertFalse(any(name in problem for name in browser.SERVER_GONE), problem)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
