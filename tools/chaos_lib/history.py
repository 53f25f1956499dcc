"""What a job did, from its records as they come."""
import struct
import threading
import time

from .cluster import Broken

POLL_SECONDS = 0.03


def bits(number):
    """A double's bits; JSON has NaN and infinities as strings."""
    return struct.pack(">d", float(number)).hex()


class History:
    """A job's records so far. `losses`: step -> bits of its loss; a step that is repeated must give the same ones."""

    def __init__(self):
        self.records = []
        self.losses, self.evaluations = {}, {}
        self.step_seconds = {}  # step -> its own, of the last time it was computed
        self.faults_found = []  # losses of repeated steps that differ
        self.repeated = self.recoveries = 0
        self.finished = None  # the record of the end
        self.step_times = []  # unix seconds at which steps finished
        self.recovery_times = []

    def add(self, record):
        self.records.append(record)
        step, at = int(record["step"]), record["unix_seconds"]
        if "step_done" in record:
            self.step_times.append(at)
            if step in self.losses:
                self.repeated += 1
            self._note(self.losses, "step", step, record["step_done"]["loss"])
            self.step_seconds[step] = float(record["step_done"].get("step_seconds", 0))
        elif "evaluation" in record:
            self._note(self.evaluations, "evaluation after step", step, record["evaluation"]["loss"])
        elif "recovery" in record:
            self.recoveries += 1
            self.recovery_times.append(at)
        elif "finished" in record:
            self.finished = record["finished"]

    def _note(self, known, what, step, loss):
        if known.setdefault(step, bits(loss)) != bits(loss):
            self.faults_found.append(f"{what} {step} was repeated with another loss")

    @property
    def seconds_in_steps(self):
        """Of each step once, as often as it was repeated."""
        return sum(self.step_seconds.values())

    @property
    def seconds(self):
        """From the job's first record to its last."""
        return self.records[-1]["unix_seconds"] - self.records[0]["unix_seconds"] if self.records else 0.0

    def result(self):
        """What is compared, and kept as a reference."""
        return {"state": self.finished["state"] if self.finished else "", "message": (self.finished or {}).get("message", ""),
                "weights_digest": (self.finished or {}).get("weights_digest", ""), "seconds": self.seconds,
                "seconds_in_steps": self.seconds_in_steps,
                "losses": {str(step): loss for step, loss in sorted(self.losses.items())},
                "evaluations": {str(step): loss for step, loss in sorted(self.evaluations.items())}}


def differences(reference, result):
    """What of a result is not the reference's, bit for bit; empty: nothing."""
    found = []
    if result["state"] != "JOB_STATE_SUCCEEDED":
        return [f"ended as {result['state'] or 'nothing'}: {result['message']}"]
    if result["weights_digest"] != reference["weights_digest"]:
        found.append(f"weights_digest {result['weights_digest']}, undisturbed {reference['weights_digest']}")
    for what in ("losses", "evaluations"):
        ours, theirs = result[what], reference[what]
        wrong = [step for step in sorted({*ours, *theirs}, key=int) if ours.get(step) != theirs.get(step)]
        if wrong:
            step = wrong[0]
            found.append(f"{what}: {len(wrong)} of {len(theirs)} differ, the first at step {step}: bits {ours.get(step)}, "
                         f"undisturbed {theirs.get(step)}")
    return found


class Watcher:
    """Reads a job's records on a thread of its own until the job ends or `close`. `on_record(record)` is called there."""

    def __init__(self, cluster, job_id, on_record=None, poll_seconds=POLL_SECONDS):
        self.history = History()
        self.changed_at = time.monotonic()  # of the newest step, or of the start
        self._cluster, self._path, self._on_record = cluster, f"/api/v1/jobs/{job_id}", on_record
        self._poll_seconds = poll_seconds
        self._stop = threading.Event()
        self._error = None
        self._thread = threading.Thread(target=self._run, name="watcher")
        self._thread.start()

    @property
    def done(self):
        """Broken if it ended by an error of its own: the records behind it would be missing."""
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise Broken(f"the job's records could not be read: {self._error!r}") from self._error
        return True

    def _run(self):
        try:
            self._read()
        except Exception as error:  # whoever asks `done` hears of it
            self._error = error

    def _read(self):
        after = 0
        while not self._stop.is_set() and self.history.finished is None:
            page = self._cluster.get(f"{self._path}/records?after={after}") or {}
            for record in page.get("records", []):
                if int(record["number"]) != after + 1:
                    self.history.faults_found.append(f"record {record['number']} follows record {after}")
                after = int(record["number"])
                if "step_done" in record:
                    self.changed_at = time.monotonic()
                self.history.add(record)
                if self._on_record:
                    self._on_record(record)
            if page.get("complete", True):
                self._stop.wait(self._poll_seconds)

    def close(self):
        self._stop.set()
        self._thread.join()
