#!/usr/bin/env python3
"""Weights from PyTorch's collections of models and for them: `initialize: {names: ...}` and `stagecoach export --names`.

usage: zoo_names.py STAGECOACH_ORACLE STAGECOACH

Networks are written as torchvision and timm write them, with their names (zoo_modules.py); where torchvision is installed
its own is taken too. There: the module has to load what we export with load_state_dict, every key in its place, and to
compute what `stagecoach-oracle run` computes of the weights in our names: output, loss and each gradient. Here: what a
module's state_dict is saved as has to give its logits, also in half the bytes, and come back from an export with the same
bits. For another image size a vit's positions have to be those of torch.nn.functional.interpolate, and the logits too. Exit status: 0 equal, 1 not, 77 PyTorch is not installed.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError:
    print("SKIPPED: python3-torch is not installed")
    sys.exit(77)

from compare import Report, read_safetensors
from networks import TOLERANCE, write_safetensors
from zoo_modules import ResNet, TimmVit, TorchvisionVit

SAMPLES, CLASSES = 6, 7
LOGITS_TOLERANCE = 1e-5  # of the largest
RESNET = {"form": "imagenet", "width": 8, "image": [35, 35, 3], "classes": CLASSES}
VIT = {"patch": 4, "layers": 3, "width": 24, "heads": 3, "image": [12, 16, 3], "classes": CLASSES}
POSITIONS_TOLERANCE = 1e-5  # of the largest
SQUARE = {**VIT, "image": [28, 28, 3]}  # 7 x 7 patches
# Other image sizes: larger, smaller, and rectangles that are so on one side or the other.
OTHER_IMAGES = [[44, 44, 3], [12, 12, 3], [20, 48, 3], [64, 8, 3], [28, 40, 3]]
# Table of names, network, its fields, and the same in PyTorch.
ZOO = [
    ("torchvision", "resnet", {**RESNET, "depth": 18}, lambda fields: ResNet(**fields)),
    ("timm", "resnet", {**RESNET, "depth": 50}, lambda fields: ResNet(**fields)),
    ("torchvision", "vit", VIT, lambda fields: TorchvisionVit(**fields)),
    ("timm", "vit", VIT, lambda fields: TimmVit(**fields)),
]


def run(*arguments):
    subprocess.run(list(map(str, arguments)), check=True, stdout=subprocess.DEVNULL)


class Programs:
    """One network in our programs, in a folder for its files."""

    def __init__(self, oracle, stagecoach, kind, fields, table, folder):
        self.oracle, self.stagecoach, self.table, self.folder = oracle, stagecoach, table, folder
        self.model, self.network = {kind: fields}, folder / "network.yaml"
        self.network.write_text(json.dumps(self.model))
        self.files = 0

    def file(self):
        self.files += 1
        return self.folder / f"file-{self.files}.safetensors"

    def initial(self, *arguments):
        path = self.file()
        run(self.oracle, "run", "--network", self.network, "--init", path, "--seed", 3, *arguments)
        return {name: np.array(array) for name, array in read_safetensors(path)[0].items()}

    def step(self, weights, batch, *arguments):
        """`weights`: a file."""
        batch_file, out = self.file(), self.file()
        write_safetensors(batch_file, batch)
        run(self.oracle, "run", "--network", self.network, "--weights", weights, "--batch", batch_file, "--out", out, *arguments)
        return read_safetensors(out)[0]

    def written(self, arrays):
        path = self.file()
        write_safetensors(path, arrays)
        return path

    def export(self, weights):
        """Arrays in our names as a job's export has them, in the other program's names."""
        self.files += 1
        place, to = self.folder / f"export-{self.files}", self.file()
        place.mkdir()
        write_safetensors(place / "model.safetensors", weights)
        job = {"name": "names", "model": self.model, "data": {"cifar": {"folder": "/none"}},
               "training": {"steps": 1, "batch_size": 2, "micro_batches": 1, "optimizer": {"sgd": {}},
                            "learning_rate": {"constant": {"peak": 0.1}}}, "checkpoint": {"keep": 1}}
        (place / "stagecoach.json").write_text(json.dumps(job))
        run(self.stagecoach, "export", place, "--names", self.table, "--to", to)
        return {name: torch.tensor(np.array(array)) for name, array in read_safetensors(to)[0].items()}


def make_batch(fields, rng):
    return {"images": rng.normal(size=(SAMPLES, *fields["image"])).astype(np.float32),
            "labels": rng.integers(0, fields["classes"], SAMPLES, np.int32), "weights": np.ones(SAMPLES, np.float32)}


def images_of(batch):
    return torch.tensor(batch["images"]).double().permute(0, 3, 1, 2)


def compare_there(name, programs, model, batch, rng, report):
    """Our weights in a module of PyTorch."""
    weights = programs.initial()
    for array in weights.values():  # zeros and ones would hide what is confused
        array += abs(rng.normal(0, 0.05, array.shape)).astype(np.float32)
    ours = programs.step(programs.written(weights), batch)
    model.load_state_dict(programs.export(weights), strict=True)
    output = model.double()(images_of(batch))
    loss = F.cross_entropy(output, torch.tensor(batch["labels"]).long())
    loss.backward()
    report.near(f"{name} output", ours["output"], output.detach().numpy(), TOLERANCE)
    report.near(f"{name} loss", ours["loss"], loss.detach().numpy().reshape(1), TOLERANCE)
    # Gradients and new averages in our names, through the same export.
    after = {key: np.array(ours["grad/" + key] if "grad/" + key in ours else ours["state/" + key], np.float32) for key in weights}
    named = programs.export(after)
    truth = {key: parameter.grad for key, parameter in model.named_parameters()}
    truth.update({key: buffer for key, buffer in model.named_buffers() if "running" in key})
    if set(named) != set(truth):
        sys.exit(f"{name}: names differ: {sorted(set(named) ^ set(truth))}")
    for key, value in truth.items():
        report.near(f"{name} {key}", named[key].numpy(), value.numpy(), TOLERANCE)


def compare_here(name, programs, model, batch, rng, report):
    """A module's weights with us: its logits, and from there back to it."""
    with torch.no_grad():
        for key, value in model.state_dict().items():
            if value.is_floating_point():
                value += torch.tensor(abs(rng.normal(0, 0.05, value.shape)))
    saved = {key: value.float().numpy() if value.is_floating_point() else value.numpy() for key, value in model.state_dict().items()}
    model.eval()
    logits = model.double()(images_of(batch)).detach().numpy()
    names = ["--names", programs.table]
    for stages in (1, 3):
        ours = programs.step(programs.written(saved), batch, "--evaluate", "--stages", stages, *names)
        report.near(f"{name} logits of a file, K={stages}", ours["output"], logits, LOGITS_TOLERANCE)
    half = {key: array.astype(np.float16) if array.dtype == np.float32 else array for key, array in saved.items()}
    model.load_state_dict({key: torch.tensor(array) for key, array in half.items()})
    logits = model.double()(images_of(batch)).detach().numpy()
    ours = programs.step(programs.written(half), batch, "--evaluate", *names)
    report.near(f"{name} logits of float16", ours["output"], logits, LOGITS_TOLERANCE)

    back = programs.export(programs.initial("--weights", programs.written(saved), *names))
    model.float().load_state_dict(back, strict=True)
    for key, array in saved.items():
        report.near(f"{name} {key} back", model.state_dict()[key].numpy(), array, 0)


def compare(oracle, stagecoach, entry, report, folder):
    table, kind, fields, make = entry
    name = f"{table} {kind}"
    torch.manual_seed(5)
    rng = np.random.default_rng(19)
    programs = Programs(oracle, stagecoach, kind, fields, table, folder)
    module = {key: value for key, value in fields.items() if key != "form"}
    compare_there(name, programs, make(module), make_batch(fields, rng), rng, report)
    compare_here(name, programs, make(module), make_batch(fields, rng), rng, report)


def resized(positions, grid):
    """[1, 1 + a square, width], as timm's resample_abs_pos_embed does it."""
    token, patches = positions[:, :1], positions[:, 1:]
    side = round(patches.shape[1] ** 0.5)
    patches = patches.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    patches = F.interpolate(patches, size=grid, mode="bicubic", antialias=True, align_corners=False)
    return torch.cat([token, patches.permute(0, 2, 3, 1).flatten(1, 2)], 1)


def compare_resized(oracle, stagecoach, table, key, make, report, folder):
    """A vit's weights for images of another size."""
    torch.manual_seed(7)
    rng = np.random.default_rng(23)
    saved = make(SQUARE).state_dict()
    saved = {name: value + torch.tensor(abs(rng.normal(0, 0.05, value.shape))).float() for name, value in saved.items()}
    saved[key][:, 1:] += torch.tensor(rng.normal(0, 1, saved[key][:, 1:].shape)).float()  # steep
    arrays = {name: value.numpy() for name, value in saved.items()}
    for image in OTHER_IMAGES:
        fields = {**SQUARE, "image": image}
        place = folder / "x".join(map(str, image))
        place.mkdir()
        programs = Programs(oracle, stagecoach, "vit", fields, table, place)
        truth = {**saved, key: resized(saved[key], (image[0] // fields["patch"], image[1] // fields["patch"]))}
        name = f"{table} vit for {image[0]} x {image[1]}"
        file = programs.written(arrays)
        ours = programs.initial("--weights", file, "--names", table)["model/0000/position"]
        report.near(f"{name} positions", ours, truth[key][0].numpy(), POSITIONS_TOLERANCE)
        report.near(f"{name} token", ours[0], saved[key][0, 0].numpy(), 0)
        # An export of the size that it was has our own names.
        if table == "timm":
            (place / "square").mkdir()
            square = Programs(oracle, stagecoach, "vit", SQUARE, table, place / "square")
            own = square.written(square.initial("--weights", file, "--names", table))
            report.near(f"{name} positions of an export", programs.initial("--weights", own)["model/0000/position"], ours, 0)
        model, batch = make(fields), make_batch(fields, rng)
        model.load_state_dict(truth, strict=True)
        logits = model.eval().double()(images_of(batch)).detach().numpy()
        for stages in (1, 3):
            out = programs.step(file, batch, "--evaluate", "--stages", stages, "--names", table)["output"]
            report.near(f"{name} logits, K={stages}", out, logits, LOGITS_TOLERANCE)


def compare_keys_with_torchvision(oracle, stagecoach, folder):
    """The whole ResNet-50 and ViT-B/16, by their own modules."""
    try:
        from torchvision import models
    except ImportError:
        print("torchvision is not installed: its modules are those that are written here")
        return
    image = {"image": [224, 224, 3], "classes": 1000}
    for kind, fields, module in (("resnet", {"form": "imagenet", "depth": 50}, models.resnet50),
                                 ("vit", {"layers": 12, "width": 768, "heads": 12}, models.vit_b_16)):
        place = folder / kind
        place.mkdir()
        programs = Programs(oracle, stagecoach, kind, {**fields, **image}, "torchvision", place)
        module().load_state_dict(programs.export(programs.initial()), strict=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    torch.set_num_threads(1)
    report = Report("cpu")
    for entry in ZOO:
        with tempfile.TemporaryDirectory() as folder:
            compare(*sys.argv[1:], entry, report, pathlib.Path(folder))
    for table, key, make in (("torchvision", "encoder.pos_embedding", TorchvisionVit), ("timm", "pos_embed", TimmVit)):
        with tempfile.TemporaryDirectory() as folder:
            compare_resized(*sys.argv[1:], table, key, lambda fields, make=make: make(**fields), report, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        compare_keys_with_torchvision(*sys.argv[1:], pathlib.Path(folder))
    print(f"names of PyTorch's collections: {report.checks} comparisons, {report.failures} failures")
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()
