"""Every job file of examples/ trains: four steps of it, on text that is there, evaluated and with a checkpoint."""
import math
import pathlib
import sys

import harness

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "digests"))
import digests  # noqa: E402


class Examples(harness.EndToEndTest):
    def test_every_one_trains(self):
        digests.write_data(self.folder)
        jobs = digests.write_jobs(self.folder, ROOT / "examples", "examples/")
        self.assertGreaterEqual(len(jobs), 7)
        for name, (_, stages, path) in jobs.items():
            with self.subTest(name):
                cluster = self.run_job(path, int(stages), f"state-{path.stem}")
                losses = [event["loss"] for event in cluster.events if event["event"] == "step"]
                self.assertEqual(len(losses), digests.jobs.STEPS)
                self.assertTrue(all(math.isfinite(loss) for loss in losses), losses)
                self.assertRegex(cluster.digest(), r"^sha256:[0-9a-f]{64}$")


if __name__ == "__main__":
    harness.main()
