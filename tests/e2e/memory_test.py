"""What `plan` says of memory beside what real stages take: of tensors, by their own gauges, and of the process."""
import json
import pathlib
import re

import harness
from observe_test import fetch, samples

STAGES, THREADS, STEPS = 2, 2, 60


def most_resident(pid):
    """Bytes: the most that the process had at once."""
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


class Memory(harness.EndToEndTest):
    def check(self, name, **model):
        if harness.SANITIZED:
            self.skipTest("sanitizers take memory of their own")
        job = self.job_file(f"{name}.json", name=name, model=model, evaluation={"every_steps": 20},
                            training={"steps": 100000, "batch_size": 16}, checkpoint={"every_steps": 20, "keep": 1},
                            precision="bfloat16" if name == "narrow" else "float32")
        sizes = ("--stages", STAGES, "--threads-per-stage", THREADS)
        plan = json.loads(self.cli("plan", job, *sizes, "-o", "json").stdout)["stages"]
        tensors = [sum(int(kind) for kind in stage["memory"].values()) for stage in plan]
        # What the planner says is enough is given, and no more.
        cluster = self.start(job, STAGES, name, "--threads-per-stage", str(THREADS),
                             "--memory-per-stage", str(max(tensors)))
        cluster.wait_for_step(STEPS)
        for k, stage in enumerate(plan):
            place = f"{name}, stage {k}"
            peak = samples(fetch(cluster.processes()[f"stage-{k}"]["http"], "/metrics"),
                           "stagecoach_stage_memory_peak_bytes")
            self.assertLessEqual(sum(peak.values()), tensors[k], place)
            resident, process = most_resident(cluster.pid(f"stage-{k}")), int(stage["process_bytes"])
            self.assertLessEqual(resident, process, place)
            self.assertGreaterEqual(resident, 0.25 * process, place)
            print(f"{place}: tensors {sum(peak.values()) / 2**20:.1f} of {tensors[k] / 2**20:.1f} MiB, "
                  f"process {resident / 2**20:.0f} of {process / 2**20:.0f} MiB", flush=True)
        self.assertEqual(self.cli("cancel", name, "--address", cluster.processes()["coordinator"]["address"]).returncode, 0)
        self.assertEqual(cluster.finish(), 5, cluster.describe())

    def test_of_a_gpt(self):
        self.check("gpt", gpt={"layers": 2, "width": 256, "heads": 4, "context": 128, "vocabulary": 128})

    def test_of_a_gpt_in_bfloat16(self):
        self.check("narrow", gpt={"layers": 2, "width": 256, "heads": 4, "context": 128, "vocabulary": 128})

    def test_of_a_llama(self):
        self.check("llama", gpt=None, llama={"layers": 2, "width": 256, "heads": 4, "key_heads": 2, "hidden": 512,
                                             "context": 128, "vocabulary": 128})


if __name__ == "__main__":
    harness.main()
