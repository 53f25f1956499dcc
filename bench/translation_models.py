"""Shared by the benchmarks of translation: Transformers of one width, their scores, table cells."""
import concurrent.futures
import json
import math
import pathlib
import struct
import subprocess
import sys
import threading
import time
from statistics import mean

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEAM, WIDTH, HEAD_WIDTH = 4, 128, 32


def add_options(parser, models, seeds):
    """Options after DATA and RESULTS, which every benchmark of translation has."""
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--seeds", type=int, nargs="+", default=seeds)
    parser.add_argument("--models", nargs="+", choices=models, default=models)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--only-tables", action="store_true")


def job(name, seed, data, *, vocabulary, context, steps, batch, layers=2, hidden=256, heads=4,
        checkpoint=None):
    """`layers` are those of each half; `data` are the fields of parallel_text."""
    return {
        "name": name, "seed": seed,
        "model": {
            "transformer": {"vocabulary": vocabulary, "source_context": context,
                            "target_context": context, "width": WIDTH, "hidden": hidden,
                            "heads": heads, "head_width": HEAD_WIDTH,
                            "encoder_layers": layers, "decoder_layers": layers, "dropout": 0.1},
            "objective": {"cross_entropy": {"ignore_index": 0, "label_smoothing": 0.1}}},
        "data": {"parallel_text": data},
        "training": {"steps": steps, "batch_size": batch, "micro_batches": 1,
                     "optimizer": {"adamw": {"beta2": 0.98, "epsilon": 1e-9}},
                     "learning_rate": {"linear": {"peak": 2e-3, "warmup_steps": 100}},
                     "gradient_clip_norm": 1.0},
        "pipeline": {"stages": 1, "schedule": "gpipe", "rematerialization": "never"},
        "checkpoint": checkpoint or {"never": True}}


class TranslationModels:
    """A folder of trained models and their scores.

    A derived class gives job(model, seed), directions(model), test(direction), the source and the
    reference, and tag(direction) or None. Threads share only results.jsonl.
    """

    def __init__(self, options):
        self.results = options.results.resolve()
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

    def measure_all(self, options):
        """Each seed runs over all models before the next one."""
        pool = concurrent.futures.ThreadPoolExecutor(options.at_once)
        runs = [pool.submit(self.measure, model, seed)
                for seed in options.seeds for model in options.models]
        try:
            for run in runs:
                run.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def write_job(self, model, seed):
        path = self.results / f"{model}-{seed}.json"
        job = self.job(model, seed)
        if path.exists() and json.loads(path.read_text()) != job:
            raise RuntimeError(f"{path}: results of another recipe; give an empty folder")
        path.write_text(json.dumps(job, indent=1))
        return path, job

    def records(self):
        path = self.results / "results.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def measure(self, model, seed):
        """Trains, translates and scores what is not there yet."""
        directions = self.directions(model)
        done = {record["direction"] for record in self.records()
                if (record["model"], record["seed"]) == (model, seed)}
        path, job = self.write_job(model, seed)
        state = self.results / f"{model}-{seed}"
        weights = state / "exports" / job["name"] / "model.safetensors"
        began = time.monotonic()
        if len(done) < len(directions) and not weights.exists():
            self.run("local", "--threads-per-stage", 1, "--state-dir", state, path)
        training = {"steps": job["training"]["steps"], "training_s": time.monotonic() - began}
        for direction in directions:
            if direction in done:
                continue
            began = time.monotonic()
            scores = self.translate(weights, direction, state / f"made.{direction}")
            record = {"model": model, "seed": seed, "direction": direction, **scores,
                      "parameters": parameters(weights), **training,
                      "translation_s": time.monotonic() - began}
            with self.lock, open(self.results / "results.jsonl", "a") as file:
                file.write(json.dumps(record) + "\n")
            print(record, file=sys.stderr, flush=True)

    def translate(self, weights, direction, made):
        source, reference = self.test(direction)
        tag = self.tag(direction)
        made.write_text(self.run("translate", weights, source, "--threads", 1, "--beam", BEAM,
                                 *(("--tag", tag) if tag else ()), "--length-penalty", 1))
        scores = json.loads(self.run("-o", "json", "score", made, reference))["scores"]
        return {score["name"]: score["score"] for score in scores}


def parameters(weights):
    with open(weights, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return sum(math.prod(entry["shape"]) for entry in header.values() if "shape" in entry)


def spread(values):
    return f" ± {(max(values) - min(values)) / 2:.1f}" if len(values) > 1 else ""


class Scores:
    """BLEU and chrF2 of records, as cells of a table: means over seeds."""

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
