#!/usr/bin/env python3
"""Compares `stagecoach score` with sacreBLEU 2.6.0 from PyPI: every printed digit, and the signatures.

usage: sacrebleu_scores.py STAGECOACH BUILD_FOLDER

Hypotheses are the sentences of Multi30k's test file in four languages, perturbed, where that data lies beside the
checkout, and seeded lines of odd characters. There the whole output of the program `sacrebleu` is compared, here that of
its library, for one to three references, both tokenizers and both cases. Exit status: 0 equal, 1 not, 77 PyPI is not to
be had.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import pypi  # noqa: E402

if len(sys.argv) != 3:
    sys.exit(__doc__.split("\n\n")[1])
pypi.enter(pathlib.Path(sys.argv[2]).resolve(), "sacrebleu", ["sacrebleu==2.6.0"])

import gzip  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402

from sacrebleu.metrics import BLEU, CHRF  # noqa: E402

logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it warns of lines that look tokenized
MULTI30K = HERE.parents[2] / "shared" / "data" / "multi30k"
SEED = 20
CORPORA, LINES = 150, 12  # of odd lines

WHITE_SPACE = [chr(c) for c in range(0x110000) if chr(c).isspace()]
NEARLY_SPACE = ["\u180e", "\u200b", "\u2060", "\ufeff", "\u00ad", "\x1b"]
ENTITIES = ["&quot;", "&amp;", "&lt;", "&gt;", "&amp;lt;", "&amp;quot;", "&apos;", "&", "<skipped>", "<skip<skipped>ped>"]
NUMBERS = ["1,000", "3.14", ".5", "5.", "1.000,50", "10-20", "-7", "7-", "1,", ",1", "٣.٤", "３,４", "1.-2", "²,³"]
MARKS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "--", "’", "„", "“", "«", "»", "…", "–", "。", "、", "¿"]
WORDS = ["The", "a", "man", "Straße", "ÉCOLE", "été", "Žluťoučký", "KŮŇ", "ΌΣΟΣ", "Σ", "ΣΑΣ", "İstanbul", "ẞ", "Ǆ", "ﬁ",
         "кот", "КОТ", "東京", "ภาษา", "नमस्ते", "مرحبا", "Ა", "ნ", "Ꭰ", "𐐀", "Ⅷ", "Ａ"]
EMOJI = ["👍", "👍🏽", "👩‍👩‍👧", "🇩🇪", "❤️", "cafe\u0301", "e\u0323\u0302", "\u0301", "A\u0345Σ", "\U0010fffd"]


class Comparison:
    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.same, self.failures, self.outputs = 0, 0, set()

    def write(self, name, lines):
        path = self.folder / name
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
        return str(path)

    def ours(self, hypotheses, references, tokenize, width):
        words = [self.program, "score", hypotheses, *references, "--tokenize", tokenize, "--width", str(width)]
        result = subprocess.run(words, capture_output=True, text=True, timeout=120)
        return result.stdout if result.returncode == 0 else f"status {result.returncode}: {result.stderr}"

    def compare(self, what, theirs, ours):
        self.outputs.add(ours)
        if theirs == ours:
            self.same += 1
            return
        self.failures += 1
        print(f"FAILED {what}:\n  sacrebleu\n{theirs}  ours\n{ours}")


def their_program(hypotheses, references, tokenize, width):
    words = [sys.executable, "-m", "sacrebleu", *references, "-i", hypotheses, "-m", "bleu", "chrf", "--format", "text",
             "--width", str(width), "--tokenize", tokenize, "--force"]
    environment = {**os.environ, "NO_COLOR": "1"}
    environment.pop("SACREBLEU_FORMAT", None)
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=300, env=environment).stdout


def their_library(hypotheses, references, tokenize, width):
    lines = []
    for metric in (BLEU(tokenize=tokenize, force=True), CHRF()):
        score = metric.corpus_score(hypotheses, references)
        lines.append(score.format(width=width, signature=str(metric.get_signature())))
    most = max(line.index("=") for line in lines)
    return "".join(" " * (most - line.index("=")) + line + "\n" for line in lines)


def perturbed(sentence, chance, choose):
    """With words left out, doubled, swapped and in capitals."""
    words = sentence.split(" ")
    for i in range(len(words)):
        if choose.random() < chance:
            other = choose.randrange(len(words))
            words[i] = choose.choice(["", words[i] + " " + words[i], words[i].upper(), words[other], words[i][:-1]])
    if choose.random() < chance:
        choose.shuffle(words)
    return " ".join(words)


def compare_multi30k(comparison, choose):
    if not MULTI30K.is_dir():
        print(f"without Multi30k: no {MULTI30K}")
        return
    for language in ("de", "fr", "cs", "en"):
        packed = MULTI30K / f"test_2016_flickr.{language}.gz"
        sentences = gzip.open(packed, "rt", encoding="utf-8").read().splitlines()
        second = comparison.write("second", [perturbed(line, 0.3, choose) for line in sentences])
        for chance in (0.02, 0.1, 0.4, 0.95):
            hypotheses = comparison.write("hypotheses", [perturbed(line, chance, choose) for line in sentences])
            references = [str(packed), second] if chance == 0.1 else [str(packed)]
            options = ("none" if chance == 0.02 else "13a", 1 if chance == 0.95 else 8)
            comparison.compare(f"Multi30k {language}, {chance} perturbed", their_program(hypotheses, references, *options),
                               comparison.ours(hypotheses, references, *options))


def odd_line(choose):
    pieces = []
    for _ in range(choose.choice([0, 1, 3, 8, 15, 25])):
        kind = choose.choice([WORDS, WORDS, WORDS, NUMBERS, MARKS, ENTITIES, EMOJI, NEARLY_SPACE, None])
        piece = choose.choice(kind) if kind else chr(choose.choice([0x20, 0x80, 0x250, 0x1e00, 0x2c00, 0xa640, 0x10400])
                                                     + choose.randrange(0x60))
        pieces.append(piece)
        # Mostly a blank: otherwise hardly a word is alike.
        pieces.append(choose.choice([" ", " ", " ", "", "", choose.choice(WHITE_SPACE)]))
    return "".join(pieces).replace("\n", " ")


def odd_variant(line, choose):
    """A line with much in common."""
    parts = line.split(" ")
    for i in range(len(parts)):
        if choose.random() < 0.25:
            parts[i] = choose.choice([parts[i].swapcase(), odd_line(choose), parts[i] + ".", parts[i][1:], ""])
    return choose.choice([" ", " ", "\u00a0", "  "]).join(parts)


def compare_odd_lines(comparison, choose):
    for number in range(CORPORA):
        hypotheses = [odd_line(choose) for _ in range(choose.choice([1, LINES, LINES, 2 * LINES]))]
        references = [[odd_variant(line, choose) for line in hypotheses] for _ in range(choose.choice([1, 1, 2, 3]))]
        options = (choose.choice(["13a", "13a", "none"]), choose.choice([1, 2, 4, 9]))
        paths = [comparison.write(f"reference{i}", lines) for i, lines in enumerate(references)]
        comparison.compare(f"odd lines {number}, {options}: {hypotheses} {references}",
                           their_library(hypotheses, references, *options),
                           comparison.ours(comparison.write("hypotheses", hypotheses), paths, *options))


def main():
    assert len(WHITE_SPACE) == 29, "Python's white space"
    choose = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(sys.argv[1], folder)
        compare_multi30k(comparison, choose)
        compare_odd_lines(comparison, choose)
    if len(comparison.outputs) < comparison.same // 2:
        print(f"FAILED: only {len(comparison.outputs)} different outputs")
        comparison.failures += 1
    print(f"sacreBLEU 2.6.0: {comparison.same} outputs equal, {comparison.failures} failures")
    sys.exit(1 if comparison.failures else 0)


if __name__ == "__main__":
    main()
