"""Ctrl-C as a terminal sends it, to the whole process group: the job writes a checkpoint, says how to go on, and
goes on with another number of stages to the bits of a run that nobody disturbed."""
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import urllib.request

import harness


class Interrupt(harness.EndToEndTest):
    def job(self, steps, file_name="job.json", **changes):
        # Of the size of examples/gpt-tiny.yaml, and no checkpoint before the end: all there is comes of Ctrl-C.
        return self.job_file(file_name, model={"gpt": {"width": 64, "heads": 4, "context": 64}},
                             training={"steps": steps, "batch_size": 16}, checkpoint={"every_steps": 0},
                             evaluation=None, **changes)

    def interrupt(self, cluster, *signals):
        for number in signals or [signal.SIGINT]:
            os.killpg(cluster.process.pid, number)

    def interrupted(self, state, *signals):
        """(steps of the job, step it was saved at, its run) of a job that was interrupted on its way."""
        steps = 60
        while True:
            cluster = self.start(self.job(steps), 2, f"{state} {steps}", "--threads-per-stage", 1,
                                 "--data-root", self.folder)  # the job's file stands behind it
            cluster.wait_for_step(3)
            self.interrupt(cluster, *signals)
            code = cluster.finish()
            newest = re.search(r"newest checkpoint is of step (\d+)", cluster.stderr)
            if code == 130 and newest and int(newest[1]) < steps:
                return steps, int(newest[1]), cluster
            # So busy a machine that the job was through before it heard of the signal: a longer one, then.
            through = list(cluster.state_dir.glob(f"checkpoints/*/step-{steps:012}"))
            self.assertTrue(code in (0, 130) and through, cluster.describe())
            if code == 130 and not newest:
                self.assertIn("had ended as SUCCEEDED by then", cluster.stderr)
            steps *= 10

    def go_on_line(self, cluster):
        lines = re.findall(r"^  stagecoach (resume .*)$", cluster.stderr, re.M)
        self.assertEqual(len(lines), 1, cluster.stderr)
        return shlex.split(lines[0])

    def resume(self, arguments):
        """The printed line as the user runs it, with its events."""
        cluster = harness.Cluster.__new__(harness.Cluster)
        result = subprocess.run([str(harness.CLI), "-o", "ndjson", *arguments], capture_output=True, text=True,
                                timeout=120 * harness.TIME_FACTOR)
        self.assertEqual(result.returncode, 0, result.stderr)
        cluster.events = [json.loads(line) for line in result.stdout.splitlines()]
        cluster.stderr = result.stderr
        return cluster

    def test_goes_on_in_a_project_that_was_moved(self):
        """Job file, data and run folder, renamed together; the old place is gone."""
        (self.folder / "old").mkdir()
        top, self.folder = self.folder, self.folder / "old"
        shutil.move(top / "input.txt", self.folder)
        steps, saved, cluster = self.interrupted("state")
        (top / "old").rename(top / "new")
        self.folder = top / "new"
        state = self.folder / cluster.state_dir.name
        whole = self.run_job(self.folder / "job.json", 2, "whole")
        gone_on = self.run_job(self.folder / "job.json", 2, state.name)
        self.assertIn(f"goes on from the checkpoint of step {saved}", gone_on.stderr)
        self.assertEqual(gone_on.digest(), whole.digest())
        self.assertNotIn(str(top / "old"), gone_on.stderr)
        # What ended is found there as well, and goes on.
        state.rename(top / "elsewhere")
        more = self.resume(["resume", "tiny", "--state-dir", str(top / "elsewhere"), "--steps", str(steps + 2)])
        self.assertEqual(more.events[-1]["state"], "SUCCEEDED")

    def test_goes_on_where_it_was_with_another_number_of_stages(self):
        steps, saved, cluster = self.interrupted("state with a space")
        whole = self.run_job(self.job(steps), 2, "whole")
        shown = [event["step"] for event in cluster.events if event["event"] == "step"]
        self.assertGreaterEqual(saved, shown[-1], "nothing that was done is lost")

        arguments = self.go_on_line(cluster)
        self.assertIn("--threads-per-stage", arguments, "the line has what the run was told")
        self.assertEqual(arguments[arguments.index("--data-root") + 1], str(self.folder))
        resumed = self.resume([*arguments, "--stages", "3"])
        self.assertIn(f"goes on from the checkpoint of step {saved}, with 3 stages instead of 2", resumed.stderr)
        self.assertEqual(resumed.digest(), whole.digest())
        expected = {step: loss for step, loss in whole.losses().items() if step > saved}
        self.assertEqual(resumed.losses(), expected, "no step is lost, none is shown again")

        # The job is over: said so, not run or shown once more.
        again = self.start(self.job(steps), 2, cluster.state_dir)
        self.assertEqual(again.finish(), 0, again.describe())
        self.assertEqual([event["event"] for event in again.events], ["finished"])
        self.assertIn("nothing was run", again.stderr)
        self.assertEqual(again.digest(), whole.digest())

    def test_the_same_folder_with_another_k_goes_on_and_neither_hangs_nor_starts_over(self):
        steps, saved, cluster = self.interrupted("state")
        changed = self.start(self.job(steps, "changed.json", seed=8), 3, cluster.state_dir)
        self.assertEqual(changed.finish(), 1, changed.describe())
        self.assertIn("  seed: 7 -> 8\n", changed.stderr)
        self.assertNotIn("beta1", changed.stderr, "no defaults")
        other = self.run_job(self.job(steps), 3, cluster.state_dir)
        self.assertIn("with 3 stages instead of 2", other.stderr)
        self.assertEqual(min(other.losses()), saved + 1)

    # Symptom: closing the terminal, or losing ssh, ended the run at once and its steps were lost. The shell and the
    # kernel both tell of it, and the second is no Ctrl-C of somebody who does not want to wait.
    def test_a_terminal_that_closes_loses_no_step(self):
        _, saved, cluster = self.interrupted("state", signal.SIGHUP, signal.SIGHUP)
        shown = [event["step"] for event in cluster.events if event["event"] == "step"]
        self.assertGreaterEqual(saved, shown[-1])
        self.assertNotIn("ended at once", cluster.stderr)

    def test_a_second_ctrl_c_ends_at_once_and_the_page_shows_what_there_was(self):
        # A step takes twenty seconds: nobody waits for it here.
        slow = self.job_file(training={"steps": 4}, checkpoint={"every_steps": 0}, evaluation=None)
        cluster = self.start(slow, 2, "state", "--device", "simulated:0.001")
        cluster.wait_for_note("job is running")
        self.interrupt(cluster)
        cluster.wait_for_note("Ctrl-C again")
        self.interrupt(cluster)
        self.assertEqual(cluster.finish(20), 130, cluster.describe())
        self.assertIn("ended at once", cluster.stderr)
        for process in cluster.processes().values():
            self.assertEqual(process["pid"], 0, "no process is left")

        with self.page_of(cluster.state_dir) as fetch:
            jobs = fetch("api/v1/jobs")["jobs"]
            self.assertEqual([(job["id"], job["detail"]) for job in jobs], [("tiny", "held")])
            self.assertEqual(fetch("api/v1/stages").get("stages", []), [], "no stages are started")

    @contextlib.contextmanager
    def page_of(self, folder):
        """What asks the page that `ui` serves of a folder. It ends by Ctrl-C, with 0."""
        scratch = self.folder / "scratch"
        scratch.mkdir()
        page = subprocess.Popen([str(harness.CLI), "ui", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, start_new_session=True, env={**os.environ, "TMPDIR": str(scratch)})
        try:
            address = page.stdout.readline().strip()

            def fetch(path):
                with urllib.request.urlopen(address + path, timeout=60) as reply:
                    return json.load(reply)
            fetch.address = address
            yield fetch
            os.killpg(page.pid, signal.SIGINT)
            _, fetch.notes = page.communicate(timeout=30 * harness.TIME_FACTOR)
            self.assertEqual(page.returncode, 0, fetch.notes)
            self.assertEqual(list(scratch.iterdir()), [], "what it copied is gone")
        finally:
            page.kill()
            page.communicate()

    def test_the_page_of_a_folder_of_runs_shows_all_that_are_over(self):
        losses = {}
        for run, seed in ("tiny-1", 1), ("tiny-2", 2):
            cluster = self.run_job(self.job_file(seed=seed, training={"steps": 2}, evaluation=None), 1, f"runs/{run}")
            losses[run] = cluster.losses()
        before = {path: path.read_bytes() for path in (self.folder / "runs").rglob("journal.sqlite*")}
        at_work = self.start(self.job_file(training={"steps": 100000}), 1, "runs/tiny-3")
        at_work.wait_for_step(1)
        with self.page_of(self.folder / "runs") as fetch:
            jobs = fetch("api/v1/jobs")["jobs"]
            self.assertEqual({job["id"]: job["state"] for job in jobs},
                             {run: "JOB_STATE_SUCCEEDED" for run in losses}, "by the names of their runs")
            for run, of_run in losses.items():
                records = fetch(f"api/v1/jobs/{run}/records")["records"]
                self.assertEqual({int(one["step"]): one["step_done"]["loss"] for one in records if "step_done" in one}, of_run)
        self.assertIn("not shown", fetch.notes)
        self.assertIn("runs/tiny-3, at work for `stagecoach local`", fetch.notes)
        self.assertEqual({path: path.read_bytes() for path in before}, before, "nothing is written to a run")
        self.interrupt(at_work)
        at_work.finish()


if __name__ == "__main__":
    harness.main()
