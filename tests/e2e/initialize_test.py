"""A job that begins with a file of weights: the same bits for every K and through a stage killed before its first
checkpoint, and a file that does not fit, or changes, ends it with what is wrong.

What the files' numbers come to is compared with PyTorch by tests/oracle/zoo_names.py.
"""
import json
import signal

import harness

STEPS, KILLED_AT = 40, 3


class Initialize(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        trunk = self.run_job(self.job_file("trunk.json", name="trunk"), 2, "trunk", "--id", "trunk")
        self.export = self.folder / "trunk" / "exports" / "trunk"
        self.trunk_digest = trunk.digest()

    def job(self, name, stages, changes=None, **initialize):
        initialize = {"from": "trunk/exports/trunk", "except": ["model/0006/*"], **initialize}
        return self.job_file(f"{name}.json", name=name, seed=11, initialize=initialize,
                             **harness.merged({"pipeline": {"stages": stages}, "training": {"steps": STEPS},
                                               "checkpoint": {"every_steps": 20}}, changes or {}))

    def test_the_same_bits_for_every_number_of_stages_and_through_a_killed_one(self):
        one = self.run_job(self.job("one", 1), 1)
        self.assertNotEqual(one.digest(), self.trunk_digest)
        history = (one.state_dir / "jobs" / "one" / "metrics.jsonl").read_text()
        self.assertIn(f"begins with the weights of {self.export}", history)
        two = self.run_job(self.job("two", 2), 2)
        self.assertEqual((two.digest(), two.losses()), (one.digest(), one.losses()))
        three = self.run_killed(lambda: self.start(self.job("three", 3), 3), KILLED_AT, "stage-1")
        self.assertEqual((three.digest(), three.losses()), (one.digest(), one.losses()))

        none = self.run_job(self.job_file("none.json", name="none", seed=11, training={"steps": STEPS},
                                          checkpoint={"every_steps": 20}), 2)
        self.assertNotEqual(none.losses()[1], one.losses()[1])

    def test_adapters_have_the_same_bits_for_every_number_of_stages_and_through_a_killed_one(self):
        """Every load, and so a recovery's, reads the base again; checkpoints hold the adapters alone."""
        lora = {"training": {"lora": {"rank": 2, "alpha": 4, "dropout": 0.1, "targets": ["qkv", "up"]}}}
        self.assertIn("which would stay random", self.cli("validate", self.job("random", 1, lora)).stderr)
        whole = {"except": []}
        one = self.run_job(self.job("one", 1, lora, **whole), 1)
        killed = self.run_killed(lambda: self.start(self.job("three", 3, lora, **whole), 3), 25, "stage-1")
        self.assertEqual((killed.digest(), killed.losses()), (one.digest(), one.losses()))
        names = read_tensors(one.state_dir / "exports" / "one" / "model.safetensors").keys()
        self.assertTrue(names and all(".lora_" in name for name in names), names)
        more = self.cli("resume", "one", "--state-dir", one.state_dir, "--steps", STEPS + 2, timeout=120)
        self.assertEqual(more.returncode, 0, more.stderr)
        for source in ("exports/one", "exports/one-2"):
            text = self.cli("generate", one.state_dir / source, "--prompt", "the", "--tokens", 8, timeout=120)
            self.assertEqual(text.returncode, 0, text.stderr)
        begins = self.cli("validate", self.job("again", 1, lora, **whole, **{"from": str(one.state_dir / "exports" / "one")}))
        self.assertIn("holds adapters alone", begins.stderr)

    def test_what_stays_frozen_is_the_files(self):
        job = self.job("frozen", 2, {"training": {"freeze": ["model/000[0-5]*"]}})
        refused = self.cli("validate", job)
        self.assertIn("training.freeze[0]", refused.stderr, "a pattern has no ranges")
        freeze = {"training": {"freeze": [f"model/000{i}/*" for i in range(6)]}}
        self.run_job(self.job("frozen", 2, freeze), 2, "state", "--id", "frozen")
        exported = self.folder / "state" / "exports" / "frozen" / "model.safetensors"
        before, after = (read_tensors(path) for path in (self.export / "model.safetensors", exported))
        self.assertEqual(before.keys(), after.keys())
        changed = {name.split("/")[1] for name in before if before[name] != after[name]}
        self.assertEqual(changed, {"0006"})

    def test_goes_on_from_its_own_checkpoints_without_the_file(self):
        self.run_job(self.job("first", 2), 2, "state", "--id", "first")
        (self.export / "model.safetensors").unlink()
        more = self.cli("resume", "first", "--state-dir", self.folder / "state", "--steps", STEPS + 2, timeout=120)
        self.assertEqual(more.returncode, 0, more.stderr)
        self.assertIn("goes on from the checkpoint of job first", more.stderr)

    def test_a_flipped_bit_of_an_export_is_refused_with_both_digests(self):
        weights = self.export / "model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-4001] ^= 0x10
        weights.write_bytes(data)
        # Of a job that reads all of the file: nobody reads what a job leaves out.
        job = self.job("flipped", 2, **{"except": []})
        refused = self.cli("local", job, "--state-dir", self.folder / "none")
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertRegex(refused.stderr, "its tensors have sha256 [0-9a-f]{64}, it was written with [0-9a-f]{64}: "
                                         "the file is damaged")

    def test_a_recovery_that_reads_another_file_is_refused(self):
        """A file of another program says nothing of its content; the job remembers what it began with."""
        weights = self.export / "model.safetensors"
        data = bytearray(weights.read_bytes())
        at = data.index(b"content_sha256")
        data[at:at + 7] = b"comment"
        weights.write_bytes(data)
        job = self.job("long", 2, {"training": {"steps": 100000}, "snapshot": {"never": True},
                                   "checkpoint": {"every_steps": 100000}}, **{"except": []})
        cluster = self.start(job, 2)
        cluster.wait_for_step(KILLED_AT)
        data[-4001] ^= 0x10
        weights.write_bytes(data)
        cluster.signal("stage-1", signal.SIGKILL)
        ended = cluster.wait_for("the job's end", lambda e: e["event"] == "finished", 60)
        self.assertEqual((cluster.finish(), ended["state"]), (1, "FAILED"), ended)
        self.assertRegex(ended["message"], "bytes, sha256 [0-9a-f]{64}; the job was started with")

    def test_a_file_that_does_not_fit_is_refused_before_anything_starts(self):
        other = {"model": {"gpt": {"vocabulary": 130}}}
        job = self.job("other", 2, other, **{"except": []})
        for command in (("validate",), ("local", "--state-dir", self.folder / "none")):
            refused = self.cli(*command, job)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            for words in ("other.json:", "tensor model/0000/token.weight is F32 [128, 32]", "has F32 [130, 32]",
                          'put "model/0000/token.weight" into initialize.except', "and 1 more that do not fit"):
                self.assertIn(words, refused.stderr)
        self.assertEqual(self.cli("validate", self.job("fits", 2, other, **{"except": ["*token.weight", "model/0006/*"]})).returncode, 0)
        both = self.job("both", 2, {"resume": {"job": "trunk"}})
        self.assertIn("the job has the weights of resume.job=trunk already", self.cli("validate", both).stderr)
        self.assertEqual(self.cli("plan", self.job("gone", 2, **{"from": "gone.safetensors"})).returncode, 0)


def read_tensors(path):
    """Name -> bytes; see docs/formats.md."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: data[end + entry["data_offsets"][0]:end + entry["data_offsets"][1]] for name, entry in header.items()}


if __name__ == "__main__":
    harness.main()
