#!/usr/bin/env python3
"""One model for six directions beside six for one each: Multi30k, with uneven amounts of data.

    bench/six_directions.py DATA RESULTS [--bin build/bin] [--seeds 1 2 3] [--models six de-en]
                            [--at-once 1] [--only-tables]

DATA has {train,val,test_2016_flickr}.{en,de,fr,cs}.gz. Of every 29 lines German has all, French
lines 0 to 9, Czech lines 10 to 12: 29,000, 10,000 and 3,000 pairs with English. Models:

  de-en, ..., en-cs   one direction
  six                 all six, in as many steps: a direction has a sixth of them on average
  six-long            all six, in six times as many steps
  six-deep, six-wide  as six-long, with twice and half the layers at equal parameters

All have one tokenizer, made of the pairs. Each translates test_2016_flickr. RESULTS/results.jsonl
has a line for each model, seed and direction; what it has is not run again. A job that differs from
the one in RESULTS is refused. Each seed runs over all models before the next one. Prints tables of
BLEU and chrF2: means over seeds, and half the distance between the extremes.
"""
import argparse
import concurrent.futures
import gzip
import json
import math
import pathlib
import struct
import subprocess
import sys
import threading
import time
from statistics import mean

from planning import print_table

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = {"de": range(29), "fr": range(10), "cs": range(10, 13)}  # lines of every 29
DIRECTIONS = [pair for language in KEPT for pair in ((language, "en"), ("en", language))]
STEPS, VOCABULARY, BEAM = 600, 2000, 4
LONG = 6  # times the steps
HEAD_WIDTH = 32
# layers of each half, hidden width, heads; as in the paper the latter two halve as layers double
SHAPES = {"": (2, 256, 4), "deep": (4, 128, 2), "wide": (1, 512, 8)}


def name_of(direction):
    return "-".join(direction)


# directions, steps and shape by name
MODELS = {**{name_of(direction): ([direction], STEPS, "") for direction in DIRECTIONS},
          "six": (DIRECTIONS, STEPS, ""), "six-long": (DIRECTIONS, LONG * STEPS, ""),
          "six-wide": (DIRECTIONS, LONG * STEPS, "wide"),
          "six-deep": (DIRECTIONS, LONG * STEPS, "deep")}


class Bench:
    """Runs models on threads of its own; only results.jsonl is shared between them."""

    def __init__(self, options):
        self.data, self.results = options.data.resolve(), options.results.resolve()
        self.program = options.bin / "stagecoach"
        self.corpus = self.results / "corpus"
        self.tokenizer = self.corpus / "pieces.model"
        self.lock = threading.Lock()

    def run(self, *command):
        command = [str(part) for part in (self.program, *command)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def part(self, language, of):
        """The sentences of a language that pair with those of language `of`."""
        return self.corpus / f"train.{language}-of-{of}"

    def prepare(self):
        self.corpus.mkdir(parents=True, exist_ok=True)
        for of, kept in KEPT.items():
            for language in ("en", of):
                if self.part(language, of).exists():
                    continue
                with gzip.open(self.data / f"train.{language}.gz", "rb") as file:
                    lines = [line for i, line in enumerate(file) if i % 29 in kept]
                self.part(language, of).write_bytes(b"".join(lines))
        if not self.tokenizer.exists():
            texts = [self.part("en", "de"), *(self.part(language, language) for language in KEPT)]
            tags = ",".join(f"<2{language}>" for language in ("en", *KEPT))
            self.run("tokenizer", "train", "--input", *texts, "--vocabulary", VOCABULARY,
                     "--model", "bpe", "--user-symbols", tags, "--output", self.tokenizer)

    def job(self, model, seed):
        directions, steps, shape = MODELS[model]
        layers, hidden, heads = SHAPES[shape]
        tags = [f"<2{target}>" for _, target in directions]

        def files(side, training):
            names = ((pair[side], pair[0] if pair[1] == "en" else pair[1]) for pair in directions)
            return [str(self.part(*name) if training else self.data / f"val.{name[0]}.gz")
                    for name in names]

        return {
            "name": f"{model}-{seed}", "seed": seed,
            "model": {
                "transformer": {"vocabulary": VOCABULARY, "source_context": 96,
                                "target_context": 96, "width": 128, "hidden": hidden,
                                "heads": heads, "head_width": HEAD_WIDTH,
                                "encoder_layers": layers, "decoder_layers": layers,
                                "dropout": 0.1},
                "objective": {"cross_entropy": {"ignore_index": 0, "label_smoothing": 0.1}}},
            "data": {"parallel_text": {
                "tokenizer": str(self.tokenizer), "tags": tags, "test_tags": tags, "sampling": 0.7,
                "sources": files(0, True), "targets": files(1, True),
                "test_sources": files(0, False), "test_targets": files(1, False)}},
            "training": {"steps": steps, "batch_size": 32, "micro_batches": 1,
                         "optimizer": {"adamw": {"beta2": 0.98, "epsilon": 1e-9}},
                         "learning_rate": {"linear": {"peak": 2e-3, "warmup_steps": 100}},
                         "gradient_clip_norm": 1.0},
            "pipeline": {"stages": 1, "schedule": "gpipe", "rematerialization": "never"},
            "checkpoint": {"never": True}}

    def write_job(self, model, seed):
        path = self.results / f"{model}-{seed}.json"
        job = self.job(model, seed)
        if path.exists() and json.loads(path.read_text()) != job:
            raise RuntimeError(f"{path}: results of another recipe; give an empty folder")
        path.write_text(json.dumps(job, indent=1))
        return path

    def records(self):
        path = self.results / "results.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def measure(self, model, seed):
        """Trains, translates and scores what is not there yet."""
        directions, steps, _ = MODELS[model]
        done = {record["direction"] for record in self.records()
                if (record["model"], record["seed"]) == (model, seed)}
        job, state = self.write_job(model, seed), self.results / f"{model}-{seed}"
        weights = state / "exports" / f"{model}-{seed}" / "model.safetensors"
        began = time.monotonic()
        if len(done) < len(directions) and not weights.exists():
            self.run("local", "--threads-per-stage", 1, "--state-dir", state, job)
        training = {"steps": steps, "training_s": time.monotonic() - began}
        for pair in directions:
            if name_of(pair) in done:
                continue
            began = time.monotonic()
            scores = self.translate(weights, pair, state / f"made.{name_of(pair)}")
            record = {"model": model, "seed": seed, "direction": name_of(pair), **scores,
                      "parameters": parameters(weights), **training,
                      "translation_s": time.monotonic() - began}
            with self.lock, open(self.results / "results.jsonl", "a") as file:
                file.write(json.dumps(record) + "\n")
            print(record, file=sys.stderr, flush=True)

    def translate(self, weights, pair, made):
        source, reference = (self.data / f"test_2016_flickr.{language}.gz" for language in pair)
        made.write_text(self.run("translate", weights, source, "--threads", 1, "--beam", BEAM,
                                 "--tag", f"<2{pair[1]}>", "--length-penalty", 1))
        scores = json.loads(self.run("-o", "json", "score", made, reference))["scores"]
        return {score["name"]: score["score"] for score in scores}


def parameters(weights):
    with open(weights, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return sum(math.prod(entry["shape"]) for entry in header.values() if "shape" in entry)


def spread(values):
    return f" ± {(max(values) - min(values)) / 2:.1f}" if len(values) > 1 else ""


class Table:
    def __init__(self, records):
        self.records = records

    def of(self, model, direction, score):
        """by seed"""
        return {record["seed"]: record[score] for record in self.records
                if (record["model"], record["direction"]) == (model, direction)}

    def scores(self, model, direction):
        columns = [self.of(model, direction, score).values() for score in ("BLEU", "chrF2")]
        return ", ".join(f"{mean(column):.1f}{spread(column)}" for column in columns if column)

    def gain(self, model, direction):
        """Over the model of one direction; the mean over seeds that both have."""
        columns = [[self.of(name, direction, score) for name in (model, direction)]
                   for score in ("BLEU", "chrF2")]
        gains = [[a[seed] - b[seed] for seed in a.keys() & b.keys()] for a, b in columns]
        return ", ".join(f"{mean(column):+.1f}" for column in gains if column)

    def shape(self, model):
        layers, hidden, heads = SHAPES[MODELS[model][2]]
        sizes = {f"{record['parameters']:,}" for record in self.records if record["model"] == model}
        return ", ".join((f"{layers} + {layers} layers", f"hidden {hidden}", f"{heads} heads",
                          *(f"{size} parameters" for size in sorted(sizes))))

    def print(self):
        names = [name_of(direction) for direction in DIRECTIONS]
        print_table(["BLEU, chrF2", "one direction", "six", "gain", "six-long", "gain"],
                    [[name, self.scores(name, name),
                      self.scores("six", name), self.gain("six", name),
                      self.scores("six-long", name), self.gain("six-long", name)]
                     for name in names])
        print()
        models = ("six-wide", "six-long", "six-deep")
        print_table(["BLEU, chrF2", *map(self.shape, models)],
                    [[name, *(self.scores(model, name) for model in models)] for name in names])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--only-tables", action="store_true")
    options = parser.parse_args()
    bench = Bench(options)
    if not options.only_tables:
        bench.prepare()
        pool = concurrent.futures.ThreadPoolExecutor(options.at_once)
        runs = [pool.submit(bench.measure, model, seed)
                for seed in options.seeds for model in options.models]
        try:
            for run in runs:
                run.result()
        finally:
            pool.shutdown(cancel_futures=True)
    Table(bench.records()).print()


if __name__ == "__main__":
    main()
