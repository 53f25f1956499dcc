#!/usr/bin/env python3
"""Compares Stagecoach's numbers with PyTorch's.

usage: compare.py STAGECOACH_ORACLE

Runs the program for every back end of the build and rebuilds what it recorded: single operations with
torch.nn.functional, and a small GPT with its gradients and the losses of 20 AdamW steps. PyTorch runs
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

TOLERANCE = 1e-5  # of the largest absolute value of the array
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


def philox(counter, key):
    """Philox4x32-10 on arrays of uint64 words below 2^32 (Salmon et al., SC'11)."""
    mask = np.uint64(0xFFFFFFFF)
    c = [np.asarray(word, np.uint64) for word in np.broadcast_arrays(*counter)]
    k0, k1 = key
    for _ in range(10):
        product0 = c[0] * np.uint64(0xD2511F53)
        product1 = c[2] * np.uint64(0xCD9E8D57)
        c = [
            (product1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            product1 & mask,
            (product0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            product0 & mask,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=-1)


def dropout_factors(count, rate):
    """0 or 1 / (1 - rate) for each element, of the stream that the oracle uses."""
    seed, step, micro_batch, layer, operation = 12345678901234, 6, 2, 9, 1
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    counter = (blocks, layer << 16 | operation, micro_batch, step)
    bits = philox(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)[:count]
    return np.where(bits >= int(rate * 2**32), 1.0 / (1.0 - rate), 0.0)


class Report:
    """Prints one line a comparison and counts those that fail."""

    def __init__(self, backend):
        self.backend, self.checks, self.failures = backend, 0, 0

    def near(self, name, ours, truth, tolerance=TOLERANCE):
        ours = np.asarray(ours, np.float64)
        truth = np.asarray(truth.detach().numpy() if torch.is_tensor(truth) else truth, np.float64)
        self.checks += 1
        if ours.shape != truth.shape:
            self._fail(name, f"shape {ours.shape} beside {truth.shape}")
            return
        error = float(np.abs(ours - truth).max() / max(float(np.abs(truth).max()), 1e-30))
        if not error <= tolerance:  # a NaN fails
            self._fail(name, f"error {error:.2e} of the largest value, allowed {tolerance:.0e}")
        else:
            print(f"  {self.backend:9} {name:45} {error:.1e}")

    def _fail(self, name, message):
        self.failures += 1
        print(f"  {self.backend:9} {name:45} FAILED: {message}")


def attention(qkv, sequences, heads, factors=None):
    """Causal attention of packed [rows, 3 * width]; also the log-sum-exp of the scores."""
    rows, packed = qkv.shape
    width, context = packed // 3, rows // sequences
    parts = qkv.reshape(sequences, context, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    q, k, v = parts
    scores = q @ k.transpose(-1, -2) / math.sqrt(width // heads)
    future = torch.ones(context, context, dtype=torch.bool).triu(1)
    scores = scores.masked_fill(future, -math.inf)
    probabilities = F.softmax(scores, dim=-1)
    if factors is not None:
        probabilities = probabilities * factors
    out = (probabilities @ v).transpose(1, 2).reshape(rows, width)
    return out, torch.logsumexp(scores, dim=-1)


class Operation:
    """The recorded arrays of one operation, as float64 leaves of an autograd graph."""

    def __init__(self, arrays, name):
        self.name = name
        prefix = f"op/{name}/"
        self.arrays = {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
        self.leaves = {}

    def __getitem__(self, name):
        array = self.arrays[name]
        if array.dtype == np.int32:
            return torch.tensor(array, dtype=torch.int64)
        if name not in self.leaves:
            self.leaves[name] = torch.tensor(array, dtype=torch.float64, requires_grad=True)
        return self.leaves[name]

    def compare(self, report, outputs, upstream, leaves):
        """outputs: our name -> PyTorch's value; gradients of `leaves` by outputs[0] * upstream."""
        for name, value in outputs.items():
            report.near(f"{self.name}.{name}", self.arrays[name], value)
        first = next(iter(outputs.values()))
        first.backward(upstream.detach() if upstream is not None else None)
        for name in leaves:
            report.near(f"{self.name}.d_{name}", self.arrays[f"d_{name}"], self.leaves[name].grad)


def compare_operations(arrays, report):
    op = Operation(arrays, "layer_norm")
    y = F.layer_norm(op["x"], (op["x"].shape[1],), op["weight"], op["bias"], 1e-5)
    op.compare(report, {"y": y}, op["dy"], ["x", "weight", "bias"])

    op = Operation(arrays, "linear_gelu")
    y = F.linear(op["x"], op["weight"], op["bias"])
    outputs = {"y": y, "activation": F.gelu(y, approximate="tanh")}
    op.compare(report, outputs, op["dy"], ["x", "weight", "bias"])

    op = Operation(arrays, "gelu")
    op.compare(report, {"y": F.gelu(op["x"], approximate="tanh")}, op["dy"], ["x"])

    op = Operation(arrays, "attention")
    out, log_sum_exp = attention(op["qkv"], 3, 3)
    outputs = {"out": out, "log_sum_exp": log_sum_exp}
    op.compare(report, outputs, op["d_out"], ["qkv"])

    op = Operation(arrays, "attention_dropout")
    factors = dropout_factors(3 * 3 * 19 * 19, 0.3).reshape(3, 3, 19, 19)
    out, log_sum_exp = attention(op["qkv"], 3, 3, torch.tensor(factors))
    outputs = {"out": out, "log_sum_exp": log_sum_exp}
    op.compare(report, outputs, op["d_out"], ["qkv"])

    op = Operation(arrays, "dropout")
    x = op.arrays["x"]
    report.near("dropout.y", op.arrays["y"], x * dropout_factors(x.size, 0.3).reshape(x.shape))

    op = Operation(arrays, "embedding")
    positions = torch.arange(len(op["ids"])) % len(op["position"])
    y = F.embedding(op["ids"], op["token"]) + F.embedding(positions, op["position"])
    op.compare(report, {"y": y}, op["dy"], ["token", "position"])

    op = Operation(arrays, "cross_entropy")
    loss = F.cross_entropy(op["logits"], op["targets"])
    report.near("cross_entropy.loss", op.arrays["loss"][0] / len(op["targets"]), loss)
    loss.backward()
    report.near("cross_entropy.d_logits", op.arrays["d_logits"], op.leaves["logits"].grad)


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
            return rounded(F.layer_norm(rounded(x), (x.shape[-1],), weight, bias, 1e-5))

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
            h, _unused = attention(h, sequences, self.heads)
            x = rounded(x + linear(rounded(h), "attention.proj"))
            layer += 1
            h = linear(layer_norm(x, "layer_norm."), "mlp.up")
            # The gradient between gelu and mlp.down is not stored: forward is rounded, backward not.
            x = rounded(x + linear(self.copy(F.gelu(h, approximate="tanh")), "mlp.down"))
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
        compare_operations(arrays, report)
        compare_training(arrays, metadata, report)
        compare_bfloat16_training(arrays, metadata, report)
        print(f"{backend}: {report.checks} comparisons, {report.failures} failures")
        failures += report.failures
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
