#!/usr/bin/env python3
"""Whether a cluster holds while strangers and its own users lean on it: a job trains on two stages, and for --seconds there are

  idle       5,000 connections to the coordinator's gRPC port that say nothing, opened again when they are closed
  resets     1,000 connections a second to it that are reset at once
  watches    3,000 calls of WatchJob whose answers are never taken (flow control at 0), 100 on a connection
  dripping   200 requests on its HTTP port, a byte a second, begun again when they are ended
  jobs       999 more jobs that wait for stages which never come, each with a path of 3,000 bytes

  bench/hold.py [--bin build/bin] [--seconds 600] [--ramp 60] [--only idle,resets,...]

Everything runs on this machine, without TLS, so the load takes its time from the training, too. Printed each minute: steps,
the job's recoveries, memory of the coordinator and of the fullest stage, the slowest /livez. Exit code 1 if the job recovered
once, a step was skipped, /livez failed, or memory grew by more than a tenth from the end of the ramp to its highest.
"""
import argparse
import asyncio
import json
import logging
import pathlib
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "e2e")]
import server_process  # noqa: E402
import waiting  # noqa: E402
from http2 import Http2  # noqa: E402

KINDS = ("idle", "resets", "watches", "dripping", "jobs")
IDLE, RESETS, WATCHES, DRIPPING, JOBS = 5000, 1000, 3000, 200, 999
STREAMS = 100  # of a connection
HELD = "held"
SPEC = {
    "name": HELD, "seed": 1,
    "model": {"gpt": {"layers": 4, "width": 192, "heads": 6, "context": 128, "vocabulary": 256, "dropout": 0.0}},
    "data": {"text": {"path": "input.txt"}},
    "training": {"steps": 1000000, "batch_size": 16, "micro_batches": 4, "optimizer": {"adamw": {}},
                 "learning_rate": {"constant": {"peak": 3e-4}}},
    "pipeline": {"stages": 2}, "checkpoint": {"every_steps": 0},
}


class Load:
    """What is there now, by kind."""

    def __init__(self, coordinator):
        self.grpc, self.http = coordinator.grpc, coordinator.http
        self.held = dict.fromkeys(KINDS, 0)
        self.made = dict.fromkeys(KINDS, 0)

    async def again(self, kind, once):
        while True:
            try:
                await once(kind)
            except OSError:
                pass
            await asyncio.sleep(1)

    async def idle(self, kind):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.grpc)
        self.held[kind] += 1
        self.made[kind] += 1
        try:
            while await reader.read(4096):
                pass
        finally:
            self.held[kind] -= 1
            writer.close()

    async def resets(self, kind):
        _, writer = await asyncio.open_connection("127.0.0.1", self.grpc)
        self.made[kind] += 1
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()

    async def watches(self, kind):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.grpc)
        message = b"\x0a" + bytes([len(HELD)]) + HELD.encode()
        calls = (Http2.call(2 * number + 1, "/stagecoach.v1.JobService/WatchJob", message) for number in range(STREAMS))
        writer.write(Http2.hello() + b"".join(calls))
        live = STREAMS
        self.held[kind] += live
        self.made[kind] += live
        try:
            while live > 0:
                head = await reader.readexactly(9)
                payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
                frame, flags = head[3], head[4]
                if frame in (Http2.SETTINGS, Http2.PING) and not flags & Http2.ACK:
                    writer.write(Http2.frame(frame, Http2.ACK, 0, payload if frame == Http2.PING else b""))
                ended = frame == Http2.HEADERS and flags & Http2.END_STREAM or frame == 3  # refused, or reset
                live -= bool(ended)
                self.held[kind] -= bool(ended)
        except asyncio.IncompleteReadError:
            pass
        finally:
            self.held[kind] -= live
            writer.close()

    async def dripping(self, kind):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.http)
        self.held[kind] += 1
        self.made[kind] += 1
        try:
            for letter in b"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 4000:
                if reader.at_eof():
                    return
                writer.write(bytes([letter]))
                await writer.drain()
                await asyncio.sleep(1)
        finally:
            self.held[kind] -= 1
            writer.close()

    def tasks(self, kinds):
        for kind, count in (("idle", IDLE), ("resets", RESETS), ("watches", WATCHES // STREAMS), ("dripping", DRIPPING)):
            if kind in kinds:
                yield from (self.again(kind, getattr(self, kind)) for _ in range(count))


def resident(process):
    pages = int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def fetch(address, path, timeout=10):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=timeout) as answer:
        return answer.read()


class Cluster:
    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.coordinator = server_process.Server(programs / "stagecoach-coordinator", folder, "coordinator", "--state-dir",
                                                 folder / "state")
        self.coordinator.start()
        self.stages = [server_process.Server(programs / "stagecoach-stage", folder, f"stage-{i}", "--name", f"stage-{i}",
                                             "--coordinator", self.coordinator.address, "--threads", "1") for i in range(2)]
        for stage in self.stages:
            stage.start()

    def submit(self, number=None):
        spec = json.loads(json.dumps(SPEC))
        if number is not None:
            spec["name"] = f"waits-{number}"
            spec["pipeline"]["stages"] = 7
            spec["data"]["text"]["path"] = "/" + "x" * 3000
        else:
            spec["data"]["text"]["path"] = str(self.folder / "input.txt")
        return subprocess.run([self.programs / "stagecoach", "--address", self.coordinator.address, "--timeout", "60", "submit",
                               "--detach", "--id", spec["name"], "-"], input=json.dumps(spec), text=True, capture_output=True)

    def job(self):
        return json.loads(fetch(self.coordinator.http_address, f"/api/v1/jobs/{HELD}"))

    def close(self):
        for server in [*self.stages, self.coordinator]:
            server.kill()


class Watch:
    """Looks every two seconds, and keeps what a minute brought."""

    def __init__(self, cluster, load):
        self.cluster, self.load = cluster, load
        self.slowest, self.failed = 0.0, 0
        self.memory = []  # (seconds, coordinator, fullest stage)

    def look(self, seconds):
        begin = time.monotonic()
        try:
            fetch(self.cluster.coordinator.http_address, "/livez")
        except OSError:
            self.failed += 1
        self.slowest = max(self.slowest, time.monotonic() - begin)
        self.memory.append((seconds, resident(self.cluster.coordinator.process),
                            max(resident(stage.process) for stage in self.cluster.stages)))

    def row(self, seconds, steps):
        _, coordinator, stage = self.memory[-1]
        job = self.cluster.job()
        held = ", ".join(f"{kind} {count}" for kind, count in self.load.held.items() if count)
        print(f"| {seconds:.0f} | {int(job['step']) - steps} | {job['recoveries']} | {coordinator:.0f} | {stage:.0f} | "
              f"{self.slowest:.2f} | {held} |", flush=True)
        self.slowest = 0.0
        return int(job["step"])


async def hold(cluster, options):
    load = Load(cluster.coordinator)
    watch = Watch(cluster, load)
    kinds = options.only.split(",") if options.only else KINDS
    if "jobs" in kinds:
        for number in range(JOBS):
            load.held["jobs"] += cluster.submit(number).returncode == 0
    tasks = [asyncio.create_task(coroutine) for coroutine in load.tasks(kinds)]
    begin = printed = time.monotonic()
    steps = int(cluster.job()["step"])
    while time.monotonic() - begin < options.ramp + options.seconds:
        await asyncio.sleep(2)
        now = time.monotonic()
        await asyncio.to_thread(watch.look, now - begin)
        if now - printed >= 60:
            printed, steps = now, await asyncio.to_thread(watch.row, now - begin, steps)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return watch, load


def growth(watch, place, ramp):
    early = [row[place] for row in watch.memory if ramp - 20 <= row[0] <= ramp + 20]
    late = [row[place] for row in watch.memory if row[0] > ramp]
    return max(late) / statistics.median(early) - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "build" / "bin", type=pathlib.Path)
    parser.add_argument("--seconds", default=600, type=float)
    parser.add_argument("--ramp", default=60, type=float)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # that a server has closed a connection is what it is asked for
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "input.txt").write_text("To be held, or not to be held. " * 4000)
        cluster = Cluster(options.bin.resolve(), folder)
        try:
            submitted = cluster.submit()
            if submitted.returncode != 0:
                sys.exit(submitted.stderr)
            waiting.wait_until("the first steps", lambda: int(cluster.job()["step"]) > 20, 60)
            first, begin = int(cluster.job()["step"]), time.monotonic()
            time.sleep(10)
            print(f"{(int(cluster.job()['step']) - first) / (time.monotonic() - begin):.1f} steps/s undisturbed; coordinator "
                  f"{resident(cluster.coordinator.process):.0f} MiB\n\n| s | steps | recoveries | coordinator MiB | fullest "
                  "stage MiB | slowest /livez s | held |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
            watch, load = asyncio.run(hold(cluster, options))
            job = cluster.job()
            grown = [growth(watch, place, options.ramp) for place in (1, 2)]
            made = ", ".join(f"{kind} {count}" for kind, count in load.made.items() if count)
            print(f"\nmemory after the ramp: coordinator {grown[0]:+.1%}, fullest stage {grown[1]:+.1%} at most; /livez failed "
                  f"{watch.failed} times; recoveries {job['recoveries']}, skipped steps {job['skipped_steps']}; connections and "
                  f"calls made: {made}")
            held = max(grown) <= 0.1 and watch.failed == 0 and int(job["recoveries"]) == int(job["skipped_steps"]) == 0
            return 0 if held and job["state"] == "JOB_STATE_RUNNING" else 1
        finally:
            cluster.close()


if __name__ == "__main__":
    sys.exit(main())
