"""What the end-to-end tests share: a job file, a local cluster as a process, its events and pids.

Nothing here sleeps for luck: every wait is for a named event, with a deadline.
"""
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import waiting

SANITIZED = "asan" in sys.argv[1] if len(sys.argv) > 1 else False
TIME_FACTOR = 8 if SANITIZED else 1
STRIKES = 5  # runs of a job that is to be struck on its way
BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve()
CLI = BIN / "stagecoach"
# The profile of the person who runs the tests is none of theirs.
os.environ["STAGECOACH_CONFIG"] = os.devnull
os.environ.pop("STAGECOACH_CLUSTER", None)

TINY = {
    "name": "tiny",
    "seed": 7,
    "model": {"gpt": {"layers": 2, "width": 32, "heads": 2, "context": 16, "vocabulary": 128, "dropout": 0.1}},
    "data": {"text": {"path": "input.txt"}},
    "training": {
        "steps": 6, "batch_size": 6, "micro_batches": 4,
        "optimizer": {"adamw": {"beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1}},
        "learning_rate": {"cosine": {"peak": 1e-2, "warmup_steps": 2, "final": 1e-3}},
        "gradient_clip_norm": 1.0,
    },
    "pipeline": {"stages": 2, "schedule": "gpipe", "rematerialization": "always", "partition": "uniform"},
    "checkpoint": {"every_steps": 2, "keep": 10},
    "evaluation": {"every_steps": 3, "batches": 2},
}
TEXT = ("The stage coach rolls from town to town and no passenger is lost on the way. " * 200)


def merged(base, changes):
    """base with nested changes; a None removes the key."""
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


class Over(AssertionError):
    """The run ended before what was waited for."""


class Cluster:
    """`stagecoach local` with its ndjson events read by a thread."""

    _ended = False  # of standard error

    def __init__(self, job_file, stages, state_dir, *extra):
        command = [str(CLI), "local", "--stages", str(stages), "--state-dir", str(state_dir),
                   "-o", "ndjson", *map(str, extra), str(job_file)]
        self.state_dir = pathlib.Path(state_dir)
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        self.events = []
        self.stderr = ""
        self._noted = threading.Condition()  # a line of stderr came, or its end
        self._queue = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._errors = threading.Thread(target=self._read_errors)
        self._reader.start()
        self._errors.start()

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            event["_seconds"] = time.monotonic() - self.started
            self._queue.put(event)
        self._queue.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            with self._noted:
                self.stderr += line
                self._noted.notify_all()
        with self._noted:
            self._ended = True
            self._noted.notify_all()

    def wait_for(self, what, predicate, seconds=60):
        """Next event for which predicate holds; fails by name at the deadline or at the end of events."""
        deadline = time.monotonic() + seconds * TIME_FACTOR
        while True:
            try:
                event = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.kill()
                raise AssertionError(f"no {what} within {seconds} s; last event {self.events[-1:]}; {self.describe()}")
            if event is None:
                self._queue.put(None)  # finish reads it too
                raise Over(f"the run ended before {what}; {self.describe()}")
            self.events.append(event)
            if predicate(event):
                return event

    def wait_for_note(self, text, seconds=60):
        """Until the text was said on standard error."""
        with self._noted:
            self._noted.wait_for(lambda: text in self.stderr or self._ended, seconds * TIME_FACTOR)
        if text not in self.stderr:
            raise AssertionError(f"not said within {seconds} s: {text}; {self.describe()}")

    def wait_for_step(self, step, seconds=60):
        return self.wait_for(f"step {step}", lambda e: e["event"] == "step" and e["step"] >= step, seconds)

    def finish(self, seconds=120):
        """Exit code, after reading all events."""
        deadline = time.monotonic() + seconds * TIME_FACTOR
        while True:
            try:
                event = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.kill()
                raise AssertionError(f"not finished within {seconds} s; {self.describe()}")
            if event is None:
                break
            self.events.append(event)
        code = self.process.wait(timeout=30 * TIME_FACTOR)
        self._reader.join()
        self._errors.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    @property
    def finished(self):
        return self.events[-1] if self.events and self.events[-1]["event"] == "finished" else None

    def digest(self):
        if not self.finished or self.finished["state"] != "SUCCEEDED":
            raise AssertionError(f"not succeeded: {self.describe()}")
        return self.finished["weights_digest"]

    def losses(self):
        """Loss by step; a step repeated after a recovery must have given the same loss."""
        losses = {}
        for event in self.events:
            if event["event"] == "step":
                known = losses.setdefault(event["step"], event["loss"])
                assert known == event["loss"], f"step {event['step']} repeated with another loss"
        return losses

    def _told(self):
        text = (self.state_dir / "processes.json").read_text()
        return {entry["name"]: entry for entry in json.loads(text)["processes"]}

    def processes(self):
        """name -> {"name", "pid", "address", "http", "restarts"} as the supervisor tells it, pid 0 of what does not run."""
        def told():
            entries = self._told()
            # A server may be at work before the supervisor has read which ports it has.
            return entries if all(entry["address"] or not entry["pid"] for entry in entries.values()) else None
        return wait_until("the ports of all processes that run", told, 60)

    def pid(self, name):
        """ProcessLookupError if it does not run now: 0 would be all processes of this test's own group."""
        pid = self._told()[name]["pid"]
        if pid == 0:
            raise ProcessLookupError(f"{name} does not run")
        return pid

    def signal(self, name, number):
        os.kill(self.pid(name), number)

    def kill(self):
        """For clean-up: no process, thread or pipe of a failed test stays behind."""
        if self.process.poll() is None:  # else its number may be another one's by now
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        self._errors.join()
        self.process.stdout.close()
        self.process.stderr.close()

    def describe(self):
        logs = ""
        for path in sorted(self.state_dir.glob("**/*.log")):
            logs += f"\n--- {path.name}\n" + "".join(path.read_text(errors="replace").splitlines(True)[-15:])
        return f"stderr: {self.stderr[-2000:]}{logs}"


class EndToEndTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stagecoach-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "input.txt").write_text(TEXT)
        self._clusters = []
        self.addCleanup(lambda: [c.kill() for c in self._clusters])

    def job_file(self, file_name="job.json", **changes):
        path = self.folder / file_name
        path.write_text(json.dumps(merged(TINY, changes)))
        return path

    def start(self, job_file, stages=2, state=None, *extra):
        state = self.folder / (state or f"state-{len(self._clusters)}")
        cluster = Cluster(job_file, stages, state, *extra)
        self._clusters.append(cluster)
        return cluster

    def run_job(self, job_file, stages=2, state=None, *extra):
        cluster = self.start(job_file, stages, state, *extra)
        code = cluster.finish()
        self.assertEqual(code, 0, cluster.describe())
        return cluster

    def run_struck(self, start, strike, met=lambda cluster: True):
        """start()'s cluster at its end in order, which strike(cluster) met on its way; `met` looks at the end whether it did.

        A job does not wait for its test: where a busy machine keeps us until it is through, it is run again.
        """
        for _ in range(STRIKES):
            cluster = start()
            try:
                strike(cluster)
                struck = True
            except (Over, ProcessLookupError):
                struck = False
            self.assertEqual(cluster.finish(), 0, cluster.describe())
            if struck and met(cluster):
                return cluster
        raise AssertionError(f"{STRIKES} runs were through before they were struck; {cluster.describe()}")

    def run_killed(self, start, step, name):
        """run_struck by a kill of the stage `name` behind the step, which the job recovers from."""
        def strike(cluster):
            cluster.wait_for_step(step)
            cluster.signal(name, signal.SIGKILL)
            cluster.wait_for("recovery", lambda event: event["event"] == "recovery", 30)
        return self.run_struck(start, strike)

    def cli(self, *arguments, timeout=60, env=None):
        return subprocess.run([str(CLI), *map(str, arguments)], capture_output=True, text=True,
                              timeout=timeout * TIME_FACTOR, env=env)


def alive(pid):
    """True while the process exists and is not a zombie."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the second: it went as it was read
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def wait_until(what, condition, seconds=20):
    return waiting.wait_until(what, condition, seconds * TIME_FACTOR)


def wait_gone(what, pids, seconds=20):
    waiting.wait_gone(what, pids, seconds * TIME_FACTOR)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
