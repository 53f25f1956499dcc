"""The journal, its lock, and servers that are lost at bad moments."""
import json
import shutil
import sqlite3
import subprocess
import time

from cluster import HELD, Cluster
from rows import row, verdict
import waiting


def short(steps, every=0):
    def change(spec):
        spec["training"]["steps"] = steps
        spec["checkpoint"]["every_steps"] = every
    return change


def finish(cluster, job_id=HELD, seconds=180):
    ends = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED")
    waiting.wait_until("the job ends", lambda: cluster.job(job_id).get("state") in ends, seconds)
    return cluster.job(job_id)


@row("journal-back", "the journal's backup is put back while the stages run, behind two later starts of the coordinator",
     "the job failed in 0.2 s, its term is older")
def journal_back(programs, _):
    with Cluster(programs) as cluster:
        cluster.submit(change=short(400))
        cluster.steps_more(20)
        state = cluster.folder / "state"
        source, copy = sqlite3.connect(state / "journal.sqlite"), sqlite3.connect(cluster.folder / "backup.db")
        source.backup(copy)
        source.close()
        copy.close()
        cluster.restart_coordinator()
        cluster.steps_more(5)
        cluster.restart_coordinator()
        cluster.steps_more(5)
        address = cluster.coordinator.address
        cluster.coordinator.kill()
        for left in state.glob("journal.sqlite*"):
            left.unlink()
        shutil.copy(cluster.folder / "backup.db", state / "journal.sqlite")
        cluster.coordinator.serve_on(address)
        job = finish(cluster)
        with Cluster(programs) as other:
            other.submit(change=short(400))
            undisturbed = finish(other)
        same = job.get("weights_digest") == undisturbed.get("weights_digest") != ""
        return verdict(job["state"] == "JOB_STATE_SUCCEEDED" and same,
                       f"the job ends as {job['state'][10:]}, {'the undisturbed' if same else 'another'} digest")


@row("broken-log", "bytes in the middle of the journal's write-ahead log are changed, the coordinator starts",
     "jobs forgotten without a word")
def broken_log(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        cluster.coordinator.kill()
        log = cluster.folder / "state" / "journal.sqlite-wal"
        data = bytearray(log.read_bytes())
        data[40:60] = b"\xff" * 20
        log.write_bytes(data)
        cluster.coordinator.spawn()
        ended = waiting.wait_until("the coordinator ends or serves", lambda: cluster.coordinator.process.poll() is not None or
                                   cluster.coordinator.serves(), 30)
        code = cluster.coordinator.process.poll()
        said = next((line for line in cluster.coordinator.log().splitlines() if "journal.sqlite-wal" in line), "")
        return verdict(ended and code not in (None, 0) and "damaged" in said,
                       f"it ends with {code} and says \"...{said[-220:]}\"")


@row("second-coordinator", "the file `lock` is removed while a coordinator runs, and a second one started on its folder",
     "both ran; the first trained 2,900 steps that it could not save")
def second_coordinator(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        (cluster.folder / "state" / "lock").unlink()
        began = time.monotonic()
        other = cluster.server("stagecoach-coordinator", "coordinator", "--state-dir", cluster.folder / "state")
        other.title = "other"
        other.spawn()
        try:
            waiting.wait_until("one of the two ends", lambda: other.process.poll() is not None or
                               cluster.coordinator.process.poll() is not None, 30)
            seconds = time.monotonic() - began
            first, second = cluster.coordinator.process.poll(), other.process.poll()
            said = [line for line in cluster.coordinator.log().splitlines() if "lock" in line or "another" in line]
        finally:
            other.kill()
        return verdict((first is None) != (second is None),
                       f"within {seconds:.1f} s {'the first' if first is not None else 'the second'} ends with "
                       f"{first if first is not None else second}: \"{(said or [''])[-1][-200:]}\"")


@row("three-kills", "three kills of a stage within one step of 5 s", "the job failed: poison")
def three_kills(programs, _):
    with Cluster(programs) as cluster:
        def slow(spec):
            spec["training"].update(steps=6, batch_size=2048, micro_batches=64)
        cluster.submit(change=slow)
        cluster.steps_more(1, 120)
        at = cluster.step()
        for number in range(3):
            stage = cluster.stages[1]
            stage.kill()
            stage.start()
            recoveries = number + 1
            waiting.wait_until("the step runs again", lambda: int(cluster.job().get("recoveries", 0)) >= recoveries and
                               cluster.job().get("detail", "").lower().startswith(("run", "train", "step")), 60)
        within = cluster.step()
        job = finish(cluster, seconds=300)
        return verdict(job["state"] == "JOB_STATE_SUCCEEDED",
                       f"from step {at}, at {within} when they were over, {job['recoveries']} recoveries, the job ends as "
                       f"{job['state'][10:]}")


@row("step-lines", "the coordinator is killed ten times in a job with `checkpoint.every_steps: 1`",
     "3 of 400 step lines missing in metrics.jsonl")
def step_lines(programs, _):
    with Cluster(programs) as cluster:
        cluster.submit(change=short(400, every=1))
        kills = 0
        while kills < 10 and cluster.step() < 380:
            cluster.steps_more(10)
            cluster.restart_coordinator()
            waiting.wait_until("the coordinator answers", lambda: cluster.job(), 30)
            kills += 1
        finish(cluster)
        files = list((cluster.folder / "state").rglob("metrics.jsonl"))
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        done = [line for line in lines if "step_seconds" in line]
        steps = sorted(int(line["step"]) for line in done if not line.get("replayed"))
        return verdict(steps == list(range(1, 401)),
                       f"{kills} kills; {len(steps)} step lines of {len(set(steps))} steps, and {len(done) - len(steps)} "
                       "marked as replayed")


@row("certificates", "certificates are renewed while the coordinator runs", "read at the start only")
def renewed(programs, _):
    with Cluster(programs) as cluster:
        cluster.train()
        folder = cluster.certs / "coordinator"
        before = (folder / "tls.crt").read_bytes()
        for name in ("tls.crt", "tls.key"):
            (folder / name).unlink()
        subprocess.run([programs / "stagecoach", "certs", cluster.certs, "coordinator"], check=True, capture_output=True)
        changed = (folder / "tls.crt").read_bytes() != before
        waiting.wait_until("the coordinator takes them", lambda: "the certificates have changed" in cluster.coordinator.log(), 30)
        listed = cluster.cli("user", "list").returncode == 0
        fine, more = cluster.untouched()
        return verdict(changed and listed and fine, f"taken within seconds, new connections go by them; {more}")
