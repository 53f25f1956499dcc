"""A coordinator and stages whose every connection to each other leads through the proxy.

Threads: everything on one, which lives as long as the servers: they end with the thread that started them.
"""
import functools
import http.client
import json
import pathlib
import signal
import subprocess
import threading
import urllib.request

import server_process
import waiting

from . import http2
from .proxy import Proxy

START_SECONDS = 60
END_SECONDS = 60  # of one server, after SIGTERM
CALL_SECONDS = 5  # of one try to submit
USAGE_EXIT_CODE = 2  # of the client: the job is no job


class Broken(Exception):
    """The cluster did what no fault explains: a server that crashed, say."""


def fetch(address, path, timeout=2.0):
    """A JSON answer of the coordinator's HTTP side; None where it does not answer now."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=timeout) as response:
            return json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException):  # the last: an answer that a kill cut short
        return None


class Member:
    """One server under its name, with what was done to it. kill, stop and drain may be called from any thread."""

    def __init__(self, server):
        self.server = server
        self.starts = 0
        self.down = False  # killed by us, and not started again yet
        self.stopped = self.draining = False
        self._crashed = None  # the exit status of a process that ended and should not have
        self._lock = threading.Lock()

    @property
    def name(self):
        return self.server.title

    def start(self):
        """Does not wait until it serves."""
        with self._lock:
            if self.server.process is not None:
                self.server.process.wait()  # killed, or drained
                self._ended()
            self.server.spawn()
            self.starts += 1
            self.down = self.stopped = self.draining = False

    def _ended(self):
        """Whether it has, by whomever; notes a status that nobody asked for. The lock is held."""
        status = self.server.process.poll()
        asked = [-signal.SIGKILL] * self.down + [0] * self.draining
        if status is not None and status not in asked and self._crashed is None:
            self._crashed = status
        return status is not None

    def kill(self):
        """False: it is down already, or has ended, or is not started yet."""
        with self._lock:
            if self.down or self.server.process is None or self._ended():
                return False
            self.down = True
            self.server.process.kill()
            return True

    def stop(self):
        with self._lock:
            if self.down or self.stopped or self.server.process is None or self._ended():
                return False
            self.stopped = True
            self.server.process.send_signal(signal.SIGSTOP)
            return True

    def go_on(self):
        with self._lock:
            if self.stopped and not self.down:
                self.server.process.send_signal(signal.SIGCONT)
            self.stopped = False

    def drain(self):
        with self._lock:
            if not self.down and not self._ended():
                self.draining = True
                self.server.process.terminate()

    def drained(self):
        with self._lock:
            return self.draining and not self.down and self.server.process.poll() == 0

    def ended_by_itself(self):
        """The exit status of one that ended and should not have, also if it is started or killed by now; None else."""
        with self._lock:
            if self.server.process is not None:
                self._ended()
            return self._crashed


class Submission:
    """Submits a job, again and again: the coordinator may be down. Repeating the same id is harmless."""

    def __init__(self, cluster, client, job_file, job_id):
        self._cluster, self._job_id = cluster, job_id
        self._command = [client, "submit", job_file, "--id", job_id, "--detach", "--timeout", str(CALL_SECONDS)]
        self._process = self._asked = None

    def accepted(self):
        """Never waits. Broken if the job was refused."""
        server = self._cluster.members["coordinator"].server
        if self._process is None:
            if server.serves():
                self._asked = server.address
                self._process = subprocess.Popen([*self._command, "--address", server.address], stdout=subprocess.PIPE,
                                                 stderr=subprocess.STDOUT, text=True)
            return False
        if self._process.poll() is None:
            if not server.serves() or server.address != self._asked:
                self.end()  # it would wait for a coordinator that is gone
            return False
        said = self._process.communicate()[0].strip()
        code, self._process = self._process.returncode, None
        if code == USAGE_EXIT_CODE:
            raise Broken(f"job {self._job_id} was refused: {said}")
        return code == 0

    def end(self):
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class Cluster:
    """`on_message(path, method, way, body)`, if given, hears of every message on the proxy's thread before it arrives."""

    def __init__(self, programs, folder, stages, seed=0, on_message=None):
        self.folder = pathlib.Path(folder)
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        self._programs, self._on_message = pathlib.Path(programs), on_message
        self.members = {}
        self.proxy = Proxy(seed)
        try:
            self._build(stages)
        except BaseException:
            self.proxy.close()
            raise

    def _build(self, stages):
        self._add("coordinator", "--state-dir", self.folder / "state", "--checkpoint-dir", self.checkpoints)
        for number in range(stages):
            name = f"stage-{number}"
            lease = self.proxy.listen(f"lease/{name}", functools.partial(self._port, "coordinator"),
                                      functools.partial(self._observe, None))
            own = self.proxy.listen(f"new/{name}", functools.partial(self._port, name), functools.partial(self._observe, name))
            self._add(name, "--name", name, "--state-dir", self.folder / "stages" / name, "--coordinator",
                      f"127.0.0.1:{lease}", "--advertise", f"127.0.0.1:{own}", "--threads", 1)

    def __enter__(self):
        """Starts all servers. Broken if one does not start."""
        try:
            for member in self.members.values():
                member.start()
                if member.name == "coordinator":
                    self._wait("the coordinator serves", member.server.serves, START_SECONDS)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, *_):
        """Broken if a server fell, or falls as it is told to end."""
        try:
            if kind is None:
                self.end()
        finally:
            self.close()

    def _add(self, name, *arguments):
        program = "stagecoach-coordinator" if name == "coordinator" else "stagecoach-stage"
        member = Member(server_process.Server(self._programs / program, self.folder, name, "--die-with-parent", *arguments))
        self.members[name] = member

    def _port(self, name):
        """For the proxy: asked at every connection."""
        member = self.members.get(name)
        return member.server.grpc if member is not None and not member.down and member.server.serves() else None

    def _observe(self, name):
        """Reads along in a new connection to the stage `name`, None: to the coordinator. Who dialled a stage shows in what is
        called first."""
        def path_of(connection, method):
            return connection.path if name is None else f"{'link' if 'LinkService' in method else 'control'}/{name}"

        def observe(connection, way, data):
            at_hand[0] = connection
            reader.feed(way, data)
            return path_of(connection, reader.method) if reader.method else None

        def on_message(method, way, body):
            self._on_message(path_of(at_hand[0], method), method, way, body)

        at_hand = [None]
        reader = http2.Reader(on_message if self._on_message else None)
        return observe

    def submission(self, job_file, job_id):
        return Submission(self, self._programs / "stagecoach", job_file, job_id)

    def get(self, path, timeout=2.0):
        """Of the coordinator's HTTP side; from any thread."""
        server = self.members["coordinator"].server
        return fetch(server.http_address, path, timeout) if server.serves() else None

    def check(self):
        """Broken if a server ended by itself."""
        for member in self.members.values():
            status = member.ended_by_itself()
            if status is not None:
                how = f"by signal {-status}" if status < 0 else f"with exit code {status}"
                raise Broken(f"{member.name} ended {how}, and no fault asked for it; its log: {member.server.log_file}")

    def end(self):
        """Ends all servers in order. Broken if one ended by itself, or does not end with 0."""
        self.check()
        self.proxy.clear()
        for member in self.members.values():
            member.go_on()
            # One that starts right now does not know SIGTERM yet.
            self._wait(f"{member.name} serves", lambda member=member: member.down or member.server.serves(), START_SECONDS)
        for member in [*self.members.values()][::-1]:  # stages say goodbye to the coordinator
            member.drain()
            self._wait(f"{member.name} ends after SIGTERM; its log: {member.server.log_file}",
                       lambda member=member: member.down or member.drained(), END_SECONDS)

    def _wait(self, what, condition, seconds):
        try:
            waiting.wait_until(what, lambda: self.check() or condition(), seconds)
        except AssertionError as error:
            raise Broken(str(error))

    def close(self):
        for member in self.members.values():
            member.server.kill()
        self.proxy.close()
