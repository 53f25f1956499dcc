#!/usr/bin/env python3
"""Folders of Hugging Face's BERT: `stagecoach import`, training on masked tokens, adapters, and back.

usage: bert_folders.py STAGECOACH BUILD_FOLDER

The library `transformers` writes the folder of a small BertForMaskedLM with random weights and a WordPiece tokenizer. The
imported job, with no dropout, is trained for five steps on K = 1, 2, 3 and 4 stages: losses within 1e-4 of PyTorch's AdamW
on the same masks, which are made here by docs/formats.md, one digest. The library loads what `export` writes. The same
with adapters (LoRA), beside the library `peft`. Exit status: 0 equal, 1 not, 77 PyTorch or PyPI are not to be had.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import huggingface_folders as folders  # before what comes with it

import numpy as np
import peft
import tokenizers
import torch

import operations

transformers = folders.transformers
CONTEXT, SHARE, SEED, STEPS, BATCH = 48, 0.4, 1, 5, 4
BERT = {"initializer_range": 0.2, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 3, "num_attention_heads": 4,
        "max_position_embeddings": CONTEXT, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
LINES = ["The stage coach rolls from town to town,", "and no passenger is lost on the way!", "東京 naïve Straße don't",
         "[MASK] and ##town 1984", "the coach is full"]
UNCHANGED = -100  # PyTorch's target that does not count


def make_folder(folder):
    tokenizer = tokenizers.BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(LINES * 4, vocab_size=150, min_frequency=1, show_progress=False)
    vocabulary = folder / "vocabulary"
    vocabulary.mkdir(parents=True)
    tokenizer.save_model(str(vocabulary))
    fast = transformers.BertTokenizerFast(str(vocabulary / "vocab.txt"))
    theirs = folder / "theirs"
    fast.save_pretrained(theirs)
    torch.manual_seed(3)
    model = transformers.BertForMaskedLM(transformers.BertConfig(**BERT, vocab_size=fast.vocab_size + 2, pad_token_id=fast.pad_token_id))
    with torch.no_grad():  # norms that are all ones, and biases of zero, would hide what is confused
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
    model.save_pretrained(theirs)
    return theirs, fast


def load(folder):
    return transformers.BertForMaskedLM.from_pretrained(folder, attn_implementation="eager").float().train()


def ids_of(tokenizer, lines):
    """Each line by itself, with the end behind it."""
    return [i for line in lines for i in [*tokenizer(line, add_special_tokens=False).input_ids, tokenizer.sep_token_id]]


def text_of(tokenizer):
    """Lines of one sequence: the tokens of the context but for the first, and at least one more."""
    lines = []
    while len(ids_of(tokenizer, lines)) < CONTEXT:
        lines.append(LINES[len(lines) % len(LINES)])
    if len(ids_of(tokenizer, lines)) > 2 * (CONTEXT - 1):
        raise folders.Wrong("the text has two sequences")
    return lines


def masked(tokenizer, tokens, sample, epoch):
    """What the network reads of a sequence in that epoch, and its targets."""
    rows = np.arange(len(tokens), dtype=np.uint64)
    words = operations.philox((rows, sample, epoch, 0x3A5C0000), (SEED, 0))
    inputs, targets = [tokenizer.cls_token_id], [UNCHANGED]
    for token, (chosen, how, other, _) in zip(tokens, words.tolist(), strict=True):
        if token in tokenizer.all_special_ids or chosen >= int(SHARE * 2**32):
            inputs.append(token)
            targets.append(UNCHANGED)
            continue
        targets.append(token)
        inputs.append(tokenizer.mask_token_id if how < 0xCCCCCCCC else other * len(tokenizer) >> 32 if how < 0xE6666666 else token)
    return inputs, targets


def batches(tokenizer, lines):
    tokens = ids_of(tokenizer, lines)[:CONTEXT - 1]
    for step in range(STEPS):
        pairs = [masked(tokenizer, tokens, 0, step * BATCH + i) for i in range(BATCH)]
        yield tuple(torch.tensor(part) for part in zip(*pairs, strict=True))


def losses(model, tokenizer, lines):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW([{"params": [p for p in trained if p.dim() > 1], "weight_decay": 0.01},
                                   {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0}],
                                  lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    found = []
    for inputs, targets in batches(tokenizer, lines):
        optimizer.zero_grad()
        loss = model(input_ids=inputs, labels=targets).loss
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def logits(model, tokenizer, lines):
    with torch.no_grad():
        return model(input_ids=next(batches(tokenizer, lines))[0]).logits


class Trained:
    """As huggingface_folders.Library, for compare_training."""

    def __init__(self, model, tokenizer, lines):
        self.model, self.tokenizer, self.lines = model, tokenizer, lines

    def losses(self, _, steps):
        assert steps == STEPS
        return losses(self.model, self.tokenizer, self.lines)


def compare(folder):
    theirs, tokenizer = make_folder(folder)
    lines = text_of(tokenizer)
    text = folder / "text.txt"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    folders.run("import", theirs, "--to", folder / "job.yaml", "--text", text)
    path = folders.training_job(folder / "job.yaml", text, folder)
    job = json.loads(path.read_text())
    job["data"]["text"]["masked"] = SHARE
    path.write_text(json.dumps(job))
    trained = Trained(load(theirs), tokenizer, lines)
    folders.compare_training("BERT", folder, trained, path, None)
    exported = folder / "exported"
    folders.run("export", folder / "run-2", "--names", "huggingface", "--to", exported)
    folders.close("BERT, exported: logits", logits(load(exported), tokenizer, lines), logits(trained.model, tokenizer, lines), 1e-3)
    again = transformers.AutoTokenizer.from_pretrained(exported)
    folders.check("BERT, exported: tokens", ids_of(again, lines), ids_of(tokenizer, lines))
    compare_adapters(folder, theirs, tokenizer, lines, job)
    refused = subprocess.run([folders.STAGECOACH, "generate", exported, "--prompt", "a"], capture_output=True, text=True)
    if refused.returncode == 0 or "learns masked tokens" not in refused.stderr:
        raise folders.Wrong(f"generate does not refuse a BERT: {refused.stderr!r}")


def compare_adapters(folder, theirs, tokenizer, lines, job):
    """As huggingface_folders.compare_adapters."""
    job["training"]["lora"] = {"rank": 2, "alpha": 6, "targets": ["query", "value", "up"]}
    adapters, first = folder / "adapters.json", folder / "first.json"
    adapters.write_text(json.dumps(job))
    job["training"] |= {"steps": 1, "learning_rate": {"constant": {"peak": 1e-30}}}
    first.write_text(json.dumps(job))
    folders.run("local", "--stages", 1, "--state-dir", folder / "first", first)
    folders.run("export", folder / "first", "--names", "peft", "--to", folder / "peft-first")
    model = peft.PeftModel.from_pretrained(load(theirs), folder / "peft-first", is_trainable=True)
    runs = folder / "adapted"
    runs.mkdir()
    folders.compare_training("BERT, adapters", runs, Trained(model, tokenizer, lines), adapters, None, most_stages=3)
    folders.run("export", runs / "run-2", "--names", "peft", "--to", folder / "peft")
    folders.run("export", runs / "run-2", "--names", "huggingface", "--to", folder / "merged")
    ours = peft.PeftModel.from_pretrained(load(theirs), folder / "peft")
    folders.close("BERT, adapters merged: logits", logits(load(folder / "merged"), tokenizer, lines), logits(ours, tokenizer, lines), 1e-5)
    folders.close("BERT, adapters: logits", logits(ours, tokenizer, lines), logits(model, tokenizer, lines), 1e-3)


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            compare(pathlib.Path(folder))
        except folders.Wrong as wrong:
            print(f"FAILED {wrong}")
            sys.exit(1)
    print(f"transformers {transformers.__version__}, PyTorch {torch.__version__}: equal")


if __name__ == "__main__":
    main()
