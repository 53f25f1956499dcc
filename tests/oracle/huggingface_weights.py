#!/usr/bin/env python3
"""Weights from Hugging Face's library transformers and for it: `initialize: {names: huggingface}` and an export.

usage: huggingface_weights.py STAGECOACH_ORACLE BUILD_FOLDER STAGECOACH

Models of the library with random weights are saved by its own save_pretrained, as one file and as shards, and
`stagecoach-oracle run` begins with the folder: its logits must be the library's within 1e-5 of the largest one, for one
and three stages. `stagecoach export --names huggingface` writes the same weights again. The library loads that folder
strictly, with every parameter's bits as they were. Exit status: 0 equal, 1 not, 77 PyTorch or PyPI are not to be had.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import transformers_library  # before what comes with it

import numpy as np
import torch

import networks
from transformers_models import MODELS, TOLERANCE, Bert, Model

transformers = transformers_library.transformers
NAMES = ["--names", "huggingface"]
SHARD = "20KB"  # several of each model


class Case:
    """One model, and beside it our network in a folder for files."""

    def __init__(self, oracle, stagecoach, name, folder):
        self.stagecoach, self.name, self.folder = stagecoach, name, folder
        self.model = Model(name)
        self.network = networks.Network(oracle, name, (self.model.family.ENTRY, None, self.model.fields, {}), folder)
        self.batch = networks.make_batch(self.model.fields, np.random.default_rng(11))
        networks.write_safetensors(folder / "batch.safetensors", self.batch)

    def save(self, model, name, **options):
        place = self.folder / name
        model.save_pretrained(place, **options)
        return place

    def logits(self, model):
        with torch.no_grad():
            return Model.logits_of(model, self.batch).logits.float().numpy()

    def ours(self, weights, stages):
        out = self.folder / "out.safetensors"
        out.unlink(missing_ok=True)  # it is never overwritten
        self.network.run("--weights", weights, *NAMES, "--batch", self.folder / "batch.safetensors", "--out", out,
                         "--evaluate", "--stages", stages)
        return networks.read_safetensors(out)[0]["output"]

    def export(self, weights):
        """Loaded into our names, and from there, as a job's export has them, into the library's again."""
        place, back = self.folder / "export", self.folder / "back"
        place.mkdir()
        self.network.run("--init", place / "model.safetensors", "--weights", weights, *NAMES)
        network, text = {self.model.family.ENTRY: self.model.fields}, {"path": "/none"}
        if self.model.family is Bert:
            network["objective"] = {"cross_entropy": {"ignore_index": 0}}
            text |= {"tokenizer": "/none.json", "masked": 0.15}
        job = {"name": "names", "model": network, "data": {"text": text},
               "training": {"steps": 1, "batch_size": 2, "micro_batches": 1, "optimizer": {"sgd": {}},
                            "learning_rate": {"constant": {"peak": 0.1}}}, "checkpoint": {"keep": 1}}
        (place / "stagecoach.json").write_text(json.dumps(job))
        command = [self.stagecoach, "export", place, *NAMES, "--to", back]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        return back


def numbers_of(model):
    """All parameters, in the order of their names."""
    parameters = dict(model.named_parameters())
    return np.concatenate([parameters[name].detach().numpy().ravel() for name in sorted(parameters)])


def compare(oracle, stagecoach, name, report, folder):
    case = Case(oracle, stagecoach, name, folder)
    model = case.model.model.eval()
    logits = case.logits(model)
    whole, sharded = case.save(model, "whole"), case.save(model, "sharded", max_shard_size=SHARD)
    if not (whole / "model.safetensors").exists() or len(list(sharded.glob("model-*.safetensors"))) < 2:
        sys.exit(f"{name}: the library has not saved one file and shards: {sorted(sharded.iterdir())}")
    for weights in (whole, sharded):
        for stages in (1, 3):
            report.near(f"{name} {weights.name} K={stages}", case.ours(weights, stages), logits, TOLERANCE)

    half = copy.deepcopy(model).bfloat16()
    weights = case.save(half, "half", max_shard_size=SHARD)
    rounded = copy.deepcopy(model)  # without its buffers, which are no weights
    rounded.load_state_dict({key: value.float() for key, value in half.state_dict().items()})
    report.near(f"{name} bfloat16", case.ours(weights, 1), case.logits(rounded), TOLERANCE)

    # The body alone, which has no head: its names lack the base's prefix. BERT's head is more than the embedding.
    if model.config.tie_word_embeddings and case.model.family is not Bert:
        report.near(f"{name} body", case.ours(case.save(model.base_model, "body"), 1), logits, TOLERANCE)

    back = case.export(sharded)
    model.config.save_pretrained(back)
    loaded, info = type(model).from_pretrained(back, output_loading_info=True, attn_implementation="eager")
    report.checks += 1
    if any(info.values()):
        report.fail(f"{name} exported", f"the library says {info}")
    report.near(f"{name} parameters back", numbers_of(loaded), numbers_of(model), 0)
    report.near(f"{name} logits back", case.logits(loaded.eval()), logits, 0)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.split("\n\n")[1])
    torch.set_num_threads(1)
    report = networks.Report("cpu")
    with networks.Oracle(sys.argv[1]) as oracle:
        for name in MODELS:
            with tempfile.TemporaryDirectory() as folder:
                compare(oracle, sys.argv[3], name, report, pathlib.Path(folder))
    print(f"transformers {transformers.__version__}, PyTorch {torch.__version__}: {report.checks} comparisons, "
          f"{report.failures} failures")
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()
