"""Shapes and job files."""
import copy

# micro_tokens: of a micro-batch at most; step_tokens: of a step, about. PyTorch's activations must fit as well.
GPT2 = {
    "124M": {"layers": 12, "width": 768, "heads": 12, "vocabulary": 50257, "micro_tokens": 32768, "step_tokens": 131072},
    "350M": {"layers": 24, "width": 1024, "heads": 16, "vocabulary": 50257, "micro_tokens": 16384, "step_tokens": 65536},
    "1.5B": {"layers": 48, "width": 1600, "heads": 25, "vocabulary": 50257, "micro_tokens": 8192, "step_tokens": 65536},
    # layers: at most; as many as fit
    "6.7B-shaped": {"layers": 32, "width": 4096, "heads": 32, "vocabulary": 50257, "micro_tokens": 4096,
                    "step_tokens": 32768},
}
TINY_SHAPES = {
    "tiny": {"layers": 2, "width": 64, "heads": 2, "vocabulary": 256, "micro_tokens": 128, "step_tokens": 512},
    "tiny, as many layers as fit": {"layers": 8, "width": 64, "heads": 2, "vocabulary": 256, "micro_tokens": 128,
                                    "step_tokens": 256},
}
# GPipe's Table 1: width 2048, hidden 8192, 32 heads, context 1024, vocabulary 32000, batch 32.
TRANSFORMER = {"width": 2048, "heads": 32, "context": 1024, "vocabulary": 32000, "batch": 32}
TINY_TRANSFORMER = {"width": 64, "heads": 4, "context": 64, "vocabulary": 256, "batch": 8}

# (shape, context), the most telling first: what does not fit into the time is left out from the end.
SPEED_ROWS = [("1.5B", 1024), ("124M", 1024), ("6.7B-shaped", 1024), ("350M", 1024), ("1.5B", 4096),
              ("6.7B-shaped", 4096), ("124M", 4096), ("350M", 4096)]
TINY_SPEED_ROWS = [("tiny", 32), ("tiny, as many layers as fit", 64)]

ENDLESS = 1_000_000  # steps of a job that is ended when enough was seen; so it never writes a checkpoint


def merged(base, changes):
    result = copy.deepcopy(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def job(name, shape, context, batch, micro_batches, precision="float32", steps=ENDLESS, dropout=0.0,
        schedule="one_forward_one_backward", rematerialization="never"):
    """A GPT on the synthetic text, AdamW, clipping at 1 as usual."""
    spec = {
        "name": name, "seed": 1,
        "model": {"gpt": {"layers": shape["layers"], "width": shape["width"], "heads": shape["heads"],
                          "context": context, "vocabulary": shape["vocabulary"], "dropout": dropout}},
        "data": {"text": {"path": "input.txt"}},
        "training": {"steps": steps, "batch_size": batch, "micro_batches": micro_batches, "optimizer": {"adamw": {}},
                     "learning_rate": {"constant": {"peak": 1e-4}}, "gradient_clip_norm": 1.0},
        "pipeline": {"stages": 1, "schedule": schedule, "rematerialization": rematerialization, "partition": "uniform"},
    }
    if precision != "float32":
        spec["precision"] = precision
    return spec


def tiny_job(precision="float32", steps=12, every_steps=0, trial=False):
    """Small enough to compare bits of many runs, with everything that could tell them apart."""
    width, context = (32, 16) if trial else (128, 64)
    spec = job("gpu-check", {"layers": 4, "width": width, "heads": 4, "vocabulary": 256}, context, 8, 4, precision, steps,
               dropout=0.1, schedule="gpipe", rematerialization="always")
    return merged(spec, {"seed": 7, "training": {"learning_rate": {"constant": {"peak": 1e-3, "warmup_steps": 2}}},
                         "checkpoint": {"every_steps": every_steps}})


def micro_batch_choices(context, most_tokens):
    """Sequences of a micro-batch to try, the largest first."""
    size, choices = 1, []
    while size * context <= most_tokens:
        choices.append(size)
        size *= 2
    return choices[::-1] or [1]


def synthetic_text(size):
    """Text of about `size` bytes that a model can learn and no page of a cache repeats at once."""
    words = ["stage", "coach", "rolls", "from", "town", "to", "and", "no", "passenger", "is", "lost", "on", "the", "way"]
    state, parts, length = 12345, [], 0
    while length < size:
        state = (1103515245 * state + 12345) % 2**31
        word = words[(state >> 16) % len(words)] + (". " if (state >> 8) % 11 == 0 else " ")
        parts.append(word)
        length += len(word)
    return "".join(parts)
