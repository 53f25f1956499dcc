"""Jobs on pictures in folders: the same bits for every K, with any number of threads that decode, and through a killed
stage; a file that cannot be read fails the job with its name, or is left out.

What becomes of a picture is tested by stage/pictures, what files and folders may be by stage/data.
"""
import harness
import made_pictures

STEPS, KILLED_AT = 40, 9
CLASSES = ("ape", "bee", "cow")


def png(height, width, seed):
    """Colours that differ by seed and place."""
    return made_pictures.png(height, width, 3, [(seed * 37 + x * 11 * (c + 1) + y * 5) % 256
                                                for y in range(height) for x in range(width) for c in range(3)])


class Pictures(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        for part, count in (("train", 20), ("test", 4)):
            for label, name in enumerate(CLASSES):
                folder = self.folder / part / name
                folder.mkdir(parents=True)
                for i in range(count):
                    (folder / f"{i:02}.png").write_bytes(png(12 + i % 3, 14, label + 3 * i))

    def job(self, name, stages, threads=1, **data):
        folder = {"train": "train", "test": "test", "measure": True, "random_area": 0.5, "flip": True, "padding": 1,
                  "brightness": 0.2, "hue": 0.1, "cutout": 3, "decode_threads": threads, **data}
        mlp = {"hidden": 16, "layers": 4, "image": [8, 8, 3], "classes": 3}
        return self.job_file(f"{name}.json", name=name, data={"text": None, "image_folder": folder},
                             model={"gpt": None, "mlp": mlp},
                             training={"steps": STEPS, "batch_size": 7, "micro_batches": 3},
                             pipeline={"stages": stages}, checkpoint={"every_steps": 4},
                             evaluation={"every_steps": 20, "batches": 5})

    def test_the_same_bits(self):
        one = self.run_job(self.job("one", 1, threads=0), 1)
        self.assertNotIn(None, one.losses().values())
        for stages, threads in ((2, 1), (3, 3)):
            job = self.job(f"threads-{threads}", stages, threads=threads)
            killed = self.run_killed(lambda: self.start(job, stages), KILLED_AT, "stage-0")
            self.assertEqual((killed.digest(), killed.losses()), (one.digest(), one.losses()))
        other = self.run_job(self.job("other", 2, flip=False), 2)
        self.assertNotEqual(other.digest(), one.digest())

    def test_a_file_that_cannot_be_read_is_left_out_or_fails_the_job(self):
        whole = self.run_job(self.job("whole", 2, on_bad_record="skip"), 2)
        bad = self.folder / "train" / "bee" / "05bad.png"
        bad.write_bytes(png(12, 14, 1)[:-20])
        skipped = self.run_job(self.job("skipped", 2, on_bad_record="skip"), 2)
        self.assertEqual((skipped.digest(), skipped.losses()), (whole.digest(), whole.losses()))
        logs = [path.read_text() for path in skipped.state_dir.glob("**/*.log")]
        self.assertEqual(sum("1 bad record left out: data.image_folder.train" in log for log in logs), 3, "of both stages, and of the job")
        failed = self.start(self.job("failed", 2, measure=False), 2)
        self.assertNotEqual(failed.finish(), 0)
        self.assertIn("bee/05bad.png: PNG: the file is cut off", failed.describe())
        self.assertIn("data.image_folder.train", failed.describe())


if __name__ == "__main__":
    harness.main()
