#!/usr/bin/env python3
"""Compares Stagecoach's numbers with PyTorch's.

usage: compare.py STAGECOACH_ORACLE

Runs the program for every back end of the build and rebuilds what it recorded: every operation's cases
(operations.py), each optimizer's updates (updates.py), and a small GPT with its gradients and the losses of 20 AdamW steps. PyTorch runs
in float64 (the truth) and, for the training, in float32 as well; for the training in bfloat16 in float64
that is rounded to bfloat16 wherever a tensor of the job is. Exit status: 0 equal within the tolerances,
1 not, 77 PyTorch is not installed.
"""

import json
import math
import pathlib
import struct
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

from operations import attention, compare_operations
from updates import compare_updates

TOLERANCE = 1e-5  # of the largest absolute value of the array
AVERAGES_TOLERANCE = 1e-6  # of each
BFLOAT16_TOLERANCE = 2e-2
BFLOAT16_LOSS_TOLERANCE = 5e-3
DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32}


def read_safetensors(path):
    """An independent reader of the format: returns ({name: array}, metadata)."""
    data = pathlib.Path(path).read_bytes()
    (header_bytes,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + header_bytes])
    metadata = header.pop("__metadata__", {})
    body = data[8 + header_bytes :]
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(body[begin:end], DTYPES[entry["dtype"]])
        arrays[name] = array.reshape(entry["shape"])
    return arrays, metadata


class Report:
    """Prints one line a comparison and counts those that fail."""

    def __init__(self, backend):
        self.backend, self.checks, self.failures = backend, 0, 0

    def near(self, name, ours, truth, tolerance=TOLERANCE):
        ours = np.asarray(ours, np.float64)
        truth = np.asarray(truth.detach().numpy() if torch.is_tensor(truth) else truth, np.float64)
        self.checks += 1
        if ours.shape != truth.shape:
            self.fail(name, f"shape {ours.shape} beside {truth.shape}")
            return
        numbers = ~np.isnan(truth)  # what is none there must be none here
        if (np.isnan(ours) == numbers).any():
            self.fail(name, "other elements are not numbers")
            return
        error = np.abs(ours - truth)[numbers].max(initial=0.0)
        error = float(error / max(float(np.abs(truth[numbers]).max(initial=0.0)), 1e-30))
        if not error <= tolerance:  # an infinity fails
            self.fail(name, f"error {error:.2e} of the largest value, allowed {tolerance:.0e}")
        else:
            print(f"  {self.backend:9} {name:45} {error:.1e}")

    def fail(self, name, message):
        self.failures += 1
        print(f"  {self.backend:9} {name:45} FAILED: {message}")


def to_bfloat16(x):
    return x.to(torch.float32).to(torch.bfloat16).to(x.dtype)


class Activation(torch.autograd.Function):
    """A tensor that is bfloat16 in forward, as its gradient is in backward."""

    @staticmethod
    def forward(_context, x):
        return to_bfloat16(x)

    @staticmethod
    def backward(_context, gradient):
        return to_bfloat16(gradient)


class Copy(torch.autograd.Function):
    """The bfloat16 copy of a float32 master weight, whose gradient is float32."""

    @staticmethod
    def forward(_context, x):
        return to_bfloat16(x)

    @staticmethod
    def backward(_context, gradient):
        return gradient


class Gpt:
    """The recorded model, written for PyTorch from the description alone."""

    def __init__(self, arrays, metadata, dtype, bfloat16=False):
        self.activation = Activation.apply if bfloat16 else lambda x: x
        self.copy = Copy.apply if bfloat16 else lambda x: x
        self.blocks = int(metadata["blocks"])
        self.heads = int(metadata["heads"])
        self.epsilon = metadata.get("norm_epsilon", 1e-5)
        self.gelu = "none" if metadata.get("exact_gelu") else "tanh"
        self.parameters = {
            name: torch.tensor(array, dtype=dtype, requires_grad=True)
            for name, array in arrays.items()
            if name.startswith("model/")
        }

    def logits(self, ids):
        sequences, context = ids.shape
        layer = 0

        def parameter(path):
            return self.parameters[f"model/{layer:04d}/{path}"]

        def layer_norm(x, path):
            weight, bias = parameter(path + "weight"), parameter(path + "bias")
            return rounded(F.layer_norm(rounded(x), (x.shape[-1],), weight, bias, self.epsilon))

        def linear(x, path):
            return rounded(F.linear(x, copy(path + ".weight"), copy(path + ".bias")))

        rounded = self.activation  # layer norm's weights are float32, the others are copies

        def copy(path):
            return self.copy(parameter(path))

        x = F.embedding(ids, copy("token.weight")) + copy("position.weight")
        x = rounded(x.reshape(sequences * context, -1))
        for _ in range(self.blocks):
            layer += 1
            h = linear(layer_norm(x, "layer_norm."), "attention.qkv")
            heads = {"heads": self.heads, "key_heads": 0, "dropout": 0}
            h, _unused = attention(heads, h.reshape(sequences, context, -1))
            h = h.reshape(sequences * context, -1)
            x = rounded(x + linear(rounded(h), "attention.proj"))
            layer += 1
            h = linear(layer_norm(x, "layer_norm."), "mlp.up")
            # The gradient between gelu and mlp.down is not stored: forward is rounded, backward not.
            x = rounded(x + linear(self.copy(F.gelu(h, approximate=self.gelu)), "mlp.down"))
        layer += 1
        x = layer_norm(x, "")
        layer += 1
        return rounded(F.linear(x, copy("weight")))


def learning_rate(metadata, step):
    peak, final = float(metadata["rate_peak"]), float(metadata["rate_final"])
    warmup, steps = int(metadata["rate_warmup_steps"]), int(metadata["steps"])
    if step < warmup:
        return peak * (step + 1) / warmup
    t = (step - warmup) / (steps - warmup)
    return final + (peak - final) * (1 + math.cos(math.pi * t)) / 2


def train(arrays, metadata, dtype, bfloat16=False):
    """Returns logits and gradients of the first step, then losses, norms and rates of all steps."""
    model = Gpt(arrays, metadata, dtype, bfloat16)
    weights = model.parameters.values()
    decay = float(metadata["weight_decay"])
    optimizer = torch.optim.AdamW(
        [
            {"params": [w for w in weights if w.dim() >= 2], "weight_decay": decay},
            {"params": [w for w in weights if w.dim() < 2], "weight_decay": 0.0},
        ],
        betas=(float(metadata["beta1"]), float(metadata["beta2"])),
        eps=float(metadata["epsilon"]),
    )
    first, losses, norms, rates = None, [], [], []
    for step in range(int(metadata["steps"])):
        tokens = torch.tensor(arrays[f"batch/{step}"], dtype=torch.int64)
        logits = model.logits(tokens[:, :-1])
        loss = F.cross_entropy(logits, tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        if first is None:
            gradients = {name: w.grad.clone() for name, w in model.parameters.items()}
            first = logits.detach(), gradients
        losses.append(loss.item())
        rates.append(learning_rate(metadata, step))
        norms.append(torch.nn.utils.clip_grad_norm_(weights, float(metadata["clip_norm"])).item())
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        optimizer.step()
    return first, losses, norms, rates


def compare_training(arrays, metadata, report):
    ours = np.concatenate([arrays[f"logits/{i}"] for i in range(int(metadata["micro_batches"]))])
    for dtype, label in ((torch.float64, "float64"), (torch.float32, "float32")):
        (logits, gradients), losses, norms, rates = train(arrays, metadata, dtype)
        report.near(f"{label} logits", ours, logits)
        for name, gradient in gradients.items():
            report.near(f"{label} gradient {name[6:]}", arrays[f"gradient/{name}"], gradient)
        report.near(f"{label} learning rates", arrays["training/learning_rates"], rates, 1e-12)
        report.near(f"{label} first gradient norm", arrays["training/gradient_norms"][0], norms[0])
        for step, loss in enumerate(losses):
            report.near(f"{label} loss of step {step}", arrays["training/losses"][step], loss)
    clip = float(metadata["clip_norm"])
    if not min(norms) < clip < max(norms):
        report.failures += 1
        print(f"  the training must clip some steps and not others: norms {norms}, clip {clip}")
    if not losses[-1] < 0.9 * losses[0]:
        report.failures += 1
        print(f"  the training must learn something: losses {losses}")


def compare_averages(arrays, metadata, report):
    """Batch norm's running moments, against PyTorch's of the whole mini-batches that were applied."""
    steps = sorted(name for name in arrays if name.startswith("averages/x"))
    channels = arrays[steps[0]].shape[1]
    mean = torch.zeros(channels, dtype=torch.float64)
    variance = torch.ones(channels, dtype=torch.float64)
    momentum = float(metadata["averages/momentum"])
    for name in steps:
        x = torch.tensor(arrays[name], dtype=torch.float64)
        F.batch_norm(x, mean, variance, training=True, momentum=momentum)
    for name, truth in [("running_mean", mean), ("running_variance", variance)]:
        ratio = arrays[f"averages/model/0000/{name}"] / truth.numpy()
        report.near(f"averages {name}", ratio, np.ones(channels), AVERAGES_TOLERANCE)


def compare_bfloat16_training(arrays, metadata, report):
    """Against the same roundings, and not equal to float32: that would be another precision."""
    prefix = "bfloat16/"
    if prefix + "training/losses" not in arrays:
        print(f"  {report.backend:9} has no bfloat16")
        return
    micro_batches = int(metadata["micro_batches"])
    ours = np.concatenate([arrays[f"{prefix}logits/{i}"] for i in range(micro_batches)])
    (logits, gradients), losses, norms, _ = train(arrays, metadata, torch.float64, bfloat16=True)
    report.near("bfloat16 logits", ours, logits, BFLOAT16_TOLERANCE)
    for name, gradient in gradients.items():
        array = arrays[f"{prefix}gradient/{name}"]
        report.near(f"bfloat16 gradient {name[6:]}", array, gradient, BFLOAT16_TOLERANCE)
    first_norm = arrays[prefix + "training/gradient_norms"][0]
    report.near("bfloat16 first gradient norm", first_norm, norms[0], BFLOAT16_TOLERANCE)
    for step, loss in enumerate(losses):
        array = arrays[prefix + "training/losses"][step]
        report.near(f"bfloat16 loss of step {step}", array, loss, BFLOAT16_LOSS_TOLERANCE)
    if np.array_equal(arrays[prefix + "training/losses"], arrays["training/losses"]):
        report.failures += 1
        print("  the training in bfloat16 has the losses of the training in float32")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    oracle = sys.argv[1]
    torch.set_num_threads(1)
    listing = subprocess.run([oracle, "--backends"], check=True, capture_output=True, text=True)
    failures = 0
    for backend in listing.stdout.split():
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / f"{backend}.safetensors")
            subprocess.run([oracle, backend, path], check=True)
            arrays, metadata = read_safetensors(path)
        report = Report(backend)
        compare_operations(arrays, metadata, report)
        compare_averages(arrays, metadata, report)
        compare_updates(arrays, metadata, report)
        compare_training(arrays, metadata, report)
        compare_bfloat16_training(arrays, metadata, report)
        print(f"{backend}: {report.checks} comparisons, {report.failures} failures")
        failures += report.failures
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
