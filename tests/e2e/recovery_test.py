"""A lost process costs time, never results."""
import contextlib
import json
import os
import re
import signal
import time

import harness

# Long enough to be hit in the middle of a step, short enough for a test.
LONG = {"training": {"steps": 40}, "checkpoint": {"every_steps": 5, "keep": 10},
        "evaluation": {"every_steps": 20, "batches": 2},
        "model": {"gpt": {"width": 64, "context": 64, "heads": 4}}}


class Recovery(harness.EndToEndTest):
    @classmethod
    def setUpClass(cls):
        cls.golden = None

    def job(self, **changes):
        return self.job_file(**harness.merged(LONG, changes))

    def check_golden(self, cluster):
        """Digest and every loss must equal the undisturbed run's."""
        if Recovery.golden is None:
            undisturbed = self.run_job(self.job(pipeline={"stages": 1}), 1)
            Recovery.golden = undisturbed.digest(), undisturbed.losses()
        self.assertEqual((cluster.digest(), cluster.losses()), Recovery.golden)

    def restarts(self, cluster):
        return {name: entry["restarts"] for name, entry in cluster.processes().items()}

    def recovery_seconds(self, cluster, act):
        """Acts, then gives the seconds until the coordinator says that it recovers."""
        before = time.monotonic() - cluster.started
        act()
        event = cluster.wait_for("recovery", lambda e: e["event"] == "recovery", 30)
        return event["_seconds"] - before, event

    def test_stage_killed_mid_step(self):
        for victim in ("stage-0", "stage-1", "stage-2"):
            def strike(cluster):
                cluster.wait_for_step(12)
                seconds, event = self.recovery_seconds(cluster, lambda: cluster.signal(victim, signal.SIGKILL))
                self.assertLessEqual(seconds, 2.0 * harness.TIME_FACTOR, event)
                print(f"{victim} killed: noticed after {seconds:.2f} s")
            self.check_golden(self.run_struck(lambda: self.start(self.job(pipeline={"stages": 3}), 3), strike))

    def test_stage_that_stops_answering(self):
        def strike(cluster):
            cluster.wait_for_step(7)
            stopped = cluster.pid("stage-1")
            try:
                seconds, event = self.recovery_seconds(cluster, lambda: os.kill(stopped, signal.SIGSTOP))
                self.assertLessEqual(seconds, 3.0 * harness.TIME_FACTOR, event)
                self.assertRegex(event["message"], "stage-1")
            finally:
                # It comes back as a process of an old incarnation: its frames and leases must not count.
                os.kill(stopped, signal.SIGCONT)
            print(f"stage-1 stopped: noticed after {seconds:.2f} s")
        self.check_golden(self.run_struck(lambda: self.start(self.job(pipeline={"stages": 2}), 2), strike))

    def test_coordinator_killed_mid_step(self):
        def strike(cluster):
            cluster.wait_for_step(12)
            cluster.signal("coordinator", signal.SIGKILL)
        cluster = self.run_struck(lambda: self.start(self.job(pipeline={"stages": 2}), 2), strike,
                                  lambda cluster: self.restarts(cluster)["coordinator"] > 0)
        self.check_golden(cluster)
        self.assertEqual(self.restarts(cluster)["coordinator"], 1)

    def test_every_process_killed_at_once(self):
        def strike(cluster):
            cluster.wait_for_step(17)
            pids = [cluster.pid(name) for name in ("stage-0", "coordinator", "stage-1")]
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        # Who is killed behind the job's end is not started again.
        cluster = self.run_struck(lambda: self.start(self.job(pipeline={"stages": 2}), 2), strike,
                                  lambda cluster: all(self.restarts(cluster).values()))
        self.check_golden(cluster)

    def test_goes_on_from_memory_where_there_is_no_checkpoint(self):
        """For each stage that is lost, and for the coordinator; nothing starts over."""
        changes = {"training": {"steps": 400}, "checkpoint": {"every_steps": 0}, "evaluation": {"every_steps": 100}}
        undisturbed = self.run_job(self.job(**changes, pipeline={"stages": 1}), 1)
        job = self.job(**changes, pipeline={"stages": 3}, snapshot={"every_steps": 10})

        def strike(cluster):
            for step, victim in ((40, "stage-1"), (120, "stage-0"), (200, "stage-2")):
                cluster.wait_for_step(step)
                cluster.signal(victim, signal.SIGKILL)
                cluster.wait_for("recovery", lambda e: e["event"] == "recovery", 30)
                event = cluster.wait_for_step(1)
                self.assertGreaterEqual(event["step"], step - 60, event)  # steps are shorter than what a snapshot takes
            cluster.wait_for_step(280)
            cluster.signal("coordinator", signal.SIGKILL)  # the client hears of it late
        cluster = self.run_struck(lambda: self.start(job, 3), strike,
                                  lambda cluster: self.restarts(cluster)["coordinator"] > 0)
        self.assertGreaterEqual(cluster.stderr.count("which the stages have in memory"), 3, cluster.stderr)
        self.assertEqual((cluster.digest(), cluster.losses()), (undisturbed.digest(), undisturbed.losses()))

    def test_what_memory_holds_outlives_a_stage_that_stays_away(self):
        """The job fails, and goes on with the stages that are left from a step that only memory had."""
        changes = {"training": {"steps": 1500}, "checkpoint": {"every_steps": 0}, "evaluation": {"every_steps": 500}}
        undisturbed = self.run_job(self.job(**changes, pipeline={"stages": 1}), 1)
        job = self.job(**changes, snapshot={"every_steps": 10},
                       pipeline={"stages": 2, "replacement_timeout_seconds": 2})
        cluster = self.start(job, 2, "state")
        cluster.wait_for_step(100)
        stopped = cluster.pid("stage-1")
        os.kill(stopped, signal.SIGSTOP)  # nothing is started in its place
        try:
            ended = cluster.wait_for("the job's end", lambda e: e["event"] == "finished", 60)
        finally:
            with contextlib.suppress(ProcessLookupError):  # local, which ends too, may have killed it
                os.kill(stopped, signal.SIGCONT)
        self.assertEqual((cluster.finish(), ended["state"]), (1, "FAILED"), ended)
        told = re.search(r"to go on from step (\d+) with those that are ready:  stagecoach resume (\S+) --stages 1$",
                         ended["message"])
        self.assertIsNotNone(told, ended)
        saved = int(told[1])
        self.assertGreaterEqual(saved, 40)
        more = self.cli("resume", told[2], "--state-dir", cluster.state_dir, "--stages", 1, "-o", "ndjson",
                        timeout=120)
        self.assertEqual(more.returncode, 0, more.stderr)
        events = [json.loads(line) for line in more.stdout.splitlines()]
        self.assertEqual(events[-1]["weights_digest"], undisturbed.digest())
        self.assertEqual(min(e["step"] for e in events if e["event"] == "step"), saved + 1)

    def test_killed_before_the_first_checkpoint_starts_over(self):
        job = self.job(pipeline={"stages": 2}, checkpoint={"every_steps": 0}, snapshot={"never": True})
        self.check_golden(self.run_killed(lambda: self.start(job, 2), 3, "stage-0"))

    def test_goes_on_with_the_stages_that_are_left(self):
        # At the start it waits so long for three stages, too, and begins with fewer where they take longer.
        job = self.job(pipeline={"stages": 3, "continue_with_fewer_stages": True, "replacement_timeout_seconds": 5})

        def strike(cluster):
            cluster.wait_for_step(7)
            # Stopped, not dead: the supervisor has nothing to restart, so there is no replacement.
            stopped = cluster.pid("stage-2")
            os.kill(stopped, signal.SIGSTOP)
            try:
                cluster.wait_for("recovery", lambda e: e["event"] == "recovery", 30)
                event = cluster.wait_for("a step of two stages", lambda e: e["event"] == "step", 60)
                self.assertAlmostEqual(event["bubble_ideal"], 1 / 5, places=9)
            finally:
                os.kill(stopped, signal.SIGCONT)
        self.check_golden(self.run_struck(lambda: self.start(job, 3), strike))

    def test_stages_that_never_register_end_in_an_error_that_counts_them(self):
        cluster = self.start(self.job(training={"steps": 100000}, pipeline={"stages": 1}), 1)
        cluster.wait_for_step(1)
        address = cluster.processes()["coordinator"]["address"]
        job = self.job_file("lonely.json", name="lonely",
                            pipeline={"stages": 3, "replacement_timeout_seconds": 1})
        result = self.cli("submit", job, "--address", address)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, "3 stages")


if __name__ == "__main__":
    harness.main()
