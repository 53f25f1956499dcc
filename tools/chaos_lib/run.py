"""A job undisturbed, and again and again under a plan of faults.

One thread starts, ends and restarts all servers; the proxy and the reader of records have theirs.
"""
import dataclasses
import heapq
import itertools
import time

from . import history
from .cluster import Broken, Cluster
from .proxy import WAYS

PATIENCE_SECONDS = 180  # without a new step and without a fault under way: longer than any back-off
TICK_SECONDS = 0.05
ACCEPT_SECONDS = 60


@dataclasses.dataclass
class Struck:
    """A fault as it happened."""
    fault: object
    began: float  # unix seconds
    hit: bool  # there was something to kill, to reset, to flip
    over: bool = False
    before: int = 0  # flips or cuts on the path and way until then


def undisturbed(programs, folder, stages, job_file, patience=PATIENCE_SECONDS):
    """The reference, through the same proxy."""
    with Cluster(programs, folder, stages) as cluster:
        submission = cluster.submission(job_file, "reference")
        try:
            wait(cluster, "the job is accepted", submission.accepted, ACCEPT_SECONDS)
        finally:
            submission.end()
        watcher = history.Watcher(cluster, "reference")
        try:
            wait(cluster, "a step of the undisturbed job", lambda: watcher.done, patience, lambda: watcher.changed_at)
        finally:
            watcher.close()
        result = watcher.history.result()
    if result["state"] != "JOB_STATE_SUCCEEDED":
        raise Broken(f"the undisturbed job {history.differences(result, result)[0]}")
    return result


def wait(cluster, what, condition, seconds, since=lambda: 0.0):
    """Until the condition holds. Broken after so many seconds since the start or since()."""
    began = time.monotonic()
    while not condition():
        cluster.check()
        if time.monotonic() - max(began, since()) > seconds:
            raise Broken(f"not within {seconds} s: {what}")
        time.sleep(TICK_SECONDS)


class Disturbed:
    """Runs the job under the plan, anew as often as it ends before the plan does. `rounds` has the histories."""

    def __init__(self, cluster, job_file, plan, tell=print, patience=PATIENCE_SECONDS):
        self.rounds, self.struck = [], []
        self._cluster, self._job_file, self._tell, self._patience = cluster, job_file, tell, patience
        self._due, self._order = [], itertools.count()
        self._watcher = self._submission = None
        self._asked_at = 0.0
        self._began = None
        self._quiet_since = float("-inf")  # when a fault last struck or was over
        self._plan = plan
        self._left = len(plan)

    def run(self):
        """Broken if a server fell or the job stands still. What the jobs gave is in `rounds` then too."""
        try:
            self._next_round()
            while self._step():
                self._cluster.check()
                pause = self._due[0][0] - time.monotonic() if self._due else TICK_SECONDS
                time.sleep(max(0.0, min(TICK_SECONDS, pause)))
        finally:
            if self._submission is not None:
                self._submission.end()
            if self._watcher is not None:
                self._watcher.close()
            for struck in self.struck:
                if not struck.over:
                    self._note_spoiled(struck)

    def _step(self):
        """Does what is due. False: the plan and the job are over."""
        while self._due and self._due[0][0] <= time.monotonic():
            heapq.heappop(self._due)[2]()
        if self._submission is not None:
            self._await_acceptance()
        elif self._watcher.done:
            if self._left == 0:
                return False
            self._next_round()
        elif self._left == 0 and not self._due and \
                time.monotonic() - max(self._watcher.changed_at, self._quiet_since) > self._patience:
            raise Broken(f"no new step for {self._patience} s after the last fault; the job {self._where()}")
        return True

    def _where(self):
        job = self._cluster.get(f"/api/v1/jobs/chaos-{len(self.rounds)}") or {}
        return f"is {job.get('detail', 'not to be asked')} at step {job.get('step', '?')}: {job.get('message', '')}"

    def _next_round(self):
        number = len(self.rounds) + 1
        self._submission = self._cluster.submission(self._job_file, f"chaos-{number}")
        self._asked_at = time.monotonic()

    def _await_acceptance(self):
        if not self._submission.accepted():
            if time.monotonic() - self._asked_at > ACCEPT_SECONDS:
                raise Broken(f"a job was not accepted within {ACCEPT_SECONDS} s")
            return
        self._submission = None
        self._watcher = history.Watcher(self._cluster, f"chaos-{len(self.rounds) + 1}")
        self.rounds.append(self._watcher.history)
        if self._began is None:
            self._began = time.monotonic()
            for fault in self._plan:
                self._at(self._began + fault.at, lambda fault=fault: self._strike(fault))

    def _at(self, when, what):
        heapq.heappush(self._due, (when, next(self._order), what))

    def _strike(self, fault):
        self._left -= 1
        self._quiet_since = time.monotonic()
        struck = Struck(fault, time.time(), True)
        self.struck.append(struck)
        if fault.kind in ("kill", "stop"):
            member = self._cluster.members[fault.target]
            struck.hit = member.kill() if fault.kind == "kill" else member.stop()
            starts = member.starts
            heal = member.start if fault.kind == "kill" else lambda: member.go_on() if member.starts == starts else None
            if struck.hit:
                self._at(time.monotonic() + fault.seconds, lambda: self._heal(struck, heal))
        elif fault.kind == "reset":
            struck.hit = self._cluster.proxy.reset(fault.target) > 0
        else:
            if fault.kind in ("flip", "cut"):
                struck.hit, struck.before = False, self._spoiled(fault)
                what = (fault.after_bytes, fault.bit) if fault.kind == "flip" else fault.after_bytes
                self._cluster.proxy.set(fault.target, fault.way, **{fault.kind: what})
            self._at(time.monotonic() + fault.seconds, lambda: self._heal(struck, lambda: self._clear(struck)))
            self._hold_and_delay(fault.target)
        self._tell(f"{'' if struck.hit or fault.kind in ('flip', 'cut') else '(nothing to hit) '}{fault.line()}")

    def _heal(self, struck, how):
        struck.over = True
        how()
        self._quiet_since = time.monotonic()

    def _spoiled(self, fault):
        return self._cluster.proxy.counts(fault.target, fault.way)["flipped" if fault.kind == "flip" else "cuts"]

    def _note_spoiled(self, struck):
        if struck.fault.kind in ("flip", "cut"):
            struck.hit = self._spoiled(struck.fault) > struck.before

    def _clear(self, struck):
        fault = struck.fault
        self._note_spoiled(struck)
        if fault.kind in ("flip", "cut"):
            self._cluster.proxy.set(fault.target, fault.way, **{fault.kind: None})
        self._hold_and_delay(fault.target)

    def _hold_and_delay(self, path):
        """What the faults under way make of a path together."""
        for way in WAYS:
            now = [struck.fault for struck in self.struck
                   if not struck.over and struck.fault.target == path and struck.fault.way in (way, "both")]
            self._cluster.proxy.set(path, way, hold=any(fault.kind == "blackhole" for fault in now),
                                    delay=sum(fault.delay for fault in now), jitter=sum(fault.jitter for fault in now))
