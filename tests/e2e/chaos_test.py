"""tools/chaos on real processes: faults end in the undisturbed run's digest, and a digest that is another one is noticed."""
import json
import pathlib
import re
import subprocess
import sys

import harness

TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "chaos"
JOB = {"training": {"steps": 60}, "checkpoint": {"every_steps": 5}, "evaluation": {"every_steps": 20}}


class Chaos(harness.EndToEndTest):
    def chaos(self, *arguments):
        return subprocess.run([sys.executable, str(TOOL), "--bin", str(harness.BIN), *map(str, arguments)], capture_output=True,
                              text=True, timeout=200 * harness.TIME_FACTOR)

    def test_kills_and_resets_cost_time_only_and_a_tampered_reference_is_noticed(self):
        job, kept, plan = self.job_file(**JOB), self.folder / "reference.json", self.folder / "plan.jsonl"
        # The flip waits for its bytes: other faults follow, so the job, or the next run of it, sends them.
        faults = [{"at": 0.1, "kind": "flip", "target": "link/stage-1", "seconds": 60, "way": "up", "after_bytes": 2000,
                   "bit": 3},
                  {"at": 0.2, "kind": "kill", "target": "stage-1", "seconds": 0.1},
                  {"at": 0.5, "kind": "reset", "target": "link/stage-1", "seconds": 0},
                  {"at": 0.9, "kind": "reset", "target": "control/stage-0", "seconds": 0},
                  {"at": 1.6, "kind": "kill", "target": "coordinator", "seconds": 0.1}]
        plan.write_text("".join(json.dumps(line) + "\n" for line in [{"stages": 2}, *faults]))
        out = self.folder / "out"
        result = self.chaos(job, "--replay", plan, "--reference", kept, "--out", out)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        told = json.loads((out / "result.json").read_text())
        self.assertTrue(told["equal"])
        self.assertEqual([fault["kind"] for fault in told["faults"]], [fault["kind"] for fault in faults])
        self.assertTrue(all(told["faults"][i]["hit"] for i in (0, 1, 4)), told["faults"])
        self.assertGreaterEqual(told["generations"], 1 + len(told["rounds"]))  # it did disturb

        # A run that meets nothing shows nothing.
        plan.write_text('{"stages": 2}\n')
        result = self.chaos(job, "--replay", plan, "--reference", kept, "--out", self.folder / "idle")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("nothing was struck", result.stderr)
        self.assertFalse(json.loads((self.folder / "idle" / "result.json").read_text())["equal"])

        # Of all that is kept, one bit of one loss; then the digest.
        reference = json.loads(kept.read_text())
        loss = reference["result"]["losses"]["7"]
        reference["result"]["losses"]["7"] = loss[:-1] + ("0" if loss[-1] != "0" else "1")
        reference["result"]["weights_digest"] = "sha256:" + "0" * 64
        kept.write_text(json.dumps(reference))
        result = self.chaos(job, "--replay", plan, "--reference", kept, "--out", self.folder / "tampered")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stderr, r"weights_digest sha256:[0-9a-f]{64}, undisturbed sha256:0{64}")
        self.assertRegex(result.stderr, r"losses: 1 of 60 differ, the first at step 7")
        self.assertIn(f"--replay {self.folder / 'tampered' / 'plan.jsonl'}", result.stderr)
        self.assertTrue((self.folder / "tampered" / "disturbed" / "coordinator.log").exists())

    def test_strikes_at_a_moment_that_it_is_told(self):
        result = self.chaos("--moments", "--only", "between-shards-and-commit/last/kill", "--out", self.folder / "out")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        trial, = json.loads((self.folder / "out" / "result.json").read_text())["trials"]
        self.assertEqual(trial["hit"], ["stage-2"])
        self.assertGreaterEqual(trial["recoveries"], 1)

    def test_arguments_that_are_wrong_are_named(self):
        job = self.job_file()
        for arguments, said in (([], "JOB: say which"), ([job, "--faults", "kill,flood"], "--faults flood: want some of kill,"),
                                ([job, "--stages", 0], "--stages 0: want 1"),
                                (["--moments", "--only", "noon"], "--only noon: no trial")):
            result = self.chaos(*arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertRegex(result.stderr, re.escape(said))


if __name__ == "__main__":
    harness.main()
