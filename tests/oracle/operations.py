"""Every operation of the catalogue in PyTorch: TABLE and LOSSES have a line for each.

A function gets the attributes of a call (0 if there is none of that name) and its operands, with an extent
for the samples in front, and returns the outputs in order; None stands for one that PyTorch does not have.
"""

import collections
import math

import numpy as np
import torch
import torch.nn.functional as F


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


CASES = (0x123456789ABCDEF0, 17, 2, 3)  # seed, step, micro-batch and layer that the cases run with


def dropout_factors(shape, rate, draw, stream=CASES):
    """0 or 1 / (1 - rate) for each element."""
    seed, step, micro_batch, layer = stream
    count = math.prod(shape)
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    counter = (blocks, layer << 16 | draw, micro_batch, step)
    bits = philox(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)[:count]
    return torch.tensor(np.where(bits >= int(rate * 2**32), 1.0 / (1.0 - rate), 0.0).reshape(shape))


def split_heads(a, qkv):
    """Queries, keys, values [n, heads, context, head_width] of packed rows."""
    heads, keys = a["heads"], a["key_heads"] or a["heads"]
    n, context, packed = qkv.shape
    parts = qkv.reshape(n, context, heads + 2 * keys, packed // (heads + 2 * keys)).transpose(1, 2)
    return parts.split([heads, keys, keys], dim=1)


def pack_heads(*parts):
    return torch.cat(parts, dim=1).transpose(1, 2).flatten(2)


def attend(a, q, k, v, seen):
    """Of heads; `seen` says which rows attend to which columns."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
    probabilities = F.softmax(scores, dim=-1)
    if a["dropout"]:
        probabilities = probabilities * dropout_factors(scores.shape, a["dropout"], a["draw"], a.get("stream", CASES))
    return pack_heads(probabilities @ v), torch.logsumexp(scores, dim=-1)


def below_length(keys, columns):
    return (torch.arange(columns) < keys.clamp(1, columns)[:, None])[:, None, None]


def attention(a, qkv, keys=None):
    q, k, v = split_heads(a, qkv)
    places = torch.arange(q.shape[2])
    if not a.get("full"):
        first = torch.zeros(1, dtype=torch.int64) if keys is None else keys[:, None, :, None].clamp(min=0)
        return attend(a, q, k, v, (places <= places[:, None]) & (places >= torch.minimum(first, places[:, None])))
    if keys is None:
        return attend(a, q, k, v, torch.ones(len(places), len(places), dtype=torch.bool))
    exist = below_length(keys, len(places))
    out, log_sum_exp = attend(a, q, k, v, exist)
    return out * exist[:, 0, 0, :, None], log_sum_exp * exist[:, 0]


def cross_attention(a, q, kv, keys):
    heads, key_heads = a["heads"], a["key_heads"] or a["heads"]
    queries = q.unflatten(-1, (heads, -1)).transpose(1, 2)
    k, v = kv.unflatten(-1, (2 * key_heads, -1)).transpose(1, 2).split(key_heads, dim=1)
    return attend(a, queries, k, v, below_length(keys, kv.shape[1]))


def cached_attention(a, qkv, places, positions, history, keys, values):
    """Changes keys and values."""
    q, k, v = split_heads(a, qkv)
    kept = (places >= 0) & (places < len(keys))
    for pool, rows in ((keys, k), (values, v)):
        pool[places[kept]] = pack_heads(rows).detach()[kept]
    rows = torch.where((history >= 0) & (history < len(keys)), history, 0).flatten(0, 1)
    seen = [pool[rows].unflatten(-1, (k.shape[1], -1)).transpose(1, 2) for pool in (keys, values)]
    context, last = history.shape[-1], positions.flatten()
    alive = (last >= 0) & (last < context)
    columns = torch.arange(context) <= torch.where(alive, last, 0)[:, None]
    queries = q.transpose(1, 2).flatten(0, 1)[:, :, None]
    out, _ = attend(a, queries, *seen, columns[:, None, None])
    return (out.reshape(*places.shape, -1) * alive.reshape(*places.shape, 1),)


def angles_of(positions, width, theta, scaling=None):
    frequencies = theta ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    if scaling and scaling["factor"]:
        frequencies = scaled_frequencies(scaling, frequencies)
    return positions.to(torch.float64)[..., None] * frequencies


def scaled_frequencies(a, frequencies):
    """By wave lengths, as Hugging Face's _compute_llama3_parameters; without a context as its linear scaling."""
    context, low, high = a["original_context"], a["low_frequency_factor"], a["high_frequency_factor"]
    if not context:
        return frequencies / a["factor"]
    lengths = 2 * math.pi / frequencies
    smooth = (context / lengths - low) / (high - low)
    between = (1 - smooth) * frequencies / a["factor"] + smooth * frequencies
    long = torch.where(lengths > context / low, frequencies / a["factor"], between)
    return torch.where(lengths < context / high, frequencies, long)


def rows_at(a, context, positions):
    return torch.arange(context) if positions is None else positions.clamp(0, a["positions"] - 1)


def rotate(a, x, positions):
    """As in Hugging Face's Llama, or with `interleaved` as complex numbers, as Meta writes it."""
    angles = angles_of(positions, x.shape[-1], a["theta"], a)
    angles = -angles if a["inverse"] else angles
    if a["interleaved"]:
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        turned = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(-2)
    angles = torch.cat([angles, angles], dim=-1)
    first, second = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()


def rotary(a, qkv, positions=None):
    q, k, v = split_heads(a, qkv)
    places = rows_at(a, q.shape[2], positions)
    if positions is not None:
        places = places[:, None]
    return (pack_heads(rotate(a, q, places), rotate(a, k, places), v),)


def add_sinusoids(a, x, positions=None):
    angles = angles_of(rows_at(a, x.shape[-2], positions), x.shape[-1], 10000.0)
    return (x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2),)


def rms_norm(a, x, weight):
    rstd = torch.rsqrt(x.square().mean(-1) + a["epsilon"])
    return x * rstd[..., None] * weight, rstd


def head_norm(a, qkv, query_weight, key_weight):
    q, k, v = split_heads(a, qkv)
    q, q_rstd = rms_norm(a, q, query_weight)
    k, k_rstd = rms_norm(a, k, key_weight)
    return pack_heads(q, k, v), torch.cat([q_rstd, k_rstd], dim=1).transpose(1, 2)


def layer_norm(a, x, weight, bias):
    rstd = torch.rsqrt(x.var(-1, unbiased=False) + a["epsilon"])
    return F.layer_norm(x, x.shape[-1:], weight, bias, a["epsilon"]), x.mean(-1), rstd


def batch_norm(a, x, weight, bias, running_mean=None, running_variance=None):
    """Changes the running moments, as PyTorch does."""
    places = tuple(range(x.dim() - 1))
    moments = (running_mean, running_variance)
    options = {"training": True, "momentum": a["momentum"], "eps": a["epsilon"]}
    y = F.batch_norm(x.flatten(0, -2), *moments, weight, bias, **options)
    variance = x.var(places, unbiased=False)
    return y.reshape(x.shape), x.mean(places), torch.rsqrt(variance + a["epsilon"]), variance


def batch_norm_fixed(a, x, weight, bias, mean, variance):
    y = F.batch_norm(x.flatten(0, -2), mean, variance, weight, bias, eps=a["epsilon"])
    return (y.reshape(x.shape),)


def group_norm(a, x, weight, bias):
    y = F.group_norm(x.movedim(-1, 1), a["groups"], weight, bias, a["epsilon"]).movedim(1, -1)
    groups = x.reshape(x.shape[0], -1, a["groups"], x.shape[-1] // a["groups"])
    return y, groups.mean((1, 3)), torch.rsqrt(groups.var((1, 3), unbiased=False) + a["epsilon"])


def drop_path_factors(samples, rate, **draw):
    """As factors of dropout, one for each sample: of any tensor of samples."""
    return dropout_factors((samples,), rate, **draw)


def drop_path(a, x):
    factors = drop_path_factors(x.shape[0], a["rate"], draw=a["draw"])
    return (x * factors.reshape(-1, *[1] * (x.dim() - 1)),)


def gelu(x):
    return F.gelu(x, approximate="tanh")


def linear(a, x, weight, *rest):
    rest = list(rest)
    y = F.linear(x, weight, rest.pop(0) if a["bias"] else None)
    if a["residual"]:
        y = y + rest.pop(0)
    return (y, gelu(y)) if a["gelu"] else (y,)


def linear_input_gradient(_a, dy, weight, gelu_input):
    leaf = gelu_input.detach().requires_grad_()
    return torch.autograd.grad(F.linear(gelu(leaf), weight.detach()), leaf, dy.detach())


def embedding(_a, ids, token, position=None):
    tokens = F.embedding(ids, token)
    return (tokens if position is None else tokens + position,)


def channels_first(x):
    return x.permute(0, 3, 1, 2)


def channels_last(x):
    return x.permute(0, 2, 3, 1)


def plane(a, name):
    return a[name + "_height"], a[name + "_width"]


def convolution(a, x, weight, bias=None):
    steps = [plane(a, name) for name in ("stride", "padding", "dilation")]
    y = F.conv2d(channels_first(x), channels_first(weight), bias, *steps, a["groups"])
    return (channels_last(y),)


def max_pool(a, x):
    steps = [plane(a, name) for name in ("window", "stride", "padding")]
    y, places = F.max_pool2d(channels_first(x), *steps, return_indices=True)
    rows = torch.arange(y.shape[2])[:, None] * steps[1][0] - steps[2][0]
    columns = torch.arange(y.shape[3]) * steps[1][1] - steps[2][1]
    width = x.shape[2]
    choice = (places // width - rows) * steps[0][1] + places % width - columns
    return channels_last(y), channels_last(choice)


def average_pool(a, x):
    steps = [plane(a, name) for name in ("window", "stride", "padding")]
    y = F.avg_pool2d(channels_first(x), *steps, count_include_pad=bool(a["count_padding"]))
    return (channels_last(y),)


def cross_entropy(a, logits, targets, *weights):
    options = {"label_smoothing": a["label_smoothing"], "ignore_index": a["ignore_index"]}
    logits, targets = logits.flatten(0, -2), targets.flatten()
    counts = targets != a["ignore_index"]
    given = ~counts | (targets >= 0) & (targets < logits.shape[1])
    known = (targets >= 0) & (targets < logits.shape[1])
    # PyTorch refuses such targets: here their rows are not numbers.
    of_row = weights[0].flatten() if a["weighted"] else torch.ones(len(targets))
    spoilt = logits * torch.where(given | (of_row == 0), 1.0, math.nan)[:, None]
    # Of weight 0 is what counts for nothing, whatever it is; to PyTorch 0 times what is not a number is none.
    wanted = counts
    spoilt, counts = torch.where((of_row != 0)[:, None], spoilt, 0), counts & (of_row != 0)
    safe = torch.where(given, targets, 0)
    sums = [(of_row * F.cross_entropy(spoilt, safe, reduction="none", **options)).sum(), (of_row * counts).sum()]
    # Its topk leaves the order of equal values open.
    places = torch.where(known, targets, 0)[:, None]
    own, classes = logits.gather(1, places), torch.arange(logits.shape[1])
    before = torch.where(classes < places, ~(logits < own), ~(logits <= own)) & (classes != places)
    for top in [1] * bool(a["accuracy"]) + [a["top"]] * bool(a["top"]):
        sums.append((of_row * ((before.sum(1) < top) & counts & known)).sum())
    if a["mean_iou"] or a["per_class"] and not a["gradient"]:
        guesses = torch.where(logits.isnan().any(1), -1, (logits == logits.max(1, keepdim=True)[0]).int().argmax(1))
        of_class = F.one_hot(places[wanted & known].flatten(), len(classes))
        guessed = guesses[wanted & known][:, None] == classes
        sums += torch.stack([(of_class * guessed).sum(0), of_class.sum(0), guessed.sum(0)], 1).flatten().double()
    return sums


def mean_squared_error(a, prediction, target, *weights):
    if not a["weighted"]:
        return [F.mse_loss(prediction, target, reduction="sum"), torch.tensor(prediction.numel())]
    losses = F.mse_loss(prediction, target, reduction="none").flatten(1)
    return [(losses * weights[0][:, None]).sum(), weights[0].sum() * losses.shape[1]]


def pad(a, x):
    extents = [x.shape[1] + a["top"] + a["bottom"], x.shape[2] + a["left"] + a["right"]]
    rows, columns = (torch.arange(n) - before for n, before in zip(extents, (a["top"], a["left"])))
    inside = [(0 <= place) & (place < n) for place, n in ((rows, x.shape[1]), (columns, x.shape[2]))]
    picked = x[:, rows.clamp(0, x.shape[1] - 1)][:, :, columns.clamp(0, x.shape[2] - 1)]
    return (picked * (inside[0][:, None] & inside[1]).unsqueeze(-1),)


def transposed_convolution(a, x, weight):
    stride, padding = (a["stride_height"], a["stride_width"]), (a["padding_height"], a["padding_width"])
    kernel = weight.shape[1:3]
    rest = [a[name] - (n - 1) * s + 2 * p - k for name, n, s, p, k
            in zip(("image_height", "image_width"), x.shape[1:3], stride, padding, kernel)]
    y = F.conv_transpose2d(channels_first(x), channels_first(weight), None, stride, padding, rest, a["groups"])
    return (channels_last(y),)


def upsample(a, x):
    return (x.repeat_interleave(a["height"], 1).repeat_interleave(a["width"], 2),)


TABLE = {
    "add": lambda _a, x, y: (x + y,),
    "add_sinusoids": add_sinusoids,
    "attention": attention,
    "average_pool": average_pool,
    "batch_norm": batch_norm,
    "batch_norm_fixed": batch_norm_fixed,
    "cached_attention": cached_attention,
    "clip": lambda a, x: (x.clamp(-a["limit"], a["limit"]),),
    "concatenate": lambda _a, *parts: (torch.cat(parts, dim=-1),),
    "convolution": convolution,
    "cross_attention": cross_attention,
    "drop_path": drop_path,
    "dropout": lambda a, x: (x * dropout_factors(x.shape, a["rate"], a["draw"]),),
    "embedding": embedding,
    "gelu": lambda _a, x: (gelu(x),),
    "gelu_erf": lambda _a, x: (F.gelu(x),),
    "global_average_pool": lambda _a, x: (x.mean((1, 2)),),
    "group_norm": group_norm,
    "head_norm": head_norm,
    "layer_norm": layer_norm,
    "linear": linear,
    "linear_input_gradient": linear_input_gradient,
    "max_pool": max_pool,
    "pad": pad,
    "prepend_token": lambda _a, x, token, position: (torch.cat([token.expand(len(x), 1, -1), x], 1) + position,),
    "relu": lambda _a, x: (F.relu(x),),
    "rms_norm": rms_norm,
    "reshape": lambda a, x: (x.reshape(x.shape[0], *a.get("shape", [])),),
    "rotary": rotary,
    "scale": lambda a, x: (a["factor"] * x,),
    "silu": lambda _a, x: (F.silu(x),),
    "slice": lambda a, x: (x[..., a["begin"] : a["begin"] + a["extent"]],),
    "slice_gradient": lambda a, dy: (F.pad(dy, (a["begin"], a["whole"] - a["begin"] - dy.shape[-1])),),
    "transposed_convolution": transposed_convolution,
    "upsample": upsample,
    "swiglu": lambda _a, gate, up: (F.silu(gate) * up,),
}
LOSSES = {"cross_entropy": cross_entropy, "mean_squared_error": mean_squared_error}


def number_of(text):
    if text == "true":
        return 1
    if text.startswith("["):
        return [int(number) for number in text.strip("[]").split(",")]
    return float(text) if any(c in text for c in ".e") else int(text)


def pairs(report, label, ours, truth):
    """Both side by side; one that the other side lacks fails."""
    if len(ours) != len(truth):
        report.fail(label, f"{len(ours)} values beside {len(truth)}")
    return list(zip(ours, truth))


class Case:
    """The recorded arrays of one case; numbers are float64 leaves of an autograd graph."""

    def __init__(self, name, arrays, metadata):
        self.name, self.arrays = name, arrays
        _, self.operation, self.case = name.split("/")
        self.attributes = collections.defaultdict(int)
        for word in metadata[name].split():
            key, _, value = word.partition("=")
            self.attributes[key] = number_of(value)
        self.outputs = [int(word) for word in metadata[name + "/outputs"].split()]
        self.inputs = [self._leaf(array) for array in self.all("input")]
        self.states = [int(word) for word in metadata[name + "/states"].split()]
        for i in self.states:
            self.inputs[i].requires_grad_(False)
        self.adds = [self._leaf(array).requires_grad_(False) for array in self.all("add")]

    def all(self, what):
        found, i = [], 0
        while f"{self.name}/{what}{i}" in self.arrays:
            found.append(self.arrays[f"{self.name}/{what}{i}"])
            i += 1
        return found

    @staticmethod
    def _leaf(array):
        if array.dtype == np.int32:
            return torch.tensor(array, dtype=torch.int64)
        return torch.tensor(array, dtype=torch.float64, requires_grad=True)

    def compare(self, report):
        label = f"{self.operation}.{self.case}"
        if self.operation in LOSSES:
            self._compare_loss(report, label)
            return
        outputs = TABLE[self.operation](self.attributes, *self.inputs, *self.adds)
        for i, (ours, truth) in enumerate(pairs(report, label, self.all("output"), outputs)):
            report.near(f"{label}.output{i}", ours, truth)
        changed = [self.inputs[i] for i in self.states]
        for i, (ours, truth) in enumerate(pairs(report, label, self.all("state"), changed)):
            report.near(f"{label}.state{i}", ours, truth)
        for i, (ours, truth) in enumerate(pairs(report, label, self.all("added"), self.adds)):
            report.near(f"{label}.added{i}", ours, truth)
        upstream = [torch.tensor(array, dtype=torch.float64) for array in self.all("d_output")]
        if not upstream:
            return
        handed_on = pairs(report, label, self.outputs, upstream)
        sum((outputs[i] * dy).sum() for i, dy in handed_on).backward()
        for i, leaf in enumerate(self.inputs):
            if leaf.requires_grad:
                ours = self.arrays[f"{self.name}/d_input{i}"]
                report.near(f"{label}.d_input{i}", ours, leaf.grad)

    def _compare_loss(self, report, label):
        weights = self.inputs[2 : 2 + self.attributes["weighted"]]
        sums = LOSSES[self.operation](self.attributes, *self.inputs[:2], *weights)
        outputs = self.all("output")
        for ours, truth in pairs(report, label, outputs.pop(), sums):
            report.near(f"{label}.sums", ours, truth)
        if outputs:
            sums[0].backward()
            scale = float(self.inputs[-1])
            report.near(f"{label}.gradient", outputs[0], self.inputs[0].grad * scale)


def compare_operations(arrays, metadata, report):
    names = sorted(key for key in metadata if key.startswith("case/") and key.count("/") == 2)
    unknown = {name.split("/")[1] for name in names} - set(TABLE) - set(LOSSES)
    if unknown or not names:
        report.fail("operations", f"not in operations.py: {', '.join(sorted(unknown)) or 'all'}")
        return
    for name in names:
        Case(name, arrays, metadata).compare(report)
