"""Many who watch, some badly: the job's bits stay the same, memory stays bounded, errors are proper.

Streams that are never read, one more than there may be, pages that poll, a dozen `watch` processes,
oversized requests. And a stage that dies is shown as lost, and a coordinator that is told to end does.
"""
import concurrent.futures
import json
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import harness

MOST_STREAMS = 64
NEVER_READ = 24
WATCHERS = 12
PAGES = 200
# What all of the above may add to the coordinator: threads' stacks and buffers, no queues.
GROWTH_LIMIT_BYTES = (64 if not harness.SANITIZED else 512) << 20


def resident_bytes(pid):
    """0 for a process that is gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS:")), 0)


def address_of(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def fetch(http, path, method="GET", headers=None, data=None):
    """Status and parsed body, also of errors."""
    request = urllib.request.Request(f"http://{http}{path}", method=method, headers=headers or {}, data=data)
    try:
        with urllib.request.urlopen(request, timeout=30 * harness.TIME_FACTOR) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def raw(http, text):
    """Head of the answer to bytes that no library would send."""
    with socket.create_connection(address_of(http), timeout=30 * harness.TIME_FACTOR) as connection:
        connection.sendall(text)
        data = b""
        while b"\r\n\r\n" not in data:
            part = connection.recv(65536)
            if not part:
                break
            data += part
        return data.decode(errors="replace")


class Stream:
    """One reader of server-sent events, by hand."""

    def __init__(self, http, path, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(30 * harness.TIME_FACTOR)
        self.socket.connect(address_of(http))
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.buffer = b""

    def head(self):
        return self.read_until(b"\r\n\r\n")

    def read_until(self, mark):
        while mark not in self.buffer:
            part = self.socket.recv(65536)
            if not part:
                raise AssertionError(f"the stream ended before {mark}: {self.buffer[-200:]}")
            self.buffer += part
        head, self.buffer = self.buffer.split(mark, 1)
        return head.decode()

    def event(self):
        """(name, data) of the next event."""
        fields = dict(line.split(": ", 1) for line in self.read_until(b"\n\n").splitlines() if line[:1] != ":")
        return fields.get("event"), json.loads(fields["data"]) if "data" in fields else None

    def close(self):
        self.socket.close()


class Watchers(harness.EndToEndTest):
    STEPS = 1000  # a few seconds: more than the crowd needs to gather

    def setUp(self):
        super().setUp()
        self.streams = []
        self.addCleanup(lambda: [s.close() for s in self.streams])

    def job(self):
        return self.job_file(training={"steps": self.STEPS}, checkpoint={"every_steps": 100},
                             evaluation={"every_steps": 100})

    def stream(self, http, path, **options):
        self.streams.append(Stream(http, path, **options))
        return self.streams[-1]

    def test_a_crowd_changes_nothing(self):
        undisturbed = self.run_job(self.job(), 2, "golden")
        cluster = self.start(self.job(), 2, "crowd", "--id", "crowd")
        cluster.wait_for_step(2)
        processes = cluster.processes()
        http = processes["coordinator"]["http"]
        pid = processes["coordinator"]["pid"]
        before = resident_bytes(pid)
        path = "/api/v1/stream?job=crowd"

        self.bad_requests(http)

        # All the streams there may be; some are never read, with the smallest buffer there is.
        for i in range(MOST_STREAMS):
            stream = self.stream(http, path, receive_buffer=4096 if i < NEVER_READ else None)
            if i >= NEVER_READ:
                self.assertIn("200 OK", stream.head())
        harness.wait_until("one stream too many is told to poll", lambda: self.busy(http, path))
        status, error = fetch(http, path)
        self.assertEqual((status, error["error"]["code"]), (503, "RESOURCE_EXHAUSTED"))

        watchers = [self.watch(processes["coordinator"]["address"], number) for number in range(WATCHERS)]
        paths = ["/api/v1/jobs", "/api/v1/stages", "/api/v1/jobs/crowd", "/api/v1/jobs/crowd/records",
                 "/api/v1/jobs/crowd/trace", "/api/v1/logs?job=crowd"]
        with concurrent.futures.ThreadPoolExecutor(PAGES) as pool:
            answers = list(pool.map(lambda i: fetch(http, paths[i % len(paths)])[0], range(PAGES)))
        self.assertEqual(set(answers), {200})

        # A stream that is read sees the job to its end, without a gap.
        reader = self.streams[-1]
        numbers, state, most = [], None, 0
        while state not in ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED"):
            name, data = reader.event()
            most = max(most, resident_bytes(pid))
            if name == "records":
                numbers += [int(record["number"]) for record in data["records"]]
                state = next((r["finished"]["state"] for r in data["records"] if "finished" in r), state)
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
        print(f"the coordinator grew from {before / 2**20:.1f} to {most / 2**20:.1f} MiB")
        self.assertLess(most - before, GROWTH_LIMIT_BYTES)

        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.assertEqual(cluster.digest(), undisturbed.digest())
        print(f"{self.STEPS} steps took {self.seconds(undisturbed):.1f} s alone, {self.seconds(cluster):.1f} s watched")
        for watcher, output in watchers:
            if output is None:
                continue
            watcher.wait(timeout=60 * harness.TIME_FACTOR)
            events = [json.loads(line) for line in output.read_text().splitlines()]
            steps = [event["step"] for event in events if event["event"] == "step"]
            self.assertTrue(steps)
            self.assertEqual(steps, list(range(1, len(steps) + 1)), "no gap, no repetition")

    def watch(self, address, number):
        """A `watch` process; the output of every third one is never taken."""
        output = None if number % 3 == 0 else self.folder / f"watch-{number}"
        with open(output or "/dev/null", "w") as file:
            process = subprocess.Popen([str(harness.CLI), "watch", "crowd", "--address", address, "-o", "ndjson"],
                                       stdout=file if output else subprocess.PIPE, stderr=subprocess.DEVNULL)
        def end():
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        self.addCleanup(end)
        return process, output

    def seconds(self, cluster):
        """From the second step to the last."""
        times = [event["_seconds"] for event in cluster.events if event["event"] == "step"]
        return times[-1] - times[1]

    def busy(self, http, path):
        """Every stream has been let in: connecting is faster than being served."""
        probe = Stream(http, path)
        try:
            return "503" in probe.head().splitlines()[0]
        finally:
            probe.close()

    def bad_requests(self, http):
        for path, code, name in [("/api/v1/jobs/nobody", 404, "NOT_FOUND"),
                                 ("/api/v1/jobs/nobody/records", 404, "NOT_FOUND"),
                                 ("/api/v1/logs?job=nobody", 404, "NOT_FOUND"),
                                 ("/api/v1/nothing", 404, "NOT_FOUND"),
                                 ("/api/v1/jobs/crowd/records?limit=1000000", 400, "INVALID_ARGUMENT"),
                                 ("/api/v1/jobs/crowd/trace?steps=1000", 400, "INVALID_ARGUMENT")]:
            status, answer = fetch(http, path)
            self.assertEqual((status, answer["error"]["code"]), (code, name), path)
        self.assertEqual(fetch(http, "/api/v1/jobs", method="DELETE")[0], 405)
        self.assertEqual(fetch(http, "/api/v1/jobs/crowd/cancel")[0], 405)
        self.assertEqual(fetch(http, "/api/v1/jobs/crowd/cancel", method="POST")[0], 403)
        self.assertTrue(raw(http, b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        .startswith("HTTP/1.1 4"))
        self.assertTrue(raw(http, b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
                                  b"Content-Length: 99999999999\r\n\r\n").startswith("HTTP/1.1 413"))
        self.assertTrue(raw(http, b"GET /api/v1/jobs HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                        .startswith("HTTP/1.1 403"))
        preflight = raw(http, b"OPTIONS /api/v1/jobs/crowd/cancel HTTP/1.1\r\nHost: localhost\r\n"
                              b"Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n"
                              b"Access-Control-Request-Headers: x-stagecoach-request\r\n\r\n")
        self.assertNotIn("access-control-allow", preflight.lower())


class Servers(harness.EndToEndTest):
    """Coordinator and stages without a supervisor that would start them again."""

    def setUp(self):
        super().setUp()
        self.processes = {}
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def launch(self, name, program, *arguments, listen="127.0.0.1:0"):
        ports = self.folder / f"{name}.ports"
        ports.unlink(missing_ok=True)
        command = [str(harness.BIN / program), "--listen", listen, "--http", "127.0.0.1:0",
                   "--port-file", str(ports), *map(str, arguments)]
        with open(self.folder / f"{name}.log", "a") as log:
            self.processes[name] = subprocess.Popen(command, stderr=log)
        harness.wait_until(f"{name} serves", ports.exists)
        grpc, http = ports.read_text().split()
        return f"127.0.0.1:{grpc}", f"127.0.0.1:{http}"

    def launch_cluster(self, *coordinator_arguments):
        address, http = self.launch("coordinator", "stagecoach-coordinator", "--state-dir",
                                    self.folder / "state", *coordinator_arguments)
        for i in range(2):
            self.launch(f"stage-{i}", "stagecoach-stage", "--name", f"stage-{i}", "--coordinator", address,
                        "--threads", 1)
        return address, http

    def states(self, http):
        return {info["stage"]["name"]: info["state"] for info in fetch(http, "/api/v1/stages")[1]["stages"]}

    def submit(self, address, steps, *arguments):
        submitted = self.cli("submit", self.job_file(training={"steps": steps}, checkpoint={"every_steps": 0}),
                             "--id", "job", "--detach", "--address", address, *arguments)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)

    def job(self, http):
        return fetch(http, "/api/v1/jobs/job")[1]

    def test_a_killed_stage_is_shown_as_lost(self):
        address, http = self.launch_cluster()
        self.submit(address, 100000)
        harness.wait_until("the job runs", lambda: int(self.job(http)["step"]) > 2, 60)
        self.processes["stage-1"].kill()
        killed = time.monotonic()
        harness.wait_until("stage-1 is shown as lost", lambda: self.states(http)["stage-1"] == "lost", 10)
        self.assertLess(time.monotonic() - killed, 3.0 * harness.TIME_FACTOR)
        self.assertIn("stage-1", self.states(http), "and goes on being listed")
        harness.wait_until("the job says that it recovers",
                           lambda: self.job(http)["detail"] in ("recovering", "planned"), 10)
        trace = fetch(http, "/api/v1/jobs/job/trace")
        self.assertEqual(trace[0], 200)
        logs = fetch(http, "/api/v1/logs?job=job")[1]
        self.assertTrue(any("recovering" in line["message"] and line["job_id"] == "job"
                            for line in logs["lines"]), logs)

    def test_a_coordinator_told_to_end_saves_and_the_next_goes_on(self):
        address, http = self.launch_cluster("--checkpoint-on-exit", "--exit-timeout-secs", 20)
        self.submit(address, 100000)
        harness.wait_until("the job runs", lambda: int(self.job(http)["step"]) > 5, 60)
        stream = Stream(http, "/api/v1/stream")
        self.addCleanup(stream.close)
        self.assertIn("200 OK", stream.head())
        coordinator = self.processes["coordinator"]
        started = time.monotonic()
        coordinator.send_signal(signal.SIGTERM)
        name = None
        while name != "end":
            name, _ = stream.event()
        self.assertEqual(coordinator.wait(timeout=20 * harness.TIME_FACTOR), 0)
        self.assertLess(time.monotonic() - started, 20 * harness.TIME_FACTOR)
        steps = sorted(int(p.name.split("-")[1]) for p in (self.folder / "state/checkpoints/job").glob("step-*"))
        self.assertTrue(steps and steps[-1] > 5, steps)

        # The stages look for the coordinator where it was.
        _, http = self.launch("coordinator", "stagecoach-coordinator", "--state-dir", self.folder / "state",
                              listen=address)
        harness.wait_until("the job goes on after the step that was saved",
                           lambda: int(self.job(http)["step"]) > steps[-1], 60)
        records = fetch(http, "/api/v1/jobs/job/records")[1]["records"]
        done = [int(r["step"]) for r in records if "step_done" in r]
        self.assertEqual(done, list(range(1, len(done) + 1)), "no step was lost and none repeated")


if __name__ == "__main__":
    harness.main()
