#!/usr/bin/env python3
"""`stagecoach translate` beside CTranslate2 with the same weights, float32, one thread each.

    bench/translate_bench.py WEIGHTS INPUT REFERENCE --tokenizer pieces.model [--job-file job.yaml] [--beam 5] [--rounds 3]

WEIGHTS is a folder with safetensors files, exported or a checkpoint's, of a `transformer` with norm `pre`, activation
`relu` and sinusoidal positions. Rounds alternate. Ours is the time of the whole process; CTranslate2's is
translate_batch alone, without loading and without tokenising. Prints seconds, target tokens a second, BLEU of both and
how many translations are equal. Packages come from PyPI.
"""
import argparse
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
from statistics import median

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import pypi  # noqa: E402

PACKAGES = ["ctranslate2==4.8.5", "sentencepiece==0.2.3", "sacrebleu==2.6.0", "numpy"]


def read_weights(folder):
    """arrays by global name, of all safetensors files of a folder"""
    import numpy
    arrays = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        for name, entry in json.loads(data[8:8 + length]).items():
            if not name.startswith("model/") or entry["dtype"] != "F32":
                continue
            begin, end = entry["data_offsets"]
            arrays[name] = numpy.frombuffer(data[8 + length + begin:8 + length + end], "<f4").reshape(entry["shape"])
    return arrays


class Layers:
    """the arrays by layer, in order"""

    def __init__(self, arrays):
        self.arrays = arrays

    def get(self, layer, name):
        return self.arrays.get(f"model/{layer:04d}/{name}")

    def set(self, target, layer, name):
        target.weight = self.get(layer, name + ".weight")
        bias = self.get(layer, name + ".bias")
        if bias is not None:
            target.bias = bias

    def set_norm(self, target, layer, name):
        target.gamma = self.get(layer, name + "weight")
        target.beta = self.get(layer, name + "bias")


def sinusoids(context, width):
    import numpy
    angles = numpy.arange(context)[:, None] * numpy.exp(-math.log(10000) * numpy.arange(0, width, 2) / width)[None, :]
    table = numpy.zeros((context, width), "f4")
    table[:, 0::2], table[:, 1::2] = numpy.sin(angles), numpy.cos(angles)
    return table


def convert(arrays, pieces, heads, context, folder):
    """writes the model for CTranslate2"""
    from ctranslate2 import specs
    layers = Layers(arrays)
    # embedding, 2 layers for each of the encoder, norm, embedding, 3 for each of the decoder, norm, linear
    attentions = [name for name in arrays if name.endswith("/attention.qkv.weight")]
    decoders = len([name for name in arrays if name.endswith("/cross_attention.q.weight")])
    encoders = len(attentions) - decoders
    spec = specs.TransformerSpec.from_config((encoders, decoders), heads, pre_norm=True,
                                             activation=specs.Activation.RELU)
    source = layers.get(0, "token.weight")
    width = source.shape[1]
    target_at = 2 * encoders + 2
    target = layers.get(target_at, "token.weight")
    target = source if target is None else target
    output = layers.get(target_at + 3 * decoders + 2, "weight")
    spec.encoder.embeddings[0].weight, spec.decoder.embeddings.weight = source, target
    spec.decoder.projection.weight = target if output is None else output
    for half in (spec.encoder, spec.decoder):
        half.position_encodings.encodings = sinusoids(context, width)
        half.scale_embeddings = True
    for i, layer in enumerate(spec.encoder.layer):
        at = 1 + 2 * i
        layers.set_norm(layer.self_attention.layer_norm, at, "layer_norm.")
        layers.set(layer.self_attention.linear[0], at, "attention.qkv")
        layers.set(layer.self_attention.linear[1], at, "attention.proj")
        feed_forward(layers, layer.ffn, at + 1)
    layers.set_norm(spec.encoder.layer_norm, target_at - 1, "")
    for i, layer in enumerate(spec.decoder.layer):
        at = target_at + 1 + 3 * i
        layers.set_norm(layer.self_attention.layer_norm, at, "layer_norm.")
        layers.set(layer.self_attention.linear[0], at, "attention.qkv")
        layers.set(layer.self_attention.linear[1], at, "attention.proj")
        layers.set_norm(layer.attention.layer_norm, at + 1, "layer_norm.")
        for place, name in enumerate(("q", "kv", "proj")):
            layers.set(layer.attention.linear[place], at + 1, "cross_attention." + name)
        feed_forward(layers, layer.ffn, at + 2)
    layers.set_norm(spec.decoder.layer_norm, target_at + 3 * decoders + 1, "")
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = 1e-5
    spec.validate()
    pathlib.Path(folder).mkdir()
    spec.save(folder)


def feed_forward(layers, target, at):
    layers.set_norm(target.layer_norm, at, "layer_norm.")
    layers.set(target.linear_0, at, "mlp.up")
    layers.set(target.linear_1, at, "mlp.down")


def lines_of(text):
    return text.removesuffix("\n").split("\n")


def ours(options):
    command = [options.program, "translate", options.weights, options.input, "--tokenizer", options.tokenizer, "--threads",
               "1", "--beam", str(options.beam), "--length-penalty", "0", "--batch", str(options.batch)]
    if options.job_file:
        command += ["--job-file", options.job_file]
    began = time.monotonic()
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.monotonic() - began, lines_of(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("weights", "input", "reference"):
        parser.add_argument(name)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--job-file")
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "stagecoach"))
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pypi.enter(ROOT / "build", "translate", PACKAGES)
    import ctranslate2
    import sacrebleu
    import sentencepiece

    tokenizer = sentencepiece.SentencePieceProcessor(model_file=options.tokenizer)
    pieces = [tokenizer.id_to_piece(i) for i in range(tokenizer.get_piece_size())]
    sentences = lines_of(pathlib.Path(options.input).read_text(encoding="utf-8"))
    references = lines_of(pathlib.Path(options.reference).read_text(encoding="utf-8"))
    sources = [tokenizer.encode(line, out_type=str) for line in sentences]
    with tempfile.TemporaryDirectory() as folder:
        convert(read_weights(options.weights), pieces, options.heads, options.context, folder + "/model")
        translator = ctranslate2.Translator(folder + "/model", compute_type="float32", inter_threads=1, intra_threads=1)
        seconds = {"stagecoach": [], "CTranslate2": []}
        for _ in range(options.rounds):
            took, own = ours(options)
            seconds["stagecoach"].append(took)
            began = time.monotonic()
            results = translator.translate_batch(sources, beam_size=options.beam, max_batch_size=options.batch,
                                                 length_penalty=0, max_decoding_length=options.context)
            seconds["CTranslate2"].append(time.monotonic() - began)
    if len(own) != len(results):
        sys.exit(f"{len(own)} translations of ours, {len(results)} of CTranslate2")
    theirs = [tokenizer.decode(result.hypotheses[0]) for result in results]
    tokens = {"stagecoach": sum(len(tokenizer.encode(line)) for line in own),
              "CTranslate2": sum(len(result.hypotheses[0]) for result in results)}
    print(f"| {len(sentences)} sentences, beam {options.beam}, batches of {options.batch} | seconds | tokens/s | BLEU |")
    print("| --- | --- | --- | --- |")
    for name, lines in (("stagecoach", own), ("CTranslate2", theirs)):
        took = median(seconds[name])
        bleu = sacrebleu.corpus_bleu(lines, [references]).score
        print(f"| {name} | {took:.2f} | {tokens[name] / took:.0f} | {bleu:.1f} |")
    ratios = [b / a for a, b in zip(seconds["stagecoach"], seconds["CTranslate2"])]
    same = sum(a == b for a, b in zip(own, theirs))
    print(f"\nCTranslate2 {ctranslate2.__version__}'s time over ours, median of {options.rounds} rounds: {median(ratios):.2f}; "
          f"{same} of {len(own)} translations are equal")


if __name__ == "__main__":
    main()
