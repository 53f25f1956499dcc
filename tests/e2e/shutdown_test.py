"""SIGTERM to a stage in the middle of a step: readiness goes first, the step ends, the process ends with 0, and
the job goes on without a mark."""
import json
import pathlib
import signal
import time
import urllib.error
import urllib.request

import harness


def status(address, path):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


class Shutdown(harness.EndToEndTest):
    def test_a_stage_ends_its_step_and_leaves(self):
        # A step takes about a second on the simulated device.
        job = self.job_file(name="leaving", training={"steps": 12}, checkpoint={"every_steps": 1}, evaluation=None)
        cluster = self.start(job, 2, "state", "--device", "simulated:0.004")
        cluster.wait_for_step(3)
        process = cluster.processes()["stage-1"]
        log = pathlib.Path(cluster.state_dir) / "logs" / "stage-1.log"
        self.assertEqual(status(process["http"], "/readyz"), 200)
        cluster.signal("stage-1", signal.SIGTERM)
        harness.wait_until("not ready", lambda: status(process["http"], "/readyz") == 503)
        self.assertEqual(status(process["http"], "/livez"), 200, "alive while it drains")
        self.assertEqual(self.cli("health", process["address"]).returncode, 4, "not serving")
        harness.wait_until("the stage is gone", lambda: not harness.alive(process["pid"]), seconds=30)
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        self.assertIn("stage-1 ended with exit code 0", cluster.stderr)
        text = log.read_text()
        self.assertIn("signal 15: shutting down", text)
        self.assertNotIn("step failed: CANCELLED", text, "no step was thrown away")
        self.assertEqual(cluster.finished["step"], 12)


if __name__ == "__main__":
    harness.main()
