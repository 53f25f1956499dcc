"""A job whose images and classes weigh: the same bits for every K and through a killed stage, and steps whose mini-batch
weighs nothing are skipped.

What weights come to is compared with PyTorch by tests/oracle/networks.py; what files may be, by
stage/data/sources/idx_weights_test.cc.
"""
import pathlib
import struct
import sys

import harness

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "digests"))
import digests  # noqa: E402

STEPS, KILLED_AT = 60, 9
TRAINED, HELD_OUT = 300, 100  # images of digests.write_data


def weights_file(weights):
    """See docs/formats.md."""
    return bytes([0, 0, 0x0D, 1]) + struct.pack(f">I{len(weights)}f", len(weights), *weights)


class Weights(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        digests.write_data(self.folder)
        # Four of five weigh nothing: so do many mini-batches of three.
        (self.folder / "weights").write_bytes(weights_file([0.5 + i / 100 if i % 5 == 0 else 0 for i in range(TRAINED)]))
        (self.folder / "test_weights").write_bytes(weights_file([i % 3 for i in range(HELD_OUT)]))

    def job(self, name, stages, weighted=True):
        files = {field: f"{part}-{kind}-ubyte.gz" for part, prefix in (("train", ""), ("t10k", "test_"))
                 for field, kind in ((prefix + "images", "images-idx3"), (prefix + "labels", "labels-idx1"))}
        objective = {}
        if weighted:
            files.update(weights="weights", test_weights="test_weights")
            objective = {"class_weights": [0, 0.5, 3, *[1] * 7]}
        mlp = {"hidden": 32, "layers": 4, "image": [28, 28, 1], "classes": 10}
        return self.job_file(f"{name}.json", name=name, data={"text": None, "idx": files},
                             model={"gpt": None, "mlp": mlp, "objective": {"cross_entropy": objective}},
                             training={"steps": STEPS, "batch_size": 3, "micro_batches": 2},
                             pipeline={"stages": stages}, checkpoint={"every_steps": 4},
                             evaluation={"every_steps": 20, "batches": 5})

    def test_the_same_bits_and_no_step_without_weight(self):
        one = self.run_job(self.job("one", 1), 1)
        three = self.run_killed(lambda: self.start(self.job("three", 3), 3), KILLED_AT, "stage-2")
        self.assertEqual((three.digest(), three.losses()), (one.digest(), one.losses()))

        skipped = {step for step, loss in one.losses().items() if loss is None}
        self.assertTrue(0 < len(skipped) < STEPS, skipped)
        self.assertEqual(skipped, {event["step"] for event in one.events if event.get("skipped")})
        held_out = [[event["loss"] for event in run.events if event["event"] == "evaluation"] for run in (one, three)]
        self.assertEqual(len(held_out[0]), STEPS // 20)
        self.assertNotIn(None, held_out[0])
        self.assertEqual(held_out[1][-1], held_out[0][-1])

        plain = self.run_job(self.job("plain", 2, weighted=False), 2)
        self.assertNotEqual(plain.digest(), one.digest())
        self.assertNotIn(None, plain.losses().values())

    def test_weights_of_other_images_end_the_job_with_their_file(self):
        (self.folder / "weights").write_bytes(weights_file([1.0] * (TRAINED - 1)))
        run = self.start(self.job("other", 2), 2)
        self.assertNotEqual(run.finish(), 0)
        self.assertIn("299 weights for 300 images", run.describe())
        self.assertIn("data.idx.weights", run.describe())


if __name__ == "__main__":
    harness.main()
