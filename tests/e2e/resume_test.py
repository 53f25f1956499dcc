"""A checkpoint is K-free: resumed with any number of stages, the run ends with the same bits."""
import json

import harness


class Resume(harness.EndToEndTest):
    def test_resumes_with_another_number_of_stages(self):
        whole = self.run_job(self.job_file("whole.json"), 3, "state", "--id", "whole")
        for step, stages in ((2, 1), (4, 2), (2, 4)):
            job = self.job_file(f"from-{step}-{stages}.json", name=f"from-{step}-{stages}",
                                resume={"job": "whole", "step": step}, pipeline={"stages": stages})
            resumed = self.run_job(job, stages, "state", "--id", f"from-{step}-{stages}")
            self.assertEqual(resumed.digest(), whole.digest(), (step, stages))
            expected = {s: loss for s, loss in whole.losses().items() if s > step}
            self.assertEqual(resumed.losses(), expected)

    def test_goes_on_in_another_precision_with_the_weights_of_the_checkpoint(self):
        whole = self.run_job(self.job_file("whole.json"), 2, "state", "--device", "reference", "--id", "whole")
        results = []
        for stages in (1, 3):
            job = self.job_file(f"narrow-{stages}.json", name=f"narrow-{stages}", precision="bfloat16",
                                resume={"job": "whole", "step": 2}, pipeline={"stages": stages})
            resumed = self.run_job(job, stages, "state", "--device", "reference", "--id", f"narrow-{stages}")
            results.append((resumed.digest(), resumed.losses()))
        self.assertEqual(results[0], results[1])
        self.assertNotEqual(results[0][0], whole.digest())
        self.assertEqual(sorted(results[0][1]), [3, 4, 5, 6])
        self.assertAlmostEqual(results[0][1][3], whole.losses()[3], delta=1e-2)

    def test_refuses_a_flipped_bit_by_name_and_keeps_the_earlier_checkpoint(self):
        whole = self.run_job(self.job_file("whole.json"), 2, "state", "--id", "whole")
        shard = next((self.folder / "state").glob("**/step-000000000004/*.safetensors"))
        data = bytearray(shard.read_bytes())
        data[-5] ^= 0x10
        shard.write_bytes(data)
        job = self.job_file("bad.json", name="bad", resume={"job": "whole", "step": 4})
        refused = self.start(job, 2, "state", "--id", "bad")
        self.assertEqual(refused.finish(), 1)
        self.assertIn("step-000000000004", json.dumps(refused.events) + refused.stderr)
        job = self.job_file("older.json", name="older", resume={"job": "whole", "step": 2})
        self.assertEqual(self.run_job(job, 2, "state", "--id", "older").digest(), whole.digest())


if __name__ == "__main__":
    harness.main()
