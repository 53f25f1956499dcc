#!/usr/bin/env python3
"""Weights that `stagecoach export --names torchvision` writes, in PyTorch.

usage: torchvision_names.py STAGECOACH_ORACLE STAGECOACH

A residual network is written as torchvision writes it, with its names of modules; where torchvision is installed its own
is taken too. It has to load the file with load_state_dict, every key in its place, and to compute what
`stagecoach-oracle run` computes of the weights in our names: output, loss and each gradient. Exit status: 0 equal, 1 not,
77 PyTorch is not installed.
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
    from torch import nn
except ImportError:
    print("SKIPPED: python3-torch is not installed")
    sys.exit(77)

from compare import Report, read_safetensors
from networks import TOLERANCE, write_safetensors
from resnets import BLOCKS

SAMPLES, CLASSES, SIDE, WIDTH = 6, 7, 35, 8


def normed(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)


class Block(nn.Module):
    def __init__(self, inputs, channels, stride, bottleneck):
        super().__init__()
        self.bottleneck, outputs = bottleneck, channels * (4 if bottleneck else 1)
        if bottleneck:
            self.conv1, self.bn1 = normed(inputs, channels, 1)
            self.conv2, self.bn2 = normed(channels, channels, 3, stride)
            self.conv3, self.bn3 = normed(channels, outputs, 1)
        else:
            self.conv1, self.bn1 = normed(inputs, channels, 3, stride)
            self.conv2, self.bn2 = normed(channels, channels, 3)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(*normed(inputs, outputs, 1, stride))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.bottleneck:
            y = self.bn3(self.conv3(F.relu(y)))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.conv1, self.bn1 = normed(3, WIDTH, 7, 2)
        inputs = WIDTH
        for stage, blocks in enumerate(BLOCKS[depth]):
            channels, made = WIDTH << stage, []
            for i in range(blocks):
                made.append(Block(inputs, channels, 2 if stage and i == 0 else 1, depth >= 50))
                inputs = channels * (4 if depth >= 50 else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*made))
        self.fc = nn.Linear(inputs, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def run(*arguments):
    subprocess.run(list(map(str, arguments)), check=True, stdout=subprocess.DEVNULL)


def export(stagecoach, folder, weights, to, model):
    """As of a job's export: weights, and the job beside them."""
    place = folder / f"export-{to}"
    place.mkdir()
    write_safetensors(place / "model.safetensors", weights)
    job = {"name": "names", "model": model, "data": {"cifar": {"folder": "/none"}},
           "training": {"steps": 1, "batch_size": 2, "micro_batches": 1, "optimizer": {"sgd": {}},
                        "learning_rate": {"constant": {"peak": 0.1}}}, "checkpoint": {"keep": 1}}
    (place / "stagecoach.json").write_text(json.dumps(job))
    run(stagecoach, "export", place, "--names", "torchvision", "--to", folder / to)
    return {name: torch.tensor(np.array(array)) for name, array in read_safetensors(folder / to)[0].items()}


def compare(oracle, stagecoach, depth, report, folder):
    fields = {"form": "imagenet", "depth": depth, "width": WIDTH, "image": [SIDE, SIDE, 3], "classes": CLASSES}
    network = folder / "network.yaml"
    network.write_text(json.dumps({"resnet": fields}))
    rng = np.random.default_rng(depth + 1)
    run(oracle, "run", "--network", network, "--init", folder / "init", "--seed", 3)
    weights = {name: np.array(array) for name, array in read_safetensors(folder / "init")[0].items()}
    for name, array in weights.items():  # zeros and ones would hide what is confused
        array += abs(rng.normal(0, 0.05, array.shape)).astype(np.float32)
    batch = {"images": rng.normal(size=(SAMPLES, SIDE, SIDE, 3)).astype(np.float32),
             "labels": rng.integers(0, CLASSES, SAMPLES, np.int32), "weights": np.ones(SAMPLES, np.float32)}
    write_safetensors(folder / "weights", weights)
    write_safetensors(folder / "batch", batch)
    run(oracle, "run", "--network", network, "--weights", folder / "weights", "--batch", folder / "batch", "--out", folder / "out")
    ours = read_safetensors(folder / "out")[0]

    model = ResNet(depth)
    model.load_state_dict(export(stagecoach, folder, weights, "weights.safetensors", {"resnet": fields}), strict=True)
    output = model.double()(torch.tensor(batch["images"]).double().permute(0, 3, 1, 2))
    loss = F.cross_entropy(output, torch.tensor(batch["labels"]).long())
    loss.backward()
    report.near(f"resnet {depth} output", ours["output"], output.detach().numpy(), TOLERANCE)
    report.near(f"resnet {depth} loss", ours["loss"], loss.detach().numpy().reshape(1), TOLERANCE)
    # Gradients and new averages in our names, through the same export.
    after = {name: np.array(ours["grad/" + name] if "grad/" + name in ours else ours["state/" + name], np.float32) for name in weights}
    named = export(stagecoach, folder, after, "after.safetensors", {"resnet": fields})
    truth = {name: parameter.grad for name, parameter in model.named_parameters()}
    truth.update({name: buffer for name, buffer in model.named_buffers() if "running" in name})
    if set(named) != set(truth):
        sys.exit(f"resnet {depth}: names differ: {sorted(set(named) ^ set(truth))}")
    for name, value in truth.items():
        report.near(f"resnet {depth} {name}", named[name].numpy(), value.numpy(), TOLERANCE)


def compare_keys_with_torchvision(oracle, stagecoach, folder):
    """The whole ResNet-50, by its own module."""
    try:
        from torchvision.models import resnet50
    except ImportError:
        print("torchvision is not installed: its modules are those that are written here")
        return
    fields = {"form": "imagenet", "depth": 50, "image": [224, 224, 3], "classes": 1000}
    network = folder / "network.yaml"
    network.write_text(json.dumps({"resnet": fields}))
    run(oracle, "run", "--network", network, "--init", folder / "init", "--seed", 3)
    weights = {name: np.array(array) for name, array in read_safetensors(folder / "init")[0].items()}
    resnet50().load_state_dict(export(stagecoach, folder, weights, "resnet50.safetensors", {"resnet": fields}), strict=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    torch.set_num_threads(1)
    report = Report("cpu")
    for depth in (18, 50):
        with tempfile.TemporaryDirectory() as folder:
            compare(*sys.argv[1:], depth, report, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        compare_keys_with_torchvision(*sys.argv[1:], pathlib.Path(folder))
    print(f"torchvision's names: {report.checks} comparisons, {report.failures} failures")
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()
