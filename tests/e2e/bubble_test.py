"""Where a pipeline's time goes, by real servers and clocks: what must hold however busy the machine is. That
phases add up on one clock is tested to the nanosecond beside PhaseClock and the stage runtime; how large the
bubble is, is measured by bench/bubble_bench.py."""
import json
import time

import harness
from observe_test import PRINTED, fetch, samples

STAGES, MICRO_BATCHES, LOOKED_AT = 3, 4, range(2, 6)
COMPUTE = ("forward", "recompute", "backward")


class Bubble(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        # It goes on until it is cancelled: whoever looks may be slow.
        job = self.job_file(name="bubble", training={"steps": 100000, "micro_batches": MICRO_BATCHES},
                            pipeline={"stages": STAGES}, checkpoint={"every_steps": 0}, evaluation=None)
        self.cluster = self.start(job, STAGES, "state", "--device", "simulated:0.05")
        self.cluster.wait_for_step(1)
        processes = self.cluster.processes()
        self.address = processes["coordinator"]["address"]
        self.http = {name: entry["http"] for name, entry in processes.items()}

    def read(self, stage):
        """(a moment before, the seconds of all phases since the stage started, a moment after)"""
        before = time.monotonic()
        phases = samples(fetch(self.http[stage], "/metrics"), "stagecoach_stage_time_seconds_total")
        return before, sum(phases.values()), time.monotonic()

    def test_no_second_is_missing_and_the_bubble_is_what_the_phases_say(self):
        names = [f"stage-{k}" for k in range(STAGES)]
        first = {name: self.read(name) for name in names}
        for step in LOOKED_AT:
            event = self.cluster.wait_for_step(step)
            self.assertAlmostEqual(event["bubble_ideal"], (STAGES - 1) / (MICRO_BATCHES + STAGES - 1), places=9)
            self.check_step(json.loads(
                self.cli("describe", "bubble", "-o", "json", "--address", self.address).stdout))
        for name in names:
            (earliest, begin, begun), (end, total, latest) = first[name], self.read(name)
            # The stage read its clock at some moment of each request: the same clock as ours.
            self.assertGreaterEqual(total - begin, end - begun - PRINTED, name)
            self.assertLessEqual(total - begin, latest - earliest + PRINTED, name)
        self.assertEqual(self.cli("cancel", "bubble", "--address", self.address).returncode, 0)
        self.assertEqual(self.cluster.finish(), 5, self.cluster.describe())

    def check_step(self, job):
        """A stage's step lies within the coordinator's, which sends it and hears its end."""
        self.assertEqual(len(job["stages"]), STAGES)
        computed = 0
        for stage in job["stages"]:
            seconds = stage["phases"]["seconds"]
            self.assertLessEqual(sum(seconds.values()), job["step_seconds"] + PRINTED, stage["name"])
            computed += sum(seconds.get(phase, 0) for phase in COMPUTE)
        self.assertAlmostEqual(job["bubble"], 1 - computed / (STAGES * job["step_seconds"]), delta=PRINTED)


if __name__ == "__main__":
    harness.main()
