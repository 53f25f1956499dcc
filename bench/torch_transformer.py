#!/usr/bin/env python3
"""Training steps of a Transformer for translation beside PyTorch's on CPUs, in turn.

    bench/torch_transformer.py --python PYTHON [--stages 1] [--precision float32] [--rounds 3] [--batch 16]
                               [--micro-batches 1 2 4] [--schedules one_forward_one_backward]
                               [--their-micro-batches 1 2 4] [--sides eager,compiled] [--keep FOLDER] [--bin build/bin]

6 + 6 layers of width 512, hidden width 2048, 8 heads, one embedding of 31,000 pieces for source, target and output, 60 M
parameters; pairs of 64 + 64 tokens, AdamW, no dropout. Ours is `stagecoach local` with K stages of one thread, nothing
recomputed: seconds of a step. PyTorch (which --python has, 2.15) is one process of K threads: nn.Transformer, pre-norm, with
AdamW fused, with bfloat16 under autocast; compiled is through torch.compile, compiling not counted. A round runs both sides
once; each has the micro-batches (and schedule) that are fastest of those listed, found in a round that does not count. A
line a side: the medians and the median of the rounds' ratios. --keep: the tokenizer and the sentences stay in FOLDER for
the next run.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from statistics import median

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTH, WIDTH, HIDDEN, HEADS, LAYERS, VOCABULARY = 64, 512, 2048, 8, 6, 31000
SPACE = "\u2581"  # SentencePiece's
STEPS = 6  # the first two do not count


class Ours:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "target").exists():
            return
        words = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        lexicon = ["".join(words.choices(letters, k=words.randint(3, 9))) for _ in range(40000)]
        (folder / "lexicon").write_text("\n".join(" ".join(words.choices(lexicon, k=12)) for _ in range(40000)))
        self.run("tokenizer", "train", "--input", folder / "lexicon", "--output", folder / "pieces.model", "--vocabulary",
                 VOCABULARY, "--model", "bpe")
        for side in ("source", "target"):
            self.write_lines(folder / side, lexicon, words)

    def run(self, *command):
        return subprocess.run([self.options.bin / "stagecoach", *map(str, command)], check=True, text=True,
                              capture_output=True)

    def write_lines(self, path, lexicon, words):
        """Lines of as many words as have LENGTH - 1 pieces or fewer, before the mark at the end."""
        drawn = path.with_suffix(".drawn")
        drawn.write_text("\n".join(" ".join(words.choices(lexicon, k=LENGTH)) for _ in range(256)))
        lines = []
        for line in self.run("tokenizer", "encode", self.folder / "pieces.model", drawn, "--pieces").stdout.splitlines():
            pieces = line.split(" ")[:LENGTH]
            end = max(i for i, piece in enumerate(pieces) if piece.startswith(SPACE))
            lines.append("".join(pieces[:end]).replace(SPACE, " ").strip())
        path.write_text("\n".join(lines) + "\n")

    def seconds(self, way):
        micro_batches, schedule = way
        options = self.options
        job = {"name": "bench", "seed": 1, "precision": options.precision,
               "model": {"transformer": {"vocabulary": VOCABULARY, "source_context": LENGTH, "target_context": LENGTH,
                                         "width": WIDTH, "hidden": HIDDEN, "heads": HEADS, "encoder_layers": LAYERS,
                                         "decoder_layers": LAYERS},
                         "objective": {"cross_entropy": {"ignore_index": 0}}},
               "data": {"parallel_text": {"tokenizer": str(self.folder / "pieces.model"), "buckets": 1,
                                          "sources": [str(self.folder / "source")],
                                          "targets": [str(self.folder / "target")]}},
               "training": {"steps": STEPS, "batch_size": options.batch, "micro_batches": micro_batches,
                            "optimizer": {"adamw": {}}, "learning_rate": {"constant": {"peak": 1e-4}}},
               "pipeline": {"stages": options.stages, "schedule": schedule, "rematerialization": "never"}}
        (self.folder / "job.json").write_text(json.dumps(job))
        with tempfile.TemporaryDirectory() as state:
            report = self.run("local", "--stages", options.stages, "--threads-per-stage", 1, "--state-dir", state, "-o",
                              "ndjson", self.folder / "job.json").stdout
        events = [json.loads(line) for line in report.splitlines()]
        return median(e["step_seconds"] for e in events if e["event"] == "step" and e["step"] > 2)


def theirs(options, side, micro_batches):
    """Seconds of a step of PyTorch, as the last line of JSON says that it prints."""
    command = [options.python, __file__, "--step", "--python", "", "--stages", str(options.stages), "--batch",
               str(options.batch), "--micro-batches", str(micro_batches), "--precision", options.precision]
    command += ["--compile"] * (side == "compiled")
    done = subprocess.run(command, text=True, capture_output=True,
                          env=os.environ | {"OMP_NUM_THREADS": str(options.stages)})
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])["seconds"]


def step(options):
    """In a process of its own: prints the seconds of a step of PyTorch."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(options.stages)
    torch.manual_seed(1)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.body = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, HIDDEN, dropout=0.0, batch_first=True, norm_first=True)
            self.register_buffer("positions", torch.randn(LENGTH, WIDTH))
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

        def forward(self, source, target, labels):
            embedded = [self.embedding(ids) * WIDTH**0.5 + self.positions for ids in (source, target)]
            y = self.body(*embedded, tgt_mask=self.mask, tgt_is_causal=True)
            return F.cross_entropy(F.linear(y, self.embedding.weight).flatten(0, 1), labels.flatten(), ignore_index=0)

    model = Model()
    forward = torch.compile(model) if options.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    count = options.micro_batches[0]
    ids = torch.randint(1, VOCABULARY, (3, options.batch, LENGTH))
    seconds = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for source, target, labels in zip(*(part.chunk(count) for part in ids)):
            with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bfloat16"):
                loss = forward(source, target, labels) / count
            loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": median(seconds[2:])}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--their-micro-batches", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--schedules", nargs="+", default=["one_forward_one_backward"])
    parser.add_argument("--sides", default="eager,compiled")
    parser.add_argument("--step", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        return step(options)
    with tempfile.TemporaryDirectory() as folder:
        bench = Ours(options, options.keep or pathlib.Path(folder))
        sides = {"stagecoach": (bench.seconds, [(count, schedule) for count in options.micro_batches
                                                for schedule in options.schedules])}
        for side in options.sides.split(","):
            sides[side] = (lambda count, side=side: theirs(options, side, count), options.their_micro_batches)
        best = {}
        for side, (seconds, ways) in sides.items():
            tried = {way: seconds(way) for way in ways}
            best[side] = min(tried, key=tried.get)
            print(side, ", ".join(f"{way}: {took:.3f} s" for way, took in tried.items()), flush=True)
        rounds = [{side: seconds(best[side]) for side, (seconds, _) in sides.items()} for _ in range(options.rounds)]
    for side in sides:
        times = median(took[side] / took["stagecoach"] for took in rounds)
        print(f"{side} {best[side]}: {median(took[side] for took in rounds):.3f} s, {times:.2f} times stagecoach's")


if __name__ == "__main__":
    main()
