"""bench/digests finds what differs between two sets of programs, and what only one of them knows.

The programs are made up: a client that gives every job the same numbers, changed by the test.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "bench" / "digests" / "digests.py"
CLIENT = """#!/bin/sh
for job in "$@"; do :; done  # the last argument
grep -q unknown "$job" && { echo "model.unknown: there is no such field" >&2; exit 2; }
[ "$1" = validate ] && exit 0
echo '{"event":"step","step":1,"loss":4.5,"gradient_norm":1.25}'
echo '{"event":"evaluation","step":2,"loss":3.5}'
echo '{"event":"finished","state":"SUCCEEDED","weights_digest":"sha256:0123456789abcdef0123"}'
"""
JOB = "name: a\ntraining:\n  steps: 60\ndata:\n  text: {path: ../LICENSE}\n"


class DigestsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sides = [pathlib.Path(folder.name) / side for side in "AB"]
        for side in self.sides:
            side.mkdir()
            self.client(side, CLIENT)
            (side / "job.yaml").write_text(JOB)

    def client(self, side, text):
        (side / "stagecoach").write_text(text)
        (side / "stagecoach").chmod(0o755)

    def run_tool(self, only="examples/"):
        return subprocess.run([sys.executable, str(TOOL), "--programs", *map(str, self.sides), "--examples",
                               *map(str, self.sides), "--only", only], capture_output=True, text=True, timeout=240)

    def expect(self, code, *words):
        result = self.run_tool()
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stdout + result.stderr)

    def test_equal_programs(self):
        self.expect(0, "0123456789abcdef  0123456789abcdef  same", "1 jobs, 1 as they must be")

    def test_other_weights(self):
        self.client(self.sides[1], CLIENT.replace("sha256:01", "sha256:ff"))
        self.expect(1, "DIFFERS: weights", "not: examples/job.yaml")

    def test_another_loss_on_the_way_to_the_same_weights(self):
        self.client(self.sides[1], CLIENT.replace("4.5", "4.500000000000001"))
        self.expect(1, "DIFFERS: step 1: loss: 4.5 and 4.500000000000001")
        self.client(self.sides[1], CLIENT.replace("3.5", "3.25"))
        self.expect(1, "DIFFERS: evaluation 2: loss: 3.5 and 3.25")

    def test_a_job_that_only_one_side_has_or_knows(self):
        (self.sides[1] / "more.yaml").write_text(JOB)
        (self.sides[0] / "new.yaml").write_text(JOB)
        (self.sides[1] / "new.yaml").write_text(JOB + "model: {unknown: {}}\n")
        self.expect(0, "only in A", "only in B", "3 jobs, 3 as they must be")

    def test_a_job_that_one_side_refuses_though_its_file_is_the_same(self):
        """A commit whose `validate` refused every job was as good as one with the same bits."""
        refusal = CLIENT.replace("grep -q unknown", "grep -q .")
        self.client(self.sides[1], refusal)
        self.expect(1, "REFUSED by B, the same file", "not: examples/job.yaml", "B: exit code 2", "no such field")
        self.client(self.sides[0], refusal)
        self.client(self.sides[1], CLIENT)
        result = self.run_tool("")  # with those of jobs.py, which are the same for both
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stdout, r"cpu-float32-n3-m1 .*REFUSED by A, the same file")
        self.assertNotIn("only in", result.stdout)

    def test_a_job_that_neither_side_knows(self):
        for side in self.sides:
            (side / "job.yaml").write_text(JOB + "model: {unknown: {}}\n")
        self.expect(1, "known to neither")

    def test_a_run_that_fails(self):
        self.client(self.sides[0], CLIENT + "echo the disk is full >&2; exit 1\n")
        self.expect(1, "failed", "A: exit code 1\nthe disk is full")

    def test_no_job_at_all(self):
        self.assertEqual(self.run_tool("no such job").returncode, 1)

    def test_an_example_is_cut_short_and_reads_its_data_beside_it(self):
        sys.path.insert(0, str(TOOL.parent))
        import digests
        for path in sorted((ROOT / "examples").glob("*.yaml")):
            text = digests.shortened(path.read_text())
            self.assertRegex(text, r"(?m)^  steps: 4$", path.name)
            self.assertRegex(text, r"(?m)(path|images|train|sources): \[?[\w./-]+([\]},]|$)", path.name)
            self.assertNotRegex(text, r"(path|images|labels): \S*/", path.name)
            self.assertNotRegex(text, r"(train|test|masks|test_masks|tokenizer|sources|targets): \[?(/|\S*\.\.)", path.name)

    def test_the_listed_jobs_differ_in_name_and_cover_what_they_say(self):
        sys.path.insert(0, str(TOOL.parent))
        import jobs
        listed = jobs.all_jobs()
        self.assertEqual(len({job.name for job in listed}), len(listed))
        seen = {(job.spec["precision"], job.spec["pipeline"]["schedule"], job.spec["pipeline"]["rematerialization"])
                for job in jobs.transparency()}
        self.assertEqual(len(seen), 12)
        for job in jobs.gpts():
            training = job.spec["training"]
            self.assertNotEqual(training["batch_size"] % training["micro_batches"], 0, job.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
