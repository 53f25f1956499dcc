"""Slow is not stuck. Symptom: on a device on which a micro-batch took a stage longer than the progress timeout,
its neighbour gave up, three times, and the job failed. Cause: who waited looked at itself and not at the others.
Here on a made-up device, with a short timeout in place of a long micro-batch."""
import os
import unittest.mock

import harness

# Nobody hears of the others more often than every 0.5 s, and a machine that is busy with other things may keep all
# processes waiting for seconds: the limit is longer than that, and a stage computes for longer than the limit.
TIMEOUT_SECONDS = 12
WIDTH, ROWS = 512, 64
FORWARD_SECONDS = 4.5
# Each stage is a few equal products; backward costs two of them: a stage waits for FORWARD + 2 FORWARD.
LINEARS = 4
DEVICE = f"simulated:{2 * LINEARS * ROWS * WIDTH * WIDTH / FORWARD_SECONDS / 1e9:.4f}"


class SlowStages(harness.EndToEndTest):
    def test_a_neighbour_that_computes_longer_than_the_timeout_is_waited_for(self):
        job = self.job_file(
            model={"gpt": None, "sequence": {"width": WIDTH, "context": ROWS, "vocabulary": 128, "layers":
                                             [{"embedding": {"dropout": 0.0}}] +
                                             [{"linear": {"out": WIDTH}}] * (2 * LINEARS - 1) +
                                             [{"linear": {"out": 128}}]}},
            training={"steps": 1, "batch_size": 1, "micro_batches": 1, "optimizer": {"adamw": None, "sgd": {}},
                      "learning_rate": {"cosine": None, "constant": {"peak": 1e-3}}},
            pipeline={"rematerialization": "never", "partition": {"cuts": [1 + LINEARS]}},
            checkpoint={"every_steps": 0}, evaluation=None)
        with unittest.mock.patch.dict(os.environ, STAGECOACH_PROGRESS_TIMEOUT_SECS=str(TIMEOUT_SECONDS)):
            cluster = self.start(job, 2, None, "--device", DEVICE)
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.assertGreater(3 * FORWARD_SECONDS, TIMEOUT_SECONDS, "or nothing is shown")
        self.assertNotIn("recovery", [event["event"] for event in cluster.events])
        step, = (event for event in cluster.events if event["event"] == "step")
        self.assertGreater(step["step_seconds"], 4 * FORWARD_SECONDS, "it was slow indeed")


if __name__ == "__main__":
    harness.main()
