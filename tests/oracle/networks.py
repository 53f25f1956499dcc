#!/usr/bin/env python3
"""Compares whole networks of the zoo with PyTorch, from the same weights and data.

usage: networks.py STAGECOACH_ORACLE

`stagecoach-oracle runs` computes the steps; each network, and the lists of layers in examples/ (layer_lists.py), is
written here for PyTorch from its description alone, in float64, with our random numbers for dropout. Compared are
outputs, loss, measures, the gradient of every parameter and states, for several numbers of stages and micro-batches,
and the losses of 8 steps (20 of transformer) with states, from PyTorch's updates on its side and from our gradients on
ours. Exit status: 0 equal within the tolerances, 1 not, 77 PyTorch is not installed.
"""

import json
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

import operations
import amoebanets
import encoder_decoders
import layer_lists
import resnets
from compare import Gpt, Report, read_safetensors

SAMPLES, SEED = 5, 7
STEPS = {"transformer": 20}  # by kind of network; of the others
OTHER_STEPS = 8
TOLERANCE = 1e-4  # of the largest value of an array; of each loss
ELEMENTS = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64"}


def write_safetensors(path, arrays):
    header, body = {}, b""
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        end = len(body) + array.nbytes
        header[name] = {"dtype": ELEMENTS[array.dtype.name], "shape": list(array.shape), "data_offsets": [len(body), end]}
        body += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


class Weights:
    """Parameters by path within a layer, and its random numbers; layers count up."""

    def __init__(self, arrays, micro_batch=0):
        self.values, self.micro_batch, self.layer, self.draws = arrays, micro_batch, 0, 0

    def __getitem__(self, path):
        return self.values[f"model/{self.layer:04d}/{path}"]

    def get(self, path):
        return self.values.get(f"model/{self.layer:04d}/{path}")

    def next(self):
        self.layer, self.draws = self.layer + 1, 0

    def take_draw(self):
        """The layer's next stream: everything that can draw has one, also at rate 0."""
        self.draws += 1
        return {"draw": self.draws - 1, "stream": (SEED, 0, self.micro_batch, self.layer)}

    def dropout(self, shape, rate):
        draw = self.take_draw()
        return operations.dropout_factors(shape, rate, **draw) if rate else 1

    def drop_path(self, x, rate):
        """Of images or vectors whose first extent is that of the samples."""
        factors = operations.drop_path_factors(x.shape[0], rate, **self.take_draw())
        return x * factors.reshape(-1, *[1] * (x.dim() - 1))


def gpt(fields, weights, batch):
    form = {"blocks": fields["layers"], "heads": fields["heads"], "norm_epsilon": fields.get("epsilon", 1e-5),
            "exact_gelu": fields.get("exact_gelu", False)}
    model = Gpt({}, form, torch.float64)
    model.parameters = weights.values
    ids = batch["tokens"]
    return model.logits(ids).reshape(*ids.shape, -1)


SCALING = ("factor", "low_frequency_factor", "high_frequency_factor", "original_context")


def llama(fields, weights, batch):
    def norm(x, path):
        return operations.rms_norm({"epsilon": fields.get("epsilon", 1e-5)}, x, weights[path])[0]

    heads = {"heads": fields["heads"], "key_heads": fields.get("key_heads", 0), "dropout": 0, "epsilon": 1e-6,
             "theta": fields.get("rotary_theta", 10000.0), "inverse": 0, "interleaved": 0,
             **{name: fields.get("rotary_" + name, 0) for name in SCALING}}
    x = F.embedding(batch["tokens"], weights["token.weight"])
    for _ in range(fields["layers"]):
        weights.next()
        qkv = F.linear(norm(x, "rms_norm.weight"), weights["attention.qkv.weight"], weights.get("attention.qkv.bias"))
        if fields.get("qk_norm"):
            norms = weights["attention.query_norm.weight"], weights["attention.key_norm.weight"]
            qkv = operations.head_norm(heads, qkv, *norms)[0]
        h = operations.attention(heads, operations.rotary(heads, qkv)[0])[0]
        x = x + F.linear(h, weights["attention.proj.weight"])
        weights.next()
        h = norm(x, "rms_norm.weight")
        h = F.silu(F.linear(h, weights["swiglu.gate.weight"])) * F.linear(h, weights["swiglu.up.weight"])
        x = x + F.linear(h, weights["swiglu.down.weight"])
    weights.next()
    x = norm(x, "weight")
    weights.next()
    return F.linear(x, weights["weight"])


def mlp(fields, weights, batch):
    x = batch["images"].flatten(1)
    weights.next()  # a layer without parameters, as flatten or ReLU, counts too
    for i in range(fields["layers"]):
        x = F.linear(x, weights["weight"], weights["bias"])
        if i + 1 < fields["layers"]:
            x = F.relu(x)
            weights.next()
            weights.next()
    return x


def unet(fields, weights, batch):
    def cell(x):
        for i in range(fields.get("convolutions", 2)):
            name = f"c{i}."
            x = F.conv2d(x, operations.channels_first(weights[name + "convolution.weight"]),
                         weights.get(name + "convolution.bias"), padding=1)
            if fields.get("norm") != "none":
                name += "batch_norm."
                moments = weights[name + "running_mean"], weights[name + "running_variance"]
                x = F.batch_norm(x, *moments, weights[name + "weight"], weights[name + "bias"], training=True)
            x = F.relu(x)
        return x

    x, skips = operations.channels_first(batch["images"]), []
    for _ in range(fields["depth"]):
        skips.append(cell(x))
        x = F.max_pool2d(skips[-1], 2)
        weights.next()
    x = cell(x)
    for skip in reversed(skips):
        weights.next()
        if fields.get("upsample") == "nearest":
            x = F.interpolate(x, scale_factor=2, mode="nearest")
        else:
            x = F.conv_transpose2d(x, operations.channels_first(weights["up.weight"]), stride=2)
        x = cell(torch.cat([skip, x], 1))
    weights.next()
    weight = operations.channels_first(weights["convolution.weight"])
    return operations.channels_last(F.conv2d(x, weight, weights["convolution.bias"]))


def vit(fields, weights, batch):
    """As torchvision's VisionTransformer: norms with epsilon 1e-6, exact GELU, attention without a mask."""
    rates = fields.get("dropout", 0), fields.get("attention_dropout", 0)
    def norm(x, path):
        return F.layer_norm(x, x.shape[-1:], weights[path + "weight"], weights[path + "bias"], 1e-6)

    def dropped(x):  # a layer without a rate has no such piece
        return x * weights.dropout(x.shape, rates[0]) if rates[0] else x

    patches = operations.channels_first(weights["patch.weight"])
    x = F.conv2d(operations.channels_first(batch["images"]), patches, weights["patch.bias"], fields["patch"])
    x = x.flatten(2).transpose(1, 2)
    x = torch.cat([weights["class_token"].expand(len(x), 1, -1), x], 1) + weights["position"]
    x = dropped(x)
    for _ in range(fields["layers"]):
        weights.next()
        qkv = F.linear(norm(x, "layer_norm."), weights["attention.qkv.weight"], weights["attention.qkv.bias"])
        attention = {"heads": fields["heads"], "key_heads": 0, "full": 1, "dropout": rates[1], **weights.take_draw()}
        h = operations.attention(attention, qkv)[0]
        x = x + dropped(F.linear(h, weights["attention.proj.weight"], weights["attention.proj.bias"]))
        weights.next()
        h = F.linear(norm(x, "layer_norm."), weights["mlp.up.weight"], weights["mlp.up.bias"])
        h = dropped(F.gelu(h))
        x = x + dropped(F.linear(h, weights["mlp.down.weight"], weights["mlp.down.bias"]))
    weights.next()
    return F.linear(norm(x, "layer_norm.")[:, 0], weights["linear.weight"], weights["linear.bias"])


def autoencoder(_fields, weights, batch):
    x = operations.channels_first(batch["images"])
    x = F.relu(F.conv2d(x, operations.channels_first(weights["weight"]), weights["bias"], padding=1))
    weights.next()
    weights.next()
    return operations.channels_last(F.conv2d(x, operations.channels_first(weights["weight"]), weights["bias"]))


def class_weights(classes):
    """The second class counts for nothing."""
    return [0 if i == 1 else 0.3 + 0.45 * i for i in range(classes)]


TEXT = {"context": 8, "vocabulary": 13}
IMAGE = {"image": [9, 8, 3], "classes": 5}
AUTOENCODER = {"image": [6, 7, 2], "classes": 2, "layers": [{"convolution": {"out": 4, "kernel": [3], "padding": [1]}},
                                                            {"relu": {}}, {"convolution": {"out": 2, "kernel": [1]}}]}
AMOEBANET = {"image": [8, 12, 3], "classes": 5, "layers": 3, "filters": 8}
AUXILIARY = {"stem": "small", "auxiliary_weight": 0.4, "auxiliary_scale": 0.1}
RESNET = {"form": "imagenet", "width": 8, "image": [35, 33, 3], "classes": 5}
LLAMA = {"layers": 2, "width": 16, "heads": 4, "key_heads": 2, "hidden": 24, **TEXT}
PAIRS = {"vocabulary": 13, "source_context": 7, "target_context": 6, "width": 16, "hidden": 24, "heads": 2,
         "encoder_layers": 2, "decoder_layers": 1}
NETWORKS = {
    "gpt": ("gpt", gpt, {"layers": 2, "width": 16, "heads": 2, **TEXT}, {}),
    "llama": ("llama", llama, {**LLAMA, "rotary_theta": 500000.0}, {}),
    "qwen3": ("llama", llama, {**LLAMA, "head_width": 6, "qk_norm": True, "epsilon": 1e-6, "rotary_theta": 1e6}, {}),
    "qwen2": ("llama", llama, {**LLAMA, "qkv_bias": True, "epsilon": 1e-6, "rotary_theta": 1e6}, {}),
    # Of the three pairs of a head one stays, one lies between and one is divided.
    "llama scaled": ("llama", llama, {**LLAMA, "head_width": 6, "rotary_theta": 100.0, "rotary_scaling": "llama3", "rotary_factor": 8.0,
                                      "rotary_low_frequency_factor": 1.0, "rotary_high_frequency_factor": 4.0,
                                      "rotary_original_context": 60}, {}),
    "llama linear": ("llama", llama, {**LLAMA, "rotary_scaling": "linear", "rotary_factor": 2.5, "qkv_bias": True}, {}),
    "gpt exact": ("gpt", gpt, {"layers": 2, "width": 16, "heads": 2, "hidden": 40, "epsilon": 1e-3, "exact_gelu": True, **TEXT}, {}),
    "gpt tied": ("gpt", gpt, {"layers": 2, "width": 16, "heads": 2, "tied_embeddings": True, **TEXT}, {}),
    "llama tied": ("llama", llama, {**LLAMA, "tied_embeddings": True}, {}),
    "gpt ignoring": ("gpt", gpt, {"layers": 1, "width": 16, "heads": 2, **TEXT}, {"ignore_index": 3}),
    "gpt class weights": ("gpt", gpt, {"layers": 1, "width": 16, "heads": 2, **TEXT}, {"class_weights": class_weights(13), "ignore_index": 3}),
    "mlp class weights": ("mlp", mlp, {"hidden": 24, "layers": 2, **IMAGE}, {"class_weights": class_weights(5)}),
    "mlp sample weights": ("mlp", mlp, {"hidden": 24, "layers": 2, **IMAGE}, {"label_smoothing": 0.1, "sample_weights": True}),
    "mlp both weights": ("mlp", mlp, {"hidden": 24, "layers": 2, **IMAGE},
                         {"class_weights": class_weights(5), "sample_weights": True}),
    "autoencoder weights": ("sequence", autoencoder, AUTOENCODER, {"mean_squared_error": {}, "sample_weights": True}),
    "mlp": ("mlp", mlp, {"hidden": 24, "layers": 3, **IMAGE}, {"label_smoothing": 0.1, "top": 2}),
    "vit": ("vit", vit, {"patch": 4, "layers": 2, "width": 16, "heads": 2, "image": [12, 8, 3], "classes": 5}, {}),
    "vit dropout": ("vit", vit, {"patch": 3, "layers": 1, "width": 12, "heads": 2, "hidden": 20, "dropout": 0.2,
                                 "attention_dropout": 0.1, "image": [9, 6, 3], "classes": 5}, {}),
    "resnet": ("resnet", resnets.resnet, {"depth": 8, "width": 8, **IMAGE}, {}),
    # By Winograd's filtering on the cpu (operations/images/winograd.h).
    "resnet wide": ("resnet", resnets.resnet, {"depth": 8, "width": 32, **IMAGE, "image": [16, 14, 3]}, {}),
    "resnet 18": ("resnet", resnets.resnet, {**RESNET, "depth": 18, "stem": "small", "image": [9, 8, 3], "zero_init_residual": True}, {}),
    "resnet 50": ("resnet", resnets.resnet, {**RESNET, "depth": 50, "drop_path": 0.4, "zero_init_residual": True}, {}),
    "resnet groups": ("resnet", resnets.resnet, {**RESNET, "depth": 18, "norm": "group", "groups": 4, "drop_path": 0.4}, {}),
    "transformer": ("transformer", encoder_decoders.transformer, PAIRS, {"label_smoothing": 0.1, "ignore_index": 0}),
    "transformer dropout": ("transformer", encoder_decoders.transformer,
                            {**PAIRS, "dropout": 0.2, "init": "depth_scaled", "tie": "none", "decoder_layers": 2}, {}),
    "transformer post": ("transformer", encoder_decoders.transformer,
                         {**PAIRS, "norm": "post", "positions": "learned", "tie": "target_output", "activation": "gelu",
                          "no_bias": True, "head_width": 6, "logit_clip": 2.0}, {}),
    "unet": ("unet", unet, {"base": 4, "depth": 2, "image": [8, 12, 3], "channels_out": 5}, {}),
    "unet nearest": ("unet", unet, {"base": 4, "depth": 2, "convolutions": 3, "upsample": "nearest", "norm": "none",
                                    "image": [8, 4, 2], "channels_out": 3}, {}),
    "unet ignoring": ("unet", unet, {"base": 2, "depth": 1, "norm": "none", "image": [6, 4, 1], "channels_out": 3},
                      {"ignore_index": 255}),
    "amoebanet_d": ("amoebanet_d", amoebanets.amoebanet(amoebanets.D), {**AMOEBANET, "stem": "small", "dropout": 0.2}, {}),
    "amoebanet_d on imagenet": ("amoebanet_d", amoebanets.amoebanet(amoebanets.D),
                                {**AMOEBANET, "image": [33, 66, 2], "filters": 32}, {}),
    "amoebanet_d of torchgpipe": ("amoebanet_d", amoebanets.amoebanet(amoebanets.D),
                                  {**AMOEBANET, "image": [64, 96, 3], "filters": 32, "variant": "torchgpipe"}, {}),
    "amoebanet_d auxiliary": ("amoebanet_d", amoebanets.amoebanet(amoebanets.D),
                              {**AMOEBANET, **AUXILIARY, "image": [32, 24, 3]}, {"label_smoothing": 0.1}),
    "amoebanet_d auxiliary weights": ("amoebanet_d", amoebanets.amoebanet(amoebanets.D),
                                      {**AMOEBANET, **AUXILIARY, "auxiliary_weight": 1.7},
                                      {"class_weights": class_weights(5), "sample_weights": True}),
    "amoebanet_b": ("amoebanet_b", amoebanets.amoebanet(amoebanets.B), {**AMOEBANET, "stem": "small", "drop_path": 0.3}, {}),
    **{name: ("sequence", layer_lists.sequence, fields, {}) for name, fields in layer_lists.examples().items()},
}


def make_pairs(fields, rng, ignored):
    def ids(context):
        return rng.integers(0, fields["vocabulary"], (SAMPLES, context), np.int32)

    targets = ids(fields["target_context"])
    if ignored is not None:
        targets[rng.random(targets.shape) < 0.3] = ignored
    return {"source": ids(fields["source_context"]), "tokens": ids(fields["target_context"]), "targets": targets,
            "source_length": rng.integers(1, fields["source_context"] + 1, SAMPLES, np.int32)}


def make_batch(fields, rng, ignored=None):
    if "source_context" in fields:
        return make_pairs(fields, rng, ignored)
    if "image" not in fields:
        ids = rng.integers(0, fields["vocabulary"], (SAMPLES, fields["context"] + 1), np.int32)
        batch = {"tokens": ids[:, :-1], "targets": ids[:, 1:]}
        if "segments" in fields:
            batch["segments"] = rng.integers(0, fields["segments"], batch["tokens"].shape, np.int32)
        return batch
    images = rng.normal(size=(SAMPLES, *fields["image"])).astype(np.float32)
    weights = np.array([0.5, 2, 0, 1, 3.25], np.float32)
    if "channels_out" in fields:
        masks = rng.integers(0, fields["channels_out"], (SAMPLES, *fields["image"][:2]), np.int32)
        if ignored is not None:
            masks[rng.random(masks.shape) < 0.2] = ignored
        return {"images": images, "masks": masks}
    labels = rng.integers(0, fields["classes"], SAMPLES, np.int32)
    return {"images": images, "labels": labels, "weights": weights}


def mean_loss(objective, output, tensors, options):
    """The weighted mean as PyTorch's users write it, and what each term weighs."""
    of_samples = tensors["weights"] if "sample_weights" in objective else torch.ones(len(output))
    if "mean_squared_error" in objective:
        losses = F.mse_loss(output, tensors["images"], reduction="none").flatten(1)
        return (losses * of_samples[:, None]).sum() / (of_samples.sum() * losses.shape[1]), None
    targets = next(tensors[name] for name in ("targets", "labels", "masks") if name in tensors)
    rows, flat = output.flatten(0, -2), targets.flatten()
    of_classes = torch.tensor(objective.get("class_weights", [1.0] * rows.shape[1]), dtype=rows.dtype)
    weights = of_classes[flat.clamp(0, rows.shape[1] - 1)] * (flat != options["ignore_index"])
    weights = weights * of_samples.repeat_interleave(targets[0].numel())
    if "sample_weights" not in objective:  # one call then
        return F.cross_entropy(rows, flat, weight=of_classes if "class_weights" in objective else None, **options), weights
    return (F.cross_entropy(rows, flat, reduction="none", **options) * weights).sum() / weights.sum(), weights


class Oracle:
    """`stagecoach-oracle runs`: one process for all runs, as starting it takes longer than a step of a small network."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "runs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def run(self, *arguments):
        line = "\t".join(map(str, arguments))
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        code = self.process.stdout.readline().strip()
        if code != "0":
            sys.exit(f"stagecoach-oracle run {line}: " + (f"exit code {code}" if code else "the process ended"))


class Network:
    """One network in PyTorch, and beside it the program that computes the same."""

    def __init__(self, oracle, name, network, folder):
        self.oracle, self.folder, self.name = oracle, folder, name
        self.kind, self.forward, self.fields, self.objective = network
        self.file = folder / f"{name.replace(' ', '_')}.yaml"
        model = {self.kind: self.fields}
        fields = {name: value for name, value in self.objective.items() if name != "sample_weights"}
        if self.objective:
            model["objective"] = fields if "mean_squared_error" in fields else {"cross_entropy": fields}
        self.more = ["--sample-weights"] if "sample_weights" in self.objective else []
        self.file.write_text(json.dumps(model))

    def run(self, *arguments):
        self.oracle.run("--network", self.file, *self.more, *arguments)

    def initial(self, rng):
        path = self.folder / "initial.safetensors"
        self.run("--init", path, "--seed", SEED)
        arrays = {name: np.array(array) for name, array in read_safetensors(path)[0].items()}
        for name, array in arrays.items():  # zeros and ones would hide what is confused
            if not name.endswith(("mean", "variance")):
                array += rng.normal(0, 0.05, array.shape).astype(np.float32)
        return arrays

    def ours(self, weights, batch, *arguments):
        paths = [self.folder / f"{name}.safetensors" for name in ("weights", "batch", "out")]
        write_safetensors(paths[0], weights)
        write_safetensors(paths[1], batch)
        paths[2].unlink(missing_ok=True)  # it is never overwritten
        self.run("--weights", paths[0], "--batch", paths[1], "--out", paths[2], "--seed", SEED, *arguments)
        return read_safetensors(paths[2])[0]

    def truth(self, weights, batch, micro_batches=1):
        """As `ours`, for so many micro-batches: each has its own random numbers, and batch norm its own statistics."""
        values = {n: torch.tensor(a, dtype=torch.float64, requires_grad=not n.endswith(("mean", "variance")))
                  for n, a in weights.items()}
        tensors = {n: torch.tensor(a.astype(np.int64 if a.dtype == np.int32 else np.float64)) for n, a in batch.items()}
        named = dict(values)
        if self.fields.get("tied_embeddings"):
            named[f"model/{2 * self.fields['layers'] + 2:04d}/weight"] = values["model/0000/token.weight"]
        parts = {n: tensor.tensor_split(micro_batches) for n, tensor in tensors.items()}
        outputs = [self.forward(self.fields, Weights(named, i), {n: part[i] for n, part in parts.items()})
                   for i in range(micro_batches)]
        auxiliary = None
        if isinstance(outputs[0], tuple):
            auxiliary = torch.cat([pair[1] for pair in outputs])
            outputs = [pair[0] for pair in outputs]
        output = torch.cat(outputs)
        targets = next(tensors[name] for name in ("targets", "labels", "masks") if name in tensors)
        options = {"label_smoothing": self.objective.get("label_smoothing", 0), "ignore_index": self.objective.get("ignore_index", -100)}
        loss, of_terms = mean_loss(self.objective, output, tensors, options)
        out = {"output": output}
        if auxiliary is not None:
            auxiliary_loss, _ = mean_loss(self.objective, auxiliary, tensors, options)
            out["measure/auxiliary_loss"] = auxiliary_loss.reshape(1)
            loss = loss + self.fields["auxiliary_weight"] * auxiliary_loss
        loss.backward()
        out["loss"] = loss.reshape(1)
        if "measure/accuracy" in self.measures(targets):
            right = output.flatten(0, -2).argmax(-1) == targets.flatten()
            out["measure/accuracy"] = (right * of_terms).sum().reshape(1) / of_terms.sum()
        for name, value in values.items():
            out[("grad/" if value.requires_grad else "state/") + name] = value.grad if value.requires_grad else value
        return {name: value.detach().numpy() for name, value in out.items()}

    def measures(self, targets):
        if "mean_squared_error" in self.objective:
            return set()
        return {"measure/accuracy"} if targets.dim() != 2 or self.objective else set()


def compare_step(network, report, weights, batch):
    ways = [(1, 1, "never"), (3, 1, "always")]
    batch_norm = network.kind in ("resnet", "unet", "amoebanet_d", "amoebanet_b") and network.fields.get("norm") != "group"
    if not batch_norm:  # whose statistics are those of a micro-batch
        ways += [(1, 2, "always"), (2, 3, "except_first")]
    for stages, micro_batches, mode in ways:
        truth = network.truth(weights, batch, micro_batches)
        for schedule in ("gpipe", "one_forward_one_backward"):
            ours = network.ours(weights, batch, "--stages", stages, "--micro-batches", micro_batches,
                                "--rematerialization", mode, "--schedule", schedule)
            way = f"{network.name} K={stages} M={micro_batches} {mode} {schedule}"
            for name, value in truth.items():
                report.near(f"{way} {name}", ours[name], value, TOLERANCE)


# Maxima over windows have kinks, the more the larger the images: rounding becomes a loss of its own after a few steps.
WITHOUT_CURVE = {"amoebanet_d on imagenet", "amoebanet_d of torchgpipe"}


def compare_curve(network, report, weights, rng):
    """SGD on both sides, each with its own weights."""
    # Maxima and ReLUs have kinks: at 0.01 PyTorch beside PyTorch with weights 1e-7 off loses its way within 20 steps.
    # Bottlenecks of 53 layers do so by themselves: from other weights than near their shortcuts in a single step.
    rate = 0.1
    if network.kind.startswith("amoebanet") or "form" in network.fields:
        rate = 0.0001 if network.kind.startswith("amoebanet") else 0.001
    sides = [dict(weights), {n: a.astype(np.float64) for n, a in weights.items()}]
    losses = ([], [])
    for _ in range(STEPS.get(network.kind, OTHER_STEPS)):
        batch = make_batch(network.fields, rng, network.objective.get("ignore_index"))
        for side, step in enumerate((lambda w: network.ours(w, batch, "--stages", 2), lambda w: network.truth(w, batch))):
            out = step(sides[side])
            losses[side].append(float(out["loss"][0]))
            for name, array in sides[side].items():
                new = out["state/" + name] if "state/" + name in out else array - rate * out["grad/" + name]
                sides[side][name] = new.astype(array.dtype)
    for i, (ours, truth) in enumerate(zip(*losses)):
        report.near(f"{network.name} loss of step {i}", [ours], [truth], TOLERANCE)


# A ReLU or a maximum whose operands rounding puts on the other side changes a gradient by a thousandth, and which one
# does so is the processor's: then other numbers are drawn. A wrong formula is wrong with all of them.
ATTEMPTS = 4


def compare(oracle, name, attempt):
    report, rng = Report("cpu"), np.random.default_rng(11 + attempt)
    with tempfile.TemporaryDirectory() as folder:
        network = Network(oracle, name, NETWORKS[name], pathlib.Path(folder))
        weights = network.initial(rng)
        compare_step(network, report, weights, make_batch(network.fields, rng, network.objective.get("ignore_index")))
        if name not in WITHOUT_CURVE:
            compare_curve(network, report, weights, rng)
    return report


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1])
    torch.set_num_threads(1)
    checks = failures = 0
    with Oracle(sys.argv[1]) as oracle:
        for name in NETWORKS:
            for attempt in range(ATTEMPTS):
                report = compare(oracle, name, attempt)
                checks += report.checks
                if not report.failures:
                    break
                print(f"  {name}: attempt {attempt + 1} of {ATTEMPTS}: {report.failures} failures")
            failures += report.failures
    print(f"networks: {checks} comparisons, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
