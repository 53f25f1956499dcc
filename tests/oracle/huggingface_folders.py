#!/usr/bin/env python3
"""Folders of Hugging Face: `stagecoach import`, `generate` and `perplexity` of one, training on from it, and back.

usage: huggingface_folders.py STAGECOACH BUILD_FOLDER

The library `transformers` writes folders of small models with random weights and a tokenizer. Of each, the greedy text has
to be the library's token by token, also on two stages, and so has the perplexity of a text. The imported job is trained for five steps on
K = 1, 2, 3 and 4 stages: losses within 1e-4 of PyTorch's AdamW, one digest. What `export --names huggingface` writes has to
load in the library, with the greedy text and the perplexity that our own weights have. Of two models the same with adapters
(LoRA), beside the library `peft`, which has to load what `export --names peft` writes. The libraries come from PyPI into a
virtual environment beside the PyTorch that is installed. Exit status: 0 equal, 1 not, 77 PyTorch or PyPI are not to be had.
"""

import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import transformers_library  # before what comes with it

import peft
import safetensors
import tokenizers
import torch

transformers = transformers_library.transformers
STAGECOACH = pathlib.Path(sys.argv[1]).resolve()
WORDS = "the stage coach rolls from town to town and no passenger is lost on the way 1984 naïve Straße 東京 👍 don't".split()
PROMPTS = ["the stage coach", "no passenger is\n\n lost", "naïve 東京 👍"]
VOCABULARY, CONTEXT, NEW_TOKENS = 320, 48, 24
SMALL = {"vocab_size": VOCABULARY, "initializer_range": 0.3}
LLAMA = {**SMALL, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": CONTEXT, "tie_word_embeddings": False}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
GPT2 = {**SMALL, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": CONTEXT, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
        "attn_pdrop": 0.0}
# The library's configuration and model, what is set, and how the folder is saved.
MODELS = {
    "GPT-2": ("GPT2Config", "GPT2LMHeadModel", GPT2, {}),
    "Llama, grouped heads, shards": ("LlamaConfig", "LlamaForCausalLM", {**LLAMA, "rms_norm_eps": 1e-5},
                                     {"max_shard_size": "40KB"}),
    "Llama 3, tied": ("LlamaConfig", "LlamaForCausalLM",
                      {**LLAMA, "tie_word_embeddings": True, "rope_theta": 5e5, "rope_scaling": LLAMA3}, {}),
    "Mistral": ("MistralConfig", "MistralForCausalLM", {**LLAMA, "sliding_window": CONTEXT}, {}),
    "Qwen2": ("Qwen2Config", "Qwen2ForCausalLM", LLAMA, {}),
    "Qwen3, tied": ("Qwen3Config", "Qwen3ForCausalLM", {**LLAMA, "head_dim": 10, "tie_word_embeddings": True}, {}),
}
# Models that are trained with adapters too, and the layers that have one.
ADAPTED = {"GPT-2": ["qkv", "proj", "up"], "Llama, grouped heads, shards": ["query", "value", "proj", "gate", "down"]}


class Wrong(Exception):
    pass


def check(what, ours, truth):
    if ours != truth:
        raise Wrong(f"{what}: {ours!r}, and the library has {truth!r}")


def near(what, ours, truth, tolerance):
    if not abs(ours - truth) <= tolerance * abs(truth):
        raise Wrong(f"{what}: {ours!r}, and the library has {truth!r}")


def close(what, ours, truth, tolerance):
    """Of arrays: by their largest number."""
    difference = ((ours - truth).abs().max() / truth.abs().max()).item()
    if not difference <= tolerance:
        raise Wrong(f"{what}: differs by {difference} of the largest number from the library's")


def run(*arguments):
    result = subprocess.run([STAGECOACH, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        raise Wrong(f"stagecoach {' '.join(map(str, arguments))}: {result.stderr.strip()}")
    return result.stdout


def make_tokenizer():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=VOCABULARY - 8, special_tokens=["<|endoftext|>"], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([" ".join(WORDS)] * 4, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")


class Library:
    """A model of the library, in a folder."""

    def __init__(self, folder):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder).float().eval()

    def ids(self, text):
        return self.tokenizer(text, return_tensors="pt").input_ids

    def greedy(self, prompt):
        """The text behind the prompt. The library's own generate() does not run with Debian's PyTorch 1.13."""
        ids = self.ids(prompt)
        new = []
        while len(new) < NEW_TOKENS:
            new.append(self.model(torch.cat([ids, torch.tensor([new], dtype=torch.long)], dim=1)).logits[0, -1].argmax().item())
            if new[-1] == self.tokenizer.eos_token_id:
                new.pop()
                break
        return self.tokenizer.decode(new, clean_up_tokenization_spaces=False)

    def loss(self, ids):
        """Mean over the tokens behind the first."""
        return torch.nn.functional.cross_entropy(self.model(input_ids=ids[:, :-1]).logits[0], ids[0, 1:])

    def losses(self, ids, steps):
        matrices = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() == 1]
        optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0}],
                                      lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = self.loss(ids)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses


def text_of(tokenizer, tokens):
    """A text of so many tokens."""
    generator = torch.Generator().manual_seed(5)
    words = [WORDS[i] for i in torch.randint(len(WORDS), (4 * tokens,), generator=generator).tolist()]
    text = "the\n"
    for word in words:
        longer = f"{text}{word} " if len(text) % 7 else f"{text}{word}\r\n"
        if len(tokenizer(longer.rstrip()).input_ids) > tokens:
            break
        text = longer
    text = text.rstrip()
    while len(tokenizer(text).input_ids) < tokens:
        text += "!"
    if len(tokenizer(text).input_ids) != tokens:
        raise Wrong(f"no text of {tokens} tokens")
    return text


def compare_text(what, source, library, file):
    for prompt in PROMPTS:
        ours = json.loads(run("generate", source, "--prompt", prompt, "--tokens", NEW_TOKENS, "--temperature", 0, "-o", "json"))
        check(f"{what}: greedy text of {prompt!r}", ours["text"], library.greedy(prompt))
    ids = library.ids(file.read_bytes().decode())
    ids = torch.cat([ids, torch.tensor([[library.tokenizer.eos_token_id]])], dim=1)  # the end of a text
    ours = json.loads(run("perplexity", source, file, "-o", "json"))
    near(f"{what}: loss", ours["loss"], library.loss(ids).item(), 1e-5)
    near(f"{what}: perplexity", ours["perplexity"], math.exp(library.loss(ids).item()), 1e-4)


def as_in_the_hubs_cache(source, folder):
    """A folder whose files are links to blobs outside."""
    snapshot, blobs = folder / "snapshots" / "0", folder / "blobs"
    for new in (snapshot, blobs):
        new.mkdir(parents=True)
    for file in source.iterdir():
        shutil.copy(file, blobs / file.name)
        (snapshot / file.name).symlink_to(pathlib.Path("..", "..", "blobs", file.name))
    return snapshot


def training_job(job_file, text, folder):
    """The imported job with five steps on all of the text."""
    job = json.loads(run("validate", "--data-elsewhere", job_file, "-o", "json"))
    job["data"]["text"]["test"] = str(text)
    job["training"] |= {"steps": 5, "batch_size": 4, "micro_batches": 2, "learning_rate": {"constant": {"peak": 1e-3}}}
    job["training"].pop("gradient_clip_norm")
    job["evaluation"] = {}
    path = folder / "training.json"
    path.write_text(json.dumps(job))
    return path


def compare_training(name, folder, library, job, ids, most_stages=4):
    truth = library.losses(ids, 5)
    digests = set()
    for stages in range(1, most_stages + 1):
        state = folder / f"run-{stages}"
        events = [json.loads(line) for line in run("local", "--stages", stages, "--threads-per-stage", 1, "--state-dir", state,
                                                   "-o", "ndjson", job).splitlines()]
        losses = [event["loss"] for event in events if event["event"] == "step"]
        for step, (ours, theirs) in enumerate(zip(losses, truth, strict=True)):
            near(f"{name}: loss of step {step} on {stages} stages", ours, theirs, 1e-4)
        digests.add(next(event["weights_digest"] for event in events if event.get("weights_digest")))
    check(f"{name}: digests of 1 to {most_stages} stages", len(digests), 1)


def stored(folder):
    """Names of the tensors that the run exported."""
    names = []
    for file in folder.glob("exports/*/model.safetensors"):
        with safetensors.safe_open(file, "pt") as tensors:
            names += tensors.keys()
    return names


def adapted(folder, adapters):
    """The folder's model with these adapters, as peft loads it."""
    library = Library(folder)
    library.model = peft.PeftModel.from_pretrained(library.model, adapters, is_trainable=True)
    return library


def compare_adapters(name, folder, job, text, ids):
    """As compare_training, and from the same first adapters: those of a job whose learning rate is as good as none."""
    theirs = folder / "theirs"
    job = json.loads(job.read_text())
    job["training"]["lora"] = {"rank": 2, "alpha": 6, "targets": ADAPTED[name]}
    adapters, first = folder / "adapters.json", folder / "first.json"
    adapters.write_text(json.dumps(job))
    job["training"] |= {"steps": 1, "learning_rate": {"constant": {"peak": 1e-30}}}
    first.write_text(json.dumps(job))
    run("local", "--stages", 1, "--state-dir", folder / "first", first)
    run("export", folder / "first", "--names", "peft", "--to", folder / "peft-first")
    library = adapted(theirs, folder / "peft-first")
    runs = folder / "adapted"
    runs.mkdir()
    compare_training(f"{name}, adapters", runs, library, adapters, ids, most_stages=3)
    ours = runs / "run-2"
    check(f"{name}: arrays that are not adapters'", [array for array in stored(ours) if ".lora_" not in array], [])
    run("export", ours, "--names", "peft", "--to", folder / "peft")
    run("export", ours, "--names", "huggingface", "--to", folder / "merged")
    trained, merged = adapted(theirs, folder / "peft"), Library(folder / "merged")
    close(f"{name}: logits, merged", *(model.model(input_ids=ids[:, :-1]).logits for model in (merged, trained)), 1e-5)
    for (parameter, value), truth in zip(trained.model.named_parameters(), library.model.parameters(), strict=True):
        close(f"{name}: {parameter}", value, truth, 1e-3)
    compare_text(f"{name}, adapters", ours, trained, text)
    on_stages = json.loads(run("generate", ours, "--prompt", PROMPTS[1], "--tokens", NEW_TOKENS, "--temperature", 0, "-o", "json",
                               "--local-stages", 2, "--threads", 2))
    check(f"{name}, adapters on two stages: greedy text", on_stages["text"], trained.greedy(PROMPTS[1]))


def compare(name, folder):
    config, model, settings, saving = MODELS[name]
    torch.manual_seed(3)
    model = getattr(transformers, model)(getattr(transformers, config)(**settings))
    with torch.no_grad():  # norms that are all ones, and biases of zero, would hide what is confused
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
    theirs = folder / "theirs"
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(theirs)
    model.config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(theirs, **saving)
    library = Library(theirs)
    text = folder / "text.txt"
    text.write_text(text_of(tokenizer, CONTEXT), encoding="utf-8", newline="")
    compare_text(f"{name}, the folder", theirs, library, text)
    snapshot = as_in_the_hubs_cache(theirs, folder / "cache")
    on_stages = json.loads(run("generate", snapshot, "--prompt", PROMPTS[1], "--tokens", NEW_TOKENS, "--temperature", 0, "-o", "json",
                               "--local-stages", 2, "--threads", 2))
    check(f"{name}, the folder on two stages: greedy text", on_stages["text"], library.greedy(PROMPTS[1]))
    run("import", theirs, "--to", folder / "job.yaml", "--text", text)
    ids = torch.cat([library.ids(text.read_bytes().decode()), torch.tensor([[tokenizer.eos_token_id]])], dim=1)
    compare_training(name, folder, library, training_job(folder / "job.yaml", text, folder), ids)
    exported = folder / "exported"
    run("export", folder / "run-2", "--names", "huggingface", "--to", exported)
    compare_text(f"{name}, exported", folder / "run-2", Library(exported), text)
    compare_text(f"{name}, exported and read", exported, Library(exported), text)
    if name in ADAPTED:
        compare_adapters(name, folder, folder / "training.json", text, ids)


def main():
    torch.set_num_threads(1)
    check("models with adapters that are none of the models", sorted(set(ADAPTED) - set(MODELS)), [])
    failures = 0
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                compare(name, pathlib.Path(folder))
            except Wrong as wrong:
                failures += 1
                print(f"FAILED {name}: {wrong}")
    print(f"transformers {transformers.__version__}, PyTorch {torch.__version__}: {len(MODELS)} models, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
