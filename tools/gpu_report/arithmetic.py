"""Numbers of the report: work of a token, shares of a ceiling, medians, bisection."""
import re

# Dense bf16 with float32 sums, without sparsity, in TFLOP/s, as the vendor's data sheets say. First match counts.
DATASHEET = [
    (r"\bB200\b", 2250.0), (r"\bB100\b", 1750.0),
    (r"\bGH200\b", 989.5), (r"\bH200 NVL\b", 835.5), (r"\bH200\b", 989.5), (r"\bH20\b", 148.0),
    (r"\bH100 NVL\b", 835.5), (r"\bH100 PCIe\b", 756.5), (r"\bH100\b", 989.5), (r"\bH800\b", 989.5),
    (r"\bA100\b", 312.0), (r"\bA800\b", 312.0), (r"\bA30\b", 165.0), (r"\bA40\b", 149.7), (r"\bA10\b", 125.0),
    (r"\bL40S\b", 362.1), (r"\bL40\b", 181.1), (r"\bL4\b", 121.0), (r"\bRTX 4090\b", 165.2), (r"\bRTX 3090\b", 71.0),
]


def datasheet_tflops(card):
    """Of the card with this name, or None."""
    return next((tflops for pattern, tflops in DATASHEET if re.search(pattern, card)), None)


def flops_per_token(shape, full_attention=False):
    """Model FLOPs of one trained token: 3 x forward, matrix products only, no recomputation. Causal attention counts
    the half that is computed, or all of it as many others count. plan/costs/cost_model.h, ModelFlopsPerToken."""
    width, context = shape["width"], shape["context"]
    columns = context if full_attention else (context + 1) / 2
    block = 2 * 4 * width * width + 2 * 2 * columns * width + 2 * 2 * width * 4 * width
    return 3.0 * (shape["layers"] * block + 2 * width * shape["vocabulary"])


def parameters(shape):
    """Of a GPT with learned positions and a head of its own without bias."""
    width, vocabulary = shape["width"], shape["vocabulary"]
    block = 12 * width * width + 13 * width
    return shape["layers"] * block + vocabulary * width + shape["context"] * width + 2 * width + vocabulary * width


def share(tokens_per_second, shape, tflops, full_attention=False):
    """Of a ceiling in TFLOP/s, or None without one."""
    if not tflops or tokens_per_second is None:
        return None
    return tokens_per_second * flops_per_token(shape, full_attention) / (tflops * 1e12)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if not ordered:
        raise ValueError("median of nothing")
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def largest(fits, low=1, high=1 << 14):
    """The largest n in [low, high] with fits(n), for a fits that holds up to some n and no further; 0 if none."""
    if not fits(low):
        return 0
    step = low
    while low < high:  # doubles first: most are far below `high`
        probe = min(high, low + step)
        if not fits(probe):
            high = probe - 1
            break
        low, step = probe, step * 2
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
