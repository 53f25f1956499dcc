"""Where the time of an equal-stage GPipe pipeline goes, on a simulated device: real servers, links and clocks,
operations that wait instead of computing. The measured bubble is the paper's, and no second is missing."""
import json
import statistics
import time

import harness
from observe_test import fetch, samples

STAGES, MICRO_BATCHES = 4, 8
WIDTH, VOCABULARY, LINEARS = 512, 128, 8
STEPS = 7
# Of the made-up device. A forward takes about 0.1 s, so that waking up late by a millisecond is 1 %.
DEVICE = "simulated:10"


def equal_stages():
    """Eight equal linear layers on every stage; the last one ends in two that cost as much as one:
    WIDTH -> 410 -> VOCABULARY has as many weights as WIDTH -> WIDTH."""
    linear = {"linear": {"out": WIDTH}}
    inner = round(WIDTH * WIDTH / (WIDTH + VOCABULARY))
    return ([{"embedding": {"dropout": 0.0}}] + [linear] * (STAGES * LINEARS - 1) +
            [{"linear": {"out": inner}}, {"linear": {"out": VOCABULARY}}])


class Bubble(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        job = self.job_file(
            name="bubble",
            model={"gpt": None, "sequence": {"width": WIDTH, "context": 64, "vocabulary": VOCABULARY,
                                             "layers": equal_stages()}},
            training={"steps": STEPS, "batch_size": 4 * MICRO_BATCHES, "micro_batches": MICRO_BATCHES,
                      "optimizer": {"adamw": None, "sgd": {}}},
            pipeline={"stages": STAGES, "rematerialization": "never",
                      "partition": {"cuts": [1 + LINEARS * k for k in range(1, STAGES)]}},
            checkpoint={"every_steps": 100}, evaluation=None)
        (self.folder / "input.txt").write_text(harness.TEXT * 4)
        self.cluster = self.start(job, STAGES, "state", "--device", DEVICE)
        self.cluster.wait_for_step(1)
        processes = self.cluster.processes()
        self.address = processes["coordinator"]["address"]
        self.http = {name: entry["http"] for name, entry in processes.items()}

    def phase_totals(self, stage):
        return samples(fetch(self.http[stage], "/metrics"), "stagecoach_stage_time_seconds_total")

    def test_the_bubble_is_the_papers_and_no_second_is_missing(self):
        ideal = (STAGES - 1) / (MICRO_BATCHES + STAGES - 1)
        names = [f"stage-{k}" for k in range(STAGES)]
        begin = {name: (time.monotonic(), sum(self.phase_totals(name).values())) for name in names}
        bubbles = []
        for step in range(2, STEPS):
            event = self.cluster.wait_for_step(step)
            self.assertAlmostEqual(event["bubble_ideal"], ideal, places=9)
            bubbles.append(event["bubble"])
            job = json.loads(self.cli("describe", "bubble", "-o", "json", "--address", self.address).stdout)
            self.check_step(job)
        # The middle one: a stall of the whole machine is no property of the schedule.
        self.assertAlmostEqual(statistics.median(bubbles), ideal, delta=0.02, msg=str(bubbles))
        for name in names:
            now, total = time.monotonic(), sum(self.phase_totals(name).values())
            self.assertAlmostEqual((total - begin[name][1]) / (now - begin[name][0]), 1.0, delta=0.01, msg=name)
        self.assertEqual(self.cluster.finish(), 0, self.cluster.describe())

    def check_step(self, job):
        """A stage's phases cover its step: all of it on the first stage; a later one has done its last backward
        earlier, by the backwards of the stages before it."""
        wall = job["step_seconds"]
        self.assertEqual(len(job["stages"]), STAGES)
        for k, stage in enumerate(job["stages"]):
            seconds = stage["phases"]["seconds"]
            after = k * seconds["backward"] / MICRO_BATCHES
            self.assertAlmostEqual((sum(seconds.values()) + after) / wall, 1.0, delta=0.01,
                                   msg=f"{stage['name']}: {seconds}, step of {wall} s")


if __name__ == "__main__":
    harness.main()
