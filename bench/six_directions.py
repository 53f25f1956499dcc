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
import gzip
import pathlib

from planning import print_table
from translation_models import Scores, TranslationModels, add_options, job

KEPT = {"de": range(29), "fr": range(10), "cs": range(10, 13)}  # lines of every 29
DIRECTIONS = [pair for language in KEPT for pair in ((language, "en"), ("en", language))]
STEPS, VOCABULARY = 600, 2000
LONG = 6  # times the steps
# layers of each half, hidden width, heads; as in the paper the latter two halve as layers double
SHAPES = {"": (2, 256, 4), "deep": (4, 128, 2), "wide": (1, 512, 8)}


def name_of(direction):
    return "-".join(direction)


# directions, steps and shape by name
MODELS = {**{name_of(direction): ([direction], STEPS, "") for direction in DIRECTIONS},
          "six": (DIRECTIONS, STEPS, ""), "six-long": (DIRECTIONS, LONG * STEPS, ""),
          "six-wide": (DIRECTIONS, LONG * STEPS, "wide"),
          "six-deep": (DIRECTIONS, LONG * STEPS, "deep")}


class Bench(TranslationModels):
    def __init__(self, options):
        super().__init__(options)
        self.data = options.data.resolve()

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

        data = {"tokenizer": str(self.tokenizer), "tags": tags, "test_tags": tags, "sampling": 0.7,
                "sources": files(0, True), "targets": files(1, True),
                "test_sources": files(0, False), "test_targets": files(1, False)}
        return job(f"{model}-{seed}", seed, data, vocabulary=VOCABULARY, context=96, steps=steps,
                   batch=32, layers=layers, hidden=hidden, heads=heads)

    def directions(self, model):
        return [name_of(direction) for direction in MODELS[model][0]]

    def test(self, direction):
        return [self.data / f"test_2016_flickr.{language}.gz" for language in direction.split("-")]

    def tag(self, direction):
        return f"<2{direction.split('-')[1]}>"


class Table(Scores):
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
    add_options(parser, list(MODELS), [1, 2, 3])
    options = parser.parse_args()
    bench = Bench(options)
    if not options.only_tables:
        bench.prepare()
        bench.measure_all(options)
    Table(bench.records()).print()


if __name__ == "__main__":
    main()
