"""Machines that share no folder: checkpoints and weights travel over gRPC, to the coordinator and back."""
import json
import subprocess

import fleet
import harness


class Store(fleet.FleetTest):
    def empty_machine(self):
        """Runs a command that sees neither the coordinator's state nor its checkpoints."""
        return self.own_disk(self.checkpoints, self.folder / "state")

    def stages(self, *names):
        for name in names:
            self.launch_stage(name, before=self.empty_machine())

    def lose(self, *names):
        for name in names:
            self.processes[name].kill()
            self.processes[name].wait()

    def test_all_stages_and_their_disks_are_lost_and_the_bits_are_those_of_one_machine(self):
        job = {"training": {"steps": 400}, "checkpoint": {"every_steps": 20, "keep": 2}}
        local = self.run_job(self.job_file(**job), 2, "alone")
        self.stages("a", "b")
        self.submit(**job)
        harness.wait_until("a checkpoint", lambda: list(self.checkpoints.glob("job/step-*/MANIFEST.json")), 60)
        self.lose("a", "b")
        self.stages("c", "d")
        ended = self.ended("job")
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended)
        self.assertGreaterEqual(int(ended["recoveries"]), 1)
        self.assertEqual(ended["weights_digest"], local.digest())
        self.assertFalse(list(self.checkpoints.glob("job/.*")), "nothing half is left")
        self.assertTrue((self.folder / "state" / "exports" / "job" / "model.safetensors").exists())
        self.fetches_weights()

    def elsewhere(self, *arguments):
        """A command of a client on a machine of its own."""
        command = [*self.empty_machine(), harness.CLI, *arguments, "--address", self.address]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, cwd=self.folder)

    def fetches_weights(self):
        exported = self.elsewhere("export", "job", "--to", "weights")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        here = self.folder / "weights"
        at_the_coordinator = self.folder / "state" / "exports" / "job.step-400"
        self.assertEqual({file.name: file.read_bytes() for file in here.iterdir()},
                         {file.name: file.read_bytes() for file in at_the_coordinator.iterdir()})
        self.assertIn("model", json.loads((here / "stagecoach.json").read_text()))
        again = self.elsewhere("export", "job", "--to", "weights")
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("weights", again.stderr)
        # Weights of a job's id, with nothing of it on this machine.
        scored = self.elsewhere("perplexity", "job", self.folder / "input.txt")
        self.assertEqual(scored.returncode, 0, scored.stderr)
        alone = self.cli("perplexity", here, self.folder / "input.txt")
        self.assertEqual(scored.stdout, alone.stdout)


if __name__ == "__main__":
    harness.main()
