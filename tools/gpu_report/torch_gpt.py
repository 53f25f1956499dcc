#!/usr/bin/env python3
"""PyTorch's side of the speed table: the same GPT, trained on the same device, eager and compiled in turn.

    torch_gpt.py --device cuda:0 --layers 12 --width 768 --heads 12 --vocabulary 50257 --context 1024 \\
        --micro-batch 16 --micro-batches 4 --modes eager,compile
    torch_gpt.py --device cuda:0 --product 8192

The usual recipe: float32 weights, torch.autocast to bfloat16, scaled_dot_product_attention(is_causal), AdamW (fused on a
card), gradients clipped at norm 1, accumulated over the micro-batches. No dropout, random tokens. --compile blocks: each
block, and the head with its loss, is compiled (equal blocks share one compilation); whole: the model as one graph.
Prints a line of JSON a mode and round; the last one of a mode counts.
"""
import argparse
import contextlib
import json
import math
import time

import torch
import torch.nn.functional as F

STARTED = time.monotonic()
ROUNDS = 2
WARM_UP_STEPS = 3


def attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    context = q.shape[-2]  # before PyTorch 2.0
    future = torch.ones(context, context, dtype=torch.bool, device=q.device).triu(1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return F.softmax(scores.masked_fill(future, -math.inf), dim=-1) @ v


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.proj = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, context, width = x.shape
        parts = self.qkv(self.ln1(x)).view(batch, context, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(attention(*parts).transpose(1, 2).reshape(batch, context, width))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Head(torch.nn.Module):
    def __init__(self, width, vocabulary):
        super().__init__()
        self.ln, self.linear = torch.nn.LayerNorm(width), torch.nn.Linear(width, vocabulary, bias=False)

    def forward(self, x, targets):
        return F.cross_entropy(self.linear(self.ln(x)).flatten(0, 1), targets.flatten())


class Gpt(torch.nn.Module):
    def __init__(self, layers, width, heads, vocabulary, context):
        super().__init__()
        self.token, self.position = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = Head(width, vocabulary)

    def forward(self, tokens, targets, blocks=None, head=None):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in blocks or self.blocks:
            x = block(x)
        return (head or self.head)(x, targets)


class Trainer:
    def __init__(self, options):
        self.options, self.device = options, torch.device(options.device)
        torch.manual_seed(1)
        with self.on_device():
            self.model = Gpt(options.layers, options.width, options.heads, options.vocabulary, options.context)
        self.model.to(self.device)
        fused = {"fused": True} if self.device.type == "cuda" else {}
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, **fused)
        shape = (options.micro_batches, 2, options.micro_batch, options.context)
        self.data = torch.randint(0, min(256, options.vocabulary), shape, device=self.device)
        self.functions = {"eager": self.model}
        self.cpu_times = []  # of this process, a step

    def on_device(self):
        # Weights of billions are made where they are used; before PyTorch 2 a device is no context.
        return self.device if hasattr(torch, "compile") else contextlib.nullcontext()

    def compiled(self):
        # Blocks of older versions are compiled one by one; beyond the limit they would quietly stay eager.
        for limit in ("cache_size_limit", "recompile_limit"):
            if hasattr(torch._dynamo.config, limit):
                setattr(torch._dynamo.config, limit, 1024)
        if self.options.compile == "whole":
            return torch.compile(self.model)
        blocks = [torch.compile(block) for block in self.model.blocks]
        head = torch.compile(self.model.head)
        return lambda tokens, targets: self.model(tokens, targets, blocks, head)

    def autocast(self):
        if self.options.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def step(self, mode):
        if mode not in self.functions:
            self.functions[mode] = self.compiled()
        for tokens, targets in self.data:
            with self.autocast():
                loss = self.functions[mode](tokens, targets) / self.options.micro_batches
            loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def timed_step(self, mode):
        self.wait()
        began, cpu_began = time.perf_counter(), time.process_time()
        self.step(mode)
        self.wait()
        self.cpu_times.append(time.process_time() - cpu_began)
        return time.perf_counter() - began

    def peak_bytes(self):
        return torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else None


def seconds_left(options):
    return options.seconds_left - (time.monotonic() - STARTED)


def median(values):
    return sorted(values)[len(values) // 2]


def train(options):
    trainer, times, warm_up, dead = Trainer(options), {}, {}, set()
    tokens = options.micro_batch * options.micro_batches * options.context
    for _ in range(ROUNDS):
        for mode in options.modes.split(","):
            if mode in dead or seconds_left(options) < 2:
                continue
            try:
                began = time.monotonic()
                if mode not in times:
                    for _ in range(WARM_UP_STEPS):
                        trainer.timed_step(mode)
                    times[mode], warm_up[mode] = [], time.monotonic() - began
                spent = 0.0
                while spent < options.seconds / ROUNDS and seconds_left(options) > 1 or not times[mode]:
                    times[mode].append(trainer.timed_step(mode))
                    spent += times[mode][-1]
            except Exception as error:  # out of memory, or a compiler that does not do here
                if mode == "eager" and not times.get(mode) and "out of memory" not in str(error):
                    raise
                dead.add(mode)
                trainer.optimizer.zero_grad(set_to_none=True)
                print(json.dumps({"mode": mode, "error": " ".join(str(error).split())[:300]}), flush=True)
                continue
            step = median(times[mode])
            print(json.dumps({"mode": mode, "tokens_per_second": tokens / step, "step_seconds": step,
                              "steps": len(times[mode]), "warm_up_seconds": round(warm_up[mode], 1),
                              "cpu_seconds": median(trainer.cpu_times[-len(times[mode]):]),
                              "peak_bytes": trainer.peak_bytes(),
                              "compiled": options.compile if mode == "compile" else None}), flush=True)


def product(options):
    device = torch.device(options.device)
    dtype = torch.float32 if options.precision == "float32" else torch.bfloat16
    size, tflops = options.product, []
    a, b = (torch.rand(size, size, device=device, dtype=torch.float32).sub_(0.5).to(dtype) for _ in range(2))

    def run(times):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        began = time.perf_counter()
        for _ in range(times):
            torch.matmul(a, b)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - began
    run(3)
    times = max(1, int(0.3 / run(1)))
    for _ in range(7):
        tflops.append(2 * size**3 * times / run(times) / 1e12)
    print(json.dumps({"mode": "product", "size": size, "tflops_median": median(tflops), "tflops_best": max(tflops)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    for name, value in (("layers", 12), ("width", 768), ("heads", 12), ("vocabulary", 50257), ("context", 1024),
                        ("micro-batch", 8), ("micro-batches", 4), ("product", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--modes", default="eager")
    parser.add_argument("--compile", choices=["blocks", "whole"], default="blocks")
    parser.add_argument("--seconds", type=float, default=6, help="of measuring, a mode")
    parser.add_argument("--seconds-left", type=float, default=1e9, help="begin nothing new after so many")
    options = parser.parse_args()
    product(options) if options.product else train(options)


if __name__ == "__main__":
    main()
