"""SIGTERM to a stage in the middle of a step: readiness goes first, the step ends, the process ends with 0, and
the job goes on without a mark."""
import pathlib
import signal
import urllib.error
import urllib.request

import harness
from observe_test import fetch, samples


def status(address, path):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


class Shutdown(harness.EndToEndTest):
    def forwards(self, process):
        counts = samples(fetch(process["http"], "/metrics"), "stagecoach_stage_microbatches_total")
        return counts['{stage="stage-1",phase="forward"}']

    def test_a_stage_ends_its_step_and_leaves(self):
        # A step takes about five seconds on the simulated device: it must not be over before all of this was looked at.
        job = self.job_file(name="leaving", training={"steps": 4}, checkpoint={"every_steps": 1}, evaluation=None)
        cluster = self.start(job, 2, "state", "--device", "simulated:0.004")
        cluster.wait_for_step(1)
        process = cluster.processes()["stage-1"]
        log = pathlib.Path(cluster.state_dir) / "logs" / "stage-1.log"
        self.assertEqual(status(process["http"], "/readyz"), 200)
        forwards = self.forwards(process)
        harness.wait_until("the next step runs", lambda: self.forwards(process) > forwards)
        cluster.signal("stage-1", signal.SIGTERM)
        harness.wait_until("not ready", lambda: status(process["http"], "/readyz") == 503)
        self.assertEqual(status(process["http"], "/livez"), 200, "alive while it drains")
        self.assertEqual(self.cli("health", process["address"]).returncode, 4, "not serving")
        harness.wait_gone("the stage ends", [process["pid"]], seconds=60)
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.assertIn("stage-1 ended with exit code 0", cluster.stderr)
        self.assertNotIn("step failed: CANCELLED", log.read_text())
        steps = [event["step"] for event in cluster.events if event["event"] == "step"]
        self.assertEqual(steps, [1, 2, 3, 4], "no step was thrown away or repeated")
        self.assertIn("recovery", [event["event"] for event in cluster.events])


if __name__ == "__main__":
    harness.main()
