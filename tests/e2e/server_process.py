"""A coordinator or a stage server as a child process, and the ports that it tells in its port file.

Whoever starts it ends it: `kill` in a finally or a clean-up. Nothing here knows of tests; tools/chaos starts its cluster
by it too."""
import pathlib
import random
import socket
import subprocess

import waiting

START_SECONDS = 60
LEAST_PORT = 15000  # below are those of well-known programs


def free_port():
    """A port of loopback that nobody has and that only who asks for it gets: for a server that is told its port, or is to be
    found on it again. What the kernel gives for port 0 it gives to connections, too, as soon as it is free."""
    given_out = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(LEAST_PORT, given_out) if given_out > LEAST_PORT else 0
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]


class Server:
    """One process after the other under one title; `start` again after its end starts the next one."""

    def __init__(self, program, folder, title, *arguments, before=()):
        self.title = title
        self.process = None
        self.grpc = self.http = None  # ports, once it serves
        self.log_file = pathlib.Path(folder) / f"{title}.log"
        self._ports = pathlib.Path(folder) / f"{title}.ports"
        self._command = [*map(str, before), str(program), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
                         "--port-file", str(self._ports), *map(str, arguments)]

    def spawn(self):
        """Starts the process and does not wait for its ports."""
        self._ports.unlink(missing_ok=True)
        self.grpc = self.http = None
        with open(self.log_file, "a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def serves(self):
        """True once the ports are told; never waits."""
        if self.grpc is None and self.process is not None and self._ports.exists():
            self.grpc, self.http = map(int, self._ports.read_text().split())
        return self.grpc is not None

    def start(self, seconds=START_SECONDS):
        """Starts it and waits until it serves."""
        self.spawn()
        waiting.wait_until(f"{self.title} serves", lambda: self.serves() or self.process.poll() is not None, seconds)
        if not self.serves():
            raise AssertionError(f"{self.title} ended with {self.process.returncode}: {self.log()[-2000:]}")

    def serve_on(self, address, seconds=START_SECONDS):
        """Starts it on an address of before, which others still know."""
        self._command[self._command.index("--listen") + 1] = address
        self.start(seconds)

    @property
    def address(self):
        return f"127.0.0.1:{self.grpc}"

    @property
    def http_address(self):
        return f"127.0.0.1:{self.http}"

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
