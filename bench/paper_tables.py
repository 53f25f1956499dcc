#!/usr/bin/env python3
"""GPipe's tables 1 to 3 beside ours, as planned; and table 1 in small, trained here.

  bench/paper_tables.py [paper] [--bin build/bin] [--precision float32]
  bench/paper_tables.py small [--bin build/bin] [--memory 256] [--layers 18] [--batch 16]

paper: nothing is trained. Table 1, and torchgpipe's tables of memory: plans of their networks for the memory of their
accelerators, and the largest of the same family that fits here. Tables 2 and 3: forecasts of the time of a step by the
planner's simulator, for devices and links of published rates.

small: the largest AmoebaNet-D (L, D), D growing by 4, that `stagecoach plan` fits into so many MiB a stage, without
recomputation and in one piece on one stage (the paper's Naive-1), and in micro-batches of one image with recomputation
on 1, 2 and 4. Each is trained for two steps by `stagecoach local` with that limit, on pictures of noise; forecast and
measured peak of the fullest stage stand beside each other. The next larger one is planned, which must refuse it, and
trained without a limit, to see what it takes.
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
# The paper prints Naive-1's bytes the other way round: 12 bytes for each of 282.2M parameters are 3.15 GiB.
TRANSFORMERS = (("Naive-1", 1, 3, "282.2M", 3.15, 11.7), ("Pipeline-1", 1, 13, "785.8M", 8.8, 6.4),
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
# A device's peak FLOP/s, and bytes a second of a boundary in one direction.
TPU_V3 = (61.5e12, 82e9)  # half of a chip's 123 TFLOP/s in bfloat16; one of its links of 656 Gbit/s
P100 = (9.3e12, 6e9)  # float32; pinned copies of 12 GB/s to the host's memory and then from it
# The peak, and about the share that torchgpipe's AmoebaNet-D (18, 256) reaches on P40: 26.7 images/s on one at a time.
SHARES_OF_PEAK = (1, 0.3)


def gib(number):
    return f"{number / GIB:.2f}"


def is_naive(name):
    return name in ("Naive-1", "baseline")


def picture_job(layers, filters, stages, micro_batches=128, remat="always", precision="float32"):
    return job(amoebanet(layers, filters, [224, 224, 3], 1000), PICTURES, 128, micro_batches, stages, remat, TWELVE_BYTES,
               precision=precision)


def text_job(layers, stages, micro_batches=32, remat="always", precision="float32"):
    gpt = {"gpt": {"layers": layers, "width": 2048, "heads": 32, "context": 1024, "vocabulary": 32000}}
    return job(gpt, {"text": {"path": "input.txt"}}, 32, micro_batches, stages, remat, TWELVE_BYTES, precision=precision)


def paper_amoebanets(plans, precision):
    print(f"\nTable 1, AmoebaNet-D: 8 GiB a stage, 128 images of 224x224, {precision}. Planned; M = 128, Naive-1 in one "
          "piece without recomputation.\n")
    rows = []
    for name, stages, layers, filters, published, model, activations in AMOEBANETS:
        def spec_of(layers, filters):
            pieces = {"micro_batches": 1, "remat": "never"} if is_naive(name) else {}
            return picture_job(layers, filters, stages, precision=precision, **pieces)

        plan = plans.plan(spec_of(layers, filters))
        by_filters = stages <= 2
        sizes = range(8, 1600, 8) if by_filters else range(3, 240, 3)
        best, best_plan, _ = plans.largest(
            lambda size: spec_of(layers, size) if by_filters else spec_of(size, filters), sizes, 8 * GIB)
        ours = f"{layers}, {best}" if by_filters else f"{best}, {filters}"
        rows.append([name, f"{layers}, {filters}", published, model, activations, gib(planning.model_bytes(plan)),
                     gib(planning.activation_bytes(plan)), gib(fullest(plan)), ours,
                     count(planning.parameters(best_plan)), ", ".join(map(str, planning.balance(best_plan)))])
    planning.print_table(["", "L, D", "paper: parameters", "model GB", "activations GB", "ours of it: model GiB",
                          "activations GiB", "fullest stage GiB", "our largest L, D", "parameters",
                          "layers by stage"], rows)


def paper_transformers(plans, precision):
    print(f"\nTable 1, Transformer: 16 GiB a stage, 32 sequences of 1024, width 2048, {precision}. Planned; M = 32, "
          "Naive-1 in one piece without recomputation.\nOurs is a gpt: it has positions and a last norm, and its output "
          "no bias, which is 2,069,248 parameters more.\nThe paper prints Naive-1's bytes the other way round.\n")
    rows = []
    for name, stages, layers, published, model, activations in TRANSFORMERS:
        def spec_of(layers):
            pieces = {"micro_batches": 1, "remat": "never"} if is_naive(name) else {}
            return text_job(layers, stages, precision=precision, **pieces)

        plan = plans.plan(spec_of(layers))
        best, best_plan, _ = plans.largest(spec_of, range(stages, 40 * stages), 16 * GIB)
        rows.append([name, layers, published, model, activations, f"{planning.parameters(plan):,}",
                     gib(planning.model_bytes(plan)), gib(planning.activation_bytes(plan)), gib(fullest(plan)),
                     "yes" if fullest(plan) <= 16 * GIB else "no", best, count(planning.parameters(best_plan))])
    planning.print_table(["", "L", "paper: parameters", "model GB", "activations GB", "ours of it: parameters",
                          "model GiB", "activations GiB", "fullest stage GiB", "fits", "our largest L", "parameters"],
                         rows)


# Of the paper's tables 2 and 3: M, and the throughput on 2, 4 and 8 accelerators.
TABLE_2 = (("AmoebaNet-D (18, 256)", lambda stages, micro_batches: picture_job(18, 256, stages, micro_batches),
            ((1, (1, 1.13, 1.38)), (4, (1.07, 1.26, 1.72)), (32, (1.21, 1.84, 3.48)))),
           ("Transformer-48", lambda stages, micro_batches: text_job(48, stages, micro_batches),
            ((1, (1, 1.07, 1.3)), (4, (1.7, 3.2, 4.8)), (32, (1.8, 3.4, 6.3)))))
TABLE_3 = (("AmoebaNet-D (18, 128)", lambda stages, micro_batches: picture_job(18, 128, stages, micro_batches),
            ((32, (1, 1.7, 2.7)),)),
           ("Transformer-24", lambda stages, micro_batches: text_job(24, stages, micro_batches), ((32, (1, 1.8, 3.3)),)))


def planned_link_rate(plans):
    """Bytes a second of the link that `plan` assumes: from the time of a step whose computation takes none."""
    plan = plans.plan(text_job(2, 2, micro_batches=1), gflops=1e9)
    cut = plan["layers"][int(plan["stages"][0]["last_layer"]) - 1]
    return 2 * 32 * int(cut["cut_bytes"]) / plan["step_seconds"]


def relative_speeds(plans, job_of, lines, gflops):
    """By line of a table, the speeds on 2, 4 and 8 stages; the first is 1."""
    speeds, first = [], None
    for micro_batches, _ in lines:
        found = [plans.plan(job_of(stages, micro_batches), gflops=gflops) for stages in (2, 4, 8)]
        first = first or found[0]["step_seconds"]
        speeds.append([first / plan["step_seconds"] for plan in found])
    return speeds


def throughputs(plans, title, table, device, link_rate):
    """`plan` takes no rate of a link. Relative times hang on FLOPs by byte alone, so the device is slowed like the link."""
    flops, link = device
    print(f"\n{title}: {flops / 1e12:g} TFLOP/s a stage, {link / 1e9:g} GB/s a boundary. Simulated by the planner, "
          "float32.\nEach batch is 128 images of 224x224 or 32 sequences of 1024. Cells: the paper's; ours at the peak, "
          "and at 30 % of it.\n")
    rows = []
    for network, job_of, lines in table:
        ours = [relative_speeds(plans, job_of, lines, share * flops * link_rate / link / 1e9) for share in SHARES_OF_PEAK]
        for line, (micro_batches, published) in enumerate(lines):
            columns = [*zip(published, *(speeds[line] for speeds in ours))]
            columns.append([eight / two for two, eight in zip(columns[0], columns[2])])
            ideal = 4 * (micro_batches + 1) / (micro_batches + 7)
            rows.append([network, micro_batches,
                         *(f"{of_paper:.3g}; {', '.join(f'{speed:.2f}' for speed in speeds)}" for of_paper, *speeds in columns),
                         f"{ideal:.2f}"])
    planning.print_table(["", "M", "K = 2", "K = 4", "K = 8", "K = 8 over K = 2", "ideal of it"], rows)


def torchgpipe_memory(plans):
    print("\ntorchgpipe's memory of AmoebaNet-D: Tesla P40 of 24 GB, 128 images of 224x224 in 128 micro-batches, its "
          "balances\n")
    rows = []
    for name, layers, filters, balances, model, activations in TORCHGPIPE:
        pieces = {"micro_batches": 1, "remat": "never"} if is_naive(name) else {}
        spec = picture_job(layers, filters, len(balances), **pieces)
        ours = plans.plan(spec)
        if len(balances) > 1:
            spec["pipeline"]["partition"] = planning.cuts_of(balances)
        theirs = plans.plan(spec)
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
        print("Planned or simulated, not measured.")
        paper_amoebanets(plans, options.precision)
        paper_transformers(plans, options.precision)
        link_rate = planned_link_rate(plans)
        throughputs(plans, "Table 2, TPUv3", TABLE_2, TPU_V3, link_rate)
        throughputs(plans, "Table 3, P100 without NVLink", TABLE_3, P100, link_rate)
        torchgpipe_memory(plans)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="paper", choices=("small", "paper"))
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"), help="of table 1")
    parser.add_argument("--memory", default=256, type=int, help="MiB of a stage")
    parser.add_argument("--layers", default=18, type=int)
    parser.add_argument("--batch", default=16, type=int)
    options = parser.parse_args()
    {"small": small, "paper": paper}[options.what](options)


if __name__ == "__main__":
    main()
