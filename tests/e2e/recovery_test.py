"""A lost process costs time, never results."""
import os
import signal

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

    def recovery_seconds(self, cluster, act):
        """Acts, then gives the seconds until the coordinator says that it recovers."""
        import time
        before = time.monotonic() - cluster.started
        act()
        event = cluster.wait_for("recovery", lambda e: e["event"] == "recovery", 30)
        return event["_seconds"] - before, event

    def test_stage_killed_mid_step(self):
        for victim in ("stage-0", "stage-1", "stage-2"):
            cluster = self.start(self.job(pipeline={"stages": 3}), 3)
            cluster.wait_for_step(12)
            seconds, event = self.recovery_seconds(cluster, lambda: cluster.signal(victim, signal.SIGKILL))
            self.assertLessEqual(seconds, 2.0 * harness.TIME_FACTOR, event)
            self.assertEqual(cluster.finish(), 0, cluster.describe())
            self.check_golden(cluster)
            print(f"{victim} killed: noticed after {seconds:.2f} s")

    def test_stage_that_stops_answering(self):
        cluster = self.start(self.job(pipeline={"stages": 2}), 2)
        cluster.wait_for_step(7)
        stopped = cluster.pid("stage-1")
        seconds, event = self.recovery_seconds(cluster, lambda: os.kill(stopped, signal.SIGSTOP))
        self.assertLessEqual(seconds, 3.0 * harness.TIME_FACTOR, event)
        self.assertRegex(event["message"], "stage-1")
        # It comes back as a process of an old incarnation: its frames and leases must not count.
        os.kill(stopped, signal.SIGCONT)
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.check_golden(cluster)
        print(f"stage-1 stopped: noticed after {seconds:.2f} s")

    def test_coordinator_killed_mid_step(self):
        cluster = self.start(self.job(pipeline={"stages": 2}), 2)
        cluster.wait_for_step(12)
        cluster.signal("coordinator", signal.SIGKILL)
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.check_golden(cluster)
        self.assertEqual(cluster.processes()["coordinator"]["restarts"], 1)

    def test_every_process_killed_at_once(self):
        cluster = self.start(self.job(pipeline={"stages": 2}), 2)
        cluster.wait_for_step(17)
        for name in ("stage-0", "coordinator", "stage-1"):
            cluster.signal(name, signal.SIGKILL)
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.check_golden(cluster)

    def test_goes_on_from_memory_where_there_is_no_checkpoint(self):
        """For each stage that is lost, and for the coordinator; nothing starts over."""
        changes = {"training": {"steps": 400}, "checkpoint": {"every_steps": 0}, "evaluation": {"every_steps": 100}}
        undisturbed = self.run_job(self.job(**changes, pipeline={"stages": 1}), 1)
        job = self.job(**changes, pipeline={"stages": 3}, snapshot={"every_steps": 10})
        cluster = self.start(job, 3)
        for step, victim in ((40, "stage-1"), (120, "stage-0"), (200, "stage-2")):
            cluster.wait_for_step(step)
            cluster.signal(victim, signal.SIGKILL)
            cluster.wait_for("recovery", lambda e: e["event"] == "recovery", 30)
            event = cluster.wait_for_step(1)
            self.assertGreaterEqual(event["step"], step - 60, event)  # steps are shorter than what a snapshot takes
        cluster.wait_for_step(280)
        cluster.signal("coordinator", signal.SIGKILL)  # the client hears of it late
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.assertGreaterEqual(cluster.stderr.count("which the stages have in memory"), 3, cluster.stderr)
        self.assertEqual((cluster.digest(), cluster.losses()), (undisturbed.digest(), undisturbed.losses()))

    def test_killed_before_the_first_checkpoint_starts_over(self):
        cluster = self.start(self.job(pipeline={"stages": 2}, checkpoint={"every_steps": 0},
                                      snapshot={"never": True}), 2)
        cluster.wait_for_step(3)
        cluster.signal("stage-0", signal.SIGKILL)
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.check_golden(cluster)

    def test_goes_on_with_the_stages_that_are_left(self):
        cluster = self.start(self.job(pipeline={"stages": 3, "continue_with_fewer_stages": True,
                                                "replacement_timeout_seconds": 0.5}), 3)
        cluster.wait_for_step(7)
        # Stopped, not dead: the supervisor has nothing to restart, so there is no replacement.
        stopped = cluster.pid("stage-2")
        os.kill(stopped, signal.SIGSTOP)
        try:
            cluster.wait_for("recovery", lambda e: e["event"] == "recovery", 30)
            event = cluster.wait_for("a step of two stages", lambda e: e["event"] == "step", 30)
            self.assertAlmostEqual(event["bubble_ideal"], 1 / 5, places=9)
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.check_golden(cluster)

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
