"""Jobs as processes: `stagecoach local` with its events, and `stagecoach plan`."""
import contextlib
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import threading
import time
import urllib.request

from .arithmetic import median
from .budget import Failed, Late
from .machine import call
from .report import stops_held

WARM_UP_STEPS = 3
FEWEST_STEPS = 3
NOTE = re.compile(r"(state|stages|address|page) ")  # how `local` begins
OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|memory for \w+: \d+ bytes asked|out of memory", re.IGNORECASE)


class OutOfMemory(Failed):
    """The device's memory did not do."""


class Workplace:
    """A folder for jobs, their data and their clusters."""

    def __init__(self, machine, folder):
        self.machine, self.folder = machine, pathlib.Path(folder)
        self._count = 0
        self.runs = []

    def end(self):
        """No run goes on, also one that a signal met before anybody had it."""
        for run in self.runs:
            run.kill()

    def new_folder(self):
        self._count += 1
        return self.folder / f"run-{self._count}"

    def write(self, spec):
        file = self.folder / f"job-{self._count}.json"
        file.write_text(json.dumps(spec))
        return file

    def plan(self, spec, stages=1):
        """[{kind: bytes}] of the stages, by `stagecoach plan`."""
        done = call([self.machine.program("stagecoach"), "plan", "--stages", stages, "--device", self.machine.device,
                     "-o", "json", self.write(spec)], 30, self.machine.env)
        if done.returncode != 0:
            raise Failed(f"plan: {done.stderr.strip()}")
        return plan_memory(json.loads(done.stdout))

    def forecast(self, spec, stages=1):
        """Bytes of the largest stage."""
        return max(sum(memory.values()) for memory in self.plan(spec, stages))

    def start(self, spec, stages=1, device=None, prefix=(), variables=None):
        return Run(self, spec, stages, device or self.machine.device, prefix, variables)

    def train(self, spec, stages, seconds, device=None):
        """A whole job: (digest, losses by step, events). Failed if it does not succeed in time."""
        with self.start(spec, stages, device) as run:
            run.finish(seconds)
            return run.digest(), losses(run.events), run.events


def plan_memory(plan):
    return [{kind: int(value) for kind, value in stage["memory"].items()} for stage in plan["stages"]]


def losses(events):
    """Loss by step; a step that a recovery repeats must give what it gave before."""
    found = {}
    for event in events:
        if event["event"] == "step" and found.setdefault(event["step"], event["loss"]) != event["loss"]:
            raise Failed(f"step {event['step']} was repeated with loss {event['loss']}, it had {found[event['step']]}")
    return found


def end_of(text, characters=500):
    text = " ".join(text.split())
    return text if len(text) <= characters else "... " + text[-characters:]


def metric_values(text, name):
    """Samples of a metric in Prometheus' text format, labels left aside."""
    pattern = re.compile(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? (\S+)$", re.MULTILINE)
    return [float(value) for value in pattern.findall(text)]


def alive(pid):
    """True while the process holds anything; a zombie, which some containers keep for ever, does not."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] not in "ZX"


class Run:
    """`stagecoach local`. Used with `with`: nothing is left running behind it."""

    def __init__(self, place, spec, stages, device, prefix=(), variables=None):
        self.state = place.new_folder()
        self.stages, self.events, self.errors = stages, [], ""
        self._cli = place.machine.program("stagecoach")
        self._env = {**(place.machine.env or os.environ), **(variables or {})}  # its stages inherit them
        self._command = [str(part) for part in (
            *prefix, self._cli, "local", "--stages", stages, "--device", device, "--state-dir", self.state, "-o", "ndjson",
            place.write(spec))]
        self._began = time.monotonic()
        self._queue, self._process, self._threads = queue.Queue(), None, []
        place.runs.append(self)

    def __enter__(self):
        try:
            with stops_held():
                self._launch()
        except BaseException:  # nobody else would: the caller's `with` has not begun
            self.kill()
            raise
        return self

    def _launch(self):
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, env=self._env, stderr=subprocess.PIPE,
                                         text=True, errors="replace", start_new_session=True)
        self._threads = [threading.Thread(target=work) for work in (self._read_events, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_):
        self.kill()

    def _read_events(self):
        for line in self._process.stdout:
            with contextlib.suppress(json.JSONDecodeError):
                self._queue.put(json.loads(line))
        self._queue.put(None)

    def _read_errors(self):
        for line in self._process.stderr:
            self.errors += line

    def next_event(self, seconds):
        """The next event, None at their end. Failed if none comes in time."""
        try:
            event = self._queue.get(timeout=max(0.01, seconds))
        except queue.Empty:
            last = self.events[-1] if self.events else {"event": "none"}
            raise Late(f"nothing new within {max(0, seconds):.0f} s, the last event was {last['event']} "
                       f"{last.get('step', '')}; {self.trouble()}")
        if event is not None:
            self.events.append(event)
        return event

    def wait_for(self, what, holds, seconds):
        """The first event from now on that `holds`. Failed at the deadline or if the run ends without one."""
        deadline = time.monotonic() + seconds
        while True:
            event = self.next_event(deadline - time.monotonic())
            if event is None or (event["event"] == "finished" and not holds(event)):
                self.fail(f"ended before {what}")
            if holds(event):
                return event

    def wait_for_step(self, step, seconds):
        return self.wait_for(f"step {step}", lambda e: e["event"] == "step" and e["step"] >= step, seconds)

    def finish(self, seconds):
        deadline = time.monotonic() + seconds
        while self.next_event(deadline - time.monotonic()) is not None:
            pass
        try:
            code = self._process.wait(timeout=max(5, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Late(f"all events came, but the program goes on; {self.trouble()}")
        if code != 0:
            self.fail(f"exit code {code}")

    def fail(self, what):
        finished = next((e for e in reversed(self.events) if e["event"] == "finished"), {})
        text = f"K = {self.stages}: {what}: {finished.get('message', '')} {self.trouble()}"
        raise (OutOfMemory if OUT_OF_MEMORY.search(text) else Failed)(text)

    def trouble(self):
        """What the client and the servers said last."""
        text = end_of("\n".join(line for line in self.errors.splitlines() if not NOTE.match(line)))
        for log in sorted((self.state / "logs").glob("stage-*.log")):
            lines = [line for line in log.read_text(errors="replace").splitlines() if re.search("error|warn", line, re.I)]
            text += f" [{log.stem}] {end_of(lines[-1], 300)}" if lines else ""
        return text

    def said(self, pattern):
        """The matches in what the stages logged, by stage."""
        found = []
        for log in sorted((self.state / "logs").glob("stage-*.log")):
            found += re.findall(pattern, log.read_text(errors="replace"))
        return found

    def digest(self):
        final = self.events[-1] if self.events else {}
        if final.get("event") != "finished" or final.get("state") != "SUCCEEDED":
            self.fail("did not succeed")
        return final["weights_digest"]

    def processes(self):
        text = (self.state / "processes.json").read_text()
        return {entry["name"]: entry for entry in json.loads(text)["processes"]}

    def kill_stage(self, name):
        pid = self.processes()[name]["pid"]
        if pid == 0:  # which would be every process of this group
            self.fail(f"{name} was through before it could be killed")
        os.kill(pid, signal.SIGKILL)

    def seconds_of_steps(self, seconds, patience):
        """Step times after the warm-up, of so many seconds or three steps; `patience` for the first step."""
        event, times = self.wait_for_step(1, patience), []
        deadline = time.monotonic() + patience
        while True:
            if event["step"] > WARM_UP_STEPS:
                times.append(event["step_seconds"])
                if sum(times) >= seconds and len(times) >= FEWEST_STEPS:
                    return times
            event = self.wait_for_step(1, deadline - time.monotonic())

    def memory_peaks(self):
        """[{kind: bytes}] of the stages in pipeline order, of the allocator, in the last whole step."""
        address = self.processes()["coordinator"]["address"]
        done = call([self._cli, "list", "-o", "json", "--address", address], 30, self._env)
        if done.returncode != 0:
            raise Failed(f"list: {done.stderr.strip()}")
        return [{kind: int(value) for kind, value in stage.get("memory_peak", {}).items()}
                for stage in json.loads(done.stdout)["jobs"][0]["stages"]]

    def flops_per_token(self):
        """As the coordinator counts them, to hold our own count against; None before a step."""
        http = self.processes()["coordinator"]["http"]
        text = urllib.request.urlopen(f"http://{http}/metrics", timeout=10).read().decode()
        flops = metric_values(text, "stagecoach_train_model_flops_total")
        tokens = metric_values(text, "stagecoach_train_tokens_total")
        return flops[0] / tokens[0] if flops and tokens and tokens[0] else None

    def seconds(self):
        return time.monotonic() - self._began

    def kill(self):
        """Ends all at once: the servers end with their parent, and what they hold of the device with them."""
        if self._process is None:
            return
        pids = []
        with contextlib.suppress(OSError, ValueError):
            pids = [entry["pid"] for entry in self.processes().values() if entry["pid"]]
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._process.stdout.close()
        self._process.stderr.close()
        deadline = time.monotonic() + 20  # memory of a card is free again when its holder is gone
        while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)


def tokens_per_second(step_seconds, batch, context):
    return batch * context / median(step_seconds)
