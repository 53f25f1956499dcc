"""The kill matrix: each trial trains the small job on a cluster of its own, waits for its moment, and strikes.

Threads: signs come on the proxy's thread, the reader's and the one that looks at folders, and the blow falls right there; the
main thread restarts what was killed and lets go on what was stopped.
"""
import contextlib
import json
import shutil
import threading
import time

from . import history, moments, report, run
from .cluster import Broken, Cluster

STAGES = 3
DOWN_SECONDS = 0.2
STOP_SECONDS = 2.5  # longer than a lease
TICK_SECONDS = 0.01
RECORD_POLL_SECONDS = 0.005
FOLDER_POLL_SECONDS = 0.002
PATIENCE_SECONDS = 90
JOB_ID = "job"


class Blow:
    """Hears events until the trial's moment has come, and strikes."""

    def __init__(self, trial):
        self.struck_unix = None
        self.hit = []  # names
        self.cluster = None  # before it starts
        self._trial, self._signs = trial, trial.moment.signs()
        self._held = []  # paths
        self._lock = threading.Lock()

    def on_message(self, path, method, way, body):
        self.hear(moments.Message(path, method.rsplit("/", 1)[-1], way, body))

    def close(self):
        """What is heard from now on is no sign: the trial is over."""
        with self._lock:
            self._signs = []

    def hear(self, event):
        with self._lock:
            if not self._signs or not self._signs[0][0](event):
                return
            _, action = self._signs.pop(0)
            if action is not None:
                self._act(*action)
            if not self._signs:
                self._strike()

    def _act(self, what, server):
        member = self.cluster.members[server]
        if what == "kill":
            member.kill()
        elif what == "drain":
            member.drain()
        else:
            # On the proxy's thread, as all signs with a hold are messages: it would wait for us on any other.
            self._held.append(f"control/{server}")
            self.cluster.proxy.set(self._held[-1], "both", hold=True)

    def _strike(self):
        self.struck_unix = time.time()
        for name in moments.ROLES[self._trial.role]:
            member = self.cluster.members[name]
            if member.kill() if self._trial.action == "kill" else member.stop():
                self.hit.append(name)
        for path in self._held:
            self.cluster.proxy.set(path, "both", hold=False)


class FolderWatch:
    """Tells of names below the job's folder of checkpoints and the folder of exports, once each."""

    def __init__(self, folder, tell):
        self._folders = {"checkpoints": folder / "checkpoints" / JOB_ID, "exports": folder / "state" / "exports"}
        self._tell, self._known = tell, set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="folders")
        self._thread.start()

    def _run(self):
        while not self._stop.wait(FOLDER_POLL_SECONDS):
            for title, folder in self._folders.items():
                for path in folder.iterdir() if folder.is_dir() else ():
                    name = f"{title}/{path.name}"
                    if name not in self._known:
                        self._known.add(name)
                        self._tell(name)

    def close(self):
        self._stop.set()
        self._thread.join()


def write_job(folder):
    (folder / "text.txt").write_text(moments.TEXT)
    path = folder / "job.json"
    path.write_text(json.dumps(moments.JOB))
    return path


def heal(cluster, due):
    """Restarts what was killed or has drained, lets go on what was stopped, each at its time."""
    now = time.monotonic()
    for member in cluster.members.values():
        if member.drained():
            member.start()
        elif member.down or member.stopped:
            when = due.setdefault(member.name, now + (DOWN_SECONDS if member.down else STOP_SECONDS))
            if now >= when:
                del due[member.name]
                member.start() if member.down else member.go_on()


def run_trial(programs, folder, trial, job_file):
    """(blow, failure, history)."""
    blow, watcher = Blow(trial), None
    blow.cluster = Cluster(programs, folder, STAGES, on_message=blow.on_message)
    try:
        with blow.cluster as cluster, contextlib.closing(FolderWatch(folder, blow.hear)):
            submission = cluster.submission(job_file, JOB_ID)
            try:
                due, began = {}, time.monotonic()
                while watcher is None or not watcher.done or any_down(cluster):
                    heal(cluster, due)
                    cluster.check()
                    if watcher is None and submission.accepted():
                        watcher = history.Watcher(cluster, JOB_ID, blow.hear, RECORD_POLL_SECONDS)
                    if time.monotonic() - max(began, watcher.changed_at if watcher else 0) > PATIENCE_SECONDS:
                        raise Broken(f"the job stands still for {PATIENCE_SECONDS} s")
                    time.sleep(TICK_SECONDS)
            finally:
                blow.close()
                submission.end()
                if watcher is not None:
                    watcher.close()
        failure = ""
    except Broken as error:
        failure = str(error)
    return blow, failure, watcher.history if watcher else history.History()


def any_down(cluster):
    return any(member.down or member.stopped for member in cluster.members.values())


def run_matrix(programs, folder, chosen, tell):
    """Tells each trial's result. Folders of trials that failed are kept."""
    job_file = write_job(folder)
    undisturbed = run.undisturbed(programs, folder / "undisturbed", STAGES, job_file)
    for trial in chosen:
        place = folder / trial.name.replace("/", "-")
        blow, failure, told = run_trial(programs, place, trial, job_file)
        result = told.result()
        differ = history.differences(undisturbed, result) + told.faults_found
        if not failure and blow.struck_unix is None:
            failure = "the moment did not come"
        failure = failure or "; ".join(differ)
        recovery = report.recovery_seconds(blow.struck_unix, told.step_times, told.recovery_times) if blow.struck_unix else None
        tell({"name": trial.name, "hit": blow.hit, "equal": not failure, "failure": failure, "recovery_seconds": recovery,
              "recoveries": told.recoveries, "repeated_steps": told.repeated})
        if not failure:
            shutil.rmtree(place)
