"""Texts by the stages of a cluster: the same for every number of stages, after a stage was killed, and while a job trains."""
import gzip
import json
import math
import pathlib
import signal
import subprocess

import fleet
import harness
import translate_test

PROMPTS = ["The stage", "no passenger is", "a", "town to town and"]
EVERY = 25  # steps between the checkpoints of a job that others write from


def write_tokenizer_json(folder):
    """Bytes and two merges, with a config that names the end, which has no usual name. The number of ids."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    characters = [chr(byte) for byte in seen] + [chr(256 + i) for i in range(256 - len(seen))]
    vocabulary = {piece: i for i, piece in enumerate([*characters, "th", "the"])}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    end = {"id": len(vocabulary), "content": "<stop>", "special": True, "normalized": False}
    tokenizer = {"added_tokens": [end], "pre_tokenizer": byte_level, "decoder": byte_level,
                 "model": {"type": "BPE", "vocab": vocabulary, "merges": ["t h", "th e"]}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<stop>"}')
    return len(vocabulary) + 1


class Generate(fleet.FleetTest):
    def setUp(self):
        super().setUp()
        for name in "abc":
            self.launch_stage(name)

    def trained(self, **changes):
        self.submit("trained", training={"steps": 40, "learning_rate": {"cosine": None, "constant": {"peak": 0.01}}},
                    checkpoint={"every_steps": 20}, evaluation=None, **changes)
        self.assertEqual(self.ended("trained")["state"], "JOB_STATE_SUCCEEDED")

    def generate(self, *arguments):
        done = self.cli("generate", "trained", "--address", self.address, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_texts_are_the_same_for_every_number_of_stages(self):
        self.trained()
        (self.folder / "prompts").write_text("\n".join(PROMPTS) + "\n")
        self.launch_stage("d")
        asked = ("--prompts", self.folder / "prompts", "--tokens", 60, "--temperature", 0.9, "--seed", 5)
        for batch in (2, 64):  # groups of 2, and one of all
            texts = [self.generate(*asked, "--batch", batch, "--stages", stages) for stages in (1, 2, 3, 4)]
            self.assertEqual(texts, [texts[0]] * 4)
            self.assertEqual(self.generate(*asked, "--batch", batch), texts[0], "and those of one cell on this machine")
        self.assertNotEqual(self.generate(*asked, "--stages", 2, "--step", 20), texts[0], "other weights")
        told = [json.loads(line) for line in self.generate("-o", "ndjson", *asked, "--stages", 2).splitlines()]
        self.assertEqual("".join(one["prompt"] + one["text"] + "\n" for one in told), texts[0])
        self.assertEqual([(one["prompt"], one["tokens"]) for one in told], [(prompt, 60) for prompt in PROMPTS])
        self.assertEqual([folder.name for folder in self.checkpoints.iterdir()], ["trained"], "texts leave no folder")
        listed = json.loads(self.cli("-o", "json", "list", "--address", self.address).stdout)
        self.assertEqual({job["state"] for job in listed["jobs"]}, {"JOB_STATE_SUCCEEDED"}, listed)

    def test_perplexity_is_of_the_whole_text(self):
        self.trained()

        def measure(text, *arguments, output="json"):
            (self.folder / "measured").write_bytes(text)
            return self.cli("-o", output, "perplexity", "trained", self.folder / "measured", "--address", self.address, *arguments)
        seen, unseen = harness.TEXT[:1000].encode(), b"QXZ#" * 250
        told = {text: json.loads(measure(text).stdout) for text in (seen, unseen)}
        for text, loss in told.items():
            self.assertEqual((loss["bytes"], loss["tokens"]), (len(text), len(text) - 1), "a byte each, the first one from nothing")
            self.assertAlmostEqual(loss["perplexity"], math.exp(loss["loss"]), delta=1e-9 * loss["perplexity"])
            self.assertAlmostEqual(loss["bits_per_byte"], loss["loss"] * loss["tokens"] / loss["bytes"] / math.log(2), places=9)
            self.assertEqual(loss["file"], str(self.folder / "measured"))
        self.assertLess(told[seen]["perplexity"], 128, "better than any token")
        self.assertGreater(told[unseen]["perplexity"], told[seen]["perplexity"])
        self.assertGreater(json.loads(measure(seen, "--step", 20).stdout)["loss"], told[seen]["loss"], "it had learned less")
        self.assertEqual(measure(seen, output="table").stdout,
                         "perplexity {perplexity:.3f}, loss {loss:.4f} a token, {bits_per_byte:.4f} bits a byte "
                         "({tokens} tokens, {bytes} bytes)\n".format(**told[seen]))
        for text, words in ((b"a", "has 1 tokens; at least 2"), (b"caf\xc3", "byte 195 at 3"), (gzip.compress(seen), "gzip")):
            refused = measure(text)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)
            self.assertIn(words, refused.stderr)
        missing = self.cli("perplexity", "trained", self.folder / "nothing", "--address", self.address)
        self.assertEqual(missing.returncode, 2, missing.stderr)
        self.assertIn("nothing: No such file", missing.stderr)

    def test_with_a_tokenizer_and_a_prompt_of_several_lines(self):
        (self.folder / "lines.txt").write_text(harness.TEXT.replace(" ", "\n", 40))
        made = self.cli("tokenizer", "train", "--input", self.folder / "lines.txt", "--vocabulary", 300, "--model", "bpe", "--output",
                        self.folder / "pieces.model")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.trained(model={"gpt": {"vocabulary": 300}}, data={"text": {"path": "lines.txt", "tokenizer": "pieces.model"}})
        asked = ("--prompt", "town\n" * 12 + "The", "--tokens", 120, "--temperature", 0.9)
        here = self.generate(*asked)
        self.assertTrue(here.startswith("town\n" * 12 + "The"), here)
        for stages in (1, 3):
            self.assertEqual(self.generate(*asked, "--stages", stages), here)
        stopped = json.loads(self.generate(*asked, "--stages", 2, "--stop", "\n", "-o", "json"))
        self.assertEqual(stopped["text"], here.removeprefix("town\n" * 12 + "The").split("\n")[0])

    def test_with_a_tokenizer_json_whose_config_names_the_end(self):
        vocabulary = write_tokenizer_json(self.folder)
        (self.folder / "lines.txt").write_text((harness.TEXT.replace(" ", "\n", 40) + " caf\u00e9 \u6771\u4eac") * 3)
        changes = {"model": {"gpt": {"vocabulary": vocabulary}}, "data": {"text": {"path": "lines.txt", "tokenizer": "tokenizer.json"}}}
        self.trained(**changes)
        asked = ("--prompt", "town \u6771\nThe", "--tokens", 120, "--temperature", 2)
        here = self.generate(*asked)
        self.assertTrue(here.startswith("town \u6771\nThe"), here)
        for stages in (1, 3):
            self.assertEqual(self.generate(*asked, "--stages", stages), here)
        self.run_job(self.job_file(**changes, training={"steps": 2}))  # `local` lets its stages read the config

    def test_the_largest_input_passes(self):
        self.trained()
        lines = ["a" * 1020] * 768
        (self.folder / "prompts").write_text("\n".join(lines) + "\n")
        asked = ("--prompts", self.folder / "prompts", "--tokens", 1, "--temperature", 0, "--stages", 1)
        self.assertEqual(self.generate(*asked).count("\n"), 768)
        with (self.folder / "prompts").open("a") as more:
            more.write("a\n")
        refused = self.cli("generate", "trained", "--address", self.address, *asked)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("786432", refused.stderr)

    def test_a_killed_stage_costs_no_token(self):
        self.trained()
        asked = ("--prompt", "The stage", "--tokens", 8000, "--temperature", 1, "--stages", 2)
        expected = self.generate(*asked)

        def struck():
            command = [str(harness.CLI), "generate", "trained", "--address", self.address, *map(str, asked)]
            errors = self.folder / "errors"
            with errors.open("w") as file:
                writing = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
            self.addCleanup(writing.kill)
            first = writing.stdout.read(40)
            at_work = [job for job in fleet.fetch(self.http, "/api/v1/jobs")[1]["jobs"] if job["state"] == "JOB_STATE_RUNNING"]
            if at_work:
                stage = self.job(at_work[0]["id"])["stages"][1]["name"]
                self.processes[stage].send_signal(signal.SIGKILL)
                self.processes[stage].wait()
                self.launch_stage(stage)
            with writing.stdout:
                rest = writing.stdout.read()
            self.assertEqual(writing.wait(), 0, errors.read_text())
            self.assertEqual(first + rest, expected)
            return at_work and int(self.job(at_work[0]["id"])["recoveries"]) > 0

        self.assertTrue(any(struck() for _ in range(harness.STRIKES)), "all runs were through before they were struck")

    def test_bad_input_is_named_and_nothing_is_left(self):
        self.trained()
        for arguments, words in (
                (("trained", "--prompt", "caf\u00e9", "--stages", 2), "byte 195"),
                (("trained", "--prompt", "a", "--stages", 2, "--stop", "ab"), '"ab"'),
                (("trained", "--prompt", "a", "--stages", 99), "stages"),
                (("nobody", "--prompt", "a", "--stages", 2), "nobody"),
                (("trained", "--prompt", "a", "--stages", 2, "--step", 7), "7")):
            refused = self.cli("generate", *arguments, "--address", self.address)
            self.assertNotEqual(refused.returncode, 0, arguments)
            self.assertIn(words, refused.stderr)
        stages = fleet.fetch(self.http, "/api/v1/stages")[1]["stages"]
        self.assertEqual([stage["job_id"] for stage in stages if stage.get("job_id")], [])


class TranslateOnStages(translate_test.PairsTest):
    def test_translations_are_those_of_one_cell(self):
        job = self.pairs_job(steps=60, batch_size=64, micro_batches=1, learning_rate={"cosine": None, "constant": {"peak": 0.01}})
        cluster = self.run_job(job, 2)
        asked = ("translate", cluster.state_dir, self.folder / "test.en", "--beam", 3, "--tokens", 20)
        for batch in (3, 32):
            here = self.cli(*asked, "--batch", batch)
            self.assertEqual(here.returncode, 0, here.stderr)
            self.assertGreater(len(set(here.stdout.splitlines())), 1)
            for stages in (1, 2, 3, 4):
                done = self.cli(*asked, "--batch", batch, "--local-stages", stages)
                self.assertEqual((done.returncode, done.stdout), (0, here.stdout), done.stderr)
        (checkpoint,) = pathlib.Path(cluster.state_dir).glob("checkpoints/*/step-000000000060")
        done = self.cli("translate", checkpoint, *asked[2:], "--batch", batch, "--local-stages", 2, "--job-file", job)
        self.assertEqual((done.returncode, done.stdout), (0, here.stdout), done.stderr)


class ModelThatNoStageHolds(fleet.FleetTest):
    """A network of 6 equal layers, and stages that hold two thirds of it at most."""
    LAYERS, WIDTH = 6, 256

    def test_writes_on_three_stages_and_is_refused_on_one(self):
        trained = self.run_job(self.job_file(
            model={"gpt": {"layers": self.LAYERS, "width": self.WIDTH, "heads": 4, "context": 32, "vocabulary": 128}},
            training={"steps": 3}, evaluation=None), 1)
        weights = 4 * 12 * self.LAYERS * self.WIDTH**2
        for name in "abc":
            self.launch_stage(name, arguments=("--memory-limit-bytes", weights * 2 // 3))
        (export,) = trained.state_dir.glob("exports/*")
        asked = ("generate", export, "--prompt", "The stage", "--tokens", 10, "--temperature", 0)
        refused = self.cli(*asked, "--stages", 1, "--address", self.address)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("use more stages", refused.stderr)
        here = self.cli(*asked)
        done = self.cli(*asked, "--stages", 3, "--address", self.address)
        self.assertEqual((done.returncode, done.stdout), (0, here.stdout), done.stderr)


class WhileAJobTrains(fleet.FleetTest, translate_test.PairsTest):
    def setUp(self):
        super().setUp()
        for name in "abc":
            self.launch_stage(name)

    def train(self, job_id, job, steps):
        (self.folder / "train.json").write_text(json.dumps(harness.merged(job, {
            "training": {"steps": steps, "learning_rate": {"cosine": None, "constant": {"peak": 0.01}}},
            "pipeline": {"stages": 1}, "checkpoint": {"every_steps": EVERY, "keep": 10000}, "evaluation": None})))
        submitted = self.cli("submit", self.folder / "train.json", "--id", job_id, "--detach", "--address", self.address)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)

    def first_checkpoint(self, job_id):
        """Its step, once it is there."""
        command = [str(harness.CLI), "-o", "ndjson", "watch", job_id, "--address", self.address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as watching:
            self.addCleanup(watching.kill)
            for line in watching.stdout:
                record = json.loads(line)
                if record["event"] == "checkpoint":
                    watching.kill()
                    return record["step"]
        raise AssertionError(f"{job_id} ended without a checkpoint")

    def newest_checkpoint(self, job_id):
        return int(self.job(job_id)["last_checkpoint_step"])

    def check(self, job_file, command, *asked):
        """Stages that are free write from a job that trains on, and it ends with the bits it would have had."""
        job = json.loads(job_file.read_text())

        def write(job_id, *more):
            done = self.cli("-o", "ndjson", command, job_id, "--address", self.address, *asked, *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [json.loads(line)["text"] for line in done.stdout.splitlines()]
        for steps in (1000, 4000, 16000, 64000):
            running = f"running-{steps}"
            self.train(running, job, steps)
            first = self.first_checkpoint(running)
            before = self.newest_checkpoint(running)
            newest = write(running, "--stages", 2)
            after = self.newest_checkpoint(running)
            texts = [write(running, "--step", first, *more) for more in (("--stages", 2), ("--local-stages", 2), ())]
            if self.job(running)["state"] == "JOB_STATE_RUNNING":
                break
        else:
            self.fail("all runs were through before their texts were written")
        written = [job for job in fleet.fetch(self.http, "/api/v1/jobs")[1]["jobs"] if job["id"].startswith(command)]
        self.assertEqual({job["state"] for job in written}, {"JOB_STATE_SUCCEEDED"})
        ended = self.ended(running, 300)
        self.assertEqual((ended["state"], int(ended.get("recoveries", 0))), ("JOB_STATE_SUCCEEDED", 0))
        self.train("alone", job, steps)
        self.assertEqual(self.ended("alone", 300)["weights_digest"], ended["weights_digest"])
        self.assertEqual(texts, [write("alone", "--step", first)] * 3)
        self.assertIn(newest, (write("alone", "--step", step) for step in range(before, after + 1, EVERY)))

    def test_generate(self):
        (self.folder / "prompts").write_text("\n".join(PROMPTS) + "\n")
        self.check(self.job_file(), "generate", "--prompts", self.folder / "prompts", "--tokens", 30)

    def test_translate(self):
        self.check(self.pairs_job(), "translate", "--input", self.folder / "test.en", "--beam", 2, "--tokens", 10)


if __name__ == "__main__":
    harness.main()
