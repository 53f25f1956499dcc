"""What a job says of its training beside its steps: epochs, a target that ends it, and averages of its weights.

What each of them decides is tested by coordinator/job, what averages are by stage/cell.
"""
import contextlib
import json
import signal

import fleet
import harness

# 31 sequences to train on, so that an epoch in mini-batches of 6 ends within step 6 and the second one within step 11.
EPOCH_BYTES = 560


class Epochs(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        (self.folder / "input.txt").write_text(harness.TEXT[:EPOCH_BYTES])

    def job(self, name, stages, **changes):
        return self.job_file(f"{name}.json", name=name, pipeline={"stages": stages},
                             **harness.merged({"training": {"steps": None, "epochs": 2}}, changes))

    @staticmethod
    def steps_of(run, event):
        return [one["step"] for one in run.events if one["event"] == event]

    def test_steps_evaluations_and_checkpoints_are_counted_in_epochs(self):
        each = {"checkpoint": {"every_steps": None, "every_epochs": 1},
                "evaluation": {"every_steps": None, "every_epochs": 0.5, "batches": 1}}
        two = self.run_job(self.job("two", 2, **each), 2)
        self.assertEqual(sorted(two.losses()), list(range(1, 12)))
        self.assertEqual(self.steps_of(two, "checkpoint"), [6, 11])
        self.assertEqual(self.steps_of(two, "evaluation"), [3, 6, 8, 11])
        one = self.run_job(self.job("one", 1, **each), 1)
        self.assertEqual((one.digest(), one.losses()), (two.digest(), two.losses()))

    def test_a_resume_in_the_middle_of_an_epoch_ends_with_the_same_bits(self):
        whole = self.run_job(self.job("whole", 2, checkpoint={"every_steps": 4}), 2, "state", "--id", "whole")
        self.assertEqual(self.steps_of(whole, "checkpoint"), [4, 8, 11])
        for step, stages in ((4, 1), (8, 3)):
            job = self.job(f"from-{step}", stages, resume={"job": "whole", "step": step})
            resumed = self.run_job(job, stages, "state", "--id", f"from-{step}")
            self.assertEqual(resumed.digest(), whole.digest(), step)
            self.assertEqual(resumed.losses(), {s: loss for s, loss in whole.losses().items() if s > step})


class Until(harness.EndToEndTest):
    STEPS, REACHED = 30, 6

    def job(self, name, stages, **training):
        return self.job_file(f"{name}.json", name=name, training={"steps": self.STEPS, **training},
                             pipeline={"stages": stages}, checkpoint={"every_steps": 10})

    def test_a_target_ends_the_job_with_a_checkpoint_also_after_a_restart(self):
        whole = self.run_job(self.job("whole", 1), 1)
        held_out = {event["step"]: event["loss"] for event in whole.events if event["event"] == "evaluation"}
        target = held_out[self.REACHED] * (1 + 1e-6)
        self.assertEqual([step for step, loss in held_out.items() if loss <= target][0], self.REACHED)

        ended = self.run_job(self.job("ended", 1, until={"loss": target}), 1)
        self.assertEqual(sorted(ended.losses()), list(range(1, self.REACHED + 1)))
        self.assertEqual([event["step"] for event in ended.events if event["event"] == "checkpoint"], [self.REACHED])
        self.assertEqual(ended.finished["step"], self.REACHED)
        self.assertNotEqual(ended.digest(), whole.digest())

        killed = self.start(self.job("killed", 2, until={"loss": target}), 2)
        killed.wait_for("the target", lambda event: event["event"] == "evaluation" and event["loss"] <= target)
        with contextlib.suppress(ProcessLookupError):  # it may have ended already
            killed.signal("coordinator", signal.SIGKILL)
        self.assertEqual(killed.finish(), 0, killed.describe())
        self.assertEqual((killed.digest(), killed.losses()), (ended.digest(), ended.losses()))
        self.assertEqual(killed.finished["step"], self.REACHED)


class Diverged(harness.EndToEndTest):
    """Seen: the last losses and evaluation were nan, and the job SUCCEEDED with the last finite loss."""

    def test_a_job_whose_loss_is_not_a_number_fails_and_keeps_its_checkpoints(self):
        job = self.job_file(name="diverged", training={
            "optimizer": {"adamw": None, "sgd": {}}, "gradient_clip_norm": None,
            "learning_rate": {"cosine": None, "constant": {"peak": 1000}}}, checkpoint={"every_steps": 1, "keep": 1})
        run = self.start(job, 2)
        self.assertNotEqual(run.finish(), 0)
        steps = [event for event in run.events if event["event"] == "step"]
        bad = [event["step"] for event in steps if event.get("skipped")]
        self.assertEqual(bad, list(range(bad[0], 7)), run.describe())
        self.assertGreater(bad[0], 1, "a step was applied")
        self.assertEqual(run.finished["state"], "FAILED")
        self.assertIsNone(run.finished["loss"])
        self.assertIn(f"from step {bad[0]} on", run.finished["message"])
        self.assertEqual(run.finished["step"], 6)
        kept = sorted(path.name for path in run.state_dir.glob("checkpoints/*/step-*"))
        self.assertEqual(kept, ["step-000000000005", "step-000000000006"], "the last one pushed out none")
        self.assertEqual(list(run.state_dir.glob("exports/*/model.safetensors")), [])


class OnAFleet(fleet.FleetTest):
    def setUp(self):
        super().setUp()
        for name in ("stage-0", "stage-1"):
            self.launch_stage(name)

    def test_what_is_described_of_a_job_in_epochs_can_be_submitted_again(self):
        (self.folder / "input.txt").write_text(harness.TEXT[:EPOCH_BYTES])
        self.submit("first", training={"steps": None, "epochs": 1})
        first = self.ended("first")
        self.assertEqual((int(first["step"]), int(first["total_steps"])), (6, 6))
        described = self.cli("describe", "first", "-o", "json", "--address", self.address)
        spec = json.loads(described.stdout)["spec"]
        self.assertEqual((spec["training"]["epochs"], int(spec["training"]["steps"])), (1, 0))
        again = self.folder / "again.json"
        again.write_text(json.dumps(spec))
        submitted = self.cli("submit", again, "--id", "again", "--detach", "--address", self.address)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        self.assertEqual(self.ended("again")["weights_digest"], first["weights_digest"])

    def exported(self, job_id, *arguments):
        result = self.cli("export", job_id, "-o", "json", "--address", self.address, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["weights_digest"]

    def test_averages_are_evaluated_and_exported_with_the_same_bits_for_every_k(self):
        measures, averages, live = [], [], []
        for stages in (1, 2):
            job_id = f"k{stages}"
            self.submit(job_id, name=job_id, pipeline={"stages": stages}, training={"average": {"decay": 0.7}})
            job = self.ended(job_id)
            self.assertEqual(job["state"], "JOB_STATE_SUCCEEDED", job)
            measures.append({one["name"]: one["value"] for one in job["evaluation_measures"]})
            self.assertIn("average_loss", measures[-1])
            self.assertNotEqual(measures[-1]["average_loss"], job["evaluation_loss"])
            live.append(self.exported(job_id))
            averages.append(self.exported(job_id, "--average"))
            self.assertEqual(live[-1], job["weights_digest"])
            self.assertNotEqual(averages[-1], live[-1])
        self.assertEqual(measures[1], measures[0])
        self.assertEqual(averages[1], averages[0])
        # The training is that of a job without averages.
        self.submit("plain", name="plain")
        self.assertEqual(self.ended("plain")["weights_digest"], live[0])


if __name__ == "__main__":
    harness.main()
