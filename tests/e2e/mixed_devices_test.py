"""Stages on devices of different kinds in one job: a list of devices on the command line of `local`."""
import json

import harness

LONG = {"training": {"steps": 20}, "checkpoint": {"every_steps": 4, "keep": 10}}


class MixedDevices(harness.EndToEndTest):
    def test_trains_and_recovers_to_the_same_bits(self):
        job = self.job_file(**LONG)
        undisturbed = self.run_job(job, 2, None, "--device", "cpu,reference", "--threads-per-stage", "1")
        self.assertEqual(self.run_job(job, 2, None, "--device", "cpu,reference").digest(), undisturbed.digest())
        for victim in ("stage-0", "stage-1"):
            cluster = self.run_killed(lambda: self.start(job, 2, None, "--device", "cpu,reference"), 6, victim)
            self.assertEqual((cluster.digest(), cluster.losses()), (undisturbed.digest(), undisturbed.losses()))

    def test_the_list_is_in_the_order_of_the_pipeline_and_repeats(self):
        job = self.job_file(training={"steps": 100000})
        cluster = self.start(job, 3, "state", "--device", "reference,cpu")
        cluster.wait_for_step(1)
        address = cluster.processes()["coordinator"]["address"]
        stages = json.loads(self.cli("stages", "-o", "json", "--address", address).stdout)["stages"]
        self.assertEqual([(s["stage"]["name"], s["stage"]["device"]) for s in stages],
                         [("stage-0", "reference"), ("stage-1", "cpu"), ("stage-2", "reference")])
        described = json.loads(self.cli("list", "-o", "json", "--address", address).stdout)["jobs"][0]
        self.assertEqual([s["name"] for s in described["stages"]], ["stage-0", "stage-1", "stage-2"])

    def test_more_devices_than_stages_are_refused(self):
        result = self.cli("local", "--stages", "1", "--device", "cpu,reference", self.job_file())
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, "--device cpu,reference: 2 devices for 1 stages")


if __name__ == "__main__":
    harness.main()
