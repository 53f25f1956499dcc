"""Many who watch, some badly: the job's bits stay the same, memory stays bounded, errors are proper.

Streams that are never read, one more than there may be, pages that poll, a dozen `watch` processes,
oversized requests. And a stage that dies is shown as lost, and a coordinator that is told to end does.

Coordinator and stages are processes of their own: what watches a job is there before the job's stages are, and the
coordinator is there after the job's end, so that nobody has to be in time.
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
import server_process

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
    """Status and parsed body, also of errors. A coordinator that is kept by the journal's disk says so, and is asked again."""
    request = urllib.request.Request(f"http://{http}{path}", method=method, headers=headers or {}, data=data)

    def answer():
        try:
            with urllib.request.urlopen(request, timeout=60 * harness.TIME_FACTOR) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            body = json.load(error)
            return None if body["error"]["code"] == "UNAVAILABLE" else (error.code, body)
    return harness.wait_until(f"an answer to {path}", answer, 60)


def raw(http, text):
    """Head of the answer to bytes that no library would send."""
    with socket.create_connection(address_of(http), timeout=60 * harness.TIME_FACTOR) as connection:
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
        self.socket.settimeout(60 * harness.TIME_FACTOR)
        self.socket.connect(address_of(http))
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.buffer = b""

    def status(self):
        """Of the answer, which stays unread."""
        return self.socket.recv(len("HTTP/1.1 200"), socket.MSG_PEEK).decode()[-3:]

    def head(self):
        return self.read_until(b"\r\n\r\n")

    def read_until(self, mark):
        while mark not in self.buffer:
            if not self.read_more():
                raise AssertionError(f"the stream ended before {mark}: {self.buffer[-200:]}")
        head, self.buffer = self.buffer.split(mark, 1)
        return head.decode()

    def read_more(self):
        """False at the end."""
        part = self.socket.recv(65536)
        self.buffer += part
        return bool(part)

    def event(self):
        """(name, data) of the next event."""
        fields = dict(line.split(": ", 1) for line in self.read_until(b"\n\n").splitlines() if line[:1] != ":")
        return fields.get("event"), json.loads(fields["data"]) if "data" in fields else None

    def close(self):
        self.socket.close()


class OnServers(harness.EndToEndTest):
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
        # Not a port that others are given, for a coordinator that is to be found there again.
        address, http = self.launch("coordinator", "stagecoach-coordinator", "--state-dir", self.folder / "state",
                                    *coordinator_arguments, listen=f"127.0.0.1:{server_process.free_port()}")
        for i in range(2):
            self.launch(f"stage-{i}", "stagecoach-stage", "--name", f"stage-{i}", "--coordinator", address,
                        "--threads", 1)
        return address, http

    def submit(self, address, job_file, job_id="job"):
        submitted = self.cli("submit", job_file, "--id", job_id, "--detach", "--address", address)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)

    def job(self, http, job_id="job"):
        return fetch(http, f"/api/v1/jobs/{job_id}")[1]

    def endless(self):
        return self.job_file("endless.json", training={"steps": 100000}, checkpoint={"every_steps": 0})


class Watchers(OnServers):
    STEPS = 1000

    def setUp(self):
        super().setUp()
        self.streams = []
        self.addCleanup(lambda: [s.close() for s in self.streams])

    def stream(self, http, path, **options):
        """One that is let in. The coordinator may be kept by the journal's disk: then it says so, and is asked again."""
        def opened():
            stream = Stream(http, path, **options)
            self.streams.append(stream)
            status = stream.status()
            self.assertIn(status, ("200", "503"))
            return stream if status == "200" else stream.close()
        return harness.wait_until("a stream is let in", opened)

    def refused(self, http, path):
        """Whether one more is too many. One that is let in stays, in place of one that was dropped as nobody reads it."""
        more = Stream(http, path)
        self.streams.append(more)
        if more.status() == "200":
            return False
        self.assertIn("503", more.head().splitlines()[0])
        while more.read_more():
            pass
        return json.loads(more.buffer)["error"]["code"] == "RESOURCE_EXHAUSTED"

    def test_a_crowd_changes_nothing(self):
        job = self.job_file(training={"steps": self.STEPS}, checkpoint={"every_steps": 100}, evaluation={"every_steps": 100})
        undisturbed = self.run_job(job, 2, "golden")
        address, http = self.launch_cluster()
        pid = self.processes["coordinator"].pid
        # The job in question has to wait for this one's stages, until the crowd is there.
        self.submit(address, self.endless(), "first")
        harness.wait_until("the job in front runs", lambda: int(self.job(http, "first")["step"]) > 2, 60)
        self.submit(address, job, "crowd")
        before = resident_bytes(pid)
        path = "/api/v1/stream?job=crowd"

        self.bad_requests(http)

        # All the streams there may be; some are never read, with the smallest buffer there is.
        for i in range(MOST_STREAMS):
            stream = self.stream(http, path, receive_buffer=4096 if i < NEVER_READ else None)
        self.assertIn("200 OK", stream.head())
        harness.wait_until("one stream too many is told to poll", lambda: self.refused(http, path))

        watchers = [self.watch(address, number) for number in range(WATCHERS)]
        self.assertEqual(int(self.job(http, "crowd")["step"]), 0, "it waits for the crowd")
        self.assertEqual(self.cli("cancel", "first", "--address", address).returncode, 0)
        harness.wait_until("the job runs", lambda: int(self.job(http, "crowd")["step"]) > 2, 60)
        paths = ["/api/v1/jobs", "/api/v1/stages", "/api/v1/jobs/crowd", "/api/v1/jobs/crowd/records",
                 "/api/v1/jobs/crowd/trace", "/api/v1/logs?job=crowd"]
        with concurrent.futures.ThreadPoolExecutor(PAGES) as pool:
            answers = list(pool.map(lambda i: fetch(http, paths[i % len(paths)])[0], range(PAGES)))
        self.assertEqual(set(answers), {200})

        # A stream that is read sees the job to its end, without a gap.
        records, most = [], 0
        while not records or "finished" not in records[-1]:
            name, data = stream.event()
            most = max(most, resident_bytes(pid))
            records += data["records"] if name == "records" else []
        self.assertEqual([int(record["number"]) for record in records], list(range(1, len(records) + 1)))
        print(f"the coordinator grew from {before / 2**20:.1f} to {most / 2**20:.1f} MiB")
        self.assertLess(most - before, GROWTH_LIMIT_BYTES)

        finished = records[-1]["finished"]
        self.assertEqual((finished["state"], finished["weights_digest"]), ("JOB_STATE_SUCCEEDED", undisturbed.digest()))
        alone = [event["_seconds"] for event in undisturbed.events if event["event"] == "step"]
        watched = [record["unix_seconds"] for record in records if "step_done" in record]
        print(f"{self.STEPS} steps took {alone[-1] - alone[0]:.1f} s alone, {watched[-1] - watched[0]:.1f} s watched")
        for watcher, output in watchers:
            if output is None:
                continue
            watcher.wait(timeout=120 * harness.TIME_FACTOR)
            events = [json.loads(line) for line in output.read_text().splitlines()]
            steps = [event["step"] for event in events if event["event"] == "step"]
            self.assertEqual(steps, list(range(1, self.STEPS + 1)), "no gap, no repetition")

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


class Servers(OnServers):
    def states(self, http):
        return {info["stage"]["name"]: info["state"] for info in fetch(http, "/api/v1/stages")[1]["stages"]}

    def test_a_killed_stage_is_shown_as_lost(self):
        address, http = self.launch_cluster()
        self.submit(address, self.endless())
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
        self.submit(address, self.endless())
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
