#!/usr/bin/env python3
"""A model of a step of GPT training on one card: what each operation computes and moves, and the time that takes under
stated assumptions. A model, not a measurement; docs/architecture/cuda.md, "Cost model of the card". Seconds, bytes and FLOPs throughout.

    tools/gpu_report/card_model.py --card h100
"""
import argparse
import dataclasses
import pathlib
import re
import sys

if __package__ in (None, ""):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from gpu_report.arithmetic import flops_per_token, largest, parameters  # noqa: E402
from gpu_report.jobs import GPT2, micro_batch_choices  # noqa: E402
from gpu_report.table import table  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Card:
    """Of the data sheet: dense bfloat16 FLOP/s, bytes/s of HBM, bytes of HBM."""
    name: str
    flops: float
    bandwidth: float
    memory: float


CARDS = {"h100": Card("H100 SXM", 989.5e12, 3.35e12, 80e9), "h200": Card("H200 SXM", 989.5e12, 4.8e12, 141e9)}


@dataclasses.dataclass(frozen=True)
class Assumptions:
    """None of these is measured."""
    product: float = 0.70  # of the data-sheet rate: power limits the clock under large products
    attention_forward: float = 0.50  # exponentials stand between two products; the mask leaves half-used tiles
    attention_backward: float = 0.40  # five products that share registers, and an order that repeats
    bandwidth: float = 0.85  # of HBM: plain streaming kernels seldom get more
    cache_bandwidth: float = 5.5e12  # bytes/s of L2, where the ids are scanned
    gap: float = 1.5e-6  # between two kernels of a stream
    launch: float = 5e-6  # of the host, for one launch
    step: float = 1e-3  # host and coordinator at the end of a step, when the card idles


@dataclasses.dataclass(frozen=True)
class Operation:
    """One operation of a step, `times` over. `efficiency` names the assumption its FLOPs run at."""
    name: str
    flops: float
    bytes: float
    launches: int = 1
    times: int = 1
    efficiency: str = "product"
    cache_bytes: float = 0.0


def linear(name, rows, width_in, width_out, times, bias=True, residual=False, gelu=False, before=False, rate="product"):
    """Forward, gradient of the input (times GELU's, if one stands `before`) and of the weight, added in float32."""
    flops, x, y, w = 2 * rows * width_in * width_out, 2 * rows * width_in, 2 * rows * width_out, 2 * width_in * width_out
    found = [Operation(f"{name}, forward", flops, x + w + y * (1 + residual + gelu), 1, times, rate),
             Operation(f"{name}, backward", flops, x * (1 + before) + w + y, 1, times, rate),
             Operation(f"{name}, backward", flops, x + y + 4 * w, 1, times, rate)]
    return found + ([Operation("bias gradients", 0, y, 2, times)] if bias else [])


def block(shape, rows, times):
    """Of one block on `rows` tokens: 7 launches forward and 22 backward, as launch_count_test.cc counts."""
    width, context, heads = shape["width"], shape["context"], shape["heads"]
    stream = 2 * rows * width  # bytes of one activation
    scores = 2 * 2 * rows * context * heads  # stored and read again by the repeatable backward pass
    products = 2 * 2 * rows * width * (context + 1) / 2
    return (linear("products of blocks", rows, width, 3 * width, times) +
            linear("products of blocks", rows, width, width, times, residual=True) +
            linear("products of blocks", rows, width, 4 * width, times, gelu=True) +
            linear("products of blocks", rows, 4 * width, width, times, residual=True, before=True) +
            [Operation("attention, forward", products, 4 * stream + 4 * rows * heads, 1, times, "attention_forward"),
             Operation("attention, backward", 2.5 * products, 8 * stream + scores, 2, times, "attention_backward"),
             Operation("layer norms", 0, 2 * stream, 1, 2 * times),
             Operation("layer norms", 0, 4 * stream, 2, 2 * times)])


def chunks_of_head(rows, vocabulary):
    """Of a micro-batch: as kCardHeadChunks in network/passes/head_chunks.h says, for bfloat16."""
    most = max((512 << 20) // (2 * (-(-vocabulary // 8) * 8)), 1024)
    return -(-rows // (1 << (most.bit_length() - 1)))


def operations(shape, micro_batch, micro_batches):
    """Of a whole step in bfloat16 with AdamW and clipping, without dropout and recomputation."""
    rows, width, vocabulary = micro_batch * shape["context"], shape["width"], shape["vocabulary"]
    chunks = chunks_of_head(rows, vocabulary)
    stream, count, named = 2 * rows * width, parameters(shape), min(rows, vocabulary)
    return (block(shape, rows, shape["layers"] * micro_batches) +
            # By chunks with the loss: each adds to the weight's gradient.
            linear("head", rows / chunks, width, vocabulary, micro_batches * chunks, bias=False) +
            # The logits are read again from the cache for their gradient; two sums behind them.
            [Operation("cross entropy", 0, 2 * 2 * rows / chunks * vocabulary, 3, micro_batches * chunks),
             Operation("layer norms", 0, 2 * stream, 1, micro_batches),
             Operation("layer norms", 0, 3 * stream, 2, micro_batches),
             Operation("embedding", 0, 3 * stream, 1, micro_batches),
             Operation("embedding", 0, 2 * stream + 8 * (named + shape["context"]) * width, 2, micro_batches,
                       cache_bytes=4 * rows * named),
             # Norms read gradients; AdamW reads 16 bytes and writes 14 with the bfloat16 copy; gradients to zero.
             Operation("update", 0, (4 + 30 + 4) * count, 4)])


def seconds_of(operation, card, assumed):
    work = max(operation.flops / (card.flops * getattr(assumed, operation.efficiency)),
               operation.bytes / (card.bandwidth * assumed.bandwidth), operation.cache_bytes / assumed.cache_bandwidth)
    return operation.times * (work + operation.launches * assumed.gap)


def predict(shape, micro_batch, micro_batches, card, assumed=Assumptions()):
    """{step_seconds, tokens_per_second, mfu, parts}; parts: {name: share of the step}, "host" for what it waits for."""
    parts, launches = {}, 0
    for operation in operations(shape, micro_batch, micro_batches):
        parts[operation.name] = parts.get(operation.name, 0.0) + seconds_of(operation, card, assumed)
        launches += operation.launches * operation.times
    busy = sum(parts.values())
    step = max(busy, launches * assumed.launch) + assumed.step  # the host runs ahead, or the card waits for it
    parts["host"] = step - busy
    speed = micro_batch * micro_batches * shape["context"] / step
    return {"step_seconds": step, "tokens_per_second": speed, "mfu": speed * flops_per_token(shape) / card.flops,
            "parts": {name: part / step for name, part in parts.items()}}


def card_named(name):
    """The model's card for a name as the driver gives it; None for every other card and for the CPU."""
    if re.search(r"NVL|PCIe|GH200", name or ""):
        return None
    found = re.search(r"\bH[12]00\b", name or "")
    return CARDS[found.group().lower()] if found else None


def model_mfu(card_name, precision, shape, micro_batch, micro_batches):
    """For the column `model`; None where there is no model."""
    card = card_named(card_name)
    return predict(shape, micro_batch, micro_batches, card)["mfu"] if card and precision == "bfloat16" else None


def published(card, name, context):
    """(shape, micro-batch, micro-batches). Layers of the largest: those that 18 bytes a parameter and 34 an activation
    leave room for in 80 % of the memory; gpu_check asks the plan instead, so its number may be another."""
    shape = {**GPT2[name], "context": context}
    if name == "6.7B-shaped":
        def fits(layers):
            return 18 * parameters({**shape, "layers": layers}) + 34 * context * shape["width"] * layers < 0.8 * card.memory
        shape["layers"] = largest(fits, 1, shape["layers"])
    micro_batch = 1 if name == "6.7B-shaped" else micro_batch_choices(context, shape["micro_tokens"])[0]
    return shape, micro_batch, max(1, shape["step_tokens"] // (micro_batch * context))


def sensitivity(work, card):
    """[(assumption, MFU with it 20 % lower, MFU with it 20 % higher)]"""
    default = Assumptions()
    return [(field.name, *(predict(*work, card, dataclasses.replace(
        default, **{field.name: factor * getattr(default, field.name)}))["mfu"] for factor in (0.8, 1.2)))
            for field in dataclasses.fields(Assumptions)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--card", choices=CARDS, default="h100")
    card, lines, parts = CARDS[parser.parse_args().card], [], {}
    for name in GPT2:
        for context in (1024, 4096):
            work = published(card, name, context)
            found = predict(*work, card)
            parts[f"{name}/{context}"] = found["parts"]
            lines.append([name, str(context), str(work[0]["layers"]), f"{work[2]} x {work[1]}",
                          f"{1e3 * found['step_seconds']:.0f}", f"{found['tokens_per_second']:.0f}", f"{found['mfu']:.1%}"])
    print(f"{card.name}: a model, not a measurement\n")
    print(table(["shape", "context", "layers", "batch", "step ms", "tokens/s", "MFU"], lines))
    print(table(["share of the step", *parts], [[name, *(f"{each[name]:.1%}" for each in parts.values())]
                                                for name in parts["124M/1024"]]))
    rows = [[name, f"{low:.1%}", f"{high:.1%}"] for name, low, high in sensitivity(published(card, "1.5B", 1024), card)]
    print(table(["1.5B/1024, MFU if the assumption is", "20 % lower", "20 % higher"], rows), end="")


if __name__ == "__main__":
    main()
