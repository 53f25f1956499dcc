#!/usr/bin/env python3
"""What watching a job costs it: step times while watched beside step times while not, in one run.

  bench/watching_bench.py [--bin build/bin] [--stages 1] [--pairs 12] [--seconds 8]

One job trains all the time; windows of --seconds alternate between nobody looking and
  page   what one open dashboard and a Prometheus do: the event stream, the trace of 3 steps every 2.5 s, the
         log every 2 s, /metrics of every server every second
  crowd  64 event streams of which 16 are never read, 50 `stagecoach watch`, 200 requests for the page in a
         burst every window, /metrics of every server every 0.2 s
Printed: for each level the median over pairs of (mean step while watched / mean step while not), and the
quartiles. The trace ring and the log ring are always on; trace-bench has their cost per span.

The watchers run on this machine too. With --stages 1 and two cores they have a core of their own, as they would
have on a network; with --stages 2 they compete with the training for both.
"""
import argparse
import json
import os
import pathlib
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

SPEC = {
    "name": "watched", "seed": 1,
    "model": {"gpt": {"layers": 4, "width": 192, "heads": 6, "context": 128, "vocabulary": 256, "dropout": 0.0}},
    "data": {"text": {"path": "input.txt"}},
    "training": {"steps": 1000000, "batch_size": 16, "micro_batches": 4, "optimizer": {"adamw": {}},
                 "learning_rate": {"constant": {"peak": 3e-4}}},
    "pipeline": {"stages": 1, "schedule": "gpipe", "rematerialization": "always", "partition": "auto"},
    "checkpoint": {"every_steps": 0},
}
SETTLING_STEPS = 5  # of the server's side, between two windows


def fetch(address, path):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as reply:
        while reply.read(1 << 16):
            pass


class Repeating:
    """Calls work every `period` seconds on a thread of its own until told to stop."""

    def __init__(self, period, work):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(period, work))
        self.thread.start()

    def run(self, period, work):
        while True:
            try:
                work()
            except (OSError, urllib.error.URLError):
                pass  # refused or late under load: that is for the tests to judge
            if self.stop.wait(period):
                return

    def wait_at_work(self):
        pass  # its first call is under way, and may be what is to be measured

    def end(self):
        self.stop.set()
        self.thread.join()


class Stream:
    """One event stream; `reads` or never takes a byte."""

    def __init__(self, address, reads):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.socket.sendall(f"GET /api/v1/stream?job=watched HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        self.thread = threading.Thread(target=self.read) if reads else None
        if self.thread:
            self.thread.start()

    def wait_at_work(self):
        """The answer has begun; it is left where it is."""
        select.select([self.socket], [], [], 30)

    def read(self):
        self.socket.settimeout(30)
        try:
            while self.socket.recv(1 << 16):
                pass
        except OSError:
            pass

    def end(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        if self.thread:
            self.thread.join()
        self.socket.close()


class Process:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.at_work = threading.Event()  # it has printed
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while os.read(self.process.stdout.fileno(), 1 << 16):
            self.at_work.set()
        self.at_work.set()

    def wait_at_work(self):
        self.at_work.wait()

    def end(self):
        self.process.kill()
        self.thread.join()
        self.process.stdout.close()
        self.process.wait()


def watchers(level, options, servers):
    coordinator = servers["coordinator"]
    http = coordinator["http"]
    scrape = lambda: [fetch(server["http"], "/metrics") for server in servers.values()]
    if level == "page":
        return [Stream(http, True), Repeating(1, scrape),
                Repeating(2.5, lambda: fetch(http, "/api/v1/jobs/watched/trace?steps=3")),
                Repeating(2, lambda: fetch(http, "/api/v1/logs?job=watched&tail=200"))]
    burst = lambda: [fetch(http, "/") for _ in range(200)]
    return ([Stream(http, i % 4 != 0) for i in range(64)] +
            [Process([options.bin / "stagecoach", "watch", "watched", "-o", "ndjson", "--address",
                      coordinator["address"]]) for _ in range(50)] +
            [Repeating(0.2, scrape), Repeating(3600, burst)])


class Steps:
    """Step times with the moment they were heard of."""

    def __init__(self, process):
        self.times = []
        self.heard = threading.Condition()  # of one more step, or of the end
        self.ended = False
        self.thread = threading.Thread(target=self.read, args=(process,))
        self.thread.start()

    def read(self, process):
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "step":
                with self.heard:
                    self.times.append((time.monotonic(), event["step_seconds"]))
                    self.heard.notify_all()
        with self.heard:
            self.ended = True
            self.heard.notify_all()

    def wait_more(self, count):
        """For so many steps from now."""
        with self.heard:
            wanted = len(self.times) + count
            if not self.heard.wait_for(lambda: self.ended or len(self.times) >= wanted, 60) or self.ended:
                sys.exit(f"the job did not do {count} steps within 60 s")

    def window(self, seconds):
        """Mean of the steps of so many seconds from now."""
        begin = time.monotonic()
        with self.heard:
            self.heard.wait_for(lambda: self.ended, seconds)
        if self.ended:
            sys.exit("the job ended while it was measured")
        return self.mean(begin, time.monotonic())

    def mean(self, begin, end):
        """Of the steps that lie wholly between the two moments."""
        return statistics.mean(s for at, s in list(self.times) if begin + s <= at <= end)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--stages", default=1, type=int)
    parser.add_argument("--pairs", default=12, type=int)
    parser.add_argument("--seconds", default=8.0, type=float)
    options = parser.parse_args()
    SPEC["pipeline"]["stages"] = options.stages
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "input.txt").write_text("Stagecoach measures what it promises; the text does not matter. " * 6000)
        (folder / "job.json").write_text(json.dumps(SPEC))
        process = subprocess.Popen(
            [options.bin / "stagecoach", "local", "--stages", str(options.stages), "--threads-per-stage", "1", "--id",
             "watched", "--state-dir", folder / "state", "-o", "ndjson", folder / "job.json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            measure(options, process, folder)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def measure(options, process, folder):
    steps = Steps(process)
    steps.wait_more(1)
    entries = json.loads((folder / "state" / "processes.json").read_text())["processes"]
    servers = {entry["name"]: entry for entry in entries if entry.get("http")}
    print(f"K = {options.stages}, {os.cpu_count()} cores, {options.pairs} pairs of {options.seconds:g} s")
    print("| watched by | step ms unwatched | step ms watched | ratio, median | quartiles |")
    print("| --- | --- | --- | --- | --- |")
    for level in ("page", "crowd"):
        ratios, quiet_means, watched_means = [], [], []
        for pair in range(options.pairs):
            means = {}
            for watched in ((False, True) if pair % 2 == 0 else (True, False)):
                here = watchers(level, options, servers) if watched else []
                for watcher in here:
                    watcher.wait_at_work()
                steps.wait_more(SETTLING_STEPS)
                means[watched] = steps.window(options.seconds)
                for watcher in here:
                    watcher.end()
            ratios.append(means[True] / means[False])
            quiet_means.append(means[False])
            watched_means.append(means[True])
        low, _, high = statistics.quantiles(ratios, n=4)
        print(f"| {level} | {1e3 * statistics.median(quiet_means):.2f} | {1e3 * statistics.median(watched_means):.2f} | "
              f"{statistics.median(ratios):.4f} | {low:.4f} – {high:.4f} |", flush=True)


if __name__ == "__main__":
    main()
