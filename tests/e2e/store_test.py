"""Machines that share no folder: checkpoints and weights travel over gRPC, to the coordinator and back."""
import json
import re
import subprocess

import fleet
import harness


JOB = {"training": {"steps": 400}, "checkpoint": {"every_steps": 20, "keep": 2}}


class LostStages(fleet.FleetTest):
    """Jobs whose stages all die behind a checkpoint."""
    stage_arguments = ()

    def empty_machine(self):
        """Runs a command that sees neither the coordinator's state nor its checkpoints."""
        return self.own_disk(self.checkpoints, self.folder / "state")

    def stages(self, *names):
        for name in names:
            self.launch_stage(name, before=self.empty_machine(), arguments=self.stage_arguments)

    def lose(self, *names):
        for name in names:
            self.processes[name].kill()
            self.processes[name].wait()

    def struck(self, job):
        """The id of a job of which all stages died after a checkpoint. One that was through before is run again."""
        for run in range(harness.STRIKES):
            name = f"job-{run}"
            self.stages(f"a-{run}", f"b-{run}")
            self.submit(name, **job)
            harness.wait_until("a checkpoint", lambda: list(self.checkpoints.glob(f"{name}/step-*/MANIFEST.json")), 60)
            self.lose(f"a-{run}", f"b-{run}")
            if not self.job(name)["state"].endswith("SUCCEEDED"):
                return name
        self.fail(f"{harness.STRIKES} jobs were through before their stages died")

    def ends_with_the_bits_of(self, local, name):
        ended = self.ended(name)
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended)
        self.assertGreaterEqual(int(ended["recoveries"]), 1)
        self.assertEqual(ended["weights_digest"], local.digest())


class Store(LostStages):
    def test_all_stages_and_their_disks_are_lost_and_the_bits_are_those_of_one_machine(self):
        local = self.run_job(self.job_file(**JOB), 2, "alone")
        name = self.struck(JOB)
        self.stages("c", "d")
        self.ends_with_the_bits_of(local, name)
        self.assertFalse(list(self.checkpoints.glob(f"{name}/.*")), "nothing half is left")
        self.assertTrue((self.folder / "state" / "exports" / name / "model.safetensors").exists())
        self.fetches_weights(name)

    def elsewhere(self, *arguments):
        """A command of a client on a machine of its own."""
        command = [*self.empty_machine(), harness.CLI, *arguments, "--address", self.address]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, cwd=self.folder)

    def fetches_weights(self, name):
        exported = self.elsewhere("export", name, "--to", "weights")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        here = self.folder / "weights"
        at_the_coordinator = self.folder / "state" / "exports" / f"{name}.step-400"
        self.assertEqual({file.name: file.read_bytes() for file in here.iterdir()},
                         {file.name: file.read_bytes() for file in at_the_coordinator.iterdir()})
        self.assertIn("model", json.loads((here / "stagecoach.json").read_text()))
        again = self.elsewhere("export", name, "--to", "weights")
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("weights", again.stderr)
        # Weights of a job's id, with nothing of it on this machine.
        scored = self.elsewhere("perplexity", name, self.folder / "input.txt")
        self.assertEqual(scored.returncode, 0, scored.stderr)
        alone = self.cli("perplexity", here, self.folder / "input.txt")
        self.assertEqual(scored.stdout, alone.stdout)


class LocalCopies(LostStages):
    """Stages of one machine keep their shards, and come back with its disk."""

    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.cache.mkdir()
        self.stage_arguments = ("--cache-dir", self.cache, "--keep-local", 1)

    def copies(self, name):
        """Of each step's folder, oldest first, its files."""
        return [sorted(step.glob("[0-9a-f]*")) for step in sorted((self.cache / "checkpoints" / name).glob("step-*"))]

    def read(self):
        """Bytes of checkpoints that the stages that came back had themselves, and all that they loaded."""
        found = [re.search(r"read (\d+) of (\d+) bytes of the checkpoint from local copies", self.log(title))
                 for title in ("c", "d")]
        self.assertTrue(all(found), "both stages loaded the checkpoint")
        return [sum(int(match[group]) for match in found) for group in (1, 2)]

    def test_stages_that_come_back_read_no_shard_of_the_store(self):
        local = self.run_job(self.job_file(**JOB), 2, "alone")
        name = self.struck(JOB)
        self.assertLessEqual(len(self.copies(name)), 2)
        self.stages("c", "d")
        self.ends_with_the_bits_of(local, name)
        here, loaded = self.read()
        self.assertGreater(loaded, 0)
        self.assertEqual(here, loaded)

    def test_a_damaged_copy_is_read_from_the_store(self):
        local = self.run_job(self.job_file(**JOB), 2, "alone")
        name = self.struck(JOB)
        for files in filter(None, self.copies(name)):  # a stage may have died amid its next copy
            content = bytearray(files[0].read_bytes())
            content[-1] ^= 1
            files[0].write_bytes(content)
        self.stages("c", "d")
        self.ends_with_the_bits_of(local, name)
        here, loaded = self.read()
        self.assertLess(here, loaded)
        self.assertGreater(here, 0)
        self.assertIn("is not used, and goes", self.log("c") + self.log("d"))


if __name__ == "__main__":
    harness.main()
