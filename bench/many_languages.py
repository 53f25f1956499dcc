#!/usr/bin/env python3
"""One model of many languages into English beside models of one language each: program catalogues.

    bench/many_languages.py PACKAGES RESULTS [--bin build/bin] [--seeds 1] [--models many nds wa]
                            [--at-once 1] [--only-tables]

PACKAGES is a folder for ten Debian packages, 50 MB; those that it lacks come by `apt-get download`,
which needs no root. Pairs are made of their .mo files, from each locale into English. Models:

  many        every locale with 1,000 pairs or more but those of English, at most CAP pairs of each
  de-en, ...  one of eight locales, all its pairs, an eighth of the steps of `many`

All have one tokenizer, made of the pairs of `many`. Strings are split by the English side: one to
test with is in no locale's training data. RESULTS/results.jsonl has a line for each model, seed and
locale; what it has is not run again. Prints a table of BLEU and chrF2.
"""
import argparse
import collections
import hashlib
import pathlib
import re
import struct
import subprocess

from planning import print_table
from translation_models import Scores, TranslationModels, add_options, job

NAMES = ("iso-codes", "gimp-data", "evolution-common", "libgtk-3-common", "gnucash-common", "git",
         "coreutils", "dpkg", "apt", "gettext")  # of the packages
RICH, POOR = ("fr", "uk", "zh_CN", "de"), ("wa", "sc", "nds", "hy")
LEAST = 1000  # pairs of a locale, as they are in the packages
CHARACTERS = 40  # the longest strings that are kept
CAP = 2000  # pairs of a locale for `many`
TESTS = 300  # strings of a locale
PERCENT = {"test": range(15), "val": range(15, 17), "train": range(17, 100)}  # of English strings
VOCABULARY, CONTEXT, BATCH = 8000, 64, 32
STEPS = 600
MANY_STEPS = 8 * STEPS
MNEMONIC = re.compile(r"\s*\(_\w\)")  # as in 打开(_O)


def name_of(locale):
    return f"{locale}-en"


MODELS = {"many": [*RICH, *POOR], **{name_of(locale): [locale] for locale in RICH + POOR}}


def unpack(folder):
    """Makes folder/NAME of each package."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        if (folder / name).exists():
            continue
        if not list(folder.glob(f"{name}_*.deb")):
            subprocess.run(["apt-get", "download", name], cwd=folder, check=True)
        partial = folder / f"{name}.partial"
        subprocess.run(["dpkg-deb", "-x", next(folder.glob(f"{name}_*.deb")), partial], check=True)
        partial.rename(folder / name)


def messages(path):
    """(English, translation) of a catalogue: without contexts, the singular of both."""
    data = path.read_bytes()
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, *tables = struct.unpack_from(f"{order}3I", data, 8)

    def text(table, i):
        length, begin = struct.unpack_from(f"{order}2I", data, table + 8 * i)
        return data[begin:begin + length]

    entries = [[text(table, i) for table in tables] for i in range(count)]
    header = dict(entries).get(b"", b"")
    charset = re.search(rb"charset=([\w-]+)", header)
    for original, translation in entries:
        if original and translation:
            english = original.split(b"\4")[-1]
            yield [part.split(b"\0")[0].decode(charset[1].decode() if charset else "utf-8")
                   for part in (english, translation)]


def catalogues(folder):
    """By locale {(English, translation)} in the order of the files."""
    pairs = collections.defaultdict(dict)
    for path in sorted(folder.glob("*/usr/share/locale/*/LC_MESSAGES/*.mo")):
        if not path.is_symlink():
            found = pairs[path.parent.parent.name]
            found.update(((english, text), None) for english, text in messages(path)
                         if english and text and english != text)
    return {locale: list(found) for locale, found in sorted(pairs.items())}


def clean(text):
    """Without the mark of a key: the group (_X), or the only underscore."""
    text = MNEMONIC.sub("", text)
    return (text.replace("_", "") if text.count("_") == 1 else text).strip()


def kept(text):
    return text.isprintable() and len(text) <= CHARACTERS and any(map(str.isalpha, text))


def number(*parts):
    return int.from_bytes(hashlib.sha256("\n".join(parts).encode()).digest()[:8], "big")


def split(locale, pairs):
    """(translation, English) by part; English strings that differ in case and signs count as one.

    A string's part does not depend on the locale, its place in the part's order does.
    """
    strings = {}
    for pair in pairs:
        english, text = map(clean, pair)
        if english != text and kept(english) and kept(text):
            strings.setdefault(re.sub(r"\W", "", english.lower()), (text, english))
    keys = sorted(strings, key=lambda key: number(locale, key))
    return {part: [strings[key] for key in keys if number(key) % 100 in percent]
            for part, percent in PERCENT.items()}


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))


class Bench(TranslationModels):
    def __init__(self, options):
        super().__init__(options)
        self.packages = options.packages.resolve()

    def file(self, part, locale):
        """`most` is at most CAP pairs of `train`; a line has source, tab and English."""
        return self.corpus / f"{part}.{locale}"

    def locales(self):
        return sorted(path.name.split(".")[1] for path in self.corpus.glob("most.*"))

    def prepare(self):
        if self.tokenizer.exists():
            return
        unpack(self.packages)
        self.corpus.mkdir(parents=True, exist_ok=True)
        sources, english = [], {}
        for locale, pairs in catalogues(self.packages).items():
            if len(pairs) < LEAST or re.match("en(_|@|$)", locale):
                continue
            parts = split(locale, pairs)
            parts["most"] = parts["train"][:CAP]
            for part, chosen in parts.items():
                write_lines(self.file(part, locale), map("\t".join, chosen))
            for side, name in enumerate(("source", "reference")):
                write_lines(self.file(name, locale), (pair[side] for pair in parts["test"][:TESTS]))
            sources += (pair[0] for pair in parts["most"])
            english.update((pair[1], None) for pair in parts["most"])
        write_lines(self.corpus / "text", [*sources, *english])
        self.run("tokenizer", "train", "--input", self.corpus / "text", "--vocabulary", VOCABULARY,
                 "--model", "bpe", "--output", self.tokenizer)

    def job(self, model, seed):
        many = model == "many"
        locales = self.locales() if many else MODELS[model]
        data = {"tokenizer": str(self.tokenizer), "sampling": 0.7, "buckets": 16,
                "sources": [str(self.file("most" if many else "train", each)) for each in locales],
                "test_sources": [str(self.file("val", each)) for each in locales]}
        return job(f"{model.replace('_', '-').lower()}-{seed}", seed, data, vocabulary=VOCABULARY,
                   context=CONTEXT, steps=MANY_STEPS if many else STEPS, batch=BATCH,
                   layers=1, hidden=512, heads=8, checkpoint={"every_steps": 200, "keep": 1})

    def directions(self, model):
        return [name_of(locale) for locale in MODELS[model]]

    def test(self, direction):
        locale = direction.removesuffix("-en")
        return self.file("source", locale), self.file("reference", locale)

    def tag(self, direction):
        return None

    def count(self, part, locale):
        return len(self.file(part, locale).read_text().splitlines())

    def print(self):
        scores = Scores(self.records())
        print_table(["BLEU, chrF2", "pairs", "of `many`", "test strings", "one language", "`many`",
                     "gain"],
                    [[locale, *(f"{self.count(part, locale):,}"
                                for part in ("train", "most", "source")),
                      scores.scores(name_of(locale), name_of(locale)),
                      scores.scores("many", name_of(locale)),
                      scores.gain("many", name_of(locale))] for locale in RICH + POOR])
        pairs = sum(self.count("most", locale) for locale in self.locales())
        print(f"\n`many`: {len(self.locales())} locales, {pairs:,} pairs")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path)
    add_options(parser, list(MODELS), [1])
    options = parser.parse_args()
    bench = Bench(options)
    if not options.only_tables:
        bench.prepare()
        bench.measure_all(options)
    bench.print()


if __name__ == "__main__":
    main()
