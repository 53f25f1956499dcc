#!/usr/bin/env python3
"""Training steps of a Llama, with and without adapters (LoRA), and its greedy text, beside PyTorch's on CPUs, in turn.

    bench/torch_llama.py --python PYTHON [--what step,adapters,generate] [--stages 1] [--precision float32] [--rounds 3]
                         [--batch 8] [--micro-batches 1 2 4] [--their-micro-batches 1 2] [--sides eager,compiled]
                         [--keep FOLDER] [--bin build/bin]

13 layers of width 512, hidden width 1536, 8 heads with 4 for keys, 8,192 tokens, 49 M parameters in a folder of Hugging
Face's; sequences of 256 tokens, AdamW. Adapters have rank 8 at all seven products of a block. Ours is `stagecoach local` with
K stages of one thread, nothing recomputed: seconds of a step. PyTorch (which --python has, with transformers and peft) is one
process of K threads: LlamaForCausalLM with AdamW fused, with bfloat16 under autocast; compiled is through torch.compile,
compiling not counted. `generate` is one thread, in the precision: seconds of a token, from texts of 16 and of 144 tokens, whole
`stagecoach generate` commands beside calls of generate() with its cache. A round runs all sides once; each has the
micro-batches that are fastest of those listed, found in a round that does not count. A line a side: the medians and the
median of the rounds' ratios. --keep: the folder stays for the next run.
"""
import argparse
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time
from statistics import median

ROOT = pathlib.Path(__file__).resolve().parent.parent
VOCABULARY, CONTEXT, RANK = 8192, 256, 8
LLAMA = {"vocab_size": VOCABULARY, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 13,
         "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5,
         "tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": None}
OUR_TARGETS = ["query", "key", "value", "proj", "gate", "up", "down"]
THEIR_TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
STEPS = 6  # the first two do not count
SHORT, LONG = 16, 144  # tokens of texts
PROMPT = "the stage coach rolls"


def child(options, *arguments):
    """The last line of what this program prints in a process of PyTorch's."""
    command = [options.python, __file__, "--python", "", *map(str, arguments)]
    done = subprocess.run(command, text=True, capture_output=True,
                          env=os.environ | {"OMP_NUM_THREADS": str(options.stages), "HF_HUB_OFFLINE": "1"})
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])["seconds"]


def make_folder(folder):
    """In PyTorch's process: the model with random weights, and a tokenizer."""
    import tokenizers
    import torch
    import transformers
    torch.manual_seed(1)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).save_pretrained(folder / "model")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator([PROMPT], tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<end>"], show_progress=False, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(str(folder / "model" / "tokenizer.json"))
    (folder / "model" / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    print(json.dumps({"seconds": 0}))


class Ours:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "model").exists():
            child(options, "--make", folder)
        ids = random.Random(1).choices(range(VOCABULARY), k=100_000)
        # llm.c's: a header of 256 numbers, then ids of two bytes.
        header = struct.pack("<256i", 20240520, 1, len(ids), *([0] * 253))
        (folder / "tokens.bin").write_bytes(header + struct.pack(f"<{len(ids)}H", *ids))

    def run(self, *command):
        done = subprocess.run([self.options.bin / "stagecoach", *map(str, command)], text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return done.stdout

    def step(self, micro_batches, adapters):
        options = self.options
        job = {"name": "bench", "seed": 1, "precision": options.precision,
               "model": {"llama": {"layers": LLAMA["num_hidden_layers"], "width": 512, "heads": 8, "key_heads": 4, "hidden": 1536,
                                   "context": CONTEXT, "vocabulary": VOCABULARY}},
               "initialize": {"from": str(self.folder / "model"), "names": "huggingface"},
               "data": {"token_file": {"files": [str(self.folder / "tokens.bin")]}},
               "training": {"steps": STEPS, "batch_size": options.batch, "micro_batches": micro_batches,
                            "optimizer": {"adamw": {}}, "learning_rate": {"constant": {"peak": 1e-4}}},
               "pipeline": {"stages": options.stages, "schedule": "one_forward_one_backward", "rematerialization": "never"}}
        if adapters:
            job["training"]["lora"] = {"rank": RANK, "alpha": 16, "targets": OUR_TARGETS}
        (self.folder / "job.json").write_text(json.dumps(job))
        with tempfile.TemporaryDirectory() as state:
            report = self.run("local", "--stages", options.stages, "--threads-per-stage", 1, "--state-dir", state, "-o",
                              "ndjson", self.folder / "job.json")
        events = [json.loads(line) for line in report.splitlines()]
        return median(e["step_seconds"] for e in events if e["event"] == "step" and e["step"] > 2)

    def generate(self):
        seconds = []
        for tokens in (SHORT, LONG):
            begin = time.perf_counter()
            self.run("generate", self.folder / "model", "--prompt", PROMPT, "--tokens", tokens, "--temperature", 0, "--threads", 1,
                     "--precision", self.options.precision)
            seconds.append(time.perf_counter() - begin)
        return (seconds[1] - seconds[0]) / (LONG - SHORT)


def train(options):
    """In PyTorch's process: prints the seconds of a step."""
    import peft
    import torch
    import transformers
    torch.set_num_threads(options.stages)
    torch.manual_seed(1)
    model = transformers.LlamaForCausalLM.from_pretrained(options.train / "model", dtype=torch.float32)
    if options.what == "adapters":
        model = peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_alpha=16, target_modules=THEIR_TARGETS))
    model.train()
    forward = torch.compile(model) if options.compile else model
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, fused=True)
    count = options.micro_batches[0]
    ids = torch.randint(VOCABULARY, (options.batch, CONTEXT + 1))
    seconds = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for part in ids.chunk(count):
            with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bfloat16"):
                logits = forward(input_ids=part[:, :-1], use_cache=False).logits
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten()) / count
            loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": median(seconds[2:])}))


def write(options):
    """In PyTorch's process: prints the seconds of a token of a greedy text."""
    import torch
    import transformers
    torch.set_num_threads(1)
    model = transformers.LlamaForCausalLM.from_pretrained(options.write / "model", dtype=getattr(torch, options.precision)).eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    seconds = []
    for tokens in (SHORT, SHORT, LONG):  # the first call does not count
        begin = time.perf_counter()
        model.generate(ids, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, use_cache=True)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": (seconds[2] - seconds[1]) / (LONG - SHORT)}))


def sides_of(options, ours, what):
    """By their names: a function of the micro-batches, and those to try."""
    if what == "generate":
        return {"stagecoach": (lambda _: ours.generate(), [1]),
                "transformers": (lambda _: child(options, "--write", ours.folder, "--precision", options.precision), [1])}
    sides = {"stagecoach": (lambda count: ours.step(count, what == "adapters"), options.micro_batches)}
    for side in options.sides.split(","):
        arguments = ["--train", ours.folder, "--what", what, "--stages", options.stages, "--batch", options.batch, "--precision",
                     options.precision, *(["--compile"] if side == "compiled" else [])]
        sides[side] = (lambda count, arguments=arguments: child(options, *arguments, "--micro-batches", count),
                       options.their_micro_batches)
    return sides


def compare(options, ours, what):
    sides = sides_of(options, ours, what)
    best = {}
    for side, (seconds, ways) in sides.items():
        tried = {way: seconds(way) for way in ways}
        best[side] = min(tried, key=tried.get)
        print(what, side, ", ".join(f"{way}: {took:.4f} s" for way, took in tried.items()), flush=True)
    rounds = [{side: seconds(best[side]) for side, (seconds, _) in sides.items()} for _ in range(options.rounds)]
    for side in sides:
        times = median(took[side] / took["stagecoach"] for took in rounds)
        print(f"{what}, {side} {best[side]}: {median(took[side] for took in rounds):.4f} s, {times:.2f} times stagecoach's", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--what", default="step,adapters,generate")
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--their-micro-batches", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sides", default="eager,compiled")
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    for name in ("make", "train", "write"):  # in PyTorch's process, with the folder
        parser.add_argument(f"--{name}", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        return make_folder(options.make)
    if options.train:
        return train(options)
    if options.write:
        return write(options)
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(options, options.keep or pathlib.Path(folder))
        for what in options.what.split(","):
            compare(options, ours, what)


if __name__ == "__main__":
    main()
