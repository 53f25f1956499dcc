"""A process of a stage that dies of a signal of its own is told apart from one that was killed."""
import re
import resource
import signal
import urllib.request

import harness

# One product takes half a minute on this device, so a stage can be met within it.
WIDTH, ROWS = 512, 64
SLOW = {"model": {"gpt": None, "sequence": {"width": WIDTH, "context": ROWS, "vocabulary": 128, "layers": [
            {"embedding": {"dropout": 0.0}}, {"linear": {"out": WIDTH}}, {"linear": {"out": 128}}]}},
        "training": {"steps": 1, "batch_size": 1, "micro_batches": 1, "optimizer": {"adamw": None, "sgd": {}},
                     "learning_rate": {"cosine": None, "constant": {"peak": 1e-3}}},
        "pipeline": {"stages": 1}, "checkpoint": {"every_steps": 0}, "evaluation": None}
DEVICE = "simulated:0.001:1000"


class Deaths(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        limits = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_CORE, limits)

    def forward_seconds(self, cluster, name):
        """Of the stage's process, spent in forwards that it has begun; 0 where it does not listen yet."""
        process = cluster.processes()[name]
        try:
            with urllib.request.urlopen(f"http://{process['http']}/metrics", timeout=20) as reply:
                text = reply.read().decode()
        except OSError:
            return 0
        seconds = re.search(r'stagecoach_stage_time_seconds_total\{[^}]*phase="forward"[^}]*\} (\S+)', text)
        return float(seconds[1]) if seconds else 0

    def computes(self, cluster, name, restarts):
        """A process that was started again so often is in a forward."""
        process = cluster.processes()[name]
        return process["pid"] and process["restarts"] == restarts and self.forward_seconds(cluster, name) > 0

    # Symptom: a kernel wrote behind its memory, the stage died at step 0, and the job recovered for ever.
    def test_three_at_one_instruction_end_the_job_and_are_named(self):
        cluster = self.start(self.job_file(**SLOW), 1, "state", "--device", DEVICE)
        cluster.wait_for_note("job is running")
        for death in range(3):
            harness.wait_until(f"forward {death}", lambda: self.computes(cluster, "stage-0", death), 60)
            cluster.signal("stage-0", signal.SIGSEGV)
        self.assertEqual(cluster.finish(60), 1, cluster.describe())
        self.assertEqual(cluster.finished["state"], "FAILED")
        # What is quick is over before the linear layer, and may be met.
        where = r"SIGSEGV at step 0, micro-batch 0, forward \((embedding|linear)\)"
        self.assertRegex(cluster.finished["message"], f"stage stage-0 ended by {where}; 3 times in a row")
        told = re.findall(f"stage-0 ended by {where}; starting it again", cluster.stderr)
        self.assertEqual(len(told), 3, cluster.stderr)
        log = (cluster.state_dir / "logs" / "stage-0.log").read_text()
        self.assertEqual(len(re.findall("signal=SIGSEGV job=tiny .* instruction=forward operation=", log)), 3, log)
        self.assertRegex(log, f"the process of this stage before this one ended by {where}")

    def test_one_is_named_and_recovered_from_with_the_same_bits(self):
        # Nearly all of the time within instructions: long steps, and nothing between them.
        job = self.job_file(training={"steps": 10}, model={"gpt": {"width": 256, "context": 128, "heads": 4}},
                            checkpoint={"every_steps": 5}, evaluation=None)
        undisturbed = self.run_job(job)

        def strike(cluster):
            cluster.wait_for_step(3)
            # A record comes between two commands.
            before = self.forward_seconds(cluster, "stage-1")
            harness.wait_until("a forward", lambda: self.forward_seconds(cluster, "stage-1") > before, 60)
            cluster.signal("stage-1", signal.SIGABRT)
            cluster.wait_for_note("stage-1 ended by SIGABRT ")

        # It may have been between two commands.
        def met(cluster):
            return any("the reason: stage stage-1 ended by SIGABRT at step " in event.get("message", "")
                       for event in cluster.events if event["event"] == "recovery")
        cluster = self.run_struck(lambda: self.start(job), strike, met)
        self.assertRegex(cluster.stderr, r"stage-1 ended by SIGABRT at step \d+, .*; starting it again")
        self.assertEqual((cluster.digest(), cluster.losses()), (undisturbed.digest(), undisturbed.losses()))


if __name__ == "__main__":
    harness.main()
