#!/usr/bin/env python3
"""Training steps of image networks beside PyTorch's on CPUs, float32, in turn.

    bench/torch_networks.py --python PYTHON [--rounds 5] [--threads 1] [--batch 32] [--micro-batches 4] [--compile]
                            [--networks resnet_18,resnet_50,amoebanet_d_6_64]

Every round runs build/bin/network-bench and then the same network, batch and micro-batches in PyTorch (which --python has):
channels last, gradients added up over the micro-batches, SGD with momentum (foreach). --compile: through torch.compile,
compiling not counted. Seconds are the process's own with one thread, the wall's with more; a line a network with the
medians and the median of the rounds' ratios.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from statistics import median

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIDES = {"resnet_20": (32, 3), "resnet_18": (32, 3), "resnet_50": (64, 3), "amoebanet_d_6_64": (32, 3),
         "amoebanet_d_3_16": (28, 1)}


def ours(options, network):
    report = subprocess.run(
        [ROOT / "build" / "bin" / "network-bench", f"--network={network}", f"--batch={options.batch}",
         f"--micro-batches={options.micro_batches}", f"--threads={options.threads}", "--rounds=3"],
        check=True, text=True, capture_output=True).stdout
    return float(re.search(r"step ([0-9.]+) s", report).group(1)), float(re.search(r"([0-9.]+) GFLOP/s", report).group(1)), \
        float(re.search(r"% of ([0-9.]+)", report).group(1))


def theirs(options, network):
    command = [options.python, __file__, "--step", network, "--python", "", "--threads", str(options.threads),
               "--batch", str(options.batch), "--micro-batches", str(options.micro_batches)]
    report = subprocess.run(command + ["--compile"] * options.compile, check=True, text=True, capture_output=True,
                            env=os.environ | {"OMP_NUM_THREADS": str(options.threads)}).stdout
    return json.loads(report.splitlines()[-1])["seconds"]


def build(name):
    """The network `name` as network-bench has it."""
    from torch import nn
    import torch
    import torch.nn.functional as F

    def normed(i, o, k=1, stride=1, padding=0):
        return nn.Sequential(nn.Conv2d(i, o, k, stride, padding, bias=False), nn.BatchNorm2d(o))

    class Block(nn.Module):
        def __init__(self, i, width, stride, bottleneck):
            super().__init__()
            o = width * 4 if bottleneck else width
            self.path = nn.Sequential(normed(i, width), nn.ReLU(), normed(width, width, 3, stride, 1), nn.ReLU(),
                                      normed(width, o)) if bottleneck else \
                nn.Sequential(normed(i, width, 3, stride, 1), nn.ReLU(), normed(width, width, 3, 1, 1))
            self.shortcut = normed(i, o, 1, stride) if i != o or stride != 1 else nn.Identity()

        def forward(self, x):
            return F.relu(self.path(x) + self.shortcut(x))

    def resnet(counts, bottleneck):
        layers, i = [normed(3, 64, 3, 1, 1), nn.ReLU()], 64
        for stage, count in enumerate(counts):
            for n in range(count):
                layers.append(Block(i, 64 << stage, 2 if stage and not n else 1, bottleneck))
                i = (64 << stage) * (4 if bottleneck else 1)
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 10))

    sys.path.insert(0, str(ROOT / "tests" / "oracle"))
    from amoebanets import D

    def active(*parts):
        return nn.Sequential(nn.ReLU(), *parts)

    class Piece(nn.Module):
        def __init__(self, kind, i, c, stride):
            super().__init__()
            q = c // 4
            adapt = [normed(i, c)] if i != c else []
            self.out = nn.Sequential(*{
                "id": lambda: [active(normed(i, c))] if i != c else [],
                "c1": lambda: [active(normed(i, c, 1, stride))],
                "c3": lambda: [active(normed(i, q)), active(normed(q, q, 3, stride, 1)), active(normed(q, c))],
                "c17": lambda: [active(normed(i, q)), active(normed(q, q, (1, 7), (1, stride), (0, 3))),
                                active(normed(q, q, (7, 1), (stride, 1), (3, 0))), active(normed(q, c))],
                "max2": lambda: [nn.MaxPool2d(2, stride)] + adapt,
                "max3": lambda: [nn.MaxPool2d(3, stride, 1)] + adapt,
                "avg3": lambda: [nn.AvgPool2d(3, stride, 1, count_include_pad=False)] + adapt}[kind]())

        def forward(self, x):
            return self.out(x)

    class Halving(nn.Module):
        def __init__(self, i, c):
            super().__init__()
            self.even, self.odd = (nn.Conv2d(i, c // 2, 1, 2, bias=False) for _ in range(2))
            self.norm = nn.BatchNorm2d(c)

        def forward(self, x):
            x = F.relu(x)
            return self.norm(torch.cat([self.even(x), self.odd(F.pad(x, (0, 1, 0, 1))[:, :, 1:, 1:])], 1))

    class Cell(nn.Module):
        def __init__(self, i1, i2, c, reduces, halves, first):
            super().__init__()
            sums, self.outputs = D[reduces]
            self.s0 = active(normed(i1, c))
            if halves:
                self.s1 = Halving(i2, c)
            else:
                self.s1 = nn.Identity() if first or i2 == c else active(normed(i2, c))
            widths = [c, i2 if first else c] + [c] * 5
            self.terms, self.states = nn.ModuleList(), []
            for text in sums:
                for term in text.split(" + "):
                    kind, state = term.split()
                    self.states.append(int(state))
                    self.terms.append(Piece(kind, widths[int(state)], c, 2 if reduces and int(state) < 2 else 1))

        def forward(self, x1, x2):
            states = [self.s0(x1), self.s1(x2)]
            for t in range(0, len(self.terms), 2):
                states.append(self.terms[t](states[self.states[t]]) + self.terms[t + 1](states[self.states[t + 1]]))
            return torch.cat([states[i] for i in self.outputs], 1)

    class Amoebanet(nn.Module):
        def __init__(self, layers, d, channels):
            super().__init__()
            self.stem, self.cells = normed(channels, d, 3, 1, 1), nn.ModuleList()
            i1 = i2 = d
            halved = False
            for section in range(3):
                for reduces in [True] * (section > 0) + [False] * (layers // 3):
                    c = d << section
                    self.cells.append(Cell(i1, i2, c, reduces, halved, not self.cells))
                    i1, i2, halved = c * (3 if reduces else 4), i1, reduces
            self.head = nn.Linear(i1, 10)

        def forward(self, x):
            x = before = self.stem(x)
            for cell in self.cells:
                x, before = cell(x, before), x
            return self.head(F.relu(x).mean((2, 3)))

    return {"resnet_18": lambda: resnet([2, 2, 2, 2], False), "resnet_50": lambda: resnet([3, 4, 6, 3], True),
            "amoebanet_d_6_64": lambda: Amoebanet(6, 64, 3), "amoebanet_d_3_16": lambda: Amoebanet(3, 16, 1)}[name]()


def step(options):
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(options.threads)
    side, channels = SIDES[options.step]
    model = build(options.step).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, foreach=True)
    run = torch.compile(model) if options.compile else model
    size = options.batch // options.micro_batches
    images = torch.randn(options.micro_batches, size, channels, side, side)
    labels = torch.randint(10, (options.micro_batches, size))
    now = time.process_time if options.threads == 1 else time.perf_counter
    seconds = []
    for _ in range(5):
        start = now()
        for i in range(options.micro_batches):
            (F.cross_entropy(run(images[i].contiguous(memory_format=torch.channels_last)), labels[i]) /
             options.micro_batches).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(now() - start)
    count = sum(p.numel() for p in model.parameters())
    print(json.dumps({"seconds": median(seconds[2:]), "parameters": count, "torch": torch.__version__}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--networks", default="resnet_18,resnet_50,amoebanet_d_6_64")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        return step(options)
    print("| network | step s | PyTorch's | PyTorch's / ours | GFLOP/s | share of peak |\n| --- | --- | --- | --- | --- | --- |")
    for network in options.networks.split(","):
        mine, other, rates, peaks = [], [], [], []
        for _ in range(options.rounds):
            seconds, rate, peak = ours(options, network)
            mine.append(seconds)
            rates.append(rate)
            peaks.append(peak)
            other.append(theirs(options, network))
        ratio = median(o / m for o, m in zip(other, mine))
        print(f"| {network} | {median(mine):.3f} | {median(other):.3f} | {ratio:.2f} | {median(rates):.1f} | "
              f"{100 * median(rates) / median(peaks):.0f} % |", flush=True)


if __name__ == "__main__":
    main()
