#!/usr/bin/env python3
"""Compares ids and texts of tokenizer.json files with those of PyPI's library `tokenizers`.

usage: tokenizers_ids.py STAGECOACH_ORACLE BUILD_FOLDER [LINES]

The library trains byte-level BPE tokenizers in the forms of GPT-2, RoBERTa, Llama 3, Qwen2, StarCoder, Mistral Nemo,
GPT-4o and DeepSeek, WordPiece in those of BERT, and some with odd settings. Seeded lines of many scripts, emoji, marks, control characters and
special tokens have the same ids there and here, and the same text comes back, also of random ids. All characters of
Unicode go through the tokenizers too. LINES: of all forms together, 8,000 if not given. Exit status: 0 equal, 1 not, 77 PyPI is
not to be had.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import pypi  # noqa: E402

if len(sys.argv) not in (3, 4):
    sys.exit(__doc__.split("\n\n")[1])
VERSION = "0.23.3"
pypi.enter(pathlib.Path(sys.argv[2]).resolve(), "tokenizers", [f"tokenizers=={VERSION}"], dependencies=False)

import json  # noqa: E402
import random  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers  # noqa: E402
from tokenizers import pre_tokenizers, processors, trainers  # noqa: E402
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split  # noqa: E402

SEED = 41
# Forms whose steps differ; others get an eighth of all characters.
ALL_CHARACTERS = ("gpt2", "llama3", "qwen2", "starcoder", "nemo", "o200k", "deepseek", "odd", "isolated True",
                  "bert uncased", "bert cased", "bert multilingual", "bert odd")
LINES = int(sys.argv[3]) if len(sys.argv) == 4 else 8_000

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
NEMO = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = "|".join(["".join([r"[^\r\n\p{L}\p{N}]?", letters, r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"]) for letters in
                  (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
                   r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*")]
                 + [r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

WORDS = ["the", "The", "cat", "unhappily", "don't", "I'll", "WE'VE", "they'RE", "it'\u017f", "x'\u212a", "1984", "3.14",
         "1,000,000", "Straße", "naïve", "e\u0301", "\u00e9", "\u1e9b\u0323", "русский", "текст", "ΌΣΟΣ", "İstanbul",
         "東京", "都", "ひらがな", "カタカナ", "한국어", "\u1112\u1161\u11ab", "שלום", "مرحبا", "नमस्ते", "ภาษาไทย",
         "ქართული", "አማርኛ", "\ufb01nally", "Ａｂｃ", "½", "²", "Ⅳ", "٣٤", "𝟘𝟙", "𐐀𐐨", "ﷺ", "\U0001f642", "👩‍👩‍👧", "👍🏽",
         "🇩🇪", "❤️", "☃", "∑", "≠", "\u0301", "\u0345\u0301", "\u200d", "\u200b", "\ufeff", "\ufffd", "\ue000",
         "\U0010fffd", "\u1c89", "\U00010d4a", "\U0001ccf0", "\u1df9\u0301", "\u0378"]
SPACES = [" ", " ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n ", "\u00a0", "\u3000", "\u2028", "\u0085",
          "\x0b", "\x0c", "\u1680", " " * 17, " " * 200, ""]
SIGNS = ["\x01", "\x1b[0m", "\x7f", "\u009f", "...", "!?", "(", ")", "[", "]", "{", "}", "<", ">", "|", "_", "-", "--", "/",
         "\\", "'", "\"", "`", "#", "$", "%", "&", "*", "+", "=", "~", "^", "@", ":", ";", ",", ".", "—", "…", "。", "、", "«",
         "<|endoftext|>", "<|endoftext", "<|begin_of_text|>", "<|im_end|>", "<s>", "</s>", "<mask>", "<pad>", "tag",
         "[unused]", "[CLS]", "[SEP]", "[MASK]", "[mask]", "[PAD]", "[UNK]", "##ing", "n't", "do not", "<w>", "é+", "e\u0301+", "Ĝ", "Ġ", "Ċ", "â€™"]
BLOCKS = [0x21, 0xa1, 0x100, 0x250, 0x300, 0x370, 0x400, 0x530, 0x5d0, 0x620, 0x900, 0xe00, 0x10a0, 0x1100, 0x1e00, 0x2000,
          0x20a0, 0x2150, 0x2460, 0x3040, 0x4e00, 0xa640, 0xac00, 0xfb50, 0xfe00, 0xff00, 0x10400, 0x1d400, 0x1f300, 0x20000]


def line_of(choose):
    parts = []
    for _ in range(choose.choice([0, 1, 2, 4, 8, 12, 20])):
        kind = choose.randrange(10)
        if kind < 5:
            parts.append(choose.choice(WORDS))
        elif kind < 7:
            parts.append(choose.choice(SIGNS))
        elif kind == 7:
            parts.append(chr(choose.choice(BLOCKS) + choose.randrange(0x60)))
        elif kind == 8:
            parts.append(str(choose.randrange(10 ** choose.randrange(1, 9))))
        else:
            parts.append("".join(choose.choice("abcdeABC 01'") for _ in range(choose.randrange(12))))
        parts.append(choose.choice(SPACES))
    return "".join(parts)


def all_characters():
    """Every character of planes that have some but NUL, which ours refuses, between others; surrogates are none."""
    for first in [*range(0, 0x32000, 256), *range(0xe0000, 0xe0200, 256)]:
        characters = [chr(c) for c in range(max(first, 1), first + 256) if not 0xd800 <= c < 0xe000]
        if characters:
            yield "a1 ".join(characters)
            yield "".join(characters)
            yield "".join("q\u0301" + c + "\u0323" for c in characters)


def special(content, **options):
    return AddedToken(content, special=True, normalized=False, **options)


def trained(corpus, pre_tokenizer, normalizer=None, size=900, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                                              initial_alphabet=ByteLevel.alphabet()))
    return tokenizer


def split(pattern, behavior="isolated", invert=False):
    return Split(Regex(pattern), behavior, invert)


BYTES = ByteLevel(add_prefix_space=False, use_regex=False)


def forms(corpus):
    gpt2 = trained(corpus, ByteLevel(add_prefix_space=False))
    gpt2.add_special_tokens([special("<|endoftext|>")])
    yield "gpt2", gpt2

    roberta = trained(corpus, ByteLevel(add_prefix_space=True))
    roberta.add_special_tokens([special("<s>"), special("</s>"), special("<pad>"), special("<mask>", lstrip=True)])
    roberta.post_processor = processors.RobertaProcessing(("</s>", roberta.token_to_id("</s>")),
                                                          ("<s>", roberta.token_to_id("<s>")))
    yield "roberta", roberta

    llama3 = trained(corpus, Sequence([split(LLAMA3), BYTES]), size=1500, ignore_merges=True)
    llama3.add_special_tokens([special("<|begin_of_text|>"), special("<|end_of_text|>")])
    begin = llama3.token_to_id("<|begin_of_text|>")
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", begin)])])
    yield "llama3", llama3

    qwen2 = trained(corpus, Sequence([split(QWEN2), BYTES]), normalizers.NFC())
    qwen2.add_special_tokens([special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>")])
    qwen2.add_tokens([AddedToken("é+", normalized=True), AddedToken("tag", single_word=True, normalized=False)])
    yield "qwen2", qwen2

    starcoder = trained(corpus, Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]))
    starcoder.add_special_tokens([special("<|endoftext|>", rstrip=True), special("<w>", lstrip=True, rstrip=True)])
    yield "starcoder", starcoder

    nemo = trained(corpus, Sequence([split(NEMO), BYTES]), size=1200, ignore_merges=True)
    nemo.add_special_tokens([special("<s>"), special("</s>"), special("<pad>")])
    yield "nemo", nemo

    yield "o200k", trained(corpus, Sequence([split(O200K), BYTES]), size=1200)

    yield "deepseek", trained(corpus, Sequence([split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK), BYTES]))

    odd = trained(corpus, Sequence([split("[aeiou]", "merged_with_next"), split(r"\d", "contiguous"),
                                    Split("the", "removed"), ByteLevel(add_prefix_space=True), Digits(False)]),
                  normalizers.Sequence([normalizers.NFKD(), normalizers.NFC()]))
    odd.add_tokens([AddedToken("Straße", normalized=True, single_word=True), AddedToken("fi", normalized=True),
                    AddedToken("ﬁ", normalized=False, rstrip=True), AddedToken(" ", normalized=False, lstrip=True),
                    AddedToken("e\u0301+", normalized=True), AddedToken("Ａｂｃ", normalized=True)])
    yield "odd", odd

    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            yield f"{behavior} {invert}", trained(corpus, Sequence([split(r"[\w&&[^a-e]]+|\s??", behavior, invert), BYTES]),
                                                  normalizers.NFKC() if invert else normalizers.NFD(), size=400)

    # Pieces of bytes that are missing: other characters are unknown, or bytes.
    whole = json.loads(gpt2.to_str())
    for changes in ({}, {"unk_token": "<unk>"}, {"unk_token": "<unk>", "fuse_unk": True},
                    {"unk_token": "<unk>", "byte_fallback": True}):
        lacking = json.loads(json.dumps(whole))
        vocabulary = lacking["model"]["vocab"]
        gone = [piece for piece in "xyzä" if piece in vocabulary]
        lacking["model"]["merges"] = [pair for pair in lacking["model"]["merges"] if not set(gone) & set("".join(pair))]
        for old, new in zip(gone, ["<unk>", "<0xC5>", "<0x78>", "<0x79>"]):
            vocabulary[new] = vocabulary.pop(old)
        lacking["model"].update(changes)
        yield f"lacking {changes}", Tokenizer.from_str(json.dumps(lacking))

    # Merges as strings, as older versions write them.
    whole["model"]["merges"] = ["#version: 0.2"] + [" ".join(pair) for pair in whole["model"]["merges"]]
    yield "strings", Tokenizer.from_str(json.dumps(whole)), json.dumps(whole)


BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Each is cleaned up by itself.
ENGLISH = [".", "?", "!", ",", "'", "n't", "'m", "do not", "'s", "'ve", "'re", "a ' b . c n't 's do not", " .", "##.", "## ?"]


def bert(corpus, size=1500, prefix="##", most=100, cleanup=True, **rules):
    tokenizer = Tokenizer(models.WordPiece({}, unk_token="[UNK]", continuing_subword_prefix=prefix,
                                           max_input_chars_per_word=most))
    tokenizer.normalizer = normalizers.BertNormalizer(**rules)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=prefix, cleanup=cleanup)
    tokenizer.train_from_iterator(corpus, trainers.WordPieceTrainer(
        vocab_size=size, show_progress=False, special_tokens=BERT_TOKENS, continuing_subword_prefix=prefix))
    return tokenizer


def bert_forms(corpus):
    uncased = bert(corpus, lowercase=True)
    uncased.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, uncased.token_to_id(token)) for token in ("[CLS]", "[SEP]")])
    yield "bert uncased", uncased

    cased = bert(corpus, lowercase=False, strip_accents=False)
    cased.post_processor = processors.BertProcessing(("[SEP]", cased.token_to_id("[SEP]")),
                                                     ("[CLS]", cased.token_to_id("[CLS]")))
    yield "bert cased", cased

    # Every character of some blocks is in the corpus, so that few words are unknown.
    scripts = ["".join(chr(block + i) for i in range(first, first + 8)) for block in BLOCKS for first in range(0, 0x60, 8)]
    multilingual = bert(corpus + scripts, size=6000, lowercase=False)
    multilingual.add_special_tokens([special("[unused]", lstrip=True)])
    multilingual.add_tokens([AddedToken("Straße", normalized=True, single_word=True), AddedToken("tag", normalized=False)])
    yield "bert multilingual", multilingual

    odd = bert(corpus, size=900, prefix="é_", most=7, clean_text=False, handle_chinese_chars=False, strip_accents=True,
               lowercase=False)
    odd.add_tokens([AddedToken(text, normalized=False) for text in ENGLISH if odd.token_to_id(text) is None])
    yield "bert odd", odd

    # Added tokens are looked for in the normalized text too.
    english = bert(corpus, lowercase=True, strip_accents=False)
    english.add_tokens([AddedToken(text, normalized=True) for text in ENGLISH + ["İST", "É+"]
                        if english.token_to_id(text) is None])
    yield "bert english", english
    yield "bert without cleanup", bert(corpus + scripts, size=5000, prefix="", cleanup=False, lowercase=True)

    # Without the model's name, as older versions write it.
    untyped = json.loads(uncased.to_str())
    del untyped["model"]["type"]
    yield "bert untyped", Tokenizer.from_str(json.dumps(untyped)), json.dumps(untyped)


class Comparison:
    def __init__(self, program, folder):
        self.program, self.folder, self.failures, self.lines, self.ids = program, folder, 0, 0, 0

    def ours(self, file, asks):
        path = self.folder / "tokenizer.json"
        path.write_text(file, encoding="utf-8")
        text = "".join(json.dumps(ask) + "\n" for ask in asks)
        result = subprocess.run([self.program, "tokens", str(path)], input=text, capture_output=True, text=True,
                                encoding="utf-8", timeout=300)
        if result.returncode != 0:
            return result.stderr.strip(), None
        return "", [json.loads(line) for line in result.stdout.split("\n") if line]

    def compare(self, name, tokenizer, file, lines, random_ids):
        asks = [{"text": line} for line in lines] + [{"ids": ids} for ids in random_ids]
        error, answers = self.ours(file, asks)
        if error:
            return self.failed(name, error)
        encoded = tokenizer.encode_batch(lines, add_special_tokens=False)
        theirs = [encoding.ids for encoding in encoded] + random_ids
        texts = tokenizer.decode_batch(theirs, skip_special_tokens=False)
        for i, (answer, text) in enumerate(zip(answers, texts, strict=True)):
            if answer.get("ids", theirs[i]) != theirs[i] or answer["text"] != text:
                self.failed(name, f"{asks[i]!r}\n  theirs {theirs[i]} {text!r}\n  ours   {answer}")
        self.lines += len(asks)
        self.ids += sum(map(len, theirs))

    def failed(self, name, what):
        self.failures += 1
        if self.failures <= 20:
            print(f"FAILED {name}: {what[:1500]}")


def main():
    choose = random.Random(SEED)
    corpus = [line_of(choose) for _ in range(3000)]
    everything = list(all_characters())
    made = [(*form, form[1].to_str())[:3] for form in [*forms(corpus), *bert_forms(corpus)]]
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(sys.argv[1], pathlib.Path(folder))
        for i, (name, tokenizer, file) in enumerate(made):
            characters = everything if name in ALL_CHARACTERS else everything[i % 8::8]
            lines = [line_of(choose) for _ in range(LINES // len(made) + 1)]
            size = tokenizer.get_vocab_size()
            ids = [[choose.randrange(size) for _ in range(choose.randrange(30))] for _ in range(500)]
            comparison.compare(name, tokenizer, file, lines + characters, ids)
    print(f"tokenizers {VERSION}: {len(made)} tokenizers, {comparison.lines} lines with {comparison.ids} ids, "
          f"{comparison.failures} failures")
    sys.exit(1 if comparison.failures else 0)


if __name__ == "__main__":
    main()
