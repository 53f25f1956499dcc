#!/usr/bin/env python3
"""Training steps of image networks beside PyTorch's on CPUs, float32, in turn.

    bench/torch_networks.py --python PYTHON [--rounds 5] [--batch 32] [--micro-batches 4] [--stages 1]
                            [--schedule one_forward_one_backward]
                            [--sides eager,compiled] [--networks resnet_18,resnet_50,amoebanet_d_6_64]

Every round runs ours and then the same network, batch and micro-batches in PyTorch (which --python has): channels last,
gradients added up over the micro-batches, SGD with momentum (foreach). --stages 1: build/bin/network-bench and PyTorch,
a thread each, seconds of the process's own. --stages K: `stagecoach local`, K stages of a thread, nothing
recomputed, wall seconds, beside one of --sides:

    eager, compiled             one process of K threads; compiled is through torch.compile, compiling not counted
    pipeline, pipeline_compiled torch.distributed.pipelining over gloo, Schedule1F1B, K processes of a thread; its cut is
                                where forward and backward, measured by part, come out most even

A line a network and side with the medians and the median of the rounds' ratios.
"""
import argparse
import json
import os
import pathlib
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from statistics import median

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIDES = {"resnet_20": (32, 3), "resnet_18": (32, 3), "resnet_50": (64, 3), "amoebanet_d_6_64": (32, 3),
         "amoebanet_d_3_16": (28, 1)}
JOBS = {"resnet_20": {"resnet": {"depth": 20, "width": 64}},
        "resnet_18": {"resnet": {"depth": 18, "form": "imagenet", "stem": "small"}},
        "resnet_50": {"resnet": {"depth": 50, "form": "imagenet", "stem": "small"}},
        "amoebanet_d_6_64": {"amoebanet_d": {"layers": 6, "filters": 64, "stem": "small"}},
        "amoebanet_d_3_16": {"amoebanet_d": {"layers": 3, "filters": 16, "stem": "small"}}}




def ours(options, network, folder):
    """Seconds of a step, and of one stage what share of the core's peak that is."""
    if options.stages > 1:
        return local_step(options, network, folder), None
    report = subprocess.run(
        [options.bin / "network-bench", f"--network={network}", f"--batch={options.batch}",
         f"--micro-batches={options.micro_batches}", "--threads=1", "--rounds=3"],
        check=True, text=True, capture_output=True).stdout
    rate, peak = (float(re.search(pattern, report).group(1)) for pattern in (r"([0-9.]+) GFLOP/s", r"% of ([0-9.]+)"))
    return float(re.search(r"step ([0-9.]+) s", report).group(1)), rate / peak


def local_step(options, network, folder):
    """Seconds of a step of a pipeline of processes: the median of those behind the second."""
    side, channels = SIDES[network]
    count, steps = 4 * options.batch, 8
    (folder / "images").write_bytes(struct.pack(">I4I", 0x804, count, side, side, channels) +
                                    random.Random(1).randbytes(count * side * side * channels))
    (folder / "labels").write_bytes(struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))
    job = {"name": "bench", "seed": 1, "model": {kind: fields | {"image": [side, side, channels], "classes": 10}
                                                 for kind, fields in JOBS[network].items()},
           "data": {"idx": {"images": str(folder / "images"), "labels": str(folder / "labels")}},
           "training": {"steps": steps, "batch_size": options.batch, "micro_batches": options.micro_batches,
                        "optimizer": {"sgd": {"momentum": 0.9}}, "learning_rate": {"constant": {"peak": 1e-3}}},
           "pipeline": {"stages": options.stages, "schedule": options.schedule, "rematerialization": "never"}}
    (folder / "job.json").write_text(json.dumps(job))
    with tempfile.TemporaryDirectory() as state:
        report = subprocess.run([options.bin / "stagecoach", "local", "--stages", str(options.stages), "--threads-per-stage",
                                 "1", "--state-dir", state, "-o", "ndjson", folder / "job.json"],
                                check=True, text=True, capture_output=True).stdout
    events = [json.loads(line) for line in report.splitlines()]
    return median(e["step_seconds"] for e in events if e["event"] == "step" and e["step"] > 2)


def theirs(options, network, side):
    """Seconds of a step of PyTorch, as the last line of JSON says that its first process prints."""
    ranks = options.stages if side.startswith("pipeline") else 1
    threads = options.stages // ranks
    command = [options.python, __file__, "--step", network, "--python", "", "--threads", str(threads), "--stages", str(ranks),
               "--batch", str(options.batch), "--micro-batches", str(options.micro_batches)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [subprocess.Popen(
        command + ["--compile"] * side.endswith("compiled"), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": str(threads), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                          "RANK": str(rank), "WORLD_SIZE": str(ranks)}) for rank in range(ranks)]
    reports = [process.communicate() for process in processes]
    if any(process.returncode for process in processes):
        sys.exit(reports[0][1] + reports[-1][1])
    return json.loads(reports[0][0].splitlines()[-1])["seconds"]


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


def parts_of(model):
    """The model as parts that a pipeline can be cut between: each takes and gives what the next one takes."""
    from torch import nn

    class Stem(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model.stem

        def forward(self, x):
            x = self.inner(x)
            return x, x

    class Pair(nn.Module):
        def __init__(self, cell):
            super().__init__()
            self.cell = cell

        def forward(self, x, before):
            return self.cell(x, before), x

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model.head

        def forward(self, x, before):
            return self.inner(x.relu().mean((2, 3)))

    if isinstance(model, nn.Sequential):
        return list(model)
    return [Stem(), *map(Pair, model.cells), Head()]


def as_tuple(values):
    return values if isinstance(values, tuple) else (values,)


def detached(values):
    return tuple(v.detach().requires_grad_(v.is_floating_point()) for v in as_tuple(values))


def most_even_cuts(parts, images, stages):
    """Where each stage begins, and the end, so that the slowest stage is as quick as it can be."""
    costs = [1e9] * len(parts)
    for _ in range(4):
        values = (images,)
        for i, part in enumerate(parts):
            values = detached(values)
            start = time.process_time()
            result = as_tuple(part(*values))
            sum(v.sum() for v in result).backward()
            costs[i] = min(costs[i], time.process_time() - start)
            values = result

    def cut(begin, left):
        if left == 1:
            return sum(costs[begin:]), [begin, len(parts)]
        options = []
        for end in range(begin + 1, len(parts) - left + 2):
            slowest, cuts = cut(end, left - 1)
            options.append((max(sum(costs[begin:end]), slowest), [begin, *cuts]))
        return min(options)
    return cut(0, stages)[1]


def pipeline(options, model, images, labels):
    """A function that runs a step's forwards and backwards, and the parameters of this process's stage."""
    import torch
    import torch.nn.functional as F
    from torch import distributed, nn
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    rank = int(os.environ["RANK"])
    distributed.init_process_group("gloo")
    parts = parts_of(model)
    cuts = [most_even_cuts(parts, images[0].contiguous(memory_format=torch.channels_last), options.stages)]
    distributed.broadcast_object_list(cuts, src=0)

    class ToChannelsLast(torch.autograd.Function):
        """Boundaries are contiguous in both directions, as gloo wants them; inside it is channels last."""

        @staticmethod
        def forward(_, value):
            return value.contiguous(memory_format=torch.channels_last)

        @staticmethod
        def backward(_, gradient):
            return gradient.contiguous()

    class Stage(nn.Module):

        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(parts[cuts[0][rank]:cuts[0][rank + 1]])

        def forward(self, *values):
            values = tuple(ToChannelsLast.apply(v) if v.dim() == 4 else v for v in values)
            for part in self.parts:
                values = as_tuple(part(*values))
            values = tuple(v.contiguous() for v in values)
            return values if len(values) > 1 else values[0]

    module = Stage().to(memory_format=torch.channels_last)
    run = torch.compile(module) if options.compile else module
    schedule = Schedule1F1B(PipelineStage(run, rank, options.stages, torch.device("cpu")),
                            options.micro_batches, loss_fn=F.cross_entropy)
    whole, targets = images.flatten(0, 1), labels.flatten()

    def forwards_and_backwards():
        if rank == 0:
            schedule.step(whole)
        elif rank == options.stages - 1:
            schedule.step(target=targets, losses=[])
        else:
            schedule.step()
    return forwards_and_backwards, list(module.parameters()), distributed.barrier


def one_process(options, model, images, labels):
    import torch
    import torch.nn.functional as F
    model = model.to(memory_format=torch.channels_last)
    run = torch.compile(model) if options.compile else model

    def forwards_and_backwards():
        for i in range(options.micro_batches):
            (F.cross_entropy(run(images[i].contiguous(memory_format=torch.channels_last)), labels[i]) /
             options.micro_batches).backward()
    return forwards_and_backwards, list(model.parameters()), lambda: None


def step(options):
    import torch
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    side, channels = SIDES[options.step]
    size = options.batch // options.micro_batches
    images = torch.randn(options.micro_batches, size, channels, side, side)
    labels = torch.randint(10, (options.micro_batches, size))
    how = pipeline if options.stages > 1 else one_process
    forwards_and_backwards, parameters, barrier = how(options, build(options.step), images, labels)
    optimizer = torch.optim.SGD(parameters, 1e-3, momentum=0.9, foreach=True)
    now = time.process_time if options.threads * options.stages == 1 else time.perf_counter
    seconds = []
    for _ in range(7):
        barrier()
        start = now()
        forwards_and_backwards()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        barrier()
        seconds.append(now() - start)
    print(json.dumps({"seconds": median(seconds[2:]), "torch": torch.__version__}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--bin", default=ROOT / "build" / "bin", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--schedule", default="one_forward_one_backward", help="ours, with more than one stage")
    parser.add_argument("--sides", default="eager,compiled")
    parser.add_argument("--networks", default="resnet_18,resnet_50,amoebanet_d_6_64")
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        return step(options)
    version = subprocess.run([options.python, "-c", "import torch; print(torch.__version__)"], check=True, text=True,
                             capture_output=True).stdout.strip()
    print(f"PyTorch {version}; {options.batch} images in {options.micro_batches} micro-batches; stages: {options.stages}, "
          f"a thread each; {options.rounds} rounds\n\n| network | step s | share of peak | side | its step s | times |\n"
          "| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for network in options.networks.split(","):
            compare(options, network, pathlib.Path(folder))


def compare(options, network, folder):
    sides = options.sides.split(",")
    mine, shares, others = [], [], {side: [] for side in sides}
    for _ in range(options.rounds):
        seconds, share = ours(options, network, folder)
        mine.append(seconds)
        shares.append(share)
        for side in sides:
            others[side].append(theirs(options, network, side))
    share = f"{median(shares):.0%}" if shares[0] is not None else ""
    for side in sides:
        ratio = median(other / seconds for seconds, other in zip(mine, others[side]))
        print(f"| {network} | {median(mine):.3f} | {share} | {side} | {median(others[side]):.3f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
