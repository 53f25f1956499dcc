"""Bad input: a clear error that names what is wrong, and nothing else is harmed."""
import gzip
import json
import os
import pathlib
import re
import socket
import subprocess
import unittest

import harness
from pictures_test import png

TEXT_HIGH = harness.TEXT.encode() + b"caf\xc3\xa9"


class BadInput(harness.EndToEndTest):
    def refused(self, text, expected, code=2, name="job.yaml"):
        path = self.folder / name
        path.write_text(text)
        result = self.cli("local", "--stages", 2, "--state-dir", self.folder / "refused", path)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        for part in expected if isinstance(expected, list) else [expected]:
            self.assertIn(part, result.stderr)

    def yaml(self, **changes):
        return json.dumps(harness.merged(harness.TINY, changes), indent=1)

    def test_spec_errors_name_line_field_and_remedy(self):
        self.refused(self.yaml(training={"micro_batchs": 3}), ["micro_batchs", "did you mean", "job.yaml:"])
        self.refused(self.yaml(training={"steps": 0}), ["training.steps", "0"])
        self.refused(self.yaml(training={"batch_size": -4}), ["training.batch_size", "-4"])
        self.refused(self.yaml(training={"micro_batches": 7}), ["training.micro_batches", "batch_size"])
        self.refused(self.yaml(model={"gpt": {"heads": 5}}), ["heads"])
        self.refused(self.yaml(pipeline={"stages": 99}), ["pipeline.stages", "layers"])
        self.refused(self.yaml(pipeline={"schedule": "gpype"}), ["pipeline.schedule", "gpipe"])
        (self.folder / "text.gz").write_bytes(gzip.compress(harness.TEXT.encode()))
        self.refused(self.yaml(data={"text": {"path": "text.gz"}}),
                     ["job.yaml:", "data.text.path", "text.gz", "gzip", "data.text.bytes: true"])
        self.refused("", "empty")
        self.refused("a: [1, 2", "job.yaml")

    def test_what_is_left_out_of_the_data_is_told_before_and_at_the_start(self):
        """Symptom: files beside those that are read were left out, and neither validate nor local nor a log said so."""
        for name in ("ape", "bee"):
            (self.folder / "train" / name).mkdir(parents=True)
            for i in range(6):
                (self.folder / "train" / name / f"{i}.png").write_bytes(png(8, 8, i))
        for i in range(3):
            (self.folder / "train" / "bee" / f"{i}.bmp").write_bytes(b"BM")
        job = self.folder / "job.yaml"
        job.write_text(self.yaml(data={"text": None, "image_folder": {"train": "train"}},
                                 model={"gpt": None, "mlp": {"hidden": 8, "layers": 3, "image": [8, 8, 3], "classes": 3}},
                                 training={"steps": 2, "batch_size": 4, "micro_batches": 2}, evaluation=None))
        told = ["left out: 3 .bmp, a format that is not read: write PNG", "2 classes, and the network has 3"]
        checked = self.cli("validate", job)
        self.assertEqual(checked.stdout, f"{job}: ok: 12 pictures in 2 classes (ape 6, bee 6), 1 held out\n", checked.stderr)
        state = self.folder / "state"
        ran = self.cli("local", "--stages", 1, "--state-dir", state, job)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        for text in told:
            self.assertIn(text, checked.stderr)
            self.assertEqual(ran.stderr.count(text), 1, ran.stderr)
            self.assertIn(text, (state / "logs" / "stage-0.log").read_text())
        self.assertIn(" pictures_s=", ran.stdout)

    def test_a_device_that_this_build_has_not_is_said_once_and_at_once(self):
        """Symptom: each stage was started six times before the reason of the first start was shown."""
        result = self.cli("local", "--stages", 2, "--device", "cuda", "--state-dir", self.folder / "state", self.job_file())
        if "built without the CUDA back end" not in result.stderr:
            self.skipTest("this build has the CUDA back end")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count("built without the CUDA back end"), 1, result.stderr)
        self.assertIn("use --device=cpu", result.stderr)
        self.assertNotIn("starting it again", result.stderr)
        for stage in ("stage-0", "stage-1"):
            log = (self.folder / "state" / "logs" / f"{stage}.log")
            self.assertLessEqual(log.read_text().count("built without") if log.exists() else 0, 1)

    def server(self, program, *arguments):
        return subprocess.run([str(harness.BIN / program), *map(str, arguments)], capture_output=True, text=True,
                              timeout=60 * harness.TIME_FACTOR)

    def test_exit_codes_of_the_servers_are_those_of_the_manual(self):
        manual = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
        section = manual.split("## Exit codes of the servers\n")[1].split("\n## ")[0]
        documented = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.M)}
        header = (pathlib.Path(__file__).resolve().parents[2] / "services/common/flags/exit_code.h").read_text()
        codes = {name: int(code) for name, code in re.findall(r"constexpr int k(\w+)ExitCode = (\d+);", header)}
        self.assertEqual(documented, {0, 134, *codes.values()})
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for program in ("stagecoach-coordinator", "stagecoach-stage"):
                folder = self.folder / program
                self.assertEqual(self.server(program, "--version").returncode, 0)
                self.assertEqual(self.server(program, "--no-such-flag").returncode, codes["Refused"])
                self.assertEqual(self.server(program, "--listen", "nowhere").returncode, codes["Refused"])
                in_use = self.server(program, "--listen", address, "--http", "127.0.0.1:0", "--state-dir", folder)
                self.assertEqual(in_use.returncode, codes["NotStarted"], in_use.stderr)

    # The pipe of the command's own signals became its standard input, and never ended.
    def test_a_closed_standard_input_is_an_empty_one(self):
        model = self.folder / "model"
        (self.folder / "text").write_text("a b c d e f g h\n" * 50)
        self.assertEqual(self.cli("tokenizer", "train", "--input", self.folder / "text", "--vocabulary", 270, "--model", "bpe",
                                  "--output", model).returncode, 0)
        result = subprocess.run(["sh", "-c", 'exec "$0" tokenizer encode "$1" <&-', str(harness.CLI), str(model)],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_100_mb_spec(self):
        path = self.folder / "huge.yaml"
        with open(path, "w") as file:
            for _ in range(100):
                file.write("# " + "x" * (1 << 20) + "\n")
        result = self.cli("local", "--stages", 1, path)
        self.assertEqual(result.returncode, 2)
        self.assertIn("huge.yaml", result.stderr)

    def test_data_errors_fail_the_job_and_name_the_field(self):
        def fails(expected, **changes):
            cluster = self.start(self.job_file(**changes), 2, "state", "--id", f"job-{len(self._clusters)}")
            self.assertEqual(cluster.finish(), 1, cluster.describe())
            text = json.dumps(cluster.events) + cluster.stderr
            for part in expected:
                self.assertIn(part, text)
        self.refused(self.yaml(data={"text": {"path": "missing.txt"}}), ["data.text.path", "missing.txt", "job.yaml:"])
        for content in ("", "too short"):  # before anything starts
            (self.folder / "short.txt").write_text(content)
            self.refused(self.yaml(data={"text": {"path": "short.txt"}}),
                         ["data.text.path", "job.yaml:", f"of {len(content)} bytes", "give a text of at least 161 bytes"])
        (self.folder / "high.txt").write_bytes(TEXT_HIGH)
        fails(["vocabulary"], data={"text": {"path": "high.txt"}})
        # The same state folder still serves a good job.
        self.run_job(self.job_file(), 2, "state", "--id", "good")

    @unittest.skipUnless(os.geteuid() == 0, "mounting a small tmpfs needs root")
    def test_full_disk_at_a_checkpoint(self):
        state = self.folder / "state"
        (state / "checkpoints").mkdir(parents=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", state / "checkpoints"],
                                 capture_output=True, text=True)
        if mounted.returncode != 0:  # root of a container, say
            self.skipTest(f"mounting a small tmpfs is not allowed here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(state / "checkpoints")])
        # Three checkpoints of this model (about 480 kB each) do not fit; the first two do.
        cluster = self.start(self.job_file(), 2, "state", "--id", "full")
        # The last checkpoint is the result, and a full disk no fault of the job: it waits for room.
        cluster.wait_for("the last checkpoint has no room", lambda event: event["event"] == "recovery" and
                         "the last checkpoint, at step 6, could not be written" in json.dumps(event))
        failed = [e for e in cluster.events if e["event"] == "checkpoint" and e.get("error")]
        self.assertTrue(failed, cluster.events)
        steps = {e["step"] for e in cluster.events if e["event"] == "step"}
        self.assertEqual(steps, set(range(1, 7)), "training went on past the failed checkpoint")
        kept = sorted(p.name for p in (state / "checkpoints").glob("**/step-*"))
        self.assertTrue(kept, "earlier checkpoints are intact")
        subprocess.run(["mount", "-o", "remount,size=32m", state / "checkpoints"], check=True)
        self.assertEqual(cluster.finish(), 0, cluster.describe())
        full = cluster.digest()
        step = int(kept[0].split("-")[1])
        job = self.job_file("again.json", name="again", resume={"job": "full", "step": step})
        self.assertEqual(self.run_job(job, 2, "state", "--id", "again").digest(), full)


if __name__ == "__main__":
    harness.main()
