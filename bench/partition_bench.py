#!/usr/bin/env python3
"""Where AmoebaNet-D is cut, and what a step takes: by measured costs, in equal numbers of layers, and as torchgpipe did.

  bench/partition_bench.py [--bin build/bin] [--stages 2] [--device cpu] [--layers 18] [--filters 256] [--image 224]
                           [--batch 8] [--micro-batches 4] [--steps 4] [--rounds 3]
                           [--schedule gpipe] [--rematerialization always] [--first-stage 8,9,10]

Runs of `stagecoach local`, one thread a stage, the three partitions in turn; `--device
simulated:200` waits for as long as devices of 200 GFLOP/s would need, so that K stages need no K cores. A round's step is
the median of the steps behind the first; printed are medians over the rounds, the ratio that of the rounds' own ratios.
--first-stage: of two stages, cuts behind so many layers too.
Busiest stage: its forwards, recomputes and backwards of a step. torchgpipe's balances are those of its speed benchmark of
AmoebaNet-D (18, 256), whose 24 modules are our layers; other networks are run without them.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import planning
from planning import amoebanet, job

TORCHGPIPE = {2: [9, 15], 4: [3, 6, 7, 8], 8: [2, 2, 2, 3, 3, 4, 4, 4]}
COMPUTE = ("forward", "recompute", "backward")


def balance_of(program, state):
    """Layers by stage of the job that runs there."""
    servers = json.loads((state / "processes.json").read_text())["processes"]
    address = next(server["address"] for server in servers if server["name"] == "coordinator")
    jobs = json.loads(subprocess.run([program, "list", "-o", "json", "--address", address], capture_output=True, text=True,
                                     check=True).stdout)["jobs"]
    return [int(stage["last_layer"]) - int(stage["first_layer"]) for stage in jobs[0]["stages"]]


def run(plans, spec, name, options):
    """Layers by stage, median step, and the busiest stage's median."""
    state = plans.folder / name
    layers = None
    with tempfile.TemporaryFile("w+") as errors:  # and no pipe, which would fill while nobody reads it
        process = subprocess.Popen([plans.program, "local", "--stages", str(options.stages), "--threads-per-stage", "1",
                                    "--device", options.device, "--state-dir", state, "-o", "ndjson", plans.write(spec)],
                                   stdout=subprocess.PIPE, stderr=errors, text=True)
        for line in process.stdout:
            if layers is None and json.loads(line)["event"] == "step":
                layers = balance_of(plans.program, state)
        if process.wait() != 0:
            errors.seek(0)
            sys.exit(f"run failed: {errors.read()[-2000:]}")
    steps = [step for step in planning.steps_of(state) if step["step"] > 1]
    shutil.rmtree(state)  # its checkpoint is large
    busiest = [max(sum(stage["phases"][phase] for phase in COMPUTE) for stage in step["stages"])
               for step in steps if "stages" in step]
    return layers, statistics.median(step["step_seconds"] for step in steps), statistics.median(busiest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--stages", default=2, type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--schedule", default="gpipe")
    parser.add_argument("--rematerialization", default="always")
    for name, value in (("layers", 18), ("filters", 256), ("image", 224), ("batch", 8), ("micro-batches", 4), ("steps", 4),
                        ("rounds", 3)):
        parser.add_argument("--" + name, default=value, type=int)
    parser.add_argument("--first-stage", default="")
    options = parser.parse_args()
    sides = {"uniform": "uniform", "automatic": "auto"}
    if options.stages in TORCHGPIPE and options.layers == 18:
        sides["torchgpipe's"] = planning.cuts_of(TORCHGPIPE[options.stages])
    for layers in filter(None, options.first_stage.split(",")):
        sides[f"behind {layers}"] = {"cuts": [int(layers)]}
    model = amoebanet(options.layers, options.filters, [options.image, options.image, 3], 1000)
    measured = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        planning.write_pictures(folder)
        plans = planning.Plans(options.bin, folder)
        for number in range(options.rounds):
            for side, partition in sides.items():
                spec = job(model, {"cifar": {"folder": str(folder)}}, options.batch, options.micro_batches, options.stages,
                           options.rematerialization, {"sgd": {"momentum": 0.9}}, partition, options.steps,
                           schedule=options.schedule)
                measured[side].append(run(plans, spec, f"{side}-{number}", options))
    print(f"AmoebaNet-D ({options.layers}, {options.filters}), {options.batch} images of {options.image}x{options.image}, "
          f"K = {options.stages}, M = {options.micro_batches}, {options.schedule}, {options.rematerialization}, "
          f"{options.device}\n")
    rows = []
    for side, results in measured.items():
        ratios = [even[1] / mine[1] for even, mine in zip(measured["uniform"], results)]
        balances = {", ".join(map(str, layers)) for layers, _, _ in results}
        rows.append([side, "; ".join(sorted(balances)), f"{statistics.median(step for _, step, _ in results):.3f}",
                     f"{statistics.median(busy for _, _, busy in results):.3f}", f"{statistics.median(ratios):.3f}"])
    planning.print_table(["partition", "layers by stage", "step s", "busiest stage s", "uniform / this"], rows)


if __name__ == "__main__":
    main()
