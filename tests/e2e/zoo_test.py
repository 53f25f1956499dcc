"""Every network that a job can name keeps its bits when a stage process is killed in the middle of its training.

The list is that of the API (message Model, which the programs' own list is held to): a new network needs a job here.
What does not need processes, every cut, schedule and mode, is in tests/transparency/zoo_test.cc.
"""
import gzip
import json
import pathlib
import random
import re
import sys

import harness
import made_pictures

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "digests"))
import digests  # noqa: E402

STEPS, KILLED_AT, EVERY = 60, 9, 4
TEXT = {"text": {"path": "text.txt"}}
DOCUMENTS = {"json_lines": {"files": ["documents.jsonl"], "packed": True}}
IMAGES = {"idx": {name: f"{part}-{kind}-ubyte.gz" for part, names in (("train", ("images", "labels")),
                                                                       ("t10k", ("test_images", "test_labels")))
                  for name, kind in zip(names, ("images-idx3", "labels-idx1"))}}
IMAGES["idx"] |= {"padding": 2, "flip": True, "decode_threads": 1}
IMAGE = {"image": [28, 28, 1], "classes": 10}
PIECES = 288
PAIRS = {"parallel_text": {"tokenizer": "pieces.model", "sources": ["left.txt", "other.txt.gz"],
                           "targets": ["right.txt", "right.txt"], "tags": ["<2b>", ""], "sampling": 0.7, "buckets": 3}}
BERT_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(mark + letter for letter in "abcde" for mark in ("", "##"))]
WORDS = {"json_lines": {"files": ["documents.jsonl"], "tokenizer": "tokenizer.json", "masked": 0.4}}
MASKS = {"mask_folder": {"train": "pictures", "masks": "masks", "flip": True, "padding": 2}}
BLOCK = [{"batch_norm": {}}, {"linear": {"out": 64}}, {"relu": {}}, {"linear": {"out": 48}}, {"dropout": {"rate": 0.1}}]
MIXED = ("transformer", "llama", "bert")  # their mini-batches have lengths, parts of many documents, or masks of their own
RESUMED_AT = 20  # in the middle of an epoch
OBJECTIVES = {"bert": {"cross_entropy": {"ignore_index": 0}}, "transformer": {"cross_entropy": {"ignore_index": 0, "label_smoothing": 0.1}}}
# Network, data and what is frozen: dropout, batch norm's averages and tied embeddings are among them.
JOBS = {
    "amoebanet_b": ({"layers": 3, "filters": 4, "stem": "small", "dropout": 0.1, "auxiliary_weight": 0.4,
                     "auxiliary_scale": 0.1, **IMAGE}, IMAGES, ["model/0000/*"]),
    "amoebanet_d": ({"layers": 3, "filters": 4, "stem": "small", **IMAGE}, IMAGES, []),
    "bert": ({"layers": 3, "width": 48, "heads": 4, "context": 32, "vocabulary": len(BERT_PIECES), "dropout": 0.1,
              "attention_dropout": 0.1}, WORDS, []),
    "gpt": ({"layers": 3, "width": 48, "heads": 4, "context": 32, "vocabulary": 256, "dropout": 0.1,
             "tied_embeddings": True}, TEXT, []),
    "llama": ({"layers": 3, "width": 48, "heads": 4, "key_heads": 2, "hidden": 64, "context": 32, "vocabulary": 256,
               "qk_norm": True, "documents": True}, DOCUMENTS, ["model/0000/*", "*.gate.weight"]),
    "mlp": ({"hidden": 256, "layers": 4, **IMAGE}, IMAGES, []),
    "resnet": ({"depth": 8, "width": 4, **IMAGE}, IMAGES, ["model/0000/*", "model/0001/*"]),
    "sequence": ({"width": 48, "context": 32, "vocabulary": 256,
                  "layers": [{"embedding": {}}, {"residual": {"layers": BLOCK}}, {"residual": {"layers": BLOCK}},
                             {"layer_norm": {}}, {"linear": {"out": 256}}]}, TEXT, []),
    "transformer": ({"width": 24, "hidden": 40, "heads": 2, "encoder_layers": 1, "decoder_layers": 2,
                     "source_context": 16, "target_context": 16, "vocabulary": PIECES, "dropout": 0.1, "norm": "post"}, PAIRS,
                    []),
    "unet": ({"base": 4, "depth": 2, "image": [16, 12, 3], "channels_out": 3}, MASKS, ["model/0000/*"]),
    "vit": ({"patch": 7, "layers": 2, "width": 24, "heads": 3, "dropout": 0.1, **IMAGE}, IMAGES, ["model/0000/*"]),
}

def write_masks(folder, count=40, width=12, height=16):
    """Noise, brighter where the class is higher."""
    draws = random.Random(5)
    for name in ("pictures", "masks"):
        (folder / name).mkdir()
    for i in range(count):
        split = draws.randrange(height)
        mask = bytes((y > split) + (x > split) for y in range(height) for x in range(width))
        picture = bytes(draws.randrange(60) + 60 * c for c in mask for _ in range(3))
        (folder / "pictures" / f"{i:03d}.png").write_bytes(made_pictures.png(height, width, 3, picture))
        (folder / "masks" / f"{i:03d}.png").write_bytes(made_pictures.png(height, width, 1, mask))


def write_documents(folder, count=300):
    """Shorter than a context, so most sequences have parts of some."""
    draws = random.Random(3)
    texts = ("".join(draws.choices("abcde ", k=draws.randrange(40))) for _ in range(count))
    (folder / "documents.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


def write_bert_tokenizer(folder):
    """Letters, at the beginning of a word and within."""
    special = [{"id": i, "content": piece, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for i, piece in enumerate(BERT_PIECES[:5])]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": special, "post_processor": None, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {piece: i for i, piece in enumerate(BERT_PIECES)}}}))


def write_pairs(cli, folder, count=200):
    """Sentences of a few words, and the same words backwards."""
    draws = random.Random(7)
    words = ["ba", "be", "bi", "bo", "da", "de", "di", "do", "ka", "ke"]
    sentences = [[draws.choice(words) for _ in range(1 + draws.randrange(9))] for _ in range(count)]
    lines = {"left.txt": [" ".join(words) for words in sentences], "right.txt": [" ".join(words[::-1]) for words in sentences]}
    for name, of_file in lines.items():
        (folder / name).write_text("".join(line + "\n" for line in of_file))
    (folder / "other.txt.gz").write_bytes(gzip.compress((folder / "left.txt").read_bytes()))
    trained = cli("tokenizer", "train", "--input", str(folder / "left.txt"), "--vocabulary", str(PIECES), "--model", "bpe",
                  "--user-symbols", "<2b>", "--output", str(folder / "pieces.model"))
    assert trained.returncode == 0, trained.stderr


def networks_of_the_api():
    text = (ROOT / "proto" / "stagecoach" / "v1" / "networks.proto").read_text()
    kinds = re.search(r"^message Model \{.*?oneof kind \{(.*?)\}", text, re.DOTALL | re.MULTILINE)[1]
    return set(re.findall(r"^\s*\w+ (\w+) = \d+;", kinds, re.MULTILINE))


class Zoo(harness.EndToEndTest):
    def job(self, name, stages, schedule, mode, **changes):
        model, data, frozen = JOBS[name]
        return self.job_file(f"{name}-{stages}.json", name=name.replace("_", "-"), model={"gpt": None, name: model, "objective": OBJECTIVES.get(name)},
                             data={"text": None, **data},
                             training={"steps": STEPS, "batch_size": 11, "micro_batches": 4, "freeze": frozen},
                             pipeline={"stages": stages, "schedule": schedule, "rematerialization": mode},
                             checkpoint={"every_steps": EVERY, "keep": STEPS // EVERY}, evaluation=None, **changes)

    def test_every_network_has_a_job_here(self):
        self.assertEqual(set(JOBS), networks_of_the_api())

    def test_a_killed_stage_costs_no_bit(self):
        digests.write_data(self.folder)
        write_documents(self.folder)
        write_bert_tokenizer(self.folder)
        write_masks(self.folder)
        write_pairs(self.cli, self.folder)
        digests_of = {}
        for number, name in enumerate(JOBS):
            with self.subTest(name):
                undisturbed = self.run_job(self.job(name, 1, "gpipe", "never"), 1)
                schedule = ("gpipe", "one_forward_one_backward", "zero_bubble", "zero_bubble_2")[number // 2 % 4]
                mode = ("always", "except_first", "never")[number % 3]
                job = self.job(name, 3, schedule, mode)
                killed = self.run_killed(lambda: self.start(job, 3), KILLED_AT, f"stage-{number % 3}")
                self.assertEqual(len(killed.losses()), STEPS)
                self.assertEqual((killed.digest(), killed.losses()), (undisturbed.digest(), undisturbed.losses()))
                digests_of[name] = killed.digest()
        self.assertEqual(len(set(digests_of.values())), len(JOBS))

    def test_resumes_in_mid_epoch_with_another_number_of_stages(self):
        write_documents(self.folder)
        write_bert_tokenizer(self.folder)
        write_pairs(self.cli, self.folder)
        for name in MIXED:
            whole = self.run_job(self.job(name, 3, "gpipe", "always"), 3, "state", "--id", name)
            resumed = self.run_job(self.job(name, 2, "one_forward_one_backward", "never", resume={"job": name, "step": RESUMED_AT}),
                                   2, "state", "--id", f"{name}-resumed")
            self.assertEqual(sorted(resumed.losses()), list(range(RESUMED_AT + 1, STEPS + 1)), name)
            self.assertEqual(resumed.digest(), whole.digest(), name)


if __name__ == "__main__":
    harness.main()
