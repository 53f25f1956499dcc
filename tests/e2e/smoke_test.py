"""A whole job through real programs: trains, evaluates, checkpoints, exports, leaves nothing running."""
import json
import math
import signal

import harness


class Smoke(harness.EndToEndTest):
    def test_trains_evaluates_checkpoints_and_exports(self):
        cluster = self.run_job(self.job_file(), 2, "state")
        steps = [e for e in cluster.events if e["event"] == "step"]
        self.assertEqual([e["step"] for e in steps], [1, 2, 3, 4, 5, 6])
        for event in steps:
            for key in ("loss", "learning_rate", "gradient_norm", "tokens_per_second", "step_seconds", "bubble"):
                self.assertTrue(math.isfinite(event[key]), (key, event))
            self.assertAlmostEqual(event["bubble_ideal"], 1 / 5, places=9)
        self.assertLess(steps[-1]["loss"], steps[0]["loss"])
        self.assertEqual([e["step"] for e in cluster.events if e["event"] == "evaluation"], [3, 6])
        self.assertEqual([e["step"] for e in cluster.events if e["event"] == "checkpoint"], [2, 4, 6])
        self.assertRegex(cluster.digest(), r"^sha256:[0-9a-f]{64}$")
        weights = list((self.folder / "state").glob("**/model.safetensors"))
        self.assertEqual(len(weights), 1, "one file with all weights")
        header_bytes = int.from_bytes(weights[0].read_bytes()[:8], "little")
        header = json.loads(weights[0].read_bytes()[8:8 + header_bytes])
        names = [name for name in header if name != "__metadata__"]
        self.assertIn("model/0000/token.weight", names)
        self.assertTrue((weights[0].parent / "stagecoach.json").exists())

    # Symptom: tools/quickstart ended at once: its trace goes into the state folder, which was not made yet.
    def test_a_trace_goes_into_the_state_folder_and_one_that_cannot_be_written_is_told_first(self):
        trace = self.folder / "new" / "trace.json"
        self.run_job(self.job_file(), 2, "new", "--trace", trace)
        self.assertTrue(json.loads(trace.read_text())["traceEvents"])
        refused = self.start(self.job_file(), 2, "other", "--trace", self.folder / "nowhere" / "trace.json")
        self.assertEqual(refused.finish(), 2, refused.describe())
        self.assertIn("its folder is not there", refused.stderr)
        self.assertEqual([event for event in refused.events if event["event"] == "step"], [])

    def test_ctrl_c_ends_all_and_leaves_nothing_running(self):
        cluster = self.start(self.job_file(training={"steps": 100000}), 2, "state")
        cluster.wait_for_step(1)
        pids = [entry["pid"] for entry in cluster.processes().values()]
        self.assertEqual(len(pids), 3)
        cluster.process.send_signal(signal.SIGINT)
        self.assertEqual(cluster.finish(), 130)
        self.assertEqual([pid for pid in pids if harness.alive(pid)], [])

    def test_kill_9_of_the_supervisor_leaves_nothing_running(self):
        cluster = self.start(self.job_file(training={"steps": 100000}), 2, "state")
        cluster.wait_for_step(1)
        pids = [entry["pid"] for entry in cluster.processes().values()]
        cluster.process.kill()
        harness.wait_gone("children end with their parent", pids)


if __name__ == "__main__":
    harness.main()
