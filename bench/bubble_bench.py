#!/usr/bin/env python3
"""The bubble of pipelines of equal cells beside the ideal of each schedule, on a made-up device.

  bench/bubble_bench.py [--bin build/bin] [--stages 4] [--micro-batches 8] [--steps 12] [--gigaflops 10]
                        [--schedules gpipe,interleaved]

Real servers, links and clocks; operations wait for as long as the device would need instead of computing, so K
stages need no K cores. Equal layers in every cell, no recomputation. Printed: the median over the steps after
the second of step time and bubble, and the quartiles of the bubble. At the default rate a forward takes about
0.1 s, so that waking up late by a millisecond is 1 %; a busy machine adds to the bubble.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

WIDTH, VOCABULARY, LINEARS = 512, 128, 8


def equal_stages(stages):
    """LINEARS equal linear layers on every stage; the last one ends in two that cost as much as one:
    WIDTH -> 410 -> VOCABULARY has as many weights as WIDTH -> WIDTH."""
    linear = {"linear": {"out": WIDTH}}
    inner = round(WIDTH * WIDTH / (WIDTH + VOCABULARY))
    return ([{"embedding": {"dropout": 0.0}}] + [linear] * (stages * LINEARS - 1) +
            [{"linear": {"out": inner}}, {"linear": {"out": VOCABULARY}}])


SEVERAL_CELLS = ("interleaved", "breadth_first", "zero_bubble_v", "v_min")


def job(options, schedule):
    cells = options.stages * (2 if schedule in SEVERAL_CELLS else 1)
    each = LINEARS * options.stages // cells
    return {
        "name": "bubble", "seed": 1,
        "model": {"sequence": {"width": WIDTH, "context": 64, "vocabulary": VOCABULARY,
                               "layers": equal_stages(options.stages)}},
        "data": {"text": {"path": "input.txt"}},
        "training": {"steps": options.steps, "batch_size": 4 * options.micro_batches,
                     "micro_batches": options.micro_batches, "optimizer": {"sgd": {}},
                     "learning_rate": {"constant": {"peak": 1e-3}}},
        "pipeline": {"stages": options.stages, "schedule": schedule, "rematerialization": "never",
                     "partition": {"cuts": [1 + each * c for c in range(1, cells)]}},
        "checkpoint": {"every_steps": 0},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--stages", default=4, type=int)
    parser.add_argument("--micro-batches", default=8, type=int)
    parser.add_argument("--steps", default=12, type=int)
    parser.add_argument("--gigaflops", default=10, type=float)
    parser.add_argument("--schedules", default="gpipe", help="with commas between")
    options = parser.parse_args()
    print(f"K = {options.stages}, M = {options.micro_batches}, simulated:{options.gigaflops:g}, {options.steps} steps")
    print("| schedule | step s | bubble | quartiles | ideal bubble |\n| --- | --- | --- | --- | --- |")
    for schedule in options.schedules.split(","):
        print(row(options, schedule), flush=True)


def row(options, schedule):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "input.txt").write_text("Stagecoach measures what it promises; the text does not matter. " * 2000)
        (folder / "job.json").write_text(json.dumps(job(options, schedule)))
        run = subprocess.run([options.bin / "stagecoach", "local", "--stages", str(options.stages), "--device",
                              f"simulated:{options.gigaflops}", "--state-dir", folder / "state", "-o", "ndjson",
                              folder / "job.json"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"run failed: {run.stderr[-2000:]}")
    events = [json.loads(line) for line in run.stdout.splitlines()]
    steps = [event for event in events if event["event"] == "step" and event["step"] > 2]
    low, middle, high = statistics.quantiles([step["bubble"] for step in steps], n=4)
    return (f"| `{schedule}` | {statistics.median(step['step_seconds'] for step in steps):.3f} | {middle:.4f} | "
            f"{low:.4f} – {high:.4f} | {steps[0]['bubble_ideal']:.4f} |")


if __name__ == "__main__":
    main()
