"""What a job occupies can be seen and got rid of: checkpoints by their steps, ended jobs as a whole."""
import json
import pathlib
import signal
import subprocess

import fleet
import harness
import server_process


def bytes_below(*folders):
    return sum(path.stat().st_size for folder in folders for path in pathlib.Path(folder).rglob("*") if path.is_file())


class Prune(fleet.FleetTest):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "state"
        for name in ("stage-0", "stage-1"):
            self.launch_stage(name)

    def ask(self, *arguments, code=0):
        answer = self.cli(*arguments, "--address", self.address)
        self.assertEqual(answer.returncode, code, answer.stdout + answer.stderr)
        return answer

    def steps(self, job):
        listed = json.loads(self.ask("checkpoints", "list", job, "-o", "json").stdout)
        return sorted(int(info["step"]) for info in listed["checkpoints"])

    def usage(self, job):
        usage = json.loads(self.ask("describe", job, "-o", "json").stdout)["usage"]
        self.assertEqual(usage.pop("checkpoints_error"), "")
        return {key: int(value) for key, value in usage.items()}

    def listed(self):
        return sorted(job["id"] for job in json.loads(self.ask("list", "-o", "json").stdout)["jobs"])

    def train(self, job, **changes):
        self.submit(job, name=job, **changes)
        ended = self.ended(job)
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended)
        harness.wait_until("its records are written", lambda: '"finished"' in self.records(job))
        return ended["weights_digest"]

    def records(self, job):
        path = self.state / "jobs" / job / "metrics.jsonl"
        return path.read_text() if path.exists() else ""

    def disk(self):
        """Bytes of all jobs' files, without the journal."""
        return bytes_below(self.checkpoints, self.state / "exports", self.state / "jobs")

    def restart_coordinator(self, number, *flags):
        process = self.processes["coordinator"]
        process.send_signal(number)
        process.wait(timeout=60 * harness.TIME_FACTOR)
        server = server_process.Server(harness.BIN / "stagecoach-coordinator", self.folder, "coordinator", "--state-dir",
                                       self.state, "--checkpoint-dir", self.checkpoints, *flags)
        server.serve_on(self.address)  # which the stages know
        self.processes["coordinator"], self.http = server.process, server.http_address

    def test_checkpoints_and_jobs_are_removed_for_good(self):
        digest = self.train("first")
        self.train("second")
        self.assertEqual(self.steps("first"), [2, 4, 6])
        before = self.usage("first")
        self.assertEqual(before["checkpoints"], 3)
        self.assertEqual(before["checkpoint_bytes"], bytes_below(self.checkpoints / "first"))
        self.assertEqual(before["export_bytes"], bytes_below(self.state / "exports" / "first"))
        self.assertEqual(before["record_bytes"], bytes_below(self.state / "jobs" / "first"))
        self.assertIn("On disk:", self.ask("describe", "first").stdout)

        # A step at a time; again; one that never was.
        on_disk = self.disk()
        self.assertIn("removed the checkpoints of step 4, 6", self.ask("checkpoints", "remove", "first", 6, 4).stderr)
        self.assertEqual(self.steps("first"), [2])
        freed = before["checkpoint_bytes"] - self.usage("first")["checkpoint_bytes"]
        self.assertEqual(self.disk(), on_disk - freed)
        self.assertGreater(freed, 10000)
        self.assertIn("it has those of 2", self.ask("checkpoints", "remove", "first", 6, code=3).stderr)
        self.ask("checkpoints", "remove", "first", 6, 4, "--missing-ok")
        self.assertEqual(self.steps("first"), [2])

        # What is left is good to go on from, with the same bits.
        self.assertEqual(self.train("next", resume={"job": "first"}), digest)

        # While somebody needs it, neither the checkpoint nor the job goes.
        self.submit("long", name="long", training={"steps": 100000}, checkpoint={"every_steps": 2, "keep": 3},
                    resume={"job": "first"})
        harness.wait_until("it runs from there", lambda: int(self.job("long")["step"]) > 6, 60)
        self.assertIn("is in use", self.ask("checkpoints", "remove", "first", 2, code=1).stderr)
        newest = self.steps("long")[-1]
        refused = self.ask("checkpoints", "remove", "long", *range(newest, newest + 2000, 2), "--missing-ok", code=1)
        self.assertIn("cancel that job first", refused.stderr)
        pruned = self.ask("jobs", "prune", "--yes", code=1)
        self.assertIn("by job long, which resumes from it", pruned.stderr)
        self.assertEqual(self.listed(), ["first", "long"])
        self.ask("cancel", "long")
        self.ended("long")

        # It never guesses: no terminal is there to ask at.
        self.assertIn("--yes", self.ask("jobs", "prune", code=2).stderr)
        self.assertIn("would remove 2 jobs", self.ask("jobs", "prune", "--dry-run").stderr)
        self.assertIn("would remove 0 jobs", self.ask("jobs", "prune", "--dry-run", "--older-than", "1h").stderr)
        self.assertEqual(self.listed(), ["first", "long"])
        self.assertIn("removed 1 job,", self.ask("jobs", "prune", "--yes", "--state", "succeeded").stderr)
        self.assertEqual(self.listed(), ["long"])
        self.ask("jobs", "prune", "--yes")
        self.assertIn("removed 0 jobs", self.ask("jobs", "prune", "--yes").stderr, "again")

        self.assertEqual(self.disk(), 0)
        self.assertEqual(list(self.checkpoints.iterdir()), [])
        self.restart_coordinator(signal.SIGTERM)
        self.assertEqual(self.listed(), [])
        self.assertNotIn("the journal does not have", self.log("coordinator"))
        self.ask("describe", "first", code=3)
        self.assertEqual(self.train("first"), digest, "the name is free")

    def test_a_coordinator_that_is_killed_leaves_jobs_whole_or_gone(self):
        """The kill comes while it prunes; the next one ends what was decided, and the same command the rest."""
        names = [f"job-{i}" for i in range(6)]
        for name in names:
            self.train(name, training={"steps": 2})
        whole = {name: self.usage(name) for name in names}
        removing = self.start_prune()
        harness.wait_until("a job's files go", lambda: not all((self.checkpoints / name).exists() for name in names), 60)
        self.restart_coordinator(signal.SIGKILL)
        removing.wait(timeout=60 * harness.TIME_FACTOR)
        left = self.listed()
        self.assertLess(len(left), len(names))
        for name in names:
            gone = lambda name=name: not any((folder / name).exists() for folder in (
                self.checkpoints, self.state / "exports", self.state / "jobs"))
            if name in left:
                self.assertEqual(self.usage(name), whole[name])
            else:
                harness.wait_until(f"all of {name} is gone", gone)
        self.ask("jobs", "prune", "--yes")
        self.assertEqual((self.listed(), self.disk()), ([], 0))

    def test_a_coordinator_keeps_its_disk_within_a_limit(self):
        names = ["first", "second", "third"]
        for name in names:
            self.train(name, training={"steps": 2})
        occupied = sum(sum(value for key, value in self.usage(name).items() if key.endswith("_bytes")) for name in names)
        self.assertEqual(self.disk(), occupied)
        self.restart_coordinator(signal.SIGTERM, "--remove-ended-bytes", occupied - 1)
        harness.wait_until("the first to end is removed", lambda: self.listed() == names[1:])
        self.assertLess(self.disk(), occupied)
        self.restart_coordinator(signal.SIGTERM, "--remove-ended-days", 1e-6)
        # No list has a job from the decision on; its files go behind that.
        harness.wait_until("the old ones are removed", lambda: (self.listed(), self.disk()) == ([], 0))

        refused = subprocess.run([harness.BIN / "stagecoach-coordinator", "--state-dir", self.folder / "other", "--listen",
                                  "127.0.0.1:0", "--remove-ended-days", "91"], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 78, refused.stderr)
        self.assertIn("--keep-ended-days=90", refused.stderr)

    def start_prune(self):
        process = subprocess.Popen([str(harness.CLI), "jobs", "prune", "--yes", "--address", self.address],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        return process


if __name__ == "__main__":
    harness.main()
