"""A job's records on disk: metrics.jsonl, over restarts and recoveries."""
import json
import signal
import time

import fleet
import harness


class Records(harness.EndToEndTest):
    def lines(self, cluster, job="tiny"):
        text = (cluster.state_dir / "jobs" / job / "metrics.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def check_steps(self, cluster, steps):
        """Exactly one line a step beside the replayed ones, with the numbers of the client's events."""
        lines = self.lines(cluster)
        numbers = [line["number"] for line in lines]
        self.assertEqual(numbers, sorted(set(numbers)), "a record was written twice or out of order")
        losses = {}
        for line in lines:
            if line["event"] != "step":
                continue
            if line.get("replayed"):
                self.assertEqual(line["loss"], losses[line["step"]], "a replayed step has another loss")
            else:
                self.assertNotIn(line["step"], losses)
                losses[line["step"]] = line["loss"]
        self.assertEqual(sorted(losses), list(range(1, steps + 1)))
        for step, loss in cluster.losses().items():
            self.assertEqual(losses[step], loss)
        self.assertEqual(lines[-1]["event"], "finished")
        return lines, losses

    def test_records_of_a_run(self):
        # Steps have their stages' part only where the writer comes while they are new: not all may be over by then.
        cluster = self.run_job(self.job_file(training={"steps": 60}))
        lines, losses = self.check_steps(cluster, 60)
        self.assertEqual([line["step"] for line in lines if line["event"] == "evaluation"], list(range(3, 61, 3)))
        self.assertEqual(lines[-1]["weights_digest"], cluster.digest())
        stages = [line["stages"] for line in lines if "stages" in line]
        self.assertTrue(stages, "no step has its stages' part")
        self.assertEqual([stage["name"] for stage in stages[-1]], ["stage-0", "stage-1"])
        self.assertGreater(stages[-1][0]["phases"]["forward"], 0)
        self.assertGreater(stages[-1][1]["memory_peak"]["parameters"], 0)

    def test_lines_come_while_the_job_runs(self):
        cluster = self.start(self.job_file(training={"steps": 100000}))
        cluster.wait_for_step(5)
        path = cluster.state_dir / "jobs" / "tiny" / "metrics.jsonl"

        def fresh():
            """Whether the last whole line is of the last second or two, as promised."""
            whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
            return whole and time.time() - json.loads(whole.rpartition("\n")[2])["unix_seconds"] < 2
        # A disk that is busy with others may be late for a while; one that is kept from us to the end is not.
        harness.wait_until("a line of what happens now", fresh, 30)

    def test_a_lost_stage_and_a_killed_coordinator_cost_no_line(self):
        # Long enough to be killed in the middle; a checkpoint every 50 steps makes steps come again.
        job = self.job_file(training={"steps": 700}, checkpoint={"every_steps": 50})

        def strike(cluster):
            cluster.wait_for_step(120)
            cluster.signal("stage-1", signal.SIGKILL)
            cluster.wait_for("a recovery", lambda event: event["event"] == "recovery")
            last = max(event["step"] for event in cluster.events if event["event"] == "step")
            cluster.wait_for_step(last + 120)
            cluster.signal("coordinator", signal.SIGKILL)
        # A kill may also fall right behind a checkpoint: then no step comes again.
        cluster = self.run_struck(lambda: self.start(job), strike, lambda cluster:
                                  cluster.processes()["coordinator"]["restarts"] > 0 and
                                  any(line.get("replayed") for line in self.lines(cluster)))
        self.check_steps(cluster, 700)
        files = list((cluster.state_dir / "jobs" / "tiny").glob("events.out.tfevents.*"))
        self.assertEqual(len(files), 2, "one for each coordinator that wrote")


class RecordsElsewhere(fleet.FleetTest):
    """`stagecoach records` on a machine that has neither the coordinator's files nor the stages'."""

    def fetch(self, to, job_id="tiny"):
        return self.cli("records", job_id, "--to", self.folder / to, "--address", self.address)

    def test_a_history_comes_over_the_api(self):
        nothing = self.fetch("nothing")
        self.assertEqual(nothing.returncode, 3, nothing.stderr)
        self.submit("tiny", training={"steps": 100000})
        for name in ("stage-0", "stage-1"):
            self.launch_stage(name)
        written = self.folder / "state" / "jobs" / "tiny"
        harness.wait_until("steps are written", lambda: (written / "metrics.jsonl").exists() and
                           '"step"' in (written / "metrics.jsonl").read_text(), 60)
        fetched = self.fetch("running")
        self.assertEqual(fetched.returncode, 0, fetched.stderr)
        lines = (self.folder / "running" / "metrics.jsonl").read_text().splitlines()
        self.assertTrue(all(json.loads(line)["number"] > 0 for line in lines))
        self.assertEqual(self.cli("cancel", "tiny", "--address", self.address).returncode, 0)
        self.ended("tiny")

        def finished():
            text = (written / "metrics.jsonl").read_text()
            return text.endswith("\n") and json.loads(text.splitlines()[-1])["event"] == "finished"
        harness.wait_until("the last record is written", finished)
        fetched = self.fetch("ended")
        self.assertEqual(fetched.returncode, 0, fetched.stderr)
        names = sorted(path.name for path in written.iterdir())
        self.assertEqual(sorted(path.name for path in (self.folder / "ended").iterdir()), names)
        for name in names:
            self.assertEqual((self.folder / "ended" / name).read_bytes(), (written / name).read_bytes(), name)
        again = self.fetch("ended")
        self.assertNotEqual(again.returncode, 0)
        self.assertIn(str(self.folder / "ended"), again.stderr)


if __name__ == "__main__":
    harness.main()
