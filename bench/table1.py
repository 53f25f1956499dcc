#!/usr/bin/env python3
"""GPipe's table 1, the largest network that fits: small and trained here, and the whole of it as planned.

  bench/table1.py small [--bin build/bin] [--memory 256] [--layers 18] [--batch 16]
  bench/table1.py paper [--bin build/bin]

small: the largest AmoebaNet-D (L, D), D growing by 4, that `stagecoach plan` fits into so many MiB a stage, without
recomputation and in one piece on one stage (the paper's Naive-1), and in micro-batches of one image with recomputation
on 1, 2 and 4. Each is trained for two steps by `stagecoach local` with that limit, on pictures of noise; forecast and
measured peak of the fullest stage stand beside each other. The next larger one is planned, which must refuse it, and
trained without a limit, to see what it takes.

paper: nothing is trained. Plans for the memory of the paper's and torchgpipe's accelerators: their networks in bytes,
and the largest of the same family that fits here.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import planning
from planning import GIB, MIB, amoebanet, count, fullest, job

PAPER_SMALL = ("82M", "318M", "542M", "1.05B")  # AmoebaNet-D on 8 GB each; 1.8B on 8


def train(plans, spec, name, memory):
    """Peaks of the stages in the last of two steps; where the job fails none, and the reason."""
    state = plans.folder / f"state-{name}"
    stages = spec["pipeline"]["stages"]
    limit = ["--memory-per-stage", str(memory)] if memory else []
    run = subprocess.run([plans.program, "local", "--stages", str(stages), "--threads-per-stage", "1", *limit,
                          "--state-dir", state, "-o", "ndjson", plans.write(spec)], capture_output=True, text=True)
    if run.returncode != 0:
        return None, run.stderr.strip().splitlines()[-1]
    steps = planning.steps_of(state)
    shutil.rmtree(state)
    return [sum(stage["memory_peak"].values()) for stage in steps[-1]["stages"]], ""


def small(options):
    memory = options.memory * MIB
    columns = (("Naive-1", 1, "never", 1), ("Pipeline-1", 1, "always", options.batch),
               ("Pipeline-2", 2, "always", options.batch), ("Pipeline-4", 4, "always", options.batch))
    rows, missed = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        planning.write_pictures(folder)
        plans = planning.Plans(options.bin, folder)
        for (column, stages, mode, micro_batches), paper in zip(columns, PAPER_SMALL):
            def spec_of(filters):
                model = amoebanet(options.layers, filters, [32, 32, 3], 10, "small", "reference")
                return job(model, {"cifar": {"folder": str(folder)}}, options.batch, micro_batches, stages, mode)

            filters, plan, larger = plans.largest(spec_of, range(4, 512, 4), memory)
            peaks, reason = train(plans, spec_of(filters), column, memory)
            if peaks is None:
                sys.exit(f"{column} ({options.layers}, {filters}) was planned to fit and did not train: {reason}")
            forecasts = [planning.stage_bytes(stage) for stage in plan["stages"]]
            ratios = [peak / forecast for peak, forecast in zip(peaks, forecasts)]
            refused = plans.plan(spec_of(larger), memory) is None
            free = spec_of(larger)  # with the cuts that it would have where there is room
            above, reason = train(plans, free, column + "-larger", 0)
            if above is None:
                sys.exit(f"{column} ({options.layers}, {larger}) did not train without a limit: {reason}")
            worst = max(ratios, key=lambda ratio: abs(ratio - 1))
            rows.append([column, f"{options.layers}, {filters}", count(planning.parameters(plan)),
                         ", ".join(map(str, planning.balance(plan))), f"{max(forecasts) / MIB:.1f}",
                         f"{max(peaks) / MIB:.1f}", f"{worst:.3f}",
                         f"{larger}: " + ("refused" if refused else "planned"), f"{max(above) / MIB:.1f}", paper])
            missed += [(column, ratio) for ratio in ratios if abs(ratio - 1) > 0.03]
            print(f"{column}: forecasts {[round(f / MIB, 1) for f in forecasts]}, "
                  f"peaks {[round(p / MIB, 1) for p in peaks]} MiB", file=sys.stderr)
    print(f"{options.memory} MiB a stage, {options.batch} images of 32x32, RMSProp with momentum, float32\n")
    planning.print_table(["", "L, D", "parameters", "layers by stage", "forecast MiB", "measured MiB",
                          "measured / forecast, worst stage", "next D", "it takes MiB", "paper, 8 GB"], rows)
    if missed:
        sys.exit(f"off by more than 3 %: {missed}")


# Of the paper: L, D, parameters, GB of parameters, GB of activations.
AMOEBANETS = (("Naive-1", 1, 18, 208, "82M", 1.05, 6.26), ("Pipeline-1", 1, 18, 416, "318M", 3.8, 3.46),
              ("Pipeline-2", 2, 18, 544, "542M", 6.45, 8.11), ("Pipeline-4", 4, 36, 544, "1.05B", 12.53, 15.21),
              ("Pipeline-8", 8, 72, 512, "1.8B", 24.62, 26.24))
TRANSFORMERS = (("Naive-1", 1, 3, "282.2M", 11.7, 3.15), ("Pipeline-1", 1, 13, "785.8M", 8.8, 6.4),
                ("Pipeline-8", 8, 103, "5.3B", 59.5, 50.9), ("Pipeline-32", 32, 415, "21.0B", 235.1, 199.9),
                ("Pipeline-128", 128, 1663, "83.9B", 937.9, 796.1))
# Of torchgpipe: L, D, modules by device, GiB of model, GiB of activations.
TORCHGPIPE = (("baseline", 18, 208, [24], 0.91, "out of memory"), ("pipeline-1", 18, 416, [24], 3.57, 0.91),
              ("pipeline-2", 18, 544, [16, 8], 6.07, 3.39), ("pipeline-4", 36, 544, [16, 12, 7, 7], 11.80, 6.91),
              ("pipeline-8", 72, 512, [23, 16, 11, 6, 6, 5, 5, 6], 20.62, 10.83))
# Of its U-Nets: B, C, devices, parameters, GiB in all.
UNETS = (("baseline", 6, 72, 1, "362.2M", 20.3), ("pipeline-1", 11, 128, 1, "2.21B", 20.5),
         ("pipeline-2", 24, 128, 2, "4.99B", 43.4), ("pipeline-4", 24, 160, 4, "7.80B", 79.1),
         ("pipeline-8", 48, 160, 8, "15.82B", 154.1))
TWELVE_BYTES = {"rmsprop": {"momentum": 0}}  # a parameter: value, gradient, mean of squares
PICTURES = {"image_folder": {"train": "pictures"}}


def gib(number):
    return f"{number / GIB:.2f}"


def is_naive(name):
    return name in ("Naive-1", "baseline")


def paper_amoebanets(plans):
    for precision in ("float32", "bfloat16"):
        print(f"\nAmoebaNet-D, 8 GiB a stage, 128 images of 224x224, {precision}; the paper's networks and bytes, ours of "
              "them, and our largest\n")
        rows = []
        for name, stages, layers, filters, published, model, activations in AMOEBANETS:
            def spec_of(layers, filters):
                remat, micro_batches = ("never", 1) if is_naive(name) else ("always", 128)
                return job(amoebanet(layers, filters, [224, 224, 3], 1000), PICTURES, 128, micro_batches, stages, remat,
                           TWELVE_BYTES, precision=precision)

            plan = plans.plan(spec_of(layers, filters))
            by_filters = stages <= 2
            sizes = range(8, 1600, 8) if by_filters else range(3, 900, 3)
            best, best_plan, _ = plans.largest(
                lambda size: spec_of(layers, size) if by_filters else spec_of(size, filters), sizes, 8 * GIB)
            ours = f"{layers}, {best}" if by_filters else f"{best}, {filters}"
            rows.append([name, f"{layers}, {filters}", published, model, activations, gib(planning.model_bytes(plan)),
                         gib(planning.activation_bytes(plan)), gib(fullest(plan)), ours,
                         count(planning.parameters(best_plan)), ", ".join(map(str, planning.balance(best_plan)))])
        planning.print_table(["", "L, D", "paper: parameters", "model GB", "activations GB", "ours of it: model GiB",
                              "activations GiB", "fullest stage GiB", "our largest L, D", "parameters",
                              "layers by stage"], rows)


def paper_transformers(plans):
    for precision in ("float32", "bfloat16"):
        print(f"\nTransformer of width 2048, 16 GiB a stage, 32 sequences of 1024, {precision}\n")
        rows = []
        for name, stages, layers, published, model, activations in TRANSFORMERS:
            def spec_of(layers):
                gpt = {"gpt": {"layers": layers, "width": 2048, "heads": 32, "context": 1024, "vocabulary": 32000}}
                remat, micro_batches = ("never", 1) if is_naive(name) else ("always", 32)
                return job(gpt, {"text": {"path": "input.txt"}}, 32, micro_batches, stages, remat, TWELVE_BYTES,
                           precision=precision)

            plan = plans.plan(spec_of(layers))
            sizes = range(stages, 40 * stages)
            fits = plans.plan(spec_of(sizes[0]), 16 * GIB) is not None
            best, best_plan, _ = plans.largest(spec_of, sizes, 16 * GIB) if fits else ("none", None, None)
            rows.append([name, layers, published, model, activations, gib(planning.model_bytes(plan)),
                         gib(planning.activation_bytes(plan)), gib(fullest(plan)), best,
                         count(planning.parameters(best_plan)) if fits else ""])
        planning.print_table(["", "L", "paper: parameters", "model GB", "activations GB", "ours of it: model GiB",
                              "activations GiB", "fullest stage GiB", "our largest L", "parameters"], rows)


def torchgpipe_memory(plans):
    print("\ntorchgpipe's memory of AmoebaNet-D: Tesla P40 of 24 GB, 128 images of 224x224 in 128 micro-batches, its "
          "balances\n")
    rows = []
    for name, layers, filters, balances, model, activations in TORCHGPIPE:
        def spec_of(partition):
            remat, micro_batches = ("never", 1) if is_naive(name) else ("always", 128)
            return job(amoebanet(layers, filters, [224, 224, 3], 1000), PICTURES, 128, micro_batches, len(balances), remat,
                       TWELVE_BYTES, partition)

        theirs = plans.plan(spec_of(planning.cuts_of(balances) if len(balances) > 1 else "auto"))
        ours = plans.plan(spec_of("auto"))
        rows.append([name, f"{layers}, {filters}", ", ".join(map(str, balances)), model, activations,
                     gib(planning.model_bytes(theirs)), gib(planning.activation_bytes(theirs)), gib(fullest(theirs)),
                     ", ".join(map(str, planning.balance(ours))), gib(fullest(ours))])
    planning.print_table(["", "L, D", "balance", "torchgpipe: model GiB", "activations GiB", "ours: model GiB",
                          "activations GiB", "fullest stage GiB", "our balance", "fullest stage GiB"], rows)
    print("\nIts memory of U-Nets: 32 images of 192x192 in 32 micro-batches (128 asked for with 8 devices), SGD\n")
    rows = []
    for name, convolutions, base, stages, published, total in UNETS:
        unet = {"unet": {"image": [192, 192, 3], "channels_out": 2, "base": base, "depth": 5, "convolutions": convolutions,
                         "upsample": "nearest"}}
        remat, micro_batches = ("never", 1) if is_naive(name) else ("always", 32)
        masks = {"mask_folder": {"train": "pictures", "masks": "masks"}}
        plan = plans.plan(job(unet, masks, 32, micro_batches, stages, remat, {"sgd": {}}))
        rows.append([name, f"{convolutions}, {base}", published, total, count(planning.parameters(plan)),
                     gib(planning.model_bytes(plan) + planning.activation_bytes(plan)), gib(fullest(plan))])
    planning.print_table(["", "B, C", "torchgpipe: parameters", "GiB in all", "ours: parameters", "GiB in all",
                          "fullest stage GiB"], rows)


def paper(options):
    with tempfile.TemporaryDirectory() as name:
        plans = planning.Plans(options.bin, name)
        print("Planned, not measured.")
        paper_amoebanets(plans)
        paper_transformers(plans)
        torchgpipe_memory(plans)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("small", "paper"))
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--memory", default=256, type=int, help="MiB of a stage")
    parser.add_argument("--layers", default=18, type=int)
    parser.add_argument("--batch", default=16, type=int)
    options = parser.parse_args()
    {"small": small, "paper": paper}[options.what](options)


if __name__ == "__main__":
    main()
